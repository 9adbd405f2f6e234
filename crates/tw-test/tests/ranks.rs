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
use tw_test::ranks::{on_ranks, on_ranks_with, on_ranks_within, run_on_ranks, wires};
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

/// On any number of ranks a reproducible session computes the bits of threads.
#[test]
fn reproducible_sessions_compute_the_bits_of_threads() {
    let (first, n) = (setting("TW_RANDOM_FIRST", 0), setting("TW_RANDOM_PROGRAMS", 1_000) / 8);
    let mut sent = 0;
    for seed in first..first + n {
        let (program, inputs) = random_program(seed, &Options::of_seed(seed));
        let (ranks, _) = configuration(seed);
        let alone = Configuration { cluster: None, ..ranks.clone() };
        let Ok(expected) = run(&alone.session(), &program, &inputs) else { continue };
        for size in [1, 2, 3, 5].into_iter().filter(|size| (u64::from(*size) + seed) % 2 == 0) {
            let cluster = Some(Cluster::of(1, size, SchedulerName::Auto).expect("a cluster"));
            let configuration = Configuration { cluster, ..ranks.clone() };
            let results = on_ranks_with(wires(size), &configuration, &|builder| builder.reproducible(), |session| {
                (run(session, &program, &inputs), session.totals().sent_bytes)
            });
            for (rank, (results, bytes)) in results.into_iter().enumerate() {
                let on = format!("seed {seed}, rank {rank} of {size}, {configuration:?}");
                let results = results.unwrap_or_else(|error| panic!("{on}: {error:?}\n{}", print_program(&program)));
                assert!(same_bits(&expected, &results), "{on}: other bits\n{}", print_program(&program));
                sent += bytes;
            }
        }
    }
    assert!(sent > 0, "nothing was sent at all");
}

