//! What tells versions of a file apart without reading it.

use std::fs::File;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use tw_ir::schedule::Digest;
use tw_ir::{Error, Result};

/// Which file it is, its length, and when it was changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Version([u64; 5]);

impl Version {
    /// That of a file that is open.
    pub(crate) fn of(file: &File) -> std::io::Result<Version> {
        let metadata = file.metadata()?;
        let (seconds, nanoseconds) = (metadata.mtime() as u64, metadata.mtime_nsec() as u64);
        Ok(Version([metadata.dev(), metadata.ino(), metadata.len(), seconds, nanoseconds]))
    }

    /// An error if the file is no longer of this version. Whoever has just read of the file so knows which version that was.
    pub(crate) fn check(self, path: &Path, file: &File) -> Result<()> {
        match Version::of(file) {
            Ok(now) if now == self => Ok(()),
            Ok(_) => Err(Error::io(format!("{} has changed since it was opened", path.display()))
                .help("open it again when nobody writes to it")),
            Err(error) => Err(Error::io(format!("{} cannot be examined: {error}", path.display()))),
        }
    }

    /// A hash over it, and over what is read of the file.
    pub(crate) fn digest(self, part: &[u8]) -> Digest {
        Digest::of("tilewright 1 version of a table", &[&self.0.map(u64::to_le_bytes).concat(), part])
    }
}
