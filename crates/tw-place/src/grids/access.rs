//! The reads and writes of an operation as accesses over variables. The search derives candidate meshes from them.

use std::collections::BTreeMap;

use tw_ir::index::{Idx, Var};
use tw_ir::program::{BlockFn, BlockResult, Node, Op, OperandMode, Program, ResultMode, ValueId};
use tw_ir::spec::{GatherSpec, ScatterSpec, SortSpec};
use tw_ir::{Axis, Grid};

/// An operation over variables. Each point belongs to one worker; the indices give the elements that a point reads and writes.
pub(super) struct Accesses {
    /// The extent of each variable, and whether a mesh may split it.
    pub(super) variables: Vec<(u64, bool)>,
    /// The arguments of the node that are read, with their accesses.
    pub(super) reads: Vec<(usize, Part)>,
    /// The accesses of the results, one each, or one for all.
    pub(super) outs: Vec<Part>,
    /// Bytes of the accumulator state of one output element, or of the element itself.
    pub(super) state_bytes: u64,
}

/// An access to an array, in elements or in tiles.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Part {
    pub(super) idx: Vec<Idx>,
    /// The tiling of each axis, if indices count tiles.
    pub(super) tiles: Option<Grid>,
}

impl Part {
    fn elements(idx: Vec<Idx>) -> Part {
        Part { idx, tiles: None }
    }

    /// True if the access depends on a variable.
    pub(super) fn uses(&self, var: usize) -> bool {
        self.idx.iter().any(|idx| idx.uses(Var(var as u32)))
    }

    fn variables(numbers: impl IntoIterator<Item = usize>) -> Part {
        Part::elements(numbers.into_iter().map(variable).collect())
    }
}

/// Arrays with more blocks than this are not examined tile by tile.
const MOST_TILES: u64 = 1 << 14;

impl Accesses {
    /// The accesses of a node, if its extents are known and a mesh can split its variables.
    pub(super) fn of(program: &Program, node: &Node) -> Option<Accesses> {
        let shape = |argument: usize| program.ty(*node.args.get(argument)?).known_shape();
        let size = program.ty(*node.results.first()?).dtype.size();
        match &node.op {
            Op::Index(stmt) => {
                let state = stmt.accum.as_ref().map(|accum| accum.state_types());
                Some(Accesses {
                    variables: stmt.vars.iter().map(|var| Some((var.extent.known()?, true))).collect::<Option<_>>()?,
                    reads: stmt
                        .reads
                        .iter()
                        .map(|read| (read.operand as usize, Part::elements(read.idx.clone())))
                        .collect(),
                    outs: vec![Part::elements(stmt.out.idx.clone())],
                    state_bytes: state.unwrap_or_else(|| stmt.body_types()).iter().map(|dtype| dtype.size()).sum(),
                })
            }
            // A worker that sorts a fibre needs all of it. One that scans a part of a fibre needs the state before that part, which is small.
            Op::Sort { .. } | Op::Scan(_) => {
                let sorted = match &node.op {
                    Op::Sort { spec: SortSpec { axis, .. }, .. } => Some(*axis as usize),
                    _ => None,
                };
                let shape = shape(0)?;
                let is_cut = |(k, &extent): (usize, &u64)| (extent, Some(k) != sorted);
                Some(Accesses {
                    variables: shape.iter().enumerate().map(is_cut).collect(),
                    reads: (0..node.args.len()).map(|argument| (argument, Part::variables(0..shape.len()))).collect(),
                    outs: vec![Part::variables(0..shape.len())],
                    state_bytes: size,
                })
            }
            // Any element along the gathered axes may be asked for.
            Op::Gather(GatherSpec { axes, .. }) => {
                let (data, index) = (shape(0)?, shape(1)?);
                let out = program.ty(node.results[0]).known_shape()?;
                let (first, gathered) = (*axes.first()? as usize, axes.iter().map(|&axis| data[axis as usize]));
                let mut rest = (0..first).chain(first + index.len()..out.len());
                let mut next = out.len()..;
                let along = |axis: u32| if axes.contains(&axis) { next.next() } else { rest.next() };
                let data_vars = (0..data.len() as u32).map(along).collect::<Option<Vec<usize>>>()?;
                let mut reads = vec![(0, Part::variables(data_vars))];
                reads.extend(
                    (1..node.args.len()).map(|argument| (argument, Part::variables(first..first + index.len()))),
                );
                Some(Accesses {
                    variables: out.iter().map(|&n| (n, true)).chain(gathered.map(|n| (n, false))).collect(),
                    reads,
                    outs: vec![Part::variables(0..out.len())],
                    state_bytes: size,
                })
            }
            // Any element along the scattered axes may receive a contribution: either workers send partial sums, or each owner reads all values.
            Op::Scatter { spec: ScatterSpec { axes, accum, .. }, extents } => {
                let (index, values) = (shape(0)?, shape(axes.len())?);
                let extents = extents.iter().map(|extent| extent.known()).collect::<Option<Vec<u64>>>()?;
                let first = *axes.first()? as usize;
                let mut rest = (0..first).chain(first + index.len()..values.len());
                let mut next = values.len()..;
                let rank = program.ty(node.results[0]).rank() as u32;
                let along = |axis: u32| if axes.contains(&axis) { next.next() } else { rest.next() };
                let out = (0..rank).map(along).collect::<Option<Vec<usize>>>()?;
                let read = |argument: usize| match argument < axes.len() {
                    true => (argument, Part::variables(first..first + index.len())),
                    false => (argument, Part::variables(0..values.len())),
                };
                Some(Accesses {
                    variables: values.iter().chain(&extents).map(|&n| (n, true)).collect(),
                    reads: (0..node.args.len()).map(read).collect(),
                    outs: vec![Part::variables(out)],
                    state_bytes: accum.state_types().iter().map(|dtype| dtype.size()).sum(),
                })
            }
            // Elements of an operand lie behind those of the operands before it.
            Op::Concat { axis } => {
                let rank = program.ty(node.results[0]).rank();
                let mut before = 0;
                let mut reads = Vec::new();
                for argument in 0..node.args.len() {
                    let along = |k: usize| match k == *axis as usize {
                        true => variable(k).plus_constant(-(before as i64)),
                        false => variable(k),
                    };
                    reads.push((argument, Part::elements((0..rank).map(along).collect())));
                    before += *shape(argument)?.get(*axis as usize)?;
                }
                let out = program.ty(node.results[0]).known_shape()?;
                Some(Accesses {
                    variables: out.iter().map(|&n| (n, true)).collect(),
                    reads,
                    outs: vec![Part::variables(0..rank)],
                    state_bytes: size,
                })
            }
            Op::BlockFn(call) => of_call(program, node, call),
            Op::Retile { tiling } => {
                let axes = tiling.grid().filter(|grid| grid.n_blocks() <= MOST_TILES)?.clone();
                let part = Part { idx: (0..axes.len()).map(variable).collect(), tiles: Some(axes.clone()) };
                Some(Accesses {
                    variables: axes.iter().map(|axis| (axis.n_tiles(), true)).collect(),
                    reads: vec![(0, part.clone())],
                    outs: vec![part],
                    state_bytes: size,
                })
            }
            _ => None,
        }
    }
}

