//! Routines of linear algebra and their kin: one node of a program until the planner expands them.
//!
//! A routine names what is computed, not how: a pass can differentiate `solve` or move it as a whole. The blocked algorithm behind it, dozens of nodes, is
//! added by the rewrite `expand` of the planner. The algorithm comes from a [`RoutineLibrary`], as the code of a block function comes from a
//! [`FunctionTable`](super::FunctionTable): this crate knows the names, not the algorithms.
//!
//! **Types.** [`RoutineSpec::new`] expands a routine once for the types of its operands and keeps the types of the results, tilings included. The algorithm
//! alone decides them; no second table of shapes has to agree with it.
//!
//! **Operands.** A spec keeps the types that its operands had when it was made. A segment may hold an operand in other blocks, for example because an
//! earlier segment computed it. The algorithm is cut by the declared tiling all the same, so bits do not depend on where segments end.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use super::{Program, SourceOp, TensorType, ValueId, verify_type};
use crate::error::{Error, Result};
use crate::span::Span;

macro_rules! routines {
    ($($(#[$doc:meta])* $variant:ident $name:literal $n_args:literal;)*) => {
        /// A routine with its options. Each is documented at the method of its name of the algorithms in `tw-build`.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Routine {
            $($(#[$doc])* $variant,)*
            /// The largest singular values with their vectors, approximately: U, s and V^H.
            SvdCompressed(Compression),
            /// An unscaled Fourier transform of the fibres along an axis.
            Fourier {
                /// Which way it goes.
                transform: Transform,
                /// Along this axis.
                axis: u32,
                /// Fibres are truncated or zero-padded to this many elements.
                n: u64,
            },
            /// The elements at some ranks along an axis. Arguments: data, and ranks as i64.
            Select {
                /// Along this axis.
                axis: u32,
            },
        }

        impl Routine {
            /// All routines without options.
            pub const PLAIN: &[Routine] = &[$(Routine::$variant),*];

            /// What front ends and texts call it.
            pub fn name(self) -> &'static str {
                match self {
                    $(Routine::$variant => $name,)*
                    Routine::SvdCompressed(_) => "svd_compressed",
                    Routine::Fourier { .. } => "fourier",
                    Routine::Select { .. } => "select",
                }
            }

            /// How many tensors it takes. Those by singular values may take one more; see [`Routine::takes_tolerance`].
            pub fn n_args(self) -> usize {
                match self {
                    $(Routine::$variant => $n_args,)*
                    Routine::SvdCompressed(_) | Routine::Fourier { .. } => 1,
                    Routine::Select { .. } => 2,
                }
            }
        }
    };
}

routines! {
    /// The lower Cholesky factor.
    Cholesky "cholesky" 1;
    /// The determinant.
    Det "det" 1;
    /// Eigenvalues and eigenvectors.
    Eig "eig" 1;
    /// Eigenvalues.
    Eigvals "eigvals" 1;
    /// Eigenvalues and eigenvectors of a self-adjoint matrix.
    Eigh "eigh" 1;
    /// Eigenvalues of a self-adjoint matrix.
    Eigvalsh "eigvalsh" 1;
    /// The inverse.
    Inv "inv" 1;
    /// Least squares.
    Lstsq "lstsq" 2;
    /// Order of rows, L and U.
    Lu "lu" 1;
    /// How many singular values count.
    MatrixRank "matrix_rank" 1;
    /// The pseudoinverse.
    Pinv "pinv" 1;
    /// Q and R.
    Qr "qr" 1;
    /// Square Q and R.
    QrComplete "qr_complete" 1;
    /// Q and R of a tall, well-conditioned matrix.
    QrIndirect "qr_indirect" 1;
    /// R alone.
    R "qr_r" 1;
    /// Direction and logarithm of the determinant.
    Slogdet "slogdet" 1;
    /// Systems of equations.
    Solve "solve" 2;
    /// Systems with a lower triangle.
    SolveLower "solve_lower" 2;
    /// Systems with an upper triangle.
    SolveUpper "solve_upper" 2;
    /// U, s and V^H.
    Svd "svd" 1;
    /// Square U, s and square V^H.
    SvdFull "svd_full" 1;
    /// Singular values.
    Svdvals "svdvals" 1;
}

impl Routine {
    /// The routine without options of a name.
    pub fn named(name: &str) -> Option<Routine> {
        Routine::PLAIN.iter().copied().find(|routine| routine.name() == name)
    }

    /// True if it may take a tolerance, one number per matrix, as a last argument.
    pub fn takes_tolerance(self) -> bool {
        matches!(self, Routine::Lstsq | Routine::MatrixRank | Routine::Pinv)
    }
}

/// How hard a compressed decomposition tries.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Compression {
    /// Singular values that are wanted.
    pub rank: u64,
    /// Further random directions: more of them make it likelier that nothing large is missed.
    pub oversampling: u64,
    /// How often the matrix is applied again, which sharpens slowly decaying values.
    pub iterations: u32,
    /// Decides the directions.
    pub seed: u64,
}

/// Which way a Fourier transform goes. None is scaled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Transform {
    /// Complex numbers to their amplitudes.
    Forward,
    /// Amplitudes to complex numbers.
    Inverse,
    /// Real numbers to the first half of their amplitudes.
    FromReal,
    /// The first half of amplitudes to real numbers.
    ToReal,
}

