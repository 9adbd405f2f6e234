//! What is predicted to be taken is what is allocated: block functions keep to the scratch space that they declare, and whole runs to the peak that explain shows,
//! scratch space included. An allocator counts.
//!
//! The tests of this file run one after the other, since the allocator counts the whole process.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use peak_alloc::PeakAlloc;
use tilewright::{Array, DType, Inputs, Session, in_memory};
use tw_block::{Block, CompiledKernel};
use tw_ir::kernel::Kernel;
use tw_ir::workflow::BlockShape;
use tw_ir::{Buffer, Scalar};
use tw_lang::{NoFiles, parse_program};
use tw_test::generate::function_table;

#[global_allocator]
static HEAP: PeakAlloc = PeakAlloc;

static ALONE: Mutex<()> = Mutex::new(());

fn alone() -> MutexGuard<'static, ()> {
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The most bytes that the heap grew by while code ran.
fn allocated<R>(run: impl FnOnce() -> R) -> (u64, R) {
    HEAP.reset_peak_usage();
    let before = HEAP.current_usage();
    let result = run();
    (HEAP.peak_usage().saturating_sub(before) as u64, result)
}

/// What does not grow with blocks, and is not counted.
const OVERLOOKED: u64 = 192 << 10;

/// Numbers between 0 and 1; a diagonal that makes matrices regular and positive definite.
fn array(dtype: DType, shape: &[u64]) -> Array {
    let n: u64 = shape.iter().product();
    let columns = *shape.last().unwrap_or(&1);
    let rows = shape.len().checked_sub(2).map_or(1, |k| shape[k]);
    let mut data = Buffer::zeros(dtype, n as usize);
    for k in 0..n {
        let (i, j) = (k / columns % rows, k % columns);
        // Symmetric, and without an order.
        let value = ((i * j * 2_654_435_761 + (i + j) * 40_503) % 1009) as f64 / 1009.0;
        data.set(k as usize, Scalar::F64(value + if i == j { columns as f64 } else { 0.0 }).cast(dtype));
    }
    Array::new(shape.to_vec(), data).expect("as many elements as the shape has")
}

fn shape_of(array: &Array) -> BlockShape {
    BlockShape { dtype: array.dtype(), extents: array.shape().to_vec() }
}

/// Shapes of several blocks.
type Shapes = Vec<Vec<u64>>;

/// Functions with the shapes of operands and results.
fn calls(n: u64, tall: u64) -> Vec<(&'static str, Shapes, Shapes)> {
    let square = || vec![n, n];
    let mut calls = vec![
        ("linalg_lu", vec![square()], vec![square(), vec![n]]),
        ("linalg_cholesky", vec![square()], vec![square()]),
        ("linalg_inv", vec![square()], vec![square()]),
        ("linalg_slogdet", vec![square()], vec![vec![], vec![]]),
        ("linalg_solve", vec![square(), vec![n, 5]], vec![vec![n, 5]]),
        ("linalg_solve", vec![square(), square()], vec![square()]),
        ("linalg_product", vec![square(), square()], vec![square()]),
        ("linalg_svd_full", vec![square()], vec![square(), vec![n], square()]),
        ("linalg_eigh", vec![square()], vec![vec![n], square()]),
        ("linalg_eigvalsh", vec![square()], vec![vec![n]]),
    ];
    for name in [
        "linalg_solve_lower",
        "linalg_solve_unit_lower",
        "linalg_solve_upper",
        "linalg_solve_adjoint_lower_right",
        "linalg_solve_upper_right",
    ] {
        calls.push((name, vec![square(), square()], vec![square()]));
    }
    for (rows, columns) in [(n, n), (tall, n / 4), (n / 4, tall)] {
        let k = rows.min(columns);
        let a = || vec![rows, columns];
        calls.push(("linalg_qr", vec![a()], vec![vec![rows, k], vec![k, columns]]));
        calls.push(("linalg_r", vec![a()], vec![vec![k, columns]]));
        calls.push(("linalg_svd", vec![a()], vec![vec![rows, k], vec![k], vec![k, columns]]));
        calls.push(("linalg_svdvals", vec![a()], vec![vec![k]]));
        if rows >= columns {
            calls.push(("linalg_reflectors", vec![a()], vec![vec![rows, k], vec![k, k], vec![k, columns]]));
        }
    }
    calls
}

