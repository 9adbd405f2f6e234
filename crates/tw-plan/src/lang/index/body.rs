//! Scalar expressions over indices, resolved but not yet typed.

use std::collections::{BTreeSet, HashMap};
use std::rc::Rc;

use tw_ir::{BinaryOp, DType, Edge, Error, Extent, Idx, Scalar, Term, UnaryOp, ValueId};

use super::extents::Fact;
use crate::build::Reduction;
use crate::lang::algebra::{Algebra, evaluate};
use crate::lang::ast::{Binder, Expr, ExprKind, Name, Reduce};
use crate::lang::diagnose::{Lowered, error, find_name};
use crate::lang::lower::{Lowering, Value};
use crate::lang::parser::reduction_named;
use crate::lang::token::Range;

/// An index of the statement. All indices of a statement, bound or free, are numbered in one list.
pub(super) struct IndexVariable<'a> {
    pub(super) name: Name<'a>,
    /// Where it starts; the variable of the program starts at 0.
    pub(super) start: i64,
    /// How far it goes, once that is known.
    pub(super) extent: Option<Extent>,
    /// True if the user wrote its range.
    pub(super) explicit: bool,
}

/// More indices than this in one statement are a mistake, and would take long to solve.
const MAX_INDICES: usize = 64;

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

/// What is read.
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

/// A statement being resolved.
pub(super) struct Context<'l, 'a, 'c> {
    pub(super) lowering: &'l mut Lowering<'a, 'c>,
    pub(super) variables: Vec<IndexVariable<'a>>,
    /// Indices that may be used here: those of the left side, then those that the assignment itself binds, then those of reductions around
    /// this place, innermost last.
    pub(super) active: Vec<u32>,
    /// How many of them are on the left.
    pub(super) n_left: usize,
    /// How many of them are not bound by reductions.
    pub(super) n_free: usize,
    /// Ranges written after the statement, for indices declared later; with whether one used them.
    pub(super) ranges: Vec<(Name<'a>, i64, Extent, bool)>,
    /// True where an unknown index on the right is bound by the assignment itself, as with `+=`.
    pub(super) implicit: bool,
    pub(super) facts: Vec<Fact>,
    pub(super) reads: Vec<Read>,
    /// Reads by what they read, so that equal ones are shared.
    pub(super) shared_reads: HashMap<(ValueId, Vec<Idx>, Edge), u32>,
    pub(super) body: Body,
}

