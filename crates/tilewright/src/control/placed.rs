//! Planning a program for a cluster: values are sharded over workers.
//!
//! A [`Placer`] plans segment by segment. Each segment finds its operands where earlier segments have left their shards, and leaves its results where the
//! chosen scheduler puts them. Explaining walks with a placer alone; running walks data, and asks the same placer for every segment. So what explain
//! shows is what a run does. One thing only data tells: the branches of an `if` may leave the shards of their results with different workers.
//! Explain goes on with the shards that `then` leaves; a run that takes the other branch plans what follows for the shards that it has.
//!
//! Two decisions concern the whole program, and [`place_program`] makes them before anything runs: which scheduler is preferred in all segments (the best plan of every
//! segment by itself may leave values where the next segment does not want them), and where inputs go that several segments read (to where the innermost
//! loop wants them).

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use tw_block::Source;
use tw_ir::error::{Error, Result};
use tw_ir::program::{Node, Op, Program, Region, SourceOp, TensorType, ValueId};
use tw_ir::workflow::{BlockSetId, SourceDecl};
use tw_ir::{Span, Tiling};
use tw_place::{Before, Cluster, DEFAULT_LIMIT, Homes, Machine, Placed, Request, Rivals, SchedulerName};

use super::collect::{Collected, Item, Position};
use super::segment::SegmentKey;
use super::types::sharing;
use super::{Alive, Around, Domain, Step, walk};
use crate::bindings::Inputs;
use crate::session::Session;
use crate::units;

/// Turns of a loop that are planned at most: shards may never come back to where they were.
const MOST_TURNS: usize = 3;

/// Schedulers that may be preferred in all segments, where none is asked for.
const PREFERRED: [&str; 2] = ["algebraic", "lshs"];

/// The choices of grids that a segment may compare are shared between segments, down to this part.
const FEWEST_SHARES: usize = 10;

/// A tensor whose shards workers hold.
#[derive(Clone, Debug)]
pub(crate) struct Sharded {
    ty: TensorType,
    /// Values that share their shards share the buffer.
    buffer: u32,
    homes: Option<Arc<Homes>>,
    /// The input of the user that it is.
    input: Option<String>,
}

impl Sharded {
    /// The input of the user that it is, if it is one.
    pub(crate) fn input(&self) -> Option<&str> {
        self.input.as_deref()
    }
}

/// A segment on a cluster.
#[derive(Clone)]
pub(crate) struct PlacedSegment {
    pub(crate) at: Position,
    /// The plan of every scheduler that was asked.
    pub(crate) rivals: Arc<Rivals>,
    /// The plan that runs, by its number.
    pub(crate) chosen: usize,
    pub(crate) key: SegmentKey,
    before: Before,
}

impl PlacedSegment {
    pub(crate) fn placed(&self) -> &Placed {
        &self.rivals.placed[self.chosen]
    }

    /// Seconds of the plan that runs, with turns of loops counted several times.
    fn weight(&self) -> f64 {
        /// Nobody knows how often a loop runs, but what is in a loop matters more.
        const TURNS: f64 = 10.0;
        TURNS.powi(self.at.n_loops() as i32) * self.placed().simulation.makespan
    }

    /// The key of the segment's schedule: which workers hold its operands takes part.
    pub(crate) fn key(&self) -> SegmentKey {
        let mut key = self.key.clone();
        key.placement = Some((self.placed().scheduler, self.before.clone()));
        key
    }
}

impl Item for PlacedSegment {
    fn position(&mut self) -> &mut Position {
        &mut self.at
    }

    fn repeats(&self, other: &PlacedSegment) -> bool {
        self.key() == other.key()
    }

    fn stand_for(&mut self, _other: &PlacedSegment) {}
}

/// Inputs that workers hold, by name: what earlier programs have left there, and what only one rank has.
pub(crate) type Held = BTreeMap<String, Arc<Homes>>;

/// Plans the segments of one program for a cluster.
pub(crate) struct Placer<'a> {
    session: &'a Session,
    cluster: &'a Cluster,
    /// True if plans of all schedulers are wanted, not only of the one that is asked for.
    with_rivals: bool,
    limit: usize,
    preferred: Option<&'static str>,
    /// Where inputs go that several segments read.
    inputs: BTreeMap<String, Arc<Homes>>,
    /// Inputs that are on workers before anything runs, and their bytes on each.
    held: &'a Held,
    held_bytes: Vec<u64>,
    known: HashMap<SegmentKey, Vec<(Before, Arc<Rivals>)>>,
    n_buffers: u32,
}

