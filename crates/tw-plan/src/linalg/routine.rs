//! The routines by name, for front ends.

use tw_ir::error::{Error, Result};

use super::{Algebra, Graph};

macro_rules! routines {
    ($($(#[$doc:meta])* $variant:ident $name:literal $n_args:literal -> $n_results:literal;)*) => {
        /// A routine of linear algebra. Each is documented at the method of [`Algebra`] of its name.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Routine {
            $($(#[$doc])* $variant,)*
        }

        impl Routine {
            /// All of them.
            pub const ALL: &[Routine] = &[$(Routine::$variant),*];

            /// What front ends call it.
            pub fn name(self) -> &'static str {
                match self {
                    $(Routine::$variant => $name,)*
                }
            }

            /// How many matrices it takes.
            pub fn n_args(self) -> usize {
                match self {
                    $(Routine::$variant => $n_args,)*
                }
            }

            /// How many results it has.
            pub fn n_results(self) -> usize {
                match self {
                    $(Routine::$variant => $n_results,)*
                }
            }
        }
    };
}

routines! {
    /// The lower Cholesky factor.
    Cholesky "cholesky" 1 -> 1;
    /// The determinant.
    Det "det" 1 -> 1;
    /// Eigenvalues and eigenvectors.
    Eig "eig" 1 -> 2;
    /// Eigenvalues.
    Eigvals "eigvals" 1 -> 1;
    /// Eigenvalues and eigenvectors of a self-adjoint matrix.
    Eigh "eigh" 1 -> 2;
    /// Eigenvalues of a self-adjoint matrix.
    Eigvalsh "eigvalsh" 1 -> 1;
    /// The inverse.
    Inv "inv" 1 -> 1;
    /// Least squares.
    Lstsq "lstsq" 2 -> 4;
    /// Order of rows, L and U.
    Lu "lu" 1 -> 3;
    /// How many singular values count.
    MatrixRank "matrix_rank" 1 -> 1;
    /// The pseudoinverse.
    Pinv "pinv" 1 -> 1;
    /// Q and R.
    Qr "qr" 1 -> 2;
    /// Square Q and R.
    QrComplete "qr_complete" 1 -> 2;
    /// Q and R of a tall, well-conditioned matrix.
    QrIndirect "qr_indirect" 1 -> 2;
    /// R alone.
    R "qr_r" 1 -> 1;
    /// Direction and logarithm of the determinant.
    Slogdet "slogdet" 1 -> 2;
    /// Systems of equations.
    Solve "solve" 2 -> 1;
    /// Systems with a lower triangle.
    SolveLower "solve_lower" 2 -> 1;
    /// Systems with an upper triangle.
    SolveUpper "solve_upper" 2 -> 1;
    /// U, s and V^H.
    Svd "svd" 1 -> 3;
    /// Square U, s and square V^H.
    SvdFull "svd_full" 1 -> 3;
    /// Singular values.
    Svdvals "svdvals" 1 -> 1;
}

impl Routine {
    /// The routine of a name.
    pub fn named(name: &str) -> Option<Routine> {
        Routine::ALL.iter().copied().find(|routine| routine.name() == name)
    }

    /// Adds the routine to a graph. Those by singular values take the tolerance, one number per matrix, as a further argument.
    pub fn apply<G: Graph>(self, algebra: &mut Algebra<'_, G>, args: &[&G::Value]) -> Result<Vec<G::Value>> {
        let takes_tolerance = matches!(self, Routine::Lstsq | Routine::MatrixRank | Routine::Pinv);
        let n = self.n_args();
        if args.len() != n && !(takes_tolerance && args.len() == n + 1) {
            return Err(Error::source(format!("`{}` takes {n} matrices, not {}", self.name(), args.len())));
        }
        let tolerance = args.get(n).copied();
        let a = args[0];
        Ok(match self {
            Routine::Cholesky => vec![algebra.cholesky(a)?],
            Routine::Det => vec![algebra.det(a)?],
            Routine::Eig => algebra.eig(a)?.into(),
            Routine::Eigvals => vec![algebra.eigvals(a)?],
            Routine::Eigh => algebra.eigh(a)?.into(),
            Routine::Eigvalsh => vec![algebra.eigvalsh(a)?],
            Routine::Inv => vec![algebra.inv(a)?],
            Routine::Lstsq => algebra.lstsq(a, args[1], tolerance)?.into(),
            Routine::Lu => algebra.lu(a)?.into(),
            Routine::MatrixRank => vec![algebra.matrix_rank(a, tolerance)?],
            Routine::Pinv => vec![algebra.pinv(a, tolerance)?],
            Routine::Qr => algebra.qr(a)?.into(),
            Routine::QrComplete => algebra.qr_complete(a)?.into(),
            Routine::QrIndirect => algebra.qr_indirect(a)?.into(),
            Routine::R => vec![algebra.r(a)?],
            Routine::Slogdet => algebra.slogdet(a)?.into(),
            Routine::Solve => vec![algebra.solve(a, args[1])?],
            Routine::SolveLower => vec![algebra.solve_lower(a, args[1])?],
            Routine::SolveUpper => vec![algebra.solve_upper(a, args[1])?],
            Routine::Svd => algebra.svd(a)?.into(),
            Routine::SvdFull => algebra.svd_full(a)?.into(),
            Routine::Svdvals => vec![algebra.svdvals(a)?],
        })
    }
}
