//! Terms of placed plans: what they are called, and what they send beside the transfers.

use tw_lang::{NoFiles, parse_program};
use tw_plan::PlanOptions;

use super::super::super::{Before, Machine, Notation, Placed, Request, Rivals};
use super::super::StatementTerm;

const PRODUCT: &str = "input a: f64[480, 480]\ninput b: f64[480, 480]\nc = a @ b\noutput c\n";
/// Bytes of each of the three matrices.
const MATRIX: u64 = 480 * 480 * 8;

fn rivals(text: &str, workers: u32, notation: Option<&str>) -> Rivals {
    let unit = parse_program(text, &Default::default(), &NoFiles, &Default::default()).unwrap();
    let notation = notation.map(|text| Notation::parse(text).unwrap());
    let (machine, options) = (Machine::of(workers, 1).unwrap(), PlanOptions::default());
    let request = Request { distribution: notation.as_ref(), limit: 100, ..Request::new(&options, &machine) };
    request.rivals(&Before::default(), &unit.program).unwrap()
}

/// The terms of a plan, each with the bytes that the plan sends for its statement.
fn terms(placed: &Placed) -> Vec<(StatementTerm, u64)> {
    let name = |set| placed.workflow.sets[set].name.split(" (").next().unwrap_or_default().to_string();
    let sent = placed.received_by_statement();
    let with_sent = placed.terms(&name).into_iter().zip(sent);
    with_sent.filter_map(|(term, sent)| term.map(|term| (term, sent.bytes))).collect()
}

fn written(notation: &str) -> (StatementTerm, u64) {
    let rivals = rivals(PRODUCT, 4, Some(notation));
    let placed = rivals.placed.iter().find(|placed| placed.scheduler == "tdn").unwrap();
    let mut terms = terms(placed);
    assert_eq!(terms.len(), 1);
    terms.remove(0)
}

/// A notation for four workers in a row or a square.
fn layout(sides: &str, places: [&str; 3]) -> String {
    let [a, b, c] = places;
    format!("machine M({sides})\na(x, y) -> M({a})\nb(x, y) -> M({b})\nc(x, y) -> M({c})\n")
}

#[test]
fn layouts_of_a_product_are_the_plans_of_the_paper() {
    for (sides, places, words, moved) in [
        // All by rows: the right matrix goes everywhere. By columns: the left one.
        ("4", ["x", "x", "x"], "local aggregate(sum, local join(a, broadcast(b)))", 1),
        ("4", ["y", "y", "y"], "local aggregate(sum, local join(broadcast(a), b))", 1),
        // What is by columns is needed by rows, and what is by rows everywhere.
        ("4", ["y", "x", "x"], "local aggregate(sum, local join(shuffle(a), broadcast(b)))", 2),
        // SUMMA: blocks go along rows and columns of a square of workers, and sums stay.
        (
            "2, 2",
            ["x, y", "x, y", "x, y"],
            "local aggregate(sum, local join(shuffle(replicate(2, a)), shuffle(replicate(2, b))))",
            2,
        ),
    ] {
        let (found, sent) = written(&layout(sides, places));
        assert_eq!(found.words(), words);
        assert_eq!(found.sites, 4);
        let by_term = found.bytes.unwrap();
        // At most one copy of each relation that moves is in place already.
        assert!(by_term.abs_diff(sent) <= moved * MATRIX, "{words}: {by_term} by the term, {sent} sent");
        assert!(sent > 0);
    }
}

#[test]
fn a_broadcast_sends_what_the_algebra_says() {
    for places in [["x", "x", "x"], ["y", "y", "y"]] {
        let (found, sent) = written(&layout("4", places));
        assert_eq!((found.bytes, sent), (Some(3 * MATRIX), 3 * MATRIX));
    }
}

#[test]
fn sums_over_workers_meet_after_a_shuffle() {
    // Tall matrices: their rows stay, and parts of the small product are added up.
    let text = "input x: f64[40000, 20]\ninput y: f64[40000, 20]\nz = transpose(x) @ y\noutput z\n";
    let rivals = rivals(text, 4, None);
    let placed = rivals.placed.iter().find(|placed| placed.scheduler == "algebraic").unwrap();
    let (found, sent) = terms(placed).pop().unwrap();
    let joined = "local aggregate(sum, shuffle(local aggregate(sum, local join(y, x))))";
    assert_eq!(found.words(), joined);
    let part = 20 * 20 * 8;
    assert!(found.bytes.unwrap().abs_diff(sent) <= part, "{:?} {sent}", found.bytes);
    // From a term that broadcasts, the rules find to join where rows are. A worker has one part of the rows, hence one
    // pair to join: aggregating before the shuffle would send no less, and of equal terms the shorter one is taken.
    let best = found.best.unwrap();
    assert_eq!((best.bytes, &best.rules[..], best.stopped), (3 * part, &["R2-6"][..], false));
    assert_eq!(best.words(), "local aggregate(sum, shuffle(local join(shuffle(y), shuffle(x))))");
}

#[test]
fn terms_of_all_schedulers_say_what_moves() {
    let text = "input a: f64[600, 600]\ninput v: f64[600]\nb = a @ a\nw = b @ v + v\ns = sort(w)\nm = max(s)\noutput s\noutput m\n";
    for placed in &rivals(text, 6, None).placed {
        for (found, sent) in terms(placed) {
            let words = found.words();
            let moves = words.contains("shuffle") || words.contains("broadcast");
            assert_eq!(moves, sent > 0, "{}: {words} with {sent} bytes", placed.scheduler);
            assert!(found.bytes.is_none_or(|bytes| (bytes > 0) == moves || found.sites == 1), "{words}");
        }
    }
}
