//! Program text, by lines.

use tw_ir::span::{FileId, HostCall, Span};

/// The text of a program and the name it is known under.
#[derive(Clone, Debug)]
pub struct SourceText {
    file: String,
    text: String,
    /// First byte of every line.
    starts: Vec<usize>,
}

impl SourceText {
    /// Text with the name of its file.
    pub fn new(file: impl Into<String>, text: impl Into<String>) -> SourceText {
        let text = text.into();
        let starts = std::iter::once(0).chain(text.match_indices('\n').map(|(k, _)| k + 1)).collect();
        SourceText { file: file.into(), text, starts }
    }

    /// The name.
    pub fn file(&self) -> &str {
        &self.file
    }

    /// All of the text.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The line that holds a byte, counted from one.
    pub fn line_of(&self, byte: usize) -> u32 {
        self.starts.partition_point(|&start| start <= byte) as u32
    }

    /// A line, counted from one, without surrounding space and comment.
    pub fn line(&self, number: u32) -> &str {
        let k = (number as usize).saturating_sub(1);
        let Some(&start) = self.starts.get(k) else { return "" };
        let end = self.starts.get(k + 1).map_or(self.text.len(), |next| next - 1);
        let line = &self.text[start..end];
        line.split('#').next().unwrap_or(line).trim()
    }
}

/// Where a statement stands, as explain groups by it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Place {
    /// A line of the program text.
    Line(u32),
    /// Bytes of a text that is not at hand.
    Bytes {
        /// The text.
        file: FileId,
        /// First byte.
        start: u32,
        /// One past the last byte.
        end: u32,
    },
    /// A line of the host language, and which of its calls.
    Host {
        /// The file.
        file: FileId,
        /// The line, counted from one.
        line: u32,
        /// The call, where the host language tells.
        call: Option<HostCall>,
    },
    /// Nothing the user wrote.
    Planner,
}

impl Place {
    /// The place of a span, by line if the text is at hand.
    pub fn of(span: &Span, source: Option<&SourceText>) -> Place {
        match (span, source) {
            (Span::None, _) => Place::Planner,
            (&Span::Text { file: FileId::UNNAMED, start, .. }, Some(source)) => {
                Place::Line(source.line_of(start as usize))
            }
            (&Span::Text { file, start, end }, _) => Place::Bytes { file, start, end },
            (&Span::Host { file, line, call }, _) => Place::Host { file, line, call },
        }
    }

    /// In the first column of a table.
    pub fn short(&self) -> String {
        match self {
            Place::Line(line) => line.to_string(),
            Place::Bytes { file: FileId::UNNAMED, start, end } => format!("{start}..{end}"),
            Place::Bytes { file, start, end } => format!("{}:{start}..{end}", last_part(*file)),
            Place::Host { file, line, .. } => format!("{}:{line}", last_part(*file)),
            Place::Planner => "-".to_string(),
        }
    }

    /// The called function, if the host language reports it.
    pub fn operation(&self) -> Option<&str> {
        match self {
            Place::Host { call: Some(call), .. } => Some(call.operation.as_str()),
            _ => None,
        }
    }

    /// For other programs: files with their directories.
    pub fn full(&self) -> String {
        match self {
            Place::Host { file, line, .. } => format!("{file}:{line}"),
            _ => self.to_string(),
        }
    }

    /// True if both stand on one line.
    pub fn is_beside(&self, other: &Place) -> bool {
        match (self, other) {
            (Place::Host { file, line, .. }, Place::Host { file: other_file, line: other_line, .. }) => {
                (file, line) == (other_file, other_line)
            }
            _ => self == other,
        }
    }
}

impl std::fmt::Display for Place {
    /// In a sentence: files without their directories.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Place::Line(line) => write!(f, "line {line}"),
            Place::Bytes { file: FileId::UNNAMED, start, end } => write!(f, "bytes {start}..{end}"),
            Place::Bytes { file, start, end } => write!(f, "bytes {start}..{end} of {}", last_part(*file)),
            Place::Host { .. } => match self.operation() {
                Some(operation) => write!(f, "{} `{operation}`", self.short()),
                None => write!(f, "{}", self.short()),
            },
            Place::Planner => write!(f, "the planner"),
        }
    }
}

/// The name of a file without its directories.
fn last_part(file: FileId) -> &'static str {
    file.name().rsplit(['/', '\\']).next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_found_and_trimmed() {
        let source = SourceText::new("p.tw", "a = 1\n  b = a  # twice\n\nc = b");
        assert_eq!(source.line_of(0), 1);
        assert_eq!(source.line_of(5), 1);
        assert_eq!(source.line_of(6), 2);
        assert_eq!(source.line(2), "b = a");
        assert_eq!(source.line(4), "c = b");
        assert_eq!(source.line(9), "");
        assert_eq!(Place::of(&Span::text(8, 9), Some(&source)), Place::Line(2));
        let elsewhere = Place::of(&FileId::named("d/q.tw").span(8, 9), Some(&source));
        assert_eq!((elsewhere.short().as_str(), elsewhere.to_string().as_str()), ("q.tw:8..9", "bytes 8..9 of q.tw"));
    }
}
