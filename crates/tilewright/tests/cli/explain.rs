//! What explain says.

use serde_json::Value;

use crate::tool::{Dir, npy};

const PROGRAM: &str = "input X: f64[400, 20]
mu = mean(X, axis=0)
Z = X - mu          # read twice
Y = Z * 2.0
G = Z.T @ Z
s = sum(Y)
v = ones(20)
err = 1.0
while err > 1e-9 {
    w = G @ v
    u = w / sqrt(sum(w * w))
    err = max(abs(u - v))
    v = u
}
big = Z[Z > 1.0]
output G
output s
output v
output big
";

fn explain(level: &str) -> String {
    Dir::with_program(PROGRAM).ok(&["explain", "p.tw", "--tile", "100", "--level", level])
}

#[test]
fn the_line_comes_first() {
    let line = explain("line");
    assert_eq!(line.lines().count(), 1);
    assert!(line.starts_with("1 pass over 62.5 KiB of inputs, peak "), "{line}");
    assert!(line.contains(" task") && line.contains("flop") && line.contains("goes to line "), "{line}");
    assert_eq!(explain("table").lines().next(), line.lines().next());
}

#[test]
fn the_table_speaks_of_lines() {
    let text = explain("table");
    let row =
        |line: &str| text.lines().find(|row| row.trim_start().starts_with(line)).unwrap_or_else(|| panic!("{text}"));
    assert!(row("1  input X: f64[400, 20]").contains("load"), "{text}");
    assert!(row("5  G = Z.T @ Z").contains("product"), "{text}");
    assert!(row("4  Y = Z * 2.0").trim_end().ends_with("in 6"), "{text}");
    assert!(row("6  s = sum(Y)").trim_end().ends_with("with 4"), "{text}");
    assert!(text.contains("line 4 is computed inside line 6"), "{text}");
    assert!(text.contains("Z (line 3) is not fused: "), "{text}");
    assert!(text.contains("the peak of "), "{text}");
    assert!(text.contains("X [400, 20] is cut into 4 blocks of [100, 20]"), "{text}");
    assert!(text.contains("body of the loop at line 9, per iteration: "), "{text}");
    assert!(text.contains("condition of the loop at line 9"), "{text}");
    assert!(text.contains(" if masks select everything\n"), "{text}");
}

#[test]
fn json_has_the_promised_keys() {
    let value: Value = serde_json::from_str(&explain("json")).unwrap();
    let keys = [
        "tasks",
        "planning_s",
        "input_passes",
        "wire_bytes_total",
        "wire_bytes_max_rank",
        "flops_max_rank",
        "peak_bytes_max_rank",
        "lower_bound_bytes",
    ];
    for key in keys {
        assert!(value[key].is_number(), "{key}");
        assert_eq!(value["schedulers"]["depth-first"][key], value[key]);
    }
    assert_eq!(value["chosen"], "depth-first");
    assert_eq!(value["input_passes"], 1.0);
    assert_eq!(value["wire_bytes_total"], 0);
    assert!(value["peak_bytes_max_rank"].as_u64().unwrap() >= 400 * 20 * 8);
}

#[test]
fn every_level_has_its_form() {
    assert!(explain("tree").contains("G f64[20, 20]"));
    let verbose = explain("verbose");
    for part in ["# program\nprogram {", "# plan\nplan {", "# workflow\nworkflow {", "# passes: erase times "] {
        assert!(verbose.contains(part), "{part}\n{verbose}");
    }
    assert!(explain("kernel").contains("statement for G (line 5): "), "{}", explain("kernel"));
    let dot = explain("dot");
    assert!(dot.starts_with("digraph plan {") && dot.contains(" -> "), "{dot}");
    assert!(dot.contains("label=\"3: Z = X - mu\\nelementwise, 4 tasks\""), "{dot}");
    let html = explain("html");
    assert!(html.starts_with("<!doctype html>") && html.contains("<td><code>Z = X - mu</code>"), "{html}");
}

#[test]
fn analyze_measures_every_line() {
    let dir = Dir::with_program(PROGRAM);
    let values: Vec<f64> = (0..8000).map(|k| f64::from((k * 7919) % 8000) / 1000.0).collect();
    dir.write("x.npy", npy("(400, 20)", &values));
    let text = dir.ok(&["explain", "p.tw", "--analyze", "--input", "X=x.npy", "--tile", "100"]);
    assert!(text.lines().nth(1).unwrap().starts_with("measured: ran in "), "{text}");
    let header = text.lines().find(|line| line.contains("statement")).unwrap();
    assert!(header.contains("measured") && header.contains("share"), "{text}");
    let row = text.lines().find(|line| line.contains("G = Z.T @ Z")).unwrap();
    assert!(row.contains('%'), "{text}");
}

