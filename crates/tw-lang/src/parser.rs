//! From tokens to statements, by recursive descent.

use tw_ir::{BinaryOp, Error, FileId, Result};

use super::ast::{Assign, AssignOp, Binder, Item, Name, Operator, Stmt, StmtKind};
use super::lexer::Lexer;
use super::token::{Keyword, Range, Symbol, Token, TokenKind};

mod block;
mod declaration;
mod expression;
mod postfix;

/// How deep expressions and blocks may nest. The parser and everything after it recurse no deeper than this, so no text overflows the stack.
pub(super) const MAX_DEPTH: u16 = 200;

/// Reads a whole text.
pub(super) fn parse(file: FileId, text: &str) -> Result<Vec<Stmt<'_>>> {
    let mut parser = Parser::new(file, text)?;
    let statements = parser.statements()?;
    match parser.current.kind {
        TokenKind::EndOfText => Ok(statements),
        _ => Err(parser.unexpected("a statement")),
    }
}

struct Parser<'a> {
    lexer: Lexer<'a>,
    current: Token<'a>,
    /// The token after the current one, if it has been peeked at.
    following: Option<Token<'a>>,
    /// The end of the last token taken.
    last_end: u32,
    depth: u16,
}

impl<'a> Parser<'a> {
    fn new(file: FileId, text: &'a str) -> Result<Parser<'a>> {
        let mut lexer = Lexer::new(file, text)?;
        let current = lexer.next_token()?;
        Ok(Parser { lexer, current, following: None, last_end: 0, depth: 0 })
    }

    fn advance(&mut self) -> Result<Token<'a>> {
        let next = match self.following.take() {
            Some(token) => token,
            None => self.lexer.next_token()?,
        };
        let taken = std::mem::replace(&mut self.current, next);
        self.last_end = taken.range.end;
        Ok(taken)
    }

    /// From the start of a range to the end of the last token taken.
    fn since(&self, start: Range) -> Range {
        Range { end: self.last_end, ..start }
    }

