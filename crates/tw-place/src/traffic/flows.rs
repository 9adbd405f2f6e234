//! Attributes the messages of a placed plan to values and statements, for explain.
//!
//! Planning does not keep these figures; they are computed on request.

use std::collections::{BTreeMap, BTreeSet};

use tw_ir::EntityRef;
use tw_ir::kernel::Kernel;
use tw_ir::program::NodeId;
use tw_ir::workflow::{BlockSetId, Statement, StmtId};

use super::super::placed::Placed;
use tw_plan::task_flops;

/// Bytes of one set of blocks that are sent for one statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Flow {
    /// The set of blocks.
    pub set: BlockSetId,
    /// The statement of the first reader.
    pub statement: StmtId,
    /// The bytes.
    pub bytes: u64,
}

/// Bytes received for one statement.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Received {
    /// By all workers.
    pub bytes: u64,
    /// By the worker that receives most for this statement.
    pub busiest_bytes: u64,
}

impl Placed {
    /// Flows to one worker, or to all workers, the largest first.
    pub fn flows(&self, to: Option<u32>) -> Vec<Flow> {
        let mut sums: BTreeMap<(BlockSetId, StmtId), u64> = BTreeMap::new();
        for transfer in self.traffic.transfers().iter().filter(|transfer| to.is_none_or(|to| transfer.to == to)) {
            let key = (self.workflow.set_of(transfer.block), self.read_by(transfer.first_read));
            *sums.entry(key).or_default() += transfer.bytes;
        }
        let mut flows: Vec<Flow> =
            sums.into_iter().map(|((set, statement), bytes)| Flow { set, statement, bytes }).collect();
        flows.sort_by_key(|flow| std::cmp::Reverse(flow.bytes));
        flows
    }

    /// Bytes received for each statement.
    pub fn received_by_statement(&self) -> Vec<Received> {
        let mut sums: BTreeMap<(StmtId, u32), u64> = BTreeMap::new();
        for transfer in self.traffic.transfers() {
            *sums.entry((self.read_by(transfer.first_read), transfer.to)).or_default() += transfer.bytes;
        }
        let mut received = vec![Received::default(); self.workflow.statements.len()];
        for ((statement, _), bytes) in sums {
            let received = &mut received[statement.index()];
            received.bytes += bytes;
            received.busiest_bytes = received.busiest_bytes.max(bytes);
        }
        received
    }

    /// For each statement: the number of workers that run its tasks, and the number of tasks.
    pub fn workers_by_statement(&self) -> Vec<(u64, u64)> {
        let mut seen: BTreeSet<(StmtId, u32)> = BTreeSet::new();
        let mut counts = vec![(0, 0); self.workflow.statements.len()];
        for &task in &self.order {
            let statement = self.workflow.statement(task);
            let (workers, tasks) = &mut counts[statement.index()];
            *workers += seen.insert((statement, self.sites.of(task))) as u64;
            *tasks += 1;
        }
        counts
    }

    /// The largest imbalance of the statements of these nodes: operations of the busiest worker of a statement over an even share.
    pub fn unevenness_of(&self, nodes: &BTreeSet<NodeId>) -> f64 {
        let mut work: BTreeMap<(StmtId, u32), u64> = BTreeMap::new();
        for &task in &self.order {
            *work.entry((self.workflow.statement(task), self.sites.of(task))).or_default() +=
                task_flops(&self.workflow, task);
        }
        let share = |statement: StmtId| {
            let all = work.range((statement, 0)..=(statement, u32::MAX)).map(|(_, &flops)| flops);
            let (most, total) = all.fold((0, 0), |(most, total), flops| (flops.max(most), total + flops));
            most as f64 * self.simulation.workers.len() as f64 / total.max(1) as f64
        };
        let is_asked = |statement: &Statement| statement.node.is_some_and(|node| nodes.contains(&node));
        let asked = self.workflow.statements.iter().filter(|(_, statement)| is_asked(statement));
        asked.map(|(statement, _)| share(statement)).fold(1.0, f64::max)
    }

