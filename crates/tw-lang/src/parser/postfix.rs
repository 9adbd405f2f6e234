//! Postfix forms: brackets, arguments, attributes.

use tw_ir::Result;

use super::Parser;
use crate::ast::{Arg, Expr, ExprKind, Item, Name, Reduce};
use crate::token::{Keyword, Symbol, TokenKind};
use tw_build::Reduction;

impl<'a> Parser<'a> {
    /// A value with everything that is appended to it.
    pub(super) fn postfix(&mut self) -> Result<Expr<'a>> {
        let mut expr = self.primary()?;
        loop {
            if self.at(Symbol::OpenBracket) {
                if let ExprKind::Name(text) = expr.kind
                    && Reduction::named(text).is_some()
                {
                    expr = self.reduce(Name { text, range: expr.range })?;
                    continue;
                }
                let (items, height) = self.index_items()?;
                let range = self.since(expr.range);
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
        let start = base.range;
        if !self.at(Symbol::OpenParen) {
            let (range, below) = (base.range.to(name.range), base.height);
            return self.node(ExprKind::Attribute { base: Box::new(base), name }, range, below);
        }
        let (mut args, height) = self.arguments()?;
        let below = base.height.max(height);
        let range = self.since(start);
        let kind = match base {
            Expr { kind: ExprKind::Name(text @ ("random" | "linalg")), range, .. } => {
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
        let range = self.since(function.range);
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
        let range = self.since(function.range);
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
        let begin = self.current.range;
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
            (start, _) => Ok(Item::Slice { start, stop, step: step.map(Box::new), range: self.since(begin) }),
        }
    }
}
