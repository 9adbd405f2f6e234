//! Every operation of the loop IR on every type that it takes, and every conversion: compiled code against the interpreter, bit for bit.
#![allow(clippy::unwrap_used, unreachable_pub)]

#[path = "../../tw-sparse/tests/common/mod.rs"]
mod common;

use std::sync::Arc;

use common::bits;
use tw_ir::dtype::{C64, C128, TimeUnit};
use tw_ir::{BinaryOp, Buffer, DType, Scalar, UnaryOp};
use tw_jit::JitEngine;
use tw_sparse::loops::{ArrayRole, ArrayType, Code, LoopExpr, LoopKernel, LoopStmt, interpret};

/// Values at which operations differ: zeros of both signs, extremes, fractions, infinities, NaN.
fn samples(dtype: DType) -> Vec<Scalar> {
    let numbers = [0.0, -0.0, 1.0, -1.0, 0.5, 2.5, -2.5, 3.0, 7.0, -7.0, 100.0, 1e10, -1e10, 1e300, 1e-300];
    let special = [f64::INFINITY, f64::NEG_INFINITY, f64::NAN];
    let all = numbers.iter().chain(&special);
    let mut found: Vec<Scalar> = match dtype {
        DType::C64 => numbers.iter().map(|&x| Scalar::C64(C64::new(x as f32, 1.5 - x as f32))).collect(),
        DType::C128 => numbers.iter().map(|&x| Scalar::C128(C128::new(x, 1.5 - x))).collect(),
        DType::DateTime(_) | DType::TimeDelta(_) => [0, -1, 5, i64::MAX].map(|k| Scalar::I64(k).cast(dtype)).into(),
        _ => all.map(|&x| Scalar::F64(x).cast(dtype)).collect(),
    };
    if dtype.is_integer() {
        found.extend([dtype.lowest(), dtype.highest(), Scalar::I64(63).cast(dtype), Scalar::I64(-3).cast(dtype)]);
    }
    found
}

fn buffer(values: impl IntoIterator<Item = Scalar>, dtype: DType) -> Arc<Buffer> {
    let mut buffer = Buffer::zeros(dtype.storage(), 0);
    values.into_iter().for_each(|value| buffer.push(value.stored()));
    Arc::new(buffer)
}

/// A kernel that pushes a value of `a[k]` and `b[k]` for every `k`.
fn kernel(dtype: DType, result: DType, value: impl FnOnce(LoopExpr, LoopExpr) -> LoopExpr) -> LoopKernel {
    let mut code = Code::new("scalars");
    let n = code.parameter("n");
    let [a, b] = ["a", "b"].map(|name| code.array(name, ArrayType::Value(dtype), ArrayRole::Input));
    let out = code.array("out", ArrayType::Value(result), ArrayRole::Output);
    let k = code.declare("k", DType::I64);
    let at = |array| LoopExpr::load(array, LoopExpr::Local(k));
    let value = value(at(a), at(b));
    code.for_loop(k, LoopExpr::int(0), LoopExpr::Local(n), |code| code.push(out, value));
    code.finish()
}

fn compare(engine: &JitEngine, what: &str, kernel: &LoopKernel, dtype: DType) {
    let samples = samples(dtype);
    let pairs = || samples.iter().flat_map(|a| samples.iter().map(move |b| (*a, *b)));
    let inputs = [buffer(pairs().map(|pair| pair.0), dtype), buffer(pairs().map(|pair| pair.1), dtype)];
    let params = [inputs[0].len() as i64];
    let expected = interpret(kernel, &params, &inputs).unwrap();
    let found = engine.execute_checked(kernel, &params, &inputs).unwrap();
    assert_eq!(bits(&found[0]), bits(&expected[0]), "{what} of {dtype}\n{kernel}");
}

fn types() -> Vec<DType> {
    let times = [DType::DateTime(TimeUnit::ALL[0]), DType::TimeDelta(TimeUnit::ALL[0])];
    DType::PHYSICAL.into_iter().chain(times).collect()
}

#[test]
fn every_operation_has_its_meaning() {
    let engine = JitEngine::new();
    for dtype in types() {
        for op in UnaryOp::ALL {
            let Some(result) = op.result(dtype) else { continue };
            let kernel = kernel(dtype, result, |a, _| LoopExpr::Unary(*op, Box::new(a)));
            compare(&engine, op.name(), &kernel, dtype);
        }
        for op in BinaryOp::ALL {
            let Some(result) = op.result(dtype) else { continue };
            let kernel = kernel(dtype, result, |a, b| LoopExpr::binary(*op, a, b));
            compare(&engine, op.name(), &kernel, dtype);
        }
    }
}

#[test]
fn every_conversion_has_its_meaning() {
    let engine = JitEngine::new();
    for from in types() {
        for to in types() {
            let kernel = kernel(from, to, |a, _| LoopExpr::Cast(to, Box::new(a)));
            compare(&engine, &format!("{to}"), &kernel, from);
        }
    }
}

