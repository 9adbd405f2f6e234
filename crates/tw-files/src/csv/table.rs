//! Lines, columns, and where blocks of rows begin.

use std::fs::File;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::Path;

use memchr::{memchr, memchr_iter};
use tw_ir::{Error, Result};

use super::parse::Fields;
use super::rows::{self, Rows};
use super::{MOST_ROW, TableOptions, failed, number};

/// Bytes of text that a block has about. Its numbers are of similar size.
const BLOCK_BYTES: u64 = 4 << 20;

/// The header and the first rows are looked for in so many bytes, and in more only if a row is longer.
const HEAD_BYTES: u64 = 1 << 20;

/// Rows that show which columns hold numbers.
const SHOWN_ROWS: usize = 100;

/// A column that is read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Column {
    pub(super) name: String,
    /// Which field of a line it is.
    pub(super) index: usize,
}

/// What is known of a file without its numbers.
#[derive(Debug)]
pub(super) struct Table {
    delimiter: u8,
    pub(super) columns: Vec<Column>,
    /// Fields of every line.
    n_fields: usize,
    pub(super) rows_per_block: u64,
    pub(super) rows: Rows,
}

impl Table {
    /// Looks through a file.
    pub(super) fn scan(path: &Path, file: &File, options: &TableOptions) -> Result<Table> {
        let wrong = |what: String| Error::io(format!("{}: {what}", path.display()));
        let length = file.metadata().map_err(|error| failed(path, "cannot be examined", &error))?.len();
        let delimiter = options.delimiter;
        if delimiter.is_ascii_digit() || b"+-.eE\"\r\n".contains(&delimiter) {
            let shown = delimiter.escape_ascii();
            return Err(Error::source(format!("`{shown}` cannot stand between fields: it may be a part of one")));
        }
        let mut head = Vec::new();
        let mut read_head = |n: u64| -> Result<Vec<u8>> {
            head.resize(length.min(n) as usize, 0);
            file.read_exact_at(&mut head, 0).map_err(|error| failed(path, "cannot be read", &error))?;
            Ok(std::mem::take(&mut head))
        };
        let mut head = read_head(HEAD_BYTES)?;
        if (head.len() as u64) < length && first_rows(&head).len() < 2 {
            head = read_head(2 * MOST_ROW)?;
        }
        if head.starts_with(b"\xff\xfe") || head.starts_with(b"\xfe\xff") {
            return Err(wrong("the text is UTF-16".into()).help("convert it to UTF-8"));
        }
        let is_all = head.len() as u64 == length;
        let mark = if head.starts_with(b"\xef\xbb\xbf") { 3 } else { 0 };
        let mut lines = Lines { text: &head, at: mark, start: mark, is_all };
        let names = lines
            .next_full()
            .ok_or_else(|| wrong(format!("line 1: there is none, or none that ends within {MOST_ROW} bytes")))?;
        let mut names: Vec<String> =
            fields(names, delimiter).map(|field| String::from_utf8_lossy(unquoted(field)).trim().to_string()).collect();
        let start = if options.header {
            lines.at
        } else {
            names = (0..names.len()).map(|k| k.to_string()).collect();
            mark
        };
        let mut lines = Lines { text: &head, at: start, start, is_all };
        let mut shown: Vec<Vec<Option<f64>>> = Vec::new();
        while shown.len() < SHOWN_ROWS
            && let Some(line) = lines.next_full()
        {
            let row: Vec<Option<f64>> = fields(line, delimiter).map(number::parse).collect();
            if row.len() != names.len() {
                let at = memchr_iter(b'\n', &head[..lines.start]).count() + 1;
                return Err(wrong(match memchr_iter(b'"', line).count() % 2 {
                    0 => format!("line {at}: {} fields instead of {}", row.len(), names.len()),
                    _ => format!("line {at}: a quote does not end"),
                }));
            }
            shown.push(row);
        }
        let is_number = |k: usize| shown.iter().all(|row| row[k].is_some());
        let columns = match &options.columns {
            None => (0..names.len()).filter(|&k| is_number(k)).map(|k| (k, names[k].clone())).collect(),
            Some(wanted) => {
                let place = |name: &String| match names.iter().position(|each| each == name) {
                    Some(k) if is_number(k) => Ok((k, name.clone())),
                    Some(_) => Err(wrong(format!("column `{}` does not hold numbers", name.escape_debug()))),
                    None => Err(wrong(format!("there is no column `{}`", name.escape_debug()))
                        .help(format!("its columns are {}", names.join(", ")))),
                };
                wanted.iter().map(place).collect::<Result<Vec<_>>>()?
            }
        };
        if columns.is_empty() {
            return Err(wrong("no column holds numbers".into()).help(format!("its columns are {}", names.join(", "))));
        }
        let columns = columns.into_iter().map(|(k, name)| Column { name, index: k }).collect();
        let mean = ((lines.at - start) as u64 / (shown.len() as u64).max(1)).max(1);
        let rows_per_block = (BLOCK_BYTES / mean).max(1);
        let rows = rows::count(path, file, start as u64..length, rows_per_block)?;
        Ok(Table { delimiter, columns, n_fields: names.len(), rows_per_block, rows })
    }

