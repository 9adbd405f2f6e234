//! The pieces of a program one after the other: each finds what it needs where earlier ones have left it.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::ops::RangeInclusive;

use tw_ir::error::Result;
use tw_ir::program::{Op, Source, ValueId};
use tw_place::{Before, DEFAULT_LIMIT, Homes, Machine, Notation, Placed, Rivals};

use super::{Explanation, Piece, put_in_front};
use crate::explain::segment::SegmentPlan;
use crate::explain::walk::ValueName;
use crate::explain::{Section, units};
use crate::session::Session;

/// How often pieces are placed at most. In the first round nothing is known of what a loop hands on and of where later pieces want inputs.
const MOST_ROUNDS: usize = 3;

/// Schedulers that may place all pieces, where no one is asked for.
const ALL_BY_ONE: [&str; 2] = ["algebraic", "lshs"];

/// Choices that a piece may compare are shared between pieces, down to this part.
const FEWEST_SHARES: usize = 10;

/// How pieces were placed on what was held before.
type Known = HashMap<usize, Vec<(Before, Piece)>>;

/// Who wants what.
pub(super) struct Wanted<'a> {
    pub(super) session: &'a Session,
    pub(super) machine: &'a Machine,
    pub(super) scheduler: Option<&'a str>,
    pub(super) distribution: Option<&'a Notation>,
}

/// Where a value is, and its bytes by worker.
struct Standing {
    held: Homes,
    bytes: Vec<u64>,
}

/// What an input of a piece is.
enum Origin {
    /// An input of the user.
    Input(String),
    /// What another piece makes.
    Made(ValueName),
}

/// Where everything between pieces is.
#[derive(Default)]
struct Between {
    /// Values that pieces only hand on from inputs of the user.
    handed_on: HashMap<u32, String>,
    values: HashMap<u32, Standing>,
    /// Inputs of the user, and where the deepest piece in loops that reads it wants it.
    inputs: BTreeMap<String, Shared>,
}

struct Shared {
    /// Pieces that run while it is there: from the first that reads it to the last, and all of the loops that these are in.
    alive: RangeInclusive<usize>,
    deepest: usize,
    standing: Option<Standing>,
}

impl Explanation {
    /// Places all pieces that can be planned. The best plan of every piece by itself may leave values where the next ones do not want them, so all pieces
    /// by one scheduler are other choices.
    pub(super) fn place_pieces(&self, wanted: &Wanted<'_>) -> Result<Vec<Piece>> {
        let sections: Vec<(usize, &Section, &SegmentPlan)> = (1..)
            .zip(&self.sections)
            .filter_map(|(number, section)| Some((number, section, section.plan()?)))
            .collect();
        let mut known = Known::new();
        let best_each = self.place_in_turn(wanted, None, &sections, &mut known);
        if sections.len() < 2 || wanted.scheduler.is_some() {
            return best_each;
        }
        let time = |pieces: &[Piece]| -> f64 {
            let counted = pieces.iter().zip(&sections).filter(|(piece, _)| piece.counts);
            counted.map(|(piece, (_, section, _))| rounds(section) * piece.seconds()).sum()
        };
        // Memory may suffice for some plans and not for others.
        let mut best = best_each;
        for scheduler in ALL_BY_ONE {
            let other = self.place_in_turn(wanted, Some(scheduler), &sections, &mut known);
            best = match (best, other) {
                (Ok(best), Ok(other)) if time(&other) >= time(&best) => Ok(best),
                (Ok(best), Err(_)) => Ok(best),
                (Err(error), Err(_)) => Err(error),
                (_, Ok(other)) => Ok(other),
            };
        }
        best
    }