#[test]
fn selections_and_lazy_conditions() {
    let engine = JitEngine::new();
    for dtype in [DType::F64, DType::I8, DType::C128, DType::U64] {
        let same = |a: LoopExpr, b: LoopExpr| a.equals(b);
        let chosen = kernel(dtype, dtype, |a, b| {
            let condition = same(a.clone(), b.clone());
            LoopExpr::Select(Box::new(condition), Box::new(a.clone()), Box::new(LoopExpr::binary(BinaryOp::Add, a, b)))
        });
        compare(&engine, "select", &chosen, dtype);
        let both = kernel(dtype, DType::Bool, |a, b| same(a.clone(), b.clone()).and(same(b, a)));
        compare(&engine, "both", &both, dtype);
    }
}

/// A kernel over index arrays of 32 bits.
fn indices(body: impl FnOnce(&mut Code)) -> LoopKernel {
    let mut code = Code::new("indices");
    body(&mut code);
    code.finish()
}

#[test]
fn indices_that_do_not_fit_and_accesses_outside_are_errors_as_in_the_interpreter() {
    use tw_sparse::IndexWidth::{U32, U64};
    let engine = JitEngine::new();
    let check = |kernel: &LoopKernel, inputs: &[Arc<Buffer>]| {
        let expected = interpret(kernel, &[], inputs).unwrap_err();
        let found = engine.execute_checked(kernel, &[], inputs).unwrap_err();
        assert_eq!(found.to_string(), expected.to_string());
        assert_eq!(found.blame(), expected.blame());
    };
    for (width, index) in [(U32, 1 << 32), (U32, -1), (U64, -1)] {
        check(
            &indices(|code| {
                let crd = code.array("crd", ArrayType::Index(width), ArrayRole::Output);
                code.push(crd, LoopExpr::int(index));
            }),
            &[],
        );
    }
    let input = Arc::new(Buffer::F64(vec![1.0, 2.0]));
    for index in [2, -1, i64::MAX, i64::MIN] {
        check(
            &indices(|code| {
                let a = code.array("a", ArrayType::Value(DType::F64), ArrayRole::Input);
                let out = code.array("out", ArrayType::Value(DType::F64), ArrayRole::Output);
                code.push(out, LoopExpr::load(a, LoopExpr::int(index)));
            }),
            std::slice::from_ref(&input),
        );
        check(
            &indices(|code| {
                let _ = code.array("a", ArrayType::Value(DType::F64), ArrayRole::Input);
                let out = code.array("out", ArrayType::Value(DType::F64), ArrayRole::Output);
                code.resize(out, LoopExpr::int(2), Scalar::F64(0.0));
                code.store(out, LoopExpr::int(index), LoopExpr::Const(Scalar::F64(1.0)));
            }),
            std::slice::from_ref(&input),
        );
    }
    let keys = Arc::new(Buffer::U32(vec![1, 5, 7]));
    for (from, to) in [(0, 4), (-1, 2), (2, 100)] {
        check(
            &indices(|code| {
                let crd = code.array("crd", ArrayType::Index(U32), ArrayRole::Input);
                let out = code.array("out", ArrayType::Value(DType::I64), ArrayRole::Output);
                let part = |value| Box::new(LoopExpr::int(value));
                code.push(out, LoopExpr::Seek { array: crd, from: part(from), to: part(to), target: part(6) });
            }),
            std::slice::from_ref(&keys),
        );
    }
    for length in [-1, i64::MAX] {
        let kernel = indices(|code| {
            let out = code.array("out", ArrayType::Value(DType::F64), ArrayRole::Output);
            code.resize(out, LoopExpr::int(length), Scalar::F64(0.0));
        });
        assert_eq!(
            engine.execute_checked(&kernel, &[], &[]).unwrap_err().blame(),
            interpret(&kernel, &[], &[]).unwrap_err().blame()
        );
    }
}

#[test]
fn arrays_shrink_grow_and_are_sorted() {
    use tw_sparse::IndexWidth::{U32, U64};
    let engine = JitEngine::new();
    for width in [U32, U64] {
        for dtype in [DType::F64, DType::C128, DType::Bool, DType::I16] {
            let kernel = indices(|code| {
                let n = code.parameter("n");
                let keys = code.array("keys", ArrayType::Index(width), ArrayRole::Output);
                let values = code.array("values", ArrayType::Value(dtype), ArrayRole::Output);
                let alone = code.array("alone", ArrayType::Index(width), ArrayRole::Output);
                let k = code.declare("k", DType::I64);
                code.resize(values, LoopExpr::int(5), dtype.one());
                code.resize(values, LoopExpr::int(2), dtype.zero());
                code.resize(values, LoopExpr::int(3), dtype.zero());
                code.resize(keys, LoopExpr::int(3), Scalar::I64(4));
                code.for_loop(k, LoopExpr::int(0), LoopExpr::Local(n), |code| {
                    let scattered = LoopExpr::Local(k).times(LoopExpr::int(7919));
                    let key = LoopExpr::binary(BinaryOp::Mod, scattered, LoopExpr::int(97));
                    code.push(keys, key.clone());
                    code.push(alone, key);
                    code.push(values, LoopExpr::Cast(dtype, Box::new(LoopExpr::Local(k))));
                });
                code.emit(LoopStmt::Sort(keys, Some(values)));
                code.emit(LoopStmt::Sort(alone, None));
            });
            for n in [0, 1, 63, 64, 65, 1000] {
                let expected = interpret(&kernel, &[n], &[]).unwrap();
                let found = engine.execute_checked(&kernel, &[n], &[]).unwrap();
                assert_eq!(found, expected, "{n} of {dtype}");
            }
        }
    }
}
