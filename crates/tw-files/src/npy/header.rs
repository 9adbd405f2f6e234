//! The header: a magic string, a version, a length, and a Python dictionary.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;

use tw_ir::{DType, Error, Result, shape};

use super::failed;
use crate::descr;

pub(super) const MAGIC: &[u8; 6] = b"\x93NUMPY";
/// NumPy refuses longer headers as well; nothing we can hold needs more.
const LONGEST_HEADER: u64 = 1 << 16;

/// What a file says about its contents, after it has been checked against the file's length.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NpyHeader {
    /// Element type.
    pub dtype: DType,
    /// Extents of the axes.
    pub shape: Vec<u64>,
    /// True if the first axis varies fastest.
    pub fortran: bool,
    /// True if the most significant byte of a number comes first.
    pub big_endian: bool,
    /// Where the elements begin.
    pub data_offset: u64,
}

impl NpyHeader {
    /// Bytes of all elements, which the file has been checked to have.
    pub fn n_bytes(&self) -> u64 {
        self.shape.iter().fold(self.dtype.size(), |bytes, &n| bytes.saturating_mul(n))
    }
}

/// Reads and checks a header.
pub(super) fn read(path: &Path, file: &File) -> Result<NpyHeader> {
    let length = file.metadata().map_err(|error| failed(path, "cannot be examined", &error))?.len();
    let bad = |offset: u64, what: String| Error::io(format!("{}: byte {offset}: {what}", path.display()));
    let read = |buffer: &mut [u8], offset: u64| {
        file.read_exact_at(buffer, offset)
            .map_err(|error| failed(path, &format!("byte {offset} cannot be read"), &error))
    };
    if length < 10 {
        return Err(bad(length, "the file ends before its header; it is not a .npy file".into()));
    }
    let mut start = [0u8; 12];
    let n = start.len().min(length as usize);
    read(&mut start[..n], 0)?;
    if &start[..6] != MAGIC {
        return Err(bad(0, "no .npy magic string".into()));
    }
    let (text_start, text_length) = match start[6] {
        1 => (10u64, u16::from_le_bytes([start[8], start[9]]) as u64),
        2 | 3 if length >= 12 => (12, u32::from_le_bytes([start[8], start[9], start[10], start[11]]) as u64),
        2 | 3 => return Err(bad(length, "the file ends before its header".into())),
        version => return Err(bad(6, format!("version {version}.{} of the format is not known", start[7]))),
    };
    let data_offset = text_start + text_length;
    if data_offset > length || text_length > LONGEST_HEADER {
        return Err(bad(8, format!("a header of {text_length} bytes in a file of {length}")));
    }
    let mut bytes = vec![0u8; text_length as usize];
    read(&mut bytes, text_start)?;
    let text = std::str::from_utf8(&bytes)
        .map_err(|error| bad(text_start + error.valid_up_to() as u64, "the header is not text".into()))?;
    let mut parser = Parser { text: text.as_bytes(), at: 0 };
    let fields = parser.dictionary().map_err(|what| bad(text_start + parser.at as u64, what))?;
    let (dtype, big_endian) = descr::parse(&fields.descr).ok_or_else(|| {
        let error = bad(text_start, format!("elements of type `{}` are not supported", fields.descr.escape_debug()));
        match fields.descr.trim_start_matches(['<', '>', '|', '=']) {
            "V2" => error.help("if these are bfloat16, which NumPy cannot name, save them with astype('float32')"),
            _ => error.help("supported are bool, integers, float16 to float64, complex64, complex128, datetime64 and timedelta64; convert with NumPy's astype"),
        }
    })?;
    let n_bytes =
        shape::n_bytes(&fields.shape, dtype.size()).map_err(|error| bad(text_start, error.message().into()))?;
    if fields.shape.len() > shape::MAX_RANK {
        return Err(bad(
            text_start,
            format!("an array of rank {}; the limit is {}", fields.shape.len(), shape::MAX_RANK),
        ));
    }
    if n_bytes != length - data_offset {
        let (held, shown) = (length - data_offset, shape::display(&fields.shape));
        let what = if held < n_bytes { "the file is truncated" } else { "there is data after the array" };
        return Err(bad(
            data_offset + n_bytes.min(held),
            format!("{what}: {dtype} {shown} takes {n_bytes} bytes, but {held} follow the header"),
        ));
    }
    Ok(NpyHeader { dtype, shape: fields.shape, fortran: fields.fortran, big_endian, data_offset })
}

