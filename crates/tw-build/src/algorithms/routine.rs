//! The library of routines: which algorithm each routine is.

use tw_ir::ValueId;
use tw_ir::error::{Error, Result};
use tw_ir::program::{FunctionTable, Program, Routine, RoutineLibrary, RoutineLibraryRef};

use super::Algorithms;

/// The blocked algorithms, with the block functions that they call.
pub struct BlockedRoutines {
    functions: FunctionTable,
}

impl BlockedRoutines {
    /// The algorithms with the block functions of `tw-functions`, or of another table with the same names.
    pub fn library(functions: &FunctionTable) -> RoutineLibraryRef {
        RoutineLibraryRef(std::sync::Arc::new(BlockedRoutines { functions: functions.clone() }))
    }
}

impl RoutineLibrary for BlockedRoutines {
    fn append(&self, routine: Routine, program: &mut Program, operands: &[ValueId]) -> Result<()> {
        let results = Algorithms::new(program, &self.functions).apply(routine, operands)?;
        for (k, value) in results.into_iter().enumerate() {
            program.output(k.to_string(), value);
        }
        Ok(())
    }
}

impl Algorithms<'_> {
    fn apply(&mut self, routine: Routine, args: &[ValueId]) -> Result<Vec<ValueId>> {
        let missing = || Error::internal(format!("`{}` of {} operands", routine.name(), args.len()));
        let a = args.first().ok_or_else(missing)?;
        let second = || args.get(1).ok_or_else(missing);
        let tolerance = args.get(routine.n_args());
        Ok(match routine {
            Routine::Cholesky => vec![self.cholesky(a)?],
            Routine::Det => vec![self.det(a)?],
            Routine::Eig => self.eig(a)?.into(),
            Routine::Eigvals => vec![self.eigvals(a)?],
            Routine::Eigh => self.eigh(a)?.into(),
            Routine::Eigvalsh => vec![self.eigvalsh(a)?],
            Routine::Inv => vec![self.inv(a)?],
            Routine::Lstsq => self.lstsq(a, second()?, tolerance)?.into(),
            Routine::Lu => self.lu(a)?.into(),
            Routine::MatrixRank => vec![self.matrix_rank(a, tolerance)?],
            Routine::Pinv => vec![self.pinv(a, tolerance)?],
            Routine::Qr => self.qr(a)?.into(),
            Routine::QrComplete => self.qr_complete(a)?.into(),
            Routine::QrIndirect => self.qr_indirect(a)?.into(),
            Routine::R => vec![self.r(a)?],
            Routine::Slogdet => self.slogdet(a)?.into(),
            Routine::Solve => vec![self.solve(a, second()?)?],
            Routine::SolveLower => vec![self.solve_lower(a, second()?)?],
            Routine::SolveUpper => vec![self.solve_upper(a, second()?)?],
            Routine::Svd => self.svd(a)?.into(),
            Routine::SvdFull => self.svd_full(a)?.into(),
            Routine::Svdvals => vec![self.svdvals(a)?],
            Routine::SvdCompressed(how) => self.svd_compressed(a, how)?.into(),
            Routine::Fourier { transform, axis, n } => vec![self.fourier(a, transform, axis as usize, n)?],
            Routine::Select { axis } => vec![self.select(a, second()?, axis as usize)?],
        })
    }
}
