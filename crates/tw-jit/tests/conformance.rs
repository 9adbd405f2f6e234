//! The conformance cases, by compiled code.
#![allow(clippy::unwrap_used, unreachable_pub)]

#[path = "../../tw-sparse/tests/common/mod.rs"]
mod common;

use common::cases;
use tw_jit::JitEngine;

#[test]
fn shared_cases_hold() {
    let Some(all) = cases::shared() else {
        eprintln!("SKIPPED: shared/data/sparse-cases.json is not there; none of its cases was run");
        return;
    };
    for engine in [JitEngine::new().with_bounds_checks(), JitEngine::new()] {
        let (mut n, mut failures) = (0, Vec::new());
        for (k, case) in all.iter().enumerate() {
            if let Some(outcome) = cases::run(&engine, case) {
                n += 1;
                if let Err(failure) = outcome {
                    failures.push(format!("case {k} {}: {failure}", case["name"]));
                }
            }
        }
        println!("{n} of {} cases carry a check", all.len());
        assert!(n > 0 && failures.is_empty(), "{} of {n} fail:\n{}", failures.len(), failures.join("\n\n"));
    }
}
