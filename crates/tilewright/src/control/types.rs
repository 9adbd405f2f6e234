//! Planning a program without data: values are types with the buffers they would occupy.
//!
//! A loop is walked until its turns repeat themselves, both branches of an `if` are walked, and a count of elements under a mask is taken to be as large
//! as it can be. What has any other extent that only data tells is postponed.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use rustc_hash::FxHashMap;
use tw_block::SourceAccess;
use tw_ir::error::{Blame, Result};
use tw_ir::program::{Node, Op, Program, Region, TensorType};
use tw_ir::schedule::Schedule;
use tw_ir::workflow::{BlockSetId, Boxes, SourceDecl, Workflow};
use tw_ir::{Span, Tiling};

use super::segment::SegmentKey;
use super::{Alive, Around, Domain, Step, Walk, walk};
use crate::bindings::Inputs;
use crate::session::Session;

/// Turns of a loop that are walked at most: carried values may change places for ever.
const MOST_TURNS: usize = 8;

/// A value that would be in memory.
#[derive(Clone, Debug)]
pub(crate) struct Typed {
    /// As if masks selected everything.
    pub(crate) ty: TensorType,
    /// Values that share their blocks share the buffer.
    buffer: u32,
    /// Bytes of the buffer; 0 if it is the user's or a constant.
    bytes: u64,
    /// The input of the user whose blocks it consists of, which are read there again rather than spilled.
    origin: Option<String>,
}

