//! Cost estimates of tasks, for reports and schedulers.

use tw_ir::Accum;
use tw_ir::contraction::Contraction;
use tw_ir::kernel::{Kernel, StatementKernel};
use tw_ir::program::IndexStmt;
use tw_ir::scalar::{BinaryOp, RandomDistribution, ScalarCode, ScalarOp, UnaryOp};
use tw_ir::workflow::{BlockSizes, Operand, Size, TaskId, Workflow};

/// Scalar operations of all tasks.
pub fn flops(workflow: &Workflow) -> u64 {
    workflow.tasks().fold(0u64, |sum, task| sum.saturating_add(task_flops(workflow, task)))
}

/// The cost of an operation in additions. Rough, from timings of the kernels on one core; parameters and constants are free.
pub fn op_weight(op: &ScalarOp) -> u32 {
    match op {
        ScalarOp::Param(_) | ScalarOp::Const(_) => 0,
        ScalarOp::Random { distribution: RandomDistribution::Normal, .. } => 40,
        ScalarOp::Random { .. } => 15,
        ScalarOp::Unary(UnaryOp::Neg | UnaryOp::Abs | UnaryOp::Not | UnaryOp::Sign, _) => 1,
        ScalarOp::Unary(UnaryOp::IsNan | UnaryOp::IsInf | UnaryOp::IsFinite | UnaryOp::Signbit, _) => 1,
        ScalarOp::Unary(UnaryOp::Sqrt | UnaryOp::Floor | UnaryOp::Ceil | UnaryOp::Round | UnaryOp::Trunc, _) => 4,
        ScalarOp::Unary(..) | ScalarOp::Binary(BinaryOp::Pow | BinaryOp::Atan2 | BinaryOp::Hypot, ..) => 15,
        ScalarOp::Binary(BinaryOp::Div | BinaryOp::FloorDiv | BinaryOp::Mod, ..) => 4,
        ScalarOp::Binary(..) | ScalarOp::Select(..) | ScalarOp::Cast(..) => 1,
    }
}

/// The kind of work of a kernel, for time estimates.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct KernelWork {
    /// True for sums of products, which have fast kernels.
    pub is_product: bool,
    /// The average cost of an operation in additions.
    pub weight: f64,
}

impl KernelWork {
    /// The work of a kernel.
    pub fn of(kernel: &Kernel) -> KernelWork {
        let Kernel::Statement(kernel) = kernel else { return KernelWork { is_product: false, weight: 1.0 } };
        let is_product = Contraction::of_kernel(kernel).is_some_and(|found| is_fast_product(&found));
        let weights = kernel.code.ops().iter().map(op_weight).filter(|&weight| weight > 0);
        let (n, sum) = weights.fold((0u32, 0u32), |(n, sum), weight| (n + 1, sum + weight));
        let weight = if n == 0 { 1.0 } else { f64::from(sum) / f64::from(n) };
        KernelWork { is_product, weight }
    }
}

/// True for contractions that blocked kernels compute: each term is one operation, and operands are reused. Terms from other code cost the time of that code.
pub fn is_fast_product(contraction: &Contraction) -> bool {
    contraction.reuses_operands() && contraction.product_of_converted.is_some()
}

/// Bytes that a task reads and writes. A copy into a part of a block touches that part alone, once on either side.
pub fn task_bytes(workflow: &Workflow, task: TaskId) -> u64 {
    bytes_by(workflow, task, |operand| workflow.operand_size(operand))
}

/// The same, for callers that ask for many tasks. `sizes` are those of the workflow.
pub fn task_bytes_by(workflow: &Workflow, sizes: &BlockSizes<'_>, task: TaskId) -> u64 {
    bytes_by(workflow, task, |operand| sizes.operand(operand))
}

fn bytes_by(workflow: &Workflow, task: TaskId, size: impl Fn(Operand) -> Size) -> u64 {
    if let Kernel::Place { axis, shift } = workflow.kernels[workflow.kernel(task)].kernel {
        return 2 * copied_bytes(workflow, task, axis as usize, shift);
    }
    let read: u64 = workflow.present_operands(task).map(|operand| size(operand).estimate()).sum();
    let made: u64 = workflow.outputs(task).iter().map(|&block| size(Operand::whole(block)).estimate()).sum();
    read.saturating_add(made)
}

/// Bytes that a task copies from operands into the parts of its output that they cover.
fn copied_bytes(workflow: &Workflow, task: TaskId, axis: usize, shift: u64) -> u64 {
    let Some(&out) = workflow.outputs(task).first() else { return 0 };
    let into = workflow.block_box(out);
    let overlap = |operand: Operand| {
        let from = workflow.block_box(operand.block);
        let side = |k: usize| {
            let moved = if k == axis { shift } else { 0 };
            into.hi[k].min(from.hi[k] + moved).saturating_sub(into.lo[k].max(from.lo[k] + moved))
        };
        (0..into.lo.len()).map(side).product::<u64>()
    };
    let elements: u64 = workflow.present_operands(task).map(overlap).sum();
    elements.saturating_mul(workflow.sets[workflow.set_of(out)].dtype.size())
}

/// Scalar operations of one task.
pub fn task_flops(workflow: &Workflow, task: TaskId) -> u64 {
    match &workflow.kernels[workflow.kernel(task)].kernel {
        Kernel::Statement(kernel) => kernel.n_points(workflow.point(task) as u64).saturating_mul(ops_per_point(kernel)),
        Kernel::Load { .. } | Kernel::Store { .. } | Kernel::Place { .. } | Kernel::Fill(_) => 0,
        // One operation per element made; sorting and user functions are only guessed at.
        _ => workflow.outputs(task).iter().map(|&block| workflow.block_box(block).n_elements()).sum(),
    }
}

fn ops_per_point(kernel: &StatementKernel) -> u64 {
    ops_of(&kernel.code, kernel.accum.as_ref())
}

/// Scalar operations of a statement at every point.
pub fn statement_ops(stmt: &IndexStmt) -> u64 {
    ops_of(&stmt.code, stmt.accum.as_ref())
}

fn ops_of(code: &ScalarCode, accum: Option<&Accum>) -> u64 {
    let arithmetic = |op: &&ScalarOp| !matches!(op, ScalarOp::Param(_) | ScalarOp::Const(_));
    let body = code.ops().iter().filter(arithmetic).count();
    let fold = accum.map_or(0, |accum| {
        accum.lift.ops().iter().filter(arithmetic).count() + accum.combine.ops().iter().filter(arithmetic).count()
    });
    (body + fold) as u64
}
