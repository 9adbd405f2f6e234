//! The machine model: nodes with workers, their links, compute rates and memory.

use std::fmt;

use tw_ir::EntityRef;
use tw_ir::error::{Error, Result};
use tw_ir::span::Span;
use tw_ir::workflow::{BlockSizes, TaskId, TaskKind, Workflow};

use tw_plan::{KernelWork, task_bytes_by, task_flops};

/// The largest number of workers; every figure is kept per worker.
pub const MOST_WORKERS: u64 = 1 << 20;

/// The largest latency or task overhead in seconds, and the largest rate per second.
const LONGEST: f64 = 1e6;
const FASTEST: f64 = 1e24;

/// The cost of a message: a latency, then its bytes over the bandwidth.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Link {
    /// Seconds before the first byte arrives.
    pub latency: f64,
    /// Bytes per second after that.
    pub bandwidth: f64,
}

impl Link {
    /// Seconds of a message of this size.
    pub fn seconds(&self, bytes: u64) -> f64 {
        self.latency + bytes as f64 / self.bandwidth
    }
}

/// Nodes of equal workers. Workers are numbered node by node.
///
/// ```
/// use tw_place::Machine;
/// let machine = Machine::parse("nodes = 4\nworkers = 8\nmemory = 16GiB\n").unwrap();
/// assert_eq!(machine.n_workers(), 32);
/// assert_eq!(machine.node_of(9), 1);
/// assert_eq!(Machine::parse(&machine.to_string()).unwrap(), machine);
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Machine {
    /// Number of nodes.
    pub nodes: u32,
    /// Workers per node; a worker computes one task at a time.
    pub workers: u32,
    /// The link between workers of one node.
    pub inside: Link,
    /// The link between workers of different nodes.
    pub across: Link,
    /// Overhead of a task in seconds.
    pub task: f64,
    /// Operations per second of one worker in matrix products.
    pub flops: f64,
    /// Other operations per second of one worker, in additions; a transcendental function counts as several.
    pub scalar: f64,
    /// Memory bandwidth of one worker, in bytes per second.
    pub stream: f64,
    /// Memory of one worker for blocks, in bytes, if limited.
    pub memory: Option<u64>,
}

impl Default for Machine {
    /// A guess at one worker of a common machine on a common network.
    fn default() -> Machine {
        Machine {
            nodes: 1,
            workers: 1,
            inside: Link { latency: 1e-6, bandwidth: 8e9 },
            across: Link { latency: 5e-6, bandwidth: 1.25e9 },
            task: 2e-6,
            flops: 3e10,
            scalar: 2e9,
            stream: 1e10,
            memory: None,
        }
    }
}

impl Machine {
    /// The default model with these numbers of nodes and workers per node.
    pub fn of(nodes: u32, workers: u32) -> Result<Machine> {
        let machine = Machine { nodes, workers, ..Machine::default() };
        machine.verify()?;
        Ok(machine)
    }

    /// Workers of all nodes.
    pub fn n_workers(&self) -> usize {
        self.nodes as usize * self.workers as usize
    }

    /// The node of a worker.
    pub fn node_of(&self, worker: u32) -> u32 {
        worker / self.workers
    }

    /// The link between two workers.
    pub fn link(&self, from: u32, to: u32) -> &Link {
        if self.node_of(from) == self.node_of(to) { &self.inside } else { &self.across }
    }

    /// Seconds of each task of a workflow. A load costs its overhead only.
    pub fn task_seconds(&self, workflow: &Workflow) -> Vec<f64> {
        let works: Vec<KernelWork> = workflow.kernels.values().map(|entry| KernelWork::of(&entry.kernel)).collect();
        let sizes = BlockSizes::of(workflow);
        let seconds = |task: TaskId| {
            if workflow.kind(task) == TaskKind::Load {
                return self.task;
            }
            let KernelWork { is_product, weight } = works[workflow.kernel(task).index()];
            let flops = task_flops(workflow, task) as f64;
            let arithmetic = flops * if is_product { 1.0 } else { weight } / self.rate(is_product);
            self.task + arithmetic.max(task_bytes_by(workflow, &sizes, task) as f64 / self.stream)
        };
        workflow.tasks().map(seconds).collect()
    }

