//! Constant tensors: `[1, 2, 3]`, `[[1, 0], [0, 1]]`.

use tw_ir::program::SourceOp;
use tw_ir::{Array, Buffer, DType, Op, Scalar, ValueId};

use super::Lowering;
use crate::ast::{Expr, ExprKind};
use crate::diagnose::{Lowered, Place, error};
use crate::token::Range;
use tw_build as build;

impl<'a> Lowering<'a, '_> {
    /// A constant from nested lists of numbers. All lists of one level are equally long.
    pub(super) fn list(&mut self, parts: &[Expr<'a>], range: Range) -> Lowered<ValueId> {
        let mut shape = Vec::new();
        let mut level = Some((parts, range));
        while let Some((parts, _)) = level {
            shape.push(parts.len() as u64);
            level = match parts.first() {
                Some(Expr { kind: ExprKind::List(inner), range, .. }) => Some((inner, *range)),
                _ => None,
            };
        }
        let mut elements = Vec::new();
        self.elements(parts, &shape, &mut elements, range)?;
        let dtype = match elements.as_slice() {
            [] => DType::F64,
            _ => build::common(elements.iter().map(|value| value.dtype())).at(range)?,
        };
        let mut data = Buffer::zeros(dtype, elements.len());
        for (k, value) in elements.into_iter().enumerate() {
            data.set(k, value.cast(dtype));
        }
        let array = Array::new(shape, data).at(range)?;
        self.push1(Op::Source(SourceOp::Constant(array.into())), &[], range)
    }

    fn elements(&mut self, parts: &[Expr<'a>], shape: &[u64], into: &mut Vec<Scalar>, range: Range) -> Lowered<()> {
        let [length, inner @ ..] = shape else { return Ok(()) };
        if parts.len() as u64 != *length {
            let text = format!("a list of {} beside one of {length}; lists of one level are equally long", parts.len());
            return Err(error(range, text).into());
        }
        for part in parts {
            match &part.kind {
                ExprKind::List(deeper) if !inner.is_empty() => self.elements(deeper, inner, into, part.range)?,
                ExprKind::List(_) => return Err(error(part.range, "a list beside numbers").into()),
                _ if !inner.is_empty() => return Err(error(part.range, "a number beside lists").into()),
                _ => into.push(self.literal(part, "an element of a constant")?),
            }
        }
        Ok(())
    }
}
