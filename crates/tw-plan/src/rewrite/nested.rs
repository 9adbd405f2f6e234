//! Aggregates of aggregates: a sum over keys of terms that are sums themselves becomes one sum.
//!
//! A join of blocks by a matrix product, followed by an aggregate over its keys, is one contraction; its terms need not be stored.
//!
//! Preconditions:
//! - both statements fold by the same single operation, in the same type and without guards, and the inner one writes its whole output plainly;
//! - the outer statement folds the terms unchanged, reads in bounds, and is the only reader of the inner one;
//! - each variable that only the outer statement folds indexes two operands of the inner one. For any other variable, computing the terms first is cheaper;
//! - the merged statement visits no more points than both together: an outer statement that reads terms repeatedly would recompute them.

use std::collections::HashMap;

use tw_ir::error::Result;
use tw_ir::index::{Access, Idx, Var};
use tw_ir::program::{IndexStmt, IndexVar, Op, Program, ValueId};
use tw_ir::scalar::{ScalarCode, ScalarOp, Slot};
use tw_ir::{DType, Scalar};

use super::rebuild::{Rebuild, n_readers};

pub(super) fn run(program: &Program) -> Result<Program> {
    let readers = n_readers(&program.body);
    let mut rebuild = Rebuild::new(program);
    let mut terms: HashMap<ValueId, (IndexStmt, Vec<ValueId>)> = HashMap::new();
    for node in &program.body.nodes {
        let Op::Index(outer) = &node.op else {
            rebuild.copy(node)?;
            continue;
        };
        let args = rebuild.mapped_args(node)?;
        let inner = outer.reads.first().and_then(|read| terms.get(&args[read.operand as usize]));
        let merged = inner.map(|(inner, inner_args)| Ok::<_, tw_ir::Error>((merge(outer, inner)?, inner_args.clone())));
        let (stmt, args) = match merged.transpose()? {
            Some((Some(stmt), args)) => (stmt, args),
            _ => (outer.clone(), args),
        };
        let results = rebuild.replace(node, Op::Index(stmt.clone()), &args)?;
        if let ([old], [new]) = (node.results.as_slice(), results.as_slice())
            && readers.get(old) == Some(&1)
            && is_sum_of_operands(&stmt)
        {
            terms.insert(*new, (stmt, args));
        }
    }
    rebuild.finish()
}

/// A plain aggregate of a value that is computed from the reads alone.
fn is_sum_of_operands(stmt: &IndexStmt) -> bool {
    let uses_position = |var: usize| stmt.code.uses_param((stmt.reads.len() + var) as u32);
    stmt.accum.as_ref().is_some_and(|accum| accum.as_simple().is_some())
        && !stmt.has_guard
        && stmt.reads.len() > 1
        && stmt.out_is_plain()
        && !(0..stmt.vars.len()).any(uses_position)
}

/// True if the code returns its read unchanged.
fn passes_on(code: &ScalarCode) -> bool {
    let result = code.results().first().map(|slot| &code.ops()[slot.0 as usize]);
    code.results().len() == 1 && matches!(result, Some(ScalarOp::Param(0)))
}

