//! The fate of each operation of a segment: which operations run, which were fused into others, and why some were not.
//!
//! Rewrites keep the span of the surviving operation, so survivors are found by span. An operation without a survivor was computed in its readers.

use std::collections::{BTreeSet, HashMap, HashSet};

use tw_ir::contraction::Contraction;
use tw_ir::program::{IndexStmt, Node, Op, Program, ValueId};
use tw_ir::span::Span;

/// The fate of one operation. Numbers are positions in the segment before rewriting.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It has tasks of its own.
    Runs,
    /// It is computed inside these.
    FusedInto(Vec<usize>),
    /// It is the same as an earlier one.
    SameAs(usize),
    /// Nothing reads it.
    NotNeeded,
}

/// The fate of every operation of a segment.
pub fn fates(before: &Program, after: &Program) -> Vec<Fate> {
    let nodes = &before.body.nodes;
    let survivors: HashSet<&Span> = after.body.nodes.iter().map(|node| &node.span).collect();
    let readers = readers(before);
    let twins = twins(before);
    let runs = |k: usize| survivors.contains(&nodes[k].span) || matches!(nodes[k].op, Op::Source(_));
    // From the back, so that readers are known before what they read.
    let mut homes: Vec<BTreeSet<usize>> = vec![BTreeSet::new(); nodes.len()];
    for k in (0..nodes.len()).rev() {
        homes[k] = if runs(k) {
            BTreeSet::from([k])
        } else {
            nodes[k].results.iter().flat_map(|value| &readers[value]).flat_map(|&r| homes[r].clone()).collect()
        };
    }
    (0..nodes.len())
        .map(|k| match (runs(k), twins[k]) {
            (true, _) => Fate::Runs,
            (false, Some(twin)) => Fate::SameAs(twin),
            (false, None) if homes[k].is_empty() => Fate::NotNeeded,
            (false, None) => Fate::FusedInto(homes[k].iter().copied().collect()),
        })
        .collect()
}

/// Which operations read each value.
fn readers(program: &Program) -> HashMap<ValueId, Vec<usize>> {
    let mut readers: HashMap<ValueId, Vec<usize>> = program.values.keys().map(|value| (value, Vec::new())).collect();
    for (k, node) in program.body.nodes.iter().enumerate() {
        for arg in &node.args {
            readers.entry(*arg).or_default().push(k);
        }
    }
    readers.values_mut().for_each(|list| list.dedup());
    readers
}

/// For every operation the first one that computes the same.
fn twins(program: &Program) -> Vec<Option<usize>> {
    let mut canonical: HashMap<ValueId, ValueId> = HashMap::new();
    let mut first: HashMap<(&Op, Vec<ValueId>), usize> = HashMap::new();
    let nodes = &program.body.nodes;
    let mut twins = Vec::new();
    for (k, node) in nodes.iter().enumerate() {
        let args = node.args.iter().map(|arg| *canonical.get(arg).unwrap_or(arg)).collect();
        let twin = *first.entry((&node.op, args)).or_insert(k);
        for (&mine, &theirs) in node.results.iter().zip(&nodes[twin].results) {
            canonical.insert(mine, theirs);
        }
        twins.push((twin != k).then_some(twin));
    }
    twins
}

/// Why an elementwise operation keeps blocks of its own instead of being computed where it is read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kept {
    /// It is needed after the segment, not only inside it.
    Result,
    /// Several operations read it: it is computed once.
    Shared(Vec<usize>),
    /// Its reader is a sum of products, which reads every element many times.
    Product(usize),
    /// Its reader visits elements more than once.
    Repeated(usize),
    /// Its reader takes whole blocks: a scan, a sort, a file.
    Blocks(usize, &'static str),
}

/// Why operation `k` of a segment is kept, if it might have been fused.
pub fn why_kept(program: &Program, k: usize) -> Option<Kept> {
    let node = &program.body.nodes[k];
    let Op::Index(stmt) = &node.op else { return None };
    if !stmt.is_elementwise() {
        return None;
    }
    let all = readers(program);
    let readers: Vec<usize> = node.results.iter().flat_map(|value| all[value].clone()).collect();
    if !readers.is_empty() && node.results.iter().any(|value| program.body.results.contains(value)) {
        return Some(Kept::Result);
    }
    match readers.as_slice() {
        [] => None,
        [reader] => {
            let reading: &Node = &program.body.nodes[*reader];
            match &reading.op {
                Op::Index(by) if is_product(by) => Some(Kept::Product(*reader)),
                Op::Index(by) if n_points(by) > n_points(stmt) || n_reads(by, reading, node) > 1 => {
                    Some(Kept::Repeated(*reader))
                }
                Op::Index(_) => None,
                Op::Routine(spec) => Some(Kept::Blocks(*reader, spec.routine().name())),
                op => Some(Kept::Blocks(*reader, op.name())),
            }
        }
        several => Some(Kept::Shared(several.to_vec())),
    }
}

/// The number of accesses of a statement to results of another operation.
fn n_reads(stmt: &IndexStmt, reading: &Node, producer: &Node) -> usize {
    stmt.reads.iter().filter(|read| producer.results.contains(&reading.args[read.operand as usize])).count()
}

fn n_points(stmt: &IndexStmt) -> u64 {
    stmt.vars.iter().fold(1, |n, var| n.saturating_mul(var.extent.known().unwrap_or(0)))
}

fn is_product(stmt: &IndexStmt) -> bool {
    Contraction::of_statement(stmt).is_some_and(|contraction| contraction.reuses_operands())
}

#[cfg(test)]
mod tests {
    use tw_build as build;
    use tw_ir::program::{SourceOp, TensorType};
    use tw_ir::{BinaryOp, DType};

    use super::*;

    /// x -> a = x + x (only read by b) -> b = a * a; c = a's twin; d is read by nobody.
    #[test]
    fn operations_are_found_again() {
        let mut program = Program::new();
        let ty = TensorType::known(DType::F64, &[8]);
        let source = Op::Source(SourceOp::Input { name: "x".into(), ty: ty.clone() });
        let x = program.push1(source, &[], &Span::text(0, 1)).unwrap();
        let mut binary = |op, a, b, at: usize| {
            let op = build::binary(op, &ty, &ty).unwrap();
            program.push1(op, &[a, b], &Span::text(at, at + 1)).unwrap()
        };
        let a = binary(BinaryOp::Add, x, x, 10);
        let b = binary(BinaryOp::Mul, a, x, 20);
        let c = binary(BinaryOp::Mul, a, x, 30);
        let _unread = binary(BinaryOp::Sub, x, x, 40);
        let d = binary(BinaryOp::Max, b, c, 50);
        program.output("d", d);
        let planned = tw_plan::plan_segment(&program, &tw_plan::PlanOptions::default()).unwrap();
        let fates = fates(&program, &planned.program);
        assert_eq!(fates[0], Fate::Runs);
        assert_eq!(fates[3], Fate::SameAs(2));
        assert_eq!(fates[4], Fate::NotNeeded);
        assert_eq!(fates[5], Fate::Runs);
        assert_eq!(why_kept(&program, 5), None);
        assert_eq!(why_kept(&program, 1), Some(Kept::Shared(vec![2, 3])));
    }
}
