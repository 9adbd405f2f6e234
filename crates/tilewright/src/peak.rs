//! The worst moment of a schedule and what holds memory then.

use std::collections::HashSet;

use tw_ir::schedule::{Change, Memory, Schedule};
use tw_ir::workflow::{BlockId, BlockSet, BlockSetId, SourceDecl, StmtId, Workflow};
use tw_ir::{BoxRegion, EntityRef};

/// The moment of serial replay with most bytes alive.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Peak {
    /// Bytes alive then.
    pub bytes: u64,
    /// The statement whose task runs then.
    pub during: Option<StmtId>,
    /// What is alive, largest first.
    pub holders: Vec<Holder>,
}

/// Blocks of one tensor that are alive at the peak.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Holder {
    /// The tensor.
    pub name: String,
    /// The statement that makes it.
    pub statement: StmtId,
    /// How many of its blocks.
    pub blocks: u64,
    /// Their bytes.
    pub bytes: u64,
}

/// Per block, true if it is in memory before the segment runs: loading it shares it, and costs nothing.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Resident(Vec<bool>);

impl Resident {
    /// Blocks of constants, and those of inputs that `is_resident` names.
    pub(crate) fn of(workflow: &Workflow, is_resident: &dyn Fn(&str, &BoxRegion) -> bool) -> Resident {
        let mut resident = vec![false; workflow.n_blocks()];
        for (id, source) in workflow.loaded_sets() {
            let set = &workflow.sets[id];
            for position in 0..set.n_blocks() {
                resident[(set.first as u64 + position) as usize] = match &workflow.sources[source] {
                    SourceDecl::Input { name, .. } => is_resident(name, &set.block_box(position)),
                    // Blocks of a constant are views of it.
                    SourceDecl::Constant(_) => true,
                };
            }
        }
        Resident(resident)
    }

    /// True if a block is.
    pub(crate) fn has(&self, block: BlockId) -> bool {
        self.0[block.index()]
    }
}

/// Replays the order serially.
pub(crate) fn replay(schedule: &Schedule, resident: &Resident) -> Peak {
    let workflow = schedule.workflow();
    let mut now = Alive::new(schedule, resident);
    let mut worst = (0u64, 0usize);
    let streams = if schedule.n_moves() == 0 { 0 } else { u64::MAX };
    schedule.replay().walk(|change| {
        now.apply(&change);
        // Most steps cannot reach the peak even with what they stream, which is looked up only for those that do.
        if change.appears && now.bytes.saturating_add(streams) > worst.0 {
            let bytes = now.bytes.saturating_add(schedule.replay().streaming_bytes(change.step));
            if bytes > worst.0 {
                worst = (bytes, change.step);
            }
        }
    });
    // What a step makes is there before what it has read goes, so the peak is reached when the last output of its step is there.
    let mut then = Alive::new(schedule, resident);
    schedule.replay().walk(|change| {
        if change.step < worst.1 || (change.step == worst.1 && change.appears) {
            then.apply(&change);
        }
    });
    let holder = |(id, set): (BlockSetId, &BlockSet)| {
        let (blocks, bytes) = then.held[id.index()];
        Holder { name: set.name.clone(), statement: set.statement, blocks, bytes }
    };
    let mut holders: Vec<Holder> = workflow.sets.iter().map(holder).filter(|holder| holder.bytes > 0).collect();
    holders.sort_by_key(|holder| std::cmp::Reverse(holder.bytes));
    let during = schedule.steps()[worst.1.min(schedule.n_steps())..].iter().find_map(|step| step.as_task());
    Peak { bytes: worst.0, during: during.map(|task| workflow.statement(task)), holders }
}

/// A bound on the bytes alive when threads run ahead of each other, whose blocks of one moment are at most `peak` in serial replay.
pub(crate) fn on_threads(schedule: &Schedule, peak: u64, resident: &Resident, threads: usize) -> u64 {
    let workflow = schedule.workflow();
    let blocks = (0..workflow.n_blocks()).map(BlockId::new).filter(|&block| !resident.has(block));
    let all = blocks.fold(0u64, |sum, block| sum.saturating_add(workflow.block_bytes(block)));
    peak.saturating_add(tw_run::run_ahead(tw_run::largest_step(schedule), threads)).min(all.max(peak))
}