fn merge(outer: &IndexStmt, inner: &IndexStmt) -> Result<Option<IndexStmt>> {
    let (Some(outer_accum), Some(inner_accum)) = (&outer.accum, &inner.accum) else { return Ok(None) };
    let ([read], Some(ranges)) = (outer.reads.as_slice(), outer.var_ranges()) else { return Ok(None) };
    let same = outer_accum.as_simple().is_some() && outer_accum.as_simple() == inner_accum.as_simple();
    let inside = read.stays_inside(&inner.out.shape, &ranges);
    if !same || !inside || outer.has_guard || !passes_on(&outer.code) {
        return Ok(None);
    }
    // The inner variables, as expressions in the outer ones and in those that the inner statement folds, which follow them.
    let mut vars = outer.vars.clone();
    let by: Vec<Idx> = (0..inner.vars.len())
        .map(|var| match inner.out.idx.iter().position(|idx| idx.as_var() == Some(Var(var as u32))) {
            Some(axis) => read.idx[axis].clone(),
            None => {
                vars.push(inner.vars[var].clone());
                Idx::var(Var(vars.len() as u32 - 1))
            }
        })
        .collect();
    let reads: Vec<Access> = inner
        .reads
        .iter()
        .map(|read| Access { idx: read.idx.iter().map(|idx| idx.substitute(&by)).collect(), ..read.clone() })
        .collect();
    let is_shared = |var: Var| reads.iter().filter(|read| read.idx.iter().any(|idx| idx.uses(var))).count() > 1;
    let is_kept = |var: Var| outer.out.idx.iter().any(|idx| idx.as_var() == Some(var));
    if !(0..outer.vars.len() as u32).map(Var).all(|var| is_kept(var) || is_shared(var)) {
        return Ok(None);
    }
    let (Some(together), Some(first), Some(then)) = (n_points(&vars), n_points(&inner.vars), n_points(&outer.vars))
    else {
        return Ok(None);
    };
    if together > first + then {
        return Ok(None);
    }
    let mut params: Vec<DType> = inner.code.params()[..reads.len()].to_vec();
    params.extend(std::iter::repeat_n(DType::I64, vars.len()));
    let mut code = ScalarCode::new(params);
    let mut values: Vec<Slot> = (0..reads.len() as u32).map(|k| code.param(k)).collect();
    let unused = code.constant(Scalar::I64(0));
    values.resize(inner.code.params().len(), unused);
    let results = code.inline(&inner.code, &values)?;
    code.set_results(results);
    let code = code.without_dead_ops();
    Ok(Some(IndexStmt { vars, reads, code, accum: outer.accum.clone(), out: outer.out.clone(), has_guard: false }))
}

fn n_points(vars: &[IndexVar]) -> Option<f64> {
    vars.iter().map(|var| var.extent.known().map(|n| n as f64)).product()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use tw_ir::Op;
    use tw_ir::program::FunctionTable;

    use tw_lang::{NoFiles, parse_program};

    /// The number of statements that compute the output.
    fn n_statements(text: &str) -> usize {
        let unit = parse_program(text, &BTreeMap::new(), &NoFiles, &FunctionTable::default()).unwrap();
        let program = crate::plan_segment(&unit.program, &Default::default()).unwrap().program;
        tw_ir::program::verify(&program).unwrap();
        program.body.nodes.iter().filter(|node| matches!(node.op, Op::Index(_))).count()
    }

    const BLOCKS: &str = "input a: f64[2, 3, 10, 20]\ninput b: f64[3, 4, 20, 30]\n";

    #[test]
    fn a_join_and_an_aggregate_are_one_contraction() {
        let joined = "j[i, k, l, x, z] = sum[y](a[i, k, x, y] * b[k, l, y, z])\n";
        assert_eq!(n_statements(&format!("{BLOCKS}{joined}c = sum(j, axis=1)\noutput c\n")), 1);
        // Another statement reads the terms.
        assert_eq!(n_statements(&format!("{BLOCKS}{joined}c = sum(j, axis=1)\noutput c\noutput j\n")), 2);
        // Another operation.
        assert_eq!(n_statements(&format!("{BLOCKS}{joined}c = max(j, axis=1)\noutput c\n")), 2);
    }

    #[test]
    fn terms_that_are_read_again_and_again_are_made_once() {
        let product = "input a: f64[100, 80]\ninput b: f64[80, 100]\np = a @ b\n";
        let windows = "c[i, j] = sum[w in 0..5](p[i + w, j + w]) for i in 0..90, j in 0..90\noutput c\n";
        assert_eq!(n_statements(&format!("{product}{windows}")), 2);
        let repeated = "c[q] = sum[j](p[j, j]) for q in 0..1000\noutput c\n";
        assert_eq!(n_statements(&format!("{product}{repeated}")), 2);
        // A trace needs only the diagonal.
        assert_eq!(n_statements(&format!("{product}c = sum[j](p[j, j])\noutput c\n")), 1);
    }

    #[test]
    fn a_variable_of_one_operand_is_summed_afterwards() {
        let product = "input a: f64[100, 200]\ninput b: f64[200, 300]\np = a @ b\nc = sum(p, axis=1)\noutput c\n";
        assert_eq!(n_statements(product), 2);
    }
}
