//! Peak memory of each worker, with steps one by one in the global order.

use tw_ir::EntityRef;
use tw_ir::schedule::{Event, Memory, Replay};
use tw_ir::workflow::{ScratchSizes, TaskId, Workflow};

use super::Simulation;
use crate::homes::Before;
use crate::sites::Sites;
use crate::traffic::Traffic;

/// Fills in the peaks of workers, and the task at which the largest is reached.
pub(super) fn replay(
    simulation: &mut Simulation,
    workflow: &Workflow,
    order: &[TaskId],
    sites: &Sites,
    traffic: &Traffic,
    before: &Before,
) {
    let (steps, placement) = traffic.schedule(workflow, order, sites, simulation.workers.len() as u32);
    // Inputs that were here before stay; they are counted already.
    let mut was_here = vec![false; workflow.n_blocks()];
    for &task in order.iter().filter(|&&task| before.home(workflow, task).is_some()) {
        workflow.outputs(task).iter().for_each(|block| was_here[block.index()] = true);
    }
    let mut now: Vec<u64> = (0..simulation.workers.len()).map(|worker| before.bytes_of(worker)).collect();
    now.iter().zip(&mut simulation.workers).for_each(|(&bytes, worker)| worker.peak_bytes = bytes);
    let (mut most, mut at_peak) = (0, None);
    let (replay, scratch) = (Replay::new(workflow, &steps, Some(&placement)), ScratchSizes::of(workflow));
    replay.walk(|event| match event {
        Event::Runs(step) => {
            let worker = replay.rank_of(step);
            let held = now[worker].saturating_add(replay.extra_bytes(&scratch, step));
            let peak = &mut simulation.workers[worker].peak_bytes;
            *peak = (*peak).max(held);
            if held > most {
                (most, at_peak) = (held, Some(step));
            }
        }
        Event::Change(change) => {
            let at_home = change.instance.index() < workflow.n_blocks();
            let Memory::Host(worker) = change.memory else { return };
            if at_home && was_here[change.block.index()] {
                return;
            }
            let held = &mut now[worker as usize];
            *held = if change.appears { *held + change.bytes } else { *held - change.bytes };
        }
    });
    // A message counts with the first task that reads its data.
    simulation.at_peak = at_peak.and_then(|step| steps[step..].iter().find_map(|step| step.as_task()));
}
