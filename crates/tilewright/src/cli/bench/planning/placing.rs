//! Benches of planning for many workers. They have no rivals: each figure is compared with a bar.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::time::Instant;

use tw_ir::Program;
use tw_ir::error::Result;
use tw_lang::ParamValue;
use tw_place::{DEFAULT_LIMIT, Machine, Rivals};
use tw_plan::{PlanOptions, plan_segment};

use super::PRODUCT;
use crate::cli::bench::subject::{Figure, Sample, Subject, parse};
use crate::explain::units;

const UNCUT_PRODUCT: &str = "
param n = 4000
input A: f64[n, n]
input B: f64[n, n]
C = A @ B
output C
";

/// The most seconds that every scheduler may take, and all of them together.
struct Bars {
    schedulers: &'static [(&'static str, f64)],
    together: f64,
}

/// A million tasks on 64 workers.
const MILLION: Bars =
    Bars { schedulers: &[("algebraic", 3.0), ("pattern", 3.0), ("lshs", 10.0), ("roundrobin", 3.0)], together: 15.0 };

/// Placing a matrix product of a million tasks on 64 workers; seconds of all schedulers together.
pub(in crate::cli::bench) fn place(quick: bool) -> Result<Box<dyn Subject>> {
    let blocks = if quick { 20 } else { 100 };
    let program = sized(PRODUCT, blocks)?;
    Ok(Box::new(Placing { program, machine: Machine::of(8, 8)?, bars: Some(MILLION).filter(|_| !quick) }))
}

/// Placing one matrix product on ten thousand workers; seconds of all schedulers together.
pub(in crate::cli::bench) fn workers(quick: bool) -> Result<Box<dyn Subject>> {
    let nodes = if quick { 125 } else { 1250 };
    Ok(Box::new(Placing { program: sized(UNCUT_PRODUCT, 4000)?, machine: Machine::of(nodes, 8)?, bars: None }))
}

/// Planning a long program; seconds on one machine.
pub(in crate::cli::bench) fn statements(quick: bool) -> Result<Box<dyn Subject>> {
    let n = if quick { 100 } else { 1000 };
    let program = parse(&long_program(n), &BTreeMap::new())?.program;
    Ok(Box::new(Statements { program, machine: Machine::of(8, 8)? }))
}

fn sized(text: &str, n: i64) -> Result<Program> {
    Ok(parse(text, &BTreeMap::from([("n".to_string(), ParamValue::Int(n))]))?.program)
}

struct Placing {
    program: Program,
    machine: Machine,
    bars: Option<Bars>,
}

impl Subject for Placing {
    fn measure(&mut self) -> Result<Sample> {
        let begin = Instant::now();
        let rivals = Rivals::of(&self.program, &PlanOptions::default(), &self.machine, DEFAULT_LIMIT)?;
        let seconds = begin.elapsed().as_secs_f64();
        let bar_of = |name: &str| {
            let bar = |bars: &Bars| bars.schedulers.iter().find(|(of, _)| *of == name).map(|(_, bar)| *bar);
            self.bars.as_ref().and_then(bar)
        };
        let mut figures = Vec::new();
        for placed in &rivals.placed {
            let (name, took) = (placed.scheduler, placed.took.as_secs_f64());
            let tasks = units::count(placed.order.len() as u64);
            let text = format!("{name} {} for {tasks} tasks", units::seconds(took));
            figures.push(Figure { name, value: took, text, at_most: bar_of(name) });
        }
        // Plans come in the order of their simulated times, which says nothing about how long planning took.
        figures.sort_by_key(|figure| figure.name);
        let (text, at_most) =
            (format!("auto {}", units::seconds(seconds)), self.bars.as_ref().map(|bars| bars.together));
        figures.push(Figure { name: "auto", value: seconds, text, at_most });
        Ok(Sample { seconds, figures })
    }
}

struct Statements {
    program: Program,
    machine: Machine,
}

impl Subject for Statements {
    fn measure(&mut self) -> Result<Sample> {
        let begin = Instant::now();
        let planned = plan_segment(&self.program, &PlanOptions::default())?;
        let seconds = begin.elapsed().as_secs_f64();
        let begin = Instant::now();
        let rivals = Rivals::of(&self.program, &PlanOptions::default(), &self.machine, DEFAULT_LIMIT)?;
        let on_workers = begin.elapsed().as_secs_f64();
        let most = rivals.placed.iter().map(|placed| placed.order.len()).max().unwrap_or(0);
        let figure = |name, value, whom: &str, tasks: usize| {
            let text = format!("{whom} {} for {} tasks", units::seconds(value), units::count(tasks as u64));
            Figure { name, value, text, at_most: None }
        };
        let figures = vec![
            figure("one_machine", seconds, "one machine", planned.schedule.n_tasks()),
            figure("auto", on_workers, "auto on 64 workers", most),
        ];
        Ok(Sample { seconds, figures })
    }
}

