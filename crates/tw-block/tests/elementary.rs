//! Vector loops give the bits of the scalar functions, for ordinary, special and huge arguments alike.
#![allow(clippy::unwrap_used)]

use std::sync::Arc;

use tw_block::{Block, CompiledKernel};
use tw_ir::kernel::{Kernel, KernelRead, StatementKernel};
use tw_ir::scalar::{eval_binary, eval_unary};
use tw_ir::{
    Array, BinaryOp, BoxRegion, Buffer, DType, Edge, Grid, Idx, Scalar, ScalarCode, ScalarOp, Slot, UnaryOp, Var,
    random,
};

/// Not a multiple of any vector, and several strips.
const N: u64 = 4_099;

/// The k-th argument: any bits, small numbers, special values, and angles that need the slow reduction.
fn argument(seed: u64, k: i64) -> f64 {
    const SPECIAL: [f64; 12] =
        [0.0, -0.0, 1.0, -1.0, 0.5, 2.0, f64::INFINITY, f64::NEG_INFINITY, f64::NAN, 5e-324, f64::MAX, -1e300];
    match random::integer(seed, k, 0, 8) {
        0 => f64::from_bits((random::uniform(seed + 1, k) * 2f64.powi(53)) as u64 * 2_047),
        1 => SPECIAL[random::integer(seed + 2, k, 0, SPECIAL.len() as i64) as usize],
        2 => (random::uniform(seed + 3, k) - 0.5) * 1e12,
        3 => (random::uniform(seed + 4, k) - 0.5) * 1e3,
        _ => (random::uniform(seed + 5, k) - 0.5) * 8.0,
    }
}

fn arguments(dtype: DType, seed: u64) -> Arc<Array> {
    let values = (0..N as i64).map(|k| argument(seed, k));
    let buffer = match dtype {
        DType::F32 => Buffer::F32(values.map(|x| x as f32).collect()),
        _ => Buffer::F64(values.collect()),
    };
    Arc::new(Array::new(vec![N], buffer).unwrap())
}

/// Applies one operation to arrays with the kernel of statements.
fn run(op: ScalarOp, n_params: usize, dtype: DType, arrays: &[Arc<Array>]) -> Array {
    let mut params = vec![dtype; n_params];
    params.push(DType::I64);
    let mut code = ScalarCode::new(params);
    for k in 0..n_params as u32 {
        code.param(k);
    }
    let result = code.push(op).unwrap();
    code.set_results(vec![result]);
    let out_dtype = code.dtype(result);
    let idx = || vec![Idx::var(Var(0))];
    let read = || KernelRead { dtype, shape: vec![N], idx: idx(), edge: Edge::Error, fill: dtype.zero() };
    let kernel = StatementKernel {
        vars: Grid::whole(&[N]),
        reads: (0..n_params).map(|_| read()).collect(),
        code,
        has_guard: false,
        out_fill: vec![out_dtype.zero()],
        accum: None,
        out_idx: idx(),
        out_edge: Edge::Error,
        out_shape: vec![N],
    };
    let whole = BoxRegion::whole(&[N]);
    let blocks: Vec<Block> = arrays.iter().map(|array| Block::view_of(array, &whole).unwrap()).collect();
    let operands: Vec<Option<&Block>> = blocks.iter().map(Some).collect();
    let mut outputs = vec![Block::for_output(out_dtype, whole, None).unwrap()];
    CompiledKernel::compile(&Kernel::Statement(kernel)).unwrap().run(0, true, &operands, &mut outputs).unwrap();
    outputs.remove(0).to_array().unwrap()
}

/// Equal bits; all NaN are one value.
fn is_same(a: Scalar, b: Scalar) -> bool {
    match (a, b) {
        (Scalar::F64(a), Scalar::F64(b)) => a.to_bits() == b.to_bits() || a.is_nan() && b.is_nan(),
        (Scalar::F32(a), Scalar::F32(b)) => a.to_bits() == b.to_bits() || a.is_nan() && b.is_nan(),
        _ => a == b,
    }
}

#[test]
fn functions_of_one_argument() {
    for dtype in [DType::F64, DType::F32] {
        let x = arguments(dtype, 1);
        for &op in UnaryOp::ALL.iter().filter(|op| op.result(dtype).is_some()) {
            let got = run(ScalarOp::Unary(op, Slot(0)), 1, dtype, std::slice::from_ref(&x));
            for k in 0..N {
                let (x, got) = (x.get(&[k]), got.get(&[k]));
                let expected = eval_unary(op, x);
                assert!(is_same(got, expected), "{op} of {x:?} is {got:?} in a vector and {expected:?} alone");
            }
        }
    }
}

#[test]
fn functions_of_two_arguments() {
    for dtype in [DType::F64, DType::F32] {
        let (x, y) = (arguments(dtype, 2), arguments(dtype, 9));
        for &op in BinaryOp::ALL.iter().filter(|op| op.result(dtype).is_some()) {
            let got = run(ScalarOp::Binary(op, Slot(0), Slot(1)), 2, dtype, &[x.clone(), y.clone()]);
            for k in 0..N {
                let (x, y, got) = (x.get(&[k]), y.get(&[k]), got.get(&[k]));
                let expected = eval_binary(op, x, y);
                assert!(is_same(got, expected), "{op} of {x:?} and {y:?} is {got:?} in a vector, {expected:?} alone");
            }
        }
    }
}
