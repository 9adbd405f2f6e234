//! Accumulation at computed positions: `H[idx[i]] += x[i]`.

use std::collections::BTreeSet;

use tw_ir::program::Output;
use tw_ir::spec::ScatterSpec;
use tw_ir::{Edge, Error, OnEmpty, Op, TensorType, ValueId};

use super::access::{AxisAccess, Position, bare};
use super::accumulate::Combination;
use super::body::{Body, Cell, Reduced};
use super::context::Context;
use super::target::{Before, Target};
use crate::diagnose::{Lowered, Place, error};
use tw_build as build;

/// What one axis of the target is.
enum Axis {
    /// A free index that runs over the whole axis.
    Kept(u32),
    /// A position computed per contribution.
    Computed(Body, Cell),
}

impl<'a> Context<'_, 'a, '_> {
    pub(super) fn scatter(
        &mut self,
        mut target: Target,
        reduced: Reduced,
        combination: &Combination,
    ) -> Lowered<ValueId> {
        let ty = match &target.before {
            Before::Declared(ty) | Before::Value(_, ty) => ty.clone(),
            Before::Nothing => {
                return Err(error(target.range, format!("the shape of `{}` is not clear", target.name))
                    .help(format!("declare it first: `{}: f64[n]`", target.name))
                    .into());
            }
        };
        let edge = target.edge()?;
        let range = target.range;
        let axes = self.scatter_axes(std::mem::take(&mut target.axes), &ty)?;
        let mut over = BTreeSet::new();
        for axis in &axes {
            if let Axis::Computed(body, _) = axis {
                body.free_variables(&self.reads, &mut over);
            }
        }
        let over: Vec<u32> = over.into_iter().collect();
        // Index tensors over the indices that positions use.
        let (mut indices, mut scattered, mut extents) = (Vec::new(), Vec::new(), Vec::new());
        for (k, axis) in axes.iter().enumerate() {
            let Axis::Computed(body, root) = axis else { continue };
            let compiled = self.compile(&over, body, range)?;
            indices.push(self.elementwise(compiled, *root, &over)?);
            scattered.push(k);
            extents.push(ty.shape[k]);
        }
        let first = *scattered.first().ok_or_else(|| Error::internal("a scatter without computed positions"))?;
        // Values: kept axes around the index axes, as a gather would give them.
        let mut order: Vec<u32> = Vec::new();
        for (k, axis) in axes.iter().enumerate() {
            match axis {
                Axis::Kept(v) => order.push(*v),
                Axis::Computed(..) if k == first => order.extend(&over),
                Axis::Computed(..) => {}
            }
        }
        let values = self.contributions(reduced, &order, &ty, combination)?;
        let (index_types, value_type): (Vec<&TensorType>, &TensorType) =
            (indices.iter().map(|&index| self.lowering.ty(index)).collect(), self.lowering.ty(values));
        let mut joined =
            build::scatter(&index_types, value_type, &scattered, &extents, combination.kind, edge).at(range)?;
        if let (Op::Scatter { spec: ScatterSpec { accum, .. }, .. }, Before::Value(..)) =
            (&mut joined.join, &target.before)
        {
            accum.on_empty = OnEmpty::Value(accum.empty_results());
        }
        let operands = indices.into_iter().chain([values]).collect();
        let scattered = self.lowering.joined(joined, operands, range)?;
        let scattered = self.lowering.converted(scattered, &ty, range)?;
        self.join(&target, scattered, combination)
    }

    /// Axes by bare indices are kept, unless a position depends on that index too; then they are positions like the others.
    fn scatter_axes(&mut self, given: Vec<AxisAccess>, ty: &TensorType) -> Lowered<Vec<Axis>> {
        let mut computed = BTreeSet::new();
        for axis in &given {
            if let Position::Computed(body, _) = &axis.position {
                body.free_variables(&self.reads, &mut computed);
            }
        }
        let mut seen = BTreeSet::new();
        let mut axes = Vec::with_capacity(given.len());
        for (k, axis) in given.into_iter().enumerate() {
            axes.push(match axis.position {
                Position::Affine(idx) => match bare(&idx) {
                    Some(v)
                        if !computed.contains(&v)
                            && seen.insert(v)
                            && axis.edge == Edge::Error
                            && self.variables[v as usize].start == 0
                            && self.extent(v)? == ty.shape[k] =>
                    {
                        Axis::Kept(v)
                    }
                    _ => {
                        let mut body = Body::default();
                        let root = body.affine(&idx, axis.range);
                        Axis::Computed(body, root)
                    }
                },
                Position::Computed(body, root) => Axis::Computed(body, root),
            });
        }
        Ok(axes)
    }

    /// One value per point of the given indices; other indices are reduced here already.
    fn contributions(
        &mut self,
        mut reduced: Reduced,
        order: &[u32],
        ty: &TensorType,
        combination: &Combination,
    ) -> Lowered<ValueId> {
        let mut all: Vec<u32> = self.left_variables();
        all.append(&mut reduced.variables);
        reduced.variables = all.into_iter().filter(|v| !order.contains(v)).collect();
        let (idx, shape) = self.plain_output(order)?;
        let identity = combination.kind.accum(ty.dtype)?.empty_results();
        if !reduced.variables.is_empty() {
            let out = Output { idx, edge: Edge::Error, shape, fill: Vec::new() };
            // A group that its guard empties must change nothing.
            return self.reduce_into(&reduced, order, out, Some(ty.dtype), true);
        }
        let mut compiled = self.compile(order, &reduced.body, reduced.range)?;
        let mut body = compiled.slot(reduced.root)?.slot;
        compiled.check_fits(body, ty.dtype, reduced.range)?;
        body = compiled.convert(ty.dtype, body)?;
        if let Some(guard) = reduced.guard {
            let guard = compiled.guard(guard)?;
            body = compiled.choose(guard, body, identity[0].cast(ty.dtype))?;
        }
        let out = Output { idx, edge: Edge::Error, shape, fill: vec![ty.dtype.zero()] };
        self.finish(compiled, vec![body], None, None, out)
    }
}
