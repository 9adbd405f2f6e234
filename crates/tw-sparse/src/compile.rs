//! Statements that can be run: lowering, the conversions around a kernel, and the binding of tensors to its arrays.

use std::sync::Arc;

use tw_ir::{Buffer, Error, Result};

use crate::expr::IndexStatement;
use crate::format::TensorFormat;
use crate::level::full_size;
use crate::loops::{LoopKernel, counting, interpret};
use crate::lower::{KernelParam, LoweredStatement, WorkspaceChoice, lower};
use crate::tensor::SparseTensor;

/// A kernel of a lowered statement with the parts of tensors that fit to it. Only [`CompiledStatement::run`] makes one: the kernel comes
/// from the lowering, the inputs have passed the checks of [`SparseTensor`], and extents agree across operands. Compiled code relies on it.
#[derive(Clone, Copy, Debug)]
pub struct StatementCall<'a> {
    kernel: &'a LoopKernel,
    params: &'a [i64],
    inputs: &'a [Arc<Buffer>],
    lengths: &'a [u64],
}

impl<'a> StatementCall<'a> {
    /// The kernel.
    pub fn kernel(&self) -> &'a LoopKernel {
        self.kernel
    }
    /// The values of its parameters.
    pub fn params(&self) -> &'a [i64] {
        self.params
    }
    /// Its input arrays.
    pub fn inputs(&self) -> &'a [Arc<Buffer>] {
        self.inputs
    }
    /// The lengths that its outputs will have, if they were counted before; otherwise none.
    pub fn lengths(&self) -> &'a [u64] {
        self.lengths
    }
}

/// What runs kernels of statements: the interpreter, or compiled code.
pub trait KernelEngine {
    /// Runs a kernel and returns its output arrays.
    fn execute(&self, call: StatementCall<'_>) -> Result<Vec<Buffer>>;
}

/// The interpreter: the meaning, and the engine of platforms without compiled code.
#[derive(Clone, Copy, Debug, Default)]
pub struct InterpretedLoops;

impl KernelEngine for InterpretedLoops {
    fn execute(&self, call: StatementCall<'_>) -> Result<Vec<Buffer>> {
        interpret(call.kernel, call.params, call.inputs)
    }
}

/// A statement and its kernel, for operands of any extents.
#[derive(Clone, Debug, PartialEq)]
pub struct CompiledStatement {
    statement: IndexStatement,
    lowered: LoweredStatement,
    /// The same without a workspace as long as an extent.
    sparing: Option<LoweredStatement>,
}

/// A dense workspace may be so many times as long as there are stored values; a longer one costs more than sorting does.
const WORKSPACE_PER_VALUE: u64 = 8;

impl CompiledStatement {
    /// Lowers a statement.
    pub fn new(statement: IndexStatement) -> Result<CompiledStatement> {
        let lowered = lower(&statement, WorkspaceChoice::Dense)?;
        let sparing = match lowered.workspace {
            Some(_) => Some(lower(&statement, WorkspaceChoice::List)?),
            None => None,
        };
        Ok(CompiledStatement { statement, lowered, sparing })
    }

    /// The kernel for these operands: hyper-sparse ones have extents that no workspace must have.
    fn lowered_for(&self, operands: &[&SparseTensor], extents: &[u64]) -> &LoweredStatement {
        let stored: u64 = operands.iter().map(|operand| operand.values().len() as u64).sum();
        match (self.lowered.workspace, &self.sparing) {
            (Some(var), Some(sparing)) if extents[var.0] / WORKSPACE_PER_VALUE > stored + 64 => sparing,
            _ => &self.lowered,
        }
    }

    /// The statement.
    pub fn statement(&self) -> &IndexStatement {
        &self.statement
    }
    /// The kernel and what it needs.
    pub fn lowered(&self) -> &LoweredStatement {
        &self.lowered
    }

