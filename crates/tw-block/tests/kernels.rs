//! Every kernel but statements, against slow references.
#![allow(clippy::unwrap_used)]

use std::sync::Arc;

use tw_block::{Block, CompiledKernel};
use tw_ir::kernel::Kernel;
use tw_ir::program::{BlockFunction, FunctionRef};
use tw_ir::spec::{FinishSpec, GatherSpec, ScanSpec, ScatterSpec};
use tw_ir::workflow::{SinkId, SourceId};
use tw_ir::{Accum, Array, ArrayView, BinaryOp, Blame, BoxRegion, DType, Edge, OnEmpty, Result, Scalar, shape};

mod support;
use support::{Dice, assert_agree, fold, output, part, parts_along, points, run};

const EDGES: [Edge; 4] = [Edge::Error, Edge::Fill, Edge::Clamp, Edge::Wrap];

fn random_shape(dice: &mut Dice, rank: usize) -> Vec<u64> {
    let long = dice.below(2 * rank.max(1));
    (0..rank).map(|k| dice.number(1, if k == long { 700 } else { 5 }) as u64).collect()
}

fn accums(dtype: DType) -> Vec<Accum> {
    let mut accums = vec![
        Accum::mean(DType::F64),
        Accum::variance(DType::F64, 0.0),
        Accum::last(dtype, dtype.one()),
        Accum::several(&[Accum::sum(DType::I64), Accum::argmax(DType::F64)]).unwrap(),
    ];
    if BinaryOp::Add.result(dtype).is_some() {
        accums.push(Accum::sum(dtype));
    }
    if BinaryOp::Lt.result(dtype).is_some() {
        accums.extend([Accum::max(dtype), Accum::argmin(dtype)]);
    }
    accums
}

fn scan_reference(accum: &Accum, bodies: &[Arc<Array>], axis: usize, exclusive: bool, reverse: bool) -> Vec<Array> {
    let whole = bodies[0].shape().to_vec();
    let mut results: Vec<Array> =
        accum.result_types().iter().map(|&dtype| Array::zeros(&whole, dtype).unwrap()).collect();
    let mut across = BoxRegion::whole(&whole);
    across.hi[axis] = across.hi[axis].min(1);
    for row in points(&across) {
        let mut state = accum.identity.clone();
        for k in 0..whole[axis] {
            let mut at = row.clone();
            at[axis] = if reverse { whole[axis] - 1 - k } else { k };
            let body: Vec<Scalar> = bodies.iter().map(|body| body.get(&at)).collect();
            let next = accum.combine.eval(&[state.clone(), accum.lift.eval(&body)].concat());
            let seen = match (exclusive, k) {
                (true, 0) => accum.empty_results(),
                (true, _) => accum.finish.eval(&state),
                (false, _) => accum.finish.eval(&next),
            };
            results.iter_mut().zip(seen).for_each(|(result, value)| result.set(&at, value));
            state = next;
        }
    }
    results
}

#[test]
fn scans_over_blocks_agree_with_the_reference() {
    for seed in 0..150 {
        let dice = &mut Dice::new(seed);
        let rank = 1 + dice.below(3);
        let whole = random_shape(dice, rank);
        let axis = dice.below(rank);
        let dtype = dice.pick(&DType::PHYSICAL);
        let mut accum = dice.pick(&accums(dtype));
        if dice.one_in(3) {
            accum.on_empty =
                OnEmpty::Value(accum.result_types().iter().map(|&dtype| dice.scalar(dtype, false)).collect());
        }
        let (exclusive, reverse) = (dice.one_in(2), dice.one_in(2));
        let bodies: Vec<Arc<Array>> =
            accum.lift.params().iter().map(|&dtype| Arc::new(dice.array(&whole, dtype, false))).collect();
        let expected = scan_reference(&accum, &bodies, axis, exclusive, reverse);
        let mut boxes = parts_along(dice, &whole, axis, 4);
        if reverse {
            boxes.reverse();
        }
        let mut carried: Option<Vec<Block>> = None;
        for bbox in &boxes {
            let blocks: Vec<Block> = bodies.iter().map(|body| dice.block_of(body, bbox)).collect();
            let mut across = bbox.clone();
            across.hi[axis] = across.lo[axis] + 1;
            let states =
                || -> Vec<Block> { accum.state_types().iter().map(|&d| output(d, &across).unwrap()).collect() };
            let mut totals = states();
            let kernel = Kernel::ScanTotal { accum: accum.clone(), axis: axis as u32, reverse };
            run(kernel, true, &blocks.iter().collect::<Vec<_>>(), &mut totals).unwrap();

            let operands: Vec<&Block> = blocks.iter().chain(carried.iter().flatten()).collect();
            let mut results: Vec<Block> = accum.result_types().iter().map(|&d| output(d, bbox).unwrap()).collect();
            let kernel = Kernel::ScanBlock(ScanSpec { accum: accum.clone(), axis: axis as u32, exclusive, reverse });
            let ran = run(kernel, true, &operands, &mut results);
            if exclusive && carried.is_none() && accum.on_empty == OnEmpty::Error {
                assert_eq!(ran.unwrap_err().blame(), Blame::Data);
                break;
            }
            ran.unwrap();
            for (result, expected) in results.iter().zip(&expected) {
                assert_agree(&result.to_array().unwrap(), &part(expected, bbox), false, &(seed, &accum, axis, bbox));
            }

            carried = Some(match carried {
                None => totals,
                Some(before) => {
                    let operands: Vec<&Block> = before.iter().chain(&totals).collect();
                    let mut next = states();
                    run(Kernel::ScanCarry(accum.clone()), true, &operands, &mut next).unwrap();
                    next
                }
            });
        }
    }
}

