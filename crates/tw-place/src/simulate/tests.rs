//! What no run could undercut.

use super::*;
use crate::{DEFAULT_LIMIT, Rivals};
use tw_lang::{NoFiles, parse_program};
use tw_plan::PlanOptions;

#[test]
fn nobody_sends_what_is_not_there_nor_two_things_at_once() {
    for text in [
        "input a: f64[900, 900]\ninput b: f64[900, 900]\nc = exp(a @ b)\nd = c.T @ c\ns = sum(d)\noutput d\noutput s\n",
        "input x: f64[4000, 40]\nmu = mean(x, axis=0)\nz = x - mu\ng = z.T @ z\noutput g\n",
    ] {
        let unit = parse_program(text, &Default::default(), &NoFiles, &Default::default()).unwrap();
        let machine = Machine::of(4, 2).unwrap();
        let rivals = Rivals::of(&unit.program, &PlanOptions::default(), &machine, DEFAULT_LIMIT).unwrap();
        for placed in &rivals.placed {
            let Simulation { intervals, makespan, critical_path, .. } = &placed.simulation;
            let traffic = &placed.traffic;
            let mut made = vec![0.0f64; placed.workflow.n_blocks()];
            let blocks = |task: &TaskId| placed.workflow.outputs(*task).to_vec();
            for task in &placed.order {
                blocks(task).iter().for_each(|block| made[block.index()] = intervals[task.index()].end);
            }
            // Everything that a worker receives after a moment is received one by one, and read by somebody in the end.
            for worker in 0..machine.n_workers() as u32 {
                let mut coming: Vec<(f64, f64)> = traffic
                    .transfers()
                    .iter()
                    .filter(|transfer| transfer.to == worker)
                    .map(|transfer| {
                        let seconds = machine.link(transfer.from, worker).seconds(transfer.bytes);
                        (made[transfer.block.index()], seconds)
                    })
                    .collect();
                coming.sort_by(|a, b| b.0.total_cmp(&a.0));
                let mut after = 0.0;
                for (ready, seconds) in coming {
                    after += seconds;
                    assert!(ready + after <= makespan * (1.0 + 1e-12), "{} on {worker}", placed.scheduler);
                }
            }
            assert!(critical_path <= &(makespan * (1.0 + 1e-12)), "{}", placed.scheduler);
            for &task in &placed.order {
                for operand in placed.workflow.present_operands(task) {
                    assert!(intervals[task.index()].start >= made[operand.block.index()]);
                }
            }
        }
    }
}
