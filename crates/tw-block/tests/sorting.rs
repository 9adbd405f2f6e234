//! Sorting kernels against a slow reference: runs, merges, and what is kept of them.
#![allow(clippy::unwrap_used)]

use std::sync::Arc;

use tw_block::{Block, CompiledKernel, Meter, SpillFile, Streamed};
use tw_ir::kernel::{Kernel, SortResults, Sorting};
use tw_ir::spec::SortSpec;
use tw_ir::{Array, BinaryOp, BoxRegion, DType, Scalar};

mod support;
use support::{Dice, output, parts_along, points, run};

/// A shape of some axes, seldom empty.
fn random_shape(dice: &mut Dice, rank: usize) -> Vec<u64> {
    (0..rank).map(|_| if dice.one_in(12) { 0 } else { 1 + dice.below(9) as u64 }).collect()
}

/// Ascending order with NaN last, both zeros equal.
fn before(a: Scalar, b: Scalar) -> std::cmp::Ordering {
    match (a, b) {
        (Scalar::I64(a), Scalar::I64(b)) => a.cmp(&b),
        (Scalar::U64(a), Scalar::U64(b)) => a.cmp(&b),
        _ => {
            let (a, b) = (a.as_f64(), b.as_f64());
            a.partial_cmp(&b).unwrap_or_else(|| a.is_nan().cmp(&b.is_nan()))
        }
    }
}

/// The values and positions of a row through a point, sorted the slow way.
fn sorted_row(data: &Array, at: &[u64], axis: usize, descending: bool) -> Vec<(Scalar, u64)> {
    let mut row: Vec<(Scalar, u64)> = (0..data.shape()[axis])
        .map(|k| {
            let mut from = at.to_vec();
            from[axis] = k;
            (data.get(&from), k)
        })
        .collect();
    row.sort_by(|a, b| if descending { before(b.0, a.0) } else { before(a.0, b.0) });
    row
}

/// Output blocks of a sort.
fn sort_outputs(results: SortResults, dtype: DType, bbox: &BoxRegion) -> Vec<Block> {
    let types: &[DType] = match results {
        SortResults::Both => &[dtype, DType::I64],
        SortResults::Values => &[dtype],
        SortResults::Positions => &[DType::I64],
    };
    types.iter().map(|&dtype| output(dtype, bbox).unwrap()).collect()
}

/// Sorts a tensor by runs, of which no more than `kept` elements are kept, and compares what merges make of them.
fn check_sort(dice: &mut Dice, data: &Arc<Array>, sorting: Sorting, kept: u64, seed: u64) {
    let (whole, axis, dtype) = (data.shape().to_vec(), sorting.spec.axis as usize, data.dtype());
    let run_results = if sorting.results == SortResults::Values { SortResults::Values } else { SortResults::Both };
    let mut runs: [Vec<Block>; 2] = Default::default();
    for bbox in parts_along(dice, &whole, axis, u64::MAX) {
        let block = dice.block_of(data, &bbox);
        let mut run_box = bbox.clone();
        run_box.hi[axis] = run_box.hi[axis].min(run_box.lo[axis] + kept);
        let mut outputs = sort_outputs(run_results, dtype, &run_box);
        run(Kernel::SortRun(Sorting { results: run_results, ..sorting }), true, &[&block], &mut outputs).unwrap();
        outputs.into_iter().zip(&mut runs).for_each(|(output, runs)| runs.push(output));
    }
    let mut wanted = whole.clone();
    wanted[axis] = kept.min(whole[axis]);
    for out_box in parts_along(dice, &wanted, axis, u64::MAX) {
        let mut outputs = sort_outputs(sorting.results, dtype, &out_box);
        let operands: Vec<&Block> = runs.iter().flatten().collect();
        run(Kernel::SortMerge(sorting), true, &operands, &mut outputs).unwrap();
        for at in points(&out_box) {
            let (value, position) = sorted_row(data, &at, axis, sorting.spec.descending)[at[axis] as usize];
            let position = Scalar::I64(position as i64);
            let expected: &[Scalar] = match sorting.results {
                SortResults::Both => &[value, position],
                SortResults::Values => &[value],
                SortResults::Positions => &[position],
            };
            let same = |(block, value): (&Block, &Scalar)| block.get(&at).is_some_and(|found| found == *value);
            assert!(outputs.iter().zip(expected).all(same), "seed {seed}, {sorting:?} at {at:?}");
        }
    }
}

/// The types that have an order.
fn ordered() -> Vec<DType> {
    DType::PHYSICAL.into_iter().filter(|dtype| BinaryOp::Lt.result(*dtype).is_some()).collect()
}

#[test]
fn sorted_runs_merge_into_the_sorted_tensor() {
    for seed in 0..240 {
        let dice = &mut Dice::new(seed);
        let rank = 1 + dice.below(3);
        let whole = random_shape(dice, rank);
        let axis = dice.below(rank);
        let dtype = dice.pick(&ordered());
        let results = dice.pick(&[SortResults::Both, SortResults::Values, SortResults::Positions]);
        let sorting = Sorting { spec: SortSpec { axis: axis as u32, descending: dice.one_in(2) }, results };
        let kept = if dice.one_in(3) { 1 + dice.below(whole[axis].max(1) as usize) as u64 } else { whole[axis] };
        let data = Arc::new(dice.array(&whole, dtype, true));
        check_sort(dice, &data, sorting, kept, seed);
    }
}

