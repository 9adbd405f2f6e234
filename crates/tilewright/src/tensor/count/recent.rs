//! Recently used masks: in `x[x > 0] + y[x > 0]` both masks are the same operations on the same tensors, so they share a count.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, Weak};

use super::Count;
use crate::session::lock;
use crate::tensor::{Tensor, TensorNode, TensorOp};

/// Masks that are compared with a new one. Equal masks stand close to each other; a long program should not compare all with all.
const MOST_MASKS: usize = 16;

/// Nodes that are compared until two masks count as different.
const MOST_NODES: usize = 64;

struct Counted {
    mask: Weak<TensorNode>,
    result: usize,
    count: Weak<Count>,
}

/// The newest come last.
static RECENT: Mutex<VecDeque<Counted>> = Mutex::new(VecDeque::new());

/// The count of a mask that certainly holds where this one does.
pub(super) fn find(mask: &Tensor) -> Option<Arc<Count>> {
    // Tensors are let go after the lock is: their last reference may be ours.
    let candidates: Vec<(Tensor, Arc<Count>)> = {
        let alive = |counted: &Counted| {
            let mask = Tensor { node: counted.mask.upgrade()?, result: counted.result, seen: None };
            Some((mask, counted.count.upgrade()?))
        };
        lock(&RECENT).iter().rev().filter_map(alive).collect()
    };
    let equal = |other: &Tensor| {
        let mut left = MOST_NODES;
        mask.session().is_same(other.session()) && is_same_value(mask, other, &mut left)
    };
    candidates.into_iter().find(|(other, _)| equal(other)).map(|(_, count)| count)
}

/// Lets later masks find this count.
pub(super) fn remember(mask: &Tensor, count: &Arc<Count>) {
    let mut recent = lock(&RECENT);
    recent.retain(|counted| counted.count.strong_count() > 0);
    if recent.len() >= MOST_MASKS {
        recent.pop_front();
    }
    let (mask, result) = (Arc::downgrade(&mask.node), mask.result);
    recent.push_back(Counted { mask, result, count: Arc::downgrade(count) });
}

/// True if both are the same operations on the same tensors.
fn is_same_value(a: &Tensor, b: &Tensor, left: &mut usize) -> bool {
    if Arc::ptr_eq(&a.node, &b.node) || *left == 0 {
        return Arc::ptr_eq(&a.node, &b.node) && a.result == b.result;
    }
    *left -= 1;
    let (TensorOp::Node(op), TensorOp::Node(other)) = (&a.node.op, &b.node.op) else { return false };
    let (args, others) = (lock(&a.node.args).clone(), lock(&b.node.args).clone());
    // A computed node has let go of its arguments, which was after it kept its results: looking at those second is safe.
    let complete = |tensor: &Tensor| lock(&tensor.node.computed).iter().all(Option::is_none);
    a.result == b.result
        && op == other
        && args.len() == others.len()
        && complete(a)
        && complete(b)
        && args.iter().zip(&others).all(|(a, b)| is_same_value(a, b, left))
}
