//! How fast data moves: copies beside `memcpy`, gathers, sorts, scans. `cargo run --release -p tw-block --example movement_speed`
//!
//! Everything runs on one thread into memory that was used before. What counts is the best of several interleaved rounds, in time that the thread
//! really ran, so that a busy machine shows as little as possible.
#![allow(clippy::unwrap_used)]

use std::hint::black_box;
use std::sync::Arc;

use tw_block::{Block, CompiledKernel};
use tw_ir::kernel::{Kernel, KernelRead, SortResults, Sorting, StatementKernel};
use tw_ir::spec::{GatherSpec, ScanSpec, SortSpec};
use tw_ir::{Accum, Array, BinaryOp, BoxRegion, DType, Edge, Grid, Idx, OnEmpty, Scalar, ScalarCode, Var};

/// Rounds of every comparison.
const ROUNDS: usize = 15;

/// Nanoseconds that this thread ran.
#[cfg(target_os = "linux")]
fn now() -> f64 {
    use std::ffi::{c_int, c_long};
    #[repr(C)]
    struct Time {
        seconds: c_long,
        nanoseconds: c_long,
    }
    unsafe extern "C" {
        fn clock_gettime(clock: c_int, time: *mut Time) -> c_int;
    }
    const THREAD_TIME: c_int = 3;
    let mut time = Time { seconds: 0, nanoseconds: 0 };
    // SAFETY: the call writes one time, which has the layout that Linux gives it on 64-bit machines.
    unsafe { clock_gettime(THREAD_TIME, &mut time) };
    time.seconds as f64 * 1e9 + time.nanoseconds as f64
}

/// Nanoseconds that passed.
#[cfg(not(target_os = "linux"))]
fn now() -> f64 {
    static BEGIN: std::sync::OnceLock<std::time::Instant> = std::sync::OnceLock::new();
    BEGIN.get_or_init(std::time::Instant::now).elapsed().as_nanos() as f64
}

/// Nanoseconds of each of several pieces of work, the best of interleaved rounds.
fn times<const N: usize>(mut work: [&mut dyn FnMut(); N]) -> [f64; N] {
    let mut best = [f64::INFINITY; N];
    for _ in 0..ROUNDS {
        for (best, work) in best.iter_mut().zip(&mut work) {
            let start = now();
            work();
            *best = best.min(now() - start);
        }
    }
    best
}

/// Random numbers of a type.
fn data(shape: &[u64], dtype: DType) -> Arc<Array> {
    let mut array = Array::zeros(shape, dtype).unwrap();
    for k in 0..array.data().len() {
        let value = Scalar::F64((tw_ir::random::uniform(3, k as i64) - 0.5) * 200.0);
        array.data_mut().set(k, value.cast(dtype));
    }
    Arc::new(array)
}

fn whole(array: &Arc<Array>) -> Block {
    Block::view_of(array, &BoxRegion::whole(array.shape())).unwrap()
}

fn output(dtype: DType, shape: &[u64]) -> Block {
    let mut block = Block::for_output(dtype, BoxRegion::whole(shape), None).unwrap();
    // Touched once, so that no page is fresh.
    let fill = CompiledKernel::compile(&Kernel::Fill(vec![dtype.one()])).unwrap();
    fill.run(0, true, &[], std::slice::from_mut(&mut block)).unwrap();
    block
}

fn run(kernel: &CompiledKernel, operands: &[&Block], outputs: &mut [Block]) {
    let operands: Vec<Option<&Block>> = operands.iter().copied().map(Some).collect();
    kernel.run(0, true, black_box(&operands), black_box(outputs)).unwrap();
}

/// A statement that copies with axes swapped.
fn transposing(rows: u64, columns: u64, dtype: DType) -> CompiledKernel {
    let vars = [columns, rows];
    let mut code = ScalarCode::new(vec![dtype, DType::I64, DType::I64]);
    let element = code.param(0);
    code.set_results(vec![element]);
    let var = |k: u32| Idx::var(Var(k));
    let read = KernelRead {
        dtype,
        shape: vec![rows, columns],
        idx: vec![var(1), var(0)],
        edge: Edge::Error,
        fill: dtype.zero(),
    };
    let statement = StatementKernel {
        vars: Grid::whole(&vars),
        reads: vec![read],
        code,
        has_guard: false,
        out_fill: vec![dtype.zero()],
        accum: None,
        out_idx: vec![var(0), var(1)],
        out_edge: Edge::Error,
        out_shape: vars.to_vec(),
    };
    CompiledKernel::compile(&Kernel::Statement(statement)).unwrap()
}

