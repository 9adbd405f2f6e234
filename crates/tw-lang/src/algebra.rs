//! Arithmetic that means the same on whole tensors and on single elements.

use tw_ir::dtype::C128;
use tw_ir::{BinaryOp, DType, Scalar, UnaryOp};

use tw_build as build;

use super::ast::{Arg, Expr, ExprKind, Name, Operator};
use super::diagnose::{Lowered, Place, counted, error};
use super::fold;
use super::token::Range;

/// A semantics of expressions: the operations on their values.
pub(super) trait Algebra<'a> {
    /// The value of an expression.
    type Item: Copy;

    fn literal(&mut self, value: Scalar) -> Self::Item;
    fn as_literal(&self, item: Self::Item) -> Option<Scalar>;
    fn unary(&mut self, op: UnaryOp, a: Self::Item, range: Range) -> Lowered<Self::Item>;
    fn logical_not(&mut self, a: Self::Item, range: Range) -> Lowered<Self::Item>;
    fn binary(&mut self, op: BinaryOp, a: Self::Item, b: Self::Item, range: Range) -> Lowered<Self::Item>;
    fn logical(&mut self, op: BinaryOp, a: Self::Item, b: Self::Item, range: Range) -> Lowered<Self::Item>;
    fn matrix_product(&mut self, a: Self::Item, b: Self::Item, range: Range) -> Lowered<Self::Item>;
    fn select(&mut self, c: Self::Item, a: Self::Item, b: Self::Item, range: Range) -> Lowered<Self::Item>;
    fn cast(&mut self, dtype: DType, a: Self::Item, range: Range) -> Lowered<Self::Item>;
    /// Expressions that are not arithmetic: names, accesses, calls and reductions.
    fn leaf(&mut self, expr: &Expr<'a>) -> Lowered<Self::Item>;
}

/// The value of an expression. Operations on literals are evaluated at once.
pub(super) fn evaluate<'a, A: Algebra<'a>>(algebra: &mut A, expr: &Expr<'a>) -> Lowered<A::Item> {
    match &expr.kind {
        ExprKind::Int(value) => Ok(algebra.literal(Scalar::I64(*value))),
        ExprKind::Float(value) => Ok(algebra.literal(Scalar::F64(*value))),
        ExprKind::Imaginary(value) => Ok(algebra.literal(Scalar::C128(C128::new(0.0, *value)))),
        ExprKind::Bool(value) => Ok(algebra.literal(Scalar::Bool(*value))),
        ExprKind::Chain { first, rest } => {
            let mut left = evaluate(algebra, first)?;
            for (operator, right) in rest {
                let right = evaluate(algebra, right)?;
                left = operate(algebra, *operator, left, right, expr.range)?;
            }
            Ok(left)
        }
        ExprKind::Unary(op, operand) => {
            let operand = evaluate(algebra, operand)?;
            unary(algebra, *op, operand, expr.range)
        }
        ExprKind::Not(operand) => {
            let operand = evaluate(algebra, operand)?;
            match algebra.as_literal(operand) {
                Some(value) => Ok(algebra.literal(Scalar::Bool(!value.is_true()))),
                None => algebra.logical_not(operand, expr.range),
            }
        }
        ExprKind::Power(base, exponent) => {
            let (base, exponent) = (evaluate(algebra, base)?, evaluate(algebra, exponent)?);
            power(algebra, base, exponent, expr.range)
        }
        ExprKind::Select(parts) => {
            let [condition, yes, no] = &**parts;
            let condition = evaluate(algebra, condition)?;
            let (yes, no) = (evaluate(algebra, yes)?, evaluate(algebra, no)?);
            select(algebra, condition, yes, no, expr.range)
        }
        ExprKind::Call { function, args } => match Elementwise::named(function.text, by_position(args)) {
            Some(elementwise) => elementwise.apply(algebra, *function, args, expr.range),
            None => algebra.leaf(expr),
        },
        _ => algebra.leaf(expr),
    }
}

