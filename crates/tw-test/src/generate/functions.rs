//! Block functions for random programs. They work on every dtype.

use std::sync::LazyLock;

use tw_build::algorithms::BlockedRoutines;
use tw_ir::program::{BlockFunction, FunctionRef, FunctionTable, RoutineLibraryRef};
use tw_ir::{Array, ArrayView, BinaryOp, DType, Result, Scalar, scalar};

/// Each block with its elements in reverse.
struct Reverse;
/// The sum of each block.
struct Total;
/// Each row of a matrix in reverse, and the sum of each row.
struct Rows;
/// Each block of the first operand plus the first element of the block of the second.
struct AddFirst;

fn sum(values: impl Iterator<Item = Scalar>, zero: Scalar) -> Scalar {
    values.fold(zero, add)
}

/// A sum of two; of halves, as singles.
fn add(a: Scalar, b: Scalar) -> Scalar {
    let dtype = a.dtype();
    let working = if dtype.is_half() { DType::F32 } else { dtype };
    scalar::eval_binary(BinaryOp::Add, a.cast(working), b.cast(working)).cast(dtype)
}

impl BlockFunction for Reverse {
    fn name(&self) -> &str {
        "reverse"
    }
    fn apply(&self, operands: &[ArrayView<'_>], results: &mut [Array]) -> Result<()> {
        let n = operands[0].data().len();
        (0..n).for_each(|k| results[0].data_mut().set(k, operands[0].data().get(n - 1 - k)));
        Ok(())
    }
}

impl BlockFunction for Total {
    fn name(&self) -> &str {
        "total"
    }
    fn apply(&self, operands: &[ArrayView<'_>], results: &mut [Array]) -> Result<()> {
        let data = operands[0].data();
        let total = sum((0..data.len()).map(|k| data.get(k)), data.dtype().zero());
        results[0].data_mut().set(0, total);
        Ok(())
    }
}

impl BlockFunction for Rows {
    fn name(&self) -> &str {
        "rows"
    }
    fn apply(&self, operands: &[ArrayView<'_>], results: &mut [Array]) -> Result<()> {
        let [rows, columns] = [operands[0].shape()[0] as usize, operands[0].shape()[1] as usize];
        let data = operands[0].data();
        for row in 0..rows {
            let at = |column: usize| data.get(row * columns + column);
            results[1].data_mut().set(row, sum((0..columns).map(at), data.dtype().zero()));
            for column in 0..columns {
                results[0].data_mut().set(row * columns + column, at(columns - 1 - column));
            }
        }
        Ok(())
    }
}

impl BlockFunction for AddFirst {
    fn name(&self) -> &str {
        "add_first"
    }
    fn apply(&self, operands: &[ArrayView<'_>], results: &mut [Array]) -> Result<()> {
        let (first, second) = (operands[0].data(), operands[1].data());
        for k in 0..first.len() {
            let added = if second.is_empty() { first.dtype().zero() } else { second.get(0) };
            results[0].data_mut().set(k, add(first.get(k), added));
        }
        Ok(())
    }
}

/// One instance of each, so that programs drawn at different times call the same functions.
static TABLE: LazyLock<FunctionTable> = LazyLock::new(|| {
    let mut table = FunctionTable::default();
    table.register(Reverse);
    table.register(Total);
    table.register(Rows);
    table.register(AddFirst);
    table.include(tw_functions::library());
    table.set_routines(BlockedRoutines::library(tw_functions::library()));
    table
});

/// The block functions random programs call, for reading them back from text.
pub fn function_table() -> FunctionTable {
    TABLE.clone()
}

/// A function of the table.
pub(super) fn function(name: &str) -> Option<FunctionRef> {
    TABLE.get(name).ok()
}

/// The routines of the table.
pub(super) fn routines() -> Option<&'static RoutineLibraryRef> {
    TABLE.routines().ok()
}
