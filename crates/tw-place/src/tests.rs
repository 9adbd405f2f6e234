//! Facts that placements must have.

use tw_ir::workflow;

use super::placed::place;
use super::*;
use tw_lang::{NoFiles, parse_program};
use tw_plan::{PlanOptions, Planned, plan_segment};

mod everyday;
mod summa;

/// The plan of a program text, cut into tiles of this length.
fn plan_of(text: &str, tile: u64) -> Planned {
    let unit = parse_program(text, &Default::default(), &NoFiles, &Default::default()).unwrap();
    let options = PlanOptions { tile: Some(tile), ..PlanOptions::default() };
    plan_segment(&unit.program, &options).unwrap()
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

/// What a scheduler makes of a program with the blocks that the planner chooses.
fn placed_as_planned(text: &str, (nodes, workers): (u32, u32), scheduler: &dyn Scheduler) -> Placed {
    let unit = parse_program(text, &Default::default(), &NoFiles, &Default::default()).unwrap();
    let plan = plan_segment(&unit.program, &PlanOptions::default()).unwrap();
    place(&plan, &Machine::of(nodes, workers).unwrap(), scheduler).unwrap()
}

/// The paper's measurements: two arrays of 1 TiB in 512 blocks of rows on 16 nodes of 32 workers. The planner cuts the result into smaller blocks.
#[test]
fn elementwise_sends_nothing_at_the_papers_sizes() {
    for (blocks, nodes, workers) in [(512, 16, 32), (1024, 16, 32), (500, 16, 32), (7, 7, 1)] {
        let rows = 1048576 * blocks;
        let text = format!(
            "input x: f64[{rows}, 256] tile(1048576, -1)\ninput y: f64[{rows}, 256] tile(1048576, -1)\nz = x + y\noutput z\n"
        );
        for scheduler in [&Lshs as &dyn Scheduler, &Pattern] {
            let placed = placed_as_planned(&text, (nodes, workers), scheduler);
            let name = scheduler.name();
            assert_eq!(placed.simulation.wire_bytes(), 0, "{name}: {blocks} blocks on {nodes} x {workers}");
        }
    }
}

/// dask's default sends a task to a worker that has its operands, not where a sum is to be.
#[test]
fn round_robin_spreads_contributions() {
    let text = "input x: f64[65536, 16]\ninput y: f64[65536, 16]\nz = transpose(x) @ y\noutput z\n";
    for (nodes, workers) in [(16, 32), (4, 1), (3, 5)] {
        let placed = placed(text, 64, (nodes, workers), &RoundRobin);
        let (_, share) = placed.simulation.flops_max();
        assert!(share < 1.1, "{share} of an even share on {nodes} x {workers}");
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
    for (side, per_node) in [(2, 1), (2, 3), (3, 1), (4, 1), (4, 2), (5, 1)] {
        let n = side * side * per_node * 4;
        let text = format!("input x: f64[{n}, 4]\ninput y: f64[{n}, 4]\nz = x @ transpose(y)\noutput z\n");
        let placed = placed(&text, 4, ((side * side) as u32, 1), &Lshs);
        let received = |node: u64| {
            let transfers = placed.traffic.transfers().iter();
            transfers.filter(|transfer| transfer.to as u64 == node).count() as u64
        };
        // A node of the grid needs `side * per_node` blocks of each operand. NumS counts on having `per_node` of either, 2 (side - 1) per_node receipts; but where both operands
        // have one layout, a node off the diagonal has blocks of one of them only.
        let most = (0..side * side).map(received).max();
        assert_eq!(most, Some((2 * side - 1) * per_node), "{side} x {side} nodes, {per_node} blocks on each");
    }
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

#[test]
fn workers_do_not_wait_for_one_result_after_the_other() {
    // Depth first, all work on one row of blocks of `c` at a time.
    let text = "input a: f64[960, 960]\nb = a @ a\nc = b @ a\nd = exp(c) @ b\noutput d\n";
    let (placed, _) = jointly(text, 16);
    let machine = Machine::of(16, 1).unwrap();
    let busy = placed.simulation.workers.iter().map(|worker| worker.busy).fold(0.0, f64::max);
    let depth_first = tw_plan::depth_first(&placed.workflow);
    let traffic = Traffic::of(&placed.workflow, &depth_first, &placed.sites, &machine).unwrap();
    let seconds = machine.task_seconds(&placed.workflow);
    let before = Before::default();
    let slow =
        Simulation::run(&placed.workflow, &depth_first, &placed.sites, &machine, &traffic, &before, &seconds).unwrap();
    assert_eq!(slow.wire_bytes(), placed.simulation.wire_bytes());
    assert!(placed.simulation.makespan < slow.makespan, "{} {}", placed.simulation.makespan, slow.makespan);
    assert!(placed.simulation.makespan >= busy);
    // Every task once, each after what it reads.
    let mut sorted = placed.order.clone();
    sorted.sort();
    let mut expected = depth_first;
    expected.sort();
    assert_eq!(sorted, expected);
    let makers = tw_plan::Makers::of(&placed.workflow);
    let mut ran = std::collections::HashSet::new();
    for &task in &placed.order {
        let operands = placed.workflow.present_operands(task).filter_map(|operand| makers.of_block(operand.block));
        assert!(operands.chain(makers.previous(task)).all(|before| ran.contains(&before)), "{task}");
        ran.insert(task);
    }
}

#[test]
fn all_workers_have_blocks_if_there_are_enough() {
    let text = "input a: f64[64, 64]\ninput b: f64[64, 64]\nc = a @ b\noutput c\n";
    for scheduler in [&Pattern as &dyn Scheduler, &RoundRobin] {
        for workers in [7, 11, 13, 16] {
            let placed = placed(text, 16, (workers, 1), scheduler);
            let idle = placed.simulation.workers.iter().filter(|worker| worker.tasks == 0).count();
            assert_eq!(idle, 0, "{} leaves {idle} of {workers} idle", scheduler.name());
        }
    }
}

fn written(text: &str, notation: &str, workers: u32) -> tw_ir::error::Result<Placed> {
    let unit = parse_program(text, &Default::default(), &NoFiles, &Default::default()).unwrap();
    let notation = Notation::parse(notation)?;
    let machine = Machine::of(workers, 1)?;
    let options = PlanOptions::default();
    let request = Request { distribution: Some(&notation), limit: 100, ..Request::new(&options, &machine) };
    let rivals = request.rivals(&Before::default(), &unit.program)?;
    notation.check_names(&[&rivals.program])?;
    Ok(rivals.placed.into_iter().find(|placed| placed.scheduler == "tdn").expect("it was asked for"))
}

#[test]
fn limits_of_memory_are_kept_or_named() {
    let text = product_text([4000, 4000, 4000]);
    let unit = parse_program(&text, &Default::default(), &NoFiles, &Default::default()).unwrap();
    let rivals = |memory: Option<u64>| {
        let machine = Machine { memory, ..Machine::of(4, 1).unwrap() };
        Rivals::of(&unit.program, &PlanOptions::default(), &machine, DEFAULT_LIMIT)
    };
    let peak = |placed: &Placed| placed.simulation.peak_bytes_max();
    let algebraic = |rivals: Rivals| rivals.placed.into_iter().find(|placed| placed.scheduler == "algebraic");
    let free = peak(&algebraic(rivals(None).unwrap()).unwrap());
    // Two thirds of that are enough with smaller tiles, and all plans that are shown keep the limit.
    let limit = free * 2 / 3;
    let limited = rivals(Some(limit)).unwrap();
    assert!(limited.placed.iter().all(|placed| peak(placed) <= limit));
    assert!(algebraic(limited).is_some(), "{free} bytes without a limit");
    let error = rivals(Some(1 << 20)).unwrap_err();
    assert!(
        error.message().starts_with("no plan that was tried keeps every worker within 1048576 bytes; the best needs ")
    );
}

fn held_output(placed: &Placed, number: usize) -> Option<Homes> {
    Homes::output(placed, &placed.sites.homes(&placed.workflow), number)
}

#[test]
fn values_from_before_stay_where_they_are() {
    let program = |text: &str| parse_program(text, &Default::default(), &NoFiles, &Default::default()).unwrap().program;
    let (machine, options) = (Machine::of(4, 1).unwrap(), PlanOptions::default());
    let first = program("input a: f64[800, 800]\nb = a * 2\noutput b\n");
    let second = program("input b: f64[800, 800]\nc = b + 1\noutput c\n");
    for scheduler in ["algebraic", "lshs", "pattern", "roundrobin"] {
        let find = |rivals: Rivals| rivals.placed.into_iter().find(|placed| placed.scheduler == scheduler).unwrap();
        let made = find(Rivals::of(&first, &options, &machine, DEFAULT_LIMIT).unwrap());
        let held = held_output(&made, 0).unwrap();
        assert_eq!(held.shape(), [800, 800]);
        let bytes: Vec<u64> = held.elements(4).into_iter().map(|n| n * 8).collect();
        assert_eq!(bytes.iter().sum::<u64>(), 800 * 800 * 8);
        let before = Before { inputs: [("b".to_string(), held.clone())].into(), bytes: bytes.clone() };
        let next = find(Request::new(&options, &machine).rivals(&before, &second).unwrap());
        assert_eq!(Homes::input(&next, &next.sites.homes(&next.workflow), "b").as_ref(), Some(&held), "{scheduler}");
        // What is held is there all the time, and so is what is made in the end.
        let made = held_output(&next, 0).unwrap().elements(4);
        for ((worker, held), made) in next.simulation.workers.iter().zip(&bytes).zip(made) {
            assert!(worker.peak_bytes >= held + made * 8, "{scheduler}: {worker:?}");
        }
        // Whoever has a block adds to it; only dealing blocks out in turn may disagree.
        if scheduler != "roundrobin" {
            assert_eq!(next.simulation.wire_bytes(), 0, "{scheduler}");
        }
    }
    // A value in stripes is no reason to make stripes of everything: the product still has a grid.
    let made =
        Rivals::of(&program("input a: f64[800, 800]\nb = cumsum(a, axis=1)\noutput b\n"), &options, &machine, 100)
            .unwrap();
    let before =
        Before { inputs: [("b".to_string(), held_output(&made.placed[0], 0).unwrap())].into(), bytes: Vec::new() };
    let square = program("input b: f64[800, 800]\nc = b @ b\noutput c\n");
    let rivals = Request::new(&options, &machine).rivals(&before, &square).unwrap();
    let algebraic = rivals.placed.iter().find(|placed| placed.scheduler == "algebraic").unwrap();
    assert_eq!(rivals.grids.received_max(), algebraic.simulation.wire_bytes_max());
}

#[test]
fn distributions_are_kept() {
    let text = product_text([1600, 1600, 1600]);
    let words = |placed: &Placed| placed.simulation.wire_bytes_max() as f64 / 8.0;
    let n = 1600.0 * 1600.0;
    // Blocks everywhere: every worker receives its row of `a` and its column of `b`.
    let squares = "machine M(4, 4)\na(x, y) -> M(x, y)\nb(x, y) -> M(x, y)\nc(x, y) -> M(x, y)\n";
    let placed = written(&text, squares, 16).unwrap();
    assert_eq!(words(&placed), 2.0 * (n / 4.0 - n / 16.0));
    assert!(placed.simulation.flops_max().1 < 1.01);
    // Rows of `a` and `c`, `b` shared by all: everyone receives the rest of `b`.
    let rows = "machine M(16)\na(x, y) -> M(x)\nb(x, y) -> M(*)\nc(x, y) -> M(x)\n";
    assert_eq!(words(&written(&text, rows, 16).unwrap()), n - n / 16.0);
    // On one face: nobody else owns anything, and only the owners of `c` work.
    let face = "machine M(4, 4)\na(x, y) -> M(x, 0)\nb(x, y) -> M(x, 0)\nc(x, y) -> M(x, 0)\n";
    let placed = written(&text, face, 16).unwrap();
    let working = placed.simulation.workers.iter().filter(|worker| worker.tasks > 0).count();
    assert_eq!(working, 4);
    // What is not named follows what it reads.
    let one = written(&text, "machine M(2, 2)\nc(x, y) -> M(x, y)\n", 4).unwrap();
    assert!(one.simulation.flops_max().1 < 1.01);
}

#[test]
fn distributions_that_fit_nothing_are_refused() {
    let text = product_text([64, 64, 64]);
    for (notation, message) in [
        ("machine M(3)\n", "`M(3)` has 3 workers, the machine that is planned for 4"),
        ("machine M(4)\nq(x) -> M(x)\n", "the distribution names `q`, which the plan does not have"),
        ("machine M(4)\na(x) -> M(x)\n", "`a` has 2 axes, not 1"),
    ] {
        assert_eq!(written(&text, notation, 4).unwrap_err().message(), message);
    }
}

fn jointly(text: &str, workers: u32) -> (Placed, Grids) {
    let unit = parse_program(text, &Default::default(), &NoFiles, &Default::default()).unwrap();
    let machine = Machine::of(workers, 1).unwrap();
    let (placed, grids) = place_jointly(&unit.program, &PlanOptions::default(), &machine, DEFAULT_LIMIT).unwrap();
    workflow::verify(&placed.workflow).unwrap();
    (placed, grids)
}

/// Words per rank of the best grid of `p` workers for a product of `m` by `n` with `k` terms. Broadcasts (BMM), cross products (CMM), replication (RMM), SUMMA and 2.5D products are such grids.
fn best_grid([m, n, k]: [u64; 3], p: u64) -> f64 {
    let words = |a: u64, b: u64, c: u64| {
        let [m, n, k, a, b, c] = [m, n, k, a, b, c].map(|x| x as f64);
        m * k / (a * c) + k * n / (c * b) + m * n / (a * b) - (m * k + k * n + m * n) / p as f64
    };
    let divisors = |n: u64| (1..=n).filter(move |d| n.is_multiple_of(*d));
    divisors(p)
        .flat_map(|a| divisors(p / a).map(move |b| (a, b, p / a / b)))
        .map(|(a, b, c)| words(a, b, c))
        .fold(f64::INFINITY, f64::min)
}

fn product_text([m, n, k]: [u64; 3]) -> String {
    format!("input a: f64[{m}, {k}]\ninput b: f64[{k}, {n}]\nc = a @ b\noutput c\n")
}

#[test]
fn anchors_are_reached() {
    for (dims, p, expected) in [
        ([40_000, 40_000, 40_000], 10, 8.0e8),
        ([10_000, 10_000, 640_000], 10, 9.0e7),
        ([80_000, 80_000, 10_000], 10, 4.0e8),
        // The products of nearest-neighbour search.
        ([1_500_000, 6000, 6000], 8, 3.15e7),
        ([6000, 100_000, 100_000], 8, 3.0e8),
    ] {
        let (placed, grids) = jointly(&product_text(dims), p);
        let words = placed.simulation.wire_bytes_max() as f64 / 8.0;
        assert!(words <= expected * 1.000001, "{dims:?}: {words:e}, not {expected:e}");
        assert_eq!(placed.simulation.wire_bytes_max(), grids.received_max(), "the search knows what is sent");
        let (_, share) = placed.simulation.flops_max();
        assert!(share <= 1.05, "{share}");
    }
}

#[test]
fn products_are_as_good_as_the_best_grid() {
    let shapes = [
        [1000, 1000, 1000],
        [4000, 1000, 250],
        [1000, 1000, 100_000],
        [3000, 2000, 500],
        [50_000, 640, 640],
        [720, 720, 720],
        [640, 6000, 9000],
    ];
    for dims in shapes {
        for p in [2, 3, 4, 6, 7, 8, 12, 16, 27, 36, 61, 64] {
            let (placed, _) = jointly(&product_text(dims), p);
            let words = placed.simulation.wire_bytes_max() as f64 / 8.0;
            let best = best_grid(dims, p as u64);
            let (_, share) = placed.simulation.flops_max();
            assert!(words <= 1.02 * best + 64.0, "{dims:?} on {p}: {words}, the best grid has {best}");
            assert!(share <= 1.06, "{dims:?} on {p}: {share}");
        }
    }
}

#[test]
fn searched_grids_are_as_good_as_the_best_for_all_shapes_and_numbers_of_workers() {
    let sizes = [3200, 9000, 40_000, 640_000];
    // Every other one of 64 shapes, with sides that few numbers divide.
    for number in (0..64).step_by(2) {
        let dims = [number / 16, number / 4 % 4, number % 4].map(|k| sizes[k] + number as u64);
        let unit = parse_program(&product_text(dims), &Default::default(), &NoFiles, &Default::default()).unwrap();
        for p in 2..=64 {
            let machine = Machine::of(p as u32, 1).unwrap();
            let words = Grids::search(&unit.program, &machine, DEFAULT_LIMIT).received_max() as f64 / 8.0;
            let best = best_grid(dims, p);
            assert!(words <= 1.02 * best + 64.0, "{dims:?} on {p}: {words}, the best grid has {best}");
        }
    }
}

#[test]
fn no_plan_of_even_work_beats_the_bound() {
    let programs = [
        product_text([400, 300, 200]),
        "input a: f64[]\ninput b: f64[]\nc = a + b\noutput c\n".to_string(),
        "input a: f64[5]\nc = a + 1\noutput c\n".to_string(),
        "input a: f64[12, 12]\nc = a @ a\noutput c\n".to_string(),
        "input a: f64[200, 200]\ninput b: f64[200, 200]\nc[i, j] = sum[k](a[i, k] * b[k, j]) where k // 13 == i // 13\noutput c\n".to_string(),
        "input x: f64[160, 160]\ny = x @ x\nz = y @ x\nw = x.T @ z\noutput w\n".to_string(),
        "input x: f64[1600, 40]\ng = x.T @ x\nh = g @ g\ns = sum(h * g)\noutput s\n".to_string(),
        "input x: f64[1600, 40]\nz = (x - mean(x, axis=0)) / std(x, axis=0)\nw = z.T @ z\ns = sum(z, axis=1, keepdims=true)\noutput w\noutput s\n".to_string(),
        "input t: f64[32, 32, 32]\ninput b: f64[32, 8]\ninput c: f64[32, 8]\nm = einsum(\"ijk,jr,kr->ir\", t, b, c)\noutput m\n".to_string(),
    ];
    for text in &programs {
        let unit = parse_program(text, &Default::default(), &NoFiles, &Default::default()).unwrap();
        for (nodes, workers) in [(2, 1), (4, 4), (17, 1), (3, 2)] {
            let machine = Machine::of(nodes, workers).unwrap();
            let rivals = Rivals::of(&unit.program, &PlanOptions::default(), &machine, 2000).unwrap();
            for placed in rivals.placed.iter().filter(|placed| placed.simulation.flops_max().1 <= 1.01) {
                let (busiest, bound) = (placed.simulation.wire_bytes_max() as f64, rivals.bound_bytes);
                let by = placed.scheduler;
                assert!(
                    busiest >= bound * (1.0 - 1e-9) - 8.0,
                    "{by} on {nodes} x {workers}: {busiest} < {bound}\n{text}"
                );
            }
        }
    }
}

#[test]
fn sums_of_many_workers_are_spread_over_them() {
    let unit = parse_program(&product_text([4000; 3]), &Default::default(), &NoFiles, &Default::default()).unwrap();
    for (nodes, workers, slack) in [(1000, 1, 1.02), (100, 10, 1.02), (10, 8, 1.06), (20, 4, 1.06), (6, 6, 1.06)] {
        let machine = Machine::of(nodes, workers).unwrap();
        let (placed, _) = place_jointly(&unit.program, &PlanOptions::default(), &machine, DEFAULT_LIMIT).unwrap();
        let words = placed.simulation.wire_bytes_max() as f64 / 8.0;
        let best = best_grid([4000; 3], (nodes * workers).into());
        assert!(words <= slack * best, "{nodes} nodes of {workers}: {words}, the best grid has {best}");
    }
}

#[test]
fn stencils_on_a_grid_send_their_halos() {
    let n = 1200;
    let text = format!(
        "input x: f64[{n}, {n}]\ny[i, j] = x[clamp(i - 1), j] + x[clamp(i + 1), j] + x[i, clamp(j - 1)] + x[i, clamp(j + 1)]\noutput y\n"
    );
    let (placed, grids) = jointly(&text, 16);
    // A worker in the middle of a grid of four by four has four neighbours.
    let halo = 4 * (n / 4) * 8;
    assert!(placed.simulation.wire_bytes_max() <= halo, "{} > {halo}", placed.simulation.wire_bytes_max());
    assert!(grids.received_max() <= halo);
    assert!(placed.simulation.flops_max().1 < 1.01);
    // Borders that stay as they are, or are not there: parts of the inside and of the whole differ by a row or a column, so four corners come too.
    for made in ["x", "y"] {
        let inside = format!(
            "input x: f64[{n}, {n}]\n{made}[i, j] = x[i - 1, j] + x[i + 1, j] + x[i, j - 1] + x[i, j + 1] for i in 1..{m}, j in 1..{m}\noutput {made}\n",
            m = n - 1
        );
        let (placed, _) = jointly(&inside, 16);
        let received = placed.simulation.wire_bytes_max();
        assert!(received <= halo + 4 * 8, "{received} > {halo} for {made}");
        assert!(placed.simulation.flops_max().1 < 1.06, "{}", placed.simulation.flops_max().1);
    }
}

#[test]
fn other_operations_have_grids_too() {
    let inputs = "input x: f64[640, 320]\ninput at: i64[960]\ninput key: i64[640]\n";
    for (text, most) in [
        // Rows by themselves: nothing moves.
        ("s = sort(x, axis=1)\ny = cumsum(s, axis=1) + x\noutput y\n", 0),
        // Rows, then columns: everybody gets their columns of the other rows.
        ("s = sort(x, axis=1)\ny = cumsum(s, axis=0)\noutput y\n", 640 * 320 * 8 / 16),
        // Columns of what is gathered from, and everybody's indices.
        ("y = sum(take(x, at, axis=0), axis=0)\noutput y\n", 960 * 8),
        // A sum by key: parts of ten rows from everybody, combined in a tree.
        ("y = zeros(10, 320)\ny[key[i], j] += x[i, j]\noutput y\n", 4 * 10 * 320 * 8),
    ] {
        let (placed, grids) = jointly(&format!("{inputs}{text}"), 16);
        let received = placed.simulation.wire_bytes_max();
        assert_eq!(received, grids.received_max(), "{text}");
        assert!(received <= most, "{received} > {most}: {text}");
        assert!(placed.simulation.flops_max().1 < 1.06, "{}: {text}", placed.simulation.flops_max().1);
    }
}

#[test]
fn grids_for_time_end_sooner_where_statements_are_small() {
    // Products that take less time than their messages.
    let text = "input a: f64[48, 48]\nb = a @ a\nc = b @ a\nd = c @ b\noutput d\n";
    let unit = parse_program(text, &Default::default(), &NoFiles, &Default::default()).unwrap();
    let machine = Machine::of(16, 4).unwrap();
    let rivals = Rivals::of(&unit.program, &PlanOptions::default(), &machine, DEFAULT_LIMIT).unwrap();
    let find = |name: &str| &rivals.placed.iter().find(|placed| placed.scheduler == name).unwrap().simulation;
    assert!(find("timed").makespan < find("algebraic").makespan);
    let working = |name: &str| find(name).workers.iter().filter(|worker| worker.flops > 0).count();
    assert!(working("timed") < working("algebraic"), "{} {}", working("timed"), working("algebraic"));
}

#[test]
fn what_many_statements_read_is_sent_once() {
    let layers = |n: usize| {
        let mut text = String::from("input x0: f64[6400, 320]\ninput w: f64[320, 320]\n");
        (0..n).for_each(|k| text.push_str(&format!("x{} = tanh(x{k} @ w)\n", k + 1)));
        text + &format!("output x{n}\n")
    };
    let whole = 320 * 320 * 8;
    for n in [4, 40, 300] {
        let (placed, grids) = jointly(&layers(n), 32);
        // Rows on different workers: everybody gets what it does not own of the weights, and nothing else ever moves.
        assert_eq!(placed.simulation.wire_bytes_max(), grids.received_max());
        assert!(grids.received_max() <= whole, "{} for {n} layers", grids.received_max());
        assert!(placed.order.len() <= 40 * 32 + n * 32 * 4, "{} tasks for {n} layers", placed.order.len());
    }
}

#[test]
fn numbers_of_workers_that_have_no_factors_leave_some_idle() {
    // Sides of 4000 are too short for ten thousand workers: cutting parts of sums into a piece for each of them would slow the statement.
    for (p, fewer, n) in [(61, 60, 4000), (47, 45, 4000), (10_007, 9720, 40_000)] {
        let (placed, grids) = jointly(&product_text([n; 3]), p);
        let words = placed.simulation.wire_bytes_max() as f64 / 8.0;
        assert!(words <= 1.02 * best_grid([n; 3], fewer), "{words} on {p}");
        assert!(grids.largest() < p.into());
        assert!(placed.simulation.flops_max().1 <= 1.06);
    }
}

#[test]
fn many_variables_are_cut_as_far_as_workers_need() {
    let text = "input a: f64[8, 8, 8, 8, 8, 8]\ninput b: f64[8, 8, 8, 8, 8, 8]\nc = einsum(\"abcdef,defghi->abcghi\", a, b)\noutput c\n";
    let (placed, _) = jointly(text, 1024);
    assert!(placed.simulation.flops_max().1 <= 1.05);
}

#[test]
fn the_inside_of_a_new_array_is_cut_as_the_old_one() {
    let n = 1200;
    let text = format!(
        "input x: f64[{n}, {n}]\ny[i, j] = x[i - 1, j] + x[i + 1, j] + x[i, j - 1] + x[i, j + 1] for i in 1..{m}, j in 1..{m}\noutput y\n",
        m = n - 1
    );
    let (placed, _) = jointly(&text, 16);
    let halo = 4 * (n / 4) * 8;
    let received = placed.simulation.wire_bytes_max();
    assert!(received > 0 && received <= 2 * halo, "{received} > 2 * {halo}");
    assert!(placed.simulation.flops_max().1 < 1.06);
}

#[test]
fn statements_agree_on_who_is_idle() {
    let text = "input a: f64[200000, 50]\ninput b: f64[200000]\ng = a.T @ a\nr = a.T @ b\noutput g\noutput r\n";
    for p in [900, 1024, 1009] {
        let (placed, _) = jointly(text, p);
        // Rows stay where they are; parts of sums meet.
        let a = placed.workflow.sets.iter().find(|(_, set)| set.name == "a").map(|(id, _)| id);
        let moved = placed.traffic.transfers().iter().filter(|t| Some(placed.workflow.set_of(t.block)) == a).count();
        assert_eq!(moved, 0, "on {p}");
    }
}
