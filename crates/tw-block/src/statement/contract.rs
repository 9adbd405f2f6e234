//! Contractions: sums of products of two operands, done as matrix products.
//!
//! Every variable is a row (in the left operand and the output), a column (in the right operand and the output), a term (in both operands) or a batch
//! (in all three). Several row variables become one where the output allows it; all term variables become one always. An operand whose
//! storage does not allow that is copied first. So the shape of the product, and with it the order of each sum, depends on boxes alone.

use tw_ir::kernel::{KernelRead, StatementKernel};
use tw_ir::{BinaryOp, Buffer, DType, Idx, ScalarOp};

use super::access::Plan;
use super::frame::Frame;
use crate::block::Block;
use crate::copy::{Place, copy_typed};
use crate::gemm::{Matrix, Multiply, multiply};
use crate::strip::Element;

/// Below this many rows or columns the loops over strips are as fast.
const FEWEST: i64 = 4;

/// The provider sums small products of neighbouring terms in another order. Storage decides what is neighbouring, and must not show in the
/// result: up to this many elements of output, the left operand is copied so that its terms are apart.
const SMALL_OUTPUT: usize = 256;

/// A statement that is a contraction.
#[derive(Debug)]
pub(super) struct Contraction {
    dtype: DType,
    /// The reads that are the left and the right operand.
    pub(super) left: usize,
    pub(super) right: usize,
    rows: Vec<usize>,
    columns: Vec<usize>,
    terms: Vec<usize>,
    batches: Vec<usize>,
}

impl Contraction {
    /// Recognises a contraction.
    pub(super) fn of(kernel: &StatementKernel) -> Option<Contraction> {
        let (op, dtype) = kernel.accum.as_ref()?.as_simple()?;
        if op != BinaryOp::Add || !dtype.has_float_arithmetic() || kernel.has_guard {
            return None;
        }
        let code = kernel.code.without_dead_ops();
        let [result] = code.results() else { return None };
        let ScalarOp::Binary(BinaryOp::Mul, a, b) = code.ops()[result.0 as usize] else { return None };
        let (ScalarOp::Param(left), ScalarOp::Param(right)) = (code.ops()[a.0 as usize], code.ops()[b.0 as usize])
        else {
            return None;
        };
        let (left, right) = (left as usize, right as usize);
        let both_read = left != right && left.max(right) < 2 && kernel.reads.len() == 2;
        if !both_read {
            return None;
        }
        let in_left = plain_vars(kernel, &kernel.reads[left])?;
        let in_right = plain_vars(kernel, &kernel.reads[right])?;
        let in_out = plain(kernel, &kernel.out_idx, &kernel.out_shape)?;
        let mut found =
            Contraction { dtype, left, right, rows: vec![], columns: vec![], terms: vec![], batches: vec![] };
        for var in 0..kernel.vars.len() {
            let list = match (in_left.contains(&var), in_right.contains(&var), in_out.contains(&var)) {
                (true, false, true) => &mut found.rows,
                (false, true, true) => &mut found.columns,
                (true, true, false) => &mut found.terms,
                (true, true, true) => &mut found.batches,
                _ => return None,
            };
            list.push(var);
        }
        // In the order of the output, so that neighbours can become one.
        let axis_of = |var: &usize| in_out.iter().position(|v| v == var);
        found.rows.sort_by_key(axis_of);
        found.columns.sort_by_key(axis_of);
        let complete = !found.rows.is_empty() && !found.columns.is_empty() && !found.terms.is_empty();
        complete.then_some(found)
    }

    /// True if a matrix product of this box is worth its beginning.
    pub(super) fn is_worthwhile(&self, frame: &Frame) -> bool {
        let points = |vars: &[usize]| vars.iter().map(|&var| frame.extents[var]).product::<i64>();
        points(&self.rows) >= FEWEST && points(&self.columns) >= FEWEST && points(&self.terms) >= FEWEST
    }

    /// How many elements of the output a box reaches.
    pub(super) fn n_results(&self, frame: &Frame) -> u64 {
        let vars = self.rows.iter().chain(&self.columns).chain(&self.batches);
        vars.map(|&var| frame.extents[var] as u64).product()
    }