/// Ranks spill within their parts: bits stay the same, and nobody holds more than the budget. A budget below the largest step of a rank is refused on all ranks.
#[test]
fn ranks_keep_to_budgets() {
    let (first, n) = (setting("TW_RANDOM_FIRST", 0), setting("TW_RANDOM_PROGRAMS", 1_000) / 10);
    let (mut spilled, mut refused, mut fitted) = (0, 0, 0);
    for seed in first..first + n {
        let options = Options { control_flow: false, deferred: false, ..Options::of_seed(seed) };
        let (program, inputs) = random_program(seed, &options);
        let (configuration, size) = configuration(seed);
        let configuration = Configuration { threads: 1, ..configuration };
        let run_within = |budget: Option<u64>| {
            on_ranks_within(wires(size), &configuration, budget, |session| {
                let bound = inputs.iter().map(|(name, array)| (name.clone(), in_memory(array.clone()))).collect();
                let (stored, totals) = session.run_with_report(&program, &bound)?;
                let peak = session.memory().1;
                let fetched = stored.into_iter().map(|(name, stored)| {
                    // What is fetched is beside the budget of the run; blocks are looked at on the rank that has them.
                    let here = stored.blocks().iter().map(|block| match block.owner() {
                        None => Ok(Some(block.block()?.to_array()?)),
                        Some(_) => Ok(None),
                    });
                    Ok((name, here.collect::<Result<Vec<_>, tw_ir::Error>>()?))
                });
                Ok::<_, tw_ir::Error>((fetched.collect::<Result<Vec<_>, tw_ir::Error>>()?, totals, peak))
            })
        };
        let ample: Result<Vec<_>, tw_ir::Error> = run_within(None).into_iter().collect();
        let Ok(ample) = ample else { continue };
        let most = ample.iter().map(|(_, totals, _)| totals.planned_peak_bytes).max().unwrap_or(0);
        for budget in [most, most * 3 / 4, most / 2, most / 4].into_iter().filter(|&budget| budget > 0) {
            let on = format!("seed {seed}, {size} ranks, budget {budget} of {most}");
            let outcomes = run_within(Some(budget));
            let n_failed = outcomes.iter().filter(|outcome| outcome.is_err()).count();
            if n_failed > 0 {
                refused += 1;
                assert_eq!(n_failed, size as usize, "{on}: all ranks are refused, or none");
                for outcome in outcomes {
                    let Err(error) = outcome else { continue };
                    assert_eq!(error.blame(), Blame::Resource, "{on}: {error:?}");
                    let text = format!("{:?} {:?}", error.help_text(), error.notes());
                    assert!(text.contains("budget") || text.contains("bytes"), "{on}: {error:?}");
                }
                continue;
            }
            for (rank, (outcome, ample)) in outcomes.into_iter().flatten().zip(&ample).enumerate() {
                let (results, totals, peak) = outcome;
                assert!(peak <= budget, "{on}, rank {rank}: {peak} bytes, planned {}", totals.planned_peak_bytes);
                assert_eq!(totals.sent_bytes, ample.1.sent_bytes, "{on}, rank {rank}");
                for ((name, blocks), (_, expected)) in results.iter().zip(&ample.0) {
                    let same = blocks.iter().zip(expected).all(|(block, expected)| match (block, expected) {
                        (Some(block), Some(expected)) => block.same_bits(expected),
                        (None, None) => true,
                        _ => false,
                    });
                    assert!(same, "{on}, rank {rank}: other bits of {name}");
                }
                spilled += totals.spilled_bytes;
                fitted += u64::from(totals.spilled_bytes > 0 || totals.planned_peak_bytes < ample.1.planned_peak_bytes);
            }
        }
    }
    assert!(spilled > 0 && refused > 0 && fitted > 0, "{spilled} bytes spilled, {refused} refused, {fitted} fitted");
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

/// Results stay on the ranks that made them, later programs find them there, and only what is asked for is brought.
#[test]
fn results_stay_where_they_are_until_somebody_asks() {
    let outcomes = on_ranks(wires(3), &some_ranks(3), |session| {
        let rank = session.rank();
        let x = session.random_uniform(&[24, 8], 1)?.add_scalar(1.0)?;
        let kept = x.persist()?;
        let owners = tw_block::Source::homes(kept.as_ref(), rank).expect("the result is distributed");
        let own = kept.bytes_in_memory();
        // The next program reads the blocks where they are: what is sent is what its own plan says.
        let before = session.totals();
        let y = x.add_scalar(1.0)?;
        let next = y.persist()?;
        let moved = session.totals().received_bytes - before.received_bytes;
        let on_first = y.compute_on(0)?;
        let fetched = session.fetch(&next, Some(2))?.bytes_in_memory();
        let everywhere = y.compute()?;
        let expected = session.random_uniform(&[24, 8], 1)?.compute()?.to_f64_vec();
        Ok::<_, tw_ir::Error>((owners, own, moved, on_first, fetched, everywhere, expected))
    });
    let outcomes: Vec<_> = outcomes.into_iter().collect::<Result<_, _>>().expect("it runs");
    let all = 24 * 8 * 8;
    assert_eq!(outcomes.iter().map(|outcome| outcome.1).sum::<u64>(), all, "every block is on one rank");
    for (rank, (owners, own, moved, on_first, fetched, everywhere, expected)) in outcomes.iter().enumerate() {
        assert_eq!(owners, &outcomes[0].0, "all ranks know where blocks are");
        assert!(*own < all, "rank {rank} holds a part");
        assert_eq!(*moved, 0, "a sum of each element with a number moves nothing");
        assert_eq!(on_first.is_some(), rank == 0);
        assert_eq!(*fetched == all, rank == 2);
        let expected: Vec<f64> = expected.iter().map(|x| x + 1.0 + 1.0).collect();
        assert_eq!(everywhere.to_f64_vec(), expected);
    }
}

/// An array that only one rank has is sent to those that read it, block by block.
#[test]
fn an_array_of_one_rank_is_an_operand_of_all() {
    let outcomes = on_ranks(wires(3), &some_ranks(3), |session| {
        let array = (session.rank() == 1).then(|| tw_ir::Array::from_f64(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0]));
        let x = session.array_of_rank(1, array)?;
        let y = x.mul(&x)?.add(&session.arange(0.0, 7.0, 1.0)?)?;
        let missing = session.array_of_rank(5, None).expect_err("there is no rank 5");
        assert!(missing.message().contains("rank 5 of 3"), "{missing:?}");
        y.compute()
    });
    for outcome in outcomes {
        assert_eq!(outcome.expect("it runs").to_f64_vec(), [1.0, 5.0, 11.0, 19.0, 29.0, 41.0, 55.0]);
    }
}

/// Arrays of the host that differ between ranks are noticed, and the error names the line that made them.
#[test]
fn arrays_that_differ_between_ranks_are_noticed() {
    let line = line!() + 3;
    let outcomes = on_ranks(wires(3), &some_ranks(3), |session| {
        let values = [1.0, 2.0, if session.rank() == 2 { 4.0 } else { 3.0 }];
        let x = session.array(tw_ir::Array::from_f64(&values));
        x.add_scalar(1.0)?.sum(None)?.item()
    });
    for outcome in outcomes {
        let error = outcome.expect_err("the arrays differ");
        assert!(error.message().contains("do not run the same program"), "{error:?}");
        assert!(error.span().to_string().ends_with(&format!("ranks.rs:{line}")), "{}", error.span());
    }
}

/// A rank that is cancelled while it waits for others ends its wait, and theirs.
#[test]
fn a_wait_between_schedules_can_be_cancelled() {
    let started = std::time::Instant::now();
    let outcomes = on_ranks(wires(2), &two_ranks(), |session| {
        let x = session.random_uniform(&[16, 8], 1)?;
        x.persist()?;
        if session.rank() == 1 {
            // It comes late: the first rank waits for blocks, until it is cancelled.
            std::thread::sleep(std::time::Duration::from_millis(300));
            return x.compute().map(drop);
        }
        let token = tilewright::CancelToken::new();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                std::thread::sleep(std::time::Duration::from_millis(50));
                token.cancel();
            });
            tilewright::until_cancelled(&token, || x.compute()).map(drop)
        })
    });
    for outcome in outcomes {
        assert_eq!(outcome.expect_err("it was cancelled").blame(), Blame::Cancelled);
    }
    assert!(started.elapsed() < std::time::Duration::from_secs(20));
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
