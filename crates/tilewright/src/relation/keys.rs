//! The set of keys of a relation.

use std::sync::Arc;

use tw_ir::error::{Blame, Error, Result};
use tw_ir::shape;

/// The key of a block.
pub type Key = Vec<u64>;

/// Keys are enumerated one by one up to here.
const MOST_KEYS: u64 = 1 << 24;

/// The keys of a relation, in lexicographic order and each once. A set without holes is never stored as a list.
#[derive(Clone, Debug)]
pub(super) enum Keys {
    /// Every key below a frontier. Without any key, the frontier may be other than zero.
    Dense(Vec<u64>),
    /// With holes; the frontier is exact.
    Listed { frontier: Vec<u64>, keys: Arc<[Key]> },
}

impl Keys {
    /// The set of some keys, which must be in order and distinct.
    pub(super) fn of(arity: usize, keys: Vec<Key>) -> Keys {
        let mut frontier = vec![0; arity];
        for key in &keys {
            frontier.iter_mut().zip(key).for_each(|(bound, &at)| *bound = at.saturating_add(1).max(*bound));
        }
        match shape::n_elements(&frontier) {
            Ok(n) if n == keys.len() as u64 => Keys::Dense(frontier),
            _ => Keys::Listed { frontier, keys: keys.into() },
        }
    }

    /// The number of components of a key.
    pub(super) fn arity(&self) -> usize {
        match self {
            Keys::Dense(frontier) | Keys::Listed { frontier, .. } => frontier.len(),
        }
    }

    /// The smallest vector above all keys.
    pub(super) fn frontier(&self) -> Vec<u64> {
        match self {
            Keys::Dense(frontier) if frontier.contains(&0) => vec![0; frontier.len()],
            Keys::Dense(frontier) | Keys::Listed { frontier, .. } => frontier.clone(),
        }
    }

    /// The number of keys.
    pub(super) fn count(&self) -> u64 {
        match self {
            Keys::Dense(frontier) => frontier.iter().fold(1, |n, &extent| n.saturating_mul(extent)),
            Keys::Listed { keys, .. } => keys.len() as u64,
        }
    }

    /// The leading axes of a tensor that holds the blocks.
    pub(super) fn axes(&self) -> Vec<u64> {
        match self {
            Keys::Dense(frontier) => frontier.clone(),
            Keys::Listed { keys, .. } => vec![keys.len() as u64],
        }
    }

    /// All of them, in order.
    pub(super) fn list(&self) -> Result<Vec<Key>> {
        match self {
            Keys::Listed { keys, .. } => Ok(keys.to_vec()),
            Keys::Dense(_) if self.count() > MOST_KEYS => {
                Err(Error::plan(format!("{} keys; at most {MOST_KEYS} are looked at one by one", self.count()))
                    .help("choose larger blocks"))
            }
            Keys::Dense(frontier) => Ok((0..self.count()).map(|at| shape::unravel(at, frontier)).collect()),
        }
    }

    /// The position of a key among all keys.
    pub(super) fn position(&self, key: &[u64]) -> Option<u64> {
        match self {
            Keys::Dense(frontier) => {
                let inside = key.len() == frontier.len() && key.iter().zip(frontier).all(|(at, extent)| at < extent);
                inside.then(|| shape::ravel(key, frontier))
            }
            Keys::Listed { keys, .. } => {
                keys.binary_search_by(|other| other.as_slice().cmp(key)).ok().map(|at| at as u64)
            }
        }
    }

    /// The first key below the frontier that is not there.
    pub(super) fn first_hole(&self) -> Option<Key> {
        let Keys::Listed { frontier, keys } = self else { return None };
        (0..=keys.len() as u64).map(|at| shape::unravel(at, frontier)).find(|key| self.position(key).is_none())
    }

    /// Checks that there are no holes.
    pub(super) fn require_continuous(&self, operation: &str) -> Result<()> {
        match self.first_hole() {
            None => Ok(()),
            Some(key) => Err(Error::source(format!("{operation} of a relation with a hole at key {}", display(&key)))
                .help("every key below the frontier needs a block")),
        }
    }
}

/// Components that an operation names: inside the key, and each once.
pub(super) fn check_components(operation: &str, components: &[usize], keys: &Keys) -> Result<()> {
    let arity = keys.arity();
    for (k, component) in components.iter().enumerate() {
        if *component >= arity {
            let text = format!("{operation} by component {component} of a key with {arity} components");
            return Err(Error::indices(Blame::Source, text));
        }
        if components[..k].contains(component) {
            return Err(Error::source(format!("{operation} names component {component} of the key twice")));
        }
    }
    Ok(())
}

/// A key as both languages write it.
pub(super) fn display(key: &[u64]) -> String {
    match key {
        [only] => format!("({only},)"),
        _ => format!("({})", key.iter().map(u64::to_string).collect::<Vec<_>>().join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_without_holes_is_no_list() {
        let full = Keys::of(2, vec![vec![0, 0], vec![0, 1], vec![1, 0], vec![1, 1]]);
        assert!(matches!(full, Keys::Dense(_)));
        assert_eq!((full.frontier(), full.count(), full.first_hole()), (vec![2, 2], 4, None));
        let holes = Keys::of(2, vec![vec![0, 0], vec![2, 1]]);
        assert_eq!((holes.frontier(), holes.count()), (vec![3, 2], 2));
        assert_eq!(holes.first_hole(), Some(vec![0, 1]));
        assert_eq!(holes.position(&[2, 1]), Some(1));
    }

    #[test]
    fn nothing_has_the_frontier_zero() {
        for keys in [Keys::of(2, Vec::new()), Keys::Dense(vec![0, 7])] {
            assert_eq!((keys.frontier(), keys.count(), keys.first_hole()), (vec![0, 0], 0, None));
        }
        assert_eq!(Keys::of(0, vec![vec![]]).count(), 1);
    }

    #[test]
    fn keys_are_written_as_tuples() {
        assert_eq!([display(&[3]), display(&[1, 2]), display(&[])], ["(3,)", "(1, 2)", "()"]);
    }
}
