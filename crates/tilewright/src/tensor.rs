//! Lazy tensors: the Rust interface of the planner.
//!
//! A tensor is a node of a graph that grows with each operation. Types and shapes are checked at the call. Nothing is computed before
//! [`Tensor::compute`] or a similar method. A computed tensor keeps its blocks while a handle is alive, so each step of a host loop costs
//! the same. Data-dependent extents are computed with the results, or when a shape is requested.

use std::cell::Cell;
use std::collections::HashSet;
use std::panic::Location;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use smallvec::SmallVec;
use tw_block::Source;
use tw_ir::error::{Blame, Error, Result};
use tw_ir::program::{self, ExtentId, Op, Program, TensorType, ValueId};
use tw_ir::{Array, DType, Extent, PrimaryMap, Scalar, Span};
use tw_plan::dissolve_selections;
use tw_run::TensorHandle;

use crate::bindings::Inputs;
use crate::budget::refused_array;
use crate::report::Totals;
use crate::results::{Computed, Want};
use crate::session::{Session, lock};

pub(crate) mod allowance;
pub(crate) mod chunks;
mod count;
mod create;
mod graph;
mod kept;
pub(crate) mod ops;
mod work;

use count::{Count, CountsOfResults};
use graph::Graph;

/// A lazy tensor of a [`Session`].
#[derive(Clone)]
pub struct Tensor {
    node: Arc<TensorNode>,
    /// Which result of the node.
    result: usize,
    /// Blocks that users see instead of those of the node.
    seen: Option<Arc<chunks::Seen>>,
}

struct TensorNode {
    session: Session,
    op: TensorOp,
    /// Emptied once every result is computed, so that what led to a kept tensor is not kept with it.
    args: Mutex<Vec<Tensor>>,
    /// With ids of counts where extents depend on data.
    types: Vec<TensorType>,
    /// The counts that the operation or the types name.
    counts: Vec<Arc<Count>>,
    /// The types once one of the counts is known, two of them, and so on.
    settled: Box<[OnceLock<Vec<TensorType>>]>,
    /// The chunks of the results.
    chunks: Vec<chunks::Cut>,
    /// Counts of the results as masks.
    counts_of_results: CountsOfResults,
    span: Span,
    /// The [`work`] of the node and of all that leads to it, as far as that was not computed when the node was made.
    work: u64,
    /// Results that have been computed.
    computed: Mutex<Vec<Option<Arc<TensorHandle>>>>,
    /// True if a run has computed it, for itself or on the way to something else.
    was_computed: AtomicBool,
    /// True if it stands for a part of what it reads, of which the rest shall not be computed.
    is_selection: AtomicBool,
    /// True if its blocks are kept by the allowance, not by `persist`.
    in_allowance: AtomicBool,
}

enum TensorOp {
    /// Data bound when the tensor was made.
    Bound(Arc<dyn Source>),
    /// An operation on the arguments.
    Node(Box<Op>),
}

impl Drop for TensorNode {
    fn drop(&mut self) {
        release(self.take_references());
    }
}

impl TensorNode {
    /// The tensors that only this node refers to may go with it.
    fn take_references(&mut self) -> Vec<Tensor> {
        let mut tensors = std::mem::take(self.args.get_mut().unwrap_or_else(PoisonError::into_inner));
        tensors.extend(self.counts.drain(..).filter_map(Count::into_tensor));
        tensors
    }

    /// The types, with the extents that have been computed meanwhile.
    fn types(&self) -> &[TensorType] {
        if let Some(settled) = self.settled.last().and_then(OnceLock::get) {
            return settled;
        }
        let known: Vec<(ExtentId, u64)> =
            self.counts.iter().filter_map(|count| Some((count.id(), count.known()?))).collect();
        // Counts that are known stay so. Two threads may still see two different ones of them first, and then both get the types of one of
        // those threads: they miss a number that was computed just now, and a thread that needs it checks again.
        match known.len().checked_sub(1).and_then(|k| self.settled.get(k)) {
            None => &self.types,
            Some(settled) => settled.get_or_init(|| {
                let number = |id| known.iter().find(|(known, _)| *known == id).map(|(_, n)| *n);
                self.types.iter().map(|ty| ty.resolve(&number)).collect()
            }),
        }
    }
}

