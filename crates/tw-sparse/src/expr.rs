//! Index notation: expressions over tensors indexed by variables, and statements that assign one to a tensor.
//!
//! `A(i, j) = sum(k, B(i, k) * C(k, j))` is the statement with output indices `i, j` and a [`IndexExpr::Reduce`] over `k` on the right. Every
//! variable that is not an output index must be bound by a reduction; [`IndexStatement::einsum`] inserts sums around the smallest terms
//! that need them, as TACO does.

use std::collections::BTreeSet;
use std::sync::Arc;

use tw_ir::{BinaryOp, DType, Error, Result, Scalar, ScalarCode, UnaryOp};

use crate::format::TensorFormat;
use crate::loops::LoopExpr;

/// An index variable of a statement, by position in [`IndexStatement::variables`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct IndexVariable(pub usize);

/// An affine form of index variables: where an access reads its tensor along one mode.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct AffineIndex {
    /// Variables with their factors, each variable once, no factor zero.
    pub terms: Vec<(IndexVariable, i64)>,
    /// The constant part.
    pub offset: i64,
}

impl From<IndexVariable> for AffineIndex {
    fn from(var: IndexVariable) -> AffineIndex {
        AffineIndex { terms: vec![(var, 1)], offset: 0 }
    }
}

impl AffineIndex {
    /// The variable, if the form is one variable with nothing added.
    pub fn as_plain(&self) -> Option<IndexVariable> {
        self.as_shifted().filter(|_| self.offset == 0)
    }
    /// The variable, if the form is one variable with a constant added.
    pub fn as_shifted(&self) -> Option<IndexVariable> {
        match self.terms.as_slice() {
            [(var, 1)] => Some(*var),
            _ => None,
        }
    }
}

/// A scalar function of the user, with the algebra that lets absent operands be skipped.
#[derive(Clone, Debug, PartialEq)]
pub struct SparseFunction {
    /// Its name.
    pub name: String,
    /// What it computes: one result.
    pub code: ScalarCode,
    /// For each argument, a value at which the result is known whatever the others are, and that result.
    pub annihilators: Vec<Option<(Scalar, Scalar)>>,
    /// The neutral value of both arguments, for reductions.
    pub identity: Option<Scalar>,
    /// `f(x, x) == x`.
    pub idempotent: bool,
}

/// How a reduction combines two values.
#[derive(Clone, Debug, PartialEq)]
pub enum Combiner {
    /// A binary operation.
    Op(BinaryOp),
    /// A function of two arguments.
    Function(Arc<SparseFunction>),
}

/// An accumulator: a commutative monoid on elements.
#[derive(Clone, Debug, PartialEq)]
pub struct Monoid {
    /// Combines two values.
    pub combine: Combiner,
    /// The value of an empty group, neutral for `combine`.
    pub identity: Scalar,
}

impl Monoid {
    /// The sum; of bools, the logical or.
    pub fn sum(dtype: DType) -> Monoid {
        Monoid { combine: Combiner::Op(BinaryOp::Add), identity: dtype.zero() }
    }
    /// The smallest value; of an empty group, the largest that there is.
    pub fn min(dtype: DType) -> Monoid {
        Monoid { combine: Combiner::Op(BinaryOp::Min), identity: dtype.highest() }
    }
    /// The largest value; of an empty group, the smallest that there is.
    pub fn max(dtype: DType) -> Monoid {
        Monoid { combine: Combiner::Op(BinaryOp::Max), identity: dtype.lowest() }
    }
}

/// A tensor at indices.
#[derive(Clone, Debug, PartialEq)]
pub struct TensorAccess {
    /// Position in [`IndexStatement::operands`].
    pub tensor: usize,
    /// One form per mode, in the order of modes.
    pub index: Vec<AffineIndex>,
}

