//! Random statement kernels against a slow reference.
#![allow(clippy::unwrap_used)]

use std::sync::Arc;

use tw_block::{Block, CompiledKernel};
use tw_ir::kernel::{Kernel, KernelRead, StatementKernel};
use tw_ir::{
    Accum, Array, Axis, BinaryOp, Blame, BoxRegion, DType, Edge, Grid, Idx, RandomDistribution, Scalar, ScalarCode,
    ScalarOp, Slot, UnaryOp, Var,
};

mod support;
use support::{Dice, assert_agree, output, part, points, resolve, run_statement};

const EDGES: [Edge; 4] = [Edge::Error, Edge::Fill, Edge::Clamp, Edge::Wrap];

fn random_idx(dice: &mut Dice, n_vars: usize, depth: usize) -> Idx {
    let var = |dice: &mut Dice| match n_vars {
        0 => Idx::constant(dice.number(0, 3)),
        n => Idx::var(Var(dice.below(n) as u32)),
    };
    match dice.below(if depth == 0 { 6 } else { 9 }) {
        0 => Idx::constant(dice.number(0, 4)),
        1..=3 => var(dice),
        4 => var(dice).plus_constant(dice.number(-2, 3)),
        5 => var(dice).times(dice.number(-2, 4)).plus(&var(dice)).plus_constant(dice.number(-1, 4)),
        6 => random_idx(dice, n_vars, depth - 1).div(dice.number(1, 5)),
        7 => random_idx(dice, n_vars, depth - 1).modulo(dice.number(1, 6)),
        _ => random_idx(dice, n_vars, depth - 1).plus(&random_idx(dice, n_vars, depth - 1)),
    }
}

/// Adds random operations; `odd` allows those that are not exact on small integers.
fn random_code(dice: &mut Dice, code: &mut ScalarCode, odd: bool) {
    for k in 0..code.params().len() as u32 {
        code.param(k);
    }
    for dtype in DType::PHYSICAL {
        let value = dice.scalar(dtype, odd);
        code.constant(value);
    }
    for _ in 0..dice.below(10) {
        let slot = |dice: &mut Dice, code: &ScalarCode| Slot(dice.below(code.ops().len()) as u32);
        let (a, b, c) = (slot(dice, code), slot(dice, code), slot(dice, code));
        let op = match dice.below(8) {
            0 if odd => ScalarOp::Unary(dice.pick(UnaryOp::ALL), a),
            0 => ScalarOp::Unary(dice.pick(&[UnaryOp::Neg, UnaryOp::Abs, UnaryOp::Sign, UnaryOp::Floor]), a),
            1 => ScalarOp::Select(c, a, b),
            2 => ScalarOp::Cast(dice.pick(&DType::PHYSICAL), a),
            3 if odd => {
                let distribution = dice.pick(&[
                    RandomDistribution::Uniform,
                    RandomDistribution::Normal,
                    RandomDistribution::Integer { low: -3, high: 9 },
                ]);
                ScalarOp::Random { distribution, seed: 7, counter: a }
            }
            _ if odd => ScalarOp::Binary(dice.pick(BinaryOp::ALL), a, b),
            _ => ScalarOp::Binary(
                dice.pick(&[BinaryOp::Add, BinaryOp::Sub, BinaryOp::Min, BinaryOp::Max, BinaryOp::Lt, BinaryOp::Eq]),
                a,
                b,
            ),
        };
        // Most random operations have the wrong types; those are left out.
        let _ = code.push(op);
    }
}

fn slot_of_type(dice: &mut Dice, code: &ScalarCode, dtype: DType) -> Slot {
    let slots: Vec<Slot> = (0..code.ops().len() as u32).map(Slot).filter(|&slot| code.dtype(slot) == dtype).collect();
    dice.pick(&slots)
}

