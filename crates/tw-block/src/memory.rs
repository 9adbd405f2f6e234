//! Counting the bytes that blocks hold, and using them again.
//!
//! Memory fresh from the system costs a fault per page, which for large blocks takes longer than most kernels. So a meter keeps the storage of
//! large blocks that went, for blocks of about the same size that come: runs of a selection are seldom equally long. It never keeps more than it has seen in use before: bytes in use and bytes kept
//! together stay below the highest use so far. While nothing runs it keeps little, so that memory goes back to the system when results die; enough
//! for a loop on the host that computes the same again and again. Vectors that a kernel takes as scratch space are kept in the same way, with
//! the storage of blocks: fresh pages for every task took longer than sorting.

use std::any::Any;
use std::cell::RefCell;
use std::marker::PhantomData;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use tw_ir::{Array, Buffer, DType, with_buffer};

use crate::pages;

/// Smaller storage is left to the allocator. It would give back larger ones as quickly, but not without zeroing them.
pub(crate) const SMALLEST_KEPT: u64 = 128 << 10;

/// Bytes that are kept while nothing runs.
const KEPT_BETWEEN_RUNS: u64 = 256 << 20;

/// The allocator is asked to give memory back to the system each time so many bytes have been freed.
const TRIMMED_AT_ONCE: u64 = 64 << 20;

/// Counts bytes held by blocks: how many now, and how many at the worst moment.
#[derive(Debug, Default)]
pub struct Meter {
    now: AtomicU64,
    peak: AtomicU64,
    /// The most bytes ever held; unlike `peak` it is never reset.
    highest: AtomicU64,
    /// Bytes of `kept`.
    kept_bytes: AtomicU64,
    kept: Mutex<Vec<Kept>>,
    /// Runs under way.
    runs: AtomicU64,
    /// Bytes that may be kept while nothing runs: none before the first run, and after memory was given back.
    kept_when_idle: AtomicU64,
    /// Bytes freed since the allocator was asked to give memory back.
    freed: AtomicU64,
}

/// Memory that is kept for later.
#[derive(Debug)]
enum Kept {
    /// Storage of a block.
    Storage(Buffer),
    /// A `Vec` of scratch space, and the bytes it has room for.
    Scratch(Box<dyn Any + Send>, u64),
}

impl Kept {
    fn n_bytes(&self) -> u64 {
        match self {
            Kept::Storage(buffer) => held_bytes(buffer),
            Kept::Scratch(_, bytes) => *bytes,
        }
    }
}

thread_local! {
    /// Vectors that the task of this thread may take: it has been charged for them.
    static LEASE: RefCell<Option<Vec<Kept>>> = const { RefCell::new(None) };
}

/// Says that a run is under way, as long as it lives.
#[derive(Debug)]
pub struct Running(Arc<Meter>);

/// Counts scratch space, as long as it lives.
#[derive(Debug)]
pub struct ScratchCharge<'a> {
    meter: &'a Meter,
    bytes: u64,
    has_lease: bool,
    /// A lease belongs to a thread.
    of_thread: PhantomData<*const ()>,
}

impl Drop for ScratchCharge<'_> {
    fn drop(&mut self) {
        self.meter.discharge(self.bytes);
        if self.has_lease {
            for vector in LEASE.take().unwrap_or_default() {
                self.meter.keep(vector, self.meter.now());
            }
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if self.0.runs.fetch_sub(1, Ordering::Relaxed) == 1 {
            self.0.keep_at_most(self.0.kept_when_idle.load(Ordering::Relaxed));
        }
    }
}

impl Meter {
    /// A meter at zero.
    pub fn new() -> Arc<Meter> {
        Arc::new(Meter::default())
    }

    /// Bytes held now.
    pub fn now(&self) -> u64 {
        self.now.load(Ordering::Relaxed)
    }

    /// The most bytes held at once since the last reset.
    pub fn peak(&self) -> u64 {
        self.peak.load(Ordering::Relaxed)
    }

    /// Resets the peak to the bytes that are live now.
    pub fn reset_peak(&self) {
        self.peak.store(self.now(), Ordering::Relaxed);
    }

    /// Begins a run, during which storage is kept for the blocks that follow.
    pub fn begin_run(self: &Arc<Meter>) -> Running {
        self.runs.fetch_add(1, Ordering::Relaxed);
        self.kept_when_idle.store(KEPT_BETWEEN_RUNS, Ordering::Relaxed);
        Running(Arc::clone(self))
    }

    /// Gives storage that is kept for later back to the system, and keeps none until the next run.
    pub fn release_kept(&self) {
        self.kept_when_idle.store(0, Ordering::Relaxed);
        self.keep_at_most(0);
        self.freed.store(0, Ordering::Relaxed);
        pages::return_free_memory();
    }

