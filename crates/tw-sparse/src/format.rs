//! Formats of tensors: a level format per mode, the order in which modes are stored, and the width of indices.

use std::fmt;
use std::str::FromStr;

use tw_ir::{Error, Result};

use crate::level::{COMPRESSED, COMPRESSED_NONUNIQUE, DENSE, LevelKind, SINGLETON, SINGLETON_NONUNIQUE};
use crate::width::IndexWidth;

/// How a tensor is stored. In text: `csr` is `dense, compressed`, its transpose `dense, compressed by 1 0`; 64-bit indices end in `u64`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct TensorFormat {
    levels: Vec<LevelKind>,
    order: Vec<usize>,
    width: IndexWidth,
}

impl TensorFormat {
    /// A format; level `l` stores mode `order[l]`.
    pub fn new(levels: Vec<LevelKind>, order: Vec<usize>, width: IndexWidth) -> Result<TensorFormat> {
        let mut sorted = order.clone();
        sorted.sort_unstable();
        if levels.len() != order.len() || !sorted.iter().enumerate().all(|(k, &mode)| k == mode) {
            return Err(Error::source(format!("the mode order {order:?} does not order {} modes", levels.len())));
        }
        for (l, level) in levels.iter().enumerate() {
            // A run of equal coordinates is a range of positions; only a level that keeps positions goes below it.
            let parent_is_unique = l == 0 || levels[l - 1].properties().unique;
            let branchless = level.properties().branchless;
            if !parent_is_unique && !branchless {
                return Err(Error::source(format!(
                    "level `{}` lies below a level that stores coordinates more than once; only singleton can",
                    level.name()
                )));
            }
            if l == 0 && branchless {
                return Err(Error::source(format!("level `{}` has no level above it to follow", level.name())));
            }
        }
        Ok(TensorFormat { levels, order, width })
    }

    /// A format whose modes are stored in their order, with 32-bit indices.
    pub fn row_major(levels: &[LevelKind]) -> Result<TensorFormat> {
        TensorFormat::new(levels.to_vec(), (0..levels.len()).collect(), IndexWidth::U32)
    }

    /// All levels dense.
    pub fn dense(rank: usize) -> TensorFormat {
        TensorFormat { levels: vec![DENSE; rank], order: (0..rank).collect(), width: IndexWidth::U32 }
    }
    /// All levels compressed.
    pub fn compressed(rank: usize) -> TensorFormat {
        TensorFormat { levels: vec![COMPRESSED; rank], order: (0..rank).collect(), width: IndexWidth::U32 }
    }
    /// A list of coordinates.
    pub fn coordinates(rank: usize) -> TensorFormat {
        let level = |l: usize| match (l, l + 1 == rank) {
            (0, true) => COMPRESSED,
            (0, false) => COMPRESSED_NONUNIQUE,
            (_, true) => SINGLETON,
            (_, false) => SINGLETON_NONUNIQUE,
        };
        TensorFormat { levels: (0..rank).map(level).collect(), order: (0..rank).collect(), width: IndexWidth::U32 }
    }

    /// The same levels with modes stored in another order.
    pub fn with_order(&self, order: Vec<usize>) -> Result<TensorFormat> {
        TensorFormat::new(self.levels.clone(), order, self.width)
    }
    /// The same format with another width.
    pub fn with_width(mut self, width: IndexWidth) -> TensorFormat {
        self.width = width;
        self
    }

    /// The level formats, from the root on.
    pub fn levels(&self) -> &[LevelKind] {
        &self.levels
    }
    /// The mode of each level.
    pub fn order(&self) -> &[usize] {
        &self.order
    }
    /// The width of indices.
    pub fn width(&self) -> IndexWidth {
        self.width
    }
    /// Number of modes.
    pub fn rank(&self) -> usize {
        self.levels.len()
    }
    /// True if all levels are dense.
    pub fn is_dense(&self) -> bool {
        self.levels.iter().all(|level| level.properties().full)
    }
    /// True if an element may be stored more than once.
    pub fn stores_duplicates(&self) -> bool {
        self.levels.last().is_some_and(|level| !level.properties().unique)
    }
}

impl fmt::Display for TensorFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = self.levels.iter().map(|level| level.name()).collect();
        f.write_str(&names.join(", "))?;
        if self.order.iter().enumerate().any(|(k, &mode)| k != mode) {
            let order: Vec<String> = self.order.iter().map(|mode| mode.to_string()).collect();
            write!(f, " by {}", order.join(" "))?;
        }
        if self.width == IndexWidth::U64 { f.write_str(" u64") } else { Ok(()) }
    }
}

impl FromStr for TensorFormat {
    type Err = Error;
    fn from_str(text: &str) -> Result<TensorFormat> {
        let (text, width) = match text.strip_suffix(" u64") {
            Some(rest) => (rest, IndexWidth::U64),
            None => (text, IndexWidth::U32),
        };
        let (levels, order) = match text.split_once(" by ") {
            Some((levels, order)) => (levels, Some(order)),
            None => (text, None),
        };
        let levels = levels.split(',').map(str::trim).filter(|name| !name.is_empty()).map(LevelKind::named);
        let levels: Vec<LevelKind> = levels.collect::<Result<_>>()?;
        let order = match order {
            None => (0..levels.len()).collect(),
            Some(order) => order
                .split_whitespace()
                .map(|mode| mode.parse().map_err(|_| Error::source(format!("`{mode}` is not a mode"))))
                .collect::<Result<_>>()?,
        };
        TensorFormat::new(levels, order, width)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_come_back_from_their_text() {
        for text in ["", "dense, compressed", "compressed(nonunique), singleton by 1 0", "bitmap, hashed, banded u64"] {
            assert_eq!(text.parse::<TensorFormat>().unwrap().to_string(), text);
        }
    }

    #[test]
    fn impossible_formats_are_refused() {
        for text in ["sparse", "dense, dense by 0 0", "compressed(nonunique), compressed", "singleton", "dense by x"] {
            assert!(text.parse::<TensorFormat>().is_err(), "{text}");
        }
    }
}
