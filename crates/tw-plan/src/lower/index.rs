//! Index statements: a join on block variables, an aggregate, a transform.

use tw_ir::contraction::Contraction;
use tw_ir::error::Result;
use tw_ir::index::{Access, Edge, Idx, Term, Var};
use tw_ir::kernel::{KernelRead, StatementKernel};
use tw_ir::plan::{RelId, RelOp};
use tw_ir::program::{IndexStmt, Node};
use tw_ir::spec::FinishSpec;
use tw_ir::workflow::StmtId;
use tw_ir::{Accum, Axis, Grid, OnEmpty};

use super::Lowering;
use crate::tile::SQUARE_BLOCKS;

/// An operand this many times smaller than the result has no say in how the result is cut: reading regions of it is cheap, while its few cuts would
/// make thin slices of the result.
const SMALL_OPERAND: u64 = 16;

/// Bytes that a task may read for a block that is asked for, and how many times less it has to read for a block of its own for that to be made instead.
const MOST_READ: u64 = 64 << 20;
const LESS_READ: u64 = 4;

impl Lowering<'_> {
    pub(super) fn index(&mut self, node: &Node, stmt: &IndexStmt, statement: StmtId) -> Result<()> {
        let inputs: Vec<RelId> =
            stmt.reads.iter().map(|access| self.relation(node.args[access.operand as usize])).collect::<Result<_>>()?;
        let extents: Vec<u64> = stmt.vars.iter().map(|v| v.extent.known().unwrap_or(0)).collect();
        let out_shape = self.program.ty(node.results[0]).require_shape()?;
        let plain_out = stmt.out_is_plain();

        let from_reads: Vec<Option<(u64, Axis)>> =
            (0..extents.len()).map(|v| self.axis_from_reads(stmt, &inputs, Var(v as u32), extents[v])).collect();
        let widest = stmt.result_types().iter().map(|dtype| dtype.size()).max().unwrap_or(1);
        let out_bytes = out_shape.iter().fold(widest, |bytes, &n| bytes.saturating_mul(n));
        // An axis written through a table has one block per entry; the other axes follow their variables as usual.
        let looks_up = stmt.out.idx.iter().any(Idx::has_table);
        let given: Vec<Option<Axis>> = stmt
            .out
            .idx
            .iter()
            .zip(&out_shape)
            .map(|(idx, &n)| {
                if idx.has_table() {
                    return Some(Axis::uniform(n, 1));
                }
                let (bytes, axis) = from_reads[idx.as_var().filter(|_| plain_out || looks_up)?.0 as usize].as_ref()?;
                (bytes.saturating_mul(SMALL_OPERAND) >= out_bytes && axis.extent() == n).then(|| axis.clone())
            })
            .collect();
        let mut candidates: Vec<Option<Axis>> =
            from_reads.into_iter().map(|candidate| candidate.map(|(_, axis)| axis)).collect();
        let requested =
            node.results.iter().find(|value| self.requested.contains_key(value)).unwrap_or(&node.results[0]);
        let own = || self.tiler.complete(&out_shape, &given, widest);
        let out_grid = match self.requested.get(requested) {
            Some(grid) if plain_out && self.reads_too_much(stmt, &inputs, grid) => {
                let (own, most) = (own(), self.bytes_read(stmt, &inputs, grid) / LESS_READ);
                if self.bytes_read(stmt, &inputs, &own) <= most { own } else { grid.clone() }
            }
            Some(grid) => grid.clone(),
            None => own(),
        };
        if let Some(chosen) = self.plan.statements[statement].node.and_then(|node| self.variables.get(&node)) {
            for (v, axis) in chosen.iter().enumerate().filter(|(v, _)| !is_looked_up(stmt, Var(*v as u32))) {
                candidates[v] = Some(axis.clone());
            }
        }
        if plain_out {
            for (idx, axis) in stmt.out.idx.iter().zip(&out_grid) {
                // A result may be cut otherwise, but what a table says is read one by one.
                if let Some(v) = idx.as_var().filter(|&v| !is_looked_up(stmt, v)) {
                    candidates[v.0 as usize] = Some(axis.clone());
                }
            }
        }
        let vars: Grid = candidates
            .into_iter()
            .enumerate()
            .map(|(v, axis)| {
                let axis = axis.unwrap_or_else(|| Axis::uniform(extents[v], self.tiler.points_per_tile()));
                cut_at_wraps(axis, stmt, Var(v as u32), node, self)
            })
            .collect();

        let reduced_to_nothing =
            (0..extents.len()).any(|v| extents[v] == 0 && !stmt.out.idx.iter().any(|idx| idx.uses(Var(v as u32))));
        let may_be_empty = stmt.has_guard || !plain_out || reduced_to_nothing;
        let (accum, finish) = match &stmt.accum {
            None => (None, None),
            Some(accum) => {
                let tracked = accum.on_empty != OnEmpty::Identity && may_be_empty;
                let state = if tracked { accum.with_presence()? } else { accum.clone() };
                (Some(state), (tracked || !accum.finish_is_identity()).then(|| (accum.clone(), tracked)))
            }
        };

        let reads = stmt
            .reads
            .iter()
            .zip(&inputs)
            .map(|(access, &input)| {
                let ty = self.program.ty(node.args[access.operand as usize]);
                KernelRead {
                    dtype: ty.dtype,
                    shape: self.plan.relations[input].shape.clone(),
                    idx: access.idx.clone(),
                    edge: access.edge,
                    fill: ty.fill,
                }
            })
            .collect();
        let kernel = StatementKernel {
            reads,
            code: stmt.code.clone(),
            has_guard: stmt.has_guard,
            out_idx: stmt.out.idx.clone(),
            out_edge: stmt.out.edge,
            out_shape,
            out_fill: if accum.is_none() { stmt.out.fill.clone() } else { Vec::new() },
            accum,
            vars,
        };
        let chains = self.chains_of(&kernel, &inputs, &out_grid);
        let names = stmt.var_names();
        let outputs = match (&kernel.accum, &finish) {
            (Some(state), Some(_)) => self.state_relations(node, state, &out_grid),
            _ => node.results.iter().map(|&value| self.define(value, out_grid.clone())).collect::<Result<_>>()?,
        };
        self.step(RelOp::Join { kernel: Box::new(kernel), names, chains }, inputs, outputs.clone(), statement);
        if let Some((accum, tracked)) = finish {
            self.finish(node, accum, tracked, outputs, &out_grid, statement)?;
        }
        Ok(())
    }

    /// True if blocks that are asked for would read very much at once, as blocks of every thousandth row do: smaller ones are then put together.
    fn reads_too_much(&self, stmt: &IndexStmt, inputs: &[RelId], grid: &Grid) -> bool {
        stmt.accum.is_none() && self.bytes_read(stmt, inputs, grid) > MOST_READ
    }

    /// Bytes of the boxes that a block of a result reads at most.
    fn bytes_read(&self, stmt: &IndexStmt, inputs: &[RelId], grid: &Grid) -> u64 {
        let last = |n: u64| n.saturating_sub(1) as i64;
        let mut ranges: Vec<(i64, i64)> =
            stmt.vars.iter().map(|var| (0, last(var.extent.known().unwrap_or(0)))).collect();
        for (idx, axis) in stmt.out.idx.iter().zip(grid) {
            if let Some(var) = idx.as_var() {
                ranges[var.0 as usize] = (0, last(axis.longest()));
            }
        }
        let read = |(access, &input): (&Access, &RelId)| {
            let relation = &self.plan.relations[input];
            let lengths = access.idx.iter().zip(&relation.shape).map(|(idx, &n)| {
                let (lo, hi) = idx.interval(&ranges);
                n.min(hi.abs_diff(lo).saturating_add(1))
            });
            lengths.fold(relation.dtype.size(), u64::saturating_mul)
        };
        stmt.reads.iter().zip(inputs).map(read).fold(0, u64::saturating_add)
    }

    /// One relation per component of an accumulator's state.
    pub(super) fn state_relations(&mut self, node: &Node, state: &Accum, grid: &Grid) -> Vec<RelId> {
        let name = self.program.display_name(node.results[0]);
        let types = state.state_types();
        types
            .iter()
            .enumerate()
            .map(|(k, &dtype)| self.new_relation(format!("{name}.state{k}"), dtype, grid.clone()))
            .collect()
    }

    /// Turns states into the results of a node.
    pub(super) fn finish(
        &mut self,
        node: &Node,
        accum: Accum,
        tracked: bool,
        states: Vec<RelId>,
        grid: &Grid,
        statement: StmtId,
    ) -> Result<()> {
        let results: Vec<RelId> =
            node.results.iter().map(|&value| self.define(value, grid.clone())).collect::<Result<_>>()?;
        self.step(RelOp::Finish(FinishSpec { accum, tracked }), states, results, statement);
        Ok(())
    }

    /// The cut of a variable, taken from the largest operand it indexes: exactly if it runs along an axis, in length otherwise. With the bytes of
    /// that operand.
    fn axis_from_reads(&self, stmt: &IndexStmt, inputs: &[RelId], var: Var, extent: u64) -> Option<(u64, Axis)> {
        // Blocks between two entries of a table may have no readers, and such blocks are not computed.
        if is_looked_up(stmt, var) {
            return Some((u64::MAX, Axis::uniform(extent, 1)));
        }
        let mut best: Option<(bool, u64, Axis, u64, u64)> = None;
        for (access, &input) in stmt.reads.iter().zip(inputs) {
            let relation = &self.plan.relations[input];
            for (idx, axis) in access.idx.iter().zip(&relation.grid) {
                let exact = idx.as_var() == Some(var) && axis.extent() == extent;
                let candidate = match idx.as_affine(stmt.vars.len()) {
                    _ if exact => axis.clone(),
                    Some((coefficients, shift)) => {
                        let factor = coefficients[var.0 as usize];
                        let alone = coefficients.iter().filter(|&&c| c != 0).count() == 1;
                        match axis.longest().checked_div(factor.unsigned_abs()) {
                            // A part that is only moved keeps the lengths of its tiles, so that it fits its other operands.
                            // Steps longer than a tile leave tiles out, which are then not read.
                            Some(_) if alone && (stmt.accum.is_some() || factor.unsigned_abs() > 1) => {
                                seen_through(axis, factor, shift, extent)
                            }
                            Some(tile) if tile > 0 => Axis::uniform(extent, tile),
                            _ => continue,
                        }
                    }
                    None => match points_of_a_tile(idx, stmt, var, axis.longest()) {
                        Some(tile) => Axis::uniform(extent, tile),
                        None => continue,
                    },
                };
                let weight = relation.n_bytes();
                if best.as_ref().is_none_or(|(e, w, ..)| (exact, weight) > (*e, *w)) {
                    let beside = self.length_beside(stmt, &access.idx, &relation.grid, var);
                    let of_block = |bytes: u64, axis: &Axis| bytes.saturating_mul(axis.longest().max(1));
                    let block = relation.grid.iter().fold(relation.dtype.size(), of_block);
                    best = Some((exact, weight, candidate, beside, block));
                }
            }
        }
        best.map(|(_, bytes, axis, beside, block)| (bytes, self.tiler.thicken(stmt, axis, bytes, beside, block)))
    }

    /// Elements of a tile of an operand along its other axes of the same kind, kept or summed: together with the variable's own they make one side of
    /// a matrix product.
    fn length_beside(&self, stmt: &IndexStmt, idx: &[Idx], grid: &[Axis], var: Var) -> u64 {
        let kept = |var: Var| stmt.out.idx.iter().any(|out| out.uses(var));
        let others = idx
            .iter()
            .zip(grid)
            .filter(|(idx, _)| idx.as_var().is_some_and(|other| other != var && kept(other) == kept(var)));
        others.fold(1, |n, (_, axis)| n.saturating_mul(axis.longest().max(1)))
    }

    fn chains_of(&self, kernel: &StatementKernel, inputs: &[RelId], out_grid: &Grid) -> u32 {
        let Some(accum) = &kernel.accum else { return 1 };
        let n_points = kernel.vars.n_blocks();
        let n_outputs = out_grid.n_blocks();
        // A product with enough blocks to keep threads busy is not worth a second pass over its partial results.
        if n_outputs >= SQUARE_BLOCKS && Contraction::of_kernel(kernel).is_some() {
            return 1;
        }
        let operand_bytes = inputs.iter().fold(0u64, |sum, &r| sum.saturating_add(self.plan.relations[r].n_bytes()));
        let state_size: u64 = accum.state_types().iter().map(|dtype| dtype.size()).sum();
        let output_bytes = kernel.out_shape.iter().fold(state_size, |bytes, &n| bytes.saturating_mul(n));
        // A statement without operands (a generator reduced on the fly) has no bytes to compare with; a scalar is always affordable.
        let affordable = operand_bytes.max(n_points.saturating_mul(state_size));
        self.n_chains(n_points / n_outputs.max(1), n_outputs, affordable, output_bytes)
    }
}

