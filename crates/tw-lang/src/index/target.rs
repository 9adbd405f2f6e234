//! What stands on the left: where results go, and what becomes of the rest.

use tw_ir::program::{IndexStmt, IndexVar, Output, is_injective};
use tw_ir::{DType, Edge, Error, Extent, Idx, ScalarCode, TensorType, ValueId};

use super::IndexStatement;
use super::access::{AxisAccess, Position, bare};
use super::accumulate::{Combination, combination};
use super::body::{Node, Reduced};
use super::context::Context;
use super::extents::Weight;
use crate::algebra::{Algebra, evaluate};
use crate::ast::{AssignOp, ExprKind, Item, Name};
use crate::diagnose::{Lowered, Place, counted, error, find_name, where_equal};
use crate::lower::{Lowering, Value};
use crate::names::Binding;
use crate::token::Range;
use tw_build::Reduction;

/// The value of the target before the statement.
pub(super) enum Before {
    /// Nothing: shape and type follow from the statement.
    Nothing,
    /// It is declared, and has no value yet.
    Declared(TensorType),
    /// It has a value.
    Value(ValueId, TensorType),
}

/// The resolved left side.
pub(super) struct Target {
    pub(super) axes: Vec<AxisAccess>,
    pub(super) before: Before,
    pub(super) name: String,
    pub(super) range: Range,
}

impl Target {
    /// The index expressions, if all of them are affine.
    pub(super) fn affine(&self) -> Option<Vec<Idx>> {
        self.axes
            .iter()
            .map(|axis| match &axis.position {
                Position::Affine(idx) => Some(idx.clone()),
                Position::Computed(..) => None,
            })
            .collect()
    }

    /// The rule for contributions outside: one for all axes.
    pub(super) fn edge(&self) -> Lowered<Edge> {
        let mut rules = self.axes.iter().map(|axis| axis.edge).filter(|edge| *edge != Edge::Error);
        let first = rules.next().unwrap_or(Edge::Error);
        if rules.any(|edge| edge != first) {
            return Err(error(self.range, "the left side mixes edge rules").into());
        }
        Ok(first)
    }
}

/// Lowers a statement; see [`super::lower`].
pub(super) fn lower<'a>(lowering: &mut Lowering<'a, '_>, statement: &IndexStatement<'_, 'a>) -> Lowered<ValueId> {
    let combination = match statement.op {
        AssignOp::Set => None,
        AssignOp::Update(operator) => Some(combination(operator, statement.range)?),
    };
    let mut context = Context::new(lowering);
    for binder in statement.ranges {
        if let Some((start, extent)) = context.written_range(binder)? {
            context.ranges.push((binder.name, start, extent, false));
        }
    }
    context.declare_left(statement)?;
    context.implicit = combination.is_some();
    context.guarded = statement.guard.is_some();
    let target = context.target(statement)?;
    let reduced = context.right_side(statement, combination.as_ref())?;
    if let Some((name, ..)) = context.ranges.iter().find(|(.., used)| !used) {
        return Err(error(name.range, format!("the statement has no index called `{}`", name.text)).into());
    }
    let accumulates = combination.is_some();
    context.left_facts(&target, accumulates);
    context.solve()?;
    match (combination, target.affine()) {
        (Some(combination), None) => context.scatter(target, reduced, &combination),
        (None, None) => Err(context.computed_positions(&target).into()),
        (Some(combination), Some(idx)) => context.accumulate(&target, &idx, &reduced, &combination),
        (None, Some(idx)) => context.assign(&target, &idx, &reduced),
    }
}

impl<'a> Context<'_, 'a, '_> {
    /// Names on the left that mean nothing yet are the free indices of the statement.
    fn declare_left(&mut self, statement: &IndexStatement<'_, 'a>) -> Lowered<()> {
        for item in statement.indices {
            let Item::At(expr) = item else { continue };
            loop {
                let context: &Self = self;
                let unknown =
                    |name: &str| context.lowering.scopes.get(name).is_none() && context.variable_named(name).is_none();
                match find_name(expr, &mut |name| unknown(name)) {
                    Some(name) => drop(self.declare(name, None)?),
                    None => break,
                }
            }
        }
        self.n_left = self.active.len();
        self.n_free = self.n_left;
        Ok(())
    }

