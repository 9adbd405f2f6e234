//! Two plans beside each other.

use serde_json::Value;

use crate::tool::Dir;

const PRODUCT: &str = "param n = 4000\ninput a: f64[n, n]\ninput b: f64[n, n]\nc = a @ b\noutput c\n";

fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

/// The cells of the row that begins with a word.
fn row<'t>(text: &'t str, first: &str) -> Vec<&'t str> {
    let line = text.lines().find(|line| line.split_whitespace().next() == Some(first));
    line.unwrap_or_else(|| panic!("{first}: {text}"))
        .split("  ")
        .map(str::trim)
        .filter(|cell| !cell.is_empty())
        .collect()
}

#[test]
fn a_plan_is_the_same_as_itself() {
    let dir = Dir::with_program(PRODUCT);
    for machine in [&[][..], &["--nodes", "4"]] {
        let text = dir.ok(&[&["explain", "p.tw", "--diff", "p.tw"], machine].concat());
        assert!(text.contains("both plans are the same"), "{text}");
        assert_eq!(row(&text, "tasks")[3], "same");
        let value = json(&dir.ok(&[&["explain", "p.tw", "--diff", "p.tw", "--level", "json"], machine].concat()));
        assert_eq!((&value["is_same"], value["changed"].as_array().unwrap().len()), (&true.into(), 0));
    }
}

#[test]
fn two_programs_are_compared_by_their_lines() {
    let dir =
        Dir::with_program("input x: f64[400, 4]\ny = x * 2.0\nz = sum(y, axis=0)\ns = sum(z)\noutput y\noutput s\n");
    dir.write(
        "q.tw",
        "input x: f64[400, 4]\nw = x + 1.0\ny = w * 2.0\nz = sum(y, axis=1)\ns = sum(z)\noutput y\noutput s\n",
    );
    let text = dir.ok(&["explain", "p.tw", "--diff", "q.tw", "--tile", "100"]);
    assert!(text.starts_with("a: p.tw\nb: q.tw\n"), "{text}");
    assert!(text.contains("z = sum(y, axis=0) -> z = sum(y, axis=1)"), "{text}");
    assert!(text.contains("3 -> 4"), "{text}");
    let value = json(&dir.ok(&["explain", "p.tw", "--diff", "q.tw", "--tile", "100", "--level", "json"]));
    assert_eq!(value["is_same"], false);
    let (a, b) = (&value["a"]["figures"], &value["b"]["figures"]);
    for key in ["tasks", "moved_bytes", "peak_bytes"] {
        assert!(a[key].as_u64().unwrap() > 0 && b[key].as_u64().unwrap() > 0, "{value}");
    }
    let z = value["changed"].as_array().unwrap().iter().find(|pair| pair["a"]["place"] == "line 3").unwrap();
    assert_eq!(z["b"]["place"], "line 4");
    assert_eq!(z["a"]["values"][0]["name"], "z");
    assert_eq!(z["b"]["values"][0]["tiles"], serde_json::json!([100]));
}

#[test]
fn other_tiles_are_told_with_what_they_change() {
    let dir = Dir::with_program(PRODUCT);
    let text = dir.ok(&["explain", "p.tw", "--tile", "1000", "--diff-tile", "500"]);
    assert!(text.contains("b: p.tw, tiles of 500\n"), "{text}");
    assert_eq!(row(&text, "tasks"), ["tasks", "96", "640", "6.67"]);
    assert!(text.contains("c [1000, 1000] -> c [500, 500]") && text.contains("64 -> 512"), "{text}");
    let text = dir.ok(&["explain", "p.tw", "--tile", "1000", "--diff-set", "n=2000"]);
    assert!(text.contains("b: p.tw, n = 2000\n") && row(&text, "tasks")[1] == "96", "{text}");
}

