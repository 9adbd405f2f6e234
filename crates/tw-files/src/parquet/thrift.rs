//! Thrift's compact protocol, as far as footers and headers of pages need it.
//!
//! Nothing is allocated, and no number that is read is believed before it was compared with the bytes that are left.

/// Types of fields in the compact protocol. A struct ends with `STOP`; the two values of a bool are types of their own.
pub(super) const STOP: u8 = 0;
pub(super) const TRUE: u8 = 1;
pub(super) const FALSE: u8 = 2;
pub(super) const BYTE: u8 = 3;
pub(super) const I16: u8 = 4;
pub(super) const I32: u8 = 5;
pub(super) const I64: u8 = 6;
pub(super) const DOUBLE: u8 = 7;
pub(super) const BINARY: u8 = 8;
pub(super) const LIST: u8 = 9;
pub(super) const SET: u8 = 10;
pub(super) const STRUCT: u8 = 12;
pub(super) const UUID: u8 = 13;

/// Bytes in Thrift's compact protocol that are still to be read.
pub(super) struct Compact<'a>(pub(super) &'a [u8]);

impl<'a> Compact<'a> {
    pub(super) fn byte(&mut self) -> Result<u8, String> {
        Ok(self.take(1)?[0])
    }

    pub(super) fn take(&mut self, n: u64) -> Result<&'a [u8], String> {
        let n = usize::try_from(n).ok().filter(|&n| n <= self.0.len()).ok_or("it ends early")?;
        let (taken, rest) = self.0.split_at(n);
        self.0 = rest;
        Ok(taken)
    }

    /// An unsigned number, seven bits a byte.
    pub(super) fn varint(&mut self) -> Result<u64, String> {
        let mut value = 0u64;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            let bits = u64::from(byte & 0x7f);
            if (bits << shift) >> shift != bits {
                break;
            }
            value |= bits << shift;
            if byte & 0x80 == 0 {
                return Ok(value);
            }
        }
        Err("a number is too long".into())
    }

    /// A signed number, whose lowest bit is the sign.
    pub(super) fn signed(&mut self) -> Result<i64, String> {
        let value = self.varint()?;
        Ok((value >> 1) as i64 ^ -((value & 1) as i64))
    }

    pub(super) fn int(&mut self) -> Result<i32, String> {
        self.signed()?.try_into().map_err(|_| "a number is too large".into())
    }

    /// The number and the type of the next field of a struct; `None` at its end. Numbers are written as the difference from the `last` one, or in full.
    pub(super) fn field(&mut self, last: i16) -> Result<Option<(i16, u8)>, String> {
        let header = self.byte()?;
        let ty = header & 0x0f;
        if ty == STOP {
            return Ok(None);
        }
        let id = match header >> 4 {
            0 => i16::try_from(self.signed()?).ok(),
            delta => last.checked_add(i16::from(delta)),
        };
        Ok(Some((id.ok_or("a field has no number")?, ty)))
    }

    /// The number of elements of a list and their type.
    pub(super) fn list(&mut self) -> Result<(u64, u8), String> {
        let header = self.byte()?;
        let n = match header >> 4 {
            15 => self.varint()?,
            n => u64::from(n),
        };
        // Every element takes a byte at least.
        if n > self.0.len() as u64 {
            return Err(format!("a list in a field claims {n} elements in {} bytes", self.0.len()));
        }
        Ok((n, header & 0x0f))
    }

    /// Skips a value of a type.
    pub(super) fn skip(&mut self, ty: u8, levels: usize) -> Result<(), String> {
        let levels = levels.checked_sub(1).ok_or("a field is nested too deep")?;
        match ty {
            TRUE | FALSE => Ok(()),
            BYTE => self.take(1).map(drop),
            I16 | I32 | I64 => self.varint().map(drop),
            DOUBLE => self.take(8).map(drop),
            UUID => self.take(16).map(drop),
            BINARY => {
                let n = self.varint()?;
                self.take(n).map(drop)
            }
            STRUCT => {
                while let Some((_, ty)) = self.field(0)? {
                    self.skip(ty, levels)?;
                }
                Ok(())
            }
            LIST | SET => {
                let (n, of) = self.list()?;
                // The crate takes no bytes for such a bool, Thrift's specification takes one.
                if n > 0 && matches!(of, TRUE | FALSE) {
                    return Err("a field is a list of bools".into());
                }
                (0..n).try_for_each(|_| self.skip(of, levels))
            }
            _ => Err(format!("a field has the type {ty}")),
        }
    }
}
