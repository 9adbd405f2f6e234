//! The verifier of programs.
//!
//! Invariants, checked between passes:
//! 1. Every value is made exactly once, before it is read, in its own or an enclosing region, and has a type the engine can hold.
//! 2. Every node's results have the dtype and shape that inference gives.
//! 3. Deferred extents, of results, region parameters and index variables, are told by resolved scalars made earlier. The table of extents names values of the program,
//!    each at most once.
//! 4. A program has one result per output name, and its body takes no parameters.

use std::collections::HashSet;

use super::{Node, Op, Program, Region, ValueId, infer, verify_type};
use crate::error::{Error, Result};
use crate::shape::Extent;

/// Checks every invariant of the module documentation.
pub fn verify(program: &Program) -> Result<()> {
    if !program.body.params.is_empty() || program.body.results.len() != program.outputs.len() {
        return Err(Error::internal("a program takes no parameters and has one result per output name"));
    }
    let mut telling = HashSet::new();
    for (id, extent) in &program.extents {
        if !program.values.is_valid(extent.value) || !telling.insert(extent.value) {
            return Err(Error::internal(format!("{} cannot tell the extent {id}", extent.value)));
        }
    }
    let mut state = State { program, defined: HashSet::new(), made: HashSet::new(), resolved: HashSet::new() };
    state.region(&program.body)
}

struct State<'a> {
    program: &'a Program,
    /// The values in scope.
    defined: HashSet<ValueId>,
    /// All values made so far, also in closed regions.
    made: HashSet<ValueId>,
    resolved: HashSet<ValueId>,
}

impl State<'_> {
    fn region(&mut self, region: &Region) -> Result<()> {
        let outside = (self.defined.clone(), self.resolved.clone());
        for &param in &region.params {
            self.define(param)?;
            self.extents(&self.program.ty(param).shape)?;
        }
        for node in &region.nodes {
            self.node(node).map_err(|error| error.at(&node.span))?;
        }
        for &value in &region.results {
            self.read(value)?;
        }
        (self.defined, self.resolved) = outside;
        Ok(())
    }

    fn node(&mut self, node: &Node) -> Result<()> {
        for &value in &node.args {
            self.read(value)?;
        }
        match &node.op {
            Op::Index(stmt) => stmt.vars.iter().try_for_each(|var| self.extents(&[var.extent]))?,
            Op::While { condition, body } => {
                self.region(condition)?;
                self.region(body)?;
            }
            Op::If { then, otherwise } => {
                self.region(then)?;
                self.region(otherwise)?;
            }
            _ => {}
        }
        let operands: Vec<_> = node.args.iter().map(|&value| self.program.ty(value)).collect();
        let types = infer(&self.program.values, &node.op, &operands)?;
        if types.len() != node.results.len() {
            return Err(Error::internal(format!(
                "{} makes {} results, not {}",
                node.op.name(),
                types.len(),
                node.results.len()
            )));
        }
        for (ty, &value) in types.iter().zip(&node.results) {
            self.define(value)?;
            if !ty.same_shape(self.program.ty(value)) {
                return Err(Error::internal(format!("{value} should be {ty}, but is {}", self.program.ty(value))));
            }
            self.extents(&ty.shape)?;
        }
        if node.op == Op::Resolve {
            self.resolved.extend(&node.results);
        }
        Ok(())
    }

    fn define(&mut self, value: ValueId) -> Result<()> {
        if !self.program.values.is_valid(value) {
            return Err(Error::internal(format!("{value} has no type")));
        }
        verify_type(self.program.ty(value))?;
        self.defined.insert(value);
        if self.made.insert(value) { Ok(()) } else { Err(Error::internal(format!("{value} is made twice"))) }
    }

    fn extents(&self, extents: &[Extent]) -> Result<()> {
        let unresolved = extents.iter().find_map(|extent| match extent {
            Extent::Deferred(id) if self.program.told_by(*extent).is_none_or(|by| !self.resolved.contains(&by)) => {
                Some(id)
            }
            _ => None,
        });
        match unresolved {
            Some(id) => Err(Error::internal(format!("the extent {id} is not resolved"))),
            None => Ok(()),
        }
    }

    fn read(&self, value: ValueId) -> Result<()> {
        if self.defined.contains(&value) {
            Ok(())
        } else {
            Err(Error::internal(format!("{value} is read before it is made")))
        }
    }
}
