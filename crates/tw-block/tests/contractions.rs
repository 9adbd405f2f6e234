//! Contractions of every kind against a slow reference.
#![allow(clippy::unwrap_used)]

use std::sync::Arc;

use tw_block::{Block, CompiledKernel};
use tw_ir::kernel::{Kernel, KernelRead, StatementKernel};
use tw_ir::{Accum, Array, Axis, BinaryOp, BoxRegion, DType, Edge, Idx, Scalar, ScalarCode, UnaryOp, Var};

mod support;
use support::{Dice, assert_agree, output, part, run_statement};

/// How terms are made.
#[derive(Clone, Copy, Debug)]
enum Term {
    By(BinaryOp),
    /// The absolute difference: something that no kernel has been made for.
    Distance,
    /// The product of operands of this type, converted first.
    Converted(DType),
}

impl Term {
    /// The type of the operands of terms of a type.
    fn operand_type(self, dtype: DType) -> DType {
        match self {
            Term::Converted(operands) => operands,
            _ => dtype,
        }
    }
}

/// `out[..] = sum(left[..] * right[..])`, with one letter per variable, as in `ik,kj->ij`.
fn einsum(spec: &str, extents: &[(char, u64, u64)], dtype: DType) -> StatementKernel {
    contraction(spec, extents, dtype, Term::By(BinaryOp::Mul), Accum::sum(dtype))
}

