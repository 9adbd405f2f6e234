//! Relations: blocks under keys, with the operators of the tensor relational algebra (Yuan et al., PVLDB 2021).
//!
//! A relation maps keys (vectors of natural numbers) to blocks of one shape and type. It is lazy, like a [`Tensor`]: operators check keys and types at the call and
//! add statements to the same graph as operations on tensors. So the planner sees ordinary statements; each key becomes one block and, where a statement computes it,
//! one task.
//!
//! # Representation
//!
//! - **Dense keys.** If every key below the frontier exists, the relation is a tensor of shape `frontier ++ bound`, and key components are leading axes. A join with an
//!   einsum kernel is an einsum with a letter per key component; an aggregate is a reduction along components. A join with a product kernel followed by an aggregate of the
//!   same operation becomes one contraction (the rewrite `nested` of `tw-plan`).
//! - **Keys with holes.** Otherwise the keys are a sorted list, and the tensor has one leading axis: the position in that list. Operators are then statements that look
//!   positions up in tables (`Term::Table`) and calls of block functions that pick tiles (`OperandMode::Pick`). Lowering cuts the variables of a table into single values,
//!   and a block without readers has no task, so blocks that a filter removes are neither computed nor stored.
//! - A list without holes becomes axes again. So a relation has one form, and its frontier and count are exact.
//!
//! # Integrity
//!
//! A relation never has two blocks for one key. Only `rekey` and `filter` enumerate keys. `rekey` refuses collisions, and it refuses holes in a relation that had none.
//! `filter` may create holes. `concat` and `to_array` refuse them. Errors name the key.
//!
//! # Kernels
//!
//! A kernel with a name becomes scalar code; any other kernel is a function of blocks. An aggregating function is applied as a balanced tree in key order: it must be
//! associative, but need not commute.
//!
//! # Files
//!
//! `keys` holds the set of keys, `join` and `aggregate` their operators, `rearrange` the operators that only look at keys, `view` the statements that only move blocks.
//!
//! # Rejected
//!
//! - One tensor per dense part of a relation with holes: a random filter would create as many nodes as keys.
//! - Gathers by index tensors: the planner could not see which blocks they read.
//! - Compiling relations to terms of the implementation algebra before planning. Relations are programs like any other: `explain` derives the terms
//!   of their placed statements (`tw_place::Placed::terms`).

use std::panic::Location;

use tw_build::SliceItem;
use tw_ir::error::{Blame, Error, Result};
use tw_ir::program::OperandMode;
use tw_ir::{Array, Axis, DType};

use crate::tensor::{Tensor, at_span, span_of};

mod aggregate;
mod join;
mod kernel;
mod keys;
mod rearrange;
mod view;

pub use kernel::RelationKernel;
pub use keys::Key;

use kernel::{KeyedOperand, Kind};
use keys::{Keys, display};
use view::{moved, retiled, var};

/// Blocks of one bound and type under keys.
///
/// ```
/// use tilewright::{Relation, Session};
///
/// let session = Session::builder().threads(2).build();
/// let a = session.random_normal(&[60, 80], 1)?;
/// let b = session.random_normal(&[80, 40], 2)?;
/// let left = Relation::of(&a, &[20, 20])?;                // 3 x 4 blocks of 20 x 20
/// let right = Relation::of(&b, &[20, 20])?;
/// let product = left.join(&right, &[1], &[0], "matmul")?; // keys (i, k, j)
/// assert_eq!((product.frontier(), product.count()), (vec![3, 4, 2], 24));
/// let product = product.aggregate(&[0, 2], "add")?;       // keys (i, j)
/// let difference = product.to_array(None)?.sub(&a.matmul(&b)?)?;
/// assert!(difference.abs()?.max(None)?.item()?.as_f64() < 1e-12);
/// # Ok::<(), tilewright::Error>(())
/// ```
#[derive(Clone)]
pub struct Relation {
    /// The axes of the keys (see [`Keys::axes`]), then those of the blocks.
    tensor: Tensor,
    keys: Keys,
    bound: Vec<u64>,
}

/// Runs an operator; what it makes, and its errors, name the line of the caller.
#[track_caller]
fn located<T>(operator: impl FnOnce() -> Result<T>) -> Result<T> {
    let span = span_of(Location::caller());
    at_span(span, operator).map_err(|error| error.at(&span))
}

