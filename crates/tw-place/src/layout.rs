//! The default layout of a tensor, NumS's hierarchical layout: its blocks are dealt over a mesh of nodes, and over the workers of each node.

use std::collections::BTreeMap;

use tw_ir::workflow::{BlockId, BlockSet, BlockSetId, Boxes, Workflow};
use tw_ir::{Axis, EntityRef, Grid, shape};

use super::machine::Machine;

/// The layout of one set of blocks: block (i, j, ..) is on node (i % g1, j % g2, ..) of a mesh of nodes, dealt in turn over its workers.
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
                Boxes::Grid(grid) => grid.tiles_per_axis(),
                Boxes::List(list) => vec![list.len() as u64],
            },
            machine,
        )
    }

    /// The layout of a set with these numbers of tiles along its axes.
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
        let (node, turn) = self.place(position);
        self.worker_in_turn(node, turn)
    }

    /// The node of the block at a row-major position of the set, and its number among those of the node.
    fn place(&self, position: u64) -> (u64, u64) {
        let coords = shape::unravel(position, &self.tiles);
        coords.iter().zip(&self.tiles).zip(&self.nodes).fold((0, 0), |(node, turn), ((tile, &tiles), &nodes)| {
            (node * nodes + tile % nodes, turn * tiles.max(1).div_ceil(nodes) + tile / nodes)
        })
    }

    fn worker_in_turn(&self, node: u64, turn: u64) -> u32 {
        ((node * self.workers + turn % self.workers) % self.n_workers) as u32
    }

    /// Nodes along every axis.
    pub fn nodes(&self) -> &[u64] {
        &self.nodes
    }
}

/// Layouts of all sets of a workflow.
///
/// A set whose grid refines that of another set follows that set: a block made from a part of a larger block stays on the worker of the larger block. If there
/// are fewer larger blocks than workers, it stays on the node and is dealt over the workers of the node.
pub struct Layouts<'a> {
    workflow: &'a Workflow,
    layouts: Vec<Layout>,
    /// For each set whose grid refines a coarser grid: that grid.
    coarser: Vec<Option<Coarser<'a>>>,
}

/// A grid that another grid refines.
struct Coarser<'a> {
    grid: &'a Grid,
    /// True if it has at least one block per worker, so that the parts of a block stay on one worker.
    for_workers: bool,
}

