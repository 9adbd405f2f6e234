//! Random sequences of operators.

use tilewright::{Array, Buffer, Relation, RelationKernel, Session};

use crate::reference::{Block, Blocks};
use crate::{check, doubles, elementwise, pair, session};

struct Dice(u64);

impl Dice {
    fn roll(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) % n as u64) as usize
    }

    /// Distinct numbers below `n`, in any order.
    fn some(&mut self, n: usize) -> Vec<usize> {
        let mut all: Vec<usize> = (0..n).collect();
        for k in (1..n).rev() {
            all.swap(k, self.roll(k + 1));
        }
        all.truncate(self.roll(n + 1));
        all
    }
}

/// Blocks may not grow for ever, nor may there be too many, nor numbers that doubles cannot hold.
fn is_small(blocks: &Blocks) -> bool {
    let size: u64 = blocks.bound().unwrap_or_default().iter().product();
    let largest = blocks.0.values().flat_map(|block| &block.values).fold(0.0f64, |most, value| most.max(value.abs()));
    blocks.0.len() <= 60 && size <= 100 && largest < 1e9 && blocks.frontier().is_none_or(|frontier| frontier.len() <= 4)
}

fn step(dice: &mut Dice, session: &Session, relation: &Relation, blocks: &Blocks) -> Option<(Relation, Blocks)> {
    let arity = relation.arity();
    let rank = relation.bound().len();
    let made = match dice.roll(9) {
        0 => {
            let (a, b) = (dice.roll(3) as u64, 1 + dice.roll(4) as u64);
            let keeps =
                move |key: &[u64]| key.iter().enumerate().map(|(k, c)| c * (k as u64 + 1)).sum::<u64>() % b != a;
            (relation.filter(keeps).unwrap(), blocks.filter(keeps))
        }
        1 => {
            let order = dice.some(arity);
            let other: Vec<usize> = (0..arity).filter(|k| !order.contains(k)).collect();
            let flips = dice.roll(2) == 0;
            let frontier = relation.frontier();
            let new_key = |key: &[u64]| {
                let flip = |k: usize| if flips { frontier[k] - 1 - key[k] } else { key[k] };
                order.iter().chain(&other).map(|&k| flip(k)).collect::<Vec<u64>>()
            };
            (relation.rekey(new_key).unwrap(), blocks.rekey(new_key)?)
        }
        2 => {
            let frontier = relation.frontier();
            let new_key = |key: &[u64]| vec![key.iter().zip(&frontier).fold(0, |at, (c, n)| at * n + c)];
            (relation.rekey(new_key).unwrap(), blocks.rekey(new_key)?)
        }
        3 if rank > 0 => {
            let axis = dice.roll(rank);
            let tile =
                [1, 2, 3].into_iter().find(|tile| relation.bound()[axis].is_multiple_of(*tile) && dice.roll(2) == 0)?;
            (relation.tile(axis, tile).unwrap(), blocks.tile(axis, tile))
        }
        4 if rank > 0 && arity > 0 && relation.count() > 0 => {
            let (component, axis) = (dice.roll(arity), dice.roll(rank));
            let joined = blocks.concat(component, axis);
            match (relation.concat(component, axis), joined) {
                (Ok(relation), Some(blocks)) => (relation, blocks),
                (Err(_), None) => return None,
                (found, wanted) => panic!("{found:?} instead of {wanted:?}"),
            }
        }
        5 => {
            let by = dice.some(arity);
            let add = |x: &Block, y: &Block| x.zip(y, |x, y| x + y);
            let kernel = if dice.roll(2) == 0 { "add".into() } else { elementwise("added", |x, y| x + y) };
            match dice.roll(2) {
                0 => (relation.aggregate(&by, kernel).unwrap(), blocks.aggregate(&by, add)),
                _ => {
                    let larger = |x: &Block, y: &Block| x.zip(y, f64::max);
                    (relation.aggregate(&by, "max").unwrap(), blocks.aggregate(&by, larger))
                }
            }
        }
        6 => {
            let (negated, doubled) = (|x: &Block| x.map(|v| -v), |x: &Block| x.map(|v| v + v));
            match dice.roll(3) {
                0 => (relation.transform("neg").unwrap(), blocks.transform(negated)),
                1 => (relation.transform(elementwise("twice", |x, y| x + y)).unwrap(), blocks.transform(doubled)),
                _ if rank == 2 => (relation.transform("ab->ba").unwrap(), blocks.transform(Block::transposed)),
                _ => return None,
            }
        }
        7 => {
            // With itself, in another order of blocks.
            let (left, mut right) = (dice.some(arity), dice.some(arity));
            right.resize_with(left.len().min(right.len()), Default::default);
            let left = &left[..right.len()];
            if dice.roll(2) == 0 || rank != 2 {
                let sub = |x: &Block, y: &Block| x.zip(y, |x, y| x - y);
                let kernel = if dice.roll(2) == 0 { "sub".into() } else { elementwise("minus", |x, y| x - y) };
                (relation.join(relation, left, &right, kernel).unwrap(), blocks.join(blocks, left, &right, sub))
            } else {
                let other = (relation.transform("ab->ba").unwrap(), blocks.transform(Block::transposed));
                (
                    relation.join(&other.0, left, &right, "matmul").unwrap(),
                    blocks.join(&other.1, left, &right, Block::matmul),
                )
            }
        }
        _ => {
            let tiles = relation.bound().to_vec();
            let shape: Vec<u64> = tiles.iter().map(|tile| tile * (1 + dice.roll(3) as u64)).collect();
            let (other, reference) = pair(session, &shape, &tiles, dice.0);
            let n = dice.roll(arity.min(rank) + 1);
            let (mut left, mut right) = (dice.some(arity), dice.some(rank));
            let n = n.min(left.len()).min(right.len());
            left.truncate(n);
            right.truncate(n);
            let mul = |x: &Block, y: &Block| x.zip(y, |x, y| x * y);
            match dice.roll(2) {
                0 => {
                    (relation.join(&other, &left, &right, "mul").unwrap(), blocks.join(&reference, &left, &right, mul))
                }
                _ => {
                    let kernel = elementwise("times", |x, y| x * y);
                    (other.join(relation, &right, &left, kernel).unwrap(), reference.join(blocks, &right, &left, mul))
                }
            }
        }
    };
    Some(made).filter(|(_, blocks)| is_small(blocks))
}

