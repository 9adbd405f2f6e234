//! The equivalence rules of the paper, by name.
//!
//! Equal keys and arrays are not enough where a local operator follows: it also matters where tuples are. So a rewrite
//! of a part is only taken if the whole term still has a type ([`RelationTerm::types`] checks that local operators find
//! together what they need). A whole sum may become one that is left in parts, which are to be shuffled and aggregated
//! before they are the same arrays.

use super::kernel::KeyMap;
use super::term::RelationTerm;
use super::types::Spread;

/// A rule: a name, and its rewrites of a term at the root.
pub(super) struct Rule {
    /// The name in the paper.
    pub(super) name: &'static str,
    /// The rewritten terms; none if the rule does not apply.
    pub(super) apply: fn(&RelationTerm) -> Vec<RelationTerm>,
}

/// All rules.
pub(super) const RULES: &[Rule] = &[
    Rule { name: "R1-1", apply: merge_filters },
    Rule { name: "R1-2", apply: merge_maps },
    Rule { name: "R1-3", apply: exchange_map_and_filter },
    Rule { name: "R1-4", apply: map_into_aggregate },
    Rule { name: "R1-5", apply: filter_below_aggregate },
    Rule { name: "R1-6", apply: filter_into_join },
    Rule { name: "R1-7", apply: map_into_join },
    Rule { name: "R2-1", apply: last_repartition_wins },
    Rule { name: "R2-2", apply: exchange_repartition_and_filter },
    Rule { name: "R2-3", apply: exchange_repartition_and_map },
    Rule { name: "R2-4", apply: drop_shuffle_before_aggregate },
    Rule { name: "R2-5", apply: aggregate_in_two_phases },
    Rule { name: "R2-6", apply: exchange_ways_to_join },
    Rule { name: "R2-7", apply: drop_shuffle_over_join },
];

/// All well-typed terms that one rule makes of a term, at its root or inside.
pub(super) fn rewrites(term: &RelationTerm) -> Vec<(&'static str, RelationTerm)> {
    let mut found = inside(term);
    found.retain(|(_, term)| term.types().is_ok());
    found
}

fn inside(term: &RelationTerm) -> Vec<(&'static str, RelationTerm)> {
    let at_root = |rule: &'static Rule| (rule.apply)(term).into_iter().map(|made| (rule.name, made));
    let mut found: Vec<_> = RULES.iter().flat_map(at_root).collect();
    for (number, part) in term.parts().into_iter().enumerate() {
        found.extend(inside(part).into_iter().map(|(name, part)| (name, term.with_part(number, part))));
    }
    found
}

/// Two filters are one.
fn merge_filters(term: &RelationTerm) -> Vec<RelationTerm> {
    match term {
        RelationTerm::Filter(outer, input) => match &**input {
            RelationTerm::Filter(inner, input) => vec![RelationTerm::Filter(outer.and(inner), input.clone())],
            _ => Vec::new(),
        },
        _ => Vec::new(),
    }
}

/// Two maps that give one tuple for each are one.
fn merge_maps(term: &RelationTerm) -> Vec<RelationTerm> {
    match term {
        RelationTerm::Map { keys, kernel, input } => match &**input {
            RelationTerm::Map { keys: inner_keys, kernel: inner, input }
                if keys.arity() == 1 && inner_keys.arity() == 1 =>
            {
                vec![RelationTerm::Map {
                    keys: keys.after(inner_keys),
                    kernel: kernel.after(inner),
                    input: input.clone(),
                }]
            }
            _ => Vec::new(),
        },
        _ => Vec::new(),
    }
}

/// A map that leaves keys alone and a filter may change places.
fn exchange_map_and_filter(term: &RelationTerm) -> Vec<RelationTerm> {
    match term {
        RelationTerm::Map { keys, kernel, input } if keys.is_identity() => match &**input {
            RelationTerm::Filter(predicate, input) => {
                vec![(**input).clone().map(KeyMap::identity(), kernel.clone()).filter(predicate.clone())]
            }
            _ => Vec::new(),
        },
        RelationTerm::Filter(predicate, input) => match &**input {
            RelationTerm::Map { keys, kernel, input } if keys.is_identity() => {
                vec![(**input).clone().filter(predicate.clone()).map(KeyMap::identity(), kernel.clone())]
            }
            _ => Vec::new(),
        },
        _ => Vec::new(),
    }
}

