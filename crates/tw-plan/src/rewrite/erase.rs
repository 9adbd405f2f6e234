//! Erases time types: times become the integers that store them.
//!
//! The builders have already emitted integer code for times. From here on no plan, task or kernel sees a time. Results get their types back from the original program.

use std::borrow::Cow;
use std::sync::Arc;

use tw_ir::program::{IndexStmt, Node, Op, Program, SourceOp, TensorType};
use tw_ir::spec::{ScanSpec, ScatterSpec};
use tw_ir::{Accum, DType, Error, OnEmpty, Result, Scalar, ScalarCode, ScalarOp, Slot};

/// The program without times; itself if it has none.
pub(crate) fn run(program: &Program) -> Result<Cow<'_, Program>> {
    if !has_times(program) {
        return Ok(Cow::Borrowed(program));
    }
    let mut erased = program.clone();
    for info in erased.values.values_mut() {
        erase_type(&mut info.ty);
    }
    for node in &mut erased.body.nodes {
        erase_node(node).map_err(|error| error.at(&node.span))?;
    }
    Ok(Cow::Owned(erased))
}

/// Fails if a time is left.
pub(crate) fn verify(program: &Program) -> Result<()> {
    if has_times(program) { Err(Error::internal("a time was not erased")) } else { Ok(()) }
}

fn has_times(program: &Program) -> bool {
    let in_code = |code: &ScalarCode| (0..code.ops().len() as u32).any(|k| code.dtype(Slot(k)).is_time());
    let in_accum = |accum: &Accum| in_code(&accum.lift) || in_code(&accum.combine) || in_code(&accum.finish);
    program.values.values().any(|info| info.ty.dtype.is_time())
        || program.body.nodes.iter().any(|node| match &node.op {
            Op::Index(stmt) => in_code(&stmt.code) || stmt.accum.as_ref().is_some_and(in_accum),
            Op::Scan(ScanSpec { accum, .. }) | Op::Scatter { spec: ScatterSpec { accum, .. }, .. } => in_accum(accum),
            _ => false,
        })
}

fn erase_type(ty: &mut TensorType) {
    ty.dtype = ty.dtype.storage();
    ty.fill = ty.fill.stored();
}

fn erase_node(node: &mut Node) -> Result<()> {
    match &mut node.op {
        Op::Source(SourceOp::Input { ty, .. }) => erase_type(ty),
        Op::Source(SourceOp::Constant(array)) if array.dtype().is_time() => {
            *array = Arc::new(array.as_ref().clone().with_dtype(DType::I64)?);
        }
        Op::Index(stmt) => erase_statement(stmt)?,
        Op::Scan(ScanSpec { accum, .. }) | Op::Scatter { spec: ScatterSpec { accum, .. }, .. } => erase_accum(accum)?,
        Op::BlockFn(call) => call.erase_times(),
        _ => {}
    }
    Ok(())
}

fn erase_statement(stmt: &mut IndexStmt) -> Result<()> {
    stmt.code = erase_code(&stmt.code)?;
    erase_values(&mut stmt.out.fill);
    stmt.accum.as_mut().map_or(Ok(()), erase_accum)
}

fn erase_accum(accum: &mut Accum) -> Result<()> {
    erase_values(&mut accum.identity);
    for code in [&mut accum.lift, &mut accum.combine, &mut accum.finish] {
        *code = erase_code(code)?;
    }
    if let OnEmpty::Value(values) = &mut accum.on_empty {
        erase_values(values);
    }
    Ok(())
}

fn erase_values(values: &mut [Scalar]) {
    values.iter_mut().for_each(|value| *value = value.stored());
}

/// The same code over stored types. Conversions between a time and what it is stored as fall away.
fn erase_code(code: &ScalarCode) -> Result<ScalarCode> {
    let mut erased = ScalarCode::new(code.params().iter().map(|dtype| dtype.storage()).collect());
    let mut map: Vec<Slot> = Vec::with_capacity(code.ops().len());
    for op in code.ops() {
        let slot = match op.map(|slot| map[slot.0 as usize]) {
            ScalarOp::Const(value) => erased.constant(value.stored()),
            ScalarOp::Cast(dtype, a) => erased.cast(dtype.storage(), a),
            op => erased.push(op)?,
        };
        map.push(slot);
    }
    erased.set_results(code.results().iter().map(|slot| map[slot.0 as usize]).collect());
    Ok(erased)
}

#[cfg(test)]
mod tests {
    use super::*;
    use tw_build as build;
    use tw_ir::program::{BlockFn, BlockFunction, BlockResult, FunctionRef, OperandMode, ResultMode};
    use tw_ir::{BinaryOp, Span, TimeUnit, program};

    struct Copy;
    impl BlockFunction for Copy {
        fn name(&self) -> &str {
            "copy"
        }
        fn apply(&self, operands: &[tw_ir::ArrayView<'_>], results: &mut [tw_ir::Array]) -> Result<()> {
            results[0] = operands[0].to_array();
            Ok(())
        }
    }

    #[test]
    fn results_of_block_functions_become_integers() {
        let mut program = Program::new();
        let ty = TensorType::known(DType::DateTime(TimeUnit::Day), &[4]);
        let x = program.push_source(SourceOp::Input { name: "x".into(), ty: ty.clone() }, ty.clone(), &Span::None);
        let call = BlockFn {
            function: FunctionRef(Arc::new(Copy)),
            operands: vec![vec![OperandMode::Whole]],
            results: vec![BlockResult { dtype: ty.dtype, modes: vec![ResultMode::Whole(4)] }],
        };
        let y = program.push1(Op::BlockFn(call), &[x], &Span::None).unwrap();
        program.output("y", y);
        let erased = run(&program).unwrap();
        verify(&erased).unwrap();
        program::verify(&erased).unwrap();
    }

    #[test]
    fn a_difference_of_dates_becomes_integer_code() {
        let mut program = Program::new();
        let (day, second) = (DType::DateTime(TimeUnit::Day), DType::DateTime(TimeUnit::Second));
        let mut source = |name: &str, dtype: DType| {
            let ty = TensorType::known(dtype, &[4]);
            program.push_source(SourceOp::Input { name: name.into(), ty: ty.clone() }, ty, &Span::None)
        };
        let (a, b) = (source("a", day), source("b", second));
        let op = build::binary(BinaryOp::Sub, program.ty(a), program.ty(b)).unwrap();
        let difference = program.push1(op, &[a, b], &Span::None).unwrap();
        program.output("d", difference);
        assert_eq!(program.ty(difference).dtype, DType::TimeDelta(TimeUnit::Second));
        assert!(verify(&program).is_err());
        let erased = run(&program).unwrap();
        verify(&erased).unwrap();
        program::verify(&erased).unwrap();
        assert!(erased.values.values().all(|info| info.ty.dtype == DType::I64));
        assert!(matches!(run(&erased).unwrap(), Cow::Borrowed(_)));
    }
}
