//! Kernels that apply the parts of an accumulator to blocks of state: combine, finish, and the three parts of a scan.

use tw_ir::{Accum, BoxRegion, Error, OnEmpty, Result, Scalar};

use crate::block::Block;
use crate::walk::Points;

/// Folds states into states.
#[derive(Debug)]
pub(crate) struct Combine {
    accum: Accum,
}

impl Combine {
    pub(crate) fn compile(accum: &Accum) -> Combine {
        Combine { accum: accum.clone() }
    }

    pub(crate) fn run(&self, first: bool, operands: &[&Block], outputs: &mut [Block]) -> Result<()> {
        if first {
            for (output, value) in outputs.iter_mut().zip(&self.accum.identity) {
                output.fill(*value)?;
            }
        }
        let Some(bbox) = outputs.first().map(|output| output.bbox().clone()) else { return Ok(()) };
        let mut points = Points::new(&bbox);
        while let Some(at) = points.next() {
            let mut state = read(outputs.iter(), at)?;
            state.extend(read(operands.iter().copied(), at)?);
            write(outputs, at, &self.accum.combine.eval(&state))?;
        }
        Ok(())
    }
}

/// Turns states into results.
#[derive(Debug)]
pub(crate) struct Finish {
    accum: Accum,
    tracked: bool,
}

impl Finish {
    pub(crate) fn compile(accum: &Accum, tracked: bool) -> Finish {
        Finish { accum: accum.clone(), tracked }
    }

    pub(crate) fn run(&self, operands: &[&Block], outputs: &mut [Block]) -> Result<()> {
        let Some(bbox) = outputs.first().map(|output| output.bbox().clone()) else { return Ok(()) };
        let mut points = Points::new(&bbox);
        while let Some(at) = points.next() {
            let mut state = read(operands.iter().copied(), at)?;
            if self.tracked && state.pop() == Some(Scalar::Bool(false)) {
                if self.accum.on_empty == OnEmpty::Error {
                    return Err(Error::data(format!("the group of element {at:?} is empty")));
                }
                write(outputs, at, &self.accum.empty_results())?;
                continue;
            }
            write(outputs, at, &self.accum.finish.eval(&state))?;
        }
        Ok(())
    }
}

/// Combines carried state with totals.
#[derive(Debug)]
pub(crate) struct ScanCarry {
    accum: Accum,
}

impl ScanCarry {
    pub(crate) fn compile(accum: &Accum) -> ScanCarry {
        ScanCarry { accum: accum.clone() }
    }

    pub(crate) fn run(&self, operands: &[&Block], outputs: &mut [Block]) -> Result<()> {
        let Some(bbox) = outputs.first().map(|output| output.bbox().clone()) else { return Ok(()) };
        let n = self.accum.identity.len();
        let mut points = Points::new(&BoxRegion { lo: vec![0; bbox.rank()], hi: bbox.shape() });
        while let Some(at) = points.next() {
            let mut state = read_relative(&operands[..n], at)?;
            state.extend(read_relative(&operands[n..], at)?);
            write_relative(outputs, at, &self.accum.combine.eval(&state))?;
        }
        Ok(())
    }
}

/// Aggregate along an axis.
#[derive(Debug)]
pub(crate) struct ScanTotal {
    accum: Accum,
    axis: usize,
    reverse: bool,
}

impl ScanTotal {
    pub(crate) fn compile(accum: &Accum, axis: usize, reverse: bool) -> ScanTotal {
        ScanTotal { accum: accum.clone(), axis, reverse }
    }

