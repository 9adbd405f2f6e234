//! The same program on a machine of several workers.

use std::time::{Duration, Instant};

use tw_ir::error::{Error, Result};
use tw_plan::cluster::{DEFAULT_LIMIT, Machine, Placed, Rivals};

use super::Explanation;
use super::table::{Align, Table};
use super::units::{bytes, count, counted, seconds};
use crate::session::Session;

/// What each scheduler would do with a program on a machine. Nothing has run, and nothing runs there yet.
#[derive(Clone, Debug)]
pub struct OnMachine {
    /// The machine.
    pub machine: Machine,
    /// The pieces of the program that can be planned without data, with their titles.
    pub sections: Vec<(String, Rivals)>,
    /// Pieces that cannot.
    pub later: usize,
    /// How long planning took.
    pub planning: Duration,
    chosen: Option<String>,
}

impl Explanation {
    /// Plans the program for a machine, with one scheduler in front if it is named, else the one whose plan ends first.
    pub fn on(&self, session: &Session, machine: &Machine, scheduler: Option<&str>) -> Result<OnMachine> {
        let started = Instant::now();
        let mut sections = Vec::new();
        let mut later = 0;
        for (number, section) in (1..).zip(&self.sections) {
            let Some(plan) = section.plan() else {
                later += 1;
                continue;
            };
            let mut rivals = Rivals::of(&plan.before, session.plan_options(), machine, DEFAULT_LIMIT)?;
            if let Some(name) = scheduler {
                let found = rivals.placed.iter().position(|placed| placed.scheduler == name);
                let found = found.ok_or_else(|| {
                    let text = format!("`{name}` has no plan for {}", self.title(section, number));
                    Error::plan(text).help("leave the scheduler out, and the best plan is chosen")
                })?;
                rivals.placed[..=found].rotate_right(1);
            }
            sections.push((self.title(section, number), rivals));
        }
        let (machine, chosen) = (machine.clone(), scheduler.map(str::to_string));
        Ok(OnMachine { machine, sections, later, planning: started.elapsed(), chosen })
    }
}

impl OnMachine {
    /// One line, then a table of schedulers for every piece.
    pub fn to_text(&self) -> String {
        let machine = &self.machine;
        let mut text = format!(
            "on {} of {}: {}",
            counted(machine.nodes.into(), "node"),
            counted(machine.workers.into(), "worker"),
            self.line()
        );
        for (title, rivals) in &self.sections {
            if self.sections.len() > 1 {
                text.push_str(&format!("\n{title}\n"));
            }
            text.push('\n');
            text.push_str(&table(rivals));
            let report = rivals.report();
            let stop = if report.stopped { "the limit was reached" } else { "nothing better was in reach" };
            text.push_str(&format!(
                "  - grids: {} for {}, {} compared, {} found; {stop}\n",
                counted(report.candidates as u64, "candidate"),
                counted(report.statements as u64, "statement"),
                counted(report.compared as u64, "choice"),
                counted(report.improved as u64, "improvement"),
            ));
        }
        if self.later > 0 {
            text.push_str(&format!(
                "  - {} on data and cannot be placed yet\n",
                counted(self.later as u64, "piece depends")
            ));
        }
        text
    }

    fn line(&self) -> String {
        let chosen: Vec<&Placed> = self.sections.iter().filter_map(|(_, rivals)| rivals.placed.first()).collect();
        let sum = |of: fn(&Placed) -> u64| chosen.iter().map(|placed| of(placed)).sum::<u64>();
        let (wire, busiest) = (sum(|p| p.simulation.wire_bytes()), sum(|p| p.simulation.wire_bytes_max()));
        let bound: f64 = self.sections.iter().map(|(_, rivals)| rivals.bound_bytes).sum();
        let peak = chosen.iter().map(|placed| placed.simulation.peak_bytes_max()).max().unwrap_or(0);
        let time: f64 = chosen.iter().map(|placed| placed.simulation.makespan).sum();
        let by = match (&self.chosen, chosen.first()) {
            (Some(name), _) => name.clone(),
            (None, Some(placed)) => placed.scheduler.to_string(),
            (None, None) => return "nothing can be planned without data\n".to_string(),
        };
        let against = match bound >= 1.0 {
            true => format!(" ({:.2} of the least possible)", busiest as f64 / bound),
            false => String::new(),
        };
        format!(
            "{} sent, {} to the busiest worker{against}, peak {}, about {}, placed by {by}\n",
            bytes(wire),
            bytes(busiest),
            bytes(peak),
            seconds(time)
        )
    }
}

fn table(rivals: &Rivals) -> String {
    let right = |name| (name, Align::Right);
    let mut table = Table::new(&[
        ("scheduler", Align::Left),
        right("tasks"),
        right("sent"),
        right("busiest"),
        right("x least"),
        right("work"),
        right("peak"),
        right("time"),
        right("path"),
    ]);
    for placed in &rivals.placed {
        let simulation = &placed.simulation;
        let against = match rivals.bound_bytes >= 1.0 {
            true => format!("{:.2}", simulation.wire_bytes_max() as f64 / rivals.bound_bytes),
            false => "-".to_string(),
        };
        table.row(vec![
            placed.scheduler.to_string(),
            count(placed.order.len() as u64),
            bytes(simulation.wire_bytes()),
            bytes(simulation.wire_bytes_max()),
            against,
            format!("{:.2}", simulation.flops_max().1),
            bytes(simulation.peak_bytes_max()),
            seconds(simulation.makespan),
            seconds(simulation.critical_path),
        ]);
    }
    table.to_text(2)
}

#[cfg(feature = "json")]
mod json {
    use serde_json::{Value, json};

    use super::*;

    impl OnMachine {
        /// Figures of the chosen plan and of every other, over all pieces; those of the explanation itself stay beside them.
        pub fn add_to_json(&self, value: &mut Value) {
            let names: Vec<&str> = self
                .sections
                .first()
                .map_or_else(Vec::new, |(_, rivals)| rivals.placed.iter().map(|p| p.scheduler).collect());
            let bound: f64 = self.sections.iter().map(|(_, rivals)| rivals.bound_bytes).sum();
            let figures = |name: &str| {
                let all = self.sections.iter().flat_map(|(_, rivals)| &rivals.placed);
                let placed: Vec<&Placed> = all.filter(|placed| placed.scheduler == name).collect();
                let sum = |of: fn(&Placed) -> u64| placed.iter().map(|placed| of(placed)).sum::<u64>();
                json!({
                    "tasks": sum(|p| p.order.len() as u64),
                    "planning_s": self.planning.as_secs_f64(),
                    "input_passes": value["input_passes"],
                    "wire_bytes_total": sum(|p| p.simulation.wire_bytes()),
                    "wire_bytes_max_rank": sum(|p| p.simulation.wire_bytes_max()),
                    "flops_max_rank": sum(|p| p.simulation.flops_max().0),
                    "peak_bytes_max_rank": placed.iter().map(|p| p.simulation.peak_bytes_max()).max().unwrap_or(0),
                    "lower_bound_bytes": bound.ceil() as u64,
                    "makespan_s": placed.iter().map(|p| p.simulation.makespan).sum::<f64>(),
                })
            };
            let all: serde_json::Map<String, Value> =
                names.iter().map(|&name| (name.to_string(), figures(name))).collect();
            if let Some(&chosen) = names.first() {
                for (key, figure) in all[chosen].as_object().into_iter().flatten() {
                    value[key.as_str()] = figure.clone();
                }
                value["chosen"] = json!(chosen);
                value["schedulers"] = Value::Object(all);
            }
        }
    }
}
