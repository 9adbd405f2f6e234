//! The worst moment of a schedule and what holds memory then.

use tw_ir::EntityRef;
use tw_ir::kernel::Kernel;
use tw_ir::schedule::Schedule;
use tw_ir::workflow::{BlockSetId, SourceDecl, StmtId};

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

/// Replays the order serially. Blocks loaded from the sources that `is_shared` names are held by somebody else and not copied: they cost nothing.
pub(crate) fn replay(schedule: &Schedule, is_shared: &dyn Fn(&str) -> bool) -> Peak {
    let workflow = schedule.workflow();
    let mut free = vec![false; workflow.sets.len()];
    for &task in schedule.order() {
        if let Kernel::Load { source } = workflow.kernels[workflow.kernel(task)].kernel
            && let SourceDecl::Input { name, .. } = &workflow.sources[source as usize]
            && is_shared(name)
        {
            workflow.outputs(task).iter().for_each(|&block| free[workflow.set_of(block).index()] = true);
        }
    }
    let mut worst = (0u64, 0usize);
    let mut now = 0u64;
    walk(schedule, |step, set, bytes, alive| {
        if free[set.index()] {
            return;
        }
        now = if alive { now.saturating_add(bytes) } else { now.saturating_sub(bytes) };
        if now > worst.0 {
            worst = (now, step);
        }
    });
    // Outputs are made before operands are dropped, so the peak is reached when the last output of its step is there.
    let mut held = vec![(0u64, 0u64); workflow.sets.len()];
    walk(schedule, |step, set, bytes, alive| {
        if free[set.index()] || step > worst.1 || (step == worst.1 && !alive) {
            return;
        }
        let (blocks, sum) = &mut held[set.index()];
        if alive {
            (*blocks, *sum) = (*blocks + 1, *sum + bytes);
        } else {
            (*blocks, *sum) = (*blocks - 1, *sum - bytes);
        }
    });
    let mut holders: Vec<Holder> = workflow
        .sets
        .iter()
        .map(|(id, set)| {
            let (blocks, bytes) = held[id.index()];
            Holder { name: set.name.clone(), statement: set.statement, blocks, bytes }
        })
        .filter(|holder| holder.bytes > 0)
        .collect();
    holders.sort_by_key(|holder| std::cmp::Reverse(holder.bytes));
    let during = schedule.order().get(worst.1).map(|&task| workflow.statement(task));
    Peak { bytes: worst.0, during, holders }
}

/// Calls `change(step, set, bytes, appears)` for every block that appears or goes, in order.
fn walk(schedule: &Schedule, mut change: impl FnMut(usize, BlockSetId, u64, bool)) {
    let workflow = schedule.workflow();
    let mut uses: Vec<u32> = (0..workflow.n_blocks()).map(|block| schedule.uses(EntityRef::new(block))).collect();
    let mut contributions = vec![0u32; workflow.n_blocks()];
    for &task in schedule.order() {
        for block in workflow.outputs(task) {
            contributions[block.index()] += 1;
        }
    }
    let mut seen = vec![false; workflow.n_blocks()];
    for (step, &task) in schedule.order().iter().enumerate() {
        for &block in workflow.outputs(task) {
            contributions[block.index()] -= 1;
            if !std::mem::replace(&mut seen[block.index()], true) {
                change(step, workflow.set_of(block), workflow.block_bytes(block), true);
            }
        }
        for operand in workflow.operands(task).iter().filter(|operand| operand.block.is_some()) {
            let left = &mut uses[operand.block.index()];
            *left -= 1;
            if *left == 0 {
                change(step, workflow.set_of(operand.block), workflow.block_bytes(operand.block), false);
            }
        }
        for &block in workflow.outputs(task) {
            // A block nobody reads lives until its last contribution.
            if schedule.uses(block) == 0 && contributions[block.index()] == 0 {
                change(step, workflow.set_of(block), workflow.block_bytes(block), false);
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
        let op = tw_ir::program::Op::Source(tw_ir::program::Source::Input { name: "x".into(), ty });
        let x = program.push1(op, &[], &Span::None).unwrap();
        program.output("x", x);
        let planned = Session::builder().threads(1).build().plan(&program).unwrap();
        assert_eq!(replay(&planned.schedule, &|_| false).bytes, 0);
    }
}
