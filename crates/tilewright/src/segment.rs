//! Segments: straight-line pieces of a program in which every extent is known.
//!
//! A segment is a program of its own. What earlier segments computed comes in as inputs with the tiling it has; what later ones need goes out.
//! Its structure, types and spans are the key of the session's cache, so the body of a loop is planned once. Building one takes types alone,
//! so that explain sees the same segments as a run.

use std::collections::HashMap;
use std::hash::{Hash, Hasher};

use tw_ir::Span;
use tw_ir::error::{Error, Result};
use tw_ir::program::{Node, Op, Program, Source, TensorType, ValueId};

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
}

impl SegmentKey {
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
    /// The value of a resolved scalar.
    fn extent(&self, value: ValueId) -> Option<u64>;
}

/// Builds a segment out of nodes of a larger program.
pub(crate) struct SegmentBuilder<'a> {
    outer: &'a Program,
    around: &'a dyn Surroundings,
    program: Program,
    map: HashMap<ValueId, ValueId>,
    taken: Vec<(String, Taken)>,
}

impl<'a> SegmentBuilder<'a> {
    pub(crate) fn new(outer: &'a Program, around: &'a dyn Surroundings) -> SegmentBuilder<'a> {
        SegmentBuilder { outer, around, program: Program::new(), map: HashMap::new(), taken: Vec::new() }
    }

    /// Adds a node; values of earlier segments become inputs.
    pub(crate) fn node(&mut self, node: &Node) -> Result<()> {
        let args: Vec<ValueId> = node.args.iter().map(|&value| self.value(value)).collect::<Result<_>>()?;
        if let Op::Source(Source::Input { name, ty }) = &node.op {
            let value = self.outer_input(name, ty, &node.span)?;
            self.bind(node.results[0], value);
            return Ok(());
        }
        let known = |value: ValueId| self.around.extent(value);
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
        Segment { key: SegmentKey { program: self.program, spans }, taken: self.taken }
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
        Ok(self.program.push_source(Source::Input { name, ty: ty.clone() }, ty, span))
    }
}
