//! Where rows are in a text: how many there are, where every so many of them begin, and the number of a line for errors.
//!
//! A row is a line that holds something else than carriage returns. Line ends between quotes are part of a field.

use std::fs::File;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::Path;

use memchr::{memchr, memchr_iter, memrchr};
use tw_ir::{Error, Result};

use super::parse::is_blank;
use super::{MOST_ROW, failed};

/// Bytes that are looked through at once. They stay in a cache.
const PIECE_BYTES: usize = 256 << 10;

/// The rows of a file.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Rows {
    pub(super) count: u64,
    /// Where every `step`-th row begins, and where the last ends.
    pub(super) starts: Vec<u64>,
    /// No line has more bytes with its end, nor has a row of several lines.
    pub(super) longest: u64,
}

/// Looks through a range of bytes of a file, which begins with a line.
pub(super) fn count(path: &Path, file: &File, bytes: Range<u64>, step: u64) -> Result<Rows> {
    let mut counter = Counter::new(bytes.start, step);
    let mut piece = vec![0; PIECE_BYTES.min((bytes.end - bytes.start) as usize)];
    while counter.at < bytes.end {
        let at = counter.at;
        let n = ((bytes.end - at) as usize).min(PIECE_BYTES);
        file.read_exact_at(&mut piece[..n], at)
            .map_err(|error| failed(path, &format!("byte {at} cannot be read"), &error))?;
        counter.take(&piece[..n]);
        if counter.longest.max(bytes.end.min(counter.at) - counter.line_start) > MOST_ROW {
            let line = line_at(file, counter.line_start).map_or(String::new(), |n| format!("line {n}: "));
            let message = format!("{}: {line}a row has more than {MOST_ROW} bytes", path.display());
            return Err(Error::io(message).help("look for a quote that is not closed, or for a file that is no text"));
        }
    }
    counter.finish().map_err(|row_start| {
        let line = line_at(file, row_start).map_or(String::new(), |n| format!("line {n}: "));
        Error::io(format!("{}: {line}a quote does not end", path.display()))
    })
}

/// The number of the line that a byte of a file belongs to, from one on; only errors need it, for it takes a pass over the file.
pub(super) fn line_at(file: &File, at: u64) -> Option<u64> {
    let mut piece = vec![0; PIECE_BYTES];
    let (mut lines, mut done) = (1, 0);
    while done < at {
        let n = ((at - done) as usize).min(PIECE_BYTES);
        file.read_exact_at(&mut piece[..n], done).ok()?;
        lines += memchr_iter(b'\n', &piece[..n]).count() as u64;
        done += n as u64;
    }
    Some(lines)
}

/// What is known after some pieces.
struct Counter {
    step: u64,
    at: u64,
    count: u64,
    starts: Vec<u64>,
    /// Where the current line begins; the row's first if a quote holds several.
    line_start: u64,
    quoted: bool,
    /// True if nothing but carriage returns is in the current line so far.
    is_empty: bool,
    longest: u64,
}

impl Counter {
    fn new(at: u64, step: u64) -> Counter {
        let starts = Vec::new();
        Counter { step, at, count: 0, starts, line_start: at, quoted: false, is_empty: true, longest: 0 }
    }

    fn take(&mut self, piece: &[u8]) {
        if self.quoted || memchr(b'"', piece).is_some() {
            self.by_bytes(piece);
        } else {
            self.by_lines(piece);
        }
        self.at += piece.len() as u64;
    }

    /// A line ends before this byte.
    fn end_line(&mut self, next: u64) {
        if !self.is_empty {
            if self.count.is_multiple_of(self.step) {
                self.starts.push(self.line_start);
            }
            self.count += 1;
        }
        self.longest = self.longest.max(next - self.line_start);
        (self.is_empty, self.line_start) = (true, next);
    }

    /// Without quotes: whole lines at once.
    fn by_lines(&mut self, piece: &[u8]) {
        let Some(first) = memchr(b'\n', piece) else {
            self.is_empty = self.is_empty && is_blank(piece);
            return;
        };
        self.is_empty = self.is_empty && is_blank(&piece[..first]);
        self.end_line(self.at + first as u64 + 1);
        let last = memrchr(b'\n', piece).unwrap_or(first);
        let (between, rest) = (&piece[first + 1..last + 1], &piece[last + 1..]);
        let (n_lines, may_be_empty) = line_ends(between);
        // The next row where a block begins, if it is here, is looked for; all others are only counted.
        let until_start = (self.step - self.count % self.step) % self.step;
        if may_be_empty || n_lines > until_start {
            let from = self.at + first as u64 + 1;
            let mut start = 0;
            for end in memchr_iter(b'\n', between) {
                self.is_empty = is_blank(&between[start..end]);
                start = end + 1;
                self.end_line(from + start as u64);
            }
        } else {
            self.count += n_lines;
            self.line_start += between.len() as u64;
        }
        self.longest = self.longest.max(between.len() as u64);
        self.is_empty = is_blank(rest);
    }

