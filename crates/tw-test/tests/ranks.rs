//! Random programs and the corpus on several ranks.
//!
//! `TW_RANDOM_PROGRAMS` and `TW_RANDOM_FIRST` as for the other random programs.

use tw_ir::error::Blame;
use tw_ir::text::print_program;
use tw_ir::{DType, Program, oracle};
use tw_place::{Cluster, SchedulerName};
use tw_test::differential::{Configuration, SINGLE, differences, run, same_bits};
use tw_test::generate::{Options, random_program};
use tw_test::ranks::{run_on_ranks, wires};
use tw_test::setting;

fn options(seed: u64) -> Options {
    Options { inexact: seed % 4 == 3, stores: false, ..Options::default() }
}

fn tolerance(program: &Program, options: &Options) -> f64 {
    match program.values.values().any(|info| matches!(info.ty.dtype, DType::F32 | DType::C64)) {
        _ if !options.inexact => 0.0,
        true => SINGLE,
        false => 1e-9,
    }
}

/// Every scheduler, on one to five ranks of one or two threads.
fn configuration(seed: u64) -> (Configuration, u32) {
    let schedulers = [
        SchedulerName::Algebraic,
        SchedulerName::Timed,
        SchedulerName::Lshs,
        SchedulerName::Pattern,
        SchedulerName::RoundRobin,
        SchedulerName::Auto,
    ];
    let scheduler = schedulers[(seed / 5) as usize % schedulers.len()];
    let (nodes, workers) = [(1, 1), (1, 2), (3, 1), (2, 2), (1, 5)][seed as usize % 5];
    let configuration = Configuration {
        threads: 1 + (seed / 3 % 2) as usize,
        rewrites: !seed.is_multiple_of(7),
        tile: (seed % 3 != 0).then_some(1 + seed % 4),
        chaos: seed.is_multiple_of(2).then_some(seed),
        cluster: Some(Cluster::of(nodes, workers, scheduler).expect("a cluster")),
    };
    (configuration, nodes * workers)
}

/// All ranks get what the oracle says, with the bits of a run of the same schedule on threads.
fn check(seed: u64) {
    let options = options(seed);
    let (program, inputs) = random_program(seed, &options);
    let (configuration, size) = configuration(seed);
    let expected = match oracle::evaluate(&program, &inputs) {
        Ok(expected) => expected,
        Err(error) if error.blame() == Blame::Data => return,
        Err(error) => panic!("seed {seed}: the oracle fails: {error}"),
    };
    let threads = run(&configuration.session(), &program, &inputs)
        .unwrap_or_else(|error| panic!("seed {seed}: on threads: {error:?}"));
    for (rank, results) in run_on_ranks(wires(size), &configuration, &program, &inputs).into_iter().enumerate() {
        let on = format!("seed {seed}, rank {rank} of {size}, {configuration:?}");
        let results = results.unwrap_or_else(|error| panic!("{on}: {error:?}\n{}", print_program(&program)));
        if let Some(what) = differences(&expected, &results, tolerance(&program, &options)) {
            panic!("{on}: {what}\n{}", print_program(&program));
        }
        assert!(same_bits(&threads, &results), "{on}: other bits than threads\n{}", print_program(&program));
    }
}

#[test]
fn ranks_compute_what_the_oracle_says() {
    let (first, n) = (setting("TW_RANDOM_FIRST", 0), setting("TW_RANDOM_PROGRAMS", 1_000) / 4);
    (first..first + n).for_each(check);
}
