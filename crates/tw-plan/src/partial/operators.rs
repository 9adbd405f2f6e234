//! Partial evaluation of all operators other than index statements.
//!
//! **Gather and scatter.** The planner does not know which data block a computed index names. So each index block of a gather meets all data blocks along the gathered
//! axis in one task, which looks each index up once; a single index block meets them one after the other, so that each can be deleted early. Constant indices are known while
//! planning: `x[[3, 4]]` reads only the blocks with rows 3 and 4. A scatter pairs each index block with each output block; output blocks have up to 64 MiB along the scattered axes,
//! so all but very large outputs have one. Rejected for now: routing contributions to output blocks in a pass of their own.

use std::ops::Range;
use std::sync::Arc;

use tw_ir::error::{Blame, Error, Result};
use tw_ir::index::Edge;
use tw_ir::kernel::Kernel;
use tw_ir::plan::{PlanStep, RelId, RelOp};
use tw_ir::program::{BlockFn, ResultMode};
use tw_ir::spec::{GatherSpec, ScanSpec, ScatterSpec};
use tw_ir::workflow::{BlockId, BlockSetId, Boxes, MaybeOperand, Operand, SourceDecl, TaskKind};
use tw_ir::{Array, Axis, BoxRegion, Grid, Scalar};

use super::chains::Chains;
use super::{Odometer, Partial};

