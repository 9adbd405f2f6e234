//! `tw demo`: plan, run, explain and budget in half a minute, without any files.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use tw_ir::error::{Error, Result};
use tw_ir::program::FunctionTable;
use tw_lang::{NoFiles, ParamValue, ProgramUnit, parse_program};

use super::Failure;
use super::digest::Digest;
use super::out::Out;
use super::preview::sum_text;
use super::progress::Bar;
use crate::diagnose;
use crate::explain::table::{Align, Table};
use crate::explain::{Explanation, Role, SourceText, Speeds, units};
use crate::report::Totals;
use crate::session::Session;

mod kill;

const PROGRAM: &str = include_str!("demo/program.tw");

/// The statement whose explanation is shown.
const INTERESTING: &str = "Z.T @ Z";

/// Arguments of `tw demo`.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Rows of the matrix; fewer rows run faster.
    #[arg(long, value_name = "N", default_value_t = 400_000, value_parser = clap::value_parser!(u32).range(800..))]
    rows: u32,
    /// Number of threads; all hardware threads by default.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    threads: Option<u16>,
    /// Run the program in a process of its own that is killed in the middle, resume it and compare bits.
    #[arg(long)]
    kill: bool,
}

/// Runs the command.
pub(crate) fn run(args: &Args, out: &mut Out) -> Result<(), Failure> {
    if args.kill {
        return Ok(kill::run(args, out)?);
    }
    let source = SourceText::new("demo.tw", PROGRAM);
    steps(args, &source, out).map_err(|error| Failure::in_source(vec![error], &source))
}

fn steps(args: &Args, source: &SourceText, out: &mut Out) -> Result<()> {
    let demo = Demo { source: source.clone(), unit: parse(args.rows)? };
    let mut builder = Session::builder();
    if let Some(threads) = args.threads {
        builder = builder.threads(threads.into());
    }
    show_program(source, args.rows, out);

    let speeds = Speeds::measure()?;
    let explanation = demo.explain(&builder.clone().build())?.with_speeds(speeds);
    let peak = explanation.summary().peak_bytes;
    // A third more than the plan needs one task at a time, so that threads may run ahead.
    let budget = peak + peak / 3;
    let session = builder.memory(budget).build();
    let threads = units::counted(session.threads() as u64, "thread");
    title(out, "plan");
    out.line(format_args!("{} (budget {})", explanation.line(), units::bytes(budget)));

    title(out, &format!("run on {threads}"));
    let (totals, elapsed) = demo.run(&session, out)?;
    out.text(compare(&explanation, budget, &totals, elapsed).to_text(2));

    title(out, "explain: where the time goes");
    out.text(explained(&explanation));

    title(out, "the same bits on 1 and 2 threads");
    same_bits((args.rows / 20).max(800), out)?;

    title(out, "the same bits in a third of the memory");
    smaller_budget((args.rows / 20).max(800), out)?;

    title(out, "a budget below the largest task is refused before anything runs");
    if let Err(error) = explanation.check_budget(1000) {
        out.line(diagnose::render(&error, source.text(), source.file()));
    }
    title(out, "later");
    out.line("the same program on 16 ranks");
    Ok(())
}

/// The program with its text.
struct Demo {
    source: SourceText,
    unit: ProgramUnit,
}

impl Demo {
    fn explain(&self, session: &Session) -> Result<Explanation> {
        Ok(session.explain(&self.unit.program)?.with_source(self.source.clone()))
    }

    fn run(&self, session: &Session, out: &mut Out) -> Result<(Totals, Duration)> {
        let begin = Instant::now();
        let bar = Bar::watch(session, false);
        let outcome = session.run_with_report(&self.unit.program, &BTreeMap::new());
        drop(bar);
        let elapsed = begin.elapsed();
        let (results, totals) = outcome?;
        let shown: Vec<String> = results
            .iter()
            .map(|(name, handle)| Ok(format!("{name} = {}", sum_text(Digest::of_handle(handle)?.sum()))))
            .collect::<Result<_>>()?;
        out.line(format_args!("{}\n", shown.join(", ")));
        Ok((totals, elapsed))
    }
}

fn parse(rows: u32) -> Result<ProgramUnit> {
    let sets = BTreeMap::from([("n".to_string(), ParamValue::Int(rows.into()))]);
    parse_program(PROGRAM, &sets, &NoFiles, &FunctionTable::default())
        .map_err(|errors| errors.into_iter().next().unwrap_or_else(|| Error::internal("the demo does not parse")))
}

