//! Assignment with `=`, to a whole tensor or to a part of one.

use tw_ir::program::Output;
use tw_ir::{DType, Edge, Extent, Idx, Scalar, TensorType, ValueId, Var};

use super::access::bare;
use super::body::Reduced;
use super::context::Context;
use super::target::{Before, Target};
use crate::diagnose::{Lowered, Place, check_fits, error};
use tw_build as build;
use tw_build::{PlacedAxis, TypedOperand};

impl<'a> Context<'_, 'a, '_> {
    /// `C[i, j] = ..`. If the target has a value and the statement writes only a part of it, the rest keeps its value.
    pub(super) fn assign(&mut self, target: &Target, idx: &[Idx], reduced: &Reduced) -> Lowered<ValueId> {
        match &target.before {
            Before::Value(before, ty) if !self.covers(idx, ty, reduced) => {
                let (before, ty) = (*before, ty.clone());
                self.check_injective(target, idx, &ty.shape)?;
                self.replace(target, idx, reduced, before, &ty)
            }
            Before::Declared(ty) => {
                let (shape, dtype) = (ty.shape.clone(), ty.dtype);
                self.check_injective(target, idx, &shape)?;
                self.write(target, idx, reduced, shape, Some(dtype))
            }
            _ => {
                let shape = self.inferred_shape(idx, target.range)?;
                self.check_injective(target, idx, &shape)?;
                self.write(target, idx, reduced, shape, None)
            }
        }
    }

    /// True if the statement gives every element of its result a value: then the name means something new.
    fn covers(&self, idx: &[Idx], before: &TensorType, reduced: &Reduced) -> bool {
        let guarded = reduced.guard.is_some() && reduced.variables.is_empty();
        !guarded
            && distinct(idx)
            && idx.iter().zip(&before.shape).all(|(idx, extent)| {
                bare(idx).is_some_and(|v| {
                    let variable = &self.variables[v as usize];
                    variable.start == 0 && (!variable.explicit || variable.extent == Some(*extent))
                })
            })
    }

    /// One statement that writes at the given coordinates; elements that no point writes are zero.
    fn write(
        &mut self,
        target: &Target,
        idx: &[Idx],
        reduced: &Reduced,
        shape: Vec<Extent>,
        dtype: Option<DType>,
    ) -> Lowered<ValueId> {
        let outer = self.left_variables();
        let variables: Vec<u32> = outer.iter().chain(&reduced.variables).copied().collect();
        let mut out = Output { idx: self.local_idx(idx, &variables), edge: target.edge()?, shape, fill: Vec::new() };
        if !reduced.variables.is_empty() {
            let value = self.reduce_into(reduced, &outer, out, None, false)?;
            return match dtype {
                Some(dtype) => {
                    check_fits(self.lowering.ty(value).dtype, dtype, reduced.range)?;
                    self.lowering.converted(value, &TensorType::scalar(dtype), reduced.range)
                }
                None => Ok(value),
            };
        }
        let mut compiled = self.compile(&outer, &reduced.body, reduced.range)?;
        let mut body = compiled.slot(reduced.root)?.slot;
        if let Some(dtype) = dtype {
            compiled.check_fits(body, dtype, reduced.range)?;
            body = compiled.convert(dtype, body)?;
        }
        let guard = reduced.guard.map(|guard| compiled.guard(guard)).transpose()?;
        out.fill = vec![compiled.dtype(body).zero()];
        self.finish(compiled, vec![body], guard, None, out)
    }

