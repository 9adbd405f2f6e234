//! Schedules that keep to a memory budget.

use std::collections::BTreeMap;

use tw_ir::EntityRef;
use tw_ir::program::{FunctionTable, Program};
use tw_ir::schedule::{Memory, Schedule, StepKind};
use tw_ir::text::{parse_schedule, print_schedule};
use tw_ir::workflow::BlockId;
use tw_lang::{NoFiles, parse_program};
use tw_plan::{Fitted, PlanOptions, fit, least_bytes, plan_segment};

fn schedule(text: &str, tile: u64) -> Schedule {
    let unit = parse_program(text, &BTreeMap::new(), &NoFiles, &FunctionTable::default());
    let program: Program = unit.unwrap_or_else(|errors| panic!("{errors:?}")).program;
    let options = PlanOptions { tile: Some(tile), ..PlanOptions::default() };
    Schedule::clone(&plan_segment(&program, &options).expect("a plan").schedule)
}

fn nothing_resident(_: BlockId) -> bool {
    false
}

/// Programs that need much more than their largest step.
const PROGRAMS: [(&str, u64); 6] = [
    ("input x: f64[800, 3]\ny = (x - mean(x, axis=0)) / std(x, axis=0)\noutput y", 100),
    ("input a: f64[60, 60]\ninput b: f64[60, 60]\nc = a @ b\nd = c @ a\noutput d", 10),
    ("input x: f64[50, 50]\ny = x.T\nz = y @ x + x[::-1]\ns = sum(z)\noutput z\noutput s", 7),
    ("x = random.normal(1000, seed=1)\ny = cumsum(x)\nz = y - mean(y)\noutput y\noutput z", 100),
    ("input x: i64[300]\ny = sort(x)\noutput y", 100),
    ("input x: f64[500]\ny = x + x[::-1]\nz = y * sum(y)\noutput z", 30),
];

#[test]
fn every_budget_down_to_the_largest_step_is_kept() {
    for (text, tile) in PROGRAMS {
        let ample = schedule(text, tile);
        let (least, largest) = least_bytes(&ample, &nothing_resident);
        assert!(largest.is_some() && least < ample.peak_bytes(), "{text}: {least} of {}", ample.peak_bytes());
        for percent in [0, 1, 10, 30, 60, 100] {
            let budget = least + (ample.peak_bytes() - least) * percent / 100;
            let Fitted { schedule, traffic } = fit(&ample, budget, &nothing_resident).unwrap().unwrap();
            assert!(schedule.peak_bytes() <= budget, "{text}: {} of {budget}", schedule.peak_bytes());
            assert!(percent < 100 || traffic.total() == 0, "{text}: {traffic:?} although everything fits");
            assert_eq!(schedule.bits(), ample.bits(), "moves do not decide bits");
            assert_eq!(
                parse_schedule(&print_schedule(&schedule), &FunctionTable::default()).unwrap().hash(),
                schedule.hash()
            );
        }
        assert!(fit(&ample, least - 1, &nothing_resident).unwrap().is_none());
    }
}

#[test]
fn a_dirty_block_is_written_once_and_a_clean_one_never() {
    for (text, tile) in PROGRAMS {
        let ample = schedule(text, tile);
        let budget = least_bytes(&ample, &nothing_resident).0;
        let schedule = fit(&ample, budget, &nothing_resident).unwrap().unwrap().schedule;
        let placement = schedule.placement().unwrap();
        let mut contents = std::collections::HashSet::new();
        let mut n_writes = vec![0u32; schedule.workflow().n_blocks()];
        for (position, step) in schedule.steps().iter().enumerate() {
            for written in schedule.writes(position) {
                let block = placement.instance(written).block;
                match (step.kind(), placement.instance(written).memory) {
                    (StepKind::Task(_), _) => n_writes[block.index()] += 1,
                    (StepKind::Move(_), Memory::Disk(_)) => {
                        assert!(contents.insert((block, n_writes[block.index()])), "{block} is spilled twice: {text}");
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
    let standardised = fit(&schedule(&stored, tile), 4 * block, &nothing_resident).unwrap().unwrap();
    assert_eq!((standardised.traffic.spilled, standardised.traffic.fetched), (0, 0));
    assert!(standardised.traffic.remade <= 8 * block, "{:?}", standardised.traffic);
    // Results that do not fit are spilled, not refused.
    assert!(fit(&ample, 4 * block, &nothing_resident).unwrap().unwrap().traffic.spilled > 0);
}

#[test]
fn reductions_of_one_input_read_it_together() {
    let text = "input x: f64[1000]\na = sum(x)\nb = max(x)\nc = mean(x * x)\noutput a\noutput b\noutput c";
    let ample = schedule(text, 100);
    let fitted = fit(&ample, 4 * 800, &nothing_resident).unwrap().unwrap();
    assert_eq!(fitted.traffic.total(), 0, "{:?}", fitted.traffic);
}

/// Blocks that are computed cheaply from what is in memory anyway are computed again, not spilled.
#[test]
fn cheap_blocks_are_computed_again() {
    let text = "input x: f64[1000]\ny = exp(x)\nz = y / sum(y)\ns = sum(z * y)\noutput s";
    let ample = schedule(text, 100);
    let workflow = ample.workflow();
    let loaded: Vec<_> = workflow.loaded_sets().map(|(set, _)| set).collect();
    let is_resident = |block: BlockId| loaded.contains(&workflow.set_of(block));
    let fitted = fit(&ample, 4 * 800, &is_resident).unwrap().unwrap();
    assert_eq!((fitted.traffic.spilled, fitted.traffic.fetched), (0, 0), "{:?}", fitted.traffic);
    assert!(fitted.traffic.remade > 0, "{:?}", fitted.traffic);
}
