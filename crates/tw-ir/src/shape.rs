//! Extents and checked shape arithmetic.
//!
//! Shapes come from users and file headers, so every product is checked: a size that does not fit is an error with a message, never a
//! wrapped number.

use std::fmt;

use crate::error::{Error, Result};
use crate::program::ExtentId;

/// The largest rank a tensor may have.
pub const MAX_RANK: usize = 32;

/// The extent of one axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Extent {
    /// Known while planning.
    Known(u64),
    /// Told by data. Exists only in programs and in types of lazy tensors; below them every extent is known.
    Deferred(ExtentId),
}

impl Extent {
    /// The extent if it is known.
    pub fn known(self) -> Option<u64> {
        match self {
            Extent::Known(n) => Some(n),
            Extent::Deferred(_) => None,
        }
    }

    /// Its id, if it is deferred.
    pub fn deferred(self) -> Option<ExtentId> {
        match self {
            Extent::Known(_) => None,
            Extent::Deferred(id) => Some(id),
        }
    }

    /// The extent as a number. If it is deferred, `lacking` says what cannot be done without the number, and the error names the extent
    /// ([`Error::needed_extents`]).
    ///
    /// ```
    /// use tw_ir::{EntityRef, Error, Extent, program::ExtentId};
    /// assert_eq!(Extent::Known(3).require(|| Error::plan("a border")), Ok(3));
    /// let id = ExtentId::new(7);
    /// let error = Extent::Deferred(id).require(|| Error::plan("a border")).unwrap_err();
    /// assert_eq!(error.needed_extents(), [id]);
    /// ```
    pub fn require(self, lacking: impl FnOnce() -> Error) -> Result<u64> {
        match self {
            Extent::Known(n) => Ok(n),
            Extent::Deferred(id) => Err(lacking().needing([id])),
        }
    }
}

impl Extent {
    /// The extent itself, or the number that `known` tells for it.
    pub fn resolve(self, known: &dyn Fn(ExtentId) -> Option<u64>) -> Extent {
        match self {
            Extent::Deferred(id) => known(id).map_or(self, Extent::Known),
            known => known,
        }
    }
}

impl From<u64> for Extent {
    fn from(n: u64) -> Extent {
        Extent::Known(n)
    }
}

impl fmt::Display for Extent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Extent::Known(n) => write!(f, "{n}"),
            Extent::Deferred(id) => write!(f, "{id}"),
        }
    }
}

/// Extents as numbers. Those that are deferred are all named by the error, so that they can be computed together.
pub fn require_all(extents: &[Extent], lacking: impl FnOnce() -> Error) -> Result<Vec<u64>> {
    let known: Option<Vec<u64>> = extents.iter().map(|extent| extent.known()).collect();
    known.ok_or_else(|| lacking().needing(extents.iter().filter_map(|extent| extent.deferred())))
}

/// Checks that two lists of extents are equal. Different ranks and numbers are a mismatch whatever the data; a deferred extent that
/// meets another extent may still be equal to it, so that the error needs both.
pub fn require_equal(a: &[Extent], b: &[Extent], mismatch: impl FnOnce() -> Error) -> Result<()> {
    if a == b {
        return Ok(());
    }
    let differing = || a.iter().zip(b).filter(|(a, b)| a != b);
    if a.len() != b.len() || differing().any(|(a, b)| a.known().is_some() && b.known().is_some()) {
        return Err(mismatch());
    }
    Err(mismatch().needing(differing().flat_map(|(a, b)| [*a, *b]).filter_map(Extent::deferred)))
}

/// A shape as the user would write it, with `?` for extents that depend on data.
pub fn display_extents(shape: &[Extent]) -> String {
    let parts = shape.iter().map(|extent| extent.known().map_or("?".to_string(), |n| n.to_string()));
    format!("[{}]", parts.collect::<Vec<_>>().join(", "))
}