/// An expression of index notation.
#[derive(Clone, Debug, PartialEq)]
pub enum IndexExpr {
    /// A constant.
    Constant(Scalar),
    /// An element of a tensor. The number tells accesses of one statement apart; [`IndexStatement::new`] sets it.
    Access(TensorAccess, usize),
    /// The value of an index variable, i64.
    Coordinate(IndexVariable),
    /// An operation on one value.
    Unary(UnaryOp, Box<IndexExpr>),
    /// An operation on two values.
    Binary(BinaryOp, Box<IndexExpr>, Box<IndexExpr>),
    /// Conversion.
    Cast(DType, Box<IndexExpr>),
    /// `if first { second } else { third }`.
    Select(Box<IndexExpr>, Box<IndexExpr>, Box<IndexExpr>),
    /// A function of the user.
    Call(Arc<SparseFunction>, Vec<IndexExpr>),
    /// All values of an expression over the extents of variables, combined.
    Reduce(Monoid, Vec<IndexVariable>, Box<IndexExpr>),
    /// A value that code has computed already; only the lowering makes it.
    Computed(LoopExpr, DType),
}

impl IndexExpr {
    /// An element of a tensor at plain variables.
    pub fn access(tensor: usize, vars: &[IndexVariable]) -> IndexExpr {
        let index = vars.iter().map(|&var| AffineIndex::from(var)).collect();
        IndexExpr::Access(TensorAccess { tensor, index }, 0)
    }
    /// An operation on two values.
    pub fn binary(op: BinaryOp, a: IndexExpr, b: IndexExpr) -> IndexExpr {
        IndexExpr::Binary(op, Box::new(a), Box::new(b))
    }
    /// The direct parts.
    pub fn parts(&self) -> Vec<&IndexExpr> {
        match self {
            IndexExpr::Constant(_) | IndexExpr::Access(..) | IndexExpr::Coordinate(_) | IndexExpr::Computed(..) => {
                Vec::new()
            }
            IndexExpr::Unary(_, a) | IndexExpr::Cast(_, a) | IndexExpr::Reduce(_, _, a) => vec![a],
            IndexExpr::Binary(_, a, b) => vec![a, b],
            IndexExpr::Select(a, b, c) => vec![a, b, c],
            IndexExpr::Call(_, args) => args.iter().collect(),
        }
    }

    /// The same expression with its direct parts replaced.
    pub fn map_parts(self, f: &mut dyn FnMut(IndexExpr) -> IndexExpr) -> IndexExpr {
        let mut boxed = |a: Box<IndexExpr>| Box::new(f(*a));
        match self {
            IndexExpr::Unary(op, a) => IndexExpr::Unary(op, boxed(a)),
            IndexExpr::Cast(dtype, a) => IndexExpr::Cast(dtype, boxed(a)),
            IndexExpr::Reduce(how, vars, a) => IndexExpr::Reduce(how, vars, boxed(a)),
            IndexExpr::Binary(op, a, b) => IndexExpr::Binary(op, boxed(a), boxed(b)),
            IndexExpr::Select(a, b, c) => IndexExpr::Select(boxed(a), boxed(b), boxed(c)),
            IndexExpr::Call(function, args) => IndexExpr::Call(function, args.into_iter().map(f).collect()),
            leaf => leaf,
        }
    }

    /// Calls a function with this expression and all its parts.
    pub fn visit<'a>(&'a self, f: &mut dyn FnMut(&'a IndexExpr)) {
        f(self);
        self.parts().into_iter().for_each(|part| part.visit(f));
    }

    /// Variables that it uses and does not bind.
    pub fn free_variables(&self) -> BTreeSet<IndexVariable> {
        match self {
            IndexExpr::Access(access, _) => {
                access.index.iter().flat_map(|index| index.terms.iter().map(|(var, _)| *var)).collect()
            }
            IndexExpr::Coordinate(var) => [*var].into(),
            other => {
                let mut free: BTreeSet<IndexVariable> =
                    other.parts().into_iter().flat_map(IndexExpr::free_variables).collect();
                if let IndexExpr::Reduce(_, vars, _) = other {
                    free.retain(|var| !vars.contains(var));
                }
                free
            }
        }
    }

    /// The accesses with their numbers.
    pub fn accesses(&self) -> Vec<(&TensorAccess, usize)> {
        let mut found = Vec::new();
        self.visit(&mut |expr| {
            if let IndexExpr::Access(access, number) = expr {
                found.push((access, *number));
            }
        });
        found
    }
}

