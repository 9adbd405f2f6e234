//! Contractions: two operands folded over common variables, done as matrix products.
//!
//! Every variable is a row (in the left operand and the output), a column (in the right operand and the output), a term (in both operands) or a batch
//! (in all three). Several row variables become one where the output allows it; all term variables become one always. An operand whose
//! storage does not allow that is copied first. So the shape of the product, and with it the order of each sum, depends on boxes alone.

use tw_ir::contraction::Roles;
use tw_ir::dtype::{C64, C128};
use tw_ir::kernel::StatementKernel;
use tw_ir::{DType, Error, Idx, Result, Scalar, SliceMut};

use super::access::{Access, AccessPlan};
use super::frame::Frame;
use crate::block::Block;
use crate::gemm::{Batch, Known, Matrix, Multiply, Provider, Task, Truth};
use crate::strip::{Element, Lane, convert, with_dtype};
use general::General;
use side::{Side, largest_group};

mod general;
mod side;

/// A statement that is a contraction.
#[derive(Debug)]
pub(super) struct Contraction {
    roles: Roles,
    dtype: DType,
    /// The initial value of a fold.
    identity: Scalar,
    kind: Kind,
}

#[derive(Debug)]
enum Kind {
    /// Operations that are compiled into a kernel.
    Known(Known, Provider),
    /// Any other code.
    General(Box<General>),
}

/// The output and the operands of a contraction, with the plans of their accesses, which must be direct.
pub(super) struct Operands<'a> {
    pub(super) out: (SliceMut<'a>, &'a AccessPlan),
    pub(super) left: (&'a Block, &'a AccessPlan),
    pub(super) right: (&'a Block, &'a AccessPlan),
    /// True if the output holds something already.
    pub(super) accumulate: bool,
}

impl Contraction {
    /// Recognises a contraction.
    pub(super) fn of(kernel: &StatementKernel, provider: &Provider) -> Option<Contraction> {
        let found = tw_ir::contraction::Contraction::of_kernel(kernel)?;
        let roles = found.roles()?;
        // Whatever is no plain variable is looked at by every task, when it plans its accesses.
        let is_inside = |idx: &[Idx], shape: &[u64]| {
            let plain = idx.iter().zip(shape).filter_map(|(idx, extent)| idx.as_var().map(|var| (var, extent)));
            plain.into_iter().all(|(var, &extent)| kernel.vars[var.0 as usize].extent() <= extent)
        };
        let all_inside = is_inside(&kernel.out_idx, &kernel.out_shape)
            && kernel.reads.iter().all(|read| is_inside(&read.idx, &read.shape));
        let accum = kernel.accum.as_ref().filter(|_| all_inside)?;
        let kind = match found.product_of_converted.and_then(|product| Known::of(found.aggregate, product, found.dtype))
        {
            Some(known) => Kind::Known(known, provider.clone()),
            None => Kind::General(Box::new(General::compile(kernel, &found)?)),
        };
        Some(Contraction { roles, dtype: found.dtype, identity: accum.identity[0], kind })
    }

    /// The type that operands have in the product, if it is a known one.
    fn operand_type(&self) -> Option<DType> {
        matches!(self.kind, Kind::Known(..)).then_some(self.dtype)
    }

    /// True if a matrix product of this box is worth its beginning.
    pub(super) fn is_worthwhile(&self, frame: &Frame) -> bool {
        let size = |vars: &[usize]| vars.iter().map(|&var| frame.extents[var]).product::<i64>();
        let (m, n, k) = (size(&self.roles.rows), size(&self.roles.columns), size(&self.roles.terms));
        match self.kind {
            // The sum of a single row is better done by those who sum rows.
            Kind::Known(..) => (m > 1 || n > 1) && k > 1,
            Kind::General(_) => m >= General::FEWEST && n >= General::FEWEST && k >= General::FEWEST,
        }
    }

    /// How many elements of the output a box reaches.
    pub(super) fn n_results(&self, frame: &Frame) -> u64 {
        let vars = self.roles.rows.iter().chain(&self.roles.columns).chain(&self.roles.batches);
        vars.map(|&var| frame.extents[var] as u64).product()
    }

    /// A copy of an operand in the type of the product, and how it is accessed; `None` if the operand has that type, or code converts it.
    pub(super) fn converted(
        &self,
        operand: &Block,
        access: &Access,
        frame: &Frame,
    ) -> Result<Option<(Block, AccessPlan)>> {
        let Some(dtype) = self.operand_type().filter(|&dtype| dtype != operand.dtype()) else { return Ok(None) };
        let mut copy = Block::for_output(dtype, operand.bbox().clone(), None)?;
        let elements = operand.row_major()?;
        with_dtype!(dtype, T => convert(Lane::slice(&elements, 0..elements.len()), T::of_mut(copy.output()?.1)));
        let mut plan = AccessPlan::default();
        plan.prepare(access, frame, copy.bbox(), 0, |axis| copy.stride(axis));
        Ok(Some((copy, plan)))
    }

