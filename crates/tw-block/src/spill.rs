//! The spill file: blocks that have left main memory and come back.
//!
//! A [`SpillFile`] belongs to one session. It is created in the spill directory when the first block is written, and its name is removed at once: the system gives
//! the space back when the process ends, however it ends. A process that is killed between these two calls leaves an empty file; the next process that
//! spills to the directory removes it.
//!
//! Every block has a slot: a range of the file as large as its elements, rounded up to pages. A slot is free again when its [`SpilledBlock`] is dropped, and
//! its room serves other blocks ([`FreeRoom`]). The elements are compressed with LZ4 where that is faster than writing them as they are, going by a sample of the block and
//! by how fast the file took the blocks before. The buffers of a block follow each other in its slot; each is stored in pieces; the checksum of a piece is compared when it is read. A kernel that streams an
//! operand reads it piece by piece ([`PieceReader`]) and never has all of it in memory.
//!
//! A file with a name keeps the blocks of a checkpoint ([`SpillFile::durable`]). A later process finds a block again by its description
//! ([`SpilledBlock::describe`], [`SpillFile::restore`]). The description of a block that was dropped may still be the newest one on disk, so its slot is not used
//! again before the owner of the file says so ([`SpillFile::retired`], [`SpillFile::reuse`]).

use std::cell::{Ref, RefCell};
use std::fs::{File, OpenOptions};
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use tw_ir::schedule::{ByteReader, ByteWriter};
use tw_ir::{BoxRegion, Buffer, DType, Error, Result, shape};

use xxhash_rust::xxh3::xxh3_64;

use crate::block::Block;
use crate::memory::Meter;
use crate::pages;
use crate::strip::Element;

mod buffer;
mod free;
mod pace;

use buffer::{SpilledBuffer, Writing};
use free::FreeRoom;
use pace::Pace;

/// Slots begin at multiples of this.
const PAGE: u64 = 4096;

/// Names of spill files begin so; the number of the process and a counter follow.
const PREFIX: &str = "tilewright-spill-";

/// The place of blocks that do not fit into memory.
#[derive(Debug)]
pub struct SpillFile {
    directory: PathBuf,
    /// The most bytes that the file may have.
    limit: Option<u64>,
    space: Mutex<Space>,
    pace: Pace,
    /// True if blocks outlive the process.
    is_durable: bool,
}

/// Room in a spill file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SpillSlot {
    offset: u64,
    room: u64,
}

/// The file and its slots.
#[derive(Debug)]
struct Space {
    file: Option<Arc<File>>,
    end: u64,
    free: FreeRoom,
    used: u64,
    /// Slots of a durable file that were dropped and are not to be used again yet.
    retired: Vec<SpillSlot>,
}

/// A block in the spill file. Dropping it frees its slot.
#[derive(Debug)]
pub struct SpilledBlock {
    home: Arc<SpillFile>,
    file: Arc<File>,
    offset: u64,
    room: u64,
    bbox: BoxRegion,
    /// One or more; a dense block has one.
    buffers: Vec<SpilledBuffer>,
    /// The first element of every piece of a dense block: who looks for a place in a sorted one reads the one piece that has it.
    firsts: Option<Buffer>,
}

impl Space {
    fn new(file: Option<Arc<File>>, is_durable: bool) -> Space {
        Space { file, end: 0, free: FreeRoom::new(!is_durable), used: 0, retired: Vec::new() }
    }
}

impl SpillFile {
    /// Spills to a directory, at most so many bytes at once. Nothing is created before the first block comes.
    pub fn new(directory: &Path, limit: Option<u64>) -> Arc<SpillFile> {
        Arc::new(SpillFile {
            directory: directory.to_path_buf(),
            limit,
            space: Mutex::new(Space::new(None, false)),
            pace: Pace::default(),
            is_durable: false,
        })
    }

