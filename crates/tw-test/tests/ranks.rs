//! Random programs and the corpus on several ranks.
//!
//! `TW_RANDOM_PROGRAMS` and `TW_RANDOM_FIRST` as for the other random programs.

use tilewright::in_memory;
use tw_ir::error::Blame;
use tw_ir::oracle;
use tw_ir::text::print_program;
use tw_place::{Cluster, SchedulerName};
use tw_test::corpus::{self, Case};
use tw_test::differential::{Configuration, differences, run, same_bits};
use tw_test::generate::{Options, random_program};
use tw_test::ranks::{on_ranks, run_on_ranks, wires};
use tw_test::setting;

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
        tile: (!seed.is_multiple_of(3)).then_some(1 + seed % 4),
        chaos: seed.is_multiple_of(2).then_some(seed),
        cluster: Some(Cluster::of(nodes, workers, scheduler).expect("a cluster")),
    };
    (configuration, nodes * workers)
}

/// All ranks get what the oracle says, with the bits of a run of the same schedule on threads.
fn check(seed: u64) {
    let options = Options::of_seed(seed);
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
        if let Some(what) = differences(&expected, &results, options.tolerance(&program)) {
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

/// The scheduler and the ranks change from case to case.
#[test]
fn the_corpus_runs_on_ranks() {
    let wanted = std::env::var("TW_CORPUS").unwrap_or_default();
    let mut failures = Vec::new();
    let files = corpus::files().expect("the corpus can be read");
    let files = files.iter().filter(|file| file.to_string_lossy().contains(&wanted)).zip(1..);
    for (file, number) in files {
        let (configuration, size) = configuration(number);
        let result = Case::read(file).and_then(|case| corpus::check_on_ranks(&case, &configuration, size));
        failures.extend(result.err().map(|problem| format!("{}: {problem}", file.display())));
    }
    assert!(failures.is_empty(), "{} cases failed\n\n{}", failures.len(), failures.join("\n\n"));
}

/// What is sent is what the schedules say, and a rank of one thread holds no more than its part of them.
#[test]
fn ranks_send_and_hold_what_was_planned() {
    let (first, n) = (setting("TW_RANDOM_FIRST", 0), setting("TW_RANDOM_PROGRAMS", 1_000) / 10);
    let mut sent = 0;
    for seed in first..first + n {
        let options = Options { control_flow: false, deferred: false, ..Options::of_seed(seed) };
        let (program, inputs) = random_program(seed, &options);
        let (configuration, size) = configuration(seed);
        let configuration = Configuration { threads: 1, ..configuration };
        let totals = on_ranks(wires(size), &configuration, |session| {
            let bound = inputs.iter().map(|(name, array)| (name.clone(), in_memory(array.clone()))).collect();
            session.run_with_report(&program, &bound).map(|(_, totals)| totals)
        });
        let totals: Vec<_> = totals.into_iter().flatten().collect();
        let received: u64 = totals.iter().map(|totals| totals.received_bytes).sum();
        assert_eq!(received, totals.iter().map(|totals| totals.sent_bytes).sum::<u64>(), "seed {seed}");
        for (rank, totals) in totals.iter().enumerate() {
            let on = format!("seed {seed}, rank {rank} of {size}");
            assert_eq!(totals.sent_bytes, totals.planned_sent_bytes, "{on}");
            let (peak, planned) = (totals.peak_bytes, totals.planned_peak_bytes);
            assert!(totals.segments > 1 || peak <= planned, "{on}: {peak} bytes, {planned} planned");
        }
        sent += received;
    }
    assert!(sent > 0, "nothing was sent at all");
}

fn two_ranks() -> Configuration {
    some_ranks(2)
}

fn some_ranks(n: u32) -> Configuration {
    let cluster = Some(Cluster::of(1, n, SchedulerName::Auto).expect("a cluster"));
    Configuration { threads: 1, rewrites: true, tile: Some(4), chaos: None, cluster }
}

/// A rank that fails alone, before it begins the run that the others wait in.
#[test]
fn a_rank_that_fails_alone_ends_the_run_on_all() {
    let outcomes = on_ranks(wires(2), &two_ranks(), |session| {
        let rank = session.rank();
        let x = session.random_uniform(&[8, 8], 1)?;
        // Only rank 1 has a file to read.
        let missing = std::path::Path::new("missing-on-this-rank.npy");
        let y = if rank == 1 { session.open(missing)? } else { x.clone() };
        let first = x.add(&y)?.sum(None)?.item();
        let second = x.sum(None)?.item()?;
        first.map(|_| second)
    });
    assert!(outcomes.iter().all(Result::is_err), "{outcomes:?}");
}

#[test]
fn ranks_that_run_different_programs_are_told() {
    let outcomes = on_ranks(wires(2), &two_ranks(), |session| {
        let x = session.random_uniform(&[8, 8], 1 + u64::from(session.rank()))?;
        x.sum(None)?.item()
    });
    for outcome in outcomes {
        let error = outcome.expect_err("the programs differ");
        assert!(error.message().contains("do not run the same program"), "{error:?}");
    }
}

/// The first error ends the group: what follows fails with it on all ranks, and nobody waits.
#[test]
fn the_first_error_ends_the_session_on_all_ranks() {
    let outcomes = on_ranks(wires(3), &some_ranks(3), |session| {
        let x = session.random_uniform(&[9, 8], 1)?;
        // One block is singular, so that one rank meets the error.
        let index = session.arange(0.0, 9.0, 1.0)?.mul_scalar(3.0)?;
        let index = index.cast(tw_ir::DType::I64)?;
        let first = x.take(&index, 0).and_then(|taken| taken.sum(None)).and_then(|sum| sum.item());
        let second = x.sum(None).and_then(|sum| sum.item());
        Ok::<_, tw_ir::Error>((first.err(), second.err()))
    });
    for outcome in outcomes {
        let (first, second) = outcome.expect("the tensors can be made");
        let (first, second) = (first.expect("an index is outside"), second.expect("the group has ended"));
        assert!(first.message().contains("outside"), "{first:?}");
        assert!(second.message().contains("outside"), "{second:?}");
    }
}

/// Zarr arrays are written by all ranks, unless blocks share chunks.
#[test]
fn ranks_write_zarr_arrays_whose_blocks_have_their_own_chunks() {
    let directory = tw_test::scratch::Scratch::new().expect("a scratch directory");
    let (even, ragged) = (directory.path("even.zarr"), directory.path("ragged.zarr"));
    let outcomes = on_ranks(wires(2), &two_ranks(), |session| {
        let x = session.arange(0.0, 80.0, 1.0)?.reshape(&[10, 8])?;
        x.store(&even.to_string_lossy())
    });
    outcomes.into_iter().collect::<Result<Vec<_>, _>>().expect("all ranks write");
    let written = tw_files::read_array(&even).expect("the array is there").to_f64_vec();
    assert!(written.iter().enumerate().all(|(k, value)| *value == k as f64), "{written:?}");
    let cut = |lengths: &[u64]| tw_ir::Axis::from_lengths(lengths).expect("lengths");
    let outcomes = on_ranks(wires(2), &two_ranks(), |session| {
        let x = session.arange(0.0, 101.0, 1.0)?.rechunk(&[cut(&[50, 50, 1])])?;
        let y = session.arange(0.0, 100.0, 1.0)?.rechunk(&[cut(&[50, 50])])?;
        tilewright::concat(&[&x, &y], 0)?.store(&ragged.to_string_lossy())
    });
    for outcome in outcomes {
        let error = outcome.expect_err("blocks share chunks");
        assert!(error.message().contains("cannot be written by several ranks"), "{error:?}");
    }
    assert!(!ragged.exists());
}
