//! Lazy tensors: the Rust face of the planner.
//!
//! A tensor is a node of a graph that grows as operations are called. Types and shapes are checked at the call; nothing is computed until
//! [`Tensor::compute`] or one of its relatives. A computed tensor keeps its blocks as long as a handle is alive, so a host loop costs
//! the same at every step.

use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap};
use std::panic::Location;
use std::sync::{Arc, Mutex, PoisonError};

use tw_ir::error::{Error, Result};
use tw_ir::program::{self, Op, Program, Source, TensorType, ValueId};
use tw_ir::{Array, DType, PrimaryMap, Scalar, Span};

use crate::io::Input;
use crate::session::{Session, lock};
use crate::stored::Stored;

mod create;
pub(crate) mod ops;

/// A lazy tensor of a [`Session`].
#[derive(Clone)]
pub struct Tensor {
    node: Arc<TensorNode>,
    /// Which result of the node.
    result: usize,
}

struct TensorNode {
    session: Session,
    op: TensorOp,
    /// Emptied once every result is computed, so that what led to a kept tensor is not kept with it.
    args: Mutex<Vec<Tensor>>,
    types: Vec<TensorType>,
    span: Span,
    /// Elements of the results and of all that leads to them, at least as far as it was not computed when the node was made.
    n_touched: u64,
    /// Results that have been computed.
    computed: Mutex<Vec<Option<Arc<Stored>>>>,
}

enum TensorOp {
    /// Data bound when the tensor was made.
    Bound(Input),
    /// An operation on the arguments.
    Node(Box<Op>),
}

impl Drop for TensorNode {
    fn drop(&mut self) {
        release(std::mem::take(self.args.get_mut().unwrap_or_else(PoisonError::into_inner)));
    }
}

/// Takes long chains apart one by one: dropping them recursively would overflow the stack.
fn release(mut tensors: Vec<Tensor>) {
    while let Some(tensor) = tensors.pop() {
        if let Some(mut node) = Arc::into_inner(tensor.node) {
            tensors.append(node.args.get_mut().unwrap_or_else(PoisonError::into_inner));
        }
    }
}

impl Tensor {
    #[track_caller]
    fn bound(session: &Session, input: Input) -> Tensor {
        let ty = input.ty();
        let computed = match &input {
            Input::Stored(stored) => Some(stored.clone()),
            _ => None,
        };
        Tensor::from_node(TensorNode {
            session: session.clone(),
            op: TensorOp::Bound(input),
            args: Mutex::new(Vec::new()),
            n_touched: n_elements(&ty),
            types: vec![ty],
            span: span_of(Location::caller()),
            computed: Mutex::new(vec![computed]),
        })
    }

    fn from_node(node: TensorNode) -> Tensor {
        Tensor { node: Arc::new(node), result: 0 }
    }

    /// Applies an operation, as [`tw_plan::build`] makes them, to tensors and gives all of its results.
    #[track_caller]
    pub fn apply_all(session: &Session, op: Op, args: &[&Tensor]) -> Result<Vec<Tensor>> {
        let span = span_of(Location::caller());
        let operands: Vec<&TensorType> = args.iter().map(|tensor| tensor.ty()).collect();
        let types = program::infer(&PrimaryMap::new(), &op, &operands).map_err(|error| error.at(&span))?;
        let n = types.len();
        let touched = |tensor: &&Tensor| match tensor.is_computed() {
            true => n_elements(tensor.ty()),
            false => tensor.node.n_touched,
        };
        let n_touched = match op {
            // Code of the user may do anything.
            Op::BlockFn(ref call) if !call.function.0.is_lasting() => u64::MAX,
            _ => types.iter().map(n_elements).chain(args.iter().map(touched)).fold(0, u64::saturating_add),
        };
        let node = Arc::new(TensorNode {
            session: session.clone(),
            op: TensorOp::Node(Box::new(op)),
            args: Mutex::new(args.iter().map(|tensor| (*tensor).clone()).collect()),
            computed: Mutex::new(vec![None; n]),
            types,
            span,
            n_touched,
        });
        Ok((0..n).map(|result| Tensor { node: node.clone(), result }).collect())
    }

    /// Applies an operation with one result.
    #[track_caller]
    pub fn apply(session: &Session, op: Op, args: &[&Tensor]) -> Result<Tensor> {
        Tensor::apply_all(session, op, args)?.pop().ok_or_else(|| Error::internal("an operation without a result"))
    }

    /// The type: dtype, shape, tiling if it is fixed.
    pub fn ty(&self) -> &TensorType {
        &self.node.types[self.result]
    }
    /// Element type.
    pub fn dtype(&self) -> DType {
        self.ty().dtype
    }
    /// Extents of the axes.
    pub fn shape(&self) -> Vec<u64> {
        self.ty().known_shape().unwrap_or_default()
    }
    /// The session it belongs to.
    pub fn session(&self) -> &Session {
        &self.node.session
    }

    /// True if its blocks are in memory.
    pub fn is_computed(&self) -> bool {
        self.stored().is_some()
    }
    /// About how many elements computing it touches: a hint of how long that takes.
    pub fn n_touched(&self) -> u64 {
        self.node.n_touched
    }

    /// Computes the tensor and keeps its blocks; the handle itself is then cheap to read.
    pub fn persist(&self) -> Result<Arc<Stored>> {
        if let Some(stored) = self.stored() {
            return Ok(stored);
        }
        compute_all(&[self])?;
        self.stored().ok_or_else(|| Error::internal("a computed tensor has no blocks"))
    }

