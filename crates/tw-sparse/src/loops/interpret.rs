//! The meaning of kernels, step by step. Every read and write is checked: a kernel that leaves an array is a fault of the lowering.

use std::sync::Arc;

use tw_ir::scalar::{eval_binary, eval_unary};
use tw_ir::{Buffer, DType, Error, Result, Scalar};

use super::{ArrayId, ArrayRole, ArrayType, LoopExpr, LoopKernel, LoopStmt};
use crate::width::index_at;

enum Memory {
    Input(Arc<Buffer>),
    Own(Buffer),
}

struct Machine<'a> {
    kernel: &'a LoopKernel,
    locals: Vec<Scalar>,
    arrays: Vec<Memory>,
}

/// Runs a kernel: parameters and input arrays in, output arrays out.
pub fn interpret(kernel: &LoopKernel, params: &[i64], inputs: &[Arc<Buffer>]) -> Result<Vec<Buffer>> {
    check_arguments(kernel, params, inputs)?;
    let mut inputs = inputs.iter().cloned();
    let mut locals: Vec<Scalar> = params.iter().map(|&value| Scalar::I64(value)).collect();
    locals.extend(kernel.locals[kernel.n_params..].iter().map(|local| local.dtype.zero()));
    let arrays = kernel.arrays.iter().map(|array| match (array.role, inputs.len()) {
        (ArrayRole::Input, 1..) => Memory::Input(inputs.next().unwrap_or_else(|| Arc::new(Buffer::Bool(Vec::new())))),
        _ => Memory::Own(Buffer::zeros(array.kind.stored(), 0)),
    });
    let mut machine = Machine { kernel, locals, arrays: arrays.collect() };
    machine.run(&kernel.body)?;
    let outputs = machine.arrays.into_iter().zip(&kernel.arrays);
    Ok(outputs
        .filter_map(|(memory, array)| match memory {
            Memory::Own(buffer) if array.role == ArrayRole::Output => Some(buffer),
            _ => None,
        })
        .collect())
}

/// Checks the number and types of what a kernel is given.
pub fn check_arguments(kernel: &LoopKernel, params: &[i64], inputs: &[Arc<Buffer>]) -> Result<()> {
    let expected: Vec<DType> =
        kernel.arrays.iter().filter(|array| array.role == ArrayRole::Input).map(|array| array.kind.stored()).collect();
    let given: Vec<DType> = inputs.iter().map(|buffer| buffer.dtype()).collect();
    if params.len() != kernel.n_params || expected != given {
        return Err(Error::internal(format!(
            "kernel {} takes {} parameters and arrays of {expected:?}, not {} and {given:?}",
            kernel.name,
            kernel.n_params,
            params.len()
        )));
    }
    Ok(())
}

/// The error of an index that an array is too narrow for.
pub fn index_too_wide(index: i64, dtype: DType) -> Error {
    Error::data(format!("index {index} does not fit into {dtype}")).help("store the result with 64-bit indices")
}

/// The error of a kernel that leaves an array.
pub fn outside(kernel: &LoopKernel, array: &str, index: i64) -> Error {
    Error::internal(format!("kernel {} leaves {array} at {index}", kernel.name))
}

/// The first position in `from..to` whose element is at least `target`: doubling steps, then a binary search.
pub fn seek(at: impl Fn(i64) -> i64, from: i64, to: i64, target: i64) -> i64 {
    let (mut low, mut step) = (from, 1);
    // Everything before `low` is smaller than the target.
    while low < to && at(low) < target {
        let next = low.saturating_add(step);
        if next >= to || at(next) >= target {
            let (mut below, mut above) = (low, next.min(to));
            while above - below > 1 {
                let middle = below + (above - below) / 2;
                if at(middle) < target { below = middle } else { above = middle }
            }
            return above;
        }
        low = next;
        step = step.saturating_mul(2);
    }
    low
}

/// Sorts keys with their values, stably.
pub fn sort_pairs(keys: &mut Buffer, values: Option<&mut Buffer>) {
    let mut order: Vec<usize> = (0..keys.len()).collect();
    order.sort_by_key(|&k| index_at(keys, k));
    let sorted: Vec<Scalar> = order.iter().map(|&k| keys.get(k)).collect();
    sorted.into_iter().enumerate().for_each(|(k, key)| keys.set(k, key));
    if let Some(values) = values {
        let sorted: Vec<Scalar> = order.iter().map(|&k| values.get(k)).collect();
        sorted.into_iter().enumerate().for_each(|(k, value)| values.set(k, value));
    }
}

