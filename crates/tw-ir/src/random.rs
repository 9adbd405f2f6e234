//! Counter-based random numbers.
//!
//! Each element is a pure function of a seed and its global position, so results do not depend on tiling, threads or ranks, and a random
//! source can be fused into its consumer. The generator is Philox 4x32-10; the streams are frozen per version.

const MULTIPLIERS: (u32, u32) = (0xD251_1F53, 0xCD9E_8D57);
const WEYL: (u32, u32) = (0x9E37_79B9, 0xBB67_AE85);

/// Ten rounds of Philox 4x32.
pub fn philox(mut counter: [u32; 4], mut key: [u32; 2]) -> [u32; 4] {
    for _ in 0..10 {
        let a = counter[0] as u64 * MULTIPLIERS.0 as u64;
        let b = counter[2] as u64 * MULTIPLIERS.1 as u64;
        counter = [(b >> 32) as u32 ^ counter[1] ^ key[0], b as u32, (a >> 32) as u32 ^ counter[3] ^ key[1], a as u32];
        key = [key[0].wrapping_add(WEYL.0), key[1].wrapping_add(WEYL.1)];
    }
    counter
}

fn words(seed: u64, counter: i64) -> (u64, u64) {
    let c = counter as u64;
    let r = philox([c as u32, (c >> 32) as u32, 0, 0], [seed as u32, (seed >> 32) as u32]);
    (r[0] as u64 | (r[1] as u64) << 32, r[2] as u64 | (r[3] as u64) << 32)
}

/// 64 random bits.
pub fn bits(seed: u64, counter: i64) -> i64 {
    words(seed, counter).0 as i64
}

/// Uniform on `[0, 1)` with 53 random bits.
pub fn uniform(seed: u64, counter: i64) -> f64 {
    (words(seed, counter).0 >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
}

/// Standard normal, by the Box-Muller transform of the two halves of one counter.
pub fn normal(seed: u64, counter: i64) -> f64 {
    let (a, b) = words(seed, counter);
    // The first uniform lies in (0, 1], so that its logarithm is finite.
    let u = ((a >> 11) + 1) as f64 * (1.0 / (1u64 << 53) as f64);
    let v = (b >> 11) as f64 * (1.0 / (1u64 << 53) as f64);
    (-2.0 * u.ln()).sqrt() * (std::f64::consts::TAU * v).cos()
}

/// Uniform integer in `low..high`, by multiplying into the range (bias below 2^-64 times the width).
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
    fn moments_are_right() {
        let n = 200_000;
        let mean = (0..n).map(|k| normal(7, k)).sum::<f64>() / n as f64;
        let variance = (0..n).map(|k| normal(7, k).powi(2)).sum::<f64>() / n as f64;
        assert!(mean.abs() < 0.01 && (variance - 1.0).abs() < 0.02, "{mean} {variance}");
        assert!((0..n).all(|k| (3..9).contains(&integer(1, k, 3, 9))));
    }
}
