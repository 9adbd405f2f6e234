//! Kernels that treat every element alike: combining states, finishing them, carrying a scan on.

use std::borrow::Cow;

use tw_ir::{Accum, Buffer, Error, OnEmpty, Result, Scalar, ScalarCode, SliceMut, Slot, shape};

use crate::block::Block;
use crate::states::{combine_strips, monoids, overwrite, strip_buffers};
use crate::strip::{
    Direct, Element, Foldable, Lane, Monoid, RegisterPlan, STRIP, StripCode, Values, with_dtype, with_registers,
};

/// Code from blocks to blocks of one shape, element by element.
#[derive(Debug)]
struct Elementwise {
    code: StripCode,
    registers: RegisterPlan,
}

impl Elementwise {
    fn compile(code: &ScalarCode) -> Elementwise {
        let mut registers = RegisterPlan::default();
        Elementwise { code: StripCode::compile(code, &mut registers), registers }
    }

    fn run(&self, operands: &[&Block], outputs: &mut [Block]) -> Result<()> {
        let Some(shape) = outputs.first().map(|output| output.bbox().shape()) else { return Ok(()) };
        let inputs = same_shape(operands, &shape, self.code.params().iter().map(|register| register.dtype))?;
        let n = shape::n_elements(&shape)? as usize;
        let mut buffers: Vec<SliceMut<'_>> = outputs.iter_mut().map(|o| Ok(o.target()?.1)).collect::<Result<_>>()?;
        with_registers(&self.registers, |registers| {
            let mut lanes: Vec<Option<Lane<'_>>> = vec![None; inputs.len()];
            for start in (0..n).step_by(STRIP) {
                let len = STRIP.min(n - start);
                for (lane, input) in lanes.iter_mut().zip(&inputs) {
                    *lane = Some(Lane::slice(input, start..start + len));
                }
                self.code.eval_into(&lanes, registers, len, Some(Direct { buffers: &mut buffers, start }));
            }
        });
        Ok(())
    }
}

/// The elements of blocks of one shape and the given types, in row-major order.
fn same_shape<'a>(
    blocks: &[&'a Block],
    shape: &[u64],
    types: impl Iterator<Item = tw_ir::DType>,
) -> Result<Vec<Cow<'a, Buffer>>> {
    if !blocks.iter().map(|block| block.dtype()).eq(types) {
        return Err(Error::internal("the operands of a task do not fit its kernel"));
    }
    blocks
        .iter()
        .map(|block| {
            if block.bbox().shape() != shape {
                return Err(Error::internal(format!("a block at {} where {shape:?} is expected", block.bbox())));
            }
            block.row_major()
        })
        .collect()
}

/// Folds states into states.
#[derive(Debug)]
pub(crate) struct Combine {
    identity: Vec<Scalar>,
    way: Way,
}

#[derive(Debug)]
enum Way {
    Parts(Vec<Monoid>),
    Code { combine: StripCode, registers: RegisterPlan },
}

impl Combine {
    pub(crate) fn compile(accum: &Accum) -> Combine {
        let way = match monoids(accum) {
            Some(parts) => Way::Parts(parts.into_iter().map(|(monoid, _)| monoid).collect()),
            None => {
                let mut registers = RegisterPlan::default();
                Way::Code { combine: StripCode::compile(&accum.combine, &mut registers), registers }
            }
        };
        Combine { identity: accum.identity.clone(), way }
    }

    pub(crate) fn run(&self, first: bool, operands: &[&Block], outputs: &mut [Block]) -> Result<()> {
        let types = || self.identity.iter().map(|value| value.dtype());
        let Some(shape) = outputs.first().map(|output| output.bbox().shape()) else { return Ok(()) };
        let inputs = same_shape(operands, &shape, types())?;
        if first {
            for (output, value) in outputs.iter_mut().zip(&self.identity) {
                output.fill(*value)?;
            }
        }
        let n = shape::n_elements(&shape)? as usize;
        let mut states: Vec<SliceMut<'_>> = outputs.iter_mut().map(|o| Ok(o.target()?.1)).collect::<Result<_>>()?;
        match &self.way {
            Way::Parts(parts) => {
                for ((monoid, state), input) in parts.iter().zip(&mut states).zip(&inputs) {
                    with_dtype!(input.dtype(), T => T::fold_each(*monoid, T::of_mut(state), Values::Each(T::of(input))));
                }
            }
            Way::Code { combine, registers } => with_registers(registers, |registers| {
                let mut combined = strip_buffers(types());
                for start in (0..n).step_by(STRIP) {
                    let len = STRIP.min(n - start);
                    combine_strips(combine, (&states, start), (&inputs, start), len, &mut combined, registers);
                    states.iter_mut().zip(&combined).for_each(|(to, from)| overwrite(to, start, from, len));
                }
            }),
        }
        Ok(())
    }
}

/// Turns states into results.
#[derive(Debug)]
pub(crate) struct Finish {
    code: Elementwise,
    /// True if the last operand must be true everywhere.
    must_hold: bool,
}

impl Finish {
    pub(crate) fn compile(accum: &Accum, tracked: bool) -> Result<Finish> {
        let code = if tracked { finish_or_empty(accum)? } else { accum.finish.clone() };
        let must_hold = tracked && accum.on_empty == OnEmpty::Error;
        Ok(Finish { code: Elementwise::compile(&code), must_hold })
    }

    pub(crate) fn run(&self, operands: &[&Block], outputs: &mut [Block]) -> Result<()> {
        if let (true, Some(tracker)) = (self.must_hold, operands.last()) {
            let holds = tracker.row_major()?;
            if let Some(position) = bool::of(&holds).iter().position(|&holds| !holds) {
                let mut at = shape::unravel(position as u64, &tracker.bbox().shape());
                at.iter_mut().zip(&tracker.bbox().lo).for_each(|(at, lo)| *at += lo);
                return Err(Error::data(format!("nothing contributes to element {at:?}"))
                    .help("a minimum or maximum of nothing has no value"));
            }
        }
        self.code.run(operands, outputs)
    }
}

/// `if tracked { finish(state) } else { what empty groups give }`.
fn finish_or_empty(accum: &Accum) -> Result<ScalarCode> {
    let state = accum.state_types();
    let mut code = ScalarCode::new([state.as_slice(), &[tw_ir::DType::Bool]].concat());
    let params: Vec<Slot> = (0..code.params().len() as u32).map(|k| code.param(k)).collect();
    let mut results = code.inline(&accum.finish, &params[..state.len()])?;
    for (result, empty) in results.iter_mut().zip(accum.empty_results()) {
        let empty = code.constant(empty);
        *result = code.select(params[state.len()], *result, empty)?;
    }
    code.set_results(results);
    Ok(code)
}

/// Combines carried state with totals.
#[derive(Debug)]
pub(crate) struct ScanCarry(Elementwise);

impl ScanCarry {
    pub(crate) fn compile(accum: &Accum) -> ScanCarry {
        ScanCarry(Elementwise::compile(&accum.combine))
    }

    pub(crate) fn run(&self, operands: &[&Block], outputs: &mut [Block]) -> Result<()> {
        self.0.run(operands, outputs)
    }
}
