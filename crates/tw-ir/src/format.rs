//! The storage format of a block, per mode.

use std::fmt;

use smallvec::{SmallVec, smallvec};

/// Storage of one mode, given the modes outside it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ModeFormat {
    /// Every coordinate is stored.
    Dense,
    /// Positions and coordinates of what is stored (the columns of CSR).
    Compressed,
    /// One coordinate per position of the mode outside (the later modes of COO).
    Singleton,
}

/// Formats of at most this many axes need no memory of their own. Every type of a tensor has one, and types are cloned for every node.
const INLINE: usize = 8;

/// Storage of a tensor: an order of its axes and one format per mode of that order.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Format {
    /// Axis stored at each level, outermost first.
    pub mode_order: SmallVec<[u8; INLINE]>,
    /// Format of each level.
    pub modes: SmallVec<[ModeFormat; INLINE]>,
}

impl Format {
    /// Row-major dense storage.
    pub fn dense(rank: usize) -> Format {
        Format { mode_order: (0..rank as u8).collect(), modes: smallvec![ModeFormat::Dense; rank] }
    }

    /// True if every element is stored, in whatever order.
    pub fn stores_every_element(&self) -> bool {
        self.modes.iter().all(|m| *m == ModeFormat::Dense)
    }

    /// True for row-major dense storage.
    pub fn is_dense(&self) -> bool {
        self.stores_every_element() && self.mode_order.iter().enumerate().all(|(k, &axis)| k == axis as usize)
    }

    /// True if the mode order is a permutation with one format each.
    pub fn is_valid(&self, rank: usize) -> bool {
        let mut seen = vec![false; rank];
        self.modes.len() == rank
            && self.mode_order.len() == rank
            && self
                .mode_order
                .iter()
                .all(|&axis| seen.get_mut(axis as usize).is_some_and(|s| !std::mem::replace(s, true)))
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parts: Vec<String> = self
            .mode_order
            .iter()
            .zip(&self.modes)
            .map(|(axis, mode)| {
                let name = match mode {
                    ModeFormat::Dense => "dense",
                    ModeFormat::Compressed => "compressed",
                    ModeFormat::Singleton => "singleton",
                };
                format!("{axis}:{name}")
            })
            .collect();
        write!(f, "format({})", parts.join(", "))
    }
}