    /// Some of the columns, as fields of rows.
    pub(super) fn fields(&self, columns: Range<usize>) -> Fields<'_> {
        let columns = self.columns[columns].iter().map(|column| (column.index, column.name.as_str()));
        Fields::new(self.delimiter, self.n_fields, columns)
    }
}

/// The lines of a text up to the second one that is not empty and ends in it.
fn first_rows(text: &[u8]) -> Vec<&[u8]> {
    let mut lines = Lines { text, at: 0, start: 0, is_all: false };
    std::iter::from_fn(|| lines.next_full()).take(2).collect()
}

/// The lines of a text that are not empty, without their ends.
struct Lines<'a> {
    text: &'a [u8],
    at: usize,
    /// Where the last line began.
    start: usize,
    /// True if the text is all there is, so that the last line needs no end.
    is_all: bool,
}

impl<'a> Lines<'a> {
    fn next_full(&mut self) -> Option<&'a [u8]> {
        loop {
            let rest = &self.text[self.at..];
            if rest.is_empty() {
                return None;
            }
            let end = line_end(rest);
            if end.is_none() && !self.is_all {
                return None;
            }
            let line = &rest[..end.unwrap_or(rest.len())];
            self.start = self.at;
            self.at += end.map_or(rest.len(), |end| end + 1);
            let n = line.iter().rposition(|&byte| byte != b'\r').map_or(0, |last| last + 1);
            if n > 0 {
                return Some(&line[..n]);
            }
        }
    }
}

/// Where a line ends; line ends between quotes do not count.
fn line_end(text: &[u8]) -> Option<usize> {
    let end = memchr(b'\n', text);
    let line = &text[..end.unwrap_or(text.len())];
    if memchr(b'"', line).is_none() {
        return end;
    }
    let mut quoted = false;
    text.iter().position(|&byte| {
        quoted ^= byte == b'"';
        byte == b'\n' && !quoted
    })
}

/// The fields of a line.
fn fields(line: &[u8], delimiter: u8) -> impl Iterator<Item = &[u8]> {
    let has_quotes = memchr(b'"', line).is_some();
    let mut rest = Some(line);
    std::iter::from_fn(move || {
        let (field, after) = first_field(rest?, delimiter, has_quotes);
        rest = after;
        Some(field)
    })
}

/// The first field of a text, and what follows its delimiter if there is one. A delimiter between quotes is part of a field.
fn first_field(text: &[u8], delimiter: u8, has_quotes: bool) -> (&[u8], Option<&[u8]>) {
    let mut quoted = false;
    // Fields are short: a loop is faster than a search that prepares itself.
    let end = text.iter().position(|&byte| {
        quoted ^= has_quotes && byte == b'"';
        byte == delimiter && !quoted
    });
    (&text[..end.unwrap_or(text.len())], end.map(|end| &text[end + 1..]))
}

fn unquoted(field: &[u8]) -> &[u8] {
    field.strip_prefix(b"\"").and_then(|rest| rest.strip_suffix(b"\"")).unwrap_or(field)
}
