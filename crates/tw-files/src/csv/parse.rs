//! Rows of text into numbers.

use memchr::{memchr2, memchr3};

use super::number;

/// How many bytes of a text hold whole rows, and what came of them.
pub(super) struct Parsed {
    pub(super) rows: u64,
    /// Bytes of these rows.
    pub(super) bytes: usize,
}

/// What is wrong with a row, and the byte of the text where the row begins.
pub(super) struct Wrong {
    pub(super) at: usize,
    pub(super) what: String,
}

/// Which fields of a row are wanted.
pub(super) struct Fields<'a> {
    pub(super) delimiter: u8,
    /// Of each field of a row, the column that it goes to.
    target: Vec<Option<u32>>,
    /// Columns that are the same as another one: which one, and which they are.
    again: Vec<(usize, usize)>,
    names: Vec<&'a str>,
}

/// What a field says.
enum Field {
    /// It ends before this byte, which is a delimiter or the end of a line.
    End(usize),
    /// The text ends in it.
    Cut,
}

impl<'a> Fields<'a> {
    /// For rows of so many fields, some of which are columns: which field each column is, and its name.
    pub(super) fn new(delimiter: u8, n_fields: usize, columns: impl Iterator<Item = (usize, &'a str)>) -> Fields<'a> {
        let mut fields = Fields { delimiter, target: vec![None; n_fields], again: Vec::new(), names: Vec::new() };
        for (k, (field, name)) in columns.enumerate() {
            match fields.target[field] {
                Some(first) => fields.again.push((first as usize, k)),
                None => fields.target[field] = Some(k as u32),
            }
            fields.names.push(name);
        }
        fields
    }

    /// Passes over whole rows of a text, at most so many. If the text `is_all`, its end is the end of a row.
    pub(super) fn skip(&self, text: &[u8], most: u64, is_all: bool) -> Parsed {
        let mut parsed = Parsed { rows: 0, bytes: 0 };
        while parsed.rows < most {
            parsed.bytes = past_empty_lines(text, parsed.bytes);
            if is_blank(&text[parsed.bytes..]) {
                break;
            }
            let mut at = parsed.bytes;
            let mut quoted = false;
            let end = loop {
                match memchr2(b'\n', b'"', &text[at..]) {
                    None => break None,
                    Some(k) if text[at + k] == b'"' => (quoted, at) = (!quoted, at + k + 1),
                    Some(k) if quoted => at += k + 1,
                    Some(k) => break Some(at + k + 1),
                }
            };
            match end {
                Some(end) => parsed.bytes = end,
                None if is_all => parsed.bytes = text.len(),
                None => break,
            }
            parsed.rows += 1;
        }
        parsed
    }

    /// Parses whole rows of a text until `out` is full. If the text `is_all`, its end is the end of a row.
    pub(super) fn parse(&self, text: &[u8], is_all: bool, out: &mut [f64]) -> Result<Parsed, Wrong> {
        let mut parsed = Parsed { rows: 0, bytes: 0 };
        for values in out.chunks_exact_mut(self.names.len().max(1)) {
            let start = past_empty_lines(text, parsed.bytes);
            parsed.bytes = start;
            if is_blank(&text[start..]) {
                break;
            }
            let wrong = |what: String| Wrong { at: start, what };
            match self.row(text, start, is_all, values).map_err(wrong)? {
                Some(next) => parsed.bytes = next,
                None => break,
            }
            self.again.iter().for_each(|&(first, k)| values[k] = values[first]);
            parsed.rows += 1;
        }
        Ok(parsed)
    }

    /// Parses a row; where the next begins, or `None` if the text ends in this one.
    fn row(&self, text: &[u8], start: usize, is_all: bool, values: &mut [f64]) -> Result<Option<usize>, String> {
        let mut at = start;
        let last = self.target.len() - 1;
        for (k, target) in self.target.iter().enumerate() {
            let end = match target {
                None => self.end_of_field(text, at),
                Some(column) => {
                    let column = *column as usize;
                    match number::leading(text, at, self.delimiter) {
                        Some((value, end)) if end < text.len() || is_all => {
                            values[column] = value;
                            Field::End(end)
                        }
                        _ => {
                            let end = self.end_of_field(text, at);
                            if let Some(end) = end.or_end(text, is_all) {
                                values[column] = self.other(text, at, end, column)?;
                            }
                            end
                        }
                    }
                }
            };
            let Some(end) = end.or_end(text, is_all) else { return Ok(None) };
            if k == last {
                return self.end_of_row(text, start, end, is_all);
            }
            if text.get(end) != Some(&self.delimiter) {
                return self.ragged(text, start, is_all);
            }
            at = end + 1;
        }
        Ok(None)
    }

    /// After the last field that is expected: where the next row begins.
    fn end_of_row(&self, text: &[u8], start: usize, end: usize, is_all: bool) -> Result<Option<usize>, String> {
        match line_end(text, end) {
            Some(next) => Ok(Some(next)),
            None if text.get(end) == Some(&self.delimiter) => self.ragged(text, start, is_all),
            None if is_all => Ok(Some(text.len())),
            None => Ok(None),
        }
    }

    /// The value of a field that is no plain number.
    fn other(&self, text: &[u8], start: usize, end: usize, column: usize) -> Result<f64, String> {
        if start == end {
            return Ok(f64::NAN);
        }
        let field = &text[start..end];
        number::parse(field).ok_or_else(|| {
            let shown = String::from_utf8_lossy(&field[..field.len().min(40)]).trim_end().to_string();
            let more = if field.len() > 40 { ".." } else { "" };
            format!("column `{}`: `{}`{more} is not a number", self.names[column].escape_debug(), shown.escape_debug())
        })
    }

    /// Where a field ends: at a delimiter or a line end that are not between quotes.
    fn end_of_field(&self, text: &[u8], mut at: usize) -> Field {
        let mut quoted = false;
        while let Some(k) = memchr3(self.delimiter, b'\n', b'"', &text[at..]) {
            match text[at + k] {
                b'"' => quoted = !quoted,
                _ if quoted => {}
                _ => return Field::End(at + k),
            }
            at += k + 1;
        }
        Field::Cut
    }

    /// A row with too many or too few fields, unless the text ends in it.
    fn ragged(&self, text: &[u8], mut at: usize, is_all: bool) -> Result<Option<usize>, String> {
        let mut n = 1;
        loop {
            match self.end_of_field(text, at) {
                Field::End(end) if text[end] == self.delimiter => (n, at) = (n + 1, end + 1),
                Field::Cut if !is_all => return Ok(None),
                _ => return Err(format!("{n} fields instead of {}", self.target.len())),
            }
        }
    }
}

impl Field {
    /// The end of a field; that of the text if it is all there is.
    fn or_end(&self, text: &[u8], is_all: bool) -> Option<usize> {
        match self {
            Field::End(end) => Some(*end),
            Field::Cut => is_all.then_some(text.len()),
        }
    }
}

/// Where the next line begins, if nothing but carriage returns is left of this one.
fn line_end(text: &[u8], mut at: usize) -> Option<usize> {
    while text.get(at) == Some(&b'\r') {
        at += 1;
    }
    (text.get(at) == Some(&b'\n')).then_some(at + 1)
}

/// Where the next line begins that is not empty, or that the text ends in.
fn past_empty_lines(text: &[u8], mut at: usize) -> usize {
    while let Some(next) = line_end(text, at) {
        at = next;
    }
    at
}

/// True of what is no row: nothing, or carriage returns.
pub(super) fn is_blank(line: &[u8]) -> bool {
    line.iter().all(|&byte| byte == b'\r')
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    /// Parses a text in pieces that end anywhere; values, or what is wrong and in which row.
    fn in_pieces(text: &[u8], fields: &Fields<'_>, n_rows: usize, piece: usize) -> Result<Vec<f64>, (u64, String)> {
        let width = fields.names.len();
        let mut out = vec![0.0; n_rows * width];
        let (mut done, mut start, mut end) = (0, 0, 0);
        while done < n_rows {
            end = (end + piece).min(text.len());
            let parsed =
                fields.parse(&text[start..end], end == text.len(), &mut out[done * width..]).map_err(|wrong| {
                    let before = &text[..start + wrong.at];
                    (before.iter().filter(|&&byte| byte == b'\n').count() as u64, wrong.what)
                })?;
            done += parsed.rows as usize;
            start += parsed.bytes;
            assert!(end < text.len() || done == n_rows, "{done} of {n_rows} rows");
        }
        Ok(out)
    }

    #[test]
    fn pieces_end_anywhere() {
        let text = b"1,a,2.5\n\r\n-3,\"b,\n\",4e3\r\n,x,NA\n\n5,y,\"6\"";
        let fields = Fields::new(b',', 3, [(0, "a"), (2, "b"), (0, "c")].into_iter());
        let expected = [1.0, 2.5, 1.0, -3.0, 4e3, -3.0, f64::NAN, f64::NAN, f64::NAN, 5.0, 6.0, 5.0];
        for piece in 1..=text.len() {
            let found = in_pieces(text, &fields, 4, piece).unwrap();
            assert_eq!(format!("{found:?}"), format!("{expected:?}"), "{piece}");
            for skipped in 0..=4 {
                let (mut n, mut start, mut end) = (0, 0, 0);
                while n < skipped {
                    end = (end + piece).min(text.len());
                    let passed = fields.skip(&text[start..end], skipped - n, end == text.len());
                    (n, start) = (n + passed.rows, start + passed.bytes);
                }
                let found = in_pieces(&text[start..], &fields, 4 - skipped as usize, 7).unwrap();
                assert_eq!(
                    format!("{found:?}"),
                    format!("{:?}", &expected[3 * skipped as usize..]),
                    "{piece} {skipped}"
                );
            }
        }
    }

    #[test]
    fn wrong_rows_are_found_in_any_piece() {
        let fields = Fields::new(b',', 2, [(0, "a"), (1, "b")].into_iter());
        for (text, message) in [
            ("1,2\n3\n", "1 fields instead of 2"),
            ("1,2\n3\r\n", "1 fields instead of 2"),
            ("1,2\n3", "1 fields instead of 2"),
            ("1,2\n3,4,5\n", "3 fields instead of 2"),
            ("1,2\n3,4,", "3 fields instead of 2"),
            ("1,2\nx,4\n", "column `a`: `x` is not a number"),
            ("1,2\n3,0\x001\n", "column `b`: `0\\01` is not a number"),
            ("1,2\n3,\"4", "column `b`: `\\\"4` is not a number"),
        ] {
            for piece in 1..=text.len() {
                let (row, what) = in_pieces(text.as_bytes(), &fields, 2, piece).unwrap_err();
                assert_eq!(row, 1, "{text:?} {piece}");
                assert_eq!(what, message, "{text:?} {piece}");
            }
        }
    }
}
