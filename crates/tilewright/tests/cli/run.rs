//! Programs that work.

use serde_json::Value;

use crate::tool::{Dir, npy};

const PROGRAM: &str = "param n = 6
input A: f64[n, 2] = \"a.npy\"
G = A.T @ A
total = sum(A)
output G -> \"g.npy\"
output total
";

fn dir() -> Dir {
    let dir = Dir::with_program(PROGRAM);
    dir.write("a.npy", npy("(6, 2)", &(0..12).map(f64::from).collect::<Vec<_>>()));
    dir
}

#[test]
fn results_are_shown_and_files_written() {
    let dir = dir();
    let text = dir.ok(&["run", "p.tw"]);
    assert!(text.starts_with("plan: 1 pass over 96 B of inputs, peak "), "{text}");
    assert!(text.contains("G: f64[2, 2]  sum 1006.0  -> g.npy\n  220.0  250.0\n  250.0  286.0\n"), "{text}");
    assert!(text.contains("total: f64 = 66.0\n"), "{text}");
    assert!(text.lines().last().unwrap().starts_with("ran in "), "{text}");
    assert_eq!(dir.files(), ["a.npy", "g.npy", "p.tw"]);
    assert_eq!(std::fs::metadata(dir.path().join("g.npy")).unwrap().len(), 128 + 4 * 8);
}

#[test]
fn factorisations_are_known() {
    let dir = Dir::with_program("x = linalg.solve([[2.0, 1.0], [1.0, 3.0]], [3.0, 4.0])\noutput x\n");
    assert!(dir.ok(&["run", "p.tw"]).contains("x: f64[2]"));
    dir.ok(&["explain", "p.tw", "--nodes", "4"]);
}

#[test]
fn quiet_is_quiet() {
    let dir = dir();
    assert_eq!(dir.ok(&["run", "p.tw", "--quiet"]), "");
    assert!(dir.files().contains(&"g.npy".to_string()));
}

#[test]
fn parameters_and_inputs_are_bound() {
    let dir = Dir::with_program("param n = 3\ninput x: f64[n]\ny = 2 * x\noutput y\n");
    dir.write("x.npy", npy("(4,)", &[1.0, 2.0, 3.0, 4.0]));
    let text = dir.ok(&["run", "p.tw", "--set", "n=4", "--input", "x=x.npy"]);
    assert!(text.contains("y: f64[4]  sum 20.0\n  2.0  4.0  6.0  8.0\n"), "{text}");
}

#[test]
fn engines_threads_and_tiles_give_the_same_bits() {
    let text = "X = random.normal(300, 40, seed=1)\nG = X.T @ (X - mean(X, axis=0))\noutput G\n";
    let dir = Dir::with_program(text);
    let checksum = |options: &[&str]| {
        let mut args = vec!["run", "p.tw", "--report", "r.json"];
        args.extend(options);
        if !options.contains(&"--tile") {
            args.extend(["--tile", "16"]);
        }
        dir.ok(&args);
        let report: Value = serde_json::from_slice(&std::fs::read(dir.path().join("r.json")).unwrap()).unwrap();
        report["results"]["G"]["checksum"].as_str().unwrap().to_string()
    };
    let serial = checksum(&["--engine", "serial"]);
    assert_eq!(serial.len(), 16);
    assert_eq!(serial, checksum(&["--threads", "2"]));
    assert_eq!(serial, checksum(&["--threads", "2", "--tile", "1_6"]));
    assert_eq!(serial, checksum(&["--threads", "3", "--memory", "1GiB"]));
}

#[test]
fn the_report_has_the_promised_keys() {
    let dir = dir();
    dir.ok(&["run", "p.tw", "--report", "r.json", "--memory", "1MiB", "-q"]);
    let report: Value = serde_json::from_slice(&std::fs::read(dir.path().join("r.json")).unwrap()).unwrap();
    let keys: Vec<&String> = report.as_object().unwrap().keys().collect();
    let promised = [
        "planning_s",
        "run_s",
        "tasks",
        "read_bytes",
        "written_bytes",
        "wire_bytes",
        "spilled_bytes",
        "fetched_bytes",
        "resumed_steps",
        "peak_bytes",
        "budget_bytes",
        "flops",
        "results",
    ];
    assert_eq!(keys, promised);
    assert_eq!(report["read_bytes"], 96);
    assert_eq!(report["written_bytes"], 32);
    assert_eq!(report["budget_bytes"], 1 << 20);
    let result = &report["results"]["G"];
    assert_eq!(result["shape"], serde_json::json!([2, 2]));
    assert_eq!((&result["dtype"], &result["sum"]), (&"f64".into(), &1006.0.into()));
    assert_eq!(report["results"]["total"]["shape"], serde_json::json!([]));
}