#[test]
fn what_is_predicted_is_what_runs() {
    let text =
        "X = random.normal(500, 30, seed=2)\nZ = (X - mean(X, axis=0)) / std(X, axis=0)\nG = Z.T @ Z\noutput G\n";
    let dir = Dir::with_program(text);
    let explained: Value =
        serde_json::from_str(&dir.ok(&["explain", "p.tw", "--tile", "64", "--level", "json"])).unwrap();
    dir.ok(&["run", "p.tw", "--tile", "64", "--engine", "serial", "--report", "r.json", "-q"]);
    let report: Value = serde_json::from_slice(&std::fs::read(dir.path().join("r.json")).unwrap()).unwrap();
    assert_eq!(explained["tasks"], report["tasks"]);
    assert_eq!(explained["flops_max_rank"], report["flops"]);
    assert!(report["peak_bytes"].as_u64() <= explained["peak_bytes_max_rank"].as_u64());
}

#[test]
fn selections_are_planned_for_all_elements() {
    let text = "x = random.uniform(1000, seed=1)\ny = x[x > 0.5]\nz = sort(y)\noutput z\n";
    let dir = Dir::with_program(text);
    let explained: Value =
        serde_json::from_str(&dir.ok(&["explain", "p.tw", "--tile", "100", "--level", "json"])).unwrap();
    let sections = explained["sections"].as_array().unwrap();
    assert_eq!(sections.iter().map(|s| s["selects_all"].as_bool().unwrap()).collect::<Vec<_>>(), [false, true]);
    let all = text.replace("> 0.5", ">= 0.0");
    dir.write("all.tw", all);
    dir.ok(&["run", "all.tw", "--tile", "100", "--engine", "serial", "--report", "r.json", "-q"]);
    let report: Value = serde_json::from_slice(&std::fs::read(dir.path().join("r.json")).unwrap()).unwrap();
    assert_eq!(report["peak_bytes"], explained["peak_bytes_max_rank"], "{report}");
    assert_eq!(report["tasks"], explained["tasks"], "{report}");
}

#[test]
fn extents_without_a_bound_are_left_for_later() {
    let text =
        "x = random.integers(0, 9, 20, seed=1)\nm = x > 4\nwhile all(m) {\n    m = not m\n}\ny = x[m]\noutput y\n";
    let explained = Dir::with_program(text).ok(&["explain", "p.tw"]);
    assert!(explained.contains("condition of the loop at line 3"), "{explained}");
}

const PRODUCT: &str = "input a: f64[4000, 4000]\ninput b: f64[4000, 4000]\nc = a @ b\noutput c\n";

#[test]
fn a_machine_gets_a_table_of_schedulers() {
    let dir = Dir::with_program(PRODUCT);
    let text = dir.ok(&["explain", "p.tw", "--nodes", "2", "--workers", "5"]);
    assert!(text.contains("on 2 nodes of 5 workers: "), "{text}");
    for name in ["algebraic", "pattern", "lshs", "roundrobin"] {
        assert!(text.contains(name), "{text}");
    }
    assert!(text.contains("grids: "), "{text}");
    // The best grid of ten is five by two.
    let json = dir.ok(&["explain", "p.tw", "--nodes", "10", "--scheduler", "algebraic", "--level", "json"]);
    let value: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(value["chosen"], "algebraic");
    assert_eq!(value["wire_bytes_max_rank"], 8_000_000 * 8);
    assert!(value["lower_bound_bytes"].as_u64().unwrap() < 8_000_000 * 8);
    for (name, figures) in value["schedulers"].as_object().unwrap() {
        assert!(figures["flops_max_rank"].as_u64().unwrap() > 0, "{name}");
    }
}

#[test]
fn machines_that_cannot_be_are_refused() {
    let dir = Dir::with_program(PRODUCT);
    dir.write("m.txt", "nodes = 4\nmemory = -1\n");
    let message = dir.refused(&["explain", "p.tw", "--machine", "m.txt"]);
    assert!(message.contains("memory") && message.contains("line 2"), "{message}");
    dir.write("small.txt", "nodes = 4\nmemory = 1MiB\n");
    let message = dir.refused(&["explain", "p.tw", "--machine", "small.txt"]);
    assert!(message.contains("within 1048576 bytes; the best needs"), "{message}");
    assert!(message.contains("`c` is made there"), "{message}");
    assert!(dir.refused(&["explain", "p.tw", "--nodes", "0"]).contains("0 nodes"));
    assert!(dir.refused(&["explain", "p.tw", "--scheduler", "lshs"]).contains("--nodes"));
}

