//! Contractions by any code: user-defined semirings.
//!
//! Terms are made and folded strip by strip, along columns of the output: one element of the left operand meets a strip of the right one. The
//! right operand is copied so that columns are neighbours, and cut so that a part of it stays in cache for all rows.

use tw_ir::contraction::{Contraction, Roles};
use tw_ir::kernel::StatementKernel;
use tw_ir::{Buffer, DType, Result, Scalar};

use super::super::access::AccessPlan;
use super::super::frame::Frame;
use super::Operands;
use crate::copy::{Place, copy_box};
use crate::strip::{Element, Foldable, Lane, Monoid, RegisterPlan, Registers, StripCode, with_dtype, with_registers};

/// Columns of a strip, and terms that are visited together: a part of the right operand that the second cache holds.
const COLUMNS: usize = 512;
const TERMS: usize = 32;

/// Code that makes terms, and what folds them.
#[derive(Debug)]
pub(super) struct General {
    code: StripCode,
    registers: RegisterPlan,
    monoid: Monoid,
    dtype: DType,
}

impl General {
    /// Below this many rows, columns or terms other loops are as fast.
    pub(super) const FEWEST: i64 = 4;

    /// Makes the code of a contraction ready, if terms are folded by an operation with fast loops.
    pub(super) fn compile(kernel: &StatementKernel, found: &Contraction) -> Option<General> {
        let monoid = Monoid::of(found.aggregate, found.dtype)?;
        let mut registers = RegisterPlan::default();
        let code = StripCode::compile(&kernel.code, &mut registers);
        Some(General { code, registers, monoid, dtype: found.dtype })
    }

    /// Folds the contraction into the output, or starts it.
    pub(super) fn run(&self, roles: &Roles, identity: Scalar, frame: &Frame, operands: Operands<'_>) -> Result<()> {
        let Operands { out: (mut out, out_plan), left, right, accumulate } = operands;
        let [batches, terms] = [&roles.batches[..], &roles.terms];
        let size = |vars: &[usize]| vars.iter().map(|&var| frame.extents[var] as usize).product::<usize>();
        let shape = Shape {
            n_terms: size(terms),
            left: in_order(left.0.data(), left.1, frame, &[batches, &roles.rows, terms].concat())?,
            right: in_order(right.0.data(), right.1, frame, &[batches, terms, &roles.columns].concat())?,
            batches: positions(out_plan, frame, batches),
            rows: positions(out_plan, frame, &roles.rows),
            columns: positions(out_plan, frame, &roles.columns),
        };
        with_registers(&self.registers, |registers| {
            with_dtype!(self.dtype, T => {
                let identity = (!accumulate).then(|| T::from_scalar(identity));
                self.run_typed::<T>(&shape, &mut T::of_mut(&mut out)[out_plan.base()..], identity, registers);
            });
        });
        Ok(())
    }

    /// The loops; the output starts from `identity`, if there is one.
    fn run_typed<T: Foldable>(&self, shape: &Shape, out: &mut [T], identity: Option<T>, registers: &mut Registers) {
        let (n_rows, n_columns, n_terms) = (shape.rows.len(), shape.columns.len(), shape.n_terms);
        let mut strip = vec![T::default(); COLUMNS.min(n_columns)];
        let mut lanes: Vec<Option<Lane<'_>>> = vec![None; self.code.params().len()];
        for (batch, batch_at) in shape.batches.iter().enumerate() {
            for first_column in (0..n_columns).step_by(COLUMNS) {
                let columns = &shape.columns[first_column..n_columns.min(first_column + COLUMNS)];
                for first_term in (0..n_terms).step_by(TERMS) {
                    for (row, row_at) in shape.rows.iter().enumerate() {
                        let strip = &mut strip[..columns.len()];
                        let at = |column: &usize| batch_at + row_at + column;
                        match identity {
                            Some(identity) if first_term == 0 => strip.fill(identity),
                            _ => strip.iter_mut().zip(columns).for_each(|(sum, column)| *sum = out[at(column)]),
                        }
                        for term in first_term..n_terms.min(first_term + TERMS) {
                            let left = shape.left.get((batch * n_rows + row) * n_terms + term);
                            let right = (batch * n_terms + term) * n_columns + first_column;
                            lanes[0] = Some(Lane::same(left));
                            lanes[1] = Some(Lane::slice(&shape.right, right..right + columns.len()));
                            self.code.eval(&lanes, registers, columns.len());
                            let terms = self.code.result(0, &lanes, registers, columns.len());
                            T::fold_each(self.monoid, strip, T::of_lane(terms));
                        }
                        strip.iter().zip(columns).for_each(|(sum, column)| out[at(column)] = *sum);
                    }
                }
            }
        }
    }
}

/// Operands in the order of the loops, and where results go.
struct Shape {
    n_terms: usize,
    /// By batch, row and term.
    left: Buffer,
    /// By batch, term and column.
    right: Buffer,
    /// Distances in the output.
    batches: Vec<usize>,
    rows: Vec<usize>,
    columns: Vec<usize>,
}

/// The elements that an operand has at the given variables, the last one innermost.
fn in_order(data: &Buffer, plan: &AccessPlan, frame: &Frame, vars: &[usize]) -> Result<Buffer> {
    let shape: Vec<u64> = vars.iter().map(|&var| frame.extents[var] as u64).collect();
    let from: Vec<usize> = vars.iter().map(|&var| step(plan, frame, var)).collect();
    let to: Vec<usize> = tw_ir::shape::row_major_strides(&shape).iter().map(|&s| s as usize).collect();
    let mut ordered = Buffer::zeros(data.dtype(), shape.iter().product::<u64>() as usize);
    let source = Place { offset: plan.base(), strides: &from };
    copy_box(&shape, data, source, &mut ordered, Place { offset: 0, strides: &to })?;
    Ok(ordered)
}

/// How far the output moves for every value of the given variables, the last one innermost.
fn positions(plan: &AccessPlan, frame: &Frame, vars: &[usize]) -> Vec<usize> {
    let mut positions = vec![0];
    for &var in vars {
        let step = step(plan, frame, var);
        let values = 0..frame.extents[var] as usize;
        positions = positions.iter().flat_map(|at| values.clone().map(move |value| at + value * step)).collect();
    }
    positions
}

fn step(plan: &AccessPlan, frame: &Frame, var: usize) -> usize {
    frame.loop_of(var).map_or(0, |depth| plan.step(depth) as usize)
}
