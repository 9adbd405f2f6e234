//! Prints what the runtime costs per task, for graphs of several shapes.

use tw_ir::Result;
use tw_run::Runtime;
use tw_run::overhead::{coupled_workflow, measure, overhead_workflow};

fn main() -> Result<()> {
    let n = 1_000_000;
    for threads in [1, 2, 4] {
        let runtime = Runtime::new(threads);
        let shapes = [
            ("one chain", overhead_workflow(n, 1)?),
            ("1000 chains", overhead_workflow(n, 1000)?),
            ("all independent", overhead_workflow(n, n)?),
            ("8 coupled chains", coupled_workflow(n, 8)?),
            ("1000 coupled chains", coupled_workflow(n, 1000)?),
        ];
        for (name, workflow) in shapes {
            let cost = measure(&runtime, workflow, 3)?;
            let (run, prepare) = (cost.run * 1e6, cost.prepare * 1e6);
            println!("{threads} threads, {name:20} {run:.3} us per task, {prepare:.3} us to prepare");
        }
        let small = measure(&runtime, overhead_workflow(3, 1)?, 1000)?;
        println!("{threads} threads, 3 tasks: {:.3} us in all", small.run * 3e6);
    }
    Ok(())
}
