//! Schedules as bytes and as text: they come back, whatever changes them changes their hash, and damaged ones are refused.
//!
//! `TW_RANDOM_PROGRAMS=20000` asks for more programs, `TW_RANDOM_FIRST` starts at another seed.

use std::ops::Range;
use std::sync::Arc;

use tw_ir::program::FunctionTable;
use tw_ir::schedule::{Schedule, Step};
use tw_ir::text::{parse_schedule, print_schedule};
use tw_ir::workflow::{SinkId, SourceDecl, TaskId, Workflow};
use tw_ir::{Array, Buffer};
use tw_place::{Cluster, SchedulerName};
use tw_test::differential::Configuration;
use tw_test::generate::{Options, function_table, random_program};
use tw_test::setting;

fn seeds() -> Range<u64> {
    let first = setting("TW_RANDOM_FIRST", 0);
    first..first + setting("TW_RANDOM_PROGRAMS", 400)
}

/// The schedule of a random program, placed on workers for every third; `None` if it needs data to be planned.
fn schedule(seed: u64) -> Option<Arc<Schedule>> {
    let cluster = Cluster::of(2, 1 + (seed % 3) as u32, SchedulerName::Lshs).expect("a cluster");
    let configuration = Configuration {
        threads: 1,
        rewrites: true,
        tile: Some(1 + seed % 4),
        chaos: None,
        cluster: seed.is_multiple_of(3).then_some(cluster),
    };
    let (program, _) = random_program(seed, &Options { stores: true, ..Options::default() });
    configuration.session().plan(&program).ok().map(|planned| planned.schedule)
}

fn order(schedule: &Schedule) -> Vec<TaskId> {
    schedule.order().collect()
}

/// The schedule of a changed workflow, on the same ranks.
fn changed(schedule: &Schedule, change: impl FnOnce(&mut Workflow)) -> Schedule {
    let mut workflow = schedule.workflow().clone();
    change(&mut workflow);
    Schedule::freeze(workflow, order(schedule), schedule.provider()).expect("a changed workflow still links")
}

#[test]
fn schedules_come_back_from_bytes_and_text() {
    let functions = function_table();
    let (mut planned, mut placed) = (0, 0);
    for seed in seeds() {
        let Some(schedule) = schedule(seed) else { continue };
        planned += 1;
        placed += schedule.placement().is_some_and(|placement| placement.n_moves() > 0) as u64;
        let bytes = schedule.encode();
        let back = Schedule::decode(&bytes, &functions).unwrap_or_else(|error| panic!("seed {seed}: {error}"));
        assert_eq!(back.encode(), bytes, "seed {seed}: there is one encoding");
        assert_eq!((back.hash(), back.bits()), (schedule.hash(), schedule.bits()), "seed {seed}");
        assert_eq!(back.workflow(), schedule.workflow(), "seed {seed}");
        assert_eq!((back.steps(), back.placement()), (schedule.steps(), schedule.placement()), "seed {seed}");
        assert_eq!((back.peaks(), back.peak_bytes()), (schedule.peaks(), schedule.peak_bytes()), "seed {seed}");
        let text = print_schedule(&schedule);
        let read = parse_schedule(&text, &functions).unwrap_or_else(|error| panic!("seed {seed}: {error}\n{text}"));
        assert_eq!(read.hash(), schedule.hash(), "seed {seed}");
    }
    assert!(planned > seeds().count() / 4 && placed > 5, "{planned} schedules, {placed} with moves");
}

