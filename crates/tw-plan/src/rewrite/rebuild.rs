//! Builds a program from another, node by node.

use std::collections::HashMap;

use tw_ir::error::{Error, Result};
use tw_ir::program::{Node, Op, Program, Region, ValueId};
use tw_ir::span::Span;

/// A new program under construction and where the values of the old one went.
pub(super) struct Rebuild<'a> {
    from: &'a Program,
    pub(super) to: Program,
    map: HashMap<ValueId, ValueId>,
}

impl<'a> Rebuild<'a> {
    pub(super) fn new(from: &'a Program) -> Rebuild<'a> {
        Rebuild { from, to: Program::new(), map: HashMap::new() }
    }

    /// The new value of each old value.
    pub(super) fn mapped(&self, old: ValueId) -> Result<ValueId> {
        self.map.get(&old).copied().ok_or_else(|| Error::internal(format!("{old} was not rebuilt")))
    }

    pub(super) fn mapped_args(&self, node: &Node) -> Result<Vec<ValueId>> {
        node.args.iter().map(|&value| self.mapped(value)).collect()
    }

    /// Maps an old value to a new one; names move along.
    pub(super) fn bind(&mut self, old: ValueId, new: ValueId) {
        self.map.insert(old, new);
        let info = &mut self.to.values[new];
        if info.name.is_none() {
            info.name = self.from.values[old].name.clone();
        }
    }

    /// Appends an operation for the results of an old node.
    pub(super) fn replace(&mut self, node: &Node, op: Op, args: &[ValueId]) -> Result<Vec<ValueId>> {
        let results = self.to.push(op, args, &node.span)?;
        for (&old, &new) in node.results.iter().zip(&results) {
            self.bind(old, new);
        }
        Ok(results)
    }

    /// Appends a node as it is, with its values renamed.
    pub(super) fn copy(&mut self, node: &Node) -> Result<Vec<ValueId>> {
        let args = self.mapped_args(node)?;
        let results: Vec<ValueId> =
            node.results.iter().map(|&old| self.to.new_value(self.from.ty(old).clone())).collect();
        let copy = Node { op: node.op.clone(), args, results: results.clone(), span: node.span };
        self.to.body.nodes.push(copy);
        for (&old, &new) in node.results.iter().zip(&results) {
            self.bind(old, new);
        }
        Ok(results)
    }

    /// Appends a new operation with one result.
    pub(super) fn push(&mut self, op: Op, args: &[ValueId], span: &Span) -> Result<ValueId> {
        self.to.push1(op, args, span)
    }

    /// Closes the new program with the outputs of the old one.
    pub(super) fn finish(mut self) -> Result<Program> {
        for (name, &old) in self.from.outputs.iter().zip(&self.from.body.results) {
            let new = self.mapped(old)?;
            self.to.output(name.clone(), new);
        }
        Ok(self.to)
    }
}

/// The number of reads of each value; results of the region count as reads.
pub(super) fn n_readers(region: &Region) -> HashMap<ValueId, u32> {
    let mut readers = HashMap::new();
    for value in region.nodes.iter().flat_map(|node| &node.args).chain(&region.results) {
        *readers.entry(*value).or_default() += 1;
    }
    readers
}
