//! Linear algebra and Fourier transforms on lazy tensors.
//!
//! The algorithms are those of [`tw_build::algorithms`], with the block functions of `tw-functions`.
//!
//! ```
//! use tilewright::algorithms::{self, Routine};
//! # let session = tilewright::Session::new();
//! let a = session.random_normal(&[300, 20], 1)?;
//! let [q, r] = algorithms::apply(Routine::Qr, &[&a])?.try_into().unwrap();
//! let error = q.matmul(&r)?.sub(&a)?.abs()?.max(None)?;
//! assert!(error.item()?.as_f64() < 1e-12);
//! # Ok::<(), tilewright::Error>(())
//! ```

use std::panic::Location;
use std::sync::LazyLock;

use tw_build::algorithms::BlockedRoutines;
use tw_ir::error::{Error, Result};
pub use tw_ir::program::{Compression, Routine, Transform};
use tw_ir::program::{Op, RoutineLibraryRef, RoutineSpec, TensorType};

use crate::tensor::{Tensor, span_of};

static LIBRARY: LazyLock<RoutineLibraryRef> = LazyLock::new(|| BlockedRoutines::library(tw_functions::library()));

/// The algorithms behind routines. There is one library, so that equal routines are equal nodes.
pub(crate) fn library() -> &'static RoutineLibraryRef {
    &LIBRARY
}

/// Applies a routine. Routines based on singular values take a tolerance, one number per matrix, as a further argument.
#[track_caller]
pub fn apply(routine: Routine, args: &[&Tensor]) -> Result<Vec<Tensor>> {
    let first = args.first().ok_or_else(|| Error::source(format!("`{}` of nothing", routine.name())))?;
    let types: Vec<&TensorType> = args.iter().map(|tensor| tensor.ty()).collect();
    let spec = RoutineSpec::new(routine, &types, library()).map_err(|error| error.at(&span_of(Location::caller())))?;
    Tensor::apply_all(first.session(), Op::Routine(spec), args)
}

#[track_caller]
fn apply_exactly<const N: usize>(routine: Routine, args: &[&Tensor]) -> Result<[Tensor; N]> {
    let wrong = |_| Error::internal(format!("`{}` without {N} results", routine.name()));
    apply(routine, args)?.try_into().map_err(wrong)
}

/// The largest singular values with their vectors, approximately: U, s and V^H.
#[track_caller]
pub fn svd_compressed(a: &Tensor, how: Compression) -> Result<[Tensor; 3]> {
    apply_exactly(Routine::SvdCompressed(how), &[a])
}

/// An unscaled Fourier transform along an axis, of fibres truncated or zero-padded to `n` elements.
#[track_caller]
pub fn fourier(x: &Tensor, transform: Transform, axis: usize, n: u64) -> Result<Tensor> {
    let [result] = apply_exactly(Routine::Fourier { transform, axis: axis_number(x, axis)?, n }, &[x])?;
    Ok(result)
}

/// The elements at some ranks along an axis, counted from the smallest; NaNs are the largest. Ranks are i64 and shaped like the tensor but along the
/// axis.
#[track_caller]
pub fn select(x: &Tensor, ranks: &Tensor, axis: usize) -> Result<Tensor> {
    let [result] = apply_exactly(Routine::Select { axis: axis_number(x, axis)? }, &[x, ranks])?;
    Ok(result)
}

fn axis_number(x: &Tensor, axis: usize) -> Result<u32> {
    u32::try_from(axis).map_err(|_| Error::source(format!("axis {axis} of a tensor with {}", x.ty().rank())))
}
