//! Where in the user's text or code something was written.
//!
//! A [`Span`] is small and [`Copy`], because every node and every error carries one. It holds ids, not names: a [`FileId`] says which text or
//! source file it points into, so that programs of several files, and lines of a host language, are placed by one type.
//!
//! Ids come from one table per process that only grows. A table per program was rejected: lazy tensors have spans before there is a
//! program, and errors outlive the program they are about. The table holds each name once, so it is as large as the names of the
//! files and operations that the user's code consists of.

use std::cmp::Ordering;
use std::collections::HashMap;
use std::fmt;
use std::num::NonZeroU32;
use std::sync::{LazyLock, PoisonError, RwLock};

/// The place a node came from. Every node carries one, and every later error names it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Span {
    /// Made by the planner, with no counterpart in the user's code.
    #[default]
    None,
    /// A byte range of a text.
    Text {
        /// The text.
        file: FileId,
        /// First byte.
        start: u32,
        /// One past the last byte.
        end: u32,
    },
    /// A line of the host language (Rust or Python).
    Host {
        /// Source file as the host language reports it.
        file: FileId,
        /// Line, counted from one.
        line: u32,
        /// Which call of the line, where the host language tells.
        call: Option<HostCall>,
    },
}

/// One of the calls that stand on a line of the host language.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct HostCall {
    /// Grows along the line, or at least tells calls of one line apart.
    pub position: u32,
    /// The called operation, by its user-visible name: `mean`, `+`.
    pub operation: Name,
}

/// A text or source file, by its name. Files of one name are one file.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FileId(Name);

/// A string that is stored once per process. Names are ordered as their strings are, in every process alike.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Name(NonZeroU32);

impl Span {
    /// A byte range of the text that the caller handed over; see [`FileId::UNNAMED`].
    pub fn text(start: usize, end: usize) -> Span {
        FileId::UNNAMED.span(start, end)
    }

    /// The Rust line that called the function marked `#[track_caller]`.
    #[track_caller]
    pub fn caller() -> Span {
        let place = std::panic::Location::caller();
        Span::host(place.file(), place.line())
    }

    /// A line of the host language.
    pub fn host(file: &str, line: u32) -> Span {
        Span::Host { file: FileId::named(file), line, call: None }
    }
}

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Span::None => write!(f, "planner"),
            Span::Text { file: FileId::UNNAMED, start, end } => write!(f, "bytes {start}..{end}"),
            Span::Text { file, start, end } => write!(f, "bytes {start}..{end} of {file}"),
            Span::Host { file, line, .. } => write!(f, "{file}:{line}"),
        }
    }
}

impl FileId {
    /// The one text that a caller handed over, and whose name only that caller knows.
    pub const UNNAMED: FileId = FileId(Name::EMPTY);

    /// The file of this name.
    pub fn named(name: &str) -> FileId {
        FileId(Name::new(name))
    }

    /// Its name; empty for [`FileId::UNNAMED`].
    pub fn name(self) -> &'static str {
        self.0.as_str()
    }

    /// A byte range of this file.
    pub fn span(self, start: usize, end: usize) -> Span {
        Span::Text { file: self, start: start as u32, end: end as u32 }
    }
}

impl fmt::Display for FileId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl fmt::Debug for FileId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.name())
    }
}

/// All names, by number and by string.
struct Names {
    strings: Vec<&'static str>,
    numbers: HashMap<&'static str, Name>,
}

static NAMES: LazyLock<RwLock<Names>> =
    LazyLock::new(|| RwLock::new(Names { strings: vec![""], numbers: HashMap::from([("", Name::EMPTY)]) }));

impl Name {
    const EMPTY: Name = Name(NonZeroU32::MIN);

    /// The name with these letters.
    pub fn new(name: &str) -> Name {
        // No code runs under the lock that could panic half-way, so a poisoned table is a whole one.
        if let Some(&known) = NAMES.read().unwrap_or_else(PoisonError::into_inner).numbers.get(name) {
            return known;
        }
        let mut names = NAMES.write().unwrap_or_else(PoisonError::into_inner);
        if let Some(&known) = names.numbers.get(name) {
            return known;
        }
        // Four thousand million names do not fit into memory, so the count always fits.
        let Some(number) = u32::try_from(names.strings.len()).ok().and_then(|n| NonZeroU32::MIN.checked_add(n)) else {
            return Name::EMPTY;
        };
        let string: &'static str = Box::leak(name.into());
        names.strings.push(string);
        names.numbers.insert(string, Name(number));
        Name(number)
    }

    /// Its letters.
    pub fn as_str(self) -> &'static str {
        let names = NAMES.read().unwrap_or_else(PoisonError::into_inner);
        names.strings.get(self.0.get() as usize - 1).copied().unwrap_or_default()
    }
}

impl fmt::Debug for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.as_str())
    }
}

impl Ord for Name {
    fn cmp(&self, other: &Name) -> Ordering {
        // Numbers follow the order of first use, which no output may depend on.
        self.as_str().cmp(other.as_str())
    }
}

impl PartialOrd for Name {
    fn partial_cmp(&self, other: &Name) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_are_small() {
        assert!(size_of::<Span>() <= 20, "{} bytes", size_of::<Span>());
    }

    #[test]
    fn equal_names_are_one_name_on_every_thread() {
        let made = |k: usize| {
            std::thread::spawn(move || (0..100).map(|n| FileId::named(&format!("{}", n * k % 101))).collect())
        };
        let made: Vec<Vec<FileId>> = (1..5).map(made).map(|thread| thread.join().unwrap()).collect();
        for (k, files) in (1..5).zip(&made) {
            for (n, file) in files.iter().enumerate() {
                assert_eq!(file.name(), format!("{}", n * k % 101));
                assert_eq!(*file, FileId::named(file.name()));
            }
        }
    }

    #[test]
    fn names_are_ordered_by_their_letters_and_not_by_first_use() {
        let (later, sooner) = (Name::new("span test z"), Name::new("span test a"));
        assert!(sooner < later);
        assert_ne!(sooner, later);
    }

    #[test]
    fn spans_of_two_files_differ() {
        let (a, b) = (FileId::named("a.tw").span(1, 2), FileId::named("b.tw").span(1, 2));
        assert_ne!(a, b);
        assert_ne!(a, Span::text(1, 2));
        assert_eq!(a.to_string(), "bytes 1..2 of a.tw");
        assert_eq!(Span::text(1, 2).to_string(), "bytes 1..2");
        assert_eq!(Span::host("m.py", 3).to_string(), "m.py:3");
    }
}
