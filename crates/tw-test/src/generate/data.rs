//! Random elements, arrays, shapes and tilings.

use tw_ir::dtype::C128;
use tw_ir::{Array, Axis, Buffer, DType, Scalar, Tiling};

use super::Options;
use super::rng::Rng;

/// Magnitude of the numbers in random data. Small, so that sums and products stay exact.
pub(super) const MAGNITUDE: i64 = 3;

/// The types that programs are made of; those with the most operations more often.
pub(crate) const DTYPES: [DType; 20] = [
    DType::Bool,
    DType::Bool,
    DType::I64,
    DType::I64,
    DType::F32,
    DType::F32,
    DType::F64,
    DType::F64,
    DType::F64,
    DType::I8,
    DType::I16,
    DType::I32,
    DType::U8,
    DType::U16,
    DType::U32,
    DType::U64,
    DType::F16,
    DType::BF16,
    DType::C64,
    DType::C128,
];

/// A small integer as the given type; now and then, if allowed, one of the special floats.
pub(super) fn scalar(rng: &mut Rng, dtype: DType, special: bool) -> Scalar {
    if dtype == DType::Bool {
        return Scalar::Bool(rng.chance(50));
    }
    if special && dtype.is_float() && rng.chance(4) {
        let value = rng.pick(&[f64::NAN, f64::INFINITY, f64::NEG_INFINITY, -0.0]);
        return Scalar::F64(value).cast(dtype);
    }
    if dtype.is_complex() {
        let mut part = || rng.range(-MAGNITUDE, MAGNITUDE) as f64;
        return Scalar::C128(C128::new(part(), part())).cast(dtype);
    }
    // Unsigned numbers would be huge below zero.
    let low = if dtype.is_unsigned() { 0 } else { -MAGNITUDE };
    Scalar::I64(rng.range(low, MAGNITUDE)).cast(dtype)
}

/// An array of [`scalar`]s. Special values come in few arrays, so that most results are numbers.
pub(super) fn array(rng: &mut Rng, dtype: DType, shape: &[u64], special: bool) -> Option<Array> {
    let special = special && rng.chance(20);
    let n = shape.iter().product::<u64>() as usize;
    let mut data = Buffer::zeros(dtype, n);
    (0..n).for_each(|k| data.set(k, scalar(rng, dtype, special)));
    Array::new(shape.to_vec(), data).ok()
}

/// An extent within a limit, rarely 0.
pub(super) fn extent(rng: &mut Rng, limit: u64) -> u64 {
    if rng.chance(4) { 0 } else { rng.range(1, limit.max(1) as i64) as u64 }
}

/// A shape within the limits of the options; high ranks are rarer.
pub(super) fn shape(rng: &mut Rng, options: &Options) -> Vec<u64> {
    let rank = rng.pick(&[0, 1, 1, 1, 2, 2, 2, 2, 3, 3, 4]);
    let mut room = options.max_points;
    (0..rank)
        .map(|_| {
            let extent = extent(rng, options.max_extent.min(room));
            room /= extent.max(1);
            extent
        })
        .collect()
}

/// A cut of one axis into a few tiles: uniform, ragged or whole.
fn axis(rng: &mut Rng, extent: u64) -> Axis {
    if extent < 2 || rng.chance(20) {
        return Axis::whole(extent);
    }
    if rng.chance(50) {
        let smallest = extent.div_ceil(6) as i64;
        return Axis::uniform(extent, rng.range(smallest, extent as i64) as u64);
    }
    let mut boundaries = vec![0];
    let percent = (400 / extent as i64).min(40);
    boundaries.extend((1..extent).filter(|_| rng.chance(percent)));
    boundaries.push(extent);
    Axis::from_boundaries(boundaries)
}

/// A grid over a shape.
pub(super) fn tiling(rng: &mut Rng, shape: &[u64]) -> Tiling {
    Tiling::Grid(shape.iter().map(|&extent| axis(rng, extent)).collect())
}