    /// Folds the contraction into the output, or starts it. Operands must have the type of the product, if it is a known one.
    pub(super) fn run(&self, frame: &Frame, operands: Operands<'_>) -> Result<()> {
        let (known, provider) = match &self.kind {
            Kind::Known(known, provider) => (*known, provider),
            Kind::General(general) => return general.run(&self.roles, self.identity, frame, operands),
        };
        let Operands { out: (mut out, out_plan), left: (left, left_plan), right: (right, right_plan), accumulate } =
            operands;
        let plans = [out_plan, left_plan, right_plan];
        let product = KnownProduct { roles: &self.roles, known, provider, frame, plans, accumulate };
        let (left, right) = (left.data(), right.data());
        macro_rules! run {
            ($($variant:ident $type:ident)*) => {
                match self.dtype {
                    DType::Bool => {
                        let identity = Truth::from(bool::from_scalar(self.identity));
                        let (left, right) = (Truth::slice(bool::of(left)), Truth::slice(bool::of(right)));
                        product.run(identity, Truth::slice_mut(bool::of_mut(&mut out)), left, right);
                    }
                    $(DType::$variant => {
                        let identity = $type::from_scalar(self.identity);
                        product.run(identity, $type::of_mut(&mut out), $type::of(left), $type::of(right));
                    })*
                    other => return Err(Error::internal(format!("a matrix product of {other}"))),
                }
            };
        }
        run! { I32 i32 I64 i64 F32 f32 F64 f64 C64 C64 C128 C128 }
        Ok(())
    }
}

/// A product over a known semiring.
struct KnownProduct<'a> {
    roles: &'a Roles,
    known: Known,
    provider: &'a Provider,
    frame: &'a Frame,
    /// Of the output, the left and the right operand.
    plans: [&'a AccessPlan; 3],
    accumulate: bool,
}

impl KnownProduct<'_> {
    fn run<T: Multiply>(&self, identity: T, out: &mut [T], left: &[T], right: &[T]) {
        let frame = self.frame;
        let [out_plan, left_plan, right_plan] = self.plans;
        let out_step = |var: usize| frame.loop_of(var).map_or(0, |depth| out_plan.step(depth) as usize);
        let extent = |var: usize| frame.extents[var] as usize;
        let (rows, other_rows) = largest_group(&self.roles.rows, extent, out_step);
        let (columns, other_columns) = largest_group(&self.roles.columns, extent, out_step);
        let mut outer: Vec<usize> = [&self.roles.batches[..], &other_rows, &other_columns].concat();
        // The longest of the outer loops is left to the kernel, so it goes last.
        outer.sort_by_key(|&var| extent(var));

        let terms = &self.roles.terms[..];
        let is_same = std::ptr::eq(left, right) && self.operands_are_same(&rows, &columns, &outer);
        let left = Side::new(left, left_plan, frame, [&outer, &rows, terms]);
        // A matrix and its transpose are one operand, so that the kernel can tell.
        let other = (!is_same).then(|| Side::new(right, right_plan, frame, [&outer, &columns, terms]));
        let right = other.as_ref().unwrap_or(&left);
        let size = |vars: &[usize]| vars.iter().map(|&var| extent(var)).product::<usize>();
        let dims = (size(&rows), size(&columns), size(terms));
        let innermost =
            |vars: &[usize]| vars.iter().rev().find(|&&var| extent(var) > 1).map_or(0, |&var| out_step(var));
        let (out_row, out_column) = (innermost(&rows), innermost(&columns));
        let out_steps: Vec<usize> = outer.iter().map(|&var| out_step(var)).collect();
        let batch = match outer.pop() {
            None => Batch::ONE,
            Some(var) => {
                let last = outer.len();
                let (left, right) = (left.outer_steps[last], right.outer_steps[last]);
                Batch { n: extent(var), out: out_steps[last], left, right }
            }
        };
        let mut at = vec![0; outer.len()];
        loop {
            let offset = |steps: &[usize]| at.iter().zip(steps).map(|(at, step)| at * step).sum::<usize>();
            let out_at = Matrix { offset: out_plan.base() + offset(&out_steps), row: out_row, column: out_column };
            let left_at =
                Matrix { offset: left.base + offset(&left.outer_steps), row: left.free_step, column: left.term_step };
            let right_at = Matrix {
                offset: right.base + offset(&right.outer_steps),
                row: right.term_step,
                column: right.free_step,
            };
            let task = Task {
                dims,
                out: (&mut *out, out_at),
                left: (left.data(), left_at),
                right: (right.data(), right_at),
                batch,
                accumulate: self.accumulate,
            };
            T::multiply_by(self.provider.products(), self.known, identity, task);
            if !advance(&mut at, |k| extent(outer[k])) {
                return;
            }
        }
    }
}

impl KnownProduct<'_> {
    /// True if both operands, which lie in the same memory, move in the same way.
    fn operands_are_same(&self, rows: &[usize], columns: &[usize], outer: &[usize]) -> bool {
        let [_, left, right] = self.plans;
        let extents = &self.frame.extents;
        let moves = |plan: &AccessPlan, var: usize| self.frame.loop_of(var).map_or(0, |depth| plan.step(depth));
        let alike = |a: usize, b: usize| extents[a] == extents[b] && moves(left, a) == moves(right, b);
        left.base() == right.base()
            && rows.len() == columns.len()
            && rows.iter().zip(columns).all(|(&row, &column)| alike(row, column))
            && self.roles.terms.iter().chain(outer).all(|&var| alike(var, var))
    }
}

/// Moves on to the next position of some loops, the last one innermost; false after the last position.
fn advance(at: &mut [usize], extent: impl Fn(usize) -> usize) -> bool {
    for k in (0..at.len()).rev() {
        at[k] += 1;
        if at[k] < extent(k) {
            return true;
        }
        at[k] = 0;
    }
    false
}
