//! Plans for several workers, drawn.

use serde_json::Value;

use crate::tool::Dir;

const SMALL: &str = "input X: f64[400, 20]
mu = mean(X, axis=0)
Z = X - mu
G = Z.T @ Z
output G
";

const PRODUCT: &str = "input a: f64[4000, 4000]\ninput b: f64[4000, 4000]\nc = a @ b\noutput c\n";

fn small(more: &[&str]) -> String {
    let args = ["explain", "p.tw", "--tile", "100", "--nodes", "2", "--workers", "2", "--scheduler", "lshs"];
    Dir::with_program(SMALL).ok(&[&args[..], more].concat())
}

fn small_json() -> Value {
    serde_json::from_str(&small(&["--level", "json"])).unwrap()
}

/// Checks that tags of XML are closed in order and that nothing in between needs an escape.
fn check_well_formed(xml: &str) {
    let mut open: Vec<&str> = Vec::new();
    let mut rest = xml;
    while let Some((text, after)) = rest.split_once('<') {
        assert!(!text.contains('>'), "{text}");
        let entities = text.split('&').skip(1);
        entities.for_each(|entity| assert!(entity.contains(';'), "{text}"));
        let (tag, after) = after.split_once('>').expect("an open tag");
        rest = after;
        assert_eq!(tag.matches('"').count() % 2, 0, "{tag}");
        match tag.strip_prefix('/') {
            Some(name) => assert_eq!(open.pop(), Some(name)),
            None if tag.ends_with('/') => {}
            None => open.push(tag.split_whitespace().next().unwrap()),
        }
    }
    assert_eq!(open, [""; 0]);
}

/// The numbers of an attribute, in order.
fn attributes(xml: &str, name: &str) -> Vec<f64> {
    let pattern = format!(" {name}=\"");
    xml.split(&pattern).skip(1).map(|rest| rest.split('"').next().unwrap().parse().unwrap()).collect()
}

#[test]
fn small_plans_are_drawn_in_characters() {
    let text = small(&["--pictures"]);
    let owners = "who owns which block
  X [400, 20] in 4 x 1 blocks, on 4 workers
              0..20
      0..100      0
    100..200      2
    200..300      1
    300..400      3
  mu [20] in 1 block, on 1 worker
      0..20
          0
    made by
      0..20
        0-3
";
    assert!(text.contains(owners), "{text}");
    assert!(text.contains("who sends how much to whom: workers, 2 on each node\n  from \\ to"), "{text}");
    let matrix: Vec<&str> = text.lines().skip_while(|line| !line.contains("from \\ to")).take(6).collect();
    assert!(matrix.iter().all(|line| line.matches('|').count() == 1), "{text}");
    assert!(matrix[5].trim_start().starts_with("receives"), "{text}");
    let lane = text.lines().find(|line| line.trim_start().starts_with("0  AAA")).unwrap_or_else(|| panic!("{text}"));
    assert!(lane.ends_with('%') && lane.contains("..") && lane.contains('D'), "{text}");
    assert!(text.contains("\n  D = line 4: G = Z.T @ Z\n"), "{text}");
    assert_eq!(text, small(&["--pictures"]));
    // Nobody who does not ask is told.
    assert!(!small(&[]).contains("who owns"), "{text}");
}

#[test]
fn every_statement_says_what_it_sends_and_what_it_must() {
    let dir = Dir::with_program(PRODUCT);
    let text = dir.ok(&["explain", "p.tw", "--nodes", "10"]);
    let row = text.lines().find(|line| line.contains("3  c = a @ b") && line.contains(" x ")).unwrap();
    assert!(row.contains("1 x 2 x 5") && row.contains("61.0 MiB") && row.trim_end().ends_with("1.44"), "{text}");
    let json = dir.ok(&["explain", "p.tw", "--nodes", "10", "--level", "json"]);
    let value: Value = serde_json::from_str(&json).unwrap();
    let piece = &value["machine"]["pieces"][0];
    let statements = piece["statements"].as_array().unwrap();
    let sum: u64 = statements.iter().map(|statement| statement["wire_bytes_total"].as_u64().unwrap()).sum();
    assert_eq!(sum, value["wire_bytes_total"].as_u64().unwrap());
    let product = statements.iter().find(|statement| statement["place"] == "line 3").unwrap();
    assert_eq!(product["grid"], serde_json::json!([1, 2, 5]));
    assert_eq!(product["lower_bound_bytes"], value["lower_bound_bytes"]);
    assert_eq!(product["wire_bytes_max_rank"], 8_000_000 * 8);
}

