//! Results as a table, as Markdown, and as JSON.

use serde_json::{Value, json};

use super::declare::Versus;
use super::harness::{Compared, Measurement, Outcome};
use super::subject::Figure;
use crate::explain::table::{Align, Table};
use crate::explain::units;

const COLUMNS: [(&str, Align); 8] = [
    ("bench", Align::Left),
    ("rival", Align::Left),
    ("ours", Align::Right),
    ("rival's", Align::Right),
    ("ratio", Align::Right),
    ("min-max", Align::Right),
    ("bar", Align::Right),
    ("", Align::Left),
];

/// Times beside rivals, one line per rival.
pub(super) fn rivals(measurements: &[Measurement]) -> Table {
    let mut table = Table::new(&COLUMNS);
    for measurement in measurements {
        for (versus, outcome) in &measurement.rivals {
            let bar = versus.bar.filter(|_| !measurement.quick);
            let mut row = vec![measurement.bench.name.to_string(), versus.rival.to_string()];
            match outcome {
                Outcome::Compared(compared) => row.extend(compared_cells(compared, bar)),
                Outcome::Missing(why) => row.extend(without(measurement, bar, format!("missing: {why}"))),
                Outcome::Wrong(why) => row.extend(without(measurement, bar, format!("WRONG: {why}"))),
            }
            table.row(row);
        }
    }
    table
}

fn compared_cells(compared: &Compared, bar: Option<f64>) -> [String; 6] {
    let verdict = match bar {
        Some(bar) if compared.ratio >= bar => "pass",
        Some(_) => "FAIL",
        None => "",
    };
    let notes = [verdict, compared.note.as_str()].into_iter().filter(|note| !note.is_empty()).collect::<Vec<_>>();
    [
        units::seconds(compared.ours),
        units::seconds(compared.theirs),
        ratio(compared.ratio),
        format!("{}-{}", ratio(compared.range.0), ratio(compared.range.1)),
        bar_cell(bar),
        notes.join(", "),
    ]
}

fn without(measurement: &Measurement, bar: Option<f64>, why: String) -> [String; 6] {
    let none = || "-".to_string();
    [units::seconds(measurement.seconds), none(), none(), none(), bar_cell(bar), why]
}

fn bar_cell(bar: Option<f64>) -> String {
    bar.map_or_else(String::new, |bar| format!("{bar:.2}"))
}

fn ratio(value: f64) -> String {
    if value < 10.0 { format!("{value:.2}") } else { format!("{value:.0}") }
}

/// Everything that has no rival, one line per bench.
pub(super) fn figures(measurements: &[Measurement]) -> Table {
    let columns = ["bench", "ours", "what", "inputs", "figures"].map(|name| (name, Align::Left));
    let mut table = Table::new(&columns);
    for measurement in measurements {
        let text = |figure: &Figure| match figure.at_most {
            Some(most) if figure.value > most => format!("{} (FAIL, at most {most})", figure.text),
            Some(most) => format!("{} (pass, at most {most})", figure.text),
            None => figure.text.clone(),
        };
        let figures: Vec<String> = measurement.figures.iter().map(text).collect();
        let bench = measurement.bench;
        let cells =
            [bench.name, &units::seconds(measurement.seconds), bench.about, &measurement.inputs, &figures.join(", ")];
        table.row(cells.map(str::to_string).to_vec());
    }
    table
}

/// One line about one bench, while others still run.
pub(super) fn summary(measurement: &Measurement) -> String {
    let one = |(versus, outcome): &(&Versus, Outcome)| match outcome {
        Outcome::Compared(compared) => format!("{} {}", versus.rival, ratio(compared.ratio)),
        Outcome::Missing(_) => format!("{} missing", versus.rival),
        Outcome::Wrong(_) => format!("{} WRONG", versus.rival),
    };
    let ours = format!("{}: {}", measurement.bench.name, units::seconds(measurement.seconds));
    std::iter::once(ours).chain(measurement.rivals.iter().map(one)).collect::<Vec<_>>().join(", ")
}

/// The list that other programs read.
pub(super) fn to_json(measurements: &[Measurement], copy_speed: Option<f64>) -> Value {
    let mut list = Vec::new();
    if let Some(speed) = copy_speed {
        list.push(json!({ "bench": "copy", "figure": "gigabytes_per_second", "value": speed / 1e9 }));
    }
    for measurement in measurements {
        let bench = measurement.bench.name;
        list.push(json!({ "bench": bench, "figure": "seconds", "value": measurement.seconds }));
        for (versus, outcome) in &measurement.rivals {
            if let Outcome::Compared(Compared { ours, theirs, ratio, .. }) = outcome {
                let rival = versus.rival.name();
                list.push(json!({ "bench": bench, "rival": rival, "ours_s": ours, "rival_s": theirs, "ratio": ratio }));
            }
        }
        for Figure { name, value, .. } in &measurement.figures {
            list.push(json!({ "bench": bench, "figure": name, "value": value }));
        }
    }
    Value::Array(list)
}

#[cfg(test)]
mod tests {
    use super::super::catalog;
    use super::super::data::Arrays;
    use super::super::harness::Harness;
    use super::super::library::Libraries;
    use super::*;

    #[test]
    fn a_bench_without_rivals_needs_no_python_and_has_figures_only() {
        let mut harness = Harness {
            quick: true,
            repeats: 1,
            only: Vec::new(),
            copy_speeds: Vec::new(),
            libraries: Libraries::new(Err("there is no Python".to_string())),
            arrays: Arrays::default(),
        };
        let bench = catalog::all().find(|bench| bench.name == "place").unwrap();
        let measurements = [harness.measure(bench).unwrap()];
        let list = to_json(&measurements, None);
        let list = list.as_array().unwrap();
        let names: Vec<&str> = list.iter().map(|entry| entry["figure"].as_str().unwrap()).collect();
        assert_eq!(names, ["seconds", "algebraic", "lshs", "pattern", "roundrobin", "auto"]);
        for entry in list {
            assert_eq!(entry.as_object().unwrap().keys().collect::<Vec<_>>(), ["bench", "figure", "value"]);
            assert!(entry["bench"] == "place" && entry["value"].as_f64().unwrap() > 0.0, "{entry}");
        }
        assert!(!rivals(&measurements).to_text(0).contains("place"));
        let text = figures(&measurements).to_text(0);
        assert!(text.contains("auto ") && !text.contains("at most"), "{text}");
        assert_eq!(summary(&measurements[0]), format!("place: {}", units::seconds(measurements[0].seconds)));
    }

    #[test]
    fn figures_are_held_against_their_bars() {
        let bench = catalog::all().next().unwrap();
        let figure = |value| Figure { name: "f", value, text: format!("took {value}"), at_most: Some(3.0) };
        let found = vec![figure(3.0), figure(3.5)];
        let (inputs, rivals) = (String::new(), Vec::new());
        let measurement = Measurement { bench, quick: false, inputs, seconds: 1.0, rivals, figures: found };
        let text = figures(&[measurement]).to_text(0);
        assert!(text.contains("took 3 (pass, at most 3), took 3.5 (FAIL, at most 3)"), "{text}");
    }
}
