//! A plan beside its measured run: times, bytes, memory, and the timeline of threads.

use std::collections::BTreeMap;
use std::fmt::Write;

use super::html::escape;
use super::rows::Row;
use super::source::Place;
use super::svg::{Drawing, MARGIN};
use super::table::{Align, Table};
use super::text::shorten;
use super::{Activity, Explanation, TaskRun, units};

/// Sizes in pixels.
const WIDTH: usize = 900;
const LABELS: usize = 90;
const LANE: usize = 22;
const TITLE: usize = 26;
const LINE: usize = 16;
const MEMORY: usize = 90;

/// Statements that are named below the timeline; the others share a colour.
const MOST_NAMED: usize = 16;

impl Explanation {
    /// Planned and measured figures, in total and per line. Times of threads add up.
    pub fn profile_text(&self) -> String {
        let Some((measured, totals)) = &self.measured else { return self.to_text(super::Level::Table) };
        let summary = self.summary();
        let threads = units::counted(self.threads as u64, "thread");
        let mut out = format!("on {threads}\n");
        let mut table = Table::new(&[("", Align::Left), ("planned", Align::Right), ("measured", Align::Right)]);
        let mut line = |name: &str, planned: String, measured: String| table.row(vec![name.into(), planned, measured]);
        line("time", units::seconds(summary.seconds), units::duration(totals.running));
        line("tasks", units::count(summary.cost.tasks), units::count(totals.tasks));
        line("read from inputs", units::bytes(summary.cost.input_bytes), units::bytes(totals.read_bytes));
        line("written to files", units::bytes(summary.cost.stored_bytes), units::bytes(totals.written_bytes));
        line("moved", units::bytes(summary.cost.moved_bytes), units::bytes(measured.sum(|_| true).moved_bytes));
        line("peak memory", units::bytes(summary.peak_bytes), units::bytes(totals.peak_bytes));
        out.push_str(&table.to_text(2));
        out.push('\n');
        out.push_str(&self.profile_rows().to_text(2));
        if summary.has_loops {
            out.push_str("  loop bodies are planned once, and measured as often as they ran\n");
        }
        out
    }

    fn profile_rows(&self) -> Table {
        let mut table = Table::new(&[
            ("line", Align::Right),
            ("statement", Align::Left),
            ("operation", Align::Left),
            ("tasks", Align::Right),
            ("ran", Align::Right),
            ("time", Align::Right),
            ("measured", Align::Right),
            ("share", Align::Right),
            ("moved", Align::Right),
            ("measured", Align::Right),
        ]);
        let Some((measured, _)) = &self.measured else { return table };
        let mut rows: BTreeMap<Place, Row> = BTreeMap::new();
        for row in self.plans().flat_map(|(_, plan)| self.rows(plan)) {
            match rows.get_mut(&row.place) {
                Some(known) => known.cost += row.cost,
                None => drop(rows.insert(row.place.clone(), row)),
            }
        }
        let all = measured.sum(|_| true).time.as_secs_f64().max(f64::MIN_POSITIVE);
        let mut before: Option<Place> = None;
        for row in rows.into_values() {
            let busy = measured.sum(|span| self.place(span) == row.place);
            // A line that is fused into others has no figures of its own.
            if row.cost.tasks == 0 && busy.tasks == 0 {
                continue;
            }
            let is_beside = before.as_ref().is_some_and(|before| before.is_beside(&row.place));
            let line = if is_beside { String::new() } else { row.place.short() };
            let text = if is_beside { String::new() } else { shorten(&row.text) };
            table.row(vec![
                line,
                text,
                row.place.operation().unwrap_or(row.kind).to_string(),
                units::count(row.cost.tasks),
                units::count(busy.tasks),
                units::seconds(self.speeds.seconds(&row.cost, 1)),
                units::duration(busy.time),
                format!("{:.0}%", 100.0 * busy.time.as_secs_f64() / all),
                units::bytes(row.cost.moved_bytes),
                units::bytes(busy.moved_bytes),
            ]);
            before = Some(row.place);
        }
        table
    }

    /// The label of a task in pictures: the operation and its line.
    fn task_name(&self, task: &TaskRun) -> String {
        let place = self.place(&task.span);
        if let Activity::Spill | Activity::Fetch = task.activity {
            return format!("{} of {} ({place})", task.activity.word(), task.label);
        }
        match (&place, place.operation(), self.line_text(&place)) {
            (Place::Planner, ..) => task.label.clone(),
            (_, Some(operation), _) => format!("{operation} ({})", place.short()),
            (_, None, Some(line)) => format!("{place}: {}", shorten(line)),
            _ => format!("{} ({place})", task.label),
        }
    }

