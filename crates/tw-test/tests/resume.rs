//! Runs that are stopped again and again and go on from their checkpoint: the same bits, and nothing runs twice that has ended.
//!
//! `TW_RANDOM_PROGRAMS` asks for more programs, `TW_RANDOM_FIRST` starts at another seed: the one that a failure names.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use tilewright::{Array, Session};
use tw_ir::error::Blame;
use tw_ir::program::{FunctionTable, Program};
use tw_ir::text::print_program;
use tw_ir::workflow::TaskId;
use tw_lang::{NoFiles, parse_program};
use tw_run::Observer;
use tw_test::differential::{Results, run, same_bits};
use tw_test::generate::{Options, random_program};
use tw_test::setting;

/// Cancels the runs of a session when so many tasks have begun.
struct Stopper {
    left: AtomicU64,
    session: Mutex<Option<Session>>,
}

impl Observer for Stopper {
    fn task_started(&self, _: TaskId, _: u32, _: Instant) {
        if self.left.fetch_sub(1, Ordering::Relaxed) == 0
            && let Some(session) = &*self.session.lock().expect("no test panics while it holds this lock")
        {
            session.cancel();
        }
    }
}

struct Directory(PathBuf);

impl Directory {
    fn new(name: &str) -> Directory {
        let path = std::env::temp_dir().join(format!("tw-resume-{}-{name}", std::process::id()));
        std::fs::create_dir_all(&path).expect("a temporary directory");
        Directory(path)
    }

