//! Spill files that change between writing and reading: an error that names the file, never other bits.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use tilewright::Session;
use tw_ir::error::Blame;
use tw_ir::program::FunctionTable;
use tw_lang::{NoFiles, parse_program};
use tw_run::{MoveKind, Moved, Observer};
use tw_test::differential::{Results, run, same_bits};
use tw_test::scratch::Scratch;

/// The open spill files of this process below a directory. They have no names any more.
fn spill_files(directory: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir("/proc/self/fd") else { return Vec::new() };
    let paths = entries.filter_map(|entry| Some(entry.ok()?.path()));
    paths.filter(|path| fs::read_link(path).is_ok_and(|target| target.starts_with(directory))).collect()
}

/// Overwrites or shortens the spill file after so many blocks have been written.
struct Vandal {
    directory: PathBuf,
    spills: AtomicU64,
    strikes_after: u64,
    shortens: bool,
}

impl Observer for Vandal {
    fn block_moved(&self, moved: Moved, _: u32, _: Instant, _: Instant, _: u64) {
        if moved.kind != MoveKind::Spill || self.spills.fetch_add(1, Ordering::Relaxed) + 1 != self.strikes_after {
            return;
        }
        for path in spill_files(&self.directory) {
            let file = File::options().read(true).write(true).open(path).expect("our own file");
            let length = file.metadata().expect("an open file").len();
            if self.shortens {
                file.set_len(length / 2).expect("our own file");
            } else {
                file.write_all_at(&vec![0xa5; length as usize], 0).expect("our own file");
            }
        }
    }
}

#[test]
fn a_spill_file_that_is_damaged_is_an_error_and_the_session_lives_on() {
    let text =
        "x = random.uniform(300, 200, seed=7)\ny = sort(x, axis=0)\nz = y.T @ y\ns = sum(x * y)\noutput z\noutput s";
    let unit = parse_program(text, &BTreeMap::new(), &NoFiles, &FunctionTable::default());
    let program = unit.unwrap_or_else(|errors| panic!("{errors:?}")).program;
    let none = Results::new();
    let expected = run(&Session::builder().serial().tile(40).build(), &program, &none).unwrap();
    let mut failed = 0;
    for (threads, shortens) in [(1, false), (1, true), (3, false), (3, true)] {
        for strikes_after in [1, 5, 9, u64::MAX] {
            let directory = Scratch::new().unwrap();
            let spills = AtomicU64::new(0);
            let path = fs::canonicalize(directory.directory()).unwrap();
            let vandal = Arc::new(Vandal { directory: path, spills, strikes_after, shortens });
            let builder = Session::builder().threads(threads).tile(40).memory(300_000);
            let session = builder.spill_directory(directory.directory()).observer(vandal.clone()).build();
            let spilled = |outcome: &Result<Results, tw_ir::Error>| match outcome {
                // What was damaged may be read by nobody any more.
                Ok(results) => {
                    assert!(same_bits(&expected, results), "other bits");
                    0
                }
                Err(error) => {
                    assert_eq!(error.blame(), Blame::Resource, "{error:?}");
                    assert!(error.message().contains("reading the spill file in"), "{error:?}");
                    1
                }
            };
            failed += spilled(&run(&session, &program, &none));
            let enough = strikes_after != u64::MAX || vandal.spills.load(Ordering::Relaxed) > 9;
            assert!(enough, "too little is spilled to be damaged");
            assert_eq!(session.memory().0, 0, "blocks are left");
            // What is written from now on is read as it was written.
            assert_eq!(spilled(&run(&session, &program, &none)), 0);
            assert_eq!(fs::read_dir(directory.directory()).unwrap().count(), 0);
        }
    }
    assert!(failed >= 8, "only {failed} of 12 damages were met");
}
