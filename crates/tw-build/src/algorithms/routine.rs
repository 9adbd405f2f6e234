//! The routines by name, for front ends.

use tw_ir::error::{Error, Result};

use super::{Algorithms, Graph};

macro_rules! routines {
    ($($(#[$doc:meta])* $variant:ident $name:literal $n_args:literal -> $n_results:literal;)*) => {
        /// A routine of linear algebra. Each is documented at the method of [`Algorithms`] of its name.
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
    pub fn apply<G: Graph>(self, algorithms: &mut Algorithms<'_, G>, args: &[&G::Value]) -> Result<Vec<G::Value>> {
        let takes_tolerance = matches!(self, Routine::Lstsq | Routine::MatrixRank | Routine::Pinv);
        let n = self.n_args();
        if args.len() != n && !(takes_tolerance && args.len() == n + 1) {
            return Err(Error::source(format!("`{}` takes {n} matrices, not {}", self.name(), args.len())));
        }
        let tolerance = args.get(n).copied();
        let a = args[0];
        Ok(match self {
            Routine::Cholesky => vec![algorithms.cholesky(a)?],
            Routine::Det => vec![algorithms.det(a)?],
            Routine::Eig => algorithms.eig(a)?.into(),
            Routine::Eigvals => vec![algorithms.eigvals(a)?],
            Routine::Eigh => algorithms.eigh(a)?.into(),
            Routine::Eigvalsh => vec![algorithms.eigvalsh(a)?],
            Routine::Inv => vec![algorithms.inv(a)?],
            Routine::Lstsq => algorithms.lstsq(a, args[1], tolerance)?.into(),
            Routine::Lu => algorithms.lu(a)?.into(),
            Routine::MatrixRank => vec![algorithms.matrix_rank(a, tolerance)?],
            Routine::Pinv => vec![algorithms.pinv(a, tolerance)?],
            Routine::Qr => algorithms.qr(a)?.into(),
            Routine::QrComplete => algorithms.qr_complete(a)?.into(),
            Routine::QrIndirect => algorithms.qr_indirect(a)?.into(),
            Routine::R => vec![algorithms.r(a)?],
            Routine::Slogdet => algorithms.slogdet(a)?.into(),
            Routine::Solve => vec![algorithms.solve(a, args[1])?],
            Routine::SolveLower => vec![algorithms.solve_lower(a, args[1])?],
            Routine::SolveUpper => vec![algorithms.solve_upper(a, args[1])?],
            Routine::Svd => algorithms.svd(a)?.into(),
            Routine::SvdFull => algorithms.svd_full(a)?.into(),
            Routine::Svdvals => vec![algorithms.svdvals(a)?],
        })
    }
}
