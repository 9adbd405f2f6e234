//! The transfer matrix: bytes from each worker to each other worker.

use tw_place::{Machine, Simulation};

/// Bytes by sender and receiver: of workers, or of groups of neighbours where there are many.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Matrix {
    /// Names of rows and columns.
    pub(crate) labels: Vec<String>,
    /// The node that each row begins.
    pub(crate) nodes: Vec<u32>,
    /// By sender, then receiver.
    pub(crate) cells: Vec<Vec<u64>>,
    /// Workers of a row.
    pub(crate) workers_per_row: u32,
    workers_per_node: u32,
}

impl Matrix {
    /// The matrix of a plan with at most this many rows: one per worker, else per node, else per group of nodes.
    pub(crate) fn of(simulation: &Simulation, machine: &Machine, most: usize) -> Matrix {
        let n_workers = machine.n_workers() as u32;
        let workers_per_row = match (n_workers as usize <= most, machine.nodes as usize <= most) {
            (true, _) => 1,
            (false, true) => machine.workers,
            (false, false) => machine.workers * machine.nodes.div_ceil(most as u32),
        };
        // One node of many workers is cut, too.
        let workers_per_row = match (workers_per_row, machine.nodes) {
            (1, _) => 1,
            (_, 1) => n_workers.div_ceil(most as u32),
            (several, _) => several,
        };
        let rows = n_workers.div_ceil(workers_per_row);
        let mut cells = vec![vec![0u64; rows as usize]; rows as usize];
        for (&(from, to), &bytes) in &simulation.links {
            cells[(from / workers_per_row) as usize][(to / workers_per_row) as usize] += bytes;
        }
        let workers_per_node = machine.workers;
        let firsts = || (0..rows).map(|row| row * workers_per_row);
        let label = |first: u32| {
            let last = (first + workers_per_row).min(n_workers) - 1;
            match workers_per_row {
                1 => first.to_string(),
                several if several == workers_per_node => format!("n{}", machine.node_of(first)),
                several if several > workers_per_node => {
                    format!("n{}-{}", machine.node_of(first), machine.node_of(last))
                }
                _ => format!("{first}-{last}"),
            }
        };
        Matrix {
            labels: firsts().map(label).collect(),
            nodes: firsts().map(|first| machine.node_of(first)).collect(),
            cells,
            workers_per_row,
            workers_per_node,
        }
    }

    /// The title: what rows and columns stand for.
    pub(crate) fn title(&self) -> String {
        let of = match self.workers_per_row {
            1 if self.workers_per_node > 1 => format!("workers, {} on each node", self.workers_per_node),
            1 => "workers".to_string(),
            several if several == self.workers_per_node => format!("nodes of {several} workers"),
            several => format!("groups of {several} workers"),
        };
        format!("who sends how much to whom: {of}")
    }

    /// True if nothing is sent.
    pub(crate) fn is_empty(&self) -> bool {
        self.total() == 0
    }

    /// Bytes that come to a column.
    pub(crate) fn received(&self, column: usize) -> u64 {
        self.cells.iter().map(|row| row[column]).sum()
    }

    /// Bytes of all messages.
    pub(crate) fn total(&self) -> u64 {
        self.cells.iter().flatten().sum()
    }

    /// True if a row is the first of its node.
    pub(crate) fn begins_node(&self, row: usize) -> bool {
        self.workers_per_row == 1 && self.workers_per_node > 1 && row > 0 && self.nodes[row] != self.nodes[row - 1]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn simulation(links: &[((u32, u32), u64)]) -> Simulation {
        Simulation {
            workers: Vec::new(),
            links: links.iter().copied().collect(),
            across_bytes: 0,
            n_transfers: 0,
            makespan: 0.0,
            critical_path: 0.0,
            at_peak: None,
            intervals: Vec::new(),
        }
    }

    #[test]
    fn rows_are_workers_then_nodes_then_groups() {
        let links = [((0, 1), 5), ((3, 0), 7), ((11, 11), 1)];
        let of = |nodes, workers, most| Matrix::of(&simulation(&links), &Machine::of(nodes, workers).unwrap(), most);
        let matrix = of(3, 4, 12);
        assert_eq!((matrix.cells[0][1], matrix.cells[3][0], matrix.total()), (5, 7, 13));
        assert_eq!(matrix.labels[11], "11");
        assert!(matrix.begins_node(4) && !matrix.begins_node(5) && !matrix.begins_node(0));
        let matrix = of(3, 4, 11);
        assert_eq!(matrix.cells, [[12, 0, 0], [0, 0, 0], [0, 0, 1]]);
        assert_eq!(matrix.labels, ["n0", "n1", "n2"]);
        let matrix = of(6, 2, 4);
        assert_eq!(matrix.cells, [[12, 0, 0], [0, 0, 0], [0, 0, 1]]);
        assert_eq!(matrix.labels, ["n0-1", "n2-3", "n4-5"]);
        let matrix = of(1, 12, 5);
        assert_eq!(matrix.labels, ["0-2", "3-5", "6-8", "9-11"]);
        assert_eq!((matrix.cells[0][0], matrix.cells[1][0], matrix.received(0)), (5, 7, 12));
        assert_eq!(of(12, 1, 12).labels[11], "11");
    }
}