impl<'a> Layouts<'a> {
    /// The layouts on a machine.
    pub fn new(workflow: &'a Workflow, machine: &Machine) -> Layouts<'a> {
        let mut grids: BTreeMap<Vec<u64>, Vec<&'a Grid>> = BTreeMap::new();
        for set in workflow.sets.values() {
            if let Boxes::Grid(axes) = &set.boxes {
                let alike = grids.entry(axes.shape()).or_default();
                if !alike.contains(&axes) {
                    alike.push(axes);
                }
            }
        }
        let coarser = |set: &BlockSet| {
            let Boxes::Grid(axes) = &set.boxes else { return None };
            let alike = grids.get(&axes.shape())?;
            let cut = || alike.iter().copied().filter(|grid| grid.n_blocks() < set.n_blocks() && refines(axes, grid));
            // Grids with few blocks would leave most workers, or nodes, without any.
            let fewest_for =
                |n: usize| cut().filter(|grid| 2 * grid.n_blocks() >= n as u64).min_by_key(|grid| grid.n_blocks());
            let for_workers = fewest_for(machine.n_workers()).map(|grid| Coarser { grid, for_workers: true });
            let for_nodes = || fewest_for(machine.nodes as usize).map(|grid| Coarser { grid, for_workers: false });
            for_workers.or_else(for_nodes)
        };
        let coarser: Vec<Option<Coarser<'a>>> = workflow.sets.values().map(coarser).collect();
        let layouts = workflow.sets.values().zip(&coarser).map(|(set, coarser)| match coarser {
            Some(Coarser { grid, .. }) => Layout::of_tiles(grid.tiles_per_axis(), machine),
            None => Layout::of(set, machine),
        });
        Layouts { workflow, layouts: layouts.collect(), coarser }
    }

    /// The worker of a block.
    pub fn worker(&self, block: BlockId) -> u32 {
        let set = self.workflow.set_of(block);
        let position = self.position(set, block);
        let layout = &self.layouts[set.index()];
        match (&self.coarser[set.index()], &self.workflow.sets[set].boxes) {
            (Some(Coarser { grid, for_workers }), Boxes::Grid(fine)) => {
                let within = position_in(grid, fine, position);
                let (node, turn) = layout.place(within.block);
                layout.worker_in_turn(node, if *for_workers { turn } else { turn * within.n_parts + within.part })
            }
            _ => layout.worker(position),
        }
    }

    fn position(&self, set: BlockSetId, block: BlockId) -> u64 {
        (block.as_u32() - self.workflow.sets[set].first) as u64
    }
}

/// True if each block of one grid lies inside a block of the other, up to half a block.
fn refines(fine: &[Axis], coarse: &[Axis]) -> bool {
    let inside = |fine: &Axis, coarse: &Axis| fine == coarse || fine.refine(coarse) == *fine;
    fine.iter().zip(coarse).all(|(fine, coarse)| inside(fine, coarse) || nearly_refines(fine, coarse))
}

/// True if each tile of one axis contains the midpoints of equally many tiles of the other. Midpoints, because halves of tiles of odd length all have one length
/// and so do not begin where the tiles begin.
fn nearly_refines(fine: &Axis, coarse: &Axis) -> bool {
    let n = coarse.n_tiles().max(1);
    let times = fine.n_tiles() / n;
    fine.n_tiles() == times * n && (0..fine.n_tiles()).all(|tile| coarse.tile_of(middle(fine, tile)) == tile / times)
}

fn middle(axis: &Axis, tile: u64) -> u64 {
    let range = axis.range(tile);
    range.start + (range.end - range.start) / 2
}

/// The position of a fine block in a coarser grid.
struct Within {
    /// The row-major position of the coarse block.
    block: u64,
    /// Its number among the fine blocks of the coarse block, and how many there are.
    part: u64,
    n_parts: u64,
}

fn position_in(coarse_grid: &Grid, fine_grid: &Grid, position: u64) -> Within {
    let mut within = Within { block: 0, part: 0, n_parts: 1 };
    let mut place = 1;
    for (axis, tile) in fine_grid.tiles_from_last(position) {
        let (coarse, fine) = (&coarse_grid[axis], &fine_grid[axis]);
        let around = coarse.tile_of(middle(fine, tile));
        // The first whose middle lies in there may begin before it.
        let start = coarse.range(around).start;
        let first = fine.tile_of(start);
        let first = if middle(fine, first) < start { first + 1 } else { first };
        within.block += around * place;
        place *= coarse.n_tiles().max(1);
        within.part += tile.saturating_sub(first) * within.n_parts;
        within.n_parts *= fine.n_tiles().max(1).div_ceil(coarse.n_tiles().max(1));
    }
    within
}

/// A mesh of nodes over axes with these numbers of tiles. The prime factors of the number of nodes go, largest first, to the axis with the most tiles per node.
/// So the blocks of a node are as square as the tiles allow.
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
    fn parts_of_blocks_are_found_though_they_are_not_cut_evenly() {
        let grid = |cuts: [(u64, u64); 2]| Grid::from_iter(cuts.map(|(extent, tile)| Axis::Uniform { extent, tile }));
        // Halves of tiles of seven.
        let (fine, coarse) = (grid([(84, 4), (84, 7)]), grid([(84, 7), (84, 7)]));
        assert_eq!((fine[0].n_tiles(), coarse[0].n_tiles()), (21, 12));
        assert!(!refines(&fine, &coarse));
        let (fine, coarse) = (grid([(34, 3), (35, 5)]), grid([(34, 6), (35, 5)]));
        assert!(refines(&fine, &coarse));
        let (fine, coarse) = (grid([(58, 15), (35, 5)]), grid([(58, 29), (35, 5)]));
        assert!(refines(&fine, &coarse));
        let found: Vec<(u64, u64)> =
            (0..4).map(|row| position_in(&coarse, &fine, row * 7 + 2)).map(|w| (w.block, w.part)).collect();
        assert_eq!(found, [(2, 0), (2, 1), (9, 0), (9, 1)]);
        assert_eq!(position_in(&coarse, &fine, 0).n_parts, 2);
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