impl<'l, 'a, 'c> Context<'l, 'a, 'c> {
    pub(super) fn new(lowering: &'l mut Lowering<'a, 'c>) -> Context<'l, 'a, 'c> {
        Context {
            lowering,
            variables: Vec::new(),
            active: Vec::new(),
            n_left: 0,
            n_free: 0,
            ranges: Vec::new(),
            implicit: false,
            facts: Vec::new(),
            reads: Vec::new(),
            shared_reads: HashMap::new(),
            body: Body::default(),
        }
    }

    /// The index of this name, if it may be used here.
    pub(super) fn variable_named(&self, name: &str) -> Option<u32> {
        self.active.iter().rev().copied().find(|&v| self.variables[v as usize].name.text == name)
    }

    /// Makes a name an index. Its range is the given one, or one written after the statement, or follows from accesses.
    pub(super) fn declare(&mut self, name: Name<'a>, range: Option<(i64, Extent)>) -> Lowered<u32> {
        if self.lowering.scopes.get(name.text).is_some() {
            return Err(error(name.range, format!("`{}` is a value already and cannot be an index", name.text))
                .help("choose another name for the index")
                .into());
        }
        if self.variable_named(name.text).is_some() {
            return Err(error(name.range, format!("the index `{}` is bound already", name.text)).into());
        }
        if self.variables.len() == MAX_INDICES {
            return Err(error(name.range, format!("a statement with more than {MAX_INDICES} indices")).into());
        }
        let range = range.or_else(|| {
            let written = self.ranges.iter_mut().find(|(given, ..)| given.text == name.text)?;
            written.3 = true;
            Some((written.1, written.2))
        });
        let (start, extent) = range.map_or((0, None), |(start, extent)| (start, Some(extent)));
        let id = self.variables.len() as u32;
        self.variables.push(IndexVariable { name, start, extent, explicit: range.is_some() });
        self.active.push(id);
        Ok(id)
    }

    /// Makes an unknown name an index that the assignment itself binds, outside every reduction.
    pub(super) fn declare_implicit(&mut self, name: Name<'a>) -> Lowered<u32> {
        let id = self.declare(name, None)?;
        let position = self.active.len() - 1;
        self.active[self.n_free..=position].rotate_right(1);
        self.n_free += 1;
        Ok(id)
    }

    /// The start and length of `a..b`.
    pub(super) fn written_range(&mut self, binder: &Binder<'a>) -> Lowered<Option<(i64, Extent)>> {
        let Some((from, to)) = &binder.range else { return Ok(None) };
        let start = self.lowering.whole(from, "the start of a range")?;
        let place = from.range.to(to.range);
        match self.lowering.extent(to)? {
            Extent::Known(end) => {
                let length = (end as i128 - start as i128).max(0);
                let length = u64::try_from(length).map_err(|_| error(place, "the range is too long"))?;
                Ok(Some((start, Extent::Known(length))))
            }
            Extent::Deferred(_) if start != 0 => {
                Err(error(place, "a range that ends at an extent that depends on data must start at 0").into())
            }
            extent => Ok(Some((0, extent))),
        }
    }

    pub(super) fn push(&mut self, node: Node, range: Range) -> Cell {
        self.body.push(node, range)
    }

    /// Resolves an expression into a body of its own.
    pub(super) fn separate(
        &mut self,
        resolve: impl FnOnce(&mut Self) -> Lowered<(Cell, Option<Cell>)>,
    ) -> Lowered<(Body, Cell, Option<Cell>)> {
        let outer = std::mem::take(&mut self.body);
        let resolved = resolve(self);
        let body = std::mem::replace(&mut self.body, outer);
        resolved.map(|(root, guard)| (body, root, guard))
    }

    /// Resolves `sum[k](..)`. Reductions of one kind directly inside each other are one. `guard` is a further condition in its scope.
    pub(super) fn reduction(
        &mut self,
        reduce: &Reduce<'a>,
        guard: Option<&Expr<'a>>,
        range: Range,
    ) -> Lowered<Reduced> {
        let kind = reduction_named(reduce.function.text)
            .ok_or_else(|| Error::internal(format!("`{}` is not a reduction", reduce.function.text)))?;
        let n_bound = self.active.len() - self.n_free;
        let resolved = self.separate(|context| {
            let mut guards: Vec<&Expr<'a>> = guard.into_iter().collect();
            let mut innermost = reduce;
            loop {
                for binder in &innermost.binders {
                    let range = context.written_range(binder)?;
                    context.declare(binder.name, range)?;
                }
                if innermost.binders.is_empty() {
                    let name = innermost.function.text;
                    return Err(error(innermost.function.range, format!("`{name}[]` reduces over no index"))
                        .help(format!("name at least one: `{name}[k](..)`"))
                        .into());
                }
                guards.extend(&innermost.guard);
                match &innermost.body.kind {
                    ExprKind::Reduce(inner)
                        if associates(kind) && reduction_named(inner.function.text) == Some(kind) =>
                    {
                        innermost = inner;
                    }
                    _ => break,
                }
            }
            let root = evaluate(context, &innermost.body)?;
            let mut condition = None;
            for guard in guards {
                let next = evaluate(context, guard)?;
                condition = Some(match condition {
                    None => next,
                    Some(before) => context.logical(BinaryOp::And, before, next, guard.range)?,
                });
            }
            Ok((root, condition))
        });
        let variables = self.active.split_off(self.n_free + n_bound);
        let (body, root, guard) = resolved?;
        Ok(Reduced { kind, variables, body, root, guard, range })
    }

    /// A scalar from an expression on whole tensors, which must not use indices.
    fn whole_tensor_scalar(&mut self, expr: &Expr<'a>) -> Lowered<Cell> {
        let active: Vec<&str> = self.active.iter().map(|&v| self.variables[v as usize].name.text).collect();
        if let Some(index) = find_name(expr, &mut |name| active.contains(&name)) {
            if let ExprKind::Call { function, .. } = &expr.kind
                && self.lowering.function_named(function.text).is_none()
            {
                return Err(self.lowering.unknown_function(*function));
            }
            let text = format!("this works on whole tensors, but uses the index `{}`", index.text);
            let wrong = error(expr.range, text);
            return Err(match &expr.kind {
                ExprKind::Call { function, .. } if reduction_named(function.text).is_some() => {
                    wrong.help(format!("name the indices that are reduced: `{}[k](..)`", function.text)).into()
                }
                _ => wrong.help("give it a name in a statement of its own, and read that by index").into(),
            });
        }
        match evaluate(self.lowering, expr)? {
            Value::Literal(value) => Ok(Cell::Literal(value)),
            Value::Tensor(value) => self.scalar(value, "this", expr.range),
        }
    }

    /// Reads a tensor of rank 0.
    fn scalar(&mut self, value: ValueId, what: &str, range: Range) -> Lowered<Cell> {
        let ty = self.lowering.ty(value);
        if ty.rank() == 0 {
            return Ok(self.read(value, Vec::new(), Edge::Error, range));
        }
        let text = format!("{what} is {ty}, where one element is expected");
        let indices: Vec<&str> = ["i", "j", "k", "l"].into_iter().take(ty.rank()).collect();
        Err(error(range, text).help(format!("give it indices, for example `[{}]`", indices.join(", "))).into())
    }
}

/// True if a reduction of reductions of this kind is one reduction over all their indices.
fn associates(kind: Reduction) -> bool {
    use Reduction::*;
    matches!(kind, Sum | Prod | Min | Max | Any | All)
}

impl<'a> Algebra<'a> for Context<'_, 'a, '_> {
    type Item = Cell;

