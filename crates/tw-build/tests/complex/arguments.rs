//! Arguments of complex functions: of all magnitudes, and dense where something happens.

use std::f64::consts::FRAC_PI_2;

use tw_ir::random;

use crate::reference::{Function, Number};

/// Random numbers for one argument.
struct Draw {
    seed: u64,
    k: i64,
}

impl Draw {
    fn uniform(&mut self) -> f64 {
        self.seed = self.seed.wrapping_add(1 << 32);
        random::uniform(self.seed, self.k)
    }
    fn between(&mut self, low: f64, high: f64) -> f64 {
        low + (high - low) * self.uniform()
    }
    fn signed(&mut self, x: f64) -> f64 {
        if self.uniform() < 0.5 { -x } else { x }
    }
    /// A number with an exponent in a range, evenly spread over it.
    fn spread(&mut self, low: f64, high: f64) -> f64 {
        let (exponent, mantissa) = (self.between(low, high).floor(), self.between(1.0, 2.0));
        // In two steps, since the power alone may be too small.
        let half = (exponent / 2.0).floor();
        let x = mantissa * 2f64.powi(half as i32) * 2f64.powi((exponent - half) as i32);
        self.signed(if x == 0.0 { 5e-324 } else { x })
    }
}

/// The k-th argument, or two of them.
pub(crate) fn argument(function: &Function, seed: u64, k: i64) -> (Number, Number) {
    let mut draw = Draw { seed, k };
    let z = one(&mut draw, k);
    if !function.two_arguments {
        return (z, (0.0, 0.0));
    }
    if function.name == "div" {
        return (z, one(&mut draw, (draw_kind(k)) % 10));
    }
    // An exponent for which the result is in range.
    let log = (z.0.hypot(z.1).ln().abs() + 1.0).min(745.0);
    let size = draw.between(-700.0, 700.0) / log;
    let w = (size * draw.between(-1.0, 1.0), draw.between(-1.0, 1.0) * draw.spread(-20.0, 1.0) / log);
    (z, if k % 3 == 0 { ((w.0 / 8.0).round() + 0.5, 0.5) } else { w })
}

/// Another kind for the second argument, so that all kinds meet.
fn draw_kind(k: i64) -> i64 {
    k / 10
}

fn one(draw: &mut Draw, k: i64) -> Number {
    match k % 10 {
        0 => (draw.spread(-1074.0, 1024.0), draw.spread(-1074.0, 1024.0)),
        1 => (draw.between(-4.0, 4.0), draw.between(-4.0, 4.0)),
        2 => (draw.spread(-60.0, 12.0), draw.spread(-60.0, 12.0)),
        3 => {
            // Near the unit circle.
            let (angle, radius) = (draw.between(-3.15, 3.15), 1.0 + draw.spread(-54.0, -2.0));
            (radius * angle.cos(), radius * angle.sin())
        }
        4 => {
            // Near 1, -1, i and -i, and on the lines through them.
            let (one, small) = (1.0 + draw.spread(-54.0, -2.0), draw.spread(-400.0, 0.0));
            let one = if draw.uniform() < 0.2 { 1.0 } else { one };
            let z = (draw.signed(one), small);
            if draw.uniform() < 0.5 { z } else { (z.1, z.0) }
        }
        5 => {
            // Where exponentials overflow, but not if the sine is small.
            let (x, y) = (draw.between(680.0, 1450.0), draw.spread(-1074.0, 3.0));
            let z = (draw.signed(x), y);
            if draw.uniform() < 0.5 { z } else { (z.1, z.0) }
        }
        6 => {
            // Next to poles and zeros.
            let near = draw.spread(0.0, 40.0).round() * FRAC_PI_2;
            let z = (draw.spread(-80.0, 3.0), f64::from_bits(near.to_bits() + (5.0 * draw.uniform()) as u64 - 2));
            if draw.uniform() < 0.5 { z } else { (z.1, z.0) }
        }
        7 => {
            let z = (draw.spread(-1074.0, -100.0), draw.spread(-3.0, 10.0));
            if draw.uniform() < 0.5 { z } else { (z.1, z.0) }
        }
        8 => (draw.spread(-1074.0, -1000.0), draw.spread(-1074.0, -1000.0)),
        _ => (draw.spread(1000.0, 1024.0), draw.spread(1000.0, 1024.0)),
    }
}

/// The number as singles, if it is still in range.
pub(crate) fn as_single(z: Number) -> Option<Number> {
    let single = (f64::from(z.0 as f32), f64::from(z.1 as f32));
    let fits = |x: f64| x.is_finite() && x != 0.0;
    (fits(single.0) && fits(single.1)).then_some(single)
}
