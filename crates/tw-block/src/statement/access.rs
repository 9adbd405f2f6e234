//! Accesses made ready: affine where they are, and planned once per task.

use tw_ir::{BoxRegion, Edge, Idx, Term};

use super::frame::{Frame, Strip};
use super::segment::{Segment, clip, resolve, segment};

/// An access of a statement.
#[derive(Debug)]
pub(super) struct Access {
    pub(super) axes: Vec<AxisIndex>,
    pub(super) edge: Edge,
}

/// The index along one axis.
#[derive(Debug)]
pub(super) struct AxisIndex {
    pub(super) idx: Idx,
    /// The length of the axis of the whole tensor.
    pub(super) extent: i64,
    /// Variables and their coefficients.
    pub(super) affine: Vec<(usize, i64)>,
    /// Divisions, remainders and tables with their coefficients.
    pub(super) others: Vec<(Term, i64)>,
}

impl Access {
    pub(super) fn new(idx: &[Idx], shape: &[u64], edge: Edge) -> Access {
        let axes = idx
            .iter()
            .zip(shape)
            .map(|(idx, &extent)| {
                let (mut affine, mut others) = (Vec::new(), Vec::new());
                for (term, coefficient) in idx.terms() {
                    match term {
                        Term::Var(v) => affine.push((v.0 as usize, *coefficient)),
                        other => others.push((other.clone(), *coefficient)),
                    }
                }
                AxisIndex { idx: idx.clone(), extent: extent as i64, affine, others }
            })
            .collect();
        Access { axes, edge }
    }

    /// What moving along a variable costs per element: 0 if nothing moves, 1 for neighbours, more for jumps.
    pub(super) fn cost_along(&self, var: usize) -> u64 {
        const JUMP: u64 = 4;
        let uses = |axis: &AxisIndex| axis.idx.uses(tw_ir::Var(var as u32));
        match self.axes.iter().rposition(uses) {
            None => 0,
            Some(last) => {
                let only_last = last + 1 == self.axes.len() && !self.axes[..last].iter().any(uses);
                let index = &self.axes[last];
                let strides = |&(v, coefficient): &(usize, i64)| v == var && coefficient.unsigned_abs() != 1;
                let slow = !index.others.is_empty() || index.affine.iter().any(strides);
                if only_last && !slow { 1 } else { JUMP }
            }
        }
    }
}

impl Access {
    /// The variable along which the access moves from neighbour to neighbour.
    pub(super) fn neighbours(&self) -> Option<usize> {
        let last = self.axes.last().filter(|index| index.others.is_empty())?;
        last.affine.iter().find(|(_, coefficient)| coefficient.unsigned_abs() == 1).map(|&(var, _)| var)
    }
}

/// How one task resolves an access.
#[derive(Debug, Default)]
pub(super) struct AccessPlan {
    kind: Kind,
    /// Position of the first point.
    base: i64,
    /// Direct: per loop, how far a step goes. Walk: strides of the block.
    strides: Vec<i64>,
    /// Walk: the block's box.
    bounds: Vec<(i64, i64)>,
    /// Direct: how far a step inside the inner loops goes, if that is the same for all of them.
    pub(super) inner: Option<i64>,
    /// Direct, stairs: position of the first point of the current row.
    row: i64,
    stairs: Stairs,
}

/// An index that stays for `divisor` steps of the innermost loop, then moves on: what `x[i / 3]` reads along `i`.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Stairs {
    divisor: i64,
    /// How many steps before the first point the stair begins.
    phase: i64,
    /// How far the next stair is.
    rise: i64,
}

