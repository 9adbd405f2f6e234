//! What the language knows about files, without opening any.

use tw_ir::{DType, Error, Result};

/// Answers questions about files while a program is read. The planner itself does no input.
pub trait Catalog {
    /// Element type and shape of the array in a file.
    fn header(&self, path: &str) -> Result<(DType, Vec<u64>)>;
}

/// A catalog without files.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoFiles;

impl Catalog for NoFiles {
    fn header(&self, path: &str) -> Result<(DType, Vec<u64>)> {
        Err(Error::io(format!("\"{path}\" cannot be read: this program runs without files")))
    }
}