#[test]
fn whoever_lost_has_a_reason_in_figures() {
    let dir = Dir::with_program(PRODUCT);
    let text = dir.ok(&["explain", "p.tw", "--nodes", "10"]);
    let why = |name: &str| {
        let start = format!("  - {name} takes ");
        text.lines().find(|line| line.starts_with(&start)).unwrap_or_else(|| panic!("{name}: {text}")).to_string()
    };
    let round = why("roundrobin");
    assert!(round.contains("x as long: it sends ") && round.contains("x as much to its busiest worker"), "{round}");
    assert!(
        round.contains(" of `a`") && round.contains("line 3") && round.contains("where algebraic sends "),
        "{round}"
    );
    assert!(why("lshs").contains("as long: it "), "{text}");
    why("pattern");
    // A scheduler that is asked for is in front, and told what would be better.
    let text = dir.ok(&["explain", "p.tw", "--nodes", "10", "--scheduler", "roundrobin"]);
    assert!(text.contains("  - algebraic would end after "), "{text}");
    assert!(text.contains(": roundrobin sends "), "{text}");
}

#[test]
fn plans_that_are_too_large_are_named_with_their_need() {
    let dir = Dir::with_program(PRODUCT);
    let all = dir.ok(&["explain", "p.tw", "--nodes", "10", "--level", "json"]);
    let value: Value = serde_json::from_str(&all).unwrap();
    let peaks = value["schedulers"].as_object().unwrap();
    let peak = |name: &str| peaks[name]["peak_bytes_max_rank"].as_u64().unwrap();
    assert!(peak("algebraic") < peak("roundrobin"));
    dir.write("m.txt", format!("nodes = 10\nmemory = {}\n", peak("algebraic")));
    let text = dir.ok(&["explain", "p.tw", "--machine", "m.txt"]);
    assert!(text.contains("  - roundrobin needs ") && text.contains(", where the limit is "), "{text}");
    let message = dir.refused(&["explain", "p.tw", "--machine", "m.txt", "--scheduler", "roundrobin"]);
    assert!(message.contains("has no plan") && message.contains("on a worker, and the limit is"), "{message}");
}

#[test]
fn json_has_maps_matrix_and_timeline_that_agree_with_the_figures() {
    let value = small_json();
    let piece = &value["machine"]["pieces"][0];
    assert_eq!(piece["scheduler"], "lshs");
    let cells = piece["matrix"]["bytes"].as_array().unwrap();
    let numbers = |row: &Value| row.as_array().unwrap().iter().map(|n| n.as_u64().unwrap()).collect::<Vec<_>>();
    let total: u64 = cells.iter().flat_map(numbers).sum();
    assert_eq!(total, value["wire_bytes_total"].as_u64().unwrap());
    assert_eq!(piece["matrix"]["nodes"], serde_json::json!([0, 0, 1, 1]));
    let x = &piece["owners"][0];
    assert_eq!((&x["value"], &x["grid"]), (&"X".into(), &serde_json::json!([4, 1])));
    assert_eq!(x["owners"], serde_json::json!([0, 2, 1, 3]));
    let lanes = piece["timeline"]["lanes"].as_array().unwrap();
    let tasks = |lane: &Value| {
        let runs = lane["runs"].as_array().unwrap();
        runs.iter().map(|run| run["tasks"].as_u64().unwrap()).sum::<u64>()
    };
    assert_eq!(lanes.iter().map(tasks).sum::<u64>(), value["tasks"].as_u64().unwrap());
    let ends = lanes.iter().flat_map(|lane| lane["runs"].as_array().unwrap()).map(|run| run["end_s"].as_f64().unwrap());
    assert_eq!(ends.fold(0.0, f64::max), value["makespan_s"].as_f64().unwrap());
    let names: Vec<&str> =
        piece["lost"].as_array().unwrap().iter().map(|lost| lost["scheduler"].as_str().unwrap()).collect();
    assert!(["algebraic", "pattern", "roundrobin"].iter().all(|name| names.contains(name)), "{names:?}");
    // Grids for time may send nothing at all.
    for lost in piece["lost"].as_array().unwrap().iter().filter(|lost| lost["scheduler"] != "timed") {
        assert!(lost["why"].as_str().unwrap().starts_with(lost["scheduler"].as_str().unwrap()));
        assert!(lost["most_sent"]["bytes"].as_u64().unwrap() > 0);
    }
}

