//! The overhead of the runtime: schedules of many tasks that compute almost nothing.

use std::sync::Arc;
use std::time::Instant;

use tw_block::provider;
use tw_ir::kernel::{Kernel, KernelRead, StatementKernel};
use tw_ir::schedule::Schedule;
use tw_ir::workflow::{
    BlockSet, BlockSetId, Boxes, KernelEntry, KernelId, MaybeOperand, Operand, OutputDecl, Statement, StmtId, TaskKind,
    Workflow,
};
use tw_ir::{Axis, BinaryOp, DType, Edge, Error, Grid, Idx, Result, Scalar, ScalarCode, Span, Var};

use crate::bindings::Bindings;
use crate::options::RunOptions;
use crate::{Engine, Prepared, Runtime};

/// The cost of a schedule of trivial tasks, in seconds per task.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Overhead {
    /// Freezing the workflow and preparing it.
    pub prepare: f64,
    /// Running it, kernels on single elements included.
    pub run: f64,
}

/// About `n_tasks` tasks in `width` independent chains; every task adds one to the single element the task before it made. The output holds the
/// last element of each chain, which is the length of a chain. With `width` equal to `n_tasks` no task depends on another.
pub fn overhead_workflow(n_tasks: u32, width: u32) -> Result<Workflow> {
    chains(n_tasks, width, 1)
}

/// Like [`overhead_workflow`], but every task also waits for the task before it in the next chain (the last chain's next is the first), so that
/// threads keep waiting for each other. The output is the same.
pub fn coupled_workflow(n_tasks: u32, width: u32) -> Result<Workflow> {
    chains(n_tasks, width, 2)
}

/// Chains in which a task reads what the tasks before it in `reads` neighbouring chains made.
fn chains(n_tasks: u32, width: u32, reads: u64) -> Result<Workflow> {
    let width = width.clamp(1, n_tasks.max(1)) as u64;
    let length = (n_tasks as u64 / width).max(1);
    let mut workflow = Workflow::default();
    let label = "x[k, c] = max[d](x[k - 1, c + d]) + 1".into();
    let statement = workflow.statements.push(Statement { label, span: Span::None, node: None });
    // Only the last row outlives the run, so it is a tensor of its own. The row before its row 0 is row `length - 2` of the other.
    let rows = Rows { stored: length - 1, width, reads, statement };
    let steps = rows.add_to(&mut workflow, "steps", length - 1, -1)?;
    let last = rows.add_to(&mut workflow, "last", 1, length as i64 - 2)?;
    workflow.outputs.push(OutputDecl { name: "last".into(), set: last.set, dtype: DType::F64 });
    let mut operands = Vec::new();
    // Independent chains one after the other, coupled ones side by side.
    let task_at = |k: u64| if reads == 1 { (k % length, k / length) } else { (k / width, k % width) };
    for (step, chain) in (0..width * length).map(task_at) {
        let (part, row) = if step + 1 == length { (&last, 0) } else { (&steps, step) };
        let position = row * width + chain;
        operands.clear();
        if step > 0 {
            let before = |d| workflow.block(steps.set, (step - 1) * width + (chain + d) % width);
            operands.extend((0..reads).map(|d| MaybeOperand::from(Operand::whole(before(d)))));
        }
        let kernel = if step > 0 { part.next } else { part.start };
        let output = workflow.block(part.set, position);
        workflow.add_task(TaskKind::Apply, kernel, position as u32, 0, &operands, &[output]);
    }
    Ok(workflow)
}

/// The shape of an overhead workflow.
struct Rows {
    stored: u64,
    width: u64,
    reads: u64,
    statement: StmtId,
}

/// A set of single elements and the kernels that make them.
struct Part {
    set: BlockSetId,
    start: KernelId,
    next: KernelId,
}

