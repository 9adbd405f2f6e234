//! Keeping a run within a number of bytes.
//!
//! The head is the lowest rank that has not finished. Serial replay of the schedule holds at most its `peak_bytes`, and the head may always
//! run: when it does, the blocks made by tasks before it that are still alive, together with its own, are blocks that serial replay holds at
//! that step too. (A reader before the head has finished, so whatever serial replay has deleted is deleted here.) Everything else alive
//! was made by tasks that ran ahead of the head, and those had to reserve the bytes of the blocks they make from the surplus, which is
//! the budget minus `peak_bytes`. A reservation is given back when the head reaches the task that made it, for from then on serial replay
//! accounts for those blocks. So blocks hold at most `peak_bytes` plus the surplus.
//!
//! A run whose blocks fit into the budget all at once has no ledger and pays nothing for its budget.
//!
//! Nothing waits forever: all that the head depends on has a lower rank, hence has finished, so the head is running or ready; if it is ready it is the
//! lowest of the ready ones, which is the one that is looked at.

use std::collections::BTreeMap;

use tw_ir::{Error, Result};

/// The bytes a run may still hand out to tasks ahead of the head.
#[derive(Debug)]
pub(crate) struct Ledger {
    surplus: u64,
    head: u32,
    /// Finished tasks after the head, by rank.
    finished: Vec<u64>,
    reserved: BTreeMap<u32, u64>,
}

/// The surplus of a budget for running ahead; an error if not even serial replay fits.
pub(crate) fn surplus(budget: u64, peak_bytes: u64) -> Result<u64> {
    budget.checked_sub(peak_bytes).ok_or_else(|| {
        Error::resource(format!("a budget of {budget} bytes for blocks that need {peak_bytes} bytes"))
            .help(format!("the smallest budget that works is {peak_bytes} bytes"))
    })
}

impl Ledger {
    /// For a schedule with this many tasks.
    pub(crate) fn new(surplus: u64, n_tasks: usize) -> Ledger {
        Ledger { surplus, head: 0, finished: vec![0; n_tasks.div_ceil(64)], reserved: BTreeMap::new() }
    }

    /// True if a task that makes blocks of this many bytes could begin now.
    pub(crate) fn admits(&self, rank: u32, bytes: u64) -> bool {
        rank == self.head || bytes <= self.surplus
    }

    /// Lets a task begin if it fits.
    pub(crate) fn admit(&mut self, rank: u32, bytes: u64) -> bool {
        let fits = self.admits(rank, bytes);
        if fits && rank != self.head && bytes > 0 {
            self.surplus -= bytes;
            self.reserved.insert(rank, bytes);
        }
        fits
    }

    /// A task has ended and let go of its operands.
    pub(crate) fn finish(&mut self, rank: u32) {
        self.finished[rank as usize / 64] |= 1 << (rank % 64);
        while self.finished.get(self.head as usize / 64).is_some_and(|word| word >> (self.head % 64) & 1 == 1) {
            self.head += 1;
        }
        while let Some(entry) = self.reserved.first_entry()
            && *entry.key() <= self.head
        {
            self.surplus += entry.remove();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_head_always_runs_and_others_only_from_the_surplus() {
        let mut ledger = Ledger::new(30, 5);
        assert!(ledger.admit(0, 1000));
        assert!(ledger.admit(1, 20));
        assert!(!ledger.admit(2, 20));
        assert!(ledger.admit(2, 10));
        assert!(!ledger.admits(3, 1) && ledger.admits(3, 0));
        ledger.finish(2);
        assert!(!ledger.admits(3, 1), "what ran ahead stays reserved until the head has passed it");
        ledger.finish(0);
        assert!(ledger.admits(3, 20), "task 1 is the head now and needs no reservation");
        assert!(!ledger.admits(3, 21));
        ledger.finish(1);
        assert!(ledger.admits(4, 30) && !ledger.admits(4, 31));
    }

    #[test]
    fn a_budget_below_the_peak_is_refused() {
        let error = surplus(69, 70).unwrap_err();
        assert_eq!(surplus(100, 70), Ok(30));
        assert_eq!(error.blame(), tw_ir::Blame::Resource);
        assert!(error.help_text().is_some_and(|help| help.contains("70")));
    }
}