/// Takes long chains apart one by one: dropping them recursively would overflow the stack.
fn release(mut tensors: Vec<Tensor>) {
    while let Some(tensor) = tensors.pop() {
        if let Some(mut node) = Arc::into_inner(tensor.node) {
            tensors.append(&mut node.take_references());
        }
    }
}

impl Tensor {
    #[track_caller]
    fn bound(session: &Session, source: Arc<dyn Source>, computed: Option<Arc<TensorHandle>>) -> Tensor {
        let ty = source.ty();
        Tensor::from_node(TensorNode {
            session: session.clone(),
            chunks: vec![chunks::of_source(source.as_ref())],
            work: work::of_source(source.as_ref(), n_elements(&ty)),
            op: TensorOp::Bound(source),
            args: Mutex::new(Vec::new()),
            types: vec![ty],
            counts: Vec::new(),
            settled: Box::default(),
            counts_of_results: CountsOfResults::default(),
            span: span_of(Location::caller()),
            computed: Mutex::new(vec![computed]),
            was_computed: AtomicBool::new(false),
            is_selection: AtomicBool::new(false),
            in_allowance: AtomicBool::new(false),
        })
    }

    fn from_node(node: TensorNode) -> Tensor {
        Tensor { node: Arc::new(node), result: 0, seen: None }
    }

    /// Applies an operation, as [`tw_build`] makes them, to tensors and gives all of its results.
    #[track_caller]
    pub fn apply_all(session: &Session, op: Op, args: &[&Tensor]) -> Result<Vec<Tensor>> {
        Tensor::apply_counted(session, op, args, &[])
    }

    /// As [`Tensor::apply_all`], for an operation that names counts which its arguments do not.
    #[track_caller]
    fn apply_counted(session: &Session, op: Op, args: &[&Tensor], new: &[Arc<Count>]) -> Result<Vec<Tensor>> {
        let span = span_of(Location::caller());
        let operands: Vec<&TensorType> = args.iter().map(|tensor| tensor.ty()).collect();
        let types = program::infer(&PrimaryMap::new(), &op, &operands).map_err(|error| error.at(&span))?;
        let n = types.len();
        let cuts: SmallVec<[chunks::Cut; chunks::FEW]> = args.iter().map(|tensor| tensor.chunks()).collect();
        let (chunks, own_work) = match &op {
            Op::Routine(spec) => chunks::of_routine(spec, &cuts)?,
            op => (chunks::of_results(op, &cuts, &types), work::of_operation(op, &operands, &types)),
        };
        let work_of = |tensor: &&Tensor| if tensor.is_computed() { n_elements(tensor.ty()) } else { tensor.node.work };
        let work = args.iter().map(work_of).fold(own_work, u64::saturating_add);
        let counts = count::named_by(new.iter().chain(args.iter().flat_map(|tensor| &tensor.node.counts)), &op, &types);
        let node = Arc::new(TensorNode {
            session: session.clone(),
            args: Mutex::new(args.iter().map(|tensor| (*tensor).clone()).collect()),
            computed: Mutex::new(vec![None; n]),
            was_computed: AtomicBool::new(false),
            is_selection: AtomicBool::new(false),
            in_allowance: AtomicBool::new(false),
            chunks,
            op: TensorOp::Node(Box::new(op)),
            types,
            settled: counts.iter().map(|_| OnceLock::new()).collect(),
            counts,
            counts_of_results: CountsOfResults::default(),
            span,
            work,
        });
        Ok((0..n).map(|result| Tensor { node: node.clone(), result, seen: None }).collect())
    }

    /// Applies an operation with one result.
    #[track_caller]
    pub fn apply(session: &Session, op: Op, args: &[&Tensor]) -> Result<Tensor> {
        ops::only(Tensor::apply_all(session, op, args)?)
    }