impl Partial<'_> {
    /// Inputs one after the other; with one input, the same tensor under another grid.
    pub(super) fn concat(&mut self, step: &PlanStep, axis: u32) -> Result<()> {
        let output = step.outputs[0];
        let k = axis as usize;
        let mut shift = 0;
        let mut parts = Vec::new();
        for &input in &step.inputs {
            let extent = self.plan.relations[input].shape.get(k).copied().unwrap_or(0);
            let kernel = self.kernel(Kernel::Place { axis, shift }, step.statement);
            parts.push((input, shift, extent, kernel));
            shift += extent;
        }
        let set = self.sets[&output];
        for position in 0..self.workflow.sets[set].n_blocks() {
            let block = self.workflow.block(set, position);
            let whole = self.workflow.block_box(block);
            let mut tasks = Vec::new();
            for &(input, shift, extent, kernel) in &parts {
                let mut region = whole.clone();
                if let (Some(lo), Some(hi)) = (region.lo.get_mut(k), region.hi.get_mut(k)) {
                    *lo = lo.saturating_sub(shift);
                    *hi = hi.saturating_sub(shift).min(extent);
                }
                if !region.is_empty() {
                    tasks.push((kernel, self.overlapping(input, &region)));
                }
            }
            let kind = if tasks.len() == 1 { TaskKind::Apply } else { TaskKind::Fold };
            for (turn, (kernel, operands)) in tasks.iter().enumerate() {
                self.task(kind, *kernel, 0, turn as u32, operands, &[block])?;
            }
        }
        Ok(())
    }

    /// Totals per block, a running state along the axis, then each block on its own.
    pub(super) fn scan(&mut self, step: &PlanStep, spec: &ScanSpec) -> Result<()> {
        let ScanSpec { ref accum, axis, reverse, .. } = *spec;
        let k = axis as usize;
        let relation = self.plan.relations[step.outputs[0]].clone();
        let n_tiles = relation.grid[k].n_tiles();
        let mut state_grid = relation.grid.clone();
        state_grid[k] = Axis::uniform(n_tiles, 1);
        let state_shape = state_grid.shape();
        let state_sets = |partial: &mut Self, what: &str| -> Result<Vec<BlockSetId>> {
            let name = format!("{} ({what})", relation.name);
            let types = accum.state_types();
            types
                .iter()
                .map(|&dtype| {
                    partial.add_set(&name, dtype, &state_shape, Boxes::Grid(state_grid.clone()), step.statement)
                })
                .collect()
        };
        let (totals, carried) = (state_sets(self, "totals")?, state_sets(self, "carried")?);
        let total = self.kernel(Kernel::ScanTotal { accum: accum.clone(), axis, reverse }, step.statement);
        let carry = self.kernel(Kernel::ScanCarry(accum.clone()), step.statement);
        let block = self.kernel(Kernel::ScanBlock(spec.clone()), step.statement);

        let blocks = |partial: &Self, sets: &[BlockSetId], position: u64| -> Vec<BlockId> {
            sets.iter().map(|&set| partial.workflow.block(set, position)).collect()
        };
        let as_operands = |blocks: &[BlockId]| -> Vec<MaybeOperand> {
            blocks.iter().map(|&block| Operand::whole(block).into()).collect()
        };
        let mut fibres = relation.grid.clone();
        fibres[k] = Axis::whole(1);
        for fibre in Odometer::over(&fibres) {
            // The carry: nothing at first, then the total of the first block, then carried states.
            let mut before: Option<Vec<BlockId>> = None;
            for turn in 0..n_tiles {
                let mut coords = fibre.clone();
                coords[k] = if reverse { n_tiles - 1 - turn } else { turn };
                let position = relation.grid.position(&coords);
                let bodies: Vec<MaybeOperand> = step.inputs.iter().map(|&r| self.whole(r, position)).collect();
                let mut operands = bodies.clone();
                operands.extend(before.iter().flat_map(|states| as_operands(states)));
                let outputs: Vec<BlockId> = step.outputs.iter().map(|&r| self.block_at(r, position)).collect();
                self.task(TaskKind::Apply, block, 0, 0, &operands, &outputs)?;
                if turn + 1 == n_tiles {
                    break;
                }
                let sums = blocks(self, &totals, position);
                self.task(TaskKind::Apply, total, 0, 0, &bodies, &sums)?;
                before = Some(match before {
                    None => sums,
                    Some(states) => {
                        let next = blocks(self, &carried, position);
                        let operands = [as_operands(&states), as_operands(&sums)].concat();
                        self.task(TaskKind::Apply, carry, 0, 0, &operands, &next)?;
                        next
                    }
                });
            }
        }
        Ok(())
    }

    /// The elements of a relation that is known while planning.
    fn constant(&self, relation: RelId) -> Option<Arc<Array>> {
        let step = self.plan.steps.iter().find(|step| step.outputs.contains(&relation))?;
        match (&step.op, &step.inputs[..]) {
            (RelOp::Load { source }, _) => match &self.plan.sources[*source] {
                SourceDecl::Constant(array) => Some(array.clone()),
                SourceDecl::Input { .. } => None,
            },
            (RelOp::Retile, &[input]) => self.constant(input),
            _ => None,
        }
    }

    /// Every index block meets the data blocks it names, if that is known. Otherwise it meets all data blocks along the gathered axes: one after the other if it is the only one, so that each may go after its
    /// turn; else all at once. They would stay for the next index block anyway, and every index is then looked up only once.
    pub(super) fn gather(&mut self, step: &PlanStep, spec: &GatherSpec, fill: Scalar) -> Result<()> {
        let GatherSpec { ref axes, edge } = *spec;
        let data = self.plan.relations[step.inputs[0]].clone();
        let index_grid = self.plan.relations[step.inputs[1]].grid.clone();
        let out_grid = self.plan.relations[step.outputs[0]].grid.clone();
        let tiles: Vec<u64> = axes.iter().map(|&a| data.grid[a as usize].n_tiles()).collect();
        let n_data: u64 = tiles.iter().product();
        if n_data == 0 && edge != Edge::Fill && out_grid.iter().all(|axis| axis.extent() > 0) {
            return Err(Error::indices(Blame::Data, "an index into an axis that has no elements"));
        }
        let known: Option<Vec<Arc<Array>>> = step.inputs[1..].iter().map(|&index| self.constant(index)).collect();
        let at_once = index_grid.iter().any(|axis| axis.n_tiles() > 1);
        let kernel = Kernel::Gather { spec: spec.clone(), shape: data.shape.clone(), fill };
        let chains = Chains::new(self, step, kernel, None, vec![fill], 1)?;
        let parts: Vec<u32> = if known.is_some() { Vec::new() } else { (0..n_data as u32).collect() };
        let turns = if at_once { &parts[..parts.len().min(1)] } else { &parts[..] };
        let first = axes[0] as usize;
        for (position, out) in Odometer::over(&out_grid).enumerate() {
            let index_coords = &out[first..first + index_grid.len()];
            let others: Vec<u64> = out[..first].iter().chain(&out[first + index_grid.len()..]).copied().collect();
            let index_position = index_grid.position(index_coords);
            let data_position = |part: u64| {
                let along = tw_ir::shape::unravel(part, &tiles);
                let mut rest = others.iter();
                let coords: Vec<u64> = (0..data.grid.len() as u32)
                    .map(|axis| match axes.iter().position(|&a| a == axis) {
                        Some(k) => along[k],
                        None => rest.next().copied().unwrap_or(0),
                    })
                    .collect();
                data.grid.position(&coords)
            };
            if let Some(known) = &known {
                // Only blocks that are named, in runs of neighbours.
                let named = named_tiles(known, &index_grid.box_of(index_position), axes, &data.grid, edge);
                let turns: Vec<u32> = (0..named.len() as u32).collect();
                chains.emit(self, position as u64, &turns, |partial, turn, operands| {
                    for along in Odometer::new(named[turn as usize].clone()) {
                        let part = tw_ir::shape::ravel(&along, &tiles);
                        operands.push(partial.whole(step.inputs[0], data_position(part)));
                    }
                    operands.extend(step.inputs[1..].iter().map(|&r| partial.whole(r, index_position)));
                    Ok(())
                })?;
                continue;
            }
            chains.emit(self, position as u64, turns, |partial, turn, operands| {
                let met = if at_once { &parts[..] } else { &[turn] };
                operands.extend(met.iter().map(|&part| partial.whole(step.inputs[0], data_position(part.into()))));
                operands.extend(step.inputs[1..].iter().map(|&r| partial.whole(r, index_position)));
                Ok(())
            })?;
        }
        Ok(())
    }

    /// Every index block meets every output block along the scattered axes.
    pub(super) fn scatter(&mut self, step: &PlanStep, spec: &ScatterSpec, chains: u32) -> Result<()> {
        let ScatterSpec { axes, accum, .. } = spec;
        let output = self.plan.relations[step.outputs[0]].clone();
        let (indices, values) = step.inputs.split_at(axes.len());
        let index_grid = self.plan.relations[indices[0]].grid.clone();
        let value_grid = self.plan.relations[values[0]].grid.clone();
        let kernel = Kernel::Scatter { spec: spec.clone(), shape: output.shape.clone() };
        let chains = Chains::new(self, step, kernel, Some(accum), accum.identity.clone(), chains)?;
        let parts: Vec<u32> = (0..index_grid.n_blocks() as u32).collect();
        let first = axes[0] as usize;
        for (position, out) in Odometer::over(&output.grid).enumerate() {
            let others: Vec<u64> =
                out.iter().enumerate().filter(|(axis, _)| !axes.contains(&(*axis as u32))).map(|(_, &c)| c).collect();
            chains.emit(self, position as u64, &parts, |partial, part, operands| {
                let mut coords = others.clone();
                coords.splice(first..first, index_grid.coords(part.into()));
                operands.extend(indices.iter().map(|&r| partial.whole(r, part as u64)));
                operands.extend(values.iter().map(|&r| partial.whole(r, value_grid.position(&coords))));
                Ok(())
            })?;
        }
        Ok(())
    }

    /// One call per key of the function's grid.
    pub(super) fn block_fn(&mut self, step: &PlanStep, call: &BlockFn) -> Result<()> {
        let grids: Vec<Grid> = step.inputs.iter().map(|&r| self.plan.relations[r].grid.clone()).collect();
        let mut n_tiles: Vec<u64> = Vec::new();
        for (modes, grid) in call.operands.iter().zip(&grids) {
            for (mode, axis) in modes.iter().zip(grid) {
                if let Some((g, cut)) = mode.grid(axis) {
                    n_tiles.resize(n_tiles.len().max(g + 1), 0);
                    n_tiles[g] = cut.n_tiles();
                }
            }
        }
        let region = |operand: usize, key: &[u64]| -> BoxRegion {
            BoxRegion::from_ranges(call.operands[operand].iter().zip(&grids[operand]).map(|(mode, axis)| {
                match mode.tile(|g| key[g]) {
                    Some(tile) => axis.range(tile),
                    None => 0..axis.extent(),
                }
            }))
        };
        let keys = || Odometer::new(n_tiles.iter().map(|&n| 0..n).collect());
        for (operand, &input) in step.inputs.iter().enumerate() {
            // A function wants to see its empty operands too, so those are made as blocks of their own.
            let regions = keys()
                .map(|key| region(operand, &key))
                .filter(|r| r.is_empty() || self.spans_blocks(input, r))
                .collect();
            self.assemble(input, regions, step.statement)?;
        }
        let mut empty_results = Vec::new();
        for (result, &output) in call.results.iter().zip(&step.outputs) {
            let grid = &self.plan.relations[output].grid;
            let boxes = keys().map(|key| result_box(&result.modes, grid, &key)).collect();
            empty_results.push(self.empty_result(step, output, boxes)?);
        }
        let kernel = self.kernel(Kernel::Call(call.function.clone()), step.statement);
        for (turn, key) in keys().enumerate() {
            let mut operands = Vec::new();
            for (operand, &input) in step.inputs.iter().enumerate() {
                let region = region(operand, &key);
                operands.push(match self.assembled.get(&(input, region.clone())) {
                    Some(&block) => Operand::whole(block).into(),
                    None => self.operand_for(input, &region)?,
                });
            }
            let outputs: Vec<BlockId> = call
                .results
                .iter()
                .zip(&step.outputs)
                .zip(&empty_results)
                .map(|((result, &output), empty)| {
                    if let Some(set) = empty {
                        return self.workflow.block(*set, turn as u64);
                    }
                    let coords: Vec<u64> = result
                        .modes
                        .iter()
                        .map(|mode| match mode {
                            ResultMode::Grid(g) | ResultMode::PerBlock(g, _) => key[*g as usize],
                            ResultMode::Whole(_) => 0,
                        })
                        .collect();
                    self.block_at(output, self.plan.relations[output].grid.position(&coords))
                })
                .collect();
            self.task(TaskKind::Apply, kernel, 0, 0, &operands, &outputs)?;
        }
        Ok(())
    }

    /// Blocks for a result without elements: it has none in its grid, but every call must write somewhere.
    fn empty_result(&mut self, step: &PlanStep, output: RelId, boxes: Vec<BoxRegion>) -> Result<Option<BlockSetId>> {
        let relation = &self.plan.relations[output];
        if relation.n_blocks() > 0 {
            return Ok(None);
        }
        let (name, dtype, shape) = (relation.name.clone(), relation.dtype, relation.shape.clone());
        Ok(Some(self.add_set(&name, dtype, &shape, Boxes::List(boxes), step.statement)?))
    }
}

