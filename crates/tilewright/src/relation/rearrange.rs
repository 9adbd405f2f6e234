//! Operators that look at keys alone: rekey, filter, tile, concat.

use std::collections::BTreeMap;
use std::sync::Arc;

use tw_ir::error::{Blame, Error, Result};
use tw_ir::{Axis, Idx};

use super::keys::{Key, Keys, check_components, display};
use super::view::{block_per_key, index_for, looked_up, moved, position, retiled, var};
use super::{Relation, located, n_tiles};

impl Relation {
    /// The same blocks under other keys. No two may get the same key, and a relation without holes must stay one. The function is called once for
    /// every key, in their order.
    #[track_caller]
    pub fn rekey(&self, new_key: impl Fn(&[u64]) -> Key) -> Result<Relation> {
        located(|| {
            let old = self.keys()?;
            let mut moved: Vec<(Key, u64)> =
                old.iter().enumerate().map(|(at, key)| (new_key(key), at as u64)).collect();
            let arity = moved.first().map_or(self.arity(), |(key, _)| key.len());
            if let Some((key, at)) = moved.iter().find(|(key, _)| key.len() != arity) {
                let (first, other) = (display(&moved[0].0), display(&old[*at as usize]));
                let text = format!("rekey maps {other} to {}, but {} to {first}", display(key), display(&old[0]));
                return Err(Error::source(text).help("all keys of a relation have the same number of components"));
            }
            let is_far = |(key, _): &&(Key, u64)| key.iter().any(|&at| at >= i64::MAX as u64);
            if let Some((key, at)) = moved.iter().find(is_far) {
                let (old, new) = (display(&old[*at as usize]), display(key));
                return Err(Error::source(format!("rekey maps {old} to {new}, which is too far from 0")));
            }
            moved.sort();
            if let Some(pair) = moved.windows(2).find(|pair| pair[0].0 == pair[1].0) {
                let [a, b] = [0, 1].map(|k| display(&old[pair[k].1 as usize]));
                return Err(Error::source(format!("rekey maps both {a} and {b} to key {}", display(&pair[0].0)))
                    .help("aggregate makes one block of several"));
            }
            let (keys, from): (Vec<Key>, Vec<u64>) = moved.into_iter().unzip();
            let keys = Keys::of(arity, keys);
            if let Some(hole) = keys.first_hole().filter(|_| self.is_continuous()) {
                return Err(Error::source(format!("rekey leaves a hole at key {}", display(&hole)))
                    .help("only filter makes holes; every key below the frontier needs a block"));
            }
            let tensor = looked_up(&self.tensor, self.keys.axes().len(), &keys.axes(), &from)?;
            Relation::new(tensor, keys)
        })
    }

    /// The blocks of some keys. The others are not computed. The function is called once for every key, in their order.
    #[track_caller]
    pub fn filter(&self, keeps: impl Fn(&[u64]) -> bool) -> Result<Relation> {
        located(|| {
            let (mut keys, mut from) = (Vec::new(), Vec::new());
            for (at, key) in self.keys()?.into_iter().enumerate() {
                if keeps(&key) {
                    keys.push(key);
                    from.push(at as u64);
                }
            }
            if from.len() as u64 == self.count() {
                return Ok(self.clone());
            }
            let keys = Keys::of(self.arity(), keys);
            // What makes the blocks must not make several at once.
            let n_lead = self.keys.axes().len();
            let blocks = block_per_key(&self.tensor, n_lead)?;
            Relation::new(looked_up(&blocks, n_lead, &keys.axes(), &from)?.selecting(), keys)
        })
    }