    /// The type: dtype, shape, tiling if it is fixed. Data-dependent extents are deferred until they are computed.
    pub fn ty(&self) -> &TensorType {
        &self.node.types()[self.result]
    }
    /// Element type.
    pub fn dtype(&self) -> DType {
        self.ty().dtype
    }
    /// Extents of the axes. Those that depend on data are computed, and nothing else.
    pub fn shape(&self) -> Result<Vec<u64>> {
        self.settle()?;
        self.ty().require_shape()
    }
    /// True if an extent is deferred.
    pub fn is_open(&self) -> bool {
        !self.node.counts.is_empty() && self.ty().known_shape().is_none()
    }
    /// Computes the extents that depend on data, and nothing else.
    pub fn settle(&self) -> Result<()> {
        settle_all(&[self])
    }
    /// The session it belongs to.
    pub fn session(&self) -> &Session {
        &self.node.session
    }

    /// True if its blocks are in memory.
    pub fn is_computed(&self) -> bool {
        self.stored().is_some()
    }
    /// About how many elements a simple operation would touch in the time that computing it takes.
    pub fn work(&self) -> u64 {
        self.node.work
    }

    /// Computes the tensor and keeps its blocks; the handle itself is then cheap to read.
    pub fn persist(&self) -> Result<Arc<TensorHandle>> {
        if let Some(stored) = self.stored() {
            if self.node.in_allowance.load(Ordering::Relaxed) {
                self.pin(&stored);
            }
            return Ok(stored);
        }
        let mut computed = compute_all(&[self])?;
        computed.pop().ok_or_else(|| Error::internal("a computed tensor has no blocks"))
    }

    /// Computes the tensor into one array, which the caller owns. The tensor keeps no blocks of a large result that is asked for once: it is
    /// computed in its last place and never held twice.
    pub fn compute(&self) -> Result<Array> {
        let mut arrays = compute_arrays(&[self])?;
        arrays.pop().ok_or_else(|| Error::internal("a computed tensor has no elements"))
    }

    /// The same array on one of several ranks; the others get nothing.
    pub fn compute_on(&self, rank: u32) -> Result<Option<Array>> {
        Ok(compute_arrays_on(&[self], Some(rank))?.pop().flatten())
    }

    /// Computes a tensor of size one.
    pub fn item(&self) -> Result<Scalar> {
        self.fetch()?.item()
    }

    /// Computes the tensor, keeps its blocks, and gives all of them to the caller, on every one of several ranks.
    pub fn fetch(&self) -> Result<Arc<TensorHandle>> {
        let stored = self.persist()?;
        let session = self.session();
        if session.group().is_none() || stored.homes(session.rank()).is_none() {
            return Ok(stored);
        }
        let fetched = session.fetch(&stored, None)?;
        if session.is_worth_replicating(&fetched) {
            lock(&self.node.computed)[self.result] = Some(Arc::clone(&fetched));
        }
        Ok(fetched)
    }

    /// The program that would compute this tensor: what explain shows.
    pub fn program(&self) -> Result<(Program, Inputs)> {
        let graph = Graph::collect(&[self])?;
        Ok((graph.program, graph.inputs))
    }

    /// The same tensor, which stands for a part of what it reads: the rest is not computed, not even to be kept for later.
    pub(crate) fn selecting(self) -> Tensor {
        self.node.is_selection.store(true, Ordering::Relaxed);
        self
    }

    fn stored(&self) -> Option<Arc<TensorHandle>> {
        lock(&self.node.computed)[self.result].clone()
    }

    /// Keeps blocks that are kept already for as long as the tensor lives.
    fn pin(&self, stored: &Arc<TensorHandle>) {
        if self.node.types.len() == 1 {
            self.node.in_allowance.store(false, Ordering::Relaxed);
        }
        self.session().allowance().forget(stored);
        // Another thread may have let go of them a moment ago.
        self.keep(stored.clone());
    }

    fn keep(&self, stored: Arc<TensorHandle>) {
        let mut computed = lock(&self.node.computed);
        computed[self.result] = Some(stored);
        if computed.iter().all(Option::is_some) {
            release(std::mem::take(&mut *lock(&self.node.args)));
        }
    }
}

impl std::fmt::Debug for Tensor {
    /// Shape and dtype; never computes.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Tensor({})", self.ty())
    }
}

/// Computes several tensors in one plan, sharing what they have in common, and keeps their blocks.
pub fn compute_all(tensors: &[&Tensor]) -> Result<Vec<Arc<TensorHandle>>> {
    compute_wanted(tensors, &[])?.into_iter().map(Computed::into_stored).collect()
}