    /// The link between the most distant workers.
    pub(super) fn farthest(&self) -> &Link {
        if self.nodes > 1 { &self.across } else { &self.inside }
    }

    /// Operations per second of a worker, in matrix products or in other code.
    pub(super) fn rate(&self, is_product: bool) -> f64 {
        if is_product { self.flops } else { self.scalar }
    }

    /// The message size at which transfer time equals latency. Smaller shards are not worth a message.
    pub fn worth_sending(&self) -> u64 {
        (self.farthest().latency * self.farthest().bandwidth) as u64
    }

    /// Refuses impossible values.
    pub fn verify(&self) -> Result<()> {
        let n = self.nodes as u64 * self.workers as u64;
        if n == 0 || n > MOST_WORKERS {
            let text = format!("{} nodes of {} workers", self.nodes, self.workers);
            return Err(Error::plan(text).help(format!("from 1 to {MOST_WORKERS} workers can be planned for")));
        }
        for (name, value) in self.rates() {
            let is_time = name.ends_with("latency") || name == "task";
            // Times and rates far beyond any machine would only make figures that are no numbers.
            let range = if is_time { 0.0..=LONGEST } else { 1.0..=FASTEST };
            if !range.contains(&value) {
                return Err(Error::plan(format!("`{name} = {value:e}` is not something a machine can have")));
            }
        }
        match self.memory {
            Some(0) => Err(Error::plan("`memory = 0` leaves no room for any block")),
            _ => Ok(()),
        }
    }