impl Machine<'_> {
    fn run(&mut self, body: &[LoopStmt]) -> Result<()> {
        for stmt in body {
            match stmt {
                LoopStmt::Comment(_) => {}
                LoopStmt::Set(local, value) => self.locals[local.0 as usize] = self.eval(value)?,
                LoopStmt::Store(array, index, value) => {
                    let (index, value) = (self.int(index)?, self.eval(value)?);
                    let value = self.stored(*array, value)?;
                    let buffer = self.own(*array)?;
                    if index < 0 || index as usize >= buffer.len() {
                        return Err(self.outside(*array, index));
                    }
                    buffer.set(index as usize, value);
                }
                LoopStmt::Push(array, value) => {
                    let value = self.eval(value)?;
                    let value = self.stored(*array, value)?;
                    self.own(*array)?.push(value);
                }
                LoopStmt::Resize(array, length, fill) => {
                    let (length, fill) = (self.int(length)?, self.stored(*array, *fill)?);
                    let length = usize::try_from(length)
                        .ok()
                        .filter(|&length| length as u64 <= crate::level::MAX_POSITIONS)
                        .ok_or_else(|| Error::resource(format!("an array of {length} elements is too large")))?;
                    let buffer = self.own(*array)?;
                    tw_ir::with_buffer!(buffer, values => values.resize(length, tw_ir::dtype::Element::from_scalar(fill)));
                }
                LoopStmt::Sort(keys, values) => {
                    let mut sorted = std::mem::replace(self.own(*keys)?, Buffer::U64(Vec::new()));
                    match values {
                        Some(values) => sort_pairs(&mut sorted, Some(self.own(*values)?)),
                        None => sort_pairs(&mut sorted, None),
                    }
                    *self.own(*keys)? = sorted;
                }
                LoopStmt::For(local, from, to, body) => {
                    let (from, to) = (self.int(from)?, self.int(to)?);
                    for k in from..to {
                        self.locals[local.0 as usize] = Scalar::I64(k);
                        self.run(body)?;
                    }
                }
                LoopStmt::While(condition, body) => {
                    while self.eval(condition)?.is_true() {
                        self.run(body)?;
                    }
                }
                LoopStmt::If(condition, yes, no) => {
                    let body = if self.eval(condition)?.is_true() { yes } else { no };
                    self.run(body)?;
                }
            }
        }
        Ok(())
    }

    fn own(&mut self, array: ArrayId) -> Result<&mut Buffer> {
        match &mut self.arrays[array.0 as usize] {
            Memory::Own(buffer) => Ok(buffer),
            Memory::Input(_) => Err(Error::internal("a kernel writes to an input")),
        }
    }

    /// A value as an array stores it.
    fn stored(&self, array: ArrayId, value: Scalar) -> Result<Scalar> {
        let ArrayType::Index(width) = self.kernel.arrays[array.0 as usize].kind else { return Ok(value) };
        let index = value.as_i64();
        if index < 0 || index as u64 > width.max() {
            return Err(index_too_wide(index, width.dtype()));
        }
        Ok(value.cast(width.dtype()))
    }

    fn outside(&self, array: ArrayId, index: i64) -> Error {
        outside(self.kernel, &self.kernel.arrays[array.0 as usize].name, index)
    }

    fn buffer(&self, array: ArrayId) -> &Buffer {
        match &self.arrays[array.0 as usize] {
            Memory::Input(buffer) => buffer,
            Memory::Own(buffer) => buffer,
        }
    }

    fn int(&self, expr: &LoopExpr) -> Result<i64> {
        Ok(self.eval(expr)?.as_i64())
    }

    fn eval(&self, expr: &LoopExpr) -> Result<Scalar> {
        Ok(match expr {
            LoopExpr::Const(value) => *value,
            LoopExpr::Local(local) => self.locals[local.0 as usize],
            LoopExpr::Load(array, index) => {
                let (index, buffer) = (self.int(index)?, self.buffer(*array));
                if index < 0 || index as usize >= buffer.len() {
                    return Err(self.outside(*array, index));
                }
                let value = buffer.get(index as usize);
                match self.kernel.arrays[array.0 as usize].kind {
                    ArrayType::Index(_) => value.cast(DType::I64),
                    ArrayType::Value(dtype) if dtype == value.dtype() => value,
                    ArrayType::Value(dtype) => value.cast(dtype),
                }
            }
            LoopExpr::Len(array) => Scalar::I64(self.buffer(*array).len() as i64),
            LoopExpr::Unary(op, a) => eval_unary(*op, self.eval(a)?),
            LoopExpr::Binary(op, a, b) => eval_binary(*op, self.eval(a)?, self.eval(b)?),
            LoopExpr::Both(a, b) => {
                if self.eval(a)?.is_true() {
                    self.eval(b)?
                } else {
                    Scalar::Bool(false)
                }
            }
            LoopExpr::Select(c, a, b) => {
                let (c, a, b) = (self.eval(c)?, self.eval(a)?, self.eval(b)?);
                if c.is_true() { a } else { b }
            }
            LoopExpr::Cast(dtype, a) => self.eval(a)?.cast(*dtype),
            LoopExpr::Seek { array, from, to, target } => {
                let (from, to, target) = (self.int(from)?, self.int(to)?, self.int(target)?);
                let buffer = self.buffer(*array);
                if from < to && (from < 0 || to as usize > buffer.len()) {
                    return Err(self.outside(*array, if from < 0 { from } else { to }));
                }
                Scalar::I64(seek(|k| index_at(buffer, k as usize) as i64, from, to, target))
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seeking_finds_the_first_that_is_not_smaller() {
        let run = [1, 3, 3, 7, 9, 20, 21, 22, 40];
        for from in 0..=9 {
            for target in 0..=41 {
                let expected = (from..9).find(|&k| run[k as usize] >= target).unwrap_or(9);
                assert_eq!(seek(|k| run[k as usize], from, 9, target), expected, "{from} {target}");
            }
        }
    }
}
