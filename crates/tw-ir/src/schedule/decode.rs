//! Decodes the output of [`Schedule::encode`](super::Schedule::encode). Accepts any bytes: it never panics, and no allocation trusts a length in the file.

use std::sync::Arc;

use super::Schedule;
use super::bytes::ByteReader;
use super::digest::Digest;
use super::encode::{CHECKSUM, MAGIC, VERSION};
use super::links::Rows;
use super::placement::{Instance, Memory, Move, Placement};
use super::step::{InstanceId, Step};
use crate::array::{Array, Buffer};
use crate::dtype::{DType, Scalar};
use crate::error::{Error, Result};
use crate::program::FunctionTable;
use crate::shape;
use crate::text::{Constant, Head, SetBoxes, parse_bindings, parse_meaning, parse_names};
use crate::tiling::BoxRegion;
use crate::workflow::{
    BlockId, BlockSet, Boxes, KernelId, MaybeOperand, Operand, Size, Sizes, SourceDecl, StmtId, TaskKind, Workflow,
    verify,
};

fn wrong(what: impl Into<String>) -> Error {
    Error::source(what)
}

impl Schedule {
    /// Reads a schedule and verifies it. `functions` finds the block functions it calls by their names.
    pub fn decode(bytes: &[u8], functions: &FunctionTable) -> Result<Schedule> {
        let Some((content, checksum)) = bytes.split_last_chunk::<32>() else {
            return Err(wrong("this is no schedule: it is too short"));
        };
        let mut reader = ByteReader::new(content);
        if reader.take(MAGIC.len()).ok() != Some(MAGIC) {
            return Err(wrong("this is no schedule: it does not begin as one"));
        }
        let version = reader.unsigned()?;
        if version != VERSION {
            return Err(wrong(format!("a schedule of version {version}; this program reads version {VERSION}"))
                .help("plan again with this program"));
        }
        if Digest::of(CHECKSUM, &[content]).0 != *checksum {
            return Err(wrong("this schedule has been damaged: its checksum is not that of its bytes"));
        }
        let mut bits = ByteReader::new(reader.section()?);
        let mut run = ByteReader::new(reader.section()?);
        let names = text(reader.section()?)?;
        reader.end()?;
        // A block takes memory once its set is there; the task that computes it takes at least a byte.
        let Head { mut workflow, provider, constants, sets } = parse_meaning(text(bits.section()?)?, functions)?;
        for (constant, source) in constants.iter().zip(constant_sources(&mut workflow)) {
            *source = SourceDecl::Constant(Arc::new(constant_of(constant, bits.section()?)?));
        }
        for set in sets {
            let found = match set.boxes {
                SetBoxes::Grid(grid) => Boxes::Grid(grid),
                SetBoxes::List => Boxes::List(boxes(&mut bits)?),
            };
            let statement = StmtId::from_u32(0);
            let dense = BlockSet::dense(String::new(), set.dtype, set.shape, found, statement);
            add_set(&mut workflow, BlockSet { format: set.format, ..dense }, bytes.len())?;
        }
        workflow.regions = boxes(&mut bits)?;
        tasks(&mut workflow, &mut bits)?;
        bits.end()?;
        parse_names(names, &mut workflow)?;
        let budget = parse_bindings(text(run.section()?)?, &mut workflow)?;
        for set in workflow.sets.values_mut().filter(|set| !set.format.stores_every_element()) {
            set.sizes = sizes(&mut run)?;
        }
        verify(&workflow).map_err(|error| wrong(format!("a schedule of a wrong workflow: {}", error.message())))?;
        let steps: Vec<Step> = run.column32()?.into_iter().map(Step::from_u32).collect();
        let frozen = if run.left() == 0 {
            let order: Option<Vec<_>> = steps.iter().map(|step| step.as_task()).collect();
            let order = order.ok_or_else(|| wrong("a schedule moves blocks, but has no placement"))?;
            Schedule::freeze(workflow, order, &provider).map(|schedule| schedule.with_budget(budget))
        } else {
            let placement = placed(&mut run)?;
            run.end()?;
            Schedule::freeze_placed(workflow, steps, placement, budget, &provider)
        };
        frozen.map_err(|error| wrong(format!("a wrong schedule: {}", error.message())))
    }
}

fn text(bytes: &[u8]) -> Result<&str> {
    std::str::from_utf8(bytes).map_err(|_| wrong("a schedule has text that is not UTF-8"))
}

