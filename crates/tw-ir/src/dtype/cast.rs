//! Conversion between physical types: one rule per pair, for single elements and for whole blocks.
//!
//! To bool is `!= 0`. Integers wrap into integers. Floats truncate and saturate into integers, and NaN becomes 0. A complex number loses its
//! imaginary part on the way to anything but bool and complex. Rounding to a float is to nearest, ties to even, in one step: integers go to
//! halves through f64, and f64 goes to halves without a detour through a rounded f32.

use super::{C64, C128, Complex, bf16, f16};

/// Conversion from another physical type.
pub trait CastFrom<S> {
    /// The element as this type.
    fn cast_from(value: S) -> Self;
}

macro_rules! rules {
    ($($from:ty => $to:ty: |$x:ident| $f:expr;)*) => {
        $(impl CastFrom<$from> for $to {
            #[inline(always)]
            fn cast_from($x: $from) -> $to {
                $f
            }
        })*
    };
}

/// From one primitive number to all of them.
macro_rules! primitives {
    ($($from:ident)*) => {
        $(rules! {
            $from => i8: |x| x as i8;
            $from => i16: |x| x as i16;
            $from => i32: |x| x as i32;
            $from => i64: |x| x as i64;
            $from => u8: |x| x as u8;
            $from => u16: |x| x as u16;
            $from => u32: |x| x as u32;
            $from => u64: |x| x as u64;
            $from => f32: |x| x as f32;
            $from => f64: |x| x as f64;
            $from => bool: |x| x != 0 as $from;
            bool => $from: |x| x as u8 as $from;
            f16 => $from: |x| widen_f16(x) as $from;
            bf16 => $from: |x| widen_bf16(x) as $from;
            $from => C64: |x| Complex::new(x as f32, 0.0);
            $from => C128: |x| Complex::new(x as f64, 0.0);
            C64 => $from: |x| x.re as $from;
            C128 => $from: |x| x.re as $from;
        })*
    };
}
primitives! { i8 i16 i32 i64 u8 u16 u32 u64 f32 f64 }

/// To halves, which every type reaches through one of the floats.
macro_rules! halves {
    ($($half:ident $narrow:ident $widen:ident;)*) => {
        $(rules! {
            bool => $half: |x| $narrow(x as u8 as f32);
            i8 => $half: |x| $narrow(x as f32);
            i16 => $half: |x| $narrow(x as f32);
            i32 => $half: |x| $narrow(round_to_odd(x as f64));
            i64 => $half: |x| $narrow(round_to_odd(odd_f64(x.unsigned_abs()).copysign(x as f64)));
            u8 => $half: |x| $narrow(x as f32);
            u16 => $half: |x| $narrow(x as f32);
            u32 => $half: |x| $narrow(round_to_odd(x as f64));
            u64 => $half: |x| $narrow(round_to_odd(odd_f64(x)));
            f16 => $half: |x| $narrow(widen_f16(x));
            bf16 => $half: |x| $narrow(widen_bf16(x));
            f32 => $half: |x| $narrow(x);
            f64 => $half: |x| $narrow(round_to_odd(x));
            C64 => $half: |x| $narrow(x.re);
            C128 => $half: |x| $narrow(round_to_odd(x.re));
            $half => bool: |x| $widen(x) != 0.0;
            $half => C64: |x| Complex::new($widen(x), 0.0);
            $half => C128: |x| Complex::new($widen(x) as f64, 0.0);
        })*
    };
}
halves! {
    f16 narrow_f16 widen_f16;
    bf16 narrow_bf16 widen_bf16;
}

rules! {
    bool => bool: |x| x;
    bool => C64: |x| Complex::new(x as u8 as f32, 0.0);
    bool => C128: |x| Complex::new(x as u8 as f64, 0.0);
    C64 => bool: |x| x.re != 0.0 || x.im != 0.0;
    C128 => bool: |x| x.re != 0.0 || x.im != 0.0;
    C64 => C64: |x| x;
    C64 => C128: |x| Complex::new(x.re as f64, x.im as f64);
    C128 => C64: |x| Complex::new(x.re as f32, x.im as f32);
    C128 => C128: |x| x;
}