    /// Blocks that outlive the process, in a file with a name. Blocks of an earlier process stay until their slots are reused.
    pub fn durable(path: &Path) -> Result<Arc<SpillFile>> {
        let directory = path.parent().unwrap_or(Path::new(".")).to_path_buf();
        let file = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path);
        let file = file.map_err(|error| Error::io(format!("{} cannot be opened: {error}", path.display())))?;
        let space = Space::new(Some(Arc::new(file)), true);
        Ok(Arc::new(SpillFile {
            directory,
            limit: None,
            space: Mutex::new(space),
            pace: Pace::default(),
            is_durable: true,
        }))
    }

    /// Keeps new blocks away from the slot of a block that an earlier process has described. All of them are reserved before anything is written: some may be restored
    /// later. Gives where the slot begins.
    pub fn reserve(&self, description: &[u8]) -> Result<u64> {
        let mut reader = ByteReader::new(description);
        let (offset, room) = (reader.unsigned()?, reader.unsigned()?);
        let mut space = self.lock();
        space.end = space.end.max(offset.saturating_add(room));
        Ok(offset)
    }

    /// A block that an earlier process has written to a durable file. Its slot was reserved before new blocks were written. Damage is noticed when it is read. A
    /// block that does not own its slot is one whose slot has been used again: it is known, but it cannot be read.
    pub fn restore(self: &Arc<SpillFile>, description: &[u8], owns_slot: bool) -> Result<SpilledBlock> {
        let damaged = || Error::io("the description of a saved block is damaged");
        let (description, checksum) = description.split_last_chunk().ok_or_else(damaged)?;
        if xxh3_64(description).to_le_bytes() != *checksum {
            return Err(damaged());
        }
        let mut reader = ByteReader::new(description);
        let (offset, mut room) = (reader.unsigned()?, reader.unsigned()?);
        let (lo, hi) = (reader.column(u64::MAX)?, reader.column(u64::MAX)?);
        let is_box = lo.len() == hi.len() && lo.iter().zip(&hi).all(|(lo, hi)| lo <= hi);
        let bbox = BoxRegion { lo, hi };
        let (mut buffers, mut at) = (Vec::new(), offset);
        for _ in 0..reader.unsigned()? {
            let buffer = SpilledBuffer::from_description(&mut reader, &mut at)?;
            buffers.push(buffer.ok_or_else(damaged)?);
        }
        let is_whole = match &buffers[..] {
            [dense] => is_box && shape::n_elements(&bbox.shape()).ok() == Some(dense.n_elements),
            several => is_box && !several.is_empty(),
        };
        if !is_whole || at - offset > room {
            return Err(damaged());
        }
        let mut space = self.lock();
        let Some(file) = space.file.clone() else { return Err(Error::internal("a durable file that is not open")) };
        space.end = space.end.max(offset.saturating_add(room));
        room = if owns_slot { room } else { 0 };
        space.used = space.used.saturating_add(room);
        drop(space);
        Ok(SpilledBlock { home: Arc::clone(self), file, offset, room, bbox, buffers, firsts: None })
    }

    /// The slots of a durable file that were dropped since the last call.
    pub fn retired(&self) -> Vec<SpillSlot> {
        std::mem::take(&mut self.lock().retired)
    }

    /// Allows slots to be used again: no description that counts names them any more.
    pub fn reuse(&self, slots: Vec<SpillSlot>) {
        let mut space = self.lock();
        // A block that is known but was overwritten has no room of its own.
        for slot in slots.into_iter().filter(|slot| slot.room > 0) {
            let end = space.end;
            space.end = space.free.give(slot.offset, slot.room, end);
        }
    }

    /// The spill directory.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// The most bytes that can be spilled besides those that are: as many as the disk has left, but for a tenth, and the room that is free in the file, within the limit.
    /// `None` if the system does not tell.
    pub fn capacity(&self) -> Option<u64> {
        let existing = self.directory.ancestors().find(|directory| directory.exists())?;
        let system = rustix::fs::statvfs(existing).ok()?;
        let free = system.f_bavail.saturating_mul(system.f_frsize);
        let space = self.lock();
        let reached = space.end.saturating_add(free / 10 * 9);
        Some(self.limit.map_or(reached, |limit| limit.min(reached)).saturating_sub(space.used))
    }

    /// Writes a block.
    pub fn write(self: &Arc<SpillFile>, block: &Block) -> Result<SpilledBlock> {
        let n_bytes = block.n_bytes();
        let (file, offset, room) = self.take_slot(n_bytes)?;
        let bbox = block.bbox().clone();
        let home = Arc::clone(self);
        let mut spilled = SpilledBlock { home, file, offset, room, bbox, buffers: Vec::new(), firsts: None };
        let mut writing = Writing::from(offset);
        let start = Instant::now();
        let mut write = |elements: &Buffer, range: Range<usize>| {
            let written = SpilledBuffer::write(&spilled.file, elements, range, &self.pace, &mut writing);
            spilled.buffers.push(written.map_err(|error| self.failed("writing", &error))?);
            Ok::<(), Error>(())
        };
        if block.is_dense() {
            let (elements, first) = block.row_major_from()?;
            write(&elements, first..first + block.n_elements() as usize)?;
            spilled.firsts = Some(spilled.buffers[0].first_elements(&elements, first));
        } else {
            block.buffers().try_for_each(|buffer| write(buffer, 0..buffer.len()))?;
        }
        if writing.compresses == Some(false) {
            self.pace.wrote(n_bytes, start.elapsed());
        }
        Ok(spilled)
    }

    /// Writes a part of a block.
    pub fn write_part(self: &Arc<SpillFile>, block: &Block, part: &BoxRegion) -> Result<SpilledBlock> {
        let mut copy = Block::for_output(block.dtype(), part.clone(), None)?;
        let (to, buffer) = copy.output()?;
        block.copy_moved_overlap(block.bbox(), to, buffer)?;
        self.write(&copy)
    }

    /// A slot for so many bytes: the file, where it begins, how long it is.
    fn take_slot(&self, n_bytes: u64) -> Result<(Arc<File>, u64, u64)> {
        let room = n_bytes.max(1).next_multiple_of(PAGE);
        let mut space = self.lock();
        let file = match &space.file {
            Some(file) => Arc::clone(file),
            None => {
                let file = Arc::new(self.create()?);
                space.file = Some(Arc::clone(&file));
                file
            }
        };
        let offset = match space.free.take(room) {
            Some(offset) => offset,
            None => {
                if let Some(limit) = self.limit
                    && space.end.saturating_add(room) > limit
                {
                    return Err(Error::resource(format!(
                        "spilled blocks need more than the {limit} bytes that the spill directory {} may hold",
                        self.directory.display()
                    ))
                    .help("allow more, give a larger memory budget, or compute less at once"));
                }
                let offset = space.end;
                space.end += room;
                offset
            }
        };
        space.used += room;
        Ok((file, offset, room))
    }

    fn free_slot(&self, offset: u64, room: u64) {
        let mut space = self.lock();
        space.used -= room;
        if self.is_durable {
            space.retired.push(SpillSlot { offset, room });
            return;
        }
        let end = space.end;
        space.end = space.free.give(offset, room, end);
        if space.used == 0 {
            // Nothing is left: the space goes back to the system. Failing to shrink a file loses nothing.
            if let Some(file) = &space.file {
                let _ = file.set_len(0);
            }
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Space> {
        // The list of slots is whole at every moment.
        self.space.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn create(&self) -> Result<File> {
        std::fs::create_dir_all(&self.directory).map_err(|error| self.failed("creating", &error))?;
        remove_left_over_files(&self.directory);
        static COUNTER: AtomicU64 = AtomicU64::new(0);
        loop {
            let name = format!("{PREFIX}{}-{}", std::process::id(), COUNTER.fetch_add(1, Ordering::Relaxed));
            let path = self.directory.join(name);
            match OpenOptions::new().read(true).write(true).create_new(true).open(&path) {
                Ok(file) => {
                    std::fs::remove_file(&path).map_err(|error| self.failed("removing the name of", &error))?;
                    return Ok(file);
                }
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(self.failed("creating", &error)),
            }
        }
    }

    fn failed(&self, doing: &str, error: &io::Error) -> Error {
        let directory = self.directory.display();
        if self.is_durable {
            let failed = Error::io(format!("{doing} the blocks of the checkpoint in {directory} failed: {error}"));
            return failed.help("make room for it, or delete it to start afresh");
        }
        let failed = Error::resource(format!("{doing} the spill file in {directory} failed: {error}"));
        failed.help("choose another spill directory, or give a larger memory budget")
    }
}

impl SpilledBlock {
    /// The place of the block in its tensor.
    pub fn bbox(&self) -> &BoxRegion {
        &self.bbox
    }

    /// True if it is in this file.
    pub fn is_in(&self, file: &Arc<SpillFile>) -> bool {
        Arc::ptr_eq(&self.home, file)
    }

    /// Type of its values.
    pub fn dtype(&self) -> DType {
        self.buffers[self.buffers.len() - 1].dtype
    }

    /// Bytes of its elements, or of all its buffers.
    pub fn n_bytes(&self) -> u64 {
        self.buffers.iter().map(|buffer| buffer.n_elements * buffer.dtype.size()).sum()
    }

    /// Where the block is in a durable file, for [`SpillFile::restore`].
    pub fn describe(&self) -> Vec<u8> {
        let mut writer = ByteWriter::default();
        writer.unsigned(self.offset);
        writer.unsigned(self.room);
        writer.column(self.bbox.lo.iter().copied());
        writer.column(self.bbox.hi.iter().copied());
        writer.unsigned(self.buffers.len() as u64);
        self.buffers.iter().for_each(|buffer| buffer.describe(&mut writer));
        let checksum = xxh3_64(&writer.bytes).to_le_bytes();
        writer.bytes.extend_from_slice(&checksum);
        writer.bytes
    }

    /// The block, in main memory again. It stays in the file, too.
    pub fn read(&self, meter: &Arc<Meter>) -> Result<Block> {
        if let [dense] = &self.buffers[..] {
            let mut block = Block::for_output(dense.dtype, self.bbox.clone(), Some(meter))?;
            self.read_buffer(dense, 0, 0..dense.n_elements as usize, block.output()?.1)?;
            return Ok(block);
        }
        let mut buffers = Vec::with_capacity(self.buffers.len());
        for spilled in &self.buffers {
            let mut part = Block::for_output(spilled.dtype, BoxRegion::whole(&[spilled.n_elements]), Some(meter))?;
            self.read_buffer(spilled, 0, 0..spilled.n_elements as usize, part.output()?.1)?;
            buffers.push(part);
        }
        Block::from_parts(self.bbox.clone(), buffers)
    }

    fn read_buffer(&self, buffer: &SpilledBuffer, piece: usize, range: Range<usize>, to: &mut Buffer) -> Result<()> {
        buffer.read(&self.file, piece, range, to).map_err(|error| self.home.failed("reading", &error))
    }

    /// The first element of every piece and the number of elements from one to the next, if they are known: those of a block that an earlier process
    /// wrote are not.
    pub(crate) fn index(&self) -> Option<(&Buffer, usize)> {
        self.firsts.as_ref().map(|firsts| (firsts, self.buffers[0].elements_of_piece()))
    }
}

/// Reads elements of a spilled dense block where it lies, with one piece of it in memory.
///
/// Readers of many blocks share the memory of their pieces: thousands of small vectors that come and go with every task would leave holes in the heap of every thread.
#[derive(Debug)]
pub(crate) struct PieceReader<'a> {
    block: &'a SpilledBlock,
    buffer: &'a SpilledBuffer,
    windows: Rc<RefCell<Buffer>>,
    /// Where the own piece lies in the windows.
    start: usize,
    /// The elements of a piece, from `first` on.
    first: usize,
    n: usize,
}

/// The elements of a piece.
pub(crate) struct Piece<'r> {
    windows: Ref<'r, Buffer>,
    start: usize,
    /// Where the piece begins in its block.
    pub(crate) first: usize,
    /// The number of its elements.
    pub(crate) n: usize,
}

