//! How fast kernels run, beside loops written by hand. `cargo run --release -p tw-block --example kernel_speed`
#![allow(clippy::unwrap_used)]

use std::hint::black_box;
use std::sync::Arc;
use std::time::Instant;

use tw_block::{Block, CompiledKernel, Meter};
use tw_ir::kernel::{Kernel, KernelRead, StatementKernel};
use tw_ir::{
    Accum, Array, BinaryOp, BoxRegion, Buffer, DType, Edge, Grid, Idx, RandomDistribution, Scalar, ScalarCode,
    ScalarOp, Slot, UnaryOp, Var,
};

/// Nanoseconds per call, the best of several rounds.
fn time(mut f: impl FnMut()) -> f64 {
    let mut calls = 1u32;
    loop {
        let start = Instant::now();
        (0..calls).for_each(|_| f());
        if start.elapsed().as_millis() >= 4 {
            break;
        }
        calls *= 2;
    }
    (0..60)
        .map(|_| {
            let start = Instant::now();
            (0..calls).for_each(|_| f());
            start.elapsed().as_nanos() as f64 / calls as f64
        })
        .fold(f64::INFINITY, f64::min)
}

/// A statement over `extents`; accesses are given by the variables of their axes.
fn statement(
    extents: &[u64],
    reads: &[&[u32]],
    out: &[u32],
    accum: Option<Accum>,
    body: impl FnOnce(&mut ScalarCode, &[Slot]) -> Slot,
) -> StatementKernel {
    let dtype = DType::F64;
    let access = |vars: &[u32]| -> (Vec<Idx>, Vec<u64>) {
        vars.iter().map(|&v| (Idx::var(Var(v)), extents[v as usize])).unzip()
    };
    let mut params = vec![dtype; reads.len()];
    params.extend(vec![DType::I64; extents.len()]);
    let mut code = ScalarCode::new(params);
    let slots: Vec<Slot> = (0..reads.len() as u32).map(|k| code.param(k)).collect();
    let result = body(&mut code, &slots);
    code.set_results(vec![result]);
    let (out_idx, out_shape) = access(out);
    StatementKernel {
        vars: Grid::whole(extents),
        reads: reads
            .iter()
            .map(|vars| {
                let (idx, shape) = access(vars);
                KernelRead { dtype, shape, idx, edge: Edge::Error, fill: dtype.zero() }
            })
            .collect(),
        code,
        has_guard: false,
        out_fill: if accum.is_none() { vec![dtype.zero()] } else { vec![] },
        accum,
        out_idx,
        out_edge: Edge::Error,
        out_shape,
    }
}

fn data(shape: &[u64]) -> Arc<Array> {
    let n: u64 = shape.iter().product();
    let values = (0..n).map(|k| tw_ir::random::uniform(3, k as i64) + 0.5).collect();
    Arc::new(Array::new(shape.to_vec(), Buffer::F64(values)).unwrap())
}

/// Runs a statement on whole arrays; nanoseconds per call.
fn run(kernel: StatementKernel) -> f64 {
    let arrays: Vec<Arc<Array>> = kernel.reads.iter().map(|read| data(&read.shape)).collect();
    let blocks: Vec<Block> = arrays.iter().map(|a| Block::view_of(a, &BoxRegion::whole(a.shape())).unwrap()).collect();
    let operands: Vec<Option<&Block>> = blocks.iter().map(Some).collect();
    let types = kernel.accum.as_ref().map_or(vec![DType::F64], Accum::state_types);
    let mut outputs: Vec<Block> = types
        .iter()
        .map(|&dtype| Block::for_output(dtype, BoxRegion::whole(&kernel.out_shape), None).unwrap())
        .collect();
    let compiled = CompiledKernel::compile(&Kernel::Statement(kernel)).unwrap();
    time(|| compiled.run(0, true, black_box(&operands), black_box(&mut outputs)).unwrap())
}

fn report(name: &str, ours: f64, by_hand: Option<f64>, elements: f64) {
    print!("{name:34} {:>12.0} ns {:>8.3} ns/element", ours, ours / elements);
    match by_hand {
        Some(hand) => println!("   by hand {hand:>12.0} ns, {:.2} times", ours / hand),
        None => println!(),
    }
}

