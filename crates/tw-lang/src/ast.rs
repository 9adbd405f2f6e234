//! The syntax tree.
//!
//! Chains of operators of one rank are one node with many operands, and every expression knows its height, which the parser limits. So the
//! tree is shallow, however long the text is, and later stages may recurse.

use tw_ir::{BinaryOp, UnaryOp};

use super::token::Range;

/// A name and where it stands.
#[derive(Clone, Copy, Debug)]
pub(super) struct Name<'a> {
    pub(super) text: &'a str,
    pub(super) range: Range,
}

/// A binary operator as written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Operator {
    /// Element by element on numbers.
    Arithmetic(BinaryOp),
    /// `and`, `or`: on truth values.
    Logical(BinaryOp),
    /// `@`.
    MatrixProduct,
}

/// An expression.
#[derive(Debug)]
pub(super) struct Expr<'a> {
    pub(super) kind: ExprKind<'a>,
    pub(super) range: Range,
    /// One more than the height of its highest part.
    pub(super) height: u16,
}

/// The forms of an expression.
#[derive(Debug)]
pub(super) enum ExprKind<'a> {
    Int(i64),
    Float(f64),
    /// `2j`: an imaginary number.
    Imaginary(f64),
    Bool(bool),
    /// Text between quotes; only some functions take it.
    Text(&'a str),
    Name(&'a str),
    /// Left-associative operators of one rank, in order.
    Chain {
        first: Box<Expr<'a>>,
        rest: Vec<(Operator, Expr<'a>)>,
    },
    /// Negation.
    Unary(UnaryOp, Box<Expr<'a>>),
    /// `not`.
    Not(Box<Expr<'a>>),
    /// `**`.
    Power(Box<Expr<'a>>, Box<Expr<'a>>),
    /// `if .. then .. else ..`: condition, yes, no.
    Select(Box<[Expr<'a>; 3]>),
    /// `x[..]`.
    Index {
        base: Box<Expr<'a>>,
        items: Vec<Item<'a>>,
    },
    /// `f(..)` and `x.f(..)`; the receiver is the first argument.
    Call {
        function: Name<'a>,
        args: Vec<Arg<'a>>,
    },
    /// `random.normal(..)`: a function of a family.
    FamilyCall {
        family: Name<'a>,
        function: Name<'a>,
        args: Vec<Arg<'a>>,
    },
    /// `x.T`, `x.shape`.
    Attribute {
        base: Box<Expr<'a>>,
        name: Name<'a>,
    },
    /// `sum[k](..)`.
    Reduce(Box<Reduce<'a>>),
    /// `(a, b)`: the value of some arguments.
    Tuple(Vec<Expr<'a>>),
    /// `[1, 2, 3]`: a constant tensor.
    List(Vec<Expr<'a>>),
    /// `tile(..)`: the argument of `retile`.
    Tile(Tile<'a>),
}

/// A reduction over named indices.
#[derive(Debug)]
pub(super) struct Reduce<'a> {
    pub(super) function: Name<'a>,
    pub(super) binders: Vec<Binder<'a>>,
    pub(super) body: Expr<'a>,
    pub(super) guard: Option<Expr<'a>>,
}

/// An index, and the range it runs over if that is written.
#[derive(Debug)]
pub(super) struct Binder<'a> {
    pub(super) name: Name<'a>,
    pub(super) range: Option<(Expr<'a>, Expr<'a>)>,
}

/// One item between the brackets of `x[..]`.
#[derive(Debug)]
pub(super) enum Item<'a> {
    /// An index or an index tensor.
    At(Expr<'a>),
    /// `start:stop:step`. Steps are rare, and items without one stay small.
    Slice { start: Option<Expr<'a>>, stop: Option<Expr<'a>>, step: Option<Box<Expr<'a>>>, range: Range },
    /// `...`.
    Ellipsis(Range),
}

impl Item<'_> {
    pub(super) fn range(&self) -> Range {
        match self {
            Item::At(expr) => expr.range,
            Item::Slice { range, .. } | Item::Ellipsis(range) => *range,
        }
    }
}

/// An argument of a call.
#[derive(Debug)]
pub(super) struct Arg<'a> {
    pub(super) keyword: Option<Name<'a>>,
    pub(super) value: Expr<'a>,
}

/// How one axis is cut.
#[derive(Debug)]
pub(super) enum TileAxis<'a> {
    /// Tiles of one length.
    Uniform(Expr<'a>),
    /// Tiles of these lengths.
    Ragged(Vec<Expr<'a>>),
}

/// `tile(..)`.
#[derive(Debug)]
pub(super) struct Tile<'a> {
    pub(super) axes: Vec<TileAxis<'a>>,
    pub(super) range: Range,
    /// Height of the highest expression in it.
    pub(super) height: u16,
}

/// `f64[n, m]`.
#[derive(Debug)]
pub(super) struct TypeExpr<'a> {
    pub(super) dtype: Name<'a>,
    pub(super) extents: Vec<Expr<'a>>,
    pub(super) range: Range,
}

/// How an assignment combines with the old value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AssignOp {
    /// `=`.
    Set,
    /// `+=`, `-=`, `*=`, `/=`, `min=`, `max=`, `and=`, `or=`.
    Update(Operator),
}

/// An assignment, to a whole tensor or by index.
#[derive(Debug)]
pub(super) struct Assign<'a> {
    pub(super) target: Name<'a>,
    /// What stands between the brackets on the left, if there are any.
    pub(super) indices: Option<Vec<Item<'a>>>,
    pub(super) op: AssignOp,
    pub(super) value: Expr<'a>,
    pub(super) guard: Option<Expr<'a>>,
    pub(super) ranges: Vec<Binder<'a>>,
}

/// A call of a block function: `Q, R = block qr(A[i, :]) -> f64[i, 4], f64[4*i, 4]`.
#[derive(Debug)]
pub(super) struct BlockCall<'a> {
    pub(super) targets: Vec<Name<'a>>,
    pub(super) function: Name<'a>,
    pub(super) operands: Vec<(Name<'a>, Vec<Item<'a>>)>,
    pub(super) results: Vec<TypeExpr<'a>>,
}

/// A statement.
#[derive(Debug)]
pub(super) struct Stmt<'a> {
    pub(super) kind: StmtKind<'a>,
    pub(super) range: Range,
}

/// The forms of a statement.
#[derive(Debug)]
pub(super) enum StmtKind<'a> {
    Param {
        name: Name<'a>,
        value: Expr<'a>,
    },
    Input {
        name: Name<'a>,
        ty: Option<TypeExpr<'a>>,
        path: Option<Name<'a>>,
        tile: Option<Tile<'a>>,
    },
    /// `H: f64[n]`: declares the type and shape of a later assignment by index.
    Declare {
        name: Name<'a>,
        ty: TypeExpr<'a>,
    },
    Assign(Box<Assign<'a>>),
    BlockCall(Box<BlockCall<'a>>),
    /// Several results of one call.
    Unpack {
        targets: Vec<Name<'a>>,
        value: Expr<'a>,
    },
    Output {
        name: Name<'a>,
        path: Option<Name<'a>>,
    },
    While {
        condition: Expr<'a>,
        body: Vec<Stmt<'a>>,
    },
    If {
        condition: Expr<'a>,
        then: Vec<Stmt<'a>>,
        otherwise: Vec<Stmt<'a>>,
    },
}
