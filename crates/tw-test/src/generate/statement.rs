//! Assembling index statements: reads, guards, code and output map.

use tw_ir::program::{IndexStmt, IndexVar, Output};
use tw_ir::{Access, Accum, BinaryOp, DType, Edge, Extent, Idx, Op, Scalar, Slot, ValueId};

use super::access::{Vars, idx_code, inside_code};
use super::accum::Setting;
use super::body::{Body, Fact};
use super::{Generator, MAX_DEFERRED, data};

/// A statement whose code is not chosen yet.
#[derive(Default)]
pub(super) struct Draft {
    pub(super) vars: Vars,
    pub(super) args: Vec<ValueId>,
    reads: Vec<Access>,
    /// Accesses that stay inside only under a guard.
    guarded: Vec<(Vec<Idx>, Vec<Extent>)>,
}

impl Draft {
    /// Nothing read yet, over these extents.
    pub(super) fn over(extents: &[Extent]) -> Draft {
        Draft { vars: Vars { extents: extents.to_vec() }, ..Draft::default() }
    }

    /// How many accesses it reads.
    pub(super) fn n_reads(&self) -> usize {
        self.reads.len()
    }
}

/// Where the results of a draft go.
pub(super) struct Target {
    pub(super) idx: Vec<Idx>,
    pub(super) shape: Vec<Extent>,
    pub(super) edge: Edge,
    /// True if the map leaves the shape unless a guard prevents it.
    pub(super) needs_guard: bool,
    /// True if every element is surely reached where there is no guard.
    pub(super) covers: bool,
}

impl Target {
    /// Results indexed by these variables.
    pub(super) fn plain(vars: &Vars, chosen: &[usize]) -> Target {
        Target {
            idx: chosen.iter().map(|&k| vars.idx(k)).collect(),
            shape: chosen.iter().map(|&k| vars.extents[k]).collect(),
            edge: Edge::Error,
            needs_guard: false,
            covers: vars.extents.iter().all(|extent| extent.known().is_some_and(|n| n > 0)),
        }
    }
}

/// What the code of a statement computes.
pub(super) struct Calculation {
    pub(super) accum: Option<Accum>,
    pub(super) bodies: Vec<Slot>,
    pub(super) facts: Vec<Fact>,
}

impl Calculation {
    /// The bodies themselves.
    pub(super) fn bodies(body: &Body<'_>, bodies: Vec<Slot>) -> Calculation {
        let facts = bodies.iter().map(|&slot| body.fact(slot)).collect();
        Calculation { accum: None, bodies, facts }
    }
}

impl Generator<'_> {
    /// Adds a read to a draft.
    pub(super) fn read(&mut self, draft: &mut Draft, value: ValueId, idx: Vec<Idx>) {
        let shape = self.ty(value).shape;
        let (edge, needs_guard) = draft.vars.edge(&mut self.rng, &idx, &shape);
        if needs_guard {
            draft.guarded.push((idx.clone(), shape));
        }
        // A value read twice is one argument, or sometimes two.
        let known = draft.args.iter().position(|&arg| arg == value).filter(|_| self.rng.chance(80));
        let operand = known.unwrap_or_else(|| {
            draft.args.push(value);
            draft.args.len() - 1
        });
        draft.reads.push(Access { operand: operand as u32, idx, edge });
    }

    /// Completes a draft: `calculate` gets the slots of the reads and then of the variables.
    pub(super) fn complete(
        &mut self,
        draft: Draft,
        target: Target,
        guard_percent: i64,
        calculate: impl FnOnce(&mut Body<'_>, &Setting, &[Slot]) -> Option<Calculation>,
    ) -> Option<Vec<ValueId>> {
        let n_points = draft.vars.n_points();
        let n_elements = Vars { extents: target.shape.clone() }.n_points();
        if n_points.max(n_elements) > self.options.max_points as f64 {
            return None;
        }
        let mut params: Vec<(DType, Fact)> = Vec::new();
        for access in &draft.reads {
            let value = draft.args[access.operand as usize];
            let (ty, fact) = (self.ty(value), self.fact(value));
            params.push((ty.dtype, Fact { bound: fact.bound.max(ty.fill.as_f64().abs()), ..fact }));
        }
        let extents = draft.vars.extents.iter();
        params
            .extend(extents.map(|extent| (DType::I64, Fact::integers(extent.known().unwrap_or(MAX_DEFERRED) as f64))));
        let inexact = self.options.inexact;
        let mut body = Body::new(&mut self.rng, &params, inexact);
        let leaves = body.leaves.clone();
        let vars = &leaves[draft.reads.len()..];
        let mut conditions = Vec::new();
        for (idx, shape) in &draft.guarded {
            conditions.extend(inside_code(&mut body, idx, shape, vars));
        }
        if target.needs_guard {
            conditions.extend(inside_code(&mut body, &target.idx, &target.shape, vars));
        }
        if body.rng.chance(guard_percent) {
            conditions.push(random_guard(&mut body, vars));
        }
        let guard = conditions.into_iter().reduce(|a, b| body.binary(BinaryOp::And, a, b));
        let position = idx_code(&mut body, &linear(&draft.vars), vars);
        let may_be_empty = guard.is_some() || !target.covers;
        let setting = Setting { position, n_points, may_be_empty, inexact };
        let Calculation { accum, bodies, facts } = calculate(&mut body, &setting, &leaves)?;
        let types: Vec<DType> = bodies.iter().map(|&slot| body.dtype(slot)).collect();
        let fill: Vec<Scalar> = if accum.is_some() {
            Vec::new()
        } else {
            types
                .iter()
                .map(|&dtype| if body.rng.chance(70) { dtype.zero() } else { data::scalar(body.rng, dtype, false) })
                .collect()
        };
        let (code, _) = body.finish(guard.into_iter().chain(bodies).collect());
        let names = ["i", "j", "k", "l", "m", "n"];
        let named = |(k, extent): (usize, &Extent)| IndexVar {
            name: names.get(k).map_or_else(|| format!("v{k}"), |name| name.to_string()),
            extent: *extent,
        };
        let stmt = IndexStmt {
            vars: draft.vars.extents.iter().enumerate().map(named).collect(),
            reads: draft.reads,
            code,
            has_guard: guard.is_some(),
            accum,
            out: Output { idx: target.idx, edge: target.edge, shape: target.shape, fill },
        };
        // Elements nobody writes are fill values.
        let facts: Vec<Fact> =
            facts.into_iter().map(|fact| Fact { bound: fact.bound.max(data::MAGNITUDE as f64), ..fact }).collect();
        self.emit(Op::Index(stmt), &draft.args, &facts)
    }
}

/// The row-major number of a point, as if extents that depend on data were the largest they can be.
fn linear(vars: &Vars) -> Idx {
    let mut sum = Idx::constant(0);
    for k in 0..vars.extents.len() {
        sum = sum.times(vars.extents[k].known().unwrap_or(MAX_DEFERRED + 1).max(1) as i64).plus(&vars.idx(k));
    }
    sum
}

/// A guard on the index or on data.
fn random_guard(body: &mut Body<'_>, vars: &[Slot]) -> Slot {
    match body.rng.try_pick(vars) {
        Some(var) if body.rng.chance(50) => {
            let limit = body.rng.range(0, 4);
            let limit = body.number(limit, DType::I64);
            let other = body.rng.pick(&[limit, vars[0]]);
            let op = body.rng.pick(&[BinaryOp::Lt, BinaryOp::Le, BinaryOp::Gt, BinaryOp::Ne]);
            body.binary(op, var, other)
        }
        _ => body.comparison(2),
    }
}