    /// Adds the contraction to the output, or starts it. All plans must be direct.
    pub(super) fn run(
        &self,
        frame: &Frame,
        (out, out_plan): (&mut Buffer, &Plan),
        (left, left_plan): (&Block, &Plan),
        (right, right_plan): (&Block, &Plan),
        accumulate: bool,
    ) {
        let left = (left.data(), left_plan);
        let right = (right.data(), right_plan);
        match self.dtype {
            DType::F32 => self.run_typed::<f32>(frame, (out, out_plan), left, right, accumulate),
            _ => self.run_typed::<f64>(frame, (out, out_plan), left, right, accumulate),
        }
    }

    fn run_typed<T: Multiply + Element>(
        &self,
        frame: &Frame,
        (out, out_plan): (&mut Buffer, &Plan),
        (left, left_plan): (&Buffer, &Plan),
        (right, right_plan): (&Buffer, &Plan),
        accumulate: bool,
    ) {
        let step = |plan: &Plan, var: usize| frame.loop_of(var).map_or(0, |depth| plan.step(depth) as usize);
        let extent = |var: usize| frame.extents[var] as usize;
        let out_step = |var: usize| step(out_plan, var);
        let (rows, other_rows) = largest_group(&self.rows, extent, out_step);
        let (columns, other_columns) = largest_group(&self.columns, extent, out_step);
        let outer: Vec<usize> = [&self.batches[..], &other_rows, &other_columns].concat();

        let left_vars = [&outer[..], &rows, &self.terms];
        let given_left = T::of(left);
        let mut left = Side::new(given_left, left_plan, frame, left_vars);
        let right = Side::new(T::of(right), right_plan, frame, [&outer, &columns, &self.terms]);
        let size = |vars: &[usize]| vars.iter().map(|&var| extent(var)).product::<usize>();
        let dims = (size(&rows), size(&columns), size(&self.terms));
        if dims.0 * dims.1 <= SMALL_OUTPUT && left.term_step == 1 && right.term_step == 1 {
            left = Side::copied(given_left, left_plan, frame, left_vars);
        }
        let out = T::of_mut(out);
        let innermost =
            |vars: &[usize]| vars.iter().rev().find(|&&var| extent(var) > 1).map_or(0, |&var| out_step(var));
        let (out_row, out_column) = (innermost(&rows), innermost(&columns));
        let mut at = vec![0; outer.len()];
        loop {
            let offset = |steps: &[usize]| at.iter().zip(steps).map(|(at, step)| at * step).sum::<usize>();
            let out_steps: Vec<usize> = outer.iter().map(|&var| out_step(var)).collect();
            let out_at = Matrix { offset: out_plan.base() + offset(&out_steps), row: out_row, column: out_column };
            let left_at =
                Matrix { offset: left.base + offset(&left.outer_steps), row: left.free_step, column: left.term_step };
            let right_at = Matrix {
                offset: right.base + offset(&right.outer_steps),
                row: right.term_step,
                column: right.free_step,
            };
            multiply(dims, (out, out_at), (left.data(), left_at), (right.data(), right_at), accumulate);
            let mut k = outer.len();
            loop {
                if k == 0 {
                    return;
                }
                k -= 1;
                at[k] += 1;
                if at[k] < extent(outer[k]) {
                    break;
                }
                at[k] = 0;
            }
        }
    }
}

/// One operand as matrices: its free variables (rows or columns) as one, its terms as one.
struct Side<'a, T> {
    given: &'a [T],
    copied: Option<Vec<T>>,
    base: usize,
    outer_steps: Vec<usize>,
    free_step: usize,
    term_step: usize,
}

