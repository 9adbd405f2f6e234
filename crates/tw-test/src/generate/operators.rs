//! The operators beside index statements.

use tw_ir::program::{
    BlockFn, BlockResult, OperandMode, ResultMode, Routine, RoutineSpec, SourceOp, TensorType, Transform,
};
use tw_ir::spec::{GatherSpec, ScanSpec, ScatterSpec, SortSpec};
use tw_ir::{Accum, Array, Axis, BinaryOp, DType, Edge, Extent, Idx, Op, Scalar, Slot, Tiling, ValueId};

use super::accum::{Setting, aggregate};
use super::body::{Body, Fact, TAME};
use super::data::DTYPES;
use super::functions::{function, routines};
use super::statement::{Calculation, Draft, Target};
use super::{Generator, MAX_DEFERRED, data, known};

impl Generator<'_> {
    /// Bodies for a scan or scatter as tensors shaped like a value, with the accumulator they feed.
    fn bodies_like(&mut self, value: ValueId, may_be_empty: bool) -> Option<(Accum, Vec<ValueId>, Vec<Fact>)> {
        let mut parts = None;
        let tensors = self.mapped(value, |body, setting, _| {
            let setting = Setting { may_be_empty, ..*setting };
            let dtype = body.rng.pick(&DTYPES);
            match aggregate(body, &setting, dtype) {
                Some(aggregate) => {
                    let bodies = aggregate.bodies.clone();
                    parts = Some(aggregate);
                    bodies
                }
                None => Vec::new(),
            }
        })?;
        let parts = parts?;
        Some((parts.accum, tensors, parts.facts))
    }

    pub(super) fn scan(&mut self) -> Option<()> {
        let value = self.pick(|this, value| this.program.ty(value).rank() > 0)?;
        let axis = self.rng.below(self.ty(value).rank()) as u32;
        let (exclusive, reverse) = (self.rng.chance(40), self.rng.chance(40));
        let (accum, bodies, facts) = self.bodies_like(value, exclusive)?;
        self.emit(Op::Scan(ScanSpec { accum, axis, exclusive, reverse }), &bodies, &facts)?;
        Some(())
    }

    /// An i64 tensor of positions along an axis. Under [`Edge::Error`] they stay inside; `None` if there is no inside.
    fn positions(&mut self, shape: &[Extent], extent: u64, edge: Edge) -> Option<ValueId> {
        if extent == 0 && edge != Edge::Fill && !shape.contains(&Extent::Known(0)) {
            return None;
        }
        let mut draft = Draft::over(shape);
        if let Some(value) = self.pick(|this, value| this.program.ty(value).shape == shape) {
            let plain: Vec<Idx> = (0..shape.len()).map(|k| draft.vars.idx(k)).collect();
            self.read(&mut draft, value, plain);
        }
        let target = Target::plain(&draft.vars, &(0..shape.len()).collect::<Vec<_>>());
        let results = self.complete(draft, target, 0, |body, _, _| {
            let slot = body.expression(DType::I64, 2);
            let slot = if body.fact(slot).exact { body.tame(slot) } else { body.number(0, DType::I64) };
            let slot = if edge == Edge::Error {
                let n = body.number(extent.max(1) as i64, DType::I64);
                body.binary(BinaryOp::Mod, slot, n)
            } else {
                slot
            };
            Some(Calculation::bodies(body, vec![slot]))
        })?;
        results.first().copied()
    }

    fn edge(&mut self) -> Edge {
        self.rng.pick(&[Edge::Error, Edge::Error, Edge::Fill, Edge::Clamp, Edge::Wrap])
    }

    /// Between one and `most` increasing axes.
    fn axes(&mut self, rank: usize, most: usize) -> Vec<u32> {
        let mut axes: Vec<u32> = (0..rank as u32).collect();
        self.rng.shuffle(&mut axes);
        axes.truncate(self.rng.below(most.min(rank)) + 1);
        axes.sort_unstable();
        axes
    }

    pub(super) fn gather(&mut self) -> Option<()> {
        let (value, shape) = self.pick_known(1)?;
        let axes = self.axes(shape.len(), 2);
        let index_shape: Vec<u64> = (0..self.rng.range(0, 2)).map(|_| data::extent(&mut self.rng, 6)).collect();
        if shape.iter().chain(&index_shape).product::<u64>() > self.options.max_points {
            return None;
        }
        let edge = self.edge();
        let mut args = vec![value];
        for &axis in &axes {
            args.push(self.positions(&known(&index_shape), shape[axis as usize], edge)?);
        }
        let fact = self.fact(value);
        let bound = fact.bound.max(self.ty(value).fill.as_f64().abs());
        self.emit(Op::Gather(GatherSpec { axes, edge }), &args, &[Fact { bound, ..fact }])?;
        Some(())
    }

    pub(super) fn scatter(&mut self) -> Option<()> {
        let (value, shape) = self.pick_known(0)?;
        let index_rank = self.rng.below(shape.len().min(2) + 1);
        let first = self.rng.below(shape.len() - index_rank + 1);
        // One or two axes take the place of the index axes; the second may stand anywhere after the first.
        let n_axes = self.rng.pick(&[1, 1, 2]);
        let rank = shape.len() - index_rank + n_axes;
        let mut axes = vec![first as u32];
        if n_axes == 2 {
            axes.push(self.rng.range(first as i64 + 1, rank as i64 - 1) as u32);
        }
        let edge = self.edge();
        let extents: Vec<u64> = axes.iter().map(|_| self.rng.range(1, 5) as u64).collect();
        let index_shape = known(&shape[first..first + index_rank]);
        let mut args = Vec::new();
        for &extent in &extents {
            args.push(self.positions(&index_shape, extent, edge)?);
        }
        let (accum, bodies, facts) = self.bodies_like(value, true)?;
        args.extend(bodies);
        if shape.iter().chain(&extents).product::<u64>() > self.options.max_points {
            return None;
        }
        self.emit(Op::Scatter { spec: ScatterSpec { axes, accum, edge }, extents: known(&extents) }, &args, &facts)?;
        Some(())
    }

    pub(super) fn sort(&mut self) -> Option<()> {
        let value = self.pick(|this, value| this.program.ty(value).rank() > 0 && this.fact(value).exact)?;
        let axis = self.rng.below(self.ty(value).rank()) as u32;
        let facts = [self.fact(value), Fact::integers(self.options.max_points as f64)];
        let descending = self.rng.chance(40);
        let length = self.ty(value).shape[axis as usize].known();
        let limit = if self.rng.chance(30) { length.map(|n| self.rng.below(n as usize + 1) as u64) } else { None };
        self.emit(Op::Sort { spec: SortSpec { axis, descending }, limit }, &[value], &facts)?;
        Some(())
    }

    pub(super) fn reshape(&mut self) -> Option<()> {
        let value = self.pick_any()?;
        let shape = match self.ty(value).known_shape() {
            Some(shape) => known(&self.factors(shape.iter().product())),
            // The extents must keep their order; an axis of length one may come anywhere.
            None => {
                let mut shape = self.ty(value).shape;
                shape.insert(self.rng.below(shape.len() + 1), Extent::Known(1));
                shape
            }
        };
        self.emit(Op::Reshape { shape }, &[value], &[self.fact(value)])?;
        Some(())
    }

    /// A shape with this many elements.
    fn factors(&mut self, mut n: u64) -> Vec<u64> {
        let mut shape = Vec::new();
        for prime in [2, 3, 5] {
            while n > 0 && n.is_multiple_of(prime) {
                n /= prime;
                match shape.last_mut() {
                    Some(last) if self.rng.chance(40) => *last *= prime,
                    _ => shape.push(prime),
                }
            }
        }
        if n != 1 || self.rng.chance(20) {
            shape.push(n);
        }
        self.rng.shuffle(&mut shape);
        shape
    }

    pub(super) fn retile(&mut self) -> Option<()> {
        let (value, shape) = self.pick_known(0)?;
        self.retiled(value, &shape).map(|_| ())
    }

    fn retiled(&mut self, value: ValueId, shape: &[u64]) -> Option<ValueId> {
        let tiling = data::tiling(&mut self.rng, shape);
        self.emit(Op::Retile { tiling }, &[value], &[self.fact(value)])?.first().copied()
    }

    pub(super) fn concat(&mut self) -> Option<()> {
        let (first, shape) = self.pick_known(1)?;
        let (axis, dtype) = (self.rng.below(shape.len()), self.ty(first).dtype);
        let mut args = vec![first];
        let mut fact = self.fact(first);
        for _ in 0..self.rng.range(0, 2) {
            let fits = |other: &[u64]| {
                other.len() == shape.len() && (0..shape.len()).all(|k| k == axis || other[k] == shape[k])
            };
            let next = self.pick(|this, value| {
                let ty = this.program.ty(value);
                ty.dtype == dtype && ty.known_shape().is_some_and(|other| fits(&other))
            })?;
            fact = fact.join(self.fact(next));
            args.push(next);
        }
        self.emit(Op::Concat { axis: axis as u32 }, &args, &[fact])?;
        Some(())
    }

    pub(super) fn block_fn(&mut self) -> Option<()> {
        let (value, _) = self.pick_known(1)?;
        // Sums inside the functions must be exact too.
        let value = *self.mapped(value, |body, _, slots| vec![tamed(body, slots[0])])?.first()?;
        let shape = self.ty(value).known_shape()?;
        let dtype = self.ty(value).dtype;
        let value = self.retiled(value, &shape)?;
        let fact = self.fact(value);
        let sum =
            Fact { exact: fact.exact && fact.integral, bound: fact.bound * self.options.max_points as f64, ..fact };
        let grid: Vec<u32> = (0..shape.len() as u32).collect();
        let cut: Vec<OperandMode> = grid.iter().map(|&g| OperandMode::Grid(g)).collect();
        let whole: Vec<ResultMode> = grid.iter().map(|&g| ResultMode::Grid(g)).collect();
        let result = |modes: Vec<ResultMode>| BlockResult { dtype, modes };
        match self.rng.range(0, 4) {
            4 if dtype == DType::F64 && !shape.contains(&0) => {
                // The last axis whole, the others cut.
                let (last, mut modes, mut results) = (shape.len() - 1, cut, whole);
                modes[last] = OperandMode::Whole;
                results[last] = ResultMode::Whole(shape[last] / 2 + 1);
                let results = vec![BlockResult { dtype: DType::C128, modes: results }];
                let fact = Fact { exact: false, integral: false, ..sum };
                self.call("fft_from_real_0", vec![modes], results, &[value], &[fact])
            }
            0 => self.call("reverse", vec![cut], vec![result(whole)], &[value], &[fact]),
            1 => {
                let totals = grid.iter().map(|&g| ResultMode::PerBlock(g, 1)).collect();
                self.call("total", vec![cut], vec![result(totals)], &[value], &[sum])
            }
            2 if shape.len() == 2 => {
                let modes = vec![OperandMode::Grid(0), OperandMode::Whole];
                let results = vec![
                    result(vec![ResultMode::Grid(0), ResultMode::Whole(shape[1])]),
                    result(vec![ResultMode::Grid(0)]),
                ];
                self.call("rows", vec![modes], results, &[value], &[fact, sum])
            }
            _ => {
                // The second operand is another cut of the first axis with as many tiles.
                let n_tiles = match self.ty(value).tiling {
                    Some(Tiling::Grid(axes)) => axes[0].n_tiles(),
                    _ => return None,
                };
                let other = Array::zeros(&[n_tiles], dtype).ok()?;
                let other = self.emit(Op::Source(SourceOp::Constant(other.into())), &[], &[fact])?[0];
                let tiling = Tiling::Grid(vec![Axis::uniform(n_tiles, 1)].into());
                let other = self.emit(Op::Retile { tiling }, &[other], &[fact])?[0];
                let operands = vec![cut, vec![OperandMode::Grid(0)]];
                self.call("add_first", operands, vec![result(whole)], &[value, other], &[sum])
            }
        }
    }

    fn call(
        &mut self,
        name: &str,
        operands: Vec<Vec<OperandMode>>,
        results: Vec<BlockResult>,
        args: &[ValueId],
        facts: &[Fact],
    ) -> Option<()> {
        self.emit(Op::BlockFn(BlockFn { function: function(name)?, operands, results }), args, facts)?;
        Some(())
    }

    /// A routine whose results are determined by its operands: not up to signs, and not to ill-conditioned matrices.
    pub(super) fn routine(&mut self) -> Option<()> {
        let (value, _) = self.pick_known(1)?;
        let value = *self.mapped(value, |body, _, slots| vec![tamed(body, slots[0])])?.first()?;
        let shape = self.ty(value).known_shape()?;
        if shape.contains(&0) {
            return None;
        }
        let value = if self.rng.chance(70) { self.retiled(value, &shape)? } else { value };
        let fact = self.fact(value);
        let made = Fact { exact: false, integral: false, bound: fact.bound * self.options.max_points as f64 };
        let axis = self.rng.range(0, shape.len() as i64 - 1) as usize;
        // Errors are relative to the largest element; singles would lose the small ones.
        let is_double = self.ty(value).dtype == DType::F64;
        match self.rng.range(0, 2) {
            0 if shape.len() == 2 && is_double => self.apply(Routine::Svdvals, &[value], made),
            1 if is_double => {
                let (transform, n) = (self.rng.pick(&Transform::ALL[..2]), self.rng.range(1, 6) as u64);
                self.apply(Routine::Fourier { transform, axis: axis as u32, n }, &[value], made)
            }
            _ => {
                let mut wanted = shape.clone();
                wanted[axis] = self.rng.range(1, 2) as u64;
                let mut ranks = Array::zeros(&wanted, DType::I64).ok()?;
                for k in 0..ranks.data().len() {
                    let rank = self.rng.range(0, shape[axis] as i64 - 1);
                    ranks.data_mut().set(k, Scalar::I64(rank));
                }
                let numbers = Fact::integers(shape[axis] as f64);
                let ranks = self.emit(Op::Source(SourceOp::Constant(ranks.into())), &[], &[numbers])?[0];
                self.apply(Routine::Select { axis: axis as u32 }, &[value, ranks], fact)
            }
        }
    }

    fn apply(&mut self, routine: Routine, args: &[ValueId], fact: Fact) -> Option<()> {
        let types: Vec<&TensorType> = args.iter().map(|&value| self.program.ty(value)).collect();
        let spec = RoutineSpec::new(routine, &types, routines()?).ok()?;
        self.emit(Op::Routine(spec), args, &[fact])?;
        Some(())
    }

    /// The elements under a mask that is computed: their number is resolved.
    pub(super) fn compact(&mut self) -> Option<()> {
        let (value, shape) = self.pick_known(1)?;
        if shape.iter().product::<u64>() > MAX_DEFERRED {
            return None;
        }
        let results = self.mapped(value, |body, _, slots| {
            let mask = body.comparison(2);
            vec![mask, slots[0]]
        })?;
        let (mask, copy) = (results[0], results[1]);
        let draft = {
            let mut draft = Draft::over(&known(&shape));
            let plain: Vec<Idx> = (0..shape.len()).map(|k| draft.vars.idx(k)).collect();
            self.read(&mut draft, mask, plain);
            draft
        };
        let target = Target::plain(&draft.vars, &[]);
        let count = self.complete(draft, target, 0, |body, _, slots| {
            let one = body.cast(DType::I64, slots[0]);
            let facts = vec![Fact::integers(MAX_DEFERRED as f64)];
            Some(Calculation { accum: Some(Accum::sum(DType::I64)), bodies: vec![one], facts })
        })?;
        let count = self.emit(Op::Resolve, &count, &[Fact::integers(MAX_DEFERRED as f64)])?[0];
        let (facts, data) = ([self.fact(value), self.fact(copy)], [mask, value, copy]);
        let extent = self.program.extent_of(count);
        let selected = self.emit(Op::Compact { extent, counts: None }, &data, &facts)?;
        // What was selected goes back, to the places it has or in the place of the other copy.
        if self.rng.chance(50) {
            self.emit(Op::Expand { counts: None }, &[mask, selected[0], value], &facts[..1])?;
        }
        Some(())
    }

    /// The elements under a mask known while planning.
    pub(super) fn compact_known(&mut self) -> Option<()> {
        let (value, shape) = self.pick_known(1)?;
        // A mask of the first axes takes slices; without data, the result is where they are.
        let rank = self.rng.range(1, shape.len() as i64) as usize;
        let mask = data::array(&mut self.rng, DType::Bool, &shape[..rank], false)?;
        let n = (0..mask.data().len()).filter(|&k| mask.data().get(k).is_true()).count() as u64;
        let n_elements = mask.data().len() as f64;
        let mask = self.emit(Op::Source(SourceOp::Constant(mask.into())), &[], &[Fact::integers(1.0)])?[0];
        let op = Op::Compact { extent: Extent::Known(n), counts: None };
        match self.rng.chance(25) {
            true => self.emit(op, &[mask], &[Fact::integers(n_elements)])?,
            false => self.emit(op, &[mask, value], &[self.fact(value)])?,
        };
        Some(())
    }

    /// Slices repeated as often as whole numbers say.
    pub(super) fn repeat_known(&mut self) -> Option<()> {
        let (value, shape) = self.pick_known(1)?;
        let times: Vec<i64> = (0..shape[0]).map(|_| self.rng.range(0, 3)).collect();
        let n = times.iter().sum::<i64>() as u64;
        let times = SourceOp::Constant(Array::from_i64(&times).into());
        let times = self.emit(Op::Source(times), &[], &[Fact::integers(3.0)])?[0];
        self.emit(Op::Compact { extent: Extent::Known(n), counts: None }, &[times, value], &[self.fact(value)])?;
        Some(())
    }
}

/// Small integers, or small numbers if the value is not exact.
pub(super) fn tamed(body: &mut Body<'_>, slot: Slot) -> Slot {
    let slot = body.tame(slot);
    debug_assert!(body.dtype(slot) == DType::Bool || body.fact(slot).bound <= TAME);
    slot
}