    fn keep_at_most(&self, bytes: u64) {
        if self.kept_bytes.load(Ordering::Relaxed) <= bytes {
            return;
        }
        let mut kept = self.lock();
        let mut dropped = Vec::new();
        while self.kept_bytes.load(Ordering::Relaxed) > bytes && !kept.is_empty() {
            // The oldest is the least likely to be in a cache.
            let oldest = kept.remove(0);
            self.kept_bytes.fetch_sub(oldest.n_bytes(), Ordering::Relaxed);
            dropped.push(oldest);
        }
        drop(kept);
        dropped.into_iter().for_each(|kept| self.free(kept));
    }

    /// Frees storage. The allocator returns its free pages to the system from time to time, while nothing runs.
    fn free(&self, kept: Kept) {
        let bytes = kept.n_bytes();
        drop(kept);
        if bytes >= SMALLEST_KEPT
            && self.is_idle()
            && self.freed.fetch_add(bytes, Ordering::Relaxed) + bytes >= TRIMMED_AT_ONCE
        {
            self.freed.store(0, Ordering::Relaxed);
            pages::return_free_memory();
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<Kept>> {
        // The list is whole at every moment, whoever panicked while holding it.
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts scratch space until the charge is dropped.
    pub fn charge_scratch(&self, bytes: u64) -> Option<ScratchCharge<'_>> {
        (bytes > 0).then(|| {
            self.charge(bytes);
            ScratchCharge { meter: self, bytes, has_lease: false, of_thread: PhantomData }
        })
    }

    /// As [`Meter::charge_scratch`], for a task of this thread whose kernel calls `with_scratch`. Kept vectors of at most so many bytes are set
    /// aside for it, so that they are not counted twice, and do not have to make room for the charge. They are kept again when the charge is dropped.
    pub fn lease_scratch(&self, bytes: u64) -> Option<ScratchCharge<'_>> {
        (bytes > 0).then(|| {
            LEASE.set(Some(self.set_aside(bytes)));
            self.charge(bytes);
            ScratchCharge { meter: self, bytes, has_lease: true, of_thread: PhantomData }
        })
    }

    fn set_aside(&self, bytes: u64) -> Vec<Kept> {
        if self.kept_bytes.load(Ordering::Relaxed) == 0 {
            return Vec::new();
        }
        let (mut kept, mut left) = (self.lock(), bytes);
        // The last ones kept are the ones most likely to be in a cache.
        let fit: Vec<usize> = (0..kept.len())
            .rev()
            .filter(|&position| match kept[position] {
                Kept::Scratch(_, bytes) if bytes <= left => {
                    left -= bytes;
                    true
                }
                _ => false,
            })
            .collect();
        self.kept_bytes.fetch_sub(bytes - left, Ordering::Relaxed);
        fit.into_iter().map(|position| kept.remove(position)).collect()
    }

    /// Counts bytes as live from now on.
    pub(crate) fn charge(&self, bytes: u64) {
        let now = self.now.fetch_add(bytes, Ordering::Relaxed) + bytes;
        // Reading first: most blocks come below the peak, and a counter that is written moves between the caches of all threads.
        if now > self.peak.load(Ordering::Relaxed) {
            self.peak.fetch_max(now, Ordering::Relaxed);
        }
        let mut highest = self.highest.load(Ordering::Relaxed);
        if now > highest {
            highest = self.highest.fetch_max(now, Ordering::Relaxed).max(now);
        }
        if now + self.kept_bytes.load(Ordering::Relaxed) > highest {
            self.make_room(now, highest);
        }
    }

    /// Counts bytes off that were charged before.
    pub(crate) fn discharge(&self, bytes: u64) {
        self.now.fetch_sub(bytes, Ordering::Relaxed);
    }

    /// Drops kept memory until everything fits below the highest use so far.
    fn make_room(&self, now: u64, highest: u64) {
        let mut kept = self.lock();
        let mut dropped = Vec::new();
        while now + self.kept_bytes.load(Ordering::Relaxed) > highest {
            let Some(newest) = kept.pop() else { break };
            self.kept_bytes.fetch_sub(newest.n_bytes(), Ordering::Relaxed);
            dropped.push(newest);
        }
        drop(kept);
        drop(dropped);
    }

    /// Reuses the storage of an array that was handed out and has no owner any more. Truth values are not taken back: others may have left bytes
    /// there that are no truth values.
    pub fn reclaim(&self, array: Array) {
        if array.dtype() == DType::Bool {
            return;
        }
        self.give_back(array.into_data(), 0);
    }

    /// Kept storage for the given number of elements, with whatever it holds.
    pub(crate) fn reuse(&self, dtype: DType, n: usize) -> Option<Buffer> {
        if n as u64 * dtype.size() < SMALLEST_KEPT || self.kept_bytes.load(Ordering::Relaxed) == 0 {
            return None;
        }
        let room = |kept: &Kept| match kept {
            Kept::Storage(buffer) if buffer.dtype() == dtype => Some(capacity(buffer)),
            _ => None,
        };
        let mut kept = self.lock();
        // The last one kept is the one most likely to be in a cache.
        let position = kept.iter().rposition(|kept| room(kept) == Some(n)).or_else(|| {
            let rooms = kept.iter().enumerate().filter_map(|(position, kept)| Some((room(kept)?, position)));
            rooms.filter(|&(room, _)| is_about(room, n)).min().map(|(_, position)| position)
        })?;
        let Kept::Storage(mut buffer) = kept.remove(position) else { return None };
        self.kept_bytes.fetch_sub(held_bytes(&buffer), Ordering::Relaxed);
        drop(kept);
        with_buffer!(&mut buffer, elements => elements.resize(n, Default::default()));
        Some(buffer)
    }

    /// Takes storage back, for later or for good. If there is not room for all, the most recently kept storage is the most likely to be reused.
    fn give_back(&self, buffer: Buffer, charged: u64) {
        let now = self.now.fetch_sub(charged, Ordering::Relaxed) - charged;
        self.keep(Kept::Storage(buffer), now);
    }

    /// Keeps memory if that does not raise the highest use, with `now` bytes in use besides.
    fn keep(&self, memory: Kept, now: u64) {
        let bytes = memory.n_bytes();
        let most = if self.is_idle() { self.kept_when_idle.load(Ordering::Relaxed) } else { u64::MAX };
        let room = self.highest.load(Ordering::Relaxed).saturating_sub(now).min(most);
        if bytes < SMALLEST_KEPT || bytes > room {
            return self.free(memory);
        }
        let mut kept = self.lock();
        self.kept_bytes.fetch_add(bytes, Ordering::Relaxed);
        kept.push(memory);
        drop(kept);
        self.keep_at_most(room);
    }

    fn is_idle(&self) -> bool {
        self.runs.load(Ordering::Relaxed) == 0
    }
}

/// Runs code with vectors that have room for so many elements each and hold whatever they held: those of the task's lease where they have room for
/// little more, else new ones. They belong to the lease afterwards. Nothing is run if the task has no lease.
pub(crate) fn with_scratch<T: Send + 'static, const N: usize, F, R>(room: [usize; N], run: F) -> Result<R, F>
where
    F: FnOnce(&mut [Vec<T>; N]) -> R,
{
    let Some(mut lease) = LEASE.take() else { return Err(run) };
    let taken = room.map(|n| {
        let fits = |kept: &Kept| match kept {
            Kept::Scratch(vector, _) => {
                vector.downcast_ref().is_some_and(|vector: &Vec<T>| is_about(vector.capacity(), n))
            }
            Kept::Storage(_) => false,
        };
        match lease.swap_remove(lease.iter().position(fits)?) {
            Kept::Scratch(vector, _) => vector.downcast().ok().map(|vector: Box<Vec<T>>| *vector),
            Kept::Storage(_) => None,
        }
    });
    if taken.iter().any(Option::is_none) {
        // New vectors and those that are left might be more than the charge.
        lease.clear();
    }
    let mut room = room.into_iter();
    let mut vectors = taken.map(|vector| {
        let n = room.next().unwrap_or(0);
        vector.unwrap_or_else(|| pages::reserve(n))
    });
    let result = run(&mut vectors);
    lease.extend(vectors.map(|vector| {
        let bytes = (vector.capacity() * size_of::<T>()) as u64;
        Kept::Scratch(Box::new(vector), bytes)
    }));
    LEASE.set(Some(lease));
    Ok(result)
}

/// Elements that a buffer has room for.
fn capacity(buffer: &Buffer) -> usize {
    with_buffer!(buffer, elements => elements.capacity())
}

/// True if room for `capacity` elements is enough for `n`, and little more.
fn is_about(capacity: usize, n: usize) -> bool {
    const LITTLE: usize = 8;
    capacity >= n && capacity - n <= n / LITTLE
}

/// Bytes that a buffer has room for.
fn held_bytes(buffer: &Buffer) -> u64 {
    capacity(buffer) as u64 * buffer.dtype().size()
}

pub(crate) fn n_bytes(buffer: &Buffer) -> u64 {
    buffer.len() as u64 * buffer.dtype().size()
}

/// Storage of a block, charged to a meter as long as it lives.
#[derive(Debug)]
pub(crate) struct Storage {
    buffer: Buffer,
    charge: Option<(Arc<Meter>, u64)>,
}

impl Storage {
    /// Storage for `n` elements, which may hold anything; `None` if there is no memory for it.
    pub(crate) fn new(dtype: DType, n: usize, meter: Option<&Arc<Meter>>) -> Option<Storage> {
        let kept = meter.and_then(|meter| meter.reuse(dtype, n));
        let bytes = n as u64 * dtype.size();
        // Counted before it is taken from the system, so that what is kept makes room first.
        let charge = meter.map(|meter| {
            meter.charge(bytes);
            (Arc::clone(meter), bytes)
        });
        match kept.or_else(|| pages::zeros(dtype, n)) {
            Some(buffer) => Some(Storage { buffer, charge }),
            None => {
                charge.inspect(|(meter, bytes)| meter.discharge(*bytes));
                None
            }
        }
    }

