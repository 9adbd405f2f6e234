//! What tests share: a seeded source of choices, and kernels run slowly, element by element.
#![allow(dead_code, reason = "each test uses its own part")]

use std::sync::Arc;

use tw_block::{Block, CompiledKernel};
use tw_ir::dtype::C128;
use tw_ir::kernel::{Kernel, StatementKernel};
use tw_ir::{Accum, Array, Axis, BoxRegion, Buffer, DType, Edge, Result, Scalar, random, shape};

/// A reproducible source of choices.
pub(crate) struct Dice {
    seed: u64,
    counter: i64,
}

impl Dice {
    pub(crate) fn new(seed: u64) -> Dice {
        Dice { seed, counter: 0 }
    }

    /// A number in `low..high`.
    pub(crate) fn number(&mut self, low: i64, high: i64) -> i64 {
        self.counter += 1;
        random::integer(self.seed, self.counter, low, high)
    }

    /// An index below `n`.
    pub(crate) fn below(&mut self, n: usize) -> usize {
        self.number(0, n as i64) as usize
    }

    /// True once in `n` times.
    pub(crate) fn one_in(&mut self, n: usize) -> bool {
        self.below(n) == 0
    }

    /// One of the choices.
    pub(crate) fn pick<T: Clone>(&mut self, choices: &[T]) -> T {
        choices[self.below(choices.len())].clone()
    }

    /// A small number of some type, exact in every type, or now and then something odd.
    pub(crate) fn scalar(&mut self, dtype: DType, odd: bool) -> Scalar {
        let small = Scalar::I64(self.number(-4, 5)).cast(dtype);
        if !odd || !self.one_in(6) {
            return small;
        }
        match dtype {
            DType::Bool => small,
            _ if dtype.is_integer() => {
                Scalar::I64(self.pick(&[i64::MIN, i64::MAX, i32::MIN as i64, 0, 100, 1 << 15, 1 << 40])).cast(dtype)
            }
            DType::F32 => Scalar::F32(self.pick(&[f32::NAN, f32::INFINITY, -0.0, 0.3, f32::MAX])),
            DType::C64 | DType::C128 => {
                let mut part = || self.pick(&[f64::NAN, f64::INFINITY, -0.0, 0.3, -2.0]);
                Scalar::C128(C128::new(part(), part())).cast(dtype)
            }
            _ => Scalar::F64(self.pick(&[f64::NAN, f64::NEG_INFINITY, -0.0, 0.1, 1e300])).cast(dtype),
        }
    }

    /// An array of such numbers.
    pub(crate) fn array(&mut self, shape: &[u64], dtype: DType, odd: bool) -> Array {
        let mut array = Array::zeros(shape, dtype).unwrap();
        for k in 0..array.data().len() {
            let value = self.scalar(dtype, odd);
            array.data_mut().set(k, value);
        }
        array
    }

    /// A box that holds another, inside a shape.
    pub(crate) fn box_around(&mut self, inner: &BoxRegion, shape: &[u64]) -> BoxRegion {
        BoxRegion::from_ranges((0..shape.len()).map(|axis| {
            let lo = inner.lo[axis] - self.number(0, inner.lo[axis] as i64 + 1).min(2) as u64;
            let hi = inner.hi[axis] + self.number(0, (shape[axis] - inner.hi[axis]) as i64 + 1).min(2) as u64;
            lo..hi
        }))
    }

    /// A box inside a shape, seldom empty.
    pub(crate) fn box_inside(&mut self, shape: &[u64]) -> BoxRegion {
        BoxRegion::from_ranges(shape.iter().map(|&n| {
            if n == 0 || self.one_in(2) {
                return 0..n;
            }
            let lo = self.number(0, n as i64) as u64;
            let hi = self.number(lo as i64 + 1, n as i64 + 1) as u64;
            lo..hi
        }))
    }

    /// A block of a tensor: owned, or a view.
    pub(crate) fn block_of(&mut self, whole: &Arc<Array>, region: &BoxRegion) -> Block {
        let view = Block::view_of(whole, region).unwrap();
        if self.one_in(2) {
            return view;
        }
        Block::from_array(&region.lo, view.to_array().unwrap(), None).unwrap()
    }
}

/// Compiles a kernel and runs it on blocks that are all there.
pub(crate) fn run(kernel: Kernel, first: bool, operands: &[&Block], outputs: &mut [Block]) -> Result<()> {
    let operands: Vec<Option<&Block>> = operands.iter().copied().map(Some).collect();
    CompiledKernel::compile(&kernel)?.run(0, first, &operands, outputs)
}