#[test]
fn distributions_are_one_more_plan() {
    let dir = Dir::with_program("input a: f64[400, 400]\ninput b: f64[400, 400]\nc = a @ b\noutput c\n");
    dir.write("d.txt", "machine M(2, 2)\na(x, y) -> M(x, y)\nb(x, y) -> M(x, y)\nc(x, y) -> M(x, y)\n");
    let text = dir.ok(&["explain", "p.tw", "--nodes", "4", "--distribution", "d.txt"]);
    assert!(text.lines().any(|line| line.trim_start().starts_with("tdn ")), "{text}");
    let front = dir.ok(&["explain", "p.tw", "--nodes", "4", "--distribution", "d.txt", "--scheduler", "tdn"]);
    assert!(front.contains("placed by tdn"), "{front}");
    let missing = dir.refused(&["explain", "p.tw", "--nodes", "4", "--scheduler", "tdn"]);
    assert!(missing.contains("--distribution FILE"), "{missing}");
    dir.refused(&["explain", "p.tw", "--distribution", "d.txt"]);
    dir.write("e.txt", "machine M(2, 2)\n\na(x) -> N(x)\n");
    let wrong = dir.refused(&["explain", "p.tw", "--nodes", "4", "--distribution", "e.txt"]);
    assert!(wrong.contains("in line 3 of the distribution file `e.txt`"), "{wrong}");
}

#[test]
fn idle_workers_have_a_reason_and_grids_have_rivals() {
    let dir = Dir::with_program("input a: f64[12, 12]\nc = a @ a\noutput c\n");
    let text = dir.ok(&["explain", "p.tw", "--nodes", "17"]);
    assert!(text.contains("pattern: 16 workers of 17 have nothing to do: no value has more than 1 block"), "{text}");
    let text = dir.ok(&["explain", "p.tw", "--nodes", "4", "--scheduler", "algebraic", "--pictures"]);
    assert!(!text.contains("algebraic: "), "{text}");
    assert!(text.contains("the best grids of each statement alone"), "{text}");
}

/// The statements of the first piece that have a term.
fn terms(dir: &Dir, more: &[&str]) -> Vec<Value> {
    let json = dir.ok(&[&["explain", "p.tw", "--level", "json"], more].concat());
    let value: Value = serde_json::from_str(&json).unwrap();
    let statements = value["machine"]["pieces"][0]["statements"].as_array().unwrap();
    statements.iter().filter(|statement| !statement["term"].is_null()).cloned().collect()
}

#[test]
fn statements_have_terms_of_the_implementation_algebra() {
    let dir = Dir::with_program("input a: f64[400, 400]\ninput b: f64[400, 400]\nc = a @ b\noutput c\n");
    for (machine, place, words) in [
        ("machine M(4)", "x", "local aggregate(sum, local join(a, broadcast(b)))"),
        ("machine M(4)", "y", "local aggregate(sum, local join(broadcast(a), b))"),
        (
            "machine M(2, 2)",
            "x, y",
            "local aggregate(sum, local join(shuffle(replicate(2, a)), shuffle(replicate(2, b))))",
        ),
    ] {
        let line = |name: &str| format!("{name}(x, y) -> M({place})\n");
        dir.write("d.txt", format!("{machine}\n{}{}{}", line("a"), line("b"), line("c")));
        let more = ["--nodes", "4", "--distribution", "d.txt", "--scheduler", "tdn"];
        let text = dir.ok(&[&["explain", "p.tw"], &more[..]].concat());
        assert!(text.lines().any(|line| line.ends_with(&format!("  {words}"))), "{words}:\n{text}");
        let found = terms(&dir, &more);
        assert_eq!(found.len(), 1);
        assert_eq!(found[0]["term"]["text"], words);
        // By rows or columns a matrix goes to the three others; on a square two matrices do in two copies.
        let matrix = 400 * 400 * 8;
        let (by_term, sent) =
            (found[0]["term"]["bytes"].as_u64().unwrap(), found[0]["wire_bytes_total"].as_u64().unwrap());
        assert!(by_term.abs_diff(sent) <= if place == "x, y" { 2 * matrix } else { 0 }, "{words}: {by_term} {sent}");
        assert!(found[0]["term"]["by_rules"]["tried"].as_u64().unwrap() > 0);
    }
}

#[test]
fn a_halo_has_a_term_without_a_prediction() {
    let dir = Dir::with_program("input x: f64[4000, 4000]\ny[i,j] = x[i,j] + x[i+1,j] for i in 0..3999\noutput y\n");
    let found = terms(&dir, &["--nodes", "4", "--scheduler", "algebraic"]);
    assert!(!found.is_empty());
    for statement in found {
        assert!(statement["term"]["text"].as_str().unwrap().contains("local"), "{statement:#}");
        assert!(statement["term"]["bytes"].is_null(), "{statement:#}");
    }
}