/// The tiles of data that the indices in a box name, as boxes of tiles along the gathered axes that do not meet.
fn named_tiles(
    indices: &[Arc<Array>],
    region: &BoxRegion,
    axes: &[u32],
    grid: &[Axis],
    edge: Edge,
) -> Vec<Vec<Range<u64>>> {
    let shape = indices[0].shape();
    let strides = tw_ir::shape::row_major_strides(shape);
    let cuts: Vec<&Axis> = axes.iter().map(|&axis| &grid[axis as usize]).collect();
    let n_tiles: Vec<u64> = cuts.iter().map(|cut| cut.n_tiles()).collect();
    let mut named = Vec::new();
    let mut n_points = 0u64;
    for point in Odometer::new((0..region.rank()).map(|axis| region.range(axis)).collect()) {
        n_points += 1;
        let at: u64 = point.iter().zip(&strides).map(|(at, stride)| at * stride).sum();
        // The row-major position of the tile, unless the point names none.
        named.extend(indices.iter().zip(&cuts).try_fold(0, |tile, (index, cut)| {
            let place = edge.apply(index.at(at as usize).as_i64(), cut.extent())?;
            Some(tile * cut.n_tiles() + cut.tile_of(place))
        }));
    }
    named.sort_unstable();
    named.dedup();
    boxes_of(&named, &n_tiles, n_points)
}