fn copies() {
    for (rows, columns, around) in [
        (2000, 2000, 8000),
        (2048, 2048, 2048),
        (512, 512, 8192),
        (32, 8000, 8000),
        (1_000_000, 3, 3),
        (3, 1_000_000, 1_000_000),
    ] {
        for dtype in [DType::F64, DType::F32, DType::I16, DType::Bool, DType::C128] {
            let array = data(&[rows, around], dtype);
            let block = Block::view_of(&array, &BoxRegion::from_ranges([0..rows, 0..columns])).unwrap();
            let mut outputs = [output(dtype, &[columns, rows])];
            let kernel = transposing(rows, columns, dtype);
            let bytes = (rows * columns * dtype.size()) as usize;
            let (from, mut to) = (vec![1u8; bytes], vec![2u8; bytes]);
            let [ours, copy] = times([&mut || run(&kernel, &[&block], &mut outputs), &mut || {
                black_box(&mut to).copy_from_slice(black_box(&from));
            }]);
            let speed = 2.0 * bytes as f64 / ours;
            println!("transpose {rows}x{columns} of {around} {dtype}: {speed:.1} GB/s, {:.2} of memcpy", copy / ours);
        }
    }
    let parts: Vec<Block> = (0..4u64)
        .map(|k| Block::from_array(&[0, k * 500], Array::zeros(&[2000, 500], DType::F64).unwrap(), None).unwrap())
        .collect();
    let mut outputs = [output(DType::F64, &[2000, 2000])];
    let place = CompiledKernel::compile(&Kernel::Place { axis: 1, shift: 0 }).unwrap();
    let operands: Vec<&Block> = parts.iter().collect();
    let (from, mut to) = (vec![1u64; 4_000_000], vec![2u64; 4_000_000]);
    let [ours, copy] = times([&mut || run(&place, &operands, &mut outputs), &mut || {
        black_box(&mut to).copy_from_slice(black_box(&from));
    }]);
    println!("four columns of blocks put together: {:.1} GB/s, {:.2} of memcpy", 64e6 / ours, copy / ours);
}

fn gathers() {
    let n = 1 << 20;
    for (rows, width) in [(1 << 20, 1), (1 << 14, 1), (1 << 20, 8), (1 << 14, 100)] {
        let table = data(&[rows, width], DType::F64);
        let mut index = Array::zeros(&[n], DType::I64).unwrap();
        for k in 0..n {
            index.set(&[k], Scalar::I64(tw_ir::random::integer(5, k as i64, 0, rows as i64)));
        }
        let index = Block::from_array(&[0], index, None).unwrap();
        let mut outputs = [output(DType::F64, &[n, width])];
        let mut others = [output(DType::F64, &[n, width])];
        let kernel = Kernel::Gather {
            spec: GatherSpec { axes: vec![0], edge: Edge::Error },
            shape: vec![rows, width],
            fill: DType::F64.zero(),
        };
        let kernel = CompiledKernel::compile(&kernel).unwrap();
        let block = whole(&table);
        let halves: Vec<Block> = [0..rows / 2, rows / 2..rows]
            .map(|r| Block::view_of(&table, &BoxRegion::from_ranges([r, 0..width])).unwrap())
            .into();
        let [one, two] = times([&mut || run(&kernel, &[&block, &index], &mut outputs), &mut || {
            run(&kernel, &[&halves[0], &halves[1], &index], &mut others)
        }]);
        let elements = (n * width) as f64;
        println!(
            "take rows of {rows}x{width}: {:.2} ns/element, {:.2} from two blocks",
            one / elements,
            two / elements
        );
    }
}