    fn peek(&mut self) -> Result<Token<'a>> {
        match self.following {
            Some(token) => Ok(token),
            None => {
                let token = self.lexer.next_token()?;
                self.following = Some(token);
                Ok(token)
            }
        }
    }

    fn at(&self, symbol: Symbol) -> bool {
        self.current.kind == TokenKind::Symbol(symbol)
    }

    fn at_keyword(&self, keyword: Keyword) -> bool {
        self.current.kind == TokenKind::Keyword(keyword)
    }

    /// Takes the symbol if it is there.
    fn accept(&mut self, symbol: Symbol) -> Result<bool> {
        let found = self.at(symbol);
        if found {
            self.advance()?;
        }
        Ok(found)
    }

    fn accept_keyword(&mut self, keyword: Keyword) -> Result<bool> {
        let found = self.at_keyword(keyword);
        if found {
            self.advance()?;
        }
        Ok(found)
    }

    fn expect(&mut self, symbol: Symbol) -> Result<Range> {
        if self.at(symbol) {
            return Ok(self.advance()?.range);
        }
        Err(self.unexpected(&format!("`{}`", symbol.text())))
    }

    /// Closes a bracket; an error points at the one that is open.
    fn close(&mut self, symbol: Symbol, open: Range) -> Result<Range> {
        if self.at(symbol) {
            return Ok(self.advance()?.range);
        }
        let error = Error::source(format!("this bracket is never closed: `{}` is missing", symbol.text()))
            .note(format!("it should come before {}", self.current.kind));
        Err(error.at(&open.to(self.since(open)).span()))
    }

    fn unexpected(&self, wanted: &str) -> Error {
        let found = self.current.kind;
        let error = Error::source(format!("{wanted} was expected, but {found} was found"));
        let error = match found {
            TokenKind::Keyword(keyword) if wanted.contains("name") => {
                error.help(format!("`{}` is a keyword; choose another name", keyword.text()))
            }
            TokenKind::Symbol(Symbol::CloseParen | Symbol::CloseBracket | Symbol::CloseBrace) => {
                error.help("remove it, or open a bracket for it")
            }
            TokenKind::Symbol(Symbol::Assign) => error.help("use `==` to compare"),
            _ => error,
        };
        error.at(&self.current.range.span())
    }

    fn name(&mut self, what: &str) -> Result<Name<'a>> {
        match self.current.kind {
            TokenKind::Name(text) => {
                let range = self.advance()?.range;
                Ok(Name { text, range })
            }
            _ => Err(self.unexpected(what)),
        }
    }

    fn path(&mut self) -> Result<Name<'a>> {
        match self.current.kind {
            TokenKind::Text(text) => {
                let range = self.advance()?.range;
                Ok(Name { text, range })
            }
            _ => Err(self.unexpected("a file name in double quotes")),
        }
    }

    /// Runs a part of the parser one level deeper.
    fn deeper<T>(&mut self, part: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        if self.depth == MAX_DEPTH {
            return Err(self.too_deep(self.current.range));
        }
        self.depth += 1;
        let result = part(self);
        self.depth -= 1;
        result
    }

    fn too_deep(&self, range: Range) -> Error {
        Error::source(format!("this is nested more than {MAX_DEPTH} levels deep"))
            .help("give inner parts names of their own")
            .at(&range.span())
    }

    fn skip_ends(&mut self) -> Result<()> {
        while self.current.kind == TokenKind::EndOfStatement {
            self.advance()?;
        }
        Ok(())
    }

    /// Statements up to a closing brace or the end of the text.
    fn statements(&mut self) -> Result<Vec<Stmt<'a>>> {
        let mut statements = Vec::new();
        loop {
            self.skip_ends()?;
            if self.at(Symbol::CloseBrace) || self.current.kind == TokenKind::EndOfText {
                return Ok(statements);
            }
            let start = self.current.range;
            let kind = self.statement()?;
            statements.push(Stmt { kind, range: self.since(start) });
            let ended = matches!(self.current.kind, TokenKind::EndOfStatement | TokenKind::EndOfText);
            if !ended && !self.at(Symbol::CloseBrace) {
                return Err(self.unexpected("the end of the statement"));
            }
        }
    }

    fn statement(&mut self) -> Result<StmtKind<'a>> {
        if let TokenKind::Keyword(keyword) = self.current.kind
            && self.peek()?.kind == TokenKind::Symbol(Symbol::Assign)
        {
            let text = format!("`{}` is a keyword and cannot be assigned", keyword.text());
            return Err(Error::source(text).help("choose another name").at(&self.current.range.span()));
        }
        match self.current.kind {
            TokenKind::Keyword(Keyword::Param) => {
                self.advance()?;
                let name = self.name("the name of a parameter")?;
                self.expect(Symbol::Assign)?;
                Ok(StmtKind::Param { name, value: self.expression()? })
            }
            TokenKind::Keyword(Keyword::Input) => self.input(),
            TokenKind::Keyword(Keyword::Output) => {
                self.advance()?;
                let name = self.name("the name of an output")?;
                let path = if self.accept(Symbol::Arrow)? { Some(self.path()?) } else { None };
                Ok(StmtKind::Output { name, path })
            }
            TokenKind::Keyword(Keyword::While) => {
                self.advance()?;
                let condition = self.expression()?;
                Ok(StmtKind::While { condition, body: self.block()? })
            }
            TokenKind::Keyword(Keyword::If) => self.deeper(Parser::branch),
            TokenKind::Keyword(Keyword::Else) => {
                Err(self.unexpected("a statement").help("`else` follows the closing brace of an `if`"))
            }
            TokenKind::Keyword(Keyword::For) => Err(self
                .unexpected("a statement")
                .help("ranges follow their statement: `y[i] = x[i-1] for i in 1..n`; repeat statements with `while`")),
            TokenKind::Name(_) => self.assignment(),
            _ => Err(self.unexpected("a statement")),
        }
    }

    fn block(&mut self) -> Result<Vec<Stmt<'a>>> {
        let open = self.expect(Symbol::OpenBrace)?;
        let statements = self.deeper(Parser::statements)?;
        self.close(Symbol::CloseBrace, open)?;
        Ok(statements)
    }

    fn branch(&mut self) -> Result<StmtKind<'a>> {
        self.advance()?;
        let condition = self.expression()?;
        let then = self.block()?;
        // `else` may stand on the line after the brace, but then the end of the statement must stay if there is none.
        if self.current.kind == TokenKind::EndOfStatement && self.peek()?.kind == TokenKind::Keyword(Keyword::Else) {
            self.advance()?;
        }
        let mut otherwise = Vec::new();
        if self.accept_keyword(Keyword::Else)? {
            if self.at_keyword(Keyword::If) {
                let start = self.current.range;
                let kind = self.deeper(Parser::branch)?;
                otherwise.push(Stmt { kind, range: self.since(start) });
            } else {
                otherwise = self.block()?;
            }
        }
        Ok(StmtKind::If { condition, then, otherwise })
    }

    /// Either an assignment, a declaration, or a call of a block function.
    fn assignment(&mut self) -> Result<StmtKind<'a>> {
        let target = self.name("a name")?;
        if self.accept(Symbol::Colon)? {
            return Ok(StmtKind::Declare { name: target, ty: self.type_expr()? });
        }
        if self.at(Symbol::Comma) {
            return self.block_call(target);
        }
        if self.at(Symbol::Assign) && self.peek()?.kind == TokenKind::Keyword(Keyword::Block) {
            return self.block_call(target);
        }
        let indices: Option<Vec<Item<'a>>> =
            if self.at(Symbol::OpenBracket) { Some(self.index_items()?.0) } else { None };
        let op = self.assign_op()?;
        let value = self.expression()?;
        let (mut guard, mut ranges) = (None, Vec::new());
        loop {
            if self.at_keyword(Keyword::Where) && guard.is_none() {
                self.advance()?;
                guard = Some(self.expression()?);
            } else if self.at_keyword(Keyword::For) {
                self.advance()?;
                self.range_clauses(&mut ranges)?;
            } else {
                break;
            }
        }
        Ok(StmtKind::Assign(Box::new(Assign { target, indices, op, value, guard, ranges })))
    }

    fn assign_op(&mut self) -> Result<AssignOp> {
        let arithmetic = |op| AssignOp::Update(Operator::Arithmetic(op));
        let op = match self.current.kind {
            TokenKind::Symbol(Symbol::Assign) => AssignOp::Set,
            TokenKind::Symbol(Symbol::PlusAssign) => arithmetic(BinaryOp::Add),
            TokenKind::Symbol(Symbol::MinusAssign) => arithmetic(BinaryOp::Sub),
            TokenKind::Symbol(Symbol::StarAssign) => arithmetic(BinaryOp::Mul),
            TokenKind::Symbol(Symbol::SlashAssign) => arithmetic(BinaryOp::Div),
            // `min=` is a word and `=` without a space.
            kind => {
                let op = match kind {
                    TokenKind::Name("min") => arithmetic(BinaryOp::Min),
                    TokenKind::Name("max") => arithmetic(BinaryOp::Max),
                    TokenKind::Keyword(Keyword::And) => AssignOp::Update(Operator::Logical(BinaryOp::And)),
                    TokenKind::Keyword(Keyword::Or) => AssignOp::Update(Operator::Logical(BinaryOp::Or)),
                    TokenKind::Symbol(Symbol::OpenParen) => {
                        return Err(self.unexpected("`=`").help("a value must go somewhere: `y = f(x)`"));
                    }
                    TokenKind::Symbol(Symbol::Equal) => {
                        return Err(self.unexpected("`=`").help("`=` assigns, `==` compares"));
                    }
                    _ => return Err(self.unexpected("`=`")),
                };
                let end = self.current.range.end;
                let next = self.peek()?;
                if next.kind != TokenKind::Symbol(Symbol::Assign) || next.range.start != end {
                    return Err(self.unexpected("`=`"));
                }
                self.advance()?;
                op
            }
        };
        self.advance()?;
        Ok(op)
    }

    /// `i in 0..n, j in 1..m`.
    fn range_clauses(&mut self, ranges: &mut Vec<Binder<'a>>) -> Result<()> {
        loop {
            let binder = self.binder()?;
            if binder.range.is_none() {
                return Err(self.unexpected("`in` and a range such as `0..n`"));
            }
            ranges.push(binder);
            if !self.accept(Symbol::Comma)? {
                return Ok(());
            }
        }
    }

    fn binder(&mut self) -> Result<Binder<'a>> {
        let name = self.name("the name of an index")?;
        let range = if self.accept_keyword(Keyword::In)? {
            let start = self.expression()?;
            self.expect(Symbol::DotDot)?;
            Some((start, self.expression()?))
        } else {
            None
        };
        Ok(Binder { name, range })
    }
}
