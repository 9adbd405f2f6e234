//! Reads the text of a kernel. What it returns has been verified.

use std::collections::HashMap;
use std::str::FromStr;

use tw_ir::dtype::{C64, C128};
use tw_ir::{BinaryOp, DType, Error, Result, Scalar, UnaryOp};

use super::print::{function_name, infix};
use super::{ArrayDecl, ArrayId, ArrayRole, ArrayType, LocalDecl, LocalId, LoopExpr, LoopKernel, LoopStmt};
use crate::width::IndexWidth;

/// Bodies and brackets nest at most this deep: parsing recurses.
const MAX_DEPTH: usize = 200;

/// Reads a kernel.
pub fn parse_kernel(text: &str) -> Result<LoopKernel> {
    let tokens = tokens(text)?;
    let kernel =
        LoopKernel { name: String::new(), n_params: 0, locals: Vec::new(), arrays: Vec::new(), body: Vec::new() };
    let mut parser = Parser { tokens, at: 0, kernel, names: HashMap::new(), depth: 0 };
    parser.kernel()?;
    super::verify::verify(&parser.kernel)?;
    Ok(parser.kernel)
}

#[derive(Clone, Debug, PartialEq)]
enum Token {
    Word(String),
    Number(String),
    Typed(String, String),
    Comment(String),
    Symbol(&'static str),
    End,
}

const SYMBOLS: &[&str] =
    &["..", "==", "!=", "<=", ">=", "<", ">", "=", "+", "-", "*", "/", "(", ")", "[", "]", "{", "}", ",", ":"];

fn tokens(text: &str) -> Result<Vec<(usize, Token)>> {
    let mut found = Vec::new();
    for (k, line) in text.lines().enumerate() {
        let mut rest = line.trim_start();
        while !rest.is_empty() {
            let (token, length) = token(rest).ok_or_else(|| at_line(k + 1, format!("`{rest}` is not understood")))?;
            found.push((k + 1, token));
            rest = rest[length..].trim_start();
        }
    }
    found.push((text.lines().count(), Token::End));
    Ok(found)
}

fn token(rest: &str) -> Option<(Token, usize)> {
    let run = |rest: &str, wanted: fn(char) -> bool| rest.find(|c| !wanted(c)).unwrap_or(rest.len());
    if let Some(comment) = rest.strip_prefix('#') {
        return Some((Token::Comment(comment.trim().to_string()), rest.len()));
    }
    let first = rest.chars().next()?;
    if first.is_ascii_digit() {
        let mut end = run(rest, |c| c.is_ascii_digit());
        if rest[end..].starts_with('.') && !rest[end..].starts_with("..") {
            end += 1 + run(&rest[end + 1..], |c| c.is_ascii_digit());
        }
        if rest[end..].starts_with('e') {
            let sign = rest[end + 1..].starts_with(['+', '-']) as usize;
            end += 1 + sign + run(&rest[end + 1 + sign..], |c| c.is_ascii_digit());
        }
        return Some((Token::Number(rest[..end].to_string()), end));
    }
    if first.is_ascii_alphabetic() || first == '_' {
        let end = run(rest, |c| c.is_ascii_alphanumeric() || c == '_');
        let word = rest[..end].to_string();
        if let Some(quoted) = rest[end..].strip_prefix('\'') {
            let length = quoted.find('\'')?;
            return Some((Token::Typed(word, quoted[..length].to_string()), end + length + 2));
        }
        if word == "nan" && rest[end..].starts_with(":0x") {
            let bits = 3 + run(&rest[end + 3..], |c| c.is_ascii_hexdigit());
            return Some((Token::Number(rest[..end + bits].to_string()), end + bits));
        }
        return Some((Token::Word(word), end));
    }
    let symbol = SYMBOLS.iter().find(|symbol| rest.starts_with(**symbol))?;
    Some((Token::Symbol(symbol), symbol.len()))
}

fn at_line(line: usize, message: impl std::fmt::Display) -> Error {
    Error::source(format!("line {line} of a kernel: {message}"))
}

enum Name {
    Local(LocalId),
    Array(ArrayId),
}

struct Parser {
    tokens: Vec<(usize, Token)>,
    at: usize,
    kernel: LoopKernel,
    names: HashMap<String, Name>,
    depth: usize,
}

impl Parser {
    fn peek(&self) -> &Token {
        &self.tokens[self.at.min(self.tokens.len() - 1)].1
    }
    fn next(&mut self) -> Token {
        let token = self.peek().clone();
        self.at += 1;
        token
    }
    fn error(&self, message: impl std::fmt::Display) -> Error {
        at_line(self.tokens[self.at.min(self.tokens.len() - 1)].0, message)
    }
    fn eat(&mut self, symbol: &str) -> bool {
        let found = matches!(self.peek(), Token::Symbol(other) if *other == symbol);
        self.at += found as usize;
        found
    }
    fn eat_word(&mut self, word: &str) -> bool {
        let found = matches!(self.peek(), Token::Word(other) if other == word);
        self.at += found as usize;
        found
    }
    fn expect(&mut self, symbol: &str) -> Result<()> {
        if self.eat(symbol) { Ok(()) } else { Err(self.error(format!("expected `{symbol}`"))) }
    }
    fn word(&mut self) -> Result<String> {
        match self.next() {
            Token::Word(word) => Ok(word),
            _ => Err(self.error("expected a name")),
        }
    }
    fn nested<R>(&mut self, inner: impl FnOnce(&mut Parser) -> Result<R>) -> Result<R> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(self.error(format!("more than {MAX_DEPTH} nested bodies or brackets")));
        }
        let result = inner(self);
        self.depth -= 1;
        result
    }

    fn kernel(&mut self) -> Result<()> {
        if !self.eat_word("kernel") {
            return Err(self.error("expected `kernel`"));
        }
        self.kernel.name = self.word()?;
        self.expect("(")?;
        while !self.eat(")") {
            let name = self.word()?;
            self.add_local(name, DType::I64)?;
            self.kernel.n_params += 1;
            if !matches!(self.peek(), Token::Symbol(")")) {
                self.expect(",")?;
            }
        }
        self.expect("{")?;
        while let Token::Word(word) = self.peek().clone() {
            let role = match word.as_str() {
                "input" => Some(ArrayRole::Input),
                "output" => Some(ArrayRole::Output),
                "workspace" => Some(ArrayRole::Workspace),
                "local" => None,
                _ => break,
            };
            self.at += 1;
            let name = self.word()?;
            self.expect(":")?;
            let kind = self.word()?;
            let value = |kind: &str| DType::from_str(kind).ok();
            match role {
                None => {
                    let dtype = value(&kind).ok_or_else(|| self.error(format!("`{kind}` is not a dtype")))?;
                    self.add_local(name, dtype)?;
                }
                Some(role) => {
                    let kind = match kind.as_str() {
                        "index32" => ArrayType::Index(IndexWidth::U32),
                        "index64" => ArrayType::Index(IndexWidth::U64),
                        kind => {
                            ArrayType::Value(value(kind).ok_or_else(|| self.error(format!("`{kind}` is not a dtype")))?)
                        }
                    };
                    let id = ArrayId(self.kernel.arrays.len() as u32);
                    self.add_name(name.clone(), Name::Array(id))?;
                    self.kernel.arrays.push(ArrayDecl { name, kind, role });
                }
            }
        }
        self.kernel.body = self.body()?;
        match self.peek() {
            Token::End => Ok(()),
            _ => Err(self.error("expected the end")),
        }
    }

    fn add_name(&mut self, name: String, meaning: Name) -> Result<()> {
        match self.names.insert(name.clone(), meaning) {
            None => Ok(()),
            Some(_) => Err(self.error(format!("`{name}` is declared twice"))),
        }
    }
    fn add_local(&mut self, name: String, dtype: DType) -> Result<()> {
        let id = LocalId(self.kernel.locals.len() as u32);
        self.kernel.locals.push(LocalDecl { name: name.clone(), dtype });
        self.add_name(name, Name::Local(id))
    }
    fn local(&mut self) -> Result<LocalId> {
        let name = self.word()?;
        match self.names.get(&name) {
            Some(Name::Local(id)) => Ok(*id),
            _ => Err(self.error(format!("`{name}` is not a variable"))),
        }
    }
    fn array(&mut self) -> Result<ArrayId> {
        let name = self.word()?;
        match self.names.get(&name) {
            Some(Name::Array(id)) => Ok(*id),
            _ => Err(self.error(format!("`{name}` is not an array"))),
        }
    }

    /// Statements up to the closing brace, which is eaten.
    fn body(&mut self) -> Result<Vec<LoopStmt>> {
        self.nested(|parser| {
            let mut body = Vec::new();
            while !parser.eat("}") {
                body.push(parser.stmt()?);
            }
            Ok(body)
        })
    }

    fn stmt(&mut self) -> Result<LoopStmt> {
        if let Token::Comment(text) = self.peek().clone() {
            self.at += 1;
            return Ok(LoopStmt::Comment(text));
        }
        if self.eat_word("for") {
            let local = self.local()?;
            if !self.eat_word("in") {
                return Err(self.error("expected `in`"));
            }
            let from = self.expr(3)?;
            self.expect("..")?;
            let to = self.expr(3)?;
            self.expect("{")?;
            return Ok(LoopStmt::For(local, from, to, self.body()?));
        }
        if self.eat_word("while") {
            let condition = self.expr(0)?;
            self.expect("{")?;
            return Ok(LoopStmt::While(condition, self.body()?));
        }
        if self.eat_word("if") {
            return self.nested(Parser::branches);
        }
        if self.eat_word("push") {
            let array = self.array()?;
            self.expect(",")?;
            return Ok(LoopStmt::Push(array, self.expr(0)?));
        }
        if self.eat_word("sort") {
            let keys = self.array()?;
            let values = if self.eat_word("with") { Some(self.array()?) } else { None };
            return Ok(LoopStmt::Sort(keys, values));
        }
        if self.eat_word("resize") {
            let array = self.array()?;
            let to = self.eat_word("to");
            let length = self.expr(0)?;
            if !to || !self.eat_word("with") {
                return Err(self.error("expected `resize array to length with value`"));
            }
            let LoopExpr::Const(fill) = self.expr(5)? else { return Err(self.error("expected a constant")) };
            return Ok(LoopStmt::Resize(array, length, fill));
        }
        let Token::Word(name) = self.peek().clone() else { return Err(self.error("expected a statement")) };
        match self.names.get(&name) {
            Some(Name::Local(_)) => {
                let local = self.local()?;
                self.expect("=")?;
                Ok(LoopStmt::Set(local, self.expr(0)?))
            }
            Some(Name::Array(_)) => {
                let array = self.array()?;
                self.expect("[")?;
                let index = self.expr(0)?;
                self.expect("]")?;
                self.expect("=")?;
                Ok(LoopStmt::Store(array, index, self.expr(0)?))
            }
            None => Err(self.error(format!("`{name}` is not declared"))),
        }
    }

    fn branches(&mut self) -> Result<LoopStmt> {
        let condition = self.expr(0)?;
        self.expect("{")?;
        let yes = self.body()?;
        let no = match self.eat_word("else") {
            false => Vec::new(),
            true if self.eat_word("if") => vec![self.nested(Parser::branches)?],
            true => {
                self.expect("{")?;
                self.body()?
            }
        };
        Ok(LoopStmt::If(condition, yes, no))
    }

    /// An expression of operators that bind at least as tightly as `least`.
    fn expr(&mut self, least: u8) -> Result<LoopExpr> {
        let mut left = self.nested(Parser::atom)?;
        loop {
            if least <= 1 && self.eat_word("and") {
                let right = self.nested(|parser| parser.expr(2))?;
                left = LoopExpr::Both(Box::new(left), Box::new(right));
                continue;
            }
            let Token::Symbol(symbol) = *self.peek() else { return Ok(left) };
            let found = BinaryOp::ALL.iter().find_map(|&op| match infix(op) {
                Some((other, precedence)) if other == symbol && precedence >= least => Some((op, precedence)),
                _ => None,
            });
            let Some((op, precedence)) = found else { return Ok(left) };
            self.at += 1;
            let right = self.nested(|parser| parser.expr(precedence + 1))?;
            left = LoopExpr::binary(op, left, right);
        }
    }

    fn number(&self, text: &str, negative: bool) -> Result<LoopExpr> {
        let sign = if negative { "-" } else { "" };
        let text = format!("{sign}{text}");
        let value = if text.bytes().all(|c| c.is_ascii_digit() || c == b'-') {
            text.parse().ok().map(Scalar::I64)
        } else {
            double(&text).map(Scalar::F64)
        };
        value.map(LoopExpr::Const).ok_or_else(|| self.error(format!("`{text}` is not a number")))
    }

    fn atom(&mut self) -> Result<LoopExpr> {
        match self.next() {
            Token::Number(text) => self.number(&text, false),
            Token::Symbol("-") => match self.next() {
                Token::Number(text) => self.number(&text, true),
                Token::Word(word) if word == "inf" => self.number("inf", true),
                _ => Err(self.error("expected a number after `-`")),
            },
            Token::Typed(dtype, text) => typed(&dtype, &text)
                .map(LoopExpr::Const)
                .ok_or_else(|| self.error(format!("`{text}` is not a constant of type {dtype}"))),
            Token::Symbol("(") => {
                let inner = self.expr(0)?;
                self.expect(")")?;
                Ok(inner)
            }
            Token::Word(word) => self.named(&word),
            _ => Err(self.error("expected an expression")),
        }
    }

    fn named(&mut self, word: &str) -> Result<LoopExpr> {
        match word {
            "true" => return Ok(LoopExpr::Const(Scalar::Bool(true))),
            "false" => return Ok(LoopExpr::Const(Scalar::Bool(false))),
            "inf" | "nan" => return self.number(word, false),
            _ => {}
        }
        if let Some(name) = self.names.get(word) {
            return match name {
                Name::Local(id) => Ok(LoopExpr::Local(*id)),
                Name::Array(id) => {
                    let id = *id;
                    self.expect("[")?;
                    let index = self.expr(0)?;
                    self.expect("]")?;
                    Ok(LoopExpr::load(id, index))
                }
            };
        }
        self.expect("(")?;
        if word == "len" || word == "seek" {
            let array = self.array()?;
            if word == "len" {
                self.expect(")")?;
                return Ok(LoopExpr::Len(array));
            }
            self.expect(",")?;
            let [from, to, target] = self.args()?.map(Box::new);
            return Ok(LoopExpr::Seek { array, from, to, target });
        }
        if word == "select" {
            let [c, a, b] = self.args()?.map(Box::new);
            return Ok(LoopExpr::Select(c, a, b));
        }
        if let Some(op) = BinaryOp::ALL.iter().find(|op| infix(**op).is_none() && function_name(**op) == word) {
            let [a, b] = self.args()?.map(Box::new);
            return Ok(LoopExpr::Binary(*op, a, b));
        }
        if let Ok(op) = UnaryOp::from_str(word) {
            let [a] = self.args()?.map(Box::new);
            return Ok(LoopExpr::Unary(op, a));
        }
        if let Ok(dtype) = DType::from_str(word) {
            let [a] = self.args()?.map(Box::new);
            return Ok(LoopExpr::Cast(dtype, a));
        }
        Err(self.error(format!("`{word}` is neither declared nor a function")))
    }

    fn args<const N: usize>(&mut self) -> Result<[LoopExpr; N]> {
        let mut args = Vec::new();
        loop {
            args.push(self.expr(0)?);
            if self.eat(")") {
                break;
            }
            self.expect(",")?;
        }
        args.try_into().map_err(|_| self.error(format!("expected {N} arguments")))
    }
}

