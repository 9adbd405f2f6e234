//! Scalar expressions over indices, resolved but not yet typed.

use std::collections::BTreeSet;
use std::rc::Rc;

use tw_ir::{BinaryOp, DType, Edge, Idx, Scalar, Term, UnaryOp, ValueId};

use super::affine;
use crate::token::Range;
use tw_build::Reduction;

/// A literal or a node of a body.
#[derive(Clone, Copy, Debug)]
pub(super) enum Cell {
    Literal(Scalar),
    Node(u32),
}

/// One operation of a body.
pub(super) enum Node {
    Variable(u32),
    Read(u32),
    Unary(UnaryOp, Cell),
    Not(Cell),
    Binary(BinaryOp, Cell, Cell),
    Logical(BinaryOp, Cell, Cell),
    Select(Cell, Cell, Cell),
    Cast(DType, Cell),
    Reduce(Box<Reduced>),
}

/// Operations in order; operands come before what uses them.
#[derive(Default)]
pub(super) struct Body {
    pub(super) nodes: Vec<(Node, Range)>,
}

/// A reduction over some indices.
pub(super) struct Reduced {
    pub(super) kind: Reduction,
    pub(super) variables: Vec<u32>,
    pub(super) body: Body,
    pub(super) root: Cell,
    pub(super) guard: Option<Cell>,
    pub(super) range: Range,
}

/// An operand read at a point.
pub(super) struct Read {
    pub(super) source: ReadSource,
    pub(super) idx: Vec<Idx>,
    pub(super) edge: Edge,
    pub(super) range: Range,
}

/// The source of a read.
pub(super) enum ReadSource {
    Value(ValueId),
    /// A tensor at computed positions. The indices of the read are those of the axes that are not gathered.
    Gather(Rc<Gathered>),
}

/// Axes of a tensor read at positions that are not affine in the indices.
pub(super) struct Gathered {
    pub(super) data: ValueId,
    pub(super) axes: Vec<usize>,
    /// One body per axis, with the position it computes.
    pub(super) positions: Vec<(Body, Cell)>,
    pub(super) edge: Edge,
}

impl Body {
    /// Appends an operation.
    pub(super) fn push(&mut self, node: Node, range: Range) -> Cell {
        self.nodes.push((node, range));
        Cell::Node(self.nodes.len() as u32 - 1)
    }

    /// Appends the value of an index expression.
    pub(super) fn affine(&mut self, idx: &Idx, range: Range) -> Cell {
        let mut sum = Cell::Literal(Scalar::I64(idx.offset()));
        for (term, factor) in idx.terms() {
            let value = match term {
                Term::Var(v) => self.push(Node::Variable(v.0), range),
                Term::Div(inner, n) | Term::Mod(inner, n) => {
                    let op = if matches!(term, Term::Div(..)) { BinaryOp::FloorDiv } else { BinaryOp::Mod };
                    let inner = self.affine(inner, range);
                    self.push(Node::Binary(op, inner, Cell::Literal(Scalar::I64(*n))), range)
                }
                Term::Table(..) => unreachable!("no program text makes a table"),
            };
            let scaled = self.push(Node::Binary(BinaryOp::Mul, value, Cell::Literal(Scalar::I64(*factor))), range);
            sum = self.push(Node::Binary(BinaryOp::Add, sum, scaled), range);
        }
        sum
    }

    /// Adds the indices that the body uses and does not bind itself.
    pub(super) fn free_variables(&self, reads: &[Read], into: &mut BTreeSet<u32>) {
        for (node, _) in &self.nodes {
            match node {
                Node::Variable(v) => into.extend([*v]),
                Node::Read(k) => reads[*k as usize].free_variables(reads, into),
                Node::Reduce(reduced) => into.extend(reduced.free_variables(reads)),
                _ => {}
            }
        }
    }
}

impl Reduced {
    /// The indices from outside that the reduction uses.
    pub(super) fn free_variables(&self, reads: &[Read]) -> BTreeSet<u32> {
        let mut free = BTreeSet::new();
        self.body.free_variables(reads, &mut free);
        free.retain(|v| !self.variables.contains(v));
        free
    }
}

impl Read {
    fn free_variables(&self, reads: &[Read], into: &mut BTreeSet<u32>) {
        self.idx.iter().for_each(|idx| affine::variables(idx, into));
        if let ReadSource::Gather(gathered) = &self.source {
            gathered.positions.iter().for_each(|(body, _)| body.free_variables(reads, into));
        }
    }
}
