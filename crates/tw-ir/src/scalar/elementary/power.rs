//! Powers, cube roots and lengths of doubles.

use super::SHIFT;
use super::exponential::{exp_of_pair, power_of_two};
use super::logarithm::{LN_2, split};
use super::pair::{Pair, polynomial};

/// The logarithm of a positive finite number to 64 bits and more.
#[inline(always)]
fn log_pair(x: f64) -> Pair {
    let (n, f) = split(x);
    // log(1 + f) = 2 (s + s^3 / 3 + s^5 / 5 + ..) with s = f / (2 + f); the first two terms as pairs.
    let s = Pair { hi: f, lo: 0.0 }.over(Pair::sum_ordered(2.0, f));
    let z = Pair::product(s.hi, s.hi).plus_small(2.0 * s.hi * s.lo);
    let cube = Pair::product(s.hi, z.hi).plus_small(s.hi.mul_add(z.lo, s.lo * z.hi));
    const TWO_THIRDS: [f64; 2] = [2.0 / 3.0, 3.700743415417188e-17];
    let second =
        Pair::product(cube.hi, TWO_THIRDS[0]).plus_small(cube.hi.mul_add(TWO_THIRDS[1], cube.lo * TWO_THIRDS[0]));
    let series = polynomial(
        z.hi,
        [
            0.4,
            0.2857142857142837,
            0.22222222222291566,
            0.18181818169097547,
            0.15384616767338943,
            0.13333239666320218,
            0.1176869860054444,
            0.10422468030453018,
            0.11016534160076452,
        ],
    );
    let rest = (cube.hi * z.hi).mul_add(series, second.lo + 2.0 * s.lo);
    let first = Pair::sum_ordered(n * LN_2[0], 2.0 * s.hi);
    let sum = Pair::sum_ordered(first.hi, second.hi);
    let low = (sum.lo + first.lo) + n.mul_add(LN_2[1], rest);
    Pair::sum_ordered(sum.hi, low)
}

/// Power.
#[inline(always)]
pub(super) fn pow(x: f64, y: f64) -> f64 {
    let size = x.abs();
    let log = log_pair(size);
    let product = Pair::product(log.hi, y).plus_small(log.lo * y);
    // Out here the result is infinite or zero, and the low part may be NaN.
    let extreme = product.hi.abs() > 800.0;
    let result = exp_of_pair(Pair { hi: product.hi, lo: if extreme { 0.0 } else { product.lo } });
    pow_special(x, y, result)
}

/// `x` to the power `y`, given what it is for the size of `x` if that is positive and finite.
#[inline(always)]
pub(super) fn pow_special(x: f64, y: f64, ordinary: f64) -> f64 {
    let size = x.abs();
    let (zero_power, infinite_power) = if y < 0.0 { (f64::INFINITY, 0.0) } else { (0.0, f64::INFINITY) };
    let result = if size == 0.0 { zero_power } else { ordinary };
    let result = if size == f64::INFINITY { infinite_power } else { result };
    let result = if size == 1.0 { 1.0 } else { result };
    let whole = y.trunc() == y;
    let half = 0.5 * y;
    let odd = whole & (half.trunc() != half);
    let result = if odd & x.is_sign_negative() { -result } else { result };
    let unknown = (x < 0.0) & (x != f64::NEG_INFINITY) & !whole;
    let result = if unknown | x.is_nan() | y.is_nan() { f64::NAN } else { result };
    let one = (x == 1.0) | (y == 0.0);
    if one { 1.0 } else { result }
}

/// Cube root.
#[inline(always)]
pub(super) fn cbrt(x: f64) -> f64 {
    let size = x.abs();
    // 2^n * (1 + f) = 8^third * m * 2^left, with left one of -1, 0 and 1.
    let (n, f) = split(size);
    let third = n.mul_add(1.0 / 3.0, SHIFT) - SHIFT;
    let left = third.mul_add(-3.0, n);
    let a = (1.0 + f) * power_of_two(left + (SHIFT + 1023.0));
    // The inverse of the root: a polynomial to 17 bits, and a step of third order.
    let guess = polynomial(
        f,
        [
            1.0000038484620275,
            -0.3332609583073401,
            0.22160511288076112,
            -0.17581905405341505,
            0.16041697885985884,
            -0.10806153080554957,
        ],
    );
    let guess = if left > 0.5 { guess * 0.7937005259840998 } else { guess };
    let guess = if left < -0.5 { guess * 1.2599210498948732 } else { guess };
    let e = (guess * guess * guess).mul_add(-a, 1.0);
    let inverse = guess.mul_add(e * (2.0f64 / 9.0).mul_add(e, 1.0 / 3.0), guess);
    // A last step of Newton's, with the cube as a pair.
    let root = a * inverse * inverse;
    let square = Pair::product(root, root);
    let excess = square.hi.mul_add(root, -a) + square.lo * root;
    let root = (excess * inverse * inverse).mul_add(-1.0 / 3.0, root);
    let result = (root * power_of_two(third + (SHIFT + 1023.0))).copysign(x);
    let ordinary = (size > 0.0) & (size < f64::INFINITY);
    if ordinary { result } else { x }
}

/// Length of the vector (x, y).
#[inline(always)]
pub(super) fn hypot(x: f64, y: f64) -> f64 {
    let (x, y) = (x.abs(), y.abs());
    let (large, small) = if x > y { (x, y) } else { (y, x) };
    // Powers of two that bring squares into range, and back.
    let up = large < 1e-140;
    let down = large > 1e140;
    let scale = if up { f64::from_bits((1023 + 600) << 52) } else { 1.0 };
    let scale = if down { f64::from_bits((1023 - 600) << 52) } else { scale };
    let back = if up { f64::from_bits((1023 - 600) << 52) } else { 1.0 };
    let back = if down { f64::from_bits((1023 + 600) << 52) } else { back };
    let (a, b) = (Pair::product(large * scale, large * scale), Pair::product(small * scale, small * scale));
    let result = Pair::sum_ordered(a.hi, b.hi).plus_small(a.lo + b.lo).sqrt().value() * back;
    let infinite = (x == f64::INFINITY) | (y == f64::INFINITY);
    let result = if x.is_nan() | y.is_nan() { f64::NAN } else { result };
    if infinite { f64::INFINITY } else { result }
}
