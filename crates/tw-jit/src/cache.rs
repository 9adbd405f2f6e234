//! Compiled kernels by signature. The least recently used one goes when there are too many; its memory is freed when no run uses it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use tw_ir::Result;
use tw_sparse::loops::LoopKernel;

use crate::code::CompiledKernel;
use crate::signature::signature;
use crate::translate::Checks;

struct Entry {
    code: Arc<CompiledKernel>,
    last_use: u64,
}

#[derive(Default)]
struct Entries {
    by_signature: HashMap<Vec<u8>, Entry>,
    clock: u64,
    statistics: CacheStatistics,
}

/// What a cache holds and has done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CacheStatistics {
    /// Kernels held.
    pub kernels: usize,
    /// Bytes of their machine code.
    pub bytes: usize,
    /// Kernels that were compiled.
    pub compiled: u64,
    /// Kernels that were found.
    pub found: u64,
}

/// A bounded number of compiled kernels.
pub(crate) struct KernelCache {
    entries: Mutex<Entries>,
    capacity: usize,
}

impl KernelCache {
    pub(crate) fn new(capacity: usize) -> KernelCache {
        KernelCache { entries: Mutex::new(Entries::default()), capacity: capacity.max(1) }
    }

    fn entries(&self) -> std::sync::MutexGuard<'_, Entries> {
        // The entries are whole between any two statements, so a panic elsewhere leaves nothing half done.
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The code of a kernel. Two threads that miss at once both compile, and one result is dropped: cheaper than to make one wait.
    pub(crate) fn get(&self, kernel: &LoopKernel, checks: Checks) -> Result<Arc<CompiledKernel>> {
        let signature = signature(kernel, checks);
        {
            let entries = &mut *self.entries();
            entries.clock += 1;
            if let Some(entry) = entries.by_signature.get_mut(&signature) {
                entry.last_use = entries.clock;
                entries.statistics.found += 1;
                return Ok(entry.code.clone());
            }
        }
        let code = Arc::new(CompiledKernel::new(kernel, checks)?);
        // Evicted code is freed after the lock.
        let mut gone = Vec::new();
        let entries = &mut *self.entries();
        while entries.by_signature.len() >= self.capacity {
            let oldest = entries.by_signature.iter().min_by_key(|(_, entry)| entry.last_use);
            let Some(oldest) = oldest.map(|(signature, _)| signature.clone()) else { break };
            gone.extend(entries.by_signature.remove(&oldest));
        }
        entries.statistics.compiled += 1;
        let entry = Entry { code: code.clone(), last_use: entries.clock };
        gone.extend(entries.by_signature.insert(signature, entry));
        Ok(code)
    }

    pub(crate) fn statistics(&self) -> CacheStatistics {
        let entries = self.entries();
        let bytes = entries.by_signature.values().map(|entry| entry.code.summary().bytes).sum();
        CacheStatistics { kernels: entries.by_signature.len(), bytes, ..entries.statistics }
    }
}