/// A tensor as a statement knows it.
#[derive(Clone, Debug, PartialEq)]
pub struct OperandType {
    /// Its name in text.
    pub name: String,
    /// How it is stored.
    pub format: TensorFormat,
    /// The value of elements that are not stored; its type is the element type.
    pub fill: Scalar,
}

/// An assignment to every element of a tensor.
#[derive(Clone, Debug, PartialEq)]
pub struct IndexStatement {
    /// Names of the index variables.
    pub variables: Vec<String>,
    /// The tensor that is made.
    pub output: OperandType,
    /// One variable per mode of the output, each once.
    pub indices: Vec<IndexVariable>,
    /// The tensors that are read.
    pub operands: Vec<OperandType>,
    /// What each element is.
    pub value: IndexExpr,
}

impl IndexStatement {
    /// A statement, checked.
    pub fn new(
        variables: Vec<String>,
        output: OperandType,
        indices: Vec<IndexVariable>,
        operands: Vec<OperandType>,
        value: IndexExpr,
    ) -> Result<IndexStatement> {
        let mut next = 0;
        let value = number(value, &mut next);
        let statement = IndexStatement { variables, output, indices, operands, value };
        statement.check()?;
        Ok(statement)
    }

    /// As [`IndexStatement::new`]; variables that are on the right only are summed in the smallest terms that hold all of their uses.
    pub fn einsum(
        variables: Vec<String>,
        output: OperandType,
        indices: Vec<IndexVariable>,
        operands: Vec<OperandType>,
        value: IndexExpr,
    ) -> Result<IndexStatement> {
        let dtype = output.fill.dtype();
        let value = with_sums(value, &indices.iter().copied().collect(), dtype);
        IndexStatement::new(variables, output, indices, operands, value)
    }

    fn check(&self) -> Result<()> {
        let known = |var: &IndexVariable| var.0 < self.variables.len();
        let distinct: BTreeSet<IndexVariable> = self.indices.iter().copied().collect();
        if distinct.len() != self.indices.len() || self.indices.len() != self.output.format.rank() {
            return Err(Error::source(format!(
                "the output `{}` of {} modes is indexed by {} different variables",
                self.output.name,
                self.output.format.rank(),
                distinct.len()
            )));
        }
        let mut bound = distinct.clone();
        let mut fault = None;
        self.value.visit(&mut |expr| match expr {
            IndexExpr::Access(access, _) => match self.operands.get(access.tensor) {
                Some(operand) if operand.format.rank() == access.index.len() => {
                    if access.index.iter().any(|index| index.terms.iter().any(|(var, k)| !known(var) || *k == 0)) {
                        fault = Some(Error::internal("an index uses an unknown variable or a factor of zero"));
                    }
                }
                Some(operand) => {
                    let rank = operand.format.rank();
                    fault = Some(Error::source(format!(
                        "`{}` of {rank} modes is indexed by {}",
                        operand.name,
                        access.index.len()
                    )));
                }
                None => fault = Some(Error::internal("an access names no operand")),
            },
            IndexExpr::Reduce(_, vars, _) => {
                if let Some(var) = vars.iter().find(|var| !known(var) || !bound.insert(**var)) {
                    fault = Some(Error::source(format!("variable {} is bound twice", var.0)));
                }
            }
            IndexExpr::Computed(..) => fault = Some(Error::internal("a statement holds code")),
            _ => {}
        });
        if let Some(fault) = fault {
            return Err(fault);
        }
        let free = self.value.free_variables();
        if let Some(var) = free.iter().find(|var| !distinct.contains(var)) {
            let name = self.variables.get(var.0).map_or("?", String::as_str);
            return Err(Error::source(format!("`{name}` is neither an output index nor reduced")));
        }
        let dtype = self.dtype_of(&self.value)?;
        if dtype != self.output.fill.dtype() {
            return Err(Error::source(format!(
                "`{}` has elements of type {}, its value is {dtype}",
                self.output.name,
                self.output.fill.dtype()
            ))
            .help("cast the value"));
        }
        Ok(())
    }

