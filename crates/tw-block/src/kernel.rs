//! Kernels made ready to run.

use tw_ir::kernel::{Kernel, Sorting};
use tw_ir::program::FunctionRef;
use tw_ir::spec::{FinishSpec, GatherSpec, ScanSpec, ScatterSpec};
use tw_ir::{Array, ArrayView, Error, Result, Scalar};

use crate::block::Block;
use crate::elementwise::{Combine, Finish, ScanCarry};
use crate::gather::Gather;
use crate::gemm::Provider;
use crate::masked::Masked;
use crate::place::place;
use crate::scan::{ScanBlock, ScanTotal};
use crate::scatter::Scatter;
use crate::sort::{Streamed, sort_merge, sort_run};
use crate::statement::CompiledStatement;

/// A kernel compiled once and run by many tasks, on any thread.
#[derive(Debug)]
pub struct CompiledKernel(Code);

#[derive(Debug)]
enum Code {
    Statement(Box<CompiledStatement>),
    Fill(Vec<Scalar>),
    Combine(Combine),
    Finish(Finish),
    Place { axis: usize, shift: u64 },
    ScanTotal(ScanTotal),
    ScanCarry(ScanCarry),
    ScanBlock(ScanBlock),
    Gather(Gather),
    Scatter(Scatter),
    Compact(Masked),
    Expand(Masked),
    SortRun(Sorting),
    SortMerge(Sorting),
    Call(FunctionRef, Provider),
}

impl CompiledKernel {
    /// Makes a kernel ready, with matrix products by this crate. Loads and stores are done by the runtime and cannot be compiled.
    pub fn compile(kernel: &Kernel) -> Result<CompiledKernel> {
        CompiledKernel::compile_for(kernel, &Provider::rust())
    }

    /// True if tasks take their scratch space from what a meter keeps ([`Meter::lease_scratch`](crate::Meter::lease_scratch)).
    pub fn takes_kept_scratch(&self) -> bool {
        matches!(self.0, Code::SortRun(_) | Code::SortMerge(_))
    }

    /// As [`CompiledKernel::compile`], with products and factorisations of matrices by a provider.
    pub fn compile_for(kernel: &Kernel, provider: &Provider) -> Result<CompiledKernel> {
        let code = match kernel {
            Kernel::Load { .. } | Kernel::Store { .. } => {
                return Err(Error::internal(format!("`{}` moves data; it is not compiled", kernel.name())));
            }
            Kernel::Statement(statement) => Code::Statement(Box::new(CompiledStatement::compile(statement, provider)?)),
            Kernel::Fill(values) => Code::Fill(values.clone()),
            Kernel::Combine(accum) => Code::Combine(Combine::compile(accum)),
            Kernel::Finish(FinishSpec { accum, tracked }) => Code::Finish(Finish::compile(accum, *tracked)?),
            Kernel::Place { axis, shift } => Code::Place { axis: *axis as usize, shift: *shift },
            Kernel::ScanTotal { accum, axis, reverse } => {
                Code::ScanTotal(ScanTotal::compile(accum, *axis as usize, *reverse)?)
            }
            Kernel::ScanCarry(accum) => Code::ScanCarry(ScanCarry::compile(accum)),
            Kernel::ScanBlock(ScanSpec { accum, axis, exclusive, reverse }) => {
                Code::ScanBlock(ScanBlock::compile(accum, *axis as usize, *exclusive, *reverse)?)
            }
            Kernel::Gather { spec: GatherSpec { axes, edge }, shape, fill } => {
                Code::Gather(Gather::compile(axes, shape, *edge, *fill)?)
            }
            Kernel::Scatter { spec: ScatterSpec { axes, edge, accum }, shape } => {
                Code::Scatter(Scatter::compile(axes, shape, *edge, accum)?)
            }
            Kernel::Compact(counts) => Code::Compact(Masked::compile(counts)),
            Kernel::Expand(counts) => Code::Expand(Masked::compile(counts)),
            Kernel::SortRun(sorting) => Code::SortRun(*sorting),
            Kernel::SortMerge(sorting) => Code::SortMerge(*sorting),
            Kernel::Call(function) => Code::Call(function.clone(), provider.clone()),
        };
        Ok(CompiledKernel(code))
    }

