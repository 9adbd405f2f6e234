//! Banded: one run of neighbouring coordinates per parent, as in banded and skyline matrices.

use tw_ir::{Buffer, Error, Result};

use super::{
    Fibres, LevelCapabilities, LevelFormat, LevelPlace, LevelProperties, Located, PackedLevel, check_pos, wrong_length,
};
use crate::loops::{Code, LoopExpr};
use crate::width::index_at;

/// Below parent `p` lie the coordinates `first[p]..first[p] + (pos[p + 1] - pos[p])`. Elements between two stored ones are stored too.
#[derive(Debug)]
pub struct BandedLevel;

impl LevelFormat for BandedLevel {
    fn name(&self) -> &'static str {
        "banded"
    }
    fn properties(&self) -> LevelProperties {
        LevelProperties { full: false, ordered: true, unique: true, branchless: false, compact: false }
    }
    fn capabilities(&self) -> LevelCapabilities {
        LevelCapabilities {
            coordinate_iteration: false,
            position_iteration: true,
            locate: true,
            insert: false,
            append: false,
        }
    }
    fn parts(&self) -> &'static [&'static str] {
        &["pos", "first"]
    }
    fn pack(&self, fibres: &Fibres<'_>) -> Result<PackedLevel> {
        let n = fibres.n_parents as usize;
        let (mut first, mut end) = (vec![0u64; n], vec![0u64; n]);
        for (&parent, &coordinate) in fibres.parents.iter().zip(fibres.coordinates) {
            let p = parent as usize;
            if first[p] == end[p] {
                first[p] = coordinate;
            }
            end[p] = coordinate + 1;
        }
        let mut pos = vec![0u64; n + 1];
        for p in 0..n {
            pos[p + 1] = pos[p] + (end[p] - first[p]);
        }
        super::full_size(pos[n], 1)?;
        let positions =
            fibres.parents.iter().zip(fibres.coordinates).map(|(&p, i)| pos[p as usize] + i - first[p as usize]);
        Ok(PackedLevel { positions: positions.collect(), n_positions: pos[n], parts: vec![pos, first] })
    }
    fn check(&self, parts: &[&Buffer], n_parents: u64, extent: u64) -> Result<u64> {
        let n = check_pos(self.name(), parts[0], n_parents)?;
        if parts[1].len() as u64 != n_parents {
            return Err(wrong_length(self.name(), "first", parts[1].len(), n_parents));
        }
        for p in 0..n_parents as usize {
            let length = index_at(parts[0], p + 1) - index_at(parts[0], p);
            if index_at(parts[1], p).checked_add(length).is_none_or(|end| end > extent) {
                return Err(Error::data(format!("band {p} of a banded level leaves its extent {extent}")));
            }
        }
        Ok(n)
    }
    fn walk(&self, parts: &[&Buffer], n_parents: u64, _extent: u64, visit: &mut dyn FnMut(u64, u64, u64)) {
        for parent in 0..n_parents {
            let (from, to) = (index_at(parts[0], parent as usize), index_at(parts[0], parent as usize + 1));
            let first = index_at(parts[1], parent as usize);
            (from..to).for_each(|p| visit(parent, first + (p - from), p));
        }
    }
    fn segment(&self, place: &LevelPlace, from: LoopExpr, to: LoopExpr) -> Option<(LoopExpr, LoopExpr)> {
        Some((LoopExpr::load(place.arrays[0], from), LoopExpr::load(place.arrays[0], to)))
    }
    fn coordinate(&self, place: &LevelPlace, parent: &LoopExpr, position: LoopExpr) -> Option<LoopExpr> {
        let start = LoopExpr::load(place.arrays[0], parent.clone());
        Some(position.minus(start).plus(LoopExpr::load(place.arrays[1], parent.clone())))
    }
    fn locate(&self, code: &mut Code, place: &LevelPlace, parent: LoopExpr, at: LoopExpr) -> Option<Located> {
        let from = code.bind("q", LoopExpr::load(place.arrays[0], parent.clone()));
        let to = LoopExpr::load(place.arrays[0], parent.clone().plus(LoopExpr::int(1)));
        let position = code.bind("q", from.clone().plus(at.minus(LoopExpr::load(place.arrays[1], parent))));
        let found = position.clone().at_least(from).and(position.clone().less(to));
        Some(Located { position, found: Some(found) })
    }
}