/// Computes several tensors in one plan, each into one array that the caller owns, as [`Tensor::compute`] does.
pub fn compute_arrays(tensors: &[&Tensor]) -> Result<Vec<Array>> {
    let missing = || Error::internal("a tensor was not computed");
    compute_arrays_on(tensors, None)?.into_iter().map(|array| array.ok_or_else(missing)).collect()
}

/// The same on one of several ranks; the others get nothing. Without a rank, all get the arrays.
pub fn compute_arrays_on(tensors: &[&Tensor], on: Option<u32>) -> Result<Vec<Option<Array>>> {
    if let Some(session) = tensors.first().map(|tensor| tensor.session())
        && let Some(rank) = on.filter(|&rank| rank >= session.n_ranks())
    {
        return Err(Error::source(format!("rank {rank} of {} gets no result", session.n_ranks())));
    }
    let before: Vec<Option<Arc<TensorHandle>>> = tensors.iter().map(|tensor| tensor.stored()).collect();
    let open: Vec<&Tensor> =
        tensors.iter().zip(&before).filter(|(_, stored)| stored.is_none()).map(|(t, _)| *t).collect();
    let limits: Vec<u64> = open.iter().map(|tensor| kept::keep_up_to(tensor)).collect();
    let wants: Vec<Want> = limits.iter().map(|&keep_up_to| Want::Array { keep_up_to, on }).collect();
    let mut computed = open.iter().zip(limits).zip(compute_wanted(&open, &wants)?);
    let mut arrays = Vec::with_capacity(tensors.len());
    for (stored, tensor) in before.into_iter().zip(tensors) {
        let session = tensor.session();
        arrays.push(match stored {
            Some(stored) if session.group().is_some() => session.array_of_ranks(&stored, on, &session.token())?,
            Some(stored) => {
                let bytes = stored.n_bytes();
                if let Some(budget) = tensor.session().budget().filter(|&budget| bytes > budget) {
                    return Err(refused_array(budget, bytes, bytes, None));
                }
                Some(stored.to_array()?)
            }
            None => {
                let ((tensor, limit), computed) =
                    computed.next().ok_or_else(|| Error::internal("a tensor was not computed"))?;
                let can_repeat = computed.can_repeat;
                let is_here = on.is_none_or(|on| on == session.rank());
                let (array, stored) = match is_here {
                    true => computed.into_array(limit).map(|(array, stored)| (Some(array), stored))?,
                    false => (None, computed.stored.filter(|stored| stored.n_bytes() <= limit)),
                };
                if let Some(stored) = stored {
                    tensor.session().allowance().keep(tensor, stored, can_repeat);
                }
                array
            }
        });
    }
    Ok(arrays)
}

/// Computes several tensors in one plan. Those that are wanted as blocks are kept.
fn compute_wanted(tensors: &[&Tensor], wants: &[Want]) -> Result<Vec<Computed>> {
    let Some(first) = tensors.first() else { return Ok(Vec::new()) };
    let session = first.session().clone();
    if tensors.iter().any(|tensor| !session.is_same(tensor.session())) {
        return Err(Error::source("tensors of different sessions cannot be computed together"));
    }
    let graph = Graph::collect(tensors)?;
    let keeps_more = !graph.kept.is_empty();
    let mut totals = Totals::default();
    match compute_graph(&session, tensors, wants, graph, &mut totals) {
        // Tensors kept beside the results are optional: a run is not repeated for them.
        Err(error) if keeps_more && error.blame() == Blame::Resource && totals.segments == 0 => {
            compute_graph(&session, tensors, wants, Graph::collect_only(tensors)?, &mut totals)
        }
        computed => computed,
    }
}