    /// Writes a part of a tensor that has a value.
    fn replace(
        &mut self,
        target: &Target,
        idx: &[Idx],
        reduced: &Reduced,
        before: ValueId,
        ty: &TensorType,
    ) -> Lowered<ValueId> {
        let guarded = reduced.guard.is_some() && reduced.variables.is_empty();
        let region = if guarded || target.edge()? != Edge::Error { None } else { self.box_of(idx, ty) };
        if let Some(region) = region {
            self.check_box(target, &region, ty)?;
            let outer = self.left_variables();
            let over: Vec<Idx> = outer.iter().map(|&v| self.counted_from_zero(v)).collect();
            let shape = outer.iter().map(|&v| self.extent(v)).collect::<tw_ir::Result<Vec<Extent>>>()?;
            let values = self.write(target, &over, reduced, shape, None)?;
            check_fits(self.lowering.ty(values).dtype, ty.dtype, reduced.range)?;
            let op = build::placed(ty, TypedOperand::Tensor(self.lowering.ty(values)), &region).at(reduced.range)?;
            return self.lowering.push1(op, &[before, values], reduced.range);
        }
        // In general: the values, where they were written, and a choice between both.
        let values = self.write(target, idx, reduced, ty.shape.clone(), None)?;
        check_fits(self.lowering.ty(values).dtype, ty.dtype, reduced.range)?;
        let values = self.lowering.converted(values, ty, reduced.range)?;
        let written = self.written(target, idx, reduced, ty)?;
        let op = build::select(self.lowering.ty(written), self.lowering.ty(values), ty).at(reduced.range)?;
        self.lowering.push1(op, &[written, values, before], reduced.range)
    }

    /// True where the statement writes.
    fn written(&mut self, target: &Target, idx: &[Idx], reduced: &Reduced, ty: &TensorType) -> Lowered<ValueId> {
        let outer = self.left_variables();
        let mut compiled = self.compile(&outer, &reduced.body, reduced.range)?;
        let body = compiled.slot(super::body::Cell::Literal(Scalar::Bool(true)))?.slot;
        let guard = match reduced.guard {
            Some(guard) if reduced.variables.is_empty() => Some(compiled.guard(guard)?),
            _ => None,
        };
        let out = Output {
            idx: self.local_idx(idx, &outer),
            edge: target.edge()?,
            shape: ty.shape.clone(),
            fill: vec![Scalar::Bool(false)],
        };
        self.finish(compiled, vec![body], guard, None, out)
    }

    /// The part that is written, if it is a box with one index per axis.
    fn box_of(&self, idx: &[Idx], ty: &TensorType) -> Option<Vec<PlacedAxis>> {
        let outer = self.left_variables();
        if !distinct(idx) {
            return None;
        }
        idx.iter()
            .zip(&ty.shape)
            .map(|(idx, extent)| {
                if idx.terms().is_empty() {
                    return Some(PlacedAxis { first: idx.offset(), step: 1, extent: Extent::Known(1), axis: None });
                }
                let (Var(v), offset) = idx.as_shifted_var()?;
                let axis = outer.iter().position(|&o| o == v)?;
                let variable = &self.variables[v as usize];
                let known = variable.extent?.known().is_some() && extent.known().is_some();
                let whole = variable.extent == Some(*extent) && variable.start == 0 && offset == 0;
                let first = offset.saturating_add(variable.start);
                (known || whole).then_some(PlacedAxis { first, step: 1, extent: variable.extent?, axis: Some(axis) })
            })
            .collect()
    }

    fn check_box(&self, target: &Target, region: &[PlacedAxis], ty: &TensorType) -> Lowered<()> {
        for (k, (part, extent)) in region.iter().zip(&ty.shape).enumerate() {
            let (Some(n), Some(length @ 1..)) = (extent.known(), part.extent.known()) else { continue };
            let high = part.first as i128 + length as i128 - 1;
            if part.first < 0 || high >= n as i128 {
                let text = format!(
                    "the index on the left runs from {} to {high}, but axis {k} of `{}` has {n} elements",
                    part.first, target.name
                );
                return Err(error(target.range, text).into());
            }
        }
        Ok(())
    }
}

/// True if no index stands on two axes.
fn distinct(idx: &[Idx]) -> bool {
    idx.iter()
        .enumerate()
        .all(|(k, one)| one.terms().is_empty() || idx[..k].iter().all(|other| other.terms() != one.terms()))
}