    fn target(&mut self, statement: &IndexStatement<'_, 'a>) -> Lowered<Target> {
        let axes = self.axes(statement.indices)?;
        let Some(Name { text, range }) = statement.target else {
            return Ok(Target { axes, before: Before::Nothing, name: String::new(), range: statement.range });
        };
        let before = match self.lowering.scopes.get(text) {
            Some(Binding::Declared(ty)) => Before::Declared(ty.clone()),
            // `s = sum[i](..)` gives the name a new value; `s += x[i]` adds to the one it has.
            Some(Binding::Tensor(_) | Binding::Literal(_))
                if !statement.indices.is_empty() || statement.op != AssignOp::Set =>
            {
                let value = match self.lowering.read(Name { text, range })? {
                    Value::Tensor(value) => value,
                    literal => self.lowering.tensor(literal, range)?,
                };
                Before::Value(value, self.lowering.ty(value).clone())
            }
            _ => Before::Nothing,
        };
        let plain = axes.iter().all(|axis| matches!(&axis.position, Position::Affine(idx) if bare(idx).is_some()));
        if let Before::Declared(ty) | Before::Value(_, ty) = &before
            && ty.rank() != axes.len()
        {
            // All axes by bare indices: a new tensor under an old name.
            if matches!(before, Before::Value(..)) && plain && statement.op == AssignOp::Set {
                return Ok(Target { axes, before: Before::Nothing, name: text.to_string(), range });
            }
            let given = counted(axes.len(), "index is", "indices are");
            let text = format!("`{text}` has rank {}, but {given} given", ty.rank());
            return Err(error(range, text).note(format!("its type is {ty}")).into());
        }
        Ok(Target { axes, before, name: text.to_string(), range })
    }

    /// The error for `=` where the left side has a position that only the run knows.
    fn computed_positions(&self, target: &Target) -> Error {
        let varies = |axis: &AxisAccess| {
            let mut used = std::collections::BTreeSet::new();
            if let Position::Computed(body, _) = &axis.position {
                body.free_variables(&self.reads, &mut used);
            }
            !used.is_empty()
        };
        if target.axes.iter().any(varies) {
            return error(target.range, "an assignment to computed positions")
                .help("several points may meet there; say how they combine, for example with `+=` or `max=`");
        }
        error(target.range, "an assignment to a position that only the run knows").help(where_equal(
            &target.name,
            target.axes.iter().map(|axis| matches!(axis.position, Position::Computed(..))),
        ))
    }

    /// The right side as a reduction. With `=` and no reduction it reduces over nothing.
    fn right_side(
        &mut self,
        statement: &IndexStatement<'_, 'a>,
        combination: Option<&Combination>,
    ) -> Lowered<Reduced> {
        if let ExprKind::Reduce(reduce) = &statement.value.kind {
            let reduced = self.reduction(reduce, statement.guard, statement.range)?;
            match combination {
                None => return Ok(reduced),
                // The sum of a sum over more indices.
                Some(combination) if combination.kind == reduced.kind && !combination.negated => {
                    let mut reduced = reduced;
                    reduced.variables.extend(self.implicit_variables());
                    return Ok(reduced);
                }
                Some(combination) => {
                    let mut root = self.push(Node::Reduce(Box::new(reduced)), statement.value.range);
                    if combination.negated {
                        root = self.push(Node::Unary(tw_ir::UnaryOp::Neg, root), statement.value.range);
                    }
                    let body = std::mem::take(&mut self.body);
                    let variables = self.implicit_variables();
                    let (kind, range) = (combination.kind, statement.range);
                    return Ok(Reduced { kind, variables, body, root, guard: None, range });
                }
            }
        }
        let negated = combination.is_some_and(|combination| combination.negated);
        let (body, root, guard) = self.separate(|context| {
            let mut root = evaluate(context, statement.value)?;
            if negated {
                root = match root {
                    super::body::Cell::Literal(value) => {
                        let value = crate::fold::unary(tw_ir::UnaryOp::Neg, value).at(statement.value.range)?;
                        context.literal(value)
                    }
                    root => context.unary(tw_ir::UnaryOp::Neg, root, statement.value.range)?,
                };
            }
            let guard = statement.guard.map(|guard| evaluate(context, guard)).transpose()?;
            Ok((root, guard))
        })?;
        let variables = self.implicit_variables();
        let kind = combination.map_or(Reduction::Sum, |combination| combination.kind);
        Ok(Reduced { kind, variables, body, root, guard, range: statement.range })
    }

