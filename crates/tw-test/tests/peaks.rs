//! What explain predicts of random programs with loops is what a run needs. With branches it is the most that any way through the program needs.
//!
//! `TW_RANDOM_PROGRAMS` asks for more programs, `TW_RANDOM_FIRST` starts at another seed: the one that a failure names.

use std::collections::BTreeMap;
use std::sync::Arc;

use tilewright::explain::Summary;
use tilewright::{Inputs, Session, in_memory};
use tw_ir::program::{Op, Program, Region};
use tw_ir::text::print_program;
use tw_test::generate::{Options, random_program};
use tw_test::setting;
use tw_test::shrink::shrink;

fn has_loops(region: &Region) -> bool {
    region.nodes.iter().any(|node| matches!(node.op, Op::While { .. }) || node.op.regions().any(has_loops))
}

/// True if a program makes loops end at once: of an empty tensor no condition holds.
fn has_empty_values(program: &Program) -> bool {
    program.values.values().any(|info| info.ty.known_shape().is_some_and(|shape| shape.contains(&0)))
}

/// What was predicted for a program, and measured when it ran; nothing for programs whose memory depends on data.
fn peaks(session: &Session, program: &Program, inputs: &Inputs) -> Option<(u64, u64)> {
    let explanation = session.explain_bound(program, inputs).ok()?;
    let summary = explanation.summary();
    let has_branches = explanation.sections.iter().any(|section| !section.at.branches.is_empty());
    if summary.has_later || summary.selects_all || has_branches || has_empty_values(program) {
        return None;
    }
    let (_, totals) = session.run_with_report(program, inputs).ok()?;
    Some((summary.peak_bytes, totals.peak_bytes))
}

fn bound(arrays: &BTreeMap<String, tilewright::Array>) -> Inputs {
    arrays.iter().map(|(name, array)| (name.clone(), in_memory(Arc::new(array.clone())))).collect()
}

/// Programs with loops that all have a few turns, so that every turn that is planned runs.
fn looping_programs() -> impl Iterator<Item = (u64, Program, BTreeMap<String, tilewright::Array>)> {
    let (first, n) = (setting("TW_RANDOM_FIRST", 0), setting("TW_RANDOM_PROGRAMS", 1_000));
    // One program in several has loops and nothing else that depends on data.
    let seeds = first..first + 40 * n;
    let options = Options { stores: false, deferred: false, n_nodes: 8, turns: Some(4), ..Options::default() };
    let programs = seeds.map(move |seed| {
        let (program, arrays) = random_program(seed, &options);
        (seed, program, arrays)
    });
    programs.filter(|(_, program, _)| has_loops(&program.body))
}

/// Calls `compare` with random programs until it has compared as many as wanted.
fn compare_programs(wanted: u64, mut compare: impl FnMut(u64, &Program, &BTreeMap<String, tilewright::Array>) -> bool) {
    let mut compared = 0;
    for (seed, program, arrays) in looping_programs() {
        compared += u64::from(compare(seed, &program, &arrays));
        if compared == wanted {
            return;
        }
    }
    panic!("only {compared} of {wanted} programs were compared");
}

#[test]
fn the_peak_of_a_loop_is_predicted() {
    compare_programs(setting("TW_RANDOM_PROGRAMS", 1_000), |seed, program, arrays| {
        let inputs = bound(arrays);
        let serial = || Session::builder().serial().tile(1 + seed % 4).build();
        let Some((predicted, measured)) = peaks(&serial(), program, &inputs) else { return false };
        if predicted != measured {
            let differs = |program: &Program| {
                has_loops(&program.body)
                    && peaks(&serial(), program, &inputs).is_some_and(|(predicted, measured)| predicted != measured)
            };
            let small = shrink(program, arrays, differs);
            let of_small = peaks(&serial(), &small, &inputs);
            let text = print_program(&small);
            panic!("seed {seed}: predicted {predicted}, measured {measured}; smaller {of_small:?}:\n{text}");
        }
        true
    });
}

/// Runs a program in a session and compares the peak with what `predicted` says of it. False if the peak depends on data.
fn keeps_to(
    session: &Session,
    seed: u64,
    program: &Program,
    inputs: &Inputs,
    predicted: impl Fn(&Summary) -> u64,
) -> bool {
    let Ok(explanation) = session.explain_bound(program, inputs) else { return false };
    let summary = explanation.summary();
    let Ok((_, totals)) = session.run_with_report(program, inputs) else { return false };
    if summary.has_later || summary.selects_all {
        return false;
    }
    let (predicted, measured) = (predicted(&summary), totals.peak_bytes);
    let text = || print_program(program);
    assert!(measured <= predicted, "seed {seed}: predicted {predicted}, measured {measured}:\n{}", text());
    true
}

/// Which branch runs is not known: a run needs no more than is predicted.
#[test]
fn no_way_through_branches_needs_more_than_predicted() {
    fn has_branches(region: &Region) -> bool {
        region.nodes.iter().any(|node| matches!(node.op, Op::If { .. }) || node.op.regions().any(has_branches))
    }
    compare_programs(setting("TW_RANDOM_PROGRAMS", 1_000) / 4, |seed, program, arrays| {
        let session = Session::builder().serial().tile(1 + seed % 4).build();
        has_branches(&program.body) && keeps_to(&session, seed, program, &bound(arrays), |summary| summary.peak_bytes)
    });
}

/// Threads run ahead of each other, by no more than is predicted for them.
#[test]
fn threads_keep_to_the_peak_predicted_for_them() {
    compare_programs(setting("TW_RANDOM_PROGRAMS", 1_000) / 4, |seed, program, arrays| {
        let threads = 2 + (seed % 3) as usize;
        let session = Session::builder().threads(threads).chaos(seed).tile(1 + seed % 4).build();
        keeps_to(&session, seed, program, &bound(arrays), |summary| summary.peak_bytes_on_threads)
    });
}
