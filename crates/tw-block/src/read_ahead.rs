//! Parts of sources that are held to cut blocks out of.
//!
//! Where reading a block alone is expensive (a column of a row-major file), its source reads neighbouring blocks, too, and caches them here for the tasks that read the
//! neighbours. A part is held until every element of it has been asked for, or until newer parts need its place. All sources of a run share one limit.
//!
//! A thread that needs a part which another thread is reading waits for it; other parts are read meanwhile.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use tw_ir::{BoxRegion, Result};

use crate::block::Block;

/// The parts that the sources of one run hold.
#[derive(Debug)]
pub struct ReadAhead {
    /// Bytes that all parts may hold.
    limit: u64,
    n_readers: AtomicU32,
    held: Mutex<Vec<Part>>,
}

#[derive(Debug)]
struct Part {
    reader: u32,
    bbox: BoxRegion,
    bytes: u64,
    /// `None` until it is read. Locked while it is being read.
    block: Arc<Mutex<Option<Arc<Block>>>>,
    /// Prefetched elements that have not been requested yet.
    unread: u64,
}

impl ReadAhead {
    /// Nothing yet, and never more than this many bytes.
    pub fn new(limit: u64) -> Arc<ReadAhead> {
        Arc::new(ReadAhead { limit, n_readers: AtomicU32::new(0), held: Mutex::default() })
    }

    /// A number for one more source.
    pub fn add_reader(&self) -> u32 {
        self.n_readers.fetch_add(1, Ordering::Relaxed)
    }

    /// The most bytes of one part: half of the limit, because a thread may still be in the part before.
    pub fn most_bytes(&self) -> u64 {
        self.limit / 2
    }

    /// The part that a region lies in; if there is none, `read` makes one for the box `wide`, with this many bytes.
    pub fn part(
        &self,
        reader: u32,
        region: &BoxRegion,
        wide: &BoxRegion,
        bytes: u64,
        read: impl FnOnce() -> Result<Block>,
    ) -> Result<Arc<Block>> {
        // A list of parts is whole at every moment, whoever panicked while holding it.
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        let found = held.iter().position(|part| part.reader == reader && part.bbox.contains(region));
        let position = match found {
            Some(position) => position,
            None => {
                while held.iter().map(|part| part.bytes).sum::<u64>() + bytes > self.limit && !held.is_empty() {
                    held.remove(0);
                }
                held.push(Part { reader, bbox: wide.clone(), bytes, unread: wide.n_elements(), block: Arc::default() });
                held.len() - 1
            }
        };
        let part = &mut held[position];
        part.unread = part.unread.saturating_sub(region.n_elements());
        let slot = Arc::clone(&part.block);
        if part.unread == 0 {
            held.remove(position);
        }
        drop(held);
        // Read by the first who comes here; if that fails, by the next.
        let mut slot = slot.lock().unwrap_or_else(PoisonError::into_inner);
        let block = match &*slot {
            Some(block) => Arc::clone(block),
            None => Arc::clone(slot.insert(Arc::new(read()?))),
        };
        Ok(block)
    }
}