impl Piece<'_> {
    /// Its elements.
    pub(crate) fn elements<T: Element>(&self) -> &[T] {
        &T::of(&self.windows)[self.start..self.start + self.n]
    }
}

impl<'a> PieceReader<'a> {
    /// Readers of blocks that have one type.
    pub(crate) fn of_all(blocks: impl Iterator<Item = &'a SpilledBlock>) -> Result<Vec<PieceReader<'a>>> {
        let windows = Rc::new(RefCell::new(Buffer::Bool(Vec::new())));
        let (mut dtype, mut room) = (DType::Bool, 0);
        let mut readers = Vec::new();
        for block in blocks {
            let [buffer] = &block.buffers[..] else {
                return Err(Error::internal("a block of several buffers is read as a dense one"));
            };
            readers.push(PieceReader { block, buffer, windows: Rc::clone(&windows), start: room, first: 0, n: 0 });
            dtype = buffer.dtype;
            room += buffer.elements_of_piece().min(buffer.n_elements as usize);
        }
        let no_memory = || Error::resource(format!("no memory for {room} elements of {dtype}"));
        *windows.borrow_mut() = pages::zeros(dtype, room).ok_or_else(no_memory)?;
        Ok(readers)
    }

    pub(crate) fn block(&self) -> &'a SpilledBlock {
        self.block
    }

