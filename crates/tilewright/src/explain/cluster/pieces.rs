//! The pieces of a program one after the other: each finds what it needs where earlier ones have left it.

use std::collections::{BTreeMap, HashMap, HashSet};

use tw_ir::error::Result;
use tw_ir::program::{Op, Source, ValueId};
use tw_plan::cluster::{Before, DEFAULT_LIMIT, Held, Machine, Notation, Placed, Rivals};

use super::{Explanation, Piece, put_in_front};
use crate::explain::segment::SegmentPlan;
use crate::explain::walk::ValueName;
use crate::explain::{Section, units};
use crate::session::Session;

/// How often pieces are placed at most. In the first round nothing is known of what a loop hands on and of where later pieces want inputs.
const MOST_ROUNDS: usize = 3;

/// Who wants what.
pub(super) struct Wanted<'a> {
    pub(super) session: &'a Session,
    pub(super) machine: &'a Machine,
    pub(super) scheduler: Option<&'a str>,
    pub(super) distribution: Option<&'a Notation>,
}

/// Where a value is, and its bytes by worker.
struct Standing {
    held: Held,
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
    /// Inputs of the user: the first and the last piece that reads it, and where the deepest of them in loops wants it.
    inputs: BTreeMap<String, Shared>,
}

struct Shared {
    first: usize,
    last: usize,
    deepest: usize,
    standing: Option<Standing>,
}

impl Explanation {
    /// Places all pieces that can be planned. The best plan of every piece by itself may leave values where the next ones do not want them, so all pieces
    /// by grids are another choice.
    pub(super) fn place_pieces(&self, wanted: &Wanted<'_>) -> Result<Vec<Piece>> {
        let sections: Vec<(usize, &Section, &SegmentPlan)> = (1..)
            .zip(&self.sections)
            .filter_map(|(number, section)| Some((number, section, section.plan()?)))
            .collect();
        let best_each = self.place_in_turn(wanted, None, &sections)?;
        if sections.len() < 2 || wanted.scheduler.is_some() {
            return Ok(best_each);
        }
        // Memory may suffice for some plans and not for others.
        let Ok(by_grids) = self.place_in_turn(wanted, Some("algebraic"), &sections) else { return Ok(best_each) };
        let time = |pieces: &[Piece]| -> f64 {
            let counted = pieces.iter().zip(&sections).filter(|(piece, _)| piece.counts);
            counted.map(|(piece, (_, section, _))| rounds(section) * piece.seconds()).sum()
        };
        Ok(if time(&by_grids) < time(&best_each) { by_grids } else { best_each })
    }

    fn place_in_turn(
        &self,
        wanted: &Wanted<'_>,
        preferred: Option<&str>,
        sections: &[(usize, &Section, &SegmentPlan)],
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
                let title = self.title(section, *number);
                let mut piece = self.place_piece(wanted, plan, &before, title)?;
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

    fn place_piece(&self, wanted: &Wanted<'_>, plan: &SegmentPlan, before: &Before, title: String) -> Result<Piece> {
        let mut program = plan.before.clone();
        // How one machine would cut what comes from other pieces does not bind several.
        let from_others = plan.flow.takes.iter().filter(|(_, value)| value.is_some());
        from_others.for_each(|(name, _)| program.cut_input(name, None));
        let options = wanted.session.plan_options();
        let mut rivals = Rivals::after(before, wanted.distribution, &program, options, wanted.machine, DEFAULT_LIMIT)
            .map_err(|error| match before.bytes.iter().max() {
            Some(&most) if most > 0 && wanted.machine.memory.is_some() => {
                error.note(format!("{} of that are held for other pieces of the program", units::bytes(most)))
            }
            _ => error,
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
        let alive = between.inputs.values().filter(|shared| (shared.first..=shared.last).contains(&k));
        alive.filter_map(|shared| shared.standing.as_ref()).for_each(&mut add);
        if bytes.iter().any(|&bytes| bytes > 0) {
            before.bytes = bytes;
        }
        before
    }

    /// Where a value is; what a loop hands on, where the round before has left it.
    fn standing<'a>(&self, between: &'a Between, value: ValueName) -> Option<&'a Standing> {
        let repeated = value.carried.and_then(|place| self.repeats.get(&place));
        let repeated = repeated.and_then(|value| between.values.get(&value.number));
        repeated.or_else(|| between.values.get(&value.number))
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
                let shared =
                    between.inputs.entry(name).or_insert(Shared { first: k, last: k, deepest: k, standing: None });
                shared.last = k;
                if section.depth > sections[shared.deepest].1.depth {
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
        let standing = |held: Held, element: u64| {
            let bytes = held.elements(machine.n_workers()).into_iter().map(|n| n * element).collect();
            Standing { held, bytes }
        };
        for (number, &value) in plan.flow.makes.iter().enumerate() {
            // What a loop hands on may have been an input in the beginning.
            let output = placed.workflow.outputs.get(number).map(|output| placed.workflow.sets[output.set].dtype);
            if let (Some(held), Some(dtype)) = (Held::output(placed, number), output) {
                self.values.insert(value, standing(held, dtype.size()));
            }
        }
        for (name, ty) in plan.before.inputs() {
            let Origin::Input(origin) = self.origin(plan, name) else { continue };
            let Some(shared) = self.inputs.get_mut(&origin).filter(|shared| shared.deepest == k) else { continue };
            if let (None, Some(held)) = (&shared.standing, Held::input(placed, name)) {
                shared.standing = Some(standing(held, ty.dtype.size()));
            }
        }
    }
}

/// How often a section is taken to run: nobody knows, but what is in a loop matters more.
fn rounds(section: &Section) -> f64 {
    const OF_A_LOOP: f64 = 10.0;
    OF_A_LOOP.powi((section.depth - section.branches.len()) as i32)
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
    let mut times: BTreeMap<u32, [f64; 2]> = BTreeMap::new();
    for (k, (_, section, _)) in sections.iter().enumerate() {
        for &(number, otherwise) in &section.branches {
            times.entry(number).or_default()[otherwise as usize] += pieces[k].seconds();
        }
    }
    let is_rarer = |&(number, otherwise): &(u32, bool)| {
        let [then, other] = times[&number];
        otherwise == (then >= other)
    };
    let rarer = sections.iter().enumerate().filter(|(_, (_, section, _))| section.branches.iter().any(is_rarer));
    rarer.map(|(k, _)| k).collect()
}
