//! The events of a log, and their bytes.

use tw_ir::error::{Error, Result};
use tw_ir::schedule::{ByteReader, ByteWriter, Digest};
use tw_ir::{Axis, DType, Grid};

/// A step of the control walk that later runs need not repeat.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Event {
    /// A segment has ended.
    Segment { results: Vec<Option<SavedTensor>>, writes_files: bool },
    /// A loop begins, inside of so many others.
    Loop { depth: usize },
    /// A turn of the innermost loop has ended.
    Turn { depth: usize, turn: usize, carried: Vec<Option<SavedTensor>> },
    /// What only data could tell.
    Answer(Vec<u64>),
    /// Tasks of the segment that comes next have run, and others are not needed any more.
    Tasks(SavedTasks),
}

/// Tasks of a segment that has not ended.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct SavedTasks {
    /// The bits of its schedule.
    pub(super) bits: Digest,
    /// What tells the running system from the same machine after a restart.
    pub(super) boot: String,
    /// Tasks with descriptions of their blocks; those that have stored a block have none.
    pub(super) kept: Vec<(u32, Vec<Vec<u8>>)>,
    /// Tasks whose blocks nobody needs.
    pub(super) useless: Vec<u32>,
}

/// A value, and where its blocks are.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct SavedTensor {
    pub(super) dtype: DType,
    pub(super) grid: Grid,
    /// The input of the program that it is.
    pub(super) input: Option<String>,
    /// Descriptions of blocks of a durable file.
    pub(super) blocks: Vec<Vec<u8>>,
}

impl Event {
    /// The descriptions of all blocks that it names.
    pub(super) fn descriptions(&self) -> impl Iterator<Item = &[u8]> {
        let (values, tasks) = match self {
            Event::Segment { results: values, .. } | Event::Turn { carried: values, .. } => {
                (values.as_slice(), &[][..])
            }
            Event::Tasks(tasks) => (&[][..], tasks.kept.as_slice()),
            Event::Loop { .. } | Event::Answer(_) => (&[][..], &[][..]),
        };
        let of_values = values.iter().flatten().flat_map(|value| value.blocks.iter());
        of_values.chain(tasks.iter().flat_map(|(_, blocks)| blocks)).map(Vec::as_slice)
    }

    /// True for the bytes of tasks.
    pub(super) fn is_tasks(payload: &[u8]) -> bool {
        payload.first() == Some(&4)
    }

    pub(super) fn encode(&self) -> Vec<u8> {
        let mut writer = ByteWriter::default();
        match self {
            Event::Segment { results, writes_files } => {
                writer.unsigned(0);
                writer.unsigned(u64::from(*writes_files));
                encode_values(&mut writer, results);
            }
            Event::Loop { depth } => {
                writer.unsigned(1);
                writer.unsigned(*depth as u64);
            }
            Event::Turn { depth, turn, carried } => {
                writer.unsigned(2);
                writer.unsigned(*depth as u64);
                writer.unsigned(*turn as u64);
                encode_values(&mut writer, carried);
            }
            Event::Answer(answer) => {
                writer.unsigned(3);
                writer.column(answer.iter().copied());
            }
            Event::Tasks(SavedTasks { bits, boot, kept, useless }) => {
                writer.unsigned(4);
                writer.section(&bits.0);
                writer.section(boot.as_bytes());
                writer.unsigned(kept.len() as u64);
                for (task, blocks) in kept {
                    writer.unsigned(u64::from(*task));
                    writer.unsigned(blocks.len() as u64);
                    blocks.iter().for_each(|block| writer.section(block));
                }
                writer.column(useless.iter().map(|&task| u64::from(task)));
            }
        }
        writer.bytes
    }

