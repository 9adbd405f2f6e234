//! How fast a machine is, roughly.

use super::cost::Cost;

/// Rates that turn costs into seconds. The default is a guess at one core of a common machine: good enough to say which statement takes longest,
/// not how long it takes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Machine {
    /// Operations of sums of products per second and thread.
    pub product_flops: f64,
    /// Other scalar operations per second and thread, transcendental ones counted by their weight.
    pub scalar_work: f64,
    /// Bytes between memory and kernels per second, all threads together.
    pub bytes: f64,
    /// Seconds a task costs before it computes anything.
    pub task: f64,
}

impl Default for Machine {
    fn default() -> Machine {
        Machine { product_flops: 30e9, scalar_work: 2e9, bytes: 10e9, task: 2e-6 }
    }
}

/// What limits a statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Limit {
    Arithmetic,
    Memory,
    Overhead,
}

impl Limit {
    pub(crate) fn words(self) -> &'static str {
        match self {
            Limit::Arithmetic => "arithmetic",
            Limit::Memory => "memory traffic",
            Limit::Overhead => "the number of tasks",
        }
    }
}

impl Machine {
    /// A guess at the time a cost takes on so many threads.
    pub fn seconds(&self, cost: &Cost, threads: usize) -> f64 {
        let (arithmetic, memory, overhead) = self.parts(cost, threads);
        arithmetic.max(memory) + overhead
    }

    /// What takes longest.
    pub(crate) fn limit(&self, cost: &Cost, threads: usize) -> Limit {
        match self.parts(cost, threads) {
            (arithmetic, memory, overhead) if overhead > arithmetic.max(memory) => Limit::Overhead,
            (arithmetic, memory, _) if memory > arithmetic => Limit::Memory,
            _ => Limit::Arithmetic,
        }
    }

    fn parts(&self, cost: &Cost, threads: usize) -> (f64, f64, f64) {
        // Few tasks cannot keep many threads busy.
        let threads = threads.min(cost.tasks.max(1) as usize).max(1) as f64;
        let arithmetic = cost.product_flops as f64 / self.product_flops + cost.scalar_work as f64 / self.scalar_work;
        (arithmetic / threads, cost.moved_bytes as f64 / self.bytes, cost.tasks as f64 * self.task / threads)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limit_follows_the_cost() {
        let machine = Machine::default();
        let product = Cost { tasks: 8, product_flops: 1 << 40, moved_bytes: 1 << 20, ..Cost::default() };
        let copy = Cost { tasks: 8, moved_bytes: 1 << 40, ..Cost::default() };
        let crumbs = Cost { tasks: 1 << 20, moved_bytes: 1 << 20, ..Cost::default() };
        assert_eq!(machine.limit(&product, 2), Limit::Arithmetic);
        assert_eq!(machine.limit(&copy, 2), Limit::Memory);
        assert_eq!(machine.limit(&crumbs, 2), Limit::Overhead);
        assert!(machine.seconds(&product, 2) < machine.seconds(&product, 1));
    }
}
