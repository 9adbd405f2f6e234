//! Dense blocks in memory, the kernels that compute them, and `.npy` files.
//!
//! A [`Block`] is a box of a tensor with its elements. A [`CompiledKernel`] is a [`tw_ir::kernel::Kernel`] made ready to run: compiled once per
//! schedule, shared by threads, run once per task. Nothing here plans, orders or waits.
//!
//! Results depend on the kernel and on the boxes of its blocks alone: not on threads, not on how a block is stored, not on the machine's
//! vector width.

mod blas;
mod block;
mod bytes;
mod copy;
mod elementwise;
mod foreign;
mod gather;
mod gemm;
mod indexing;
mod kernel;
mod masked;
mod memory;
pub mod npy;
mod pages;
mod past_cache;
mod place;
mod scan;
mod scatter;
mod sort;
mod statement;
mod states;
mod strip;
mod walk;
mod whole;
mod wide;
mod width;

pub use block::Block;
pub use foreign::{ElementwiseFunction, MOST_OPERANDS};
pub use gemm::{Provider, provider};
pub use kernel::CompiledKernel;
pub use masked::count_selected;
pub use memory::{Meter, Running};
pub use whole::{LARGER_THAN_CACHES, Whole};
