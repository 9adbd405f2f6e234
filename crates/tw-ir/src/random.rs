//! Counter-based random numbers.
//!
//! Each element is a pure function of a seed and its global position, so results do not depend on tiling, threads or ranks, and a random
//! source can be fused into its consumer. The generator is Philox 4x32-10; the streams are frozen per version.

use crate::scalar::elementary::Elementary;

const MULTIPLIERS: (u32, u32) = (0xD251_1F53, 0xCD9E_8D57);
const WEYL: (u32, u32) = (0x9E37_79B9, 0xBB67_AE85);

/// Ten rounds of Philox 4x32.
pub fn philox(counter: [u32; 4], key: [u32; 2]) -> [u32; 4] {
    rounds(counter.map(|word| [word as u64]), key).map(|[word]| word as u32)
}

/// Ten rounds on `N` counters at once. Words are 32 bits wide, in 64 bits each: what vector instructions multiply.
#[inline(always)]
fn rounds<const N: usize>(mut counter: [[u64; N]; 4], key: [u32; 2]) -> [[u64; N]; 4] {
    const LOW: u64 = u32::MAX as u64;
    let mut key = key.map(u64::from);
    for _ in 0..10 {
        let [c0, c1, c2, c3] = &mut counter;
        for lane in 0..N {
            let a = c0[lane] * MULTIPLIERS.0 as u64;
            let b = c2[lane] * MULTIPLIERS.1 as u64;
            c0[lane] = (b >> 32) ^ c1[lane] ^ key[0];
            c1[lane] = b & LOW;
            c2[lane] = (a >> 32) ^ c3[lane] ^ key[1];
            c3[lane] = a & LOW;
        }
        key = [(key[0] + WEYL.0 as u64) & LOW, (key[1] + WEYL.1 as u64) & LOW];
    }
    counter
}

/// 128 random bits per counter, in two halves.
#[inline(always)]
fn words_of<const N: usize>(seed: u64, counters: [i64; N]) -> [[u64; N]; 2] {
    let low = counters.map(|counter| counter as u64 & u32::MAX as u64);
    let high = counters.map(|counter| counter as u64 >> 32);
    let [r0, r1, r2, r3] = rounds([low, high, [0; N], [0; N]], [seed as u32, (seed >> 32) as u32]);
    let join = |low: [u64; N], high: [u64; N]| std::array::from_fn(|lane| low[lane] | high[lane] << 32);
    [join(r0, r1), join(r2, r3)]
}

#[inline]
fn words(seed: u64, counter: i64) -> (u64, u64) {
    let [[a], [b]] = words_of(seed, [counter]);
    (a, b)
}

/// [`uniform`] for several counters at once, faster.
#[inline(always)]
pub fn uniforms<const N: usize>(seed: u64, counters: [i64; N]) -> [f64; N] {
    words_of(seed, counters)[0].map(unit)
}

/// [`normal`] for several counters at once, faster.
#[inline(always)]
pub fn normals<const N: usize>(seed: u64, counters: [i64; N]) -> [f64; N] {
    let [a, b] = words_of(seed, counters);
    let mut normals = [0.0; N];
    for (normal, (&a, &b)) in normals.iter_mut().zip(a.iter().zip(&b)) {
        *normal = box_muller(a, b);
    }
    normals
}

/// 53 bits as a number in `[0, 1)`.
#[inline(always)]
fn unit(bits: u64) -> f64 {
    (bits >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
}

#[inline(always)]
fn box_muller(a: u64, b: u64) -> f64 {
    // The first uniform lies in (0, 1], so that its logarithm is finite.
    let u = ((a >> 11) + 1) as f64 * (1.0 / (1u64 << 53) as f64);
    (-2.0 * Elementary::log(u)).sqrt() * Elementary::cos_near(std::f64::consts::TAU * unit(b))
}

/// 64 random bits.
#[inline]
pub fn bits(seed: u64, counter: i64) -> i64 {
    words(seed, counter).0 as i64
}

/// Uniform on `[0, 1)` with 53 random bits.
#[inline]
pub fn uniform(seed: u64, counter: i64) -> f64 {
    unit(words(seed, counter).0)
}

/// Standard normal, by the Box-Muller transform of the two halves of one counter.
#[inline]
pub fn normal(seed: u64, counter: i64) -> f64 {
    let (a, b) = words(seed, counter);
    box_muller(a, b)
}

/// Uniform integer in `low..high`, by multiplying into the range (bias below 2^-64 times the width).
#[inline]
pub fn integer(seed: u64, counter: i64, low: i64, high: i64) -> i64 {
    let width = high.wrapping_sub(low) as u64;
    low.wrapping_add(((words(seed, counter).0 as u128 * width as u128) >> 64) as i64)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Known-answer vectors of the Random123 distribution.
    #[test]
    fn philox_known_answers() {
        assert_eq!(philox([0; 4], [0; 2]), [0x6627_e8d5, 0xe169_c58d, 0xbc57_ac4c, 0x9b00_dbd8]);
        assert_eq!(philox([u32::MAX; 4], [u32::MAX; 2]), [0x408f_276d, 0x41c8_3b0e, 0xa20b_c7c6, 0x6d54_51fd]);
    }

    #[test]
    fn several_at_once_are_the_same() {
        let counters = [0, 1, -1, i64::MAX, 1 << 40, 12345, -7, i64::MIN];
        assert_eq!(uniforms(99, counters), counters.map(|c| uniform(99, c)));
        assert_eq!(normals(1 << 50, counters), counters.map(|c| normal(1 << 50, c)));
    }

    #[test]
    fn moments_are_right() {
        let n = 200_000;
        let mean = (0..n).map(|k| normal(7, k)).sum::<f64>() / n as f64;
        let variance = (0..n).map(|k| normal(7, k).powi(2)).sum::<f64>() / n as f64;
        assert!(mean.abs() < 0.01 && (variance - 1.0).abs() < 0.02, "{mean} {variance}");
        assert!((0..n).all(|k| (3..9).contains(&integer(1, k, 3, 9))));
    }
}
