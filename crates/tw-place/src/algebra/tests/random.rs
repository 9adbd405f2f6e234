//! Random terms: every rule, at every position, against what terms mean.

use std::collections::BTreeMap;

use super::super::rules::{RULES, rewrites};
use super::super::*;

/// So many times every rule must have been checked.
const LEAST: usize = 40;
const N_TERMS: u64 = 6000;
/// Terms with more keys are slow to evaluate and show nothing that smaller ones do not.
const MOST_KEYS: u64 = 40;

/// Numbers that a seed determines.
struct Draw(u64);

impl Draw {
    fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        (scatter(self.0) % n as u64) as usize
    }

    fn one_in(&mut self, n: usize) -> bool {
        self.below(n) == 0
    }

    /// Some of the numbers below `n`, in any order.
    fn some_of(&mut self, n: usize) -> Vec<usize> {
        let mut chosen: Vec<usize> = (0..n).collect();
        for k in (1..n).rev() {
            chosen.swap(k, self.below(k + 1));
        }
        chosen.truncate(self.below(n + 1));
        chosen
    }
}

fn scatter(number: u64) -> u64 {
    let number = (number ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let number = (number ^ (number >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    number ^ (number >> 31)
}

fn maximum() -> KernelFunction {
    KernelFunction::same_bound("max", |values| values[0].max(values[1]))
}

/// What a map does to arrays: nothing, and what distributes over sums, over products, and over nothing.
fn unary(draw: &mut Draw) -> KernelFunction {
    match draw.below(4) {
        0 => KernelFunction::identity(),
        1 => KernelFunction::same_bound("triple", |values| values[0].wrapping_mul(3))
            .distributing_over(&KernelFunction::add()),
        2 => KernelFunction::same_bound("square", |values| values[0].wrapping_mul(values[0]))
            .distributing_over(&KernelFunction::mul()),
        _ => KernelFunction::same_bound("succ", |values| values[0].wrapping_add(1)),
    }
}

fn binary(draw: &mut Draw) -> KernelFunction {
    match draw.below(3) {
        0 => KernelFunction::add(),
        1 => KernelFunction::mul(),
        _ => KernelFunction::same_bound("sub", |values| values[0].wrapping_sub(values[1])),
    }
}

fn combining(draw: &mut Draw) -> KernelFunction {
    match draw.below(4) {
        0 => maximum(),
        1 => KernelFunction::mul(),
        _ => KernelFunction::add(),
    }
}

fn condition(draw: &mut Draw, reads: &[usize]) -> Predicate {
    // One that nothing fulfils now and then.
    match draw.below(8) {
        0 => Predicate::new("never", reads, |_| false),
        1..4 => Predicate::new("increasing", reads, |key| key.is_sorted()),
        _ => Predicate::new("even", reads, |key| key.iter().sum::<u64>().is_multiple_of(2)),
    }
}

fn arity(term: &RelationTerm) -> usize {
    term.types().unwrap().frontier.len()
}

fn input(draw: &mut Draw) -> RelationTerm {
    let frontier: Vec<u64> = (0..1 + draw.below(3)).map(|_| 1 + draw.below(4) as u64).collect();
    let spread = match draw.below(4) {
        0 => Spread::All,
        1 => Spread::Somewhere,
        _ => Spread::part(&draw.some_of(frontier.len())),
    };
    let name = format!("x{}", draw.below(1 << 30));
    RelationTerm::input(&name, Type::new(&frontier, &[2], spread))
}

fn map(draw: &mut Draw, of: RelationTerm) -> RelationTerm {
    let arity = arity(&of);
    let keys = match draw.below(6) {
        0 => KeyMap::new("reverse", 1, |key| vec![key.iter().rev().copied().collect()]),
        1 => KeyMap::insert(draw.below(arity + 1), 1 + draw.below(3) as u64),
        2 if arity > 0 => KeyMap::new("halve", 1, |key| vec![[&[key[0] / 2, key[0] % 2], &key[1..]].concat()]),
        _ => KeyMap::identity(),
    };
    of.map(keys, unary(draw))
}

fn join(draw: &mut Draw, left: RelationTerm, right: RelationTerm) -> RelationTerm {
    let (of_left, of_right) = (draw.some_of(arity(&left)), draw.some_of(arity(&right)));
    let (on_left, on_right): (Vec<usize>, Vec<usize>) = of_left.into_iter().zip(of_right).unzip();
    let on: Vec<(usize, usize)> = on_left.iter().copied().zip(on_right.iter().copied()).collect();
    let kernel = binary(draw);
    match draw.below(5) {
        0 => left.broadcast().join(right, &on, kernel),
        1 => left.join(right.broadcast(), &on, kernel),
        2 | 3 => left.shuffle(&on_left).join(right.shuffle(&on_right), &on, kernel),
        _ => left.join(right, &on, kernel),
    }
}

fn aggregate(draw: &mut Draw, of: RelationTerm) -> RelationTerm {
    let group = draw.some_of(arity(&of));
    let of = match draw.below(3) {
        0 => of,
        _ => {
            let by: Vec<usize> = draw.some_of(group.len()).into_iter().map(|k| group[k]).collect();
            of.shuffle(&by)
        }
    };
    let around = |draw: &mut Draw| if draw.one_in(4) { unary(draw) } else { KernelFunction::identity() };
    let (before, after) = (around(draw), around(draw));
    RelationTerm::Aggregate { group, before, kernel: combining(draw), after, input: Box::new(of) }
}

/// A term with a type.
fn term(draw: &mut Draw, depth: usize) -> RelationTerm {
    if depth == 0 {
        return input(draw);
    }
    for _ in 0..8 {
        let below = term(draw, depth - 1);
        let made = match draw.below(11) {
            0 | 1 => {
                let reads = draw.some_of(arity(&below));
                below.filter(condition(draw, &reads))
            }
            2..5 => map(draw, below),
            5 | 6 => {
                let other = term(draw, depth / 2);
                join(draw, below, other)
            }
            7 | 8 => aggregate(draw, below),
            9 => {
                let by = draw.some_of(arity(&below));
                below.shuffle(&by)
            }
            _ => below.broadcast(),
        };
        if made.types().is_ok_and(|ty| ty.n_keys() <= MOST_KEYS && ty.frontier.len() <= 4) {
            return made;
        }
    }
    input(draw)
}

/// The keys and arrays of a term. Parts of sums are added up, and what the type of the term says must be so.
pub(super) fn meaning(term: &RelationTerm, sites: SiteSet) -> BTreeMap<Vec<u64>, i64> {
    fn inputs(term: &RelationTerm, sites: SiteSet, found: &mut BTreeMap<String, Tuples>) {
        if let RelationTerm::Input { name, ty } = term {
            let start = name.bytes().fold(sites.seed, |mixed, byte| scatter(mixed ^ byte as u64));
            let value = |key: &[u64]| (key.iter().fold(start, |mixed, &k| scatter(mixed ^ k)) % 201) as i64 - 100;
            found.insert(name.clone(), sites.spread(ty, value));
        }
        term.parts().into_iter().for_each(|part| inputs(part, sites, found));
    }
    let mut tuples = BTreeMap::new();
    inputs(term, sites, &mut tuples);
    let ty = term.types().unwrap();
    let mut arrays: BTreeMap<Vec<u64>, i64> = BTreeMap::new();
    let mut copies: BTreeMap<Vec<u64>, u32> = BTreeMap::new();
    for ((key, site), array) in evaluate(term, &tuples, sites).unwrap() {
        if let Spread::Part(by) = &ty.spread {
            assert_eq!(site, sites.of(by.iter().map(|&k| key[k])), "{term} is not spread as {:?}", ty.spread);
        }
        *copies.entry(key.clone()).or_default() += 1;
        let kernel = term.kernel_of_parts().filter(|_| ty.spread == Spread::Partial);
        let there = arrays.get(&key).copied();
        let whole = match (there, kernel) {
            (Some(there), Some(kernel)) => kernel.value(&[there, array]),
            _ => array,
        };
        assert!(kernel.is_some() || there.is_none_or(|there| there == array), "{term} has two arrays for {key:?}");
        arrays.insert(key, whole);
    }
    let expected_copies = match ty.spread {
        Spread::All => Some(sites.n),
        Spread::Part(_) | Spread::Somewhere => Some(1),
        Spread::Partial => None,
    };
    if let Some(expected) = expected_copies {
        assert!(copies.values().all(|&n| n == expected), "{term} is not spread as {:?}", ty.spread);
    }
    assert_eq!(arrays.keys().cloned().collect::<Vec<_>>(), ty.keys().into_iter().collect::<Vec<_>>(), "keys of {term}");
    arrays
}

#[test]
fn every_rule_keeps_the_meaning_of_random_terms() {
    let mut checked: BTreeMap<&str, usize> = BTreeMap::new();
    for number in 0..N_TERMS {
        let mut draw = Draw(number);
        let depth = 2 + draw.below(4);
        let before = term(&mut draw, depth);
        let made = rewrites(&before);
        let bound = before.types().unwrap().bound;
        for seed in 0..3 {
            let sites = SiteSet { n: 1 + (number % 4) as u32, seed: 1000 * number + seed };
            let expected = meaning(&before, sites);
            for (rule, after) in &made {
                assert_eq!(meaning(after, sites), expected, "term {number}: {rule} makes {after} of {before}");
                assert_eq!(after.types().unwrap().bound, bound, "term {number}: {rule} makes {after} of {before}");
            }
        }
        made.iter().for_each(|(rule, _)| *checked.entry(rule).or_default() += 1);
    }
    for rule in RULES {
        let n = checked.get(rule.name).copied().unwrap_or(0);
        assert!(n >= LEAST, "{} was checked {n} times only: {checked:?}", rule.name);
    }
}
