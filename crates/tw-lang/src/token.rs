//! Tokens of program text.

use std::fmt;

use tw_ir::{FileId, Span};

/// A byte range of a program text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Range {
    /// The text.
    pub(super) file: FileId,
    /// First byte.
    pub(super) start: u32,
    /// One past the last byte.
    pub(super) end: u32,
}

impl Range {
    /// The smallest range that covers both, which are ranges of one file.
    pub(super) fn to(self, other: Range) -> Range {
        Range { start: self.start.min(other.start), end: self.end.max(other.end), ..self }
    }

    /// The range as the rest of the project knows it.
    pub(super) fn span(self) -> Span {
        Span::Text { file: self.file, start: self.start, end: self.end }
    }
}

macro_rules! words {
    ($(#[$doc:meta])* $type:ident { $($variant:ident = $text:literal,)* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(super) enum $type { $($variant,)* }
        impl $type {
            /// The text it is written as.
            pub(super) fn text(self) -> &'static str {
                match self { $($type::$variant => $text,)* }
            }
            /// The word or symbol written as this text.
            pub(super) fn find(text: &str) -> Option<$type> {
                match text { $($text => Some($type::$variant),)* _ => None }
            }
        }
    };
}

words! {
    /// Words with a fixed meaning.
    Keyword {
        And = "and",
        Block = "block",
        Else = "else",
        False = "false",
        For = "for",
        If = "if",
        In = "in",
        Input = "input",
        Not = "not",
        Or = "or",
        Output = "output",
        Param = "param",
        Then = "then",
        True = "true",
        Where = "where",
        While = "while",
    }
}

words! {
    /// Punctuation and operators.
    Symbol {
        Arrow = "->",
        Assign = "=",
        At = "@",
        CloseBrace = "}",
        CloseBracket = "]",
        CloseParen = ")",
        Colon = ":",
        Comma = ",",
        Dot = ".",
        DotDot = "..",
        Ellipsis = "...",
        Equal = "==",
        FloorDivide = "//",
        Greater = ">",
        GreaterEqual = ">=",
        Less = "<",
        LessEqual = "<=",
        Minus = "-",
        MinusAssign = "-=",
        NotEqual = "!=",
        OpenBrace = "{",
        OpenBracket = "[",
        OpenParen = "(",
        Percent = "%",
        Plus = "+",
        PlusAssign = "+=",
        Power = "**",
        Slash = "/",
        SlashAssign = "/=",
        Star = "*",
        StarAssign = "*=",
    }
}

/// The kinds of tokens.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum TokenKind<'a> {
    /// A whole number.
    Int(i64),
    /// A number with a point or an exponent.
    Float(f64),
    /// A number followed by `j`: that multiple of the imaginary unit.
    Imaginary(f64),
    /// Text between double quotes.
    Text(&'a str),
    /// A name that is not a keyword.
    Name(&'a str),
    /// A word with a fixed meaning.
    Keyword(Keyword),
    /// Punctuation or an operator.
    Symbol(Symbol),
    /// The end of a statement: a new line or a semicolon.
    EndOfStatement,
    /// The end of the text.
    EndOfText,
}

impl fmt::Display for TokenKind<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TokenKind::Int(value) => write!(f, "`{value}`"),
            TokenKind::Float(value) => write!(f, "`{value:?}`"),
            TokenKind::Imaginary(value) => write!(f, "`{value:?}j`"),
            TokenKind::Text(text) => write!(f, "\"{text}\""),
            TokenKind::Name(name) => write!(f, "`{name}`"),
            TokenKind::Keyword(keyword) => write!(f, "the keyword `{}`", keyword.text()),
            TokenKind::Symbol(symbol) => write!(f, "`{}`", symbol.text()),
            TokenKind::EndOfStatement => write!(f, "the end of the statement"),
            TokenKind::EndOfText => write!(f, "the end of the text"),
        }
    }
}

/// One token and where it stands.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Token<'a> {
    /// Its kind.
    pub(super) kind: TokenKind<'a>,
    /// Where it stands.
    pub(super) range: Range,
}
