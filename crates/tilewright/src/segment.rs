//! Segments: straight-line pieces of a program in which every extent is known.
//!
//! A segment is a program of its own. What earlier segments computed comes in as inputs with the tiling it has; what later ones need goes out.
//! Its structure, types and spans are the key of the session's cache, so the body of a loop is planned once.

use std::collections::{BTreeMap, HashMap};
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use tw_ir::error::{Error, Result};
use tw_ir::program::{Node, Op, Program, Source, TensorType, ValueId};
use tw_ir::{Span, Tiling};

use crate::io::Input;
use crate::stored::Stored;

/// A segment ready to be planned: its program and what its inputs are bound to.
pub(crate) struct Segment {
    pub(crate) key: SegmentKey,
    pub(crate) inputs: BTreeMap<String, Input>,
}

/// What the cache compares. Spans take part, so that an error always names the line that was really run.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct SegmentKey {
    pub(crate) program: Program,
    spans: Vec<Span>,
}

impl Hash for SegmentKey {
    fn hash<H: Hasher>(&self, state: &mut H) {
        // Nodes carry nearly all of the structure; spans only tell rare twins apart, which equality does.
        self.program.hash(state);
    }
}

/// Builds a segment out of nodes of a larger program.
pub(crate) struct SegmentBuilder<'a> {
    outer: &'a Program,
    bound: &'a BTreeMap<String, Input>,
    computed: &'a HashMap<ValueId, Arc<Stored>>,
    extents: &'a HashMap<ValueId, u64>,
    program: Program,
    map: HashMap<ValueId, ValueId>,
    inputs: BTreeMap<String, Input>,
}

impl<'a> SegmentBuilder<'a> {
    pub(crate) fn new(
        outer: &'a Program,
        bound: &'a BTreeMap<String, Input>,
        computed: &'a HashMap<ValueId, Arc<Stored>>,
        extents: &'a HashMap<ValueId, u64>,
    ) -> SegmentBuilder<'a> {
        let (program, map, inputs) = (Program::new(), HashMap::new(), BTreeMap::new());
        SegmentBuilder { outer, bound, computed, extents, program, map, inputs }
    }

    /// Adds a node; values of earlier segments become inputs.
    pub(crate) fn node(&mut self, node: &Node) -> Result<()> {
        let args: Vec<ValueId> = node.args.iter().map(|&value| self.value(value)).collect::<Result<_>>()?;
        if let Op::Source(Source::Input { name, ty }) = &node.op {
            let value = self.outer_input(name, ty, &node.span)?;
            self.bind(node.results[0], value);
            return Ok(());
        }
        let known = |value: ValueId| self.extents.get(&value).copied();
        let op = node.op.resolve(&known);
        let types: Vec<TensorType> = node.results.iter().map(|&value| self.outer.ty(value).resolve(&known)).collect();
        for ty in &types {
            // A shape that has just become known may be too large to count.
            tw_ir::program::verify_type(ty).map_err(|error| error.at(&node.span))?;
        }
        let results: Vec<ValueId> = types.into_iter().map(|ty| self.program.new_value(ty)).collect();
        for (&old, &new) in node.results.iter().zip(&results) {
            self.bind(old, new);
        }
        self.program.body.nodes.push(Node { op, args, results, span: node.span.clone() });
        Ok(())
    }

    /// Asks for a value as an output.
    pub(crate) fn output(&mut self, value: ValueId) -> Result<()> {
        let inner = self.value(value)?;
        self.program.output(value.to_string(), inner);
        Ok(())
    }

    pub(crate) fn finish(self) -> Segment {
        let spans = self.program.body.nodes.iter().map(|node| node.span.clone()).collect();
        Segment { key: SegmentKey { program: self.program, spans }, inputs: self.inputs }
    }

    fn bind(&mut self, old: ValueId, new: ValueId) {
        self.program.values[new].name = self.outer.values[old].name.clone();
        self.map.insert(old, new);
    }

    fn value(&mut self, value: ValueId) -> Result<ValueId> {
        if let Some(&inner) = self.map.get(&value) {
            return Ok(inner);
        }
        let stored =
            self.computed.get(&value).ok_or_else(|| Error::internal(format!("{value} has not been computed")))?;
        let ty = TensorType { fill: self.outer.ty(value).fill, ..stored.ty() };
        let inner = self.input(value.to_string(), ty, Input::Stored(stored.clone()), &Span::None)?;
        self.bind(value, inner);
        Ok(inner)
    }

    /// An input of the user: checked against its declaration, and cut as the declaration says.
    fn outer_input(&mut self, name: &str, declared: &TensorType, span: &Span) -> Result<ValueId> {
        let bound = self
            .bound
            .get(name)
            .ok_or_else(|| Error::source(format!("input `{name}` is not bound to any data")).at(span))?;
        let (dtype, shape) = bound.header();
        let given = TensorType::known(dtype, &shape);
        if !given.same_shape(declared) {
            let declared = TensorType { tiling: None, ..declared.clone() };
            return Err(
                Error::source(format!("input `{name}` is declared as {declared}, but the data is {given}")).at(span)
            );
        }
        let wanted = declared.tiling.clone();
        let has = match bound {
            Input::Stored(stored) => Some(Tiling::Grid(stored.grid().to_vec())),
            _ => wanted.clone(),
        };
        let ty = TensorType { tiling: has.clone(), ..declared.clone() };
        let value = self.input(name.to_string(), ty, bound.clone(), span)?;
        match wanted {
            Some(tiling) if Some(&tiling) != has.as_ref() => self.program.push1(Op::Retile { tiling }, &[value], span),
            _ => Ok(value),
        }
    }

    fn input(&mut self, name: String, ty: TensorType, bound: Input, span: &Span) -> Result<ValueId> {
        self.inputs.insert(name.clone(), bound);
        self.program.push1(Op::Source(Source::Input { name, ty }), &[], span)
    }
}
