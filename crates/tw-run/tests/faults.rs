//! Sources and sinks that fail: the error says where, nothing stays in memory, nothing stays on disk.
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

mod common;

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use common::{Builder, Flaky, N, TestIo, only};
use tw_block::{Block, Meter, Sink, Source, commit_all, in_memory};
use tw_files::FileTarget;
use tw_ir::{Array, Axis, Blame, BoxRegion, DType, Error, Grid, Result, Span};
use tw_run::{BlockHandle, Engine, Outcome, Prepared, RunOptions, Runtime, Serial, TensorHandle};

fn engines() -> Vec<Box<dyn Engine>> {
    vec![Box::new(Serial), Box::new(Runtime::new(1)), Box::new(Runtime::new(3))]
}

/// Runs on every engine, with and without chaos, and checks that nothing leaks.
fn on_all(prepared: &Prepared, io: &Arc<TestIo>, check: impl Fn(Result<Outcome>)) {
    for engine in engines() {
        for chaos in [None, Some(1), Some(2)] {
            let options = RunOptions { chaos, ..RunOptions::default() };
            let bindings = io.bindings(prepared.schedule());
            check(engine.run(prepared, &bindings, &options));
            drop(bindings);
            assert_eq!(options.meter.now(), 0, "{} holds blocks", engine.name());
            assert_eq!(Arc::strong_count(io), 1, "{} holds sources or sinks", engine.name());
        }
    }
}

/// Several loads, of which the fourth belongs to a statement of its own; every sum of neighbours is stored.
fn loads_and_stores() -> Prepared {
    let mut builder = Builder::new(&Flaky::never());
    let mut loaded = Vec::new();
    for k in 0..6 {
        if k == 3 {
            builder.statement("input third", Span::host("script.py", 5));
        }
        loaded.push(builder.load());
    }
    builder.statement("save(y)", Span::host("script.py", 8));
    for pair in loaded.windows(2) {
        let sum = builder.apply(pair[0], pair[1]);
        builder.store(sum);
    }
    builder.output(loaded[0]);
    builder.prepare()
}

#[test]
fn what_fails_names_its_source_or_sink_and_its_statement() {
    let forgetting = || TestIo { forgets: true, ..TestIo::default() };
    for (io, message) in [
        (TestIo { fail_sources: vec![3], ..forgetting() }, "source 3 is broken (at script.py:5); in `input third`"),
        (TestIo { fail_sinks: vec![2], ..forgetting() }, "sink 2 is full (at script.py:8); in `save(y)`"),
    ] {
        on_all(&loads_and_stores(), &Arc::new(io), |outcome| {
            let error = outcome.unwrap_err();
            assert_eq!((error.blame(), error.to_string().as_str()), (Blame::Io, message));
        });
    }
}

#[test]
fn what_is_not_bound_is_an_error() {
    let prepared = loads_and_stores();
    for engine in engines() {
        let io = Arc::new(TestIo { forgets: true, ..TestIo::default() });
        let mut bindings = io.bindings(prepared.schedule());
        bindings.sinks.pop();
        let error = engine.run(&prepared, &bindings, &RunOptions::default()).unwrap_err();
        assert_eq!((error.blame(), error.message()), (Blame::Internal, "sink 4 is not bound"));
        bindings.sources.clear();
        assert!(engine.run(&prepared, &bindings, &RunOptions::default()).is_err());
    }
}

/// A file that gets full after some writes.
#[derive(Debug)]
struct Filling {
    file: Arc<dyn Sink>,
    room: AtomicUsize,
}

impl Sink for Filling {
    fn write(&self, block: &Block) -> Result<()> {
        let is_room = self.room.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |room| room.checked_sub(1)).is_ok();
        if is_room { self.file.write(block) } else { Err(Error::io("the disk is full")) }
    }
    fn make_durable(&self) -> Result<()> {
        self.file.make_durable()
    }
    fn commit(&self) -> Result<()> {
        self.file.commit()
    }
}

