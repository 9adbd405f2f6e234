//! Singleton: one coordinate per parent, at the parent's position.

use tw_ir::{Buffer, Error, Result};

use super::{
    Fibres, LevelCapabilities, LevelFormat, LevelPlace, LevelProperties, PackedLevel, check_coordinate, wrong_length,
};
use crate::loops::LoopExpr;
use crate::width::index_at;

/// Coordinate `crd[p]` lies below parent `p`. Whether coordinates of neighbouring positions rise is a matter of the levels above too, so
/// [`Storage::check`](crate::SparseTensor::check) compares whole elements.
#[derive(Debug)]
pub struct SingletonLevel {
    /// Whether an element is stored at most once.
    pub unique: bool,
    /// Whether parents without an element store coordinate 0 with the fill value.
    pub padded: bool,
}

impl LevelFormat for SingletonLevel {
    fn name(&self) -> &'static str {
        match (self.unique, self.padded) {
            (_, true) => "singleton(padded)",
            (true, false) => "singleton",
            (false, false) => "singleton(nonunique)",
        }
    }
    fn properties(&self) -> LevelProperties {
        LevelProperties { full: false, ordered: true, unique: self.unique, branchless: true, compact: !self.padded }
    }
    fn capabilities(&self) -> LevelCapabilities {
        LevelCapabilities {
            coordinate_iteration: false,
            position_iteration: true,
            locate: false,
            insert: false,
            append: !self.padded,
        }
    }
    fn parts(&self) -> &'static [&'static str] {
        &["crd"]
    }
    fn pack(&self, fibres: &Fibres<'_>) -> Result<PackedLevel> {
        let n = fibres.n_parents as usize;
        let (mut crd, mut taken) = (vec![0u64; n], vec![false; n]);
        for (&parent, &coordinate) in fibres.parents.iter().zip(fibres.coordinates) {
            if std::mem::replace(&mut taken[parent as usize], true) {
                return Err(Error::data(format!("position {parent} above a {} level has two elements", self.name()))
                    .help("a singleton stores one; use compressed"));
            }
            crd[parent as usize] = coordinate;
        }
        if !self.padded && taken.contains(&false) {
            return Err(Error::data(format!("a position above a {} level has no element", self.name()))
                .help("use singleton(padded) or compressed"));
        }
        if self.padded && fibres.extent == 0 && n > 0 {
            return Err(Error::data("a singleton(padded) level of extent 0 has no coordinate to pad with"));
        }
        Ok(PackedLevel { parts: vec![crd], positions: fibres.parents.to_vec(), n_positions: fibres.n_parents })
    }
    fn check(&self, parts: &[&Buffer], n_parents: u64, extent: u64) -> Result<u64> {
        if parts[0].len() as u64 != n_parents {
            return Err(wrong_length(self.name(), "crd", parts[0].len(), n_parents));
        }
        for p in 0..parts[0].len() {
            check_coordinate(self.name(), p, index_at(parts[0], p), None, self.unique, extent)?;
        }
        Ok(n_parents)
    }
    fn walk(&self, parts: &[&Buffer], n_parents: u64, _extent: u64, visit: &mut dyn FnMut(u64, u64, u64)) {
        (0..n_parents).for_each(|p| visit(p, index_at(parts[0], p as usize), p));
    }
    fn segment(&self, _place: &LevelPlace, from: LoopExpr, to: LoopExpr) -> Option<(LoopExpr, LoopExpr)> {
        Some((from, to))
    }
    fn coordinate(&self, place: &LevelPlace, _parent: &LoopExpr, position: LoopExpr) -> Option<LoopExpr> {
        Some(LoopExpr::load(place.arrays[0], position))
    }
    fn sorted_part(&self) -> Option<usize> {
        Some(0)
    }
}
