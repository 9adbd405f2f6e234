//! Segments: straight-line pieces of a program in which every extent is known.
//!
//! A segment is a program of its own. What earlier segments computed comes in as inputs with the tiling it has; what later ones need goes out.
//! Its structure, types and spans are the key of the session's cache, so the body of a loop is planned once. Building one takes types alone,
//! so that explain sees the same segments as a run.

use std::hash::{Hash, Hasher};

use rustc_hash::FxHashMap;
use tw_ir::error::{Error, Result};
use tw_ir::program::{ExtentId, MaskCounts, Node, Op, Program, SourceOp, TensorType, ValueId, mask_pieces};
use tw_ir::{Axis, Grid, Span, Tiling};
use tw_place::Before;

/// A segment ready to be planned: its program and what its inputs stand for.
pub(crate) struct Segment {
    pub(crate) key: SegmentKey,
    pub(crate) taken: Vec<(String, Taken)>,
}

/// What an input of a segment stands for.
pub(crate) enum Taken {
    /// An input of the user, by name.
    Input,
    /// A value of an earlier segment.
    Value(ValueId),
}

/// What the cache compares. Spans take part, so that an error always names the line that was really run.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct SegmentKey {
    pub(crate) program: Program,
    spans: Vec<Span>,
    /// On a cluster, the scheduler and what workers hold when the segment begins.
    pub(crate) placement: Option<(&'static str, Before)>,
}

impl SegmentKey {
    /// The key of a segment with this program.
    pub(crate) fn of(program: Program) -> SegmentKey {
        let spans = program.body.nodes.iter().map(|node| node.span).collect();
        SegmentKey { program, spans, placement: None }
    }

    /// False if no other segment can be equal, because a function was made for this one.
    pub(crate) fn is_lasting(&self) -> bool {
        let mut nodes = self.program.body.nodes.iter();
        nodes.all(|node| !matches!(&node.op, Op::BlockFn(call) if !call.function.0.is_lasting()))
    }
}

impl Hash for SegmentKey {
    fn hash<H: Hasher>(&self, state: &mut H) {
        // Nodes carry nearly all of the structure; spans only tell rare twins apart, which equality does.
        self.program.hash(state);
    }
}

/// What is known where a segment begins.
pub(crate) trait Surroundings {
    /// The type of a value that an earlier segment computed, with the tiling it has.
    fn computed(&self, value: ValueId) -> Option<TensorType>;
    /// The type of the data bound to an input, with its tiling if the data is cut already.
    fn bound(&self, name: &str) -> Option<TensorType>;
    /// The number that a deferred extent has been resolved to.
    fn extent(&self, extent: ExtentId) -> Option<u64>;
    /// The elements of a mask that one task should look at.
    fn piece_elements(&self) -> u64;
    /// How many elements the pieces of a computed mask take, `total` in all if that has been resolved.
    fn counts(&self, mask: ValueId, pieces: Grid, total: Option<u64>) -> Result<MaskCounts>;
}

/// The mask that must have been computed before a segment with this node is planned: tasks are found from how often its pieces hold. A mask of one
/// piece need not be.
pub(crate) fn counted_mask(outer: &Program, around: &dyn Surroundings, node: &Node) -> Option<ValueId> {
    matches!(node.op, Op::Compact { .. } | Op::Expand { .. }).then_some(())?;
    let shape = outer.ty(node.args[0]).resolve(&|id| around.extent(id)).known_shape()?;
    let row = |&data: &ValueId| {
        let data = outer.ty(data).resolve(&|id| around.extent(id)).known_shape()?;
        let rest = data.get(shape.len()..).unwrap_or_default();
        Some(rest.iter().fold(1u64, |n, &extent| n.saturating_mul(extent)))
    };
    let row = node.args[1..].iter().filter_map(row).max().unwrap_or(1).max(1);
    let n = shape.iter().fold(row, |n, &extent| n.saturating_mul(extent));
    (n > around.piece_elements()).then_some(node.args[0])
}

/// A segment that cuts a value otherwise, and its result.
pub(crate) fn retiling(
    name: &str,
    ty: &TensorType,
    tiling: Tiling,
    span: Option<&Span>,
) -> Result<(SegmentKey, ValueId)> {
    let span = span.unwrap_or(&Span::None);
    let mut program = Program::new();
    let value = program.push_source(SourceOp::Input { name: name.to_string(), ty: ty.clone() }, ty.clone(), span);
    let result = program.push1(Op::Retile { tiling }, &[value], span)?;
    program.output(name, result);
    Ok((SegmentKey::of(program), result))
}

/// Builds a segment out of nodes of a larger program.
pub(crate) struct SegmentBuilder<'a> {
    outer: &'a Program,
    around: &'a dyn Surroundings,
    program: Program,
    map: FxHashMap<ValueId, ValueId>,
    taken: Vec<(String, Taken)>,
}