#[test]
fn files_that_could_not_be_written_leave_nothing_behind() {
    let directory = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("faults-{}", std::process::id()));
    fs::create_dir_all(&directory).unwrap();
    let prepared = loads_and_stores();
    let left = || fs::read_dir(&directory).unwrap().count();
    for engine in engines() {
        for (room, is_full) in [(0, true), (1, false)] {
            let io = Arc::new(TestIo::default());
            let mut bindings = io.bindings(prepared.schedule());
            for (k, sink) in bindings.sinks.iter_mut().enumerate() {
                let file = tw_files::create(
                    directory.join(format!("{k}.npy")),
                    DType::F64,
                    &Grid::whole(&[N]),
                    &FileTarget::default(),
                )
                .unwrap();
                let room = AtomicUsize::new(if k == 3 { room } else { usize::MAX });
                *sink = Arc::new(Filling { file, room });
            }
            let outcome = engine.run(&prepared, &bindings, &RunOptions::default());
            assert_eq!(outcome.is_err(), is_full);
            // Under other names: an engine commits nothing.
            assert_eq!((left(), directory.join("0.npy").exists()), (5, false));
            if !is_full {
                commit_all(vec![bindings.sinks[0].clone()]).unwrap();
            }
            drop(bindings);
            assert_eq!((left(), directory.join("0.npy").exists()), if is_full { (0, false) } else { (1, true) });
        }
        fs::remove_file(directory.join("0.npy")).unwrap();
    }
    fs::remove_dir(directory).unwrap();
}

#[test]
fn any_box_of_a_computed_tensor_can_be_read() {
    let array = Arc::new(Array::from_f64(&(0..35).map(f64::from).collect::<Vec<_>>()).reshaped(&[5, 7]).unwrap());
    let grid = Grid::from(vec![Axis::uniform(5, 2), Axis::uniform(7, 3)]);
    let blocks: Vec<BlockHandle> =
        (0..9).map(|k| Arc::new(Block::view_of(&array, &grid.box_of(k)).unwrap()).into()).collect();
    let handle = TensorHandle::new(DType::F64, grid.clone(), blocks);
    assert_eq!(handle.chunks(), Some(&grid));
    assert!(handle.to_array().unwrap().same_bits(&array));
    let (meter, whole) = (Meter::new(), in_memory(array));
    let own = handle.blocks()[4].block().unwrap();
    assert!(Arc::ptr_eq(&handle.read(own.bbox(), &meter).unwrap(), &own), "a block is shared");
    assert_eq!(meter.now(), 0);
    for region in [[0..5, 0..7], [1..4, 2..5], [3..5, 6..7], [2..2, 0..7]].map(BoxRegion::from_ranges) {
        let expected = whole.read(&region, &meter).unwrap().to_array().unwrap();
        let block = handle.read(&region, &meter).unwrap();
        assert!(block.to_array().unwrap().same_bits(&expected), "{region}");
        assert_eq!(meter.now(), block.n_bytes());
    }
    assert!(handle.read(&BoxRegion::from_ranges([0..6, 0..7]), &meter).is_err());
    assert!(handle.read(&BoxRegion::whole(&[5]), &meter).is_err());
}

#[test]
fn outputs_are_handles_of_their_own_type() {
    let mut builder = Builder::new(&Flaky::never());
    let block = builder.load();
    builder.output(block);
    let prepared = builder.prepare();
    let bindings = Arc::new(TestIo::default()).bindings(prepared.schedule());
    let outcome = Serial.run(&prepared, &bindings, &RunOptions::default()).unwrap();
    let handle = outcome.outputs[0].as_ref().unwrap();
    assert_eq!((handle.dtype(), handle.shape(), handle.blocks().len()), (DType::F64, vec![N], 1));
    assert_eq!(only(&outcome.outputs[0]).bbox(), &BoxRegion::whole(&[N]));
}
