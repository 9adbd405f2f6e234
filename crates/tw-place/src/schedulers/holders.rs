//! The workers that hold a block.

use std::collections::{HashMap, HashSet};

use crate::machine::Machine;

/// Up to this many workers are searched linearly.
const FEW: usize = 32;

/// Workers that hold a block, the first holder in front.
#[derive(Clone, Default)]
pub(super) struct Holders {
    list: Vec<u32>,
    /// With many holders: the set of all, and the first on each node.
    many: Option<Box<Many>>,
}

#[derive(Clone, Default)]
struct Many {
    workers: HashSet<u32>,
    first_on_node: HashMap<u32, u32>,
}

impl Many {
    fn add(&mut self, worker: u32, machine: &Machine) {
        self.workers.insert(worker);
        self.first_on_node.entry(machine.node_of(worker)).or_insert(worker);
    }
}

impl Holders {
    pub(super) fn only(worker: u32) -> Holders {
        Holders { list: vec![worker], many: None }
    }

    pub(super) fn list(&self) -> &[u32] {
        &self.list
    }

    pub(super) fn contains(&self, worker: u32) -> bool {
        match &self.many {
            Some(many) => many.workers.contains(&worker),
            None => self.list.contains(&worker),
        }
    }

    /// Adds a new holder.
    pub(super) fn add(&mut self, worker: u32, machine: &Machine) {
        self.list.push(worker);
        if let Some(many) = &mut self.many {
            many.add(worker, machine);
        } else if self.list.len() > FEW {
            let mut many = Many::default();
            self.list.iter().for_each(|&worker| many.add(worker, machine));
            self.many = Some(Box::new(many));
        }
    }

    /// Removes the holder that was added last.
    pub(super) fn remove_last(&mut self, machine: &Machine) {
        if let (Some(last), Some(many)) = (self.list.pop(), &mut self.many) {
            many.workers.remove(&last);
            // An earlier holder on its node is the first there.
            let node = machine.node_of(last);
            if many.first_on_node.get(&node) == Some(&last) {
                many.first_on_node.remove(&node);
            }
        }
    }

    /// The first holder on a node.
    pub(super) fn first_on_node(&self, node: u32, machine: &Machine) -> Option<u32> {
        match &self.many {
            Some(many) => many.first_on_node.get(&node).copied(),
            None => self.list.iter().copied().find(|&worker| machine.node_of(worker) == node),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_and_many_are_found_alike() {
        let machine = Machine::of(50, 2).unwrap();
        let mut holders = Holders::only(99);
        for worker in 0..80 {
            assert!(!holders.contains(worker));
            holders.add(worker, &machine);
            assert!(holders.contains(worker) && holders.contains(99));
            assert_eq!(holders.first_on_node(worker / 2, &machine), Some(worker / 2 * 2));
            assert_eq!(holders.first_on_node(49, &machine), Some(99));
            assert_eq!(holders.first_on_node(45, &machine), None);
        }
        for worker in (0..80).rev() {
            assert_eq!(holders.first_on_node(worker / 2, &machine), Some(worker / 2 * 2));
            holders.remove_last(&machine);
            assert!(!holders.contains(worker) && holders.contains(99));
            assert_eq!(holders.first_on_node(49, &machine), Some(99));
        }
        assert_eq!(holders.list(), [99]);
    }
}