/// What a segment of a cluster takes: its inputs, and the values that are alive beside them.
pub(crate) struct Operands<'a> {
    pub(crate) inputs: Vec<(&'a str, Option<&'a Sharded>)>,
    pub(crate) alive: Vec<&'a Sharded>,
}

impl<'a> Placer<'a> {
    /// Plans a segment. Gives its plan and its outputs.
    pub(crate) fn segment(
        &mut self,
        key: SegmentKey,
        operands: &Operands<'_>,
        around: &[Around<'_>],
    ) -> Result<(PlacedSegment, Vec<Sharded>)> {
        let before = self.before(&key.program, operands);
        let rivals = self.rivals(&key, &before)?;
        let wanted = [self.cluster.scheduler.word(), self.preferred].into_iter().flatten().next();
        let find = |name: &str| rivals.placed.iter().position(|placed| placed.scheduler == name);
        // Where grids for time promise nothing, there are those for bytes.
        let or_grids = |name: &str| find(name).or_else(|| find("algebraic").filter(|_| name == "timed"));
        let chosen = match (wanted.map(or_grids), self.cluster.scheduler.word()) {
            (Some(Some(chosen)), _) => chosen,
            (Some(None), Some(name)) => return Err(why_not(&rivals, name, &self.cluster.machine)),
            _ => 0,
        };
        let segment = PlacedSegment { at: Position::new(around), rivals, chosen, key, before };
        let outputs = self.outputs(segment.placed(), operands);
        Ok((segment, outputs))
    }

    /// What workers hold when a segment begins.
    fn before(&self, program: &Program, operands: &Operands<'_>) -> Before {
        let mut before = Before::default();
        for (name, ty) in program.inputs() {
            let value = operands.inputs.iter().find(|(input, _)| *input == name).and_then(|(_, value)| *value);
            let homes = value.map_or_else(|| self.held.get(name), |value| self.homes(value));
            if let Some(homes) = homes.filter(|homes| ty.known_shape() == Some(homes.shape())) {
                before.inputs.insert(name.to_string(), homes.as_ref().clone());
            }
        }
        let mut bytes = self.held_bytes.clone();
        let mut counted: HashSet<u32> = HashSet::new();
        let is_held = |value: &Sharded| value.input.as_ref().is_some_and(|name| self.held.contains_key(name));
        let taken = operands.inputs.iter().filter_map(|(_, value)| *value);
        let values = taken.chain(operands.alive.iter().copied()).filter(|value| !is_held(value));
        for value in values.filter(|value| counted.insert(value.buffer)) {
            let Some(homes) = self.homes(value) else { continue };
            let elements = homes.elements(bytes.len());
            bytes.iter_mut().zip(elements).for_each(|(sum, n)| *sum += n * value.ty.dtype.size());
        }
        if bytes.iter().any(|&bytes| bytes > 0) {
            before.bytes = bytes;
        }
        before
    }

    /// Where a value is. An input of the user is where the innermost loop wants it.
    fn homes<'v>(&'v self, value: &'v Sharded) -> Option<&'v Arc<Homes>> {
        match &value.input {
            Some(name) => self.held.get(name).or_else(|| self.inputs.get(name)),
            None => value.homes.as_ref(),
        }
    }

    fn rivals(&mut self, key: &SegmentKey, before: &Before) -> Result<Arc<Rivals>> {
        if let Some((_, rivals)) = self.known.get(key).and_then(|known| known.iter().find(|(of, _)| of == before)) {
            return Ok(rivals.clone());
        }
        let Cluster { machine, scheduler, distribution } = self.cluster;
        let request = Request {
            distribution: distribution.as_deref(),
            only: scheduler.word().filter(|_| !self.with_rivals),
            limit: self.limit,
            ..Request::new(self.session.plan_options(), machine)
        };
        let rivals = request.rivals(before, &key.program).map_err(|error| match before.bytes.iter().max() {
            Some(&most) if most > 0 && machine.memory.is_some() => {
                error.note(format!("some worker has {} that is held when the segment begins", units::bytes(most)))
            }
            _ => error,
        });
        let rivals = Arc::new(rivals?);
        self.known.entry(key.clone()).or_default().push((before.clone(), rivals.clone()));
        Ok(rivals)
    }

    fn outputs(&mut self, placed: &Placed, operands: &Operands<'_>) -> Vec<Sharded> {
        let workflow = &placed.workflow;
        let homes = placed.sites.homes(workflow);
        let loaded = workflow.loaded_sets().map(|(set, source)| (set, &workflow.sources[source]));
        let loaded: HashMap<BlockSetId, &SourceDecl> = loaded.collect();
        let mut outputs: Vec<Sharded> = Vec::with_capacity(workflow.outputs.len());
        for (number, output) in workflow.outputs.iter().enumerate() {
            let set = &workflow.sets[output.set];
            let held = Homes::output(placed, &homes, number);
            let ty = TensorType::known(output.dtype, &set.shape);
            let ty = match &held {
                Some(held) => ty.with_tiling(Tiling::Grid(held.grid().clone())),
                None => ty,
            };
            let same = workflow.outputs[..number].iter().position(|other| other.set == output.set);
            let loaded = match loaded.get(&output.set) {
                Some(SourceDecl::Input { name, .. }) => Some(name.as_str()),
                _ => None,
            };
            let taken = operands.inputs.iter().find(|(name, _)| Some(*name) == loaded);
            let value = match (same, taken) {
                (Some(same), _) => Sharded { ty, ..outputs[same].clone() },
                (None, Some((_, Some(value)))) => Sharded { ty, ..(*value).clone() },
                _ => {
                    self.n_buffers += 1;
                    let input = loaded.map(str::to_string);
                    Sharded { ty, buffer: self.n_buffers, homes: held.map(Arc::new), input }
                }
            };
            outputs.push(value);
        }
        outputs
    }
}

/// The inputs that workers hold, of those that are given. `here` is the rank that asks.
pub(crate) fn held_inputs(inputs: &Inputs, here: u32) -> Held {
    let homes = |source: &Arc<dyn Source>| {
        let homes = source.homes(here)?;
        let grid = source.chunks()?.clone();
        // A tensor without elements is nowhere.
        (grid.n_blocks() as usize == homes.len()).then(|| Arc::new(Homes::new(grid, homes)))
    };
    inputs.iter().filter_map(|(name, source)| Some((name.clone(), homes(source)?))).collect()
}

/// Places a whole program. Gives the placer, with its decisions made, and the segments.
pub(crate) fn place_program<'a>(
    session: &'a Session,
    cluster: &'a Cluster,
    program: &Program,
    (inputs, held): (&BTreeMap<String, TensorType>, &'a Held),
    with_rivals: bool,
) -> Result<(Placer<'a>, PlacedProgram)> {
    if cluster.scheduler == SchedulerName::Written && cluster.distribution.is_none() {
        let error = Error::plan("`tdn` places tasks by a distribution, and none is given");
        return Err(error.help("write one to a file and name it: `tw explain --distribution FILE`"));
    }
    let limit = DEFAULT_LIMIT / n_segments(&program.body).clamp(1, FEWEST_SHARES);
    let mut held_bytes = vec![0; cluster.machine.n_workers()];
    for (homes, ty) in held.iter().filter_map(|(name, homes)| Some((homes, inputs.get(name)?))) {
        let elements = homes.elements(held_bytes.len());
        held_bytes.iter_mut().zip(elements).for_each(|(sum, n)| *sum += n * ty.dtype.size());
    }
    let mut placer = Placer {
        held,
        held_bytes,
        session,
        cluster,
        with_rivals,
        limit,
        preferred: None,
        inputs: BTreeMap::new(),
        known: HashMap::new(),
        n_buffers: 0,
    };
    let mut best = placer.walk(program, inputs);
    let mut decided = (placer.preferred, placer.inputs.clone());
    let is_one = best.as_ref().is_ok_and(|found| found.segments.len() < 2);
    if cluster.scheduler == SchedulerName::Auto && !is_one {
        for preferred in PREFERRED {
            placer.preferred = Some(preferred);
            placer.inputs.clear();
            let other = placer.walk(program, inputs);
            // Memory may suffice for some plans and not for others.
            let is_better = match (&best, &other) {
                (Ok(best), Ok(other)) => other.seconds() < best.seconds(),
                (Err(_), Ok(_)) => true,
                (_, Err(_)) => false,
            };
            if is_better {
                (best, decided) = (other, (placer.preferred, placer.inputs.clone()));
            }
        }
    }
    (placer.preferred, placer.inputs) = decided;
    Ok((placer, best?))
}

impl Placer<'_> {
    /// Walks the program, and again if segments want inputs elsewhere than they were.
    fn walk(&mut self, program: &Program, inputs: &BTreeMap<String, TensorType>) -> Result<PlacedProgram> {
        let mut placed = self.walk_once(program, inputs)?;
        if !placed.wanted.is_empty() && placed.segments.len() > 1 {
            self.inputs = placed.wanted.iter().map(|(name, (_, held))| (name.clone(), held.clone())).collect();
            placed = self.walk_once(program, inputs)?;
        }
        Ok(placed)
    }

