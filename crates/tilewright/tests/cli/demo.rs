//! The demo and the benches, small.

use serde_json::Value;

use crate::tool::Dir;

#[test]
fn the_demo_shows_everything() {
    let dir = Dir::new();
    let text = dir.ok(&["demo", "--rows", "2000", "--threads", "2"]);
    for part in [
        "X = random.normal(n, m, seed=1)",
        "\nplan\nno inputs to read, peak ",
        "\nrun on 2 threads\nlambda = ",
        "predicted",
        "measured",
        "GFLOP/s",
        "C = Z.T @ Z / n",
        ": equal",
        "error: the program needs ",
        "the smallest budget that works is ",
        "16 ranks",
    ] {
        assert!(text.contains(part), "{part}\n{text}");
    }
    assert_eq!(dir.files(), [""; 0]);
    assert!(dir.refused(&["demo", "--kill"]).contains("is not there yet"));
}

#[test]
fn benches_work_without_python() {
    let dir = Dir::new();
    let mut command = dir.command(&["bench", "segment", "--quick", "--json", "--env", "nowhere/env"]);
    let output = command.env("PATH", "").output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    let list: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((&list[0]["bench"], &list[0]["figure"]), (&"segment".into(), &"seconds".into()));
    assert!(list[0]["value"].as_f64().unwrap() > 0.0);
}
