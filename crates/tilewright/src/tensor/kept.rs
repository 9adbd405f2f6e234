//! Decides which intermediate tensors are kept with a result.
//!
//! Only requested tensors must be computed, but a host loop requests a number and continues with the tensor behind it. Without caching, each step would start from the first. So a
//! small tensor with a live handle is kept. A larger one is kept only when it is computed a second time, because it costs memory that the user did not request. All kept
//! tensors share an allowance ([`super::allowance`]). The operands of a slice are not kept, because their remaining elements would have to be computed.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use rustc_hash::{FxHashMap, FxHashSet};
use tw_block::SourceAccess;
use tw_ir::error::{Error, Result};
use tw_ir::index::Idx;
use tw_ir::program::{Op, SourceOp};

use super::graph::key;
use super::{Tensor, TensorNode, TensorOp};
use crate::session::lock;

/// Bytes up to which a tensor that the host holds is kept at once.
const SMALL: u64 = 16 << 20;

/// Bytes up to which a tensor that is given away is kept whatever it costs to compute.
const TINY: u64 = 1 << 20;

/// Work per element from which on a small tensor that is given away is kept at once.
const WORTH_KEEPING: u64 = 32;

/// The tensors that are computed in one run and what reads them.
#[derive(Default)]
pub(super) struct Run {
    /// One tensor of every node.
    nodes: Vec<Tensor>,
    /// Every tensor that is read, in order, and whether a node reads it that was never computed before.
    reads: Vec<(Tensor, bool)>,
    positions: FxHashMap<(*const TensorNode, usize), usize>,
    /// How often nodes are held by the arguments of others, and by this list.
    held_here: FxHashMap<*const TensorNode, usize>,
    /// Nodes that lead back to files, functions and numbers alone.
    repeatable: FxHashSet<*const TensorNode>,
}

impl Run {
    /// A node that will be computed, with its arguments.
    pub(super) fn add(&mut self, tensor: &Tensor, args: &[Tensor]) {
        let is_new = !tensor.node.was_computed.load(Ordering::Relaxed);
        // Arguments come before the nodes that read them.
        let repeats = |arg: &Tensor| match &arg.node.op {
            TensorOp::Bound(source) => source.access() != SourceAccess::Memory,
            TensorOp::Node(_) => self.repeatable.contains(&Arc::as_ptr(&arg.node)),
        };
        if args.iter().all(repeats) {
            self.repeatable.insert(Arc::as_ptr(&tensor.node));
        }
        for arg in args {
            self.count(arg);
            match self.positions.get(&key(arg)) {
                Some(&position) => self.reads[position].1 |= is_new,
                None => {
                    self.positions.insert(key(arg), self.reads.len());
                    self.reads.push((arg.clone(), is_new));
                    self.count(arg);
                }
            }
        }
        self.nodes.push(tensor.clone());
        self.count(tensor);
    }

    fn count(&mut self, tensor: &Tensor) {
        *self.held_here.entry(Arc::as_ptr(&tensor.node)).or_default() += 1;
    }

    /// The tensors to keep besides the results. Of several ranks the first one decides, because a host drops its handles when it likes.
    pub(super) fn kept(&self, results: &[&Tensor]) -> Result<Vec<Tensor>> {
        let candidates = self.candidates(results);
        let session = results.first().map(|tensor| tensor.session());
        let decided = match session {
            Some(session) if !candidates.is_empty() => {
                let own: Vec<u8> = candidates.iter().map(|(_, keep)| u8::from(*keep)).collect();
                session.decided_by_first(own)?
            }
            _ => candidates.iter().map(|(_, keep)| u8::from(*keep)).collect(),
        };
        if decided.len() != candidates.len() {
            return Err(Error::source("ranks do not compute the same tensors")
                .help("all ranks have to call the same functions in the same order"));
        }
        let kept = candidates.into_iter().zip(decided).filter(|(_, keep)| *keep == 1);
        Ok(kept.map(|((tensor, _), _)| tensor.clone()).collect())
    }

