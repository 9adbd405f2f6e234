//! Machine code for sparse statements: the loop IR of [`tw_sparse`], compiled in process by Cranelift.
//!
//! [`JitEngine`] is a [`KernelEngine`] as the interpreter is, gives the same bits, and keeps what it has compiled:
//!
//! ```
//! use tw_ir::{Buffer, Scalar};
//! use tw_jit::JitEngine;
//! use tw_sparse::expr::{IndexExpr, IndexStatement, IndexVariable, OperandType};
//! use tw_sparse::{CompiledStatement, SparseTensor};
//!
//! // y(i) = sum(k, A(i, k)), with A in CSR.
//! let zero = Scalar::F64(0.0);
//! let a = SparseTensor::from_dense(vec![2, 2], "dense, compressed".parse()?, zero, &Buffer::F64(vec![0.0, 2.0, 3.0, 4.0]))?;
//! let operand = |name: &str, format: &str| {
//!     tw_ir::Result::Ok(OperandType { name: name.into(), format: format.parse()?, fill: zero })
//! };
//! let [i, k] = [IndexVariable(0), IndexVariable(1)];
//! let statement = IndexStatement::einsum(
//!     vec!["i".into(), "k".into()],
//!     operand("y", "dense")?,
//!     vec![i],
//!     vec![operand("A", "dense, compressed")?],
//!     IndexExpr::access(0, &[i, k]),
//! )?;
//! let engine = JitEngine::new();
//! let y = CompiledStatement::new(statement)?.run(&engine, &[&a], &[])?;
//! assert_eq!(y.to_dense()?, Buffer::F64(vec![2.0, 7.0]));
//! # Ok::<(), tw_ir::Error>(())
//! ```
//!
//! * `translate`: from the loop IR to the IR of Cranelift, and why compiled code stays inside its arrays.
//! * `runtime`: the functions that compiled code calls: growth of arrays, sorting, searching, elementary functions.
//! * `code`, `cache`, `signature`: code in memory, how long it stays there, and what tells kernels apart.
//!
//! # Why Cranelift
//!
//! Cranelift compiles a kernel within milliseconds, in process, and is written in Rust: users need no C compiler, and our build none either.
//! LLVM would optimise better, but it is slower and a large build in C++. Fixed kernels per format cannot serve a language of formats and
//! expressions. What Cranelift does not have, vectors of more than 128 bits, precompiled functions have; a kernel calls them once per row
//! or for four dot products.
#![deny(unsafe_code)]

use std::sync::Arc;

use tw_ir::{Buffer, Result};
use tw_sparse::loops::LoopKernel;
use tw_sparse::{KernelEngine, StatementCall};

mod cache;
mod code;
mod micro;
mod runtime;
mod signature;
mod sort;
mod translate;

pub use cache::CacheStatistics;
pub use runtime::GrowthLimit;
pub use translate::CodeSummary;

use cache::KernelCache;
use translate::Checks;

/// The number of kernels that an engine keeps unless told otherwise: some megabytes.
pub const DEFAULT_CAPACITY: usize = 512;

/// Compiles kernels and runs them.
pub struct JitEngine {
    cache: KernelCache,
    limit: Option<Arc<GrowthLimit>>,
    checks: Checks,
}

impl Default for JitEngine {
    fn default() -> JitEngine {
        JitEngine::new()
    }
}

impl JitEngine {
    /// An engine with an empty cache.
    pub fn new() -> JitEngine {
        JitEngine::with_capacity(DEFAULT_CAPACITY)
    }

    /// An engine that keeps at most so many kernels.
    pub fn with_capacity(capacity: usize) -> JitEngine {
        JitEngine { cache: KernelCache::new(capacity), limit: None, checks: Checks::Trusted }
    }

    /// Compiles bounds checks into every kernel. An access outside its array is then an error, as in the interpreter.
    pub fn with_bounds_checks(mut self) -> JitEngine {
        self.checks = Checks::Bounds;
        self
    }

    /// Asks a function before arrays of a kernel take more memory, with the number of bytes. Its error ends the run.
    pub fn with_growth_limit(mut self, limit: Arc<GrowthLimit>) -> JitEngine {
        self.limit = Some(limit);
        self
    }

    /// True if there is a compiler for this machine. Elsewhere the interpreter runs kernels.
    pub fn is_available() -> bool {
        code::is_available()
    }

    /// Compiles a kernel if that was not done before, and tells what its code is like.
    pub fn prepare(&self, kernel: &LoopKernel) -> Result<CodeSummary> {
        self.cache.get(kernel, self.checks).map(|code| code.summary())
    }

    /// Runs a kernel of any origin: bounds are checked.
    pub fn execute_checked(&self, kernel: &LoopKernel, params: &[i64], inputs: &[Arc<Buffer>]) -> Result<Vec<Buffer>> {
        self.cache.get(kernel, Checks::Bounds)?.run(kernel, params, inputs, &[], self.limit.as_deref())
    }

    /// What the cache holds.
    pub fn statistics(&self) -> CacheStatistics {
        self.cache.statistics()
    }
}

impl KernelEngine for JitEngine {
    fn execute(&self, call: StatementCall<'_>) -> Result<Vec<Buffer>> {
        let code = self.cache.get(call.kernel(), self.checks)?;
        code.run(call.kernel(), call.params(), call.inputs(), call.lengths(), self.limit.as_deref())
    }
}