    fn place_in_turn(
        &self,
        wanted: &Wanted<'_>,
        preferred: Option<&str>,
        sections: &[(usize, &Section, &SegmentPlan)],
        known: &mut Known,
    ) -> Result<Vec<Piece>> {
        let mut between = Between::new(sections);
        let mut pieces: Vec<(Before, Piece)> = Vec::new();
        for round in 0..MOST_ROUNDS {
            let mut changed = false;
            for (k, (number, section, plan)) in sections.iter().enumerate() {
                let before = self.before(&between, plan, k, wanted.machine);
                if round > 0 && pieces[k].0 == before {
                    continue;
                }
                changed = true;
                let of_piece = known.entry(k).or_default();
                let found = of_piece.iter().find(|(of, _)| *of == before).map(|(_, piece)| piece.clone());
                let mut piece = match found {
                    Some(piece) => piece,
                    None => {
                        let limit = DEFAULT_LIMIT / sections.len().min(FEWEST_SHARES);
                        let piece = self.place_piece(wanted, plan, &before, self.title(section, *number), limit)?;
                        of_piece.push((before.clone(), piece.clone()));
                        piece
                    }
                };
                let placed = &mut piece.rivals.placed;
                if let Some(found) = placed.iter().position(|placed| Some(placed.scheduler) == preferred) {
                    placed[..=found].rotate_right(1);
                }
                if let Some(placed) = piece.rivals.placed.first() {
                    between.note(plan, k, placed, wanted.machine);
                }
                match pieces.get_mut(k) {
                    Some(known) => *known = (before, piece),
                    None => pieces.push((before, piece)),
                }
            }
            // Where inputs are wanted is known after the first round.
            if !changed || sections.len() == 1 {
                break;
            }
        }
        let mut pieces: Vec<Piece> = pieces.into_iter().map(|(_, piece)| piece).collect();
        for k in rarer_branches(sections, &pieces) {
            pieces[k].counts = false;
        }
        Ok(pieces)
    }

    fn place_piece(
        &self,
        wanted: &Wanted<'_>,
        plan: &SegmentPlan,
        before: &Before,
        title: String,
        limit: usize,
    ) -> Result<Piece> {
        let mut program = plan.before.clone();
        // How one machine would cut what comes from other pieces does not bind several.
        let from_others = plan.flow.takes.iter().filter(|(_, value)| value.is_some());
        from_others.for_each(|(name, _)| program.cut_input(name, None));
        let options = wanted.session.plan_options();
        let mut rivals =
            Rivals::after(before, wanted.distribution, &program, options, wanted.machine, limit).map_err(|error| {
                match before.bytes.iter().max() {
                    Some(&most) if most > 0 && wanted.machine.memory.is_some() => {
                        error.note(format!("some worker has {} that is held when the piece begins", units::bytes(most)))
                    }
                    _ => error,
                }
            })?;
        if let Some(name) = wanted.scheduler {
            put_in_front(&mut rivals, name, &title, wanted.machine)?;
        }
        Ok(Piece { title, rivals, counts: true })
    }

    /// What workers hold when a piece begins.
    fn before(&self, between: &Between, plan: &SegmentPlan, k: usize, machine: &Machine) -> Before {
        let mut before = Before::default();
        let mut bytes = vec![0u64; machine.n_workers()];
        let mut add = |standing: &Standing| bytes.iter_mut().zip(&standing.bytes).for_each(|(sum, more)| *sum += more);
        for (name, ty) in plan.before.inputs() {
            let standing = match between.origin(plan, name) {
                Origin::Made(value) => self.standing(between, value),
                Origin::Input(name) => between.inputs.get(&name).and_then(|shared| shared.standing.as_ref()),
            };
            if let Some(standing) = standing.filter(|found| ty.known_shape() == Some(found.held.shape())) {
                before.inputs.insert(name.to_string(), standing.held.clone());
            }
        }
        let made = plan
            .flow
            .alive
            .iter()
            .filter(|value| value.carried.is_some() || !between.handed_on.contains_key(&value.number));
        made.filter_map(|&value| self.standing(between, value)).for_each(&mut add);
        let alive = between.inputs.values().filter(|shared| shared.alive.contains(&k));
        alive.filter_map(|shared| shared.standing.as_ref()).for_each(&mut add);
        if bytes.iter().any(|&bytes| bytes > 0) {
            before.bytes = bytes;
        }
        before
    }

    /// Where a value is; what a loop hands on, where the round before has left it.
    fn standing<'a>(&self, between: &'a Between, value: ValueName) -> Option<&'a Standing> {
        match value.carried.and_then(|place| self.repeats.get(&place)) {
            // Before the first round is placed, it may have what it hands on where it likes: that is where later rounds find it.
            Some(repeated) => between.values.get(&repeated.number),
            None => between.values.get(&value.number),
        }
    }
}

