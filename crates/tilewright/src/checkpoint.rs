//! Checkpoints: a program that was killed goes on where it was.
//!
//! A checkpoint is a directory with a log and a file of blocks. Its name is a hash over everything that decides the results: the program, the options of the
//! planner, the provider of kernels, and the fingerprints of all inputs. A run of the same program with the same data finds it there. A program that has
//! ended removes it.
//!
//! The log is a list of [`Event`]s in the order in which the control walk ([`crate::control`]) meets them: a segment has ended, and here are its results; a
//! question that only data answers was answered so; a loop has begun; a turn has ended, and this is what the loop carries. A later run walks the program from
//! its beginning. As long as the log lasts, the walk takes results and answers from it and runs nothing. Then it goes on as usual and appends to the log.
//!
//! The end of a turn makes all events since the beginning of its loop worthless ([`Log::push`]): the walk jumps to the last turn that has ended. So a log is as
//! long as the program is deep, not as long as it runs, and blocks are kept for one turn.
//!
//! # What a crash leaves
//!
//! A record has a length and a checksum; the log ends at the first record that is not whole. Blocks are written before the record that names them. The slot of a
//! block is used again only after the next record is written ([`Checkpoint::append`]): a run that resumes after a record needs exactly the values
//! that were alive when the record was written, and the slots of those were not dropped before. Values that were dead by then are still named by older
//! events, but only their types are asked for, to build the keys of segments that do not run.
//!
//! The operating system keeps what a killed process has written. After a crash of the machine blocks may be missing though the log names them: their checksums tell.
//!
//! # Segments that have not ended
//!
//! While a segment runs, blocks that were dear to make are kept, and records name them ([`tasks`]). The run after a kill leaves out the tasks that made them.
//!
//! Segments that write files run again until the program has ended, since files get their names at the end. What was stored stays in hidden files, so that such a segment has
//! nothing left to do, unless those are gone. So its operands are kept until the program ends.

use std::collections::{HashMap, VecDeque};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use tw_block::{Meter, Source, SourceAccess, SpillFile, SpilledBlock, in_memory};
use tw_ir::error::{Error, Result};
use tw_ir::program::{Op, Program, Region};
use tw_ir::schedule::{ByteReader, Digest};
use tw_ir::text::print_program;
use tw_ir::workflow::TaskId;
use tw_ir::{DType, Grid};
use tw_plan::PlanOptions;
use tw_run::{KeptTask, TensorHandle};

use crate::bindings::{Inputs, Targets};
use crate::session::lock;

mod event;
mod log;
mod tasks;

use event::{Event, SavedTasks, SavedTensor};
use log::Log;
pub(crate) use tasks::Remembered;
use tasks::{Part, TaskLog, boot};

/// A value that the checkpoint holds. Its room in the file is free again after it is dropped.
#[derive(Debug)]
pub(crate) struct Saved {
    dtype: DType,
    grid: Grid,
    place: SavedPlace,
}

#[derive(Debug)]
enum SavedPlace {
    /// It is an input of the program, which is there anyway.
    Input(String),
    Blocks(Vec<Arc<SpilledBlock>>),
}

/// A value and its copy in the checkpoint.
pub(crate) type Kept = (Arc<TensorHandle>, Arc<Saved>);

/// What a run before has done of a segment.
#[derive(Default)]
pub(crate) struct Before {
    /// Its results, if it has ended.
    pub(crate) results: Option<Vec<Option<Kept>>>,
    /// True if it has to run again nevertheless, for the files that it writes.
    pub(crate) writes_files: bool,
    part: Part,
}

/// The checkpoint of a run that is under way.
pub(crate) struct Checkpoint<'a> {
    directory: PathBuf,
    inputs: &'a Inputs,
    blocks: Arc<SpillFile>,
    log: Arc<Mutex<Log>>,
    /// The segments of this walk that may write files.
    n_segments: usize,
    /// Events of the run before that the walk has not come to yet.
    ahead: VecDeque<Event>,
    /// Blocks of those events, by where they are in the file.
    restored: HashMap<Vec<u8>, Arc<SpilledBlock>>,
    /// For each place in the file, the block that was written there last.
    owners: HashMap<u64, Vec<u8>>,
    /// Loops around the walk.
    depth: usize,
    /// Operands of segments that write files.
    pinned: Vec<Arc<Saved>>,
}

