//! Folds side by side: reductions, or scatters, of one line that read the same tensor at the same points become one operation with several results. So the sum and the number of elements
//! that are not NaN, which a mean without NaN divides, read the tensor once.
//!
//! Preconditions, per pair of operations:
//! - both belong to one line of the user, so what a line costs does not change;
//! - both run over the same points, write the same elements of their results, and share a read; all that the second reads is there when the first runs;
//! - each folds every component by one operation, and results are what was folded: such folds run in one loop over a strip;
//! - none is a contraction, which has kernels of its own.

use std::collections::HashMap;

use tw_ir::contraction::Contraction;
use tw_ir::error::{Error, Result};
use tw_ir::index::Access;
use tw_ir::program::{IndexStmt, Node, Op, Program, ValueId};
use tw_ir::span::Span;
use tw_ir::spec::ScatterSpec;
use tw_ir::{Accum, DType, OnEmpty, ScalarCode, Slot};

use super::fuse::Fused;
use super::rebuild::Rebuild;

/// Most results of one operation.
const MOST: usize = 4;

/// Operations of a line that another one may join.
const MOST_LEADERS: usize = 16;

pub(super) fn run(program: &Program) -> Result<Program> {
    let nodes = &program.body.nodes;
    let mut made_at: HashMap<ValueId, usize> = HashMap::new();
    // Per operation, the one that computes its results; per operation that computes others' results, the whole of it.
    let mut leader: Vec<usize> = (0..nodes.len()).collect();
    let mut joined: HashMap<usize, Joined> = HashMap::new();
    let mut leaders_of: HashMap<Span, Vec<usize>> = HashMap::new();
    for (k, node) in nodes.iter().enumerate() {
        made_at.extend(node.results.iter().map(|&value| (value, k)));
        let Some(own) = Joined::of(node).filter(|_| node.span != Span::None) else { continue };
        let leaders = leaders_of.entry(node.span).or_default();
        let is_there = |first: usize| own.args.iter().all(|arg| made_at.get(arg).is_some_and(|&at| at < first));
        // The latest ones only, so that long programs on one line do not take quadratic time.
        for &first in leaders.iter().rev().take(MOST_LEADERS).filter(|&&first| is_there(first)) {
            let before = match joined.get(&first) {
                Some(before) => before.clone(),
                None => match Joined::of(&nodes[first]) {
                    Some(before) => before,
                    None => continue,
                },
            };
            if let Some(both) = before.and(&own)? {
                joined.insert(first, both);
                leader[k] = first;
                break;
            }
        }
        if leader[k] == k {
            leaders.push(k);
        }
    }
    if joined.is_empty() {
        return Ok(program.clone());
    }
    let mut rebuild = Rebuild::new(program);
    for (k, node) in nodes.iter().enumerate() {
        match joined.get(&k) {
            Some(both) => {
                let args = both.args.iter().map(|&arg| rebuild.mapped(arg)).collect::<Result<Vec<_>>>()?;
                let all = Node { results: both.results.clone(), ..node.clone() };
                rebuild.replace(&all, both.op.clone(), &args)?;
            }
            None if leader[k] == k => {
                rebuild.copy(node)?;
            }
            None => {}
        }
    }
    rebuild.finish()
}

/// One or several folds as one operation.
#[derive(Clone)]
struct Joined {
    op: Op,
    args: Vec<ValueId>,
    results: Vec<ValueId>,
}

impl Joined {
    /// A fold that others may join.
    fn of(node: &Node) -> Option<Joined> {
        let fits = match &node.op {
            Op::Index(stmt) => {
                let is_contraction = Contraction::of_statement(stmt).is_some_and(|found| found.reuses_operands());
                let accum = stmt.accum.as_ref()?;
                accum.as_simple().is_some() && accum.on_empty == OnEmpty::Identity && !stmt.has_guard && !is_contraction
            }
            Op::Scatter { spec, .. } => {
                let accum = &spec.accum;
                let plain = Accum { lift: ScalarCode::identity(accum.state_types()), ..accum.clone() };
                plain.as_simple().is_some() && accum.on_empty == OnEmpty::Identity
            }
            _ => false,
        };
        fits.then(|| Joined { op: node.op.clone(), args: node.args.clone(), results: node.results.clone() })
    }

