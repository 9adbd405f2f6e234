//! Prints what the runtime costs per task, for graphs of several shapes.
use tw_run::Runtime;
use tw_run::overhead::measure;

fn main() -> tw_ir::Result<()> {
    let n = 1_000_000;
    for threads in [1, 2, 4] {
        let runtime = Runtime::new(threads);
        for width in [1, 1000, n] {
            let cost = measure(&runtime, n, width, 3)?;
            println!(
                "{threads} threads, {width:7} chains: {:.3} us per task, {:.3} us to prepare",
                cost.run * 1e6,
                cost.prepare * 1e6
            );
        }
        let small = measure(&runtime, 3, 1, 1000)?;
        println!("{threads} threads, 3 tasks: {:.3} us in all", small.run * 3e6);
    }
    Ok(())
}