fn sorts() {
    for n in [100u64, 10_000, 1 << 18, 3_125_000] {
        for dtype in [DType::F64, DType::F32, DType::I64, DType::I16] {
            let array = data(&[n], dtype);
            let block = whole(&array);
            let sorting = |results| Kernel::SortRun(Sorting { spec: SortSpec { axis: 0, descending: false }, results });
            let values = CompiledKernel::compile(&sorting(SortResults::Values)).unwrap();
            let both = CompiledKernel::compile(&sorting(SortResults::Both)).unwrap();
            let mut sorted = [output(dtype, &[n])];
            let mut first = [output(dtype, &[10])];
            let mut with_positions = [output(dtype, &[n]), output(DType::I64, &[n])];
            let calls = (1 << 18) / n + 1;
            let [alone, pairs, ten] = times([
                &mut || (0..calls).for_each(|_| run(&values, &[&block], &mut sorted)),
                &mut || (0..calls).for_each(|_| run(&both, &[&block], &mut with_positions)),
                &mut || (0..calls).for_each(|_| run(&values, &[&block], &mut first)),
            ])
            .map(|time| time / (calls * n) as f64);
            println!("sort {n} {dtype}: {alone:.2} ns/element, {pairs:.2} with positions, the first ten {ten:.2}");
        }
    }
    let (runs, length) = (190u64, 1 << 18);
    let sorting = Sorting { spec: SortSpec { axis: 0, descending: false }, results: SortResults::Values };
    let sort = CompiledKernel::compile(&Kernel::SortRun(sorting)).unwrap();
    let merge = CompiledKernel::compile(&Kernel::SortMerge(sorting)).unwrap();
    let array = data(&[runs * length], DType::F64);
    let sorted: Vec<Block> = (0..runs)
        .map(|k| {
            let bbox = BoxRegion { lo: vec![k * length], hi: vec![(k + 1) * length] };
            let mut outputs = [Block::for_output(DType::F64, bbox.clone(), None).unwrap()];
            run(&sort, &[&Block::view_of(&array, &bbox).unwrap()], &mut outputs);
            let [output] = outputs;
            output
        })
        .collect();
    let operands: Vec<&Block> = sorted.iter().collect();
    let middle = BoxRegion { lo: vec![70 * length], hi: vec![71 * length] };
    let mut outputs = [Block::for_output(DType::F64, middle, None).unwrap()];
    let [time] = times([&mut || run(&merge, &operands, &mut outputs)]);
    println!("one of {runs} blocks merged out of {runs} runs: {:.2} ns/element", time / length as f64);
    for (axis, shape) in [(1u32, [20_000, 50]), (0, [50, 20_000]), (0, [2000, 2000])] {
        let array = data(&shape, DType::F64);
        let kernel =
            Kernel::SortRun(Sorting { spec: SortSpec { axis, descending: false }, results: SortResults::Values });
        let kernel = CompiledKernel::compile(&kernel).unwrap();
        let mut outputs = [output(DType::F64, &shape)];
        let [time] = times([&mut || run(&kernel, &[&whole(&array)], &mut outputs)]);
        println!("sort {shape:?} along axis {axis}: {:.2} ns/element", time / (shape[0] * shape[1]) as f64);
    }
}

fn scans() {
    for (name, op, identity) in [
        ("cumsum", BinaryOp::Add, DType::F64.zero()),
        ("cumprod", BinaryOp::Mul, DType::F64.one()),
        ("cummax", BinaryOp::Max, DType::F64.lowest()),
    ] {
        for axis in [0u32, 1] {
            let array = data(&[1000, 1000], DType::F64);
            let accum = Accum::simple(op, DType::F64, identity, OnEmpty::Identity);
            let kernel = Kernel::ScanBlock(ScanSpec { accum, axis, exclusive: false, reverse: false });
            let kernel = CompiledKernel::compile(&kernel).unwrap();
            let mut outputs = [output(DType::F64, &[1000, 1000])];
            let [time] = times([&mut || run(&kernel, &[&whole(&array)], &mut outputs)]);
            println!("{name} of 1000x1000 along axis {axis}: {:.2} ns/element", time / 1e6);
        }
    }
}

fn main() {
    let only: Option<String> = std::env::args().nth(1);
    for (name, measure) in [("copy", copies as fn()), ("gather", gathers), ("sort", sorts), ("scan", scans)] {
        if only.as_ref().is_none_or(|only| only == name) {
            measure();
        }
    }
}
