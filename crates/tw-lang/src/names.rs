//! What names mean at a place in the program.

use std::collections::HashMap;

use tw_ir::{Scalar, TensorType, ValueId};

/// The meanings of a name.
#[derive(Clone, Debug)]
pub(super) enum Binding {
    /// A parameter: it cannot be assigned.
    Param(Scalar),
    /// A number known while the program is read. It takes part in arithmetic like a literal.
    Literal(Scalar),
    /// A tensor.
    Tensor(ValueId),
    /// Declared, but nothing is assigned yet.
    Declared(TensorType),
    /// Assigned in one branch of an `if` only.
    OneBranch,
    /// Its definition failed.
    Broken,
}

/// Nested scopes: the text itself, then the blocks of loops and branches.
pub(super) struct Scopes<'a> {
    scopes: Vec<HashMap<&'a str, Binding>>,
    /// Names in the order of their first assignment, so that suggestions do not depend on hashing.
    order: Vec<&'a str>,
}

impl<'a> Scopes<'a> {
    pub(super) fn new() -> Scopes<'a> {
        Scopes { scopes: vec![HashMap::new()], order: Vec::new() }
    }

    pub(super) fn get(&self, name: &str) -> Option<&Binding> {
        self.scopes.iter().rev().find_map(|scope| scope.get(name))
    }

    /// Binds a name in the innermost scope.
    pub(super) fn bind(&mut self, name: &'a str, binding: Binding) {
        if self.get(name).is_none() {
            self.order.push(name);
        }
        if let Some(scope) = self.scopes.last_mut() {
            scope.insert(name, binding);
        }
    }

    pub(super) fn enter(&mut self) {
        self.scopes.push(HashMap::new());
    }

    pub(super) fn leave(&mut self) {
        self.scopes.pop();
    }

    /// True outside every block.
    pub(super) fn at_top(&self) -> bool {
        self.scopes.len() == 1
    }

    /// Names that may be read here.
    pub(super) fn readable(&self) -> impl Iterator<Item = &'a str> + '_ {
        let readable = |name: &&'a str| {
            matches!(self.get(name), Some(Binding::Param(_) | Binding::Literal(_) | Binding::Tensor(_)))
        };
        self.order.iter().copied().filter(readable)
    }
}
