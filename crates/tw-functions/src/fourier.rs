//! Fourier transforms along one axis of a block, which must be whole.

use std::cell::RefCell;
use std::collections::BTreeSet;

use realfft::RealFftPlanner;
use rustfft::num_complex::Complex;
use rustfft::num_traits::Zero;
use rustfft::{FftNum, FftPlanner};
use tw_ir::error::{Error, Result};
use tw_ir::program::{BlockFunction, FunctionTable};
use tw_ir::workflow::BlockShape;
use tw_ir::{Array, ArrayView, Buffer, Slice};

use crate::N_AXES;

/// What a transform does. None is scaled.
#[derive(Clone, Copy)]
enum Kind {
    /// Complex numbers to their amplitudes.
    Forward,
    /// Amplitudes to complex numbers.
    Inverse,
    /// Real numbers to the first half of their amplitudes.
    FromReal,
    /// The first half of amplitudes to real numbers.
    ToReal,
}

struct Transform {
    name: String,
    kind: Kind,
    /// Axes after the one that is transformed.
    from_end: usize,
}

/// Makes the transforms known: `fft_forward_0` and so on, with the number of axes after the one that is transformed.
pub(crate) fn register(table: &mut FunctionTable) {
    let kinds = [
        ("forward", Kind::Forward),
        ("inverse", Kind::Inverse),
        ("from_real", Kind::FromReal),
        ("to_real", Kind::ToReal),
    ];
    for (word, kind) in kinds {
        for from_end in 0..N_AXES {
            table.register(Transform { name: format!("fft_{word}_{from_end}"), kind, from_end });
        }
    }
}

impl BlockFunction for Transform {
    fn name(&self) -> &str {
        &self.name
    }

    fn apply(&self, operands: &[ArrayView<'_>], results: &mut [Array]) -> Result<()> {
        let (operand, result) = (&operands[0], &mut results[0]);
        let axis = operand.shape().len().checked_sub(self.from_end + 1);
        let axis = axis.ok_or_else(|| Error::source("a transform along an axis that is not there"))?;
        let lines = Lines {
            inner: operand.shape()[axis + 1..].iter().product::<u64>() as usize,
            n_in: operand.shape()[axis] as usize,
            n_out: result.shape()[axis] as usize,
        };
        let wrong = Error::types(format!("a Fourier transform of {}", operand.dtype()));
        match (self.kind, operand.data(), result.data_mut()) {
            (Kind::Forward | Kind::Inverse, Slice::C128(from), Buffer::C128(to)) => lines.complex(from, to, self.kind),
            (Kind::Forward | Kind::Inverse, Slice::C64(from), Buffer::C64(to)) => lines.complex(from, to, self.kind),
            (Kind::FromReal, Slice::F64(from), Buffer::C128(to)) => lines.real_in(from, to),
            (Kind::FromReal, Slice::F32(from), Buffer::C64(to)) => lines.real_in(from, to),
            (Kind::ToReal, Slice::C128(from), Buffer::F64(to)) => lines.real_out(from, to),
            (Kind::ToReal, Slice::C64(from), Buffer::F32(to)) => lines.real_out(from, to),
            _ => Err(wrong),
        }
    }

    /// Copies of fibres, and for the longer of their two lengths tables of sines and space of the transform itself.
    fn scratch_bytes(&self, operands: &[BlockShape], results: &[BlockShape]) -> u64 {
        let (Some(operand), Some(result)) = (operands.first(), results.first()) else { return 0 };
        let along = |block: &BlockShape| block.extents.iter().rev().nth(self.from_end).copied().unwrap_or(0);
        let bytes = |block: &BlockShape| along(block).saturating_mul(block.dtype.size());
        let inner =
            operand.extents.iter().rev().take(self.from_end).fold(1, |n: u64, &extent| n.saturating_mul(extent));
        let copies = bytes(operand).saturating_add(bytes(result)).saturating_mul(inner.min(TOGETHER as u64));
        let length = along(operand).max(along(result));
        let number = operand.dtype.size().max(result.dtype.size());
        let real_length = if matches!(self.kind, Kind::ToReal) { along(result) } else { along(operand) };
        let tables = if has_small_factors(real_length) { TABLES } else { TABLES_OF_PRIMES };
        copies.saturating_add(length.saturating_mul(number).saturating_mul(tables))
    }
}

/// True if a length is a product of small primes.
fn has_small_factors(mut length: u64) -> bool {
    for factor in [2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31] {
        while length > 0 && length.is_multiple_of(factor) {
            length /= factor;
        }
    }
    length <= 1
}

/// Fibres that are transformed together: as many as lie side by side in a line of the cache.
const TOGETHER: usize = 8;

/// Tables and space of a transform, in numbers for each element of a fibre; a length with a large prime factor is transformed by way of longer ones.
const TABLES: u64 = 2;
const TABLES_OF_PRIMES: u64 = 14;

/// Plans hold tables of sines; every thread keeps those it has made.
struct Planners<T: FftNum> {
    complex: FftPlanner<T>,
    real: RealFftPlanner<T>,
    lengths: BTreeSet<usize>,
}

/// More lengths than this are forgotten, and their tables with them.
const MOST_LENGTHS: usize = 64;

/// Tables of longer fibres are not kept: a thread would hold more than budgets overlook.
const LONGEST_KEPT: usize = 1 << 14;

thread_local! {
    static DOUBLES: RefCell<Planners<f64>> = RefCell::new(Planners::new());
    static SINGLES: RefCell<Planners<f32>> = RefCell::new(Planners::new());
}

impl<T: FftNum> Planners<T> {
    fn new() -> Planners<T> {
        Planners { complex: FftPlanner::new(), real: RealFftPlanner::new(), lengths: BTreeSet::new() }
    }
}

trait Planned: FftNum {
    fn planners<R>(use_them: impl FnOnce(&mut Planners<Self>) -> R) -> R;

