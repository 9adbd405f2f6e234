//! Random programs on the oracle and on the engine.
//!
//! `TW_RANDOM_PROGRAMS=20000` asks for more of them, `TW_RANDOM_FIRST=7` starts at another seed: the one a failure names.

use tw_ir::Program;
use tw_ir::text::print_program;
use tw_place::{Cluster, SchedulerName};
use tw_test::differential::{Configuration, Results, Verdict, compare, run, same_bits};
use tw_test::generate::{Options, function_table, random_program};
use tw_test::setting;
use tw_test::shrink::shrink;

fn seeds() -> std::ops::Range<u64> {
    let first = setting("TW_RANDOM_FIRST", 0);
    first..first + setting("TW_RANDOM_PROGRAMS", 1_000)
}

fn configuration(seed: u64) -> Configuration {
    Configuration {
        threads: 1 + (seed % 2) as usize,
        rewrites: !seed.is_multiple_of(3),
        tile: seed.is_multiple_of(2).then_some(1 + seed % 4),
        chaos: seed.is_multiple_of(5).then_some(seed),
        cluster: None,
    }
}

/// Compares one program; on a difference, panics with the smallest program that shows one.
fn check(seed: u64, options: &Options, configuration: &Configuration) {
    let (program, inputs) = random_program(seed, options);
    let tolerance = options.tolerance(&program);
    let verdict = |program: &Program| compare(&configuration.session(), program, &inputs, tolerance);
    if let Verdict::Differs(what) = verdict(&program) {
        let small = shrink(&program, &inputs, |candidate| matches!(verdict(candidate), Verdict::Differs(_)));
        let (text, verdict) = (print_program(&small), verdict(&small));
        panic!("seed {seed} with {configuration:?}: {what}\nsmaller: {verdict:?}\n{text}");
    }
}

/// Every scheduler, on one to twelve workers.
fn cluster(seed: u64) -> Cluster {
    let schedulers = [
        SchedulerName::Algebraic,
        SchedulerName::Timed,
        SchedulerName::Lshs,
        SchedulerName::Pattern,
        SchedulerName::RoundRobin,
    ];
    let scheduler = schedulers[seed as usize % schedulers.len()];
    Cluster::of(1 + (seed / 4 % 4) as u32, 1 + (seed / 16 % 3) as u32, scheduler).expect("a cluster")
}

#[test]
fn plans_for_clusters_mean_what_the_oracle_says() {
    let n = seeds().end - seeds().start;
    for seed in seeds().start..seeds().start + n / 2 {
        check(seed, &Options::of_seed(seed), &Configuration { cluster: Some(cluster(seed)), ..configuration(seed) });
    }
}

#[test]
fn random_programs_mean_what_the_oracle_says() {
    seeds().for_each(|seed| check(seed, &Options::of_seed(seed), &configuration(seed)));
}

/// Extents that fill vectors and panels, with what is left over at their ends.
#[test]
fn larger_extents_change_nothing() {
    for seed in seeds().step_by(10) {
        let configuration = Configuration { tile: seed.is_multiple_of(20).then_some(12), ..configuration(seed) };
        let options = Options { n_nodes: 8, max_extent: 40, max_points: 40_000, ..Options::of_seed(seed) };
        check(seed, &options, &configuration);
    }
}

/// Rewrites may change the order of sums, so both runs have them or both have not.
#[test]
fn threads_and_chaos_do_not_change_bits() {
    for seed in seeds().step_by(5) {
        let (program, inputs) = random_program(seed, &Options { inexact: true, ..Options::of_seed(seed) });
        let one = Configuration { threads: 1, chaos: None, ..configuration(seed) };
        let many = Configuration { threads: 3, chaos: Some(seed), ..configuration(seed) };
        let results = |configuration: &Configuration| -> Results {
            run(&configuration.session(), &program, &inputs).unwrap_or_else(|error| panic!("seed {seed}: {error:?}"))
        };
        assert!(same_bits(&results(&one), &results(&many)), "seed {seed}:\n{}", print_program(&program));
    }
}

#[test]
fn programs_read_back_from_text_run_the_same() {
    let functions = function_table();
    for seed in seeds().step_by(10) {
        let (program, inputs) = random_program(seed, &Options::of_seed(seed));
        let back = tw_ir::text::parse_program(&print_program(&program), &functions).expect("printed programs parse");
        let session = configuration(seed).session();
        let results = |program: &Program| run(&session, program, &inputs).expect("the oracle has run it");
        assert!(same_bits(&results(&program), &results(&back)), "seed {seed}");
    }
}