fn compute_graph(
    session: &Session,
    tensors: &[&Tensor],
    wants: &[Want],
    mut graph: Graph,
    totals: &mut Totals,
) -> Result<Vec<Computed>> {
    if let Some(dissolved) = dissolve_selections(&graph.program, session.plan_options())? {
        // Counts without readers are not computed.
        let resolved: HashSet<ValueId> = dissolved.body.nodes.iter().flat_map(|node| node.results.clone()).collect();
        graph.counts.retain(|(_, value)| resolved.contains(value));
        graph.program = dissolved;
    }
    for (k, (_, value)) in graph.counts.iter().enumerate() {
        graph.program.output(format!("count{k}"), *value);
    }
    let mut results = session.interpret(&graph.program, &graph.inputs, wants, totals)?;
    graph.run.done();
    let mut others = results.split_off(tensors.len());
    // Counts are kept first, so that a visible result always has a known shape.
    for ((count, _), computed) in graph.counts.iter().zip(others.drain(graph.kept.len()..)) {
        let stored = computed.into_stored()?;
        count.tensor.keep(session.bring(&stored, &session.token())?);
    }
    for (tensor, computed) in graph.kept.iter().zip(others) {
        session.allowance().keep(tensor, computed.into_stored()?, graph.run.can_repeat(tensor));
    }
    let wants = wants.iter().copied().chain(std::iter::repeat(Want::Blocks));
    for ((tensor, computed), want) in tensors.iter().zip(&mut results).zip(wants) {
        computed.can_repeat = graph.run.can_repeat(tensor);
        // Numbers are read by the host, and counts by types: all ranks have them.
        if let Some(stored) = computed
            .stored
            .as_mut()
            .filter(|stored| stored.blocks().len() == 1 && stored.n_bytes() <= DType::C128.size())
        {
            *stored = session.bring(stored, &session.token())?;
        }
        if let (Want::Blocks, Some(stored)) = (want, &computed.stored) {
            tensor.keep(stored.clone());
        }
    }
    Ok(results)
}

/// Computes the extents of tensors that depend on data, in one plan, and nothing else.
pub fn settle_all(tensors: &[&Tensor]) -> Result<()> {
    let mut numbers: Vec<&Tensor> = Vec::new();
    for tensor in tensors.iter().filter(|tensor| tensor.is_open()) {
        let named = |count: &&Arc<Count>| tensor.ty().shape.contains(&Extent::Deferred(count.id()));
        numbers.extend(tensor.node.counts.iter().filter(named).map(|count| &count.tensor));
    }
    compute_all(&numbers).map(drop)
}

/// The lazy counts that decide whether an error about these tensors holds. None if it holds for any extents.
pub fn numbers_needed(error: &Error, tensors: &[&Tensor]) -> Vec<Tensor> {
    let counts = || tensors.iter().flat_map(|tensor| &tensor.node.counts);
    let number = |id: &ExtentId| counts().find(|count| count.id() == *id).map(|count| count.tensor.clone());
    error.needed_extents().iter().filter_map(number).collect()
}

/// Makes something out of tensors. Where that cannot be done without extents that depend on data, those are computed, and it is tried again.
#[track_caller]
fn with_extents<T>(tensors: &[&Tensor], make: impl Fn() -> Result<T>) -> Result<T> {
    at_span(span_of(Location::caller()), || {
        // Every round computes an extent that was not known, and tensors have few of them.
        loop {
            let error = match make() {
                Ok(made) => return Ok(made),
                Err(error) => error,
            };
            let numbers = numbers_needed(&error, tensors);
            if numbers.is_empty() {
                return Err(error);
            }
            compute_all(&numbers.iter().collect::<Vec<_>>())?;
        }
    })
}

/// Elements of a type, as far as they are known.
fn n_elements(ty: &TensorType) -> u64 {
    ty.shape.iter().filter_map(|extent| extent.known()).fold(1, u64::saturating_mul)
}

thread_local! {
    static HOST: Cell<Option<Span>> = const { Cell::new(None) };
}

/// Runs code in which new tensors, and errors about them, name a line of another host language instead of the calling Rust line.
pub fn at_span<T>(span: Span, f: impl FnOnce() -> T) -> T {
    struct Restore(Option<Span>);
    impl Drop for Restore {
        fn drop(&mut self) {
            HOST.set(self.0);
        }
    }
    let _restore = Restore(HOST.replace(Some(span)));
    f()
}

pub(crate) fn span_of(place: &'static Location<'static>) -> Span {
    HOST.get().unwrap_or_else(|| Span::host(place.file(), place.line()))
}
