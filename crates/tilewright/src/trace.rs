//! A run as a picture: every task, load, spill and fetch on its thread, and memory over time against the budget.
//!
//! [`chrome_trace`] gives JSON for `chrome://tracing` and Perfetto, [`memory_picture`] an SVG picture of memory alone.

use std::fmt::Write;

use serde_json::{Value, json};

use crate::profile::{Activity, TaskRun};
use crate::units;

/// The events of a run in the trace format of Chrome: times in microseconds, one lane per thread, a counter of bytes.
pub fn chrome_trace(tasks: &[TaskRun], budget: Option<u64>) -> Value {
    let mut events = Vec::with_capacity(2 * tasks.len() + 1);
    for task in tasks {
        events.push(json!({
            "name": task.label,
            "cat": task.activity.word(),
            "ph": "X",
            "ts": task.start * 1e6,
            "dur": (task.end - task.start) * 1e6,
            "pid": 0,
            "tid": task.worker,
            "args": { "activity": task.activity.word() },
        }));
        let mut bytes = json!({ "blocks": task.held });
        if let Some(budget) = budget {
            bytes["budget"] = json!(budget);
        }
        events.push(json!({ "name": "memory", "ph": "C", "ts": task.end * 1e6, "pid": 0, "args": bytes }));
    }
    json!({ "traceEvents": events, "displayTimeUnit": "ms" })
}

const WIDTH: f64 = 900.0;
const HEIGHT: f64 = 260.0;
const LEFT: f64 = 80.0;
const TOP: f64 = 30.0;

/// Memory over time, with the budget as a line, and below it marks for loads, spills and fetches.
pub fn memory_picture(tasks: &[TaskRun], budget: Option<u64>) -> String {
    let mut tasks: Vec<&TaskRun> = tasks.iter().collect();
    tasks.sort_by(|a, b| a.end.total_cmp(&b.end));
    let end = tasks.last().map_or(1.0, |task| task.end).max(1e-9);
    let most = tasks.iter().map(|task| task.held).chain(budget).max().unwrap_or(1).max(1) as f64;
    let x = |seconds: f64| LEFT + seconds / end * WIDTH;
    let y = |bytes: u64| TOP + HEIGHT - bytes as f64 / most * HEIGHT;
    let mut line = format!("M {:.1} {:.1}", x(0.0), y(0));
    for task in &tasks {
        let _ = write!(line, " H {:.1} V {:.1}", x(task.end), y(task.held));
    }
    let mut body = format!(r##"<path d="{line}" fill="none" stroke="#2b6cb0" stroke-width="1.5"/>"##);
    if let Some(budget) = budget {
        let at = y(budget);
        let _ = write!(
            body,
            r##"<line x1="{LEFT}" y1="{at:.1}" x2="{:.1}" y2="{at:.1}" stroke="#c53030" stroke-dasharray="6 4"/><text x="{:.1}" y="{:.1}" fill="#c53030">budget {}</text>"##,
            LEFT + WIDTH,
            LEFT + 6.0,
            at - 5.0,
            units::bytes(budget)
        );
    }
    let rows = [(Activity::Load, "#718096"), (Activity::Spill, "#dd6b20"), (Activity::Fetch, "#38a169")];
    for (row, (activity, colour)) in rows.into_iter().enumerate() {
        let top = TOP + HEIGHT + 14.0 + 18.0 * row as f64;
        let _ = write!(body, r##"<text x="8" y="{:.1}">{}</text>"##, top + 10.0, activity.word());
        for task in tasks.iter().filter(|task| task.activity == activity) {
            let width = (x(task.end) - x(task.start)).max(0.5);
            let _ = write!(
                body,
                r##"<rect x="{:.1}" y="{top:.1}" width="{width:.1}" height="12" fill="{colour}"/>"##,
                x(task.start)
            );
        }
    }
    let bottom = TOP + HEIGHT + 14.0 + 18.0 * 3.0;
    let _ = write!(
        body,
        r##"<text x="8" y="{:.1}">{}</text><text x="{:.1}" y="{:.1}" text-anchor="end">{end:.3} s</text>"##,
        TOP + 6.0,
        units::bytes(most as u64),
        LEFT + WIDTH,
        bottom + 14.0
    );
    format!(
        r##"<svg xmlns="http://www.w3.org/2000/svg" width="{:.0}" height="{:.0}" font-family="sans-serif" font-size="12">{body}</svg>"##,
        LEFT + WIDTH + 20.0,
        bottom + 24.0
    )
}

#[cfg(test)]
mod tests {
    use tw_ir::Span;

    use super::*;

    fn tasks() -> Vec<TaskRun> {
        let task = |activity, start: f64, held| TaskRun {
            activity,
            span: Span::None,
            label: "x <y>".to_string(),
            worker: 0,
            start,
            end: start + 0.5,
            held,
        };
        vec![task(Activity::Load, 0.0, 800), task(Activity::Spill, 0.5, 100), task(Activity::Fetch, 1.0, 900)]
    }

    #[test]
    fn a_trace_has_every_event_and_the_memory_after_it() {
        let trace = chrome_trace(&tasks(), Some(1000));
        let events = trace["traceEvents"].as_array().unwrap();
        assert_eq!(events.len(), 6);
        assert_eq!(events[2]["cat"], "spill");
        assert_eq!((&events[5]["args"]["blocks"], &events[5]["args"]["budget"]), (&json!(900), &json!(1000)));
        assert_eq!(events[4]["ts"], 1e6);
    }

    #[test]
    fn a_picture_shows_the_budget_and_every_move() {
        let picture = memory_picture(&tasks(), Some(1000));
        assert_eq!(picture.matches("<rect").count(), 3);
        assert!(picture.contains("budget 1000 B") || picture.contains("budget 1,000"), "{picture}");
        assert!(memory_picture(&[], None).ends_with("</svg>"));
    }
}