#[test]
fn long_rows_are_sorted_by_digits() {
    for (seed, dtype) in ordered().into_iter().enumerate() {
        for (axis, shape) in [(0, vec![20_000]), (0, vec![6000, 3]), (1, vec![2, 9000])] {
            let dice = &mut Dice::new(seed as u64);
            let data = Arc::new(dice.array(&shape, dtype, true));
            for results in [SortResults::Values, SortResults::Both] {
                let sorting = Sorting { spec: SortSpec { axis: axis as u32, descending: seed % 2 == 1 }, results };
                let mut outputs = sort_outputs(results, dtype, &BoxRegion::whole(&shape));
                let block = Block::view_of(&data, &BoxRegion::whole(&shape)).unwrap();
                run(Kernel::SortRun(sorting), true, &[&block], &mut outputs).unwrap();
                for across in 0..shape.iter().product::<u64>() / shape[axis] {
                    let mut at = vec![across; shape.len()];
                    at[axis] = 0;
                    for (k, (value, position)) in
                        sorted_row(&data, &at, axis, sorting.spec.descending).into_iter().enumerate()
                    {
                        at[axis] = k as u64;
                        assert!(outputs[0].get(&at).is_some_and(|found| found == value), "{dtype} {at:?}");
                        if let [_, positions] = outputs.as_slice() {
                            assert_eq!(positions.get(&at), Some(Scalar::I64(position as i64)), "{dtype} {at:?}");
                        }
                    }
                }
            }
        }
    }
}

/// An array whose elements repeat, are all alike, or hardly ever are.
fn values(dice: &mut Dice, shape: &[u64], kind: usize) -> Array {
    let n = shape.iter().product::<u64>() as usize;
    let elements = (0..n).map(|k| match kind {
        0 => dice.below(1 << 30) as f64,
        1 => dice.below(5) as f64,
        2 => 7.0,
        _ => k as f64,
    });
    Array::new(shape.to_vec(), Array::from_f64(&elements.collect::<Vec<_>>()).into_data()).unwrap()
}

/// Runs of several pieces, some in memory and some on disk, merge into the same bits as if all were in memory.
#[test]
fn spilled_runs_merge_as_those_in_memory() {
    let directory = std::env::temp_dir().join(format!("tw-merge-test-{}", std::process::id()));
    let file = SpillFile::new(&directory, None);
    for seed in 0..48 {
        let dice = &mut Dice::new(seed);
        let rows = 1 + dice.below(3) as u64;
        let whole = if dice.one_in(2) { vec![150_000] } else { vec![rows, 60_000 + dice.below(9000) as u64] };
        let axis = whole.len() - 1;
        let results = dice.pick(&[SortResults::Both, SortResults::Values, SortResults::Positions]);
        let sorting = Sorting { spec: SortSpec { axis: axis as u32, descending: dice.one_in(2) }, results };
        let data = Arc::new(values(dice, &whole, (seed % 4) as usize));
        let run_results = if results == SortResults::Values { SortResults::Values } else { SortResults::Both };
        let n_runs = 1 + dice.below(9) as u64;
        let mut runs: [Vec<Block>; 2] = Default::default();
        let cut = tw_ir::Axis::uniform(whole[axis], whole[axis].div_ceil(n_runs));
        for tile in 0..cut.n_tiles() {
            let mut bbox = BoxRegion::whole(&whole);
            (bbox.lo[axis], bbox.hi[axis]) = (cut.range(tile).start, cut.range(tile).end);
            let block = Block::view_of(&data, &bbox).unwrap();
            let mut outputs = sort_outputs(run_results, DType::F64, &bbox);
            run(Kernel::SortRun(Sorting { results: run_results, ..sorting }), true, &[&block], &mut outputs).unwrap();
            outputs.into_iter().zip(&mut runs).for_each(|(output, runs)| runs.push(output));
        }
        let spilled: Vec<_> = runs.iter().flatten().map(|run| file.write(run).unwrap()).collect();
        let on_disk = |(block, spilled)| if dice.one_in(4) { Streamed::Memory(block) } else { Streamed::Disk(spilled) };
        let streamed: Vec<Streamed<'_>> = runs.iter().flatten().zip(&spilled).map(on_disk).collect();
        let out_cut = tw_ir::Axis::uniform(whole[axis], whole[axis].div_ceil(1 + dice.below(7) as u64));
        let outputs = || -> Vec<Block> {
            let tiles = (0..out_cut.n_tiles()).flat_map(|tile| {
                let mut bbox = BoxRegion::whole(&whole);
                (bbox.lo[axis], bbox.hi[axis]) = (out_cut.range(tile).start, out_cut.range(tile).end);
                sort_outputs(results, DType::F64, &bbox)
            });
            tiles.collect()
        };
        let (mut expected, mut found) = (outputs(), outputs());
        let operands: Vec<&Block> = runs.iter().flatten().collect();
        run(Kernel::SortMerge(sorting), true, &operands, &mut expected).unwrap();
        CompiledKernel::compile(&Kernel::SortMerge(sorting)).unwrap().run_streamed(&streamed, &mut found).unwrap();
        let same = expected.iter().zip(&found).all(|(a, b)| a.data() == b.data());
        assert!(same, "seed {seed}, {sorting:?}");
        assert!(spilled.iter().all(|spilled| spilled.read(&Meter::new()).is_ok()));
    }
    std::fs::remove_dir_all(&directory).unwrap();
}