/// The number of elements, or an error that shows the shape.
///
/// The limit is `i64::MAX`, so that any element index also fits into the signed arithmetic of accesses.
///
/// ```
/// use tw_ir::shape::n_elements;
/// assert_eq!(n_elements(&[3, 4]).unwrap(), 12);
/// assert_eq!(n_elements(&[1 << 40, 1 << 40, 0]).unwrap(), 0);
/// assert!(n_elements(&[1 << 40, 1 << 40]).is_err());
/// ```
pub fn n_elements(shape: &[u64]) -> Result<u64> {
    if shape.contains(&0) {
        return Ok(0);
    }
    let mut product: u64 = 1;
    for &extent in shape {
        product = product.checked_mul(extent).filter(|&n| n <= i64::MAX as u64).ok_or_else(|| {
            Error::source(format!("an array of shape {} has more elements than can be counted", display(shape)))
        })?;
    }
    Ok(product)
}

/// The number of bytes of a dense array, or an error that shows the shape.
pub fn n_bytes(shape: &[u64], element_size: u64) -> Result<u64> {
    n_elements(shape)?.checked_mul(element_size).filter(|&n| n <= i64::MAX as u64).ok_or_else(|| {
        Error::source(format!("an array of shape {} has more bytes than can be counted", display(shape)))
    })
}

/// Row-major strides in elements. The shape must have passed [`n_elements`].
pub fn row_major_strides(shape: &[u64]) -> Vec<u64> {
    let mut strides = vec![1; shape.len()];
    for axis in (0..shape.len().saturating_sub(1)).rev() {
        strides[axis] = strides[axis + 1] * shape[axis + 1].max(1);
    }
    strides
}

/// The shape two operands broadcast to, by NumPy's rules.
pub fn broadcast(a: &[u64], b: &[u64]) -> Result<Vec<u64>> {
    let rank = a.len().max(b.len());
    let at = |shape: &[u64], axis: usize| (axis + shape.len()).checked_sub(rank).map_or(1, |k| shape[k]);
    (0..rank)
        .map(|axis| match (at(a, axis), at(b, axis)) {
            (x, y) if x == y => Ok(x),
            (1, y) => Ok(y),
            (x, 1) => Ok(x),
            _ => Err(Error::source(format!("shapes {} and {} do not broadcast together", display(a), display(b)))),
        })
        .collect()
}

/// Splits a row-major position into coordinates.
pub fn unravel(mut position: u64, shape: &[u64]) -> Vec<u64> {
    let mut coords = vec![0; shape.len()];
    for axis in (0..shape.len()).rev() {
        let extent = shape[axis].max(1);
        coords[axis] = position % extent;
        position /= extent;
    }
    coords
}

/// The row-major position of coordinates.
pub fn ravel(coords: &[u64], shape: &[u64]) -> u64 {
    coords.iter().zip(shape).fold(0, |position, (&c, &n)| position * n + c)
}

/// A shape as the user would write it: `[3, 4]`.
pub fn display(shape: &[u64]) -> String {
    let parts: Vec<String> = shape.iter().map(u64::to_string).collect();
    format!("[{}]", parts.join(", "))
}

#[cfg(test)]
mod tests {
    use cranelift_entity::EntityRef;

    use super::*;

    #[test]
    fn only_extents_that_may_be_equal_are_needed() {
        let [a, b] = [1, 2].map(|k| Extent::Deferred(ExtentId::new(k)));
        let (three, four) = (Extent::Known(3), Extent::Known(4));
        let needed = |x: &[Extent], y: &[Extent]| {
            let result = require_equal(x, y, || Error::source("they differ"));
            result.map_err(|error| error.needed_extents().iter().map(|value| value.index()).collect::<Vec<_>>())
        };
        assert_eq!(needed(&[a, three], &[a, three]), Ok(()));
        assert_eq!(needed(&[a], &[b]), Err(vec![1, 2]));
        assert_eq!(needed(&[a, three], &[four, three]), Err(vec![1]));
        assert_eq!(needed(&[a, three], &[b, four]), Err(vec![]), "3 and 4 differ whatever the data");
        assert_eq!(needed(&[a], &[a, a]), Err(vec![]));
        let all = require_all(&[a, three, b], || Error::plan("numbers")).unwrap_err();
        assert_eq!(all.needed_extents().len(), 2);
        assert_eq!(display_extents(&[a, three]), "[?, 3]");
    }
}