    /// Storage that exists already.
    pub(crate) fn from_buffer(buffer: Buffer, meter: Option<&Arc<Meter>>) -> Storage {
        let bytes = n_bytes(&buffer);
        let charge = meter.map(|meter| {
            meter.charge(bytes);
            (Arc::clone(meter), bytes)
        });
        Storage { buffer, charge }
    }

    /// The elements.
    pub(crate) fn buffer(&self) -> &Buffer {
        &self.buffer
    }

    /// The elements, for writing.
    pub(crate) fn buffer_mut(&mut self) -> &mut Buffer {
        &mut self.buffer
    }

    /// The same storage with its elements taken for others of the same size. The charge stays.
    pub(crate) fn retyped(mut self, retype: impl FnOnce(Buffer) -> Buffer) -> Storage {
        self.buffer = retype(std::mem::replace(&mut self.buffer, Buffer::Bool(Vec::new())));
        self
    }

    /// The elements, no longer charged.
    pub(crate) fn into_buffer(mut self) -> Buffer {
        let buffer = std::mem::replace(&mut self.buffer, Buffer::Bool(Vec::new()));
        drop(self);
        buffer
    }
}

impl Drop for Storage {
    fn drop(&mut self) {
        if let Some((meter, bytes)) = self.charge.take() {
            let buffer = std::mem::replace(&mut self.buffer, Buffer::Bool(Vec::new()));
            meter.give_back(buffer, bytes);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Elements of a buffer that is kept.
    const LARGE: usize = 1 << 20;

    fn storage(n: usize, meter: &Arc<Meter>) -> Storage {
        Storage::new(DType::F64, n, Some(meter)).unwrap()
    }

    fn address(storage: &Storage) -> usize {
        match storage.buffer() {
            Buffer::F64(values) => values.as_ptr().addr(),
            _ => 0,
        }
    }

    #[test]
    fn charges_are_given_back() {
        let meter = Meter::new();
        let first = storage(100, &meter);
        let second = storage(50, &meter);
        assert_eq!((meter.now(), meter.peak()), (1200, 1200));
        drop(first);
        assert_eq!((meter.now(), meter.peak()), (400, 1200));
        meter.reset_peak();
        assert_eq!(second.into_buffer().len(), 50);
        assert_eq!((meter.now(), meter.peak()), (0, 400));
    }

    #[test]
    fn large_storage_is_used_again() {
        let meter = Meter::new();
        drop(meter.begin_run());
        let first = storage(LARGE, &meter);
        let place = address(&first);
        drop(first);
        assert_eq!(meter.kept_bytes.load(Ordering::Relaxed), 8 * LARGE as u64);
        assert_eq!(address(&storage(LARGE, &meter)), place);
        // Another size is not served from it, and pushes it out.
        drop(storage(LARGE + 1, &meter));
        assert_eq!(meter.lock().len(), 1);
        assert!(matches!(&meter.lock()[0], Kept::Storage(buffer) if buffer.len() == LARGE + 1));
        meter.release_kept();
        assert_eq!(meter.kept_bytes.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn storage_of_about_the_same_size_is_used_again() {
        let meter = Meter::new();
        drop(meter.begin_run());
        let first = storage(LARGE, &meter);
        let place = address(&first);
        drop(first);
        for n in [LARGE - 1000, LARGE - LARGE / 10, LARGE, LARGE - 7] {
            let again = storage(n, &meter);
            assert_eq!((address(&again), again.buffer().len()), (place, n));
            assert_eq!((meter.now(), meter.kept_bytes.load(Ordering::Relaxed)), (8 * n as u64, 0));
            drop(again);
            // What it has room for counts, not what it held last.
            assert_eq!(meter.kept_bytes.load(Ordering::Relaxed), 8 * LARGE as u64);
        }
        assert_eq!(held_bytes(storage(LARGE / 2, &meter).buffer()), 4 * LARGE as u64);
    }

    #[test]
    fn scratch_space_is_used_again_within_the_highest_use() {
        let meter = Meter::new();
        let _running = meter.begin_run();
        let bytes = 16 * LARGE as u64;
        let places = |n: usize| {
            with_scratch([n / 2, n / 2], move |vectors: &mut [Vec<[u64; 2]>; 2]| {
                let mut places = vectors.each_mut().map(|vector| {
                    vector.resize(n / 2, [0; 2]);
                    vector.as_ptr().addr()
                });
                places.sort_unstable();
                places
            })
        };
        let task = |n: usize| {
            let _charge = meter.lease_scratch(16 * n as u64);
            // A task may use its space several times.
            let first = places(n);
            assert_eq!(places(n).ok(), first.as_ref().ok().copied());
            first.ok()
        };
        let first = task(LARGE);
        assert_eq!((meter.now(), meter.kept_bytes.load(Ordering::Relaxed)), (0, bytes));
        assert_eq!(task(LARGE), first);
        // What a task does not use makes room for what it uses instead.
        let charge = meter.lease_scratch(bytes);
        assert!(with_scratch([2 * LARGE], |vectors: &mut [Vec<u64>; 1]| assert_eq!(vectors[0].len(), 0)).is_ok());
        drop(charge);
        assert_eq!((meter.lock().len(), meter.kept_bytes.load(Ordering::Relaxed)), (1, bytes));
        task(LARGE);
        assert_eq!((meter.lock().len(), meter.kept_bytes.load(Ordering::Relaxed)), (2, bytes));
        // A task that runs beside it takes from what is left.
        let charge = meter.lease_scratch(bytes / 2);
        assert_eq!((meter.lock().len(), meter.kept_bytes.load(Ordering::Relaxed)), (1, bytes / 2));
        drop(charge);
        assert_eq!((meter.peak(), meter.kept_bytes.load(Ordering::Relaxed)), (bytes, bytes));
        // Blocks take the room of kept scratch space.
        let block = storage(LARGE + LARGE / 2, &meter);
        assert_eq!((meter.kept_bytes.load(Ordering::Relaxed), meter.peak()), (0, bytes));
        drop(block);
        assert!(places(LARGE).is_err(), "no lease");
    }

    #[test]
    fn little_is_kept_between_runs() {
        let meter = Meter::new();
        let kept = || meter.kept_bytes.load(Ordering::Relaxed);
        let running = meter.begin_run();
        let held: Vec<Storage> = (0..40).map(|_| storage(LARGE, &meter)).collect();
        drop(held);
        assert_eq!(kept(), 40 * 8 * LARGE as u64);
        let second = meter.begin_run();
        drop(running);
        assert_eq!(kept(), 40 * 8 * LARGE as u64, "a run is still under way");
        drop(second);
        assert_eq!(kept(), KEPT_BETWEEN_RUNS);
        let held: Vec<Storage> = (0..40).map(|_| storage(LARGE, &meter)).collect();
        assert_eq!(kept(), 0);
        drop(held);
        assert_eq!(kept(), KEPT_BETWEEN_RUNS);
        meter.release_kept();
        assert_eq!(kept(), 0);
        drop(storage(LARGE, &meter));
        assert_eq!(kept(), 0, "nothing is kept before the next run");
        drop(meter.begin_run());
        meter.reclaim(Array::from_f64(&vec![0.0; LARGE]));
        assert_eq!(kept(), 8 * LARGE as u64);
    }

    #[test]
    fn what_is_kept_never_raises_the_highest_use() {
        let meter = Meter::new();
        let _running = meter.begin_run();
        let mut held: Vec<Storage> = (0..4).map(|_| storage(LARGE, &meter)).collect();
        held.truncate(1);
        assert_eq!(meter.kept_bytes.load(Ordering::Relaxed), 3 * 8 * LARGE as u64);
        // Small blocks take the room of kept ones.
        let small: Vec<Storage> = (0..1024).map(|_| storage(LARGE / 1024, &meter)).collect();
        assert!(meter.now() + meter.kept_bytes.load(Ordering::Relaxed) <= meter.peak());
        drop((held, small));
        let highest = meter.peak();
        assert!(meter.now() + meter.kept_bytes.load(Ordering::Relaxed) <= highest);
    }
}
