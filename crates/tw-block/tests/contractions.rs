//! Contractions of every kind against a slow reference.
#![allow(clippy::unwrap_used)]

use std::sync::Arc;

use tw_block::{Block, CompiledKernel};
use tw_ir::kernel::{Kernel, KernelRead, StatementKernel};
use tw_ir::{Accum, Array, Axis, BinaryOp, BoxRegion, DType, Edge, Idx, Scalar, ScalarCode, Var};

mod support;
use support::{Dice, assert_agree, output, part, run_statement};

/// `out[..] = sum(left[..] * right[..])`, with one letter per variable, as in `ik,kj->ij`.
fn einsum(spec: &str, extents: &[(char, u64, u64)], dtype: DType) -> StatementKernel {
    let (inputs, out) = spec.split_once("->").unwrap();
    let (left, right) = inputs.split_once(',').unwrap();
    let var = |c: char| extents.iter().position(|(name, ..)| *name == c).unwrap();
    let access = |letters: &str| -> (Vec<Idx>, Vec<u64>) {
        letters.chars().map(|c| (Idx::var(Var(var(c) as u32)), extents[var(c)].1)).unzip()
    };
    let read = |letters: &str| {
        let (idx, shape) = access(letters);
        KernelRead { dtype, shape, idx, edge: Edge::Error, fill: dtype.zero() }
    };
    let mut params = vec![dtype; 2];
    params.extend(vec![DType::I64; extents.len()]);
    let mut code = ScalarCode::new(params);
    let (a, b) = (code.param(0), code.param(1));
    let product = code.binary(BinaryOp::Mul, a, b).unwrap();
    code.set_results(vec![product]);
    let (out_idx, out_shape) = access(out);
    StatementKernel {
        vars: extents.iter().map(|&(_, extent, tile)| Axis::uniform(extent, tile)).collect(),
        reads: vec![read(left), read(right)],
        code,
        has_guard: false,
        accum: Some(Accum::sum(dtype)),
        out_idx,
        out_edge: Edge::Error,
        out_shape,
        out_fill: Vec::new(),
    }
}

const SPECS: [&str; 12] = [
    "ik,kj->ij",
    "ki,kj->ij",
    "ki,jk->ji",
    "bik,bkj->bij",
    "ibk,kjb->ijb",
    "ikl,klj->ij",
    "kil,lkj->ij",
    "iakl,kljb->iajb",
    "iak,kjb->ijab",
    "ik,k->i",
    "k,k->",
    "ik,jl->ij",
];

fn check(spec: &str, seed: u64) {
    let mut dice = Dice::new(seed);
    let dtype = dice.pick(&[DType::F32, DType::F64]);
    let extents: Vec<(char, u64, u64)> = "abijkl"
        .chars()
        .filter(|c| spec.contains(*c))
        .map(|c| {
            let extent = dice.number(1, 9) as u64;
            (c, extent, dice.number(1, extent as i64 + 1) as u64)
        })
        .collect();
    let kernel = einsum(spec, &extents, dtype);
    let n_tasks: u64 = kernel.vars.iter().map(Axis::n_tiles).product();
    let whole: Vec<Arc<Array>> =
        kernel.reads.iter().map(|read| Arc::new(dice.array(&read.shape, dtype, false))).collect();
    let blocks: Vec<Block> = whole.iter().map(|w| dice.block_of(w, &BoxRegion::whole(w.shape()))).collect();
    let operands: Vec<Option<&Block>> = blocks.iter().map(Some).collect();
    let arrays: Vec<Option<Arc<Array>>> = whole.iter().cloned().map(Some).collect();
    let out_box = dice.box_inside(&kernel.out_shape);
    let mut state = [Array::zeros(&kernel.out_shape, dtype).unwrap()];
    let mut outputs = [output(dtype, &out_box).unwrap()];
    let compiled = CompiledKernel::compile(&Kernel::Statement(kernel.clone())).unwrap();
    for k in 0..2 {
        let task = dice.below(n_tasks as usize) as u32;
        assert!(run_statement(&kernel, task, &arrays, &mut state));
        compiled.run(task, k == 0, &operands, &mut outputs).unwrap();
    }
    assert_agree(&outputs[0].to_array().unwrap(), &part(&state[0], &out_box), true, &(spec, seed, &kernel));
}

#[test]
fn contractions_agree_with_the_reference() {
    for spec in SPECS {
        for seed in 0..30 {
            check(spec, seed);
        }
    }
}

/// Sums of many rounded products come out the same from a block of its own and from a view of a larger array.
#[test]
fn storage_does_not_show_in_the_bits() {
    for spec in SPECS {
        let extents: Vec<(char, u64, u64)> =
            "abijkl".chars().filter(|c| spec.contains(*c)).map(|c| (c, 13, 12)).collect();
        let kernel = einsum(spec, &extents, DType::F64);
        let random = |shape: &[u64], seed: u64| {
            let mut array = Array::zeros(shape, DType::F64).unwrap();
            for k in 0..array.data().len() {
                array.data_mut().set(k, Scalar::F64(tw_ir::random::normal(seed, k as i64)));
            }
            Arc::new(array)
        };
        let task_box = |letters: &Vec<u64>| BoxRegion { lo: vec![0; letters.len()], hi: vec![12; letters.len()] };
        let views: Vec<Block> = kernel
            .reads
            .iter()
            .enumerate()
            .map(|(k, read)| Block::view_of(&random(&read.shape, k as u64), &task_box(&read.shape)).unwrap())
            .collect();
        let owned: Vec<Block> =
            views.iter().map(|v| Block::from_array(&v.bbox().lo, v.to_array().unwrap(), None).unwrap()).collect();
        let compiled = CompiledKernel::compile(&Kernel::Statement(kernel.clone())).unwrap();
        let run = |blocks: &[Block]| {
            let operands: Vec<Option<&Block>> = blocks.iter().map(Some).collect();
            let mut outputs = [output(DType::F64, &task_box(&kernel.out_shape)).unwrap()];
            compiled.run(0, true, &operands, &mut outputs).unwrap();
            outputs[0].to_array().unwrap()
        };
        assert!(run(&views).same_bits(&run(&owned)), "{spec}");
    }
}