#[test]
fn states_are_combined_and_finished() {
    for seed in 0..80 {
        let dice = &mut Dice::new(seed);
        let rank = dice.below(3);
        let whole = random_shape(dice, rank);
        let dtype = dice.pick(&DType::PHYSICAL);
        let accum = dice.pick(&accums(dtype));
        let bbox = dice.box_inside(&whole);
        // Two states of one contribution each.
        let mut states: Vec<Vec<Arc<Array>>> = Vec::new();
        for _ in 0..2 {
            let mut state: Vec<Array> = accum.identity.iter().map(|&v| Array::full(&whole, v).unwrap()).collect();
            for at in points(&BoxRegion::whole(&whole)) {
                let bodies: Vec<Scalar> = accum.lift.params().iter().map(|&d| dice.scalar(d, false)).collect();
                fold(&accum, &bodies, &mut state, &at);
            }
            states.push(state.into_iter().map(Arc::new).collect());
        }
        let mut combined: Vec<Block> = accum.state_types().iter().map(|&d| output(d, &bbox).unwrap()).collect();
        for (k, state) in states.iter().enumerate() {
            let blocks: Vec<Block> = state.iter().map(|s| dice.block_of(s, &bbox)).collect();
            run(Kernel::Combine(accum.clone()), k == 0, &blocks.iter().collect::<Vec<_>>(), &mut combined).unwrap();
        }
        let mut results: Vec<Block> = accum.result_types().iter().map(|&d| output(d, &bbox).unwrap()).collect();
        let kernel = Kernel::Finish(FinishSpec { accum: accum.clone(), tracked: false });
        run(kernel, true, &combined.iter().collect::<Vec<_>>(), &mut results).unwrap();
        for at in points(&bbox) {
            let state = |k: usize| states[k].iter().map(|s| s.get(&at)).collect::<Vec<Scalar>>();
            let both = accum.combine.eval(&[state(0), state(1)].concat());
            for (found, expected) in combined.iter().zip(&both) {
                assert_eq!(found.get(&at), Some(*expected), "{accum:?}");
            }
            for (found, expected) in results.iter().zip(accum.finish.eval(&both)) {
                assert_eq!(found.get(&at), Some(expected), "{accum:?}");
            }
        }
    }
}

#[test]
fn empty_groups_follow_their_rule() {
    let bbox = BoxRegion { lo: vec![4], hi: vec![7] };
    let block = |array: Array| Block::from_array(&[4], array, None).unwrap();
    let state = block(Array::from_f64(&[1.0, f64::INFINITY, 3.0]));
    let mut holds = Array::full(&[3], Scalar::Bool(true)).unwrap();
    holds.set(&[1], Scalar::Bool(false));
    let holds = block(holds);
    let mut accum = Accum::min(DType::F64);
    let mut results = [output(DType::F64, &bbox).unwrap()];
    let kernel = Kernel::Finish(FinishSpec { accum: accum.clone(), tracked: true });
    let error = run(kernel, true, &[&state, &holds], &mut results).unwrap_err();
    assert_eq!(error.blame(), Blame::Data);
    assert!(error.message().contains("[5]"), "{error}");
    for (on_empty, expected) in [(OnEmpty::Identity, f64::INFINITY), (OnEmpty::Value(vec![Scalar::F64(-1.0)]), -1.0)] {
        accum.on_empty = on_empty;
        let kernel = Kernel::Finish(FinishSpec { accum: accum.clone(), tracked: true });
        run(kernel, true, &[&state, &holds], &mut results).unwrap();
        assert_eq!(results[0].to_array().unwrap().to_f64_vec(), [1.0, expected, 3.0]);
    }
}