fn title(out: &mut Out, text: &str) {
    out.line("");
    out.heading(text);
}

fn show_program(source: &SourceText, rows: u32, out: &mut Out) {
    out.heading(format_args!("a program ({}), here with n = {}", source.file(), units::count(rows.into())));
    for (number, line) in (1..).zip(source.text().lines()) {
        out.line(format!("{number:>4}  {line}").trim_end());
    }
}

/// Planned and measured figures side by side.
fn compare(explanation: &Explanation, budget: u64, totals: &Totals, elapsed: Duration) -> Table {
    let summary = explanation.summary();
    let tasks = |inside: bool| -> u64 {
        let repeats = |role: Role| matches!(role, Role::Body | Role::Condition);
        let sections = explanation.sections.iter().filter(|section| repeats(section.at.role) == inside);
        sections.filter_map(|section| section.plan()).map(|plan| plan.cost().tasks).sum()
    };
    let rate = |seconds: f64, flops: u64| format!("{:.1} GFLOP/s", flops as f64 / seconds.max(1e-9) / 1e9);
    let mut table = Table::new(&[("", Align::Left), ("predicted", Align::Right), ("measured", Align::Right)]);
    let mut row = |name: &str, predicted: String, measured: String| {
        table.row(vec![name.to_string(), predicted, measured]);
    };
    let peak = format!("{}, at most {}", units::bytes(summary.peak_bytes), units::bytes(budget));
    row("peak memory", peak, units::bytes(totals.peak_bytes));
    let planned = format!("{} + {} per step", units::count(tasks(false)), units::count(tasks(true)));
    row("tasks", planned, units::count(totals.tasks));
    row("time", units::seconds(summary.seconds), units::duration(elapsed));
    row("speed", rate(summary.seconds, summary.cost.flops), rate(elapsed.as_secs_f64(), totals.flops));
    table
}

/// The part of the explanation that tells about the interesting statement.
fn explained(explanation: &Explanation) -> String {
    let text = explanation.to_text(crate::explain::Level::Table);
    let sections: Vec<&str> = text.split("\n\n").collect();
    let section = sections.iter().find(|section| section.contains(INTERESTING)).copied().unwrap_or_default();
    format!("{}\n", section.trim_end())
}

/// Runs the program in a third of the memory that its plan takes: blocks are spilled, and nothing else changes.
fn smaller_budget(rows: u32, out: &mut Out) -> Result<()> {
    let unit = parse(rows)?;
    let builder = || Session::builder().block_bytes(1 << 16);
    let ample = builder().build();
    let budget = ample.explain(&unit.program)?.summary().peak_bytes / 3;
    let bounded = builder().memory(budget).build();
    let mut checksums = Vec::new();
    for session in [&ample, &bounded] {
        let results = session.run(&unit.program, &BTreeMap::new())?;
        let found = results.values().map(|handle| Ok(Digest::of_handle(handle)?.checksum()));
        checksums.push(found.collect::<Result<Vec<_>>>()?.join(" "));
    }
    let totals = bounded.totals();
    let verdict = if checksums[0] == checksums[1] { "equal" } else { "DIFFERENT" };
    out.line(format_args!(
        "n = {}, budget {}: peak {}, {} spilled, {} fetched: {verdict}",
        units::count(rows.into()),
        units::bytes(budget),
        units::bytes(totals.peak_bytes),
        units::bytes(totals.spilled_bytes),
        units::bytes(totals.fetched_bytes),
    ));
    if checksums[0] == checksums[1] { Ok(()) } else { Err(Error::internal("results depend on the budget")) }
}

fn same_bits(rows: u32, out: &mut Out) -> Result<()> {
    let unit = parse(rows)?;
    let checksums = |threads: usize| -> Result<Vec<String>> {
        let session = Session::builder().threads(threads).block_bytes(1 << 20).build();
        let results = session.run(&unit.program, &BTreeMap::new())?;
        results.values().map(|handle| Ok(Digest::of_handle(handle)?.checksum())).collect()
    };
    let (one, two) = (checksums(1)?, checksums(2)?);
    let verdict = if one == two { "equal" } else { "DIFFERENT" };
    out.line(format_args!("n = {}: {} | {}: {verdict}", units::count(rows.into()), one.join(" "), two.join(" ")));
    if one == two { Ok(()) } else { Err(Error::internal("results depend on the number of threads")) }
}