impl<'a> SegmentBuilder<'a> {
    pub(crate) fn new(outer: &'a Program, around: &'a dyn Surroundings) -> SegmentBuilder<'a> {
        SegmentBuilder { outer, around, program: Program::new(), map: FxHashMap::default(), taken: Vec::new() }
    }

    /// Adds a node; values of earlier segments become inputs.
    pub(crate) fn node(&mut self, node: &Node) -> Result<()> {
        let args: Vec<ValueId> = node.args.iter().map(|&value| self.value(value)).collect::<Result<_>>()?;
        if let Op::Source(SourceOp::Input { name, ty }) = &node.op {
            let value = self.outer_input(name, ty, &node.span)?;
            self.bind(node.results[0], value);
            return Ok(());
        }
        let known = |id: ExtentId| self.around.extent(id);
        let mut op = node.op.resolve(&known);
        match &mut op {
            Op::Compact { extent, counts } => *counts = self.counts(node, extent.known())?,
            // There are as many places as values.
            Op::Expand { counts } => {
                let values = self.outer.ty(node.args[1]).resolve(&known).known_shape();
                *counts = self.counts(node, values.and_then(|shape| shape.first().copied()))?;
            }
            _ => {}
        }
        let types: Vec<TensorType> = node.results.iter().map(|&value| self.outer.ty(value).resolve(&known)).collect();
        for ty in &types {
            // A shape that has just become known may be too large to count.
            tw_ir::program::verify_type(ty).map_err(|error| error.at(&node.span))?;
        }
        let results: Vec<ValueId> = types.into_iter().map(|ty| self.program.new_value(ty)).collect();
        for (&old, &new) in node.results.iter().zip(&results) {
            self.bind(old, new);
        }
        self.program.body.nodes.push(Node { op, args, results, span: node.span });
        Ok(())
    }

    /// How often the pieces of the mask of a node hold, unless the mask is one piece.
    fn counts(&self, node: &Node, total: Option<u64>) -> Result<Option<MaskCounts>> {
        let Some(mask) = counted_mask(self.outer, self.around, node) else { return Ok(None) };
        let computed = |value: &ValueId| self.around.computed(*value);
        let Some(ty) = computed(&mask) else { return Err(Error::internal(format!("{mask} has not been counted"))) };
        let shape = ty.require_shape()?;
        let types: Vec<TensorType> = [ty].into_iter().chain(node.args[1..].iter().filter_map(computed)).collect();
        let grid = |ty: &TensorType| Some(ty.tiling.as_ref()?.grid()?.get(..shape.len())?.to_vec());
        let grids: Vec<Vec<Axis>> = types.iter().filter_map(grid).collect();
        let grids: Vec<&[Axis]> =
            grids.iter().map(Vec::as_slice).filter(|grid| grid.iter().map(Axis::extent).eq(shape.clone())).collect();
        let n = shape.iter().fold(1u64, |n, &extent| n.saturating_mul(extent));
        let all = types
            .iter()
            .filter_map(TensorType::known_shape)
            .map(|shape| shape.iter().fold(1u64, |n, &extent| n.saturating_mul(extent)));
        // Rows are as long as the data under the mask says.
        let row = (all.max().unwrap_or(n) / n.max(1)).max(1);
        let pieces = mask_pieces(&shape, &grids, (self.around.piece_elements() / row).max(1));
        self.around.counts(mask, pieces, total).map(Some).map_err(|error| error.at(&node.span))
    }

    /// Asks for a value as an output.
    pub(crate) fn output(&mut self, value: ValueId) -> Result<()> {
        let inner = self.value(value)?;
        self.program.output(value.to_string(), inner);
        Ok(())
    }

    pub(crate) fn finish(self) -> Segment {
        Segment { key: SegmentKey::of(self.program), taken: self.taken }
    }

    fn bind(&mut self, old: ValueId, new: ValueId) {
        self.program.values[new].name = self.outer.values[old].name.clone();
        self.map.insert(old, new);
    }

    fn value(&mut self, value: ValueId) -> Result<ValueId> {
        if let Some(&inner) = self.map.get(&value) {
            return Ok(inner);
        }
        let computed =
            self.around.computed(value).ok_or_else(|| Error::internal(format!("{value} has not been computed")))?;
        let ty = TensorType { fill: self.outer.ty(value).fill, ..computed };
        let inner = self.input(value.to_string(), ty, Taken::Value(value), &Span::None)?;
        self.bind(value, inner);
        Ok(inner)
    }

    /// An input of the user: checked against its declaration, and cut as the declaration says.
    fn outer_input(&mut self, name: &str, declared: &TensorType, span: &Span) -> Result<ValueId> {
        let given = self
            .around
            .bound(name)
            .ok_or_else(|| Error::source(format!("input `{name}` is not bound to any data")).at(span))?;
        if !given.same_shape(declared) {
            let plain = |ty: &TensorType| TensorType { tiling: None, ..ty.clone() };
            let (declared, given) = (plain(declared), plain(&given));
            return Err(
                Error::source(format!("input `{name}` is declared as {declared}, but the data is {given}")).at(span)
            );
        }
        let wanted = declared.tiling.clone();
        let has = given.tiling.or_else(|| wanted.clone());
        let ty = TensorType { tiling: has.clone(), ..declared.clone() };
        let value = self.input(name.to_string(), ty, Taken::Input, span)?;
        match wanted {
            Some(tiling) if Some(&tiling) != has.as_ref() => self.program.push1(Op::Retile { tiling }, &[value], span),
            _ => Ok(value),
        }
    }

    fn input(&mut self, name: String, ty: TensorType, taken: Taken, span: &Span) -> Result<ValueId> {
        self.taken.push((name.clone(), taken));
        Ok(self.program.push_source(SourceOp::Input { name, ty: ty.clone() }, ty, span))
    }
}
