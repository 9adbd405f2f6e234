//! Linear algebra and Fourier transforms on lazy tensors.
//!
//! The algorithms are those of [`tw_plan::linalg`], with the block functions of `tw-functions`.
//!
//! ```
//! use tilewright::linalg::{self, Routine};
//! # let session = tilewright::Session::new();
//! let a = session.random_normal(&[300, 20], 1)?;
//! let [q, r] = linalg::apply(Routine::Qr, &[&a])?.try_into().unwrap();
//! let error = q.matmul(&r)?.sub(&a)?.abs()?.max(None)?;
//! assert!(error.item()?.as_f64() < 1e-12);
//! # Ok::<(), tilewright::Error>(())
//! ```

use tw_ir::error::{Error, Result};
use tw_ir::program::{Op, TensorType};
use tw_plan::linalg::{Algebra, Graph};
pub use tw_plan::linalg::{Compression, Routine, Transform};

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
fn with_algebra<R>(tensor: &Tensor, run: impl FnOnce(&mut Algebra<'_, Tensors<'_>>) -> Result<R>) -> Result<R> {
    run(&mut Algebra::new(&mut Tensors(tensor.session()), tw_functions::library()))
}

/// Applies a routine. Those by singular values take the tolerance, one number per matrix, as a further argument.
pub fn apply(routine: Routine, args: &[&Tensor]) -> Result<Vec<Tensor>> {
    let first = args.first().ok_or_else(|| Error::source(format!("`{}` of nothing", routine.name())))?;
    with_algebra(first, |algebra| routine.apply(algebra, args))
}

/// The largest singular values with their vectors, approximately: U, s and V^H.
pub fn svd_compressed(a: &Tensor, how: Compression) -> Result<[Tensor; 3]> {
    with_algebra(a, |algebra| algebra.svd_compressed(a, how))
}

/// A Fourier transform along an axis, of fibres cut or filled with zeros to `n` elements. Not scaled.
pub fn fourier(x: &Tensor, kind: Transform, axis: usize, n: u64) -> Result<Tensor> {
    with_algebra(x, |algebra| algebra.fourier(x, kind, axis, n))
}