#[test]
fn places_are_moved_and_clipped() {
    for seed in 0..60 {
        let dice = &mut Dice::new(seed);
        let rank = 1 + dice.below(3);
        let whole = random_shape(dice, rank);
        let (axis, shift) = (dice.below(rank), dice.number(0, 4) as u64);
        let dtype = dice.pick(&DType::PHYSICAL);
        let source = Arc::new(dice.array(&whole, dtype, true));
        let mut target = whole.clone();
        target[axis] += shift;
        let out_box = dice.box_inside(&target);
        let blocks: Vec<Block> = (0..2)
            .map(|_| {
                let bbox = dice.box_inside(&whole);
                dice.block_of(&source, &bbox)
            })
            .collect();
        let mut outputs = [output(source.dtype(), &out_box).unwrap()];
        run(Kernel::Place { axis: axis as u32, shift }, true, &blocks.iter().collect::<Vec<_>>(), &mut outputs)
            .unwrap();
        for at in points(&out_box) {
            let mut from = at.clone();
            let inside = from[axis] >= shift;
            from[axis] = from[axis].saturating_sub(shift);
            let covered = inside && blocks.iter().any(|block| block.get(&from).is_some());
            let expected = if covered { source.get(&from) } else { source.dtype().zero() };
            assert_eq!(outputs[0].get(&at), Some(expected), "seed {seed}");
        }
    }
}

struct Indexed {
    axes: Vec<u32>,
    data_shape: Vec<u64>,
    indices: Vec<Arc<Array>>,
    point_shape: Vec<u64>,
    edge: Edge,
}

fn random_indexing(dice: &mut Dice) -> Indexed {
    let rank = 1 + dice.below(3);
    let data_shape: Vec<u64> = (0..rank).map(|_| dice.number(1, 7) as u64).collect();
    let axes: Vec<u32> = loop {
        let axes: Vec<u32> = (0..rank as u32).filter(|_| dice.one_in(2)).collect();
        if !axes.is_empty() {
            break axes;
        }
    };
    let index_rank = dice.below(3);
    let index_shape = random_shape(dice, index_rank);
    let edge = dice.pick(&EDGES);
    let reach = if edge == Edge::Error && !dice.one_in(8) { 0 } else { 3 };
    let indices = axes
        .iter()
        .map(|&axis| {
            let mut index = Array::zeros(&index_shape, DType::I64).unwrap();
            for k in 0..index.data().len() {
                let value = dice.number(-reach, data_shape[axis as usize] as i64 + reach);
                index.data_mut().set(k, Scalar::I64(value));
            }
            Arc::new(index)
        })
        .collect();
    let mut point_shape = Vec::new();
    for (axis, &n) in data_shape.iter().enumerate() {
        if axis as u32 == axes[0] {
            point_shape.extend_from_slice(&index_shape);
        }
        if !axes.contains(&(axis as u32)) {
            point_shape.push(n);
        }
    }
    Indexed { axes, data_shape, indices, point_shape, edge }
}

impl Indexed {
    /// The element a point stands for: `None` outside, `Err` where that is an error.
    fn target(&self, at: &[u64]) -> std::result::Result<Option<Vec<u64>>, ()> {
        let first = self.axes[0] as usize;
        let index_rank = self.indices[0].shape().len();
        let mut others = at[..first].iter().chain(&at[first + index_rank..]);
        let mut coords = Vec::new();
        for (axis, &n) in self.data_shape.iter().enumerate() {
            let coord = match self.axes.iter().position(|&a| a as usize == axis) {
                None => others.next().copied(),
                Some(k) => {
                    let index = self.indices[k].get(&at[first..first + index_rank]).as_i64();
                    let coord = self.edge.apply(index, n);
                    if coord.is_none() && self.edge == Edge::Error {
                        return Err(());
                    }
                    coord
                }
            };
            match coord {
                Some(coord) => coords.push(coord),
                None => return Ok(None),
            }
        }
        Ok(Some(coords))
    }