#[test]
fn pages_hold_everything_and_drawings_are_well_formed() {
    let page = small(&["--level", "html"]);
    assert!(page.ends_with("</html>\n") && page.matches("<!doctype html>").count() == 1);
    for part in [
        "roundrobin",
        "as long: it ",
        "who sends how much to whom",
        "who does what when",
        "X [400, 20] in 4 x 1 blocks",
    ] {
        assert!(page.contains(part), "{part}");
    }
    assert!(
        !page.contains("<script") && !page.contains("src=") && !page.contains("href="),
        "a page needs nothing else"
    );
    for drawing in page.split("<svg ").skip(1) {
        let (drawing, _) = drawing.split_once("</svg>").unwrap();
        check_well_formed(&format!("<svg {drawing}</svg>"));
    }
    let drawing = small(&["--level", "svg"]);
    check_well_formed(&drawing);
    assert_eq!(drawing, small(&["--level", "svg"]));
    let (width, height) = (attributes(&drawing, "width")[0], attributes(&drawing, "height")[0]);
    assert!(attributes(&drawing, "x").iter().all(|&x| (0.0..width).contains(&x)));
    assert!(attributes(&drawing, "y").iter().all(|&y| (0.0..height).contains(&y)));
}

#[test]
fn many_workers_are_thinned() {
    let dir = Dir::with_program(PRODUCT);
    let args = ["explain", "p.tw", "--nodes", "30", "--workers", "4"];
    let text = dir.ok(&[&args[..], &["--pictures"]].concat());
    assert!(text.contains("who sends how much to whom: groups of 12 workers\n"), "{text}");
    assert!(text.contains(" of 120 workers, the last to end among them"), "{text}");
    assert!(text.lines().all(|line| line.starts_with("  -") || line.chars().count() < 200), "{text}");
    let json = dir.ok(&[&args[..], &["--level", "json"]].concat());
    let value: Value = serde_json::from_str(&json).unwrap();
    let piece = &value["machine"]["pieces"][0];
    assert_eq!(piece["matrix"]["labels"].as_array().unwrap().len(), 30);
    assert!(piece["timeline"]["lanes"].as_array().unwrap().len() <= 64);
}

#[test]
fn nothing_follows_what_other_programs_read() {
    let dot = small(&["--level", "dot"]);
    assert!(dot.ends_with("}\n") && !dot.contains("roundrobin"), "{dot}");
    assert_eq!(small(&["--level", "line"]).lines().count(), 2);
}

#[test]
fn pictures_need_a_machine() {
    let message = Dir::with_program(SMALL).refused(&["explain", "p.tw", "--pictures"]);
    assert!(message.contains("`--pictures`") && message.contains("--nodes K"), "{message}");
}

#[test]
fn loops_and_empty_programs_are_drawn() {
    let text = "x = ones(40)\nn = 0\nwhile n < 3 {\n    x = x * 2.0\n    n += 1\n}\noutput x\n";
    let dir = Dir::with_program(text);
    let text = dir.ok(&["explain", "p.tw", "--tile", "10", "--workers", "3", "--pictures"]);
    assert!(text.contains("body of the loop at line 3"), "{text}");
    assert!(text.contains("nothing is sent"), "{text}");
    dir.ok(&["explain", "p.tw", "--workers", "3", "--level", "html"]);
    dir.write("e.tw", "x = zeros(0, 3)\noutput x\n");
    for level in ["table", "html", "svg", "json"] {
        dir.ok(&["explain", "e.tw", "--workers", "3", "--pictures", "--level", level]);
    }
    dir.write("t.tw", "input x: f64[4, 6, 8]\ny = sum(x, axis=1)\noutput y\n");
    let text = dir.ok(&["explain", "t.tw", "--tile", "2", "--workers", "3", "--pictures", "--scheduler", "roundrobin"]);
    assert!(text.contains("x [4, 6, 8] in 2 x 3 x 4 blocks, on 3 workers") && text.contains("block 0,0"), "{text}");
}
