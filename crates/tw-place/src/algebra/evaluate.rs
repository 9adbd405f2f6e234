//! The meaning of a term: tuples of key, array and site, with numbers in place of arrays.

use std::collections::BTreeMap;

use tw_ir::error::{Error, Result};

use super::kernel::KernelFunction;
use super::term::RelationTerm;
use super::types::{Spread, Type};

/// Tuples of a relation: an array for keys on sites.
pub(super) type Tuples = BTreeMap<(Vec<u64>, u32), i64>;

/// The sites, and the site function of shuffles.
#[derive(Clone, Copy, Debug)]
pub(super) struct SiteSet {
    /// The number of sites.
    pub(super) n: u32,
    /// The seed of the site function.
    pub(super) seed: u64,
}

impl SiteSet {
    /// The site of values that a shuffle looks at: one function for all shuffles, so that what agrees meets.
    pub(super) fn of(self, values: impl Iterator<Item = u64>) -> u32 {
        let mixed = values.fold(self.seed, |mixed, value| mix(mixed ^ value.wrapping_add(0x9e37_79b9)));
        (mixed % self.n as u64) as u32
    }

    /// The tuples of an input, distributed by its type.
    pub(super) fn spread(self, ty: &Type, value: impl Fn(&[u64]) -> i64) -> Tuples {
        let mut tuples = Tuples::new();
        for key in ty.keys() {
            let array = value(&key);
            match &ty.spread {
                Spread::All => (0..self.n).for_each(|site| {
                    tuples.insert((key.clone(), site), array);
                }),
                Spread::Part(by) => {
                    let site = self.of(by.iter().map(|&k| key[k]));
                    tuples.insert((key, site), array);
                }
                Spread::Somewhere | Spread::Partial => {
                    let site = SiteSet { seed: !self.seed, ..self }.of(key.iter().copied());
                    tuples.insert((key, site), array);
                }
            }
        }
        tuples
    }
}

/// Scatters a number over all of its bits.
fn mix(number: u64) -> u64 {
    let number = (number ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let number = (number ^ (number >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    number ^ (number >> 31)
}

/// Computes a term from its inputs.
pub(super) fn evaluate(term: &RelationTerm, inputs: &BTreeMap<String, Tuples>, sites: SiteSet) -> Result<Tuples> {
    let of = |term: &RelationTerm| evaluate(term, inputs, sites);
    Ok(match term {
        RelationTerm::Input { name, .. } => {
            let input = inputs.get(name).ok_or_else(|| Error::source(format!("the relation `{name}` is missing")))?;
            input.clone()
        }
        RelationTerm::Broadcast(input) => {
            let once: BTreeMap<Vec<u64>, i64> = of(input)?.into_iter().map(|((key, _), array)| (key, array)).collect();
            let everywhere = |(key, array): (Vec<u64>, i64)| (0..sites.n).map(move |site| ((key.clone(), site), array));
            once.into_iter().flat_map(everywhere).collect()
        }
        RelationTerm::Shuffle(by, input) => {
            let mut by = by.clone();
            by.sort_unstable();
            // Parts of one sum meet on one site; copies of one array are simply one.
            let partial = input.types()?.spread == Spread::Partial;
            let kernel = if partial { input.kernel_of_parts() } else { None };
            let mut moved = Tuples::new();
            for ((key, _), array) in of(input)? {
                let site = sites.of(by.iter().map(|&k| key[k]));
                combine(&mut moved, (key, site), array, kernel);
            }
            moved
        }
        RelationTerm::Filter(predicate, input) => {
            of(input)?.into_iter().filter(|((key, _), _)| predicate.holds(key)).collect()
        }
        RelationTerm::Map { keys, kernel, input } => {
            let map = |((key, site), array): ((Vec<u64>, u32), i64)| {
                let array = kernel.value(&[array]);
                keys.keys(&key).into_iter().map(move |key| ((key, site), array)).collect::<Vec<_>>()
            };
            of(input)?.into_iter().flat_map(map).collect()
        }
        RelationTerm::Aggregate { group, before, kernel, after, input } => {
            let mut groups = Tuples::new();
            for ((key, site), array) in of(input)? {
                let key: Vec<u64> = group.iter().map(|&k| key[k]).collect();
                combine(&mut groups, (key, site), before.value(&[array]), Some(kernel));
            }
            groups.into_iter().map(|(key, array)| (key, after.value(&[array]))).collect()
        }
        RelationTerm::Join { on, kernel, left, right } => {
            let (left, right) = (of(left)?, of(right)?);
            let mut joined = Tuples::new();
            for ((l, site), a) in &left {
                for ((r, other), b) in &right {
                    if site == other && on.iter().all(|&(i, j)| l[i] == r[j]) {
                        let rest = r.iter().enumerate().filter(|(k, _)| on.iter().all(|&(_, j)| j != *k));
                        let key = l.iter().copied().chain(rest.map(|(_, &value)| value)).collect();
                        joined.insert((key, *site), kernel.value(&[*a, *b]));
                    }
                }
            }
            joined
        }
    })
}

fn combine(tuples: &mut Tuples, key: (Vec<u64>, u32), array: i64, kernel: Option<&KernelFunction>) {
    match (tuples.get_mut(&key), kernel) {
        (Some(there), Some(kernel)) => *there = kernel.value(&[*there, array]),
        _ => {
            tuples.insert(key, array);
        }
    }
}
