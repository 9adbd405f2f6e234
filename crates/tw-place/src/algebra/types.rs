//! Types of relations: everything known without data.

use std::collections::BTreeSet;

/// The distribution of the tuples of a relation over sites.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Spread {
    /// Every tuple is on every site.
    All,
    /// Every tuple is on one site, and tuples that agree in these components of their key are on the same. One
    /// function for all relations takes their values to a site, and it reads them in this order: tuples of two
    /// relations meet only if their orders agree.
    Part(Vec<usize>),
    /// Each tuple is on one unknown site.
    Somewhere,
    /// Every key may be on several sites, with a part of its array on each.
    Partial,
}

impl Spread {
    /// Distributed by these components in key order, as after a shuffle.
    pub(super) fn part(components: &[usize]) -> Spread {
        let components: BTreeSet<usize> = components.iter().copied().collect();
        Spread::Part(components.into_iter().collect())
    }

    /// True if tuples that agree in these components are on one site. That also holds if a subset of them decides the site.
    pub(super) fn is_part_of(&self, components: &[usize]) -> bool {
        matches!(self, Spread::Part(by) if by.iter().all(|k| components.contains(k)))
    }
}

/// The type of a relation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Type {
    /// The smallest vector above all keys.
    pub(super) frontier: Vec<u64>,
    /// The shape of every array.
    pub(super) bound: Vec<u64>,
    /// The distribution of tuples.
    pub(super) spread: Spread,
    /// The keys, if some below the frontier are missing.
    pub(super) keys: Option<BTreeSet<Vec<u64>>>,
}

impl Type {
    /// A relation with all keys below a frontier.
    pub(super) fn new(frontier: &[u64], bound: &[u64], spread: Spread) -> Type {
        Type { frontier: frontier.to_vec(), bound: bound.to_vec(), spread, keys: None }
    }

    /// The exact number of keys.
    pub(super) fn n_keys(&self) -> u64 {
        self.keys.as_ref().map_or_else(|| n_below(&self.frontier), |keys| keys.len() as u64)
    }

    /// Numbers in the arrays of all keys, each counted once.
    pub(super) fn n_floats(&self) -> u64 {
        self.n_floats_of(self.n_keys())
    }

    /// Numbers in the arrays of so many keys.
    pub(super) fn n_floats_of(&self, n_keys: u64) -> u64 {
        n_keys.saturating_mul(n_below(&self.bound))
    }

    /// The keys, enumerated.
    pub(super) fn keys(&self) -> BTreeSet<Vec<u64>> {
        if let Some(keys) = &self.keys {
            return keys.clone();
        }
        let mut keys: BTreeSet<Vec<u64>> = BTreeSet::from([Vec::new()]);
        for &n in &self.frontier {
            keys = keys.iter().flat_map(|key| (0..n).map(|k| [&key[..], &[k]].concat())).collect();
        }
        keys
    }

    /// A relation with these keys.
    pub(super) fn of_keys(keys: BTreeSet<Vec<u64>>, arity: usize, bound: Vec<u64>, spread: Spread) -> Type {
        let above = |k: usize| keys.iter().map(|key| key[k].saturating_add(1)).max().unwrap_or(0);
        let frontier: Vec<u64> = (0..arity).map(above).collect();
        let full = keys.len() as u64 == n_below(&frontier);
        Type { frontier, bound, spread, keys: (!full).then_some(keys) }
    }

    /// The same relation of keys with these components only, each key once.
    pub(super) fn project(&self, components: &[usize]) -> Type {
        let project = |key: &Vec<u64>| components.iter().map(|&k| key[k]).collect::<Vec<u64>>();
        let (bound, spread) = (self.bound.clone(), self.spread.clone());
        match &self.keys {
            // Without tuples there are no keys, whatever the frontier of these components.
            None if self.n_keys() == 0 => Type::of_keys(BTreeSet::new(), components.len(), bound, spread),
            None => Type::new(&components.iter().map(|&k| self.frontier[k]).collect::<Vec<_>>(), &bound, spread),
            Some(keys) => Type::of_keys(keys.iter().map(project).collect(), components.len(), bound, spread),
        }
    }

    /// The number of keys in which these pairs of components are equal.
    pub(super) fn n_agreeing(&self, some: &[usize], others: &[usize]) -> u64 {
        if some.len() != others.len() {
            return 0;
        }
        if let Some(keys) = &self.keys {
            let agrees = |key: &&Vec<u64>| some.iter().zip(others).all(|(&a, &b)| key[a] == key[b]);
            return keys.iter().filter(agrees).count() as u64;
        }
        // Components that must agree have as many values together as the one with fewest.
        let mut first: Vec<usize> = (0..self.frontier.len()).collect();
        for (&a, &b) in some.iter().zip(others) {
            let (from, to) = (first[a].max(first[b]), first[a].min(first[b]));
            first.iter_mut().filter(|at| **at == from).for_each(|at| *at = to);
        }
        let least = |of: usize| (0..first.len()).filter(|&k| first[k] == of).map(|k| self.frontier[k]).min();
        n_below(&(0..first.len()).filter_map(least).collect::<Vec<u64>>())
    }

    /// The first key below the frontier that is missing.
    pub(super) fn first_hole(&self) -> Option<Vec<u64>> {
        // Keys are in order, so the hole is where they and a count first differ. A frontier may be too large to list
        // what is below it.
        let mut expected = vec![0; self.frontier.len()];
        for key in self.keys.as_ref()? {
            if *key != expected {
                break;
            }
            for (at, &n) in expected.iter_mut().zip(&self.frontier).rev() {
                *at += 1;
                if *at < n {
                    break;
                }
                *at = 0;
            }
        }
        Some(expected)
    }
}

/// The number of vectors below a frontier, saturating.
pub(super) fn n_below(frontier: &[u64]) -> u64 {
    match frontier.contains(&0) {
        true => 0,
        false => frontier.iter().fold(1, |n, &extent| n.saturating_mul(extent)),
    }
}
