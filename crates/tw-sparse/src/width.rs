//! Widths of stored positions and coordinates.

use tw_ir::{Buffer, DType, Error, Result};

/// The integers that positions and coordinates are stored as.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum IndexWidth {
    /// 32 bits without sign: half the memory traffic of a product with a vector.
    #[default]
    U32,
    /// 64 bits without sign.
    U64,
}

impl IndexWidth {
    /// The largest integer that fits. Positions are i64 while they are computed with, so 64-bit indices have 63 bits of use.
    pub fn max(self) -> u64 {
        match self {
            IndexWidth::U32 => u32::MAX as u64,
            IndexWidth::U64 => i64::MAX as u64,
        }
    }

    /// The element type of an index array.
    pub fn dtype(self) -> DType {
        match self {
            IndexWidth::U32 => DType::U32,
            IndexWidth::U64 => DType::U64,
        }
    }

    /// Stores integers at this width; an integer that does not fit is an error.
    pub fn buffer(self, values: Vec<u64>) -> Result<Buffer> {
        if let Some(large) = values.iter().find(|&&value| value > self.max()) {
            return Err(Error::data(format!("index {large} does not fit into {}", self.dtype()))
                .help("store the tensor with 64-bit indices"));
        }
        Ok(match self {
            IndexWidth::U32 => Buffer::U32(values.into_iter().map(|value| value as u32).collect()),
            IndexWidth::U64 => Buffer::U64(values),
        })
    }
}

/// One integer of an index array, or of a bitmap (0 or 1).
pub fn index_at(buffer: &Buffer, position: usize) -> u64 {
    match buffer {
        Buffer::U32(values) => values[position] as u64,
        Buffer::U64(values) => values[position],
        Buffer::Bool(values) => values[position] as u64,
        other => unreachable!("an index array of {}", other.dtype()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wide_indices_do_not_fit_into_32_bits() {
        let wide = vec![1, 1 << 32];
        assert!(IndexWidth::U32.buffer(wide.clone()).is_err());
        assert_eq!(index_at(&IndexWidth::U64.buffer(wide).unwrap(), 1), 1 << 32);
        assert!(IndexWidth::U64.buffer(vec![u64::MAX]).is_err());
    }
}