/// `out[..] = accum(term(left[..], right[..]))`.
fn contraction(spec: &str, extents: &[(char, u64, u64)], dtype: DType, term: Term, accum: Accum) -> StatementKernel {
    let (inputs, out) = spec.split_once("->").unwrap();
    let (left, right) = inputs.split_once(',').unwrap();
    let var = |c: char| extents.iter().position(|(name, ..)| *name == c).unwrap();
    let access = |letters: &str| -> (Vec<Idx>, Vec<u64>) {
        letters.chars().map(|c| (Idx::var(Var(var(c) as u32)), extents[var(c)].1)).unzip()
    };
    let operands = term.operand_type(dtype);
    let read = |letters: &str| {
        let (idx, shape) = access(letters);
        KernelRead { dtype: operands, shape, idx, edge: Edge::Error, fill: operands.zero() }
    };
    let mut params = vec![operands; 2];
    params.extend(vec![DType::I64; extents.len()]);
    let mut code = ScalarCode::new(params);
    let (a, b) = (code.param(0), code.param(1));
    let result = match term {
        Term::By(op) => code.binary(op, a, b).unwrap(),
        Term::Distance => {
            let difference = code.binary(BinaryOp::Sub, a, b).unwrap();
            code.unary(UnaryOp::Abs, difference).unwrap()
        }
        Term::Converted(_) => {
            let (a, b) = (code.cast(dtype, a), code.cast(dtype, b));
            code.binary(BinaryOp::Mul, a, b).unwrap()
        }
    };
    code.set_results(vec![result]);
    let (out_idx, out_shape) = access(out);
    StatementKernel {
        vars: extents.iter().map(|&(_, extent, tile)| Axis::uniform(extent, tile)).collect(),
        reads: vec![read(left), read(right)],
        code,
        has_guard: false,
        accum: Some(accum),
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

fn check(spec: &str, seed: u64, dtype: DType, term: Term, accum: &Accum) {
    let mut dice = Dice::new(seed);
    let extents: Vec<(char, u64, u64)> = "abijkl"
        .chars()
        .filter(|c| spec.contains(*c))
        .map(|c| {
            let extent = dice.number(1, 9) as u64;
            (c, extent, dice.number(1, extent as i64 + 1) as u64)
        })
        .collect();
    let kernel = contraction(spec, &extents, dtype, term, accum.clone());
    let n_tasks: u64 = kernel.vars.n_blocks();
    let whole: Vec<Arc<Array>> = kernel
        .reads
        .iter()
        .map(|read| {
            Arc::new(dice.array(&read.shape, read.dtype, !matches!(accum.as_simple(), Some((BinaryOp::Add, _)))))
        })
        .collect();
    let blocks: Vec<Block> = whole.iter().map(|w| dice.block_of(w, &BoxRegion::whole(w.shape()))).collect();
    let operands: Vec<Option<&Block>> = blocks.iter().map(Some).collect();
    let arrays: Vec<Option<Arc<Array>>> = whole.iter().cloned().map(Some).collect();
    let out_box = dice.box_inside(&kernel.out_shape);
    let mut state = [Array::zeros(&kernel.out_shape, dtype).unwrap()];
    (0..state[0].data().len()).for_each(|k| state[0].data_mut().set(k, accum.identity[0]));
    let mut outputs = [output(dtype, &out_box).unwrap()];
    let compiled = CompiledKernel::compile(&Kernel::Statement(kernel.clone())).unwrap();
    for k in 0..2 {
        let task = dice.below(n_tasks as usize) as u32;
        assert!(run_statement(&kernel, task, &arrays, &mut state));
        compiled.run(task, k == 0, &operands, &mut outputs).unwrap();
    }
    assert_agree(&outputs[0].to_array().unwrap(), &part(&state[0], &out_box), true, &(spec, seed, term, &kernel));
}

#[test]
fn contractions_agree_with_the_reference() {
    for dtype in [DType::F32, DType::F64, DType::I64] {
        for spec in SPECS {
            for seed in 0..15 {
                check(spec, seed, dtype, Term::By(BinaryOp::Mul), &Accum::sum(dtype));
            }
        }
    }
}

#[test]
fn operands_are_converted_once() {
    for (operands, dtype) in [(DType::F16, DType::F32), (DType::BF16, DType::F32), (DType::I32, DType::F64)] {
        for spec in SPECS {
            for seed in 0..6 {
                check(spec, seed, dtype, Term::Converted(operands), &Accum::sum(dtype));
            }
        }
    }
}

/// Odd values among the terms: NaN wins, infinities meet.
#[test]
fn semirings_agree_with_the_reference() {
    use BinaryOp::{Add, Max, Min, Mul};
    let mut cases = Vec::new();
    for dtype in [DType::F32, DType::F64, DType::I64] {
        for term in [Term::By(Add), Term::By(Mul), Term::By(Min), Term::By(Max), Term::Distance] {
            cases.extend([(dtype, term, Accum::min(dtype)), (dtype, term, Accum::max(dtype))]);
        }
        cases.push((dtype, Term::Distance, Accum::sum(dtype)));
    }
    for term in [BinaryOp::And, BinaryOp::Or, BinaryOp::Xor] {
        cases.extend([(DType::Bool, Term::By(term), Accum::any()), (DType::Bool, Term::By(term), Accum::all())]);
    }
    for (dtype, term, accum) in cases {
        for spec in SPECS {
            for seed in 0..4 {
                check(spec, seed, dtype, term, &accum);
            }
        }
    }
}

/// Products large enough for every loop to be cut.
#[test]
fn large_products_agree_with_the_reference() {
    let extents = [('i', 70, 70), ('j', 530, 530), ('k', 300, 300)];
    let cases = [
        (DType::F64, Term::By(BinaryOp::Mul), Accum::sum(DType::F64)),
        (DType::F64, Term::By(BinaryOp::Add), Accum::min(DType::F64)),
        (DType::F32, Term::Distance, Accum::sum(DType::F32)),
        (DType::Bool, Term::By(BinaryOp::And), Accum::any()),
    ];
    for (spec, (dtype, term, accum)) in ["ik,kj->ij", "ki,jk->ij", "ik,kj->ji", "ki,kj->ij"].iter().zip(cases) {
        let kernel = contraction(spec, &extents, dtype, term, accum.clone());
        let mut dice = Dice::new(3);
        let whole: Vec<Arc<Array>> =
            kernel.reads.iter().map(|read| Arc::new(dice.array(&read.shape, dtype, false))).collect();
        let blocks: Vec<Block> = whole.iter().map(|w| dice.block_of(w, &BoxRegion::whole(w.shape()))).collect();
        let out_box = BoxRegion::whole(&kernel.out_shape);
        let mut outputs = [output(dtype, &out_box).unwrap()];
        let operands: Vec<Option<&Block>> = blocks.iter().map(Some).collect();
        let compiled = CompiledKernel::compile(&Kernel::Statement(kernel.clone())).unwrap();
        compiled.run(0, true, &operands, &mut outputs).unwrap();
        let found = outputs[0].to_array().unwrap();
        for _ in 0..300 {
            let point = [dice.number(0, 70), dice.number(0, 530)];
            let value = |read: usize, k: i64| {
                let at = [point[0], point[1], k];
                whole[read].get(&kernel.reads[read].idx.iter().map(|idx| idx.eval(&at) as u64).collect::<Vec<_>>())
            };
            let sum = (0..300).fold(accum.identity[0], |sum, k| {
                let args = [value(0, k), value(1, k), Scalar::I64(0), Scalar::I64(0), Scalar::I64(0)];
                accum.combine.eval(&[sum, kernel.code.eval(&args)[0]])[0]
            });
            let at: Vec<u64> = kernel.out_idx.iter().map(|idx| idx.eval(&point) as u64).collect();
            assert_eq!(found.get(&at), sum, "{spec} {term:?} at {at:?}");
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