/// Boxes that do not meet and have all tiles of a sorted list in them: no other tiles, if the boxes are few. Every box looks at all index points.
fn boxes_of(named: &[u64], n_tiles: &[u64], n_points: u64) -> Vec<Vec<Range<u64>>> {
    /// Boxes that are always allowed.
    const FEW: u64 = 64;
    /// Points that all boxes together may look at; beyond, tiles in between are better read in vain.
    const MOST_LOOKS: u64 = 1 << 22;
    let most = (MOST_LOOKS / n_points.max(1)).max(FEW) as usize;
    let Some(&last_extent) = n_tiles.last() else { return Vec::new() };
    let tiles: Vec<Vec<u64>> = named.iter().map(|&tile| tw_ir::shape::unravel(tile, n_tiles)).collect();
    let whole = hull(&tiles, n_tiles.len());
    let volume = whole.iter().fold(1u64, |n, range| n.saturating_mul(range.end - range.start));
    if volume == named.len() as u64 {
        return if named.is_empty() { Vec::new() } else { vec![whole] };
    }
    // Neighbours along the last axis.
    let follows = |a: &u64, b: &u64| a + 1 == *b && !b.is_multiple_of(last_extent);
    let n_runs = named.chunk_by(follows).count();
    if n_runs <= most {
        let mut rest = &tiles[..];
        return named
            .chunk_by(follows)
            .map(|run| {
                let (here, after) = rest.split_at(run.len());
                rest = after;
                hull(here, n_tiles.len())
            })
            .collect();
    }
    // Groups of tiles with the widest gaps between them, along the axis on which most tiles are told apart.
    let mut along: Vec<Vec<u64>> = (0..n_tiles.len()).map(|k| tiles.iter().map(|tile| tile[k]).collect()).collect();
    for places in &mut along {
        places.sort_unstable();
        places.dedup();
    }
    let axis = (0..along.len()).max_by_key(|&k| (along[k].len(), std::cmp::Reverse(k))).unwrap_or(0);
    let mut gaps: Vec<(u64, u64)> = along[axis].windows(2).map(|pair| (pair[1] - pair[0], pair[1])).collect();
    gaps.sort_unstable_by_key(|&(width, start)| (std::cmp::Reverse(width), start));
    let mut starts: Vec<u64> =
        gaps.iter().take(most - 1).filter(|(width, _)| *width > 1).map(|&(_, start)| start).collect();
    starts.sort_unstable();
    let mut groups: Vec<Vec<Vec<u64>>> = vec![Vec::new(); starts.len() + 1];
    for tile in tiles {
        let group = starts.partition_point(|&start| start <= tile[axis]);
        groups[group].push(tile);
    }
    groups.iter().map(|group| hull(group, n_tiles.len())).collect()
}

