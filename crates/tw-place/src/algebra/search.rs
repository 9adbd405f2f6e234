//! The cheapest term among those that the rules reach.

use std::collections::{BTreeMap, BTreeSet};

use tw_ir::error::Result;

use super::cost::wire;
use super::rules::rewrites;
use super::term::RelationTerm;
use super::types::Spread;

/// Why a search ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stop {
    /// There was nothing left to try.
    Exhausted,
    /// The limit of terms was reached.
    Limit,
}

/// The result of a search.
#[derive(Clone, Debug)]
pub(super) struct Found {
    /// The cheapest terms, cheapest first, each with its traffic and the rules that led to it.
    pub(super) best: Vec<(u64, RelationTerm, Vec<&'static str>)>,
    /// The number of terms examined.
    pub(super) tried: usize,
    /// How often each rule produced a new term.
    pub(super) fired: BTreeMap<&'static str, usize>,
    /// Why it ended.
    pub(super) stop: Stop,
}

/// Finds the terms with the least traffic between `sites` sites, cheapest first, and examines at most `limit` terms. Terms are
/// identified by their text; among equal costs, the smaller text comes first. So the result is deterministic.
pub(super) fn search(term: &RelationTerm, sites: u64, limit: usize, keep: usize) -> Result<Found> {
    let mut seen: BTreeSet<String> = BTreeSet::from([term.to_string()]);
    let mut open: BTreeMap<(u64, usize, String), (RelationTerm, Vec<&'static str>)> = BTreeMap::new();
    let mut done: BTreeMap<(u64, usize, String), (RelationTerm, Vec<&'static str>)> = BTreeMap::new();
    let mut fired = BTreeMap::new();
    let key = |term: &RelationTerm, text: String| -> Result<(u64, usize, String)> {
        Ok((wire(term, sites)?, text.len(), text))
    };
    let unfinished = term.types()?.spread == Spread::Partial;
    open.insert(key(term, term.to_string())?, (term.clone(), Vec::new()));
    let stop = loop {
        let Some((place, (term, path))) = open.pop_first() else { break Stop::Exhausted };
        for (rule, made) in rewrites(&term) {
            let text = made.to_string();
            if seen.insert(text.clone()) {
                *fired.entry(rule).or_default() += 1;
                let path = path.iter().copied().chain([rule]).collect();
                open.insert(key(&made, text)?, (made, path));
            }
        }
        done.insert(place, (term, path));
        if done.len() >= limit {
            break if open.is_empty() { Stop::Exhausted } else { Stop::Limit };
        }
    };
    let tried = done.len();
    // Open terms have costs too.
    done.append(&mut open);
    let mut best = Vec::new();
    for ((cost, ..), (term, path)) in done {
        if best.len() == keep {
            break;
        }
        // A sum that is left in parts sends less because it is not finished; it may only lead to others.
        if unfinished || term.types()?.spread != Spread::Partial {
            best.push((cost, term, path));
        }
    }
    Ok(Found { best, tried, fired, stop })
}
