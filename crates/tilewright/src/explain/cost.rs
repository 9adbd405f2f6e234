//! The cost of the statements of a planned segment.

use std::ops::AddAssign;

use tw_ir::EntityRef;
use tw_ir::kernel::Kernel;
use tw_ir::program::Op;
use tw_ir::schedule::Schedule;
use tw_ir::workflow::{SourceDecl, SourceId, StmtId, TaskKind, Workflow};
use tw_plan::KernelWork;

/// Sums over tasks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cost {
    /// Tasks.
    pub tasks: u64,
    /// Blocks made, each counted once.
    pub blocks: u64,
    /// Bytes of these blocks.
    pub made_bytes: u64,
    /// Bytes brought in from inputs of the user.
    pub input_bytes: u64,
    /// Bytes handed to files.
    pub stored_bytes: u64,
    /// Bytes of operands and outputs of all tasks: traffic between memory and kernels.
    pub moved_bytes: u64,
    /// The tasks among them that only copy blocks or regions.
    pub copied_bytes: u64,
    /// Scalar operations.
    pub flops: u64,
    /// The operations among them that belong to sums of products, which have fast kernels.
    pub product_flops: u64,
    /// All other operations, each as often as it takes the time of an addition.
    pub scalar_work: u64,
}

impl AddAssign for Cost {
    fn add_assign(&mut self, other: Cost) {
        self.tasks += other.tasks;
        self.blocks += other.blocks;
        self.made_bytes = self.made_bytes.saturating_add(other.made_bytes);
        self.input_bytes = self.input_bytes.saturating_add(other.input_bytes);
        self.stored_bytes = self.stored_bytes.saturating_add(other.stored_bytes);
        self.moved_bytes = self.moved_bytes.saturating_add(other.moved_bytes);
        self.copied_bytes = self.copied_bytes.saturating_add(other.copied_bytes);
        self.flops = self.flops.saturating_add(other.flops);
        self.product_flops = self.product_flops.saturating_add(other.product_flops);
        self.scalar_work = self.scalar_work.saturating_add(other.scalar_work);
    }
}

/// True for operations whose calls read external data.
pub(crate) fn reads_input(op: &Op) -> bool {
    matches!(op, Op::BlockFn(call) if call.function.0.reads_input())
}

/// The cost of every statement, by number. `is_stored` tells which sources hold blocks of an earlier segment: these are no inputs.
pub(crate) fn per_statement(schedule: &Schedule, is_stored: &dyn Fn(&str) -> bool) -> Vec<Cost> {
    let workflow = schedule.workflow();
    let mut costs = vec![Cost::default(); workflow.statements.len()];
    let works: Vec<KernelWork> = workflow.kernels.values().map(|entry| KernelWork::of(&entry.kernel)).collect();
    for task in schedule.order() {
        let entry = &workflow.kernels[workflow.kernel(task)];
        let made: u64 = workflow.outputs(task).iter().map(|&block| workflow.block_size(block).estimate()).sum();
        let flops = tw_plan::task_flops(workflow, task);
        let moved_bytes = tw_plan::task_bytes(workflow, task);
        let mut cost = Cost { tasks: 1, moved_bytes, flops, ..Cost::default() };
        if workflow.kind(task) != TaskKind::Fold || workflow.position(task) == 0 {
            (cost.blocks, cost.made_bytes) = (workflow.outputs(task).len() as u64, made);
        }
        match &entry.kernel {
            Kernel::Load { source } if is_input(workflow, *source, is_stored) => cost.input_bytes = made,
            Kernel::Call(function) if function.0.reads_input() => cost.input_bytes = made,
            Kernel::Place { .. } => cost.copied_bytes = moved_bytes,
            Kernel::Store { .. } => {
                cost.stored_bytes =
                    workflow.present_operands(task).map(|operand| workflow.operand_size(operand).estimate()).sum();
            }
            _ => match works[workflow.kernel(task).index()] {
                KernelWork { is_product: true, .. } => cost.product_flops = flops,
                KernelWork { weight, .. } => cost.scalar_work = (flops as f64 * weight) as u64,
            },
        }
        costs[entry.statement.index()] += cost;
    }
    costs
}

fn is_input(workflow: &Workflow, source: SourceId, is_stored: &dyn Fn(&str) -> bool) -> bool {
    matches!(&workflow.sources[source], SourceDecl::Input { name, .. } if !is_stored(name))
}

/// The main kind of work of a statement, in words.
pub(crate) fn kind(workflow: &Workflow, statement: StmtId) -> &'static str {
    let kernels = workflow.kernels.values().filter(|entry| entry.statement == statement);
    let mut kind = "";
    for entry in kernels {
        kind = match &entry.kernel {
            // Helpers of the others.
            Kernel::Place { .. } | Kernel::Fill(_) | Kernel::Combine(_) | Kernel::Finish(_) if !kind.is_empty() => kind,
            Kernel::Load { .. } => "load",
            Kernel::Statement(_) if KernelWork::of(&entry.kernel).is_product => "product",
            Kernel::Statement(kernel) if kernel.accum.is_some() => "reduction",
            Kernel::Statement(kernel) if kernel.reads.is_empty() => "generated",
            Kernel::Statement(_) => "elementwise",
            Kernel::ScanTotal { .. } | Kernel::ScanCarry(_) | Kernel::ScanBlock(_) => "scan",
            Kernel::Gather { .. } => "gather",
            Kernel::Scatter { .. } => "scatter",
            Kernel::Compact(_) => "select",
            Kernel::Expand(_) => "put",
            Kernel::SortRun(_) | Kernel::SortMerge(_) => "sort",
            Kernel::Call(function) if function.0.reads_input() => "read",
            Kernel::Call(_) => "function",
            Kernel::Store { .. } => "store",
            Kernel::Place { .. } => "copy",
            Kernel::Fill(_) => "fill",
            Kernel::Combine(_) | Kernel::Finish(_) => "reduction",
        };
    }
    kind
}