    /// Both in one; `None` if they do not run over the same points, or read nothing in common.
    fn and(&self, other: &Joined) -> Result<Option<Joined>> {
        let results: Vec<ValueId> = self.results.iter().chain(&other.results).copied().collect();
        if results.len() > MOST {
            return Ok(None);
        }
        let both = match (&self.op, &other.op) {
            (Op::Index(a), Op::Index(b)) => statements((a, &self.args), (b, &other.args))?,
            (Op::Scatter { spec: a, extents }, Op::Scatter { spec: b, extents: others }) if extents == others => {
                let both = scatters((a, &self.args), (b, &other.args))?;
                both.map(|(spec, args)| (Op::Scatter { spec, extents: extents.clone() }, args))
            }
            _ => None,
        };
        Ok(both.map(|(op, args)| Joined { op, args, results }))
    }
}

fn statements(a: (&IndexStmt, &[ValueId]), b: (&IndexStmt, &[ValueId])) -> Result<Option<(Op, Vec<ValueId>)>> {
    let ((a, a_args), (b, b_args)) = (a, b);
    let extents = |stmt: &IndexStmt| stmt.vars.iter().map(|var| var.extent).collect::<Vec<_>>();
    let same_out = (&a.out.idx, a.out.edge, &a.out.shape) == (&b.out.idx, b.out.edge, &b.out.shape);
    let is_same = |x: &Access, y: &Access| {
        (a_args[x.operand as usize], &x.idx, x.edge) == (b_args[y.operand as usize], &y.idx, y.edge)
    };
    let shares = a.reads.iter().any(|x| b.reads.iter().any(|y| is_same(x, y)));
    let (Some(first), Some(second), true) = (&a.accum, &b.accum, extents(a) == extents(b) && same_out && shares) else {
        return Ok(None);
    };
    let n_reads = a.reads.len();
    let shifted = b.reads.iter().map(|read| Access { operand: read.operand + a_args.len() as u32, ..read.clone() });
    let mut types = a.code.params()[..n_reads].to_vec();
    types.extend_from_slice(&b.code.params()[..b.reads.len()]);
    types.extend(a.vars.iter().map(|_| DType::I64));
    let mut code = ScalarCode::new(types);
    let vars = (n_reads + b.reads.len()) as u32..(n_reads + b.reads.len() + a.vars.len()) as u32;
    let mut results = Vec::new();
    for (stmt, reads) in [(a, 0..n_reads as u32), (b, n_reads as u32..vars.start)] {
        let args: Vec<Slot> = reads.chain(vars.clone()).map(|k| code.param(k)).collect();
        results.extend(code.inline(&stmt.code, &args)?);
    }
    code.set_results(results);
    let mut out = a.out.clone();
    out.fill.extend_from_slice(&b.out.fill);
    let stmt = IndexStmt {
        reads: a.reads.iter().cloned().chain(shifted).collect(),
        code,
        accum: Some(Accum::several(&[first.clone(), second.clone()])?),
        out,
        ..a.clone()
    };
    let both = Fused::new(stmt, a_args.iter().chain(b_args).copied().collect()).tidy();
    let (stmt, args) = both.into_parts();
    Ok(Some((Op::Index(stmt), args)))
}

