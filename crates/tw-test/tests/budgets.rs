//! Random programs under random small budgets: the same bits, never more memory than the budget, and exactly the peak that explain has shown.
//!
//! `TW_RANDOM_PROGRAMS` asks for more programs, `TW_RANDOM_FIRST` starts at another seed: the one that a failure names.

use std::collections::BTreeMap;
use std::sync::Arc;

use tilewright::{Inputs, Session, SessionBuilder, in_memory};
use tw_ir::error::Blame;
use tw_ir::program::{FunctionTable, Program};
use tw_ir::text::print_program;
use tw_lang::{NoFiles, parse_program};
use tw_test::differential::{Results, run, same_bits};
use tw_test::generate::{Options, random_program};
use tw_test::setting;

fn bound(arrays: &Results) -> Inputs {
    arrays.iter().map(|(name, array)| (name.clone(), in_memory(Arc::new(array.clone())))).collect()
}

/// The smallest budget that an error names.
fn smallest(text: &str) -> Option<u64> {
    let marks = ["the smallest budget that works is ", "a budget of ", "at least "];
    let rest = marks.iter().find_map(|mark| Some(text.split_once(mark)?.1))?;
    rest.split(' ').next()?.parse().ok()
}

/// Runs a program with ever larger budgets, beginning with one that is too small, until it runs. Gives the results and the budget.
fn within_least_budget(
    build: impl Fn(u64) -> SessionBuilder,
    program: &Program,
    inputs: &Results,
) -> (Results, Session, u64) {
    let mut budget = 1;
    for _ in 0..50 {
        let session = build(budget).build();
        match run(&session, program, inputs) {
            Ok(results) => return (results, session, budget),
            Err(error) if error.blame() == Blame::Resource => {
                let text = error.to_string();
                let next = smallest(&text).unwrap_or_else(|| panic!("no budget in: {text}"));
                assert!(next > budget, "{next} after {budget}: {text}");
                budget = next;
            }
            Err(error) => panic!("{error}\n{}", print_program(program)),
        }
    }
    panic!("no end of budgets:\n{}", print_program(program));
}

#[test]
fn small_budgets_change_no_bit_and_are_kept() {
    let (first, n) = (setting("TW_RANDOM_FIRST", 0), setting("TW_RANDOM_PROGRAMS", 400));
    let options = Options { stores: false, ..Options::default() };
    let (mut compared, mut spilled, mut repeated) = (0, 0, 0);
    for seed in first..first + n {
        let (program, arrays) = random_program(seed, &options);
        let ample = Session::builder().serial().tile(1 + seed % 4).build();
        let Ok(expected) = run(&ample, &program, &arrays) else { continue };
        for (threads, seed_of_chaos) in [(1, None), (3, Some(seed))] {
            let build = |budget: u64| {
                let builder = Session::builder().tile(1 + seed % 4).memory(budget);
                match seed_of_chaos {
                    None => builder.serial(),
                    Some(chaos) => builder.threads(threads).chaos(chaos),
                }
            };
            let (results, session, budget) = within_least_budget(build, &program, &arrays);
            let text = || print_program(&program);
            assert!(same_bits(&expected, &results), "seed {seed}, budget {budget}: other bits\n{}", text());
            let totals = session.totals();
            assert!(totals.peak_bytes <= budget, "seed {seed}: {} bytes of {budget}\n{}", totals.peak_bytes, text());
            spilled += totals.spilled_bytes;
            repeated += u64::from(totals.fetched_bytes > 0);
            compared += 1;
        }
    }
    assert!(compared > n, "only {compared} runs of {n} programs were compared");
    assert!(spilled > 0 && repeated > 0, "nothing was spilled");
}

/// Sizes between the smallest budget and ample memory, too.
#[test]
fn budgets_of_every_size_are_kept() {
    let texts = [
        "input x: f64[400, 6]\ny = (x - mean(x, axis=0)) / std(x, axis=0)\nc = y.T @ y\noutput y\noutput c",
        "input x: f64[400, 6]\ny = sort(x[:, 0])\nz = cumsum(y)\noutput y\noutput z",
        "input x: f64[400, 6]\ny = x @ x.T\nz = y @ y\nt = sum(z, axis=1)\noutput t",
        "input x: f64[400, 6]\ns = sum(x, axis=0)\ny = sort(x, axis=0)\nz = y - s\noutput z",
        "input x: f64[400, 6]\nw = sort(x, axis=1)\ns = sum(w, axis=0)\ny = sort(w, axis=0)\nz = y - s\noutput z",
        "input x: f64[400, 6]\nk = 0\nwhile k < 3 {\nx = x + mean(x, axis=0) * x\nk = k + 1\n}\noutput x",
    ];
    let values: Vec<f64> = (0..2400).map(|k| ((k * 7919) % 1009) as f64).collect();
    let array = tilewright::Array::from_f64(&values).reshaped(&[400, 6]).unwrap();
    for text in texts {
        let unit = parse_program(text, &BTreeMap::new(), &NoFiles, &FunctionTable::default());
        let unit = unit.unwrap_or_else(|errors| panic!("{errors:?}")).program;
        let arrays: BTreeMap<String, tilewright::Array> = [("x".to_string(), array.clone())].into();
        let inputs = bound(&arrays);
        let ample = Session::builder().serial().tile(50).build();
        let expected = run(&ample, &unit, &arrays).unwrap();
        let (_, totals) = ample.run_with_report(&unit, &inputs).unwrap();
        let build = |budget: u64| Session::builder().serial().tile(50).memory(budget);
        let (_, _, least) = within_least_budget(build, &unit, &arrays);
        for percent in [0, 5, 25, 50, 75, 100] {
            let budget = least + totals.peak_bytes.saturating_sub(least) * percent / 100;
            let session = build(budget).build();
            let predicted = session.explain_bound(&unit, &inputs).unwrap().summary().peak_bytes;
            let (results, measured) = session.run_with_report(&unit, &inputs).unwrap();
            let results: Results =
                results.into_iter().map(|(name, handle)| (name, handle.to_array().unwrap())).collect();
            assert!(same_bits(&expected, &results), "{text}: budget {budget}");
            assert!(measured.peak_bytes <= budget, "{text}: {} of {budget}", measured.peak_bytes);
            assert!(predicted <= budget, "{text}: predicted {predicted} of {budget}");
        }
    }
}
