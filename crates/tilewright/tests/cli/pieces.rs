//! Programs with loops and branches on several workers: pieces find values where others left them.

use serde_json::Value;

use crate::tool::Dir;

const POWER: &str = "input x: f64[2000, 2000]
v = ones(2000)
k = 0
while k < 5 {
  w = x @ v
  v = w / sqrt(sum(w * w))
  k = k + 1
}
r = sum(v * (x @ v))
output r
";

fn json(dir: &Dir, more: &[&str]) -> Value {
    let args = ["explain", "p.tw", "--nodes", "4", "--workers", "2", "--level", "json"];
    serde_json::from_str(&dir.ok(&[&args[..], more].concat())).unwrap()
}

fn piece<'a>(json: &'a Value, title: &str) -> &'a Value {
    let pieces = json["machine"]["pieces"].as_array().unwrap();
    pieces.iter().find(|piece| piece["title"].as_str().unwrap().contains(title)).unwrap()
}

fn sent(piece: &Value) -> u64 {
    let rows = piece["matrix"]["bytes"].as_array().unwrap();
    rows.iter().flat_map(|row| row.as_array().unwrap()).map(|bytes| bytes.as_u64().unwrap()).sum()
}

#[test]
fn a_loop_finds_its_values_where_the_round_before_left_them() {
    let dir = Dir::with_program(POWER);
    for more in [&[][..], &["--scheduler", "algebraic"], &["--scheduler", "lshs"]] {
        let json = json(&dir, more);
        // The matrix stays where it is: a round sends parts of vectors, and so does what follows the loop.
        let last = json["machine"]["pieces"].as_array().unwrap().last().unwrap();
        for piece in [piece(&json, "body of the loop"), last] {
            assert!(sent(piece) < 20 * 2000 * 8, "{} under {more:?}: {json:#}", piece["title"]);
        }
        // And it is there all the time.
        let held = json["peak_bytes_max_rank"].as_u64().unwrap();
        assert!(held >= 2000 * 2000 * 8 / 8, "{held}");
    }
}

#[test]
fn what_other_pieces_need_counts_against_the_limit() {
    // While `b` is made, `a` waits for the end; half of it is with each of two workers.
    let text = "input s: f64[1000]\na[i,j] = s[i] * s[j]\nb = a\nk = 0\nwhile k < sum(s) {\n  b = b * 2\n  k = k + 1\n}\nc = sum(a * b)\noutput c\n";
    let dir = Dir::with_program(text);
    let args = ["explain", "p.tw", "--nodes", "2", "--level", "json"];
    let free: Value = serde_json::from_str(&dir.ok(&args)).unwrap();
    let peak = free["peak_bytes_max_rank"].as_u64().unwrap();
    // Half of `a`, half of the old `b`, and some of the new one.
    assert!(peak > 2 * 4_000_000, "{peak}");
    dir.write("tight.txt", "nodes = 2\nmemory = 6MiB\n");
    let message = dir.refused(&["explain", "p.tw", "--machine", "tight.txt"]);
    assert!(
        message.contains("keeps every worker within") && message.contains("held when the segment begins"),
        "{message}"
    );
}

#[test]
fn of_two_branches_the_longer_counts() {
    let text = "input x: f64[1000, 1000]\nr = sum(x)\nif r > 0 { z = x @ x } else { z = x + 1 }\noutput z\n";
    let json = json(&Dir::with_program(text), &[]);
    let counts = |title: &str| piece(&json, title)["counts"].as_bool().unwrap();
    assert!(counts("holds") && !counts("does not hold"));
    let all: f64 = json["makespan_s"].as_f64().unwrap();
    let long = piece(&json, "if the condition at line 3 holds")["timeline"]["makespan_s"].as_f64().unwrap();
    assert!(all >= long && all < 1.2 * long, "{all} {long}");
}

#[test]
fn distributions_may_name_what_one_piece_has() {
    let dir = Dir::with_program(POWER);
    dir.write("d.txt", "machine M(8)\nx(i, j) -> M(i)\nw(i) -> M(i)\n");
    let args = ["explain", "p.tw", "--nodes", "8", "--distribution"];
    let text = dir.ok(&[&args[..], &["d.txt", "--scheduler", "tdn"]].concat());
    assert!(text.contains("placed by tdn"), "{text}");
    dir.write("wrong.txt", "machine M(8)\nq(i) -> M(i)\n");
    let message = dir.refused(&[&args[..], &["wrong.txt"]].concat());
    assert!(message.contains("the distribution names `q`, which the plan does not have"), "{message}");
}

#[test]
fn a_loop_that_begins_with_one_value_twice_holds_two() {
    // From the second round on `x` and `y` are two values, of which every worker has a million bytes.
    let text = "input a: f64[1000, 1000]\nx = a * 2\ny = x\nk = 0\nwhile k < 3 {\n  x = x + 1\n  y = y * 2\n  k = k + 1\n}\noutput x\noutput y\n";
    let json = json(&Dir::with_program(text), &[]);
    let peak = json["peak_bytes_max_rank"].as_u64().unwrap();
    assert!(peak >= 3_000_000, "{peak}");
}

#[test]
fn of_nested_branches_the_longest_way_counts() {
    let product = |name: &str, n: u32| format!("{name} = x[0:{n}, 0:{n}] @ x[0:{n}, 0:{n}]");
    // Each inner branch is shorter than the other outer one; together they are not.
    let text = format!(
        "input x: f64[1200, 1200]\nr = sum(x)\nz = r\nif r > 0 {{\n  if r > 1 {{ {}\n z = sum(y) }} else {{ {}\n z = sum(y) }}\n}} else {{\n  {}\n  z = sum(w)\n}}\noutput z\n",
        product("y", 1000),
        product("y", 1000),
        product("w", 1200),
    );
    let json = json(&Dir::with_program(&text), &[]);
    let pieces = json["machine"]["pieces"].as_array().unwrap();
    let counted = |title: &str| {
        let of_line = |piece: &&Value| piece["title"].as_str().unwrap().contains(title);
        pieces.iter().filter(of_line).any(|piece| piece["counts"].as_bool().unwrap())
    };
    assert!(counted("line 4 does not hold") && !counted("line 5"), "{json:#}");
}

#[test]
fn distributions_of_other_results_and_of_whole_fibres_are_kept() {
    for (text, distribution) in [
        ("input A: f64[64, 64]\nw, V = linalg.eigh(A)\noutput w\noutput V\n", "machine M(4)\nV(x, y) -> M(y)\n"),
        ("input A: f64[64, 64]\nV = sort(A, axis=0)\noutput V\n", "machine M(4)\nV(x, y) -> M(x)\n"),
    ] {
        let dir = Dir::with_program(text);
        dir.write("d.txt", distribution);
        let text = dir.ok(&["explain", "p.tw", "--nodes", "4", "--distribution", "d.txt", "--scheduler", "tdn"]);
        assert!(text.contains("placed by tdn"), "{text}");
    }
}

#[test]
fn grids_for_time_are_those_for_bytes_where_they_promise_nothing() {
    let dir = Dir::with_program("input a: f64[4000, 4000]\nb = a @ a\noutput b\n");
    let text = dir.ok(&["explain", "p.tw", "--nodes", "4", "--scheduler", "timed"]);
    assert!(text.contains("placed by algebraic"), "{text}");
}