/// The sources that are constants; until their elements are read they are empty ones.
fn constant_sources(workflow: &mut Workflow) -> impl Iterator<Item = &mut SourceDecl> {
    workflow.sources.values_mut().filter(|source| matches!(source, SourceDecl::Constant(_)))
}

fn constant_of(constant: &Constant, bytes: &[u8]) -> Result<Array> {
    let (dtype, stored) = (constant.dtype, constant.dtype.storage());
    let size = stored.size() as usize;
    let n = shape::n_elements(&constant.shape)?;
    if n.checked_mul(size as u64) != Some(bytes.len() as u64) {
        return Err(wrong(format!("a constant of {n} elements has {} bytes", bytes.len())));
    }
    let n_parts = if stored.is_complex() { 2 } else { 1 };
    let part = |bytes: &[u8]| bytes.iter().rev().fold(0u64, |value, &byte| value << 8 | u64::from(byte));
    let mut data = Buffer::zeros(stored, n as usize);
    for (k, element) in bytes.chunks_exact(size).enumerate() {
        let (low, high) = element.split_at(size / n_parts);
        let value = Scalar::from_bits(stored, signed(stored, part(low)), part(high));
        data.set(k, value.ok_or_else(|| wrong(format!("no {stored} has these bits")))?);
    }
    Array::new(constant.shape.clone(), data)?.with_dtype(dtype)
}

/// The bits of a short signed integer, with its sign.
fn signed(dtype: DType, bits: u64) -> u64 {
    match dtype {
        DType::I8 => bits as i8 as u64,
        DType::I16 => bits as i16 as u64,
        DType::I32 => bits as i32 as u64,
        _ => bits,
    }
}

/// Numbers of this many blocks are reserved without asking whether the file is long enough to use them.
const FREE_BLOCKS: u64 = 1 << 20;

fn add_set(workflow: &mut Workflow, set: BlockSet, n_bytes: usize) -> Result<()> {
    let limit = (n_bytes as u64).max(FREE_BLOCKS).saturating_sub(workflow.n_blocks() as u64);
    let fits = set.n_blocks() <= limit;
    let added = fits.then(|| workflow.add_set(set));
    added.flatten().map(drop).ok_or_else(|| wrong("a schedule has more blocks than it can make"))
}

fn sizes(reader: &mut ByteReader<'_>) -> Result<Sizes> {
    let (bounds, limit) = (reader.column(1)?, i64::MAX as u64);
    let (estimates, maxima) = (reader.column(limit)?, reader.column(limit)?);
    if bounds.len() != estimates.len() || bounds.len() != maxima.len() {
        return Err(wrong("a schedule whose columns of sizes have different lengths"));
    }
    let size = |((is_bound, estimate), max): ((u64, u64), u64)| match is_bound {
        0 if estimate == max => Ok(Size::Exact(max)),
        0 => Err(wrong("a schedule has an exact size that is two sizes")),
        _ => Ok(Size::Bound { estimate, max }),
    };
    bounds.into_iter().zip(estimates).zip(maxima).map(size).collect::<Result<_>>().map(Sizes::List)
}

fn boxes(reader: &mut ByteReader<'_>) -> Result<Vec<BoxRegion>> {
    let ranks = reader.column(u8::MAX.into())?;
    let (lo, lengths) = (reader.column(i64::MAX as u64)?, reader.column(i64::MAX as u64)?);
    if ranks.iter().sum::<u64>() != lo.len() as u64 || lo.len() != lengths.len() {
        return Err(wrong("a schedule has boxes without corners"));
    }
    let mut corners = lo.into_iter().zip(lengths);
    let corner = |(lo, length): (u64, u64)| Some((lo, lo.checked_add(length).filter(|&hi| hi <= i64::MAX as u64)?));
    let region = |rank: u64| {
        let sides: Option<Vec<(u64, u64)>> = corners.by_ref().take(rank as usize).map(corner).collect();
        let (lo, hi) = sides.ok_or_else(|| wrong("a schedule has a box that is too long"))?.into_iter().unzip();
        Ok(BoxRegion { lo, hi })
    };
    ranks.into_iter().map(region).collect()
}