impl Stairs {
    /// The quotient of the innermost variable that a term is: its first value, its stairs, and how far its last value is from the first.
    fn of(term: &Term, frame: &Frame) -> Option<(i64, Stairs, i64)> {
        let Term::Div(inner, divisor @ 1..) = term else { return None };
        let (var, by) = inner.as_shifted_var()?;
        let var = var.0 as usize;
        if frame.loops.last()?.var != var {
            return None;
        }
        let start = frame.starts[var].checked_add(by)?;
        let last = start.checked_add(frame.extents[var] - 1)?;
        let first = start.div_euclid(*divisor);
        let stairs = Stairs { divisor: *divisor, phase: start.rem_euclid(*divisor), rise: 0 };
        Some((first, stairs, last.div_euclid(*divisor) - first))
    }
}

/// A strip of stairs.
pub(super) struct Flight {
    pub(super) position: i64,
    /// Points of the first stair that come before the strip.
    pub(super) phase: usize,
    pub(super) divisor: usize,
    pub(super) rise: i64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Kind {
    /// Affine, and every point lies in the block.
    #[default]
    Direct,
    /// Affine but for one quotient of the innermost variable, and every point lies in the block.
    Stairs,
    /// Anything else.
    Walk,
}

/// Part of a strip on which an access moves evenly.
pub(super) struct Piece {
    pub(super) offset: usize,
    pub(super) len: usize,
    pub(super) place: Place,
}

/// A strip that is several whole rows, each of which moves evenly.
pub(super) struct EvenRows {
    pub(super) position: i64,
    pub(super) rows: usize,
    pub(super) row_step: i64,
    pub(super) columns: usize,
    pub(super) column_step: i64,
}

/// Where a piece is found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// In the block, from this position on, with this step.
    Inside { position: i64, slope: i64 },
    /// Outside the tensor.
    Outside,
    /// In the tensor, but not in the block.
    Elsewhere,
}

impl AccessPlan {
    /// Plans an access to a block that lies at `bbox` in its storage as `offset` and `strides` say.
    pub(super) fn prepare(
        &mut self,
        access: &Access,
        frame: &Frame,
        bbox: &BoxRegion,
        offset: usize,
        stride: impl Fn(usize) -> usize,
    ) {
        self.strides.clear();
        self.bounds.clear();
        self.inner = None;
        self.base = offset as i64;
        if let Some(stairs) = self.prepare_inside(access, frame, bbox, &stride) {
            self.kind = if stairs.is_some() { Kind::Stairs } else { Kind::Direct };
            self.stairs = stairs.unwrap_or_default();
            return;
        }
        self.kind = Kind::Walk;
        self.strides.clear();
        self.base = offset as i64;
        for axis in 0..access.axes.len() {
            self.strides.push(stride(axis) as i64);
            self.bounds.push((bbox.lo[axis] as i64, bbox.hi[axis] as i64));
        }
    }

    /// Plans an access without a block: everything inside the tensor is the fill value.
    pub(super) fn prepare_absent(&mut self, access: &Access, frame: &Frame) {
        self.strides.clear();
        self.bounds.clear();
        self.inner = None;
        self.base = 0;
        if access.edge == Edge::Fill {
            self.kind = Kind::Direct;
            self.strides.resize(frame.loops.len(), 0);
            return;
        }
        self.kind = Kind::Walk;
        self.strides.resize(access.axes.len(), 0);
        self.bounds.extend(access.axes.iter().map(|axis| (0, axis.extent)));
    }