    /// Blocks of the indices for the points of a box.
    fn index_blocks(&self, dice: &mut Dice, point_box: &BoxRegion) -> Vec<Block> {
        let first = self.axes[0] as usize;
        let index_rank = self.indices[0].shape().len();
        let ranges = (first..first + index_rank).map(|axis| point_box.range(axis));
        let inner = BoxRegion::from_ranges(ranges);
        self.indices
            .iter()
            .map(|index| {
                let bbox = dice.box_around(&inner, index.shape());
                dice.block_of(index, &bbox)
            })
            .collect()
    }

    fn has_error(&self, point_box: &BoxRegion) -> bool {
        points(point_box).any(|at| self.target(&at).is_err())
    }
}

#[test]
fn gathers_agree_with_the_reference() {
    let mut errors = 0;
    for seed in 0..300 {
        let dice = &mut Dice::new(seed);
        let indexed = random_indexing(dice);
        let dtype = dice.pick(&DType::PHYSICAL);
        let data = Arc::new(dice.array(&indexed.data_shape, dtype, true));
        let fill = dice.scalar(dtype, false);
        let out_box = dice.box_inside(&indexed.point_shape);
        let kernel = Kernel::Gather {
            spec: GatherSpec { axes: indexed.axes.clone(), edge: indexed.edge },
            shape: indexed.data_shape.clone(),
            fill,
        };
        let indices = indexed.index_blocks(dice, &out_box);
        let mut outputs = [output(dtype, &out_box).unwrap()];
        // The data comes in several blocks: one task each, or one for all that are neighbours along an indexed axis.
        let at_once = dice.one_in(2);
        let axis = if at_once { dice.pick(&indexed.axes) as usize } else { dice.below(indexed.data_shape.len()) };
        let blocks: Vec<Block> =
            parts_along(dice, &indexed.data_shape, axis, 4).iter().map(|bbox| dice.block_of(&data, bbox)).collect();
        let mut failed = false;
        for (k, data) in blocks.chunks(if at_once { blocks.len().max(1) } else { 1 }).enumerate() {
            let operands: Vec<&Block> = data.iter().chain(&indices).collect();
            match run(kernel.clone(), k == 0, &operands, &mut outputs) {
                Ok(()) => {}
                Err(error) => {
                    assert_eq!(error.blame(), Blame::Data, "{error}");
                    failed = true;
                }
            }
        }
        assert_eq!(failed, indexed.has_error(&out_box), "seed {seed}");
        errors += failed as usize;
        if failed {
            continue;
        }
        for at in points(&out_box) {
            let expected = indexed.target(&at).unwrap().map_or(fill, |from| data.get(&from));
            assert_eq!(outputs[0].get(&at), Some(expected), "seed {seed}");
        }
    }
    assert!(errors > 0, "no case with an index outside");
}

#[test]
fn scatters_agree_with_the_reference() {
    for seed in 0..200 {
        let dice = &mut Dice::new(seed);
        let indexed = random_indexing(dice);
        let dtype = dice.pick(&DType::PHYSICAL);
        let accum = dice.pick(&accums(dtype));
        let bodies: Vec<Arc<Array>> =
            accum.lift.params().iter().map(|&dtype| Arc::new(dice.array(&indexed.point_shape, dtype, false))).collect();
        let out_box = dice.box_inside(&indexed.data_shape);
        let kernel = Kernel::Scatter {
            spec: ScatterSpec { axes: indexed.axes.clone(), edge: indexed.edge, accum: accum.clone() },
            shape: indexed.data_shape.clone(),
        };
        let mut outputs: Vec<Block> = accum.state_types().iter().map(|&d| output(d, &out_box).unwrap()).collect();
        let mut state: Vec<Array> =
            accum.identity.iter().map(|&v| Array::full(&indexed.data_shape, v).unwrap()).collect();
        let mut failed = false;
        for k in 0..2 {
            let point_box = dice.box_inside(&indexed.point_shape);
            let indices = indexed.index_blocks(dice, &point_box);
            let values: Vec<Block> = bodies.iter().map(|body| dice.block_of(body, &point_box)).collect();
            let operands: Vec<&Block> = indices.iter().chain(&values).collect();
            let result = run(kernel.clone(), k == 0, &operands, &mut outputs);
            assert_eq!(result.is_err(), indexed.has_error(&point_box), "seed {seed}");
            failed |= result.is_err();
            for at in points(&point_box) {
                if let Ok(Some(target)) = indexed.target(&at) {
                    let body: Vec<Scalar> = bodies.iter().map(|body| body.get(&at)).collect();
                    fold(&accum, &body, &mut state, &target);
                }
            }
        }
        if failed {
            continue;
        }
        for (found, state) in outputs.iter().zip(&state) {
            assert_agree(&found.to_array().unwrap(), &part(state, &out_box), false, &(seed, &accum));
        }
    }
}

