//! Functions of blocks.

use super::points::for_each_point;
use crate::array::{Array, ArrayView};
use crate::error::{Error, Result};
use crate::grid::Grid;
use crate::program::{BlockFn, OperandMode, ResultMode, TensorType};
use crate::shape;
use crate::tiling::{Axis, BoxRegion, Tiling};

/// Calls the function once per block key, in row-major order of the keys.
pub(super) fn run(call: &BlockFn, types: &[&TensorType], operands: &[&Array]) -> Result<Vec<Array>> {
    let name = call.function.0.name();
    let grid = grid_of(call, types)?;
    let result_axes: Vec<Grid> = call.results.iter().map(|result| axes_of(&result.modes, &grid)).collect();
    let mut results: Vec<Array> = call
        .results
        .iter()
        .zip(&result_axes)
        .map(|(result, axes)| Array::zeros(&axes.shape(), result.dtype))
        .collect::<Result<_>>()?;
    for_each_point(&grid.tiles_per_axis(), |key| {
        let blocks: Vec<Array> = operands
            .iter()
            .zip(types)
            .zip(&call.operands)
            .map(|((array, ty), modes)| copy_out(array, &operand_box(ty, modes, key)?))
            .collect::<Result<_>>()?;
        let boxes: Vec<BoxRegion> =
            call.results.iter().zip(&result_axes).map(|(result, axes)| result_box(&result.modes, axes, key)).collect();
        let mut made: Vec<Array> = boxes
            .iter()
            .zip(&call.results)
            .map(|(region, result)| Array::zeros(&region.shape(), result.dtype))
            .collect::<Result<_>>()?;
        let views: Vec<ArrayView<'_>> = blocks.iter().map(Array::view).collect();
        call.function.0.apply(&views, &mut made)?;
        for ((block, region), result) in made.iter().zip(&boxes).zip(&mut results) {
            if block.shape() != region.shape() || block.dtype() != result.dtype() {
                return Err(Error::source(format!("`{name}` changed the shape or dtype of a result block")));
            }
            copy_in(block, region, result)?;
        }
        Ok(())
    })?;
    Ok(results)
}

/// The cut each grid number stands for: that of the first operand axis with the number.
fn grid_of(call: &BlockFn, types: &[&TensorType]) -> Result<Grid> {
    let mut grid: Vec<Option<Axis>> = Vec::new();
    for (ty, modes) in types.iter().zip(&call.operands) {
        for (axis, mode) in modes.iter().enumerate() {
            if *mode == OperandMode::Whole {
                continue;
            }
            if let Some((g, cut)) = mode.grid(tile_axis(ty, axis)?) {
                grid.resize(grid.len().max(g + 1), None);
                grid[g].get_or_insert(cut);
            }
        }
    }
    grid.into_iter().collect::<Option<_>>().ok_or_else(|| Error::internal("a block function skips a grid number"))
}

fn tile_axis(ty: &TensorType, axis: usize) -> Result<&Axis> {
    match &ty.tiling {
        Some(Tiling::Grid(axes)) => Ok(&axes[axis]),
        _ => Err(Error::internal("an operand of a block function has no grid")),
    }
}

fn axes_of(modes: &[ResultMode], grid: &[Axis]) -> Grid {
    modes
        .iter()
        .map(|mode| match *mode {
            ResultMode::Whole(n) => Axis::whole(n),
            ResultMode::Grid(g) => grid[g as usize].clone(),
            ResultMode::PerBlock(g, n) => Axis::uniform(n * grid[g as usize].n_tiles(), n),
        })
        .collect()
}

fn operand_box(ty: &TensorType, modes: &[OperandMode], key: &[i64]) -> Result<BoxRegion> {
    let shape = ty.require_shape()?;
    let ranges = modes.iter().enumerate().map(|(axis, mode)| match mode.tile(|g| key[g] as u64) {
        None => Ok(0..shape[axis]),
        Some(tile) => Ok(tile_axis(ty, axis)?.range(tile)),
    });
    Ok(BoxRegion::from_ranges(ranges.collect::<Result<Vec<_>>>()?))
}

fn result_box(modes: &[ResultMode], axes: &[Axis], key: &[i64]) -> BoxRegion {
    BoxRegion::from_ranges(modes.iter().zip(axes).map(|(mode, axis)| match *mode {
        ResultMode::Whole(n) => 0..n,
        ResultMode::Grid(g) | ResultMode::PerBlock(g, _) => axis.range(key[g as usize] as u64),
    }))
}

fn copy_out(array: &Array, region: &BoxRegion) -> Result<Array> {
    let mut block = Array::zeros(&region.shape(), array.dtype())?;
    for_each_element(region, array.shape(), |inside, outside| {
        block.data_mut().set(inside, array.at(outside));
    })?;
    Ok(block)
}

fn copy_in(block: &Array, region: &BoxRegion, array: &mut Array) -> Result<()> {
    let shape = array.shape().to_vec();
    for_each_element(region, &shape, |inside, outside| array.data_mut().set(outside, block.at(inside)))
}

/// Visits every element of a box with its row-major position in the box and in the whole tensor.
fn for_each_element(region: &BoxRegion, shape: &[u64], mut visit: impl FnMut(usize, usize)) -> Result<()> {
    let mut inside = 0;
    for_each_point(&region.shape(), |point| {
        let coords: Vec<u64> = point.iter().zip(&region.lo).map(|(&x, &lo)| lo + x as u64).collect();
        visit(inside, shape::ravel(&coords, shape) as usize);
        inside += 1;
        Ok(())
    })
}