/// What to do with the segments that are met.
pub(crate) trait Recorder {
    /// Plans a segment.
    fn plan(&mut self, session: &Session, key: &SegmentKey) -> Result<Arc<Schedule>>;
    /// Notes a segment that has been planned.
    fn record(&mut self, segment: Foreseen<'_>);
    /// Notes nodes that cannot be planned, the first of them at `unknown`.
    fn postpone(&mut self, nodes: &[&Node], unknown: &Span, around: &[Around<'_>]);
    /// A turn of a loop begins; 0 is the first.
    fn begin_turn(&mut self, turn: usize);
    /// The innermost loop is over.
    fn end_loop(&mut self);
}

/// A segment that would be run.
pub(crate) struct Foreseen<'a> {
    pub(crate) key: SegmentKey,
    /// The inputs whose blocks are in memory already: loading them costs nothing.
    pub(crate) resident: HashSet<String>,
    /// Inputs of the user that are bound to data.
    pub(crate) sources: &'a Inputs,
    /// Its inputs that are values of earlier segments.
    pub(crate) taken: HashSet<String>,
    /// Bytes of the values that are alive while it runs, those that it takes included.
    pub(crate) held_bytes: u64,
    /// Of the values that it takes, those that are inputs of the user: the input and its bytes.
    pub(crate) read_before: Vec<(String, u64)>,
    /// True if extents depend on data and masks are taken to select everything.
    pub(crate) selects_all: bool,
    pub(crate) around: &'a [Around<'a>],
}

/// Plans and forgets.
struct Forget;

impl Recorder for Forget {
    fn plan(&mut self, session: &Session, key: &SegmentKey) -> Result<Arc<Schedule>> {
        session.schedule_of(key)
    }
    fn record(&mut self, _segment: Foreseen<'_>) {}
    fn postpone(&mut self, _nodes: &[&Node], _unknown: &Span, _around: &[Around<'_>]) {}
    fn begin_turn(&mut self, _turn: usize) {}
    fn end_loop(&mut self) {}
}

/// A part of a program whose results are wanted as types before it runs.
pub(super) enum Ahead<'a> {
    /// A branch.
    Branch(&'a Region),
    /// A loop, until its turns repeat.
    Loop {
        /// The types of what it carries into its first turn.
        carried: Vec<Option<TensorType>>,
        condition: &'a Region,
        body: &'a Region,
        node: &'a Node,
    },
}

/// The types of the results, where they are known.
pub(super) fn foresee<D: Domain>(walk: &Walk<'_, D>, ahead: Ahead<'_>) -> Result<Vec<Option<TensorType>>> {
    let (region, has_nameless) = match &ahead {
        Ahead::Branch(region) => (*region, has_nameless_functions(region)),
        Ahead::Loop { condition, body, .. } => {
            (*body, [condition, body].into_iter().any(|r| has_nameless_functions(r)))
        }
    };
    let nothing = vec![None; region.results.len()];
    // Numbers have one grid. Functions that no plan can name would be planned again in every turn.
    let is_cut = region.results.iter().any(|&value| !walk.program.ty(value).shape.is_empty());
    if !is_cut || has_nameless {
        return Ok(nothing);
    }
    let inputs = walk.program.inputs().into_iter();
    let inputs = inputs.filter_map(|(name, _)| Some((name.to_string(), walk.domain.input(name)?))).collect();
    let mut types = Types {
        session: walk.domain.session(),
        inputs,
        sources: Inputs::new(),
        resident: HashSet::new(),
        recorder: Forget,
        n_buffers: 0,
    };
    let values: FxHashMap<_, _> =
        walk.values.iter().map(|(&value, known)| (value, types.new_value(walk.domain.ty(known)))).collect();
    let mut inner = Walk { values, extents: walk.extents.clone(), ..Walk::new(walk.program, &mut types) };
    let results = match ahead {
        Ahead::Branch(region) => inner.region(region),
        Ahead::Loop { carried, condition, body, node } => {
            let carried = carried.into_iter().map(|ty| Some(inner.domain.new_value(ty?))).collect();
            inner.turns(carried, condition, body, node)
        }
    };
    match results {
        Ok(results) => Ok(results.into_iter().map(|value| value.map(|value| value.ty)).collect()),
        Err(error) if error.blame() == Blame::Cancelled => Err(error),
        // What cannot be planned asks for nothing.
        Err(_) => Ok(nothing),
    }
}

fn has_nameless_functions(region: &Region) -> bool {
    let is_nameless = |op: &Op| matches!(op, Op::BlockFn(call) if !call.function.0.is_lasting());
    region.nodes.iter().any(|node| is_nameless(&node.op) || node.op.regions().any(has_nameless_functions))
}

/// Plans all segments that can be planned without data, into the cache of the session.
pub(crate) fn foresee_segments(session: &Session, program: &Program) -> Result<()> {
    walk(program, &mut Types::declared(session, program, Forget))?;
    Ok(())
}

/// The inputs of a program with the types they are declared as.
pub(crate) fn declared_inputs(program: &Program) -> BTreeMap<String, TensorType> {
    program.inputs().into_iter().map(|(name, ty)| (name.to_string(), ty.clone())).collect()
}

/// A walk over types.
pub(crate) struct Types<'a, R> {
    session: &'a Session,
    pub(crate) inputs: BTreeMap<String, TensorType>,
    /// Inputs of the user that are bound to data.
    sources: Inputs,
    /// Inputs of the user that are in memory.
    resident: HashSet<String>,
    pub(crate) recorder: R,
    n_buffers: u32,
}

impl<'a, R: Recorder> Types<'a, R> {
    /// Of a program whose inputs are what they are declared as.
    pub(crate) fn declared(session: &'a Session, program: &Program, recorder: R) -> Types<'a, R> {
        let inputs = declared_inputs(program);
        Types { session, inputs, sources: Inputs::new(), resident: HashSet::new(), recorder, n_buffers: 0 }
    }

    /// Of a program whose inputs are bound.
    pub(crate) fn bound(session: &'a Session, inputs: &Inputs, recorder: R) -> Types<'a, R> {
        let resident = inputs
            .iter()
            .filter(|(_, input)| input.access() == SourceAccess::Memory)
            .map(|(name, _)| name.clone())
            .collect();
        let sources = inputs.clone();
        let inputs = inputs.iter().map(|(name, input)| (name.clone(), input.ty())).collect();
        Types { session, inputs, sources, resident, recorder, n_buffers: 0 }
    }

    fn new_value(&mut self, ty: TensorType) -> Typed {
        self.n_buffers += 1;
        Typed { buffer: self.n_buffers, bytes: ty.known_bytes().unwrap_or(0), ty, origin: None }
    }
}

impl<R: Recorder> Domain for Types<'_, R> {
    type Value = Typed;
    const KNOWS_ALL: bool = false;

    fn session(&self) -> &Session {
        self.session
    }

    fn most_turns(&self) -> usize {
        MOST_TURNS
    }

    fn ty(&self, value: &Typed) -> TensorType {
        value.ty.clone()
    }

    fn input(&self, name: &str) -> Option<TensorType> {
        self.inputs.get(name).cloned()
    }

    fn segment(&mut self, step: Step<'_, Typed>, alive: Alive<'_, Typed>) -> Result<Vec<Option<Typed>>> {
        let schedule = self.recorder.plan(self.session, &step.key)?;
        let workflow = schedule.workflow();
        // An input that rewriting made unnecessary is dropped before the segment runs.
        let is_read = |wanted: &str| {
            workflow.sources.values().any(|source| matches!(source, SourceDecl::Input { name, .. } if name == wanted))
        };
        let taken: HashMap<String, Typed> = step
            .inputs
            .into_iter()
            .filter(|(name, _)| is_read(name))
            .filter_map(|(name, value)| Some((name, value?)))
            .collect();
        let held: HashMap<u32, u64> =
            taken.values().chain(alive.iter()).map(|value| (value.buffer, value.bytes)).collect();
        let mut read_before: Vec<(String, u64)> =
            taken.values().filter_map(|value| Some((value.origin.clone()?, value.bytes))).collect();
        read_before.sort_unstable();
        self.recorder.record(Foreseen {
            read_before,
            resident: taken.keys().chain(&self.resident).cloned().collect(),
            taken: taken.keys().cloned().collect(),
            sources: &self.sources,
            held_bytes: held.values().fold(0u64, |sum, bytes| sum.saturating_add(*bytes)),
            selects_all: step.has_resolved_extents,
            around: step.around,
            key: step.key,
        });
        let loaded = workflow.loaded_sets().map(|(set, source)| (set, &workflow.sources[source]));
        let loaded: HashMap<BlockSetId, &SourceDecl> = loaded.collect();
        let mut by_set: HashMap<BlockSetId, Typed> = HashMap::new();
        let mut results = Vec::with_capacity(step.outputs.len());
        for output in &workflow.outputs {
            let ty = TensorType { dtype: output.dtype, ..output_type(workflow, output.set) };
            let (same_value, is_resident) = match loaded.get(&output.set) {
                Some(SourceDecl::Input { name, .. }) => (taken.get(name), self.resident.contains(name)),
                Some(SourceDecl::Constant(_)) => (None, true),
                None => (None, false),
            };
            let value = match by_set.get(&output.set).or(same_value) {
                Some(same) => Typed { ty, ..same.clone() },
                None => {
                    let value = self.new_value(ty);
                    let origin = match loaded.get(&output.set) {
                        Some(SourceDecl::Input { name, .. }) if !is_resident => Some(name.clone()),
                        _ => None,
                    };
                    Typed { bytes: if is_resident { 0 } else { value.bytes }, origin, ..value }
                }
            };
            by_set.insert(output.set, value.clone());
            results.push(Some(value));
        }
        Ok(results)
    }

    fn postpone(&mut self, nodes: &[&Node], unknown: &Span, around: &[Around<'_>]) -> Result<()> {
        self.recorder.postpone(nodes, unknown, around);
        Ok(())
    }

    fn cuts_branches_alike(&self) -> bool {
        true
    }

    /// Unless both branches hand one value on, each makes its own.
    fn join(&mut self, then: Typed, otherwise: Typed) -> Typed {
        if then.buffer == otherwise.buffer {
            return then;
        }
        let bytes = then.bytes.max(otherwise.bytes);
        Typed { bytes, ..self.new_value(then.ty) }
    }

    fn begin_turn(&mut self, turn: usize) -> Result<()> {
        self.recorder.begin_turn(turn);
        Ok(())
    }

    /// Turns repeat if carried values keep their types and sizes, and share buffers, with each other and with values around the loop, as before.
    fn is_steady(&self, before: &[Option<Typed>], after: &[Option<Typed>], alive: Alive<'_, Typed>) -> bool {
        let around: HashSet<u32> = alive.iter().map(|value| value.buffer).collect();
        let state = |values: &[Option<Typed>]| {
            let facts = |value: &Option<Typed>| value.as_ref().map(|value| (value.ty.clone(), value.bytes));
            let buffers: Vec<Option<u32>> = values.iter().map(|value| Some(value.as_ref()?.buffer)).collect();
            (values.iter().map(facts).collect::<Vec<_>>(), sharing(&buffers, &around))
        };
        state(before) == state(after)
    }

    fn end_loop(&mut self) {
        self.recorder.end_loop();
    }
}

/// How values share buffers: with which value around them, or else with the first of them.
pub(super) fn sharing(buffers: &[Option<u32>], around: &HashSet<u32>) -> Vec<Result<u32, Option<usize>>> {
    let of = |buffer: &Option<u32>| match buffer {
        Some(buffer) if around.contains(buffer) => Ok(*buffer),
        _ => Err(buffers.iter().position(|other| other == buffer)),
    };
    buffers.iter().map(of).collect()
}

/// The type of an output with the tiling it will have.
fn output_type(workflow: &Workflow, set: BlockSetId) -> TensorType {
    let set = &workflow.sets[set];
    let ty = TensorType::known(set.dtype, &set.shape);
    match &set.boxes {
        Boxes::Grid(grid) => ty.with_tiling(Tiling::Grid(grid.clone())),
        Boxes::List(_) => ty,
    }
}