    /// The tensors that could be kept, and whether they are worth it here.
    fn candidates(&self, results: &[&Tensor]) -> Vec<(&Tensor, bool)> {
        let mut room = results.first().map_or(0, |tensor| tensor.session().allowance().room());
        let results: FxHashSet<_> = results.iter().map(|tensor| key(tensor)).collect();
        let computed: FxHashSet<*const TensorNode> =
            self.nodes.iter().map(|tensor| Arc::as_ptr(&tensor.node)).collect();
        let in_part = self.computed_in_part();
        let in_full = self.computed_in_full(&results);
        let mut worth = |(tensor, by_new): &(Tensor, bool)| {
            let node = Arc::as_ptr(&tensor.node);
            let is_whole = in_full.contains(&node) && !in_part.contains(&node);
            if !computed.contains(&node) || results.contains(&key(tensor)) || !is_whole {
                return None;
            }
            let bytes = n_bytes(tensor)?;
            let elsewhere = Arc::strong_count(&tensor.node) > self.held_here.get(&node).copied().unwrap_or(0);
            let again = tensor.node.was_computed.load(Ordering::Relaxed) && *by_new;
            let keep = bytes <= room && ((elsewhere && bytes <= SMALL) || again);
            room -= if keep { bytes } else { 0 };
            Some(keep)
        };
        let mut candidates = Vec::new();
        for read in &self.reads {
            candidates.extend(worth(read).map(|keep| (&read.0, keep)));
        }
        candidates
    }

    /// Nodes of which a run needs every element: the rest of others, of which it needs a slice or a few rows, would have to be computed only to be kept.
    fn computed_in_full(&self, results: &FxHashSet<(*const TensorNode, usize)>) -> FxHashSet<*const TensorNode> {
        let mut found: FxHashSet<*const TensorNode> = results.iter().map(|(node, _)| *node).collect();
        // Readers come after their operands.
        for tensor in self.nodes.iter().rev() {
            let TensorOp::Node(op) = &tensor.node.op else { continue };
            if found.contains(&Arc::as_ptr(&tensor.node)) {
                let args = lock(&tensor.node.args);
                let in_full = (0..args.len()).filter(|&k| reads_all(op, k, &args));
                found.extend(in_full.map(|k| Arc::as_ptr(&args[k].node)));
            }
        }
        found
    }

    /// Nodes that lead to a selection: keeping them would mean to compute what was not selected.
    fn computed_in_part(&self) -> FxHashSet<*const TensorNode> {
        let args = |tensor: &Tensor| lock(&tensor.node.args).clone();
        let selections = self.nodes.iter().filter(|tensor| tensor.node.is_selection.load(Ordering::Relaxed));
        let mut open: Vec<Tensor> = selections.flat_map(args).collect();
        let mut found = FxHashSet::default();
        while let Some(tensor) = open.pop() {
            if found.insert(Arc::as_ptr(&tensor.node)) {
                open.extend(args(&tensor));
            }
        }
        found
    }

    /// True if a tensor of the run can be computed again without holding any array in memory for that.
    pub(super) fn can_repeat(&self, tensor: &Tensor) -> bool {
        self.repeatable.contains(&Arc::as_ptr(&tensor.node))
    }

    /// Remembers that everything has been computed once.
    pub(super) fn done(&self) {
        self.nodes.iter().for_each(|tensor| tensor.node.was_computed.store(true, Ordering::Relaxed));
    }
}

/// True unless an operation certainly needs only some elements of an argument.
fn reads_all(op: &Op, argument: usize, args: &[Tensor]) -> bool {
    match op {
        Op::Index(stmt) => {
            let (Some(ranges), Some(shape)) = (stmt.var_ranges(), args[argument].ty().known_shape()) else {
                return true;
            };
            let covers =
                |(idx, &n): (&Idx, &u64)| idx.interval(&ranges).0 <= 0 && idx.interval(&ranges).1 >= n as i64 - 1;
            let mut reads = stmt.reads.iter().filter(|read| read.operand as usize == argument);
            reads.any(|read| read.idx.iter().zip(&shape).all(covers))
        }
        Op::Gather(_) if argument == 0 => {
            let is_known = |index: &Tensor| match &index.node.op {
                TensorOp::Node(op) => matches!(**op, Op::Source(SourceOp::Constant(_))),
                TensorOp::Bound(_) => false,
            };
            !args[1..].iter().all(is_known)
        }
        _ => true,
    }
}

/// Bytes up to which a tensor that is asked for as an array, which is given away, is kept as well: again little at first, and more the second time. Keeping it means to
/// copy it, so one that takes about as long to compute as to copy is kept at first only if it is tiny.
pub(super) fn keep_up_to(tensor: &Tensor) -> u64 {
    let again = tensor.node.was_computed.load(Ordering::Relaxed);
    let worth = (tensor.work() / WORTH_KEEPING).saturating_mul(tensor.dtype().size()).clamp(TINY, SMALL);
    tensor.session().allowance().room().min(if again { u64::MAX } else { worth })
}

fn n_bytes(tensor: &Tensor) -> Option<u64> {
    let ty = tensor.ty();
    Some(ty.known_shape()?.iter().fold(ty.dtype.size(), |bytes, &n| bytes.saturating_mul(n)))
}