    /// The run as a drawing: the timeline of each thread, and the live bytes of blocks.
    pub fn timeline_svg(&self, tasks: &[TaskRun], others: u64) -> String {
        let begin = tasks.iter().map(|task| task.start).fold(f64::INFINITY, f64::min);
        let end = tasks.iter().map(|task| task.end).fold(0.0, f64::max);
        let begin = if begin.is_finite() { begin } else { end };
        let scale = WIDTH as f64 / (end - begin).max(f64::MIN_POSITIVE);
        let x_of = |time: f64| LABELS as f64 + (time - begin) * scale;
        let numbers = numbered(tasks.iter().map(|task| (self.task_name(task), task.end - task.start)));
        let mut body = format!(
            "<text class=\"title\" x=\"{MARGIN}\" y=\"14\">what the threads did, in {}</text>\n",
            units::seconds(end - begin)
        );
        let mut threads: Vec<u32> = tasks.iter().map(|task| task.worker).collect();
        threads.sort_unstable();
        threads.dedup();
        for (k, &worker) in threads.iter().enumerate() {
            let y = TITLE + k * LANE;
            let _ = writeln!(
                body,
                "<text class=\"small\" x=\"{}\" y=\"{}\" text-anchor=\"end\">thread {worker}</text>\
                 <rect x=\"{LABELS}\" y=\"{y}\" width=\"{WIDTH}\" height=\"{}\" style=\"fill:#f4f4f4;stroke:none\"/>",
                LABELS - 8,
                y + LANE - 8,
                LANE - 2
            );
            for run in
                merged(tasks.iter().filter(|task| task.worker == worker), 1.0 / scale, |task| self.task_name(task))
            {
                let number = numbers.iter().position(|name| *name == run.name);
                let _ = writeln!(
                    body,
                    "<g><title>{}</title><rect x=\"{:.2}\" y=\"{y}\" width=\"{:.2}\" height=\"{}\" style=\"fill:{};stroke:none\"/></g>",
                    escape(&format!(
                        "{}: {}, {}",
                        run.name,
                        units::counted(run.tasks, "task"),
                        units::seconds(run.end - run.start)
                    )),
                    x_of(run.start),
                    ((run.end - run.start) * scale).max(0.3),
                    LANE - 2,
                    colour(number),
                );
            }
        }
        let mut y = TITLE + threads.len() * LANE + LINE;
        for part in 0..=4 {
            let at = units::seconds((end - begin) * f64::from(part) / 4.0);
            let x = LABELS + part as usize * WIDTH / 4;
            let _ = writeln!(body, "<text class=\"small\" x=\"{x}\" y=\"{y}\" text-anchor=\"middle\">{at}</text>");
        }
        y = draw_memory(tasks, self.budget, y + LINE, x_of, &mut body);
        y = draw_moves(tasks, y, x_of, &mut body);
        for (number, name) in numbers.iter().enumerate() {
            y += LINE;
            let _ = writeln!(
                body,
                "<rect x=\"{LABELS}\" y=\"{}\" width=\"12\" height=\"11\" style=\"fill:{};stroke:none\"/><text x=\"{}\" y=\"{y}\">{}</text>",
                y - 10,
                colour(Some(number)),
                LABELS + 18,
                escape(name)
            );
        }
        if others > 0 {
            y += LINE;
            let others = units::counted(others, "task");
            let _ = writeln!(body, "<text class=\"small\" x=\"{LABELS}\" y=\"{y}\">{others} more are not drawn</text>");
        }
        Drawing::new(LABELS + WIDTH + 3 * MARGIN, y + LINE, body).to_svg()
    }

    /// The run for `chrome://tracing` and Perfetto: a complete event for every task and move, and a counter for memory, with the budget if there is one.
    #[cfg(feature = "json")]
    pub fn chrome_trace(&self, tasks: &[TaskRun]) -> serde_json::Value {
        use serde_json::json;
        let micro = |seconds: f64| seconds * 1e6;
        let mut events = vec![json!({
            "name": "process_name", "ph": "M", "pid": 1, "tid": 0, "args": { "name": "tilewright" },
        })];
        let mut threads: Vec<u32> = tasks.iter().map(|task| task.worker).collect();
        threads.sort_unstable();
        threads.dedup();
        events.extend(threads.into_iter().map(|worker| {
            json!({
                "name": "thread_name", "ph": "M", "pid": 1, "tid": worker, "args": { "name": format!("thread {worker}") },
            })
        }));
        for task in tasks {
            let place = self.place(&task.span);
            let (line, at) = (self.line_text(&place).unwrap_or_default(), place.full());
            let args = json!({ "line": line, "place": at });
            events.push(json!({
                "name": self.task_name(task), "cat": task.activity.word(), "ph": "X", "pid": 1, "tid": task.worker,
                "ts": micro(task.start), "dur": micro(task.end - task.start), "args": args,
            }));
            let mut bytes = json!({ "bytes": task.held });
            if let Some(budget) = self.budget {
                bytes["budget"] = json!(budget);
            }
            events.push(json!({ "name": "memory", "ph": "C", "pid": 1, "ts": micro(task.end), "args": bytes }));
        }
        json!({ "displayTimeUnit": "ms", "traceEvents": events })
    }
}

