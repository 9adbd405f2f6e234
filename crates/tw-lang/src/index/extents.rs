//! How far each index goes.
//!
//! A written range decides. Otherwise an index that stands alone in an access (`A[i, k]`) has the extent of that axis, and all such axes must
//! agree. Otherwise it goes from 0 as far as every access stays inside (`x[2*i]`, `x[i+k]`). Accesses with an edge rule never leave, so they
//! count only if nothing else does; the same holds for the target's own shape when it is assigned anew.

use std::collections::BTreeSet;

use tw_ir::{Edge, Extent, Idx};

use super::access::bare;
use super::affine::variables;
use super::context::Context;
use crate::diagnose::{Failure, Lowered, error};
use crate::token::Range;

/// How much a fact counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Weight {
    /// It must hold.
    Rule,
    /// It says how far an index goes if no rule does.
    Hint,
}

/// An index expression and the axis it accesses.
#[derive(Debug)]
pub(super) struct Fact {
    pub(super) idx: Idx,
    pub(super) extent: Extent,
    pub(super) weight: Weight,
    /// True if the axis has no edge rule, but its access has one for other axes: then leaving it would go unnoticed.
    pub(super) must_stay_inside: bool,
    pub(super) range: Range,
    /// For messages: which axis it is.
    pub(super) what: String,
}

impl Fact {
    /// A fact about an axis; the expression follows. Axes with an edge rule give hints only.
    pub(super) fn new(extent: Extent, edge: Edge, range: Range, what: String) -> Fact {
        let weight = if edge == Edge::Error { Weight::Rule } else { Weight::Hint };
        Fact { idx: Idx::constant(0), extent, weight, must_stay_inside: false, range, what }
    }

    fn variables(&self) -> BTreeSet<u32> {
        let mut used = BTreeSet::new();
        variables(&self.idx, &mut used);
        used
    }
}

/// No axis is longer, so an index that stays inside up to here is not bounded at all.
const UNBOUNDED: u64 = i64::MAX as u64;

