//! Reduction of huge angles: as many digits of 2 / pi as the size of the angle asks for, in integer arithmetic.

use super::circular::Reduced;
use super::pair::Pair;

/// pi / 2 as the sum of three doubles.
pub(super) const FRAC_PI_2: [f64; 3] = [std::f64::consts::FRAC_PI_2, 6.123233995736766e-17, -1.4973849048591698e-33];

/// The bits of 2 / pi, after a word of zeros for the angles below 2^53.
const FRAC_2_PI: [u64; 21] = [
    0,
    0xa2f9836e4e441529,
    0xfc2757d1f534ddc0,
    0xdb6295993c439041,
    0xfe5163abdebbc561,
    0xb7246e3a424dd2e0,
    0x06492eea09d1921c,
    0xfe1deb1cb129a73e,
    0xe88235f52ebb4484,
    0xe99c7026b45f7e41,
    0x3991d639835339f4,
    0x9c845f8bbdf9283b,
    0x1ff897ffde05980f,
    0xef2f118b5a0a6d1f,
    0x6d367ecf27cb09b7,
    0x4f463f669e5fea2d,
    0x7527bac7ebe5f17b,
    0x3d0739f78a5292ea,
    0x6bfb5fb11f8d5d08,
    0x56033046fc7b6bab,
    0xf0cfbc209af4361d,
];

/// Reduces an angle of at least 1; `None` for infinities and NaN.
///
/// The angle is `m * 2^e` with an integer `m`. Digits of 2 / pi whose product with it is a multiple of 2^64 turns do not matter, and 192
/// bits after those are enough: no double is closer than 2^-62 to a multiple of pi / 2, relative to one quarter turn.
pub(super) fn reduce_far(x: f64) -> Option<Reduced> {
    if !x.is_finite() {
        return None;
    }
    let exponent = (x.to_bits() >> 52) & 0x7ff;
    let m = (x.to_bits() & ((1 << 52) - 1)) | (1 << 52);
    // The value is m * 2^(exponent - 1075); counted from the word of zeros, the exponent is 64 more.
    let skipped = (exponent + 64).checked_sub(1075)?;
    let (word, shift) = ((skipped / 64) as usize, skipped % 64);
    let at = |k: usize| -> u64 {
        let bits = |k: usize| k.checked_sub(1).and_then(|k| FRAC_2_PI.get(k)).copied().unwrap_or(0);
        if shift == 0 { bits(k) } else { bits(k) << shift | bits(k + 1) >> (64 - shift) }
    };
    // Quarter turns: an integer and a fraction of 128 bits, of the product with four words.
    let wide = |k: usize| u128::from(m) * u128::from(at(word + k));
    let third = wide(3) >> 64;
    let second = wide(2) + third;
    let first = wide(1) + (second >> 64);
    let whole = m.wrapping_mul(at(word)).wrapping_add((first >> 64) as u64);
    let fraction = (first << 64) | (second & u128::from(u64::MAX));
    // As a signed number the fraction is the distance from the nearest integer.
    let distance = fraction as i128;
    let quarter = whole.wrapping_add((fraction >> 127) as u64);
    let hi = distance as f64;
    let lo = distance.wrapping_sub(hi as i128) as f64;
    // 2^-128.
    const UNIT: f64 = f64::from_bits((1023 - 128) << 52);
    let (hi, lo) = (hi * UNIT, lo * UNIT);
    let angle = Pair::product(hi, FRAC_PI_2[0]).plus_small(hi.mul_add(FRAC_PI_2[1], lo * FRAC_PI_2[0]));
    let r = Pair::sum_ordered(angle.hi, angle.lo);
    Some(if x < 0.0 {
        Reduced { r: Pair { hi: -r.hi, lo: -r.lo }, quarter: quarter.wrapping_neg() }
    } else {
        Reduced { r, quarter }
    })
}