fn random_accum(dice: &mut Dice) -> Accum {
    let any = dice.pick(&DType::PHYSICAL);
    let having = |op: BinaryOp| -> Vec<DType> {
        DType::PHYSICAL.into_iter().filter(|dtype| op.result(*dtype).is_some()).collect()
    };
    let (summed, ordered) = (dice.pick(&having(BinaryOp::Add)), dice.pick(&having(BinaryOp::Lt)));
    let float = dice.pick(&[DType::F32, DType::F64]);
    match dice.below(9) {
        0 | 1 => Accum::sum(summed),
        2 => Accum::min(ordered),
        3 => Accum::max(ordered),
        4 => dice.pick(&[Accum::any(), Accum::all()]),
        5 => Accum::argmax(ordered),
        6 => Accum::mean(float),
        7 => Accum::variance(float, 1.0),
        _ => Accum::several(&[Accum::last(any, any.one()), Accum::sum(float), Accum::argmin(float)]).unwrap(),
    }
}

struct Case {
    kernel: StatementKernel,
    exact: bool,
}

fn random_case(dice: &mut Dice) -> Case {
    let n_vars = dice.below(4);
    let long = dice.below(8);
    let vars: Grid = (0..n_vars)
        .map(|k| {
            let extent = match k == long {
                true => dice.number(300, 800),
                false => dice.number(1, if long < n_vars { 3 } else { 6 }),
            } as u64;
            Axis::uniform(extent, dice.number(1, extent as i64 + 1) as u64)
        })
        .collect();
    let accum = dice.one_in(2).then(|| random_accum(dice));
    let odd = accum.is_none();
    let reads: Vec<KernelRead> = (0..dice.below(4))
        .map(|_| {
            let dtype = dice.pick(&DType::PHYSICAL);
            let rank = dice.below(4);
            KernelRead {
                dtype,
                shape: (0..rank).map(|_| dice.number(1, 9) as u64 * if dice.one_in(8) { 200 } else { 1 }).collect(),
                idx: (0..rank).map(|_| random_idx(dice, n_vars, 2)).collect(),
                edge: dice.pick(&EDGES[..]),
                fill: dice.scalar(dtype, odd),
            }
        })
        .collect();
    let params = reads.iter().map(|read| read.dtype).chain(std::iter::repeat_n(DType::I64, n_vars)).collect();
    let mut code = ScalarCode::new(params);
    random_code(dice, &mut code, odd);
    let has_guard = dice.one_in(3);
    let mut results = Vec::new();
    if has_guard {
        results.push(slot_of_type(dice, &code, DType::Bool));
    }
    match &accum {
        Some(accum) => {
            for &dtype in accum.lift.params() {
                results.push(slot_of_type(dice, &code, dtype));
            }
        }
        None => {
            for _ in 0..1 + dice.below(2) {
                results.push(Slot(dice.below(code.ops().len()) as u32));
            }
        }
    }
    code.set_results(results);
    let out_fill: Vec<Scalar> = match accum {
        Some(_) => Vec::new(),
        None => code.result_types()[has_guard as usize..].iter().map(|&dtype| dice.scalar(dtype, true)).collect(),
    };
    let (out_idx, out_shape) = match &accum {
        None => injective_output(dice, &vars),
        Some(_) => {
            let rank = dice.below(3);
            let shape = (0..rank).map(|_| dice.number(1, 12) as u64 * if dice.one_in(4) { 100 } else { 1 }).collect();
            ((0..rank).map(|_| random_idx(dice, n_vars, 1)).collect(), shape)
        }
    };
    let out_edge = match accum {
        None => dice.pick(&[Edge::Error, Edge::Fill]),
        Some(_) => dice.pick(&EDGES[..]),
    };
    let exact = accum.as_ref().is_none_or(|accum| accum.as_simple().is_some());
    Case {
        kernel: StatementKernel { vars, reads, code, has_guard, accum, out_idx, out_edge, out_shape, out_fill },
        exact,
    }
}

