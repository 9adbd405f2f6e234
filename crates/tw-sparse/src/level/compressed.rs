//! Compressed: the stored coordinates of all parents in one array, cut into segments.

use tw_ir::{Buffer, Result};

use super::{
    Fibres, LevelCapabilities, LevelFormat, LevelPlace, LevelProperties, PackedLevel, check_coordinate, check_pos,
    wrong_length,
};
use crate::loops::LoopExpr;
use crate::width::index_at;

/// Coordinates `crd[pos[p]..pos[p + 1]]` lie below parent `p`.
#[derive(Debug)]
pub struct CompressedLevel {
    /// Whether a coordinate is stored at most once per parent.
    pub unique: bool,
}

impl LevelFormat for CompressedLevel {
    fn name(&self) -> &'static str {
        if self.unique { "compressed" } else { "compressed(nonunique)" }
    }
    fn properties(&self) -> LevelProperties {
        LevelProperties { full: false, ordered: true, unique: self.unique, branchless: false, compact: true }
    }
    fn capabilities(&self) -> LevelCapabilities {
        LevelCapabilities {
            coordinate_iteration: false,
            position_iteration: true,
            locate: false,
            insert: false,
            append: true,
        }
    }
    fn parts(&self) -> &'static [&'static str] {
        &["pos", "crd"]
    }
    fn pack(&self, fibres: &Fibres<'_>) -> Result<PackedLevel> {
        // The array of segments is as long as the parents are many, whatever is stored: their number is bounded by the level above.
        let mut pos = vec![0u64; fibres.n_parents as usize + 1];
        let (mut crd, mut positions) = (Vec::new(), Vec::new());
        let mut before = None;
        for element in fibres.parents.iter().copied().zip(fibres.coordinates.iter().copied()) {
            if !self.unique || before != Some(element) {
                crd.push(element.1);
                pos[element.0 as usize + 1] += 1;
            }
            positions.push(crd.len() as u64 - 1);
            before = Some(element);
        }
        for p in 0..fibres.n_parents as usize {
            pos[p + 1] += pos[p];
        }
        let n_positions = crd.len() as u64;
        Ok(PackedLevel { parts: vec![pos, crd], positions, n_positions })
    }
    fn check(&self, parts: &[&Buffer], n_parents: u64, extent: u64) -> Result<u64> {
        let (pos, crd) = (parts[0], parts[1]);
        let n = check_pos(self.name(), pos, n_parents)?;
        if crd.len() as u64 != n {
            return Err(wrong_length(self.name(), "crd", crd.len(), n));
        }
        for parent in 0..n_parents as usize {
            let mut before = None;
            for p in index_at(pos, parent) as usize..index_at(pos, parent + 1) as usize {
                let coordinate = index_at(crd, p);
                check_coordinate(self.name(), p, coordinate, before, self.unique, extent)?;
                before = Some(coordinate);
            }
        }
        Ok(n)
    }
    fn walk(&self, parts: &[&Buffer], n_parents: u64, _extent: u64, visit: &mut dyn FnMut(u64, u64, u64)) {
        for parent in 0..n_parents {
            for p in index_at(parts[0], parent as usize)..index_at(parts[0], parent as usize + 1) {
                visit(parent, index_at(parts[1], p as usize), p);
            }
        }
    }
    fn segment(&self, place: &LevelPlace, from: LoopExpr, to: LoopExpr) -> Option<(LoopExpr, LoopExpr)> {
        Some((LoopExpr::load(place.arrays[0], from), LoopExpr::load(place.arrays[0], to)))
    }
    fn coordinate(&self, place: &LevelPlace, _parent: &LoopExpr, position: LoopExpr) -> Option<LoopExpr> {
        Some(LoopExpr::load(place.arrays[1], position))
    }
    fn sorted_part(&self) -> Option<usize> {
        Some(1)
    }
}
