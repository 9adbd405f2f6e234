//! The programs of `docs/programs` on sixteen workers: the table in `docs/planner.md` is what comes out.

use std::fmt::Write;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::tool::Dir;

const PROGRAMS: [&str; 8] =
    ["transformer", "network", "mttkrp", "cp_als", "newton", "kmeans", "nearest_rows", "nearest_columns"];

fn docs() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs")
}

fn row(dir: &Dir, name: &str) -> String {
    let file = |ending: &str| docs().join(format!("programs/{name}.{ending}")).display().to_string();
    let options = ["--nodes", "4", "--workers", "4", "--level", "json", "--distribution"];
    let text = dir.ok(&[&["explain", &file("tw")], &options[..], &[&file("tdn")]].concat());
    let plan: Value = serde_json::from_str(&text).unwrap();
    let figure = |of: &Value, name: &str| of[name].as_f64().unwrap_or_else(|| panic!("{name} of {of}"));
    let mut row = format!("| [{name}](programs/{name}.tw) | {:.3e} ", figure(&plan, "lower_bound_bytes"));
    for scheduler in ["algebraic", "tdn", "lshs", "pattern", "roundrobin"] {
        let figures = &plan["schedulers"][scheduler];
        let ratio = figure(figures, "wire_bytes_max_rank") / figure(&plan, "lower_bound_bytes");
        let seconds = figure(figures, "makespan_s");
        write!(row, "| {ratio:.2}, {seconds:.3} s ").unwrap();
    }
    row + "|"
}

#[test]
fn the_table_of_programs_is_what_comes_out() {
    let dir = Dir::new();
    let rows: Vec<String> = PROGRAMS.iter().map(|name| row(&dir, name)).collect();
    let page = std::fs::read_to_string(docs().join("planner.md")).unwrap();
    let missing: Vec<&String> = rows.iter().filter(|row| !page.contains(row.as_str())).collect();
    assert!(missing.is_empty(), "docs/planner.md should have\n{}", rows.join("\n"));
}
