//! Expressions, by precedence.

use tw_ir::{BinaryOp, Result, UnaryOp};

use super::{MAX_DEPTH, Parser};
use crate::ast::{Expr, ExprKind, Operator};
use crate::token::{Keyword, Range, Symbol, Token, TokenKind};

/// How tightly operators bind, loosest first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Level {
    Or,
    And,
    Not,
    Comparison,
    Sum,
    Product,
    Unary,
}

impl Level {
    fn tighter(self) -> Level {
        match self {
            Level::Or => Level::And,
            Level::And => Level::Not,
            Level::Not => Level::Comparison,
            Level::Comparison => Level::Sum,
            Level::Sum => Level::Product,
            Level::Product | Level::Unary => Level::Unary,
        }
    }
}

fn binary_operator(kind: TokenKind<'_>) -> Option<(Operator, Level)> {
    use Operator::{Arithmetic, Logical, MatrixProduct};
    Some(match kind {
        TokenKind::Keyword(Keyword::Or) => (Logical(BinaryOp::Or), Level::Or),
        TokenKind::Keyword(Keyword::And) => (Logical(BinaryOp::And), Level::And),
        TokenKind::Symbol(symbol) => match symbol {
            Symbol::Less => (Arithmetic(BinaryOp::Lt), Level::Comparison),
            Symbol::LessEqual => (Arithmetic(BinaryOp::Le), Level::Comparison),
            Symbol::Greater => (Arithmetic(BinaryOp::Gt), Level::Comparison),
            Symbol::GreaterEqual => (Arithmetic(BinaryOp::Ge), Level::Comparison),
            Symbol::Equal => (Arithmetic(BinaryOp::Eq), Level::Comparison),
            Symbol::NotEqual => (Arithmetic(BinaryOp::Ne), Level::Comparison),
            Symbol::Plus => (Arithmetic(BinaryOp::Add), Level::Sum),
            Symbol::Minus => (Arithmetic(BinaryOp::Sub), Level::Sum),
            Symbol::Star => (Arithmetic(BinaryOp::Mul), Level::Product),
            Symbol::Slash => (Arithmetic(BinaryOp::Div), Level::Product),
            Symbol::FloorDivide => (Arithmetic(BinaryOp::FloorDiv), Level::Product),
            Symbol::Percent => (Arithmetic(BinaryOp::Mod), Level::Product),
            Symbol::At => (MatrixProduct, Level::Product),
            _ => return None,
        },
        _ => return None,
    })
}

/// The level of a chain's operators; a chain holds one level only.
fn level_of(operator: Operator) -> Level {
    match operator {
        Operator::Logical(BinaryOp::Or) => Level::Or,
        Operator::Logical(_) => Level::And,
        Operator::MatrixProduct => Level::Product,
        Operator::Arithmetic(op) if op.is_comparison() => Level::Comparison,
        Operator::Arithmetic(BinaryOp::Add | BinaryOp::Sub) => Level::Sum,
        Operator::Arithmetic(_) => Level::Product,
    }
}