impl<'a> Checkpoint<'a> {
    /// Opens the checkpoint of a program below a directory, or begins one.
    pub(crate) fn open(
        below: &Path,
        program: &Program,
        (inputs, targets): (&'a Inputs, &Targets),
        options: &PlanOptions,
    ) -> Result<Checkpoint<'a>> {
        refuse_what_cannot_resume(program, targets)?;
        let key = key_of(program, inputs, options)?;
        let directory = below.join(&key.to_string()[..16]);
        fs::create_dir_all(&directory).map_err(|error| failed(&directory, "cannot be created", &error))?;
        let (log, events) = Log::open(&directory.join("log"), &key)?;
        let blocks = SpillFile::durable(&directory.join("blocks"))?;
        let mut owners = HashMap::new();
        for description in events.iter().flat_map(Event::descriptions) {
            // A segment that writes files may run, and keep blocks, before the walk comes to the events behind it.
            owners.insert(blocks.reserve(description)?, description.to_vec());
        }
        Ok(Checkpoint {
            directory,
            inputs,
            blocks,
            log: Arc::new(Mutex::new(log)),
            n_segments: 0,
            ahead: events.into(),
            restored: HashMap::new(),
            owners,
            depth: 0,
            pinned: Vec::new(),
        })
    }

    /// What a run before has done of the next segment.
    pub(crate) fn next_segment(&mut self) -> Result<Before> {
        let mut before = Before::default();
        while let Some(tasks) = self.next_tasks(None) {
            self.take_in(&mut before.part, tasks)?;
        }
        match self.next() {
            None => {}
            Some(Event::Segment { results, writes_files }) => {
                before.results = Some(self.restore_all(&results)?);
                before.writes_files = writes_files;
                // It may have run again since then.
                while let Some(tasks) = self.next_tasks(before.part.bits()) {
                    self.take_in(&mut before.part, tasks)?;
                }
                before.part.stores_only();
            }
            Some(_) => return Err(self.misfit()),
        }
        Ok(before)
    }

    /// The next record of tasks, if that comes next: of a schedule with the given bits, or of any.
    fn next_tasks(&mut self, bits: Option<Digest>) -> Option<SavedTasks> {
        let counts = |tasks: &SavedTasks| bits.is_none_or(|bits| tasks.bits == bits);
        if !matches!(self.ahead.front(), Some(Event::Tasks(tasks)) if counts(tasks)) {
            return None;
        }
        match self.ahead.pop_front()? {
            Event::Tasks(tasks) => Some(tasks),
            _ => None,
        }
    }

    fn take_in(&mut self, part: &mut Part, saved: SavedTasks) -> Result<()> {
        let mut tasks = Vec::with_capacity(saved.kept.len());
        for (task, descriptions) in &saved.kept {
            let blocks = descriptions.iter().map(|description| self.restore_block(description));
            tasks.push(KeptTask { task: TaskId::from_u32(*task), blocks: blocks.collect::<Result<_>>()? });
        }
        let is_same_boot = !saved.boot.is_empty() && saved.boot == boot();
        part.add(saved.bits, is_same_boot, tasks, &saved.useless);
        Ok(())
    }

    /// What the next segment takes from here and leaves here.
    pub(crate) fn remembered(&mut self, before: &mut Before) -> Remembered {
        let keeper = Arc::new(TaskLog { log: Arc::clone(&self.log), blocks: Arc::clone(&self.blocks) });
        let name = self.directory.file_name().unwrap_or_default().to_string_lossy();
        // No loop contains a segment that writes files, so that their numbers are the same in every run.
        let name = format!("{name}-{}", self.n_segments);
        let wants_results = before.results.is_none();
        Remembered {
            file: Arc::clone(&self.blocks),
            keeper,
            name,
            before: std::mem::take(&mut before.part),
            wants_results,
        }
    }

    /// A segment has run. Gives the copies of its results.
    pub(crate) fn end_segment(
        &mut self,
        results: &[Option<Arc<TensorHandle>>],
        kept: &[Vec<Option<Arc<SpilledBlock>>>],
        operands: Vec<Arc<Saved>>,
        writes_files: bool,
    ) -> Result<Vec<Option<Arc<Saved>>>> {
        let mut saved = Vec::with_capacity(results.len());
        let kept = kept.iter().map(Vec::as_slice).chain(std::iter::repeat(&[][..]));
        for (handle, kept) in results.iter().zip(kept) {
            saved.push(handle.as_ref().map(|handle| self.save(handle, kept)).transpose()?.map(Arc::new));
        }
        if writes_files {
            self.pin(operands.clone());
        }
        let results = saved.iter().map(|saved| saved.as_deref().map(Saved::describe)).collect();
        self.append(Event::Segment { results, writes_files })?;
        drop(operands);
        Ok(saved)
    }

    /// Keeps operands of a segment that writes files to the end of the program.
    pub(crate) fn pin(&mut self, operands: Vec<Arc<Saved>>) {
        self.n_segments += 1;
        self.pinned.extend(operands);
    }