impl Context<'_, '_, '_> {
    /// Finds the extent of every index, or says which one is not clear.
    pub(super) fn solve(&mut self) -> Lowered<()> {
        for weight in [Weight::Rule, Weight::Hint] {
            self.solve_alone(weight)?;
            while self.solve_one(weight)? {}
        }
        if let Some(open) = self.variables.iter().find(|variable| variable.extent.is_none()) {
            let name = open.name.text;
            return Err(error(open.name.range, format!("nothing says how far the index `{name}` goes"))
                .help(format!("write its range: `for {name} in 0..n`"))
                .into());
        }
        self.check_inside()
    }

    /// Indices that stand alone have the extent of their axis.
    fn solve_alone(&mut self, weight: Weight) -> Lowered<()> {
        let mut decided_by: Vec<Option<usize>> = vec![None; self.variables.len()];
        for (position, fact) in self.facts.iter().enumerate() {
            let Some(v) = bare(&fact.idx) else { continue };
            let variable = &mut self.variables[v as usize];
            if variable.explicit || fact.weight != weight {
                continue;
            }
            match (variable.extent, decided_by[v as usize]) {
                (None, _) => {
                    variable.extent = Some(fact.extent);
                    decided_by[v as usize] = Some(position);
                }
                (Some(extent), Some(first)) if extent != fact.extent && weight == Weight::Rule => {
                    let (name, other) = (variable.name.text, &self.facts[first]);
                    return Err(error(
                        fact.range,
                        format!("the index `{name}` is used with two different extents: {extent} and {}", fact.extent),
                    )
                    .note(format!("{} has {extent} elements, {} has {}", other.what, fact.what, fact.extent))
                    .into());
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Finds the extent of one more index from accesses whose other indices are known. False if there is none.
    fn solve_one(&mut self, weight: Weight) -> Lowered<bool> {
        for v in 0..self.variables.len() {
            if self.variables[v].extent.is_some() {
                continue;
            }
            // A hint comes from an access that may leave its axis: only a shift of the index alone says something.
            let shifted = |fact: &&Fact| fact.idx.as_shifted_var().is_some_and(|(var, _)| var.0 as usize == v);
            if weight == Weight::Hint
                && let Some(fact) = self.facts.iter().filter(|fact| fact.weight == Weight::Hint).find(shifted)
            {
                self.variables[v].extent = Some(fact.extent);
                return Ok(true);
            }
            let used: Vec<&Fact> = self
                .facts
                .iter()
                .filter(|fact| fact.weight <= weight && fact.extent.known().is_some())
                .filter(|fact| {
                    let names = fact.variables();
                    let others_known = names.iter().all(|&o| {
                        o as usize == v || self.variables[o as usize].extent.is_some_and(|e| e.known().is_some())
                    });
                    names.contains(&(v as u32)) && others_known
                })
                .collect();
            if used.is_empty() {
                continue;
            }
            let inside = |n: u64| used.iter().all(|fact| self.stays_inside(fact, v, n));
            if !inside(1) {
                if used.iter().any(|fact| fact.extent == Extent::Known(0)) {
                    self.variables[v].extent = Some(Extent::Known(0));
                    return Ok(true);
                }
                let name = self.variables[v].name.text;
                return Err(error(used[0].range, format!("it is not clear how far the index `{name}` goes"))
                    .help(format!("no access says it alone; write its range: `for {name} in 1..n-1`"))
                    .into());
            }
            if inside(UNBOUNDED) {
                continue;
            }
            let (mut low, mut high) = (1, UNBOUNDED);
            while high - low > 1 {
                let middle = low + (high - low) / 2;
                if inside(middle) { low = middle } else { high = middle }
            }
            self.variables[v].extent = Some(Extent::Known(low));
            return Ok(true);
        }
        Ok(false)
    }

    /// True if the access stays inside its axis when index `v` takes `n` values from 0.
    fn stays_inside(&self, fact: &Fact, v: usize, n: u64) -> bool {
        let ranges: Vec<(i64, i64)> = self
            .variables
            .iter()
            .enumerate()
            .map(|(k, variable)| if k == v { (0, n as i64 - 1) } else { variable.range().unwrap_or((0, 0)) })
            .collect();
        let (low, high) = fact.idx.interval(&ranges);
        low >= 0 && fact.extent.known().is_some_and(|extent| high < extent as i64)
    }

    /// Accesses that leave their axis whatever the data, and those that may leave it unnoticed. What depends on data is checked when it runs.
    fn check_inside(&self) -> Lowered<()> {
        if self.variables.iter().any(|variable| variable.extent == Some(Extent::Known(0))) {
            return Ok(());
        }
        let ranges: Vec<(i64, i64)> =
            self.variables.iter().map(|variable| variable.range().unwrap_or((0, 0))).collect();
        for fact in self.facts.iter().filter(|fact| fact.weight == Weight::Rule) {
            let Extent::Known(n) = fact.extent else {
                self.check_deferred(fact)?;
                continue;
            };
            let (low, high) = fact.idx.interval(&ranges);
            if low >= 0 && high < n as i64 {
                continue;
            }
            if fact.must_stay_inside {
                return Err(hidden(fact));
            }
            if !self.guarded && fact.idx.as_affine(self.variables.len()).is_some() {
                let names: Vec<String> = self.variables.iter().map(|variable| variable.name.text.to_string()).collect();
                let (idx, what) = (fact.idx.display(&names), &fact.what);
                return Err(error(
                    fact.range,
                    format!("index `{idx}` runs from {low} to {high}, but {what} has {n} elements"),
                )
                .help("bound the index with a range, or choose an edge rule: fill, clamp or wrap")
                .into());
            }
        }
        Ok(())
    }

    /// An axis whose extent depends on data is left by everything but an index that runs over just that axis.
    fn check_deferred(&self, fact: &Fact) -> Lowered<()> {
        let whole_axis = bare(&fact.idx).is_some_and(|v| {
            let variable = &self.variables[v as usize];
            variable.start == 0 && variable.extent == Some(fact.extent)
        });
        if whole_axis || !fact.must_stay_inside { Ok(()) } else { Err(hidden(fact)) }
    }
}

fn hidden(fact: &Fact) -> Failure {
    let text = format!("this index may leave {}, and the edge rule of another index would hide it", fact.what);
    error(fact.range, text).help("give it an edge rule of its own").into()
}

impl super::context::IndexVariable<'_> {
    /// Inclusive range of its values, if they are known and there are any.
    pub(super) fn range(&self) -> Option<(i64, i64)> {
        match self.extent {
            Some(Extent::Known(n @ 1..)) => Some((self.start, self.start.saturating_add(n as i64 - 1))),
            _ => None,
        }
    }
}
