//! The kernels of each statement.

use std::fmt::Write;

use tw_ir::EntityRef;
use tw_ir::kernel::{Kernel, StatementKernel};
use tw_ir::workflow::KernelId;

use super::units;
use super::{Explanation, SegmentPlan};

impl Explanation {
    pub(crate) fn kernels(&self) -> String {
        let mut out = String::new();
        for (number, section) in (1..).zip(&self.sections) {
            let _ = writeln!(out, "{}", self.title(&section.at, number));
            match section.plan() {
                Some(plan) => self.section_kernels(plan, &mut out),
                None => {
                    let _ = writeln!(out, "  {}", self.why_later(section).unwrap_or_default());
                }
            }
        }
        out
    }

    fn section_kernels(&self, plan: &SegmentPlan, out: &mut String) {
        let schedule = &plan.planned.schedule;
        let workflow = schedule.workflow();
        let mut tasks = vec![(0u64, 0u64); workflow.kernels.len()];
        for task in schedule.order() {
            let (n, flops) = &mut tasks[workflow.kernel(task).index()];
            *n += 1;
            *flops = flops.saturating_add(tw_plan::task_flops(workflow, task));
        }
        for (k, &(n, flops)) in tasks.iter().enumerate().filter(|(_, (n, _))| *n > 0) {
            let entry = &workflow.kernels[KernelId::new(k)];
            let statement = &workflow.statements[entry.statement];
            let place = self.place(&statement.span);
            let _ = writeln!(
                out,
                "  {} for {} ({place}): {}, {}",
                entry.kernel.name(),
                statement.label,
                units::counted(n, "task"),
                units::flops(flops)
            );
            if let Kernel::Statement(kernel) = &entry.kernel {
                statement_text(kernel, out);
            }
        }
    }
}

fn statement_text(kernel: &StatementKernel, out: &mut String) {
    let names: Vec<String> = (0..kernel.vars.len()).map(variable_name).collect();
    let vars = kernel.vars.iter().zip(&names).map(|(axis, name)| format!("{name} < {} by {axis}", axis.extent()));
    let _ = writeln!(out, "    for {}", vars.collect::<Vec<_>>().join(", "));
    for (k, read) in kernel.reads.iter().enumerate() {
        let idx: Vec<String> = read.idx.iter().map(|idx| idx.display(&names).to_string()).collect();
        let _ = writeln!(out, "    read {k}: {}[{}], edge {}", read.dtype, idx.join(", "), read.edge.name());
    }
    let n_ops = kernel.code.ops().len();
    let _ = writeln!(
        out,
        "    {} per point{}",
        units::counted(n_ops as u64, "operation"),
        if kernel.has_guard { ", guarded" } else { "" }
    );
    let idx: Vec<String> = kernel.out_idx.iter().map(|idx| idx.display(&names).to_string()).collect();
    let verb = if kernel.accum.is_some() { "accumulate" } else { "write" };
    let _ = writeln!(out, "    {verb} [{}] of {}", idx.join(", "), tw_ir::shape::display(&kernel.out_shape));
}

/// `i`, `j`, `k`, .. and then numbered: the user's names are not part of a kernel, which several statements may share.
fn variable_name(k: usize) -> String {
    match b'i' + k as u8 {
        letter @ b'i'..=b'n' if k < 6 => (letter as char).to_string(),
        _ => format!("v{k}"),
    }
}
