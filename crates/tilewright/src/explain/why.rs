//! The reasons for a plan, in sentences.

use std::collections::{BTreeMap, BTreeSet};

use tw_ir::plan::{BlockRelation, RelOp};
use tw_ir::workflow::StmtId;
use tw_ir::{Axis, shape};

use super::fusion::{self, Fate, Kept};
use super::source::Place;
use super::units;
use super::{Explanation, Position, Role, Section, SectionOutcome, SegmentPlan, Turn};

/// Longer lists are cut; the rest is counted.
const MAX_ITEMS: usize = 8;

/// Values smaller than the segment's bytes divided by this are not worth a sentence.
const WORTH_TELLING: u64 = 100;

impl Explanation {
    /// Sentences about a planned section.
    pub(crate) fn why(&self, plan: &SegmentPlan) -> Vec<String> {
        let mut sentences = vec![self.why_peak(plan)];
        sentences.extend(cut(self.why_fused(plan)));
        sentences.extend(cut(self.why_kept(plan)));
        sentences.extend(cut(self.chains(plan)));
        sentences.extend(cut(self.cuts(plan)));
        sentences
    }

    fn statement_place(&self, plan: &SegmentPlan, statement: StmtId) -> Place {
        self.place(&plan.planned.plan.statements[statement].span)
    }

    pub(crate) fn why_peak(&self, plan: &SegmentPlan) -> String {
        let Some(during) = plan.peak.during else { return "nothing is held in memory".to_string() };
        let mut parts: Vec<String> = plan
            .peak
            .holders
            .iter()
            .take(MAX_ITEMS)
            .map(|holder| {
                let blocks = units::counted(holder.blocks, "block");
                let place = self.statement_place(plan, holder.statement);
                format!("{blocks} of {} {}", value_at(&holder.name, &place), units::bytes(holder.bytes))
            })
            .collect();
        let rest: u64 = plan.peak.holders.iter().skip(MAX_ITEMS).map(|holder| holder.bytes).sum();
        if rest > 0 {
            parts.push(format!("others {}", units::bytes(rest)));
        }
        if plan.peak.scratch > 0 {
            parts.push(format!("scratch space {}", units::bytes(plan.peak.scratch)));
        }
        if plan.held_bytes > 0 {
            parts.push(format!("earlier results {}", units::bytes(plan.held_bytes)));
        }
        let place = self.statement_place(plan, during);
        format!("the peak of {} is at {place}: {}", units::bytes(plan.peak_bytes()), parts.join(", "))
    }

    fn why_fused(&self, plan: &SegmentPlan) -> Vec<String> {
        let place_of = |k: usize| self.place(&plan.before.body.nodes[k].span);
        let mut pairs: BTreeSet<(Place, Place)> = BTreeSet::new();
        let mut twins: BTreeSet<(Place, Place)> = BTreeSet::new();
        for (k, fate) in plan.fates.iter().enumerate() {
            match fate {
                Fate::FusedInto(homes) => pairs.extend(homes.iter().map(|&home| (place_of(home), place_of(k)))),
                Fate::SameAs(twin) => {
                    twins.insert((place_of(*twin), place_of(k)));
                }
                _ => {}
            }
        }
        let homes: BTreeSet<&Place> = pairs.iter().filter(|(home, from)| home != from).map(|(home, _)| home).collect();
        let mut sentences: Vec<String> = homes
            .into_iter()
            .map(|home| {
                let inside = pairs.iter().filter(|(h, from)| h == home && from != home);
                let inside: BTreeSet<Place> = inside.map(|(_, from)| from.clone()).collect();
                format!("{} {} computed inside {home}", names(&inside), is_or_are(&inside))
            })
            .collect();
        let twins = twins.iter().filter(|(first, second)| first != second);
        sentences
            .extend(twins.map(|(first, second)| format!("a part of {second} repeats {first} and is computed once")));
        sentences
    }

    fn why_kept(&self, plan: &SegmentPlan) -> Vec<String> {
        let place_of = |k: usize| self.place(&plan.before.body.nodes[k].span);
        let mut sentences = Vec::new();
        let total: u64 = plan.costs.iter().map(|cost| cost.made_bytes).sum();
        for (k, fate) in plan.fates.iter().enumerate() {
            let node = &plan.before.body.nodes[k];
            let bytes = node.results.iter().map(|&value| plan.before.ty(value).known_bytes().unwrap_or(0)).sum::<u64>();
            if *fate != Fate::Runs || bytes.saturating_mul(WORTH_TELLING) < total {
                continue;
            }
            let here = place_of(k);
            let reason = match fusion::why_kept(&plan.before, k) {
                None => continue,
                Some(Kept::Result) => "it is needed after this segment".to_string(),
                Some(Kept::Shared(readers)) => {
                    let lines: BTreeSet<Place> = readers.iter().map(|&reader| place_of(reader)).collect();
                    let verb = if lines.len() == 1 { "reads" } else { "read" };
                    format!("{} {verb} it {} times: it is computed once", names(&lines), readers.len())
                }
                Some(Kept::Product(reader)) => {
                    format!("{} is a sum of products, which reads every element many times", place_of(reader))
                }
                Some(Kept::Repeated(reader)) => format!("{} reads its elements more than once", place_of(reader)),
                Some(Kept::Blocks(reader, what)) => format!("{} ({what}) takes whole blocks", place_of(reader)),
            };
            let name = node.results.first().map_or_else(String::new, |&value| plan.before.display_name(value));
            sentences.push(format!("{} is not fused: {reason}", value_at(&name, &here)));
        }
        sentences
    }