    /// A loop begins. Gives the turn to go on with and what it begins with, if some have ended before.
    pub(crate) fn begin_loop(&mut self) -> Result<Option<(usize, Vec<Option<Kept>>)>> {
        let depth = self.depth;
        self.depth += 1;
        match self.next() {
            None => {
                self.append(Event::Loop { depth })?;
                return Ok(None);
            }
            Some(Event::Loop { depth: before }) if before == depth => {}
            Some(_) => return Err(self.misfit()),
        }
        let has_turned = matches!(self.ahead.front(), Some(Event::Turn { depth: before, .. }) if *before == depth);
        match if has_turned { self.ahead.pop_front() } else { None } {
            Some(Event::Turn { turn, carried, .. }) => Ok(Some((turn + 1, self.restore_all(&carried)?))),
            _ => Ok(None),
        }
    }

    /// A turn of the innermost loop has ended.
    pub(crate) fn end_turn(&mut self, turn: usize, carried: &[Option<Arc<Saved>>]) -> Result<()> {
        let carried = carried.iter().map(|saved| saved.as_deref().map(Saved::describe)).collect();
        self.append(Event::Turn { depth: self.depth.saturating_sub(1), turn, carried })
    }

    /// The innermost loop is over.
    pub(crate) fn end_loop(&mut self) {
        self.depth = self.depth.saturating_sub(1);
    }

    /// The answer to a question that only data answers.
    pub(crate) fn answer(&mut self, ask: impl FnOnce() -> Result<Vec<u64>>) -> Result<Vec<u64>> {
        match self.next() {
            None => {
                let answer = ask()?;
                self.append(Event::Answer(answer.clone()))?;
                Ok(answer)
            }
            Some(Event::Answer(answer)) => Ok(answer),
            Some(_) => Err(self.misfit()),
        }
    }

    /// The program has ended: nothing is left to resume.
    pub(crate) fn finish(self) -> Result<()> {
        fs::remove_dir_all(&self.directory).map_err(|error| failed(&self.directory, "cannot be removed", &error))
    }

    /// The next event of the run before.
    fn next(&mut self) -> Option<Event> {
        // Tasks of a segment that has run again, or of a schedule that is not planned any more.
        while self.next_tasks(None).is_some() {}
        let event = self.ahead.pop_front();
        if event.is_none() {
            // The walk has what it needs of the run before.
            self.restored.clear();
            self.owners.clear();
        }
        event
    }

    /// Appends to the log. Slots that were dropped before are free when the record is there, not earlier.
    fn append(&mut self, event: Event) -> Result<()> {
        let retired = self.blocks.retired();
        lock(&self.log).push(event)?;
        self.blocks.reuse(retired);
        Ok(())
    }

    /// Saves a tensor, of which some blocks may be in the file already.
    fn save(&self, handle: &TensorHandle, kept: &[Option<Arc<SpilledBlock>>]) -> Result<Saved> {
        let (dtype, grid) = (handle.dtype(), handle.grid().clone());
        let of_input = |origin: &Arc<dyn Source>| {
            let address = Arc::as_ptr(origin).cast::<()>();
            self.inputs.iter().find(|(_, input)| Arc::as_ptr(input).cast::<()>() == address)
        };
        if let Some((name, _)) = handle.origin().and_then(of_input) {
            return Ok(Saved { dtype, grid, place: SavedPlace::Input(name.clone()) });
        }
        let kept = kept.iter().map(Option::as_ref).chain(std::iter::repeat(None));
        let blocks = handle.blocks().iter().zip(kept).map(|(block, kept)| match kept {
            Some(kept) => Ok(Arc::clone(kept)),
            None => Ok(Arc::new(self.blocks.write(&*block.block()?)?)),
        });
        Ok(Saved { dtype, grid, place: SavedPlace::Blocks(blocks.collect::<Result<_>>()?) })
    }

    fn restore_all(&mut self, values: &[Option<SavedTensor>]) -> Result<Vec<Option<Kept>>> {
        values.iter().map(|value| value.as_ref().map(|value| self.restore(value)).transpose()).collect()
    }

    fn restore(&mut self, value: &SavedTensor) -> Result<Kept> {
        let (dtype, grid) = (value.dtype, value.grid.clone());
        if let Some(name) = &value.input {
            let source = self.inputs.get(name).ok_or_else(|| self.misfit())?;
            let handle = TensorHandle::of_source(dtype, grid.clone(), source);
            return Ok((Arc::new(handle), Arc::new(Saved { dtype, grid, place: SavedPlace::Input(name.clone()) })));
        }
        let mut blocks = Vec::with_capacity(value.blocks.len());
        for description in &value.blocks {
            blocks.push(self.restore_block(description)?);
        }
        if blocks.len() as u64 != grid.n_blocks() {
            return Err(self.misfit());
        }
        let handle = TensorHandle::on_disk(dtype, grid.clone(), &blocks);
        Ok((Arc::new(handle), Arc::new(Saved { dtype, grid, place: SavedPlace::Blocks(blocks) })))
    }