    fn literal(&mut self, value: Scalar) -> Cell {
        Cell::Literal(value)
    }
    fn as_literal(&self, item: Cell) -> Option<Scalar> {
        match item {
            Cell::Literal(value) => Some(value),
            Cell::Node(_) => None,
        }
    }
    fn unary(&mut self, op: UnaryOp, a: Cell, range: Range) -> Lowered<Cell> {
        Ok(self.push(Node::Unary(op, a), range))
    }
    fn logical_not(&mut self, a: Cell, range: Range) -> Lowered<Cell> {
        Ok(self.push(Node::Not(a), range))
    }
    fn binary(&mut self, op: BinaryOp, a: Cell, b: Cell, range: Range) -> Lowered<Cell> {
        Ok(self.push(Node::Binary(op, a, b), range))
    }
    fn logical(&mut self, op: BinaryOp, a: Cell, b: Cell, range: Range) -> Lowered<Cell> {
        Ok(self.push(Node::Logical(op, a, b), range))
    }
    fn matrix_product(&mut self, _: Cell, _: Cell, range: Range) -> Lowered<Cell> {
        Err(error(range, "`@` works on whole tensors, not on elements")
            .help("write the sum: `sum[k](A[i,k] * B[k,j])`, or index the product: `(A @ B)[i,j]`")
            .into())
    }
    fn select(&mut self, c: Cell, a: Cell, b: Cell, range: Range) -> Lowered<Cell> {
        Ok(self.push(Node::Select(c, a, b), range))
    }
    fn cast(&mut self, dtype: DType, a: Cell, range: Range) -> Lowered<Cell> {
        Ok(self.push(Node::Cast(dtype, a), range))
    }

    fn leaf(&mut self, expr: &Expr<'a>) -> Lowered<Cell> {
        match &expr.kind {
            ExprKind::Name(text) => {
                if let Some(variable) = self.variable_named(text) {
                    return Ok(self.push(Node::Variable(variable), expr.range));
                }
                match self.lowering.read(Name { text, range: expr.range })? {
                    Value::Literal(value) => Ok(Cell::Literal(value)),
                    Value::Tensor(value) => self.scalar(value, &format!("`{text}`"), expr.range),
                }
            }
            ExprKind::Index { base, .. }
                if matches!(base.kind, ExprKind::Attribute { name: Name { text: "shape", .. }, .. }) =>
            {
                self.whole_tensor_scalar(expr)
            }
            ExprKind::Index { base, items } => self.access(base, items, expr.range),
            ExprKind::Reduce(reduce) => {
                let reduced = self.reduction(reduce, None, expr.range)?;
                Ok(self.push(Node::Reduce(Box::new(reduced)), expr.range))
            }
            _ => self.whole_tensor_scalar(expr),
        }
    }
}

impl Body {
    fn push(&mut self, node: Node, range: Range) -> Cell {
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
        self.idx.iter().for_each(|idx| super::affine::variables(idx, into));
        if let ReadSource::Gather(gathered) = &self.source {
            gathered.positions.iter().for_each(|(body, _)| body.free_variables(reads, into));
        }
    }
}
