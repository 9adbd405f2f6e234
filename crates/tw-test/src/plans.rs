//! Plan files: programs with what the planner makes of them.
//!
//! `corpus/plans/README.md` describes the format. A file pins the rewritten program, the plan, what became of every operation, the tasks of every
//! statement and the predicted peak, so that a lost fusion turns a test red. [`changes_without`] leaves out one rewrite after the other, so that a
//! rewrite nobody has written a case for does so too.

mod diff;
mod file;
mod render;

pub use diff::difference;
pub use file::PlanCase;
pub use render::render;

use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::repository::{files_below, root};

/// The directory of the plan files.
pub fn directory() -> PathBuf {
    root().join("corpus/plans")
}

/// The plan files, sorted.
pub fn files() -> std::io::Result<Vec<PathBuf>> {
    files_below(&directory(), "plan")
}

/// What `work` makes of every item, in order, on all threads.
pub fn in_parallel<T: Sync, R: Send>(items: &[T], work: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let next = AtomicUsize::new(0);
    let done: Mutex<Vec<(usize, R)>> = Mutex::new(Vec::new());
    let run = || {
        loop {
            let k = next.fetch_add(1, Ordering::Relaxed);
            let Some(item) = items.get(k) else { return };
            let result = work(item);
            done.lock().expect("no thread panics while it holds this").push((k, result));
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(1, |n| n.get()) {
            scope.spawn(run);
        }
    });
    let mut done = done.into_inner().expect("all threads are done");
    done.sort_by_key(|(k, _)| *k);
    done.into_iter().map(|(_, result)| result).collect()
}

/// For every rewrite, how many of the files have another plan, or none, without it.
pub fn changes_without(files: &[PlanCase]) -> Vec<(&'static str, usize)> {
    let passes = tw_plan::pass_names();
    let changes = in_parallel(files, |file| {
        let with_all = render(file, &[]);
        passes.iter().map(|&pass| render(file, &[pass]) != with_all).collect::<Vec<bool>>()
    });
    let count = |k: usize| changes.iter().filter(|changed| changed[k]).count();
    passes.iter().enumerate().map(|(k, &pass)| (pass, count(k))).collect()
}
