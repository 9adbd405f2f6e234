//! A rough model of the speed of this machine.

use std::time::Instant;

use tw_ir::error::Result;

use super::cost::Cost;
use crate::session::Session;
use crate::tensor::Tensor;

/// Rates that turn costs into seconds. The default is a guess at one core of a common machine: good enough to say which statement takes longest,
/// not how long it takes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Speeds {
    /// Operations of sums of products per second and thread.
    pub product_flops: f64,
    /// Other scalar operations per second and thread, transcendental ones counted by their weight.
    pub scalar_work: f64,
    /// Bytes between memory and kernels per second, all threads together.
    pub bytes: f64,
    /// Seconds a task costs before it computes anything.
    pub task: f64,
}

impl Default for Speeds {
    fn default() -> Speeds {
        Speeds { product_flops: 30e9, scalar_work: 2e9, bytes: 10e9, task: 2e-6 }
    }
}

/// The bottleneck of a statement.
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

impl Speeds {
    /// Measures this machine with a few small programs; takes a fraction of a second. The time a task costs is not measured.
    pub fn measure() -> Result<Speeds> {
        let session = Session::builder().threads(1).build();
        let square = session.random_normal(&[800, 800], 1)?;
        let vector = session.random_normal(&[1 << 21], 2)?;
        square.persist()?;
        vector.persist()?;
        let product = probe(|| square.matmul(&square))?;
        let scalar = probe(|| session.random_normal(&[1 << 20], 3)?.sum(None))?;
        let bytes = probe(|| vector.add_scalar(1.0))?;
        Ok(Speeds {
            product_flops: product.0.product_flops as f64 / product.1,
            scalar_work: scalar.0.scalar_work as f64 / scalar.1,
            bytes: bytes.0.moved_bytes as f64 / bytes.1,
            ..Speeds::default()
        })
    }

    /// The estimated time of a cost on this many threads.
    pub fn seconds(&self, cost: &Cost, threads: usize) -> f64 {
        let (arithmetic, memory, overhead) = self.parts(cost, threads);
        arithmetic.max(memory) + overhead
    }

    /// The bottleneck of a cost.
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

/// The cost of a tensor and the seconds it takes, the best of a few.
fn probe(tensor: impl Fn() -> Result<Tensor>) -> Result<(Cost, f64)> {
    let mut best = f64::INFINITY;
    let mut cost = Cost::default();
    for _ in 0..3 {
        let tensor = tensor()?;
        cost = tensor.session().explain(&tensor.program()?.0)?.summary().cost;
        let begin = Instant::now();
        tensor.persist()?;
        best = best.min(begin.elapsed().as_secs_f64());
    }
    Ok((cost, best.max(1e-9)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limit_follows_the_cost() {
        let speeds = Speeds::default();
        let product = Cost { tasks: 8, product_flops: 1 << 40, moved_bytes: 1 << 20, ..Cost::default() };
        let copy = Cost { tasks: 8, moved_bytes: 1 << 40, ..Cost::default() };
        let crumbs = Cost { tasks: 1 << 20, moved_bytes: 1 << 20, ..Cost::default() };
        assert_eq!(speeds.limit(&product, 2), Limit::Arithmetic);
        assert_eq!(speeds.limit(&copy, 2), Limit::Memory);
        assert_eq!(speeds.limit(&crumbs, 2), Limit::Overhead);
        assert!(speeds.seconds(&product, 2) < speeds.seconds(&product, 1));
    }

    #[test]
    fn a_machine_can_be_measured() {
        let speeds = Speeds::measure().unwrap();
        for rate in [speeds.product_flops, speeds.scalar_work, speeds.bytes] {
            assert!(rate.is_finite() && rate > 1e5, "{speeds:?}");
        }
    }
}