impl Rows {
    /// Adds a set of `rows` rows in which row k follows stored row `k + shift`.
    fn add_to(&self, workflow: &mut Workflow, name: &str, rows: u64, shift: i64) -> Result<Part> {
        let shape = vec![rows, self.width];
        let grid = Grid::from_iter([Axis::uniform(rows, 1), Axis::uniform(self.width, 1)]);
        let (row, column) = (Idx::var(Var(0)), Idx::var(Var(1)));
        let read = |d: u64| KernelRead {
            dtype: DType::F64,
            shape: vec![self.stored, self.width],
            idx: vec![row.plus_constant(shift), column.plus_constant(d as i64)],
            edge: Edge::Wrap,
            fill: Scalar::F64(0.0),
        };
        let mut add_kernel = |reads: Vec<KernelRead>| -> Result<KernelId> {
            let mut code = ScalarCode::new(reads.iter().map(|r| r.dtype).chain([DType::I64; 2]).collect());
            let one = code.constant(Scalar::F64(1.0));
            let mut result = code.constant(Scalar::F64(0.0));
            for k in 0..reads.len() as u32 {
                let before = code.param(k);
                result = code.binary(BinaryOp::Max, result, before)?;
            }
            result = code.binary(BinaryOp::Add, result, one)?;
            code.set_results(vec![result]);
            let kernel = Kernel::Statement(StatementKernel {
                vars: grid.clone(),
                reads,
                code,
                has_guard: false,
                accum: None,
                out_idx: vec![row.clone(), column.clone()],
                out_edge: Edge::Error,
                out_shape: shape.clone(),
                out_fill: vec![Scalar::F64(0.0)],
            });
            Ok(workflow.kernels.push(KernelEntry { kernel, statement: self.statement }))
        };
        let (start, next) = (add_kernel(Vec::new())?, add_kernel((0..self.reads).map(read).collect())?);
        let set = workflow
            .add_set(BlockSet::dense(name.into(), DType::F64, shape, Boxes::Grid(grid), self.statement))
            .ok_or_else(|| Error::source(format!("{rows} times {} tasks cannot be numbered", self.width)))?;
        Ok(Part { set, start, next })
    }
}

/// Measures runs of a workflow without sources and sinks, in order of creation: the fastest of `repeats`.
pub fn measure(runtime: &Runtime, workflow: Workflow, repeats: usize) -> Result<Overhead> {
    let start = Instant::now();
    let order = workflow.tasks().collect();
    let prepared = Prepared::new(Arc::new(Schedule::freeze(workflow, order, provider())?))?;
    let prepare = start.elapsed().as_secs_f64();
    let bindings = Bindings::default();
    let mut run = f64::INFINITY;
    for _ in 0..repeats.max(1) {
        run = run.min(runtime.run(&prepared, &bindings, &RunOptions::default())?.stats.seconds);
    }
    let tasks = prepared.schedule().n_tasks().max(1) as f64;
    Ok(Overhead { prepare: prepare / tasks, run: run / tasks })
}

#[cfg(test)]
#[cfg(not(feature = "model-check"))]
mod tests {
    use super::*;

    fn lengths(workflow: Result<Workflow>, threads: usize) -> Vec<f64> {
        let workflow = workflow.unwrap();
        tw_ir::workflow::verify(&workflow).unwrap();
        let order = workflow.tasks().collect();
        let prepared = Prepared::new(Arc::new(Schedule::freeze(workflow, order, provider()).unwrap())).unwrap();
        let outcome = Runtime::new(threads).run(&prepared, &Bindings::default(), &RunOptions::default()).unwrap();
        assert_eq!(outcome.stats.tasks, prepared.schedule().n_tasks() as u64);
        outcome.outputs[0].as_ref().unwrap().to_array().unwrap().to_f64_vec()
    }

    #[test]
    fn chains_count_their_tasks() {
        for threads in [1, 3] {
            assert_eq!(lengths(overhead_workflow(1, 1), threads), [1.0]);
            assert_eq!(lengths(overhead_workflow(2, 1), threads), [2.0]);
            assert_eq!(lengths(overhead_workflow(700, 7), threads), [100.0; 7]);
            assert_eq!(lengths(overhead_workflow(400, 400), threads), [1.0; 400]);
            assert_eq!(lengths(coupled_workflow(9, 9), threads), [1.0; 9]);
            assert_eq!(lengths(coupled_workflow(7000, 7), threads), [1000.0; 7]);
        }
    }

    #[test]
    fn overhead_is_measured() {
        let overhead = measure(&Runtime::new(2), overhead_workflow(500, 20).unwrap(), 2).unwrap();
        assert!(overhead.run > 0.0 && overhead.run < 1e-3, "{overhead:?}");
    }
}