    /// The type of an expression, or why it has none.
    pub fn dtype_of(&self, expr: &IndexExpr) -> Result<DType> {
        let takes = |op: &dyn std::fmt::Display, dtype: DType| Error::source(format!("`{op}` does not take {dtype}"));
        Ok(match expr {
            IndexExpr::Constant(value) => value.dtype(),
            IndexExpr::Access(access, _) => self.operands[access.tensor].fill.dtype(),
            IndexExpr::Coordinate(_) => DType::I64,
            IndexExpr::Computed(_, dtype) => *dtype,
            IndexExpr::Cast(dtype, a) => self.dtype_of(a).map(|_| *dtype)?,
            IndexExpr::Unary(op, a) => {
                let dtype = self.dtype_of(a)?;
                op.result(dtype).ok_or_else(|| takes(op, dtype))?
            }
            IndexExpr::Binary(op, a, b) => {
                let (left, right) = (self.dtype_of(a)?, self.dtype_of(b)?);
                if left != right {
                    return Err(Error::source(format!("`{op}` of {left} and {right}")).help("cast one operand"));
                }
                op.result(left).ok_or_else(|| takes(op, left))?
            }
            IndexExpr::Select(c, a, b) => match (self.dtype_of(c)?, self.dtype_of(a)?, self.dtype_of(b)?) {
                (DType::Bool, a, b) if a == b => a,
                (c, a, b) => return Err(Error::source(format!("select of {c}, {a} and {b}"))),
            },
            IndexExpr::Call(function, args) => {
                let given = args.iter().map(|arg| self.dtype_of(arg)).collect::<Result<Vec<_>>>()?;
                let results = function.code.result_types();
                if function.code.params() != given || results.len() != 1 || function.annihilators.len() != given.len() {
                    return Err(Error::source(format!("function `{}` does not take {given:?}", function.name)));
                }
                if function.code.ops().iter().any(|op| matches!(op, tw_ir::ScalarOp::Random { .. })) {
                    return Err(Error::source(format!("function `{}` draws random numbers", function.name))
                        .help("give a tensor of random numbers as an operand"));
                }
                results[0]
            }
            IndexExpr::Reduce(how, _, body) => {
                let dtype = self.dtype_of(body)?;
                let closed = match &how.combine {
                    Combiner::Op(op) => op.result(dtype) == Some(dtype),
                    Combiner::Function(f) => f.code.params() == [dtype, dtype] && f.code.result_types() == [dtype],
                };
                if !closed || how.identity.dtype() != dtype {
                    return Err(Error::source(format!("a reduction of {dtype} that does not give {dtype}")));
                }
                dtype
            }
        })
    }
}

fn number(expr: IndexExpr, next: &mut usize) -> IndexExpr {
    match expr {
        IndexExpr::Access(access, _) => {
            *next += 1;
            IndexExpr::Access(access, *next - 1)
        }
        other => other.map_parts(&mut |part| number(part, next)),
    }
}

/// Sums are put around terms: the parts of sums and differences, and of functions that are not products.
fn with_sums(expr: IndexExpr, bound: &BTreeSet<IndexVariable>, dtype: DType) -> IndexExpr {
    let missing: Vec<IndexVariable> = expr.free_variables().difference(bound).copied().collect();
    if missing.is_empty() && !matches!(expr, IndexExpr::Reduce(..)) {
        return expr;
    }
    match expr {
        IndexExpr::Binary(op @ (BinaryOp::Add | BinaryOp::Sub), a, b) => {
            IndexExpr::binary(op, with_sums(*a, bound, dtype), with_sums(*b, bound, dtype))
        }
        IndexExpr::Unary(UnaryOp::Neg, a) => IndexExpr::Unary(UnaryOp::Neg, Box::new(with_sums(*a, bound, dtype))),
        expr if missing.is_empty() => expr,
        expr => IndexExpr::Reduce(Monoid::sum(dtype), missing, Box::new(expr)),
    }
}