    fn rates(&self) -> [(&'static str, f64); 8] {
        [
            ("inside.latency", self.inside.latency),
            ("inside.bandwidth", self.inside.bandwidth),
            ("across.latency", self.across.latency),
            ("across.bandwidth", self.across.bandwidth),
            ("task", self.task),
            ("flops", self.flops),
            ("scalar", self.scalar),
            ("stream", self.stream),
        ]
    }

    /// Reads what [`Display`](fmt::Display) writes: lines of `name = value`, with `#` before comments. Missing entries have their defaults.
    pub fn parse(text: &str) -> Result<Machine> {
        let mut machine = Machine::default();
        let mut seen: Vec<&str> = Vec::new();
        let mut start = 0;
        for line in text.split_inclusive('\n') {
            let content = line.split('#').next().unwrap_or_default().trim_end();
            let span = Span::text(start, start + content.len());
            start += line.len();
            if content.trim().is_empty() {
                continue;
            }
            let Some((name, value)) = content.split_once('=') else {
                return Err(Error::source(format!("`{}` is not `name = value`", content.trim())).at(&span));
            };
            let (name, value) = (name.trim(), value.trim());
            if seen.contains(&name) {
                return Err(Error::source(format!("`{name}` is given twice")).at(&span));
            }
            machine.set(name, value).map_err(|error| error.at(&span))?;
            seen.push(name);
            machine.verify().map_err(|error| error.at(&span))?;
        }
        Ok(machine)
    }

    fn set(&mut self, name: &str, value: &str) -> Result<()> {
        const SECONDS: &[(&str, f64)] = &[("ns", 1e-9), ("us", 1e-6), ("ms", 1e-3), ("s", 1.0)];
        const BANDWIDTH: &[(&str, f64)] = &[("GB/s", 1e9), ("MB/s", 1e6), ("kB/s", 1e3), ("B/s", 1.0)];
        const OPERATIONS: &[(&str, f64)] = &[("G", 1e9), ("M", 1e6)];
        const BYTES: &[(&str, f64)] = &[
            ("KiB", 1024.0),
            ("MiB", 1048576.0),
            ("GiB", 1073741824.0),
            ("TiB", 1099511627776.0),
            ("kB", 1e3),
            ("MB", 1e6),
            ("GB", 1e9),
            ("TB", 1e12),
            ("B", 1.0),
        ];
        match name {
            "nodes" => self.nodes = count(name, value)?,
            "workers" => self.workers = count(name, value)?,
            "inside.latency" => self.inside.latency = quantity(name, value, SECONDS)?,
            "inside.bandwidth" => self.inside.bandwidth = quantity(name, value, BANDWIDTH)?,
            "across.latency" => self.across.latency = quantity(name, value, SECONDS)?,
            "across.bandwidth" => self.across.bandwidth = quantity(name, value, BANDWIDTH)?,
            "task" => self.task = quantity(name, value, SECONDS)?,
            "flops" => self.flops = quantity(name, value, OPERATIONS)?,
            "scalar" => self.scalar = quantity(name, value, OPERATIONS)?,
            "stream" => self.stream = quantity(name, value, BANDWIDTH)?,
            "memory" => {
                let bytes = quantity(name, value, BYTES)?;
                if !(0.0..=u64::MAX as f64).contains(&bytes) {
                    return Err(Error::source(format!("`memory = {value}` cannot be counted in bytes")));
                }
                self.memory = Some(bytes as u64);
            }
            _ => {
                let known = self.rates().map(|(name, _)| name).join(", ");
                return Err(Error::source(format!("a machine has no `{name}`"))
                    .help(format!("it has nodes, workers, memory, {known}")));
            }
        }
        Ok(())
    }
}

fn count(name: &str, value: &str) -> Result<u32> {
    value.parse().map_err(|_| Error::source(format!("`{name} = {value}` is not a number of {name}")))
}

fn quantity(name: &str, value: &str, units: &[(&str, f64)]) -> Result<f64> {
    let found = units.iter().find_map(|(unit, factor)| Some((value.strip_suffix(unit)?, *factor)));
    let (number, factor) = found.unwrap_or((value, 1.0));
    match number.trim().parse::<f64>() {
        Ok(number) if number.is_finite() => Ok(number * factor),
        _ => {
            let units: Vec<&str> = units.iter().map(|(unit, _)| *unit).collect();
            Err(Error::source(format!("`{name} = {value}` is not a number"))
                .help(format!("write a number, with a unit or without: {}", units.join(", "))))
        }
    }
}

impl fmt::Display for Machine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "nodes = {}", self.nodes)?;
        writeln!(f, "workers = {}", self.workers)?;
        if let Some(memory) = self.memory {
            writeln!(f, "memory = {memory}B")?;
        }
        self.rates().iter().try_for_each(|(name, value)| writeln!(f, "{name} = {value:e}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_says_what_differs() {
        let machine = Machine::parse("# ours\nnodes = 3 # racks\nacross.bandwidth = 10 GB/s\ntask=2ms\n").unwrap();
        let across = Link { bandwidth: 1e10, ..Machine::default().across };
        assert_eq!(machine, Machine { nodes: 3, across, task: 2e-3, ..Machine::default() });
        assert_eq!(machine.link(0, 0), &machine.inside);
        assert_eq!(machine.link(0, 2), &machine.across);
    }

    #[test]
    fn absurd_files_are_refused_where_they_are_wrong() {
        for (text, message) in [
            ("nodes = 0", "0 nodes of 1 workers"),
            ("nodes = 100000\nworkers = 100000", "100000 nodes of 100000 workers"),
            ("nodes = -1", "not a number of nodes"),
            ("flops = 0", "not something a machine can have"),
            ("flops = 1e-300", "not something a machine can have"),
            ("task = 1e308", "not something a machine can have"),
            ("across.bandwidth = 1e300", "not something a machine can have"),
            ("flops = inf", "not a number"),
            ("across.bandwidth = -1GB/s", "not something a machine can have"),
            ("memory = 0", "no room"),
            ("memory = 1e30", "cannot be counted"),
            ("memory = lots", "not a number"),
            ("speed = 1", "no `speed`"),
            ("nodes", "not `name = value`"),
            ("nodes = 1\nnodes = 2", "twice"),
        ] {
            let error = Machine::parse(text).unwrap_err();
            assert!(error.message().contains(message), "{text}: {}", error.message());
            assert!(matches!(error.span(), Span::Text { .. }), "{text}");
        }
    }
}
