//! Expressions, by precedence.

use tw_ir::{BinaryOp, Result, UnaryOp};

use super::{MAX_DEPTH, Parser};
use crate::build::Reduction;
use crate::lang::ast::{Arg, Expr, ExprKind, Item, Name, Operator, Reduce};
use crate::lang::token::{Keyword, Range, Symbol, Token, TokenKind};

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

    /// A length between the parentheses of a ragged tiling, where blanks separate.
    pub(super) fn tile_length(&mut self) -> Result<Expr<'a>> {
        self.primary()
    }

    /// Wraps a new node, keeping to the limit of height.
    fn node(&self, kind: ExprKind<'a>, range: Range, below: u16) -> Result<Expr<'a>> {
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

    fn postfix(&mut self) -> Result<Expr<'a>> {
        let mut expr = self.primary()?;
        loop {
            if self.at(Symbol::OpenBracket) {
                if let ExprKind::Name(text) = expr.kind
                    && reduction_named(text).is_some()
                {
                    expr = self.reduce(Name { text, range: expr.range })?;
                    continue;
                }
                let (items, height) = self.index_items()?;
                let range = Range { start: expr.range.start, end: self.last_end };
                let below = expr.height.max(height);
                expr = self.node(ExprKind::Index { base: Box::new(expr), items }, range, below)?;
            } else if self.at(Symbol::OpenParen) {
                expr = self.call(expr)?;
            } else if self.accept(Symbol::Dot)? {
                let name = self.name("the name of an attribute or method")?;
                expr = self.attribute(expr, name)?;
            } else {
                return Ok(expr);
            }
        }
    }

    fn attribute(&mut self, base: Expr<'a>, name: Name<'a>) -> Result<Expr<'a>> {
        let start = base.range.start;
        if !self.at(Symbol::OpenParen) {
            let (range, below) = (base.range.to(name.range), base.height);
            return self.node(ExprKind::Attribute { base: Box::new(base), name }, range, below);
        }
        let (mut args, height) = self.arguments()?;
        let below = base.height.max(height);
        let range = Range { start, end: self.last_end };
        let kind = match base {
            Expr { kind: ExprKind::Name(text @ "random"), range, .. } => {
                ExprKind::FamilyCall { family: Name { text, range }, function: name, args }
            }
            base => {
                args.insert(0, Arg { keyword: None, value: base });
                ExprKind::Call { function: name, args }
            }
        };
        self.node(kind, range, below)
    }

    fn call(&mut self, function: Expr<'a>) -> Result<Expr<'a>> {
        let ExprKind::Name(text) = function.kind else {
            let error = self.unexpected("an operator");
            return Err(error.help("only names can be called; write `*` to multiply"));
        };
        let function = Name { text, range: function.range };
        let (args, below) = self.arguments()?;
        let range = Range { start: function.range.start, end: self.last_end };
        self.node(ExprKind::Call { function, args }, range, below)
    }

    /// `(a, b, key=c)`, with the height of the highest argument.
    fn arguments(&mut self) -> Result<(Vec<Arg<'a>>, u16)> {
        let open = self.expect(Symbol::OpenParen)?;
        let (mut args, mut height) = (Vec::new(), 0);
        while !self.at(Symbol::CloseParen) {
            let mut keyword = None;
            if let TokenKind::Name(text) = self.current.kind
                && self.peek()?.kind == TokenKind::Symbol(Symbol::Assign)
            {
                keyword = Some(Name { text, range: self.advance()?.range });
                self.advance()?;
            }
            let value = self.expression()?;
            height = height.max(value.height);
            args.push(Arg { keyword, value });
            if !self.accept(Symbol::Comma)? {
                break;
            }
        }
        self.close(Symbol::CloseParen, open)?;
        Ok((args, height))
    }

    /// `sum[k, l in 0..n](body where guard)`, after the name.
    fn reduce(&mut self, function: Name<'a>) -> Result<Expr<'a>> {
        let open = self.advance()?.range;
        let mut binders = Vec::new();
        let mut below = 0;
        while !self.at(Symbol::CloseBracket) {
            let binder = self.binder()?;
            if let Some((start, end)) = &binder.range {
                below = below.max(start.height).max(end.height);
            }
            binders.push(binder);
            if !self.accept(Symbol::Comma)? {
                break;
            }
        }
        self.close(Symbol::CloseBracket, open)?;
        if !self.at(Symbol::OpenParen) {
            let error = self.unexpected("`(` and what is reduced");
            return Err(error.help(format!("for example `{}[k](x[k])`", function.text)));
        }
        let open = self.advance()?.range;
        let body = self.expression()?;
        let guard = if self.accept_keyword(Keyword::Where)? { Some(self.expression()?) } else { None };
        self.close(Symbol::CloseParen, open)?;
        below = below.max(body.height).max(guard.as_ref().map_or(0, |guard| guard.height));
        let range = Range { start: function.range.start, end: self.last_end };
        self.node(ExprKind::Reduce(Box::new(Reduce { function, binders, body, guard })), range, below)
    }

    /// `[a, b:c, ...]`, with the height of the highest part.
    pub(super) fn index_items(&mut self) -> Result<(Vec<Item<'a>>, u16)> {
        let open = self.expect(Symbol::OpenBracket)?;
        let (mut items, mut height) = (Vec::new(), 0);
        while !self.at(Symbol::CloseBracket) {
            items.push(self.index_item(&mut height)?);
            if !self.accept(Symbol::Comma)? {
                break;
            }
        }
        self.close(Symbol::CloseBracket, open)?;
        Ok((items, height))
    }

    fn index_item(&mut self, height: &mut u16) -> Result<Item<'a>> {
        if self.at(Symbol::Ellipsis) {
            return Ok(Item::Ellipsis(self.advance()?.range));
        }
        let begin = self.current.range.start;
        let mut parts = [None, None, None];
        let mut colons = 0;
        loop {
            if self.at(Symbol::Colon) && colons < 2 {
                self.advance()?;
                colons += 1;
            } else if parts[colons].is_none() && !self.at(Symbol::Comma) && !self.at(Symbol::CloseBracket) {
                let part = self.expression()?;
                *height = (*height).max(part.height);
                parts[colons] = Some(part);
            } else {
                break;
            }
        }
        let [start, stop, step] = parts;
        match (start, colons) {
            (Some(at), 0) => Ok(Item::At(at)),
            (None, 0) => Err(self.unexpected("an index")),
            (start, _) => Ok(Item::Slice { start, stop, step, range: Range { start: begin, end: self.last_end } }),
        }
    }

    fn primary(&mut self) -> Result<Expr<'a>> {
        let Token { kind, range } = self.current;
        let kind = match kind {
            TokenKind::Int(value) => ExprKind::Int(value),
            TokenKind::Float(value) => ExprKind::Float(value),
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
        let range = Range { start: open.start, end: self.last_end };
        self.node(ExprKind::List(parts), range, below)
    }

    fn parenthesised(&mut self) -> Result<Expr<'a>> {
        let open = self.advance()?.range;
        let first = self.expression()?;
        if self.at(Symbol::CloseParen) {
            self.advance()?;
            return Ok(Expr { range: Range { start: open.start, end: self.last_end }, ..first });
        }
        let mut below = first.height;
        let mut parts = vec![first];
        while self.accept(Symbol::Comma)? && !self.at(Symbol::CloseParen) {
            let part = self.expression()?;
            below = below.max(part.height);
            parts.push(part);
        }
        self.close(Symbol::CloseParen, open)?;
        let range = Range { start: open.start, end: self.last_end };
        self.node(ExprKind::Tuple(parts), range, below)
    }
}

/// The reduction a function name stands for.
pub(in crate::lang) fn reduction_named(name: &str) -> Option<Reduction> {
    Some(match name {
        "sum" => Reduction::Sum,
        "prod" => Reduction::Prod,
        "min" => Reduction::Min,
        "max" => Reduction::Max,
        "any" => Reduction::Any,
        "all" => Reduction::All,
        "mean" => Reduction::Mean,
        "var" => Reduction::Var { ddof: 0.0 },
        "std" => Reduction::Std { ddof: 0.0 },
        "argmin" => Reduction::ArgMin,
        "argmax" => Reduction::ArgMax,
        "count" => Reduction::Count,
        _ => return None,
    })
}
