//! A graph of statements for Graphviz.

use std::collections::HashMap;
use std::fmt::Write;

use tw_ir::EntityRef;
use tw_ir::plan::RelId;

use super::Explanation;
use super::source::Place;
use super::text::shorten;
use super::units;

impl Explanation {
    pub(crate) fn dot(&self) -> String {
        let mut out = String::from("digraph plan {\n    rankdir=TB;\n    node [shape=box, fontname=\"sans-serif\"];\n");
        for (number, section) in (1..).zip(&self.sections) {
            let _ = writeln!(out, "    subgraph cluster_{number} {{");
            let _ = writeln!(out, "        label={};", quote(&self.title(section, number)));
            match section.plan() {
                None => {
                    let why = self.why_later(section).unwrap_or_default();
                    let _ = writeln!(out, "        s{number}_later [style=dashed, label={}];", quote(&why));
                }
                Some(plan) => {
                    let steps = &plan.planned.plan.steps;
                    let mut makers: HashMap<RelId, usize> = HashMap::new();
                    for (k, step) in steps.iter().enumerate() {
                        let statement = &plan.planned.plan.statements[step.statement];
                        let cost = &plan.costs[step.statement.index()];
                        let line = match (self.place(&statement.span), &self.source) {
                            (Place::Line(n), Some(source)) => format!("{n}: {}", shorten(source.line(n))),
                            (place, _) => format!("{place}: {}", statement.label),
                        };
                        let label = format!(
                            "{line}\n{}, {}",
                            plan.kind(step.statement.index()),
                            units::counted(cost.tasks, "task")
                        );
                        let _ = writeln!(out, "        s{number}_{k} [label={}];", quote(&label));
                        for input in &step.inputs {
                            if let Some(maker) = makers.get(input) {
                                let relation = &plan.planned.plan.relations[*input];
                                let label = quote(&format!("{} {}", relation.name, units::bytes(relation.n_bytes())));
                                let _ = writeln!(out, "        s{number}_{maker} -> s{number}_{k} [label={label}];");
                            }
                        }
                        makers.extend(step.outputs.iter().map(|&output| (output, k)));
                    }
                }
            }
            out.push_str("    }\n");
        }
        out.push_str("}\n");
        out
    }
}

fn quote(text: &str) -> String {
    let escaped = text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
    format!("\"{escaped}\"")
}

#[cfg(test)]
mod tests {
    #[test]
    fn quotes_survive() {
        assert_eq!(super::quote("a \"b\"\n\\"), "\"a \\\"b\\\"\\n\\\\\"");
    }
}
