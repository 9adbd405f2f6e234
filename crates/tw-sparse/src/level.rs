//! Level formats: how one mode of a tensor is stored.
//!
//! The design is that of "Format Abstraction for Sparse Tensor Algebra Compilers" (Chou, Kjolstad, Amarasinghe, OOPSLA 2018). A tensor is a
//! tree with one level per mode; a path from the root to a leaf is one stored element. A level maps a *position* of its parent level to
//! coordinates, each with a position of its own. What a format is like is said by its [`LevelProperties`], what code may do with it by its
//! [`LevelCapabilities`], and how code does it by the methods that emit the loop IR ([`LevelFormat::segment`], [`LevelFormat::coordinate`],
//! [`LevelFormat::locate`]). The host builds, checks and walks a level by the other methods.
//!
//! A new format is one file that implements [`LevelFormat`] and one row of [`LEVELS`]. The lattice, the lowering and the conversions ask
//! properties and capabilities only; they name no format. Output of a format that can neither be appended to nor written by location is
//! assembled as `compressed` and then converted.

use std::fmt::{self, Debug};

use tw_ir::{Buffer, Error, Result};

use crate::loops::{ArrayId, ArrayType, Code, LoopExpr};
use crate::width::IndexWidth;

pub mod banded;
pub mod bitmap;
pub mod compressed;
pub mod dense;
pub mod hashed;
pub mod singleton;

/// What is true of every tensor stored with a format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LevelProperties {
    /// Every coordinate of the extent is stored below every parent.
    pub full: bool,
    /// Coordinates rise with positions below one parent.
    pub ordered: bool,
    /// No coordinate is stored twice below one parent.
    pub unique: bool,
    /// Every parent has exactly one child, at the parent's own position.
    pub branchless: bool,
    /// No position is unused.
    pub compact: bool,
}

/// What code can do with a format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LevelCapabilities {
    /// Walk all coordinates of the extent and locate each.
    pub coordinate_iteration: bool,
    /// Walk a range of positions and read the coordinate of each.
    pub position_iteration: bool,
    /// Find the position of a coordinate without a search of the segment.
    pub locate: bool,
    /// Write coordinates in any order.
    pub insert: bool,
    /// Write coordinates in storage order.
    pub append: bool,
}

/// Elements of a tensor at one level, in storage order: the position of the parent and the coordinate of each.
#[derive(Clone, Copy, Debug)]
pub struct Fibres<'a> {
    /// Number of positions of the parent level.
    pub n_parents: u64,
    /// Extent of the mode.
    pub extent: u64,
    /// Position of the parent of each element; never falls.
    pub parents: &'a [u64],
    /// Coordinate of each element; rises below one parent, or stays where the level may store it twice.
    pub coordinates: &'a [u64],
}

impl Fibres<'_> {
    /// Number of positions if every parent stores the whole extent.
    pub fn full_size(&self) -> Result<u64> {
        full_size(self.n_parents, self.extent)
    }
}

/// Product of a number of parents and an extent, as a number of positions.
pub(crate) fn full_size(n_parents: u64, extent: u64) -> Result<u64> {
    n_parents
        .checked_mul(extent)
        .filter(|&size| size <= MAX_POSITIONS)
        .ok_or_else(|| Error::resource(format!("a level of {n_parents} x {extent} positions is too large")))
}

/// No level has more positions: a guard against extents that no memory holds.
pub const MAX_POSITIONS: u64 = 1 << 40;

/// A level that has been built.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PackedLevel {
    /// The integers of each part, in the order of [`LevelFormat::parts`].
    pub parts: Vec<Vec<u64>>,
    /// The position of each element.
    pub positions: Vec<u64>,
    /// Number of positions of this level.
    pub n_positions: u64,
}

/// The arrays of a level as code names them.
#[derive(Clone, Debug)]
pub struct LevelPlace {
    /// One array per part.
    pub arrays: Vec<ArrayId>,
    /// Extent of the mode.
    pub extent: LoopExpr,
}

/// The positions below a parent, or below a range of parents where a level above is not unique.
#[derive(Clone, Debug)]
pub struct Located {
    /// The position, valid if found.
    pub position: LoopExpr,
    /// Whether the coordinate is stored; `None` if it always is.
    pub found: Option<LoopExpr>,
}

/// How one mode of a tensor is stored.
pub trait LevelFormat: Debug + Send + Sync {
    /// The name in text.
    fn name(&self) -> &'static str;
    /// What is true of it.
    fn properties(&self) -> LevelProperties;
    /// What code can do with it.
    fn capabilities(&self) -> LevelCapabilities;
    /// The names of its arrays.
    fn parts(&self) -> &'static [&'static str];
    /// The element type of an array.
    fn part_type(&self, _part: usize, width: IndexWidth) -> ArrayType {
        ArrayType::Index(width)
    }

    /// Builds the level from elements in storage order.
    fn pack(&self, fibres: &Fibres<'_>) -> Result<PackedLevel>;
    /// Checks every invariant that compiled code relies on, and returns the number of positions. Never reads outside the arrays.
    fn check(&self, parts: &[&Buffer], n_parents: u64, extent: u64) -> Result<u64>;
    /// Calls `visit` with (parent, coordinate, position) for everything stored, in storage order; the level has been checked.
    fn walk(&self, parts: &[&Buffer], n_parents: u64, extent: u64, visit: &mut dyn FnMut(u64, u64, u64));

    /// The range of positions below the parents `from..to`: position iteration. Only branchless levels take more than one parent.
    fn segment(&self, _place: &LevelPlace, _from: LoopExpr, _to: LoopExpr) -> Option<(LoopExpr, LoopExpr)> {
        None
    }
    /// The coordinate at a position below `parent`.
    fn coordinate(&self, _place: &LevelPlace, _parent: &LoopExpr, _position: LoopExpr) -> Option<LoopExpr> {
        None
    }
    /// The array whose ordered run of a segment holds its coordinates, if there is one to search.
    fn sorted_part(&self) -> Option<usize> {
        None
    }
    /// Emits code that finds a coordinate below `parent`.
    fn locate(&self, _code: &mut Code, _place: &LevelPlace, _parent: LoopExpr, _at: LoopExpr) -> Option<Located> {
        None
    }
}

