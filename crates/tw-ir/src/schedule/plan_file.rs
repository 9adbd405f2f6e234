//! A plan file: a program with the schedules of its segments, as bytes. One process plans, another runs.
//!
//! | bytes | what |
//! |---|---|
//! | 16 | `tilewright plan\n` |
//! | integer | the version, the same as that of schedules |
//! | section | the whole program, as text |
//! | integer | number of segments |
//! | two sections each | the program of a segment as text, and its schedule |
//! | 32 | BLAKE3 hash of all bytes before |
//!
//! Segments are sorted by their text, so a plan has exactly one encoding.

use super::Schedule;
use super::bytes::{ByteReader, ByteWriter};
use super::digest::Digest;
use super::encode::VERSION;
use crate::error::{Error, Result};
use crate::program::{FunctionTable, Program};
use crate::text::{parse_program, print_program};

const MAGIC: &[u8; 16] = b"tilewright plan\n";
const CHECKSUM: &str = "tilewright 1 plan: file";

/// A program with the schedules of its segments.
pub struct PlanFile {
    /// The whole program.
    pub program: Program,
    /// Its segments, without data-dependent ones: the run plans those when it reaches them.
    pub segments: Vec<(Program, Schedule)>,
}

/// The bytes of a plan. A block function is written by name, so the caller must refuse functions that another process cannot find.
pub fn encode_plan<'a>(program: &Program, segments: impl Iterator<Item = (&'a Program, &'a Schedule)>) -> Vec<u8> {
    let mut segments: Vec<(String, &Schedule)> =
        segments.map(|(program, schedule)| (print_program(program), schedule)).collect();
    segments.sort_by(|(a, _), (b, _)| a.cmp(b));
    let mut writer = ByteWriter::default();
    writer.bytes.extend_from_slice(MAGIC);
    writer.unsigned(VERSION);
    writer.section(print_program(program).as_bytes());
    writer.unsigned(segments.len() as u64);
    for (text, schedule) in segments {
        writer.section(text.as_bytes());
        writer.section(&schedule.encode());
    }
    let checksum = Digest::of(CHECKSUM, &[&writer.bytes]);
    writer.bytes.extend_from_slice(&checksum.0);
    writer.bytes
}

impl PlanFile {
    /// Decodes the output of [`encode_plan`].
    pub fn decode(bytes: &[u8], functions: &FunctionTable) -> Result<PlanFile> {
        let wrong = |what: &str| Error::source(what.to_string());
        let Some((content, checksum)) = bytes.split_last_chunk::<32>() else {
            return Err(wrong("this is no plan: it is too short"));
        };
        let mut reader = ByteReader::new(content);
        if reader.take(MAGIC.len()).ok() != Some(MAGIC) {
            return Err(wrong("this is no plan: it does not begin as one").help("`tw plan FILE -o PLAN` makes one"));
        }
        let version = reader.unsigned()?;
        if version != VERSION {
            let text = format!("a plan of version {version}; this program reads version {VERSION}");
            return Err(Error::source(text).help("plan again with this program"));
        }
        if Digest::of(CHECKSUM, &[content]).0 != *checksum {
            return Err(wrong("this plan has been damaged: its checksum is not that of its bytes"));
        }
        let program = |bytes: &[u8]| {
            let text = std::str::from_utf8(bytes).map_err(|_| wrong("a plan has text that is not UTF-8"))?;
            parse_program(text, functions)
        };
        let whole = program(reader.section()?)?;
        let n_segments = reader.unsigned()?;
        let mut segments = Vec::new();
        for _ in 0..n_segments {
            segments.push((program(reader.section()?)?, Schedule::decode(reader.section()?, functions)?));
        }
        reader.end()?;
        Ok(PlanFile { program: whole, segments })
    }
}
