//! A workflow with a set of blocks whose sizes depend on data.

use super::*;
use crate::grid::Grid;
use crate::program::FunctionTable;
use crate::schedule::{Instance, InstanceId, Memory, Move, Placement, Schedule};
use crate::text::{parse_schedule, parse_workflow, print_schedule, print_workflow};
use crate::tiling::Axis;

/// Two rows of blocks stored as CSR, each summed into one dense block. The order of the schedule holds both sparse blocks at once.
const SPARSE: &str = r#"workflow {
    statement s0 "read"
    statement s1 "add"
    source 0 input "A" f64[4, 8]
    kernel k0 s0 = load 0
    kernel k1 s1 = combine accum sum f64
    blocks set0 s0 "A" f64[4, 8] grid(2, 8) format(0:dense, 1:compressed) sizes(72, 40..200) from b0
    blocks set1 s1 "B" f64[4, 8] grid(2, 8) from b2
    region [2..3, 0..8]
    output "B" = set1 f64
    t0 load k0 at 0 turn 0 () -> (b0)
    t1 load k0 at 1 turn 0 () -> (b1)
    t2 apply k1 at 0 turn 0 (b0) -> (b2)
    t3 apply k1 at 1 turn 0 (b1 region 1) -> (b3)
}
"#;

fn sparse() -> Workflow {
    let workflow = parse_workflow(SPARSE, &FunctionTable::default()).unwrap();
    assert_eq!(print_workflow(&workflow), SPARSE);
    workflow
}

fn order(workflow: &Workflow) -> Vec<TaskId> {
    workflow.tasks().collect()
}

#[test]
fn sizes_are_exact_or_bounds() {
    let workflow = sparse();
    let sizes: Vec<Size> = (0..4).map(|k| workflow.block_size(BlockId(k))).collect();
    let bound = Size::Bound { estimate: 40, max: 200 };
    assert_eq!(sizes, [Size::Exact(72), bound, Size::Exact(128), Size::Exact(128)]);
    assert_eq!((bound.estimate(), bound.max(), workflow.block_bytes(BlockId(1))), (40, 200, 200));
    // How much of a sparse block lies in a part is known from data alone.
    let operand = workflow.present_operands(TaskId(3)).next().unwrap();
    assert_eq!(workflow.operand_size(operand), Size::Bound { estimate: 20, max: 200 });
    let dense = BoxRegion::from_ranges([2..3, 0..8]);
    assert_eq!(workflow.part_size(BlockId(3), &dense), Size::Exact(64));
    same_sizes(&workflow);
}

/// Both ways to ask for sizes have one answer.
fn same_sizes(workflow: &Workflow) {
    let sizes = BlockSizes::of(workflow);
    for block in (0..workflow.n_blocks).map(BlockId) {
        assert_eq!(sizes.block(block), workflow.block_size(block), "{block}");
        for region in 0..=workflow.regions.len() as u32 {
            let operand = Operand { block, region };
            assert_eq!(sizes.operand(operand), workflow.operand_size(operand), "{block} {region}");
        }
    }
}

#[test]
fn sizes_of_even_and_uneven_cuts_are_those_of_the_blocks() {
    let axes = [
        Axis::uniform(12, 4),
        Axis::uniform(13, 4),
        Axis::whole(7),
        Axis::uniform(3, 8),
        Axis::whole(12).with_cuts(&[1, 5]),
        Axis::whole(0),
    ];
    let mut workflow = Workflow::default();
    let statement = workflow.statements.push(Statement { label: "s".into(), span: Span::text(0, 1), node: None });
    let mut add = |boxes: Boxes, shape: Vec<u64>| {
        workflow.add_set(BlockSet::dense("x".into(), DType::F64, shape, boxes, statement)).unwrap();
    };
    add(Boxes::Grid(Grid::default()), Vec::new());
    for a in &axes {
        for b in &axes {
            let grid = Grid::from_iter([a.clone(), b.clone()]);
            let shape = grid.shape();
            add(Boxes::Grid(grid), shape);
        }
    }
    add(
        Boxes::List(vec![BoxRegion::from_ranges(std::iter::once(0..2)), BoxRegion::from_ranges(std::iter::once(1..4))]),
        vec![4],
    );
    same_sizes(&workflow);
    assert!(workflow.n_blocks() > 50);
    // Sets are changed after they were added; sizes that are asked for then are those of the changed set.
    let first = BlockId(0);
    assert_eq!(BlockSizes::of(&workflow).block(first), Size::Exact(8));
    workflow.sets[BlockSetId(0)].dtype = DType::F32;
    same_sizes(&workflow);
    assert_eq!(BlockSizes::of(&workflow).block(first), Size::Exact(4));
}