/// The most bytes that are in the spill file at once, in serial replay. Whole blocks that were loaded are not written to it.
pub(crate) fn bytes_on_disk(schedule: &Schedule) -> u64 {
    let workflow = schedule.workflow();
    let loaded: HashSet<BlockSetId> = workflow.loaded_sets().map(|(set, _)| set).collect();
    let (mut now, mut most) = (0u64, 0u64);
    schedule.replay().walk(|change| {
        let is_read_again =
            loaded.contains(&workflow.set_of(change.block)) && schedule.part_of(change.instance).is_none();
        if matches!(change.memory, Memory::Disk(_)) && !is_read_again {
            now = if change.appears { now.saturating_add(change.bytes) } else { now.saturating_sub(change.bytes) };
            most = most.max(now);
        }
    });
    most
}

/// What is alive on one machine, where all instances of a block are one.
struct Alive<'a> {
    schedule: &'a Schedule,
    resident: &'a Resident,
    instances: Vec<u32>,
    bytes: u64,
    /// Per set, blocks and their bytes.
    held: Vec<(u64, u64)>,
}

impl<'a> Alive<'a> {
    fn new(schedule: &'a Schedule, resident: &'a Resident) -> Alive<'a> {
        let workflow = schedule.workflow();
        let (instances, held) = (vec![0; workflow.n_blocks()], vec![(0, 0); workflow.sets.len()]);
        Alive { schedule, resident, instances, bytes: 0, held }
    }

    fn apply(&mut self, change: &Change) {
        let workflow = self.schedule.workflow();
        let set = workflow.set_of(change.block).index();
        if self.resident.has(change.block) || matches!(change.memory, Memory::Disk(_)) {
            return;
        }
        let alive = &mut self.instances[change.block.index()];
        // Ranks of one machine share one block. On one rank instances are parts of a block.
        let is_one_rank = self.schedule.placement().is_none_or(|placement| placement.n_ranks() == 1);
        let (blocks, sum) = &mut self.held[set];
        if is_one_rank {
            if change.appears {
                (*blocks, *sum, self.bytes) =
                    (*blocks + 1, *sum + change.bytes, self.bytes.saturating_add(change.bytes));
            } else {
                (*blocks, *sum, self.bytes) =
                    (*blocks - 1, *sum - change.bytes, self.bytes.saturating_sub(change.bytes));
            }
            return;
        }
        let bytes = workflow.block_bytes(change.block);
        if change.appears {
            *alive += 1;
            if *alive == 1 {
                (*blocks, *sum, self.bytes) = (*blocks + 1, *sum + bytes, self.bytes.saturating_add(bytes));
            }
        } else {
            *alive -= 1;
            if *alive == 0 {
                (*blocks, *sum, self.bytes) = (*blocks - 1, *sum - bytes, self.bytes.saturating_sub(bytes));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use tw_ir::program::TensorType;
    use tw_ir::{DType, Program, Span};

    use super::*;
    use crate::Session;

    #[test]
    fn the_peak_agrees_with_the_schedule_and_is_held_by_somebody() {
        let session = Session::builder().threads(1).tile(10).build();
        let a = session.random_normal(&[60, 40], 1).unwrap();
        let b = session.random_normal(&[40, 50], 2).unwrap();
        let c = a.matmul(&b).unwrap();
        let (program, _) = c.sub(&c.mean(Some(&[0])).unwrap()).unwrap().program().unwrap();
        let planned = session.plan(&program).unwrap();
        let peak = replay(&planned.schedule, &Resident::of(planned.schedule.workflow(), &|_, _| false));
        assert_eq!(peak.bytes, planned.schedule.peak_bytes());
        assert_eq!(peak.bytes, peak.holders.iter().map(|holder| holder.bytes).sum::<u64>());
        assert!(peak.during.is_some());
    }

    #[test]
    fn nothing_is_held_by_nothing() {
        let mut program = Program::new();
        let ty = TensorType::known(DType::F64, &[0]);
        let op = tw_ir::program::Op::Source(tw_ir::program::SourceOp::Input { name: "x".into(), ty });
        let x = program.push1(op, &[], &Span::None).unwrap();
        program.output("x", x);
        let planned = Session::builder().threads(1).build().plan(&program).unwrap();
        assert_eq!(replay(&planned.schedule, &Resident::of(planned.schedule.workflow(), &|_, _| false)).bytes, 0);
    }
}