    /// True if the kernel writes its outputs right where they belong, so that they may be parts of one array. Functions of others make storage of their own. Past
    /// the caches, as arrays are written that do not stay in them, only statements write.
    pub fn writes_parts(&self, past_cache: bool) -> bool {
        match &self.0 {
            Code::Call(..) => false,
            Code::Statement(statement) => !past_cache || statement.only_writes(),
            _ => !past_cache,
        }
    }

    /// Runs one task.
    ///
    /// `point` says which tile of the iteration space a statement covers. `first` is true unless the task continues a chain: outputs then hold
    /// nothing yet and are initialised here.
    pub fn run(&self, point: u32, first: bool, operands: &[Option<&Block>], outputs: &mut [Block]) -> Result<()> {
        if operands.iter().flatten().any(|operand| !operand.is_dense()) {
            return Err(Error::internal("a kernel for dense blocks is given another one"));
        }
        match &self.0 {
            Code::Statement(statement) => statement.run(point, first, operands, outputs),
            Code::Fill(values) => outputs.iter_mut().zip(values).try_for_each(|(output, &value)| output.fill(value)),
            Code::Combine(combine) => combine.run(first, &all_present(operands)?, outputs),
            Code::Finish(finish) => finish.run(&all_present(operands)?, outputs),
            Code::Place { axis, shift } => place(*axis, *shift, first, operands, outputs),
            Code::ScanTotal(scan) => scan.run(&all_present(operands)?, outputs),
            Code::ScanCarry(scan) => scan.run(&all_present(operands)?, outputs),
            Code::ScanBlock(scan) => scan.run(&all_present(operands)?, outputs),
            Code::Gather(gather) => gather.run(first, operands, outputs),
            Code::Scatter(scatter) => scatter.run(first, &all_present(operands)?, outputs),
            Code::Compact(masked) => masked.compact(point, &all_present(operands)?, outputs),
            Code::Expand(masked) => masked.expand(point, &all_present(operands)?, outputs),
            Code::SortRun(sorting) => sort_run(*sorting, &all_present(operands)?, outputs),
            Code::SortMerge(sorting) => {
                let runs: Vec<Streamed<'_>> = all_present(operands)?.into_iter().map(Streamed::Memory).collect();
                sort_merge(*sorting, &runs, outputs)
            }
            Code::Call(function, provider) => call(function, provider, &all_present(operands)?, outputs),
        }
    }

    /// Runs a task of a kernel that reads its operands where they lie, piece by piece: a merge.
    pub fn run_streamed(&self, operands: &[Streamed<'_>], outputs: &mut [Block]) -> Result<()> {
        match &self.0 {
            Code::SortMerge(sorting) => sort_merge(*sorting, operands, outputs),
            _ => Err(Error::internal("a kernel that reads operands in main memory is given one on disk")),
        }
    }
}

fn all_present<'a>(operands: &[Option<&'a Block>]) -> Result<Vec<&'a Block>> {
    let present: Option<Vec<&Block>> = operands.iter().copied().collect();
    present.ok_or_else(|| Error::internal("a kernel that needs every operand lacks one"))
}

fn call(function: &FunctionRef, provider: &Provider, operands: &[&Block], outputs: &mut [Block]) -> Result<()> {
    // What does not lie together is copied first.
    let lent: Vec<Option<ArrayView<'_>>> = operands.iter().map(|block| block.lend()).collect();
    let copied = |(block, lent): (&&Block, &Option<_>)| lent.is_none().then(|| block.to_array()).transpose();
    let copies: Vec<Option<Array>> = operands.iter().zip(&lent).map(copied).collect::<Result<_>>()?;
    let arguments = lent.into_iter().zip(&copies).map(|(lent, copy)| lent.or_else(|| copy.as_ref().map(Array::view)));
    let arguments: Option<Vec<ArrayView<'_>>> = arguments.collect();
    let arguments = arguments.ok_or_else(|| Error::internal("a block can neither be lent nor copied"))?;
    let mut results = Vec::with_capacity(outputs.len());
    for output in outputs.iter_mut() {
        if !function.0.overwrites_results() {
            output.fill(output.dtype().zero())?;
        }
        results.push(output.take()?);
    }
    match provider.dense() {
        Some(library) => function.0.apply_by(library, &arguments, &mut results)?,
        None => function.0.apply(&arguments, &mut results)?,
    }
    for (output, result) in outputs.iter_mut().zip(results) {
        output.replace(result).map_err(|error| error.note(format!("from the function `{}`", function.0.name())))?;
    }
    Ok(())
}
