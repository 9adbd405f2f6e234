//! Writing text: lines, indentation and quoting.

use std::fmt::Display;

/// Lines no longer than this stay on one line.
const WIDTH: usize = 110;

/// Collects lines.
#[derive(Default)]
pub(super) struct Printer {
    text: String,
    depth: usize,
}

impl Printer {
    /// One line.
    pub(super) fn line(&mut self, line: impl Display) {
        let indent = 4 * self.depth;
        self.text.push_str(&format!("{:indent$}{line}\n", ""));
    }

    /// A line after which a block is indented.
    pub(super) fn open(&mut self, line: impl Display) {
        self.line(line);
        self.depth += 1;
    }

    /// The line that ends an indented block.
    pub(super) fn close(&mut self, line: impl Display) {
        self.depth = self.depth.saturating_sub(1);
        self.line(line);
    }

    /// `head items tail`, with the items on lines of their own if one line would be too long.
    pub(super) fn wrapped(&mut self, head: &str, items: &[String], separator: &str, tail: &str) {
        let length: usize = items.iter().map(|item| item.len() + separator.len()).sum();
        if head.len() + length + tail.len() + 4 * self.depth <= WIDTH {
            let items = items.join(separator);
            let space = if items.is_empty() { "" } else { " " };
            return self.line(format_args!("{head}{space}{items} {tail}"));
        }
        self.open(head);
        let mut line = String::new();
        for item in items {
            if !line.is_empty() && line.len() + item.len() + separator.len() > WIDTH - 4 * self.depth.min(10) {
                self.line(line.trim_end());
                line.clear();
            }
            line.push_str(item);
            line.push_str(separator);
        }
        if !items.is_empty() {
            self.line(line.strip_suffix(separator).unwrap_or(&line));
        }
        self.close(tail);
    }

    /// Everything written.
    pub(super) fn finish(self) -> String {
        self.text
    }
}

/// A string in double quotes, with everything unusual escaped.
pub(super) fn quote(text: &str) -> String {
    let mut quoted = String::from("\"");
    for c in text.chars() {
        match c {
            '"' => quoted.push_str("\\\""),
            '\\' => quoted.push_str("\\\\"),
            '\n' => quoted.push_str("\\n"),
            '\r' => quoted.push_str("\\r"),
            '\t' => quoted.push_str("\\t"),
            c if c.is_control() => quoted.push_str(&format!("\\u{{{:x}}}", c as u32)),
            c => quoted.push(c),
        }
    }
    quoted.push('"');
    quoted
}

/// Items separated by commas.
pub(super) fn commas<T: Display>(items: impl IntoIterator<Item = T>) -> String {
    items.into_iter().map(|item| item.to_string()).collect::<Vec<_>>().join(", ")
}