/// The bytes of a header, padded so that elements are aligned to 64 bytes.
pub(super) fn write(dtype: DType, shape: &[u64]) -> Result<Vec<u8>> {
    let descr = descr::of(dtype).ok_or_else(|| {
        Error::source(format!("a .npy file cannot hold {dtype}, which NumPy does not have"))
            .help("convert to f32 before saving; nothing is lost")
    })?;
    let extents: Vec<String> = shape.iter().map(u64::to_string).collect();
    let tuple = match extents.as_slice() {
        [one] => format!("({one},)"),
        several => format!("({})", several.join(", ")),
    };
    let mut text = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': {tuple}, }}");
    // A rank of at most 32 keeps this far below the 65535 bytes of version 1.0.
    while (10 + text.len() + 1) % 64 != 0 {
        text.push(' ');
    }
    text.push('\n');
    let mut bytes = MAGIC.to_vec();
    bytes.extend([1, 0]);
    bytes.extend((text.len() as u16).to_le_bytes());
    bytes.extend(text.as_bytes());
    Ok(bytes)
}

struct Fields {
    descr: String,
    fortran: bool,
    shape: Vec<u64>,
}

/// Reads the one Python literal a header holds.
struct Parser<'a> {
    text: &'a [u8],
    at: usize,
}

impl Parser<'_> {
    fn dictionary(&mut self) -> Result<Fields, String> {
        let (mut descr, mut fortran, mut shape) = (None, None, None);
        self.expect(b'{')?;
        while !self.take(b'}') {
            let key = self.string()?;
            self.expect(b':')?;
            let repeated = match key.as_str() {
                "descr" if matches!(self.peek(), Some(b'[' | b'(')) => {
                    return Err("structured types are not supported".into());
                }
                "descr" => descr.replace(self.string()?).is_some(),
                "fortran_order" => fortran.replace(self.boolean()?).is_some(),
                "shape" => shape.replace(self.tuple()?).is_some(),
                other => return Err(format!("the header has a key `{}`", other.escape_debug())),
            };
            if repeated {
                return Err(format!("the header has two keys `{key}`"));
            }
            if !self.take(b',') {
                self.expect(b'}')?;
                break;
            }
        }
        if self.peek().is_some() {
            return Err("text after the header".into());
        }
        match (descr, fortran, shape) {
            (Some(descr), Some(fortran), Some(shape)) => Ok(Fields { descr, fortran, shape }),
            _ => Err("the header lacks one of `descr`, `fortran_order` and `shape`".into()),
        }
    }

    fn peek(&mut self) -> Option<u8> {
        while self.text.get(self.at).is_some_and(u8::is_ascii_whitespace) {
            self.at += 1;
        }
        self.text.get(self.at).copied()
    }

    fn take(&mut self, byte: u8) -> bool {
        let found = self.peek() == Some(byte);
        self.at += found as usize;
        found
    }

    fn expect(&mut self, byte: u8) -> Result<(), String> {
        if self.take(byte) { Ok(()) } else { Err(format!("the header is malformed: expected `{}`", byte as char)) }
    }

    fn string(&mut self) -> Result<String, String> {
        let quote =
            self.peek().filter(|c| matches!(c, b'\'' | b'"')).ok_or("the header is malformed: expected a string")?;
        let start = self.at + 1;
        let length = self.text[start..].iter().position(|&c| c == quote);
        let end = start + length.ok_or("the header is malformed: a string does not end")?;
        self.at = end + 1;
        Ok(String::from_utf8_lossy(&self.text[start..end]).into_owned())
    }

    fn boolean(&mut self) -> Result<bool, String> {
        self.peek();
        for (word, value) in [("True", true), ("False", false)] {
            if self.text[self.at..].starts_with(word.as_bytes()) {
                self.at += word.len();
                return Ok(value);
            }
        }
        Err("the header is malformed: expected True or False".into())
    }

    fn tuple(&mut self) -> Result<Vec<u64>, String> {
        let mut extents = Vec::new();
        self.expect(b'(')?;
        while !self.take(b')') {
            extents.push(self.number()?);
            if !self.take(b',') {
                self.expect(b')')?;
                break;
            }
        }
        Ok(extents)
    }

    fn number(&mut self) -> Result<u64, String> {
        if self.peek() == Some(b'-') {
            return Err("the header gives a negative extent".into());
        }
        let digits = self.text[self.at..].iter().take_while(|c| c.is_ascii_digit()).count();
        let text = String::from_utf8_lossy(&self.text[self.at..self.at + digits]).into_owned();
        if text.is_empty() {
            return Err("the header is malformed: expected an extent".into());
        }
        self.at += digits;
        // Python 2 wrote long integers with a suffix.
        self.take(b'L');
        text.parse().map_err(|_| format!("the header gives an extent of {text}, which is more than can be counted"))
    }
}
