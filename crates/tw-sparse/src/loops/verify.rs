//! Checks a kernel before it runs or is compiled:
//!
//! * every name exists, and names of locals and arrays differ;
//! * operations take the types they are given; indices, lengths and bounds of loops are i64, conditions are bool;
//! * a value has the type of the variable or array it goes to;
//! * inputs are never written, and parameters never set;
//! * the keys of a sort are an index array, and its values another array.
//!
//! That no index leaves its array is no matter of types: the lowering owes it, from the invariants that were checked where data entered.

use std::collections::HashSet;

use tw_ir::{DType, Error, Result};

use super::{ArrayId, ArrayRole, ArrayType, LocalId, LoopExpr, LoopKernel, LoopStmt};

/// Checks a kernel.
pub fn verify(kernel: &LoopKernel) -> Result<()> {
    let mut names = HashSet::new();
    let all = kernel.locals.iter().map(|local| &local.name).chain(kernel.arrays.iter().map(|array| &array.name));
    if let Some(twice) = all.clone().find(|name| !names.insert(name.as_str())) {
        return Err(fault(kernel, format!("`{twice}` is declared twice")));
    }
    if kernel.n_params > kernel.locals.len()
        || kernel.locals[..kernel.n_params].iter().any(|local| local.dtype != DType::I64)
    {
        return Err(fault(kernel, "parameters are i64"));
    }
    body(kernel, &kernel.body)
}

fn fault(kernel: &LoopKernel, message: impl std::fmt::Display) -> Error {
    Error::internal(format!("kernel {}: {message}", kernel.name))
}

fn body(kernel: &LoopKernel, stmts: &[LoopStmt]) -> Result<()> {
    stmts.iter().try_for_each(|stmt| match stmt {
        LoopStmt::Comment(_) => Ok(()),
        LoopStmt::Set(id, value) => {
            let dtype = variable(kernel, *id)?;
            typed(kernel, value, dtype)
        }
        LoopStmt::Store(array, index, value) => {
            typed(kernel, index, DType::I64)?;
            typed(kernel, value, written(kernel, *array)?.loaded())
        }
        LoopStmt::Push(array, value) => typed(kernel, value, written(kernel, *array)?.loaded()),
        LoopStmt::Resize(array, length, fill) => {
            typed(kernel, length, DType::I64)?;
            typed(kernel, &LoopExpr::Const(*fill), written(kernel, *array)?.loaded())
        }
        LoopStmt::Sort(keys, values) => {
            let sortable = matches!(written(kernel, *keys)?, ArrayType::Index(_)) && *values != Some(*keys);
            if let Some(values) = values {
                written(kernel, *values)?;
            }
            if sortable { Ok(()) } else { Err(fault(kernel, "only an index array is sorted")) }
        }
        LoopStmt::For(id, from, to, inner) => {
            if variable(kernel, *id)? != DType::I64 {
                return Err(fault(kernel, "a loop counts in i64"));
            }
            typed(kernel, from, DType::I64)?;
            typed(kernel, to, DType::I64)?;
            body(kernel, inner)
        }
        LoopStmt::While(condition, inner) => {
            typed(kernel, condition, DType::Bool)?;
            body(kernel, inner)
        }
        LoopStmt::If(condition, yes, no) => {
            typed(kernel, condition, DType::Bool)?;
            body(kernel, yes)?;
            body(kernel, no)
        }
    })
}

/// The type of a local that may be set.
fn variable(kernel: &LoopKernel, id: LocalId) -> Result<DType> {
    match kernel.locals.get(id.0 as usize) {
        Some(local) if id.0 as usize >= kernel.n_params => Ok(local.dtype),
        Some(local) => Err(fault(kernel, format!("parameter `{}` is set", local.name))),
        None => Err(fault(kernel, format!("there is no local {}", id.0))),
    }
}

fn array(kernel: &LoopKernel, id: ArrayId) -> Result<ArrayType> {
    let array = kernel.arrays.get(id.0 as usize);
    array.map(|array| array.kind).ok_or_else(|| fault(kernel, format!("there is no array {}", id.0)))
}

fn written(kernel: &LoopKernel, id: ArrayId) -> Result<ArrayType> {
    let kind = array(kernel, id)?;
    match kernel.arrays[id.0 as usize].role {
        ArrayRole::Input => Err(fault(kernel, format!("input `{}` is written", kernel.arrays[id.0 as usize].name))),
        _ => Ok(kind),
    }
}

fn typed(kernel: &LoopKernel, expr: &LoopExpr, expected: DType) -> Result<()> {
    let found = type_of(kernel, expr)?;
    if found == expected {
        return Ok(());
    }
    Err(fault(kernel, format!("`{}` is {found}, not {expected}", kernel.text(expr))))
}

fn type_of(kernel: &LoopKernel, expr: &LoopExpr) -> Result<DType> {
    let no = |what: &dyn std::fmt::Display, dtype: DType| fault(kernel, format!("`{what}` does not take {dtype}"));
    match expr {
        LoopExpr::Const(value) => Ok(value.dtype()),
        LoopExpr::Local(id) => match kernel.locals.get(id.0 as usize) {
            Some(local) => Ok(local.dtype),
            None => Err(fault(kernel, format!("there is no local {}", id.0))),
        },
        LoopExpr::Load(id, index) => {
            let kind = array(kernel, *id)?;
            typed(kernel, index, DType::I64)?;
            Ok(kind.loaded())
        }
        LoopExpr::Len(id) => array(kernel, *id).map(|_| DType::I64),
        LoopExpr::Unary(op, a) => {
            let input = type_of(kernel, a)?;
            op.result(input).ok_or_else(|| no(op, input))
        }
        LoopExpr::Binary(op, a, b) => {
            let input = type_of(kernel, a)?;
            typed(kernel, b, input)?;
            op.result(input).ok_or_else(|| no(op, input))
        }
        LoopExpr::Both(a, b) => {
            typed(kernel, a, DType::Bool)?;
            typed(kernel, b, DType::Bool)?;
            Ok(DType::Bool)
        }
        LoopExpr::Select(c, a, b) => {
            typed(kernel, c, DType::Bool)?;
            let dtype = type_of(kernel, a)?;
            typed(kernel, b, dtype)?;
            Ok(dtype)
        }
        LoopExpr::Cast(dtype, a) => type_of(kernel, a).map(|_| *dtype),
        LoopExpr::Seek { array: id, from, to, target } => {
            if !matches!(array(kernel, *id)?, ArrayType::Index(_)) {
                return Err(fault(kernel, "only an index array is searched"));
            }
            [from, to, target].into_iter().try_for_each(|part| typed(kernel, part, DType::I64))?;
            Ok(DType::I64)
        }
    }
}
