//! The loop IR: what an index statement over stored levels becomes.
//!
//! A [`LoopKernel`] has integer parameters (extents), arrays and local variables. Its body is structured: `for`, `while` and `if`, no jumps.
//! Index arrays are stored with 32 or 64 bits and read as i64; everything computed with is a [`Scalar`] of a
//! [`DType`], with the operations and the meaning of [`tw_ir::scalar`]. Its text ([`mod@print`]) is readable pseudo-code and parses back
//! ([`parse`]); [`verify`] checks types and names; [`interpret()`] is the meaning, which compiled code reproduces bit for bit.
//!
//! The alternative, C text as TACO prints, has no meaning without a C compiler; scalar code of `tw-ir` has no control flow.

use tw_ir::{BinaryOp, DType, Scalar, UnaryOp};

use crate::width::IndexWidth;

mod build;
pub mod count;
pub mod interpret;
pub mod parse;
pub mod print;
pub mod verify;

pub use build::Code;
pub use count::counting;
pub use interpret::interpret;

/// A local variable or an integer parameter, by position.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LocalId(pub u32);

/// An array, by position.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ArrayId(pub u32);

/// What an array holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ArrayType {
    /// Positions or coordinates, read as i64.
    Index(IndexWidth),
    /// Elements.
    Value(DType),
}

impl ArrayType {
    /// The type of an element once it is read.
    pub fn loaded(self) -> DType {
        match self {
            ArrayType::Index(_) => DType::I64,
            ArrayType::Value(dtype) => dtype,
        }
    }

    /// The type of an element in memory.
    pub fn stored(self) -> DType {
        match self {
            ArrayType::Index(width) => width.dtype(),
            ArrayType::Value(dtype) => dtype.storage(),
        }
    }
}

/// Who owns an array.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ArrayRole {
    /// Given to the kernel, which only reads it.
    Input,
    /// Empty at first, handed to the caller.
    Output,
    /// Empty at first, dropped at the end.
    Workspace,
}

/// An array of a kernel.
#[derive(Clone, Debug, PartialEq)]
pub struct ArrayDecl {
    /// Its name in text, unique among arrays and locals.
    pub name: String,
    /// What it holds.
    pub kind: ArrayType,
    /// Who owns it.
    pub role: ArrayRole,
}

/// A local variable or parameter of a kernel.
#[derive(Clone, Debug, PartialEq)]
pub struct LocalDecl {
    /// Its name in text.
    pub name: String,
    /// Its type; parameters are i64.
    pub dtype: DType,
}

/// A computed value.
#[derive(Clone, Debug, PartialEq)]
pub enum LoopExpr {
    /// A constant.
    Const(Scalar),
    /// A variable or parameter.
    Local(LocalId),
    /// `array[index]`.
    Load(ArrayId, Box<LoopExpr>),
    /// `len(array)`, an i64.
    Len(ArrayId),
    /// An operation on one value.
    Unary(UnaryOp, Box<LoopExpr>),
    /// An operation on two values; both are computed.
    Binary(BinaryOp, Box<LoopExpr>, Box<LoopExpr>),
    /// `first and second` on truth values; the second is computed only if the first is true.
    Both(Box<LoopExpr>, Box<LoopExpr>),
    /// `if first { second } else { third }`; all are computed.
    Select(Box<LoopExpr>, Box<LoopExpr>, Box<LoopExpr>),
    /// Conversion.
    Cast(DType, Box<LoopExpr>),
    /// The first position in `from..to` of a sorted run whose element is at least the target, or `to`. It gallops from `from` on, so finding
    /// a near one is cheap.
    Seek {
        /// The array.
        array: ArrayId,
        /// Start of the run.
        from: Box<LoopExpr>,
        /// End of the run.
        to: Box<LoopExpr>,
        /// The value looked for.
        target: Box<LoopExpr>,
    },
}

/// A step of a kernel.
#[derive(Clone, Debug, PartialEq)]
pub enum LoopStmt {
    /// `local = value`.
    Set(LocalId, LoopExpr),
    /// `array[index] = value`.
    Store(ArrayId, LoopExpr, LoopExpr),
    /// Adds an element at the end of an array.
    Push(ArrayId, LoopExpr),
    /// Shortens an array, or makes it longer with copies of a value.
    Resize(ArrayId, LoopExpr, Scalar),
    /// Sorts a whole array of coordinates, with its values if there are any. The sort is stable.
    Sort(ArrayId, Option<ArrayId>),
    /// Runs the body for every integer of `from..to`, which are computed once.
    For(LocalId, LoopExpr, LoopExpr, Vec<LoopStmt>),
    /// Runs the body while the condition holds.
    While(LoopExpr, Vec<LoopStmt>),
    /// Runs one of two bodies.
    If(LoopExpr, Vec<LoopStmt>, Vec<LoopStmt>),
    /// A remark for the reader.
    Comment(String),
}

