//! Reading text: position, words, numbers, strings, and errors that say where.

use crate::error::{Error, Result};
use crate::span::Span;

/// The largest nesting depth. Text comes from users and files; without a limit it could exhaust the stack.
const MAX_DEPTH: u32 = 64;

/// A place in a text. Between words there may be white space and comments from `//` to the end of the line.
pub(super) struct Cursor<'a> {
    text: &'a str,
    at: usize,
    depth: u32,
}

impl<'a> Cursor<'a> {
    pub(super) fn new(text: &'a str) -> Cursor<'a> {
        Cursor { text, at: 0, depth: 0 }
    }

    /// Bytes of the whole text: what claimed counts are measured against.
    pub(super) fn text_len(&self) -> usize {
        self.text.len()
    }

    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    fn skip_space(&mut self) {
        loop {
            let rest = self.rest().trim_start();
            self.at = self.text.len() - rest.len();
            if !rest.starts_with("//") {
                return;
            }
            self.at += rest.find('\n').unwrap_or(rest.len());
        }
    }

    /// An error about what comes next.
    pub(super) fn error(&mut self, message: impl std::fmt::Display) -> Error {
        self.skip_space();
        let start = self.at;
        let length = self.rest().chars().next().map_or(0, char::len_utf8).max(word_length(self.rest()));
        self.error_at(start, start + length, message)
    }

    /// An error about the text from a position returned by [`Cursor::place`] up to here.
    pub(super) fn error_since(&self, start: usize, message: impl std::fmt::Display) -> Error {
        self.error_at(start, self.at, message)
    }

    fn error_at(&self, start: usize, end: usize, message: impl std::fmt::Display) -> Error {
        let before = &self.text[..start];
        let line = before.matches('\n').count() + 1;
        let column = before.rsplit('\n').next().map_or(0, |last| last.chars().count()) + 1;
        Error::source(format!("line {line}, column {column}: {message}")).at(&Span::text(start, end))
    }

    /// The start of the next word.
    pub(super) fn place(&mut self) -> usize {
        self.skip_space();
        self.at
    }

    /// Gives an error that has no place yet the text from `start` to here, and makes it the fault of the text.
    pub(super) fn located<T>(&self, start: usize, result: Result<T>) -> Result<T> {
        result.map_err(|error| self.error_since(start, error.message()))
    }

    /// Takes a symbol or a whole word, if it comes next.
    pub(super) fn eat(&mut self, symbol: &str) -> bool {
        let found = self.sees(symbol);
        if found {
            self.at += symbol.len();
        }
        found
    }

    /// True if a symbol or a whole word comes next.
    pub(super) fn sees(&mut self, symbol: &str) -> bool {
        self.skip_space();
        let is_word = symbol.starts_with(is_word_char);
        self.rest().starts_with(symbol) && (!is_word || word_length(self.rest()) == symbol.len())
    }

    /// True if a digit comes next.
    pub(super) fn sees_digit(&mut self) -> bool {
        self.skip_space();
        self.rest().starts_with(|c: char| c.is_ascii_digit())
    }

    /// Takes a symbol or a whole word, which must come next.
    pub(super) fn expect(&mut self, symbol: &str) -> Result<()> {
        if self.eat(symbol) { Ok(()) } else { Err(self.error(format_args!("expected `{symbol}`"))) }
    }

    /// The next word: letters, digits and underscores, not starting with a digit.
    pub(super) fn word(&mut self, what: &str) -> Result<&'a str> {
        self.skip_space();
        let rest = self.rest();
        let length = word_length(rest);
        if length == 0 || rest.starts_with(|c: char| c.is_ascii_digit()) {
            return Err(self.error(format_args!("expected {what}")));
        }
        self.at += length;
        Ok(&rest[..length])
    }

