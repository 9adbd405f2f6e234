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

use tw_build::algorithms::{Algorithms, Graph};
pub use tw_build::algorithms::{Compression, Routine, Transform};
use tw_ir::error::{Error, Result};
use tw_ir::program::{Op, TensorType};

use crate::session::Session;
use crate::tensor::Tensor;

/// The graph of a session's tensors.
struct Tensors<'a>(&'a Session);

impl Graph for Tensors<'_> {
    type Value = Tensor;

    fn ty<'v>(&'v self, value: &'v Tensor) -> &'v TensorType {
        value.ty()
    }

    #[track_caller]
    fn push(&mut self, op: Op, args: &[&Tensor]) -> Result<Vec<Tensor>> {
        Tensor::apply_all(self.0, op, args)
    }
}

/// Lets an algorithm add to the graph of a tensor.
fn with_algorithms<R>(tensor: &Tensor, run: impl FnOnce(&mut Algorithms<'_, Tensors<'_>>) -> Result<R>) -> Result<R> {
    run(&mut Algorithms::new(&mut Tensors(tensor.session()), tw_functions::library()))
}

/// Applies a routine. Routines based on singular values take a tolerance, one number per matrix, as a further argument.
pub fn apply(routine: Routine, args: &[&Tensor]) -> Result<Vec<Tensor>> {
    let first = args.first().ok_or_else(|| Error::source(format!("`{}` of nothing", routine.name())))?;
    with_algorithms(first, |algorithms| routine.apply(algorithms, args))
}

/// The largest singular values with their vectors, approximately: U, s and V^H.
pub fn svd_compressed(a: &Tensor, how: Compression) -> Result<[Tensor; 3]> {
    with_algorithms(a, |algorithms| algorithms.svd_compressed(a, how))
}

/// An unscaled Fourier transform along an axis, of fibres truncated or zero-padded to `n` elements.
pub fn fourier(x: &Tensor, kind: Transform, axis: usize, n: u64) -> Result<Tensor> {
    with_algorithms(x, |algorithms| algorithms.fourier(x, kind, axis, n))
}

/// The elements at some ranks along an axis, counted from the smallest; NaNs are the largest. Ranks are i64 and shaped like the tensor but along the
/// axis.
pub fn select(x: &Tensor, ranks: &Tensor, axis: usize) -> Result<Tensor> {
    with_algorithms(x, |algorithms| algorithms.select(x, ranks, axis))
}
