//! Collects a program from tensors: the part of the graph below them that is not computed yet.

use std::collections::BTreeMap;
use std::sync::Arc;

use rustc_hash::FxHashMap;
use tw_block::Source;
use tw_ir::Extent;
use tw_ir::error::{Error, Result};
use tw_ir::program::{self, ExtentId, Op, Program, TensorType, ValueId};
use tw_run::TensorHandle;

use super::count::Count;
use super::kept::Run;
use super::{Tensor, TensorNode, TensorOp};
use crate::bindings::Inputs;
use crate::session::lock;

/// A program that computes some tensors, in the order of its outputs, and the data it reads.
pub(super) struct Graph {
    pub(super) program: Program,
    pub(super) inputs: Inputs,
    /// The tensors kept besides the requested ones; their outputs come last.
    pub(super) kept: Vec<Tensor>,
    pub(super) run: Run,
    /// Counts that the program resolves, with their values in it.
    pub(super) counts: Vec<(Arc<Count>, ValueId)>,
    values: FxHashMap<(*const TensorNode, usize), ValueId>,
    /// What the ids of counts are in the program.
    extents: FxHashMap<ExtentId, Extent>,
}

/// A tensor on the way down. Arguments are checked before the result: a run that computes a tensor stores the result before it releases the
/// arguments, so one of the two is there even if another thread computes it at this moment.
struct Visit {
    tensor: Tensor,
    args: Vec<Tensor>,
    /// What has to be visited before: counts first, so that as little as possible runs before an extent is known.
    below: Vec<Tensor>,
    stored: Option<Arc<TensorHandle>>,
}

impl Visit {
    fn new(tensor: &Tensor) -> Visit {
        let args = lock(&tensor.node.args).clone();
        let stored = tensor.stored();
        let mut below = Vec::new();
        if stored.is_none() {
            below.extend(args.iter().rev().cloned());
            let unknown = tensor.node.counts.iter().rev().filter(|count| count.known().is_none());
            below.extend(unknown.map(|count| count.tensor.clone()));
        }
        Visit { tensor: tensor.clone(), args, below, stored }
    }
}

impl Graph {
    /// The program of some tensors, and what is worth keeping of it.
    pub(super) fn collect(tensors: &[&Tensor]) -> Result<Graph> {
        let mut graph = Graph::collect_only(tensors)?;
        graph.kept = graph.run.kept(tensors)?;
        for (k, tensor) in graph.kept.iter().enumerate() {
            let value = graph.value(tensor)?;
            graph.program.output(format!("kept{k}"), value);
        }
        Ok(graph)
    }

    /// As [`Graph::collect`], but nothing else is kept.
    pub(super) fn collect_only(tensors: &[&Tensor]) -> Result<Graph> {
        let mut graph = Graph {
            program: Program::new(),
            inputs: BTreeMap::new(),
            kept: Vec::new(),
            run: Run::default(),
            counts: Vec::new(),
            values: FxHashMap::default(),
            extents: FxHashMap::default(),
        };
        for (k, tensor) in tensors.iter().enumerate() {
            graph.visit(tensor)?;
            let value = graph.value(tensor)?;
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
            if let Some(below) = visit.below.pop() {
                stack.push(Visit::new(&below));
                continue;
            }
            let Some(Visit { tensor, args, stored, .. }) = stack.pop() else { break };
            match (stored, &tensor.node.op) {
                (Some(stored), _) => self.input(&tensor, stored),
                (None, TensorOp::Bound(source)) => self.input(&tensor, source.clone()),
                (None, TensorOp::Node(op)) => self.node(&tensor, op, &args)?,
            }
        }
        Ok(())
    }

    fn node(&mut self, tensor: &Tensor, op: &Op, args: &[Tensor]) -> Result<()> {
        let node = &tensor.node;
        for count in &node.counts {
            self.resolve(count, tensor)?;
        }
        self.run.add(tensor, args);
        let args = args.iter().map(|arg| self.value(arg)).collect::<Result<Vec<_>>>()?;
        // The types were inferred when the tensor was made.
        let (op, types) = if node.counts.is_empty() {
            (op.clone(), node.types.clone())
        } else {
            let here = |extent: Extent| match extent {
                Extent::Deferred(id) => self.extents.get(&id).copied().unwrap_or(extent),
                known => known,
            };
            (op.map_extents(&here), node.types.iter().map(|ty| ty.map_extents(&here)).collect())
        };
        let results: Vec<ValueId> = types.into_iter().map(|ty: TensorType| self.program.new_value(ty)).collect();
        for (k, &value) in results.iter().enumerate() {
            self.values.insert((Arc::as_ptr(node), k), value);
        }
        self.program.body.nodes.push(program::Node { op, args, results, span: node.span });
        Ok(())
    }

    /// Says what a count stands for: a number, or a value that the program resolves. Decided once, though another thread may compute it meanwhile.
    fn resolve(&mut self, count: &Arc<Count>, tensor: &Tensor) -> Result<()> {
        if self.extents.contains_key(&count.id()) {
            return Ok(());
        }
        let extent = match count.known() {
            Some(n) => Extent::Known(n),
            None => {
                let number = self.value(&count.tensor)?;
                let value = self.program.push1(Op::Resolve, &[number], &tensor.node.span)?;
                self.counts.push((count.clone(), value));
                self.program.extent_of(value)
            }
        };
        self.extents.insert(count.id(), extent);
        Ok(())
    }

    fn input(&mut self, tensor: &Tensor, data: Arc<dyn Source>) {
        let name = format!("in{}", self.inputs.len());
        let mut ty = tensor.ty().clone();
        // Plans that are shown have the blocks that are there, as those that run.
        ty.tiling = ty.tiling.or_else(|| data.ty().tiling);
        let source = program::SourceOp::Input { name: name.clone(), ty: ty.clone() };
        let value = self.program.push_source(source, ty, &tensor.node.span);
        self.inputs.insert(name, data);
        self.values.insert(key(tensor), value);
    }

    fn value(&self, tensor: &Tensor) -> Result<ValueId> {
        let value = self.values.get(&key(tensor));
        value.copied().ok_or_else(|| Error::internal("a tensor is read before it is made"))
    }
}

pub(super) fn key(tensor: &Tensor) -> (*const TensorNode, usize) {
    (Arc::as_ptr(&tensor.node), tensor.result)
}