    pub(crate) fn run(&self, operands: &[&Block], outputs: &mut [Block]) -> Result<()> {
        for (output, value) in outputs.iter_mut().zip(&self.accum.identity) {
            output.fill(*value)?;
        }
        let Some(bbox) = operands.first().map(|block| block.bbox().clone()) else { return Ok(()) };
        let shape = bbox.shape();
        let mut points = Points::new(&BoxRegion { lo: vec![0; shape.len()], hi: shape.clone() });
        while let Some(at) = points.next() {
            let mut at = at.to_vec();
            if self.reverse {
                at[self.axis] = shape[self.axis] - 1 - at[self.axis];
            }
            let lifted = self.accum.lift.eval(&read_relative(operands, &at)?);
            at[self.axis] = 0;
            let state: Vec<Scalar> =
                outputs.iter().map(|o| o.get_relative(&at)).collect::<Option<_>>().ok_or_else(missing)?;
            write_relative(outputs, &at, &self.accum.combine.eval(&[state, lifted].concat()))?;
        }
        Ok(())
    }
}

/// Running aggregate inside a block.
#[derive(Debug)]
pub(crate) struct ScanBlock {
    accum: Accum,
    axis: usize,
    exclusive: bool,
    reverse: bool,
}

impl ScanBlock {
    pub(crate) fn compile(accum: &Accum, axis: usize, exclusive: bool, reverse: bool) -> ScanBlock {
        ScanBlock { accum: accum.clone(), axis, exclusive, reverse }
    }

    pub(crate) fn run(&self, operands: &[&Block], outputs: &mut [Block]) -> Result<()> {
        let Some(bbox) = outputs.first().map(|output| output.bbox().clone()) else { return Ok(()) };
        let (bodies, carried) = operands.split_at(self.accum.lift.params().len());
        let shape = bbox.shape();
        let mut across = shape.clone();
        across[self.axis] = across[self.axis].min(1);
        let mut rows = Points::new(&BoxRegion { lo: vec![0; shape.len()], hi: across });
        while let Some(row) = rows.next() {
            let mut at = row.to_vec();
            let mut state = if carried.is_empty() { self.accum.identity.clone() } else { read_relative(carried, &at)? };
            for k in 0..shape[self.axis] {
                at[self.axis] = if self.reverse { shape[self.axis] - 1 - k } else { k };
                let lifted = self.accum.lift.eval(&read_relative(bodies, &at)?);
                let next = self.accum.combine.eval(&[state.clone(), lifted].concat());
                // Before the first element there is nothing, and nothing follows the accumulator's rule for it.
                let results = match self.exclusive {
                    true if carried.is_empty() && k == 0 => self.empty_results(&at)?,
                    true => self.accum.finish.eval(&state),
                    false => self.accum.finish.eval(&next),
                };
                write_relative(outputs, &at, &results)?;
                state = next;
            }
        }
        Ok(())
    }
}

impl ScanBlock {
    fn empty_results(&self, at: &[u64]) -> Result<Vec<Scalar>> {
        match self.accum.on_empty {
            OnEmpty::Error => Err(Error::data(format!("nothing comes before the first element, at {at:?}"))),
            _ => Ok(self.accum.empty_results()),
        }
    }
}

fn missing() -> Error {
    Error::internal("an operand does not hold what its task reads")
}

fn read<'a>(blocks: impl Iterator<Item = &'a Block>, at: &[u64]) -> Result<Vec<Scalar>> {
    blocks.map(|block| block.get(at)).collect::<Option<_>>().ok_or_else(missing)
}

fn write(outputs: &mut [Block], at: &[u64], values: &[Scalar]) -> Result<()> {
    outputs.iter_mut().zip(values).try_for_each(|(output, value)| output.set(at, *value))
}

fn read_relative(blocks: &[&Block], at: &[u64]) -> Result<Vec<Scalar>> {
    blocks.iter().map(|block| block.get_relative(at)).collect::<Option<_>>().ok_or_else(missing)
}

fn write_relative(outputs: &mut [Block], at: &[u64], values: &[Scalar]) -> Result<()> {
    outputs.iter_mut().zip(values).try_for_each(|(output, value)| {
        let coords: Vec<u64> = at.iter().zip(&output.bbox().lo).map(|(a, lo)| a + lo).collect();
        output.set(&coords, *value)
    })
}
