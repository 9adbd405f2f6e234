//! What info says.

use crate::tool::{Dir, npy};

#[test]
fn arrays_show_their_header() {
    let dir = Dir::new();
    dir.write("a.npy", npy("(2, 3)", &[0.0; 6]));
    let text = dir.ok(&["info", "a.npy"]);
    assert_eq!(
        text,
        "a.npy: f64[2, 3]\n  48 B in 6 elements, row-major (C), data from byte 128 on\n  NumPy, 176 B on disk\n"
    );
}

#[test]
fn programs_show_what_they_take_and_give() {
    let dir = Dir::with_program("param n = 5\ninput A: f64[n, 2]\nB = A @ A.T\nc = A[A > 0.0]\noutput B\noutput c\n");
    let text = dir.ok(&["info", "p.tw", "--set", "n=7"]);
    for line in ["  param   n     7", "  input   A     f64[7, 2]  bind with --input", "  output  B     f64[7, 7]"] {
        assert!(text.lines().any(|l| l == line), "{text}");
    }
    assert!(text.contains("output  c     f64[?]     an extent depends on data"), "{text}");
}

#[test]
fn a_measured_machine_can_be_planned_for() {
    let dir = Dir::with_program("input a: f64[100, 100]\nb = a @ a\noutput b\n");
    let shown = dir.ok(&["calibrate"]);
    assert!(shown.contains("flops = ") && shown.contains("was not measured"), "{shown}");
    let options = ["--across-latency", "2us", "--across-bandwidth", "10 GB/s"];
    dir.ok(&[&["calibrate", "--out", "m.txt"], &options[..]].concat());
    let text = std::fs::read_to_string(dir.path().join("m.txt")).unwrap();
    assert!(text.contains("across.bandwidth = 1e10") && !text.contains("was not measured"), "{text}");
    dir.ok(&["explain", "p.tw", "--machine", "m.txt", "--nodes", "2"]);
    dir.refused(&["calibrate", "--out", "no/such/m.txt"]);
    let wrong = dir.refused(&["calibrate", "--across-bandwidth", "fast"]);
    assert!(wrong.contains("`across.bandwidth = fast` is not a number"), "{wrong}");
}