#[test]
fn schedulers_and_machines_are_compared_by_what_is_sent() {
    let dir = Dir::with_program(PRODUCT);
    let args = ["explain", "p.tw", "--nodes", "4", "--tile", "500", "--scheduler", "pattern"];
    let text = dir.ok(&[&args[..], &["--diff-scheduler", "roundrobin"]].concat());
    assert!(
        text.starts_with("a: p.tw on 4 nodes of 1 worker, pattern\nb: p.tw on 4 nodes of 1 worker, roundrobin\n"),
        "{text}"
    );
    // Tasks that dask's rule puts on several workers combine their parts of a sum.
    assert_eq!(row(&text, "tasks"), ["tasks", "640", "832", "1.30"]);
    let ratio: f64 = row(&text, "sent")[3].parse().unwrap();
    assert!(ratio > 1.0, "{text}");
    assert!(text.contains(" of 64 blocks elsewhere"), "{text}");
    let value = json(&dir.ok(&[&args[..], &["--diff-scheduler", "roundrobin", "--level", "json"]].concat()));
    let product = value["changed"].as_array().unwrap().iter().find(|pair| pair["a"]["place"] == "line 4").unwrap();
    assert!(product["blocks_elsewhere"].as_u64().unwrap() > 0);
    assert_eq!(product["a"]["wire_bytes_total"], value["a"]["figures"]["wire_bytes_total"]);
    let text = dir.ok(&[&args[..], &["--diff-nodes", "2", "--diff-workers", "3"]].concat());
    assert!(text.contains("b: p.tw on 2 nodes of 3 workers, pattern"), "{text}");
    dir.write("m.txt", "nodes = 8\n");
    let text = dir.ok(&["explain", "p.tw", "--diff-machine", "m.txt"]);
    assert!(text.starts_with("a: p.tw\nb: p.tw on 8 nodes of 1 worker, "), "{text}");
    assert_eq!(row(&text, "sent")[1], "0 B");
}

#[test]
fn a_difference_has_four_forms() {
    let dir = Dir::with_program(PRODUCT);
    let args = ["explain", "p.tw", "--tile", "1000", "--diff-tile", "500", "--level"];
    let line = dir.ok(&[&args[..], &["line"]].concat());
    assert!(line.starts_with("tasks 96 -> 640, moved ") && line.lines().count() == 1, "{line}");
    let page = dir.ok(&[&args[..], &["html"]].concat());
    assert!(page.starts_with("<!doctype html>") && page.contains("c [1000, 1000] -&gt; c [500, 500]"), "{page}");
    for level in ["dot", "svg", "tree", "kernel", "verbose"] {
        let message = dir.refused(&[&args[..], &[level]].concat());
        assert!(message.contains("cannot be compared") && message.contains("`html` or `json`"), "{message}");
    }
}

#[test]
fn wrong_options_are_refused_where_they_are_wrong() {
    let dir = Dir::with_program(PRODUCT);
    dir.write("wrong.tw", "x = ones(3)\ny = x + nothing\n");
    let message = dir.refused(&["explain", "p.tw", "--diff", "wrong.tw"]);
    assert!(message.contains("wrong.tw:2") && message.contains("nothing"), "{message}");
    assert!(dir.refused(&["explain", "p.tw", "--diff", "none.tw"]).contains("none.tw"));
    assert!(dir.refused(&["explain", "p.tw", "--diff-scheduler", "lshs"]).contains("--nodes K"));
    assert!(dir.refused(&["explain", "p.tw", "--diff-nodes", "0"]).contains("0 nodes"));
    assert!(dir.refused(&["explain", "p.tw", "--diff-set", "q=1"]).contains("q"));
    assert!(dir.refused(&["explain", "p.tw", "--diff-tile", "500", "--analyze"]).contains("`--analyze`"));
    let message = dir.refused(&["explain", "p.tw", "--nodes", "2", "--diff-tile", "500", "--pictures"]);
    assert!(message.contains("`--pictures`"), "{message}");
}

#[test]
fn what_is_fused_in_one_plan_is_told() {
    let dir = Dir::with_program("input x: f64[400]\ny = x * 2.0\ns = sum(y)\noutput s\n");
    dir.write("q.tw", "input x: f64[400]\ny = x * 2.0\ns = sum(y)\noutput s\noutput y\n");
    let text = dir.ok(&["explain", "p.tw", "--diff", "q.tw", "--tile", "100"]);
    let row = text.lines().find(|line| line.contains("y = x * 2.0")).unwrap_or_else(|| panic!("{text}"));
    assert!(row.contains("in 3 -> 4"), "{text}");
}