/// Every variable once, in some order, perhaps shifted, reversed or spread out; and perhaps a constant axis.
fn injective_output(dice: &mut Dice, vars: &[Axis]) -> (Vec<Idx>, Vec<u64>) {
    let mut open: Vec<usize> = (0..vars.len()).collect();
    let (mut idx, mut shape) = (Vec::new(), Vec::new());
    while !open.is_empty() {
        let var = open.remove(dice.below(open.len()));
        let n = vars[var].extent();
        let (step, shift) = (dice.pick(&[1, 1, 1, -1, 2]), dice.pick(&[0, 0, 1, -1]));
        let reach = if step == -1 { n as i64 - 1 } else { 0 };
        idx.push(Idx::var(Var(var as u32)).times(step).plus_constant(reach + shift));
        shape.push(n * step.unsigned_abs() + dice.below(2) as u64);
    }
    if dice.one_in(4) {
        idx.push(Idx::constant(1));
        shape.push(3);
    }
    (idx, shape)
}

/// The box of what a task reads of one operand.
fn touched(kernel: &StatementKernel, read: &KernelRead, tasks: &[u32]) -> Option<BoxRegion> {
    let mut bbox: Option<BoxRegion> = None;
    for &task in tasks {
        for at in points(&kernel.var_box(task as u64)) {
            let at: Vec<i64> = at.iter().map(|&c| c as i64).collect();
            if let Ok(coords) = resolve(&read.idx, &read.shape, read.edge, &at) {
                let bbox = bbox.get_or_insert_with(|| BoxRegion { lo: coords.clone(), hi: coords.clone() });
                for (axis, &c) in coords.iter().enumerate() {
                    bbox.lo[axis] = bbox.lo[axis].min(c);
                    bbox.hi[axis] = bbox.hi[axis].max(c + 1);
                }
            }
        }
    }
    bbox
}

fn run_case(seed: u64) -> bool {
    let mut dice = Dice::new(seed);
    let Case { kernel, exact } = random_case(&mut dice);
    let n_tasks: u64 = kernel.vars.n_blocks();
    let tasks = [dice.below(n_tasks as usize) as u32, dice.below(n_tasks as usize) as u32];
    // Without an accumulator two tasks must not write the same element differently; the same task twice is fine.
    let odd = kernel.accum.is_none();
    let mut arrays: Vec<Option<Arc<Array>>> = Vec::new();
    let mut blocks: Vec<Option<Block>> = Vec::new();
    for read in &kernel.reads {
        let array = Arc::new(dice.array(&read.shape, read.dtype, odd));
        match touched(&kernel, read, &tasks) {
            Some(inner) => {
                let bbox = dice.box_around(&inner, &read.shape);
                blocks.push(Some(dice.block_of(&array, &bbox)));
                arrays.push(Some(array));
            }
            None => {
                blocks.push(None);
                arrays.push(None);
            }
        }
    }
    let start = kernel.accum.as_ref().map_or(&kernel.out_fill, |accum| &accum.identity);
    let mut state: Vec<Array> = start.iter().map(|&v| Array::full(&kernel.out_shape, v).unwrap()).collect();
    let out_box = dice.box_inside(&kernel.out_shape);
    let mut outputs: Vec<Block> = start.iter().map(|v| output(v.dtype(), &out_box).unwrap()).collect();
    let operands: Vec<Option<&Block>> = blocks.iter().map(Option::as_ref).collect();
    let compiled = CompiledKernel::compile(&Kernel::Statement(kernel.clone())).unwrap();
    for (k, &task) in tasks.iter().enumerate() {
        let expected = run_statement(&kernel, task, &arrays, &mut state);
        match compiled.run(task, k == 0, &operands, &mut outputs) {
            Ok(()) => assert!(expected, "seed {seed}: an error is missing: {kernel:#?}"),
            Err(error) => {
                assert_eq!(error.blame(), Blame::Data, "seed {seed}: {error}: {kernel:#?}");
                assert!(!expected, "seed {seed}: {error}: {kernel:#?}");
                return false;
            }
        }
    }
    for (found, state) in outputs.iter().zip(&state) {
        assert_agree(&found.to_array().unwrap(), &part(state, &out_box), exact, &(seed, &kernel));
    }
    true
}

#[test]
fn random_statements_agree_with_the_reference() {
    let n = 400;
    let succeeded = (0..n).filter(|&seed| run_case(seed)).count();
    // The test means little if nearly all cases end in an error.
    assert!(succeeded > n as usize / 3, "only {succeeded} of {n} cases ran to the end");
}
