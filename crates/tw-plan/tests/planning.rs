//! How much a plan costs to make, and how it is given up.

use std::cell::Cell;
use std::collections::BTreeMap;

use tw_ir::error::Blame;
use tw_ir::program::{FunctionTable, Program};
use tw_lang::{NoFiles, parse_program};
use tw_plan::{PlanOptions, plan_segment, plan_segment_until};

fn program(text: &str) -> Program {
    let unit = parse_program(text, &BTreeMap::new(), &NoFiles, &FunctionTable::default());
    unit.unwrap_or_else(|errors| panic!("{errors:?}")).program
}

/// Every merge of a sort reads all runs, so there must not be one for every block.
#[test]
fn plans_of_sorts_grow_with_their_blocks() {
    let operands = |blocks: u64| {
        let options = PlanOptions { tile: Some(100), ..PlanOptions::default() };
        let text = format!("y = sort(random.normal({}, seed=1))\noutput y", 100 * blocks);
        let planned = plan_segment(&program(&text), &options).unwrap();
        let workflow = planned.schedule.workflow();
        assert_eq!(workflow.sets[workflow.outputs[0].set].n_blocks(), blocks);
        workflow.n_operands()
    };
    assert!(operands(100) < 100 * 101 + 200);
    let (some, many) = (operands(1000), operands(8000));
    assert!(many <= 9 * some, "{many} operands for eight times the blocks of {some}");
}

#[test]
fn planning_stops_when_asked() {
    let text = "x = random.normal(200000, seed=1)\ny = x + x[::-1]\noutput y";
    let options = PlanOptions { tile: Some(1), ..PlanOptions::default() };
    let asked = Cell::new(0);
    let stop = || {
        asked.set(asked.get() + 1);
        asked.get() > 50
    };
    let error = plan_segment_until(&stop, &program(text), &options).unwrap_err();
    assert_eq!((error.blame(), asked.get()), (Blame::Cancelled, 51));
}