/// A map of arrays is done by the aggregate before it, on the results, or on what goes in if it distributes. Parts of
/// sums are not results yet.
fn map_into_aggregate(term: &RelationTerm) -> Vec<RelationTerm> {
    let RelationTerm::Map { keys, kernel: map, input } = term else { return Vec::new() };
    let RelationTerm::Aggregate { group, before, kernel, after, input: below } = &**input else { return Vec::new() };
    let whole = input.types().is_ok_and(|ty| ty.spread != Spread::Partial);
    if !keys.is_identity() {
        return Vec::new();
    }
    let mut made = Vec::new();
    let aggregate = |before, after| RelationTerm::Aggregate {
        group: group.clone(),
        before,
        kernel: kernel.clone(),
        after,
        input: below.clone(),
    };
    if whole {
        made.push(aggregate(before.clone(), map.after(after)));
    }
    if after.is_identity() && map.distributes_over(kernel) {
        made.push(aggregate(map.after(before), after.clone()));
    }
    made
}

/// A filter by what an aggregate keeps is done before it.
fn filter_below_aggregate(term: &RelationTerm) -> Vec<RelationTerm> {
    let RelationTerm::Filter(predicate, input) = term else { return Vec::new() };
    let RelationTerm::Aggregate { group, before, kernel, after, input } = &**input else { return Vec::new() };
    let Some(below) = predicate.moved(|k| group.get(k).copied()) else { return Vec::new() };
    vec![RelationTerm::Aggregate {
        group: group.clone(),
        before: before.clone(),
        kernel: kernel.clone(),
        after: after.clone(),
        input: Box::new((**input).clone().filter(below)),
    }]
}

/// A filter by components of the join is done on both sides.
fn filter_into_join(term: &RelationTerm) -> Vec<RelationTerm> {
    let RelationTerm::Filter(predicate, input) = term else { return Vec::new() };
    let RelationTerm::Join { on, kernel, left, right } = &**input else { return Vec::new() };
    if !predicate.reads().iter().all(|k| on.iter().any(|(l, _)| l == k)) {
        return Vec::new();
    }
    let there = predicate.moved(|k| on.iter().find(|(l, _)| *l == k).map(|(_, r)| *r));
    let Some(there) = there else { return Vec::new() };
    vec![(**left).clone().filter(predicate.clone()).join((**right).clone().filter(there), on, kernel.clone())]
}

/// A map of arrays is done by the join before it, or on both sides if it distributes over what the join does.
fn map_into_join(term: &RelationTerm) -> Vec<RelationTerm> {
    let RelationTerm::Map { keys, kernel: map, input } = term else { return Vec::new() };
    let RelationTerm::Join { on, kernel, left, right } = &**input else { return Vec::new() };
    if !keys.is_identity() {
        return Vec::new();
    }
    let mut made = vec![(**left).clone().join((**right).clone(), on, map.after(kernel))];
    if map.distributes_over(kernel) {
        let side = |side: &RelationTerm| side.clone().map(KeyMap::identity(), map.clone());
        made.push(side(left).join(side(right), on, kernel.clone()));
    }
    made
}

/// Of broadcasts and shuffles in a row only the last counts.
fn last_repartition_wins(term: &RelationTerm) -> Vec<RelationTerm> {
    let below = |input: &RelationTerm| match input {
        RelationTerm::Broadcast(input) => Some((**input).clone()),
        // A shuffle of parts of sums is where they meet.
        RelationTerm::Shuffle(_, input) if input.types().is_ok_and(|ty| ty.spread != Spread::Partial) => {
            Some((**input).clone())
        }
        _ => None,
    };
    match term {
        RelationTerm::Broadcast(input) => below(input).map(RelationTerm::broadcast).into_iter().collect(),
        RelationTerm::Shuffle(by, input) => below(input).map(|input| input.shuffle(by)).into_iter().collect(),
        _ => Vec::new(),
    }
}

/// Repartitioning and a filter may change places.
fn exchange_repartition_and_filter(term: &RelationTerm) -> Vec<RelationTerm> {
    match term {
        RelationTerm::Broadcast(input) => match &**input {
            RelationTerm::Filter(predicate, input) => vec![(**input).clone().broadcast().filter(predicate.clone())],
            _ => Vec::new(),
        },
        RelationTerm::Shuffle(by, input) => match &**input {
            RelationTerm::Filter(predicate, input) => vec![(**input).clone().shuffle(by).filter(predicate.clone())],
            _ => Vec::new(),
        },
        RelationTerm::Filter(predicate, input) => match &**input {
            RelationTerm::Broadcast(input) => vec![(**input).clone().filter(predicate.clone()).broadcast()],
            RelationTerm::Shuffle(by, input) => vec![(**input).clone().filter(predicate.clone()).shuffle(by)],
            _ => Vec::new(),
        },
        _ => Vec::new(),
    }
}