fn main() {
    let only: Option<String> = std::env::args().nth(1);
    let wanted = |name: &str| only.as_ref().is_none_or(|only| name.contains(only.as_str()));
    let n = 1_000_000u64;
    let chain = |code: &mut ScalarCode, p: &[Slot]| {
        let product = code.binary(BinaryOp::Mul, p[0], p[1]).unwrap();
        let two = code.constant(Scalar::F64(2.0));
        let sum = code.binary(BinaryOp::Add, product, two).unwrap();
        let root = code.unary(UnaryOp::Sqrt, sum).unwrap();
        code.binary(BinaryOp::Sub, root, p[0]).unwrap()
    };
    if wanted("elementwise") {
        let (a, b) = (data(&[n]), data(&[n]));
        let (Buffer::F64(a), Buffer::F64(b)) = (a.data(), b.data()) else { return };
        let mut out = vec![0.0; n as usize];
        let hand = time(|| {
            let (a, b, out) = (black_box(a), black_box(b), black_box(&mut out));
            for ((out, a), b) in out.iter_mut().zip(a).zip(b) {
                *out = (a * b + 2.0).sqrt() - a;
            }
        });
        report("elementwise chain, 1e6", run(statement(&[n], &[&[0], &[0]], &[0], None, chain)), Some(hand), n as f64);
        let square = statement(&[1000, 1000], &[&[0, 1], &[0, 1]], &[0, 1], None, chain);
        report("elementwise chain, 1000x1000", run(square), Some(hand), n as f64);
        let add = |code: &mut ScalarCode, p: &[Slot]| code.binary(BinaryOp::Add, p[0], p[1]).unwrap();
        let hand = time(|| {
            let (a, b, out) = (black_box(a), black_box(b), black_box(&mut out));
            for ((out, a), b) in out.iter_mut().zip(a).zip(b) {
                *out = a + b;
            }
        });
        report("elementwise add, 1e6", run(statement(&[n], &[&[0], &[0]], &[0], None, add)), Some(hand), n as f64);
        report(
            "elementwise add, row broadcast",
            run(statement(&[1000, 1000], &[&[0, 1], &[1]], &[0, 1], None, add)),
            Some(hand),
            n as f64,
        );
        report(
            "elementwise add, column broadcast",
            run(statement(&[1000, 1000], &[&[0, 1], &[0]], &[0, 1], None, add)),
            Some(hand),
            n as f64,
        );
        report(
            "elementwise add, 125000x8 + 8",
            run(statement(&[125_000, 8], &[&[0, 1], &[1]], &[0, 1], None, add)),
            Some(hand),
            n as f64,
        );
        report(
            "elementwise add, transposed",
            run(statement(&[1000, 1000], &[&[0, 1], &[1, 0]], &[0, 1], None, add)),
            Some(hand),
            n as f64,
        );
        report(
            "elementwise add, transposed 1024",
            run(statement(&[1024, 1024], &[&[0, 1], &[1, 0]], &[0, 1], None, add)),
            None,
            1024.0 * 1024.0,
        );
        let exp = |code: &mut ScalarCode, p: &[Slot]| code.unary(UnaryOp::Exp, p[0]).unwrap();
        report("elementwise exp, 1e6", run(statement(&[n], &[&[0]], &[0], None, exp)), None, n as f64);
    }
    let copy = |_: &mut ScalarCode, p: &[Slot]| p[0];
    if wanted("copy") {
        report("copy, transposed", run(statement(&[1000, 1000], &[&[1, 0]], &[0, 1], None, copy)), None, n as f64);
        report(
            "copy, transposed 1024",
            run(statement(&[1024, 1024], &[&[1, 0]], &[0, 1], None, copy)),
            None,
            1024.0 * 1024.0,
        );
    }
    if wanted("sum") {
        let a = data(&[n]);
        let Buffer::F64(a) = a.data() else { return };
        let hand = time(|| {
            let mut lanes = [0.0; 16];
            for chunk in black_box(a).chunks_exact(16) {
                lanes.iter_mut().zip(chunk).for_each(|(lane, x)| *lane += x);
            }
            black_box(lanes.iter().sum::<f64>());
        });
        let sum = Accum::sum(DType::F64);
        report("sum, 1e6", run(statement(&[n], &[&[0]], &[], Some(sum.clone()), copy)), Some(hand), n as f64);
        report(
            "sum of 1000x1000",
            run(statement(&[1000, 1000], &[&[0, 1]], &[], Some(sum.clone()), copy)),
            Some(hand),
            n as f64,
        );
        report(
            "sum of rows",
            run(statement(&[1000, 1000], &[&[0, 1]], &[0], Some(sum.clone()), copy)),
            Some(hand),
            n as f64,
        );
        report(
            "sum of columns",
            run(statement(&[1000, 1000], &[&[0, 1]], &[1], Some(sum.clone()), copy)),
            Some(hand),
            n as f64,
        );
        report(
            "sum of rows, 125000x8",
            run(statement(&[125_000, 8], &[&[0, 1]], &[0], Some(sum.clone()), copy)),
            Some(hand),
            n as f64,
        );
        report(
            "sum of columns, 125000x8",
            run(statement(&[125_000, 8], &[&[0, 1]], &[1], Some(sum.clone()), copy)),
            Some(hand),
            n as f64,
        );
        report(
            "max, 1e6",
            run(statement(&[n], &[&[0]], &[], Some(Accum::max(DType::F64)), copy)),
            Some(hand),
            n as f64,
        );
        report(
            "mean, 1e6 (sum)",
            run(statement(&[n], &[&[0]], &[], Some(Accum::mean(DType::F64)), copy)),
            Some(hand),
            n as f64,
        );
        report(
            "variance, 1e6 (sum)",
            run(statement(&[n], &[&[0]], &[], Some(Accum::variance(DType::F64, 0.0)), copy)),
            Some(hand),
            n as f64,
        );
        report(
            "variance of columns (sum)",
            run(statement(&[1000, 1000], &[&[0, 1]], &[1], Some(Accum::variance(DType::F64, 0.0)), copy)),
            Some(hand),
            n as f64,
        );
    }
    let product = |code: &mut ScalarCode, p: &[Slot]| code.binary(BinaryOp::Mul, p[0], p[1]).unwrap();
    if wanted("matrix") {
        let sum = Accum::sum(DType::F64);
        for m in [32u64, 128, 512, 1000] {
            let ours = run(statement(&[m, m, m], &[&[0, 2], &[2, 1]], &[0, 1], Some(sum.clone()), product));
            println!("matrix product {m:5}: {:8.2} GFLOP/s", 2.0 * (m * m * m) as f64 / ours);
        }
        let ours = run(statement(&[1000, 1000], &[&[0, 1], &[1]], &[0], Some(sum.clone()), product));
        report("matrix vector", ours, None, n as f64);
        let ours = run(statement(&[1000, 1000], &[&[1, 0], &[1]], &[0], Some(sum), product));
        report("matrix transposed vector", ours, None, n as f64);
        let plus = |code: &mut ScalarCode, p: &[Slot]| code.binary(BinaryOp::Add, p[0], p[1]).unwrap();
        let ours = run(statement(&[200, 200, 200], &[&[0, 2], &[2, 1]], &[0, 1], Some(Accum::min(DType::F64)), plus));
        report("matrix (min, +) product 200", ours, None, 8e6);
    }
    if wanted("random") {
        for (name, distribution) in [("uniform", RandomDistribution::Uniform), ("normal", RandomDistribution::Normal)] {
            let code = |code: &mut ScalarCode, _: &[Slot]| {
                let counter = code.param(0);
                code.push(ScalarOp::Random { distribution, seed: 5, counter }).unwrap()
            };
            report(&format!("random {name}, 1e6"), run(statement(&[n], &[], &[0], None, code)), None, n as f64);
        }
    }
    if wanted("blocks") {
        for n in [1u64 << 13, 1 << 17, 1 << 20, 1 << 22, 1 << 24] {
            let meter = Meter::new();
            let output = |meter| Block::for_output(DType::F64, BoxRegion::whole(&[n]), meter).unwrap();
            let zeros = time(|| drop(black_box(output(Some(&meter)))));
            report(&format!("blocks of {n} made and dropped"), zeros, None, n as f64);
            let add = |code: &mut ScalarCode, p: &[Slot]| code.binary(BinaryOp::Add, p[0], p[1]).unwrap();
            let kernel =
                CompiledKernel::compile(&Kernel::Statement(statement(&[n], &[&[0], &[0]], &[0], None, add))).unwrap();
            let a = Block::view_of(&data(&[n]), &BoxRegion::whole(&[n])).unwrap();
            let both = time(|| {
                let mut outputs = [output(Some(&meter))];
                kernel.run(0, true, &[Some(&a), Some(&a)], &mut outputs).unwrap();
                black_box(&outputs);
            });
            report(&format!("blocks of {n} made, added into"), both, None, n as f64);
            let fresh = time(|| {
                let mut outputs = [output(None)];
                kernel.run(0, true, &[Some(&a), Some(&a)], &mut outputs).unwrap();
                black_box(&outputs);
            });
            report(&format!("blocks of {n} fresh, added into"), fresh, None, n as f64);
        }
    }
    if wanted("overhead") {
        let add = |code: &mut ScalarCode, p: &[Slot]| code.binary(BinaryOp::Add, p[0], p[1]).unwrap();
        report("overhead, add of one element", run(statement(&[1], &[&[0], &[0]], &[0], None, add)), None, 1.0);
        report("overhead, add of 1x1", run(statement(&[1, 1], &[&[0, 1], &[0, 1]], &[0, 1], None, add)), None, 1.0);
        report(
            "overhead, sum of one element",
            run(statement(&[1], &[&[0]], &[], Some(Accum::sum(DType::F64)), copy)),
            None,
            1.0,
        );
        report(
            "overhead, product of 1x1",
            run(statement(&[1, 1, 1], &[&[0, 2], &[2, 1]], &[0, 1], Some(Accum::sum(DType::F64)), product)),
            None,
            1.0,
        );
        report(
            "overhead, block",
            time(|| drop(black_box(Block::for_output(DType::F64, BoxRegion::whole(&[1, 1]), None).unwrap()))),
            None,
            1.0,
        );
    }
}
