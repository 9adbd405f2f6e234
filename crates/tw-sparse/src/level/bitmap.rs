//! Bitmap: a position for every coordinate, and whether it is stored.

use tw_ir::{Buffer, DType, Result};

use super::{
    Fibres, LevelCapabilities, LevelFormat, LevelPlace, LevelProperties, Located, PackedLevel, full_size, wrong_length,
};
use crate::loops::{ArrayType, Code, LoopExpr};
use crate::width::{IndexWidth, index_at};

/// Coordinate `i` below parent `p` is stored if `bit[p * extent + i]`.
#[derive(Debug)]
pub struct BitmapLevel;

impl LevelFormat for BitmapLevel {
    fn name(&self) -> &'static str {
        "bitmap"
    }
    fn properties(&self) -> LevelProperties {
        LevelProperties { full: false, ordered: true, unique: true, branchless: false, compact: false }
    }
    fn capabilities(&self) -> LevelCapabilities {
        LevelCapabilities {
            coordinate_iteration: true,
            position_iteration: false,
            locate: true,
            insert: false,
            append: false,
        }
    }
    fn parts(&self) -> &'static [&'static str] {
        &["bit"]
    }
    fn part_type(&self, _part: usize, _width: IndexWidth) -> ArrayType {
        ArrayType::Value(DType::Bool)
    }
    fn pack(&self, fibres: &Fibres<'_>) -> Result<PackedLevel> {
        let n_positions = fibres.full_size()?;
        let mut bits = vec![0u64; n_positions as usize];
        let positions: Vec<u64> =
            fibres.parents.iter().zip(fibres.coordinates).map(|(p, i)| p * fibres.extent + i).collect();
        positions.iter().for_each(|&p| bits[p as usize] = 1);
        Ok(PackedLevel { parts: vec![bits], positions, n_positions })
    }
    fn check(&self, parts: &[&Buffer], n_parents: u64, extent: u64) -> Result<u64> {
        let n = full_size(n_parents, extent)?;
        if parts[0].len() as u64 != n {
            return Err(wrong_length(self.name(), "bit", parts[0].len(), n));
        }
        Ok(n)
    }
    fn walk(&self, parts: &[&Buffer], n_parents: u64, extent: u64, visit: &mut dyn FnMut(u64, u64, u64)) {
        for parent in 0..n_parents {
            for i in 0..extent {
                let p = parent * extent + i;
                if index_at(parts[0], p as usize) != 0 {
                    visit(parent, i, p);
                }
            }
        }
    }
    fn locate(&self, code: &mut Code, place: &LevelPlace, parent: LoopExpr, at: LoopExpr) -> Option<Located> {
        let position = code.bind("q", parent.times(place.extent.clone()).plus(at));
        let found = LoopExpr::load(place.arrays[0], position.clone());
        Some(Located { position, found: Some(found) })
    }
}
