//! How fast elementary functions run in the loops of kernels, beside the standard library called element by element.
//! `cargo run --release -p tw-block --example elementary_speed`
#![allow(clippy::unwrap_used)]

use std::hint::black_box;
use std::sync::Arc;
use std::time::Instant;

use tw_block::{Block, CompiledKernel};
use tw_ir::kernel::{Kernel, KernelRead, StatementKernel};
use tw_ir::{Array, BinaryOp, BoxRegion, Buffer, DType, Edge, Grid, Idx, ScalarCode, ScalarOp, Slot, UnaryOp, Var};

/// Elements: all arrays stay in the second-level cache.
const N: u64 = 8_192;

/// Rounds, in which both are timed one after the other.
const ROUNDS: usize = 40;

/// Nanoseconds per element.
fn time(f: &mut dyn FnMut()) -> f64 {
    const CALLS: u32 = 8;
    let start = Instant::now();
    (0..CALLS).for_each(|_| f());
    start.elapsed().as_nanos() as f64 / f64::from(CALLS) / N as f64
}

/// A kernel that applies one operation to arrays.
fn compile(op: ScalarOp, n_params: usize, dtype: DType) -> CompiledKernel {
    let mut params = vec![dtype; n_params];
    params.push(DType::I64);
    let mut code = ScalarCode::new(params);
    for k in 0..n_params as u32 {
        code.param(k);
    }
    let result = code.push(op).unwrap();
    code.set_results(vec![result]);
    let idx = || vec![Idx::var(Var(0))];
    let read = |_| KernelRead { dtype, shape: vec![N], idx: idx(), edge: Edge::Error, fill: dtype.zero() };
    let kernel = StatementKernel {
        vars: Grid::whole(&[N]),
        reads: (0..n_params).map(read).collect(),
        code,
        has_guard: false,
        out_fill: vec![dtype.zero()],
        accum: None,
        out_idx: idx(),
        out_edge: Edge::Error,
        out_shape: vec![N],
    };
    CompiledKernel::compile(&Kernel::Statement(kernel)).unwrap()
}

/// Numbers spread evenly between two others, in an order that no predictor knows.
fn spread(low: f64, high: f64, step: u64) -> impl Iterator<Item = f64> {
    (0..N).map(move |k| low + (high - low) * ((k * step) % N) as f64 / N as f64)
}

fn compare(op: ScalarOp, dtype: DType, arrays: &[Arc<Array>], system: &mut dyn FnMut()) {
    let kernel = compile(op, arrays.len(), dtype);
    let whole = BoxRegion::whole(&[N]);
    let blocks: Vec<Block> = arrays.iter().map(|array| Block::view_of(array, &whole).unwrap()).collect();
    let operands: Vec<Option<&Block>> = blocks.iter().map(Some).collect();
    let mut outputs = vec![Block::for_output(dtype, whole, None).unwrap()];
    let mut ours = || kernel.run(0, true, black_box(&operands), black_box(&mut outputs)).unwrap();
    let (mut best, mut best_system) = (f64::INFINITY, f64::INFINITY);
    for _ in 0..ROUNDS {
        best = best.min(time(&mut ours));
        best_system = best_system.min(time(system));
    }
    let name = match op {
        ScalarOp::Unary(op, _) => op.name(),
        ScalarOp::Binary(op, ..) => op.name(),
        _ => "",
    };
    println!("| `{name}` | {dtype} | {best:.2} | {best_system:.2} | {:.1} |", best_system / best);
}

macro_rules! functions {
    ($float:ident $variant:ident: $($op:ident $low:expr, $high:expr, $system:expr;)*) => {
        $({
            let values: Vec<$float> = spread($low, $high, 7_919).map(|x| x as $float).collect();
            let array = Arc::new(Array::new(vec![N], Buffer::$variant(values.clone())).unwrap());
            let mut out = vec![0.0; N as usize];
            let system: fn($float) -> $float = $system;
            let mut by_system = || {
                black_box(&mut out).iter_mut().zip(black_box(&values)).for_each(|(out, &x)| *out = system(x));
            };
            compare(ScalarOp::Unary(UnaryOp::$op, Slot(0)), DType::$variant, &[array], &mut by_system);
        })*
    };
    (two $float:ident $variant:ident: $($op:ident $system:expr;)*) => {
        $({
            let x: Vec<$float> = spread(0.1, 8.0, 7_919).map(|x| x as $float).collect();
            let y: Vec<$float> = spread(-4.0, 4.0, 4_001).map(|x| x as $float).collect();
            let array = |values: &Vec<$float>| Arc::new(Array::new(vec![N], Buffer::$variant(values.clone())).unwrap());
            let mut out = vec![0.0; N as usize];
            let system: fn($float, $float) -> $float = $system;
            let arrays = [array(&x), array(&y)];
            let mut by_system = || {
                let both = black_box(&x).iter().zip(black_box(&y));
                black_box(&mut out).iter_mut().zip(both).for_each(|(out, (&x, &y))| *out = system(x, y));
            };
            compare(ScalarOp::Binary(BinaryOp::$op, Slot(0), Slot(1)), DType::$variant, &arrays, &mut by_system);
        })*
    };
    (all $float:ident $variant:ident) => {
        functions! { $float $variant:
            Exp -10.0, 10.0, $float::exp;
            Exp2 -10.0, 10.0, $float::exp2;
            Expm1 -3.0, 3.0, $float::exp_m1;
            Log 0.1, 30.0, $float::ln;
            Log1p -0.5, 30.0, $float::ln_1p;
            Log2 0.1, 30.0, $float::log2;
            Log10 0.1, 30.0, $float::log10;
            Sin -100.0, 100.0, $float::sin;
            Cos -100.0, 100.0, $float::cos;
            Tan -100.0, 100.0, $float::tan;
            Asin -1.0, 1.0, $float::asin;
            Acos -1.0, 1.0, $float::acos;
            Atan -5.0, 5.0, $float::atan;
            Sinh -5.0, 5.0, $float::sinh;
            Cosh -5.0, 5.0, $float::cosh;
            Tanh -5.0, 5.0, $float::tanh;
            Asinh -5.0, 5.0, $float::asinh;
            Acosh 1.0, 10.0, $float::acosh;
            Atanh -1.0, 1.0, $float::atanh;
            Cbrt -10.0, 10.0, $float::cbrt;
        }
        functions! { two $float $variant:
            Pow $float::powf;
            Atan2 $float::atan2;
            Hypot $float::hypot;
        }
    };
}

fn main() {
    println!("| function | type | ns/element | standard library | times faster |\n|---|---|---|---|---|");
    functions! { all f64 F64 }
    functions! { all f32 F32 }
}
