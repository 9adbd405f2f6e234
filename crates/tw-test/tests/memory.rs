//! Memory is what the plan says, and loops and chains do not collect it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tilewright::{Array, Inputs, Session, SessionBuilder, in_memory};
use tw_block::{Block, Meter, Source, SourceAccess};
use tw_ir::program::FunctionTable;
use tw_ir::schedule::Digest;
use tw_ir::{BoxRegion, Buffer, TensorType};
use tw_lang::{NoFiles, ParamValue, ProgramUnit, parse_program};
use tw_test::corpus::{self, Case, Expectation, Loaded};

fn read(text: &str, params: &[(&str, i64)]) -> ProgramUnit {
    let params = params.iter().map(|(name, value)| (name.to_string(), ParamValue::Int(*value))).collect();
    let unit = parse_program(text, &params, &NoFiles, &FunctionTable::default());
    unit.unwrap_or_else(|errors| panic!("{errors:?}"))
}

/// The most bytes of blocks alive while a program runs in a session of its own.
fn peak(builder: SessionBuilder, unit: &ProgramUnit) -> u64 {
    let session = builder.build();
    let results = session.run(&unit.program, &BTreeMap::new()).expect("the program runs");
    drop(results);
    let (now, peak) = session.memory();
    assert_eq!(now, 0, "blocks are alive after the results are gone");
    assert!(peak > 0);
    peak
}

const LOOP: &str = "
    param steps = 3
    A = random.normal(60, 60, seed=1)
    x = random.normal(60, 40, seed=2)
    k = 0
    change = 1.0
    while k < steps and change > 0 {
        y = A @ x
        next = y / sqrt(sum(y * y))
        change = max(abs(next - x)) + 1
        x = next
        k += 1
    }
    output x
";

#[test]
fn a_long_loop_needs_no_more_than_a_short_one() {
    let (short, long) = (read(LOOP, &[("steps", 3)]), read(LOOP, &[("steps", 1000)]));
    let serial = || Session::builder().threads(1).tile(20);
    assert_eq!(peak(serial(), &long), peak(serial(), &short));
    // Threads run ahead within one segment, never into the next turn.
    let bound = 2 * peak(serial(), &short);
    let threaded = peak(Session::builder().threads(4).tile(20), &long);
    assert!(threaded <= bound, "{threaded} bytes on four threads, more than {bound}");
}

#[test]
fn a_long_loop_is_planned_once() {
    let session = Session::builder().threads(1).tile(20).build();
    let unit = read(LOOP, &[("steps", 200)]);
    session.run(&unit.program, &BTreeMap::new()).expect("the program runs");
    let totals = session.totals();
    let planned = totals.segments - totals.cached_segments;
    assert!(totals.segments > 400 && planned < 10, "{planned} of {} segments were planned", totals.segments);
}

/// A tensor that waits between segments and is moved to disk to make room for one counts as spilled, though no segment has a move of its own.
#[test]
fn tensors_that_make_room_are_counted_as_spilled() {
    let text = "
        x = sort(random.uniform(300, 200, seed=7), axis=1)
        k = 0
        while k < 2 {
            y = sort(random.uniform(150, 200, seed=2), axis=1)
            k = k + int(sum(y) > 0)
        }
        total = sum(x)
        output total
    ";
    let unit = read(text, &[]);
    let budget = 640 << 10;
    let session = Session::builder().threads(1).tile(200).memory(budget).build();
    let results = session.run(&unit.program, &BTreeMap::new());
    let totals = session.totals();
    assert!(results.is_ok() && totals.peak_bytes <= budget, "{totals:?}");
    assert!(totals.spilled_bytes > 0, "{totals:?}");
}

/// A chain of elementwise operations over `n` elements in tiles of `tile`, none of which is fused.
fn chain(n: u64, tile: u64, operations: usize) -> ProgramUnit {
    let steps: String = (0..operations).map(|k| format!("x = x * 0.99 + {k}\n")).collect();
    read(&format!("x = retile(random.normal({n}, seed=3), tile({tile}))\n{steps}total = sum(x)\noutput total"), &[])
}

#[test]
fn what_is_read_for_the_last_time_is_deleted() {
    let (n, tile) = (200_000, 10_000);
    let unit = chain(n, tile, 100);
    let block = 8 * tile;
    let serial = peak(Session::builder().threads(1).rewrites(false), &unit);
    assert!(serial <= 4 * block, "{serial} bytes for a chain whose operations need two blocks of {block}");
    // With a budget threads keep to it, however far they could run ahead.
    let budget = 8 * block;
    let threaded = peak(Session::builder().threads(4).rewrites(false).memory(budget), &unit);
    assert!(threaded <= budget, "{threaded} bytes with a budget of {budget}");
}

