//! Integers as bytes: variable-length integers and columns of differences.
//!
//! An integer takes seven bits per byte, lowest first; the highest bit of a byte means that another byte follows. Signed integers are folded (0, -1, 1, -2, ..).
//! A column is its length and the signed differences between neighbours, so an evenly growing column takes a byte per number.

use crate::error::{Error, Result};

/// Bytes being written.
#[derive(Default)]
pub struct ByteWriter {
    /// What was written.
    pub bytes: Vec<u8>,
}

impl ByteWriter {
    /// An integer.
    pub fn unsigned(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.bytes.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.bytes.push(value as u8);
    }

    fn signed(&mut self, value: i64) {
        self.unsigned((value << 1 ^ value >> 63) as u64);
    }

    /// A length, and so many bytes.
    pub fn section(&mut self, bytes: &[u8]) {
        self.unsigned(bytes.len() as u64);
        self.bytes.extend_from_slice(bytes);
    }

    /// A length, and the differences between neighbours.
    pub fn column(&mut self, values: impl ExactSizeIterator<Item = u64>) {
        self.unsigned(values.len() as u64);
        let mut before = 0;
        for value in values {
            self.signed(value.wrapping_sub(before) as i64);
            before = value;
        }
    }
}

/// Bytes being read. Nothing is allocated because they claim it.
pub struct ByteReader<'a> {
    bytes: &'a [u8],
}

fn short() -> Error {
    Error::source("an encoding ends too early")
}

impl<'a> ByteReader<'a> {
    /// Reads from the first byte on.
    pub fn new(bytes: &'a [u8]) -> ByteReader<'a> {
        ByteReader { bytes }
    }

    /// The number of remaining bytes.
    pub fn left(&self) -> usize {
        self.bytes.len()
    }

    /// The next bytes.
    pub fn take(&mut self, n: usize) -> Result<&'a [u8]> {
        let (taken, rest) = self.bytes.split_at_checked(n).ok_or_else(short)?;
        self.bytes = rest;
        Ok(taken)
    }

    /// An integer.
    pub fn unsigned(&mut self) -> Result<u64> {
        let mut value = 0u64;
        for shift in (0..64).step_by(7) {
            let byte = self.take(1)?[0];
            value |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                // One encoding per number: no zero at the end, and nothing beyond 64 bits.
                if (byte == 0 && shift > 0) || (shift == 63 && byte > 1) {
                    break;
                }
                return Ok(value);
            }
        }
        Err(Error::source("an encoding has a number that is not written as numbers are"))
    }

    fn signed(&mut self) -> Result<i64> {
        let folded = self.unsigned()?;
        Ok((folded >> 1) as i64 ^ -((folded & 1) as i64))
    }

    /// A length, and so many bytes.
    pub fn section(&mut self) -> Result<&'a [u8]> {
        let n = self.length()?;
        self.take(n)
    }

    /// A length that what follows can have: everything takes a byte at least.
    fn length(&mut self) -> Result<usize> {
        let n = self.unsigned()?;
        usize::try_from(n).ok().filter(|&n| n <= self.left()).ok_or_else(short)
    }

    /// A column, of numbers up to a limit.
    pub fn column(&mut self, limit: u64) -> Result<Vec<u64>> {
        let n = self.length()?;
        let mut before = 0u64;
        (0..n)
            .map(|_| {
                before = before.wrapping_add(self.signed()? as u64);
                if before > limit {
                    return Err(Error::source(format!("an encoding has {before} where at most {limit} can be")));
                }
                Ok(before)
            })
            .collect()
    }

    /// A column of 32-bit numbers, of which the largest names nothing.
    pub fn column32(&mut self) -> Result<Vec<u32>> {
        Ok(self.column(u64::from(u32::MAX) - 1)?.into_iter().map(|value| value as u32).collect())
    }

    /// A column of 32-bit numbers in which the largest stands for nothing.
    pub fn optional_column32(&mut self) -> Result<Vec<u32>> {
        Ok(self.column(u32::MAX.into())?.into_iter().map(|value| value as u32).collect())
    }

    /// Refuses bytes that are left.
    pub fn end(&self) -> Result<()> {
        if self.bytes.is_empty() { Ok(()) } else { Err(Error::source("an encoding goes on after its end")) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_come_back() {
        let values = [0, 1, 127, 128, 300, u32::MAX as u64, u64::MAX, 5, 0];
        let mut writer = ByteWriter::default();
        values.iter().for_each(|&value| writer.unsigned(value));
        writer.column(values.iter().copied());
        let mut reader = ByteReader::new(&writer.bytes);
        for &value in &values {
            assert_eq!(reader.unsigned().unwrap(), value);
        }
        assert_eq!(reader.column(u64::MAX).unwrap(), values);
        reader.end().unwrap();
        assert!(ByteReader::new(&writer.bytes[9..]).column(10).is_err());
    }

    #[test]
    fn there_is_one_way_to_write_a_number() {
        for wrong in [&[0x80, 0x00][..], &[0xff; 11], &[0x80]] {
            assert!(ByteReader::new(wrong).unsigned().is_err(), "{wrong:?}");
        }
        // A length that nothing can have allocates nothing.
        let mut writer = ByteWriter::default();
        writer.unsigned(u64::MAX / 2);
        assert!(ByteReader::new(&writer.bytes).column(1).is_err());
    }

    #[test]
    fn even_columns_take_a_byte_a_number() {
        let mut writer = ByteWriter::default();
        writer.column((0..1000u32).map(|k| 7 * u64::from(k)));
        assert!(writer.bytes.len() < 1005);
    }
}