    /// Plans for fibres of a length.
    fn planned<R>(length: usize, plan: impl FnOnce(&mut Planners<Self>) -> R) -> R {
        Self::planners(|planners| {
            if length > LONGEST_KEPT {
                return plan(&mut Planners::new());
            }
            if planners.lengths.insert(length) && planners.lengths.len() > MOST_LENGTHS {
                *planners = Planners::new();
                planners.lengths.insert(length);
            }
            plan(planners)
        })
    }
}
impl Planned for f64 {
    fn planners<R>(use_them: impl FnOnce(&mut Planners<f64>) -> R) -> R {
        DOUBLES.with_borrow_mut(use_them)
    }
}
impl Planned for f32 {
    fn planners<R>(use_them: impl FnOnce(&mut Planners<f32>) -> R) -> R {
        SINGLES.with_borrow_mut(use_them)
    }
}

/// The fibres of a block along the axis.
struct Lines {
    /// Distance of neighbours along the axis.
    inner: usize,
    n_in: usize,
    n_out: usize,
}

impl Lines {
    /// Calls `transform` for every fibre with a copy of it, and spreads the outcome into the result. Neighbouring fibres are copied together.
    fn each<A: Copy + Zero, B: Copy + Zero>(
        &self,
        from: &[A],
        to: &mut [B],
        mut transform: impl FnMut(&mut [A], &mut [B]) -> Result<()>,
    ) -> Result<()> {
        let outer = from.len().checked_div(self.n_in * self.inner).unwrap_or(0);
        let together = TOGETHER.min(self.inner);
        let mut copies = vec![A::zero(); self.n_in * together];
        let mut outcomes = vec![B::zero(); self.n_out * together];
        for block in 0..outer {
            let (start_in, start_out) = (block * self.n_in * self.inner, block * self.n_out * self.inner);
            for first in (0..self.inner).step_by(TOGETHER) {
                let width = together.min(self.inner - first);
                for k in 0..self.n_in {
                    let row = &from[start_in + k * self.inner + first..][..width];
                    row.iter().enumerate().for_each(|(line, &value)| copies[line * self.n_in + k] = value);
                }
                for line in 0..width {
                    transform(
                        &mut copies[line * self.n_in..(line + 1) * self.n_in],
                        &mut outcomes[line * self.n_out..(line + 1) * self.n_out],
                    )?;
                }
                for k in 0..self.n_out {
                    let row = &mut to[start_out + k * self.inner + first..][..width];
                    row.iter_mut().enumerate().for_each(|(line, value)| *value = outcomes[line * self.n_out + k]);
                }
            }
        }
        Ok(())
    }

    fn complex<T: Planned>(&self, from: &[Complex<T>], to: &mut [Complex<T>], kind: Kind) -> Result<()> {
        let plan = T::planned(self.n_in, |planners| match kind {
            Kind::Inverse => planners.complex.plan_fft_inverse(self.n_in),
            _ => planners.complex.plan_fft_forward(self.n_in),
        });
        let mut scratch = vec![Complex::zero(); plan.get_outofplace_scratch_len()];
        self.each(from, to, |line, outcome| {
            plan.process_outofplace_with_scratch(line, outcome, &mut scratch);
            Ok(())
        })
    }

    fn real_in<T: Planned>(&self, from: &[T], to: &mut [Complex<T>]) -> Result<()> {
        let plan = T::planned(self.n_in, |planners| planners.real.plan_fft_forward(self.n_in));
        let mut scratch = plan.make_scratch_vec();
        self.each(from, to, |line, outcome| {
            plan.process_with_scratch(line, outcome, &mut scratch).map_err(|error| Error::internal(error.to_string()))
        })
    }

    fn real_out<T: Planned>(&self, from: &[Complex<T>], to: &mut [T]) -> Result<()> {
        let plan = T::planned(self.n_out, |planners| planners.real.plan_fft_inverse(self.n_out));
        let mut scratch = plan.make_scratch_vec();
        self.each(from, to, |line, outcome| {
            // Amplitudes of real numbers are real where they are their own mirror image; anything else there is ignored, as NumPy does.
            line[0].im = T::zero();
            if self.n_out.is_multiple_of(2) {
                line[self.n_out / 2].im = T::zero();
            }
            plan.process_with_scratch(line, outcome, &mut scratch).map_err(|error| Error::internal(error.to_string()))
        })
    }
}