    fn n_entries(&self) -> usize {
        std::fs::read_dir(&self.0).expect("a temporary directory").count()
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Runs a program, stopped after a number of tasks each time. Gives the results, how often it was stopped and the tasks that have begun.
fn resumed(
    directory: &Path,
    (tile, memory): (u64, Option<u64>),
    program: &Program,
    inputs: &Results,
    mut limit: u64,
) -> (Results, u64, u64) {
    let (mut stops, mut begun) = (0, 0);
    loop {
        let stopper = Arc::new(Stopper { left: AtomicU64::new(limit), session: Mutex::new(None) });
        let mut builder = Session::builder().serial().tile(tile).checkpoint(directory).observer(stopper.clone());
        if let Some(memory) = memory {
            builder = builder.memory(memory);
        }
        let session = builder.build();
        *stopper.session.lock().expect("no test panics while it holds this lock") = Some(session.clone());
        let results = run(&session, program, inputs);
        stopper.session.lock().expect("no test panics while it holds this lock").take();
        begun += limit - stopper.left.load(Ordering::Relaxed).min(limit);
        match results {
            Ok(results) => return (results, stops, begun),
            Err(error) if error.blame() == Blame::Cancelled => stops += 1,
            Err(error) => panic!("{error}\n{}", print_program(program)),
        }
        // A segment with more tasks than the limit would never end.
        limit += limit / 8 + 1;
        assert!(stops < 1000, "no end:\n{}", print_program(program));
    }
}

#[test]
fn random_programs_that_are_stopped_go_on_with_the_same_bits() {
    let (first, n) = (setting("TW_RANDOM_FIRST", 0), setting("TW_RANDOM_PROGRAMS", 300));
    let options = Options { stores: false, ..Options::default() };
    let directory = Directory::new("random");
    let (mut stops, mut compared) = (0, 0);
    for seed in first..first + n {
        let (program, arrays) = random_program(seed, &options);
        let tile = 1 + seed % 4;
        let Ok(expected) = run(&Session::builder().serial().tile(tile).build(), &program, &arrays) else { continue };
        let (results, stopped, _) = resumed(&directory.0, (tile, None), &program, &arrays, 1);
        assert!(same_bits(&expected, &results), "seed {seed}: other bits\n{}", print_program(&program));
        assert_eq!(directory.n_entries(), 0, "seed {seed}: a checkpoint is left");
        (stops, compared) = (stops + stopped, compared + 1);
    }
    assert!(compared > n / 2 && stops > compared, "{stops} stops of {compared} programs");
}

fn program(text: &str) -> Program {
    let unit = parse_program(text, &BTreeMap::new(), &NoFiles, &FunctionTable::default());
    unit.unwrap_or_else(|errors| panic!("{errors:?}")).program
}

/// A loop goes on with the turn after the last one that has ended, also if its values are spilled.
#[test]
fn loops_go_on_at_their_last_turn() {
    let program = program(
        "input x: f64[400, 6]\nk = 0\nwhile k < 30 {\nx = x + 0.001 * mean(x, axis=0) * x\nk = k + 1\n}\ny = sum(x, axis=1)\noutput x\noutput y",
    );
    let values: Vec<f64> = (0..2400).map(|k| ((k * 7919) % 1009) as f64 / 1e3).collect();
    let array = Array::from_f64(&values).reshaped(&[400, 6]).unwrap();
    let arrays: Results = [("x".to_string(), array)].into();
    let directory = Directory::new("loop");
    for memory in [None, Some(15_000)] {
        let build = |builder: tilewright::SessionBuilder| match memory {
            Some(bytes) => builder.memory(bytes),
            None => builder,
        };
        let whole = build(Session::builder().serial().tile(50)).build();
        let expected = run(&whole, &program, &arrays).unwrap();
        let tasks = whole.totals().tasks;
        let (results, stops, begun) = resumed(&directory.0, (50, memory), &program, &arrays, tasks / 8);
        assert!(same_bits(&expected, &results));
        assert!(stops >= 5, "{stops}");
        // What a stop loses is less than a turn.
        assert!(begun <= tasks + stops * (tasks / 30 + 20), "{begun} tasks of {tasks}, {stops} stops");
        assert_eq!(directory.n_entries(), 0);
    }
}

/// A run never takes the checkpoint of another program, or of other data.
#[test]
fn checkpoints_belong_to_a_program_and_its_data() {
    let directory = Directory::new("data");
    let sum = "input x: f64[40]\nk = 0\nwhile k < 9 {\nx = x * 1.5\nk = k + 1\n}\noutput x";
    let array = |scale: f64| -> Results {
        [("x".to_string(), Array::from_f64(&(0..40).map(|k| k as f64 * scale).collect::<Vec<_>>()))].into()
    };
    for (text, scale) in [(sum, 1.0), (sum, 2.0), (&sum.replace("1.5", "1.25"), 1.0)] {
        let (program, arrays) = (program(text), array(scale));
        let stopper = Arc::new(Stopper { left: AtomicU64::new(20), session: Mutex::new(None) });
        let session = Session::builder().serial().tile(9).checkpoint(&directory.0).observer(stopper.clone()).build();
        *stopper.session.lock().expect("no test panics while it holds this lock") = Some(session.clone());
        assert!(run(&session, &program, &arrays).is_err());
        stopper.session.lock().expect("no test panics while it holds this lock").take();
    }
    assert_eq!(directory.n_entries(), 3);
    for (text, scale) in [(sum, 1.0), (sum, 2.0), (&sum.replace("1.5", "1.25"), 1.0)] {
        let (program, arrays) = (program(text), array(scale));
        let expected = run(&Session::builder().serial().tile(9).build(), &program, &arrays).unwrap();
        let (results, stops, _) = resumed(&directory.0, (9, None), &program, &arrays, 1000);
        assert!(same_bits(&expected, &results) && stops == 0);
    }
    assert_eq!(directory.n_entries(), 0);
}

/// A damaged file of blocks is an error that names the checkpoint, not other bits.
#[test]
fn damaged_blocks_are_noticed() {
    let directory = Directory::new("damage");
    let program = program("input x: f64[400]\nk = 0\nwhile k < 9 {\nx = x * 1.5\nk = k + 1\n}\noutput x");
    let arrays: Results = [("x".to_string(), Array::from_f64(&(0..400).map(|k| k as f64).collect::<Vec<_>>()))].into();
    let stopper = Arc::new(Stopper { left: AtomicU64::new(40), session: Mutex::new(None) });
    let session = Session::builder().serial().tile(90).checkpoint(&directory.0).observer(stopper.clone()).build();
    *stopper.session.lock().expect("no test panics while it holds this lock") = Some(session.clone());
    assert!(run(&session, &program, &arrays).is_err());
    stopper.session.lock().expect("no test panics while it holds this lock").take();
    drop(session);
    let own = std::fs::read_dir(&directory.0).unwrap().next().unwrap().unwrap().path();
    let bytes = std::fs::read(own.join("blocks")).unwrap();
    std::fs::write(own.join("blocks"), vec![7u8; bytes.len()]).unwrap();
    let session = Session::builder().serial().tile(90).checkpoint(&directory.0).build();
    let error = run(&session, &program, &arrays).unwrap_err();
    assert!(error.to_string().contains("damaged"), "{error}");
}
