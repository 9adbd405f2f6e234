//! Lowering of all operators other than index statements.

use tw_ir::error::{Error, Result};
use tw_ir::index::Access;
use tw_ir::kernel::{SortResults, Sorting};
use tw_ir::plan::{RelId, RelOp};
use tw_ir::program::{BlockFn, Node, Op, ValueId};
use tw_ir::spec::{GatherSpec, ScanSpec, ScatterSpec, SortSpec};
use tw_ir::workflow::{SourceDecl, StmtId};
use tw_ir::{Axis, Grid, OnEmpty, Tiling};

use super::Lowering;
use crate::tile::shrink;
use tw_ir::tiling::cut_leading;

impl Lowering<'_> {
    pub(super) fn relations_of(&self, node: &Node) -> Result<Vec<RelId>> {
        node.args.iter().map(|&value| self.relation(value)).collect()
    }

    fn grid(&self, relation: RelId) -> Grid {
        self.plan.relations[relation].grid.clone()
    }

    fn align(&mut self, relations: &mut [RelId], grid: &Grid, statement: StmtId) -> Result<()> {
        for relation in relations {
            *relation = self.with_grid(*relation, grid, statement)?;
        }
        Ok(())
    }

    pub(super) fn scan(&mut self, node: &Node, spec: &ScanSpec, statement: StmtId) -> Result<()> {
        let mut inputs = self.relations_of(node)?;
        let grid = self.grid(inputs[0]);
        self.align(&mut inputs, &grid, statement)?;
        let outputs = node.results.iter().map(|&value| self.define(value, grid.clone())).collect::<Result<_>>()?;
        self.step(RelOp::Scan(spec.clone()), inputs, outputs, statement);
        Ok(())
    }

    /// A result without readers is not computed: without positions, a sort moves at most half of the bytes.
    pub(super) fn sort(
        &mut self,
        node: &Node,
        (spec, limit): (SortSpec, Option<u64>),
        statement: StmtId,
    ) -> Result<()> {
        let mut inputs = self.relations_of(node)?;
        let mut grid = self.grid(inputs[0]);
        if let Some(limit) = limit {
            let (axis, cut) = (spec.axis, &mut grid[spec.axis as usize]);
            if limit > cut.extent() {
                return Err(Error::data(format!("the first {limit} of {} elements along axis {axis}", cut.extent())));
            }
            *cut = first_part(cut, limit);
        }
        let is_read = |value: &ValueId| self.readers.contains_key(value);
        let results = match (is_read(&node.results[0]), is_read(&node.results[1])) {
            (true, false) => SortResults::Values,
            (false, true) => SortResults::Positions,
            _ => SortResults::Both,
        };
        let wanted = match results {
            SortResults::Both => &node.results[..],
            SortResults::Values => &node.results[..1],
            SortResults::Positions => &node.results[1..],
        };
        let outputs = wanted.iter().map(|&value| self.define(value, grid.clone())).collect::<Result<Vec<_>>>()?;
        let sort = RelOp::Sort(Sorting { spec, results });
        let fibres = with_whole_fibres(&grid, spec.axis as usize).filter(|_| limit.is_none());
        let Some(fibres) = fibres else {
            self.step(sort, inputs, outputs, statement);
            return Ok(());
        };
        inputs[0] = self.with_grid(inputs[0], &fibres, statement)?;
        let on_fibres = |&output: &RelId| {
            let (name, dtype) = (self.plan.relations[output].name.clone(), self.plan.relations[output].dtype);
            self.new_relation(name, dtype, fibres.clone())
        };
        let sorted: Vec<RelId> = outputs.iter().map(on_fibres).collect();
        self.step(sort, inputs, sorted.clone(), statement);
        for (sorted, output) in sorted.into_iter().zip(outputs) {
            self.step(RelOp::Retile, vec![sorted], vec![output], statement);
        }
        Ok(())
    }

    pub(super) fn gather(&mut self, node: &Node, spec: &GatherSpec, statement: StmtId) -> Result<()> {
        let mut inputs = self.relations_of(node)?;
        let data = self.grid(inputs[0]);
        let index_grid = self.cut_of_reader(node, spec.axes[0] as usize).unwrap_or_else(|| self.grid(inputs[1]));
        let (index_grid, grid) = small_gathers(&data, spec, index_grid, self.program.ty(node.results[0]).dtype.size());
        self.align(&mut inputs[1..], &index_grid, statement)?;
        let output = self.define(node.results[0], grid)?;
        let fill = self.program.ty(node.args[0]).fill;
        self.step(RelOp::Gather { spec: spec.clone(), fill }, inputs, vec![output], statement);
        Ok(())
    }

    /// The cut of the index axes of a gather by constants, if its only reader is a statement that reads another tensor of the same shape at the same points, and that was made before: the cut of
    /// this tensor. So `x - means[day]` gathers as much as a block of `x` needs, and never all days at once. Computed indices keep their cut: each of their blocks meets all blocks of the data.
    fn cut_of_reader(&self, node: &Node, first: usize) -> Option<Grid> {
        let (value, indices) = (node.results[0], node.args.get(1..)?);
        let is_constant = |arg: &ValueId| self.relation(*arg).is_ok_and(|relation| self.is_constant(relation));
        if self.readers.get(&value) != Some(&1) || !indices.iter().all(is_constant) {
            return None;
        }
        let reader = self.program.body.nodes.iter().find(|other| other.args.contains(&value))?;
        let Op::Index(stmt) = &reader.op else { return None };
        let arg_of = |read: &Access| reader.args[read.operand as usize];
        let own = stmt.reads.iter().find(|read| arg_of(read) == value)?;
        let besides = stmt.reads.iter().filter(|read| arg_of(read) != value && read.idx == own.idx);
        let shape = self.program.ty(value).require_shape().ok()?;
        let grid = besides
            .filter_map(|read| Some(self.grid(self.relation(arg_of(read)).ok()?)))
            .find(|grid| grid.shape() == shape)?;
        let index_rank = self.program.ty(indices[0]).require_shape().ok()?.len();
        Some(grid.iter().skip(first).take(index_rank).cloned().collect())
    }

    /// True if the elements of a relation are known while planning.
    fn is_constant(&self, relation: RelId) -> bool {
        let step = self.plan.steps.iter().find(|step| step.outputs.contains(&relation));
        step.is_some_and(|step| match (&step.op, &step.inputs[..]) {
            (RelOp::Load { source }, _) => matches!(self.plan.sources[*source], SourceDecl::Constant(_)),
            (RelOp::Retile, &[input]) => self.is_constant(input),
            _ => false,
        })
    }

    pub(super) fn scatter(&mut self, node: &Node, spec: &ScatterSpec, statement: StmtId) -> Result<()> {
        let ScatterSpec { axes, accum, .. } = spec;
        let mut inputs = self.relations_of(node)?;
        let first = axes[0] as usize;
        let mut value_grid = self.grid(inputs[axes.len()]);
        let index_grid = self.cut_of_indices(&inputs, axes.len(), &value_grid[first..]);
        self.align(&mut inputs[..axes.len()], &index_grid, statement)?;
        // Values follow the indices along the index axes, and keep their own cut elsewhere.
        value_grid[first..first + index_grid.len()].clone_from_slice(&index_grid);
        self.align(&mut inputs[axes.len()..], &value_grid, statement)?;

        let shape = self.program.ty(node.results[0]).require_shape()?;
        let mut others = value_grid[..first].iter().chain(&value_grid[first + index_grid.len()..]).cloned();
        let given: Vec<Option<Axis>> =
            (0..shape.len() as u32).map(|axis| if axes.contains(&axis) { None } else { others.next() }).collect();
        let widest = accum.result_types().iter().map(|dtype| dtype.size()).max().unwrap_or(1);
        // A state that is not finished yet is there beside the results.
        let states: u64 = accum.state_types().iter().map(|dtype| dtype.size()).sum();
        let results: u64 = accum.result_types().iter().map(|dtype| dtype.size()).sum();
        let mut grid = match self.requested.get(&node.results[0]) {
            Some(grid) => grid.clone(),
            None => scattered_grid(&shape, &given, states.saturating_add(results)),
        };
        // The axes that are not scattered must keep the cut of the values, or blocks would not meet.
        for (axis, given) in grid.iter_mut().zip(&given) {
            if let Some(given) = given {
                *axis = given.clone();
            }
        }
        let tracked = accum.on_empty != OnEmpty::Identity;
        let state = if tracked { accum.with_presence()? } else { accum.clone() };
        let needs_finish = tracked || !accum.finish_is_identity();
        let outputs = if needs_finish {
            self.state_relations(node, &state, &grid)
        } else {
            node.results.iter().map(|&value| self.define(value, grid.clone())).collect::<Result<_>>()?
        };
        let operand_bytes = inputs.iter().fold(0u64, |sum, &r| sum.saturating_add(self.plan.relations[r].n_bytes()));
        let output_bytes = shape.iter().fold(widest, |bytes, &n| bytes.saturating_mul(n));
        // Every chain has a state of the whole output, which is then combined: work that a single chain would not do.
        let chains = self.n_chains(index_grid.n_blocks(), grid.n_blocks(), operand_bytes / CHAIN_SHARE, output_bytes);
        let op = RelOp::Scatter { spec: ScatterSpec { accum: state, ..spec.clone() }, chains };
        self.step(op, inputs, outputs.clone(), statement);
        if needs_finish {
            self.finish(node, accum.clone(), tracked, outputs, &grid, statement)?;
        }
        Ok(())
    }

    /// The cut of the indices of a scatter: their own, unless the values are several times as large and cut into more blocks. It then takes less to cut the indices as the values are than to put
    /// blocks of the values together.
    fn cut_of_indices(&self, inputs: &[RelId], n_indices: usize, of_values: &[Axis]) -> Grid {
        let own = self.grid(inputs[0]);
        let bytes = |inputs: &[RelId]| inputs.iter().map(|&input| self.plan.relations[input].n_bytes()).max();
        let (indices, values) = inputs.split_at(n_indices);
        let theirs: Grid = of_values[..own.len()].iter().cloned().collect();
        let is_small = bytes(indices).unwrap_or(0).saturating_mul(MANY_VALUES) <= bytes(values).unwrap_or(0);
        if is_small && theirs.n_blocks() > own.n_blocks() { theirs } else { own }
    }

    pub(super) fn concat(&mut self, node: &Node, axis: u32, statement: StmtId) -> Result<()> {
        let inputs = self.relations_of(node)?;
        let shape = self.program.ty(node.results[0]).require_shape()?;
        let dtype = self.program.ty(node.results[0]).dtype;
        let axis_position = axis as usize;
        // Keeping every boundary of the inputs makes each block a copy of one block; many tiny inputs are put into common blocks instead.
        let mut boundaries = vec![0u64];
        for &input in &inputs {
            let start = boundaries.last().copied().unwrap_or(0);
            boundaries.extend(
                self.plan.relations[input].grid[axis_position]
                    .boundaries()
                    .iter()
                    .filter(|&&b| b > 0)
                    .map(|b| start + b),
            );
        }
        let kept = Axis::from_boundaries(boundaries);
        let mut given: Vec<Option<Axis>> = self.grid(inputs[0]).iter().cloned().map(Some).collect();
        given[axis_position] = None;
        let mut even = self.tiler.complete(&shape, &given, dtype.size());
        // Every element is copied once, however thin the blocks are.
        self.tiler.shrink_to_wanted(&mut even, &[axis_position], dtype.size());
        if kept.n_tiles() <= 2 * even[axis_position].n_tiles() + 8 {
            given[axis_position] = Some(kept);
        } else {
            given[axis_position] = Some(even[axis_position].clone());
        }
        let grid = self.output_grid(node.results[0], &shape, &given, dtype);
        let output = self.define(node.results[0], grid)?;
        self.step(RelOp::Concat { axis }, inputs, vec![output], statement);
        Ok(())
    }

    pub(super) fn block_fn(&mut self, node: &Node, call: &BlockFn, statement: StmtId) -> Result<()> {
        let mut inputs = self.relations_of(node)?;
        for (input, &value) in inputs.iter_mut().zip(&node.args) {
            // The results depend on the cut the program says, so that is the one to use.
            if let Some(Tiling::Grid(grid)) = &self.program.ty(value).tiling {
                *input = self.with_grid(*input, grid, statement)?;
            }
        }
        let mut outputs = Vec::new();
        for &value in &node.results {
            match &self.program.ty(value).tiling {
                Some(Tiling::Grid(grid)) => outputs.push(self.define(value, grid.clone())?),
                _ => return Err(Error::internal("the result of a block function has no tiling")),
            }
        }
        self.step(RelOp::BlockFn(call.clone()), inputs, outputs, statement);
        Ok(())
    }
}

