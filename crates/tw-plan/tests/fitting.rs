//! Schedules that keep to a memory budget.

use std::collections::BTreeMap;

use tw_ir::EntityRef;
use tw_ir::program::{FunctionTable, Program};
use tw_ir::schedule::{Instance, Memory, Schedule, StepKind};
use tw_ir::text::{parse_schedule, print_schedule};
use tw_ir::workflow::BlockId;
use tw_lang::{NoFiles, parse_program};
use tw_plan::{Fitted, IoMemory, PlanOptions, fit, least_bytes, plan_segment};

fn schedule(text: &str, tile: u64) -> Schedule {
    let unit = parse_program(text, &BTreeMap::new(), &NoFiles, &FunctionTable::default());
    let program: Program = unit.unwrap_or_else(|errors| panic!("{errors:?}")).program;
    let options = PlanOptions { tile: Some(tile), ..PlanOptions::default() };
    Schedule::clone(&plan_segment(&program, &options).expect("a plan").schedule)
}

/// Programs that need much more than their largest step.
const PROGRAMS: [(&str, u64); 11] = [
    ("input x: f64[800, 3]\ny = (x - mean(x, axis=0)) / std(x, axis=0)\noutput y", 100),
    ("input a: f64[60, 60]\ninput b: f64[60, 60]\nc = a @ b\nd = c @ a\noutput d", 10),
    ("input x: f64[50, 50]\ny = x.T\nz = y @ x + x[::-1]\ns = sum(z)\noutput z\noutput s", 7),
    ("x = random.normal(1000, seed=1)\ny = cumsum(x)\nz = y - mean(y)\noutput y\noutput z", 100),
    ("input x: i64[300]\ny = sort(x)\noutput y", 100),
    ("input x: f64[500]\ny = x + x[::-1]\nz = y * sum(y)\noutput z", 30),
    // Tasks that take scratch space, some of them beside parts of blocks.
    ("input a: i16[60, 60]\nb = a @ a\nc = b.T + a\nd = c @ b\noutput d", 10),
    ("input a: i16[60, 60]\nb = a + a.T\nc = b[3:, 5:] @ b[5:, 2:]\noutput b\noutput c", 10),
    ("input x: f64[60, 40]\ny = sort(x, axis=0)\nz = y + y[::-1]\noutput z", 10),
    // Blocks of a source, and computed ones, that some readers take whole and others in parts.
    ("input x: f64[60, 40]\ns = sum(x, axis=0)\ny = sort(x, axis=0)\nz = y - s\noutput z", 10),
    ("input x: f64[60, 40]\nw = sort(x, axis=1)\ns = sum(w, axis=0)\ny = sort(w, axis=0)\nz = y - s\noutput z", 10),
];

/// A reader of whole blocks does not make readers of parts hold all blocks of which they take a part.
#[test]
fn parts_are_spilled_beside_readers_of_whole_blocks() {
    let least = |text: &str| least_bytes(&schedule(text, 10), &IoMemory::default()).0;
    let alone = least("input x: f64[80, 40]\ny = sort(x, axis=0)\ns = sum(y, axis=0)\noutput s");
    let beside =
        least("input x: f64[80, 40]\nt = sum(x, axis=0)\ny = sort(x, axis=0)\ns = sum(y, axis=0)\noutput s\noutput t");
    assert!(beside <= alone + 1024, "{beside} bytes, {alone} without the other reader");
}

#[test]
fn every_budget_down_to_the_largest_step_is_kept() {
    for (text, tile) in PROGRAMS {
        let ample = schedule(text, tile);
        let (least, largest) = least_bytes(&ample, &IoMemory::default());
        assert!(largest.is_some() && least < ample.peak_bytes(), "{text}: {least} of {}", ample.peak_bytes());
        for percent in [0, 1, 3, 10, 20, 30, 45, 60, 80, 100] {
            let budget = least + (ample.peak_bytes() - least) * percent / 100;
            let Fitted { schedule, traffic } = fit(&ample, budget, &IoMemory::default()).unwrap().unwrap();
            assert!(schedule.peak_bytes() <= budget, "{text}: {} of {budget}", schedule.peak_bytes());
            assert!(percent < 100 || traffic.total() == 0, "{text}: {traffic:?} although everything fits");
            assert_eq!(schedule.bits(), ample.bits(), "moves do not decide bits");
            assert_eq!(
                parse_schedule(&print_schedule(&schedule), &FunctionTable::default()).unwrap().hash(),
                schedule.hash()
            );
        }
        assert!(fit(&ample, least - 1, &IoMemory::default()).unwrap().is_none());
    }
}