impl<'a> Parser<'a> {
    /// Any expression.
    pub(super) fn expression(&mut self) -> Result<Expr<'a>> {
        self.deeper(|parser| if parser.at_keyword(Keyword::If) { parser.selection() } else { parser.binary(Level::Or) })
    }

    /// Wraps a new node, keeping to the limit of height.
    pub(super) fn node(&self, kind: ExprKind<'a>, range: Range, below: u16) -> Result<Expr<'a>> {
        if below >= MAX_DEPTH {
            return Err(self.too_deep(range));
        }
        Ok(Expr { kind, range, height: below + 1 })
    }

    fn selection(&mut self) -> Result<Expr<'a>> {
        let start = self.advance()?.range;
        let condition = self.expression()?;
        if !self.accept_keyword(Keyword::Then)? {
            return Err(self
                .unexpected("`then`")
                .help("write `if c then a else b`; blocks are statements of their own"));
        }
        let yes = self.expression()?;
        if !self.accept_keyword(Keyword::Else)? {
            return Err(self.unexpected("`else`").help("an expression needs both sides: `if c then a else b`"));
        }
        let no = self.expression()?;
        let below = condition.height.max(yes.height).max(no.height);
        let range = start.to(no.range);
        self.node(ExprKind::Select(Box::new([condition, yes, no])), range, below)
    }

    fn binary(&mut self, level: Level) -> Result<Expr<'a>> {
        let mut left = self.prefix(level)?;
        let mut compared = false;
        while let Some((operator, at)) = binary_operator(self.current.kind) {
            if at < level {
                break;
            }
            if at == Level::Comparison && std::mem::replace(&mut compared, true) {
                let error = self.unexpected("`and` or `or`");
                return Err(error.help("comparisons do not chain: write `a < b and b < c`"));
            }
            self.advance()?;
            let right = self.deeper(|parser| parser.binary(at.tighter()))?;
            left = self.chain(left, operator, right)?;
        }
        Ok(left)
    }

    /// Extends a chain of the same level, or starts one. Operators associate to the left, so a chain in parentheses at the front may grow too.
    fn chain(&mut self, left: Expr<'a>, operator: Operator, right: Expr<'a>) -> Result<Expr<'a>> {
        let range = left.range.to(right.range);
        let height = left.height.max(right.height);
        match left {
            Expr { kind: ExprKind::Chain { first, mut rest }, .. }
                if level_of(rest[0].0) == level_of(operator) && level_of(operator) != Level::Comparison =>
            {
                let below = (height - 1).max(right.height);
                rest.push((operator, right));
                self.node(ExprKind::Chain { first, rest }, range, below)
            }
            left => self.node(ExprKind::Chain { first: Box::new(left), rest: vec![(operator, right)] }, range, height),
        }
    }

    fn prefix(&mut self, level: Level) -> Result<Expr<'a>> {
        if !self.at_keyword(Keyword::Not) {
            return self.unary();
        }
        if level > Level::Not {
            return Err(self.unexpected("a value").help("put parentheses around `not ..`"));
        }
        let start = self.advance()?.range;
        let operand = self.deeper(|parser| parser.binary(Level::Not))?;
        let (range, below) = (start.to(operand.range), operand.height);
        self.node(ExprKind::Not(Box::new(operand)), range, below)
    }

    fn unary(&mut self) -> Result<Expr<'a>> {
        if !self.at(Symbol::Minus) && !self.at(Symbol::Plus) {
            return self.power();
        }
        let negative = self.at(Symbol::Minus);
        let start = self.advance()?.range;
        let operand = self.deeper(Parser::unary)?;
        if !negative {
            return Ok(operand);
        }
        let (range, below) = (start.to(operand.range), operand.height);
        self.node(ExprKind::Unary(UnaryOp::Neg, Box::new(operand)), range, below)
    }

    fn power(&mut self) -> Result<Expr<'a>> {
        let base = self.postfix()?;
        if !self.accept(Symbol::Power)? {
            return Ok(base);
        }
        let exponent = self.deeper(Parser::unary)?;
        let (range, below) = (base.range.to(exponent.range), base.height.max(exponent.height));
        self.node(ExprKind::Power(Box::new(base), Box::new(exponent)), range, below)
    }

    /// A value without operators.
    pub(super) fn primary(&mut self) -> Result<Expr<'a>> {
        let Token { kind, range } = self.current;
        let kind = match kind {
            TokenKind::Int(value) => ExprKind::Int(value),
            TokenKind::Float(value) => ExprKind::Float(value),
            TokenKind::Imaginary(value) => ExprKind::Imaginary(value),
            TokenKind::Text(text) => ExprKind::Text(text),
            TokenKind::Keyword(Keyword::True) => ExprKind::Bool(true),
            TokenKind::Keyword(Keyword::False) => ExprKind::Bool(false),
            TokenKind::Name("tile") if self.peek()?.kind == TokenKind::Symbol(Symbol::OpenParen) => {
                let tile = self.tile()?;
                let (range, below) = (tile.range, tile.height);
                return self.node(ExprKind::Tile(tile), range, below);
            }
            TokenKind::Name(text) => ExprKind::Name(text),
            TokenKind::Symbol(Symbol::OpenParen) => return self.parenthesised(),
            TokenKind::Symbol(Symbol::OpenBracket) => return self.list(),
            TokenKind::Keyword(Keyword::If) => {
                return Err(self.unexpected("a value").help("put parentheses around `if .. then .. else ..`"));
            }
            _ => return Err(self.unexpected("a value")),
        };
        self.advance()?;
        self.node(kind, range, 0)
    }

    fn list(&mut self) -> Result<Expr<'a>> {
        let open = self.advance()?.range;
        let (mut parts, mut below) = (Vec::new(), 0);
        while !self.at(Symbol::CloseBracket) {
            let part = self.expression()?;
            below = below.max(part.height);
            parts.push(part);
            if !self.accept(Symbol::Comma)? {
                break;
            }
        }
        self.close(Symbol::CloseBracket, open)?;
        let range = self.since(open);
        self.node(ExprKind::List(parts), range, below)
    }

    fn parenthesised(&mut self) -> Result<Expr<'a>> {
        let open = self.advance()?.range;
        let first = self.expression()?;
        if self.at(Symbol::CloseParen) {
            self.advance()?;
            return Ok(Expr { range: self.since(open), ..first });
        }
        let mut below = first.height;
        let mut parts = vec![first];
        while self.accept(Symbol::Comma)? && !self.at(Symbol::CloseParen) {
            let part = self.expression()?;
            below = below.max(part.height);
            parts.push(part);
        }
        self.close(Symbol::CloseParen, open)?;
        let range = self.since(open);
        self.node(ExprKind::Tuple(parts), range, below)
    }
}