/// True if a variable is looked up in a table anywhere.
fn is_looked_up(stmt: &IndexStmt, var: Var) -> bool {
    let mut accesses = stmt.reads.iter().flat_map(|access| &access.idx).chain(&stmt.out.idx);
    accesses.any(|idx| idx.looks_up(var))
}

/// The cut of a variable `v` with which `factor * v + shift` stays inside one tile.
fn seen_through(axis: &Axis, factor: i64, shift: i64, extent: u64) -> Axis {
    // The first v at or beyond a boundary; going down, the first below it.
    let first = |boundary: u64| -> i64 {
        let distance = boundary as i128 - shift as i128;
        let (step, down) = (factor.unsigned_abs() as i128, factor < 0);
        let at = if down { (-distance).div_euclid(step) + 1 } else { -(-distance).div_euclid(step) };
        at.clamp(0, extent as i128) as i64
    };
    let mut cuts: Vec<u64> = axis.boundaries().into_iter().map(|boundary| first(boundary) as u64).collect();
    cuts.extend([0, extent]);
    cuts.sort_unstable();
    cuts.dedup();
    Axis::from_boundaries(cuts)
}

/// How many points of a variable a quotient or remainder takes to run through a tile of an axis: so a block of a reshape reads about a block. `None` if the variable
/// does not move it.
fn points_of_a_tile(idx: &Idx, stmt: &IndexStmt, var: Var, tile: u64) -> Option<u64> {
    if idx.has_table() {
        return None;
    }
    let mut ranges: Vec<(i64, i64)> =
        stmt.vars.iter().map(|var| (0, var.extent.known().map_or(0, |n| n.saturating_sub(1) as i64))).collect();
    let width = |(lo, hi): (i64, i64)| (hi as i128 - lo as i128) as u128;
    let of_all = width(idx.interval(&ranges));
    let n_steps = ranges[var.0 as usize].1 as u128;
    ranges[var.0 as usize] = (0, 0);
    let moved = of_all.checked_sub(width(idx.interval(&ranges))).filter(|&moved| moved > 0)?;
    u64::try_from((tile as u128).saturating_mul(n_steps) / moved).ok().filter(|&points| points > 0)
}

