//! Relations as maps from keys to blocks, evaluated at once: what the operators mean.

use std::collections::BTreeMap;

use tilewright::{Array, Key};

/// A block of integers that fit into doubles exactly.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Block {
    pub(crate) shape: Vec<u64>,
    pub(crate) values: Vec<f64>,
}

impl Block {
    pub(crate) fn new(shape: &[u64], mut value: impl FnMut(&[u64]) -> f64) -> Block {
        let n: u64 = shape.iter().product();
        let at = |position| tilewright::ir::shape::unravel(position, shape);
        Block { shape: shape.to_vec(), values: (0..n).map(|position| value(&at(position))).collect() }
    }

    pub(crate) fn of(array: &Array) -> Block {
        Block { shape: array.shape().to_vec(), values: array.to_f64_vec() }
    }

    pub(crate) fn get(&self, at: &[u64]) -> f64 {
        self.values[tilewright::ir::shape::ravel(at, &self.shape) as usize]
    }

    pub(crate) fn zip(&self, other: &Block, f: impl Fn(f64, f64) -> f64) -> Block {
        assert_eq!(self.shape, other.shape);
        let values = self.values.iter().zip(&other.values).map(|(&x, &y)| f(x, y)).collect();
        Block { shape: self.shape.clone(), values }
    }

    pub(crate) fn map(&self, f: impl Fn(f64) -> f64) -> Block {
        Block { shape: self.shape.clone(), values: self.values.iter().map(|&x| f(x)).collect() }
    }

    pub(crate) fn matmul(&self, other: &Block) -> Block {
        let (rows, inner, columns) = (self.shape[0], self.shape[1], other.shape[1]);
        Block::new(&[rows, columns], |at| (0..inner).map(|k| self.get(&[at[0], k]) * other.get(&[k, at[1]])).sum())
    }

    pub(crate) fn transposed(&self) -> Block {
        Block::new(&[self.shape[1], self.shape[0]], |at| self.get(&[at[1], at[0]]))
    }
}

/// A relation.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Blocks(pub(crate) BTreeMap<Key, Block>);

impl Blocks {
    pub(crate) fn of(array: &Block, tiles: &[u64]) -> Blocks {
        let frontier: Vec<u64> = array.shape.iter().zip(tiles).map(|(n, t)| n / t).collect();
        let keys = Block::new(&frontier, |_| 0.0);
        let keys = (0..keys.values.len() as u64).map(|position| tilewright::ir::shape::unravel(position, &frontier));
        let block = |key: &[u64]| {
            Block::new(tiles, |at| {
                let at: Vec<u64> = at.iter().zip(key).zip(tiles).map(|((at, key), tile)| key * tile + at).collect();
                array.get(&at)
            })
        };
        Blocks(keys.map(|key| (key.clone(), block(&key))).collect())
    }

    pub(crate) fn join(
        &self,
        other: &Blocks,
        left: &[usize],
        right: &[usize],
        f: impl Fn(&Block, &Block) -> Block,
    ) -> Blocks {
        let mut joined = BTreeMap::new();
        for (a, x) in &self.0 {
            for (b, y) in &other.0 {
                if left.iter().zip(right).all(|(&l, &r)| a[l] == b[r]) {
                    let rest = (0..b.len()).filter(|k| !right.contains(k)).map(|k| b[k]);
                    joined.insert(a.iter().copied().chain(rest).collect(), f(x, y));
                }
            }
        }
        Blocks(joined)
    }

    pub(crate) fn aggregate(&self, by: &[usize], f: impl Fn(&Block, &Block) -> Block) -> Blocks {
        let mut groups: BTreeMap<Key, Block> = BTreeMap::new();
        for (key, block) in &self.0 {
            let group: Key = by.iter().map(|&k| key[k]).collect();
            let folded = groups.get(&group).map_or_else(|| block.clone(), |before| f(before, block));
            groups.insert(group, folded);
        }
        Blocks(groups)
    }

    pub(crate) fn transform(&self, f: impl Fn(&Block) -> Block) -> Blocks {
        Blocks(self.0.iter().map(|(key, block)| (key.clone(), f(block))).collect())
    }

    /// None if two blocks get one key.
    pub(crate) fn rekey(&self, f: impl Fn(&[u64]) -> Key) -> Option<Blocks> {
        let rekeyed: BTreeMap<Key, Block> = self.0.iter().map(|(key, block)| (f(key), block.clone())).collect();
        (rekeyed.len() == self.0.len()).then_some(Blocks(rekeyed))
    }

    pub(crate) fn filter(&self, f: impl Fn(&[u64]) -> bool) -> Blocks {
        Blocks(self.0.iter().filter(|(key, _)| f(key)).map(|(key, block)| (key.clone(), block.clone())).collect())
    }

    pub(crate) fn tile(&self, axis: usize, tile: u64) -> Blocks {
        let mut tiled = BTreeMap::new();
        for (key, block) in &self.0 {
            let mut shape = block.shape.clone();
            shape[axis] = tile;
            for part in 0..block.shape[axis] / tile {
                let piece = Block::new(&shape, |at| {
                    let mut at = at.to_vec();
                    at[axis] += part * tile;
                    block.get(&at)
                });
                tiled.insert(key.iter().copied().chain([part]).collect(), piece);
            }
        }
        Blocks(tiled)
    }

    /// None if a block is missing.
    pub(crate) fn concat(&self, component: usize, axis: usize) -> Option<Blocks> {
        let parts = self.frontier()?[component];
        let mut rows: BTreeMap<Key, Block> = BTreeMap::new();
        for key in self.0.keys() {
            let mut rest = key.clone();
            rest.remove(component);
            let pieces: Vec<&Block> = (0..parts)
                .map(|part| {
                    let mut key = key.clone();
                    key[component] = part;
                    self.0.get(&key)
                })
                .collect::<Option<_>>()?;
            let mut shape = pieces[0].shape.clone();
            let tile = shape[axis];
            shape[axis] *= parts;
            let whole = Block::new(&shape, |at| {
                let mut inside = at.to_vec();
                inside[axis] %= tile;
                pieces[(at[axis] / tile) as usize].get(&inside)
            });
            rows.insert(rest, whole);
        }
        Some(Blocks(rows))
    }

    /// The smallest vector above all keys, if there are any.
    pub(crate) fn frontier(&self) -> Option<Vec<u64>> {
        let arity = self.0.keys().next()?.len();
        Some((0..arity).map(|k| self.0.keys().map(|key| key[k] + 1).max().unwrap_or(0)).collect())
    }

    pub(crate) fn is_continuous(&self) -> bool {
        self.frontier().is_none_or(|frontier| frontier.iter().product::<u64>() == self.0.len() as u64)
    }

    pub(crate) fn bound(&self) -> Option<Vec<u64>> {
        Some(self.0.values().next()?.shape.clone())
    }
}
