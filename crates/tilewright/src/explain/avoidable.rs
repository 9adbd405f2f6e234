//! Costs that the user can avoid, with advice.

use std::collections::BTreeSet;

use tw_ir::program::Op;

use super::inputs::passes;
use super::source::Place;
use super::speeds::Limit;
use super::{Explanation, SegmentPlan, units};

/// Copies are worth a sentence from this part of all traffic on.
const COPIES: f64 = 0.25;

/// Plans that move fewer bytes than this are too fast to be worth advice.
const WORTH_AVOIDING: u64 = 16 << 20;

/// Fewer tasks than this are not worth advice.
const MANY_TASKS: u64 = 1000;

impl Explanation {
    /// Sentences about costs that another way to write the program does not have.
    pub(crate) fn avoidable(&self) -> Vec<String> {
        let mut sentences = Vec::new();
        for input in self.inputs().iter().filter(|input| input.passes() > 1.0 && input.read_bytes > WORTH_AVOIDING) {
            sentences.push(format!(
                "{} ({}) is read in {}: where {} fit into memory, keep it there first, in Python by `persist()`",
                input.name,
                self.place(&input.span),
                passes(input.passes()),
                units::bytes(input.bytes)
            ));
        }
        let summary = self.summary();
        let (mut copied, mut places) = (0u64, BTreeSet::new());
        for (_, plan) in self.plans() {
            copied = copied.saturating_add(self.misaligned(plan, &mut places));
        }
        if copied > WORTH_AVOIDING && copied as f64 > COPIES * summary.cost.moved_bytes as f64 {
            let at: Vec<String> = places.iter().take(4).map(Place::to_string).collect();
            sentences.push(format!(
                "{} of {} moved are copies of blocks into the cut that {} needs: cut the operands alike, in Python by `rechunk`",
                units::bytes(copied),
                units::bytes(summary.cost.moved_bytes),
                at.join(", ")
            ));
        }
        let tasks = summary.cost.tasks;
        if tasks >= MANY_TASKS && self.speeds.limit(&summary.cost, self.threads) == Limit::Overhead {
            sentences.push(format!(
                "{} of {} on average take less time than to start them: larger blocks need fewer",
                units::counted(tasks, "task"),
                units::bytes(summary.cost.moved_bytes / tasks)
            ));
        }
        sentences
    }

    /// Bytes of copies that were made because blocks of operands do not fit those of a statement, and where. What joins or cuts
    /// arrays as the user asked is not among them.
    fn misaligned(&self, plan: &SegmentPlan, places: &mut BTreeSet<Place>) -> u64 {
        let mut copied = 0u64;
        for (node, cost) in plan.planned.program.body.nodes.iter().zip(&plan.costs) {
            let asked_for = matches!(node.op, Op::Concat { .. } | Op::Retile { .. });
            if !asked_for && cost.copied_bytes > 0 {
                copied = copied.saturating_add(cost.copied_bytes);
                places.insert(self.place(&node.span));
            }
        }
        copied
    }
}

#[cfg(test)]
mod tests {
    use tw_build as build;
    use tw_build::Reduction;
    use tw_ir::program::{Program, SourceOp, TensorType, ValueId};
    use tw_ir::span::Span;
    use tw_ir::{BinaryOp, DType};

    use super::*;
    use crate::Session;

    /// A program that needs its input before and after something is resolved, and names it once or twice.
    fn sentences(elements: u64, names_it_twice: bool) -> Vec<String> {
        let ty = TensorType::known(DType::I64, &[elements]);
        let mut program = Program::new();
        let input = |program: &mut Program| {
            let source = Op::Source(SourceOp::Input { name: "x".into(), ty: ty.clone() });
            program.push1(source, &[], &Span::text(0, 1)).unwrap()
        };
        let reduced = |program: &mut Program, x: ValueId, kind| {
            let op = build::reduce(&ty, kind, None, false).unwrap();
            program.push1(op, &[x], &Span::text(2, 3)).unwrap()
        };
        let first = input(&mut program);
        let total = reduced(&mut program, first, Reduction::Sum);
        let resolved = program.push1(Op::Resolve, &[total], &Span::text(4, 5)).unwrap();
        let second = if names_it_twice { input(&mut program) } else { first };
        let largest = reduced(&mut program, second, Reduction::Max);
        let scalar = TensorType::known(DType::I64, &[]);
        let op = build::binary(BinaryOp::Add, &scalar, &scalar).unwrap();
        let sum = program.push1(op, &[largest, resolved], &Span::text(6, 7)).unwrap();
        program.output("sum", sum);
        Session::new().explain(&program).unwrap().avoidable()
    }

    #[test]
    fn an_input_that_is_read_twice_is_told() {
        let expected = "x (bytes 0..1) is read in 2 passes: where 32.0 MiB fit into memory, keep it there first, in Python by `persist()`";
        assert_eq!(sentences(1 << 22, true), [expected]);
        // Little is not worth a sentence, and what is held between segments is read once.
        assert!(sentences(1 << 12, true).is_empty());
        assert!(sentences(1 << 22, false).is_empty());
    }
}