/// A whole number as a double; if that is not exact, cut off with an odd last bit, so that another rounding goes where a single one would.
#[inline(always)]
fn odd_f64(x: u64) -> f64 {
    const EXTRA: u32 = u64::BITS - f64::MANTISSA_DIGITS;
    let cut = x >> EXTRA | (x & ((1 << EXTRA) - 1) != 0) as u64;
    if x >> f64::MANTISSA_DIGITS == 0 { x as f64 } else { cut as f64 * (1u64 << EXTRA) as f64 }
}

/// Exponent bits of a single.
const SINGLE_EXPONENT: u32 = 0xff << 23;
/// What the exponent of a half lacks to that of a single, at its place in a single.
const REBIAS: u32 = (127 - 15) << 23;
/// Bits of a single's fraction that a half does not have.
const DROPPED: u32 = 23 - 10;

/// A half as a single: exact. Without branches, so that loops over it become vector instructions on every machine.
#[inline(always)]
pub fn widen_f16(x: f16) -> f32 {
    let bits = x.to_bits() as u32;
    let magnitude = (bits & 0x7fff) << DROPPED;
    let exponent = magnitude & (0x1f << 23);
    // A subnormal half counts steps of 2^-24, and those of a single of that size count the same: subtracting the implied one normalises it.
    let normal = magnitude + REBIAS;
    let tiny = (f32::from_bits(normal + (1 << 23)) - f32::from_bits(REBIAS + (1 << 23))).to_bits();
    let quiet = ((magnitude & 0x7f_ffff != 0) as u32) << 22;
    let special = magnitude | SINGLE_EXPONENT | quiet;
    let widened = if exponent == 0 {
        tiny
    } else if exponent == 0x1f << 23 {
        special
    } else {
        normal
    };
    f32::from_bits(widened | (bits & 0x8000) << 16)
}

/// A single as the nearest half, ties to even. Without branches, as [`widen_f16`].
#[inline(always)]
pub fn narrow_f16(x: f32) -> f16 {
    let sign = x.to_bits() & 0x8000_0000;
    let magnitude = x.to_bits() ^ sign;
    // Rounds by adding just less than half a step, and one more if the half would be odd.
    let odd = (magnitude >> DROPPED) & 1;
    let normal = magnitude.wrapping_sub(REBIAS).wrapping_add((1 << (DROPPED - 1)) - 1 + odd) >> DROPPED;
    // Adding 0.5 leaves steps of 2^-24 in the last place, rounded by the addition itself.
    let tiny = (f32::from_bits(magnitude) + 0.5).to_bits().wrapping_sub(0.5f32.to_bits());
    let nan = 0x7e00 | (magnitude >> DROPPED) & 0x3ff;
    let rounded = if magnitude > SINGLE_EXPONENT {
        nan
    } else if magnitude >= (127 + 16) << 23 {
        0x7c00
    } else if magnitude < (127 - 14) << 23 {
        tiny
    } else {
        normal
    };
    f16::from_bits((rounded | sign >> 16) as u16)
}

/// The upper half of a single, as a single: exact.
#[inline(always)]
pub fn widen_bf16(x: bf16) -> f32 {
    f32::from_bits((x.to_bits() as u32) << 16)
}

/// A single as the nearest bf16, ties to even.
#[inline(always)]
pub fn narrow_bf16(x: f32) -> bf16 {
    let bits = x.to_bits();
    let rounded = bits.wrapping_add(0x7fff + (bits >> 16 & 1)) >> 16;
    // The bit that makes a NaN quiet keeps it from becoming an infinity.
    let nan = bits >> 16 | 0x40;
    bf16::from_bits(if x.is_nan() { nan } else { rounded } as u16)
}

