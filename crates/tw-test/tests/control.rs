//! What explain shows of loops and branches is what a run does.

use std::collections::BTreeMap;

use tilewright::Session;
use tilewright::explain::{Explanation, Role, Turn};
use tw_ir::program::FunctionTable;
use tw_ir::schedule::PlanFile;
use tw_lang::{NoFiles, ProgramUnit, parse_program};
use tw_place::{Cluster, SchedulerName};

fn read(text: &str) -> ProgramUnit {
    parse_program(text, &BTreeMap::new(), &NoFiles, &FunctionTable::default())
        .unwrap_or_else(|errors| panic!("{errors:?}"))
}

/// Tasks of the sections that a run passes, by the role of the section: how often each runs.
fn tasks(explanation: &Explanation, times: impl Fn(Role, Turn) -> u64) -> u64 {
    let sections = explanation.sections.iter();
    sections.map(|section| times(section.at.role, section.at.turn) * section.plan().expect("a plan").cost().tasks).sum()
}

/// The branches cut their results differently; what follows is planned for one grid, whichever branch runs.
#[test]
fn what_follows_a_branch_is_planned_as_it_runs() {
    for (sign, taken) in [("-", Role::Otherwise), ("", Role::Then)] {
        let text = format!(
            "x = retile(random.uniform(90, 90, seed=1), tile(30, 30)) + 1\ns = {sign}sum(x)\n\
             if s > 0 {{ y = retile(x * 2, tile(30, 30)) }} else {{ y = retile(x * 3, tile(9, 9)) }}\n\
             z = y + 1\noutput z\n"
        );
        let unit = read(&text);
        let session = Session::builder().threads(1).build();
        let explanation = session.explain(&unit.program).expect("a plan");
        let (_, totals) = session.run_with_report(&unit.program, &BTreeMap::new()).expect("it runs");
        let predicted = tasks(&explanation, |role, _| u64::from(role == taken || role == Role::Straight));
        assert_eq!(predicted, totals.tasks, "{text}");
        assert_eq!(totals.segments, totals.cached_segments, "a run plans nothing that explain has not planned");
    }
}

/// The first turn begins with other tiles than the others.
#[test]
fn the_first_turn_of_a_loop_is_shown_where_it_differs() {
    let text = "x = retile(random.uniform(64, 64, seed=1), tile(8, 8))\nk = 0\n\
                while k < 5 {\n  x = retile(x * 2, tile(32, 32))\n  k = k + 1\n}\noutput x\n";
    let unit = read(text);
    let session = Session::builder().threads(1).build();
    let explanation = session.explain(&unit.program).expect("a plan");
    let (_, totals) = session.run_with_report(&unit.program, &BTreeMap::new()).expect("it runs");
    let predicted = tasks(&explanation, |role, turn| match (role, turn) {
        (Role::Straight, _) | (_, Turn::First) => 1,
        (Role::Condition, _) => 6,
        (_, Turn::Later) => 4,
        _ => 5,
    });
    assert!(explanation.sections.iter().any(|section| section.at.turn == Turn::First));
    assert_eq!(predicted, totals.tasks);
    assert_eq!(totals.peak_bytes, explanation.summary().peak_bytes);
}

/// A loop leaves its results on the grids that explain shows, whether it has no turn, one, or several. Where it ends on others, each result is retiled in a
/// segment of its own; all other segments are those that explain has planned.
#[test]
fn what_follows_a_loop_is_planned_as_it_runs() {
    let settling = "x = retile(x * 2, tile(32, 32))\n  y = retile(y * 2, tile(32, 32))";
    let alternating = "z = x\n  x = y\n  y = z";
    for (body, side, retiles) in [(settling, 32, [2, 0, 0, 0, 0]), (alternating, 64, [0, 2, 0, 2, 0])] {
        for (turns, retiles) in retiles.into_iter().enumerate() {
            let text = format!(
                "x = retile(random.uniform(64, 64, seed=1), tile(8, 8))\n\
                 y = retile(random.uniform({side}, 64, seed=2), tile(16, 16))\nk = 0\n\
                 while k < {turns} {{\n  {body}\n  k = k + 1\n}}\n\
                 s = y @ x\noutput s\n"
            );
            let unit = read(&text);
            let session = Session::builder().threads(1).build();
            session.explain(&unit.program).expect("a plan");
            let (_, totals) = session.run_with_report(&unit.program, &BTreeMap::new()).expect("it runs");
            assert_eq!(totals.segments - totals.cached_segments, retiles, "{text}");
        }
    }
}

/// A selection of a selection has no more elements than the first mask has places, so it is planned, too.
#[test]
fn selections_of_selections_are_planned_for_the_most_they_select() {
    let text = "x = random.uniform(1000, seed=1)\ny = x[x > 0.5]\nz = y[y > 0.7]\nw = z[z > 0.8] * 2\noutput w\n";
    let explanation = Session::new().explain(&read(text).program).expect("a plan");
    let summary = explanation.summary();
    assert!(summary.selects_all && !summary.has_later, "{summary:?}");
    let last = explanation.sections.last().and_then(|section| section.plan()).expect("a plan");
    let (_, ty) = last.before.inputs().into_iter().next().expect("an input");
    assert_eq!(ty.known_shape(), Some(vec![1000]));
}

/// Times keep their type between segments.
#[test]
fn times_are_planned_as_times() {
    let text = "input t: datetime64[s][40]\nu = sort(t)\nk = 0\nwhile k < 3 {\n  k = k + 1\n}\nv = sort(u)\noutput v\n";
    let explanation = Session::new().explain(&read(text).program).expect("a plan");
    let last = explanation.sections.last().and_then(|section| section.plan()).expect("a plan");
    let (_, ty) = last.before.inputs().into_iter().next().expect("an input");
    assert!(ty.dtype.to_string().starts_with("datetime64"), "{ty}");
}

/// A run with a cluster executes the plans that explain shows: the same schedules, found ready in the cache. Explain goes on after a branch with the
/// shards that `then` leaves, so this run takes it.
#[test]
fn a_run_on_a_cluster_does_what_is_explained() {
    let text = "x = random.uniform(200, 200, seed=1)\nv = ones(200)\nk = 0\n\
                while k < 5 {\n  w = x @ v\n  if k >= 0 { v = w / sqrt(sum(w * w)) } else { v = w / max(w) }\n  k = k + 1\n}\n\
                r = sum(v * (x @ v))\noutput r\n";
    let unit = read(text);
    for scheduler in [SchedulerName::Auto, SchedulerName::Lshs, SchedulerName::Algebraic] {
        let cluster = Cluster::of(2, 2, scheduler).expect("a cluster");
        let session = Session::builder().threads(1).cluster(cluster.clone()).build();
        let explanation =
            session.explain(&unit.program).and_then(|plan| plan.placed_on(&session, &cluster)).expect("a plan");
        let on = explanation.on_machine().expect("a cluster");
        let explained = on.hashes(session.plan_options()).expect("schedules");
        let plan = session.plan_bytes(&unit.program).expect("a plan");
        let file = PlanFile::decode(&plan, session.functions()).expect("a plan file");
        for (_, schedule) in &file.segments {
            assert!(explained.contains(&schedule.hash()), "{scheduler:?} plans what it does not explain");
        }
        let (_, totals) = session.run_with_report(&unit.program, &BTreeMap::new()).expect("it runs");
        assert_eq!(totals.segments, totals.cached_segments, "{scheduler:?} runs what it has not planned");
    }
}