#[test]
fn matrix_functions_keep_to_the_scratch_space_that_they_declare() {
    let _alone = alone();
    let mut wrong = Vec::new();
    for (name, operands, results) in calls(200, 1500) {
        let function = tw_functions::library().get(name).unwrap();
        for dtype in [DType::F64, DType::F32, DType::C128] {
            let real = if dtype == DType::F32 { DType::F32 } else { DType::F64 };
            let operands: Vec<Array> = operands.iter().map(|shape| array(dtype, shape)).collect();
            let of_result = |k: usize| match (name, k) {
                ("linalg_lu", 1) => DType::I64,
                ("linalg_svd" | "linalg_svd_full", 1) | ("linalg_svdvals" | "linalg_eigvalsh" | "linalg_eigh", 0) => {
                    real
                }
                ("linalg_slogdet", 1) => real,
                _ => dtype,
            };
            let made = |(k, shape): (usize, &Vec<u64>)| Array::zeros(shape, of_result(k)).unwrap();
            let mut results: Vec<Array> = results.iter().enumerate().map(made).collect();
            let shapes: Vec<BlockShape> = operands.iter().map(shape_of).collect();
            let results_shapes: Vec<BlockShape> = results.iter().map(shape_of).collect();
            let declared = function.0.scratch_bytes(&shapes, &results_shapes);
            let block = |array: Array| Block::from_array(&vec![0; array.shape().len()], array, None).unwrap();
            let operands: Vec<Block> = operands.into_iter().map(block).collect();
            let operands: Vec<Option<&Block>> = operands.iter().map(Some).collect();
            let mut results: Vec<Block> = results.drain(..).map(block).collect();
            let measured: Vec<u64> = [tw_block::Provider::rust(), tw_block::Provider::chosen()]
                .iter()
                .map(|provider| {
                    let kernel = CompiledKernel::compile_for(&Kernel::Call(function.clone()), provider).unwrap();
                    // The first call makes what is made once.
                    kernel.run(0, true, &operands, &mut results).unwrap();
                    allocated(|| kernel.run(0, true, &operands, &mut results).unwrap()).0
                })
                .collect();
            let most = measured.iter().copied().max().unwrap_or(0);
            if most > declared + OVERLOOKED || declared > 3 * most + OVERLOOKED {
                wrong.push(format!("{name} {dtype} {:?}: {measured:?} of {declared}", shapes[0]));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn transforms_and_selections_keep_to_the_scratch_space_that_they_declare() {
    let _alone = alone();
    let mut wrong = Vec::new();
    for n in [1 << 15, 30_030, 32_749] {
        for (name, from, to, n_out) in [
            ("fft_forward_0", DType::C128, DType::C128, n),
            ("fft_inverse_0", DType::C64, DType::C64, n),
            ("fft_from_real_0", DType::F64, DType::C128, n / 2 + 1),
        ] {
            let function = tw_functions::library().get(name).unwrap();
            let operand = array(from, &[2, n]);
            let mut results = [Array::zeros(&[2, n_out], to).unwrap()];
            let declared = function.0.scratch_bytes(&[shape_of(&operand)], &[shape_of(&results[0])]);
            let (measured, _) = allocated(|| function.0.apply(&[operand.view()], &mut results).unwrap());
            if measured > declared + OVERLOOKED || declared > 3 * measured + OVERLOOKED {
                wrong.push(format!("{name} {n}: {measured} of {declared}"));
            }
        }
        let function = tw_functions::library().get("select_0").unwrap();
        let (x, ranks) = (array(DType::F32, &[2, n]), Array::zeros(&[2, 1], DType::I64).unwrap());
        let mut results = [array(DType::F32, &[2, 1])];
        let declared = function.0.scratch_bytes(&[shape_of(&x), shape_of(&ranks)], &[shape_of(&results[0])]);
        let (measured, _) = allocated(|| function.0.apply(&[x.view(), ranks.view()], &mut results).unwrap());
        if measured > declared + OVERLOOKED || declared > 3 * measured + OVERLOOKED {
            wrong.push(format!("select_0 {n}: {measured} of {declared}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Programs whose tasks take scratch space, over inputs in memory.
const PROGRAMS: &[&str] = &[
    "input x: f64[300_000]\ny = sort(x)\noutput y",
    "input x: f64[300_000]\ny = argsort(x)\noutput y",
    "input x: f64[500, 500]\ny = sort(x, axis=0)\noutput y",
    "input x: f32[500, 500]\ny = cumsum(x, axis=0)\noutput y",
    "input x: i8[500, 500]\ny = x @ x\noutput y",
    "input x: f64[500, 500]\ny = x @ x\noutput y",
    "input x: f64[500, 500]\ny[i, j] = sum[k]((x[i, k] - x[k, j]) ** 2)\noutput y",
    "input x: f64[500, 500]\ny = sum((x - x.T) ** 2)\noutput y",
    "input x: f64[2000, 100]\nq, r = linalg.qr(x)\noutput q\noutput r",
    "input x: f64[400, 400]\ny = linalg.inv(x)\noutput y",
    "input x: f64[500, 500]\ny = x[x > 0.5]\noutput y",
    "input x: f64[500, 500]\ny = exp(x) + x.T\noutput y",
];

#[test]
fn runs_keep_to_the_peak_that_is_predicted() {
    let _alone = alone();
    let mut wrong = Vec::new();
    for text in PROGRAMS {
        for tile in [30_000, 100_000] {
            let program = parse_program(text, &BTreeMap::new(), &NoFiles, &function_table());
            let program = program.unwrap_or_else(|errors| panic!("{text}: {errors:?}")).program;
            let inputs: Inputs = program
                .inputs()
                .into_iter()
                .map(|(name, ty)| {
                    let data = array(ty.dtype, &ty.known_shape().unwrap());
                    (name.to_string(), in_memory(Arc::new(data)))
                })
                .collect();
            let session = || Session::builder().serial().tile(tile).build();
            let summary = session().explain_bound(&program, &inputs).unwrap().summary();
            if summary.has_later || summary.selects_all {
                continue;
            }
            // The second run finds its plan.
            let session = session();
            session.run_with_report(&program, &inputs).unwrap();
            session.release_memory();
            let (measured, (_, totals)) = allocated(|| session.run_with_report(&program, &inputs).unwrap());
            let predicted = summary.peak_bytes;
            if measured > predicted + 2 * OVERLOOKED || totals.peak_bytes != predicted || 10 * measured < 6 * predicted
            {
                wrong.push(format!(
                    "{text:?} tile {tile}: {measured} allocated, {} counted, {predicted} predicted",
                    totals.peak_bytes
                ));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
