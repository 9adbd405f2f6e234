//! Functions of blocks, supplied by the user or by a library of factorisations.

use std::collections::BTreeMap;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use super::RoutineLibraryRef;
use crate::array::{Array, ArrayView};
use crate::dense::DenseLibrary;
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::tiling::Axis;
use crate::workflow::BlockShape;

/// A function from blocks to blocks. It must be pure: equal operands give equal results. Engines pass times as i64.
pub trait BlockFunction: Send + Sync {
    /// A name that tells it apart; programs are compared and printed by it.
    fn name(&self) -> &str;
    /// Computes one set of result blocks. Results come in with the right shape and dtype, filled with zeros unless they are [overwritten](BlockFunction::overwrites_results).
    /// Operands are lent for the call, from wherever the engine keeps them.
    fn apply(&self, operands: &[ArrayView<'_>], results: &mut [Array]) -> Result<()>;
    /// As [`BlockFunction::apply`], with a library of linear algebra that the engine has. What a function does with it may show in the last bits
    /// and in the choice between equally good results, as the signs of singular vectors.
    fn apply_by(&self, library: &dyn DenseLibrary, operands: &[ArrayView<'_>], results: &mut [Array]) -> Result<()> {
        let _ = library;
        self.apply(operands, results)
    }
    /// True if every element of the results is written: they may then hold anything before.
    fn overwrites_results(&self) -> bool {
        false
    }
    /// True if it brings in data from outside the program, such as a part of a file: what it makes is then read from an input.
    fn reads_input(&self) -> bool {
        false
    }
    /// Whether a plan that calls it may be needed again. A function made for one call would only be kept alive by a cache of plans,
    /// with all that it holds.
    fn is_lasting(&self) -> bool {
        true
    }
    /// The most bytes that a call allocates for a moment, besides operands and results that lie in row-major order. Budgets count them. What code of the user
    /// allocates is not known.
    fn scratch_bytes(&self, operands: &[BlockShape], results: &[BlockShape]) -> u64 {
        let _ = (operands, results);
        0
    }
}

/// A shared [`BlockFunction`], equal only to itself: two functions may have one name.
#[derive(Clone)]
pub struct FunctionRef(pub Arc<dyn BlockFunction>);

impl fmt::Debug for FunctionRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "FunctionRef({})", self.0.name())
    }
}
impl PartialEq for FunctionRef {
    fn eq(&self, other: &FunctionRef) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}
impl Eq for FunctionRef {}
impl Hash for FunctionRef {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.name().hash(state)
    }
}

/// The role of one axis of an operand for a block function.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum OperandMode {
    /// Cut: each call sees one tile. Axes with the same number move together and must have equally many tiles.
    Grid(u32),
    /// Cut: each call sees the tile that a table names. Stands for as many tiles of length one as the table is long.
    Pick(u32, Arc<[u64]>),
    /// Each call sees the whole axis.
    Whole,
}

impl OperandMode {
    /// The number and the cut it stands for, of an axis that is cut in a way.
    pub fn grid(&self, cut: &Axis) -> Option<(usize, Axis)> {
        match self {
            OperandMode::Grid(g) => Some((*g as usize, cut.clone())),
            OperandMode::Pick(g, table) => Some((*g as usize, Axis::uniform(table.len() as u64, 1))),
            OperandMode::Whole => None,
        }
    }

    /// The tile of the axis that the call with a key sees, unless it sees the whole axis.
    pub fn tile(&self, key: impl Fn(usize) -> u64) -> Option<u64> {
        match self {
            OperandMode::Grid(g) => Some(key(*g as usize)),
            OperandMode::Pick(g, table) => table.get(key(*g as usize) as usize).copied(),
            OperandMode::Whole => None,
        }
    }
}

/// The role of one axis of a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ResultMode {
    /// As long and cut as the operand axes of this number.
    Grid(u32),
    /// This many elements per tile of this number, at least one.
    PerBlock(u32, u64),
    /// Not cut, this long, at least one.
    Whole(u64),
}

/// One result of a block function. Every grid number occurs in exactly one of its modes.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct BlockResult {
    /// Element type.
    pub dtype: DType,
    /// One mode per axis.
    pub modes: Vec<ResultMode>,
}

/// A block function applied over a grid of block keys. Operands with cut axes must have a tiling.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct BlockFn {
    /// The function.
    pub function: FunctionRef,
    /// One list of modes per operand.
    pub operands: Vec<Vec<OperandMode>>,
    /// The results.
    pub results: Vec<BlockResult>,
}

impl BlockFn {
    /// The call with results of physical types: times become what they are stored as.
    pub fn erase_times(&mut self) {
        for result in &mut self.results {
            result.dtype = result.dtype.storage();
        }
    }
}

/// Functions by name, and the algorithms of routines: what parsing a program needs to find the code behind a name.
#[derive(Clone, Default)]
pub struct FunctionTable {
    functions: BTreeMap<String, FunctionRef>,
    routines: Option<RoutineLibraryRef>,
}

impl FunctionTable {
    /// Makes a function known.
    pub fn register(&mut self, function: impl BlockFunction + 'static) -> FunctionRef {
        let function = FunctionRef(Arc::new(function));
        self.functions.insert(function.0.name().to_string(), function.clone());
        function
    }

    /// Makes all functions and routines of another table known that are not known yet.
    pub fn include(&mut self, other: &FunctionTable) {
        for (name, function) in &other.functions {
            self.functions.entry(name.clone()).or_insert_with(|| function.clone());
        }
        self.routines = self.routines.take().or_else(|| other.routines.clone());
    }

    /// Makes the algorithms of routines known.
    pub fn set_routines(&mut self, library: RoutineLibraryRef) {
        self.routines = Some(library);
    }

    /// The algorithms of routines.
    pub fn routines(&self) -> Result<&RoutineLibraryRef> {
        self.routines.as_ref().ok_or_else(|| Error::source("this build has no routines of linear algebra"))
    }

    /// Finds a function.
    pub fn get(&self, name: &str) -> Result<FunctionRef> {
        self.functions.get(name).cloned().ok_or_else(|| {
            Error::source(format!("no block function is called `{name}`")).help("register it with the session first")
        })
    }
}