    fn walk_once(&mut self, program: &Program, inputs: &BTreeMap<String, TensorType>) -> Result<PlacedProgram> {
        let mut domain = PlacedDomain {
            placer: self,
            inputs,
            collected: Collected::default(),
            n_postponed: 0,
            wanted: BTreeMap::new(),
        };
        walk(program, &mut domain)?;
        let PlacedDomain { collected, n_postponed, wanted, .. } = domain;
        Ok(PlacedProgram { segments: collected.items, n_postponed, wanted })
    }
}

/// A program on a cluster.
pub(crate) struct PlacedProgram {
    pub(crate) segments: Vec<PlacedSegment>,
    /// Segments that cannot be planned without data.
    pub(crate) n_postponed: usize,
    /// Where segments want inputs that several of them read, and how many loops are around the segment.
    wanted: BTreeMap<String, (usize, Arc<Homes>)>,
}

impl PlacedProgram {
    fn seconds(&self) -> f64 {
        let rarer = self.rarer_branches();
        let counted = self.segments.iter().enumerate().filter(|(k, _)| !rarer.contains(k));
        counted.map(|(_, segment)| segment.weight()).sum()
    }

    /// Segments of branches that end sooner than the other branch of their `if`: only one of the two runs.
    pub(crate) fn rarer_branches(&self) -> HashSet<usize> {
        let mut ifs: Vec<u32> =
            self.segments.iter().flat_map(|segment| &segment.at.branches).map(|(of, _)| *of).collect();
        // Inner ones have higher numbers and are decided first: what does not run counts for no branch around it.
        ifs.sort_unstable();
        ifs.dedup();
        let mut rarer: HashSet<usize> = HashSet::new();
        for number in ifs.into_iter().rev() {
            let of_branch = |otherwise: bool| -> Vec<usize> {
                let within = |k: &usize| self.segments[*k].at.branches.contains(&(number, otherwise));
                (0..self.segments.len()).filter(within).collect()
            };
            let time = |of: &[usize]| -> f64 {
                of.iter().filter(|k| !rarer.contains(k)).map(|&k| self.segments[k].weight()).sum()
            };
            let (then, otherwise) = (of_branch(false), of_branch(true));
            let sooner = if time(&then) >= time(&otherwise) { otherwise } else { then };
            rarer.extend(sooner);
        }
        rarer
    }
}