/// A block function: one variable per grid axis of its calls.
fn of_call(program: &Program, node: &Node, call: &BlockFn) -> Option<Accesses> {
    let cut = |value: ValueId| {
        let axes = program.ty(value).tiling.as_ref()?.grid()?;
        (axes.n_blocks() <= MOST_TILES).then(|| axes.clone())
    };
    let mut extents: BTreeMap<usize, u64> = BTreeMap::new();
    let mut reads = Vec::new();
    for (argument, modes) in call.operands.iter().enumerate() {
        let value = node.args[argument];
        let whole = || program.ty(value).known_shape().map(|shape| Grid::whole(&shape));
        let sees_all = modes.iter().all(|mode| matches!(mode, OperandMode::Whole));
        let (mut idx, mut tiles): (Vec<Idx>, Grid) = (Vec::new(), if sees_all { whole() } else { cut(value) }?);
        for (mode, axis) in modes.iter().zip(tiles.iter_mut()) {
            idx.push(match mode {
                OperandMode::Grid(number) => {
                    extents.insert(*number as usize, axis.n_tiles());
                    variable(*number as usize)
                }
                // The calling worker sees the whole axis.
                OperandMode::Whole => {
                    *axis = Axis::whole(axis.extent());
                    Idx::constant(0)
                }
                OperandMode::Pick(..) => return None,
            });
        }
        reads.push((argument, Part { idx, tiles: Some(tiles) }));
    }
    let out = |(result, &value): (&BlockResult, &ValueId)| {
        let idx = result.modes.iter().map(|mode| match mode {
            ResultMode::Grid(number) | ResultMode::PerBlock(number, _) => variable(*number as usize),
            ResultMode::Whole(_) => Idx::constant(0),
        });
        Some(Part { idx: idx.collect(), tiles: Some(cut(value)?) })
    };
    let outs = call.results.iter().zip(&node.results).map(out).collect::<Option<_>>()?;
    let variables = (0..extents.len()).map(|number| Some((*extents.get(&number)?, true))).collect::<Option<_>>()?;
    let sizes = node.results.iter().map(|&value| program.ty(value).dtype.size());
    Some(Accesses { variables, reads, outs, state_bytes: sizes.max()? })
}

fn variable(number: usize) -> Idx {
    Idx::var(Var(number as u32))
}
