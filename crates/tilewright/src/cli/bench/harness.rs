//! Interleaved repeats. The load of a machine varies, so each of our times is compared with the rival's time right after it.

use serde_json::{Value, json};
use tw_ir::error::{Error, Result};

use super::answer::Answer;
use super::copy::CopyRival;
use super::data::{Arrays, InputData};
use super::declare::{BENCH, Bench, Ours, Products, Rival, Versus};
use super::library::{Libraries, Library};
use super::subject::{Figure, ProgramSubject, Sample, Subject};

/// Our matrix product, as a measure for other products. Large enough that all threads have work.
const GEMM: &str = "
param n = 4000
input A: f64[n, n]
input B: f64[n, n]
C = A @ B
output C
";

/// The measurements of a bench.
pub(super) struct Measurement {
    pub(super) bench: &'static Bench,
    pub(super) quick: bool,
    /// Types of the inputs.
    pub(super) inputs: String,
    /// Our seconds, median of all repeats.
    pub(super) seconds: f64,
    pub(super) rivals: Vec<(&'static Versus, Outcome)>,
    pub(super) figures: Vec<Figure>,
}

/// The outcome of one rival.
pub(super) enum Outcome {
    Compared(Compared),
    /// It could not be measured.
    Missing(String),
    /// It computes something else: one side is wrong.
    Wrong(String),
}

/// Repeats beside one rival.
pub(super) struct Compared {
    /// Our seconds, median of these repeats.
    pub(super) ours: f64,
    /// The rival's.
    pub(super) theirs: f64,
    /// Median of the ratios; more than 1 if we are faster.
    pub(super) ratio: f64,
    /// Smallest and largest ratio.
    pub(super) range: (f64, f64),
    /// The setup of the rival.
    pub(super) note: String,
}

/// The state shared by all benches.
pub(super) struct Harness {
    pub(super) quick: bool,
    pub(super) repeats: usize,
    /// Only these rivals; all if empty.
    pub(super) only: Vec<Rival>,
    /// Every speed of copying that was measured, in bytes per second.
    pub(super) copy_speeds: Vec<f64>,
    pub(super) libraries: Libraries,
    pub(super) arrays: Arrays,
}

/// A side that has been set up and can be asked for seconds.
enum Opponent<'a> {
    Library(&'a mut Library),
    Copy { copy: CopyRival, bytes: f64 },
    Gemm { subject: ProgramSubject, scale: f64 },
}

impl Opponent<'_> {
    fn seconds(&mut self) -> Result<f64, String> {
        match self {
            Opponent::Library(library) => {
                let answer = library.ask(&json!({ "run": true }))?;
                answer["seconds"].as_f64().ok_or_else(|| format!("the answer was `{answer}`"))
            }
            Opponent::Copy { copy, bytes } => Ok(*bytes / copy.bytes_per_second()),
            Opponent::Gemm { subject, scale } => {
                subject.measure().map(|sample| sample.seconds * *scale).map_err(|error| error.message().to_string())
            }
        }
    }
}

impl Harness {
    /// Runs one bench.
    pub(super) fn measure(&mut self, bench: &'static Bench) -> Result<Measurement> {
        match bench.ours {
            Ours::Special { start, rival_size } => {
                let mut subject = start(self.quick)?;
                let question = json!({ "load": bench.rival_program, "size": rival_size[usize::from(self.quick)] });
                self.beside_rivals(bench, &mut *subject, &question, None)
            }
            Ours::Alone(start) => self.beside_rivals(bench, &mut *start(self.quick)?, &Value::Null, None),
            Ours::Text(text) => {
                let mut subject = ProgramSubject::new(bench, text, self.quick, &mut self.arrays)?;
                let (answer, mut figures) = subject.first_run(bench.peak_bar.filter(|_| !self.quick))?;
                let inputs = subject.data.iter().map(InputData::to_json).collect::<Result<Vec<_>>>()?;
                let question = json!({ "load": bench.rival_program, "inputs": inputs });
                let bytes = subject.moved_bytes() as f64;
                let flops = bench.flops.map(|flops| flops(&|name| subject.size(name)));
                let known = Known { answer: &answer, bytes, flops };
                let mut measurement = self.beside_rivals(bench, &mut subject, &question, Some(&known))?;
                measurement.inputs = subject.data.iter().map(InputData::to_string).collect::<Vec<_>>().join(", ");
                figures.extend(rates(measurement.seconds, bytes, flops));
                measurement.figures.splice(0..0, figures);
                Ok(measurement)
            }
        }
    }

