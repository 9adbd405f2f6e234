//! Lower bounds on communication.
//!
//! A worker with an even share of a contraction touches a box of the iteration space, or a set no better: by the Loomis-Whitney inequality and its
//! generalisations, the best set is the box whose projections onto the arrays have the smallest sum. A worker receives the elements that it touches and does not
//! own (or sends them, for the output). Each array exists once and is sharded evenly.

use tw_ir::error::{Error, Result};

/// A contraction for the purpose of bounds: the extents of its variables, and the variables of each array. The output counts as an array.
#[derive(Clone, Debug, PartialEq)]
pub struct Volume {
    extents: Vec<f64>,
    /// The weight of an element of each array, and its variables.
    arrays: Vec<(f64, Vec<usize>)>,
}

impl Volume {
    /// A contraction of variables with these extents; every array lists its variables, and every variable is in some array.
    ///
    /// ```
    /// use tw_place::Volume;
    /// let product = Volume::new(&[40_000, 40_000, 40_000], &[&[0, 2], &[2, 1], &[0, 1]]).unwrap();
    /// assert!((product.least_words(10) / 5.54e8 - 1.0).abs() < 1e-3);
    /// ```
    pub fn new(extents: &[u64], arrays: &[&[usize]]) -> Result<Volume> {
        if let Some(wrong) = arrays.iter().flat_map(|array| array.iter()).find(|&&var| var >= extents.len()) {
            return Err(Error::internal(format!("variable {wrong} of {}", extents.len())));
        }
        if let Some(unused) = (0..extents.len()).find(|var| arrays.iter().all(|array| !array.contains(var))) {
            return Err(Error::internal(format!("variable {unused} is in no array")));
        }
        Ok(Volume {
            extents: extents.iter().map(|&n| n as f64).collect(),
            arrays: arrays.iter().map(|array| (1.0, array.to_vec())).collect(),
        })
    }

    /// The same with a weight per element of each array, for example its bytes. All counts then have that unit.
    pub fn weighted(mut self, weights: &[f64]) -> Volume {
        self.arrays.iter_mut().zip(weights).for_each(|((weight, _), &new)| *weight = new);
        self
    }

    /// Points of the iteration space.
    pub fn n_points(&self) -> f64 {
        self.extents.iter().product()
    }

    /// Elements of all arrays.
    pub fn n_elements(&self) -> f64 {
        self.touched(&self.extents)
    }

    /// Elements of all arrays that a box of these lengths touches.
    pub fn touched(&self, lengths: &[f64]) -> f64 {
        let touched =
            |(weight, array): &(f64, Vec<usize>)| array.iter().fold(*weight, |elements, &var| elements * lengths[var]);
        self.arrays.iter().map(touched).sum()
    }

    /// Words that the busiest of `n_ranks` must send or receive when the work is even, for any amount of memory.
    pub fn least_words(&self, n_ranks: u64) -> f64 {
        // With fewer points than ranks some have none, and nothing is known of the others.
        if n_ranks <= 1 || self.n_points() < n_ranks as f64 {
            return 0.0;
        }
        let ranks = n_ranks as f64;
        (self.touched(&self.best_box(ranks)) - self.n_elements() / ranks).max(0.0)
    }

    /// Words that the busiest of `n_ranks` has to send or receive if none can hold more than `memory` words: never less than [`Volume::least_words`].
    ///
    /// If the work of a rank is divided where it has received another `x` words, each piece touches no more than those and what was held, so it has no more points than the largest box that
    /// touches `memory + x` words (an X-partition, as in Kwasniewski et al., 2019). For products `x = 2 memory` gives the known 2mnk / (P sqrt(memory)).
    ///
    /// ```
    /// use tw_place::Volume;
    /// let product = Volume::new(&[40_000, 40_000, 40_000], &[&[0, 2], &[2, 1], &[0, 1]]).unwrap();
    /// assert_eq!(product.least_words_within(1000, 1e12), product.least_words(1000));
    /// let known = 2.0 * 6.4e13 / 1000.0 / 5e6_f64.sqrt();
    /// let words = product.least_words_within(1000, 5e6);
    /// assert!(words > 1.1 * product.least_words(1000) && words <= known);
    /// ```
    ///
    /// If workers cannot hold even their own shards, they read them from files repeatedly, and the bound without a memory limit is the best known.
    pub fn least_words_within(&self, n_ranks: u64, memory: f64) -> f64 {
        let least = self.least_words(n_ranks);
        let share = self.n_points() / n_ranks as f64;
        if n_ranks <= 1 || share < 1.0 || memory < self.n_elements() / n_ranks as f64 {
            return least;
        }
        let received = |more: f64| more * (share / self.most_points(memory + more)).floor();
        MORE.iter().map(|more| received(more * memory)).fold(least, f64::max)
    }