/// A walk over sharded values.
struct PlacedDomain<'p, 'a> {
    placer: &'p mut Placer<'a>,
    inputs: &'p BTreeMap<String, TensorType>,
    collected: Collected<PlacedSegment>,
    n_postponed: usize,
    wanted: BTreeMap<String, (usize, Arc<Homes>)>,
}

impl Domain for PlacedDomain<'_, '_> {
    type Value = Sharded;
    const KNOWS_ALL: bool = false;

    fn session(&self) -> &Session {
        self.placer.session
    }

    fn most_turns(&self) -> usize {
        MOST_TURNS
    }

    fn ty(&self, value: &Sharded) -> TensorType {
        value.ty.clone()
    }

    fn input(&self, name: &str) -> Option<TensorType> {
        self.inputs.get(name).cloned()
    }

    fn segment(&mut self, step: Step<'_, Sharded>, alive: Alive<'_, Sharded>) -> Result<Vec<Option<Sharded>>> {
        let inputs = step.inputs.iter().map(|(name, value)| (name.as_str(), value.as_ref())).collect();
        let operands = Operands { inputs, alive: alive.iter().collect() };
        let (segment, outputs) = self.placer.segment(step.key, &operands, step.around)?;
        let placed = segment.placed();
        let homes = placed.sites.homes(&placed.workflow);
        let depth = segment.at.n_loops();
        for (name, value) in &operands.inputs {
            let Some(input) = value.and_then(|value| value.input.as_ref()) else { continue };
            let is_deeper = self.wanted.get(input).is_none_or(|(known, _)| depth > *known);
            if let (true, Some(held)) =
                (is_deeper && reads(&segment.key.program, name), Homes::input(placed, &homes, name))
            {
                self.wanted.insert(input.clone(), (depth, Arc::new(held)));
            }
        }
        self.collected.items.push(segment);
        Ok(outputs.into_iter().map(Some).collect())
    }