/// Most bytes of a block that is scattered into. Every block of indices is looked at once per block along the scattered axes, so there should be
/// few of those.
const SCATTERED_BYTES: u64 = 64 << 20;

/// Bytes of values for each byte of their indices from which on the indices are cut as the values are.
const MANY_VALUES: u64 = 4;

/// Bytes that are read for every byte of a further chain's state.
const CHAIN_SHARE: u64 = 4;

/// The tiling of the output of a scatter: other axes keep theirs; scattered axes stay whole unless blocks become too large.
fn scattered_grid(shape: &[u64], given: &[Option<Axis>], element_size: u64) -> Grid {
    let mut grid: Grid =
        shape.iter().zip(given).map(|(&n, axis)| axis.clone().unwrap_or_else(|| Axis::whole(n))).collect();
    let scattered: Vec<usize> = (0..shape.len()).filter(|&k| given[k].is_none()).collect();
    cut_leading(&mut grid, &scattered, (SCATTERED_BYTES / element_size.max(1)).max(1));
    grid
}

/// For a sort along another axis than the last one: blocks no larger than those of a grid, with whole fibres in each, so that there is nothing to merge. The elements of
/// a fibre lie far apart, so a merge of runs on disk would read every run once per fibre. `None` if fibres are whole already, if a single one is larger than a block, or if the
/// rechunk would name too many pairs of blocks.
fn with_whole_fibres(grid: &Grid, axis: usize) -> Option<Grid> {
    const MOST_PAIRS: u64 = 1 << 22;
    let largest = |grid: &Grid| grid.iter().fold(1u64, |n, axis| n.saturating_mul(axis.longest().max(1)));
    let is_spread = grid.iter().skip(axis + 1).any(|axis| axis.extent() > 1);
    let n_tiles = grid[axis].n_tiles();
    if n_tiles <= 1 || !is_spread {
        return None;
    }
    let mut whole = grid.clone();
    whole[axis] = Axis::whole(grid[axis].extent());
    let others: Vec<usize> = (0..grid.len()).filter(|&k| k != axis).collect();
    shrink(&mut whole, &others, largest(grid));
    let pairs = whole.n_blocks().saturating_mul(n_tiles);
    (largest(&whole) <= largest(grid) && pairs <= MOST_PAIRS).then_some(whole)
}

