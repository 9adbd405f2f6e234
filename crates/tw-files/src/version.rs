//! What tells versions of a file apart without reading it.

use std::fs::File;
use std::os::unix::fs::MetadataExt;

use tw_ir::schedule::Digest;

/// Of the file that is open: which one it is, its length, and when it was changed; and of what is read of it.
pub(crate) fn of_file(file: &File, part: &[u8]) -> Option<Digest> {
    let metadata = file.metadata().ok()?;
    let facts = [metadata.dev(), metadata.ino(), metadata.len(), metadata.mtime() as u64, metadata.mtime_nsec() as u64];
    Some(Digest::of("tilewright 1 version of a table", &[&facts.map(u64::to_le_bytes).concat(), part]))
}
