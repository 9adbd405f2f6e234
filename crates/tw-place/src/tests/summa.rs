//! Square products by LSHS beside SUMMA.

use super::*;

/// Bytes that cross into the busiest node.
fn into_busiest_node(placed: &Placed, machine: &Machine) -> u64 {
    let mut into = vec![0; machine.nodes as usize];
    for transfer in placed.traffic.transfers() {
        let (from, to) = (machine.node_of(transfer.from), machine.node_of(transfer.to));
        into[to as usize] += if from == to { 0 } else { transfer.bytes };
    }
    into.into_iter().max().unwrap_or(0)
}

/// The paper counts what crosses between nodes, whose workers share memory, and finds itself about as fast as SUMMA. Two things are compared:
///
/// - bytes into the busiest node, with SUMMA on the same grid of nodes: there a node receives what it lacks of its rows of `x` and of its columns of `y`, once;
/// - time, with the same blocks summed each by one worker of a grid of all workers, which is SUMMA where nodes do not matter.
///
/// Neither is more than a quarter larger. Sizes are those of the paper, 2 GB on one node to 32 GB on 16 in the blocks it found best (the last are 12 x 12 for
/// 512 workers), and some in blocks for all workers.
#[test]
fn square_products_keep_up_with_summa() {
    let paper = [(15812, 3953, 1), (22362, 3727, 2), (31624, 3953, 4), (44728, 5591, 8), (63252, 5271, 16)];
    for (n, tile, nodes) in paper.into_iter().chain([(32768, 1024, 16), (16384, 1024, 4), (32768, 2048, 16)]) {
        let text = format!(
            "input x: f64[{n}, {n}] tile({tile}, {tile})\ninput y: f64[{n}, {n}] tile({tile}, {tile})\nz = x @ y\noutput z\n"
        );
        let machine = Machine::of(nodes, 32).unwrap();
        let grid = node_grid(nodes as u64, &[n / tile, n / tile]);
        let lacked = |side: u64| n * n * 8 / side - n * n * 8 / nodes as u64;
        let summa = lacked(grid[0]) + lacked(grid[1]);
        let lshs = placed_as_planned(&text, (nodes, 32), &Lshs);
        let received = into_busiest_node(&lshs, &machine);
        let what = format!("{n} in tiles of {tile} on {nodes} nodes");
        assert!(4 * received <= 5 * summa, "{what}: {received} bytes, {summa} by SUMMA");
        let by_workers = placed_as_planned(&text, (nodes, 32), &Pattern);
        let ratio = lshs.simulation.makespan / by_workers.simulation.makespan;
        assert!(ratio <= 1.25, "{what}: {ratio} of the time");
    }
}
