//! The canonical binary form of a schedule.
//!
//! | bytes | what |
//! |---|---|
//! | 20 | `tilewright schedule\n` |
//! | integer | the version, [`VERSION`] |
//! | section | *bits*: everything that decides the results |
//! | section | *run*: everything else that a run needs |
//! | section | *names*: names and spans for messages |
//! | 32 | BLAKE3 hash of all bytes before |
//!
//! A section is its length and its bytes; integers and columns are those of `bytes.rs`. The parts of a schedule that grow with the program (kernels, types,
//! grids) are text, as [`crate::text`] prints it; the parts that grow with tasks and blocks are columns, about fifteen bytes a task:
//!
//! * *bits*: text (provider, types of sources and sinks, kernels, sets, outputs); elements of constants; boxes of sets without a grid; regions; kind, kernel, point
//!   and position of every task; numbers of operands and outputs; blocks and regions of operands; blocks of outputs.
//! * *run*: text (names of inputs, paths of sinks, names of outputs, budget); sizes of the blocks of sets that do not store every element: whether they are
//!   bounds, estimates, maxima; steps; a placement, if there is one: number of ranks, sites, instances, moves, regions, reads and writes by step, results.
//! * *names*: text (statements with their spans; names and statements of kernels and sets).
//!
//! Each schedule has exactly one encoding, so hashes are taken over it.

use super::bytes::ByteWriter;
use super::digest::Digest;
use super::placement::{Memory, Placement};
use super::{Schedule, Step};
use crate::array::Array;
use crate::text::{print_bindings, print_meaning, print_names};
use crate::tiling::BoxRegion;
use crate::workflow::{Boxes, Size, Sizes, SourceDecl, TaskKind};

pub(super) const MAGIC: &[u8; 20] = b"tilewright schedule\n";

/// The version of the encoding. Others are refused.
pub const VERSION: u64 = 2;

pub(super) const CHECKSUM: &str = "tilewright 1 schedule: file";

impl Schedule {
    /// The schedule as bytes; see the documentation of this module. [`Schedule::decode`] gives it back.
    pub fn encode(&self) -> Vec<u8> {
        let mut writer = ByteWriter::default();
        writer.bytes.extend_from_slice(MAGIC);
        writer.unsigned(VERSION);
        writer.section(&self.encode_bits());
        writer.section(&self.encode_run());
        writer.section(print_names(&self.workflow).as_bytes());
        let checksum = Digest::of(CHECKSUM, &[&writer.bytes]);
        writer.bytes.extend_from_slice(&checksum.0);
        writer.bytes
    }

    pub(super) fn encode_bits(&self) -> Vec<u8> {
        let workflow = self.workflow();
        let mut writer = ByteWriter::default();
        writer.section(print_meaning(workflow, &self.provider).as_bytes());
        for source in workflow.sources.values() {
            if let SourceDecl::Constant(array) = source {
                writer.section(&elements(array));
            }
        }
        for set in workflow.sets.values() {
            if let Boxes::List(list) = &set.boxes {
                boxes(&mut writer, list);
            }
        }
        boxes(&mut writer, &workflow.regions);
        let column = |writer: &mut ByteWriter, value: &dyn Fn(crate::workflow::TaskId) -> u64| {
            let values: Vec<u64> = workflow.tasks().map(value).collect();
            writer.column(values.into_iter());
        };
        column(&mut writer, &|task| match workflow.kind(task) {
            TaskKind::Load => 0,
            TaskKind::Apply => 1,
            TaskKind::Fold => 2,
        });
        column(&mut writer, &|task| workflow.kernel(task).as_u32().into());
        column(&mut writer, &|task| workflow.point(task).into());
        column(&mut writer, &|task| workflow.position(task).into());
        column(&mut writer, &|task| workflow.operands(task).len() as u64);
        column(&mut writer, &|task| workflow.outputs(task).len() as u64);
        let operands = workflow.tasks().flat_map(|task| workflow.operands(task));
        let operands: Vec<_> = operands.map(|operand| operand.expand()).collect();
        writer.column(operands.iter().map(|operand| operand.map_or(u32::MAX, |operand| operand.block.as_u32()).into()));
        writer.column(operands.iter().map(|operand| operand.map_or(0, |operand| operand.region).into()));
        let outputs: Vec<_> = workflow.tasks().flat_map(|task| workflow.outputs(task)).collect();
        writer.column(outputs.iter().map(|block| block.as_u32().into()));
        writer.bytes
    }

    pub(super) fn encode_run(&self) -> Vec<u8> {
        let mut writer = ByteWriter::default();
        writer.section(print_bindings(&self.workflow, self.budget).as_bytes());
        for set in self.workflow.sets.values() {
            if let Sizes::List(sizes) = &set.sizes {
                writer.column(sizes.iter().map(|size| matches!(size, Size::Bound { .. }).into()));
                writer.column(sizes.iter().map(|size| size.estimate()));
                writer.column(sizes.iter().map(|size| size.max()));
            }
        }
        writer.column(self.steps.iter().map(|step: &Step| step.as_u32().into()));
        if let Some(placement) = &self.placement {
            placed(&mut writer, placement);
        }
        writer.bytes
    }
}

fn placed(writer: &mut ByteWriter, placement: &Placement) {
    writer.unsigned(placement.n_ranks.into());
    writer.column(placement.sites.iter().map(|&site| site.into()));
    writer.column(placement.instances.iter().map(|instance| instance.block.as_u32().into()));
    writer.column(placement.instances.iter().map(|instance| instance.region.into()));
    writer.column(placement.instances.iter().map(|instance| match instance.memory {
        Memory::Host(rank) => 2 * u64::from(rank),
        Memory::Disk(rank) => 2 * u64::from(rank) + 1,
    }));
    writer.column(placement.moves.iter().map(|moved| moved.from.as_u32().into()));
    writer.column(placement.moves.iter().map(|moved| moved.to.as_u32().into()));
    boxes(writer, &placement.regions);
    for rows in [&placement.reads, &placement.writes] {
        writer.column((0..rows.len()).map(|k| rows.row(k).len() as u64));
        writer.column(rows.values().iter().map(|&value| value.into()));
    }
    writer.column(placement.results.iter().map(|id| id.as_u32().into()));
}

/// How many boxes, and for each its rank, then its corners axis by axis.
fn boxes(writer: &mut ByteWriter, list: &[BoxRegion]) {
    let ranks: Vec<u64> = list.iter().map(|region| region.rank() as u64).collect();
    writer.column(ranks.into_iter());
    let corner = |values: fn(&BoxRegion) -> &[u64]| list.iter().flat_map(values).copied().collect::<Vec<u64>>();
    writer.column(corner(|region| &region.lo).into_iter());
    let lengths = list.iter().flat_map(|region| region.lo.iter().zip(&region.hi).map(|(lo, hi)| hi.wrapping_sub(*lo)));
    writer.column(lengths.collect::<Vec<u64>>().into_iter());
}

/// Elements in row-major order, lowest byte first.
fn elements(array: &Array) -> Vec<u8> {
    let dtype = array.dtype().storage();
    let n_parts = if dtype.is_complex() { 2 } else { 1 };
    let part = dtype.size() as usize / n_parts;
    let mut bytes = Vec::with_capacity(array.len() * dtype.size() as usize);
    for k in 0..array.len() {
        let (_, low, high) = array.data().get(k).bits();
        for value in [low, high].into_iter().take(n_parts) {
            bytes.extend_from_slice(&value.to_le_bytes()[..part]);
        }
    }
    bytes
}
