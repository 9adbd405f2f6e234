//! Hand-computed expectations, operator by operator.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::{evaluate, evaluate_all, evaluate_with_limit};
use crate::accum::{Accum, OnEmpty};
use crate::array::{Array, ArrayView, Buffer};
use crate::dtype::{DType, Scalar};
use crate::error::{Blame, Result};
use crate::index::{Access, Edge, Idx, Var};
use crate::program::{
    BlockFn, BlockFunction, BlockResult, FunctionTable, IndexStmt, IndexVar, Op, OperandMode, Output, Program, Region,
    ResultMode, SourceOp, TensorType, ValueId,
};
use crate::scalar::{BinaryOp, ScalarCode};
use crate::shape::Extent;
use crate::span::Span;
use crate::spec::{GatherSpec, ScanSpec, ScatterSpec, SortSpec};
use crate::tiling::{Axis, Tiling};

fn v(k: u32) -> Idx {
    Idx::var(Var(k))
}

fn matrix(rows: u64, columns: u64, values: &[f64]) -> Array {
    Array::new(vec![rows, columns], Buffer::F64(values.to_vec())).unwrap()
}

fn constant(program: &mut Program, array: Array) -> ValueId {
    program.push1(Op::Source(SourceOp::Constant(Arc::new(array))), &[], &Span::None).unwrap()
}

fn run1(mut program: Program, value: ValueId) -> Result<Array> {
    program.output("out", value);
    Ok(evaluate(&program, &BTreeMap::new())?.remove("out").unwrap())
}

/// One operator on constants; the results.
fn apply(op: Op, args: &[&Array]) -> Result<Vec<Array>> {
    let mut program = Program::new();
    let args: Vec<ValueId> = args.iter().map(|&array| constant(&mut program, array.clone())).collect();
    let results = program.push(op, &args, &Span::text(3, 9))?;
    for (k, &value) in results.iter().enumerate() {
        program.output(k.to_string(), value);
    }
    Ok(evaluate(&program, &BTreeMap::new())?.into_values().collect())
}

fn vars(extents: &[u64]) -> Vec<IndexVar> {
    let names = ["i", "j", "k"];
    extents.iter().zip(names).map(|(&n, name)| IndexVar { name: name.into(), extent: Extent::Known(n) }).collect()
}

/// A statement whose body is the product of its reads.
fn product(extents: &[u64], reads: Vec<Access>, accum: Option<Accum>, out: Vec<Idx>, shape: &[u64]) -> IndexStmt {
    let mut params = vec![DType::F64; reads.len()];
    params.extend(vec![DType::I64; extents.len()]);
    let mut code = ScalarCode::new(params);
    let mut body = code.constant(Scalar::F64(1.0));
    for k in 0..reads.len() as u32 {
        let read = code.param(k);
        body = if k == 0 { read } else { code.binary(BinaryOp::Mul, body, read).unwrap() };
    }
    code.set_results(vec![body]);
    let fill = if accum.is_some() { vec![] } else { vec![Scalar::F64(-1.0)] };
    let shape = shape.iter().map(|&n| Extent::Known(n)).collect();
    let out = Output { idx: out, edge: Edge::Error, shape, fill };
    IndexStmt { vars: vars(extents), reads, code: code.without_dead_ops(), has_guard: false, accum, out }
}

fn read(operand: u32, idx: Vec<Idx>, edge: Edge) -> Access {
    Access { operand, idx, edge }
}

/// The guard `left op right` on a parameter and a constant, put before the bodies.
fn with_guard(mut stmt: IndexStmt, op: BinaryOp, param: u32, limit: Scalar) -> IndexStmt {
    let bodies = stmt.code.results().to_vec();
    let (left, right) = (stmt.code.param(param), stmt.code.constant(limit));
    let guard = stmt.code.binary(op, left, right).unwrap();
    stmt.code.set_results([vec![guard], bodies].concat());
    stmt.has_guard = true;
    stmt
}

