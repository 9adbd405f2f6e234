//! Facts that placements must have.

use tw_ir::plan::Plan;
use tw_ir::workflow;

use super::*;
use crate::lang::{NoFiles, parse_program};
use crate::{PlanOptions, plan_segment};

/// The plan of a program text, cut into tiles of this length.
fn plan_of(text: &str, tile: u64) -> Plan {
    let unit = parse_program(text, &Default::default(), &NoFiles, &Default::default()).unwrap();
    let options = PlanOptions { tile: Some(tile), ..PlanOptions::default() };
    plan_segment(&unit.program, &options).unwrap().plan
}

fn placed(text: &str, tile: u64, (nodes, workers): (u32, u32), scheduler: &dyn Scheduler) -> Placed {
    let machine = Machine::of(nodes, workers).unwrap();
    let placed = place(&plan_of(text, tile), &machine, scheduler).unwrap();
    workflow::verify(&placed.workflow).unwrap();
    placed
}

/// Messages between nodes.
fn crossings(placed: &Placed, machine: &Machine) -> usize {
    let crosses = |transfer: &&Transfer| machine.node_of(transfer.from) != machine.node_of(transfer.to);
    placed.traffic.transfers().iter().filter(crosses).count()
}

#[test]
fn elementwise_on_aligned_operands_sends_nothing() {
    let text = "input x: f64[80, 80]\ninput y: f64[80, 80]\nz = x * y + x\noutput z\n";
    for scheduler in [&Lshs as &dyn Scheduler, &Pattern] {
        for machine in [(4, 1), (3, 2), (16, 4), (1, 7)] {
            let placed = placed(text, 8, machine, scheduler);
            assert_eq!(placed.simulation.wire_bytes(), 0, "{} on {machine:?}", scheduler.name());
        }
    }
}

#[test]
fn sums_cross_between_nodes_once_for_every_node_but_one() {
    // Nodes, and blocks on each.
    for (nodes, blocks) in [(16, 32), (16, 31), (10, 10), (16, 7), (4, 3)] {
        let rows = 4 * nodes as u64 * blocks;
        let text = format!("input x: f64[{rows}, 4]\ninput y: f64[{rows}, 4]\nz = transpose(x) @ y\noutput z\n");
        for workers in [1, 3] {
            let machine = Machine::of(nodes, workers).unwrap();
            let placed = placed(&text, 4, (nodes, workers), &Lshs);
            assert_eq!(crossings(&placed, &machine), nodes as usize - 1, "{nodes} nodes of {workers}, {blocks} blocks");
        }
    }
}

#[test]
fn a_sum_over_nodes_takes_as_many_rounds_as_a_tree_is_deep() {
    let machine = Machine::of(10, 1).unwrap();
    let placed = placed("input x: f64[400]\ns = sum(x)\noutput s\n", 4, (10, 1), &Lshs);
    assert_eq!(crossings(&placed, &machine), 9);
    // The home receives one message in every round of the tree.
    let received = |worker: u32| placed.traffic.transfers().iter().filter(|transfer| transfer.to == worker).count();
    assert_eq!((0..10).map(received).max(), Some(4));
}

#[test]
fn products_of_a_square_grid_send_rows_and_columns() {
    let (side, per_node) = (4u64, 2u64);
    let n = side * per_node * 4;
    let text = format!("input x: f64[{n}, 4]\ninput y: f64[{n}, 4]\nz = x @ transpose(y)\noutput z\n");
    let placed = placed(&text, 4, ((side * side) as u32, 1), &Lshs);
    let most = (0..side * side)
        .map(|node| placed.traffic.transfers().iter().filter(|transfer| transfer.to as u64 == node).count() as u64);
    // Every node reads `per_node` row blocks of each operand, most of which are elsewhere.
    assert!(most.max().unwrap() <= 2 * per_node);
}

#[test]
fn pattern_products_reduce_in_place_along_rows_and_columns() {
    let text = "input a: f64[96, 96]\ninput b: f64[96, 96]\nc = a @ b\noutput c\n";
    for (workers, grid) in [(4, [2, 2]), (6, [3, 2]), (16, [4, 4]), (7, [7, 1])] {
        let placed = placed(text, 8, (workers, 1), &Pattern);
        let [rows, columns] = grid;
        for transfer in placed.traffic.transfers() {
            let name = &placed.workflow.sets[placed.workflow.set_of(transfer.block)].name;
            assert!(name == "a" || name == "b", "{name} is sent");
        }
        for block in 0..placed.workflow.n_blocks() {
            let block = tw_ir::EntityRef::new(block);
            let readers = placed.traffic.of_block(block).count() + 1;
            assert!(readers <= rows.max(columns), "{readers} of {workers} workers read one block");
        }
        let (_, share) = placed.simulation.flops_max();
        assert!(share < 1.2, "{share} on {workers}");
        assert!(placed.simulation.workers.iter().all(|worker| worker.tasks > 0));
    }
}

#[test]
fn blocks_start_with_equal_memory_and_no_network() {
    let placed = placed("input x: f64[2500]\ny = x + 1\noutput y\n", 25, (10, 1), &Lshs);
    let first = placed.simulation.workers[0];
    for worker in &placed.simulation.workers {
        assert_eq!((worker.peak_bytes, worker.received_bytes, worker.sent_bytes), (first.peak_bytes, 0, 0));
    }
}

#[test]
fn halos_send_rows() {
    let text = "input x: f64[64, 64]\ny[i, j] = x[clamp(i - 1), j] + x[i, j] + x[clamp(i + 1), j]\noutput y\n";
    let placed = placed(text, 16, (4, 1), &Pattern);
    let whole = 16 * 16 * 8;
    assert!(placed.simulation.wire_bytes() > 0);
    assert!(
        placed.traffic.transfers().iter().all(|transfer| transfer.bytes < whole),
        "{:?}",
        placed.traffic.transfers()
    );
}

#[test]
fn one_worker_sends_nothing_and_all_others_work() {
    let text = "input a: f64[64, 64]\nb = a @ a\nc = sum(b * b)\noutput c\n";
    for scheduler in [&Lshs as &dyn Scheduler, &Pattern, &RoundRobin] {
        assert_eq!(placed(text, 8, (1, 1), scheduler).simulation.wire_bytes(), 0);
        for workers in 2..=9 {
            let placed = placed(text, 8, (workers, 1), scheduler);
            let idle = placed.simulation.workers.iter().filter(|worker| worker.tasks == 0).count();
            assert_eq!(idle, 0, "{} leaves {idle} of {workers} idle", scheduler.name());
            assert!(placed.simulation.makespan >= placed.simulation.critical_path);
        }
    }
}