/// Rows that are longer than a strip, shorter than one, and of one element; indices name some rows twice and leave some out.
#[test]
fn scatters_of_rows_agree_with_the_reference() {
    for (width, n_columns) in [(3, 1), (5, 40), (2, 1500)] {
        for accum in [Accum::sum(DType::F64), Accum::mean(DType::F32), Accum::max(DType::I32)] {
            let dice = &mut Dice::new(n_columns);
            let shape = [width, n_columns];
            let dtype = accum.lift.params()[0];
            let body = Arc::new(dice.array(&[7, n_columns], dtype, false));
            let rows: Vec<i64> = vec![1, 0, 1, 1, 0, 1, 0];
            let index = Arc::new(Array::from_i64(&rows));
            let whole = BoxRegion::whole(&shape);
            let kernel = Kernel::Scatter {
                spec: ScatterSpec { axes: vec![0], edge: Edge::Error, accum: accum.clone() },
                shape: shape.to_vec(),
            };
            let mut outputs: Vec<Block> = accum.state_types().iter().map(|&d| output(d, &whole).unwrap()).collect();
            let mut state: Vec<Array> = accum.identity.iter().map(|&v| Array::full(&shape, v).unwrap()).collect();
            let points_box = BoxRegion::whole(&[7, n_columns]);
            let index = dice.block_of(&index, &BoxRegion::whole(&[7]));
            let values = dice.block_of(&body, &points_box);
            run(kernel, true, &[&index, &values], &mut outputs).unwrap();
            for at in points(&points_box) {
                fold(&accum, &[body.get(&at)], &mut state, &[rows[at[0] as usize] as u64, at[1]]);
            }
            for (found, state) in outputs.iter().zip(&state) {
                assert_agree(&found.to_array().unwrap(), state, false, &(n_columns, &accum));
            }
        }
    }
}

struct Transpose;

impl BlockFunction for Transpose {
    fn name(&self) -> &str {
        "transpose"
    }
    fn apply(&self, operands: &[ArrayView<'_>], results: &mut [Array]) -> Result<()> {
        for at in points(&BoxRegion::whole(operands[0].shape())) {
            results[0].set(&[at[1], at[0]], operands[0].get(&at));
        }
        Ok(())
    }
}

#[test]
fn functions_are_called_with_arrays() {
    let dice = &mut Dice::new(1);
    let data = Arc::new(dice.array(&[5, 4], DType::F32, false));
    let block = Block::view_of(&data, &BoxRegion { lo: vec![1, 0], hi: vec![4, 3] }).unwrap();
    let mut outputs = [output(DType::F32, &BoxRegion { lo: vec![6, 0], hi: vec![9, 3] }).unwrap()];
    run(Kernel::Call(FunctionRef(Arc::new(Transpose))), true, &[&block], &mut outputs).unwrap();
    for at in points(outputs[0].bbox()) {
        assert_eq!(outputs[0].get(&at), Some(data.get(&[at[1] + 1, at[0] - 6])));
    }
}

#[test]
fn fills_and_what_is_not_compiled() {
    let bbox = BoxRegion::whole(&[2, 2]);
    let mut outputs = [output(DType::I64, &bbox).unwrap()];
    run(Kernel::Fill(vec![Scalar::I64(7)]), true, &[], &mut outputs).unwrap();
    assert_eq!(outputs[0].to_array().unwrap().to_f64_vec(), [7.0; 4]);
    assert_eq!(shape::n_elements(&outputs[0].bbox().shape()).unwrap(), 4);
    for kernel in [Kernel::Load { source: SourceId::from_u32(0) }, Kernel::Store { sink: SinkId::from_u32(0) }] {
        assert_eq!(CompiledKernel::compile(&kernel).unwrap_err().blame(), Blame::Internal);
    }
}
