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

/// How a program runs, and how often it is stopped.
#[derive(Clone, Copy)]
struct Way {
    tile: u64,
    memory: Option<u64>,
    /// Makes decisions at random: which blocks are kept, too.
    chaos: Option<u64>,
    threads: usize,
    /// True if it may do more before each stop. A segment of which nothing was kept would never end otherwise.
    grows: bool,
}

const USUAL: Way = Way { tile: 50, memory: None, chaos: None, threads: 1, grows: true };

/// Runs a program, stopped after a number of tasks each time. Gives the results, how often it was stopped and the tasks that have begun.
fn resumed(directory: &Path, way: Way, program: &Program, inputs: &Results, mut limit: u64) -> (Results, u64, u64) {
    let (mut stops, mut begun) = (0, 0);
    loop {
        let stopper = Arc::new(Stopper { left: AtomicU64::new(limit), session: Mutex::new(None) });
        let mut builder = Session::builder().tile(way.tile).checkpoint(directory).observer(stopper.clone());
        builder = if way.threads == 1 { builder.serial() } else { builder.threads(way.threads) };
        if let Some(memory) = way.memory {
            builder = builder.memory(memory);
        }
        if let Some(seed) = way.chaos {
            builder = builder.chaos(seed + stops);
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
        if way.grows {
            limit += limit / 8 + 1;
        }
        assert!(stops < 1000, "no end:\n{}", print_program(program));
    }
}

#[test]
fn random_programs_that_are_stopped_go_on_with_the_same_bits() {
    let (first, n) = (setting("TW_RANDOM_FIRST", 0), setting("TW_RANDOM_PROGRAMS", 120));
    let options = Options { stores: false, ..Options::default() };
    let directory = Directory::new("random");
    let (mut stops, mut compared) = (0, 0);
    for seed in first..first + n {
        let (program, arrays) = random_program(seed, &options);
        let tile = 1 + seed % 4;
        let Ok(expected) = run(&Session::builder().serial().tile(tile).build(), &program, &arrays) else { continue };
        // Blocks are kept by their price, or by luck; on one thread or several; with ample memory or little.
        let chaos = (seed % 3 > 0).then_some(seed);
        let memory = if seed % 5 < 2 { small_budget(tile, &program, &arrays) } else { None };
        let way = Way { tile, memory, chaos, threads: 1 + 2 * (seed as usize % 2), grows: true };
        let (results, stopped, _) = resumed(&directory.0, way, &program, &arrays, 1);
        assert!(same_bits(&expected, &results), "seed {seed}: other bits\n{}", print_program(&program));
        assert_eq!(directory.n_entries(), 0, "seed {seed}: a checkpoint is left");
        (stops, compared) = (stops + stopped, compared + 1);
    }
    assert!(compared > n / 2 && stops > compared, "{stops} stops of {compared} programs");
}

/// A budget below what a program takes that is enough for it, if three quarters are.
fn small_budget(tile: u64, program: &Program, inputs: &Results) -> Option<u64> {
    let ample = Session::builder().serial().tile(tile).build();
    run(&ample, program, inputs).ok()?;
    let memory = ample.totals().peak_bytes / 4 * 3;
    let bounded = Session::builder().serial().tile(tile).memory(memory).build();
    run(&bounded, program, inputs).ok().map(|_| memory)
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
        let (results, stops, begun) = resumed(&directory.0, Way { memory, ..USUAL }, &program, &arrays, tasks / 8);
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
        let (results, stops, _) = resumed(&directory.0, Way { tile: 9, ..USUAL }, &program, &arrays, 1000);
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
    assert!(error.to_string().contains("damaged") && error.to_string().contains("the checkpoint in"), "{error}");
}

/// A program of one segment: nothing of it was left by a run that was stopped, unless blocks are kept while it runs.
const ONE_SEGMENT: &str = "input x: f64[400, 60]\ny = sort(x * 1.5, axis=0)\ng = y.T @ x\nz = y @ g\ntotal = sum(z * z, axis=0) + mean(y, axis=0)\noutput total\noutput g";

#[test]
fn a_segment_goes_on_where_it_was() {
    let program = program(ONE_SEGMENT);
    let values: Vec<f64> = (0..24_000).map(|k| ((k * 7919) % 1009) as f64 / 1e3).collect();
    let arrays: Results = [("x".to_string(), Array::from_f64(&values).reshaped(&[400, 60]).unwrap())].into();
    let directory = Directory::new("segment");
    for (threads, memory) in [(1, None), (1, Some(100_000)), (3, None), (3, Some(200_000))] {
        let way = Way { tile: 20, memory, chaos: Some(5), threads, grows: false };
        let build = |builder: tilewright::SessionBuilder| match memory {
            Some(bytes) => builder.memory(bytes),
            None => builder,
        };
        let whole = build(Session::builder().serial().tile(20)).build();
        let expected = run(&whole, &program, &arrays).unwrap();
        let totals = whole.totals();
        assert_eq!((totals.segments, totals.spilled_bytes > 0), (1, memory.is_some()));
        let (results, stops, begun) = resumed(&directory.0, way, &program, &arrays, totals.tasks / 8);
        assert!(same_bits(&expected, &results), "{threads} threads, {memory:?}");
        // Half of the tasks are kept, so a stop loses about as much as it has done.
        assert!((5..60).contains(&stops), "{stops} stops, {begun} tasks of {}", totals.tasks);
        assert_eq!(directory.n_entries(), 0);
    }
}

/// A file of text cannot be gone on with: the segment that writes it runs again, while the checkpoint has values of later turns. What it keeps must not go where they are.
#[test]
fn a_segment_that_runs_again_leaves_later_values_alone() {
    let directory = Directory::new("again");
    let (kept, path) = (directory.0.join("kept"), directory.0.join("y.csv"));
    let text = format!(
        "input x: f64[400, 50]\ny = sort(x * 1.5, axis=0) + 1\noutput y -> \"{}\"\nz = arange(4000) * 1.5\nk = 0\nwhile k < 30 {{\nz = z * 1.001 + 1\nk = k + 1\n}}\noutput z",
        path.display()
    );
    let program = program(&text);
    let values: Vec<f64> = (0..20_000).map(|k| ((k * 7919) % 1009) as f64 / 1e3).collect();
    let arrays: Results = [("x".to_string(), Array::from_f64(&values).reshaped(&[400, 50]).unwrap())].into();
    let expected = run(&Session::builder().serial().tile(50).build(), &program, &arrays).unwrap();
    let stored = std::fs::read(&path).unwrap();
    for seed in 0..4 {
        std::fs::remove_file(&path).unwrap();
        std::fs::create_dir_all(&kept).unwrap();
        let way = Way { tile: 50, chaos: Some(seed), ..USUAL };
        let whole = Session::builder().serial().tile(50).build();
        run(&whole, &program, &arrays).unwrap();
        std::fs::remove_file(&path).unwrap();
        let (results, stops, _) = resumed(&kept, way, &program, &arrays, whole.totals().tasks / 8);
        assert!(same_bits(&expected, &results), "seed {seed}");
        assert!(stops > 1, "seed {seed}: {stops} stops");
        assert!(std::fs::read(&path).unwrap() == stored, "seed {seed}");
    }
}

/// What was stored before a run was stopped is found again, and the file appears when all of it is there.
#[test]
fn files_that_were_begun_are_finished() {
    let directory = Directory::new("stores");
    let kept = directory.0.join("kept");
    let values: Vec<f64> = (0..24_000).map(|k| ((k * 7919) % 1009) as f64 / 1e3).collect();
    let arrays: Results = [("x".to_string(), Array::from_f64(&values).reshaped(&[400, 60]).unwrap())].into();
    for (name, tile) in [("y.npy", 20), ("y.zarr", 20), ("uneven.zarr", 23)] {
        let path = directory.0.join(name);
        let text = format!(
            "input x: f64[400, 60]\ny = sort(x * 1.5, axis=0) + 1\noutput y -> \"{}\"\ns = sum(y)\noutput s",
            path.display()
        );
        let program = program(&text);
        let expected = run(&Session::builder().serial().tile(tile).build(), &program, &arrays).unwrap();
        let stored = tw_files::read_array(&path).unwrap();
        match path.is_dir() {
            true => std::fs::remove_dir_all(&path).unwrap(),
            false => std::fs::remove_file(&path).unwrap(),
        }
        for chaos in [None, Some(7)] {
            std::fs::create_dir_all(&kept).unwrap();
            let way = Way { tile, chaos, grows: chaos.is_none(), ..USUAL };
            let (results, stops, _) = resumed(&kept, way, &program, &arrays, 30);
            assert!(same_bits(&expected, &results), "{name}");
            assert!(stops > 2, "{name}: {stops} stops");
            assert!(tw_files::read_array(&path).unwrap().same_bits(&stored), "{name}");
            assert_eq!(std::fs::read_dir(&kept).unwrap().count(), 0);
            let hidden = std::fs::read_dir(&directory.0).unwrap().map(|entry| entry.unwrap().file_name());
            let hidden: Vec<_> = hidden.filter(|name| name.to_string_lossy().starts_with('.')).collect();
            assert!(hidden.is_empty(), "{hidden:?}");
            match path.is_dir() {
                true => std::fs::remove_dir_all(&path).unwrap(),
                false => std::fs::remove_file(&path).unwrap(),
            }
        }
    }
}
