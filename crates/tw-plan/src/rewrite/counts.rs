//! Counts known in advance: if every group has the same number of points, an accumulator component that only counts points leaves its state. So the mean of a table is one
//! sum, not two.

use tw_ir::error::Result;
use tw_ir::program::{IndexStmt, Op, Program};
use tw_ir::{Accum, BinaryOp, DType, Scalar, ScalarCode, ScalarOp, Slot};

use super::rebuild::Rebuild;

pub(super) fn run(program: &Program) -> Result<Program> {
    let mut rebuild = Rebuild::new(program);
    for node in &program.body.nodes {
        let rewritten = match &node.op {
            Op::Index(stmt) => without_counts(stmt)?,
            _ => None,
        };
        match rewritten {
            Some(stmt) => {
                let args = rebuild.mapped_args(node)?;
                rebuild.replace(node, Op::Index(stmt), &args)?;
            }
            None => {
                rebuild.copy(node)?;
            }
        }
    }
    rebuild.finish()
}

/// The statement without components that count, if it has any besides others.
fn without_counts(stmt: &IndexStmt) -> Result<Option<IndexStmt>> {
    let Some(accum) = &stmt.accum else { return Ok(None) };
    let Some(n) = points_per_group(stmt) else { return Ok(None) };
    let n_parts = accum.identity.len();
    let counts: Vec<Option<Scalar>> =
        (0..n_parts).map(|k| count(accum, k).and_then(|dtype| exactly(n, dtype))).collect();
    if counts.iter().all(Option::is_none) || counts.iter().all(Option::is_some) {
        return Ok(None);
    }
    let is_kept = |k: &usize| counts[*k].is_none();
    let kept: Vec<usize> = (0..n_parts).filter(is_kept).collect();
    let types: Vec<DType> = kept.iter().map(|&k| accum.identity[k].dtype()).collect();

    let mut lift = accum.lift.clone();
    lift.set_results(kept.iter().map(|&k| accum.lift.results()[k]).collect());

    let mut combine = ScalarCode::new(types.iter().chain(&types).copied().collect());
    let mut states = state(&counts, 0, &mut combine);
    states.extend(state(&counts, kept.len() as u32, &mut combine));
    let combined = combine.inline(&accum.combine, &states)?;
    combine.set_results(kept.iter().map(|&k| combined[k]).collect());

    let mut finish = ScalarCode::new(types);
    let last = state(&counts, 0, &mut finish);
    let finished = finish.inline(&accum.finish, &last)?;
    finish.set_results(finished);

    let accum = Accum {
        identity: kept.iter().map(|&k| accum.identity[k]).collect(),
        lift: lift.without_dead_ops(),
        combine: combine.without_dead_ops(),
        finish: finish.without_dead_ops(),
        on_empty: accum.on_empty.clone(),
    };
    Ok(Some(IndexStmt { accum: Some(accum), ..stmt.clone() }))
}

/// A whole state in code that knows the counts, and has parameters from `first` on for what is not one.
fn state(counts: &[Option<Scalar>], first: u32, code: &mut ScalarCode) -> Vec<Slot> {
    let mut next = first;
    let mut slot = |count: &Option<Scalar>| match count {
        Some(count) => code.constant(*count),
        None => {
            next += 1;
            code.param(next - 1)
        }
    };
    counts.iter().map(&mut slot).collect()
}

/// The number of points per result, if it is known and the same for all.
fn points_per_group(stmt: &IndexStmt) -> Option<u64> {
    if stmt.has_guard || !stmt.out_is_plain() {
        return None;
    }
    let ranges = stmt.var_ranges()?;
    let written = |var: usize| stmt.out.idx.iter().any(|idx| idx.as_var().is_some_and(|v| v.0 as usize == var));
    (0..ranges.len()).filter(|&var| !written(var)).try_fold(1u64, |n, var| n.checked_mul(ranges[var].1 as u64 + 1))
}

/// The type of a component that starts at zero, grows by one at each point, and is used by no other component.
fn count(accum: &Accum, k: usize) -> Option<DType> {
    let n_parts = accum.identity.len();
    let (mine, others) = (k as u32, (n_parts + k) as u32);
    let dtype = accum.identity[k].dtype();
    let lifts_one = accum.lift.ops()[accum.lift.results()[k].0 as usize] == ScalarOp::Const(dtype.one());
    let combine = &accum.combine;
    let op = |slot: Slot| combine.ops()[slot.0 as usize];
    let adds = matches!(op(combine.results()[k]), ScalarOp::Binary(BinaryOp::Add, a, b)
        if op(a) == ScalarOp::Param(mine) && op(b) == ScalarOp::Param(others));
    let mut rest = combine.clone();
    rest.set_results((0..n_parts).filter(|&other| other != k).map(|other| combine.results()[other]).collect());
    let rest = rest.without_dead_ops();
    let is_private = !rest.uses_param(mine) && !rest.uses_param(others);
    (lifts_one && adds && is_private && accum.identity[k] == dtype.zero()).then_some(dtype)
}

/// A count in a type that holds it exactly.
fn exactly(n: u64, dtype: DType) -> Option<Scalar> {
    match dtype {
        DType::F64 => (n <= 1 << f64::MANTISSA_DIGITS).then_some(Scalar::F64(n as f64)),
        DType::F32 => (n <= 1 << f32::MANTISSA_DIGITS).then_some(Scalar::F32(n as f32)),
        DType::I64 => i64::try_from(n).ok().map(Scalar::I64),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn states(text: &str) -> Vec<usize> {
        let unit = tw_lang::parse_program(text, &Default::default(), &tw_lang::NoFiles, &Default::default());
        let program = run(&unit.unwrap().program).unwrap();
        let accum = |op: &Op| match op {
            Op::Index(stmt) => stmt.accum.as_ref().map(|accum| accum.identity.len()),
            _ => None,
        };
        program.body.nodes.iter().filter_map(|node| accum(&node.op)).collect()
    }

    #[test]
    fn only_counts_of_equal_groups_go() {
        let given = "input x: f64[30, 40]\n";
        for (text, expected) in [
            ("y = mean(x, axis=0)", 1),
            ("y[i] = mean[j](2 * x[i, j])", 1),
            ("y[i] = mean[j](x[i, j] where j <= i)", 2),
            ("y = sum(x)", 1),
            // The mean and the squares depend on the count at every step.
            ("y = var(x)", 3),
        ] {
            assert_eq!(states(&format!("{given}{text}\noutput y\n")), vec![expected], "{text}");
        }
    }
}