/// A tensor cut along one axis, sometimes into single elements: the box of every part, at most so many.
pub(crate) fn parts_along(dice: &mut Dice, whole: &[u64], axis: usize, most: u64) -> Vec<BoxRegion> {
    let cut = Axis::uniform(whole[axis], dice.number(1, whole[axis] as i64 + 1) as u64);
    let cut = if cut.n_tiles() > most { Axis::uniform(whole[axis], whole[axis].div_ceil(most - 1)) } else { cut };
    (0..cut.n_tiles())
        .map(|tile| {
            let mut bbox = BoxRegion::whole(whole);
            (bbox.lo[axis], bbox.hi[axis]) = (cut.range(tile).start, cut.range(tile).end);
            bbox
        })
        .collect()
}

/// The points of a box in row-major order.
pub(crate) fn points(bbox: &BoxRegion) -> impl Iterator<Item = Vec<u64>> + use<> {
    let (lo, extents) = (bbox.lo.clone(), bbox.shape());
    (0..bbox.n_elements()).map(move |k| {
        let mut at = shape::unravel(k, &extents);
        at.iter_mut().zip(&lo).for_each(|(c, lo)| *c += lo);
        at
    })
}

/// Coordinates after the edge rule; `Err` with the axis if one is outside.
pub(crate) fn resolve(
    idx: &[tw_ir::Idx],
    shape: &[u64],
    edge: Edge,
    point: &[i64],
) -> std::result::Result<Vec<u64>, usize> {
    idx.iter().zip(shape).enumerate().map(|(axis, (idx, &n))| edge.apply(idx.eval(point), n).ok_or(axis)).collect()
}

/// A statement over one box, one point after the other. State and output are whole tensors; only the part in `out_box` counts.
/// False if a read or write is outside where that is an error.
pub(crate) fn run_statement(
    kernel: &StatementKernel,
    point: u32,
    operands: &[Option<Arc<Array>>],
    state: &mut [Array],
) -> bool {
    for at in points(&kernel.var_box(point as u64)) {
        let at: Vec<i64> = at.into_iter().map(|c| c as i64).collect();
        let mut args = Vec::new();
        let mut missed = false;
        for (read, operand) in kernel.reads.iter().zip(operands) {
            let value = match resolve(&read.idx, &read.shape, read.edge, &at) {
                Ok(coords) => operand.as_ref().map_or(read.fill, |array| array.get(&coords)),
                Err(_) => {
                    missed |= read.edge == Edge::Error;
                    read.fill
                }
            };
            args.push(value);
        }
        args.extend(at.iter().map(|&c| Scalar::I64(c)));
        let results = kernel.code.eval(&args);
        if kernel.has_guard && !results[0].is_true() {
            continue;
        }
        if missed {
            return false;
        }
        let target = match resolve(&kernel.out_idx, &kernel.out_shape, kernel.out_edge, &at) {
            Ok(target) => target,
            Err(_) if kernel.out_edge == Edge::Error => return false,
            Err(_) => continue,
        };
        let bodies = &results[kernel.has_guard as usize..];
        match &kernel.accum {
            None => state.iter_mut().zip(bodies).for_each(|(state, &value)| state.set(&target, value)),
            Some(accum) => fold(accum, bodies, state, &target),
        }
    }
    true
}

/// Folds bodies into the state at an element.
pub(crate) fn fold(accum: &Accum, bodies: &[Scalar], state: &mut [Array], target: &[u64]) {
    let mut both: Vec<Scalar> = state.iter().map(|state| state.get(target)).collect();
    both.extend(accum.lift.eval(bodies));
    for (state, value) in state.iter_mut().zip(accum.combine.eval(&both)) {
        state.set(target, value);
    }
}

/// The part of a tensor that a box covers.
pub(crate) fn part(whole: &Array, region: &BoxRegion) -> Array {
    let values: Vec<Scalar> = points(region).map(|at| whole.get(&at)).collect();
    let mut buffer = Buffer::zeros(whole.dtype(), values.len());
    values.iter().enumerate().for_each(|(k, &value)| buffer.set(k, value));
    Array::new(region.shape(), buffer).unwrap()
}

/// Checks that two arrays agree: in every bit, or nearly.
pub(crate) fn assert_agree(found: &Array, expected: &Array, exact: bool, what: &dyn std::fmt::Debug) {
    assert_eq!((found.shape(), found.dtype()), (expected.shape(), expected.dtype()), "{what:#?}");
    for k in 0..found.data().len() {
        let (a, b) = (found.data().get(k), expected.data().get(k));
        let both_nan = a.as_f64().is_nan() && b.as_f64().is_nan();
        let near = !exact && (a.as_f64() - b.as_f64()).abs() <= 1e-5 * (1.0 + b.as_f64().abs());
        assert!(a == b || both_nan || near, "element {k} is {a}, not {b}, of {what:#?}");
    }
}

/// An output block.
pub(crate) fn output(dtype: DType, bbox: &BoxRegion) -> Result<Block> {
    Block::for_output(dtype, bbox.clone(), None)
}