fn scatters(
    a: (&ScatterSpec, &[ValueId]),
    b: (&ScatterSpec, &[ValueId]),
) -> Result<Option<(ScatterSpec, Vec<ValueId>)>> {
    let ((a, a_args), (b, b_args)) = (a, b);
    let n = a.axes.len();
    if a.axes != b.axes || a.edge != b.edge || a_args[..n] != b_args[..n] {
        return Ok(None);
    }
    let (values, others) = (&a_args[n..], &b_args[n..]);
    if !others.iter().any(|value| values.contains(value)) {
        return Ok(None);
    }
    let mut args = a_args.to_vec();
    args.extend(others.iter().filter(|value| !values.contains(value)));
    let both = Accum::several(&[a.accum.clone(), b.accum.clone()])?;
    // Every tensor of values is a parameter once.
    let types: Vec<(ValueId, DType)> =
        values.iter().chain(others).copied().zip(both.lift.params().iter().copied()).collect();
    let missing = || Error::internal("a scatter without one of its values");
    let place = |value: &ValueId| args[n..].iter().position(|arg| arg == value).ok_or_else(missing);
    let type_of = |value: &ValueId| types.iter().find(|(other, _)| other == value).map(|&(_, dtype)| dtype);
    let params = args[n..].iter().map(|value| type_of(value).ok_or_else(missing)).collect::<Result<_>>()?;
    let mut lift = ScalarCode::new(params);
    let given = types.iter().map(|(value, _)| Ok(lift.param(place(value)? as u32))).collect::<Result<Vec<Slot>>>()?;
    let results = lift.inline(&both.lift, &given)?;
    lift.set_results(results);
    let accum = Accum { lift: lift.without_dead_ops(), ..both };
    Ok(Some((ScatterSpec { accum, ..a.clone() }, args)))
}

#[cfg(test)]
mod tests {
    use super::super::{contributions, cse, dead, fuse};
    use super::*;

    fn run_on(text: &str) -> Program {
        let unit = tw_lang::parse_program(text, &Default::default(), &tw_lang::NoFiles, &Default::default());
        let mut program = unit.unwrap().program;
        // Lines of a text have spans of their own.
        let span = program.body.nodes[0].span;
        program.body.nodes.iter_mut().for_each(|node| node.span = span);
        let passes = [cse::run, fuse::run, contributions::run, run, dead::run];
        passes.into_iter().fold(program, |program, pass| pass(&program).unwrap())
    }

    fn n_results(program: &Program) -> Vec<usize> {
        let folds = program.body.nodes.iter().filter(|node| match &node.op {
            Op::Index(stmt) => stmt.accum.is_some(),
            op => matches!(op, Op::Scatter { .. }),
        });
        folds.map(|node| node.results.len()).collect()
    }

    #[test]
    fn what_reads_the_same_is_read_once() {
        let both = "input x: f64[20, 3]\na[j] = sum[i](x[i, j])\nb[j] = max[i](x[i, j] * 2.0)\noutput a\noutput b\n";
        // An extremum refuses empty groups, so it stays alone.
        assert_eq!(n_results(&run_on(both)), [1, 1]);
        let both = "input x: f64[20, 3]\na[j] = sum[i](x[i, j])\nb[j] = sum[i](x[i, j] * 2.0)\noutput a\noutput b\n";
        let program = run_on(both);
        assert_eq!(n_results(&program), [2]);
        let Op::Index(stmt) = &program.body.nodes[1].op else { panic!("{}", program.body.nodes[1].op.name()) };
        assert_eq!(stmt.reads.len(), 1);
    }

    #[test]
    fn other_points_and_other_tensors_stay_apart() {
        let rows = "input x: f64[20, 3]\na[j] = sum[i](x[i, j])\nb[i] = sum[j](x[i, j])\noutput a\noutput b\n";
        assert_eq!(n_results(&run_on(rows)), [1, 1]);
        let tensors = "input x: f64[20, 3]\ninput y: f64[20, 3]\na[j] = sum[i](x[i, j])\nb[j] = sum[i](y[i, j])\noutput a\noutput b\n";
        assert_eq!(n_results(&run_on(tensors)), [1, 1]);
        // The second sum needs the first.
        let after = "input x: f64[20, 3]\na[j] = sum[i](x[i, j])\nb[j] = sum[i](x[i, j] * a[j])\noutput b\n";
        assert_eq!(n_results(&run_on(after)), [1, 1]);
    }
}
