//! A tensor with a part of it replaced: `x[1:3, 0] = v` as a function.

use tw_ir::error::Blame;
use tw_ir::{Access, BinaryOp, DType, Edge, Error, Extent, Idx, Op, Result, Scalar, ScalarCode, Slot, TensorType, Var};

use super::axes::display_shape;
use super::elementwise::{TypedOperand, check_broadcast};
use super::promote::emit_cast;
use super::slice::{SliceItem, slice_range};
use super::statement::{StatementBuilder, access};

/// Where the new elements lie along one axis of the tensor.
#[derive(Clone, Copy, Debug)]
pub struct PlacedAxis {
    /// The first of them.
    pub first: i64,
    /// Distance to the next; not zero.
    pub step: i64,
    /// How many there are.
    pub extent: Extent,
    /// The axis of the value that runs along; `None` if one element of it serves all.
    pub axis: Option<usize>,
}

impl PlacedAxis {
    /// True if every element of the axis is replaced, in order.
    fn is_whole(&self, extent: Extent) -> bool {
        self.first == 0 && self.extent == extent && (self.step == 1 || extent == Extent::Known(1))
    }
}

/// `x` with the elements that the items select replaced by a value, which is broadcast and converted to the type of `x`.
///
/// Arguments of the node: `x`, then the value unless it is a literal.
pub fn replace<'a>(x: &TensorType, items: &[SliceItem], value: impl Into<TypedOperand<'a>>) -> Result<Op> {
    let (mut parts, mut selected) = (Vec::with_capacity(x.rank()), Vec::new());
    let taken = items.iter().filter(|item| !matches!(item, SliceItem::Ellipsis)).count();
    if taken > x.rank() || items.len() > taken + 1 || items.contains(&SliceItem::NewAxis) {
        return Err(Error::indices(
            Blame::Source,
            format!("{taken} indices for a tensor of shape {}", display_shape(&x.shape)),
        ));
    }
    let whole = |extent| PlacedAxis { first: 0, step: 1, extent, axis: None };
    let missing = x.rank() - taken;
    for item in items.iter().chain(std::iter::repeat_n(&SliceItem::FULL, x.rank())) {
        if *item == SliceItem::Ellipsis {
            for _ in 0..missing {
                parts.push(whole(x.shape[parts.len()]));
                selected.push(parts.len() - 1);
            }
            continue;
        }
        let Some(&extent) = x.shape.get(parts.len()) else { break };
        if !matches!(item, SliceItem::Index(_)) {
            selected.push(parts.len());
        }
        let length = || extent.require(|| Error::plan("a part of an axis whose extent depends on data"));
        parts.push(match *item {
            SliceItem::FULL => whole(extent),
            SliceItem::Slice { step: 0, .. } => return Err(Error::source("a slice with step 0")),
            SliceItem::Slice { start, stop, step } => {
                let n = length()?;
                let (first, length) = slice_range(start, stop, step, n);
                PlacedAxis { first, step, extent: Extent::Known(length), axis: None }
            }
            SliceItem::Index(at) => {
                let n = length()?;
                let first = if at < 0 { at.saturating_add(n as i64) } else { at };
                if !(0..n as i64).contains(&first) {
                    let axis = parts.len();
                    return Err(Error::indices(
                        Blame::Source,
                        format!("index {at} of axis {axis}, which has {n} elements"),
                    ));
                }
                PlacedAxis { first, step: 1, extent: Extent::Known(1), axis: None }
            }
            // Taken care of above.
            SliceItem::NewAxis | SliceItem::Ellipsis => return Err(Error::internal("an item that takes no axis")),
        });
    }
    let value = value.into();
    let shape: Vec<Extent> = selected.iter().map(|&axis| parts[axis].extent).collect();
    if let TypedOperand::Tensor(ty) = value {
        check_broadcast(&ty.shape, &shape, || {
            let (from, to) = (display_shape(&ty.shape), display_shape(&shape));
            Error::source(format!("a value of shape {from} for elements of shape {to}"))
        })?;
        let skip = shape.len() - ty.rank();
        for (axis, extent) in ty.shape.iter().enumerate() {
            parts[selected[skip + axis]].axis = (*extent != Extent::Known(1)).then_some(axis);
        }
    }
    placed(x, value, &parts)
}