/// The smallest box that has all tiles.
fn hull(tiles: &[Vec<u64>], rank: usize) -> Vec<Range<u64>> {
    let along = |k: usize| {
        let places = || tiles.iter().map(|tile| tile[k]);
        places().min().zip(places().max()).map_or(0..0, |(first, last)| first..last + 1)
    };
    (0..rank).map(along).collect()
}

/// The box that one call of a block function writes.
fn result_box(modes: &[ResultMode], grid: &[Axis], key: &[u64]) -> BoxRegion {
    BoxRegion::from_ranges(modes.iter().zip(grid).map(|(mode, axis)| match mode {
        ResultMode::Grid(g) | ResultMode::PerBlock(g, _) => axis.range(key[*g as usize]),
        ResultMode::Whole(n) => 0..*n,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Volumes of boxes, after a look that every tile is in exactly one.
    fn volumes(tiles: &[[u64; 2]], n_tiles: [u64; 2], n_points: u64) -> Vec<u64> {
        let mut named: Vec<u64> = tiles.iter().map(|tile| tw_ir::shape::ravel(tile, &n_tiles)).collect();
        named.sort_unstable();
        named.dedup();
        let boxes = boxes_of(&named, &n_tiles, n_points);
        for tile in tiles {
            let has = |found: &&Vec<Range<u64>>| found.iter().zip(tile).all(|(range, at)| range.contains(at));
            assert_eq!(boxes.iter().filter(has).count(), 1, "{tile:?} in {boxes:?}");
        }
        boxes.iter().map(|found| found.iter().map(|range| range.end - range.start).product()).collect()
    }

    #[test]
    fn tiles_that_no_index_names_are_in_no_box() {
        assert!(volumes(&[], [10, 10], 1).is_empty());
        assert_eq!(volumes(&[[3, 4]], [10, 10], 1), [1]);
        assert_eq!(volumes(&[[0, 0], [1 << 20, 1 << 20]], [1 << 21, 1 << 21], 2), [1, 1]);
        // Runs of neighbours, which end where a row of tiles does.
        assert_eq!(volumes(&[[0, 8], [0, 9], [1, 0], [1, 1]], [10, 10], 4), [2, 2]);
        assert_eq!(volumes(&[[2, 3], [2, 4], [3, 3], [3, 4]], [10, 10], 4), [4]);
        assert_eq!(volumes(&[[0, 0], [0, 1], [70, 0], [70, 1]], [100, 2], 4), [2, 2]);
    }

    #[test]
    fn few_points_have_as_many_boxes_as_they_name_tiles() {
        let tiles: Vec<[u64; 2]> = (0..1000).map(|k| [k * 7919 % 1009, k * 104_729 % 997]).collect();
        assert_eq!(volumes(&tiles, [1009, 997], 1000), vec![1; 1000]);
        // For many points that would be too many looks: boxes have tiles in between, as few as gaps allow.
        let found = volumes(&tiles, [1009, 997], 1 << 20);
        assert!(found.len() <= 64, "{found:?}");
        let spread: Vec<[u64; 2]> = (0..100).map(|k| [(k / 10) * 1000 + k % 10 * 2, 0]).collect();
        // Ten groups of ten tiles with one between neighbours: the groups are apart, and 54 of the tiles between are left out.
        let found = volumes(&spread, [10_000, 1], 1 << 20);
        assert_eq!((found.len(), found.iter().sum::<u64>()), (64, 10 * 19 - 54));
    }
}
