//! Lines, columns, and where blocks of rows begin.

use std::fs::File;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::Path;

use memchr::memchr;
use tw_ir::{Error, Result};

use super::{TableOptions, failed, number};

/// Bytes of text that a block has about. Its numbers are of similar size.
const BLOCK_BYTES: u64 = 4 << 20;

/// Bytes that are looked through at once.
const PIECE_BYTES: usize = 1 << 20;

/// The header and the first rows must end within so many bytes.
const MOST_HEAD: usize = 1 << 20;

/// Rows that show which columns hold numbers.
const SHOWN_ROWS: usize = 100;

/// A column that is read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Column {
    pub(super) name: String,
    /// Which field of a line it is.
    pub(super) index: u64,
}

/// What is known of a file without its numbers.
#[derive(Debug)]
pub(super) struct Table {
    delimiter: u8,
    pub(super) columns: Vec<Column>,
    /// Fields of every line.
    n_fields: usize,
    pub(super) n_rows: u64,
    pub(super) rows_per_block: u64,
    /// Where blocks begin, and where the last ends.
    starts: Vec<u64>,
}

impl Table {
    /// Looks through a file.
    pub(super) fn scan(path: &Path, file: &File, options: &TableOptions) -> Result<Table> {
        let wrong = |what: String| Error::io(format!("{}: {what}", path.display()));
        let length = file.metadata().map_err(|error| failed(path, "cannot be examined", &error))?.len();
        let mut head = vec![0; (length as usize).min(MOST_HEAD)];
        file.read_exact_at(&mut head, 0).map_err(|error| failed(path, "cannot be read", &error))?;
        let is_all = head.len() as u64 == length;
        let mark = if head.starts_with(b"\xef\xbb\xbf") { 3 } else { 0 };
        let delimiter = options.delimiter;
        let mut lines = Lines { text: &head, at: mark, is_all };
        let names = lines.next_full().ok_or_else(|| wrong("line 1: it does not end, or there is none".into()))?;
        let mut names: Vec<String> =
            fields(names, delimiter).map(|field| String::from_utf8_lossy(unquoted(field)).trim().to_string()).collect();
        let start = if options.header {
            lines.at
        } else {
            names = (0..names.len()).map(|k| k.to_string()).collect();
            mark
        };
        let mut lines = Lines { text: &head, at: start, is_all };
        let mut shown: Vec<Vec<Option<f64>>> = Vec::new();
        while shown.len() < SHOWN_ROWS
            && let Some(line) = lines.next_full()
        {
            shown.push(fields(line, delimiter).map(number::parse).collect());
        }
        if let Some((k, row)) = shown.iter().enumerate().find(|(_, row)| row.len() != names.len()) {
            let line = k + 1 + options.header as usize;
            return Err(wrong(format!("line {line}: {} fields instead of {}", row.len(), names.len())));
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
        let columns = columns.into_iter().map(|(k, name)| Column { name, index: k as u64 }).collect();
        let mean = ((lines.at - start) as u64 / (shown.len() as u64).max(1)).max(1);
        let rows_per_block = (BLOCK_BYTES / mean).max(1);
        let mut table =
            Table { delimiter, columns, n_fields: names.len(), n_rows: 0, rows_per_block, starts: Vec::new() };
        table.count_rows(path, file, start as u64..length)?;
        Ok(table)
    }

    /// Counts lines that are not empty and notes where blocks of them begin. A line end between quotes is part of a field.
    fn count_rows(&mut self, path: &Path, file: &File, bytes: Range<u64>) -> Result<()> {
        let mut piece = vec![0; PIECE_BYTES];
        let (mut at, mut quoted, mut is_empty, mut line_start) = (bytes.start, false, true, bytes.start);
        let mut end_line = |is_empty: bool, line_start: u64| {
            if !is_empty {
                if self.n_rows.is_multiple_of(self.rows_per_block) {
                    self.starts.push(line_start);
                }
                self.n_rows += 1;
            }
        };
        while at < bytes.end {
            let n = ((bytes.end - at) as usize).min(PIECE_BYTES);
            let piece = &mut piece[..n];
            file.read_exact_at(piece, at)
                .map_err(|error| failed(path, &format!("byte {at} cannot be read"), &error))?;
            let has_quotes = quoted || piece.contains(&b'"');
            let mut k = 0;
            while k < n {
                if !has_quotes {
                    // The rest of the line at once.
                    let line_end = memchr(b'\n', &piece[k..]);
                    let rest = &piece[k..k + line_end.unwrap_or(n - k)];
                    is_empty = is_empty && rest.iter().all(|&byte| byte == b'\r');
                    match line_end {
                        Some(m) => {
                            end_line(is_empty, line_start);
                            k += m + 1;
                            (is_empty, line_start) = (true, at + k as u64);
                        }
                        None => k = n,
                    }
                    continue;
                }
                match piece[k] {
                    b'\n' if !quoted => {
                        end_line(is_empty, line_start);
                        (is_empty, line_start) = (true, at + k as u64 + 1);
                    }
                    b'"' => (quoted, is_empty) = (!quoted, false),
                    b'\r' => {}
                    _ => is_empty = false,
                }
                k += 1;
            }
            at += n as u64;
        }
        if quoted {
            return Err(Error::io(format!("{}: a quote does not end", path.display())));
        }
        end_line(is_empty, line_start);
        self.starts.push(bytes.end);
        Ok(())
    }

    /// The blocks that have some of these rows.
    pub(super) fn blocks_of(&self, rows: Range<u64>) -> Range<u64> {
        if rows.is_empty() { 0..0 } else { rows.start / self.rows_per_block..rows.end.div_ceil(self.rows_per_block) }
    }

    /// The bytes of a block.
    pub(super) fn bytes_of(&self, block: u64) -> Range<u64> {
        self.starts[block as usize]..self.starts[block as usize + 1]
    }

    pub(super) fn longest_block(&self) -> u64 {
        self.starts.windows(2).map(|pair| pair[1] - pair[0]).max().unwrap_or(0)
    }

    /// Parses some rows of the text of a block, and of them some columns. An error has the row of the block that is wrong.
    pub(super) fn parse(
        &self,
        text: &[u8],
        rows: Range<u64>,
        columns: Range<usize>,
        out: &mut [f64],
    ) -> Result<(), (u64, String)> {
        let columns = &self.columns[columns];
        // Where each field goes. Columns that are wanted in another order than they have are rare.
        let mut target: Vec<Option<usize>> = vec![None; self.n_fields];
        let mut again: Vec<(usize, usize)> = Vec::new();
        for (k, column) in columns.iter().enumerate() {
            match &mut target[column.index as usize] {
                Some(first) => again.push((*first, k)),
                place => *place = Some(k),
            }
        }
        let mut lines = Lines { text, at: 0, is_all: true };
        for row in 0..rows.end {
            let Some(line) = lines.next_full() else { return Err((row, "the file has changed".into())) };
            if row < rows.start {
                continue;
            }
            let start = (row - rows.start) as usize * columns.len();
            let values = &mut out[start..start + columns.len()];
            let mut n_fields = 0;
            let has_quotes = memchr(b'"', line).is_some();
            let mut rest = Some(line);
            while let Some(text) = rest {
                let wanted = target.get(n_fields).copied().flatten();
                n_fields += 1;
                if let Some(k) = wanted
                    && let Some((value, n)) = number::leading(text, self.delimiter)
                {
                    values[k] = value;
                    rest = text.get(n + 1..);
                    continue;
                }
                let (field, after) = first_field(text, self.delimiter, has_quotes);
                rest = after;
                if let Some(k) = wanted {
                    values[k] = number::parse(field).ok_or_else(|| {
                        let shown = String::from_utf8_lossy(&field[..field.len().min(40)]).into_owned();
                        let name = columns[k].name.escape_debug();
                        (row, format!("column `{name}`: `{}` is not a number", shown.escape_debug()))
                    })?;
                }
            }
            if n_fields != self.n_fields {
                return Err((row, format!("{n_fields} fields instead of {}", self.n_fields)));
            }
            again.iter().for_each(|&(first, k)| values[k] = values[first]);
        }
        Ok(())
    }
}

/// The number of a line from one on, by its row; for errors.
pub(super) fn line_of(file: &File, table: &Table, row: u64) -> Option<u64> {
    let block = row / table.rows_per_block;
    let mut text = vec![0; table.bytes_of(block).start as usize];
    file.read_exact_at(&mut text, 0).ok()?;
    let before = text.iter().filter(|&&byte| byte == b'\n').count() as u64;
    let bytes = table.bytes_of(block);
    let mut text = vec![0; (bytes.end - bytes.start) as usize];
    file.read_exact_at(&mut text, bytes.start).ok()?;
    let mut lines = Lines { text: &text, at: 0, is_all: true };
    let (mut within, mut start) = (row % table.rows_per_block, 0);
    loop {
        start = lines.at.max(start);
        lines.next_full()?;
        if within == 0 {
            break;
        }
        within -= 1;
    }
    Some(before + text[..start].iter().filter(|&&byte| byte == b'\n').count() as u64 + 1)
}

/// The lines of a text that are not empty, without their ends.
struct Lines<'a> {
    text: &'a [u8],
    at: usize,
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
            self.at += end.map_or(rest.len(), |end| end + 1);
            let line = line.strip_suffix(b"\r").unwrap_or(line);
            if !line.is_empty() {
                return Some(line);
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
