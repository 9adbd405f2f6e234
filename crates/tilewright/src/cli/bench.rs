//! `tw bench`: compares our speed with other libraries in the same run.
//!
//! A bench is a declaration (`declare.rs`) in the catalogue: a program of the language, a Python function for the rivals (`rivals/programs.py`), and a list
//! of rivals. One harness runs all benches.

use std::os::unix::process::CommandExt;
use std::path::PathBuf;

use tw_ir::error::{Error, Result};

use self::declare::{Bench, Products, Rival, Versus};
use self::environment::{Environment, say};
use self::harness::{Harness, Measurement, Outcome};
use self::library::Libraries;
use super::Failure;
use super::out::Out;
use crate::explain::table::{Align, Table};

mod answer;
mod catalog;
mod copy;
mod data;
mod declare;
mod document;
mod environment;
mod harness;
mod library;
mod machine;
mod planning;
mod subject;
mod table;

/// The environment variable that names a BLAS, or `none`.
const BLAS_VARIABLE: &str = "TILEWRIGHT_BLAS";

/// Arguments of `tw bench`.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Benches to run; all by default. A name also selects every bench that begins with it.
    names: Vec<String>,
    /// List the benches.
    #[arg(long)]
    list: bool,
    /// Print the results as JSON.
    #[arg(long)]
    json: bool,
    /// Use smaller problems and fewer repeats.
    #[arg(long)]
    quick: bool,
    /// Compare with this rival only; may be repeated.
    #[arg(long, value_enum)]
    rival: Vec<Rival>,
    /// Number of repeats; 7 by default, 3 with --quick.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    repeats: Option<u16>,
    /// Directory of the Python environment with the rivals.
    #[arg(long, value_name = "DIR")]
    env: Option<PathBuf>,
    /// Install nothing; report rivals that are not installed as missing.
    #[arg(long)]
    offline: bool,
    /// Provider of our matrix products: `none` for our own kernel, `env` for the OpenBLAS of the Python environment, or the path of a CBLAS;
    /// by default the value of TILEWRIGHT_BLAS.
    #[arg(long, value_name = "WHAT")]
    blas: Option<String>,
    /// Write the tables into this page, between its marks.
    #[arg(long, value_name = "FILE")]
    markdown: Option<PathBuf>,
}

/// Runs the command.
pub(crate) fn run(args: &Args, out: &mut Out) -> Result<(), Failure> {
    let benches = chosen(&args.names)?;
    if args.list {
        out.text(list(&benches).to_text(0));
        return Ok(());
    }
    let page = args.markdown.as_deref().map(document::Page::open).transpose()?;
    let environment = Environment::open(args.env.as_deref(), args.offline);
    if let Some(blas) = &args.blas {
        choose_blas(blas, &environment)?;
    }
    let repeats = args.repeats.map_or(if args.quick { 3 } else { 7 }, usize::from);
    let mut harness = Harness {
        quick: args.quick,
        repeats,
        only: args.rival.clone(),
        copy_speeds: Vec::new(),
        libraries: Libraries::new(environment),
        arrays: data::Arrays::default(),
    };
    let (measurements, failures) = measure(&benches, &mut harness);
    let copy_speed = (!harness.copy_speeds.is_empty()).then(|| harness::median(&mut harness.copy_speeds));
    let setting = setting(&harness, copy_speed);
    if args.json {
        out.line(format_args!("{:#}", table::to_json(&measurements, copy_speed)));
    } else {
        for (name, text) in &setting {
            out.aside(format_args!("{name}: {text}"));
        }
        out.text(format_args!("\n{}\n", table::rivals(&measurements).to_text(0)));
        out.text(table::figures(&measurements).to_text(0));
    }
    if let Some(page) = page {
        page.write(&setting, &measurements)?;
    }
    if failures.is_empty() { Ok(()) } else { Err(Failure { errors: failures, source: None }) }
}

/// Runs benches one after the other. One that fails does not keep the others from running.
fn measure(benches: &[&'static Bench], harness: &mut Harness) -> (Vec<Measurement>, Vec<Error>) {
    let (mut measurements, mut failures) = (Vec::new(), Vec::new());
    for bench in benches {
        if bench.products == Products::Library && !machine::has_blas() {
            say(format_args!("{}: there is no CBLAS; `--blas env` takes that of the Python environment", bench.name));
            continue;
        }
        match harness.measure(bench) {
            Ok(measurement) => {
                say(format_args!("{}", table::summary(&measurement)));
                failures.extend(disagreements(&measurement));
                measurements.push(measurement);
            }
            Err(error) => failures.push(error.note(format!("in the bench `{}`", bench.name))),
        }
    }
    (measurements, failures)
}

/// What heads the tables.
fn setting(harness: &Harness, copy_speed: Option<f64>) -> Vec<(&'static str, String)> {
    let mut setting = machine::describe();
    let versions = harness.libraries.versions();
    if !versions.is_empty() {
        setting.push(("rivals", versions.join(", ")));
    }
    setting.push(("repeats", harness.repeats.to_string()));
    if let Some(speed) = copy_speed {
        setting.push(("copying memory", format!("{:.1} GB/s, read and written", speed / 1e9)));
    }
    setting
}

/// Sees to it that the provider is the one asked for. It is chosen once per process, so another choice needs another process.
fn choose_blas(wanted: &str, environment: &Result<Environment, String>) -> Result<()> {
    let wanted = match wanted {
        "env" => environment.as_ref().map_err(Clone::clone).and_then(Environment::blas).map_err(Error::io)?,
        wanted => PathBuf::from(wanted),
    };
    if std::env::var_os(BLAS_VARIABLE).is_some_and(|now| now == wanted) {
        return Ok(());
    }
    let again = std::env::current_exe().map(|exe| {
        let mut command = std::process::Command::new(exe);
        command.args(std::env::args_os().skip(1)).env(BLAS_VARIABLE, wanted).exec()
    });
    Err(Error::io(format!("the benches cannot be started again: {}", again.unwrap_or_else(|error| error))))
}

/// The benches that are named; a name that fits none is an error.
fn chosen(names: &[String]) -> Result<Vec<&'static Bench>> {
    for name in names {
        if !catalog::all().any(|bench| fits(bench, name)) {
            return Err(Error::source(format!("no bench is called `{name}`")).help("`tw bench --list` names them"));
        }
    }
    let wanted = |bench: &&Bench| names.is_empty() || names.iter().any(|name| fits(bench, name));
    Ok(catalog::all().filter(wanted).collect())
}

fn fits(bench: &Bench, name: &str) -> bool {
    bench.name.strip_prefix(name).is_some_and(|rest| rest.is_empty() || rest.starts_with('-'))
}

fn list(benches: &[&Bench]) -> Table {
    let mut table = Table::new(&[("bench", Align::Left), ("what", Align::Left), ("beside", Align::Left)]);
    for bench in benches {
        let rivals: Vec<&str> = bench.versus.iter().map(|versus| versus.rival.name()).collect();
        table.row(vec![bench.name.to_string(), bench.about.to_string(), rivals.join(", ")]);
    }
    table
}

/// An error for every rival that computed something else.
fn disagreements(measurement: &Measurement) -> Vec<Error> {
    let wrong = |(versus, outcome): &(&Versus, Outcome)| match outcome {
        Outcome::Wrong(why) => {
            Some(Error::data(format!("`{}` beside {}: {why}", measurement.bench.name, versus.rival)))
        }
        _ => None,
    };
    measurement.rivals.iter().filter_map(wrong).collect()
}
