//! How an operation reads and writes, as a statement over variables: what its grids are found from.

use std::collections::BTreeMap;

use tw_ir::index::{Idx, Var};
use tw_ir::program::{BlockFn, BlockResult, Node, Op, OperandMode, Program, ResultMode, ValueId};
use tw_ir::{Axis, Grid};

/// An operation over variables. Every point belongs to one worker; what a point reads and writes follows from the indices.
pub(super) struct Accesses {
    /// The extent of every variable, and whether a grid may cut it.
    pub(super) variables: Vec<(u64, bool)>,
    /// Arguments of the node that are read, and where.
    pub(super) reads: Vec<(usize, Part)>,
    /// Where results are written: each of them, or all at the same place.
    pub(super) outs: Vec<Part>,
    /// Bytes of what is summed for one element of the output, or that is made of it.
    pub(super) state_bytes: u64,
}

/// A part of an array.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Part {
    pub(super) idx: Vec<Idx>,
    /// Where indices are numbers of tiles: the cut of every axis.
    pub(super) tiles: Option<Grid>,
}

impl Part {
    fn elements(idx: Vec<Idx>) -> Part {
        Part { idx, tiles: None }
    }

    /// True if a variable decides where it is.
    pub(super) fn uses(&self, var: usize) -> bool {
        self.idx.iter().any(|idx| idx.uses(Var(var as u32)))
    }

    fn variables(numbers: impl IntoIterator<Item = usize>) -> Part {
        Part::elements(numbers.into_iter().map(variable).collect())
    }
}

/// Blocks of one array beyond which its tiles are not looked at one by one.
const MOST_TILES: u64 = 1 << 14;

impl Accesses {
    /// The accesses of a node, if its extents are known and workers can share it along variables.
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
            // Whoever sorts or adds up a fibre has all of it.
            Op::Sort { axis, .. } | Op::Scan { axis, .. } => {
                let shape = shape(0)?;
                let is_cut = |(k, &extent): (usize, &u64)| (extent, k != *axis as usize);
                Some(Accesses {
                    variables: shape.iter().enumerate().map(is_cut).collect(),
                    reads: (0..node.args.len()).map(|argument| (argument, Part::variables(0..shape.len()))).collect(),
                    outs: vec![Part::variables(0..shape.len())],
                    state_bytes: size,
                })
            }
            // Any element along the gathered axes may be asked for.
            Op::Gather { axes, .. } => {
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
            // Any element along the scattered axes may be added to: a sum of parts from everybody, or by everybody who reads everything.
            Op::Scatter { axes, extents, accum, .. } => {
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

/// A function of blocks: a variable for every number of its grid.
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
                // Whoever calls it sees all of the axis.
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