    /// Plans an access all of whose points lie in the block; `None` if that is not so, or if it moves in another way than loops and stairs do.
    fn prepare_inside(
        &mut self,
        access: &Access,
        frame: &Frame,
        bbox: &BoxRegion,
        stride: impl Fn(usize) -> usize,
    ) -> Option<Option<Stairs>> {
        self.strides.resize(frame.loops.len(), 0);
        let mut stairs = None;
        for (axis, index) in access.axes.iter().enumerate() {
            let (mut first, mut lowest, mut highest) = (index.idx.offset(), index.idx.offset(), index.idx.offset());
            let stride = stride(axis) as i64;
            for (term, coefficient) in &index.others {
                let (at, climb) = match frame.fixed(term) {
                    Some(at) => (at, 0),
                    None if stairs.is_some() => return None,
                    None => {
                        let (at, own, climb) = Stairs::of(term, frame)?;
                        stairs = Some(Stairs { rise: coefficient.checked_mul(stride)?, ..own });
                        (at, climb)
                    }
                };
                let (at, climb) = (at.checked_mul(*coefficient)?, climb.checked_mul(*coefficient)?);
                first = first.checked_add(at)?;
                lowest = lowest.checked_add(at)?.checked_add(climb.min(0))?;
                highest = highest.checked_add(at)?.checked_add(climb.max(0))?;
            }
            for &(var, coefficient) in &index.affine {
                let span = coefficient.checked_mul(frame.extents[var] - 1)?;
                let start = coefficient.checked_mul(frame.starts[var])?;
                first = first.checked_add(start)?;
                lowest = lowest.checked_add(start)?.checked_add(span.min(0))?;
                highest = highest.checked_add(start)?.checked_add(span.max(0))?;
                if let Some(depth) = frame.loop_of(var) {
                    self.strides[depth] += coefficient.checked_mul(stride)?;
                }
            }
            let (lo, hi) = (bbox.lo[axis] as i64, (bbox.hi[axis] as i64).min(index.extent));
            if lowest < lo || highest >= hi {
                return None;
            }
            self.base += (first - lo) * stride;
        }
        Some(stairs)
    }

    /// True if the access is affine and every point is known to lie in the block.
    pub(super) fn is_direct(&self) -> bool {
        self.kind == Kind::Direct
    }

    /// Position of the first point, for a direct plan.
    pub(super) fn base(&self) -> usize {
        self.base as usize
    }

    /// How far a step of a loop goes, for a direct plan.
    pub(super) fn step(&self, depth: usize) -> i64 {
        self.strides[depth]
    }

    /// Puts a loop at another depth.
    pub(super) fn move_loop(&mut self, from: usize, to: usize) {
        let moved = self.strides.remove(from);
        self.strides.insert(to, moved);
    }

    /// Makes one loop of two: `depth` and the one inside it.
    pub(super) fn merge_loops(&mut self, depth: usize) {
        self.strides.remove(depth);
    }

    /// Notes whether the inner loops move evenly; called when loops no longer change.
    pub(super) fn settle(&mut self, frame: &Frame) {
        if self.kind != Kind::Direct {
            return;
        }
        let inner = &frame.loops[frame.n_outer..];
        let strides = &self.strides[frame.n_outer..];
        let mut even = true;
        for k in 1..inner.len() {
            even &= strides[k - 1] == strides[k] * inner[k].extent;
        }
        self.inner = even.then(|| strides.last().copied().unwrap_or(0));
    }

    /// Moves to the row that the outer loops are at.
    pub(super) fn begin_row(&mut self, frame: &Frame) {
        if self.kind != Kind::Walk {
            let outer = frame.counters[..frame.n_outer].iter().zip(&self.strides);
            self.row = self.base + outer.map(|(counter, stride)| counter * stride).sum::<i64>();
        }
    }

    /// Position of the first point of the row, for a direct plan.
    pub(super) fn row(&self) -> i64 {
        self.row
    }

    /// The strip as whole rows, if it is that and does not move evenly as one.
    pub(super) fn even_rows(&self, frame: &Frame, strip: Strip) -> Option<EvenRows> {
        let (Kind::Direct, None, [_, row]) = (self.kind, self.inner, &frame.loops[frame.n_outer..]) else {
            return None;
        };
        let columns = row.extent as usize;
        let [row_step, column_step] = self.strides[frame.n_outer..] else { return None };
        let whole = strip.start.is_multiple_of(columns) && strip.len.is_multiple_of(columns);
        let position = self.row + (strip.start / columns) as i64 * row_step;
        whole.then_some(EvenRows { position, rows: strip.len / columns, row_step, columns, column_step })
    }