impl<'a, T: Element> Side<'a, T> {
    /// The operand where it lies, or a copy if it does not move evenly there.
    fn new(given: &'a [T], plan: &Plan, frame: &Frame, vars: [&[usize]; 3]) -> Side<'a, T> {
        let [outer, free, terms] = vars;
        let step = |var: usize| frame.loop_of(var).map_or(0, |depth| plan.step(depth) as usize);
        let extent = |var: usize| frame.extents[var] as usize;
        match (even_step(free, extent, step), even_step(terms, extent, step)) {
            (Some(free_step), Some(term_step)) => {
                let outer_steps = outer.iter().map(|&var| step(var)).collect();
                Side { given, copied: None, base: plan.base(), outer_steps, free_step, term_step }
            }
            _ => Side::copied(given, plan, frame, vars),
        }
    }

    /// A copy with free variables as neighbours.
    fn copied(given: &'a [T], plan: &Plan, frame: &Frame, [outer, free, terms]: [&[usize]; 3]) -> Side<'a, T> {
        let vars: Vec<usize> = [outer, terms, free].concat();
        let from: Vec<usize> =
            vars.iter().map(|&var| frame.loop_of(var).map_or(0, |depth| plan.step(depth) as usize)).collect();
        // Outer variables that the operand does not have are not copied once per value.
        let shape: Vec<u64> =
            vars.iter().zip(&from).map(|(&var, &step)| if step == 0 { 1 } else { frame.extents[var] as u64 }).collect();
        let to: Vec<usize> = tw_ir::shape::row_major_strides(&shape).iter().map(|&s| s as usize).collect();
        let mut copied = vec![T::default(); shape.iter().product::<u64>() as usize];
        copy_typed(
            &shape,
            given,
            Place { offset: plan.base(), strides: &from },
            &mut copied,
            Place { offset: 0, strides: &to },
        );
        let outer_steps = (0..outer.len()).map(|k| if from[k] == 0 { 0 } else { to[k] }).collect();
        let n_free: usize = free.iter().map(|&var| frame.extents[var] as usize).product();
        Side { given, copied: Some(copied), base: 0, outer_steps, free_step: 1, term_step: n_free }
    }

    fn data(&self) -> &[T] {
        self.copied.as_deref().unwrap_or(self.given)
    }
}

/// The step of several variables taken as one, if they move evenly.
fn even_step(vars: &[usize], extent: impl Fn(usize) -> usize, step: impl Fn(usize) -> usize) -> Option<usize> {
    let mut combined: Option<(usize, usize)> = None;
    for &var in vars.iter().rev().filter(|&&var| extent(var) > 1) {
        match &mut combined {
            None => combined = Some((step(var), extent(var))),
            Some((innermost, n)) => {
                if step(var) != *innermost * *n {
                    return None;
                }
                *n *= extent(var);
            }
        }
    }
    Some(combined.map_or(0, |(step, _)| step))
}

/// Splits variables into the neighbours that together are the largest group that moves evenly, and the others.
fn largest_group(
    vars: &[usize],
    extent: impl Fn(usize) -> usize + Copy,
    step: impl Fn(usize) -> usize + Copy,
) -> (Vec<usize>, Vec<usize>) {
    let mut best = 0..0;
    let mut best_size = 0;
    for start in 0..vars.len() {
        for end in start + 1..=vars.len() {
            let group = &vars[start..end];
            let size: usize = group.iter().map(|&var| extent(var)).product();
            if size > best_size && even_step(group, extent, step).is_some() {
                (best, best_size) = (start..end, size);
            }
        }
    }
    let others = vars[..best.start].iter().chain(&vars[best.end..]).copied().collect();
    (vars[best].to_vec(), others)
}

fn plain_vars(kernel: &StatementKernel, read: &KernelRead) -> Option<Vec<usize>> {
    plain(kernel, &read.idx, &read.shape)
}

/// The variables of an access that is nothing but distinct variables, each as long as its axis at most.
fn plain(kernel: &StatementKernel, idx: &[Idx], shape: &[u64]) -> Option<Vec<usize>> {
    let mut vars = Vec::with_capacity(idx.len());
    for (idx, &extent) in idx.iter().zip(shape) {
        let var = idx.as_var()?.0 as usize;
        if vars.contains(&var) || kernel.vars[var].extent() > extent {
            return None;
        }
        vars.push(var);
    }
    Some(vars)
}