/// A level format, by reference to its one description.
#[derive(Clone, Copy)]
pub struct LevelKind(&'static dyn LevelFormat);

impl LevelKind {
    /// The format that text names.
    pub fn named(name: &str) -> Result<LevelKind> {
        LEVELS.iter().copied().find(|level| level.name() == name).ok_or_else(|| {
            let names: Vec<&str> = LEVELS.iter().map(|level| level.name()).collect();
            Error::source(format!("`{name}` is not a level format")).help(format!("there are {}", names.join(", ")))
        })
    }
}

impl std::ops::Deref for LevelKind {
    type Target = dyn LevelFormat;
    fn deref(&self) -> &(dyn LevelFormat + 'static) {
        self.0
    }
}
impl Debug for LevelKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
impl PartialEq for LevelKind {
    fn eq(&self, other: &LevelKind) -> bool {
        self.name() == other.name()
    }
}
impl Eq for LevelKind {}
impl std::hash::Hash for LevelKind {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.name().hash(state);
    }
}

/// Every coordinate, at the position `parent * extent + coordinate`.
pub const DENSE: LevelKind = LevelKind(&dense::DenseLevel);
/// Stored coordinates in rising order, cut into segments by `pos`.
pub const COMPRESSED: LevelKind = LevelKind(&compressed::CompressedLevel { unique: true });
/// As [`COMPRESSED`], but a coordinate may be stored several times: the first level of a list of coordinates.
pub const COMPRESSED_NONUNIQUE: LevelKind = LevelKind(&compressed::CompressedLevel { unique: false });
/// One coordinate per parent: the further levels of a list of coordinates.
pub const SINGLETON: LevelKind = LevelKind(&singleton::SingletonLevel { unique: true, padded: false });
/// As [`SINGLETON`], where equal runs of coordinates may follow each other.
pub const SINGLETON_NONUNIQUE: LevelKind = LevelKind(&singleton::SingletonLevel { unique: false, padded: false });
/// As [`SINGLETON`]; parents without an element store coordinate 0 and the fill value, as ELLPACK does.
pub const SINGLETON_PADDED: LevelKind = LevelKind(&singleton::SingletonLevel { unique: true, padded: true });
/// A position and a truth value for every coordinate.
pub const BITMAP: LevelKind = LevelKind(&bitmap::BitmapLevel);
/// A run of neighbouring coordinates per parent.
pub const BANDED: LevelKind = LevelKind(&banded::BandedLevel);
/// A table of hashed coordinates per parent.
pub const HASHED: LevelKind = LevelKind(&hashed::HashedLevel);

/// Every level format.
pub const LEVELS: &[LevelKind] = &[
    DENSE,
    COMPRESSED,
    COMPRESSED_NONUNIQUE,
    SINGLETON,
    SINGLETON_NONUNIQUE,
    SINGLETON_PADDED,
    BITMAP,
    BANDED,
    HASHED,
];

/// The error of a part that has the wrong number of elements.
pub(crate) fn wrong_length(level: &str, part: &str, found: usize, expected: u64) -> Error {
    Error::data(format!("`{part}` of a {level} level has {found} elements, not {expected}"))
}

/// Checks that `pos` starts at zero, never falls and has one segment per parent; returns its last element.
pub(crate) fn check_pos(level: &str, pos: &Buffer, n_parents: u64) -> Result<u64> {
    if Some(pos.len() as u64) != n_parents.checked_add(1) {
        return Err(wrong_length(level, "pos", pos.len(), n_parents.saturating_add(1)));
    }
    let mut last = 0;
    for k in 0..pos.len() {
        let next = crate::width::index_at(pos, k);
        if k == 0 && next != 0 {
            return Err(Error::data(format!("`pos` of a {level} level starts at {next}, not at 0")));
        }
        if next < last {
            return Err(Error::data(format!("`pos` of a {level} level falls from {last} to {next} at {k}")));
        }
        last = next;
    }
    Ok(last)
}

/// Checks a coordinate against the extent and the one before it in its segment.
pub(crate) fn check_coordinate(
    level: &str,
    at: usize,
    coordinate: u64,
    before: Option<u64>,
    unique: bool,
    extent: u64,
) -> Result<()> {
    if coordinate >= extent {
        return Err(Error::data(format!(
            "coordinate {coordinate} at position {at} of a {level} level is outside its extent {extent}"
        )));
    }
    match before {
        Some(before) if coordinate < before => Err(Error::data(format!(
            "coordinates of a {level} level are not sorted: {coordinate} follows {before} at position {at}"
        ))),
        Some(before) if unique && coordinate == before => {
            Err(Error::data(format!("a {level} level stores coordinate {coordinate} twice, at position {at}")))
        }
        _ => Ok(()),
    }
}