    /// With quotes: byte by byte.
    fn by_bytes(&mut self, piece: &[u8]) {
        for (k, &byte) in piece.iter().enumerate() {
            match byte {
                b'\n' if !self.quoted => self.end_line(self.at + k as u64 + 1),
                b'"' => (self.quoted, self.is_empty) = (!self.quoted, false),
                b'\r' => {}
                _ => self.is_empty = false,
            }
        }
    }

    /// After the last piece; an error has the byte where the row begins whose quote does not end.
    fn finish(mut self) -> Result<Rows, u64> {
        if self.quoted {
            return Err(self.line_start);
        }
        self.end_line(self.at);
        self.starts.push(self.at);
        Ok(Rows { count: self.count, starts: self.starts, longest: self.longest })
    }
}

/// How many line ends there are, and whether one of them may end an empty line. The text begins with a line.
fn line_ends(text: &[u8]) -> (u64, bool) {
    // An empty line is a line end, or a carriage return, after a line end. Sums of few bytes fit a byte, which the compiler makes vectors of.
    const FEW: usize = 192;
    let mut n_lines = 0;
    let mut n_empty = text.first().is_some_and(|&byte| byte == b'\n' || byte == b'\r') as u64;
    let followers = text.get(1..).unwrap_or_default();
    for (own, next) in text.chunks(FEW).zip(followers.chunks(FEW)) {
        let pairs = own.iter().zip(next);
        let (lines, empty) = pairs.fold((0u8, 0u8), |(lines, empty), (&byte, &next)| {
            let is_end = (byte == b'\n') as u8;
            (lines + is_end, empty + (is_end & ((next == b'\n') | (next == b'\r')) as u8))
        });
        n_lines += u64::from(lines);
        n_empty += u64::from(empty);
    }
    n_lines += (text.last() == Some(&b'\n')) as u64;
    (n_lines, n_empty > 0)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    /// The same, by the definition.
    fn expected(text: &[u8], step: u64) -> Option<(u64, Vec<u64>)> {
        let (mut starts, mut count, mut quoted, mut line) = (Vec::new(), 0, false, 0);
        let mut end_line = |from: usize, to: usize| {
            if !is_blank(&text[from..to]) {
                if count % step == 0 {
                    starts.push(from as u64);
                }
                count += 1;
            }
        };
        for (k, &byte) in text.iter().enumerate() {
            quoted ^= byte == b'"';
            if byte == b'\n' && !quoted {
                end_line(line, k);
                line = k + 1;
            }
        }
        end_line(line, text.len());
        starts.push(text.len() as u64);
        (!quoted).then_some((count, starts))
    }

    #[test]
    fn rows_are_counted_piece_by_piece() {
        let mut state = 7u64;
        let mut random = |n: u64| {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (state >> 33) % n
        };
        for round in 0..3000 {
            // With and without quotes, carriage returns and empty lines; also texts longer than what is summed in a byte.
            let letters: &[u8] = [&b"1,\n"[..], b"1234567,8\n", b"1\r\n", b"1,\"\n\r", b"\n\r"][round % 5];
            let length = random([12, 80, 1000][round % 3]);
            let text: Vec<u8> = (0..length).map(|_| letters[random(letters.len() as u64) as usize]).collect();
            let step = 1 + random(5);
            let mut counter = Counter::new(0, step);
            let mut rest = &text[..];
            while !rest.is_empty() {
                let (piece, after) = rest.split_at(1 + random(rest.len() as u64) as usize);
                counter.take(piece);
                rest = after;
            }
            let longest = counter.longest;
            let found = counter.finish();
            let shown = String::from_utf8_lossy(&text);
            assert_eq!(
                found.as_ref().ok().map(|rows| (rows.count, rows.starts.clone())),
                expected(&text, step),
                "{shown:?}"
            );
            if let Ok(rows) = found {
                let of_lines = text.split(|&byte| byte == b'\n').map(|line| line.len() as u64).max().unwrap_or(0);
                assert!(rows.longest >= longest && rows.longest >= of_lines, "{shown:?}");
            }
        }
    }
}