impl Relation {
    fn new(tensor: Tensor, keys: Keys) -> Result<Relation> {
        let bound = tensor.shape()?[keys.axes().len()..].to_vec();
        Ok(Relation { tensor, keys, bound })
    }

    /// The tiles of an array, under their coordinates. Tiles must divide the axes.
    #[track_caller]
    pub fn of(array: &Tensor, tiles: &[u64]) -> Result<Relation> {
        located(|| {
            let extents = array.shape()?;
            if tiles.len() != extents.len() {
                let (n, rank) = (tiles.len(), extents.len());
                return Err(Error::source(format!("{n} tile lengths for an array with {rank} axes")));
            }
            let parts: Vec<u64> = extents
                .iter()
                .zip(tiles)
                .enumerate()
                .map(|(axis, (&n, &t))| n_tiles("a relation", axis, n, t))
                .collect::<Result<_>>()?;
            // An array without a tiling is computed in these tiles.
            let grid = extents.iter().zip(tiles).map(|(&n, &t)| Axis::uniform(n, t)).collect();
            let array = if array.ty().tiling.is_none() { retiled(array, grid)? } else { array.clone() };
            let rank = tiles.len();
            let idx = (0..rank).map(|axis| var(axis).times(tiles[axis] as i64).plus(&var(rank + axis))).collect();
            let blocks = moved(&array, idx, &[&parts, tiles].concat(), rank)?;
            Relation::new(blocks, Keys::Dense(parts))
        })
    }

    /// The smallest vector above all keys.
    pub fn frontier(&self) -> Vec<u64> {
        self.keys.frontier()
    }
    /// Extents of every block.
    pub fn bound(&self) -> &[u64] {
        &self.bound
    }
    /// The number of keys.
    pub fn count(&self) -> u64 {
        self.keys.count()
    }
    /// The keys, in order.
    pub fn keys(&self) -> Result<Vec<Key>> {
        self.keys.list()
    }
    /// The number of components of a key.
    pub fn arity(&self) -> usize {
        self.keys.arity()
    }
    /// Element type of the blocks.
    pub fn dtype(&self) -> DType {
        self.tensor.dtype()
    }
    /// True if every key below the frontier has a block.
    pub fn is_continuous(&self) -> bool {
        matches!(self.keys, Keys::Dense(_))
    }

    /// The tensor that holds the blocks, to explain, persist or compute it: the axes of the key, or one axis of positions in [`Relation::keys`] if there
    /// are holes, then those of a block.
    pub fn tensor(&self) -> &Tensor {
        &self.tensor
    }

    /// The block of a key.
    #[track_caller]
    pub fn block(&self, key: &[u64]) -> Result<Tensor> {
        located(|| {
            let missing =
                || Error::indices(Blame::Source, format!("the relation has no block for key {}", display(key)));
            let position = self.keys.position(key).ok_or_else(missing)?;
            let coordinates = tw_ir::shape::unravel(position, &self.keys.axes());
            let items: Vec<SliceItem> = coordinates.into_iter().map(|at| SliceItem::Index(at as i64)).collect();
            Ok(self.tensor.slice(&items)?.selecting())
        })
    }

    /// True if there is a block for a key.
    pub fn contains(&self, key: &[u64]) -> bool {
        self.keys.position(key).is_some()
    }

    /// Computes all blocks.
    pub fn compute(&self) -> Result<Vec<(Key, Array)>> {
        let all = self.tensor.compute()?;
        let size = self.bound.iter().product::<u64>() as usize;
        let block = |(k, key): (usize, Key)| {
            let part = all.data().slice(k * size, size);
            let part = part.ok_or_else(|| Error::internal("a relation without a block"))?;
            Ok((key, Array::new(self.bound.clone(), part.to_buffer())?.with_dtype(all.dtype())?))
        };
        self.keys()?.into_iter().enumerate().map(block).collect()
    }