/// Repartitioning and a map may change places; a shuffle only with a map that leaves keys alone.
fn exchange_repartition_and_map(term: &RelationTerm) -> Vec<RelationTerm> {
    match term {
        RelationTerm::Broadcast(input) => match &**input {
            RelationTerm::Map { keys, kernel, input } => {
                vec![(**input).clone().broadcast().map(keys.clone(), kernel.clone())]
            }
            _ => Vec::new(),
        },
        RelationTerm::Shuffle(by, input) => match &**input {
            RelationTerm::Map { keys, kernel, input } if keys.is_identity() && !is_partial(input) => {
                vec![(**input).clone().shuffle(by).map(keys.clone(), kernel.clone())]
            }
            _ => Vec::new(),
        },
        RelationTerm::Map { keys, kernel, input } => match &**input {
            RelationTerm::Broadcast(input) => vec![(**input).clone().map(keys.clone(), kernel.clone()).broadcast()],
            RelationTerm::Shuffle(by, input) if keys.is_identity() && !is_partial(input) => {
                vec![(**input).clone().map(keys.clone(), kernel.clone()).shuffle(by)]
            }
            _ => Vec::new(),
        },
        _ => Vec::new(),
    }
}

fn is_partial(term: &RelationTerm) -> bool {
    term.types().is_ok_and(|ty| ty.spread == Spread::Partial)
}

/// A shuffle before an aggregate is not needed where tuples of a group are together already.
fn drop_shuffle_before_aggregate(term: &RelationTerm) -> Vec<RelationTerm> {
    let RelationTerm::Aggregate { group, before, kernel, after, input } = term else { return Vec::new() };
    let RelationTerm::Shuffle(_, input) = &**input else { return Vec::new() };
    if !input.types().is_ok_and(|ty| ty.spread.is_part_of(group) || ty.spread == Spread::All) {
        return Vec::new();
    }
    let (before, kernel, after) = (before.clone(), kernel.clone(), after.clone());
    vec![RelationTerm::Aggregate { group: group.clone(), before, kernel, after, input: input.clone() }]
}

/// Tuples of a site are aggregated before they are shuffled and aggregated again.
fn aggregate_in_two_phases(term: &RelationTerm) -> Vec<RelationTerm> {
    let RelationTerm::Aggregate { group, before, kernel, after, input } = term else { return Vec::new() };
    let RelationTerm::Shuffle(by, input) = &**input else { return Vec::new() };
    let within = by.iter().map(|k| group.iter().position(|g| g == k)).collect::<Option<Vec<usize>>>();
    let (Some(by), Ok(ty)) = (within, input.types()) else { return Vec::new() };
    // A replicated relation would be counted once per site, and a split aggregate would be split again.
    if matches!(ty.spread, Spread::All | Spread::Partial) {
        return Vec::new();
    }
    let identity = super::kernel::KernelFunction::identity;
    let first = RelationTerm::Aggregate {
        group: group.clone(),
        before: before.clone(),
        kernel: kernel.clone(),
        after: identity(),
        input: input.clone(),
    };
    vec![RelationTerm::Aggregate {
        group: (0..group.len()).collect(),
        before: identity(),
        kernel: kernel.clone(),
        after: after.clone(),
        input: Box::new(first.shuffle(&by)),
    }]
}

/// The three ways to bring together what is joined.
fn exchange_ways_to_join(term: &RelationTerm) -> Vec<RelationTerm> {
    let RelationTerm::Join { on, kernel, left, right } = term else { return Vec::new() };
    let (l, r) = match (&**left, &**right) {
        (RelationTerm::Broadcast(l), r) => (&**l, r),
        (l, RelationTerm::Broadcast(r)) => (l, &**r),
        (RelationTerm::Shuffle(_, l), RelationTerm::Shuffle(_, r)) => (&**l, &**r),
        _ => return Vec::new(),
    };
    let (by_left, by_right): (Vec<usize>, Vec<usize>) = on.iter().copied().unzip();
    let mut made = vec![
        l.clone().broadcast().join(r.clone(), on, kernel.clone()),
        l.clone().join(r.clone().broadcast(), on, kernel.clone()),
    ];
    if !on.is_empty() {
        made.push(l.clone().shuffle(&by_left).join(r.clone().shuffle(&by_right), on, kernel.clone()));
    }
    made
}

/// A join of what was shuffled by its components needs no shuffle by some of them after it.
fn drop_shuffle_over_join(term: &RelationTerm) -> Vec<RelationTerm> {
    let RelationTerm::Shuffle(by, input) = term else { return Vec::new() };
    match &**input {
        RelationTerm::Join { on, .. } if by.iter().all(|k| on.iter().any(|(l, _)| l == k)) => match input.types() {
            Ok(ty) if ty.spread == Spread::part(by) => vec![(**input).clone()],
            _ => Vec::new(),
        },
        _ => Vec::new(),
    }
}