/// A double as a single whose last bit is set if anything was lost, so that rounding it again to fewer bits gives what rounding once would.
#[inline(always)]
fn round_to_odd(x: f64) -> f32 {
    let nearest = x as f32;
    let back = nearest as f64;
    let bits = nearest.to_bits();
    let exact = back == x || x.is_nan() || bits & 1 == 1;
    let towards = if back.abs() < x.abs() { bits.wrapping_add(1) } else { bits.wrapping_sub(1) };
    f32::from_bits(if exact { bits } else { towards })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_integers_are_rounded_once() {
        // Just above, at and just below the middle between two bf16 values; a double has no room for the difference.
        let (low, step) = (1i64 << 60, 1i64 << 53);
        let middle = low + step / 2;
        for (x, expected) in [(middle + 1, low + step), (middle, low), (middle - 1, low)] {
            assert_eq!(widen_bf16(bf16::cast_from(x)) as f64, expected as f64, "{x}");
            assert_eq!(widen_bf16(bf16::cast_from(-x)) as f64, -expected as f64, "{x}");
            assert_eq!(widen_bf16(bf16::cast_from(x as u64)) as f64, expected as f64, "{x}");
        }
        assert_eq!(widen_bf16(bf16::cast_from(u64::MAX)), 2f32.powi(64));
        assert_eq!(widen_f16(f16::cast_from(-2049i64)), -2048.0);
    }

    #[test]
    fn halves_widen_exactly_and_come_back() {
        for bits in 0..=u16::MAX {
            let (half, brain) = (f16::from_bits(bits), bf16::from_bits(bits));
            assert_eq!(widen_f16(half).to_bits(), half.to_f32_const().to_bits(), "{bits:x}");
            assert_eq!(widen_bf16(brain).is_nan(), brain.is_nan());
            if !half.is_nan() {
                assert_eq!(narrow_f16(widen_f16(half)), half, "{bits:x}");
                assert_eq!(f16::cast_from(widen_f16(half) as f64), half);
            }
            if !brain.is_nan() {
                assert_eq!(narrow_bf16(widen_bf16(brain)), brain, "{bits:x}");
            }
            assert_eq!(narrow_f16(widen_f16(half)).is_nan(), half.is_nan());
            assert_eq!(narrow_bf16(widen_bf16(brain)).is_nan(), brain.is_nan());
        }
    }

    #[test]
    fn rounding_is_to_nearest_even() {
        // Between neighbouring halves: below, at and above the middle, and a hair's breadth from it in double precision.
        for bits in (0..0x7c00u16).chain([0x7bff]) {
            let (low, high) = (f16::from_bits(bits), f16::from_bits(bits + 1));
            let high_value = if high.is_finite() { widen_f16(high) as f64 } else { 65536.0 };
            let middle = (widen_f16(low) as f64 + high_value) / 2.0;
            let even = if bits & 1 == 0 { low } else { high };
            assert_eq!(f16::cast_from(middle), even, "{bits:x}");
            assert_eq!(narrow_f16(middle as f32), even, "{bits:x}");
            assert_eq!(f16::cast_from(middle.next_up()), high);
            assert_eq!(f16::cast_from(middle.next_down()), low);
            assert_eq!(f16::cast_from(-middle.next_down()), f16::from_bits(bits | 0x8000));
        }
        for bits in 0..0x7f80u16 {
            let (low, high) = (bf16::from_bits(bits), bf16::from_bits(bits + 1));
            let high_value = if high.is_finite() { widen_bf16(high) as f64 } else { 2f64.powi(128) };
            let middle = (widen_bf16(low) as f64 + high_value) / 2.0;
            assert_eq!(bf16::cast_from(middle), if bits & 1 == 0 { low } else { high }, "{bits:x}");
            assert_eq!(bf16::cast_from(middle.next_up()), high);
            assert_eq!(bf16::cast_from(middle.next_down()), low);
        }
        assert_eq!(f16::cast_from(1e300), f16::INFINITY);
        assert_eq!(bf16::cast_from(f64::NEG_INFINITY), bf16::NEG_INFINITY);
    }

    #[test]
    fn numbers_wrap_saturate_or_lose_a_part() {
        assert_eq!(i8::cast_from(300i64), 44);
        assert_eq!(u8::cast_from(-1i32), 255);
        assert_eq!(u8::cast_from(-1.5f64), 0);
        assert_eq!(i8::cast_from(1e9f32), 127);
        assert_eq!(i64::cast_from(f64::NAN), 0);
        assert_eq!(i32::cast_from(C128::new(2.7, 9.0)), 2);
        assert!(bool::cast_from(C64::new(0.0, 1.0)));
        assert_eq!(C64::cast_from(3u8), C64::new(3.0, 0.0));
    }
}
