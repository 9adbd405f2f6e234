//! In which type two types meet.

use super::DType;

impl DType {
    /// The type two operands meet in, by NumPy 2's rules for arrays; `None` if they have none, such as dates and numbers.
    ///
    /// bf16, which NumPy does not have, behaves like f16; the two meet in f32.
    ///
    /// ```
    /// use tw_ir::DType;
    /// assert_eq!(DType::I64.promote(DType::F32), Some(DType::F64));
    /// assert_eq!(DType::U8.promote(DType::I8), Some(DType::I16));
    /// assert_eq!(DType::U64.promote(DType::I64), Some(DType::F64));
    /// ```
    pub fn promote(self, other: DType) -> Option<DType> {
        if self == other {
            return Some(self);
        }
        if self.is_time() || other.is_time() {
            return promote_times(self, other).or_else(|| promote_times(other, self));
        }
        Some(if self.is_complex() || other.is_complex() {
            match self.real_width().max(other.real_width()) {
                8 => DType::C128,
                _ => DType::C64,
            }
        } else if self.is_float() || other.is_float() {
            promote_floats(self, other)
        } else {
            promote_integers(self, other)
        })
    }

    /// Bytes a float needs to hold these values, as far as NumPy cares: integers of one byte fit a half, those of four do not fit a single.
    fn real_width(self) -> u64 {
        match self {
            DType::Bool => 0,
            DType::I8 | DType::U8 => 2,
            DType::I16 | DType::U16 => 4,
            _ if self.is_integer() => 8,
            _ if self.is_complex() => self.size() / 2,
            _ => self.size(),
        }
    }
}

/// At least one is a float, none is complex.
fn promote_floats(a: DType, b: DType) -> DType {
    match a.real_width().max(b.real_width()) {
        8 => DType::F64,
        4 => DType::F32,
        // Halves, and what fits them. Two different halves share no half.
        _ if a.is_half() && b.is_half() => DType::F32,
        _ if a.is_half() => a,
        _ => b,
    }
}

fn promote_integers(a: DType, b: DType) -> DType {
    match (a.is_unsigned(), b.is_unsigned()) {
        _ if a == DType::Bool => b,
        _ if b == DType::Bool => a,
        (x, y) if x == y => {
            if a.size() >= b.size() {
                a
            } else {
                b
            }
        }
        (true, false) => promote_signs(a, b),
        _ => promote_signs(b, a),
    }
}

/// A signed type that holds all values of an unsigned one; beyond i64 there is only f64.
fn promote_signs(unsigned: DType, signed: DType) -> DType {
    match (2 * unsigned.size()).max(signed.size()) {
        2 => DType::I16,
        4 => DType::I32,
        8 => DType::I64,
        _ => DType::F64,
    }
}

