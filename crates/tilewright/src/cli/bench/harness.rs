//! Interleaved repeats: the machine is never the same twice, so each of our times is compared with the rival's next to it.

use tw_ir::error::Result;

use super::Bench;
use super::ours::{Ours, Subject};
use super::rival::Rival;

/// What a bench gave.
pub(super) struct Measurement {
    pub(super) bench: Bench,
    /// Seconds per unit, median of the repeats.
    pub(super) ours: f64,
    pub(super) rival: Option<Compared>,
    pub(super) figures: Vec<Figure>,
}

/// The rival's side.
pub(super) struct Compared {
    /// Seconds per unit, median of the repeats.
    pub(super) seconds: f64,
    /// Median of the ratios; more than 1 if we are faster.
    pub(super) ratio: f64,
}

/// A number without a rival.
pub(super) struct Figure {
    pub(super) name: &'static str,
    pub(super) value: f64,
    pub(super) text: String,
}

/// Runs one bench.
pub(super) fn measure(bench: Bench, quick: bool, mut rival: Option<&mut Rival>) -> Result<Measurement> {
    let repeats = if quick { 3 } else { 5 };
    let mut subject = Subject::new(bench, quick)?;
    let mut figures = Vec::new();
    let (mut ours, mut theirs, mut ratios) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..repeats {
        let Ours { seconds, figures: found } = subject.measure()?;
        ours.push(seconds);
        figures = found;
        if let Some(rival) = rival.as_mut() {
            let seconds_rival = rival.measure(bench, quick)?;
            ratios.push(seconds_rival / seconds);
            theirs.push(seconds_rival);
        }
    }
    let rival = rival.map(|_| Compared { seconds: median(theirs), ratio: median(ratios) });
    Ok(Measurement { bench, ours: median(ours), rival, figures })
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    let n = values.len();
    match n {
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
        assert_eq!(median(vec![3.0, 1.0, 2.0]), 2.0);
        assert_eq!(median(vec![4.0, 1.0, 2.0, 3.0]), 2.5);
    }
}