/// Cuts a variable where a periodic access starts over, so that no tile needs both ends of an axis.
fn cut_at_wraps(axis: Axis, stmt: &IndexStmt, var: Var, node: &Node, lowering: &Lowering<'_>) -> Axis {
    let extent = axis.extent() as i64;
    let mut cuts = Vec::new();
    for access in stmt.reads.iter().filter(|access| access.edge == Edge::Wrap) {
        let shape = lowering.program.ty(node.args[access.operand as usize]).known_shape().unwrap_or_default();
        for (idx, &n) in access.idx.iter().zip(&shape) {
            if let Some((v, shift)) = idx.as_shifted_var()
                && v == var
                && n > 0
                && (shift != 0 || extent > n as i64)
            {
                let first = (-shift).rem_euclid(n as i64);
                let periods = (first..extent).step_by(n as usize);
                if periods.clone().count() <= MOST_PERIODS {
                    cuts.extend(periods.map(|cut| cut as u64));
                }
            }
        }
    }
    for term in stmt.reads.iter().flat_map(|access| &access.idx).flat_map(|idx| idx.terms()) {
        let (Term::Mod(inner, period), _) = term else { continue };
        if let Some((v, shift)) = inner.as_shifted_var()
            && v == var
            && extent / period <= MOST_PERIODS as i64
        {
            let first = (-shift).rem_euclid(*period);
            cuts.extend((first..extent).step_by(*period as usize).map(|cut| cut as u64));
        }
    }
    if cuts.is_empty() { axis } else { axis.with_cuts(&cuts) }
}