    pub(super) fn decode(bytes: &[u8]) -> Result<Event> {
        let mut reader = ByteReader::new(bytes);
        let event = match reader.unsigned()? {
            0 => Event::Segment { writes_files: reader.unsigned()? != 0, results: decode_values(&mut reader)? },
            1 => Event::Loop { depth: reader.unsigned()? as usize },
            2 => Event::Turn {
                depth: reader.unsigned()? as usize,
                turn: reader.unsigned()? as usize,
                carried: decode_values(&mut reader)?,
            },
            3 => Event::Answer(reader.column(u64::MAX)?),
            4 => Event::Tasks(decode_tasks(&mut reader)?),
            _ => return Err(damaged()),
        };
        reader.end()?;
        Ok(event)
    }
}

fn decode_tasks(reader: &mut ByteReader<'_>) -> Result<SavedTasks> {
    let bits = Digest(reader.section()?.try_into().map_err(|_| damaged())?);
    let boot = String::from_utf8(reader.section()?.to_vec()).map_err(|_| damaged())?;
    let task = |task: u64| u32::try_from(task).map_err(|_| damaged());
    let mut kept = Vec::new();
    for _ in 0..reader.unsigned()? {
        let number = task(reader.unsigned()?)?;
        let blocks = (0..reader.unsigned()?).map(|_| Ok(reader.section()?.to_vec())).collect::<Result<_>>()?;
        kept.push((number, blocks));
    }
    let useless = reader.column(u64::MAX)?.into_iter().map(task).collect::<Result<_>>()?;
    Ok(SavedTasks { bits, boot, kept, useless })
}

fn damaged() -> Error {
    Error::io("a record of a checkpoint is damaged")
}

fn encode_values(writer: &mut ByteWriter, values: &[Option<SavedTensor>]) {
    writer.unsigned(values.len() as u64);
    for value in values {
        let Some(value) = value else {
            writer.unsigned(0);
            continue;
        };
        writer.unsigned(if value.input.is_some() { 1 } else { 2 });
        writer.section(value.dtype.to_string().as_bytes());
        writer.unsigned(value.grid.len() as u64);
        for axis in &value.grid {
            match axis {
                Axis::Uniform { extent, tile } => {
                    writer.unsigned(0);
                    writer.unsigned(*extent);
                    writer.unsigned(*tile);
                }
                Axis::Ragged(boundaries) => {
                    writer.unsigned(1);
                    writer.column(boundaries.iter().copied());
                }
            }
        }
        match &value.input {
            Some(name) => writer.section(name.as_bytes()),
            None => {
                writer.unsigned(value.blocks.len() as u64);
                value.blocks.iter().for_each(|block| writer.section(block));
            }
        }
    }
}

fn decode_values(reader: &mut ByteReader<'_>) -> Result<Vec<Option<SavedTensor>>> {
    (0..reader.unsigned()?).map(|_| decode_value(reader)).collect()
}

fn decode_value(reader: &mut ByteReader<'_>) -> Result<Option<SavedTensor>> {
    let kind = reader.unsigned()?;
    if kind == 0 {
        return Ok(None);
    }
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).map_err(|_| damaged());
    let dtype: DType = text(reader.section()?)?.parse().map_err(|_| damaged())?;
    let axis = |reader: &mut ByteReader<'_>| match reader.unsigned()? {
        0 => Ok(Axis::uniform(reader.unsigned()?, reader.unsigned()?)),
        _ => {
            let boundaries = reader.column(u64::MAX)?;
            let grows = boundaries.first() == Some(&0) && boundaries.is_sorted_by(|a, b| a < b);
            if grows { Ok(Axis::from_boundaries(boundaries)) } else { Err(damaged()) }
        }
    };
    let grid = (0..reader.unsigned()?).map(|_| axis(reader)).collect::<Result<Grid>>()?;
    if kind == 1 {
        return Ok(Some(SavedTensor { dtype, grid, input: Some(text(reader.section()?)?), blocks: Vec::new() }));
    }
    let blocks = (0..reader.unsigned()?).map(|_| Ok(reader.section()?.to_vec()));
    Ok(Some(SavedTensor { dtype, grid, input: None, blocks: blocks.collect::<Result<_>>()? }))
}
