//! The layout that every tensor has where nobody asks for another: blocks dealt over a grid of nodes, and over the workers of each node.

use std::collections::BTreeMap;

use tw_ir::workflow::{BlockId, BlockSet, BlockSetId, Boxes, Workflow};
use tw_ir::{Axis, EntityRef};

use super::machine::Machine;

/// Where the blocks of one set lie: block (i, j, ..) on node (i % g1, j % g2, ..) of a grid of nodes, in turn on its workers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layout {
    /// Tiles along every axis.
    tiles: Vec<u64>,
    /// Nodes along every axis.
    nodes: Vec<u64>,
    workers: u64,
    n_workers: u64,
}

impl Layout {
    /// The layout of a set of blocks on a machine.
    pub fn of(set: &BlockSet, machine: &Machine) -> Layout {
        Layout::of_tiles(
            match &set.boxes {
                Boxes::Grid(axes) => axes.iter().map(Axis::n_tiles).collect(),
                Boxes::List(list) => vec![list.len() as u64],
            },
            machine,
        )
    }

    /// The layout of a set with so many tiles along every axis.
    fn of_tiles(tiles: Vec<u64>, machine: &Machine) -> Layout {
        let (workers, n_workers) = (machine.workers as u64, machine.n_workers() as u64);
        let (n_nodes, n_blocks) = (machine.nodes as u64, tiles.iter().product());
        let nodes = node_grid(n_nodes, &tiles);
        let reached: u64 = nodes.iter().zip(&tiles).map(|(&nodes, &tiles)| nodes.min(tiles)).product();
        // A grid that is longer than there are tiles leaves nodes without blocks; dealt in turn, all have some.
        if reached < n_nodes.min(n_blocks) {
            return Layout { tiles: vec![n_blocks], nodes: vec![n_nodes], workers, n_workers };
        }
        Layout { tiles, nodes, workers, n_workers }
    }

    /// The worker of the block at a row-major position of the set.
    pub fn worker(&self, position: u64) -> u32 {
        let (mut node, mut local, mut rest) = (0, 0, position);
        let mut place = 1;
        let mut local_place = 1;
        for (&tiles, &nodes) in self.tiles.iter().zip(&self.nodes).rev() {
            let tiles = tiles.max(1);
            let coordinate = rest % tiles;
            rest /= tiles;
            node += coordinate % nodes * place;
            place *= nodes;
            local += coordinate / nodes * local_place;
            local_place *= tiles.div_ceil(nodes);
        }
        ((node * self.workers + local % self.workers) % self.n_workers) as u32
    }

    /// Nodes along every axis.
    pub fn nodes(&self) -> &[u64] {
        &self.nodes
    }
}

/// Layouts of all sets of a workflow.
///
/// A set whose grid cuts that of another into smaller blocks lies where the larger ones lie: what is made from a block, part by part, stays with it.
pub struct Layouts<'a> {
    workflow: &'a Workflow,
    layouts: Vec<Layout>,
    /// For every set whose grid cuts a coarser one: that grid.
    coarser: Vec<Option<Vec<Axis>>>,
}