#[test]
fn a_dirty_block_is_written_once_and_a_clean_one_never() {
    for (text, tile) in PROGRAMS {
        let ample = schedule(text, tile);
        let budget = least_bytes(&ample, &IoMemory::default()).0;
        let schedule = fit(&ample, budget, &IoMemory::default()).unwrap().unwrap().schedule;
        let placement = schedule.placement().unwrap();
        let mut contents = std::collections::HashSet::new();
        let mut n_writes = vec![0u32; schedule.workflow().n_blocks()];
        for (position, step) in schedule.steps().iter().enumerate() {
            for written in schedule.writes(position) {
                let Instance { block, region, .. } = *placement.instance(written);
                match (step.kind(), placement.instance(written).memory) {
                    (StepKind::Task(_), _) => n_writes[block.index()] += 1,
                    (StepKind::Move(_), Memory::Disk(_)) => {
                        let part = (block, region, n_writes[block.index()]);
                        assert!(contents.insert(part), "{block} is spilled twice: {text}");
                    }
                    (StepKind::Move(_), Memory::Host(_)) => {}
                }
            }
        }
    }
    // A file that is read for two results of which one needs the other is read twice, and nothing is written.
    let (text, tile) = PROGRAMS[0];
    let ample = schedule(text, tile);
    let block = 100 * 3 * 8;
    let stored = text.replace("output y", "s = sum(y * y)\noutput s");
    let standardised = fit(&schedule(&stored, tile), 4 * block, &IoMemory::default()).unwrap().unwrap();
    assert_eq!((standardised.traffic.spilled, standardised.traffic.fetched), (0, 0));
    assert!(standardised.traffic.remade <= 8 * block, "{:?}", standardised.traffic);
    // Results that do not fit are spilled, not refused.
    assert!(fit(&ample, 4 * block, &IoMemory::default()).unwrap().unwrap().traffic.spilled > 0);
}

#[test]
fn reductions_of_one_input_read_it_together() {
    let text = "input x: f64[1000]\na = sum(x)\nb = max(x)\nc = mean(x * x)\noutput a\noutput b\noutput c";
    let ample = schedule(text, 100);
    let fitted = fit(&ample, 4 * 800, &IoMemory::default()).unwrap().unwrap();
    assert_eq!(fitted.traffic.total(), 0, "{:?}", fitted.traffic);
}

/// Blocks that are computed cheaply from what is in memory anyway are computed again, not spilled.
#[test]
fn cheap_blocks_are_computed_again() {
    let text = "input x: f64[1000]\ny = exp(x)\nz = y / sum(y)\ns = sum(z * y)\noutput s";
    let ample = schedule(text, 100);
    let workflow = ample.workflow();
    let loaded: Vec<_> = workflow.loaded_sets().map(|(set, _)| set).collect();
    let blocks = (0..workflow.n_blocks()).map(BlockId::new);
    let resident = blocks.map(|block| loaded.contains(&workflow.set_of(block))).collect();
    let io = IoMemory::new(resident, Vec::new(), Vec::new());
    let fitted = fit(&ample, 4 * 800, &io).unwrap().unwrap();
    assert_eq!((fitted.traffic.spilled, fitted.traffic.fetched), (0, 0), "{:?}", fitted.traffic);
    assert!(fitted.traffic.remade > 0, "{:?}", fitted.traffic);
}

/// Four blocks whose sizes depend on data, read once in order and once in reverse.
const SPARSE: &str = r#"schedule "tiled" {
workflow {
    statement s0 "make"
    statement s1 "read"
    kernel k0 s0 = fill (f64 0.0)
    kernel k1 s1 = combine accum sum f64
    blocks set0 s0 "A" f64[8, 8] grid(2, 8) format(0:dense, 1:compressed) sizes(10..100, 10..100, 10..100, 80) from b0
    blocks set1 s1 "B" f64[8] grid(1) from b4
    output "B" = set1 f64
    t0 apply k0 at 0 turn 0 () -> (b0)
    t1 apply k0 at 1 turn 0 () -> (b1)
    t2 apply k0 at 2 turn 0 () -> (b2)
    t3 apply k0 at 3 turn 0 () -> (b3)
    t4 apply k1 at 0 turn 0 (b0) -> (b4)
    t5 apply k1 at 1 turn 0 (b1) -> (b5)
    t6 apply k1 at 2 turn 0 (b2) -> (b6)
    t7 apply k1 at 3 turn 0 (b3) -> (b7)
    t8 apply k1 at 4 turn 0 (b3) -> (b8)
    t9 apply k1 at 5 turn 0 (b2) -> (b9)
    t10 apply k1 at 6 turn 0 (b1) -> (b10)
    t11 apply k1 at 7 turn 0 (b0) -> (b11)
}
order (t0 t1 t2 t3 t4 t5 t6 t7 t8 t9 t10 t11)
}
"#;

#[test]
fn bounds_fit_by_the_most_they_can_take() {
    let ample = parse_schedule(SPARSE, &FunctionTable::default()).unwrap();
    // All sparse blocks, and the dense results of eight bytes each.
    assert_eq!(ample.peak_bytes(), 380 + 5 * 8);
    let (least, _) = least_bytes(&ample, &IoMemory::default());
    assert_eq!(least, 100 + 8, "estimates promise nothing");
    for budget in [least + 7 * 8, 250, 300, 400] {
        let schedule = fit(&ample, budget, &IoMemory::default()).unwrap().unwrap().schedule;
        assert!(schedule.peak_bytes() <= budget, "{} of {budget}", schedule.peak_bytes());
        assert_eq!(schedule.bits(), ample.bits());
    }
}
