//! Lines of text, one by one, with their numbers.

use std::fs::File;
use std::io::{BufRead, BufReader, Read};

/// A longer line is refused: nobody writes one, and it would be held in memory.
const MOST_LINE: u64 = 1 << 16;

/// What is wrong, with the number of the line.
pub(super) type Wrong = (u64, String);

/// The lines of a file.
pub(super) struct Lines<'a> {
    reader: BufReader<&'a File>,
    line: Vec<u8>,
    /// The number of the current line, from one on.
    pub(super) number: u64,
}

impl<'a> Lines<'a> {
    pub(super) fn new(file: &'a File) -> Lines<'a> {
        Lines { reader: BufReader::with_capacity(1 << 18, file), line: Vec::new(), number: 0 }
    }

    /// The next line without its end; `None` at the end of the file.
    pub(super) fn next(&mut self) -> Result<Option<&str>, Wrong> {
        self.number += 1;
        self.line.clear();
        let wrong = |what: String| (self.number, what);
        let n = (&mut self.reader)
            .take(MOST_LINE)
            .read_until(b'\n', &mut self.line)
            .map_err(|error| wrong(format!("it cannot be read: {error}")))?;
        if n as u64 == MOST_LINE && self.line.last() != Some(&b'\n') {
            return Err(wrong(format!("it has more than {MOST_LINE} bytes")));
        }
        if n == 0 {
            return Ok(None);
        }
        match std::str::from_utf8(&self.line) {
            Ok(text) => Ok(Some(text.trim())),
            Err(_) => Err((self.number, "it is not text".into())),
        }
    }

    /// The next line that is neither empty nor a comment.
    pub(super) fn next_full(&mut self, comment: char) -> Result<Option<&str>, Wrong> {
        loop {
            let is_full = match self.next()? {
                None => return Ok(None),
                Some(line) => !line.is_empty() && !line.starts_with(comment),
            };
            if is_full {
                return Ok(std::str::from_utf8(&self.line).ok().map(str::trim));
            }
        }
    }
}

/// A number of a line.
pub(super) fn number<T: std::str::FromStr>(field: Option<&str>, what: &str) -> Result<T, String> {
    let field = field.ok_or_else(|| format!("{what} is missing"))?;
    let shown: String = field.chars().take(40).collect();
    field.parse().map_err(|_| format!("`{}` is not {what}", shown.escape_debug()))
}

/// An index from one on, as one from zero on.
pub(super) fn index(field: Option<&str>, extent: u64) -> Result<u64, String> {
    let index: u64 = number(field, "an index")?;
    if index == 0 || index > extent {
        return Err(format!("index {index} is not between 1 and {extent}"));
    }
    Ok(index - 1)
}

/// An error if a line has more fields.
pub(super) fn end<'t>(mut fields: impl Iterator<Item = &'t str>) -> Result<(), String> {
    fields.next().map_or(Ok(()), |field| Err(format!("`{}` is too much", field.escape_debug())))
}
