//! Loops and branches.

use tw_ir::program::SourceOp;
use tw_ir::{Accum, Array, BinaryOp, DType, Idx, Op, Region, Scalar, Slot, TensorType, ValueId};

use super::Generator;
use super::body::{Body, Fact, TAME};
use super::operators::tamed;
use super::statement::{Calculation, Draft, Target};

/// What a generator keeps while it fills an inner region.
struct Outside {
    region: Region,
    n_values: usize,
}

impl Generator<'_> {
    fn enter(&mut self, params: &[ValueId]) -> Outside {
        let outside = Outside { region: std::mem::take(&mut self.region), n_values: self.pool.len() };
        self.region.params = params.to_vec();
        self.pool.extend(params);
        self.depth += 1;
        outside
    }

    /// Ends the inner region; without results if something in it did not fit.
    fn leave(&mut self, outside: Outside, results: Option<Vec<ValueId>>) -> Option<Region> {
        let mut region = std::mem::replace(&mut self.region, outside.region);
        self.pool.truncate(outside.n_values);
        self.depth -= 1;
        region.results = results?;
        Some(region)
    }

    /// A loop that counts to a small number, and may end earlier because of its data.
    pub(super) fn while_loop(&mut self) -> Option<()> {
        let counter = Array::scalar(Scalar::I64(0));
        let counter = self.emit(Op::Source(SourceOp::Constant(counter.into())), &[], &[Fact::integers(8.0)])?[0];
        let mut carried = vec![counter];
        for _ in 0..self.rng.range(1, 2) {
            let value = self.pick(|this, value| this.program.ty(value).known_shape().is_some())?;
            // Facts must hold at every turn, so what is carried is tamed before the loop and at the end of its body.
            carried.push(*self.mapped(value, |body, _, slots| vec![tamed(body, slots[0])])?.first()?);
        }
        let is_exact = !self.options.inexact;
        let mut facts = vec![Fact { exact: is_exact, integral: is_exact, bound: TAME }; carried.len()];
        facts[0] = Fact::integers(TAME);
        let types: Vec<TensorType> =
            carried.iter().map(|&value| TensorType { tiling: None, ..self.ty(value) }).collect();
        let condition = self.condition_region(&types, &facts)?;
        let body = self.body_region(&types, &facts)?;
        self.emit(Op::While { condition, body }, &carried, &facts)?;
        Some(())
    }

    fn params(&mut self, types: &[TensorType], facts: &[Fact]) -> Vec<ValueId> {
        types
            .iter()
            .zip(facts)
            .map(|(ty, &fact)| {
                let value = self.program.new_value(ty.clone());
                self.facts.insert(value, fact);
                value
            })
            .collect()
    }

    fn condition_region(&mut self, types: &[TensorType], facts: &[Fact]) -> Option<Region> {
        let params = self.params(types, facts);
        let outside = self.enter(&params);
        let limit = self.options.turns.unwrap_or_else(|| self.rng.range(1, 4));
        let looks_at_data = self.options.turns.is_none() && self.rng.chance(40);
        let exact = facts[1].exact;
        let results = self.holds_anywhere(params[0], params[1], |body, counter, data| {
            let limit = body.number(limit, DType::I64);
            let below = body.binary(BinaryOp::Lt, counter, limit);
            if !looks_at_data || !exact {
                return below;
            }
            let dtype = body.dtype(data);
            let small = body.number(1, dtype);
            let differs = body.binary(BinaryOp::Ne, data, small);
            body.binary(BinaryOp::And, below, differs)
        });
        self.leave(outside, results)
    }

    /// A bool scalar: true if what `make` computes from the scalar and an element holds for any element.
    fn holds_anywhere(
        &mut self,
        scalar: ValueId,
        tensor: ValueId,
        make: impl FnOnce(&mut Body<'_>, Slot, Slot) -> Slot,
    ) -> Option<Vec<ValueId>> {
        let shape = self.ty(tensor).shape;
        let mut draft = Draft::over(&shape);
        let plain: Vec<Idx> = (0..shape.len()).map(|k| draft.vars.idx(k)).collect();
        self.read(&mut draft, scalar, Vec::new());
        self.read(&mut draft, tensor, plain);
        let target = Target::plain(&draft.vars, &[]);
        self.complete(draft, target, 0, |body, _, slots| {
            let holds = make(body, slots[0], slots[1]);
            // Of an empty tensor nothing holds: a loop over it must end.
            Some(Calculation { accum: Some(Accum::any()), bodies: vec![holds], facts: vec![Fact::integers(1.0)] })
        })
    }

    fn body_region(&mut self, types: &[TensorType], facts: &[Fact]) -> Option<Region> {
        let params = self.params(types, facts);
        let outside = self.enter(&params);
        let results = self.turn(&params, types);
        self.leave(outside, results)
    }

    /// One turn of a loop: a few random nodes, then the next value of everything carried.
    fn turn(&mut self, params: &[ValueId], types: &[TensorType]) -> Option<Vec<ValueId>> {
        for _ in 0..self.rng.range(0, 3) {
            self.node();
        }
        let next = self.mapped(params[0], |body, _, slots| {
            let one = body.number(1, DType::I64);
            vec![body.binary(BinaryOp::Add, slots[0], one)]
        })?;
        let mut results = vec![*next.first()?];
        for (&param, ty) in params.iter().zip(types).skip(1) {
            let latest = self.pick(|this, value| this.program.ty(value).same_shape(ty)).unwrap_or(param);
            let dtype = ty.dtype;
            let next = self.mapped(latest, |body, _, _| {
                let slot = body.expression(dtype, 2);
                vec![tamed(body, slot)]
            })?;
            results.push(*next.first()?);
        }
        Some(results)
    }

    /// A branch on a condition computed from data. Both sides give values of the same types.
    pub(super) fn branch(&mut self) -> Option<()> {
        let (value, _) = self.pick_known(0)?;
        let shape = self.ty(value).shape;
        let mut draft = Draft::over(&shape);
        let plain: Vec<Idx> = (0..shape.len()).map(|k| draft.vars.idx(k)).collect();
        self.read(&mut draft, value, plain);
        let target = Target::plain(&draft.vars, &[]);
        let condition = self.complete(draft, target, 0, |body, _, _| {
            let holds = body.comparison(2);
            let accum = if body.rng.chance(50) { Accum::any() } else { Accum::all() };
            Some(Calculation { accum: Some(accum), bodies: vec![holds], facts: vec![Fact::integers(1.0)] })
        })?;
        let models: Vec<ValueId> = (0..self.rng.range(1, 2)).filter_map(|_| self.pick_any()).collect();
        let (then, first) = self.side(&models)?;
        let (otherwise, second) = self.side(&models)?;
        let facts: Vec<Fact> = first.into_iter().zip(second).map(|(a, b)| a.join(b)).collect();
        self.emit(Op::If { then, otherwise }, &condition, &facts)?;
        Some(())
    }

    /// One side of a branch: values of the types of the models.
    fn side(&mut self, models: &[ValueId]) -> Option<(Region, Vec<Fact>)> {
        let outside = self.enter(&[]);
        let results = self.like(models);
        let facts = results.iter().flatten().map(|&value| self.fact(value)).collect();
        Some((self.leave(outside, results)?, facts))
    }

    fn like(&mut self, models: &[ValueId]) -> Option<Vec<ValueId>> {
        for _ in 0..self.rng.range(0, 2) {
            self.node();
        }
        let mut results = Vec::new();
        for &model in models {
            let ty = self.ty(model);
            let value = self.pick(|this, value| this.program.ty(value).same_shape(&ty)).unwrap_or(model);
            if self.rng.chance(30) {
                results.push(value);
                continue;
            }
            let next = self.mapped(value, |body, _, _| vec![body.expression(ty.dtype, 2)])?;
            results.push(*next.first()?);
        }
        Some(results)
    }
}
