//! The largest singular values by random projections (Halko, Martinsson and Tropp).

use tw_ir::error::{Error, Result};
use tw_ir::program::Compression;

use super::Algorithms;
use crate as build;
use tw_ir::ValueId;

/// Each iteration adds nodes; more than a few never help.
const MAX_ITERATIONS: u32 = 1000;

impl Algorithms<'_> {
    /// The largest singular values with their vectors, approximately: U, s and V^H. The matrix is only multiplied, so it may be as large as
    /// products allow.
    pub fn svd_compressed(&mut self, a: &ValueId, how: Compression) -> Result<[ValueId; 3]> {
        let a = self.numbers(a)?;
        let (rows, columns) = self.size(&a)?;
        let n = rows.min(columns);
        if self.ty(&a).rank() != 2 {
            return Err(Error::source("a compressed decomposition of one matrix"));
        }
        if how.rank == 0 || how.rank > n {
            return Err(Error::source(format!("{} singular values of a matrix of {rows} by {columns}", how.rank)));
        }
        if how.iterations > MAX_ITERATIONS {
            return Err(Error::source(format!("{} iterations; the limit is {MAX_ITERATIONS}", how.iterations)));
        }
        let width = how.rank.saturating_add(how.oversampling).min(n);
        let dtype = self.ty(&a).dtype;
        let directions = self.one(build::random_normal(&[columns, width], how.seed, 0.0, 1.0)?, &[])?;
        let directions = self.cast(&directions, dtype)?;
        let sample = self.matmul(&a, &directions)?;
        let [mut q, _] = self.qr(&sample)?;
        for _ in 0..how.iterations {
            // Orthogonal again after every product, or small values drown in the large ones.
            let back = self.adjoint_matmul(&a, &q)?;
            let [rows_of_a, _] = self.qr(&back)?;
            let sample = self.matmul(&a, &rows_of_a)?;
            [q, _] = self.qr(&sample)?;
        }
        let small = self.adjoint_matmul(&q, &a)?;
        let [u, s, vh] = self.svd(&small)?;
        let u = self.part(&u, &[0..width, 0..how.rank])?;
        Ok([self.matmul(&q, &u)?, self.stretch(&s, 0..how.rank)?, self.part(&vh, &[0..how.rank, 0..columns])?])
    }
}