    /// Runs the statement. `extents` gives extents of variables that no operand has alone along a mode.
    pub fn run(
        &self,
        engine: &dyn KernelEngine,
        operands: &[&SparseTensor],
        extents: &[Option<u64>],
    ) -> Result<SparseTensor> {
        self.finish(engine, self.bind(operands, extents)?, &[])
    }

    /// The lengths of the arrays that the result will have in the format in which it is made: those of each level, then that of the values.
    /// Where the result shares the levels of an operand, that of the values only.
    pub fn count(
        &self,
        engine: &dyn KernelEngine,
        operands: &[&SparseTensor],
        extents: &[Option<u64>],
    ) -> Result<Vec<u64>> {
        count_bound(engine, &self.bind(operands, extents)?)
    }

    /// As [`CompiledStatement::run`], in two phases: the first counts, the second fills arrays that have their length from the start.
    pub fn run_in_two_phases(
        &self,
        engine: &dyn KernelEngine,
        operands: &[&SparseTensor],
        extents: &[Option<u64>],
    ) -> Result<SparseTensor> {
        let bound = self.bind(operands, extents)?;
        let lengths = count_bound(engine, &bound)?;
        self.finish(engine, bound, &lengths)
    }

    fn bind(&self, operands: &[&SparseTensor], extents: &[Option<u64>]) -> Result<BoundStatement<'_>> {
        let statement = &self.statement;
        let extents = self.bind_extents(operands, extents)?;
        let lowered = self.lowered_for(operands, &extents);
        lowered
            .keys
            .iter()
            .try_fold(1u64, |n, var| n.checked_mul(extents[var.0]))
            .filter(|n| *n <= i64::MAX as u64)
            .ok_or_else(|| {
                Error::resource("the result has more elements than a workspace can number")
                    .help("make an outer level dense")
            })?;
        let converted: Vec<SparseTensor> = lowered
            .operands
            .iter()
            .map(|operand| operands[operand.tensor].convert(&operand.format))
            .collect::<Result<_>>()?;
        let params: Vec<i64> = lowered
            .params
            .iter()
            .map(|param| match param {
                KernelParam::Variable(var) => extents[var.0] as i64,
                KernelParam::Mode(tensor, mode) => operands[*tensor].shape()[*mode] as i64,
            })
            .collect();
        let mut inputs = Vec::new();
        for tensor in &converted {
            inputs.extend(tensor.levels().iter().flatten().cloned());
            inputs.push(tensor.values().clone());
        }
        let shape: Vec<u64> = statement.indices.iter().map(|var| extents[var.0]).collect();
        check_size(&lowered.output, &shape)?;
        Ok(BoundStatement { lowered, converted, params, inputs, shape })
    }

    fn finish(&self, engine: &dyn KernelEngine, bound: BoundStatement<'_>, lengths: &[u64]) -> Result<SparseTensor> {
        let (statement, BoundStatement { lowered, converted, params, inputs, shape }) = (&self.statement, bound);
        let call = StatementCall { kernel: &lowered.kernel, params: &params, inputs: &inputs, lengths };
        let mut outputs = engine.execute(call)?.into_iter().map(Arc::new);
        let mut levels = Vec::new();
        match &lowered.pattern {
            Some(pattern) => {
                let k = lowered.operands.iter().position(|operand| operand == pattern);
                let shared = k.map(|k| converted[k].levels()[..lowered.output.rank()].to_vec());
                levels.extend(shared.unwrap_or_default());
            }
            None => {
                for level in lowered.output.levels() {
                    levels.push(outputs.by_ref().take(level.parts().len()).collect());
                }
            }
        }
        let values = outputs.next().ok_or_else(|| Error::internal("a kernel made no values"))?;
        let fill = statement.output.fill;
        let made = match cfg!(debug_assertions) {
            true => SparseTensor::from_parts(shape, lowered.output.clone(), fill, levels, values)
                .map_err(|error| Error::internal(format!("kernel {}: {error}", lowered.kernel.name)))?,
            false => SparseTensor::from_trusted_parts(shape, lowered.output.clone(), fill, levels, values),
        };
        made.convert(&statement.output.format)
    }

