//! Differences as text.

use std::fmt::Write;

use super::super::html::{STYLE, escape};
use super::super::table::{Align, Table};
use super::super::text::shorten;
use super::super::units::{bytes, count, counted, flops};
use super::{Difference, Line, Value};

/// The number of values of one line that are listed separately.
const MOST_VALUES: usize = 3;

impl Difference {
    /// A table of figures, then one of the lines that changed.
    pub fn to_text(&self) -> String {
        let [a, b] = &self.sides;
        let mut text = format!("a: {}\nb: {}\n\n{}", a.name, b.name, self.figures().to_text(2));
        let (table, rows) = self.lines();
        if rows > 0 {
            let _ = write!(text, "\n{}", table.to_text(2));
        }
        let _ = writeln!(text, "  - {}", self.rest(rows));
        text
    }

    /// The change of every figure in one line.
    pub fn to_line(&self) -> String {
        let [a, b] = &self.sides;
        let change = |(a, b): (&super::Figure, &super::Figure)| match a.text == b.text {
            true => format!("{} {}", a.names.0, a.text),
            false => format!("{} {} -> {}", a.names.0, a.text, b.text),
        };
        format!("{}\n", a.figures.iter().zip(&b.figures).map(change).collect::<Vec<_>>().join(", "))
    }

    /// The same on a page of its own.
    pub fn to_html(&self) -> String {
        let [a, b] = &self.sides;
        let (a, b) = (escape(&a.name), escape(&b.name));
        format!(
            "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><title>{a} | {b}</title><style>{STYLE}</style>{}</html>\n",
            self.to_html_part()
        )
    }

    /// The same as a part of a page.
    pub fn to_html_part(&self) -> String {
        let [a, b] = &self.sides;
        let mut out = format!("<p>a: {}<br>b: {}</p>\n", escape(&a.name), escape(&b.name));
        out.push_str(&self.figures().to_html());
        let (table, rows) = self.lines();
        if rows > 0 {
            out.push_str(&table.to_html());
        }
        let _ = writeln!(out, "<p>{}</p>", escape(&self.rest(rows)));
        out
    }

    fn figures(&self) -> Table {
        let [a, b] = &self.sides;
        let mut table =
            Table::new(&[("", Align::Left), ("a", Align::Right), ("b", Align::Right), ("b / a", Align::Right)]);
        for (a, b) in a.figures.iter().zip(&b.figures) {
            let ratio = match (a.value == b.value, a.value > 0.0) {
                (true, _) => "same".to_string(),
                (false, true) => format!("{:.2}", b.value / a.value),
                (false, false) => "-".to_string(),
            };
            table.row(vec![a.names.0.to_string(), a.text.clone(), b.text.clone(), ratio]);
        }
        table
    }

    fn lines(&self) -> (Table, usize) {
        let moved = if self.is_wire { "sent" } else { "moved" };
        let mut columns =
            vec![("line", Align::Right), ("statement", Align::Left), ("tasks", Align::Right), (moved, Align::Right)];
        columns.extend([("work", Align::Right), ("blocks", Align::Left)]);
        if self.is_wire {
            columns.extend([("workers", Align::Left), ("owners", Align::Left)]);
        }
        let mut table = Table::new(&columns);
        let mut rows = 0;
        for pair in self.changed() {
            rows += 1;
            let of = |text: &dyn Fn(&Line) -> String| change(pair.0.map(text), pair.1.map(text));
            let statement = match pair {
                (Some(_), None) => format!("{} (only in a)", of(&|line| shorten(&line.text))),
                (None, Some(_)) => format!("{} (only in b)", of(&|line| shorten(&line.text))),
                _ => of(&|line| shorten(&line.text)),
            };
            let number = |figure: u64, text: String, line: &Line| match line.fused.as_str() {
                fused if !fused.is_empty() => fused.to_string(),
                _ if figure == 0 => "0".to_string(),
                _ => text,
            };
            let mut cells = vec![
                of(&|line| line.place.short()),
                statement,
                of(&|line| number(line.tasks, count(line.tasks), line)),
                of(&|line| if line.bytes == 0 { "0".to_string() } else { bytes(line.bytes) }),
                of(&|line| if line.flops == 0 { "0".to_string() } else { flops(line.flops) }),
                of(&|line| tiles(&line.values)),
            ];
            if self.is_wire {
                cells.push(of(&|line| line.workers.clone()));
                cells.push(moved_blocks(pair).unwrap_or_default());
            }
            table.row(cells);
        }
        (table, rows)
    }

    fn rest(&self, rows: usize) -> String {
        if self.is_empty() {
            return "both plans are the same".to_string();
        }
        let alike = self.pairs.iter().filter(|(a, b)| a.is_some() && b.is_some()).count();
        let changed = self.changed().filter(|(a, b)| a.is_some() && b.is_some()).count();
        match (alike - changed, rows) {
            (0, _) => "no line is planned alike".to_string(),
            (n, 0) => format!("{} planned alike", is_or_are(n, "line")),
            (n, _) => format!("{} planned alike", is_or_are(n, "other line")),
        }
    }
}

fn is_or_are(n: usize, noun: &str) -> String {
    format!("{} {}", counted(n as u64, noun), if n == 1 { "is" } else { "are" })
}

/// `before -> after`, or one of them where nothing changes.
fn change(a: Option<String>, b: Option<String>) -> String {
    match (a, b) {
        (Some(a), Some(b)) if a == b => a,
        (Some(a), Some(b)) => {
            let word = |text: String| if text.is_empty() { "none".to_string() } else { text };
            format!("{} -> {}", word(a), word(b))
        }
        (Some(only), None) | (None, Some(only)) => only,
        (None, None) => String::new(),
    }
}

/// `c [100, 100]`: the value of a line and its block shape.
fn tiles(values: &[Value]) -> String {
    let value = |value: &Value| format!("{} {}", value.name, value.tiles()).trim_start().to_string();
    let mut texts: Vec<String> = values.iter().take(MOST_VALUES).map(value).collect();
    if values.len() > MOST_VALUES {
        texts.push(format!("{} more", values.len() - MOST_VALUES));
    }
    texts.join("; ")
}

/// How many blocks belong to other workers, where both plans have the same blocks.
fn moved_blocks((a, b): (Option<&Line>, Option<&Line>)) -> Option<String> {
    let (moved, all) = moved(a?, b?)?;
    (moved > 0).then(|| format!("{} of {} elsewhere", count(moved), counted(all, "block")))
}

/// Blocks that belong to other workers, and all blocks; nothing if plans are not in the same blocks or not on workers.
pub(super) fn moved(a: &Line, b: &Line) -> Option<(u64, u64)> {
    let (mut moved, mut all) = (0, 0);
    if a.values.len() != b.values.len() || a.values.is_empty() {
        return None;
    }
    for (a, b) in a.values.iter().zip(&b.values) {
        if a.axes != b.axes {
            return None;
        }
        let owners = a.owners.iter().zip(&b.owners);
        all += owners.len() as u64;
        for (a, b) in owners {
            moved += (a.as_ref()? != b.as_ref()?) as u64;
        }
    }
    Some((moved, all))
}