/// Consecutive tasks of one statement, with gaps too small to be visible.
struct Run {
    name: String,
    start: f64,
    end: f64,
    tasks: u64,
}

fn merged<'a>(tasks: impl Iterator<Item = &'a TaskRun>, gap: f64, name: impl Fn(&TaskRun) -> String) -> Vec<Run> {
    let mut runs: Vec<Run> = Vec::new();
    for task in tasks {
        let name = name(task);
        match runs.last_mut() {
            Some(last) if last.name == name && task.start - last.end < gap => {
                last.end = last.end.max(task.end);
                last.tasks += 1;
            }
            _ => runs.push(Run { name, start: task.start, end: task.end, tasks: 1 }),
        }
    }
    runs
}

/// The names that took longest, in the order they first occur.
fn numbered(times: impl Iterator<Item = (String, f64)>) -> Vec<String> {
    let (mut order, mut sums): (Vec<String>, BTreeMap<String, f64>) = (Vec::new(), BTreeMap::new());
    for (name, time) in times {
        if !sums.contains_key(&name) {
            order.push(name.clone());
        }
        *sums.entry(name).or_default() += time;
    }
    let mut longest = order.clone();
    longest.sort_by(|a, b| sums[b].total_cmp(&sums[a]));
    longest.truncate(MOST_NAMED);
    order.retain(|name| longest.contains(name));
    order
}

/// Neighbouring hues differ by the golden angle; items without a number are grey.
fn colour(number: Option<usize>) -> String {
    match number {
        Some(number) => format!("hsl({:.0},55%,55%)", (210.0 + 137.508 * number as f64) % 360.0),
        None => "#bbb".to_string(),
    }
}

/// Bytes of blocks after every task, as steps, below the line of the budget. Gives the lower end.
fn draw_memory(
    tasks: &[TaskRun],
    budget: Option<u64>,
    top: usize,
    x_of: impl Fn(f64) -> f64,
    body: &mut String,
) -> usize {
    let bottom = top + MEMORY;
    let most = tasks.iter().map(|task| task.held).chain(budget).max().unwrap_or(0);
    let mut ends: Vec<(f64, u64)> = tasks.iter().map(|task| (task.end, task.held)).collect();
    ends.sort_by(|a, b| a.0.total_cmp(&b.0));
    let mut path = format!("M{LABELS} {bottom}");
    // One step per pixel is as much as can be seen: the highest.
    let mut shown: Vec<(f64, u64)> = Vec::new();
    for (time, held) in ends {
        let x = x_of(time);
        match shown.last_mut() {
            Some((at, high)) if x - *at < 1.0 => *high = (*high).max(held),
            _ => shown.push((x, held)),
        }
    }
    for (x, held) in shown {
        let y = bottom as f64 - MEMORY as f64 * held as f64 / most.max(1) as f64;
        let _ = write!(path, "H{x:.1}V{y:.1}");
    }
    let _ = write!(path, "H{}V{bottom}Z", LABELS + WIDTH);
    let _ = writeln!(
        body,
        "<text class=\"small\" x=\"{0}\" y=\"{1}\" text-anchor=\"end\">memory</text>\
         <text class=\"small\" x=\"{0}\" y=\"{2}\" text-anchor=\"end\">{3}</text>\
         <path d=\"{path}\" style=\"fill:#dbe6f1;stroke:#4c78a8\"/>",
        LABELS - 8,
        top + 24,
        top + 10,
        units::bytes(most),
    );
    if let Some(budget) = budget {
        let y = bottom as f64 - MEMORY as f64 * budget as f64 / most.max(1) as f64;
        let _ = writeln!(
            body,
            "<line x1=\"{LABELS}\" y1=\"{y:.1}\" x2=\"{}\" y2=\"{y:.1}\" style=\"stroke:#c53030;stroke-dasharray:6 4\"/>\
             <text class=\"small\" x=\"{}\" y=\"{:.1}\">budget {}</text>",
            LABELS + WIDTH,
            LABELS + 6,
            y + 12.0,
            units::bytes(budget),
        );
    }
    bottom
}

