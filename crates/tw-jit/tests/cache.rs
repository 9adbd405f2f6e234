//! Compiled kernels are found again, bounded in number, and freed. `TW_KERNELS=10000` compiles so many.
#![allow(clippy::unwrap_used, unreachable_pub)]

use std::sync::Arc;
use std::time::Instant;

use tw_ir::{Buffer, DType, Error, Scalar};
use tw_jit::JitEngine;
use tw_sparse::loops::{ArrayRole, ArrayType, Code, LoopExpr, LoopKernel};

/// A kernel that differs from others in a constant.
fn kernel(name: &str, constant: i64) -> LoopKernel {
    let mut code = Code::new(name);
    let n = code.parameter("n");
    let out = code.array(name, ArrayType::Value(DType::I64), ArrayRole::Output);
    let k = code.declare("k", DType::I64);
    let value = LoopExpr::Local(k).times(LoopExpr::int(3)).plus(LoopExpr::int(constant));
    code.for_loop(k, LoopExpr::int(0), LoopExpr::Local(n), |code| code.push(out, value));
    code.finish()
}

/// Pages of memory of this process, where the system tells.
fn resident() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/self/statm").ok()?;
    text.split_whitespace().nth(1)?.parse().ok()
}

#[test]
fn names_do_not_matter_and_the_rest_does() {
    let engine = JitEngine::new();
    for name in ["a", "b"] {
        engine.execute_checked(&kernel(name, 5), &[2], &[]).unwrap();
    }
    assert_eq!((engine.statistics().compiled, engine.statistics().found), (1, 1));
    engine.execute_checked(&kernel("a", 6), &[2], &[]).unwrap();
    assert_eq!(engine.statistics().compiled, 2);
    // The same code with bounds checks is not the code without.
    engine.prepare(&kernel("a", 6)).unwrap();
    assert_eq!(engine.statistics().compiled, 3);
}

#[test]
fn many_kernels_neither_leak_nor_slow_down() {
    let n: i64 = std::env::var("TW_KERNELS").map_or(600, |text| text.parse().unwrap());
    let engine = JitEngine::with_capacity(50);
    let round = |from: i64, to: i64| {
        let begin = Instant::now();
        for constant in from..to {
            // The distance keeps constants away from the few that simplify code.
            let found = engine.execute_checked(&kernel("k", 1000 + constant), &[2], &[]).unwrap();
            assert_eq!(found[0], Buffer::I64(vec![1000 + constant, 1003 + constant]));
        }
        begin.elapsed().as_secs_f64() / (to - from) as f64
    };
    let first = round(0, n / 3);
    let before = resident();
    round(n / 3, 2 * n / 3);
    let last = round(2 * n / 3, n);
    let statistics = engine.statistics();
    assert_eq!((statistics.kernels, statistics.compiled), (50, n as u64));
    println!("{n} kernels: {:.3} ms each at first, {:.3} ms at last", first * 1e3, last * 1e3);
    if let (Some(before), Some(after)) = (before, resident()) {
        // Each kernel maps at least one page of code. A leak of every page would add two thirds of `n` pages.
        let grown = after.saturating_sub(before);
        println!("{grown} pages more");
        assert!(grown < 2 * n as u64 / 6, "{grown} pages more after {} kernels", 2 * n / 3);
    }
}

#[test]
fn growth_is_asked_for() {
    let limit = 1 << 16;
    let engine = JitEngine::new().with_growth_limit(Arc::new(move |bytes| match bytes <= limit {
        true => Ok(()),
        false => Err(Error::resource("too much").help("less")),
    }));
    assert!(engine.execute_checked(&kernel("k", 1), &[1000], &[]).is_ok());
    let error = engine.execute_checked(&kernel("k", 1), &[1_000_000], &[]).unwrap_err();
    assert!(error.to_string().contains("too much"), "{error}");
    // Sizes that no memory holds are errors too.
    let mut code = Code::new("large");
    let out = code.array("out", ArrayType::Value(DType::F64), ArrayRole::Output);
    code.resize(out, LoopExpr::int(1 << 40), Scalar::F64(1.0));
    let large = code.finish();
    let unlimited = JitEngine::new();
    if cfg!(target_os = "linux")
        && std::fs::read_to_string("/proc/sys/vm/overcommit_memory").is_ok_and(|text| text.trim() != "1")
    {
        assert!(unlimited.execute_checked(&large, &[], &[]).is_err());
    }
}

#[test]
fn threads_share_an_engine() {
    let engine = JitEngine::with_capacity(3);
    std::thread::scope(|scope| {
        for t in 0..4 {
            let engine = &engine;
            scope.spawn(move || {
                for k in 0..40 {
                    let constant = (k * 7 + t) % 10;
                    let found = engine.execute_checked(&kernel("k", constant), &[1], &[]).unwrap();
                    assert_eq!(found[0], Buffer::I64(vec![constant]));
                }
            });
        }
    });
}
