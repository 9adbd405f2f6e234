//! Bad input: a message with the place, exit code 2, and nothing written.

use crate::tool::{Dir, npy};

/// Checks that every command that reads the program refuses it, with the line and a caret, and that no output appears.
fn wrong(text: &str, line: u32, part: &str) {
    let dir = Dir::with_program(text);
    for command in ["run", "check", "explain"] {
        let message = dir.refused(&[command, "p.tw"]);
        assert!(message.contains(part), "{command}: {message}");
        assert!(message.contains(&format!("--> p.tw:{line}:")), "{command}: {message}");
        assert!(message.contains('^'), "{command}: {message}");
    }
}

#[test]
fn wrong_shapes() {
    wrong("A = ones(3, 4)\nB = ones(3, 4)\nC = A @ B\noutput C -> \"c.npy\"\n", 3, "4");
    wrong("a = ones(3)\nb = a + ones(4)\noutput b\n", 2, "broadcast");
    wrong("A = ones(3, 4)\nB[i] = A[i]\noutput B\n", 2, "");
}

#[test]
fn unknown_names() {
    wrong("y = x + 1\noutput y -> \"y.npy\"\n", 1, "`x`");
    wrong("y = frobnicate(ones(3))\noutput y\n", 1, "`frobnicate`");
    wrong("y = ones(3)\noutput z\n", 2, "`z`");
}

#[test]
fn unbound_indices() {
    wrong("A = ones(3)\nB[i] = A[i] + j\noutput B\n", 2, "`j`");
    wrong("B[i] = 1.0\noutput B\n", 1, "`i`");
}

#[test]
fn sizes_that_overflow() {
    wrong("A = ones(4000000000, 4000000000)\noutput A -> \"a.npy\"\n", 1, "count");
    wrong("param n = 99999999999999999999\noutput n\n", 1, "");
    wrong("A = ones(1)\ny = A[9223372036854775807 + 1]\noutput y\n", 2, "");
}

#[test]
fn unfinished_text() {
    wrong("y = (1 + 2\n", 1, "bracket");
    wrong("y = 1 +\noutput y\n", 2, "");
    wrong("while true {\n", 1, "");
}

#[test]
fn hundred_thousand_parentheses() {
    let n = 100_000;
    wrong(&format!("y = {}1{}\noutput y\n", "(".repeat(n), ")".repeat(n)), 1, "nested");
    wrong(&format!("y = {}1\n", "-".repeat(n)), 1, "nested");
    wrong(&format!("x = ones(2)\ny = x{}\n", "[0]".repeat(n)), 2, "");
}

#[test]
fn several_errors_are_all_shown() {
    let dir = Dir::with_program("a = p + 1\nb = q + 1\noutput a\n");
    let message = dir.refused(&["check", "p.tw"]);
    assert!(message.contains("p.tw:1:") && message.contains("p.tw:2:"), "{message}");
}

#[test]
fn missing_and_unreadable_files() {
    let dir = Dir::with_program("input A = \"no.npy\"\noutput A -> \"out.npy\"\n");
    let message = dir.refused(&["run", "p.tw"]);
    assert!(message.contains("no.npy") && message.contains("p.tw:1:") && message.contains('^'), "{message}");
    assert!(dir.refused(&["run", "absent.tw"]).contains("absent.tw"));
    assert!(dir.refused(&["run", "."]).contains("cannot be read"));
    assert!(dir.refused(&["info", "absent.npy"]).contains("absent.npy"));
}

#[test]
fn invalid_utf8_names_the_byte() {
    let dir = Dir::new();
    dir.write("p.tw", b"y = 1\nz = \xff\n");
    let message = dir.refused(&["run", "p.tw"]);
    assert!(message.contains("byte 10 (line 2) is 0xff"), "{message}");
}

#[test]
fn lying_arrays() {
    let dir = Dir::with_program("input A = \"a.npy\"\nB = A + 1\noutput B -> \"b.npy\"\n");
    let good = npy("(3,)", &[1.0, 2.0, 3.0]);
    let mut truncated = good.clone();
    truncated.truncate(good.len() - 1);
    let cases: [(&str, Vec<u8>); 6] = [
        ("truncated", truncated),
        ("claims more than there is", npy("(1000000000000,)", &[1.0])),
        ("claims more than can be counted", npy("(4000000000, 4000000000)", &[1.0])),
        ("negative extent", npy("(-3,)", &[1.0])),
        ("no header", b"\x93NUMPY\x01\x00\xff\xff{".to_vec()),
        ("text", b"hello, world".to_vec()),
    ];
    for (what, bytes) in cases {
        dir.write("a.npy", bytes);
        let message = dir.refused(&["run", "p.tw"]);
        assert!(message.contains("a.npy") && message.contains("p.tw:1:") && message.contains('^'), "{what}: {message}");
        assert!(dir.refused(&["info", "a.npy"]).contains("a.npy"), "{what}");
    }
}

#[test]
fn data_errors_name_the_line_and_leave_no_file() {
    let text = "i = arange(5) + 3\nx = ones(4)\ny = x[i]\noutput y -> \"y.npy\"\n";
    let dir = Dir::with_program(text);
    let message = dir.refused_while_running(&["run", "p.tw"]);
    assert!(message.contains("p.tw:3:") && message.contains('^'), "{message}");
}

#[test]
fn inputs_without_data() {
    let dir = Dir::with_program("input A: f64[3]\noutput A\n");
    let message = dir.refused_while_running(&["run", "p.tw"]);
    assert!(message.contains("`A`") && message.contains("p.tw:1:"), "{message}");
    dir.write("a.npy", npy("(4,)", &[0.0; 4]));
    let message = dir.refused_while_running(&["run", "p.tw", "--input", "A=a.npy"]);
    assert!(message.contains("f64[3]") && message.contains("f64[4]"), "{message}");
    let message = dir.refused(&["run", "p.tw", "--input", "B=a.npy"]);
    assert!(message.contains("`B`") && message.contains("`A`"), "{message}");
}

#[test]
fn wrong_arguments() {
    let dir = Dir::with_program("param n = 1\noutput n\n");
    for args in [
        &["run", "p.tw", "--set", "n"][..],
        &["run", "p.tw", "--set", "n=many"],
        &["run", "p.tw", "--memory", "2XB"],
        &["run", "p.tw", "--tile", "0"],
        &["run", "p.tw", "--threads", "0"],
        &["run", "p.tw", "--set", "m=1"],
        &["explain", "p.tw", "--level", "poem"],
        &["run", "p.tw", "--report", "no/such/dir/r.json"],
    ] {
        dir.refused(args);
    }
    for args in [&[][..], &["frobnicate"], &["run"]] {
        assert_eq!(dir.tw(args).code, 2);
    }
}
