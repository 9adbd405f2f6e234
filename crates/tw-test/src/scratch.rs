//! Directories for the files of one test.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use tw_ir::{Result, TensorType};
use tw_lang::Catalog;

/// Tells apart the directories of one process.
static NEXT: AtomicU64 = AtomicU64::new(0);

/// A new, empty directory that is removed when it is dropped. As a catalog it knows the files inside it.
#[derive(Debug)]
pub struct Scratch(PathBuf);

impl Scratch {
    /// Makes a directory.
    pub fn new() -> std::io::Result<Scratch> {
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let directory = std::env::temp_dir().join(format!("tilewright-test-{}-{number}", std::process::id()));
        std::fs::create_dir_all(&directory)?;
        Ok(Scratch(directory))
    }

    /// The path of a file inside.
    pub fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    /// The directory itself.
    pub fn directory(&self) -> &Path {
        &self.0
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // A directory that stays behind harms nobody.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

impl Catalog for Scratch {
    fn header(&self, path: &str) -> Result<TensorType> {
        Ok(tw_files::open(self.path(path))?.ty())
    }
}