/// The first `n` elements of an axis, cut as they were.
fn first_part(axis: &Axis, n: u64) -> Axis {
    let before = axis.boundaries().into_iter().filter(|&boundary| boundary < n.max(1));
    Axis::from_boundaries(before.chain((n > 0).then_some(n)).collect())
}

/// Bytes of a block that a gather makes beyond which its indices are cut.
const GATHERED_BYTES: u64 = 32 << 20;

/// Bytes of a block that a gather makes where its indices are cut for it.
const CUT_BYTES: u64 = 8 << 20;

/// The cut of the indices of a gather, and that of its result: as given, unless blocks of the result would be large. Few long indices into blocks of long rows make such blocks.
fn small_gathers(data: &Grid, spec: &GatherSpec, indices: Grid, element_size: u64) -> (Grid, Grid) {
    const MOST_PAIRS: u64 = 1 << 20;
    let largest = |grid: &Grid| grid.iter().fold(element_size, |n, axis| n.saturating_mul(axis.longest().max(1)));
    let grid = splice(data, &spec.axes, &indices);
    if largest(&grid) <= GATHERED_BYTES {
        return (indices, grid);
    }
    let first = spec.axes[0] as usize;
    let of_indices: Vec<usize> = (first..first + indices.len()).collect();
    let mut cut = grid.clone();
    shrink(&mut cut, &of_indices, CUT_BYTES / element_size.max(1));
    if cut.n_blocks().saturating_mul(data.n_blocks()) > MOST_PAIRS {
        return (indices, grid);
    }
    (of_indices.iter().map(|&k| cut[k].clone()).collect(), cut)
}

/// The grid of a gather: index axes stand where the first gathered axis was.
fn splice(data: &[Axis], axes: &[u32], index: &[Axis]) -> Grid {
    let mut grid = Vec::new();
    for (axis, cut) in data.iter().enumerate() {
        if axes.first() == Some(&(axis as u32)) {
            grid.extend_from_slice(index);
        }
        if !axes.contains(&(axis as u32)) {
            grid.push(cut.clone());
        }
    }
    grid.into()
}