/// How many arguments are given without a name: `max(x, axis=0)` is a reduction of one tensor.
fn by_position(args: &[Arg<'_>]) -> usize {
    args.iter().filter(|arg| arg.keyword.is_none()).count()
}

/// Applies an operator, folding literals.
pub(super) fn operate<'a, A: Algebra<'a>>(
    algebra: &mut A,
    operator: Operator,
    a: A::Item,
    b: A::Item,
    range: Range,
) -> Lowered<A::Item> {
    let literals = algebra.as_literal(a).zip(algebra.as_literal(b));
    match (operator, literals) {
        (Operator::Arithmetic(op), Some((x, y))) => Ok(algebra.literal(fold::binary(op, x, y).at(range)?)),
        (Operator::Logical(op), Some((x, y))) => Ok(algebra.literal(fold::logical(op, x, y))),
        (Operator::Arithmetic(op), None) => algebra.binary(op, a, b, range),
        (Operator::Logical(op), None) => algebra.logical(op, a, b, range),
        (Operator::MatrixProduct, _) => algebra.matrix_product(a, b, range),
    }
}

fn unary<'a, A: Algebra<'a>>(algebra: &mut A, op: UnaryOp, a: A::Item, range: Range) -> Lowered<A::Item> {
    match algebra.as_literal(a) {
        Some(value) => Ok(algebra.literal(fold::unary(op, value).at(range)?)),
        None => algebra.unary(op, a, range),
    }
}

/// Small whole powers are products: exact, and cheaper than the general power.
fn power<'a, A: Algebra<'a>>(algebra: &mut A, base: A::Item, exponent: A::Item, range: Range) -> Lowered<A::Item> {
    let small = algebra.as_literal(exponent).filter(|_| algebra.as_literal(base).is_none()).and_then(fold::whole);
    match small {
        Some(2) => algebra.binary(BinaryOp::Mul, base, base, range),
        _ => operate(algebra, Operator::Arithmetic(BinaryOp::Pow), base, exponent, range),
    }
}

fn select<'a, A: Algebra<'a>>(
    algebra: &mut A,
    condition: A::Item,
    yes: A::Item,
    no: A::Item,
    range: Range,
) -> Lowered<A::Item> {
    let literals = (algebra.as_literal(condition), algebra.as_literal(yes), algebra.as_literal(no));
    match literals {
        (Some(condition), Some(yes), Some(no)) => {
            let dtype = build::common([yes.dtype(), no.dtype()]).at(range)?;
            Ok(algebra.literal(if condition.is_true() { yes } else { no }.cast(dtype)))
        }
        _ => algebra.select(condition, yes, no, range),
    }
}

/// A function that works element by element, on tensors and in index notation alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Elementwise {
    Unary(UnaryOp),
    Binary(BinaryOp),
    /// The smallest or largest of several arguments.
    Extreme(BinaryOp),
    Select,
    Clip,
    /// The angle of a complex number.
    Angle,
    Cast(DType),
}

/// Elementwise functions that are not named after their operation.
pub(super) const ELEMENTWISE: &[(&str, Elementwise)] = &[
    ("atan2", Elementwise::Binary(BinaryOp::Atan2)),
    ("hypot", Elementwise::Binary(BinaryOp::Hypot)),
    ("copysign", Elementwise::Binary(BinaryOp::Copysign)),
    ("nextafter", Elementwise::Binary(BinaryOp::Nextafter)),
    ("power", Elementwise::Binary(BinaryOp::Pow)),
    ("xor", Elementwise::Binary(BinaryOp::Xor)),
    ("left_shift", Elementwise::Binary(BinaryOp::Shl)),
    ("right_shift", Elementwise::Binary(BinaryOp::Shr)),
    ("complex", Elementwise::Binary(BinaryOp::Complex)),
    ("angle", Elementwise::Angle),
    ("isnat", Elementwise::Unary(UnaryOp::IsNan)),
    ("minimum", Elementwise::Extreme(BinaryOp::Min)),
    ("maximum", Elementwise::Extreme(BinaryOp::Max)),
    ("select", Elementwise::Select),
    ("clip", Elementwise::Clip),
];

