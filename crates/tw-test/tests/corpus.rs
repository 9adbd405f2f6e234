//! Every case of the corpus on every engine.

use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use tw_test::corpus::{self, Case};

/// The files of the corpus, or those whose path contains `TW_CORPUS` if that is set.
fn files() -> Vec<PathBuf> {
    let wanted = std::env::var("TW_CORPUS").unwrap_or_default();
    let files = corpus::files().expect("the corpus can be read");
    files.into_iter().filter(|file| file.to_string_lossy().contains(&wanted)).collect()
}

#[test]
fn every_case_on_every_engine() {
    let files = files();
    assert!(!files.is_empty(), "no case was found");
    let next = AtomicUsize::new(0);
    let failures: Mutex<Vec<String>> = Mutex::new(Vec::new());
    let work = || {
        while let Some(file) = files.get(next.fetch_add(1, Ordering::Relaxed)) {
            let result = Case::read(file)
                .and_then(|case| corpus::check(&case).map_err(|problem| format!("{}: {problem}", file.display())));
            if let Err(failure) = result {
                failures.lock().expect("no thread panics while it holds this").push(failure);
            }
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(1, |n| n.get()) {
            scope.spawn(work);
        }
    });
    let mut failures = failures.into_inner().expect("all threads are done");
    failures.sort();
    assert!(failures.is_empty(), "{} of {} cases failed\n\n{}", failures.len(), files.len(), failures.join("\n\n"));
}
