//! Sets of run numbers.

use std::collections::BTreeMap;

/// A set of numbers as ranges. Runs are numbered one after the other, so there are few.
#[derive(Debug, Default)]
pub(crate) struct RunSet {
    /// From the first number of a range to its last. Ranges neither overlap nor touch.
    ranges: BTreeMap<u64, u64>,
}

impl RunSet {
    pub(crate) fn contains(&self, run: u64) -> bool {
        self.ranges.range(..=run).next_back().is_some_and(|(_, &last)| run <= last)
    }

    pub(crate) fn insert(&mut self, run: u64) {
        if self.contains(run) {
            return;
        }
        let (mut first, mut last) = (run, run);
        if let Some((&start, &end)) = self.ranges.range(..run).next_back()
            && end + 1 == run
        {
            first = start;
        }
        if let Some(next) = run.checked_add(1)
            && let Some(end) = self.ranges.remove(&next)
        {
            last = end;
        }
        self.ranges.insert(first, last);
    }

    #[cfg(test)]
    fn n_ranges(&self) -> usize {
        self.ranges.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_in_any_order_become_one_range() {
        let mut set = RunSet::default();
        let mut inside = [false; 11];
        for run in [7, 3, 5, 4, 9, 1, 8, 0, 2, 6, 6] {
            set.insert(run);
            inside[run as usize] = true;
            for (k, &expected) in inside.iter().enumerate() {
                assert_eq!(set.contains(k as u64), expected, "{k} after {run}");
            }
        }
        assert_eq!(set.n_ranges(), 1);
        set.insert(u64::MAX);
        set.insert(u64::MAX - 1);
        assert!(set.contains(u64::MAX) && !set.contains(10));
        assert_eq!(set.n_ranges(), 2);
    }
}