    /// Computes the tensor into one array.
    pub fn compute(&self) -> Result<Array> {
        self.persist()?.to_array()
    }

    /// Computes a tensor of size one.
    pub fn item(&self) -> Result<Scalar> {
        self.persist()?.item()
    }

    /// The program that would compute this tensor: what explain shows.
    pub fn program(&self) -> Result<(Program, BTreeMap<String, Input>)> {
        let graph = Graph::collect(&[self])?;
        Ok((graph.program, graph.inputs))
    }

    fn stored(&self) -> Option<Arc<Stored>> {
        lock(&self.node.computed)[self.result].clone()
    }

    fn keep(&self, stored: Arc<Stored>) {
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

/// Computes several tensors in one plan, sharing what they have in common.
pub fn compute_all(tensors: &[&Tensor]) -> Result<Vec<Arc<Stored>>> {
    let Some(first) = tensors.first() else { return Ok(Vec::new()) };
    let session = first.session().clone();
    if tensors.iter().any(|tensor| !session.is_same(tensor.session())) {
        return Err(Error::source("tensors of different sessions cannot be computed together"));
    }
    let graph = Graph::collect(tensors)?;
    let (results, _) = session.interpret(&graph.program, &graph.inputs)?;
    for (tensor, stored) in tensors.iter().zip(&results) {
        tensor.keep(stored.clone());
    }
    Ok(results)
}

/// The part of the graph below some tensors that is not computed yet, as a program.
struct Graph {
    program: Program,
    inputs: BTreeMap<String, Input>,
    values: HashMap<(*const TensorNode, usize), ValueId>,
}

/// A tensor on the way down. Arguments are looked at before the result: whoever computes a tensor keeps the result before letting go of the
/// arguments, so one of the two is there even if another thread computes it at this moment.
struct Visit {
    tensor: Tensor,
    args: Vec<Tensor>,
    stored: Option<Arc<Stored>>,
    next: usize,
}

impl Visit {
    fn new(tensor: &Tensor) -> Visit {
        let args = lock(&tensor.node.args).clone();
        Visit { tensor: tensor.clone(), args, stored: tensor.stored(), next: 0 }
    }
}

impl Graph {
    fn collect(tensors: &[&Tensor]) -> Result<Graph> {
        let mut graph = Graph { program: Program::new(), inputs: BTreeMap::new(), values: HashMap::new() };
        for (k, tensor) in tensors.iter().enumerate() {
            graph.visit(tensor)?;
            let value = graph.values[&key(tensor)];
            graph.program.output(format!("{k}"), value);
        }
        Ok(graph)
    }

    /// Post-order with an explicit stack: graphs may be very deep.
    fn visit(&mut self, root: &Tensor) -> Result<()> {
        let mut stack = vec![Visit::new(root)];
        while let Some(visit) = stack.last_mut() {
            if self.values.contains_key(&key(&visit.tensor)) {
                stack.pop();
                continue;
            }
            if visit.stored.is_none()
                && let Some(arg) = visit.args.get(visit.next)
            {
                let below = Visit::new(arg);
                visit.next += 1;
                stack.push(below);
                continue;
            }
            let Some(Visit { tensor, args, stored, .. }) = stack.pop() else { break };
            let tensor = &tensor;
            match (stored, &tensor.node.op) {
                (Some(stored), _) => self.input(tensor, Input::Stored(stored))?,
                (None, TensorOp::Bound(input)) => self.input(tensor, input.clone())?,
                (None, TensorOp::Node(op)) => {
                    let args: Vec<ValueId> = args.iter().map(|arg| self.values[&key(arg)]).collect();
                    // The types were inferred when the tensor was made.
                    let results: Vec<ValueId> =
                        tensor.node.types.iter().map(|ty| self.program.new_value(ty.clone())).collect();
                    for (k, &value) in results.iter().enumerate() {
                        self.values.insert((Arc::as_ptr(&tensor.node), k), value);
                    }
                    let span = tensor.node.span.clone();
                    self.program.body.nodes.push(program::Node { op: (**op).clone(), args, results, span });
                }
            }
        }
        Ok(())
    }

    fn input(&mut self, tensor: &Tensor, input: Input) -> Result<()> {
        let name = format!("in{}", self.inputs.len());
        let ty = tensor.ty().clone();
        let source = Source::Input { name: name.clone(), ty: ty.clone() };
        let value = self.program.push_source(source, ty, &tensor.node.span);
        self.inputs.insert(name, input);
        self.values.insert(key(tensor), value);
        Ok(())
    }
}

/// Elements of a type, as far as they are known.
fn n_elements(ty: &TensorType) -> u64 {
    ty.shape.iter().filter_map(|extent| extent.known()).fold(1, u64::saturating_mul)
}

fn key(tensor: &Tensor) -> (*const TensorNode, usize) {
    (Arc::as_ptr(&tensor.node), tensor.result)
}

thread_local! {
    static HOST: RefCell<Option<Span>> = const { RefCell::new(None) };
}

/// Runs code in which new tensors, and errors about them, name a line of another host language instead of the calling Rust line.
pub fn at_span<T>(span: Span, f: impl FnOnce() -> T) -> T {
    struct Restore(Option<Span>);
    impl Drop for Restore {
        fn drop(&mut self) {
            HOST.set(self.0.take());
        }
    }
    let _restore = Restore(HOST.replace(Some(span)));
    f()
}

fn span_of(place: &'static Location<'static>) -> Span {
    HOST.with_borrow(Clone::clone).unwrap_or_else(|| Span::Host { file: place.file().into(), line: place.line() })
}
