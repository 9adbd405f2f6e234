//! Fourier transforms: every fibre along an axis in one task, [long](long) ones in several steps.

use tw_ir::dtype::DType;
use tw_ir::error::{Error, Result};
use tw_ir::program::{BlockResult, Transform};
use tw_ir::{Edge, Grid, Scalar};

use super::{Algorithms, N_AXES, fibre_modes, first};
use crate as build;
use tw_ir::ValueId;
use tw_ir::tiling::cut_leading;

mod long;

/// Elements of a block whose fibres are transformed in one task.
const BLOCK_ELEMENTS: u64 = 1 << 18;

impl Algorithms<'_> {
    /// Transforms along an axis. The fibre is cut or filled with zeros to `n` elements first (for [`Transform::ToReal`], to what `n` results
    /// need).
    pub fn fourier(&mut self, x: &ValueId, kind: Transform, axis: usize, n: u64) -> Result<ValueId> {
        let rank = self.ty(x).rank();
        if axis >= rank {
            return Err(Error::source(format!("axis {axis} of a tensor with {rank}")));
        }
        if n == 0 {
            return Err(Error::source("a Fourier transform of no elements"));
        }
        let (from, _) = types(kind, self.ty(x).dtype)?;
        let x = self.cast(x, from)?;
        let n_in = if kind == Transform::ToReal { n / 2 + 1 } else { n };
        let x = self.fitted(&x, axis, n_in)?;
        if n > long::LONG {
            return self.long_fourier(&x, kind, axis, n);
        }
        self.transformed(&x, kind, axis, n, BLOCK_ELEMENTS)
    }

    /// Transforms fibres that have the right type and number of elements, as many in a task as have so many elements.
    fn transformed(
        &mut self,
        x: &ValueId,
        kind: Transform,
        axis: usize,
        n: u64,
        block_elements: u64,
    ) -> Result<ValueId> {
        let shape = self.shape(x)?;
        let rank = shape.len();
        if rank - 1 - axis >= N_AXES {
            let transform =
                |algorithms: &mut Self, x: &ValueId| algorithms.transformed(x, kind, rank - 1, n, block_elements);
            return self.brought_last(x, axis, transform);
        }
        let (_, to) = types(kind, self.ty(x).dtype)?;
        let n_out = if kind == Transform::FromReal { n / 2 + 1 } else { n };
        let mut grid = Grid::whole(&shape);
        let others: Vec<usize> = (0..rank).filter(|&k| k != axis).collect();
        cut_leading(&mut grid, &others, block_elements);
        let blocks = self.retiled(x, grid)?;
        let (modes, results) = fibre_modes(rank, axis, n_out);
        let name = format!("fft_{}_{}", kind.name(), rank - 1 - axis);
        first(self.call(&name, &[(&blocks, &modes)], vec![BlockResult { dtype: to, modes: results }])?)
    }

    /// Does something to an axis as if it were the last.
    pub(super) fn brought_last(
        &mut self,
        x: &ValueId,
        axis: usize,
        act: impl FnOnce(&mut Self, &ValueId) -> Result<ValueId>,
    ) -> Result<ValueId> {
        let rank = self.ty(x).rank();
        let there: Vec<usize> = (0..rank).filter(|&k| k != axis).chain([axis]).collect();
        let mut back = vec![0; rank];
        there.iter().enumerate().for_each(|(to, &from)| back[from] = to);
        let moved = self.permuted(x, &there)?;
        let done = act(self, &moved)?;
        self.permuted(&done, &back)
    }

    /// The first `n` elements along an axis, with zeros after the last.
    fn fitted(&mut self, x: &ValueId, axis: usize, n: u64) -> Result<ValueId> {
        let shape = self.shape(x)?;
        let mut ranges: Vec<std::ops::Range<u64>> = shape.iter().map(|&extent| 0..extent).collect();
        ranges[axis] = 0..n.min(shape[axis]);
        let x = self.part(x, &ranges)?;
        if shape[axis] >= n {
            return Ok(x);
        }
        let mut widths = vec![(0, 0); shape.len()];
        widths[axis] = (0, n - shape[axis]);
        let zero: Scalar = self.ty(&x).dtype.zero();
        let op = build::pad(self.ty(&x), &widths, Edge::Fill, zero)?;
        self.one(op, &[&x])
    }
}

/// What is transformed, and what comes out.
fn types(kind: Transform, dtype: DType) -> Result<(DType, DType)> {
    if dtype.is_time() || (kind == Transform::FromReal && dtype.is_complex()) {
        return Err(Error::types(format!("a Fourier transform of {dtype}")));
    }
    let real = match dtype {
        DType::F32 | DType::F16 | DType::BF16 | DType::C64 => DType::F32,
        _ => DType::F64,
    };
    let complex = real.with_parts().ok_or_else(|| Error::internal("a real type without a complex one"))?;
    Ok(match kind {
        Transform::Forward | Transform::Inverse => (complex, complex),
        Transform::FromReal => (real, complex),
        Transform::ToReal => (complex, real),
    })
}