impl Elementwise {
    /// The elementwise function of this name. `min` and `max` are reductions of one argument, but elementwise with several.
    pub(super) fn named(name: &str, n_args: usize) -> Option<Elementwise> {
        match name {
            "min" if n_args > 1 => return Some(Elementwise::Extreme(BinaryOp::Min)),
            "max" if n_args > 1 => return Some(Elementwise::Extreme(BinaryOp::Max)),
            "neg" | "not" => return None,
            _ => {}
        }
        let listed = ELEMENTWISE.iter().find(|(listed, _)| *listed == name).map(|(_, function)| *function);
        listed
            .or_else(|| name.parse().ok().map(Elementwise::Unary))
            .or_else(|| name.parse().ok().map(Elementwise::Cast))
    }

    /// The names of all of them.
    pub(super) fn names() -> impl Iterator<Item = &'static str> {
        let unary = UnaryOp::ALL.iter().map(|op| op.name()).filter(|name| !matches!(*name, "neg" | "not"));
        unary.chain(ELEMENTWISE.iter().map(|(name, _)| *name)).chain(DType::PHYSICAL.iter().map(|dtype| dtype.name()))
    }

    fn arity(self) -> std::ops::RangeInclusive<usize> {
        match self {
            Elementwise::Unary(_) | Elementwise::Angle | Elementwise::Cast(_) => 1..=1,
            Elementwise::Binary(_) => 2..=2,
            Elementwise::Extreme(_) => 2..=usize::MAX,
            Elementwise::Select | Elementwise::Clip => 3..=3,
        }
    }

    fn apply<'a, A: Algebra<'a>>(
        self,
        algebra: &mut A,
        function: Name<'a>,
        args: &[Arg<'a>],
        range: Range,
    ) -> Lowered<A::Item> {
        let name = function.text;
        if let Some(keyword) = args.iter().find_map(|arg| arg.keyword) {
            let wrong = error(keyword.range, format!("`{name}` has no argument called `{}`", keyword.text));
            return Err(match (self, keyword.text) {
                (Elementwise::Extreme(_), "axis" | "keepdims") => {
                    wrong.help(format!("`{name}` of several values works element by element")).into()
                }
                _ => wrong.into(),
            });
        }
        if !self.arity().contains(&args.len()) {
            let wanted = self.arity();
            let wanted = counted(*wanted.start(), "argument", "arguments");
            let wrong = error(range, format!("`{name}` takes {wanted}, not {}", args.len()));
            return Err(wrong.into());
        }
        let mut items = Vec::with_capacity(args.len());
        for arg in args {
            items.push(evaluate(algebra, &arg.value)?);
        }
        let binary = |algebra: &mut A, op, a, b| operate(algebra, Operator::Arithmetic(op), a, b, range);
        match self {
            Elementwise::Unary(op) => unary(algebra, op, items[0], range),
            Elementwise::Binary(op) => binary(algebra, op, items[0], items[1]),
            Elementwise::Extreme(op) => {
                let mut extreme = items[0];
                for &item in &items[1..] {
                    extreme = binary(algebra, op, extreme, item)?;
                }
                Ok(extreme)
            }
            Elementwise::Select => select(algebra, items[0], items[1], items[2], range),
            Elementwise::Clip => {
                let raised = binary(algebra, BinaryOp::Max, items[0], items[1])?;
                binary(algebra, BinaryOp::Min, raised, items[2])
            }
            Elementwise::Angle => {
                let re = unary(algebra, UnaryOp::Real, items[0], range)?;
                let im = unary(algebra, UnaryOp::Imag, items[0], range)?;
                binary(algebra, BinaryOp::Atan2, im, re)
            }
            Elementwise::Cast(dtype) => match algebra.as_literal(items[0]) {
                // Literals are of few types; for others the tensor they meet decides.
                Some(value) if matches!(dtype, DType::Bool | DType::I64 | DType::F64 | DType::C128) => {
                    Ok(algebra.literal(value.cast(dtype)))
                }
                _ => algebra.cast(dtype, items[0], range),
            },
        }
    }
}