    fn bind_extents(&self, operands: &[&SparseTensor], given: &[Option<u64>]) -> Result<Vec<u64>> {
        let statement = &self.statement;
        let mut extents: Vec<Option<u64>> = given.to_vec();
        extents.resize(statement.variables.len(), None);
        if operands.len() != statement.operands.len() {
            return Err(Error::source(format!("{} operands, not {}", statement.operands.len(), operands.len())));
        }
        for (tensor, operand) in operands.iter().zip(&statement.operands) {
            if *tensor.format() != operand.format || tensor.fill() != operand.fill {
                return Err(Error::source(format!(
                    "`{}` is compiled for format `{}` and fill {}, not `{}` and {}",
                    operand.name,
                    operand.format,
                    operand.fill,
                    tensor.format(),
                    tensor.fill()
                )));
            }
        }
        for (access, _) in statement.value.accesses() {
            let (name, shape) = (&statement.operands[access.tensor].name, operands[access.tensor].shape());
            for (index, &extent) in access.index.iter().zip(shape) {
                let Some(var) = index.as_plain() else { continue };
                match extents[var.0] {
                    Some(other) if other != extent => {
                        return Err(Error::source(format!(
                            "variable `{}` has extent {other}, but a mode of `{name}` has {extent}",
                            statement.variables[var.0]
                        )));
                    }
                    _ => extents[var.0] = Some(extent),
                }
            }
        }
        let bound: Vec<u64> = extents
            .iter()
            .zip(&statement.variables)
            .map(|(extent, name)| {
                let extent = extent.filter(|&extent| extent <= i64::MAX as u64);
                extent.ok_or_else(|| Error::source(format!("the extent of variable `{name}` is not known")))
            })
            .collect::<Result<_>>()?;
        for (access, _) in statement.value.accesses() {
            let (name, shape) = (&statement.operands[access.tensor].name, operands[access.tensor].shape());
            for (index, &extent) in access.index.iter().zip(shape) {
                let (mut low, mut high) = (index.offset as i128, index.offset as i128);
                for (var, factor) in &index.terms {
                    let far = *factor as i128 * (bound[var.0] as i128 - 1);
                    low += far.min(0);
                    high += far.max(0);
                }
                let empty = index.terms.iter().any(|(var, _)| bound[var.0] == 0);
                if !empty && (low < 0 || high >= extent as i128) {
                    return Err(Error::source(format!(
                        "an index of `{name}` runs over {low}..={high}, but the mode has extent {extent}"
                    )));
                }
            }
        }
        Ok(bound)
    }
}

/// A statement with the tensors of one run.
struct BoundStatement<'a> {
    lowered: &'a LoweredStatement,
    converted: Vec<SparseTensor>,
    params: Vec<i64>,
    inputs: Vec<Arc<Buffer>>,
    shape: Vec<u64>,
}

fn count_bound(engine: &dyn KernelEngine, bound: &BoundStatement<'_>) -> Result<Vec<u64>> {
    let kernel = counting(&bound.lowered.kernel);
    debug_assert!(crate::loops::verify::verify(&kernel).is_ok(), "{kernel}");
    let call = StatementCall { kernel: &kernel, params: &bound.params, inputs: &bound.inputs, lengths: &[] };
    match engine.execute(call)?.into_iter().next() {
        Some(Buffer::U64(lengths)) => Ok(lengths),
        _ => Err(Error::internal("a counting kernel made no lengths")),
    }
}

/// Dense parts of the result must have a size that memory can hold.
fn check_size(format: &TensorFormat, shape: &[u64]) -> Result<()> {
    let mut dense = 1u64;
    for (level, &mode) in format.levels().iter().zip(format.order()) {
        dense = if level.properties().full { full_size(dense, shape[mode])? } else { 1 };
    }
    if let Some(extent) = shape.iter().find(|&&extent| extent > format.width().max()) {
        return Err(Error::data(format!("extent {extent} of the result does not fit into {}", format.width().dtype()))
            .help("store the result with 64-bit indices"));
    }
    Ok(())
}