    /// The workers that computed each block or a part of it, in ascending order. Tasks that only combine or finish contributions do not count.
    pub fn makers(&self) -> Vec<Vec<u32>> {
        let mut makers: Vec<Vec<u32>> = vec![Vec::new(); self.workflow.n_blocks()];
        for &task in &self.order {
            let gathered: Vec<u32> = match self.workflow.kernels[self.workflow.kernel(task)].kernel {
                Kernel::Combine(_) | Kernel::Finish(_) => {
                    let operands = self.workflow.present_operands(task);
                    operands.flat_map(|operand| makers[operand.block.index()].iter().copied()).collect()
                }
                Kernel::Fill(_) => Vec::new(),
                _ => vec![self.sites.of(task)],
            };
            for &block in self.workflow.outputs(task) {
                let known = &mut makers[block.index()];
                for &worker in &gathered {
                    if let Err(place) = known.binary_search(&worker) {
                        known.insert(place, worker);
                    }
                }
            }
        }
        makers
    }

    fn read_by(&self, position: u32) -> StmtId {
        self.workflow.statement(self.order[position as usize])
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::placed::place;
    use super::super::super::{Lshs, Machine, Pattern, RoundRobin, Scheduler};
    use super::*;
    use tw_lang::{NoFiles, parse_program};
    use tw_plan::PlanOptions;

    const TEXT: &str =
        "input x: f64[40, 8]\ninput y: f64[40, 8]\nz = transpose(x) @ y\ns = sum(z)\noutput z\noutput s\n";

    fn placed(scheduler: &dyn Scheduler) -> Placed {
        let unit = parse_program(TEXT, &Default::default(), &NoFiles, &Default::default()).unwrap();
        let options = PlanOptions { tile: Some(4), ..PlanOptions::default() };
        let plan = tw_plan::plan_segment(&unit.program, &options).unwrap();
        place(&plan, &Machine::of(3, 2).unwrap(), scheduler).unwrap()
    }

    #[test]
    fn all_that_is_sent_is_sent_for_something() {
        for scheduler in [&Lshs as &dyn Scheduler, &Pattern, &RoundRobin] {
            let placed = placed(scheduler);
            let wire = placed.simulation.wire_bytes();
            assert!(wire > 0);
            assert_eq!(placed.flows(None).iter().map(|flow| flow.bytes).sum::<u64>(), wire);
            assert!(placed.flows(None).is_sorted_by_key(|flow| std::cmp::Reverse(flow.bytes)));
            let received = placed.received_by_statement();
            assert_eq!(received.iter().map(|received| received.bytes).sum::<u64>(), wire);
            for (worker, figures) in (0u32..).zip(&placed.simulation.workers) {
                let bytes: u64 = placed.flows(Some(worker)).iter().map(|flow| flow.bytes).sum();
                assert_eq!(bytes, figures.received_bytes);
                assert!(received.iter().map(|received| received.busiest_bytes).sum::<u64>() >= bytes);
            }
            let work = placed.workers_by_statement();
            assert_eq!(work.iter().map(|(_, tasks)| *tasks).sum::<u64>(), placed.order.len() as u64);
            assert!(work.iter().all(|&(workers, tasks)| workers <= tasks.min(6)));
        }
    }

    #[test]
    fn a_block_is_made_by_all_who_contribute() {
        let placed = placed(&Lshs);
        let (makers, homes) = (placed.makers(), placed.sites.homes(&placed.workflow));
        let set = |name: &str| placed.workflow.sets.iter().find(|(_, set)| set.name == name).unwrap().0;
        let x = placed.workflow.block(set("x"), 0).index();
        assert_eq!(makers[x], [homes[x].unwrap()]);
        // Rows of x and y are spread over all workers, and so is the sum over them.
        let z = placed.workflow.block(set("z"), 0).index();
        assert!(makers[z].len() > 1, "{:?}", makers[z]);
        assert!(makers[z].is_sorted());
    }
}