impl<'a> Layouts<'a> {
    /// The layouts on a machine.
    pub fn new(workflow: &'a Workflow, machine: &Machine) -> Layouts<'a> {
        let mut grids: BTreeMap<Vec<u64>, Vec<&[Axis]>> = BTreeMap::new();
        for set in workflow.sets.values() {
            if let Boxes::Grid(axes) = &set.boxes {
                let alike = grids.entry(axes.iter().map(Axis::extent).collect()).or_default();
                if !alike.contains(&axes.as_slice()) {
                    alike.push(axes);
                }
            }
        }
        let coarser = |set: &BlockSet| {
            let Boxes::Grid(axes) = &set.boxes else { return None };
            let alike = grids.get(&axes.iter().map(Axis::extent).collect::<Vec<u64>>())?;
            // Grids with few blocks would leave most workers without any.
            let large = |n: u64| n < set.n_blocks() && 2 * n >= machine.n_workers() as u64;
            let candidates = alike.iter().filter(|grid| large(n_blocks(grid)) && refines(axes, grid));
            candidates.min_by_key(|grid| n_blocks(grid)).map(|grid| grid.to_vec())
        };
        let coarser: Vec<Option<Vec<Axis>>> = workflow.sets.values().map(coarser).collect();
        let layouts = workflow.sets.values().zip(&coarser).map(|(set, coarser)| match coarser {
            Some(grid) => Layout::of_tiles(grid.iter().map(Axis::n_tiles).collect(), machine),
            None => Layout::of(set, machine),
        });
        Layouts { workflow, layouts: layouts.collect(), coarser }
    }

    /// The worker of a block.
    pub fn worker(&self, block: BlockId) -> u32 {
        let set = self.workflow.set_of(block);
        let position = self.position(set, block);
        let position = match (&self.coarser[set.index()], &self.workflow.sets[set].boxes) {
            (Some(coarse), Boxes::Grid(fine)) => position_in(coarse, fine, position),
            _ => position,
        };
        self.layouts[set.index()].worker(position)
    }

    fn position(&self, set: BlockSetId, block: BlockId) -> u64 {
        (block.as_u32() - self.workflow.sets[set].first) as u64
    }
}

fn n_blocks(grid: &[Axis]) -> u64 {
    grid.iter().map(Axis::n_tiles).product()
}

/// True if every block of the one grid lies inside a block of the other.
fn refines(fine: &[Axis], coarse: &[Axis]) -> bool {
    fine.iter().zip(coarse).all(|(fine, coarse)| fine == coarse || fine.refine(coarse) == *fine)
}

/// The row-major position of the coarse block in which a fine one lies.
fn position_in(coarse: &[Axis], fine: &[Axis], position: u64) -> u64 {
    let (mut rest, mut place, mut found) = (position, 1, 0);
    for (coarse, fine) in coarse.iter().zip(fine).rev() {
        let n = fine.n_tiles().max(1);
        found += coarse.tile_of(fine.range(rest % n).start) * place;
        rest /= n;
        place *= coarse.n_tiles().max(1);
    }
    found
}

/// Nodes as a grid over axes with so many tiles: the factors of their number go, largest first, to the axis with the most tiles for each node. So
/// blocks of a node are as square as tiles allow.
pub fn node_grid(nodes: u64, tiles: &[u64]) -> Vec<u64> {
    let mut grid = vec![1; tiles.len()];
    for factor in prime_factors(nodes).into_iter().rev() {
        let room = |axis: usize| tiles[axis] as f64 / grid[axis] as f64;
        if let Some(axis) = (0..tiles.len()).max_by(|&a, &b| room(a).total_cmp(&room(b)).then(b.cmp(&a))) {
            grid[axis] *= factor;
        }
    }
    grid
}

/// The prime factors of a number, smallest first.
pub(super) fn prime_factors(mut n: u64) -> Vec<u64> {
    let mut factors = Vec::new();
    let mut factor = 2;
    while factor * factor <= n {
        while n.is_multiple_of(factor) {
            factors.push(factor);
            n /= factor;
        }
        factor += 1;
    }
    if n > 1 {
        factors.push(n);
    }
    factors
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_follow_tiles() {
        assert_eq!(node_grid(16, &[8, 8]), [4, 4]);
        assert_eq!(node_grid(10, &[100]), [10]);
        assert_eq!(node_grid(6, &[100, 1]), [6, 1]);
        assert_eq!(node_grid(7, &[]), [0u64; 0]);
        assert_eq!(prime_factors(360), [2, 2, 2, 3, 3, 5]);
        assert_eq!(prime_factors(1), [0u64; 0]);
    }

    #[test]
    fn blocks_are_dealt_over_nodes_then_workers() {
        let layout = Layout { tiles: vec![4, 4], nodes: vec![2, 2], workers: 2, n_workers: 8 };
        let nodes: Vec<u32> = (0..16).map(|position| layout.worker(position) / 2).collect();
        assert_eq!(nodes, [0, 1, 0, 1, 2, 3, 2, 3, 0, 1, 0, 1, 2, 3, 2, 3]);
        let mut counts = [0; 8];
        (0..16).for_each(|position| counts[layout.worker(position) as usize] += 1);
        assert_eq!(counts, [2; 8]);
    }
}
