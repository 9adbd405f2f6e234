//! Where in the user's text or code something was written.

use std::fmt;
use std::sync::Arc;

/// The place a node came from. Every node carries one, and every later error names it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub enum Span {
    /// Made by the planner, with no counterpart in the user's code.
    #[default]
    None,
    /// A byte range of the program text.
    Text {
        /// First byte.
        start: u32,
        /// One past the last byte.
        end: u32,
    },
    /// A line of the host language (Rust or Python).
    Host {
        /// Source file as the host language reports it.
        file: Arc<str>,
        /// Line, counted from one.
        line: u32,
        /// Which call of the line, where the host language tells.
        call: Option<Arc<HostCall>>,
    },
}

/// One of the calls that stand on a line of the host language.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct HostCall {
    /// Grows along the line, or at least tells calls of one line apart.
    pub position: u32,
    /// The called operation, by its user-visible name: `mean`, `+`.
    pub operation: Box<str>,
}

impl Span {
    /// A byte range of the program text.
    pub fn text(start: usize, end: usize) -> Span {
        Span::Text { start: start as u32, end: end as u32 }
    }

    /// The Rust line that called the function marked `#[track_caller]`.
    #[track_caller]
    pub fn caller() -> Span {
        let place = std::panic::Location::caller();
        Span::host(place.file(), place.line())
    }

    /// A line of the host language.
    pub fn host(file: impl Into<Arc<str>>, line: u32) -> Span {
        Span::Host { file: file.into(), line, call: None }
    }

    /// The smallest text range covering both, or whichever of the two is a text range.
    pub fn cover(&self, other: &Span) -> Span {
        match (self, other) {
            (Span::Text { start: a, end: b }, Span::Text { start: c, end: d }) => {
                Span::Text { start: *a.min(c), end: *b.max(d) }
            }
            (Span::None, _) => other.clone(),
            _ => self.clone(),
        }
    }
}

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Span::None => write!(f, "planner"),
            Span::Text { start, end } => write!(f, "bytes {start}..{end}"),
            Span::Host { file, line, .. } => write!(f, "{file}:{line}"),
        }
    }
}
