//! What a term sends.

use std::collections::BTreeSet;

use tw_ir::error::Result;

use super::term::{Spread, Term, Type};

/// The paper's cost: every broadcast sends a relation once for every site, every shuffle once.
///
/// That charges a tuple that is already where it should be, and counts the parts of a sum as one; [`wire`] does neither.
pub fn cost(term: &Term, sites: u64) -> Result<u64> {
    total(term, &|term, ty| match term {
        Term::Broadcast(_) => Ok(ty.n_floats().saturating_mul(sites)),
        _ => Ok(ty.n_floats()),
    })
}

/// Numbers that travel on average if tuples are spread evenly: none of those that are where they should be, and the parts of a sum from every site
/// that has one.
pub fn wire(term: &Term, sites: u64) -> Result<u64> {
    total(term, &|term, ty| {
        let floats = ty.n_floats();
        let elsewhere = |floats: u64| floats - floats / sites.max(1);
        Ok(match (term, &ty.spread) {
            (_, Spread::All) => 0,
            (Term::Broadcast(_), _) => floats.saturating_mul(sites.saturating_sub(1)),
            (Term::Shuffle(by, _), Spread::Part(there)) if *there == by.iter().copied().collect::<BTreeSet<_>>() => 0,
            (Term::Shuffle(_, input), Spread::Partial) => elsewhere(floats.saturating_mul(sites.min(n_parts(input)?))),
            _ => elsewhere(floats),
        })
    })
}

/// The sum over all broadcasts and shuffles of what one sends, told by it and the type of what it is done to.
fn total(term: &Term, sent: &impl Fn(&Term, Type) -> Result<u64>) -> Result<u64> {
    let mut sum = match term {
        Term::Broadcast(input) | Term::Shuffle(_, input) => sent(term, input.types()?)?,
        _ => 0,
    };
    for part in term.parts() {
        sum = sum.saturating_add(total(part, sent)?);
    }
    Ok(sum)
}

/// The most sites that can have a part of one sum: as many as there are places its terms come from.
fn n_parts(input: &Term) -> Result<u64> {
    Ok(match input {
        Term::Filter(_, input) | Term::Map { input, .. } => n_parts(input)?,
        Term::Aggregate { group, input, .. } => {
            let ty = input.types()?;
            match &ty.spread {
                Spread::Part(by) => by.iter().filter(|k| !group.contains(k)).map(|&k| ty.frontier[k]).product(),
                _ => u64::MAX,
            }
        }
        _ => u64::MAX,
    })
}