/// Without a budget threads run ahead by a bounded number of bytes, however many tasks are ready: here all loads of a long sum.
#[test]
fn threads_run_ahead_by_no_more_than_predicted() {
    let text =
        "x = retile(random.normal(60000000, seed=3), tile(1000000))\ny = x * 2\nz = retile(y, tile(700000))\noutput z";
    let unit = read(text, &[]);
    let session = Session::builder().threads(3).rewrites(false).build();
    let predicted = session.explain(&unit.program).expect("a plan").summary();
    assert!(predicted.peak_bytes < predicted.peak_bytes_on_threads);
    let measured = peak(Session::builder().threads(3).rewrites(false), &unit);
    assert!(measured <= predicted.peak_bytes_on_threads, "{measured} bytes, predicted {predicted:?}");
}

#[test]
fn a_budget_is_kept_or_refused() {
    let unit = read("x = random.normal(300, 300)\ny = x @ x\nz = y @ x\nt = sum(z)\noutput t", &[]);
    let session = |bytes: u64| Session::builder().threads(4).tile(50).memory(bytes);
    let error = session(1000).build().run(&unit.program, &BTreeMap::new()).expect_err("this cannot work");
    let smallest: u64 = error
        .to_string()
        .split_once("the smallest budget that works is ")
        .and_then(|(_, rest)| rest.split(' ').next()?.parse().ok())
        .unwrap_or_else(|| panic!("no smallest budget in: {error}"));
    assert!(peak(session(smallest), &unit) <= smallest);
    assert!(session(smallest - 1).build().run(&unit.program, &BTreeMap::new()).is_err());
}

#[test]
fn one_thread_keeps_to_the_planned_peak() {
    let mut compared = 0;
    for file in corpus::files().expect("the corpus can be read") {
        let case = Case::read(&file).expect("a case");
        if matches!(case.expectation, Expectation::Error(_)) {
            continue;
        }
        let loaded = Loaded::new(&case).expect("its files can be written").expect("it can be read");
        for tile in [1, 2, 3, 1000] {
            for rewrites in [true, false] {
                let session = Session::builder().threads(1).tile(tile).rewrites(rewrites).build();
                let (_, totals) = loaded.run(&session).expect("it runs");
                // Beside a segment the values that later ones need are alive, and its plan does not count them.
                if totals.segments == 1 {
                    let (measured, planned) = (totals.peak_bytes, totals.planned_peak_bytes);
                    let name = file.display();
                    assert!(measured <= planned, "{name}, tile {tile}: {measured} bytes, planned {planned}");
                    compared += 1;
                }
            }
        }
    }
    assert!(compared > 100, "only {compared} runs were compared");
}

/// A host loop keeps the last tensor, not the way to it.
#[test]
fn a_loop_of_the_host_keeps_one_tensor() {
    let session = tilewright::Session::builder().threads(1).build();
    let mut x = session.random_uniform(&[1000], 1).unwrap();
    for _ in 0..50 {
        x = x.mul_scalar(0.5).unwrap();
        x.persist().unwrap();
    }
    assert_eq!(session.memory().0, 8 * 1000);
}

/// A source that counts how often it is asked how it is reached, which takes tensors of many blocks a look at each of them.
#[derive(Debug)]
struct Asked {
    array: Arc<dyn Source>,
    times: AtomicUsize,
}

impl Source for Asked {
    fn ty(&self) -> TensorType {
        self.array.ty()
    }
    fn fingerprint(&self) -> Option<Digest> {
        self.array.fingerprint()
    }
    fn access(&self) -> SourceAccess {
        self.times.fetch_add(1, Ordering::Relaxed);
        self.array.access()
    }
    fn is_resident(&self, region: &BoxRegion) -> bool {
        self.array.is_resident(region)
    }
    fn layout(&self) -> String {
        self.array.layout()
    }
    fn scratch(&self, region: &BoxRegion) -> u64 {
        self.array.scratch(region)
    }
    fn read(&self, region: &BoxRegion, meter: &Arc<Meter>) -> tw_ir::Result<Arc<Block>> {
        self.array.read(region, meter)
    }
}

#[test]
fn runs_ask_how_an_input_is_reached_however_many_blocks_it_has() {
    let unit = read("input x: f64[4096]\ny = x + 1\noutput y\n", &[]);
    let asked = |tile: u64| {
        let data = Array::new(vec![4096], Buffer::F64(vec![1.0; 4096])).expect("an array");
        let source = Arc::new(Asked { array: in_memory(Arc::new(data)), times: AtomicUsize::new(0) });
        let inputs: Inputs = [("x".to_string(), Arc::clone(&source) as Arc<dyn Source>)].into();
        for builder in [Session::builder().serial(), Session::builder().threads(2)] {
            builder.tile(tile).build().run(&unit.program, &inputs).expect("the program runs");
        }
        source.times.load(Ordering::Relaxed)
    };
    assert_eq!(asked(512), asked(4), "8 and 1024 blocks");
}