/// As [`replace`], with one placement per axis.
pub fn placed(x: &TensorType, value: TypedOperand<'_>, parts: &[PlacedAxis]) -> Result<Op> {
    // An empty value has no element to read anywhere.
    let nothing = parts.iter().any(|part| part.extent == Extent::Known(0));
    let value = if nothing { TypedOperand::from(x.dtype.zero()) } else { value };
    let here: Vec<Idx> = (0..x.rank() as u32).map(|axis| Idx::var(Var(axis))).collect();
    let mut reads = vec![(access(0, here), x.dtype)];
    if let TypedOperand::Tensor(ty) = value {
        let mut idx = vec![Idx::constant(0); ty.rank()];
        for (k, part) in parts.iter().enumerate() {
            if let Some(axis) = part.axis {
                idx[axis] = part.position(k);
            }
        }
        // Where the value is not used any element of it will do, so leaving it is no error.
        let edge =
            if parts.iter().zip(&x.shape).all(|(part, &n)| part.is_whole(n)) { Edge::Error } else { Edge::Clamp };
        reads.push((Access { operand: 1, idx, edge }, ty.dtype));
    }
    let mut statement = StatementBuilder::new(&x.shape, reads);
    let mut inside = None;
    for (k, (part, &extent)) in parts.iter().zip(&x.shape).enumerate() {
        if !part.is_whole(extent) {
            let position = statement.var(k);
            inside = Some(part.holds(&mut statement.code, position, inside)?);
        }
    }
    let old = statement.read(0);
    let new = match value {
        TypedOperand::Tensor(_) => {
            let read = statement.read(1);
            emit_cast(&mut statement.code, x.dtype, read)?
        }
        TypedOperand::Literal(value) => value.push_as(&mut statement.code, x.dtype)?,
    };
    let body = match inside {
        Some(inside) => statement.code.select(inside, new, old)?,
        None => new,
    };
    Ok(statement.elementwise_filled(body, x.fill))
}

impl PlacedAxis {
    /// The smallest position, the distance between positions and the distance from the smallest to the largest.
    fn ascending(&self) -> (i64, i64, i64) {
        let n = self.extent.known().unwrap_or(1).max(1) as i64;
        let stride = if n == 1 { 1 } else { self.step.saturating_abs() };
        let reach = stride.saturating_mul(n - 1);
        let lowest = if self.step > 0 { self.first } else { self.first.saturating_sub(reach) };
        (lowest, stride, reach)
    }

    /// Which element of the value goes to a position along axis `k` of the tensor.
    fn position(&self, k: usize) -> Idx {
        let (lowest, stride, reach) = self.ascending();
        let number = Idx::var(Var(k as u32)).plus_constant(lowest.saturating_neg()).div(stride);
        if self.step > 0 { number } else { number.times(-1).plus_constant(reach / stride) }
    }

    /// Code for: the position is replaced, and `also`.
    fn holds(&self, code: &mut ScalarCode, position: Slot, also: Option<Slot>) -> Result<Slot> {
        let (lowest, stride, reach) = self.ascending();
        let bound = code.constant(Scalar::I64(lowest));
        let mut all: Vec<Slot> = also.into_iter().collect();
        if self.extent == Extent::Known(0) {
            all.push(code.constant(Scalar::Bool(false)));
        } else if reach == 0 {
            all.push(code.binary(BinaryOp::Eq, position, bound)?);
        } else {
            all.push(code.binary(BinaryOp::Ge, position, bound)?);
            let end = code.constant(Scalar::I64(lowest.saturating_add(reach)));
            all.push(code.binary(BinaryOp::Le, position, end)?);
        }
        if stride > 1 {
            let distance = code.binary(BinaryOp::Sub, position, bound)?;
            let stride = code.constant(Scalar::I64(stride));
            let rest = code.binary(BinaryOp::Mod, distance, stride)?;
            let zero = code.constant(Scalar::I64(0));
            all.push(code.binary(BinaryOp::Eq, rest, zero)?);
        }
        let mut holds = all[0];
        for &condition in &all[1..] {
            holds = code.binary(BinaryOp::And, holds, condition)?;
        }
        debug_assert_eq!(code.dtype(holds), DType::Bool);
        Ok(holds)
    }
}
