//! Dense: every coordinate is stored; nothing but values takes memory.

use tw_ir::{Buffer, Result};

use super::{Fibres, LevelCapabilities, LevelFormat, LevelPlace, LevelProperties, Located, PackedLevel, full_size};
use crate::loops::{Code, LoopExpr};

/// The position of coordinate `i` below parent `p` is `p * extent + i`.
#[derive(Debug)]
pub struct DenseLevel;

impl LevelFormat for DenseLevel {
    fn name(&self) -> &'static str {
        "dense"
    }
    fn properties(&self) -> LevelProperties {
        LevelProperties { full: true, ordered: true, unique: true, branchless: false, compact: true }
    }
    fn capabilities(&self) -> LevelCapabilities {
        LevelCapabilities {
            coordinate_iteration: true,
            position_iteration: false,
            locate: true,
            insert: true,
            append: false,
        }
    }
    fn parts(&self) -> &'static [&'static str] {
        &[]
    }
    fn pack(&self, fibres: &Fibres<'_>) -> Result<PackedLevel> {
        let n_positions = fibres.full_size()?;
        let positions = fibres.parents.iter().zip(fibres.coordinates).map(|(p, i)| p * fibres.extent + i).collect();
        Ok(PackedLevel { parts: Vec::new(), positions, n_positions })
    }
    fn check(&self, _parts: &[&Buffer], n_parents: u64, extent: u64) -> Result<u64> {
        full_size(n_parents, extent)
    }
    fn walk(&self, _parts: &[&Buffer], n_parents: u64, extent: u64, visit: &mut dyn FnMut(u64, u64, u64)) {
        for parent in 0..n_parents {
            (0..extent).for_each(|i| visit(parent, i, parent * extent + i));
        }
    }
    fn locate(&self, _code: &mut Code, place: &LevelPlace, parent: LoopExpr, at: LoopExpr) -> Option<Located> {
        Some(Located { position: parent.times(place.extent.clone()).plus(at), found: None })
    }
}