/// A kernel.
#[derive(Clone, Debug, PartialEq)]
pub struct LoopKernel {
    /// Its name in text.
    pub name: String,
    /// The first of the locals are parameters.
    pub n_params: usize,
    /// Parameters, then variables.
    pub locals: Vec<LocalDecl>,
    /// Arrays: inputs in the order in which they are given, outputs in the order in which they come back.
    pub arrays: Vec<ArrayDecl>,
    /// What it does.
    pub body: Vec<LoopStmt>,
}

impl LoopKernel {
    /// The type of an expression; it must be well formed.
    pub fn dtype(&self, expr: &LoopExpr) -> DType {
        match expr {
            LoopExpr::Const(value) => value.dtype(),
            LoopExpr::Local(local) => self.locals[local.0 as usize].dtype,
            LoopExpr::Load(array, _) => self.arrays[array.0 as usize].kind.loaded(),
            LoopExpr::Len(_) | LoopExpr::Seek { .. } => DType::I64,
            LoopExpr::Unary(op, a) => op.result(self.dtype(a)).unwrap_or(DType::I64),
            LoopExpr::Binary(op, a, _) => op.result(self.dtype(a)).unwrap_or(DType::I64),
            LoopExpr::Both(..) => DType::Bool,
            LoopExpr::Select(_, a, _) => self.dtype(a),
            LoopExpr::Cast(dtype, _) => *dtype,
        }
    }
}

impl LoopExpr {
    /// An i64.
    pub fn int(value: i64) -> LoopExpr {
        LoopExpr::Const(Scalar::I64(value))
    }

    fn as_int(&self) -> Option<i64> {
        match self {
            LoopExpr::Const(Scalar::I64(value)) => Some(*value),
            _ => None,
        }
    }

    /// `array[index]`.
    pub fn load(array: ArrayId, index: LoopExpr) -> LoopExpr {
        LoopExpr::Load(array, Box::new(index))
    }

    /// An operation on two values.
    pub fn binary(op: BinaryOp, a: LoopExpr, b: LoopExpr) -> LoopExpr {
        LoopExpr::Binary(op, Box::new(a), Box::new(b))
    }

    /// A sum of integers, without needless zeros.
    pub fn plus(self, other: LoopExpr) -> LoopExpr {
        match (self.as_int(), other.as_int()) {
            (Some(0), _) => other,
            (_, Some(0)) => self,
            (Some(a), Some(b)) => LoopExpr::int(a.wrapping_add(b)),
            (_, Some(b)) if b < 0 => LoopExpr::binary(BinaryOp::Sub, self, LoopExpr::int(b.wrapping_neg())),
            _ => LoopExpr::binary(BinaryOp::Add, self, other),
        }
    }

    /// A difference of integers.
    pub fn minus(self, other: LoopExpr) -> LoopExpr {
        match other.as_int() {
            Some(b) => self.plus(LoopExpr::int(b.wrapping_neg())),
            None => LoopExpr::binary(BinaryOp::Sub, self, other),
        }
    }

    /// A product of integers, without needless ones.
    pub fn times(self, other: LoopExpr) -> LoopExpr {
        match (self.as_int(), other.as_int()) {
            (Some(0), _) | (_, Some(0)) => LoopExpr::int(0),
            (Some(1), _) => other,
            (_, Some(1)) => self,
            _ => LoopExpr::binary(BinaryOp::Mul, self, other),
        }
    }

    /// `self and other`, the latter only if the former.
    pub fn and(self, other: LoopExpr) -> LoopExpr {
        match self {
            LoopExpr::Const(Scalar::Bool(true)) => other,
            _ => LoopExpr::Both(Box::new(self), Box::new(other)),
        }
    }

    /// `self == other`.
    pub fn equals(self, other: LoopExpr) -> LoopExpr {
        LoopExpr::binary(BinaryOp::Eq, self, other)
    }
    /// `self != other`.
    pub fn differs(self, other: LoopExpr) -> LoopExpr {
        LoopExpr::binary(BinaryOp::Ne, self, other)
    }
    /// `self < other`.
    pub fn less(self, other: LoopExpr) -> LoopExpr {
        LoopExpr::binary(BinaryOp::Lt, self, other)
    }
    /// `self >= other`.
    pub fn at_least(self, other: LoopExpr) -> LoopExpr {
        LoopExpr::binary(BinaryOp::Ge, self, other)
    }

    /// The parts of an expression.
    pub fn parts(&self) -> Vec<&LoopExpr> {
        match self {
            LoopExpr::Const(_) | LoopExpr::Local(_) | LoopExpr::Len(_) => Vec::new(),
            LoopExpr::Load(_, a) | LoopExpr::Unary(_, a) | LoopExpr::Cast(_, a) => vec![a],
            LoopExpr::Binary(_, a, b) | LoopExpr::Both(a, b) => vec![a, b],
            LoopExpr::Select(a, b, c) => vec![a, b, c],
            LoopExpr::Seek { from, to, target, .. } => vec![from, to, target],
        }
    }
}
