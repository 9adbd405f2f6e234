//! Brackets on whole tensors: slices, masks and index tensors.

use tw_ir::{DType, Edge, Extent, Op, TensorType, ValueId};

use super::{Lowering, Value};
use crate::algebra::evaluate;
use crate::ast::{Expr, ExprKind, Item, Name};
use crate::diagnose::{Lowered, Place, error, where_equal};
use crate::fold;
use crate::token::Range;
use tw_build as build;
use tw_build::{Reduction, SliceItem};

/// What one item selects.
enum Selector {
    Basic(SliceItem),
    /// A tensor of integers; elements are gathered.
    Gather(ValueId),
    /// A tensor of bools; elements under it are kept.
    Mask(ValueId),
}

impl<'a> Lowering<'a, '_> {
    pub(super) fn subscript(&mut self, base: &Expr<'a>, items: &[Item<'a>], range: Range) -> Lowered<Value> {
        if let ExprKind::Attribute { base, name: Name { text: "shape", .. } } = &base.kind {
            return self.extent_of(base, items, range);
        }
        let x = self.tensor_of(base)?;
        let mut selectors = Vec::with_capacity(items.len());
        for item in items {
            selectors.push(self.selector(item)?);
        }
        if let [Selector::Mask(mask)] = selectors.as_slice() {
            return Ok(Value::Tensor(self.masked(x, *mask, range)?));
        }
        if selectors.iter().any(|selector| matches!(selector, Selector::Mask(_))) {
            return Err(error(range, "a mask beside other indices").help("apply the mask first: `x[mask]`").into());
        }
        self.sliced(x, &selectors, range)
    }

    /// `x.shape[k]`.
    fn extent_of(&mut self, base: &Expr<'a>, items: &[Item<'a>], range: Range) -> Lowered<Value> {
        let x = self.tensor_of(base)?;
        let [Item::At(which)] = items else {
            return Err(error(range, "a shape is indexed by the number of one axis").into());
        };
        let axis = self.whole(which, "an axis")?;
        let ty = self.ty(x);
        let axis = build::normalize_axis(axis, ty.rank()).at(range)?;
        Ok(self.extent_value(ty.shape[axis]))
    }

    /// Items on the left: slices and numbers only.
    pub(super) fn basic_items(&mut self, target: Name<'a>, items: &[Item<'a>]) -> Lowered<Vec<SliceItem>> {
        let mut selectors = Vec::with_capacity(items.len());
        for item in items {
            selectors.push(self.selector(item)?);
        }
        let mut basic = Vec::with_capacity(items.len());
        for (item, selector) in items.iter().zip(&selectors) {
            match selector {
                Selector::Basic(item) => basic.push(*item),
                Selector::Gather(at) if self.ty(*at).rank() == 0 => {
                    let known =
                        |s: &Selector| matches!(s, Selector::Basic(SliceItem::Slice { .. } | SliceItem::Index(_)));
                    let wrong = error(item.range(), "a position that only the run knows beside slices on the left");
                    // An ellipsis or a new axis would shift the letters of the example.
                    let plain = selectors.iter().all(|s| known(s) || matches!(s, Selector::Gather(_)));
                    return Err(match plain {
                        true => wrong.help(where_equal(target.text, selectors.iter().map(|s| !known(s)))).into(),
                        false => wrong.help("write an index for every axis, and compare it after `where`").into(),
                    });
                }
                Selector::Gather(_) => {
                    return Err(error(item.range(), "an index tensor beside slices on the left")
                        .help("several of its elements may be equal; say how they combine: `y[at[i], j] += x[i, j]`")
                        .into());
                }
                Selector::Mask(_) => {
                    return Err(error(item.range(), "a mask beside slices on the left")
                        .help("write an index for every axis, and the condition after `where`")
                        .into());
                }
            }
        }
        Ok(basic)
    }

    fn selector(&mut self, item: &Item<'a>) -> Lowered<Selector> {
        match item {
            Item::Ellipsis(_) => Ok(Selector::Basic(SliceItem::Ellipsis)),
            Item::Slice { start, stop, step, .. } => {
                let start = start.as_ref().map(|expr| self.whole(expr, "the start of a slice")).transpose()?;
                let stop = stop.as_ref().map(|expr| self.whole(expr, "the end of a slice")).transpose()?;
                let step = step.as_ref().map_or(Ok(1), |expr| self.whole(expr, "the step of a slice"))?;
                Ok(Selector::Basic(SliceItem::Slice { start, stop, step }))
            }
            Item::At(Expr { kind: ExprKind::Name("newaxis"), .. }) if self.scopes.get("newaxis").is_none() => {
                Ok(Selector::Basic(SliceItem::NewAxis))
            }
            Item::At(expr) => {
                self.check_not_an_index(expr)?;
                match evaluate(self, expr)? {
                    Value::Literal(value) => match (fold::whole(value), value) {
                        (Some(at), _) => Ok(Selector::Basic(SliceItem::Index(at))),
                        _ => Err(error(expr.range, format!("an index must be a whole number, not {value}")).into()),
                    },
                    Value::Tensor(tensor) => match self.ty(tensor).dtype {
                        dtype if dtype.is_integer() => Ok(Selector::Gather(tensor)),
                        DType::Bool => Ok(Selector::Mask(tensor)),
                        dtype => Err(error(expr.range, format!("an index tensor of type {dtype}"))
                            .help("integers choose elements, bools mask them")
                            .into()),
                    },
                }
            }
        }
    }

    /// A name alone that means nothing was probably meant as an index.
    fn check_not_an_index(&self, expr: &Expr<'a>) -> Lowered<()> {
        if let ExprKind::Name(text) = expr.kind
            && self.scopes.get(text).is_none()
        {
            let wrong = error(expr.range, format!("the index `{text}` is not bound"));
            return Err(wrong
                .help(format!("put it on the left: `y[{text}] = ..`, or reduce over it: `sum[{text}](..)`"))
                .into());
        }
        Ok(())
    }

    /// Slices first, then gathers along the axes that are left.
    fn sliced(&mut self, x: ValueId, selectors: &[Selector], range: Range) -> Lowered<Value> {
        let rank = self.ty(x).rank();
        let taken =
            selectors.iter().filter(|s| !matches!(s, Selector::Basic(SliceItem::NewAxis | SliceItem::Ellipsis)));
        let missing = rank.saturating_sub(taken.count());
        let (mut basic, mut gathered) = (Vec::with_capacity(selectors.len()), Vec::new());
        let mut axis = 0;
        for selector in selectors {
            let (item, axes) = match selector {
                Selector::Basic(item @ SliceItem::Index(_)) => (*item, 0),
                Selector::Basic(item @ SliceItem::Ellipsis) => (*item, missing),
                Selector::Basic(item) => (*item, 1),
                Selector::Gather(index) | Selector::Mask(index) => {
                    gathered.push((axis, *index));
                    (SliceItem::FULL, 1)
                }
            };
            basic.push(item);
            axis += axes;
        }
        let ty = self.ty(x).clone();
        let op = build::slice(&ty, &basic).at(range)?;
        let unchanged = basic.iter().all(|item| matches!(item, &SliceItem::FULL | SliceItem::Ellipsis));
        let x = if unchanged { x } else { self.push1(op, &[x], range)? };
        if gathered.is_empty() {
            return Ok(Value::Tensor(x));
        }
        let (axes, indices): (Vec<usize>, Vec<ValueId>) = gathered.into_iter().unzip();
        if axes.windows(2).any(|pair| pair[1] != pair[0] + 1) {
            return Err(error(range, "index tensors with slices between them")
                .help("index one axis after the other")
                .into());
        }
        let indices = self.broadcast_together(&indices, range)?;
        self.gathered(x, &indices, &axes, Edge::Error, range).map(Value::Tensor)
    }

    /// `data[.., index, ..]`.
    pub(crate) fn gathered(
        &mut self,
        x: ValueId,
        indices: &[ValueId],
        axes: &[usize],
        edge: Edge,
        range: Range,
    ) -> Lowered<ValueId> {
        let types: Vec<&TensorType> = indices.iter().map(|&index| self.ty(index)).collect();
        let joined = build::gather(self.ty(x), &types, axes, edge).at(range)?;
        let operands = std::iter::once(x).chain(indices.iter().copied()).collect();
        self.joined(joined, operands, range)
    }

    fn broadcast_together(&mut self, values: &[ValueId], range: Range) -> Lowered<Vec<ValueId>> {
        let shapes: Vec<&[Extent]> = values.iter().map(|&value| self.ty(value).shape.as_slice()).collect();
        let shape = build::broadcast_shapes(&shapes).at(range)?;
        let mut results = Vec::with_capacity(values.len());
        for &value in values {
            let ty = self.ty(value).clone();
            results.push(if ty.shape == shape {
                value
            } else {
                let op = build::broadcast_to(&ty, &shape).at(range)?;
                self.push1(op, &[value], range)?
            });
        }
        Ok(results)
    }

    /// `x[mask]`: the elements (or, for a mask of lower rank, the slices) under the mask.
    fn masked(&mut self, x: ValueId, mask: ValueId, range: Range) -> Lowered<ValueId> {
        let (data, cover) = (self.ty(x).clone(), self.ty(mask).clone());
        if cover.rank() == 0 || cover.rank() > data.rank() || data.shape[..cover.rank()] != cover.shape {
            let (a, b) = (build::display_shape(&cover.shape), build::display_shape(&data.shape));
            return Err(error(range, format!("a mask of shape {a} for a tensor of shape {b}"))
                .help("a mask has the shape of the first axes of what it masks")
                .into());
        }
        let extent = self.count_true(mask, range)?;
        self.push1(Op::Compact { extent, counts: None }, &[mask, x], range)
    }

    /// How many elements of a mask are true, as an extent.
    fn count_true(&mut self, mask: ValueId, range: Range) -> Lowered<Extent> {
        let op = build::reduce(self.ty(mask), Reduction::Count, None, false).at(range)?;
        let count = self.push1(op, &[mask], range)?;
        let resolved = self.push1(Op::Resolve, &[count], range)?;
        Ok(self.emitter.extent_of(resolved))
    }

    /// Coordinates of the true elements of a mask along some axes.
    pub(super) fn coordinates(&mut self, mask: ValueId, axes: &[usize], range: Range) -> Lowered<Vec<ValueId>> {
        let extent = self.count_true(mask, range)?;
        let shape = self.ty(mask).shape.clone();
        let mut args = vec![mask];
        for &axis in axes {
            args.push(self.push1(build::coordinate(&shape, axis), &[], range)?);
        }
        Ok(self.emitter.push(Op::Compact { extent, counts: None }, &args, &range.span())?)
    }
}