fn tasks(workflow: &mut Workflow, reader: &mut ByteReader<'_>) -> Result<()> {
    let kinds = reader.column(2)?;
    let kernels = reader.column32()?;
    let (points, positions) = (reader.column32()?, reader.column32()?);
    let (n_operands, n_outputs) = (reader.column32()?, reader.column32()?);
    let (blocks, regions) = (reader.optional_column32()?, reader.column32()?);
    let outputs = reader.column32()?;
    let columns = [kernels.len(), points.len(), positions.len(), n_operands.len(), n_outputs.len()];
    let total = |counts: &[u32]| counts.iter().map(|&n| u64::from(n)).sum::<u64>();
    let fits = columns.iter().all(|&n| n == kinds.len())
        && total(&n_operands) == blocks.len() as u64
        && blocks.len() == regions.len()
        && total(&n_outputs) == outputs.len() as u64;
    if !fits {
        return Err(wrong("a schedule whose columns have different lengths"));
    }
    let operand = |(&block, &region)| match block {
        u32::MAX if region > 0 => Err(wrong("a schedule has a region of no block")),
        u32::MAX => Ok(MaybeOperand::default()),
        block => Ok(Operand { block: BlockId::from_u32(block), region }.into()),
    };
    let operands: Vec<MaybeOperand> = blocks.iter().zip(&regions).map(operand).collect::<Result<_>>()?;
    let outputs: Vec<BlockId> = outputs.into_iter().map(BlockId::from_u32).collect();
    let (mut operands, mut outputs) = (&operands[..], &outputs[..]);
    for (task, kind) in kinds.into_iter().enumerate() {
        let kind = [TaskKind::Load, TaskKind::Apply, TaskKind::Fold][kind as usize];
        let (reads, later_reads) = operands.split_at(n_operands[task] as usize);
        let (writes, later_writes) = outputs.split_at(n_outputs[task] as usize);
        (operands, outputs) = (later_reads, later_writes);
        let kernel = KernelId::from_u32(kernels[task]);
        workflow.add_task(kind, kernel, points[task], positions[task], reads, writes);
    }
    Ok(())
}

fn placed(reader: &mut ByteReader<'_>) -> Result<Placement> {
    let n_ranks = u32::try_from(reader.unsigned()?).map_err(|_| wrong("a schedule for too many ranks"))?;
    let sites = reader.column32()?;
    let (blocks, regions, memories) =
        (reader.column32()?, reader.column32()?, reader.column(2 * u64::from(u32::MAX) + 1)?);
    let (from, to) = (reader.column32()?, reader.column32()?);
    if blocks.len() != regions.len() || blocks.len() != memories.len() || from.len() != to.len() {
        return Err(wrong("a placement whose columns have different lengths"));
    }
    let instance = |((block, region), memory): ((u32, u32), u64)| {
        let rank = (memory / 2) as u32;
        let memory = if memory % 2 == 0 { Memory::Host(rank) } else { Memory::Disk(rank) };
        Instance { block: BlockId::from_u32(block), region, memory }
    };
    let instances = blocks.into_iter().zip(regions).zip(memories).map(instance).collect();
    let moved = |(from, to)| Move { from: InstanceId::from_u32(from), to: InstanceId::from_u32(to) };
    let moves = from.into_iter().zip(to).map(moved).collect();
    let regions = boxes(reader)?;
    let (reads, writes) = (rows(reader)?, rows(reader)?);
    let results = reader.column32()?.into_iter().map(InstanceId::from_u32).collect();
    Ok(Placement { n_ranks, sites, instances, moves, regions, reads, writes, results })
}

fn rows(reader: &mut ByteReader<'_>) -> Result<Rows> {
    let (lengths, values) = (reader.column32()?, reader.optional_column32()?);
    let mut rows = Rows::default();
    let mut rest = &values[..];
    for n in lengths {
        let (row, later) =
            rest.split_at_checked(n as usize).ok_or_else(|| wrong("a placement whose rows are too short"))?;
        rows.push_row(row.iter().copied());
        rest = later;
    }
    if rest.is_empty() { Ok(rows) } else { Err(wrong("a placement whose rows are too long")) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Axis, Grid};

    #[test]
    fn all_sets_together_have_no_more_blocks_than_a_file_has_bytes() {
        let n = 2 << 20;
        let set = || {
            let boxes = Boxes::Grid(Grid::from_iter([Axis::uniform(n, 1)]));
            BlockSet::dense(String::new(), DType::F64, vec![n], boxes, StmtId::from_u32(0))
        };
        let mut workflow = Workflow::default();
        add_set(&mut workflow, set(), 3 << 20).unwrap();
        assert!(add_set(&mut workflow, set(), 3 << 20).is_err());
        assert!(add_set(&mut Workflow::default(), set(), 1 << 20).is_err());
    }
}