#[test]
fn whatever_changes_results_or_traffic_changes_the_hash() {
    let (mut regions, mut constants, mut sinks, mut orders) = (0, 0, 0, 0);
    for seed in seeds() {
        let Some(planned) = schedule(seed).filter(|schedule| schedule.placement().is_none()) else { continue };
        let original = changed(&planned, |_| {});
        assert_eq!(original.hash(), planned.hash(), "seed {seed}");
        let (hash, bits) = (original.hash(), original.bits());
        if original.workflow().regions.iter().any(|region| region.rank() > 0) {
            regions += 1;
            let other = changed(&original, |workflow| {
                let region = workflow.regions.iter_mut().find(|region| region.rank() > 0).unwrap();
                region.hi[0] += 1;
            });
            assert!(other.hash() != hash && other.bits() != bits, "seed {seed}: a region");
        }
        for (id, source) in &original.workflow().sources {
            let SourceDecl::Constant(array) = source else { continue };
            let (Buffer::F64(values), dtype) = (array.data(), array.dtype()) else { continue };
            if values.is_empty() {
                continue;
            }
            constants += 1;
            let mut values = values.clone();
            values[0] = f64::from_bits(values[0].to_bits() ^ 1);
            let array = Array::new(array.shape().to_vec(), Buffer::F64(values)).unwrap().with_dtype(dtype).unwrap();
            let other = changed(&original, |workflow| workflow.sources[id] = SourceDecl::Constant(Arc::new(array)));
            assert!(other.hash() != hash && other.bits() != bits, "seed {seed}: one bit of a constant");
        }
        if !original.workflow().sinks.is_empty() {
            sinks += 1;
            let other = changed(&original, |workflow| workflow.sinks[SinkId::from_u32(0)].path.push('x'));
            assert!(other.hash() != hash && other.bits() == bits, "seed {seed}: where a file goes decides no bits");
        }
        let relabelled = changed(&original, |workflow| {
            workflow.statements.values_mut().for_each(|statement| statement.label.push('x'));
            workflow.sets.values_mut().for_each(|set| set.name.push('x'));
        });
        assert_eq!((relabelled.hash(), relabelled.bits()), (hash, bits), "seed {seed}: names do not count");
        assert_ne!(Schedule::clone(&original).with_budget(Some(1 << 20)).hash(), hash, "seed {seed}: a budget");
        // Two loads that nothing orders change places.
        let mut order = order(&original);
        let free = |k: usize| original.n_dependencies(k) == 0 && original.n_dependencies(k + 1) == 0;
        if let Some(k) = (0..order.len().saturating_sub(1)).find(|&k| free(k)) {
            orders += 1;
            order.swap(k, k + 1);
            let other = Schedule::freeze(original.workflow().clone(), order, original.provider()).unwrap();
            assert!(other.hash() != hash && other.bits() == bits, "seed {seed}: the order decides no bits");
        }
    }
    assert!(regions > 3 && constants > 3 && sinks > 3 && orders > 3, "{regions} {constants} {sinks} {orders}");
}

#[test]
fn placements_that_do_not_fit_are_refused() {
    let mut tried = 0;
    for seed in seeds().filter(|seed| seed.is_multiple_of(3)) {
        let Some(schedule) = schedule(seed) else { continue };
        let Some(placement) = schedule.placement().filter(|placement| placement.n_moves() > 0) else { continue };
        tried += 1;
        let steps = schedule.steps().to_vec();
        let freeze = |steps: Vec<Step>, placement| {
            Schedule::freeze_placed(schedule.workflow().clone(), steps, placement, None, schedule.provider())
        };
        assert_eq!(freeze(steps.clone(), placement.clone()).unwrap().hash(), schedule.hash(), "seed {seed}");
        // A step too few or too many, in another order, or for ranks that do not exist.
        assert!(freeze(steps[1..].to_vec(), placement.clone()).is_err(), "seed {seed}");
        let mut turned = steps.clone();
        turned.reverse();
        assert!(freeze(turned, placement.clone()).is_err(), "seed {seed}");
        let sites = placement.sites().iter().map(|_| 1_000_000).collect();
        let elsewhere = tw_ir::schedule::Placement::new(placement.n_ranks(), sites, Vec::new());
        assert!(freeze(steps, elsewhere).is_err(), "seed {seed}");
    }
    assert!(tried > 5, "{tried} schedules with moves");
}

#[test]
fn damaged_schedules_are_refused() {
    let functions = FunctionTable::default();
    let schedule = (0..).find_map(schedule).unwrap();
    let bytes = schedule.encode();
    for cut in 0..bytes.len() {
        assert!(Schedule::decode(&bytes[..cut], &functions).is_err(), "cut after {cut} bytes");
    }
    for position in 0..bytes.len() {
        let mut damaged = bytes.clone();
        damaged[position] ^= 1 << (position % 8);
        let error = Schedule::decode(&damaged, &functions).expect_err("a damaged schedule");
        assert_eq!(error.blame(), tw_ir::Blame::Source, "{error}");
    }
    let mut newer = bytes;
    newer[20] += 1;
    let error = Schedule::decode(&newer, &functions).unwrap_err();
    assert!(error.message().contains("version 2"), "{error}");
}
