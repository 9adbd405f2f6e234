//! Dense blocks in memory, the kernels that compute them, and where they are read from and written to.
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
mod exchange;
mod foreign;
mod gather;
mod gemm;
mod in_memory;
mod indexing;
mod kernel;
mod masked;
mod memory;
mod message;
mod pages;
mod past_cache;
mod place;
mod read_ahead;
mod scan;
mod scatter;
mod sink;
mod sort;
mod source;
mod spill;
mod statement;
mod states;
mod strip;
mod walk;
mod whole;
mod wide;
mod width;

pub use block::Block;
pub use bytes::{read_elements, swap_bytes, write_elements};
pub use copy::copy_strided;
pub use exchange::exchange_paths;
pub use foreign::{ElementwiseFunction, MOST_OPERANDS};
pub use gemm::{Provider, provider};
pub use in_memory::in_memory;
pub use kernel::CompiledKernel;
pub use masked::count_selected;
pub use memory::{Meter, Running, ScratchCharge};
pub use message::{BlockBuffer, BlockMessage};
pub use pages::{ReturnedAtOnce, zeros};
pub use read_ahead::ReadAhead;
pub use sink::{Sink, commit_all};
pub use sort::Streamed;
pub use source::{Source, SourceAccess};
pub use spill::{SpillFile, SpillSlot, SpilledBlock};
pub use walk::Points;
pub use whole::{LARGER_THAN_CACHES, Whole};