fn promote_times(a: DType, b: DType) -> Option<DType> {
    match (a, b) {
        (DType::DateTime(x), DType::DateTime(y) | DType::TimeDelta(y)) => Some(DType::DateTime(x.max(y))),
        // Years and months have no fixed length in other units.
        (DType::TimeDelta(x), DType::TimeDelta(y)) if x.is_calendar() == y.is_calendar() => {
            Some(DType::TimeDelta(x.max(y)))
        }
        (DType::TimeDelta(unit), other) if other == DType::Bool || other.is_integer() && other != DType::U64 => {
            Some(DType::TimeDelta(unit))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `numpy.promote_types` of NumPy 2.4 for all pairs of these types, row by row; `-` where it raises.
    const TYPES: &str = "b1 i1 i2 i4 i8 u1 u2 u4 u8 f2 f4 f8 c8 c16 M8[Y] M8[M] M8[W] M8[D] M8[s] M8[ns] m8[Y] m8[M] m8[W] m8[D] m8[s] m8[ns]";
    const TABLE: [&str; 26] = [
        "b1 i1 i2 i4 i8 u1 u2 u4 u8 f2 f4 f8 c8 c16 - - - - - - m8[Y] m8[M] m8[W] m8[D] m8[s] m8[ns]",
        "i1 i1 i2 i4 i8 i2 i4 i8 f8 f2 f4 f8 c8 c16 - - - - - - m8[Y] m8[M] m8[W] m8[D] m8[s] m8[ns]",
        "i2 i2 i2 i4 i8 i2 i4 i8 f8 f4 f4 f8 c8 c16 - - - - - - m8[Y] m8[M] m8[W] m8[D] m8[s] m8[ns]",
        "i4 i4 i4 i4 i8 i4 i4 i8 f8 f8 f8 f8 c16 c16 - - - - - - m8[Y] m8[M] m8[W] m8[D] m8[s] m8[ns]",
        "i8 i8 i8 i8 i8 i8 i8 i8 f8 f8 f8 f8 c16 c16 - - - - - - m8[Y] m8[M] m8[W] m8[D] m8[s] m8[ns]",
        "u1 i2 i2 i4 i8 u1 u2 u4 u8 f2 f4 f8 c8 c16 - - - - - - m8[Y] m8[M] m8[W] m8[D] m8[s] m8[ns]",
        "u2 i4 i4 i4 i8 u2 u2 u4 u8 f4 f4 f8 c8 c16 - - - - - - m8[Y] m8[M] m8[W] m8[D] m8[s] m8[ns]",
        "u4 i8 i8 i8 i8 u4 u4 u4 u8 f8 f8 f8 c16 c16 - - - - - - m8[Y] m8[M] m8[W] m8[D] m8[s] m8[ns]",
        "u8 f8 f8 f8 f8 u8 u8 u8 u8 f8 f8 f8 c16 c16 - - - - - - - - - - - -",
        "f2 f2 f4 f8 f8 f2 f4 f8 f8 f2 f4 f8 c8 c16 - - - - - - - - - - - -",
        "f4 f4 f4 f8 f8 f4 f4 f8 f8 f4 f4 f8 c8 c16 - - - - - - - - - - - -",
        "f8 f8 f8 f8 f8 f8 f8 f8 f8 f8 f8 f8 c16 c16 - - - - - - - - - - - -",
        "c8 c8 c8 c16 c16 c8 c8 c16 c16 c8 c8 c16 c8 c16 - - - - - - - - - - - -",
        "c16 c16 c16 c16 c16 c16 c16 c16 c16 c16 c16 c16 c16 c16 - - - - - - - - - - - -",
        "- - - - - - - - - - - - - - M8[Y] M8[M] M8[W] M8[D] M8[s] M8[ns] M8[Y] M8[M] M8[W] M8[D] M8[s] M8[ns]",
        "- - - - - - - - - - - - - - M8[M] M8[M] M8[W] M8[D] M8[s] M8[ns] M8[M] M8[M] M8[W] M8[D] M8[s] M8[ns]",
        "- - - - - - - - - - - - - - M8[W] M8[W] M8[W] M8[D] M8[s] M8[ns] M8[W] M8[W] M8[W] M8[D] M8[s] M8[ns]",
        "- - - - - - - - - - - - - - M8[D] M8[D] M8[D] M8[D] M8[s] M8[ns] M8[D] M8[D] M8[D] M8[D] M8[s] M8[ns]",
        "- - - - - - - - - - - - - - M8[s] M8[s] M8[s] M8[s] M8[s] M8[ns] M8[s] M8[s] M8[s] M8[s] M8[s] M8[ns]",
        "- - - - - - - - - - - - - - M8[ns] M8[ns] M8[ns] M8[ns] M8[ns] M8[ns] M8[ns] M8[ns] M8[ns] M8[ns] M8[ns] M8[ns]",
        "m8[Y] m8[Y] m8[Y] m8[Y] m8[Y] m8[Y] m8[Y] m8[Y] - - - - - - M8[Y] M8[M] M8[W] M8[D] M8[s] M8[ns] m8[Y] m8[M] - - - -",
        "m8[M] m8[M] m8[M] m8[M] m8[M] m8[M] m8[M] m8[M] - - - - - - M8[M] M8[M] M8[W] M8[D] M8[s] M8[ns] m8[M] m8[M] - - - -",
        "m8[W] m8[W] m8[W] m8[W] m8[W] m8[W] m8[W] m8[W] - - - - - - M8[W] M8[W] M8[W] M8[D] M8[s] M8[ns] - - m8[W] m8[D] m8[s] m8[ns]",
        "m8[D] m8[D] m8[D] m8[D] m8[D] m8[D] m8[D] m8[D] - - - - - - M8[D] M8[D] M8[D] M8[D] M8[s] M8[ns] - - m8[D] m8[D] m8[s] m8[ns]",
        "m8[s] m8[s] m8[s] m8[s] m8[s] m8[s] m8[s] m8[s] - - - - - - M8[s] M8[s] M8[s] M8[s] M8[s] M8[ns] - - m8[s] m8[s] m8[s] m8[ns]",
        "m8[ns] m8[ns] m8[ns] m8[ns] m8[ns] m8[ns] m8[ns] m8[ns] - - - - - - M8[ns] M8[ns] M8[ns] M8[ns] M8[ns] M8[ns] - - m8[ns] m8[ns] m8[ns] m8[ns]",
    ];

    /// NumPy's short names.
    fn short(name: &str) -> Option<DType> {
        Some(match name {
            "-" => return None,
            "b1" => DType::Bool,
            "i1" => DType::I8,
            "i2" => DType::I16,
            "i4" => DType::I32,
            "i8" => DType::I64,
            "u1" => DType::U8,
            "u2" => DType::U16,
            "u4" => DType::U32,
            "u8" => DType::U64,
            "f2" => DType::F16,
            "f4" => DType::F32,
            "f8" => DType::F64,
            "c8" => DType::C64,
            "c16" => DType::C128,
            time => time.parse().expect("a type of the table"),
        })
    }

    #[test]
    fn every_pair_meets_where_numpy_says() {
        let types: Vec<DType> = TYPES.split_whitespace().filter_map(short).collect();
        for (&a, row) in types.iter().zip(TABLE) {
            assert_eq!(row.split_whitespace().count(), types.len());
            for (&b, expected) in types.iter().zip(row.split_whitespace()) {
                assert_eq!(a.promote(b), short(expected), "{a} and {b}");
            }
        }
    }

    #[test]
    fn brain_floats_behave_like_halves() {
        let swapped = |dtype: Option<DType>| dtype.map(|dtype| if dtype == DType::F16 { DType::BF16 } else { dtype });
        for dtype in DType::PHYSICAL.into_iter().filter(|dtype| !dtype.is_half()) {
            assert_eq!(dtype.promote(DType::BF16), swapped(dtype.promote(DType::F16)), "{dtype}");
            assert_eq!(DType::BF16.promote(dtype), dtype.promote(DType::BF16));
        }
        assert_eq!(DType::F16.promote(DType::BF16), Some(DType::F32));
    }
}
