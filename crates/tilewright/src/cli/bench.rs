//! `tw bench`: what planning and running cost beside the work itself, and beside dask in the same run.

use std::path::PathBuf;

use serde_json::{Value, json};
use tw_ir::error::Result;

use self::harness::{Figure, Measurement};
use self::rival::Rival;
use super::Failure;
use super::out::Out;
use crate::explain::table::{Align, Table};
use crate::explain::units;

mod harness;
mod ours;
mod rival;

/// Arguments of `tw bench`.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// What to measure; everything if not given.
    #[arg(value_enum)]
    names: Vec<Bench>,
    /// Print a list for other programs.
    #[arg(long)]
    json: bool,
    /// Smaller problems and fewer repeats.
    #[arg(long)]
    quick: bool,
    /// Where to make the Python environment with dask.
    #[arg(long, value_name = "DIR")]
    env: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Bench {
    /// A million trivial tasks that depend on each other, on two threads.
    Overhead,
    /// Planning a matrix product of a million tasks; no data is touched.
    Plan,
    /// sum(x + 1) of 1000 elements, over and over.
    Segment,
}

impl Bench {
    fn name(self) -> &'static str {
        match self {
            Bench::Overhead => "overhead",
            Bench::Plan => "plan",
            Bench::Segment => "segment",
        }
    }

    /// What a time is the time of.
    fn unit(self) -> &'static str {
        match self {
            Bench::Overhead => "per task",
            Bench::Plan => "per task planned",
            Bench::Segment => "per run",
        }
    }
}

/// Runs the command.
pub(crate) fn run(args: &Args, out: &mut Out) -> Result<(), Failure> {
    let all = [Bench::Overhead, Bench::Plan, Bench::Segment];
    let names = if args.names.is_empty() { all.to_vec() } else { args.names.clone() };
    let rival = Rival::start(args.env.clone());
    let (mut rival, missing) = match rival {
        Ok(rival) => (Some(rival), None),
        Err(why) => (None, Some(why)),
    };
    let mut measurements = Vec::new();
    for name in names {
        measurements.push(harness::measure(name, args.quick, rival.as_mut())?);
    }
    let version = rival.as_ref().map(|rival| rival.version().to_string());
    if args.json {
        out.line(format_args!("{:#}", to_json(&measurements, version.as_deref())));
    } else {
        out.text(to_table(&measurements, version.as_deref().unwrap_or("dask")).to_text(0));
        if let Some(why) = missing {
            out.line(format_args!("without a rival: {why}"));
        }
    }
    Ok(())
}

fn to_json(measurements: &[Measurement], version: Option<&str>) -> Value {
    let mut list = Vec::new();
    for measurement in measurements {
        let bench = measurement.bench.name();
        match (&measurement.rival, version) {
            (Some(rival), Some(version)) => list.push(json!({
                "bench": bench,
                "rival": version,
                "ours_s": measurement.ours,
                "rival_s": rival.seconds,
                "ratio": rival.ratio,
            })),
            _ => list.push(json!({ "bench": bench, "figure": "seconds", "value": measurement.ours })),
        }
        for Figure { name, value, .. } in &measurement.figures {
            list.push(json!({ "bench": bench, "figure": name, "value": value }));
        }
    }
    Value::Array(list)
}

fn to_table(measurements: &[Measurement], version: &str) -> Table {
    let columns =
        [("bench", Align::Left), ("tilewright", Align::Right), (version, Align::Right), ("ratio", Align::Right)];
    let mut table = Table::new(&[&columns[..], &[("", Align::Left)]].concat());
    for measurement in measurements {
        let rival = measurement.rival.as_ref();
        let cell = |text: Option<String>| text.unwrap_or_else(|| "-".to_string());
        let mut notes = vec![measurement.bench.unit().to_string()];
        notes.extend(measurement.figures.iter().map(|figure| figure.text.clone()));
        table.row(vec![
            measurement.bench.name().to_string(),
            units::seconds(measurement.ours),
            cell(rival.map(|rival| units::seconds(rival.seconds))),
            cell(rival.map(|rival| format!("{:.1}", rival.ratio))),
            notes.join(", "),
        ]);
    }
    table
}