    /// The piece that has an element, as far as it goes.
    pub(crate) fn piece_with(&mut self, element: usize) -> Result<Piece<'_>> {
        if element < self.first || element >= self.first + self.n {
            let size = self.buffer.elements_of_piece();
            let piece = element / size;
            let first = piece * size;
            let n = (self.buffer.n_elements as usize).saturating_sub(first).min(size);
            // A piece that cannot be read is not cached: the next read reports the error again.
            self.n = 0;
            let range = self.start..self.start + n;
            self.block.read_buffer(self.buffer, piece, range, &mut self.windows.borrow_mut())?;
            (self.first, self.n) = (first, n);
        }
        Ok(Piece { windows: self.windows.borrow(), start: self.start, first: self.first, n: self.n })
    }
}

impl Drop for SpilledBlock {
    fn drop(&mut self) {
        self.home.free_slot(self.offset, self.room);
    }
}

/// Removes files that processes left which were killed while they created them.
fn remove_left_over_files(directory: &Path) {
    let Ok(entries) = std::fs::read_dir(directory) else { return };
    for entry in entries.flatten() {
        let name = entry.file_name();
        let process = name.to_str().and_then(|name| name.strip_prefix(PREFIX)?.split_once('-')?.0.parse::<u32>().ok());
        if let Some(process) = process
            && process != std::process::id()
            && !Path::new("/proc").join(process.to_string()).exists()
        {
            let _ = std::fs::remove_file(entry.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::FileExt;

    use tw_ir::Array;

    use super::*;

    fn block(n: u64, value: impl Fn(u64) -> f64) -> Block {
        let array = Array::from_f64(&(0..n).map(value).collect::<Vec<_>>());
        Block::from_array(&[100], array, None).unwrap()
    }

    fn directory(name: &str) -> PathBuf {
        let path = std::env::temp_dir().join(format!("tw-spill-test-{}-{name}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        path
    }

    #[test]
    fn blocks_come_back_as_they_were_and_slots_are_used_again() {
        let directory = directory("round");
        let file = SpillFile::new(&directory, None);
        let meter = Meter::new();
        let noise = |k: u64| f64::from_bits(k.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 2);
        for n in [0, 1, 1000, 100_000] {
            for blocks in [vec![block(n, noise)], vec![block(n, |_| 1.5), block(n, noise)]] {
                let spilled: Vec<_> = blocks.iter().map(|block| file.write(block).unwrap()).collect();
                for (spilled, block) in spilled.iter().zip(&blocks) {
                    let read = spilled.read(&meter).unwrap();
                    assert_eq!(read.bbox(), block.bbox());
                    assert!(read.to_array().unwrap().same_bits(&block.to_array().unwrap()));
                }
            }
        }
        assert_eq!(file.lock().used, 0);
        assert_eq!(std::fs::read_dir(&directory).unwrap().count(), 0, "the name of a spill file is removed at once");
        let first = file.write(&block(1000, noise)).unwrap();
        let offset = first.offset;
        let second = file.write(&block(1000, noise)).unwrap();
        drop(first);
        assert_eq!(file.write(&block(1000, |_| 0.0)).unwrap().offset, offset);
        drop(second);
        std::fs::remove_dir_all(directory).unwrap();
    }

    /// A process that goes on with a durable file writes to it before it has restored all that is there.
    #[test]
    fn new_blocks_keep_away_from_those_that_are_restored_later() {
        let directory = directory("later");
        let path = directory.join("kept");
        let values = [1.0, 2.0];
        let written = SpillFile::durable(&path).unwrap();
        let descriptions = values.map(|value| written.write(&block(1000, |_| value)).unwrap().describe());
        drop(written);
        let (kept, meter) = (SpillFile::durable(&path).unwrap(), Meter::new());
        for description in &descriptions {
            kept.reserve(description).unwrap();
        }
        let first = kept.restore(&descriptions[0], true).unwrap();
        let new = kept.write(&block(1000, |_| 3.0)).unwrap();
        let second = kept.restore(&descriptions[1], true).unwrap();
        for (spilled, value) in [(first, 1.0), (second, 2.0), (new, 3.0)] {
            assert_eq!(spilled.read(&meter).unwrap().get(&[100]), Some(tw_ir::Scalar::F64(value)));
        }
        std::fs::remove_dir_all(directory).unwrap();
    }

    #[test]
    fn room_serves_blocks_of_other_sizes() {
        let directory = directory("sizes");
        // Ten blocks of two pages, and one that stays.
        let file = SpillFile::new(&directory, Some(21 * PAGE));
        let first = file.write(&block(10, |k| k as f64)).unwrap();
        assert_eq!(file.capacity(), Some(20 * PAGE));
        for n in [1000_u64, 300, 1500, 500, 9000] {
            let room = (8 * n).next_multiple_of(PAGE);
            let blocks: Vec<_> = (0..20 * PAGE / room).map(|_| file.write(&block(n, |k| k as f64)).unwrap()).collect();
            // Half of them go before the others.
            let (even, odd): (Vec<_>, Vec<_>) = blocks.into_iter().enumerate().partition(|(k, _)| k % 2 == 0);
            drop(even);
            drop(odd);
        }
        assert_eq!(first.read(&Meter::new()).unwrap().get(&[105]), Some(tw_ir::Scalar::F64(5.0)));
        drop(first);
        let space = file.lock();
        assert_eq!((space.used, space.end), (0, 0));
        drop(space);
        std::fs::remove_dir_all(directory).unwrap();
    }

    /// Blocks of several buffers, empty ones among them, of random types and lengths.
    fn of_several_buffers(turn: u64) -> Block {
        let mut state = turn.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
        let mut below = |n: u64| {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (state >> 33) % n
        };
        let n_buffers = 2 + below(3);
        let buffers = (0..n_buffers).map(|_| {
            let n = [0, 1, below(100), 8192, below(30_000)][below(5) as usize];
            let (noisy, kind) = (below(2) == 0, below(3));
            let values = (0..n).map(|k| if noisy { below(1 << 40) } else { k / 7 });
            match kind {
                0 => Buffer::I64(values.map(|value| value as i64).collect()),
                1 => Buffer::F32(values.map(|value| value as f32).collect()),
                _ => Buffer::Bool(values.map(|value| value % 3 == 0).collect()),
            }
        });
        Block::from_buffers(BoxRegion::whole(&[1000, 1000]), buffers.collect(), None).unwrap()
    }

    #[test]
    fn blocks_of_several_buffers_come_back_as_they_were() {
        let directory = directory("buffers");
        let (passing, kept) = (SpillFile::new(&directory, None), SpillFile::durable(&directory.join("kept")).unwrap());
        for turn in 0..60 {
            let block = of_several_buffers(turn);
            let meter = Meter::new();
            let spilled = passing.write(&block).unwrap();
            assert_eq!((spilled.n_bytes(), spilled.dtype()), (block.n_bytes(), block.dtype()));
            let back = spilled.read(&meter).unwrap();
            assert!(back.buffers().eq(block.buffers()) && back.bbox() == block.bbox());
            assert_eq!(meter.now(), block.n_bytes());
            assert!(PieceReader::of_all([&spilled].into_iter()).is_err());
            assert!(back.to_array().is_err() && back.lend().is_none());
            let description = kept.write(&block).unwrap().describe();
            let restored = kept.restore(&description, false).unwrap().read(&meter).unwrap();
            assert!(restored.buffers().eq(block.buffers()));
            // A damaged description is refused.
            for at in 0..description.len() {
                let mut damaged = description.clone();
                damaged[at] ^= 1 << (turn % 8);
                assert!(kept.restore(&damaged, false).is_err(), "byte {at}");
            }
        }
        std::fs::remove_dir_all(&directory).unwrap();
    }

    #[test]
    fn damage_is_noticed_and_limits_are_kept() {
        let directory = directory("damage");
        let file = SpillFile::new(&directory, Some(3 * PAGE));
        let spilled = file.write(&block(1000, |k| k as f64)).unwrap();
        spilled.file.write_all_at(&[77], spilled.offset + 5).unwrap();
        // A search in a run asks again for the piece that failed, and must not get the damaged bytes.
        let mut reader = PieceReader::of_all([&spilled].into_iter()).unwrap().remove(0);
        assert!(reader.piece_with(0).is_err() && reader.piece_with(0).is_err());
        let error = spilled.read(&Meter::new()).unwrap_err();
        assert!(error.message().contains("damaged"), "{error:?}");
        let error = file.write(&block(1000, |k| k as f64)).unwrap_err();
        assert!(error.message().contains("may hold"), "{error:?}");
        drop(spilled);
        file.write(&block(1000, |k| k as f64)).unwrap();
        std::fs::remove_dir_all(directory).unwrap();
    }

    #[test]
    fn files_of_dead_processes_are_removed_and_others_are_not() {
        let directory = directory("dead");
        let (dead, own) = (format!("{PREFIX}4194999-0"), format!("{PREFIX}{}-999999", std::process::id()));
        for name in [&dead, &own, &"notes.txt".to_string()] {
            std::fs::write(directory.join(name), "x").unwrap();
        }
        drop(SpillFile::new(&directory, None).write(&block(3, |_| 0.0)).unwrap());
        assert!(!directory.join(dead).exists() && directory.join(own).exists() && directory.join("notes.txt").exists());
        std::fs::remove_dir_all(directory).unwrap();
    }
}
