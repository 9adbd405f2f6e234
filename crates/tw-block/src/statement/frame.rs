//! The loops of one task.

use tw_ir::{Grid, Term, Var};

/// One loop, over one variable or over several that move as one.
#[derive(Clone, Copy, Debug)]
pub(super) struct Loop {
    /// The variable; of merged loops, the innermost.
    pub(super) var: usize,
    pub(super) extent: i64,
}

/// Consecutive points of the inner loops of a row.
#[derive(Clone, Copy, Debug)]
pub(super) struct Strip {
    pub(super) start: usize,
    pub(super) len: usize,
}

/// The box of one task, and where its loops are.
#[derive(Debug, Default)]
pub(super) struct Frame {
    /// First value per variable.
    pub(super) starts: Vec<i64>,
    /// Number of values per variable.
    pub(super) extents: Vec<i64>,
    /// Outermost first. Variables with one value have no loop.
    pub(super) loops: Vec<Loop>,
    /// How many loops are outside the strips; the others are flattened into one.
    pub(super) n_outer: usize,
    /// Where each loop is, from 0.
    pub(super) counters: Vec<i64>,
    /// The values of the variables.
    pub(super) point: Vec<i64>,
}

impl Frame {
    /// Sets the box of a point; false if it is empty.
    pub(super) fn set_box(&mut self, vars: &Grid, point: u64) -> bool {
        self.starts.clear();
        self.extents.clear();
        self.starts.resize(vars.len(), 0);
        self.extents.resize(vars.len(), 0);
        let mut empty = false;
        let (starts, extents) = (&mut self.starts, &mut self.extents);
        vars.for_ranges(point, |var, range| {
            starts[var] = range.start as i64;
            extents[var] = range.end.saturating_sub(range.start) as i64;
            empty |= range.is_empty();
        });
        self.point.clone_from(&self.starts);
        !empty
    }

    /// The value of a term whose variables have one value each in this box.
    pub(super) fn fixed(&self, term: &Term) -> Option<i64> {
        let moves = |var: usize| self.extents[var] != 1 && term.uses(Var(var as u32));
        (!(0..self.extents.len()).any(moves)).then(|| term.eval(&self.starts))
    }

    /// Sets the range of one variable.
    pub(super) fn set_range(&mut self, var: usize, start: i64, extent: i64) {
        self.starts[var] = start;
        self.extents[var] = extent;
        self.point[var] = start;
    }

    /// Makes loops in the given order of variables, the last `n_inner` of them flattened.
    pub(super) fn set_loops(&mut self, order: &[usize], n_inner: usize) {
        self.loops.clear();
        self.n_outer = 0;
        let first_inner = order.len() - n_inner.min(order.len());
        for (depth, &var) in order.iter().enumerate() {
            let extent = self.extents[var];
            if extent > 1 {
                self.n_outer += (depth < first_inner) as usize;
                self.loops.push(Loop { var, extent });
            }
        }
        // At least one loop is inside the strips.
        self.n_outer = self.n_outer.min(self.loops.len().saturating_sub(1));
    }

    /// Begins at the first row.
    pub(super) fn begin(&mut self) {
        self.counters.clear();
        self.counters.resize(self.loops.len(), 0);
    }

    /// The loop over a variable.
    pub(super) fn loop_of(&self, var: usize) -> Option<usize> {
        self.loops.iter().position(|l| l.var == var)
    }

    /// Puts a loop at another depth.
    pub(super) fn move_loop(&mut self, from: usize, to: usize) {
        let moved = self.loops.remove(from);
        self.loops.insert(to, moved);
    }

    /// Makes one loop of two: `depth` and the one inside it.
    pub(super) fn merge_loops(&mut self, depth: usize) {
        let outer = self.loops.remove(depth);
        self.loops[depth].extent *= outer.extent;
        if depth < self.n_outer {
            self.n_outer -= 1;
        }
    }

    /// Number of points of the flattened inner loops.
    pub(super) fn row_len(&self) -> usize {
        self.loops[self.n_outer..].iter().map(|l| l.extent as usize).product()
    }

    /// Moves the outer loops on; false after the last row.
    pub(super) fn next_row(&mut self) -> bool {
        for depth in (0..self.n_outer).rev() {
            self.counters[depth] += 1;
            if self.counters[depth] < self.loops[depth].extent {
                return true;
            }
            self.counters[depth] = 0;
        }
        false
    }

    /// Calls `f` with the parts of a strip on which only the innermost loop moves, as (offset in the strip, length).
    pub(super) fn runs<E>(
        &mut self,
        strip: Strip,
        mut f: impl FnMut(&mut Frame, usize, usize) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut rest = strip.start as i64;
        for depth in (self.n_outer..self.loops.len()).rev() {
            self.counters[depth] = rest % self.loops[depth].extent;
            rest /= self.loops[depth].extent;
        }
        let Some(innermost) = self.loops.len().checked_sub(1) else {
            return f(self, 0, strip.len);
        };
        let mut offset = 0;
        while offset < strip.len {
            let left = (self.loops[innermost].extent - self.counters[innermost]) as usize;
            let len = left.min(strip.len - offset);
            f(self, offset, len)?;
            offset += len;
            self.counters[innermost] = 0;
            for depth in (self.n_outer..innermost).rev() {
                self.counters[depth] += 1;
                if self.counters[depth] < self.loops[depth].extent {
                    break;
                }
                self.counters[depth] = 0;
            }
        }
        Ok(())
    }

    /// Sets the variables to where the loops are. Returns the innermost variable and its value.
    pub(super) fn set_point(&mut self) -> (usize, i64) {
        for (l, counter) in self.loops.iter().zip(&self.counters) {
            self.point[l.var] = self.starts[l.var] + counter;
        }
        // Without loops there is one point, and any variable will do; a statement without variables has no index that moves.
        let var = self.loops.last().map_or(0, |l| l.var);
        if self.point.is_empty() {
            self.point.push(0);
        }
        (var, self.point[var])
    }
}