/// A program of so many statements: of ten, four are products, four elementwise, two reductions. Operands are inputs and what was made not long
/// before, so most values have several readers. Nothing in it is unused, and it is the same on every machine.
fn long_program(n_statements: usize) -> String {
    const INPUTS: usize = 8;
    /// Operands are among so many of the latest values.
    const REACH: usize = 12;
    let mut text = String::new();
    for k in 0..INPUTS {
        let _ = writeln!(text, "input m{k}: f64[4000, 4000]");
    }
    let mut matrices: Vec<String> = (0..INPUTS).map(|k| format!("m{k}")).collect();
    let mut rows: Vec<String> = Vec::new();
    let mut unused: Vec<String> = Vec::new();
    let mut state = 1_u64;
    let mut draw = |from: &[String]| {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        let first = from.len().saturating_sub(REACH);
        from[first + (state >> 33) as usize % (from.len() - first)].clone()
    };
    for k in 0..n_statements {
        let name = format!("v{k}");
        let one = draw(&matrices);
        let other = if matches!(k % 10, 4 | 9) { draw(&rows) } else { draw(&matrices) };
        // The number in it keeps statements apart that drew the same operands.
        let (value, used): (String, &[&String]) = match k % 10 {
            2 | 7 => (format!("sum({one} * {k}, axis=0)"), &[&one]),
            0 | 3 | 5 | 8 => (format!("{one} @ {other}"), &[&one, &other]),
            4 | 9 => (format!("({one} - {other}) / {k}"), &[&one, &other]),
            _ => (format!("max({one}, {other}) + {k}"), &[&one, &other]),
        };
        let _ = writeln!(text, "{name} = {value}");
        unused.retain(|before| !used.contains(&before));
        unused.push(name.clone());
        if matches!(k % 10, 2 | 7) { rows.push(name) } else { matrices.push(name) }
    }
    for name in unused {
        let _ = writeln!(text, "output {name}");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(sample: &Sample) -> Vec<&'static str> {
        sample.figures.iter().map(|figure| figure.name).collect()
    }

    #[test]
    fn every_scheduler_has_a_figure_and_at_full_size_a_bar() {
        let program = sized(PRODUCT, 4).unwrap();
        let mut small = Placing { program, machine: Machine::of(2, 2).unwrap(), bars: Some(MILLION) };
        let sample = small.measure().unwrap();
        assert_eq!(names(&sample), ["algebraic", "lshs", "pattern", "roundrobin", "auto"]);
        let bars: Vec<Option<f64>> = sample.figures.iter().map(|figure| figure.at_most).collect();
        assert_eq!(bars, [Some(3.0), Some(10.0), Some(3.0), Some(3.0), Some(15.0)]);
        let auto = sample.figures[4].value;
        assert!(
            sample.seconds == auto && sample.figures.iter().all(|figure| 0.0 < figure.value && figure.value <= auto)
        );
        small.bars = None;
        assert!(small.measure().unwrap().figures.iter().all(|figure| figure.at_most.is_none()));
    }

    #[test]
    fn long_programs_are_as_long_as_asked_for_and_waste_nothing() {
        let text = long_program(1000);
        assert_eq!(text, long_program(1000));
        assert_eq!(text.lines().filter(|line| line.contains(" = ")).count(), 1000);
        let unit = parse(&text, &BTreeMap::new()).unwrap();
        // A name that is neither read again nor an output would be removed before planning.
        for k in 0..1000 {
            let name = format!("v{k}");
            let words = text.split(|c: char| !c.is_alphanumeric());
            assert!(words.filter(|word| *word == name).count() > 1, "{name}");
        }
        assert!(unit.program.outputs.len() < 200, "{}", unit.program.outputs.len());
    }

    #[test]
    fn long_programs_are_planned_for_one_machine_and_for_many_workers() {
        let program = parse(&long_program(20), &BTreeMap::new()).unwrap().program;
        let sample = Statements { program, machine: Machine::of(2, 2).unwrap() }.measure().unwrap();
        assert_eq!(names(&sample), ["one_machine", "auto"]);
        assert!(sample.figures[0].value == sample.seconds && sample.figures[1].value > 0.0);
    }
}