fn double(text: &str) -> Option<f64> {
    match text.strip_prefix("nan:0x") {
        Some(bits) => u64::from_str_radix(bits, 16).ok().map(f64::from_bits),
        None => text.replace("nan", "NaN").parse().ok(),
    }
}

fn single(text: &str) -> Option<f32> {
    match text.strip_prefix("nan:0x") {
        Some(bits) => u32::from_str_radix(bits, 16).ok().map(f32::from_bits),
        None => text.replace("nan", "NaN").parse().ok(),
    }
}

fn typed(dtype: &str, text: &str) -> Option<Scalar> {
    let pair = || text.split_once(", ");
    Some(match dtype.parse().ok()? {
        DType::I8 => Scalar::I8(text.parse().ok()?),
        DType::I16 => Scalar::I16(text.parse().ok()?),
        DType::I32 => Scalar::I32(text.parse().ok()?),
        DType::U8 => Scalar::U8(text.parse().ok()?),
        DType::U16 => Scalar::U16(text.parse().ok()?),
        DType::U32 => Scalar::U32(text.parse().ok()?),
        DType::U64 => Scalar::U64(text.parse().ok()?),
        DType::F32 => Scalar::F32(single(text)?),
        DType::C64 => Scalar::C64(C64::new(single(pair()?.0)?, single(pair()?.1)?)),
        DType::C128 => Scalar::C128(C128::new(double(pair()?.0)?, double(pair()?.1)?)),
        other @ (DType::F16 | DType::BF16) => Scalar::F32(single(text)?).cast(other),
        _ => return None,
    })
}