/// Many periods over one axis would make many tiny tiles; then the whole axis is read instead.
const MOST_PERIODS: usize = 16;

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use tw_ir::program::FunctionTable;
    use tw_ir::{Axis, Grid};

    use crate::options::PlanOptions;
    use tw_lang::{NoFiles, parse_program};

    #[test]
    fn strides_and_flips_stay_inside_tiles() {
        let axis = Axis::from_lengths(&[65, 65, 30]).unwrap();
        for (factor, shift, extent) in [(2i64, 0i64, 80u64), (3, 1, 53), (-1, 159, 160), (-2, 158, 80), (1, 7, 153)] {
            let cut = super::seen_through(&axis, factor, shift, extent);
            assert_eq!(cut.extent(), extent);
            for tile in 0..cut.n_tiles() {
                let range = cut.range(tile);
                let tile_of = |v: u64| axis.tile_of((factor * v as i64 + shift) as u64);
                assert_eq!(tile_of(range.start), tile_of(range.end - 1), "{factor} {shift} {range:?}");
            }
            assert!(cut.n_tiles() <= axis.n_tiles());
        }
    }

    fn grid_of_output(text: &str) -> Grid {
        let unit = parse_program(text, &BTreeMap::new(), &NoFiles, &FunctionTable::default()).unwrap();
        let plan = crate::plan_segment(&unit.program, &PlanOptions::default()).unwrap().plan;
        plan.relations[plan.outputs[0].1].grid.clone()
    }

    #[test]
    fn a_broadcast_column_does_not_slice_the_result() {
        let grid = grid_of_output("input c: f64[80000, 1]\ny = c + arange(400)\noutput y\n");
        assert_eq!(*grid, [Axis::uniform(80_000, 651), Axis::whole(400)]);
    }

    #[test]
    fn long_steps_read_one_tile_each() {
        for step in ["4000*i", "9999 - 4000*i"] {
            let text =
                format!("input c: f64[10000, 50] tile(100, 50)\ny[i,j] = c[{step}, j] for i in 0..3\noutput y\n");
            assert_eq!(grid_of_output(&text)[0].n_tiles(), 3, "{step}");
        }
    }

    #[test]
    fn reshapes_are_cut_along_what_they_read() {
        let largest = |grid: &Grid| grid.iter().map(Axis::longest).product::<u64>() * 8;
        for text in [
            "input a: f64[200000, 128]\ny = reshape(a, 64, 400000)\noutput y\n",
            "input a: f64[200000, 128]\ny = reshape(a, 64, 400000) + 1\noutput y\n",
        ] {
            let grid = grid_of_output(text);
            assert_eq!(grid[1].n_tiles(), 1, "{grid:?}");
            assert!(largest(&grid) <= 8 << 20, "{grid:?}");
        }
    }

    #[test]
    fn long_indices_are_cut_where_blocks_would_be_large() {
        let grid = grid_of_output("input a: f64[8000, 8000]\ninput k: i64[8000]\ny = take(a, k, axis=1)\noutput y\n");
        assert!(grid.iter().map(Axis::longest).product::<u64>() * 8 <= 8 << 20, "{grid:?}");
    }

    fn least_bytes_of(text: &str) -> u64 {
        let unit = parse_program(text, &BTreeMap::new(), &NoFiles, &FunctionTable::default()).unwrap();
        let schedule = crate::plan_segment(&unit.program, &PlanOptions::default()).unwrap().schedule;
        crate::least_bytes(&schedule, &crate::IoMemory::default()).0
    }

    #[test]
    fn no_task_meets_much_more_than_a_few_blocks() {
        for text in [
            "input a: f64[630, 630, 630]\ny[i,j] += a[k, l, i] * a[k, l, j] for i in 0..630, j in 0..64\noutput y\n",
            "input a: f64[2000000, 128]\ninput k: i64[2000000] tile(125000)\ny: f64[12, 128]\ny[k[i], j] += a[i, j]\noutput y\n",
            "input a: f64[200100, 128]\ny = reshape(a, 64, 400200)\noutput y\n",
            "input a: f64[512, 8000]\ninput b: f64[512, 8000]\ny = concat(a, b, axis=1)\nz = y @ y.T\noutput z\n",
        ] {
            let least = least_bytes_of(text);
            assert!(least <= 72 << 20, "{} MiB of {text}", least >> 20);
        }
    }

    #[test]
    fn blocks_of_a_few_rows_far_apart_are_put_together() {
        let text = "input a: f64[2000000, 128]\ny[i,j] = a[1000*i, j] for i in 0..2000\nz = retile(y, tile(2000, 128))\noutput z\n";
        let unit = parse_program(text, &BTreeMap::new(), &NoFiles, &FunctionTable::default()).unwrap();
        let plan = crate::plan_segment(&unit.program, &PlanOptions::default()).unwrap();
        let peak = plan.schedule.peak_bytes();
        assert!(peak < 64 << 20, "{peak} bytes");
        let near =
            "input a: f64[2000000, 128]\ny[i,j] = a[i, j] for i in 0..4000\nz = retile(y, tile(2000, 128))\noutput z\n";
        assert_eq!(*grid_of_output(near), [Axis::uniform(4000, 2000), Axis::whole(128)]);
    }

    #[test]
    fn a_large_operand_is_followed() {
        let grid = grid_of_output("input c: f64[80000, 400] tile(80000, 7)\ny = c + 1\noutput y\n");
        assert_eq!(*grid, [Axis::whole(80_000), Axis::uniform(400, 7)]);
    }
}