/// A row of marks for loads, spills and fetches, of those that occur. Gives the lower end.
fn draw_moves(tasks: &[TaskRun], mut y: usize, x_of: impl Fn(f64) -> f64, body: &mut String) -> usize {
    for (activity, fill) in [(Activity::Load, "#718096"), (Activity::Spill, "#dd6b20"), (Activity::Fetch, "#38a169")] {
        let mut moves = tasks.iter().filter(|task| task.activity == activity).peekable();
        if moves.peek().is_none() {
            continue;
        }
        y += LINE;
        let _ = writeln!(
            body,
            "<text class=\"small\" x=\"{}\" y=\"{y}\" text-anchor=\"end\">{}</text>",
            LABELS - 8,
            activity.word()
        );
        for task in moves {
            let (x, width) = (x_of(task.start), (x_of(task.end) - x_of(task.start)).max(0.3));
            let _ = writeln!(
                body,
                "<rect x=\"{x:.2}\" y=\"{}\" width=\"{width:.2}\" height=\"{}\" style=\"fill:{fill};stroke:none\"/>",
                y - LINE + 6,
                LINE - 6,
            );
        }
    }
    y
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::super::{Profile, profiled};
    use crate::Session;

    #[test]
    fn a_run_is_told_beside_its_plan() {
        let session = Session::builder().threads(2).tile(100).build();
        let a = session.random_normal(&[300, 300], 1).unwrap();
        let (program, inputs) = a.matmul(&a).unwrap().sum(None).unwrap().program().unwrap();
        let explanation = session.explain(&program).unwrap();
        let profile = Arc::new(Profile::with_tasks(1000));
        let (_, totals) = profiled(&profile, || session.run_with_report(&program, &inputs)).unwrap();
        let explanation = explanation.with_measured(profile.measured(), totals.clone());
        let (tasks, others) = profile.tasks();
        assert_eq!((tasks.len() as u64, others), (totals.tasks, 0));
        // A plan without branches runs every task once and moves what it planned to.
        let planned = explanation.summary();
        assert_eq!(planned.cost.tasks, totals.tasks);
        assert_eq!(planned.cost.moved_bytes, profile.measured().sum(|_| true).moved_bytes);
        let text = explanation.profile_text();
        assert!(text.contains("peak memory") && text.contains("planned") && text.contains("measured"), "{text}");
        let svg = explanation.timeline_svg(&tasks, others);
        assert!(svg.starts_with("<svg") && svg.contains("thread 0") && svg.contains("memory"), "{svg}");
        #[cfg(feature = "json")]
        {
            let trace = explanation.chrome_trace(&tasks);
            let events = trace["traceEvents"].as_array().unwrap();
            let complete = events.iter().filter(|event| event["ph"] == "X").count();
            assert_eq!(complete as u64, totals.tasks);
        }
    }

    #[test]
    fn moves_and_the_budget_are_drawn() {
        let session = Session::builder().threads(1).tile(100).memory(600_000).build();
        let a = session.random_normal(&[300, 300], 1).unwrap();
        let b = a.matmul(&a).unwrap();
        let (program, inputs) = b.matmul(&b).unwrap().program().unwrap();
        let explanation = session.explain(&program).unwrap();
        let profile = Arc::new(Profile::with_tasks(1000));
        let (_, totals) = profiled(&profile, || session.run_with_report(&program, &inputs)).unwrap();
        assert!(totals.spilled_bytes > 0, "{totals:?}");
        let (tasks, others) = profile.tasks();
        let svg = explanation.timeline_svg(&tasks, others);
        assert!(svg.contains("budget 586 KiB") && svg.contains(">spill<") && svg.contains(">fetch<"), "{svg}");
        #[cfg(feature = "json")]
        {
            let trace = explanation.chrome_trace(&tasks);
            let events = trace["traceEvents"].as_array().unwrap();
            let spilled = events.iter().filter(|event| event["cat"] == "spill").count();
            let blocks = tasks.iter().filter(|task| task.activity == super::Activity::Spill).count();
            assert!(spilled > 0 && spilled == blocks);
            let counters = events.iter().filter(|event| event["ph"] == "C");
            assert!(counters.clone().all(|event| event["args"]["budget"] == 600_000));
        }
    }

    #[test]
    fn nothing_ran_is_drawn_too() {
        let session = Session::new();
        let (program, _) = session.arange(0.0, 3.0, 1.0).unwrap().program().unwrap();
        assert!(session.explain(&program).unwrap().timeline_svg(&[], 0).contains("what the threads did"));
    }
}
