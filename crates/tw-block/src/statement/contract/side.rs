//! Operands of contractions as matrices.

use super::super::access::AccessPlan;
use super::super::frame::Frame;
use crate::copy::{Place, copy_typed};

/// One operand as matrices: its free variables (rows or columns) as one, its terms as one.
pub(super) struct Side<'a, T> {
    given: &'a [T],
    copied: Option<Vec<T>>,
    /// Position of the first element.
    pub(super) base: usize,
    /// Steps of the variables that are neither free nor terms.
    pub(super) outer_steps: Vec<usize>,
    pub(super) free_step: usize,
    pub(super) term_step: usize,
}

impl<'a, T: Copy + Default> Side<'a, T> {
    /// The operand where it lies, or a copy if it does not move evenly there.
    pub(super) fn new(given: &'a [T], plan: &AccessPlan, frame: &Frame, vars: [&[usize]; 3]) -> Side<'a, T> {
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
    pub(super) fn copied(
        given: &'a [T],
        plan: &AccessPlan,
        frame: &Frame,
        [outer, free, terms]: [&[usize]; 3],
    ) -> Side<'a, T> {
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

    /// The elements.
    pub(super) fn data(&self) -> &[T] {
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
pub(super) fn largest_group(
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