    /// An integer with an optional sign.
    pub(super) fn integer(&mut self) -> Result<i128> {
        let start = self.place();
        let rest = self.rest();
        let sign = rest.starts_with('-') as usize;
        let digits = rest[sign..].find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len() - sign);
        if digits == 0 {
            return Err(self.error("expected an integer"));
        }
        self.at += sign + digits;
        rest[..sign + digits].parse().map_err(|_| self.error_since(start, "this integer is too large"))
    }

    /// An integer that fits the type asked for.
    pub(super) fn fitting<T: TryFrom<i128>>(&mut self) -> Result<T> {
        let start = self.place();
        let value = self.integer()?;
        T::try_from(value).map_err(|_| self.error_since(start, format_args!("{value} is out of range here")))
    }

    /// A length or offset: at most `i64::MAX`, so that signed arithmetic on it is safe.
    pub(super) fn length(&mut self) -> Result<u64> {
        let start = self.place();
        let value = self.fitting::<i64>()?;
        u64::try_from(value).map_err(|_| self.error_since(start, "a length cannot be negative"))
    }

    /// The characters of a floating point number (or of `inf` or `nan`), not yet converted.
    pub(super) fn float(&mut self) -> Result<&'a str> {
        self.skip_space();
        let rest = self.rest();
        let mut previous = ' ';
        let is_part = |c: char| {
            let in_exponent = matches!(previous, 'e' | 'E') && matches!(c, '-' | '+');
            let part = c.is_ascii_alphanumeric() || c == '.' || in_exponent || (previous == ' ' && c == '-');
            previous = c;
            !part
        };
        let length = rest.find(is_part).unwrap_or(rest.len());
        if length == 0 {
            return Err(self.error("expected a number"));
        }
        self.at += length;
        Ok(&rest[..length])
    }

    /// Unsigned bits in hexadecimal, such as `0x7ff8`.
    pub(super) fn hex(&mut self) -> Result<u64> {
        let start = self.place();
        let rest = self.rest();
        let length = word_length(rest);
        self.at += length;
        let digits = rest[..length].strip_prefix("0x").unwrap_or("");
        u64::from_str_radix(digits, 16).map_err(|_| self.error_since(start, "expected bits such as 0x7ff8"))
    }

    /// A string in double quotes.
    pub(super) fn string(&mut self) -> Result<String> {
        let start = self.place();
        if !self.eat("\"") {
            return Err(self.error("expected a string in double quotes"));
        }
        let mut text = String::new();
        let mut chars = self.rest().char_indices();
        while let Some((offset, c)) = chars.next() {
            match c {
                '"' => {
                    self.at += offset + 1;
                    return Ok(text);
                }
                '\\' => match unescape(&mut chars) {
                    Some(c) => text.push(c),
                    None => {
                        let at = self.at + offset;
                        return Err(self.error_at(at, at + 1, "this escape is not known"));
                    }
                },
                c => text.push(c),
            }
        }
        Err(self.error_at(start, start + 1, "this string does not end"))
    }

    /// A number behind a prefix, such as `%3` or `b7`.
    pub(super) fn id(&mut self, prefix: &str) -> Result<u32> {
        let start = self.place();
        let digits = self.rest().strip_prefix(prefix).map(|rest| &rest[..word_length(rest)]);
        // The largest number is reserved for "none".
        let parsed = digits.and_then(|digits| digits.parse().ok()).filter(|&id| id < u32::MAX);
        match (digits, parsed) {
            (Some(digits), Some(id)) if digits.starts_with(|c: char| c.is_ascii_digit()) => {
                self.at = start + prefix.len() + digits.len();
                Ok(id)
            }
            _ => Err(self.error(format_args!("expected a number such as `{prefix}0`"))),
        }
    }

    /// Items between brackets, separated by commas.
    pub(super) fn list<T>(
        &mut self,
        open: &str,
        close: &str,
        mut item: impl FnMut(&mut Cursor<'a>) -> Result<T>,
    ) -> Result<Vec<T>> {
        self.expect(open)?;
        let mut items = Vec::new();
        if self.eat(close) {
            return Ok(items);
        }
        loop {
            items.push(item(self)?);
            if !self.eat(",") {
                self.expect(close)?;
                return Ok(items);
            }
        }
    }

    /// Items one after the other, up to a closing symbol.
    pub(super) fn until<T>(
        &mut self,
        close: &str,
        mut item: impl FnMut(&mut Cursor<'a>) -> Result<T>,
    ) -> Result<Vec<T>> {
        let mut items = Vec::new();
        while !self.eat(close) {
            items.push(item(self)?);
        }
        Ok(items)
    }

    /// Reads something that may contain itself.
    pub(super) fn nested<T>(&mut self, read: impl FnOnce(&mut Cursor<'a>) -> Result<T>) -> Result<T> {
        if self.depth == MAX_DEPTH {
            return Err(self.error(format_args!("nested deeper than {MAX_DEPTH} levels")));
        }
        self.depth += 1;
        let result = read(self);
        self.depth -= 1;
        result
    }

    /// Nothing may follow.
    pub(super) fn end(&mut self) -> Result<()> {
        self.skip_space();
        if self.rest().is_empty() { Ok(()) } else { Err(self.error("expected the end of the text")) }
    }
}

fn is_word_char(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

fn word_length(text: &str) -> usize {
    text.find(|c| !is_word_char(c)).unwrap_or(text.len())
}

/// True if [`Cursor::word`] reads the whole text as one word.
pub(super) fn is_word(text: &str) -> bool {
    !text.is_empty() && word_length(text) == text.len() && !text.starts_with(|c: char| c.is_ascii_digit())
}

fn unescape(chars: &mut std::str::CharIndices<'_>) -> Option<char> {
    match chars.next()?.1 {
        'n' => Some('\n'),
        'r' => Some('\r'),
        't' => Some('\t'),
        '"' => Some('"'),
        '\\' => Some('\\'),
        'u' => {
            let mut code = 0u32;
            if chars.next()?.1 != '{' {
                return None;
            }
            loop {
                match chars.next()?.1 {
                    '}' => return char::from_u32(code),
                    digit => code = code.checked_mul(16)?.checked_add(digit.to_digit(16)?)?,
                }
            }
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_say_where() {
        let mut cursor = Cursor::new("one // a remark\n  two three");
        assert!(cursor.eat("one") && cursor.eat("two"));
        let error = cursor.expect("four").unwrap_err();
        assert_eq!(error.message(), "line 2, column 7: expected `four`");
        assert_eq!(error.span(), &Span::text(22, 27));
    }

    #[test]
    fn words_are_whole() {
        let mut cursor = Cursor::new("index7 %12 b3x");
        assert!(!cursor.eat("index"));
        assert_eq!(cursor.word("a word").unwrap(), "index7");
        assert_eq!(cursor.id("%").unwrap(), 12);
        assert!(cursor.id("b").is_err());
    }

    #[test]
    fn depth_is_limited() {
        fn parens(cursor: &mut Cursor<'_>) -> Result<()> {
            if !cursor.eat("(") {
                return Ok(());
            }
            cursor.nested(parens)?;
            cursor.expect(")")
        }
        assert!(parens(&mut Cursor::new("((()))")).is_ok());
        assert!(parens(&mut Cursor::new(&"(".repeat(1_000_000))).is_err());
    }
}
