//! Explanations as JSON.

use serde_json::{Value, json};
use tw_plan::BudgetTraffic;

use super::Explanation;

/// The only way to order tasks on one machine.
const DEPTH_FIRST: &str = "depth-first";

impl Explanation {
    /// The figures of the plan, those of the scheduler that was chosen and of every one that was considered, then a list of sections with their lines.
    pub fn to_json(&self) -> Value {
        let summary = self.summary();
        // One machine: nothing crosses a wire, and nothing has to.
        let figures = json!({
            "tasks": summary.cost.tasks,
            "planning_s": summary.planning.as_secs_f64(),
            "input_passes": summary.input_passes,
            "wire_bytes_total": 0,
            "wire_bytes_max_rank": 0,
            "flops_max_rank": summary.cost.flops,
            "peak_bytes_max_rank": summary.peak_bytes,
            "peak_bytes_on_threads": summary.peak_bytes_on_threads,
            "lower_bound_bytes": 0,
        });
        let mut all = figures.clone();
        all["chosen"] = json!(DEPTH_FIRST);
        all["schedulers"] = json!({ DEPTH_FIRST: figures });
        all["depends_on_data"] = json!(summary.has_loops || summary.has_later || summary.selects_all);
        let inputs = self.inputs().into_iter().map(|input| {
            json!({
                "name": input.name,
                "place": self.place(&input.span).full(),
                "bytes": input.bytes,
                "read_bytes": input.read_bytes,
                "passes": input.passes(),
            })
        });
        all["inputs"] = inputs.collect();
        all["avoidable"] = json!(self.avoidable());
        all["moved_bytes"] = json!(summary.cost.moved_bytes);
        let BudgetTraffic { remade, spilled, fetched } = summary.traffic;
        all["budget"] = json!({ "remade_bytes": remade, "spilled_bytes": spilled, "fetched_bytes": fetched });
        if let Some((_, totals)) = &self.measured {
            all["planned_s"] = json!(summary.seconds);
            all["measured"] = json!({
                "running_s": totals.running.as_secs_f64(),
                "planning_s": totals.planning.as_secs_f64(),
                "tasks": totals.tasks,
                "read_bytes": totals.read_bytes,
                "written_bytes": totals.written_bytes,
                "peak_bytes": totals.peak_bytes,
            });
        }
        let sections = (1..).zip(&self.sections).map(|(number, section)| self.section_json(section, number));
        all["sections"] = sections.collect();
        if let Some(on) = &self.on {
            self.add_machine_to_json(on, &mut all);
        }
        all
    }

    fn section_json(&self, section: &super::Section, number: usize) -> Value {
        let (title, depth) = (self.title(&section.at, number), section.at.depth);
        let mut value = json!({ "title": title, "depth": depth, "selects_all": section.selects_all });
        match section.plan() {
            None => value["later"] = json!(self.why_later(section)),
            Some(plan) => {
                value["tasks"] = json!(plan.cost().tasks);
                value["peak_bytes"] = json!(plan.peak_bytes());
                let rows = self.rows(plan).into_iter().map(|row| {
                    let busy = self.measured.as_ref().map(|(m, _)| m.sum(|span| self.place(span) == row.place));
                    json!({
                        "place": row.place.full(),
                        "operation": row.place.operation(),
                        "text": row.text,
                        "kind": row.kind,
                        "tasks": row.cost.tasks,
                        "blocks": row.cost.blocks,
                        "made_bytes": row.cost.made_bytes,
                        "flops": row.cost.flops,
                        "fused": row.fusion(),
                        "moved_bytes": row.cost.moved_bytes,
                        "planned_s": self.speeds.seconds(&row.cost, 1),
                        "measured_s": busy.map(|busy| busy.time.as_secs_f64()),
                        "measured_tasks": busy.map(|busy| busy.tasks),
                        "measured_moved_bytes": busy.map(|busy| busy.moved_bytes),
                    })
                });
                value["lines"] = rows.collect();
                value["why"] = json!(self.why(plan));
            }
        }
        value
    }
}