    /// Points of the largest box that touches so many words.
    fn most_points(&self, words: f64) -> f64 {
        // Boxes with a smaller share of all points touch less: the share is found by halving intervals of its logarithm.
        let (mut low, mut high) = (0.0, self.n_points().ln());
        for _ in 0..60 {
            let middle = (low + high) / 2.0;
            match self.touched(&self.best_box(middle.exp())) <= words {
                true => high = middle,
                false => low = middle,
            }
        }
        (self.n_points() / high.exp()).max(1.0)
    }

    /// The elements of each array that a box of these lengths touches, less the share that one of `n_ranks` owns.
    fn beyond_owned(&self, lengths: &[f64], n_ranks: f64) -> Vec<f64> {
        let elements = |array: &[usize], lengths: &[f64]| array.iter().map(|&var| lengths[var]).product::<f64>();
        let beyond =
            |(_, array): &(f64, Vec<usize>)| elements(array, lengths) - elements(array, &self.extents) / n_ranks;
        self.arrays.iter().map(beyond).collect()
    }

    /// Lengths of the box with the `n_ranks`-th part of all points that touches the fewest elements.
    ///
    /// In the logarithms of the lengths, the objective is convex, the sum is fixed and each length has an upper limit. So exchanging between two lengths at a
    /// time until nothing improves reaches the optimum.
    pub fn best_box(&self, n_ranks: f64) -> Vec<f64> {
        let most: Vec<f64> = self.extents.iter().map(|extent| extent.ln()).collect();
        // Start with the same share for all lengths.
        let total: f64 = most.iter().sum();
        let share = if total > 0.0 { 1.0 - (n_ranks.ln() / total).min(1.0) } else { 0.0 };
        let mut logs: Vec<f64> = most.iter().map(|log| log * share).collect();
        for _ in 0..ROUNDS {
            let before = logs.clone();
            for a in 0..logs.len() {
                for b in a + 1..logs.len() {
                    self.exchange(&mut logs, &most, a, b);
                }
            }
            let moved = logs.iter().zip(&before).map(|(now, before)| (now - before).abs()).fold(0.0, f64::max);
            if moved < 1e-13 {
                break;
            }
        }
        logs.into_iter().map(f64::exp).collect()
    }

    /// Lengthens one side of the box and shortens another as far as that makes the sum smaller.
    fn exchange(&self, logs: &mut [f64], most: &[f64], a: usize, b: usize) {
        let size = |(weight, array): &(f64, Vec<usize>)| weight * array.iter().map(|&var| logs[var]).sum::<f64>().exp();
        // Arrays with both sides or neither do not change. What has `a` alone grows with the step, what has `b` alone shrinks.
        let only = |x: usize, y: usize| {
            let arrays = self.arrays.iter().filter(|(_, array)| array.contains(&x) && !array.contains(&y));
            arrays.map(size).sum::<f64>()
        };
        let (grows, shrinks) = (only(a, b), only(b, a));
        let (lowest, highest) = ((-logs[a]).max(logs[b] - most[b]), (most[a] - logs[a]).min(logs[b]));
        // The sum is smallest where both are equal.
        let step = match (grows > 0.0, shrinks > 0.0) {
            (true, true) => (shrinks / grows).ln() / 2.0,
            (false, true) => f64::INFINITY,
            (true, false) => f64::NEG_INFINITY,
            (false, false) => 0.0,
        };
        let step = step.clamp(lowest.min(0.0), highest.max(0.0));
        logs[a] += step;
        logs[b] -= step;
    }
}

/// A statement of a program: the volume of its contraction, and for each of its arrays the number of the array in the program and the bytes of an element.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Touching {
    /// Its iteration space and arrays.
    pub(super) volume: Volume,
    /// One for each array of the volume. An array that a statement reads in two ways is there twice.
    pub(super) arrays: Vec<(usize, f64)>,
}

