//! Plans in files: planned in one process, run in another.

use serde_json::Value;

use crate::tool::{Dir, npy};

const PROGRAM: &str = "input A: f64[60, 40] = \"a.npy\"
x = ones(40)
steps = 0
while steps < 3 {
    y = A.T @ (A @ x)
    x = y / sqrt(sum(y * y))
    steps = steps + 1
}
if sum(x) > 100 {
    z = x * 2
} else {
    z = x - 1
}
output z
output steps
";

fn dir(program: &str) -> Dir {
    let dir = Dir::with_program(program);
    dir.write("a.npy", npy("(60, 40)", &(0..2400).map(|k| f64::from(k % 17) - 8.0).collect::<Vec<_>>()));
    dir
}

/// What a run gives, as a report has it.
fn results(dir: &Dir, options: &[&str]) -> Value {
    dir.ok(&[&["run", "p.tw", "-q", "--tile", "16", "--report", "r.json"], options].concat());
    let report: Value = serde_json::from_slice(&std::fs::read(dir.path().join("r.json")).unwrap()).unwrap();
    report["results"].clone()
}

#[test]
fn a_plan_of_another_process_gives_the_same_bits_on_every_engine() {
    let dir = dir(PROGRAM);
    let told = dir.ok(&["plan", "p.tw", "--tile", "16", "-o", "p.plan"]);
    let hash = told.trim().rsplit(' ').next().unwrap().to_string();
    let first = std::fs::read(dir.path().join("p.plan")).unwrap();
    dir.ok(&["plan", "p.tw", "--tile", "16", "-o", "p.plan"]);
    assert!(first == std::fs::read(dir.path().join("p.plan")).unwrap(), "there is one plan");
    let expected = results(&dir, &[]);
    for engine in [&["--engine", "serial"][..], &["--threads", "1"], &["--threads", "3"]] {
        assert_eq!(results(&dir, &[engine, &["--schedule", "p.plan"]].concat()), expected, "{engine:?}");
    }
    let text = dir.ok(&["run", "p.tw", "--tile", "16", "--schedule", "p.plan"]);
    assert!(text.contains(&format!("schedules {hash} of p.plan")), "{text}");
}

#[test]
fn plans_of_other_programs_and_damaged_ones_are_refused() {
    let dir = dir(PROGRAM);
    dir.ok(&["plan", "p.tw", "-o", "p.plan"]);
    dir.write("p.tw", PROGRAM.replace("x - 1", "x - 2"));
    assert!(dir.refused(&["run", "p.tw", "--schedule", "p.plan"]).contains("of another program"));
    dir.write("p.tw", PROGRAM);
    let mut bytes = std::fs::read(dir.path().join("p.plan")).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    dir.write("p.plan", bytes);
    assert!(dir.refused(&["run", "p.tw", "--schedule", "p.plan"]).contains("damaged"));
    dir.write("p.plan", "no plan, but a text of more than thirty-two bytes");
    assert!(dir.refused(&["run", "p.tw", "--schedule", "p.plan"]).contains("this is no plan"));
    assert!(dir.refused(&["run", "p.tw", "--schedule", "missing.plan"]).contains("cannot read missing.plan"));
}
