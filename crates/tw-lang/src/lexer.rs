//! From text to tokens, one at a time.

use tw_ir::{Error, FileId, Result, TimeUnit};

use super::token::{Keyword, Range, Symbol, Token, TokenKind};

/// Splits program text into tokens.
///
/// A new line ends a statement, except inside parentheses and brackets, and after an operator or a comma that needs something to follow.
pub(super) struct Lexer<'a> {
    file: FileId,
    text: &'a str,
    position: usize,
    /// Open brackets, so that new lines inside parentheses and brackets do not count. Braces make them count again.
    open: Vec<Symbol>,
    previous: Option<TokenKind<'a>>,
}

impl<'a> Lexer<'a> {
    /// A lexer at the start of the text.
    pub(super) fn new(file: FileId, text: &'a str) -> Result<Lexer<'a>> {
        if u32::try_from(text.len()).is_err() {
            return Err(Error::source("the program text is longer than 4 GiB"));
        }
        // Some editors put a byte order mark in front.
        let position = if text.starts_with('\u{feff}') { '\u{feff}'.len_utf8() } else { 0 };
        Ok(Lexer { file, text, position, open: Vec::new(), previous: None })
    }

    /// The next token. After the end of the text it keeps giving that.
    pub(super) fn next_token(&mut self) -> Result<Token<'a>> {
        let end_of_line = self.skip_blanks();
        let start = self.position;
        let kind = match end_of_line {
            Some(kind) => kind,
            None => self.scan()?,
        };
        let start = if kind == TokenKind::EndOfStatement { start - 1 } else { start };
        self.track(kind);
        Ok(Token { kind, range: self.range(start) })
    }

    fn rest(&self) -> &'a str {
        &self.text[self.position..]
    }

    fn range(&self, start: usize) -> Range {
        Range { file: self.file, start: start as u32, end: self.position as u32 }
    }

    fn error(&self, start: usize, message: impl Into<String>) -> Error {
        Error::source(message).at(&self.range(start).span())
    }

    /// Moves past spaces, comments and ends of statements that do not count. Stops after one that does.
    fn skip_blanks(&mut self) -> Option<TokenKind<'a>> {
        loop {
            match self.rest().as_bytes().first() {
                Some(b' ' | b'\t' | b'\r') => self.position += 1,
                Some(b'#') => self.position += self.rest().find('\n').unwrap_or(self.rest().len()),
                Some(b'\n') => {
                    self.position += 1;
                    if self.line_may_end() {
                        return Some(TokenKind::EndOfStatement);
                    }
                }
                Some(b';') => {
                    self.position += 1;
                    return Some(TokenKind::EndOfStatement);
                }
                _ => return None,
            }
        }
    }

    fn line_may_end(&self) -> bool {
        let inside = matches!(self.open.last(), Some(Symbol::OpenParen | Symbol::OpenBracket));
        let continues = match self.previous {
            Some(TokenKind::Symbol(symbol)) => !matches!(
                symbol,
                Symbol::CloseParen | Symbol::CloseBracket | Symbol::OpenBrace | Symbol::CloseBrace | Symbol::Ellipsis
            ),
            Some(TokenKind::Keyword(Keyword::And | Keyword::Or | Keyword::Not | Keyword::Then)) => true,
            // Empty lines are not statements.
            Some(TokenKind::EndOfStatement) | None => true,
            _ => false,
        };
        !inside && !continues
    }

    fn track(&mut self, kind: TokenKind<'a>) {
        use Symbol::*;
        match kind {
            TokenKind::Symbol(symbol @ (OpenParen | OpenBracket | OpenBrace)) => self.open.push(symbol),
            // Mismatched brackets are for the parser to report.
            TokenKind::Symbol(CloseParen | CloseBracket | CloseBrace) => drop(self.open.pop()),
            _ => {}
        }
        self.previous = Some(kind);
    }

    fn scan(&mut self) -> Result<TokenKind<'a>> {
        let start = self.position;
        let Some(first) = self.rest().chars().next() else { return Ok(TokenKind::EndOfText) };
        if first.is_ascii_digit() {
            return self.number();
        }
        if first.is_alphabetic() || first == '_' {
            let rest = self.rest();
            let length = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
            let length = length + unit_length(&rest[..length], &rest[length..]);
            self.position += length;
            let word = &rest[..length];
            return Ok(Keyword::find(word).map_or(TokenKind::Name(word), TokenKind::Keyword));
        }
        if first == '"' {
            return self.quoted();
        }
        for length in (1..=3).rev() {
            if let Some(symbol) = self.rest().get(..length).and_then(Symbol::find) {
                self.position += length;
                return Ok(TokenKind::Symbol(symbol));
            }
        }
        self.position += first.len_utf8();
        let error = self.error(start, format!("`{}` means nothing here", first.escape_default()));
        Err(match first {
            '&' => error.help("use `and`"),
            '|' => error.help("use `or`"),
            '!' => error.help("use `not`, or `!=`"),
            '^' => error.help("use `**` for powers"),
            '\'' => error.help("use double quotes for text"),
            _ => error,
        })
    }

    fn quoted(&mut self) -> Result<TokenKind<'a>> {
        let start = self.position;
        let inside = &self.rest()[1..];
        let length = inside.find(['"', '\n']).filter(|&end| inside.as_bytes()[end] == b'"');
        let Some(length) = length else {
            self.position += 1;
            return Err(self
                .error(start, "this quotation mark is never closed")
                .help("text ends on the line it starts on"));
        };
        self.position += length + 2;
        Ok(TokenKind::Text(&inside[..length]))
    }

    fn digits(&mut self) {
        let rest = self.rest();
        self.position += rest.find(|c: char| !c.is_ascii_digit() && c != '_').unwrap_or(rest.len());
    }

    fn number(&mut self) -> Result<TokenKind<'a>> {
        let start = self.position;
        self.digits();
        let mut whole = true;
        let next = |lexer: &Self, k: usize| lexer.rest().as_bytes().get(k).copied();
        // A point is part of the number only before a digit: `0..n` is a range.
        if next(self, 0) == Some(b'.') && next(self, 1).is_some_and(|c| c.is_ascii_digit()) {
            self.position += 1;
            self.digits();
            whole = false;
        }
        if matches!(next(self, 0), Some(b'e' | b'E')) {
            let sign = usize::from(matches!(next(self, 1), Some(b'+' | b'-')));
            if next(self, 1 + sign).is_some_and(|c| c.is_ascii_digit()) {
                self.position += 1 + sign;
                self.digits();
                whole = false;
            }
        }
        if next(self, 0) == Some(b'j') && !next(self, 1).is_some_and(|c| c.is_ascii_alphanumeric() || c == b'_') {
            let digits: String = self.text[start..self.position].chars().filter(|&c| c != '_').collect();
            self.position += 1;
            return match digits.parse::<f64>() {
                Ok(value) if value.is_finite() => Ok(TokenKind::Imaginary(value)),
                _ => Err(self.error(start, format!("the number {digits}j is too large"))),
            };
        }
        if self.rest().chars().next().is_some_and(|c| c.is_alphabetic() || c == '_') {
            let unit = self.rest().find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(self.rest().len());
            self.position += unit;
            let text = &self.text[start..self.position];
            return Err(self
                .error(start, format!("`{text}` is neither a number nor a name"))
                .help("write `*` to multiply"));
        }
        let digits: String = self.text[start..self.position].chars().filter(|&c| c != '_').collect();
        if whole {
            return digits.parse().map(TokenKind::Int).map_err(|_| {
                self.error(start, format!("the number {digits} is too large"))
                    .help(format!("whole numbers go up to {}; write a point for a float", i64::MAX))
            });
        }
        match digits.parse::<f64>() {
            Ok(value) if value.is_finite() => Ok(TokenKind::Float(value)),
            _ => Err(self
                .error(start, format!("the number {digits} is too large"))
                .help(format!("the largest is {:e}; `inf` is infinity", f64::MAX))),
        }
    }
}