    fn restore_block(&mut self, description: &[u8]) -> Result<Arc<SpilledBlock>> {
        if let Some(block) = self.restored.get(description) {
            return Ok(Arc::clone(block));
        }
        let offset = ByteReader::new(description).unsigned()?;
        let owns_slot = self.owners.get(&offset).is_some_and(|owner| owner == description);
        let block = Arc::new(self.blocks.restore(description, owns_slot)?);
        self.restored.insert(description.to_vec(), Arc::clone(&block));
        Ok(block)
    }

    fn misfit(&self) -> Error {
        let directory = self.directory.display();
        Error::io(format!("the checkpoint in {directory} does not fit this program")).help("delete it to start afresh")
    }
}

impl Saved {
    fn describe(&self) -> SavedTensor {
        let (input, blocks) = match &self.place {
            SavedPlace::Input(name) => (Some(name.clone()), Vec::new()),
            SavedPlace::Blocks(blocks) => (None, blocks.iter().map(|block| block.describe()).collect()),
        };
        SavedTensor { dtype: self.dtype, grid: self.grid.clone(), input, blocks }
    }
}

fn failed(path: &Path, what: &str, error: &std::io::Error) -> Error {
    Error::io(format!("the checkpoint {} {what}: {error}", path.display()))
}

/// A hash over all that decides the results of a program, and over the version of what a checkpoint stores.
fn key_of(program: &Program, inputs: &Inputs, options: &PlanOptions) -> Result<Digest> {
    let settings = format!("{:?} {}", (options.tile, options.block_bytes, options.rewrites), options.provider.get());
    let mut parts = vec![
        Digest::of("tilewright 3 checkpoint: program", &[print_program(program).as_bytes()]),
        Digest::of("tilewright 1 checkpoint: settings", &[settings.as_bytes()]),
    ];
    for (name, source) in inputs {
        parts.push(Digest::of("tilewright 1 checkpoint: name", &[name.as_bytes()]));
        parts.push(fingerprint(name, source.as_ref())?);
    }
    Ok(Digest::of_all(&parts))
}

/// What tells the data of an input from other data: that of a file, or all elements of what is in memory.
fn fingerprint(name: &str, source: &dyn Source) -> Result<Digest> {
    if let Some(fingerprint) = source.fingerprint() {
        return Ok(fingerprint);
    }
    let (Some(grid), true) = (source.chunks(), source.access() != SourceAccess::Foreign) else {
        let text = format!("`{name}` cannot be recognised by a later process, so this program has no checkpoint");
        return Err(Error::source(text).help("store it in a file and read that, or run without a checkpoint"));
    };
    let mut parts = vec![Digest::of("tilewright 1 checkpoint: type", &[source.ty().to_string().as_bytes()])];
    for position in 0..grid.n_blocks() {
        let block = source.read(&grid.box_of(position), &Meter::new())?;
        parts.extend(in_memory(block.to_array()?).fingerprint());
    }
    Ok(Digest::of_all(&parts))
}

fn refuse_what_cannot_resume(program: &Program, targets: &Targets) -> Result<()> {
    if targets.values().any(|target| matches!(target, tw_files::FileTarget::Append(_))) {
        return Err(Error::plan("a program that appends to an array has no checkpoint: it might append twice")
            .help("write to a new array, or run without a checkpoint"));
    }
    refuse_in(&program.body, false)
}

fn refuse_in(region: &Region, is_inside: bool) -> Result<()> {
    for node in &region.nodes {
        match &node.op {
            Op::BlockFn(call) if !call.function.0.is_lasting() => {
                let name = call.function.0.name();
                return Err(Error::plan(format!(
                    "`{name}` is a function of this process, which a later one cannot recognise, so this program has no checkpoint"
                ))
                .help("compute what it makes first and store it, or run without a checkpoint")
                .at(&node.span));
            }
            Op::Store { .. } if is_inside => {
                return Err(Error::plan("a file that is written inside a loop or branch has no checkpoint")
                    .help("write it after the loop, or run without a checkpoint")
                    .at(&node.span));
            }
            _ => {}
        }
        node.op.regions().try_for_each(|inner| refuse_in(inner, true))?;
    }
    Ok(())
}