    /// The strip as stairs that do not move on any of them, if it is that.
    pub(super) fn flight(&self, frame: &Frame, strip: Strip) -> Option<Flight> {
        let (Kind::Stairs, [0]) = (self.kind, &self.strides[frame.n_outer.min(self.strides.len())..]) else {
            return None;
        };
        let Stairs { divisor, phase, rise } = self.stairs;
        let along = phase + strip.start as i64;
        let position = self.row + along / divisor * rise;
        Some(Flight { position, phase: (along % divisor) as usize, divisor: divisor as usize, rise })
    }

    /// Calls `f` with the pieces of a strip, in order, until it fails.
    pub(super) fn pieces<E>(
        &self,
        access: &Access,
        frame: &mut Frame,
        strip: Strip,
        mut f: impl FnMut(Piece) -> Result<(), E>,
    ) -> Result<(), E> {
        match (self.kind, self.inner) {
            (Kind::Direct, Some(slope)) => {
                let position = self.row + strip.start as i64 * slope;
                f(Piece { offset: 0, len: strip.len, place: Place::Inside { position, slope } })
            }
            (Kind::Direct, None) => frame.runs(strip, |frame, offset, len| {
                let inner = &frame.counters[frame.n_outer..];
                let strides = &self.strides[frame.n_outer..];
                let position = self.row + inner.iter().zip(strides).map(|(c, s)| c * s).sum::<i64>();
                let slope = strides.last().copied().unwrap_or(0);
                f(Piece { offset, len, place: Place::Inside { position, slope } })
            }),
            (Kind::Stairs, _) => frame.runs(strip, |frame, offset, len| {
                let Stairs { divisor, phase, rise } = self.stairs;
                let inner = &frame.counters[frame.n_outer..];
                let strides = &self.strides[frame.n_outer..];
                let start = self.row + inner.iter().zip(strides).map(|(c, s)| c * s).sum::<i64>();
                let slope = strides.last().copied().unwrap_or(0);
                let first = phase + inner.last().copied().unwrap_or(0);
                let mut done = 0;
                while done < len {
                    let along = first + done as i64;
                    let position = start + done as i64 * slope + along / divisor * rise;
                    let n = (divisor - along % divisor).min((len - done) as i64) as usize;
                    f(Piece { offset: offset + done, len: n, place: Place::Inside { position, slope } })?;
                    done += n;
                }
                Ok(())
            }),
            (Kind::Walk, _) => frame.runs(strip, |frame, offset, len| {
                let mut done = 0;
                let (var, start) = frame.set_point();
                while done < len {
                    frame.point[var] = start + done as i64;
                    let (place, steps) = self.locate(access, &frame.point, var);
                    let n = steps.min((len - done) as i64) as usize;
                    f(Piece { offset: offset + done, len: n, place })?;
                    done += n;
                }
                Ok(())
            }),
        }
    }

    /// Where the access is at a point, and for how many steps along a variable it moves evenly from there.
    fn locate(&self, access: &Access, point: &[i64], var: usize) -> (Place, i64) {
        let (mut position, mut slope, mut steps) = (self.base, 0, i64::MAX);
        let mut place = None;
        for (axis, index) in access.axes.iter().enumerate() {
            let inside = resolve(segment(&index.idx, point, var), access.edge, index.extent);
            let (lo, hi) = self.bounds[axis];
            match inside {
                Err(len) => {
                    place = Some(Place::Outside);
                    steps = steps.min(len);
                }
                Ok(inside @ Segment { value, slope: step, .. }) => match clip(inside, lo, hi) {
                    Ok(len) => {
                        position += (value - lo) * self.strides[axis];
                        slope += step * self.strides[axis];
                        steps = steps.min(len);
                    }
                    Err(len) => {
                        place = place.or(Some(Place::Elsewhere));
                        steps = steps.min(len);
                    }
                },
            }
        }
        (place.unwrap_or(Place::Inside { position, slope }), steps.max(1))
    }
}
