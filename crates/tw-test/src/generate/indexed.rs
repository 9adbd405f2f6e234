//! The kinds of index statements.

use tw_ir::{Accum, BinaryOp, DType, Edge, Extent, Idx, OnEmpty, Slot, ValueId};

use super::accum::{Setting, aggregate, summable};
use super::body::{Body, Fact};
use super::data::DTYPES;
use super::statement::{Calculation, Draft, Target};
use super::{Generator, data};

/// Products and sums other than the usual ones.
const SEMIRINGS: [(BinaryOp, BinaryOp); 5] = [
    (BinaryOp::Add, BinaryOp::Mul),
    (BinaryOp::Add, BinaryOp::Mul),
    (BinaryOp::Min, BinaryOp::Add),
    (BinaryOp::Max, BinaryOp::Add),
    (BinaryOp::Max, BinaryOp::Min),
];

impl Generator<'_> {
    /// An index statement of some kind.
    pub(super) fn statement(&mut self) -> Option<()> {
        match self.rng.range(0, 9) {
            0..=2 => self.elementwise(),
            3 | 4 => self.contraction(),
            5 | 6 => self.reduction(),
            7 | 8 => self.rearrangement(),
            _ => self.index_alone(),
        }
    }

    /// Reads a value at the variables of its own shape, and up to two more that broadcast to it.
    fn draft_of(&mut self, value: ValueId) -> Draft {
        let shape = self.ty(value).shape;
        let mut draft = Draft::over(&shape);
        let plain: Vec<Idx> = (0..shape.len()).map(|k| draft.vars.idx(k)).collect();
        self.read(&mut draft, value, plain);
        for _ in 0..self.rng.range(0, 2) {
            let fits = |ty: &[Extent]| {
                ty.len() <= shape.len() && {
                    let aligned = ty.iter().rev().zip(shape.iter().rev());
                    aligned.into_iter().all(|(a, b)| a == b || *a == Extent::Known(1))
                }
            };
            let Some(other) = self.pick(|this, value| fits(&this.program.ty(value).shape)) else { continue };
            let other_shape = self.ty(other).shape;
            let first = shape.len() - other_shape.len();
            let idx = |(k, extent): (usize, &Extent)| {
                if *extent == shape[first + k] { draft.vars.idx(first + k) } else { Idx::constant(0) }
            };
            let idx: Vec<Idx> = other_shape.iter().enumerate().map(idx).collect();
            self.read(&mut draft, other, idx);
        }
        draft
    }

    /// A statement over the elements of one value; the bodies come from `calculate`.
    pub(super) fn mapped(
        &mut self,
        value: ValueId,
        calculate: impl FnOnce(&mut Body<'_>, &Setting, &[Slot]) -> Vec<Slot>,
    ) -> Option<Vec<ValueId>> {
        let shape = self.ty(value).shape;
        let mut draft = Draft::over(&shape);
        let plain: Vec<Idx> = (0..shape.len()).map(|k| draft.vars.idx(k)).collect();
        self.read(&mut draft, value, plain);
        let target = Target::plain(&draft.vars, &(0..shape.len()).collect::<Vec<_>>());
        self.complete(draft, target, 0, |body, setting, slots| {
            let bodies = calculate(body, setting, slots);
            Some(Calculation::bodies(body, bodies))
        })
    }

    fn elementwise(&mut self) -> Option<()> {
        let value = self.pick_any()?;
        let draft = self.draft_of(value);
        let target = Target::plain(&draft.vars, &(0..draft.vars.extents.len()).collect::<Vec<_>>());
        self.complete(draft, target, 15, |body, _, _| {
            let n = if body.rng.chance(20) { 2 } else { 1 };
            let bodies = (0..n)
                .map(|_| {
                    let dtype = body.rng.pick(&DTYPES);
                    body.expression(dtype, 3)
                })
                .collect();
            Some(Calculation::bodies(body, bodies))
        })?;
        Some(())
    }

    /// Aggregates over some of the variables of a value.
    fn reduction(&mut self) -> Option<()> {
        let value = self.pick_any()?;
        let draft = self.draft_of(value);
        let kept = self.rng.range(20, 80);
        let mut chosen: Vec<usize> = (0..draft.vars.extents.len()).filter(|_| self.rng.chance(kept)).collect();
        self.rng.shuffle(&mut chosen);
        let target = Target::plain(&draft.vars, &chosen);
        self.aggregated(draft, target, 25)
    }

    fn aggregated(&mut self, draft: Draft, target: Target, guard_percent: i64) -> Option<()> {
        self.complete(draft, target, guard_percent, |body, setting, _| {
            let dtype = body.rng.pick(&DTYPES);
            let parts = aggregate(body, setting, dtype)?;
            Some(Calculation { accum: Some(parts.accum), bodies: parts.bodies, facts: parts.facts })
        })?;
        Some(())
    }

    /// A product of several operands summed over the variables that are not kept: matrix products, chains of them, traces, outer products.
    fn contraction(&mut self) -> Option<()> {
        let dtype = self.rng.pick(&DTYPES);
        let dtype = if dtype.is_half() { DType::F32 } else { dtype };
        let mut draft = Draft::default();
        for _ in 0..self.rng.pick(&[2, 2, 2, 3, 3, 4]) {
            let value = self.pick(|this, value| {
                let ty = this.program.ty(value);
                let numeric =
                    if dtype == DType::Bool { ty.dtype == DType::Bool } else { this.fact(value).bound <= 16.0 };
                numeric && (1..=3).contains(&ty.rank())
            })?;
            let mut idx = Vec::new();
            for extent in self.ty(value).shape {
                let k = match draft.vars.matching(&mut self.rng, extent) {
                    Some(k) if self.rng.chance(70) => k,
                    _ => {
                        draft.vars.extents.push(extent);
                        draft.vars.extents.len() - 1
                    }
                };
                idx.push(draft.vars.idx(k));
            }
            self.read(&mut draft, value, idx);
        }
        let mut chosen: Vec<usize> = (0..draft.vars.extents.len()).filter(|_| self.rng.chance(50)).collect();
        self.rng.shuffle(&mut chosen);
        chosen.truncate(4);
        let target = Target::plain(&draft.vars, &chosen);
        let semiring = self.rng.pick(&SEMIRINGS);
        let (plus, times) = match dtype {
            DType::Bool => (BinaryOp::Or, BinaryOp::And),
            _ if dtype.is_complex() => (BinaryOp::Add, BinaryOp::Mul),
            _ => semiring,
        };
        let n_reads = draft.n_reads();
        self.complete(draft, target, 10, |body, setting, slots| {
            let mut product = None;
            for &slot in slots.iter().take(n_reads) {
                let slot = body.cast(dtype, slot);
                product = Some(match product {
                    None => slot,
                    Some(product) => body.binary(times, product, slot),
                });
            }
            let product = product?;
            let zero = match plus {
                BinaryOp::Min => dtype.highest(),
                BinaryOp::Max => dtype.lowest(),
                _ => dtype.zero(),
            };
            let (product, fact) =
                if plus == BinaryOp::Add { summable(body, setting, product) } else { (product, body.fact(product)) };
            let accum = Accum::simple(plus, dtype, zero, OnEmpty::Identity);
            let extreme = dtype.is_integer() && plus != BinaryOp::Add;
            let bound = if extreme { dtype.highest().as_f64() } else { fact.bound };
            let facts = vec![Fact { bound, ..fact }];
            Some(Calculation { accum: Some(accum), bodies: vec![product], facts })
        })?;
        Some(())
    }

    /// Slices, reversals, halos, reshapes by hand and their transposes: any access on both sides.
    fn rearrangement(&mut self) -> Option<()> {
        let extents: Vec<Extent> =
            (0..self.rng.range(1, 3)).map(|_| Extent::Known(data::extent(&mut self.rng, 6))).collect();
        let mut draft = Draft::over(&extents);
        for _ in 0..self.rng.range(1, 2) {
            let value = self.pick_any()?;
            let shape = self.ty(value).shape;
            // Variables that run over an axis make most accesses meet the tensor.
            if let Some(&extent) = shape.iter().find(|extent| extent.known().is_some())
                && draft.vars.extents.len() < 4
                && draft.vars.matching(&mut self.rng, extent).is_none()
                && self.rng.chance(60)
            {
                draft.vars.extents.push(extent);
            }
            let idx: Vec<Idx> = shape.iter().map(|&extent| draft.vars.expression(&mut self.rng, extent)).collect();
            self.read(&mut draft, value, idx);
        }
        if self.rng.chance(50) {
            let target = self.any_target(&draft);
            return self.aggregated(draft, target, 20);
        }
        let target = if self.rng.chance(50) { self.injective_target(&draft) } else { self.whole_target(&draft) };
        self.complete(draft, target, 20, |body, _, _| {
            let dtype = body.rng.pick(&DTYPES);
            let slot = body.expression(dtype, 2);
            Some(Calculation::bodies(body, vec![slot]))
        })?;
        Some(())
    }

    fn whole_target(&mut self, draft: &Draft) -> Target {
        let mut chosen: Vec<usize> = (0..draft.vars.extents.len()).collect();
        self.rng.shuffle(&mut chosen);
        Target::plain(&draft.vars, &chosen)
    }

    /// Every variable moved, stretched or rolled: no two points meet.
    fn injective_target(&mut self, draft: &Draft) -> Target {
        let mut target = self.whole_target(draft);
        target.covers = false;
        target.edge = self.rng.pick(&[Edge::Error, Edge::Fill, Edge::Wrap, Edge::Clamp]);
        for (idx, extent) in target.idx.iter_mut().zip(&mut target.shape) {
            let Some(n) = extent.known() else { continue };
            let (factor, offset) = (self.rng.range(1, 2), self.rng.range(0, 2));
            if target.edge == Edge::Error || target.edge == Edge::Clamp {
                *idx = idx.times(factor).plus_constant(offset);
                *extent = Extent::Known(n * factor as u64 + offset as u64);
            } else {
                *idx = idx.plus_constant(self.rng.range(-2, 2));
            }
        }
        target
    }

    /// Any map at all: points may meet, be dropped or be moved.
    fn any_target(&mut self, draft: &Draft) -> Target {
        let rank = self.rng.range(0, 3);
        let shape: Vec<Extent> = (0..rank).map(|_| Extent::Known(self.rng.range(1, 6) as u64)).collect();
        let idx: Vec<Idx> = shape.iter().map(|&extent| draft.vars.expression(&mut self.rng, extent)).collect();
        let (edge, needs_guard) = draft.vars.edge(&mut self.rng, &idx, &shape);
        Target { idx, shape, edge, needs_guard, covers: false }
    }

    /// A tensor that depends on nothing but the index: ranges, masks, random numbers.
    fn index_alone(&mut self) -> Option<()> {
        let extents: Vec<Extent> = data::shape(&mut self.rng, self.options).into_iter().map(Extent::Known).collect();
        let draft = Draft::over(&extents);
        let target = self.whole_target(&draft);
        self.complete(draft, target, 10, |body, _, _| {
            let dtype = body.rng.pick(&DTYPES);
            let slot = body.expression(dtype, 3);
            Some(Calculation::bodies(body, vec![slot]))
        })?;
        Some(())
    }
}
