//! Explanations as text.

use std::fmt::Write;

use tw_ir::text;

use super::inputs::passes;
use super::rows::Row;
use super::source::Place;
use super::table::{Align, Table};
use super::units;
use super::{Explanation, Level, Section, SegmentPlan, Summary};
use crate::report::Totals;

/// Workflows with more tasks than this are not printed task by task.
const MAX_PRINTED_TASKS: usize = 200;

/// Source lines are cut to this many characters in tables.
const MAX_LINE: usize = 60;

impl Explanation {
    /// The explanation in one of its forms; text ends with a new line.
    pub fn to_text(&self, level: Level) -> String {
        let text = match level {
            Level::Line => {
                let on = self.on.iter().map(|on| format!("{}\n", on.line()));
                return std::iter::once(format!("{}\n", self.line())).chain(on).collect();
            }
            Level::Table => self.tables(),
            Level::Tree => self.tree(),
            Level::Verbose => self.verbose(),
            Level::Kernel => self.kernels(),
            // Other programs read these: nothing follows them.
            Level::Dot => return self.dot(),
            Level::Svg => return self.svg(),
            Level::Html => return self.html(),
            #[cfg(feature = "json")]
            Level::Json => return format!("{}\n", self.to_json()),
        };
        match &self.on {
            None => text,
            Some(on) => format!("{text}\n{}", self.machine_text(on)),
        }
    }

    /// Passes, peak, work and bottleneck in one line.
    pub fn line(&self) -> String {
        match self.bottleneck() {
            Some(bottleneck) => format!("{}; {bottleneck}", self.short_line()),
            None => self.short_line(),
        }
    }

    /// Passes, peak and work in one line.
    pub fn short_line(&self) -> String {
        let summary = self.summary();
        let cost = &summary.cost;
        let inputs = if summary.distinct_input_bytes == 0 {
            "no inputs to read".to_string()
        } else {
            let bytes = units::bytes(summary.distinct_input_bytes);
            format!("{} over {bytes} of inputs", passes(summary.input_passes))
        };
        format!(
            "{inputs}, peak {}, {}, {} moved, {}{}{}",
            units::bytes(summary.peak_bytes),
            units::flops(cost.flops),
            units::bytes(cost.moved_bytes),
            units::counted(cost.tasks, "task"),
            if summary.has_loops { " (each loop body once)" } else { "" },
            if summary.selects_all { " (if masks select everything)" } else { "" },
        )
    }

    /// The peak on several threads, where that is more than on one.
    fn threads_line(&self) -> Option<String> {
        let Summary { peak_bytes, peak_bytes_on_threads, .. } = self.summary();
        (peak_bytes_on_threads > peak_bytes).then(|| {
            let (bytes, threads) = (units::bytes(peak_bytes_on_threads), units::counted(self.threads as u64, "thread"));
            format!("at most {bytes} on {threads}, which run ahead of each other")
        })
    }

    /// The moves that a budget needs.
    fn budget_line(&self) -> Option<String> {
        let Summary { traffic, .. } = self.summary();
        let parts = [(traffic.remade, "made again"), (traffic.spilled, "spilled"), (traffic.fetched, "fetched")];
        let parts = parts.iter().filter(|(bytes, _)| *bytes > 0);
        let parts: Vec<String> = parts.map(|(bytes, what)| format!("{} {what}", units::bytes(*bytes))).collect();
        (!parts.is_empty()).then(|| format!("to keep to the budget: {}", parts.join(", ")))
    }

    fn measured_line(&self, totals: &Totals) -> String {
        format!(
            "measured: ran in {} on {}, peak {}, {} in {}",
            units::duration(totals.running),
            units::counted(self.threads as u64, "thread"),
            units::bytes(totals.peak_bytes),
            units::counted(totals.tasks, "task"),
            units::counted(totals.segments, "segment"),
        )
    }

    /// The slowest line and its bottleneck.
    fn bottleneck(&self) -> Option<String> {
        let rows: Vec<Row> = self.plans().flat_map(|(_, plan)| self.rows(plan)).collect();
        let seconds = |row: &Row| self.speeds.seconds(&row.cost, self.threads);
        let longest = rows.iter().filter(|row| row.cost.tasks > 0).max_by(|a, b| seconds(a).total_cmp(&seconds(b)))?;
        let sum: f64 = rows.iter().map(seconds).sum();
        let limit = self.speeds.limit(&longest.cost, self.threads);
        Some(format!(
            "most of the time ({:.0}%) goes to {}, limited by {}",
            100.0 * seconds(longest) / sum.max(f64::MIN_POSITIVE),
            longest.place,
            limit.words()
        ))
    }