impl Transform {
    /// All of them.
    pub const ALL: [Transform; 4] = [Transform::Forward, Transform::Inverse, Transform::FromReal, Transform::ToReal];

    /// What front ends and texts call it.
    pub fn name(self) -> &'static str {
        match self {
            Transform::Forward => "forward",
            Transform::Inverse => "inverse",
            Transform::FromReal => "from_real",
            Transform::ToReal => "to_real",
        }
    }

    /// The transform of a name.
    pub fn named(name: &str) -> Option<Transform> {
        Transform::ALL.into_iter().find(|transform| transform.name() == name)
    }
}

/// The algorithms behind routines.
pub trait RoutineLibrary: Send + Sync {
    /// Appends the nodes of a routine to a program that has only its operands, and names its results as outputs, in order. None of the nodes is a
    /// [routine](super::Op::Routine), ends a segment or writes a file.
    fn append(&self, routine: Routine, program: &mut Program, operands: &[ValueId]) -> Result<()>;
}

/// A shared [`RoutineLibrary`], equal only to itself.
#[derive(Clone)]
pub struct RoutineLibraryRef(pub Arc<dyn RoutineLibrary>);

impl RoutineLibraryRef {
    /// A routine as a straight-line program: an input per operand, named `0`, `1`, .., and an output per result.
    pub fn expand(&self, routine: Routine, operands: &[TensorType]) -> Result<Program> {
        let mut program = Program::new();
        let input = |(k, ty): (usize, &TensorType)| {
            let source = SourceOp::Input { name: k.to_string(), ty: ty.clone() };
            program.push_source(source, ty.clone(), &Span::None)
        };
        let values: Vec<ValueId> = operands.iter().enumerate().map(input).collect();
        self.0.append(routine, &mut program, &values)?;
        Ok(program)
    }
}

impl fmt::Debug for RoutineLibraryRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("RoutineLibraryRef")
    }
}
impl PartialEq for RoutineLibraryRef {
    fn eq(&self, other: &RoutineLibraryRef) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}
impl Eq for RoutineLibraryRef {}

/// A routine applied to operands.
#[derive(Clone, Debug)]
pub struct RoutineSpec {
    routine: Routine,
    library: RoutineLibraryRef,
    /// The types that operands had when it was made.
    operands: Vec<TensorType>,
    /// Follow from the rest.
    results: Vec<TensorType>,
}

/// Results follow from the rest.
impl PartialEq for RoutineSpec {
    fn eq(&self, other: &RoutineSpec) -> bool {
        self.routine == other.routine && self.library == other.library && self.operands == other.operands
    }
}
impl Eq for RoutineSpec {}
impl Hash for RoutineSpec {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (self.routine, &self.operands).hash(state);
    }
}

impl RoutineSpec {
    /// A routine for operands of these types, or an error that says why it does not fit them. Every extent must be known.
    pub fn new(routine: Routine, operands: &[&TensorType], library: &RoutineLibraryRef) -> Result<RoutineSpec> {
        let n = routine.n_args();
        if operands.len() != n && !(routine.takes_tolerance() && operands.len() == n + 1) {
            return Err(Error::source(format!("`{}` takes {n} matrices, not {}", routine.name(), operands.len())));
        }
        operands.iter().try_for_each(|ty| verify_type(ty))?;
        let operands: Vec<TensorType> = operands.iter().map(|&ty| ty.clone()).collect();
        let expanded = library.expand(routine, &operands)?;
        let results = expanded.body.results.iter().map(|&value| expanded.ty(value).clone()).collect();
        Ok(RoutineSpec { routine, library: library.clone(), operands, results })
    }

    /// The routine.
    pub fn routine(&self) -> Routine {
        self.routine
    }

    /// The types that operands had when it was made.
    pub fn operands(&self) -> &[TensorType] {
        &self.operands
    }

    /// The types of the results for operands of these types, which must have the dtypes and shapes that the routine was made for.
    pub fn result_types(&self, operands: &[&TensorType]) -> Result<Vec<TensorType>> {
        let fits = operands.len() == self.operands.len()
            && operands.iter().zip(&self.operands).all(|(given, made_for)| given.same_shape(made_for));
        match fits {
            true => Ok(self.results.clone()),
            false => Err(Error::internal(format!("`{}` was made for other operands", self.routine.name()))),
        }
    }

    /// The blocked algorithm; see [`RoutineLibraryRef::expand`].
    pub fn expand(&self) -> Result<Program> {
        self.library.expand(self.routine, &self.operands)
    }

    /// The same routine on operands of the same shapes that are not cut. Up to the sizes that the algorithms take for one task, every factorisation in it
    /// sees its whole matrix.
    pub fn expand_uncut(&self) -> Result<Program> {
        let whole = |ty: &TensorType| TensorType { tiling: None, ..ty.clone() };
        self.library.expand(self.routine, &self.operands.iter().map(whole).collect::<Vec<_>>())
    }
}
