//! Integers that are ordered as elements are.

use crate::strip::Element;

/// An unsigned integer to sort by.
pub(super) trait Key: Copy + Default + Ord + std::ops::Not<Output = Self> {
    /// The same number with more bits.
    fn widen(self) -> u64;
}

impl Key for u32 {
    #[inline]
    fn widen(self) -> u64 {
        self as u64
    }
}

impl Key for u64 {
    #[inline]
    fn widen(self) -> u64 {
        self
    }
}

/// Element types that can be sorted.
pub(super) trait Sortable: Element {
    /// Wide enough for every element.
    type Key: Key;
    /// Keys that several values share: both zeros, and every NaN.
    const SHARED: &'static [Self::Key];
    /// Larger for larger values, the same for values that are equal in the order.
    fn key(self) -> Self::Key;
    /// A value with this key.
    fn from_key(key: Self::Key) -> Self;
}

impl Sortable for bool {
    type Key = u32;
    const SHARED: &'static [u32] = &[];
    #[inline]
    fn key(self) -> u32 {
        self as u32
    }
    #[inline]
    fn from_key(key: u32) -> bool {
        key != 0
    }
}

/// Runs code with a name for an element type that can be sorted. Halves and times are sorted as something else, complex numbers not at all.
macro_rules! with_sortable {
    ($dtype:expr, $name:ident => $body:expr) => {
        $crate::sort::key::with_sortable!(@ $dtype, $name, $body, Bool bool, I8 i8, I16 i16, I32 i32, I64 i64, U8 u8,
            U16 u16, U32 u32, U64 u64, F32 f32, F64 f64)
    };
    (@ $dtype:expr, $name:ident, $body:expr, $($variant:ident $type:ty),*) => {
        match $dtype {
            $(tw_ir::DType::$variant => {
                type $name = $type;
                $body
            })*
            other => Err(tw_ir::Error::internal(format!("a sort of {other}"))),
        }
    };
}
pub(super) use with_sortable;

macro_rules! integers {
    ($($type:ident as $unsigned:ident, key $key:ident, lowest $lowest:expr;)*) => {
        $(impl Sortable for $type {
            type Key = $key;
            const SHARED: &'static [$key] = &[];
            #[inline]
            fn key(self) -> $key {
                (self as $unsigned ^ $lowest) as $key
            }
            #[inline]
            fn from_key(key: $key) -> $type {
                (key as $unsigned ^ $lowest) as $type
            }
        })*
    };
}
integers! {
    i8 as u8, key u32, lowest 1 << 7;
    i16 as u16, key u32, lowest 1 << 15;
    i32 as u32, key u32, lowest 1 << 31;
    i64 as u64, key u64, lowest 1 << 63;
    u8 as u8, key u32, lowest 0;
    u16 as u16, key u32, lowest 0;
    u32 as u32, key u32, lowest 0;
    u64 as u64, key u64, lowest 0;
}

macro_rules! floats {
    ($($type:ident as $bits:ident;)*) => {
        $(impl Sortable for $type {
            type Key = $bits;
            const SHARED: &'static [$bits] = &[1 << ($bits::BITS - 1), $bits::MAX];
            #[inline]
            fn key(self) -> $bits {
                // Adding zero turns -0.0 into 0.0.
                let bits = (self + 0.0).to_bits();
                let sign = bits >> ($bits::BITS - 1);
                let key = bits ^ (sign.wrapping_neg() | 1 << ($bits::BITS - 1));
                if self.is_nan() { $bits::MAX } else { key }
            }
            #[inline]
            fn from_key(key: $bits) -> $type {
                let negative = (key >> ($bits::BITS - 1)) ^ 1;
                $type::from_bits(key ^ (negative.wrapping_neg() | 1 << ($bits::BITS - 1)))
            }
        })*
    };
}
floats! {
    f32 as u32;
    f64 as u64;
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check<T: Sortable + PartialEq>(ascending: &[T]) {
        assert!(ascending.windows(2).all(|pair| pair[0].key() < pair[1].key()), "{ascending:?}");
        for &value in ascending {
            assert!(T::from_key(value.key()) == value, "{value:?}");
        }
    }

    #[test]
    fn keys_follow_the_order_and_lead_back() {
        check(&[f64::NEG_INFINITY, -1e300, -1.5, -f64::MIN_POSITIVE, -5e-324, 0.0, 1e-300, 2.0, f64::INFINITY]);
        check(&[f32::NEG_INFINITY, -1e30, -1.5, -f32::MIN_POSITIVE, 0.0, 1e-30, 2.0, f32::INFINITY]);
        check(&[i64::MIN, -1, 0, 1, i64::MAX]);
        check(&[i8::MIN, -1, 0, 1, i8::MAX]);
        check(&[0, 1, u64::MAX]);
        check(&[false, true]);
    }

    #[test]
    fn values_that_are_equal_in_the_order_share_keys() {
        assert_eq!((-0.0f64).key(), 0.0f64.key());
        assert_eq!((-f64::NAN).key(), f64::NAN.key());
        assert!(f64::INFINITY.key() < f64::NAN.key());
        assert_eq!(f64::SHARED, [0.0f64.key(), f64::NAN.key()]);
        assert_eq!(f32::SHARED, [0.0f32.key(), (-f32::NAN).key()]);
        assert!(f64::from_key(f64::NAN.key()).is_nan());
    }
}
