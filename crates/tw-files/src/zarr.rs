//! Zarr arrays, versions 2 and 3, in directories.
//!
//! `x.zarr` names an array, `x.zarr/group/name` one inside groups. Metadata, shards and transposed chunks are read and written by `zarrs`; compressors are our own
//! ([`compress`]), because those of `zarrs` unfold whatever a chunk contains.
//!
//! Reading: a box decodes only the chunks that meet it, of a shard only the inner chunks. A chunk without a file is its fill value. Chunks that are cut by the box are
//! kept for a while, as far as the run has memory to spare ([`tw_block::ReadAhead`]). Metadata is checked before anything is allocated by it.
//!
//! Writing: a new array is made in a directory beside its place, and gets its name when it is committed. Its chunks are the blocks that are stored, so no two tasks
//! write one chunk; where blocks are uneven, those that share a chunk write it one after the other under a lock. Writing into an array that exists is described in [`sink`].

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tw_block::{Sink, Source};
use tw_ir::{Axis, DType, Error, Grid, Result};

use crate::formats::{FileSummary, FileTarget, Format, KeptSink};

mod array;
mod blosc;
mod bytes;
mod codecs;
mod compress;
mod metadata;
mod sink;
mod source;
mod store;

/// The format, for the table of all.
pub(crate) struct Zarr;

impl Format for Zarr {
    fn names(&self, path: &Path) -> bool {
        root_of(path).is_some() || metadata::describes(path).is_some()
    }

    fn begins(&self, path: &Path) -> bool {
        metadata::describes(path).is_some()
    }

    fn open(&self, path: &Path) -> Result<Arc<dyn Source>> {
        Ok(Arc::new(source::ZarrSource::new(array::ZarrArray::open(path)?)?))
    }

    fn create(&self, path: &Path, dtype: DType, grid: &Grid, target: &FileTarget) -> Result<Arc<dyn Sink>> {
        sink::create(path, dtype, grid, target)
    }

    fn join(&self, path: &Path, dtype: DType, grid: &Grid, target: &FileTarget, joint: &str) -> Result<Arc<dyn Sink>> {
        sink::join(path, dtype, grid, target, joint)
    }

    fn create_kept(
        &self,
        path: &Path,
        (dtype, grid): (DType, &Grid),
        target: &FileTarget,
        name: &str,
    ) -> Result<KeptSink> {
        sink::create_kept(path, dtype, grid, target, name)
    }

    fn blocks_for(&self, path: &Path, dtype: DType, shape: &[u64], target: &FileTarget) -> Result<Option<Grid>> {
        sink::blocks_for(path, dtype, shape, target)
    }

    fn scratch_of_store(&self, block_bytes: u64) -> u64 {
        scratch_of_store(block_bytes)
    }

    fn describe(&self, path: &Path) -> Result<FileSummary> {
        metadata::summary(path)
    }
}

/// A chunk is copied together, and its copy encoded, from one codec to the next; chunks of a new array are at most as large as blocks.
fn scratch_of_store(block_bytes: u64) -> u64 {
    block_bytes.saturating_mul(3)
}

/// Blocks are made of whole chunks of about this many bytes: they stay in a cache between the passes over them, and a task forgets its overhead.
const BLOCK_BYTES: u64 = 4 << 20;

/// Blocks of very large arrays have up to this many bytes, so that there are fewer of them.
const MOST_BLOCK_BYTES: u64 = 64 << 20;

/// Blocks that an array should have at most, before they grow.
const MANY_BLOCKS: u64 = 1 << 18;

/// An array of more blocks cannot be planned: cuts of axes are lists. Metadata may claim any number.
const MOST_BLOCKS: u64 = 1 << 22;

/// A grid of blocks that are made of whole chunks: as many as make up a block of the usual size, along the last axes first. `lo` is where the first element lies in the
/// grid of the chunks.
fn whole_chunks(shape: &[u64], lo: &[u64], chunk: &[u64], element_size: u64) -> Grid {
    let mut bytes =
        chunk.iter().zip(shape).fold(element_size, |bytes, (&n, &whole)| bytes.saturating_mul(n.min(whole.max(1))));
    let total = shape.iter().fold(element_size, |bytes, &n| bytes.saturating_mul(n));
    let block_bytes = (total / MANY_BLOCKS).clamp(BLOCK_BYTES, MOST_BLOCK_BYTES);
    let mut axes: Vec<Axis> = Vec::new();
    for ((&n, &whole), &lo) in chunk.iter().zip(shape).zip(lo).rev() {
        let chunks = whole.div_ceil(n).max(1);
        let taken = (block_bytes / bytes.max(1)).clamp(1, chunks);
        bytes = bytes.saturating_mul(taken);
        let tile = n.saturating_mul(taken);
        axes.push(match (n - lo % n) % n {
            0 => Axis::uniform(whole, tile),
            first if first >= whole => Axis::whole(whole),
            // Too many for a list; whoever reads or writes them refuses.
            _ if whole / tile > MOST_BLOCKS => Axis::uniform(whole, tile),
            first => {
                let rest = Axis::uniform(whole - first, tile);
                let after = rest.boundaries().into_iter().map(|cut| cut + first);
                Axis::from_boundaries([0].into_iter().chain(after).collect())
            }
        });
    }
    axes.into_iter().rev().collect()
}

/// The directory of the store that a path lies in: the first part of it that ends in `.zarr`.
fn root_of(path: &Path) -> Option<PathBuf> {
    let is_store = |part: &Path| part.extension().is_some_and(|extension| extension == "zarr");
    path.ancestors().filter(|part| is_store(part)).last().map(Path::to_path_buf)
}

fn failed(path: &Path, what: &str, error: &std::io::Error) -> Error {
    Error::io(format!("{} {what}: {error}", path.display()))
}

/// The names of what lies in a directory, sorted.
fn names_in(directory: &Path) -> Vec<String> {
    let Ok(entries) = fs::read_dir(directory) else { return Vec::new() };
    let mut names: Vec<String> = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok()).collect();
    names.sort();
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_made_of_whole_chunks() {
        let tiles = |shape: &[u64], chunk: &[u64]| {
            let grid = whole_chunks(shape, &vec![0; shape.len()], chunk, 8);
            grid.iter().map(Axis::longest).collect::<Vec<u64>>()
        };
        assert_eq!(tiles(&[1000, 1000], &[1000, 1000]), [1000, 1000]);
        assert_eq!(tiles(&[10_000, 10_000], &[100, 100]), [100, 5200]);
        assert_eq!(tiles(&[10_000, 1000], &[100, 100]), [500, 1000]);
        assert_eq!(tiles(&[10_000, 10_000], &[5000, 5000]), [5000, 5000]);
        assert_eq!(tiles(&[1_000_000_000_000_000], &[1]), [8 << 20]);
        assert!(tiles(&[], &[]).is_empty());
    }

    #[test]
    fn blocks_of_a_region_end_with_chunks() {
        let cuts = |whole, lo, n| whole_chunks(&[whole], &[lo], &[n], 8 << 20)[0].boundaries();
        assert_eq!(cuts(10, 0, 4), [0, 4, 8, 10]);
        assert_eq!(cuts(10, 3, 4), [0, 1, 5, 9, 10]);
        assert_eq!(cuts(10, 4, 4), [0, 4, 8, 10]);
        assert_eq!(cuts(2, 1, 4), [0, 2]);
    }
}