#[test]
fn a_budget_that_is_too_small_names_the_smallest_that_works() {
    let dir = Dir::with_program("A = random.normal(200, 200, seed=1)\nB = A @ A\noutput B\n");
    let text = dir.refused(&["run", "p.tw", "--memory", "100kB"]);
    assert!(text.contains("p.tw:2:") && text.contains('^'), "{text}");
    let words: Vec<&str> = text.split_whitespace().collect();
    let at = words.iter().position(|&word| word == "bytes;").unwrap();
    let smallest: u64 = words[at - 1].parse().unwrap();
    assert!(text.contains("the smallest budget that works is"), "{text}");
    dir.ok(&["run", "p.tw", "--memory", &smallest.to_string(), "-q"]);
    dir.refused(&["run", "p.tw", "--memory", &(smallest - 1).to_string(), "-q"]);
}

#[test]
fn a_closed_pipe_ends_quietly_and_loses_nothing() {
    let dir = dir();
    for args in [&["run", "p.tw"][..], &["explain", "p.tw"], &["info", "p.tw"], &["--help"]] {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let output = dir.command(args).stdout(writer).output().unwrap();
        assert_eq!(String::from_utf8_lossy(&output.stderr), "", "{args:?}");
        assert_eq!(output.status.code(), Some(0), "{args:?}");
    }
    assert!(dir.files().contains(&"g.npy".to_string()));
}

#[test]
fn check_says_so_in_one_line() {
    let dir = dir();
    let text = dir.ok(&["check", "p.tw"]);
    assert!(text.starts_with("p.tw: ok; 1 input, 2 outputs; 1 pass over"), "{text}");
    assert_eq!(text.lines().count(), 1);
    assert_eq!(dir.files(), ["a.npy", "p.tw"]);
}

#[test]
fn what_is_kept_between_segments_counts() {
    let text = "X = random.normal(3000, 40, seed=1)
k = 0
s = 0.0
while k < 3 {
    s = s + sum(X * k)
    k = k + 1
}
Y = X + s
output Y
";
    let dir = Dir::with_program(text);
    let explained = dir.ok(&["explain", "p.tw", "--tile", "500", "--level", "json"]);
    let peak = serde_json::from_str::<Value>(&explained).unwrap()["peak_bytes_max_rank"].as_u64().unwrap();
    assert!(peak >= 2 * 3000 * 40 * 8, "X and Y are alive together: {peak}");
    let memory = peak.to_string();
    dir.ok(&["run", "p.tw", "--tile", "500", "--memory", &memory, "--report", "r.json", "-q"]);
    let report: Value = serde_json::from_slice(&std::fs::read(dir.path().join("r.json")).unwrap()).unwrap();
    assert!(report["peak_bytes"].as_u64().unwrap() <= peak, "{report}");
    // With less, blocks of X are spilled or made again.
    for memory in [peak - 1, peak / 2, peak / 4] {
        dir.ok(&["run", "p.tw", "--tile", "500", "--memory", &memory.to_string(), "--report", "r.json", "-q"]);
        let report: Value = serde_json::from_slice(&std::fs::read(dir.path().join("r.json")).unwrap()).unwrap();
        assert!(report["peak_bytes"].as_u64().unwrap() <= memory, "{memory}: {report}");
    }
    dir.refused(&["run", "p.tw", "--tile", "500", "--memory", "1000", "-q"]);
}

#[test]
fn a_trace_shows_moves_and_the_budget() {
    let dir = Dir::with_program("x = random.normal(300, 300, seed=1)\ny = x @ x\nz = y @ y\noutput z\n");
    let run = |file: &str| dir.ok(&["run", "p.tw", "--tile", "100", "--memory", "600KB", "--trace", file, "-q"]);
    run("t.json");
    let trace: Value = serde_json::from_slice(&std::fs::read(dir.path().join("t.json")).unwrap()).unwrap();
    let events = trace["traceEvents"].as_array().unwrap();
    assert!(events.iter().any(|event| event["cat"] == "spill") && events.iter().any(|event| event["cat"] == "fetch"));
    run("t.svg");
    assert!(std::fs::read_to_string(dir.path().join("t.svg")).unwrap().contains("budget 586 KiB"));
}