/// As [`least_together`], where no worker can hold more than so many bytes: the statement that needs most for itself may then need more than all together.
pub(super) fn least_together_within(statements: &[Touching], n_ranks: u64, memory: Option<u64>) -> f64 {
    let within = |memory: u64| {
        let alone = |statement: &Touching| {
            let bytes: Vec<f64> = statement.arrays.iter().map(|(_, bytes)| *bytes).collect();
            // An array that is read in two ways need not be there twice.
            let twice = (1..statement.arrays.len())
                .any(|k| statement.arrays[..k].iter().any(|(array, _)| *array == statement.arrays[k].0));
            let volume = statement.volume.clone().weighted(&bytes);
            if twice { 0.0 } else { volume.least_words_within(n_ranks, memory as f64) }
        };
        statements.iter().map(alone).fold(0.0, f64::max)
    };
    least_together(statements, n_ranks).max(memory.map_or(0.0, within))
}

/// Bytes that the busiest of `n_ranks` has to send or receive for several statements if all do equally much of each.
///
/// A worker handles at least what the one statement touches of an array that touches most of it. The largest of some numbers is at least any weighted mean of them, so with
/// weights for every array that add up to one over its statements, the least for each statement by itself can be added up. The weights are moved towards
/// the statements that touch more than their share, as long as the sum grows. The parts of a sum and the sum as it is read are different arrays: see `touching`.
fn least_together(statements: &[Touching], n_ranks: u64) -> f64 {
    if n_ranks <= 1 {
        return 0.0;
    }
    let ranks = n_ranks as f64;
    let n_arrays = statements.iter().flat_map(|s| &s.arrays).map(|(array, _)| array + 1).max().unwrap_or(0);
    let mut shares: Vec<Vec<f64>> = statements.iter().map(|s| vec![1.0; s.arrays.len()]).collect();
    normalise(statements, &mut shares, n_arrays);
    let rounds = (MOST_BOXES / statements.len().max(1)).clamp(1, MOST_ROUNDS);
    let mut best = 0.0f64;
    for round in 1..=rounds {
        let mut total = 0.0;
        // The bytes of an array that each statement touches beyond its shard: the direction in which its weight should grow.
        let mut beyond: Vec<Vec<f64>> = Vec::with_capacity(statements.len());
        for (statement, shares) in statements.iter().zip(&shares) {
            if statement.volume.n_points() < ranks {
                beyond.push(vec![0.0; statement.arrays.len()]);
                continue;
            }
            let bytes = statement.arrays.iter().map(|(_, bytes)| bytes);
            let weights: Vec<f64> = bytes.clone().zip(shares).map(|(bytes, share)| bytes * share).collect();
            let volume = statement.volume.clone().weighted(&weights);
            let touched = volume.beyond_owned(&volume.best_box(ranks), ranks);
            total += touched.iter().zip(&weights).map(|(touched, weight)| touched * weight).sum::<f64>().max(0.0);
            beyond.push(touched.iter().zip(bytes).map(|(touched, bytes)| touched * bytes).collect());
        }
        best = best.max(total);
        let mut most = vec![f64::MIN_POSITIVE; n_arrays];
        for (statement, beyond) in statements.iter().zip(&beyond) {
            (statement.arrays.iter().zip(beyond)).for_each(|((array, _), &by)| most[*array] = most[*array].max(by));
        }
        let step = 2.0 / (round as f64).sqrt();
        for ((statement, beyond), shares) in statements.iter().zip(&beyond).zip(&mut shares) {
            for (((array, _), by), share) in statement.arrays.iter().zip(beyond).zip(shares) {
                *share *= (step * (by / most[*array]).max(-1.0)).exp();
            }
        }
        normalise(statements, &mut shares, n_arrays);
    }
    // Differences of large numbers are never quite zero.
    let bytes = |statement: &Touching| {
        let weights: Vec<f64> = statement.arrays.iter().map(|(_, bytes)| *bytes).collect();
        statement.volume.clone().weighted(&weights).n_elements()
    };
    let all: f64 = statements.iter().map(bytes).sum();
    if best > all * ROUNDING { best } else { 0.0 }
}

/// Makes the shares of every array add up to one.
fn normalise(statements: &[Touching], shares: &mut [Vec<f64>], n_arrays: usize) {
    let mut sums = vec![0.0; n_arrays];
    for (statement, shares) in statements.iter().zip(shares.iter()) {
        statement.arrays.iter().zip(shares).for_each(|((array, _), share)| sums[*array] += share);
    }
    for (statement, shares) in statements.iter().zip(shares) {
        statement.arrays.iter().zip(shares).for_each(|((array, _), share)| *share /= sums[*array]);
    }
}

