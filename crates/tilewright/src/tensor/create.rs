//! Creation of tensors.

use std::path::Path;
use std::sync::Arc;

use tw_block::{Source, in_memory};
use tw_build as build;
use tw_ir::error::Result;
use tw_ir::program::Op;
use tw_ir::{Array, Axis, DType, Scalar, Tiling};
use tw_run::TensorHandle;

use super::Tensor;
use crate::session::Session;

fn extents(shape: &[u64]) -> Vec<tw_ir::Extent> {
    shape.iter().map(|&n| n.into()).collect()
}

impl Session {
    /// A tensor over an array; nothing is copied.
    #[track_caller]
    pub fn array(&self, array: Array) -> Tensor {
        Tensor::bound(self, in_memory(array), None)
    }

    /// A tensor that was computed before; its blocks are shared.
    #[track_caller]
    pub fn kept(&self, handle: Arc<TensorHandle>) -> Tensor {
        Tensor::bound(self, handle.clone(), Some(handle))
    }

    /// A tensor over a file, such as an `.npy` file; only the header is read now.
    #[track_caller]
    pub fn open(&self, path: impl AsRef<Path>) -> Result<Tensor> {
        Ok(Tensor::bound(self, tw_files::open(path)?, None))
    }

    /// A tensor over anything that gives blocks.
    #[track_caller]
    pub fn source(&self, source: Arc<dyn Source>) -> Tensor {
        Tensor::bound(self, source, None)
    }

    /// Zeros.
    #[track_caller]
    pub fn zeros(&self, shape: &[u64], dtype: DType) -> Result<Tensor> {
        self.full(shape, dtype.zero())
    }

    /// One value everywhere.
    #[track_caller]
    pub fn full(&self, shape: &[u64], value: Scalar) -> Result<Tensor> {
        Tensor::apply(self, build::full(&extents(shape), value), &[])
    }

    /// `start, start + step, ..` up to but not including `stop`, as f64.
    #[track_caller]
    pub fn arange(&self, start: f64, stop: f64, step: f64) -> Result<Tensor> {
        let op = build::arange(Scalar::F64(start), Scalar::F64(stop), Scalar::F64(step), DType::F64)?;
        Tensor::apply(self, op, &[])
    }

    /// Integers from `start` up to but not including `stop`.
    #[track_caller]
    pub fn range(&self, start: i64, stop: i64) -> Result<Tensor> {
        let op = build::arange(Scalar::I64(start), Scalar::I64(stop), Scalar::I64(1), DType::I64)?;
        Tensor::apply(self, op, &[])
    }

    /// `n` evenly spaced values, both ends included.
    #[track_caller]
    pub fn linspace(&self, start: f64, stop: f64, n: u64) -> Result<Tensor> {
        Tensor::apply(self, build::linspace(start, stop, n, true, DType::F64)?, &[])
    }

    /// The identity matrix.
    #[track_caller]
    pub fn eye(&self, n: u64, dtype: DType) -> Result<Tensor> {
        Tensor::apply(self, build::eye(n, n, 0, dtype)?, &[])
    }

    /// Uniform random numbers in `[0, 1)`. The value of an element depends on the seed and its position alone.
    #[track_caller]
    pub fn random_uniform(&self, shape: &[u64], seed: u64) -> Result<Tensor> {
        Tensor::apply(self, build::random_uniform(shape, seed, 0.0, 1.0)?, &[])
    }

    /// Standard normal random numbers.
    #[track_caller]
    pub fn random_normal(&self, shape: &[u64], seed: u64) -> Result<Tensor> {
        Tensor::apply(self, build::random_normal(shape, seed, 0.0, 1.0)?, &[])
    }

    /// Random integers in `low..high`.
    #[track_caller]
    pub fn random_integers(&self, shape: &[u64], seed: u64, low: i64, high: i64) -> Result<Tensor> {
        Tensor::apply(self, build::random_integers(shape, seed, low, high)?, &[])
    }
}

impl Tensor {
    /// The same tensor in tiles of the given lengths, one per axis.
    #[track_caller]
    pub fn retile(&self, tiles: &[u64]) -> Result<Tensor> {
        let shape = self.shape()?;
        if tiles.len() != shape.len() {
            return Err(tw_ir::Error::source(format!(
                "{} tile lengths for a tensor of rank {}",
                tiles.len(),
                shape.len()
            )));
        }
        let axes = shape.iter().zip(tiles).map(|(&n, &tile)| Axis::uniform(n, tile)).collect();
        Tensor::apply(self.session(), Op::Retile { tiling: Tiling::Grid(axes) }, &[self])
    }
}