/// The length of `[ns]` after `datetime64` or `timedelta64`: the unit is part of the name of the type.
fn unit_length(word: &str, rest: &str) -> usize {
    let inside = match word {
        "datetime64" | "timedelta64" => rest.strip_prefix('[').and_then(|rest| rest.split_once(']')),
        _ => None,
    };
    inside.filter(|(unit, _)| TimeUnit::named(unit).is_some()).map_or(0, |(unit, _)| unit.len() + 2)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kinds(text: &str) -> Vec<String> {
        let mut lexer = Lexer::new(FileId::UNNAMED, text).unwrap();
        let mut kinds = Vec::new();
        loop {
            match lexer.next_token() {
                Ok(Token { kind: TokenKind::EndOfText, .. }) => return kinds,
                Ok(token) => kinds.push(match token.kind {
                    TokenKind::EndOfStatement => "end".to_string(),
                    kind => kind.to_string().trim_matches('`').to_string(),
                }),
                Err(error) => {
                    kinds.push(error.message().to_string());
                    return kinds;
                }
            }
        }
    }

    #[test]
    fn ranges_are_not_floats() {
        assert_eq!(kinds("0..n 1.5 1e3 2.x"), ["0", "..", "n", "1.5", "1000.0", "2", ".", "x"]);
        assert_eq!(kinds("1_000 a.T ..."), ["1000", "a", ".", "T", "..."]);
        assert_eq!(kinds("2j 1.5e1j 2jx"), ["2.0j", "15.0j", "`2jx` is neither a number nor a name"]);
        assert_eq!(kinds("datetime64[ns](x)[0]"), ["datetime64[ns]", "(", "x", ")", "[", "0", "]"]);
        assert_eq!(kinds("timedelta64[n]"), ["timedelta64", "[", "n", "]"]);
    }

    #[test]
    fn lines_end_statements_only_where_they_can() {
        assert_eq!(kinds("\n\na = 1 # note\n\nb").join(" "), "a = 1 end b");
        assert_eq!(kinds("a = (1\n+ 2)\nb = 1 +\n 2").join(" "), "a = ( 1 + 2 ) end b = 1 + 2");
        assert_eq!(kinds("{ a\n }\n b").join(" "), "{ a end } end b");
    }

    #[test]
    fn numbers_that_do_not_fit_are_errors() {
        assert_eq!(kinds("1e400"), ["the number 1e400 is too large"]);
        assert_eq!(kinds("99999999999999999999"), ["the number 99999999999999999999 is too large"]);
        assert_eq!(kinds("2x"), ["`2x` is neither a number nor a name"]);
        assert_eq!(kinds("\"a\nb\""), ["this quotation mark is never closed"]);
    }
}