#[test]
fn promises_count_the_most_that_a_block_can_take() {
    let workflow = sparse();
    let schedule = Schedule::freeze(workflow.clone(), order(&workflow), "tiled").unwrap();
    // The second sparse block and both sums.
    assert_eq!(schedule.peak_bytes(), 200 + 128 + 128);
    // A part of a sparse block that is sent to another rank may be all of it.
    let mut placement = Placement::new(2, vec![0, 0, 0, 1], Vec::new());
    let here = Memory::Host(0);
    let mut add = |block, region, memory| placement.add_instance(Instance { block: BlockId(block), region, memory });
    let (a, b) = (add(0, 0, here), add(1, 0, here));
    let (c, sent, d) = (add(2, 0, here), add(1, 1, Memory::Host(1)), add(3, 0, Memory::Host(1)));
    let mut steps = Vec::new();
    let mut task = |placement: &mut Placement, k, reads: &[InstanceId], write| {
        placement.add_task(reads.iter().copied().map(Some), [write]);
        steps.push(crate::schedule::Step::task(TaskId(k)));
    };
    task(&mut placement, 0, &[], a);
    task(&mut placement, 1, &[], b);
    task(&mut placement, 2, &[a], c);
    let moved = placement.add_move(Move { from: b, to: sent });
    steps.push(moved);
    placement.add_task([Some(sent)], [d]);
    steps.push(crate::schedule::Step::task(TaskId(3)));
    placement.set_results(vec![c, d]);
    let placed = Schedule::freeze_placed(workflow, steps, placement, None, "tiled").unwrap();
    assert_eq!(placed.peaks(), [72 + 200 + 128, 200 + 128]);
    let functions = FunctionTable::default();
    let back = Schedule::decode(&placed.encode(), &functions).unwrap();
    assert_eq!(
        (back.workflow(), back.placement(), back.peaks()),
        (placed.workflow(), placed.placement(), placed.peaks())
    );
}

#[test]
fn encodings_keep_formats_and_sizes() {
    let functions = FunctionTable::default();
    let frozen = |workflow: Workflow| {
        let order = order(&workflow);
        Schedule::freeze(workflow, order, "tiled").unwrap()
    };
    let schedule = frozen(sparse());
    let bytes = schedule.encode();
    let back = Schedule::decode(&bytes, &functions).unwrap();
    assert_eq!((back.workflow(), back.hash(), back.encode()), (schedule.workflow(), schedule.hash(), bytes));
    let read = parse_schedule(&print_schedule(&schedule), &functions).unwrap();
    assert_eq!((read.workflow(), read.hash()), (schedule.workflow(), schedule.hash()));
    // Sizes decide memory, formats also decide which bits lie in a block.
    let set = BlockSetId(0);
    for size in [Size::Exact(200), Size::Bound { estimate: 200, max: 200 }, Size::Bound { estimate: 40, max: 201 }] {
        let mut other = sparse();
        let Sizes::List(sizes) = &mut other.sets[set].sizes else { panic!() };
        sizes[1] = size;
        let other = frozen(other);
        assert!(other.hash() != schedule.hash() && other.bits() == schedule.bits(), "{size:?}");
        assert_eq!(Schedule::decode(&other.encode(), &functions).unwrap().workflow(), other.workflow());
    }
    let mut other = sparse();
    other.sets[set].format.modes[0] = crate::format::ModeFormat::Compressed;
    assert_ne!(frozen(other).bits(), schedule.bits());
}

#[test]
fn sizes_that_do_not_fit_are_refused() {
    let refusals = [
        ("sizes(72, 40..200)", "sizes(72)", "sizes of 2 blocks"),
        ("sizes(72, 40..200) ", "", "sizes of 2 blocks"),
        ("40..200", "201..200", "no size of a block"),
        ("format(0:dense, 1:compressed) ", "", "sizes of 2 blocks"),
        ("format(0:dense, 1:compressed)", "format(0:dense, 0:compressed)", "does not fit rank 2"),
        ("format(0:dense, 1:compressed)", "format(0:compressed)", "does not fit rank 2"),
    ];
    for (part, other, what) in refusals {
        let text = SPARSE.replace(part, other);
        let error = parse_workflow(&text, &FunctionTable::default()).unwrap_err();
        assert!(error.message().contains(what), "{other}: {error:?}");
    }
}
