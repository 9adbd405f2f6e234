//! A graph of statements for Graphviz.

use std::fmt::Write;

use super::Explanation;

impl Explanation {
    pub(crate) fn dot(&self) -> String {
        let mut out = String::from("digraph plan {\n    rankdir=TB;\n    node [shape=box, fontname=\"sans-serif\"];\n");
        for (number, graph) in (1..).zip(self.graphs()) {
            let _ = writeln!(out, "    subgraph cluster_{number} {{");
            let _ = writeln!(out, "        label={};", quote(&graph.title));
            for (k, statement) in graph.boxes.iter().enumerate() {
                if statement.is_later {
                    let label = quote(&statement.text);
                    let _ = writeln!(out, "        s{number}_later [style=dashed, label={label}];");
                } else {
                    let label = quote(&format!("{}\n{}", statement.text, statement.tasks));
                    let _ = writeln!(out, "        s{number}_{k} [label={label}];");
                }
            }
            for arrow in &graph.arrows {
                let (from, to, label) = (arrow.from, arrow.to, quote(&arrow.label));
                let _ = writeln!(out, "        s{number}_{from} -> s{number}_{to} [label={label}];");
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