    /// Bounds of indices by the shape of the target.
    fn left_facts(&mut self, target: &Target, accumulates: bool) {
        let (shape, weight) = match &target.before {
            Before::Nothing => return,
            Before::Declared(ty) => (&ty.shape, Weight::Rule),
            // An update stays inside the old shape, but a plain assignment may give the name a new one.
            Before::Value(_, ty) => (&ty.shape, if accumulates { Weight::Rule } else { Weight::Hint }),
        };
        for (axis, (access, extent)) in target.axes.iter().zip(shape.clone()).enumerate() {
            if let Position::Affine(idx) = &access.position {
                let weight = if access.edge == Edge::Error { weight } else { Weight::Hint };
                self.left_fact(&idx.clone(), extent, access.edge, weight, access.range, axis);
            }
        }
    }

    /// The free indices of the left side, in order.
    pub(super) fn left_variables(&self) -> Vec<u32> {
        self.active[..self.n_left].to_vec()
    }

    /// The indices that the assignment itself binds, as with `+=`. They are not active afterwards.
    fn implicit_variables(&mut self) -> Vec<u32> {
        self.n_free = self.n_left;
        self.active.split_off(self.n_left)
    }

    /// The shape of a new target: as far as its indices go.
    pub(super) fn inferred_shape(&self, idx: &[Idx], range: Range) -> Lowered<Vec<Extent>> {
        idx.iter()
            .map(|idx| {
                if let Some(v) = bare(idx)
                    && self.variables[v as usize].start == 0
                {
                    return Ok(self.extent(v)?);
                }
                let empty = |v: u32| self.variables[v as usize].extent == Some(Extent::Known(0));
                let mut used = std::collections::BTreeSet::new();
                super::affine::variables(idx, &mut used);
                if used.iter().any(|&v| empty(v)) {
                    return Ok(Extent::Known(0));
                }
                let ranges: Option<Vec<(i64, i64)>> = self
                    .variables
                    .iter()
                    .enumerate()
                    .map(|(v, variable)| if used.contains(&(v as u32)) { variable.range() } else { Some((0, 0)) })
                    .collect();
                let Some(ranges) = ranges else {
                    return Err(error(range, "the extent of the result depends on data")
                        .help("declare its shape")
                        .into());
                };
                let (low, high) = idx.interval(&ranges);
                if low < 0 {
                    return Err(error(range, format!("an index on the left goes down to {low}")).into());
                }
                Ok(Extent::Known(high as u64 + 1))
            })
            .collect()
    }

    /// Index expressions in terms of the variables of a statement.
    pub(super) fn local_idx(&self, idx: &[Idx], variables: &[u32]) -> Vec<Idx> {
        let mut by = vec![Idx::constant(0); self.variables.len()];
        for (local, &v) in variables.iter().enumerate() {
            let start = self.variables[v as usize].start;
            by[v as usize] = Idx::var(tw_ir::Var(local as u32)).plus_constant(start);
        }
        idx.iter().map(|idx| idx.substitute(&by)).collect()
    }

    /// Several points must not write one element with `=`.
    pub(super) fn check_injective(&self, target: &Target, idx: &[Idx], shape: &[Extent]) -> Lowered<()> {
        let outer = self.left_variables();
        let mut vars = Vec::with_capacity(outer.len());
        for &v in &outer {
            vars.push(IndexVar { name: String::new(), extent: self.extent(v)? });
        }
        let code = ScalarCode::new(vec![DType::I64; vars.len()]);
        let idx = self.local_idx(idx, &outer);
        let out = Output { idx, edge: target.edge()?, shape: shape.to_vec(), fill: Vec::new() };
        let stmt = IndexStmt { vars, reads: Vec::new(), code, has_guard: false, accum: None, out };
        if is_injective(&stmt) {
            return Ok(());
        }
        Err(error(
            target.range,
            format!("several points of this statement write the same element of `{}`", target.name),
        )
        .help("say how they combine: `+=`, `*=`, `min=`, `max=`, `and=` or `or=`")
        .into())
    }
}
