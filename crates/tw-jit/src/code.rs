//! A compiled kernel in memory.
//!
//! Each kernel has a module of its own, so that its memory can be given back alone: pages are mapped when it is compiled and unmapped when
//! the last handle goes. One module for all kernels would grow for ever, for Cranelift frees a module as a whole.
#![allow(unsafe_code)]

use std::cell::RefCell;
use std::sync::{Arc, Mutex, OnceLock};

use cranelift_codegen::Context;
use cranelift_codegen::ir::UserFuncName;
use cranelift_codegen::isa::OwnedTargetIsa;
use cranelift_codegen::settings::{self, Configurable};
use cranelift_frontend::FunctionBuilderContext;
use cranelift_jit::{JITBuilder, JITModule};
use cranelift_module::{Linkage, Module, default_libcall_names};
use tw_ir::{Buffer, Error, Result};
use tw_sparse::loops::{LoopKernel, LoopStmt, verify};

use crate::runtime::{self, Frame, GrowthLimit};
use crate::translate::{Checks, CodeSummary, signature, translate};

/// Machine code, and the memory it is in.
pub(crate) struct CompiledKernel {
    entry: unsafe extern "C" fn(*mut Frame) -> i64,
    /// Taken when the memory is given back.
    module: Mutex<Option<JITModule>>,
    summary: CodeSummary,
}

fn fault(what: impl std::fmt::Display) -> Error {
    Error::internal(format!("a kernel was not compiled: {what}"))
}

/// Kernels with more statements are merges of several operands, most of whose statements run once per way through a round. They have
/// nothing for the optimiser: without it, a union of three operands was compiled in three quarters of the time and ran as fast.
const MANY_STATEMENTS: usize = 100;

fn n_statements(body: &[LoopStmt]) -> usize {
    body.iter()
        .map(|stmt| match stmt {
            LoopStmt::Comment(_) => 0,
            LoopStmt::For(.., inner) | LoopStmt::While(_, inner) => 1 + n_statements(inner),
            LoopStmt::If(_, yes, no) => 1 + n_statements(yes) + n_statements(no),
            _ => 1,
        })
        .sum()
}

/// The description of this machine, made once with optimisation and once without.
fn machine(optimise: bool) -> Result<OwnedTargetIsa> {
    static MACHINES: [OnceLock<std::result::Result<OwnedTargetIsa, String>>; 2] = [OnceLock::new(), OnceLock::new()];
    let made = MACHINES[optimise as usize].get_or_init(|| {
        let mut flags = settings::builder();
        let mut set = |name: &str, value: &str| flags.set(name, value).map_err(|error| error.to_string());
        set("use_colocated_libcalls", "false")?;
        set("is_pic", "false")?;
        set("opt_level", if optimise { "speed" } else { "none" })?;
        // The tests run with it.
        set("enable_verifier", if cfg!(debug_assertions) { "true" } else { "false" })?;
        let machine = cranelift_native::builder().map_err(str::to_string)?;
        machine.finish(settings::Flags::new(flags)).map_err(|error| error.to_string())
    });
    made.clone().map_err(|reason| Error::resource(format!("there is no compiler for this machine: {reason}")))
}

/// True if kernels can be compiled here.
pub(crate) fn is_available() -> bool {
    machine(true).is_ok()
}

thread_local! {
    /// Memory of the compiler, kept from kernel to kernel.
    static SCRATCH: RefCell<(Context, FunctionBuilderContext)> =
        RefCell::new((Context::new(), FunctionBuilderContext::new()));
}

impl CompiledKernel {
    /// Compiles a kernel, after verifying it.
    pub(crate) fn new(kernel: &LoopKernel, checks: Checks) -> Result<CompiledKernel> {
        verify::verify(kernel)?;
        let machine = machine(n_statements(&kernel.body) <= MANY_STATEMENTS)?;
        let mut module = JITModule::new(JITBuilder::with_isa(machine, default_libcall_names()));
        let compiled = SCRATCH.with_borrow_mut(|(context, builder)| {
            module.clear_context(context);
            context.func.signature = signature(module.isa().default_call_conv());
            let id = module.declare_function("kernel", Linkage::Export, &context.func.signature).map_err(fault)?;
            context.func.name = UserFuncName::user(0, id.as_u32());
            let summary = translate(kernel, checks, &mut context.func, builder, module.target_config());
            module.define_function(id, context).map_err(fault)?;
            let bytes = context.compiled_code().map_or(0, |code| code.code_buffer().len());
            module.clear_context(context);
            module.finalize_definitions().map_err(fault)?;
            Ok((module.get_finalized_function(id), CodeSummary { bytes, ..summary }))
        });
        match compiled {
            Ok((address, summary)) => {
                // SAFETY: the address is that of a function with the signature of `crate::translate::signature`: one pointer in, an i64 out.
                let entry =
                    unsafe { std::mem::transmute::<*const u8, unsafe extern "C" fn(*mut Frame) -> i64>(address) };
                Ok(CompiledKernel { entry, module: Mutex::new(Some(module)), summary })
            }
            Err(error) => {
                // SAFETY: no function of this module was handed out.
                unsafe { module.free_memory() };
                Err(error)
            }
        }
    }

    /// What the code is like.
    pub(crate) fn summary(&self) -> CodeSummary {
        self.summary
    }

    /// Runs the kernel that this was compiled from, or one that differs from it in names only.
    pub(crate) fn run(
        &self,
        kernel: &LoopKernel,
        params: &[i64],
        inputs: &[Arc<Buffer>],
        lengths: &[u64],
        limit: Option<&GrowthLimit>,
    ) -> Result<Vec<Buffer>> {
        // SAFETY: the code was made for this kernel: the engine finds it by all that is compiled. `self` keeps its memory. That the kernel keeps
        // to its arrays is argued in `crate::translate`.
        unsafe { runtime::run(kernel, self.entry, params, inputs, lengths, limit) }
    }
}

impl Drop for CompiledKernel {
    fn drop(&mut self) {
        let module = self.module.get_mut().map(Option::take).unwrap_or_default();
        if let Some(module) = module {
            // SAFETY: the pointer to the function is in `self` only and goes with it; a call borrows `self`, so none is under way.
            unsafe { module.free_memory() };
        }
    }
}