    /// Cuts every block along an axis into tiles, whose number is a new last component of the key.
    #[track_caller]
    pub fn tile(&self, axis: usize, tile: u64) -> Result<Relation> {
        located(|| {
            self.check_axis("tile", axis)?;
            let parts = n_tiles("tile", axis, self.bound[axis], tile)?;
            let mut bound = self.bound.clone();
            bound[axis] = tile;
            let lead = self.keys.axes();
            let (keys, mut idx, part) = match &self.keys {
                Keys::Dense(frontier) => {
                    let keys = Keys::Dense([frontier, &[parts][..]].concat());
                    (keys, (0..lead.len()).map(var).collect::<Vec<Idx>>(), var(lead.len()).times(tile as i64))
                }
                Keys::Listed { keys, .. } => {
                    let of_block =
                        |key: &Key| (0..parts).map(|part| [&key[..], &[part]].concat()).collect::<Vec<Key>>();
                    let keys = Keys::of(self.arity() + 1, keys.iter().flat_map(of_block).collect());
                    let table = |entry: fn(i64, i64) -> i64, factor: i64| -> Arc<[i64]> {
                        (0..keys.count() as i64).map(|at| entry(at, parts as i64) * factor).collect()
                    };
                    let (block, part) = (table(|at, n| at / n, 1), table(|at, n| at % n, tile as i64));
                    let at = position(&keys.axes());
                    (keys, vec![at.table(block)], at.table(part))
                }
            };
            let n_lead = keys.axes().len();
            idx.extend((0..bound.len()).map(|k| var(n_lead + k)));
            idx[lead.len() + axis] = idx[lead.len() + axis].plus(&part);
            Relation::new(moved(&self.tensor, idx, &[keys.axes(), bound].concat(), n_lead)?, keys)
        })
    }

    /// Joins blocks along an axis, in the order of a component of the key, which disappears: the inverse of [`Relation::tile`]. None may be missing.
    #[track_caller]
    pub fn concat(&self, component: usize, axis: usize) -> Result<Relation> {
        located(|| {
            check_components("concat", &[component], &self.keys)?;
            self.check_axis("concat", axis)?;
            let (parts, tile) = (self.frontier()[component], self.bound[axis]);
            let without = |key: &[u64]| [&key[..component], &key[component + 1..]].concat();
            let (keys, lead) = match &self.keys {
                Keys::Dense(frontier) => {
                    let keys = Keys::Dense(without(frontier));
                    let part = var(keys.axes().len() + axis).div(tile.max(1) as i64);
                    let mut lead: Vec<Idx> = (0..keys.axes().len()).map(var).collect();
                    lead.insert(component, part);
                    (keys, lead)
                }
                Keys::Listed { keys: old, .. } => {
                    let mut rows: BTreeMap<Key, BTreeMap<u64, u64>> = BTreeMap::new();
                    for (at, key) in old.iter().enumerate() {
                        rows.entry(without(key)).or_default().insert(key[component], at as u64);
                    }
                    for (key, row) in &rows {
                        let gap = row.keys().zip(0..).find(|(part, wanted)| *part != wanted).map(|(_, wanted)| wanted);
                        let gap = gap.or_else(|| (row.len() as u64 != parts).then_some(row.len() as u64));
                        if let Some(part) = gap {
                            let hole = [&key[..component], &[part], &key[component..]].concat();
                            return Err(Error::source(format!(
                                "concat along component {component} finds a hole at key {}",
                                display(&hole)
                            )));
                        }
                    }
                    let places: Vec<u64> = rows.values().flat_map(BTreeMap::values).copied().collect();
                    let keys = Keys::of(self.arity() - 1, rows.into_keys().collect());
                    // Within the axes of the keys and the number of the part.
                    let axes = keys.axes();
                    let part = var(axes.len() + axis).div(tile.max(1) as i64);
                    let mut by: Vec<Idx> = (0..axes.len()).map(var).collect();
                    by.push(part);
                    (keys, vec![index_for(&places, &[axes, vec![parts]].concat()).substitute(&by)])
                }
            };
            let mut bound = self.bound.clone();
            bound[axis] = tile.checked_mul(parts).ok_or_else(|| Error::source("concat of more than can be counted"))?;
            let n_lead = keys.axes().len();
            let mut idx = lead;
            idx.extend((0..bound.len()).map(|k| match k == axis {
                true => var(n_lead + k).modulo(tile.max(1) as i64),
                false => var(n_lead + k),
            }));
            let tensor = moved(&self.tensor, idx, &[keys.axes(), bound].concat(), n_lead)?;
            // Cut as before, so that no block is put together twice.
            let lead = keys.axes().into_iter().map(|n| Axis::uniform(n, 1));
            let cut = tensor
                .shape()?
                .into_iter()
                .skip(n_lead)
                .zip(&self.bound)
                .map(|(n, &tile)| Axis::uniform(n, tile.max(1)));
            Relation::new(retiled(&tensor, lead.chain(cut).collect())?, keys)
        })
    }

    fn check_axis(&self, operation: &str, axis: usize) -> Result<()> {
        let rank = self.bound.len();
        match axis < rank {
            true => Ok(()),
            false => {
                let text = format!("{operation} along axis {axis} of blocks with {rank} axes");
                Err(Error::indices(Blame::Source, text))
            }
        }
    }
}