    fn beside_rivals(
        &mut self,
        bench: &'static Bench,
        subject: &mut dyn Subject,
        question: &Value,
        known: Option<&Known<'_>>,
    ) -> Result<Measurement> {
        let (mut rivals, mut seconds, mut figures) = (Vec::new(), Vec::new(), Vec::new());
        let only = self.only.clone();
        for versus in bench.versus.iter().filter(|versus| only.is_empty() || only.contains(&versus.rival)) {
            let mut ours = || {
                let Sample { seconds: took, figures: found } = subject.measure()?;
                seconds.push(took);
                figures = found;
                Ok(took)
            };
            rivals.push((versus, self.beside(versus.rival, &mut ours, question, known)?));
        }
        while seconds.len() < self.repeats {
            let sample = subject.measure()?;
            seconds.push(sample.seconds);
            figures = sample.figures;
        }
        let (seconds, inputs) = (median(&mut seconds), String::new());
        Ok(Measurement { bench, quick: self.quick, inputs, seconds, rivals, figures })
    }

    /// Ours, theirs, ours, theirs. Errors of ours end the bench, errors of theirs only the comparison.
    fn beside(
        &mut self,
        rival: Rival,
        ours: &mut dyn FnMut() -> Result<f64>,
        question: &Value,
        known: Option<&Known<'_>>,
    ) -> Result<Outcome> {
        let repeats = self.repeats;
        let (mut opponent, note) = match self.opponent(rival, question, known)? {
            Ok(set_up) => set_up,
            Err(outcome) => return Ok(outcome),
        };
        let (mut our_times, mut their_times, mut ratios) = (Vec::new(), Vec::new(), Vec::new());
        for _ in 0..repeats {
            let our_time = ours()?;
            let their_time = match opponent.seconds() {
                Ok(seconds) => seconds,
                Err(why) => return Ok(Outcome::Missing(why)),
            };
            our_times.push(our_time);
            their_times.push(their_time);
            ratios.push(their_time / our_time);
        }
        if let (Rival::Copy, Some(known)) = (rival, known) {
            self.copy_speeds.extend(their_times.iter().map(|seconds| known.bytes / seconds));
        }
        let ratio = median(&mut ratios);
        let range = (ratios[0], ratios[ratios.len() - 1]);
        let compared = Compared { ours: median(&mut our_times), theirs: median(&mut their_times), ratio, range, note };
        Ok(Outcome::Compared(compared))
    }

    /// Sets a rival up, and compares what it computes.
    fn opponent(
        &mut self,
        rival: Rival,
        question: &Value,
        known: Option<&Known<'_>>,
    ) -> Result<Result<(Opponent<'_>, String), Outcome>> {
        Ok(match (rival, known) {
            (Rival::Copy, Some(known)) => {
                Ok((Opponent::Copy { copy: CopyRival::new(), bytes: known.bytes }, String::new()))
            }
            (Rival::Gemm, Some(known)) => {
                let quick: &[_] = if self.quick { &[("n", 500)] } else { &[] };
                let product = Bench { quick, products: Products::Own, ..BENCH };
                let mut subject = ProgramSubject::new(&product, GEMM, self.quick, &mut Arrays::default())?;
                subject.first_run(None)?;
                let scale = known.flops.unwrap_or(f64::NAN) / (2.0 * subject.size("n").powi(3));
                Ok((Opponent::Gemm { subject, scale }, String::new()))
            }
            (Rival::Copy | Rival::Gemm, None) => return Err(Error::internal("nothing to compare with")),
            (library, _) => self.library(library, question, known),
        })
    }

    fn library(
        &mut self,
        rival: Rival,
        question: &Value,
        known: Option<&Known<'_>>,
    ) -> Result<(Opponent<'_>, String), Outcome> {
        let library = self.libraries.get(rival).map_err(Outcome::Missing)?;
        let loaded = library.ask(question).map_err(Outcome::Missing)?;
        if let Some(why) = known.and_then(|known| known.answer.difference(&loaded["digest"])) {
            return Err(Outcome::Wrong(why));
        }
        let note = loaded["note"].as_str().unwrap_or_default().to_string();
        Ok((Opponent::Library(library), note))
    }
}

/// What is known about a program after its first run.
struct Known<'a> {
    answer: &'a Answer,
    bytes: f64,
    flops: Option<f64>,
}

fn rates(seconds: f64, bytes: f64, flops: Option<f64>) -> Vec<Figure> {
    let figure =
        |name, value: f64, unit: &str| Figure { name, value, text: format!("{value:.1} {unit}"), at_most: None };
    let mut figures = vec![figure("gigabytes_per_second", bytes / seconds / 1e9, "GB/s")];
    figures.extend(flops.map(|flops| figure("gflops", flops / seconds / 1e9, "GFLOP/s")));
    figures
}

/// Sorts the values and gives the one in the middle.
pub(super) fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    match values.len() {
        0 => f64::NAN,
        n if n % 2 == 1 => values[n / 2],
        n => (values[n / 2 - 1] + values[n / 2]) / 2.0,
    }
}

#[cfg(test)]
mod tests {
    use super::median;

    #[test]
    fn the_median_is_in_the_middle() {
        assert_eq!(median(&mut [3.0, 1.0, 2.0]), 2.0);
        assert_eq!(median(&mut [4.0, 1.0, 2.0, 3.0]), 2.5);
    }
}
