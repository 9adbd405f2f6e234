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
        " fetched: equal",
        "error: blocks need ",
        "16 ranks",
    ] {
        assert!(text.contains(part), "{part}\n{text}");
    }
    assert_eq!(dir.files(), [""; 0]);
}

#[test]
fn the_demo_survives_being_killed() {
    let dir = Dir::new();
    let text = dir.ok(&["demo", "--kill", "--rows", "8000", "--threads", "2"]);
    assert!(text.contains("the bits are equal"), "{text}");
    assert!(text.contains("run 1 was killed after"), "{text}");
    assert_eq!(dir.files(), [""; 0]);
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

#[test]
fn our_own_product_is_a_rival() {
    let dir = Dir::new();
    let arguments = ["bench", "minplus", "--rival", "gemm", "--quick", "--json", "--offline", "--env", "nowhere/env"];
    let ran = dir.tw(&arguments);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let list: Value = serde_json::from_str(&ran.stdout).unwrap();
    let compared = list.as_array().unwrap().iter().find(|entry| entry.get("rival").is_some()).unwrap();
    assert_eq!((&compared["bench"], &compared["rival"]), (&"minplus".into(), &"gemm".into()));
    let keys: Vec<&String> = compared.as_object().unwrap().keys().collect();
    assert_eq!(keys, ["bench", "rival", "ours_s", "rival_s", "ratio"]);
    assert!(compared["ratio"].as_f64().unwrap() > 0.0);
}

#[test]
fn benches_are_listed_and_found_by_their_beginning() {
    let dir = Dir::new();
    let listed = dir.ok(&["bench", "mean", "--list"]);
    assert!(
        listed.contains("mean-rows") && listed.contains("mean-columns") && !listed.contains("var-rows"),
        "{listed}"
    );
    assert!(dir.refused(&["bench", "me", "--list"]).contains("no bench is called `me`"));
}