    /// The same keys with other blocks.
    #[track_caller]
    pub fn transform(&self, kernel: impl Into<RelationKernel>) -> Result<Relation> {
        let kernel = kernel.into();
        located(|| {
            let lead = self.keys.axes().len();
            let tensor = match &kernel.0 {
                Kind::Unary(op) => self.tensor.unary(*op)?,
                Kind::WithScalar(op, value) => self.tensor.binary_scalar(*op, *value)?,
                Kind::Cast(dtype) => self.tensor.cast(*dtype)?,
                Kind::Reduce(kind, axes) => {
                    let axes = axes.clone().unwrap_or_else(|| (0..self.bound.len()).collect());
                    if let Some(axis) = axes.iter().find(|&&axis| axis >= self.bound.len()) {
                        let text = format!("transform along axis {axis} of blocks with {} axes", self.bound.len());
                        return Err(Error::indices(Blame::Source, text));
                    }
                    let axes: Vec<usize> = axes.into_iter().map(|axis| lead + axis).collect();
                    self.tensor.reduce(*kind, Some(&axes), false)?
                }
                Kind::Einsum(spec) => join::einsum_over_keys(spec, &[(&self.tensor, &join::labels(lead))], lead)?,
                Kind::Function(function) => {
                    let modes = (0..lead as u32).map(OperandMode::Grid).collect();
                    function.apply("transform", &[KeyedOperand { tensor: &self.tensor, lead: modes }], lead)?
                }
                Kind::Binary(op) => {
                    // The smallest element of a block, where two blocks would have a smaller one of each pair.
                    let kind = tw_build::Reduction::named(op.name());
                    let kind = kind.ok_or_else(|| kernel.unfit("transform", "kernels of one block"))?;
                    return self.transform(RelationKernel(Kind::Reduce(kind, None)));
                }
                Kind::Unknown(_) => return Err(kernel.unfit("transform", "kernels of one block")),
            };
            Relation::new(tensor, self.keys.clone())
        })
    }

    /// The array whose tiles the blocks are: component d of the key counts tiles along axis d of a block, or along `axes[d]`. There must be a block for
    /// every key below the frontier.
    #[track_caller]
    pub fn to_array(&self, axes: Option<&[usize]>) -> Result<Tensor> {
        located(|| {
            let (arity, rank) = (self.arity(), self.bound.len());
            let axes = axes.map_or_else(|| (0..arity).collect(), <[usize]>::to_vec);
            let fits = axes.len() == arity && axes.iter().all(|&axis| axis < rank);
            if !fits || (1..axes.len()).any(|k| axes[..k].contains(&axes[k])) {
                return Err(Error::source(format!(
                    "to_array of keys with {arity} components and blocks with {rank} axes, component by component along axes {axes:?}"
                ))
                .help("aggregate or concat first, so that every component has an axis of its own"));
            }
            self.keys.require_continuous("to_array")?;
            let Keys::Dense(parts) = &self.keys else { return Err(Error::internal("a list without holes")) };
            let parts_along =
                |axis: usize| axes.iter().position(|&a| a == axis).map_or(1, |component| parts[component]);
            let quotients = axes.iter().map(|&axis| var(axis).div(self.bound[axis].max(1) as i64));
            let remainders = (0..rank).map(|axis| match axes.contains(&axis) {
                true => var(axis).modulo(self.bound[axis].max(1) as i64),
                false => var(axis),
            });
            let idx = quotients.chain(remainders).collect();
            let to: Vec<u64> = (0..rank).map(|axis| self.bound[axis] * parts_along(axis)).collect();
            let array = moved(&self.tensor, idx, &to, 0)?;
            retiled(&array, to.iter().zip(&self.bound).map(|(&n, &tile)| Axis::uniform(n, tile.max(1))).collect())
        })
    }
}

impl std::fmt::Debug for Relation {
    /// Keys, bound and type; never computes.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (frontier, n, dtype) = (display(&self.frontier()), self.count(), self.dtype());
        write!(f, "Relation({n} keys below {frontier}, blocks {dtype}{})", tw_ir::shape::display(&self.bound))
    }
}

/// How many tiles of length `t` an axis has, if that comes out even.
fn n_tiles(what: &str, axis: usize, n: u64, t: u64) -> Result<u64> {
    if t == 0 || !n.is_multiple_of(t) {
        return Err(Error::source(format!("{what} of tiles of {t} along axis {axis}, which has {n} elements"))
            .help("the length of a tile must divide that of the axis"));
    }
    Ok(n / t)
}