/// A few random operators, applied to relations and to maps of blocks.
pub(crate) fn sequence(session: &Session, seed: u64) -> (Relation, Blocks) {
    let mut dice = Dice(seed * 7919 + 1);
    let shapes: [(&[u64], &[u64]); 4] =
        [(&[6, 8], &[2, 4]), (&[12], &[3]), (&[4, 3, 4], &[2, 3, 2]), (&[4, 4], &[2, 2])];
    let (shape, tiles) = shapes[dice.roll(4)];
    let (mut relation, mut blocks) = pair(session, shape, tiles, seed);
    for _ in 0..6 {
        if let Some(made) = step(&mut dice, session, &relation, &blocks) {
            (relation, blocks) = made;
        }
    }
    (relation, blocks)
}

#[test]
fn random_sequences_agree_with_maps_of_blocks() {
    let session = session();
    for seed in 0..1000 {
        let (relation, blocks) = sequence(&session, seed);
        check(&relation, &blocks);
    }
}

#[test]
fn kernels_may_change_bounds() {
    let session = session();
    let (a, x) = pair(&session, &[6, 8], &[2, 4], 1);
    let row_sums = RelationKernel::function("row_sums", |blocks| {
        let columns = blocks[0].shape()[1] as usize;
        let sums: Vec<f64> = doubles(&blocks[0]).chunks(columns).map(|row| row.iter().sum()).collect();
        Ok(Array::vector(Buffer::F64(sums)))
    });
    let sums = a.transform(row_sums.giving(&[2], tilewright::DType::F64)).unwrap();
    check(&sums, &x.transform(|x| Block::new(&[2], |at| (0..4).map(|k| x.get(&[at[0], k])).sum())));
}
