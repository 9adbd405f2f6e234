//! Linear algebra: `linalg.solve(A, b)`, and `q, r = linalg.qr(A)` where there are several results.

use tw_ir::program::{Routine, RoutineSpec};
use tw_ir::{Op, TensorType, ValueId};

use super::call::{Call, Function};
use super::{Lowering, Value};
use crate::ast::{Expr, ExprKind, Name};
use crate::diagnose::{Lowered, Place, counted, error};
use crate::token::Range;

const fn one(name: &'static str) -> Function {
    Function { name, required: &["a"], rest: None, optional: &[], lower: single }
}

const fn system(name: &'static str) -> Function {
    Function { name, required: &["a", "b"], rest: None, optional: &[], lower: single }
}

pub(super) const LINALG: &[Function] = &[
    one("linalg.cholesky"),
    one("linalg.det"),
    one("linalg.eig"),
    one("linalg.eigh"),
    one("linalg.eigvals"),
    one("linalg.eigvalsh"),
    one("linalg.inv"),
    one("linalg.lu"),
    one("linalg.matrix_rank"),
    one("linalg.pinv"),
    one("linalg.qr"),
    one("linalg.qr_complete"),
    one("linalg.qr_indirect"),
    one("linalg.qr_r"),
    one("linalg.slogdet"),
    one("linalg.svd"),
    one("linalg.svd_full"),
    one("linalg.svdvals"),
    system("linalg.lstsq"),
    system("linalg.solve"),
    system("linalg.solve_lower"),
    system("linalg.solve_upper"),
];

fn routine_of(function: &Function) -> Option<Routine> {
    Routine::named(function.name.strip_prefix("linalg.")?)
}

fn results<'a>(lowering: &mut Lowering<'a, '_>, call: &Call<'_, 'a>) -> Lowered<Vec<ValueId>> {
    let routine = routine_of(call.function)
        .ok_or_else(|| tw_ir::Error::internal("a routine of linear algebra without a meaning"))?;
    let mut args = Vec::with_capacity(call.function.required.len());
    for name in call.function.required {
        args.push(call.tensor(lowering, name)?);
    }
    let types: Vec<&TensorType> = args.iter().map(|&value| lowering.emitter.ty(value)).collect();
    let spec = lowering.functions.routines().and_then(|library| RoutineSpec::new(routine, &types, library));
    lowering.emitter.push(Op::Routine(spec.at(call.range)?), &args, &call.range.span()).at(call.range)
}

fn single<'a>(lowering: &mut Lowering<'a, '_>, call: &Call<'_, 'a>) -> Lowered<Value> {
    match results(lowering, call)?[..] {
        [value] => Ok(Value::Tensor(value)),
        ref several => {
            let name = call.function.name;
            let wrong = error(call.range, format!("`{name}` has {} results", several.len()));
            Err(wrong.help(format!("name all of them, for example `a, b = {name}(x)`")).into())
        }
    }
}

impl<'a> Lowering<'a, '_> {
    /// `q, r = linalg.qr(A)`.
    pub(super) fn unpack(&mut self, targets: &[Name<'a>], value: &Expr<'a>, range: Range) -> Lowered<()> {
        for target in targets {
            self.check_assignable(*target)?;
        }
        let call = match &value.kind {
            ExprKind::FamilyCall { family, function, args } => {
                let name = format!("{}.{}", family.text, function.text);
                LINALG.iter().find(|known| known.name == name).map(|known| Call::new(known, args, value.range))
            }
            _ => None,
        };
        let Some(call) = call else {
            let wrong = error(value.range, "only functions with several results can be assigned to several names");
            return Err(wrong.help("for example `q, r = linalg.qr(x)`, or `q, r = block f(x[i, :]) -> ..`").into());
        };
        let values = results(self, &call?)?;
        if values.len() != targets.len() {
            let text = format!(
                "{} for {}",
                counted(targets.len(), "name", "names"),
                counted(values.len(), "result", "results")
            );
            return Err(error(range, text).into());
        }
        for (target, value) in targets.iter().zip(values) {
            self.define(target.text, Value::Tensor(value));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_routine_has_a_function() {
        for &routine in Routine::PLAIN {
            let function = LINALG.iter().find(|function| routine_of(function) == Some(routine));
            assert_eq!(function.map(|function| function.required.len()), Some(routine.n_args()), "{}", routine.name());
        }
    }
}