    fn tables(&self) -> String {
        let mut out = format!("{}\n", self.line());
        if let Some((_, totals)) = &self.measured {
            let _ = writeln!(out, "{}", self.measured_line(totals));
        }
        for line in self.threads_line().into_iter().chain(self.budget_line()).chain(self.input_lines()) {
            let _ = writeln!(out, "  - {line}");
        }
        for sentence in self.avoidable() {
            let _ = writeln!(out, "  - avoidable: {sentence}");
        }
        for (number, section) in (1..).zip(&self.sections) {
            let indent = "  ".repeat(section.at.depth);
            let title = self.title(&section.at, number);
            match section.plan() {
                None => {
                    let _ = writeln!(out, "\n{indent}{title}");
                    let _ = writeln!(out, "{indent}  {}", self.why_later(section).unwrap_or_default());
                }
                Some(plan) => {
                    let _ = writeln!(out, "\n{indent}{}", self.section_line(section, plan, &title));
                    out.push_str(&self.table(plan).to_text(2 * section.at.depth + 2));
                    for sentence in self.why(plan) {
                        let _ = writeln!(out, "{indent}  - {sentence}");
                    }
                }
            }
        }
        out
    }

    fn section_line(&self, section: &Section, plan: &SegmentPlan, title: &str) -> String {
        // One segment needs no title: its numbers are those of the first line.
        if self.sections.len() == 1 && section.at.depth == 0 {
            return "by line".to_string();
        }
        let tasks = units::counted(plan.cost().tasks, "task");
        let all = if section.selects_all { " if masks select everything" } else { "" };
        format!("{title}: {tasks}, peak {}{all}", units::bytes(plan.peak_bytes()))
    }

    fn table(&self, plan: &SegmentPlan) -> Table {
        let mut columns = vec![
            ("line", Align::Right),
            ("statement", Align::Left),
            ("operation", Align::Left),
            ("", Align::Left),
            ("tasks", Align::Right),
            ("blocks", Align::Right),
            ("made", Align::Right),
            ("work", Align::Right),
            ("fused", Align::Left),
        ];
        if self.measured.is_some() {
            columns.extend([("ran", Align::Right), ("measured", Align::Right), ("share", Align::Right)]);
        }
        let rows = self.rows(plan);
        let has_operations = rows.iter().any(|row| row.place.operation().is_some());
        if !has_operations {
            columns.retain(|(name, _)| *name != "operation");
        }
        let mut table = Table::new(&columns);
        let mut before: Option<&Place> = None;
        let total = self.measured.as_ref().map(|(measured, _)| measured.sum(|_| true).time.as_secs_f64());
        for row in &rows {
            // Calls of one line stand below each other, and the line is shown once.
            let is_beside = before.is_some_and(|before| before.is_beside(&row.place));
            before = Some(&row.place);
            let number = |n: u64| if row.cost.tasks == 0 { String::new() } else { units::count(n) };
            let quantity = |n: u64, text: String| if n == 0 { String::new() } else { text };
            let mut cells = match is_beside {
                true => vec![String::new(), String::new()],
                false => vec![row.place.short(), shorten(&row.text)],
            };
            if has_operations {
                cells.push(row.place.operation().unwrap_or_default().to_string());
            }
            cells.extend([
                row.kind.to_string(),
                number(row.cost.tasks),
                number(row.cost.blocks),
                quantity(row.cost.made_bytes, units::bytes(row.cost.made_bytes)),
                quantity(row.cost.flops, units::flops(row.cost.flops)),
                row.fusion(),
            ]);
            if let (Some((measured, _)), Some(total)) = (&self.measured, total) {
                let busy = if row.place == Place::Planner {
                    Default::default()
                } else {
                    measured.sum(|span| self.place(span) == row.place)
                };
                let share = 100.0 * busy.time.as_secs_f64() / total.max(f64::MIN_POSITIVE);
                cells.extend([
                    quantity(busy.tasks, units::count(busy.tasks)),
                    quantity(busy.tasks, units::duration(busy.time)),
                    quantity(busy.tasks, format!("{share:.0}%")),
                ]);
            }
            table.row(cells);
        }
        table
    }

    fn verbose(&self) -> String {
        let mut out = String::new();
        for (number, section) in (1..).zip(&self.sections) {
            let _ = writeln!(out, "# {}", self.title(&section.at, number));
            let Some(plan) = section.plan() else {
                let _ = writeln!(out, "# {}\n", self.why_later(section).unwrap_or_default());
                continue;
            };
            let workflow = plan.planned.schedule.workflow();
            let passes = plan.planned.timings.iter().map(|(name, time)| format!("{name} {}", units::duration(*time)));
            let _ = writeln!(out, "# passes: {}", passes.collect::<Vec<_>>().join(", "));
            let _ = writeln!(out, "\n# program\n{}", text::print_program(&plan.before));
            let _ = writeln!(out, "# program after rewriting\n{}", text::print_program(&plan.planned.program));
            let _ = writeln!(out, "# plan\n{}", text::print_plan(&plan.planned.plan));
            if workflow.n_tasks() <= MAX_PRINTED_TASKS {
                let _ = writeln!(out, "# workflow\n{}", text::print_workflow(workflow));
            } else {
                let tasks = units::counted(workflow.n_tasks() as u64, "task");
                let _ = writeln!(out, "# workflow: {tasks}, too many to print\n");
            }
        }
        out
    }
}

/// A source line cut to fit a table.
pub(crate) fn shorten(line: &str) -> String {
    if line.chars().count() <= MAX_LINE {
        return line.to_string();
    }
    line.chars().take(MAX_LINE - 3).chain("...".chars()).collect()
}