    fn postpone(&mut self, _nodes: &[&Node], _unknown: &Span, _around: &[Around<'_>]) -> Result<()> {
        self.n_postponed += 1;
        Ok(())
    }

    /// Grids belong to placements: cutting alike would not bring shards to the same workers.
    fn cuts_branches_alike(&self) -> bool {
        false
    }

    fn begin_turn(&mut self, turn: usize) -> Result<()> {
        self.collected.begin_turn(turn);
        Ok(())
    }

    /// Turns repeat if carried values keep their types, their shards stay where they are, and share buffers as before.
    fn is_steady(&self, before: &[Option<Sharded>], after: &[Option<Sharded>], alive: Alive<'_, Sharded>) -> bool {
        let around: HashSet<u32> = alive.iter().map(|value| value.buffer).collect();
        let facts = |value: &Sharded| (value.ty.clone(), value.homes.clone(), value.input.clone());
        let state = |values: &[Option<Sharded>]| {
            let buffers: Vec<Option<u32>> = values.iter().map(|value| Some(value.as_ref()?.buffer)).collect();
            let facts: Vec<_> = values.iter().map(|value| value.as_ref().map(facts)).collect();
            (facts, sharing(&buffers, &around))
        };
        state(before) == state(after)
    }

    fn end_loop(&mut self) {
        self.collected.end_loop();
    }
}

/// Why a scheduler that was asked for has no plan.
fn why_not(rivals: &Rivals, name: &str, machine: &Machine) -> Error {
    if let Some((_, error)) = rivals.failed.iter().find(|(failed, _)| *failed == name) {
        return error.clone();
    }
    let error = Error::plan(format!("`{name}` has no plan for a segment of this program"));
    let refused = rivals.refused.iter().find(|placed| placed.scheduler == name);
    let error = match (refused, machine.memory) {
        (Some(placed), Some(memory)) => {
            let (needed, limit) = (units::bytes(placed.simulation.peak_bytes_max()), units::bytes(memory));
            error.note(format!("it needs {needed} on a worker, and the limit is {limit}"))
        }
        _ => error,
    };
    error.help("leave the scheduler out, and the best plan is chosen")
}

/// True if a node of a program reads an input, rather than that it is only handed on.
fn reads(program: &Program, name: &str) -> bool {
    let nodes = &program.body.nodes;
    let is_input = |node: &&Node| matches!(&node.op, Op::Source(SourceOp::Input { name: input, .. }) if input == name);
    let values: Vec<ValueId> = nodes.iter().filter(is_input).flat_map(|node| node.results.iter().copied()).collect();
    nodes.iter().any(|node| node.args.iter().any(|arg| values.contains(arg)))
}

/// Straight-line pieces of a region and of those inside it.
fn n_segments(region: &Region) -> usize {
    let mut n = 0;
    let mut is_straight = false;
    for node in &region.nodes {
        match &node.op {
            Op::Resolve | Op::While { .. } | Op::If { .. } => {
                is_straight = false;
                n += node.op.regions().map(n_segments).sum::<usize>();
            }
            _ => {
                n += !is_straight as usize;
                is_straight = true;
            }
        }
    }
    n
}