    fn chains(&self, plan: &SegmentPlan) -> Vec<String> {
        let mut by_number: BTreeMap<u32, BTreeSet<Place>> = BTreeMap::new();
        for step in &plan.planned.plan.steps {
            if let RelOp::Join { chains, .. } = &step.op
                && *chains > 1
            {
                by_number.entry(*chains).or_default().insert(self.statement_place(plan, step.statement));
            }
        }
        let sentence = |(chains, places): (&u32, &BTreeSet<Place>)| {
            let noun = if places.len() == 1 { "the reduction" } else { "the reductions" };
            let verb = is_or_are(places);
            format!("{noun} at {} {verb} cut into {chains} chains, which may run at the same time", names(places))
        };
        by_number.iter().map(sentence).collect()
    }

    fn cuts(&self, plan: &SegmentPlan) -> Vec<String> {
        let relations = &plan.planned.plan.relations;
        let shown = plan.planned.plan.steps.iter().flat_map(|step| &step.outputs);
        let mut sentences = Vec::new();
        // Values without a name, and states of reductions, follow those that the user knows.
        let known: BTreeSet<String> = plan.before.values.values().filter_map(|info| info.name.clone()).collect();
        let named = |relation: &&BlockRelation| relation.n_blocks() > 1 && known.contains(&relation.name);
        for relation in shown.map(|&id| &relations[id]).filter(named) {
            let tiles: Vec<String> = relation.grid.iter().map(Axis::to_string).collect();
            let whole = shape::display(&relation.shape);
            let blocks = units::counted(relation.n_blocks(), "block");
            let name = readable(&relation.name);
            sentences.push(format!("{name} {whole} is cut into {blocks} of [{}]", tiles.join(", ")));
        }
        sentences.dedup();
        sentences
    }

    /// What a section is called.
    pub(crate) fn title(&self, at: &Position, number: usize) -> String {
        let place = self.place(&at.span);
        let turns = match at.turn {
            Turn::Every => "per iteration",
            Turn::First => "first iteration",
            Turn::Later => "every later iteration",
        };
        match at.role {
            Role::Straight => format!("segment {number}"),
            Role::Condition => format!("condition of the loop at {place}, {turns}"),
            Role::Body => format!("body of the loop at {place}, {turns}"),
            Role::Then => format!("if the condition at {place} holds"),
            Role::Otherwise => format!("if the condition at {place} does not hold"),
        }
    }

    /// Why a section is planned later.
    pub(crate) fn why_later(&self, section: &Section) -> Option<String> {
        let SectionOutcome::Later { spans, unknown } = &section.outcome else { return None };
        let lines: BTreeSet<Place> =
            spans.iter().map(|span| self.place(span)).filter(|p| *p != Place::Planner).collect();
        Some(format!(
            "{} {} planned while the program runs: an extent at {} depends on data",
            names(&lines),
            is_or_are(&lines),
            self.place(unknown)
        ))
    }
}

/// The name of a value, or words for one that the user has not named.
fn readable(name: &str) -> String {
    match name.strip_prefix('%') {
        Some(rest) => format!("a value{}", rest.trim_start_matches(|c: char| c.is_ascii_digit())),
        None => name.to_string(),
    }
}

/// A value and where it is made. One without a name is known by the operation that makes it.
fn value_at(name: &str, place: &Place) -> String {
    match (place, place.operation()) {
        (Place::Planner, _) => readable(name),
        (_, Some(operation)) if name.starts_with('%') => format!("`{operation}` ({})", place.short()),
        _ => format!("{} ({place})", readable(name)),
    }
}

/// `line 3` or `lines 3, 5`.
fn names(list: &BTreeSet<Place>) -> String {
    let all_lines = list.len() > 1 && list.iter().all(|place| matches!(place, Place::Line(_)));
    let name = |place: &Place| if all_lines { place.short() } else { place.to_string() };
    let joined = list.iter().map(name).collect::<Vec<_>>().join(", ");
    if all_lines { format!("lines {joined}") } else { joined }
}

fn is_or_are(list: &BTreeSet<Place>) -> &'static str {
    if list.len() == 1 { "is" } else { "are" }
}

fn cut(mut sentences: Vec<String>) -> Vec<String> {
    if sentences.len() > MAX_ITEMS + 1 {
        let rest = sentences.len() - MAX_ITEMS;
        sentences.truncate(MAX_ITEMS);
        sentences.push(format!("and {rest} more like these"));
    }
    sentences
}
