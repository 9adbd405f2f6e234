//! Types of files, which the language asks for without opening any.

use tw_ir::program::TensorType;
use tw_ir::{Error, Result};

/// Answers questions about files while a program is read. The planner itself does no input.
pub trait Catalog {
    /// The type of the array in a file, every extent known; its tiling is the cut that the file is best read in.
    fn header(&self, path: &str) -> Result<TensorType>;
}

/// A catalog without files.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoFiles;

impl Catalog for NoFiles {
    fn header(&self, path: &str) -> Result<TensorType> {
        Err(Error::io(format!("\"{path}\" cannot be read: this program runs without files")))
    }
}