impl Between {
    fn new(sections: &[(usize, &Section, &SegmentPlan)]) -> Between {
        let mut between = Between::default();
        for (_, _, plan) in sections {
            let made = plan.flow.makes.iter().zip(&plan.before.body.results);
            between.handed_on.extend(made.filter_map(|(&number, &value)| Some((number, input_name(plan, value)?))));
        }
        // Inputs that several pieces read.
        for (k, (_, section, plan)) in sections.iter().enumerate() {
            let read: HashSet<ValueId> = plan.before.body.nodes.iter().flat_map(|node| node.args.clone()).collect();
            for name in read.iter().filter_map(|&value| input_name(plan, value)) {
                let Origin::Input(name) = between.origin(plan, &name) else { continue };
                let new = || Shared { alive: k..=k, deepest: k, standing: None };
                let shared = between.inputs.entry(name).or_insert_with(new);
                // What follows each other in loops is taken to be one loop.
                let in_loop = |&at: &usize| n_loops(section) > 0 && n_loops(sections[at].1) > 0;
                let first = (0..k).rev().take_while(in_loop).last().unwrap_or(k);
                let last = (k + 1..sections.len()).take_while(in_loop).last().unwrap_or(k);
                shared.alive = first.min(*shared.alive.start())..=last.max(*shared.alive.end());
                if n_loops(section) > n_loops(sections[shared.deepest].1) {
                    shared.deepest = k;
                }
            }
        }
        between
    }

    /// What an input of a piece is. What a loop hands on is not the user's even if it was in the beginning.
    fn origin(&self, plan: &SegmentPlan, name: &str) -> Origin {
        match plan.flow.takes.iter().find(|(taken, _)| taken == name).and_then(|(_, value)| *value) {
            None => Origin::Input(name.to_string()),
            Some(value) => match self.handed_on.get(&value.number).filter(|_| value.carried.is_none()) {
                Some(name) => Origin::Input(name.clone()),
                None => Origin::Made(value),
            },
        }
    }

    /// Remembers where a piece leaves what it makes, and where it wants inputs.
    fn note(&mut self, plan: &SegmentPlan, k: usize, placed: &Placed, machine: &Machine) {
        let standing = |held: Homes, element: u64| {
            let bytes = held.elements(machine.n_workers()).into_iter().map(|n| n * element).collect();
            Standing { held, bytes }
        };
        let homes = placed.sites.homes(&placed.workflow);
        for (number, &value) in plan.flow.makes.iter().enumerate() {
            // What a loop hands on may have been an input in the beginning.
            let output = placed.workflow.outputs.get(number).map(|output| placed.workflow.sets[output.set].dtype);
            if let (Some(held), Some(dtype)) = (Homes::output(placed, &homes, number), output) {
                self.values.insert(value, standing(held, dtype.size()));
            }
        }
        for (name, ty) in plan.before.inputs() {
            let Origin::Input(origin) = self.origin(plan, name) else { continue };
            let Some(shared) = self.inputs.get_mut(&origin).filter(|shared| shared.deepest == k) else { continue };
            if let (None, Some(held)) = (&shared.standing, Homes::input(placed, &homes, name)) {
                shared.standing = Some(standing(held, ty.dtype.size()));
            }
        }
    }
}

/// How often a section is taken to run: nobody knows, but what is in a loop matters more.
fn rounds(section: &Section) -> f64 {
    const OF_A_LOOP: f64 = 10.0;
    OF_A_LOOP.powi(n_loops(section) as i32)
}

/// How many loops are around a section.
fn n_loops(section: &Section) -> usize {
    section.depth - section.branches.len()
}

/// The name of the input that a value of a piece is.
fn input_name(plan: &SegmentPlan, value: ValueId) -> Option<String> {
    let node = plan.before.body.nodes.iter().find(|node| node.results.contains(&value))?;
    match &node.op {
        Op::Source(Source::Input { name, .. }) => Some(name.clone()),
        _ => None,
    }
}

/// Pieces of branches that end sooner than the other branch of their `if`: only one of the two runs.
fn rarer_branches(sections: &[(usize, &Section, &SegmentPlan)], pieces: &[Piece]) -> HashSet<usize> {
    let mut ifs: Vec<u32> = sections.iter().flat_map(|(_, section, _)| &section.branches).map(|(of, _)| *of).collect();
    // Inner ones have higher numbers and are decided first: what does not run counts for no branch around it.
    ifs.sort_unstable();
    ifs.dedup();
    let mut rarer: HashSet<usize> = HashSet::new();
    for number in ifs.into_iter().rev() {
        let of_branch = |otherwise: bool| -> Vec<usize> {
            let within = |k: &usize| sections[*k].1.branches.contains(&(number, otherwise));
            (0..sections.len()).filter(within).collect()
        };
        let time = |pieces_of: &[usize]| -> f64 {
            let counted = pieces_of.iter().filter(|k| !rarer.contains(k));
            counted.map(|&k| rounds(sections[k].1) * pieces[k].seconds()).sum()
        };
        let (then, otherwise) = (of_branch(false), of_branch(true));
        let sooner = if time(&then) >= time(&otherwise) { otherwise } else { then };
        rarer.extend(sooner);
    }
    rarer
}
