//! Tasks that are ready, lowest rank first.
//!
//! Tasks are named by their rank in the schedule, so that the order of numbers is the order of preference. Those ready from the start are a
//! sorted list that all runs of a schedule share; a cursor into it is all a run needs, even with a million of them. Those that become ready
//! later go through a heap.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;

use crate::chaos::Chaos;

/// Ready tasks of one run, by rank.
pub(crate) struct ReadyQueue {
    initial: Arc<[u32]>,
    cursor: usize,
    later: BinaryHeap<Reverse<u32>>,
    chaos: Option<Chaos>,
}

impl ReadyQueue {
    /// The tasks ready from the start, sorted. With chaos, which task comes next is a matter of luck.
    pub(crate) fn new(initial: Arc<[u32]>, chaos: Option<Chaos>) -> ReadyQueue {
        ReadyQueue { initial, cursor: 0, later: BinaryHeap::new(), chaos }
    }

    /// The number of ready tasks.
    pub(crate) fn len(&self) -> usize {
        self.initial.len() - self.cursor + self.later.len()
    }

    /// Adds a task.
    pub(crate) fn push(&mut self, rank: u32) {
        self.later.push(Reverse(rank));
    }

    /// The lowest rank.
    pub(crate) fn peek(&self) -> Option<u32> {
        let initial = self.initial.get(self.cursor).copied();
        let later = self.later.peek().map(|&Reverse(rank)| rank);
        match (initial, later) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        }
    }

    /// Takes the lowest rank.
    pub(crate) fn pop(&mut self) -> Option<u32> {
        let rank = self.peek()?;
        if self.initial.get(self.cursor) == Some(&rank) {
            self.cursor += 1;
        } else {
            self.later.pop();
        }
        Some(rank)
    }

    /// Takes a task for which `admit` says yes: the lowest, or with chaos perhaps another one.
    pub(crate) fn pop_if(&mut self, mut admit: impl FnMut(u32) -> bool) -> Option<u32> {
        if let Some(chaos) = &mut self.chaos
            && !chaos.coin()
        {
            let candidates = 1 + chaos.below(8);
            let mut skipped: Vec<u32> = (0..candidates).map_while(|_| self.pop()).collect();
            let last = skipped.pop();
            skipped.into_iter().for_each(|rank| self.push(rank));
            match last {
                Some(rank) if admit(rank) => return Some(rank),
                Some(rank) => self.push(rank),
                None => return None,
            }
        }
        let rank = self.peek()?;
        if admit(rank) { self.pop() } else { None }
    }

    /// Forgets all of them.
    pub(crate) fn clear(&mut self) {
        self.cursor = self.initial.len();
        self.later.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn initial_and_later_tasks_come_in_order_of_rank() {
        let mut queue = ReadyQueue::new(vec![1, 4, 6].into(), None);
        queue.push(5);
        queue.push(0);
        assert_eq!(queue.len(), 5);
        let order: Vec<u32> = std::iter::from_fn(|| queue.pop()).collect();
        assert_eq!(order, [0, 1, 4, 5, 6]);
        assert_eq!(queue.len(), 0);
    }

    #[test]
    fn a_task_that_is_not_admitted_stays() {
        let mut queue = ReadyQueue::new(vec![3, 7].into(), None);
        assert_eq!(queue.pop_if(|_| false), None);
        assert_eq!(queue.pop_if(|rank| rank == 3), Some(3));
        assert_eq!(queue.len(), 1);
        queue.clear();
        assert_eq!((queue.len(), queue.pop()), (0, None));
    }

    #[test]
    fn chaos_changes_the_order_and_loses_nothing() {
        let all: Vec<u32> = (0..100).collect();
        let mut queue = ReadyQueue::new(all.clone().into(), Some(Chaos::new(5, 0)));
        let order: Vec<u32> = std::iter::from_fn(|| queue.pop_if(|_| true)).collect();
        assert_ne!(order, all);
        let mut sorted = order;
        sorted.sort_unstable();
        assert_eq!(sorted, all);
    }
}
