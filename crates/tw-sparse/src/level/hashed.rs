//! Hashed: a table of coordinates per parent, for operands that are only looked up.

use tw_ir::{BinaryOp, Buffer, Error, Result};

use super::{Fibres, LevelCapabilities, LevelFormat, LevelPlace, LevelProperties, Located, PackedLevel, wrong_length};
use crate::loops::{Code, LoopExpr};
use crate::width::index_at;

/// `crd[p * width[0]..][..width[0]]` is the table of parent `p`: a slot holds 0, or a coordinate plus one. The width is a power of two and
/// every table has an empty slot, so that probing ends. A coordinate lies in the first free slot from its hash on.
#[derive(Debug)]
pub struct HashedLevel;

/// Multiplier of Knuth's hash, for 32 bits.
const MULTIPLIER: u64 = 0x9E37_79B1;

fn hash(coordinate: u64, width: u64) -> u64 {
    coordinate.wrapping_mul(MULTIPLIER) & (width - 1)
}

impl LevelFormat for HashedLevel {
    fn name(&self) -> &'static str {
        "hashed"
    }
    fn properties(&self) -> LevelProperties {
        LevelProperties { full: false, ordered: false, unique: true, branchless: false, compact: false }
    }
    fn capabilities(&self) -> LevelCapabilities {
        LevelCapabilities {
            coordinate_iteration: false,
            position_iteration: false,
            locate: true,
            insert: false,
            append: false,
        }
    }
    fn parts(&self) -> &'static [&'static str] {
        &["width", "crd"]
    }
    fn pack(&self, fibres: &Fibres<'_>) -> Result<PackedLevel> {
        let (mut longest, mut run, mut before) = (0u64, 0u64, None);
        for element in fibres.parents.iter().copied().zip(fibres.coordinates.iter().copied()) {
            run = match before {
                Some((parent, _)) if parent != element.0 => 1,
                Some(same) if same == element => run,
                _ => run + 1,
            };
            (longest, before) = (longest.max(run), Some(element));
        }
        let width = (2 * longest).max(2).next_power_of_two();
        let n_positions = super::full_size(fibres.n_parents, width)?;
        let mut crd = vec![0u64; n_positions as usize];
        let mut positions = Vec::with_capacity(fibres.parents.len());
        for (&parent, &coordinate) in fibres.parents.iter().zip(fibres.coordinates) {
            let mut slot = hash(coordinate, width);
            while ![0, coordinate + 1].contains(&crd[(parent * width + slot) as usize]) {
                slot = (slot + 1) & (width - 1);
            }
            crd[(parent * width + slot) as usize] = coordinate + 1;
            positions.push(parent * width + slot);
        }
        Ok(PackedLevel { parts: vec![vec![width], crd], positions, n_positions })
    }
    fn check(&self, parts: &[&Buffer], n_parents: u64, extent: u64) -> Result<u64> {
        if parts[0].len() != 1 {
            return Err(wrong_length(self.name(), "width", parts[0].len(), 1));
        }
        let width = index_at(parts[0], 0);
        if !width.is_power_of_two() {
            return Err(Error::data(format!("the width {width} of a hashed level is not a power of two")));
        }
        let n = super::full_size(n_parents, width)?;
        if parts[1].len() as u64 != n {
            return Err(wrong_length(self.name(), "crd", parts[1].len(), n));
        }
        for parent in 0..n_parents {
            let slot_at = |slot: u64| index_at(parts[1], (parent * width + slot) as usize);
            if (0..width).all(|slot| slot_at(slot) != 0) {
                return Err(Error::data(format!("table {parent} of a hashed level has no empty slot")));
            }
            for slot in (0..width).filter(|&slot| slot_at(slot) != 0) {
                let coordinate = slot_at(slot) - 1;
                super::check_coordinate(self.name(), (parent * width + slot) as usize, coordinate, None, true, extent)?;
                let mut probe = hash(coordinate, width);
                while probe != slot {
                    if [0, coordinate + 1].contains(&slot_at(probe)) {
                        return Err(Error::data(format!(
                            "table {parent} of a hashed level stores coordinate {coordinate} twice or out of reach"
                        )));
                    }
                    probe = (probe + 1) & (width - 1);
                }
            }
        }
        Ok(n)
    }
    fn walk(&self, parts: &[&Buffer], n_parents: u64, _extent: u64, visit: &mut dyn FnMut(u64, u64, u64)) {
        let width = index_at(parts[0], 0);
        for parent in 0..n_parents {
            let mut stored: Vec<(u64, u64)> = (parent * width..(parent + 1) * width)
                .filter_map(|p| Some((index_at(parts[1], p as usize).checked_sub(1)?, p)))
                .collect();
            stored.sort_unstable();
            stored.into_iter().for_each(|(coordinate, p)| visit(parent, coordinate, p));
        }
    }
    fn locate(&self, code: &mut Code, place: &LevelPlace, parent: LoopExpr, at: LoopExpr) -> Option<Located> {
        let (widths, crd) = (place.arrays[0], place.arrays[1]);
        let width = code.bind("width", LoopExpr::load(widths, LoopExpr::int(0)));
        let mask = code.bind("mask", width.clone().minus(LoopExpr::int(1)));
        let table = code.bind("table", parent.times(width));
        let hashed = LoopExpr::binary(BinaryOp::And, at.clone().times(LoopExpr::int(MULTIPLIER as i64)), mask.clone());
        let slot = code.variable("slot", hashed);
        let key = code.bind("key", at.plus(LoopExpr::int(1)));
        let stored = |slot: LoopExpr| LoopExpr::load(crd, table.clone().plus(slot));
        let here = LoopExpr::Local(slot);
        let probing = stored(here.clone()).differs(LoopExpr::int(0)).and(stored(here.clone()).differs(key.clone()));
        code.while_loop(probing, |code| {
            let next = LoopExpr::binary(BinaryOp::And, here.clone().plus(LoopExpr::int(1)), mask.clone());
            code.set(slot, next);
        });
        let position = code.bind("q", table.clone().plus(here));
        let found = LoopExpr::load(crd, position.clone()).equals(key);
        Some(Located { position, found: Some(found) })
    }
}
