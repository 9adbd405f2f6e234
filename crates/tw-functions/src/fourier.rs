//! Fourier transforms along one axis of a block, which must be whole.

use std::cell::RefCell;
use std::collections::BTreeSet;

use realfft::RealFftPlanner;
use rustfft::num_complex::Complex;
use rustfft::num_traits::Zero;
use rustfft::{FftNum, FftPlanner};
use tw_ir::error::{Error, Result};
use tw_ir::program::{BlockFunction, FunctionTable};
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
}

/// Plans hold tables of sines; every thread keeps those it has made.
struct Planners<T: FftNum> {
    complex: FftPlanner<T>,
    real: RealFftPlanner<T>,
    lengths: BTreeSet<usize>,
}

/// More lengths than this are forgotten, and their tables with them.
const MOST_LENGTHS: usize = 64;

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
    /// Calls `transform` for every fibre with a copy of it, and spreads the outcome into the result. As many fibres as lie side by side in a
    /// cache line are copied together.
    fn each<A: Copy + Zero, B: Copy + Zero>(
        &self,
        from: &[A],
        to: &mut [B],
        mut transform: impl FnMut(&mut [A], &mut [B]) -> Result<()>,
    ) -> Result<()> {
        const TOGETHER: usize = 8;
        let outer = from.len().checked_div(self.n_in * self.inner).unwrap_or(0);
        let mut copies = vec![A::zero(); self.n_in * TOGETHER];
        let mut outcomes = vec![B::zero(); self.n_out * TOGETHER];
        for block in 0..outer {
            let (start_in, start_out) = (block * self.n_in * self.inner, block * self.n_out * self.inner);
            for first in (0..self.inner).step_by(TOGETHER) {
                let width = TOGETHER.min(self.inner - first);
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
