//! The worst moment of a schedule and what holds memory then.

use tw_ir::EntityRef;
use tw_ir::kernel::Kernel;
use tw_ir::schedule::{Change, Schedule};
use tw_ir::workflow::{BlockId, BlockSet, BlockSetId, SourceDecl, StmtId};

/// The moment of serial replay with most bytes alive.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Peak {
    /// Bytes alive then.
    pub bytes: u64,
    /// The statement whose task runs then.
    pub during: Option<StmtId>,
    /// Bytes of all blocks that are made.
    pub total_bytes: u64,
    /// The most bytes that one task makes.
    pub largest_step: u64,
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

/// Replays the order serially. Blocks of constants and of the inputs that `is_shared` names are in memory already and not copied: they cost nothing.
pub(crate) fn replay(schedule: &Schedule, is_shared: &dyn Fn(&str) -> bool) -> Peak {
    let workflow = schedule.workflow();
    let mut free = vec![false; workflow.sets.len()];
    for task in schedule.order() {
        let Kernel::Load { source } = workflow.kernels[workflow.kernel(task)].kernel else { continue };
        let is_free = match &workflow.sources[source] {
            SourceDecl::Input { name, .. } => is_shared(name),
            // Blocks of a constant are views of it.
            SourceDecl::Constant(_) => true,
        };
        if is_free {
            workflow.outputs(task).iter().for_each(|&block| free[workflow.set_of(block).index()] = true);
        }
    }
    let mut now = Alive::new(schedule, &free);
    let mut worst = (0u64, 0usize);
    schedule.replay().walk(|change| {
        now.apply(&change);
        if now.bytes > worst.0 {
            worst = (now.bytes, change.step);
        }
    });
    // What a step makes is there before what it has read goes, so the peak is reached when the last output of its step is there.
    let mut then = Alive::new(schedule, &free);
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
    let blocks = (0..workflow.n_blocks()).map(BlockId::new).filter(|&block| !free[workflow.set_of(block).index()]);
    let total_bytes = blocks.fold(0u64, |sum, block| sum.saturating_add(workflow.block_bytes(block)));
    let largest_step = tw_run::largest_step(schedule);
    Peak { total_bytes, largest_step, bytes: worst.0, during: during.map(|task| workflow.statement(task)), holders }
}

/// What is alive on one machine, where all instances of a block are one.
struct Alive<'a> {
    schedule: &'a Schedule,
    free: &'a [bool],
    instances: Vec<u32>,
    bytes: u64,
    /// Per set, blocks and their bytes.
    held: Vec<(u64, u64)>,
}

impl<'a> Alive<'a> {
    fn new(schedule: &'a Schedule, free: &'a [bool]) -> Alive<'a> {
        let workflow = schedule.workflow();
        let (instances, held) = (vec![0; workflow.n_blocks()], vec![(0, 0); workflow.sets.len()]);
        Alive { schedule, free, instances, bytes: 0, held }
    }

    fn apply(&mut self, change: &Change) {
        let workflow = self.schedule.workflow();
        let set = workflow.set_of(change.block).index();
        if self.free[set] {
            return;
        }
        let (alive, bytes) = (&mut self.instances[change.block.index()], workflow.block_bytes(change.block));
        let (blocks, sum) = &mut self.held[set];
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
        let peak = replay(&planned.schedule, &|_| false);
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
        assert_eq!(replay(&planned.schedule, &|_| false).bytes, 0);
    }
}