/// Bounds below this part of all bytes are rounding errors.
const ROUNDING: f64 = 1e-13;

/// Bytes received per phase of the memory-limited bound, over the memory.
const MORE: [f64; 5] = [0.5, 1.0, 2.0, 3.0, 5.0];

/// Boxes that are looked for to find a bound for a program, and how often for one statement at most.
const MOST_BOXES: usize = 4000;
const MOST_ROUNDS: usize = 60;

/// More rounds than the slowest exchange of sides takes.
const ROUNDS: usize = 10_000;

#[cfg(test)]
mod tests {
    use super::*;

    fn product(m: u64, n: u64, k: u64) -> Volume {
        Volume::new(&[m, n, k], &[&[0, 2], &[2, 1], &[0, 1]]).unwrap()
    }

    /// The bound for products as it is known in closed form.
    fn closed_form(dims: [u64; 3], ranks: f64) -> f64 {
        let mut sorted = dims.map(|n| n as f64);
        sorted.sort_by(f64::total_cmp);
        let [k, n, m] = sorted;
        let touched = if ranks <= m / n {
            (m * n + m * k) / ranks + n * k
        } else if ranks <= m * n / (k * k) {
            2.0 * (m * n * k * k / ranks).sqrt() + m * n / ranks
        } else {
            3.0 * (m * n * k / ranks).powf(2.0 / 3.0)
        };
        touched - (m * n + m * k + n * k) / ranks
    }

    #[test]
    fn the_best_box_is_the_known_one_for_products() {
        for dims in [[40_000; 3], [10_000, 10_000, 640_000], [80_000, 80_000, 10_000], [7, 1000, 31], [1, 50, 4000]] {
            for ranks in [2, 3, 8, 10, 64, 1000] {
                let [m, n, k] = dims;
                let (found, known) = (product(m, n, k).least_words(ranks), closed_form(dims, ranks as f64));
                assert!((found - known).abs() <= 1e-6 * known.max(1.0), "{dims:?} on {ranks}: {found} {known}");
            }
        }
    }

    #[test]
    fn statements_that_share_arrays_are_bounded_together() {
        // h = x @ w and g = x.T @ h: the first wants all of w, the second makes all of g.
        let forward = product(60_000, 1000, 3000);
        let gradient = Volume::new(&[3000, 1000, 60_000], &[&[2, 0], &[2, 1], &[0, 1]]).unwrap();
        let alone = forward.least_words(16);
        let touching = |volume, numbers: [usize; 3]| Touching { volume, arrays: numbers.map(|n| (n, 1.0)).to_vec() };
        let both = [touching(forward, [0, 1, 2]), touching(gradient, [0, 2, 3])];
        assert!((least_together(&both[..1], 16) / alone - 1.0).abs() < 1e-9);
        assert!(least_together(&both, 16) > 1.9 * alone);
        assert!(least_together_within(&both, 16, Some(1 << 40)) == least_together(&both, 16));
    }

    #[test]
    fn anchors() {
        let close = |found: f64, known: f64| assert!((found / known - 1.0).abs() < 5e-3, "{found} {known}");
        close(product(40_000, 40_000, 40_000).least_words(10), 5.54e8);
        close(product(10_000, 10_000, 640_000).least_words(10), 9.0e7);
        close(product(80_000, 80_000, 10_000).least_words(10), 3.46e8);
        close(product(1_500_000, 6000, 6000).least_words(8), 3.15e7);
        close(product(6000, 100_000, 100_000).least_words(8), 2.74e8);
    }

    #[test]
    fn one_rank_and_empty_arrays_send_nothing() {
        assert_eq!(product(100, 100, 100).least_words(1), 0.0);
        assert_eq!(product(0, 100, 100).least_words(8), 0.0);
        // A sum over everything: each rank sends its partial sum.
        let sum = Volume::new(&[1000], &[&[0], &[]]).unwrap();
        assert!(sum.least_words(10) <= 1.0);
        assert!(Volume::new(&[3], &[&[1]]).is_err());
        assert!(Volume::new(&[3, 4], &[&[0]]).is_err());
    }
}
