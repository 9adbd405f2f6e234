//! The communication cost of a term.

use tw_ir::error::Result;

use super::term::RelationTerm;
use super::types::{Spread, Type, n_below};

/// The cost model of the paper: a broadcast sends a relation once per site, a shuffle sends it once.
///
/// It charges tuples that are already on their site, and counts the parts of a sum as one; [`wire`] does
/// neither.
#[cfg(test)]
pub(super) fn cost(term: &RelationTerm, sites: u64) -> Result<u64> {
    total(term, &|term, ty| match term {
        RelationTerm::Broadcast(_) => Ok(ty.n_floats().saturating_mul(sites)),
        _ => Ok(ty.n_floats()),
    })
}

/// The numbers that are transferred on average if tuples are spread evenly. Tuples that are already on their site are free; each
/// part of a sum counts.
///
/// The site of a tuple is a function of key components. If these components do not change, the tuple stays; of all
/// other tuples, one in `sites` stays by chance.
pub(super) fn wire(term: &RelationTerm, sites: u64) -> Result<u64> {
    total(term, &|term, ty| {
        let floats = ty.n_floats();
        let elsewhere = |floats: u64| floats - floats / sites.max(1);
        Ok(match (term, &ty.spread) {
            (_, Spread::All) => 0,
            (RelationTerm::Broadcast(_), _) => floats.saturating_mul(sites.saturating_sub(1)),
            (RelationTerm::Shuffle(by, _), Spread::Part(there)) => {
                let staying = ty.n_agreeing(there, &sorted(by));
                elsewhere(floats.saturating_sub(ty.n_floats_of(staying)))
            }
            (RelationTerm::Shuffle(by, input), Spread::Partial) => elsewhere(moving_parts(by, input, &ty, sites)?),
            _ => elsewhere(floats),
        })
    })
}

/// Numbers in the parts of sums that a shuffle does not find where it takes them.
fn moving_parts(by: &[usize], input: &RelationTerm, ty: &Type, sites: u64) -> Result<u64> {
    let most = ty.n_floats().saturating_mul(sites);
    let RelationTerm::Aggregate { group, input, .. } = input else {
        return Ok(most.min(ty.n_floats().saturating_mul(n_parts(input)?)));
    };
    let below = input.types()?;
    let Spread::Part(there) = &below.spread else { return Ok(most) };
    // A part for every key and for every place its terms come from.
    let apart: Vec<usize> = there.iter().copied().filter(|k| !group.contains(k)).collect();
    let columns = [&group[..], &apart[..]].concat();
    let parts = Type { bound: ty.bound.clone(), ..below.project(&columns) };
    if parts.n_floats() > most {
        return Ok(most);
    }
    let there: Vec<usize> = there.iter().filter_map(|k| columns.iter().position(|c| c == k)).collect();
    let staying = parts.n_agreeing(&there, &sorted(by));
    Ok(parts.n_floats().saturating_sub(parts.n_floats_of(staying)))
}

/// Components in the order in which a shuffle reads them.
fn sorted(by: &[usize]) -> Vec<usize> {
    let mut by = by.to_vec();
    by.sort_unstable();
    by
}

/// The sum over all broadcasts and shuffles of what one sends, told by it and the type of what it is done to.
fn total(term: &RelationTerm, sent: &impl Fn(&RelationTerm, Type) -> Result<u64>) -> Result<u64> {
    let mut sum = match term {
        RelationTerm::Broadcast(input) | RelationTerm::Shuffle(_, input) => sent(term, input.types()?)?,
        _ => 0,
    };
    for part in term.parts() {
        sum = sum.saturating_add(total(part, sent)?);
    }
    Ok(sum)
}

/// The most sites that can have a part of one sum: as many as there are places its terms come from.
fn n_parts(input: &RelationTerm) -> Result<u64> {
    Ok(match input {
        RelationTerm::Filter(_, input) | RelationTerm::Map { input, .. } => n_parts(input)?,
        RelationTerm::Aggregate { group, input, .. } => {
            let ty = input.types()?;
            match &ty.spread {
                Spread::Part(by) => {
                    n_below(&by.iter().filter(|k| !group.contains(k)).map(|&k| ty.frontier[k]).collect::<Vec<_>>())
                }
                _ => u64::MAX,
            }
        }
        _ => u64::MAX,
    })
}