#[test]
fn contraction() {
    let a = matrix(2, 3, &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
    let b = matrix(3, 2, &[1.0, 0.0, 0.0, 1.0, 2.0, -1.0]);
    let reads = vec![read(0, vec![v(0), v(2)], Edge::Error), read(1, vec![v(2), v(1)], Edge::Error)];
    let stmt = product(&[2, 2, 3], reads, Some(Accum::sum(DType::F64)), vec![v(0), v(1)], &[2, 2]);
    let c = apply(Op::Index(stmt), &[&a, &b]).unwrap();
    assert_eq!(c, [matrix(2, 2, &[7.0, -1.0, 16.0, -1.0])]);
}

#[test]
fn edges_when_reading() {
    let x = Array::from_f64(&[10.0, 20.0, 30.0]);
    let shifted = |edge| {
        let stmt = product(&[5], vec![read(0, vec![v(0).plus_constant(-1)], edge)], None, vec![v(0)], &[5]);
        apply(Op::Index(stmt), &[&x]).map(|r| r[0].to_f64_vec())
    };
    assert_eq!(shifted(Edge::Fill).unwrap(), [0.0, 10.0, 20.0, 30.0, 0.0]);
    assert_eq!(shifted(Edge::Clamp).unwrap(), [10.0, 10.0, 20.0, 30.0, 30.0]);
    assert_eq!(shifted(Edge::Wrap).unwrap(), [30.0, 10.0, 20.0, 30.0, 10.0]);
    assert_eq!(shifted(Edge::Error).unwrap_err().blame(), Blame::Source);
}

#[test]
fn edges_when_writing() {
    let x = Array::from_f64(&[1.0, 2.0, 3.0]);
    let written = |edge| {
        let reads = vec![read(0, vec![v(0)], Edge::Error)];
        let mut stmt = product(&[3], reads, Some(Accum::sum(DType::F64)), vec![v(0).times(2).plus_constant(-1)], &[3]);
        stmt.out.edge = edge;
        apply(Op::Index(stmt), &[&x]).map(|r| r[0].to_f64_vec())
    };
    // Targets are -1, 1 and 3.
    assert_eq!(written(Edge::Fill).unwrap(), [0.0, 2.0, 0.0]);
    assert_eq!(written(Edge::Clamp).unwrap(), [1.0, 2.0, 3.0]);
    assert_eq!(written(Edge::Wrap).unwrap(), [3.0, 2.0, 1.0]);
}

#[test]
fn elements_nobody_writes_are_fill() {
    let x = Array::from_f64(&[1.0, 2.0]);
    let stmt = product(&[2], vec![read(0, vec![v(0)], Edge::Error)], None, vec![v(0).times(2)], &[4]);
    assert_eq!(apply(Op::Index(stmt), &[&x]).unwrap()[0].to_f64_vec(), [1.0, -1.0, 2.0, -1.0]);
}

#[test]
fn guards_excuse_reads_outside() {
    let x = Array::from_f64(&[1.0, 2.0]);
    let stmt = product(&[3], vec![read(0, vec![v(0)], Edge::Error)], None, vec![v(0)], &[3]);
    let inside = with_guard(stmt.clone(), BinaryOp::Lt, 1, Scalar::I64(2));
    assert_eq!(apply(Op::Index(inside), &[&x]).unwrap()[0].to_f64_vec(), [1.0, 2.0, -1.0]);
    let outside = with_guard(stmt, BinaryOp::Gt, 1, Scalar::I64(1));
    let error = apply(Op::Index(outside), &[&x]).unwrap_err();
    assert_eq!((error.blame(), error.span()), (Blame::Data, &Span::text(3, 9)));
    assert!(error.to_string().contains("at i = 2"), "{error}");
}

#[test]
fn empty_groups_follow_their_rule() {
    let x = Array::from_f64(&[5.0, -2.0, f64::NAN]);
    let positive = |accum: Accum| {
        let stmt = product(&[3], vec![read(0, vec![v(0)], Edge::Error)], Some(accum), vec![v(0)], &[3]);
        apply(Op::Index(with_guard(stmt, BinaryOp::Gt, 0, Scalar::F64(0.0))), &[&x])
    };
    assert_eq!(positive(Accum::sum(DType::F64)).unwrap()[0].to_f64_vec(), [5.0, 0.0, 0.0]);
    let error = positive(Accum::max(DType::F64)).unwrap_err();
    assert!(error.blame() == Blame::Data && error.message().contains("[1]"), "{error}");
    let seven = Accum { on_empty: OnEmpty::Value(vec![Scalar::F64(7.0)]), ..Accum::max(DType::F64) };
    assert_eq!(positive(seven).unwrap()[0].to_f64_vec(), [5.0, 7.0, 7.0]);
}

#[test]
fn empty_extents_and_rank_zero() {
    let empty = Array::from_f64(&[]);
    let sum = |accum| product(&[0], vec![read(0, vec![v(0)], Edge::Error)], Some(accum), vec![], &[]);
    let total = apply(Op::Index(sum(Accum::sum(DType::F64))), &[&empty]).unwrap();
    assert_eq!(total, [Array::scalar(Scalar::F64(0.0))]);
    assert!(apply(Op::Index(sum(Accum::min(DType::F64))), &[&empty]).is_err());
    let square = product(&[], vec![read(0, vec![], Edge::Error); 2], None, vec![], &[]);
    let nine = apply(Op::Index(square), &[&Array::scalar(Scalar::F64(3.0))]).unwrap();
    assert_eq!(nine, [Array::scalar(Scalar::F64(9.0))]);
    let nothing = product(&[0], vec![read(0, vec![v(0)], Edge::Error)], None, vec![v(0)], &[0]);
    assert_eq!(apply(Op::Index(nothing), &[&empty]).unwrap()[0], empty);
    // There is no nearest element of an empty axis.
    let clamped = product(&[1], vec![read(0, vec![v(0)], Edge::Clamp)], None, vec![v(0)], &[1]);
    assert_eq!(apply(Op::Index(clamped), &[&empty]).unwrap_err().blame(), Blame::Data);
}

#[test]
fn nan_wins_max_and_argmax() {
    let x = Array::from_f64(&[1.0, f64::NAN, 9.0]);
    let mut stmt = product(&[3], vec![read(0, vec![v(0)], Edge::Error)], None, vec![], &[]);
    let (value, position) = (stmt.code.param(0), stmt.code.param(1));
    stmt.code.set_results(vec![value, value, position]);
    stmt.accum = Some(Accum::several(&[Accum::max(DType::F64), Accum::argmax(DType::F64)]).unwrap());
    stmt.out.fill.clear();
    let results = apply(Op::Index(stmt), &[&x]).unwrap();
    assert!(results[0].item().unwrap().as_f64().is_nan());
    assert_eq!(results[1], Array::scalar(Scalar::I64(1)));
}

#[test]
fn scans() {
    let x = matrix(2, 3, &[1.0, 2.0, 3.0, 10.0, 20.0, 30.0]);
    let scan = |axis, exclusive, reverse| {
        let op = Op::Scan(ScanSpec { accum: Accum::sum(DType::F64), axis, exclusive, reverse });
        apply(op, &[&x]).unwrap()[0].to_f64_vec()
    };
    assert_eq!(scan(1, false, false), [1.0, 3.0, 6.0, 10.0, 30.0, 60.0]);
    assert_eq!(scan(0, false, false), [1.0, 2.0, 3.0, 11.0, 22.0, 33.0]);
    assert_eq!(scan(1, true, false), [0.0, 1.0, 3.0, 0.0, 10.0, 30.0]);
    assert_eq!(scan(1, false, true), [6.0, 5.0, 3.0, 60.0, 50.0, 30.0]);
    assert_eq!(scan(1, true, true), [5.0, 3.0, 0.0, 50.0, 30.0, 0.0]);
    let max = |exclusive| Op::Scan(ScanSpec { accum: Accum::max(DType::F64), axis: 0, exclusive, reverse: false });
    assert_eq!(apply(max(false), &[&Array::from_f64(&[])]).unwrap(), [Array::from_f64(&[])]);
    assert!(apply(max(true), &[&Array::from_f64(&[1.0])]).unwrap_err().message().contains("[0]"));
}

#[test]
fn gathers() {
    let data = matrix(2, 3, &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
    let columns = Op::Gather(GatherSpec { axes: vec![1], edge: Edge::Error });
    let picked = apply(columns.clone(), &[&data, &Array::from_i64(&[2, 0])]).unwrap();
    assert_eq!(picked, [matrix(2, 2, &[3.0, 1.0, 6.0, 4.0])]);
    let error = apply(columns, &[&data, &Array::from_i64(&[-1])]).unwrap_err();
    assert!(error.message().contains("[0, -1]"), "{error}");
    for (edge, expected) in
        [(Edge::Fill, [0.0, 0.0, 0.0]), (Edge::Clamp, [4.0, 5.0, 6.0]), (Edge::Wrap, [1.0, 2.0, 3.0])]
    {
        let op = Op::Gather(GatherSpec { axes: vec![0], edge });
        let row = apply(op, &[&data, &Array::scalar(Scalar::I64(2))]).unwrap();
        assert_eq!((row[0].shape(), row[0].to_f64_vec()), (&[3][..], expected.to_vec()));
    }
    let both = Op::Gather(GatherSpec { axes: vec![0, 1], edge: Edge::Error });
    let points = [data, Array::from_i64(&[0, 1]), Array::from_i64(&[2, 1])];
    assert_eq!(apply(both, &points.each_ref()).unwrap(), [Array::from_f64(&[3.0, 5.0])]);
}

#[test]
fn gather_around_other_axes() {
    // Axes 0 and 2 of a 2x3x2 tensor by a 1x2 index: the result is 1x2x3.
    let data = Array::new(vec![2, 3, 2], Buffer::I64((0..12).collect())).unwrap();
    let index = |values: &[i64]| Array::from_i64(values).reshaped(&[1, 2]).unwrap();
    let op = Op::Gather(GatherSpec { axes: vec![0, 2], edge: Edge::Error });
    let result = apply(op, &[&data, &index(&[1, 0]), &index(&[0, 1])]).unwrap();
    assert_eq!(result[0].shape(), [1, 2, 3]);
    assert_eq!(result[0].to_f64_vec(), [6.0, 8.0, 10.0, 1.0, 3.0, 5.0]);
}

#[test]
fn scatters() {
    let op = |edge| Op::Scatter {
        spec: ScatterSpec { axes: vec![0], accum: Accum::sum(DType::F64), edge },
        extents: vec![Extent::Known(3)],
    };
    let index = Array::from_i64(&[2, 0, 2]);
    let values = matrix(3, 2, &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
    let sums = apply(op(Edge::Error), &[&index, &values]).unwrap();
    assert_eq!(sums, [matrix(3, 2, &[3.0, 4.0, 0.0, 0.0, 6.0, 8.0])]);
    let far = Array::from_i64(&[3, 0, 2]);
    assert_eq!(apply(op(Edge::Error), &[&far, &values]).unwrap_err().blame(), Blame::Data);
    let dropped = apply(op(Edge::Fill), &[&far, &values]).unwrap();
    assert_eq!(dropped, [matrix(3, 2, &[3.0, 4.0, 0.0, 0.0, 5.0, 6.0])]);
}

#[test]
fn scatter_along_two_axes() {
    let op = Op::Scatter {
        spec: ScatterSpec { axes: vec![0, 1], accum: Accum::max(DType::I64), edge: Edge::Wrap },
        extents: vec![Extent::Known(2), Extent::Known(2)],
    };
    let args = [&[0, 1, 2, 1, 5][..], &[0, 1, 0, 0, 3][..], &[4, 5, 6, 7, 9][..]].map(Array::from_i64);
    let error = apply(op.clone(), &args.each_ref()).unwrap_err();
    assert!(error.message().contains("[0, 1]"), "{error}");
    let args = [&[0, 1, 2, 1, 4][..], &[0, 1, 0, 0, 3][..], &[4, 5, 6, 7, 9][..]].map(Array::from_i64);
    assert_eq!(apply(op, &args.each_ref()).unwrap()[0].to_f64_vec(), [6.0, 9.0, 7.0, 5.0]);
}

#[test]
fn compact_counts() {
    let mask = Array::new(vec![2, 2], Buffer::Bool(vec![true, false, false, true])).unwrap();
    let data = matrix(2, 2, &[1.0, 2.0, 3.0, 4.0]);
    let compact = |n| apply(Op::Compact { extent: Extent::Known(n), counts: None }, &[&mask, &data]);
    assert_eq!(compact(2).unwrap(), [Array::from_f64(&[1.0, 4.0])]);
    assert_eq!(compact(3).unwrap_err().blame(), Blame::Data);
    // Rows, as often as whole numbers say; positions without data.
    let op = |n| Op::Compact { extent: Extent::Known(n), counts: None };
    let rows = apply(op(3), &[&Array::from_i64(&[2, 1]), &data]).unwrap();
    assert_eq!(rows, [matrix(3, 2, &[1.0, 2.0, 1.0, 2.0, 3.0, 4.0])]);
    assert_eq!(apply(op(1), &[&Array::from_i64(&[2, -1]), &data]).unwrap_err().blame(), Blame::Data);
    assert_eq!(apply(op(2), &[&mask]).unwrap(), [Array::from_i64(&[0, 3])]);
}

#[test]
fn expand_puts_back() {
    let mask = Array::new(vec![2, 2], Buffer::Bool(vec![true, false, false, true])).unwrap();
    let data = matrix(2, 2, &[1.0, 2.0, 3.0, 4.0]);
    let expand = |values: &[f64]| apply(Op::Expand { counts: None }, &[&mask, &Array::from_f64(values), &data]);
    assert_eq!(expand(&[8.0, 9.0]).unwrap(), [matrix(2, 2, &[8.0, 2.0, 3.0, 9.0])]);
    assert_eq!(expand(&[8.0]).unwrap_err().blame(), Blame::Data);
}

#[test]
fn sorts_are_stable_and_know_nan() {
    let x = Array::from_f64(&[2.0, f64::NAN, -0.0, 0.0, 2.0]);
    let order = |descending| {
        let results = apply(Op::Sort { spec: SortSpec { axis: 0, descending }, limit: None }, &[&x]).unwrap();
        (results[0].to_f64_vec(), results[1].to_f64_vec())
    };
    let (values, positions) = order(false);
    assert_eq!(positions, [2.0, 3.0, 0.0, 4.0, 1.0]);
    assert!(values[0].is_sign_negative() && values[4].is_nan());
    assert_eq!(order(true).1, [1.0, 0.0, 4.0, 2.0, 3.0]);
    let columns = apply(
        Op::Sort { spec: SortSpec { axis: 0, descending: false }, limit: None },
        &[&matrix(2, 2, &[3.0, 1.0, 2.0, 4.0])],
    )
    .unwrap();
    assert_eq!(columns[0], matrix(2, 2, &[2.0, 1.0, 3.0, 4.0]));
    let first = apply(Op::Sort { spec: SortSpec { axis: 0, descending: true }, limit: Some(2) }, &[&x]).unwrap();
    assert_eq!(first[1].to_f64_vec(), [1.0, 0.0]);
    let error = apply(Op::Sort { spec: SortSpec { axis: 0, descending: true }, limit: Some(6) }, &[&x]).unwrap_err();
    assert!(error.message().contains("the first 6 of 5"), "{error}");
}

#[test]
fn shapes_change_elements_do_not() {
    let x = matrix(2, 3, &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
    let shape = vec![Extent::Known(3), Extent::Known(2)];
    let reshaped = apply(Op::Reshape { shape }, &[&x]).unwrap();
    assert_eq!(reshaped, [matrix(3, 2, &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0])]);
    let tiling = Tiling::Grid(vec![Axis::uniform(2, 1), Axis::whole(3)].into());
    assert_eq!(apply(Op::Retile { tiling }, &[&x]).unwrap()[0], x);
    let beside = apply(Op::Concat { axis: 1 }, &[&x, &matrix(2, 1, &[7.0, 8.0])]).unwrap();
    assert_eq!(beside, [matrix(2, 4, &[1.0, 2.0, 3.0, 7.0, 4.0, 5.0, 6.0, 8.0])]);
    let below = apply(Op::Concat { axis: 0 }, &[&matrix(0, 3, &[]), &x]).unwrap();
    assert_eq!(below, [x]);
}

/// Gives each block with its elements in reverse, and the sum of it.
struct ReverseAndSum;

impl BlockFunction for ReverseAndSum {
    fn name(&self) -> &str {
        "reverse_and_sum"
    }
    fn apply(&self, operands: &[ArrayView<'_>], results: &mut [Array]) -> Result<()> {
        let n = operands[0].data().len();
        for k in 0..n {
            results[0].data_mut().set(k, operands[0].data().get(n - 1 - k));
        }
        results[1].data_mut().set(0, Scalar::F64(operands[0].to_array().to_f64_vec().iter().sum()));
        Ok(())
    }
}

#[test]
fn block_functions_follow_the_tiling() {
    let mut program = Program::new();
    let x = constant(&mut program, matrix(2, 3, &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]));
    let tiling = Tiling::Grid(vec![Axis::whole(2), Axis::from_lengths(&[1, 2]).unwrap()].into());
    let x = program.push1(Op::Retile { tiling }, &[x], &Span::None).unwrap();
    let call = BlockFn {
        function: FunctionTable::default().register(ReverseAndSum),
        operands: vec![vec![OperandMode::Whole, OperandMode::Grid(0)]],
        results: vec![
            BlockResult { dtype: DType::F64, modes: vec![ResultMode::Whole(2), ResultMode::Grid(0)] },
            BlockResult { dtype: DType::F64, modes: vec![ResultMode::PerBlock(0, 1)] },
        ],
    };
    let results = program.push(Op::BlockFn(call), &[x], &Span::None).unwrap();
    program.output("reversed", results[0]);
    program.output("sums", results[1]);
    let outputs = evaluate(&program, &BTreeMap::new()).unwrap();
    assert_eq!(outputs["reversed"], matrix(2, 3, &[4.0, 6.0, 5.0, 1.0, 3.0, 2.0]));
    assert_eq!(outputs["sums"], Array::from_f64(&[5.0, 16.0]));
}

/// `a op b` of scalars, appended to a region.
fn scalar_op(program: &mut Program, region: &mut Region, op: BinaryOp, a: ValueId, b: ValueId) -> ValueId {
    let mut code = ScalarCode::new(vec![DType::I64; 2]);
    let (x, y) = (code.param(0), code.param(1));
    let result = code.binary(op, x, y).unwrap();
    code.set_results(vec![result]);
    let fill = code.result_types().iter().map(|dtype| dtype.zero()).collect();
    let stmt = IndexStmt {
        vars: vec![],
        reads: vec![read(0, vec![], Edge::Error), read(1, vec![], Edge::Error)],
        code,
        has_guard: false,
        accum: None,
        out: Output { idx: vec![], edge: Edge::Error, shape: vec![], fill },
    };
    program.push_into(region, Op::Index(stmt), &[a, b], &Span::None).unwrap()[0]
}

/// Doubles a value from 1 while it is below 100: a loop whose regions read a value from around it.
fn doubling() -> Program {
    let mut program = Program::new();
    let start = constant(&mut program, Array::scalar(Scalar::I64(1)));
    let limit = constant(&mut program, Array::scalar(Scalar::I64(100)));
    let [in_condition, in_body] = [(); 2].map(|()| program.new_value(TensorType::scalar(DType::I64)));
    let mut condition = Region { params: vec![in_condition], ..Region::default() };
    let below = scalar_op(&mut program, &mut condition, BinaryOp::Lt, in_condition, limit);
    condition.results = vec![below];
    let mut body = Region { params: vec![in_body], ..Region::default() };
    let doubled = scalar_op(&mut program, &mut body, BinaryOp::Add, in_body, in_body);
    body.results = vec![doubled];
    let end = program.push1(Op::While { condition, body }, &[start], &Span::text(1, 2)).unwrap();
    program.output("end", end);
    program
}

#[test]
fn loops_carry_values_and_obey_the_limit() {
    let program = doubling();
    assert_eq!(evaluate(&program, &BTreeMap::new()).unwrap()["end"], Array::scalar(Scalar::I64(128)));
    // Two constants, the loop, 8 turns with one condition each and 7 bodies.
    assert!(evaluate_with_limit(&program, &BTreeMap::new(), 3 + 8 + 8 + 7).is_ok());
    let error = evaluate_with_limit(&program, &BTreeMap::new(), 25).unwrap_err();
    assert_eq!((error.blame(), error.span()), (Blame::Resource, &Span::text(1, 2)));
}

#[test]
fn branches_run_only_what_is_taken() {
    for (flag, expected) in [(true, 6), (false, 9)] {
        let mut program = Program::new();
        let condition = constant(&mut program, Array::scalar(Scalar::Bool(flag)));
        let three = constant(&mut program, Array::scalar(Scalar::I64(3)));
        let [mut then, mut otherwise] = [Region::default(), Region::default()];
        let sum = scalar_op(&mut program, &mut then, BinaryOp::Add, three, three);
        program.push_into(&mut then, Op::Store { path: "then".into() }, &[sum], &Span::None).unwrap();
        then.results = vec![sum];
        let square = scalar_op(&mut program, &mut otherwise, BinaryOp::Mul, three, three);
        otherwise.results = vec![square];
        let result = program.push1(Op::If { then, otherwise }, &[condition], &Span::None).unwrap();
        program.output("out", result);
        let outcome = evaluate_all(&program, &BTreeMap::new()).unwrap();
        assert_eq!(outcome.outputs["out"], Array::scalar(Scalar::I64(expected)));
        assert_eq!(outcome.stored.contains_key("then"), flag);
    }
}

#[test]
fn resolved_scalars_are_extents() {
    let mut program = Program::new();
    let data = constant(&mut program, Array::from_f64(&[4.0, 5.0, 6.0]));
    let mask = constant(&mut program, Array::new(vec![3], Buffer::Bool(vec![true, false, true])).unwrap());
    let two = constant(&mut program, Array::scalar(Scalar::I64(2)));
    let count = program.push1(Op::Resolve, &[two], &Span::None).unwrap();
    let extent = program.extent_of(count);
    let kept = program.push1(Op::Compact { extent, counts: None }, &[mask, data], &Span::None).unwrap();
    let shape = vec![Extent::Known(1), extent];
    let row = program.push1(Op::Reshape { shape }, &[kept], &Span::None).unwrap();
    assert_eq!(run1(program, row).unwrap(), matrix(1, 2, &[4.0, 6.0]));
}

#[test]
fn inputs_are_checked() {
    let mut program = Program::new();
    let ty = TensorType::known(DType::F64, &[2]);
    let x = program.push1(Op::Source(SourceOp::Input { name: "x".into(), ty }), &[], &Span::None).unwrap();
    program.output("y", x);
    let with = |array: Array| evaluate(&program, &BTreeMap::from([("x".to_string(), array)]));
    assert_eq!(with(Array::from_f64(&[1.0, 2.0])).unwrap()["y"], Array::from_f64(&[1.0, 2.0]));
    assert!(with(Array::from_f64(&[1.0])).is_err());
    assert!(with(Array::from_i64(&[1, 2])).is_err());
    assert!(evaluate(&program, &BTreeMap::new()).unwrap_err().message().contains("`x`"));
}
