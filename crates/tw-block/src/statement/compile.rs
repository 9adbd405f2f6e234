//! Making a statement ready.

use tw_ir::kernel::StatementKernel;
use tw_ir::{Accum, DType, Error, Grid, Idx, Result, Scalar, ScalarCode, ScalarOp, Slot, Term};

use super::access::Access;
use super::aggregate::Aggregate;
use super::contract::Contraction;
use super::slide::LONG_WINDOW;
use crate::gemm::Provider;
use crate::states::monoids;
use crate::strip::{Monoid, RegisterId, RegisterPlan, STRIP, StripCode};

/// A row shorter than this is flattened together with the loop around it.
const SHORT_ROW: u64 = 64;

/// Where accesses disagree about what is neighbouring, a box is visited in tiles: this many values of the innermost variable, by so many of the
/// other. So the cache lines that a strip touches are still there for the next one. Longer tiles were slower for power-of-two strides,
/// smaller ones for all others.
const TILE_LENGTH: i64 = 512;
const TILE_HEIGHT: i64 = 64;

/// A statement kernel made ready.
#[derive(Debug)]
pub(crate) struct CompiledStatement {
    pub(super) vars: Grid,
    /// Loops, outermost first.
    pub(super) order: Vec<usize>,
    /// How many of them are flattened into strips.
    pub(super) n_inner: usize,
    pub(super) reads: Vec<Read>,
    /// Variables whose values the code reads.
    pub(super) used_vars: Vec<usize>,
    /// From reads and variables to the guard (if there is one) and the values that are written or folded.
    pub(super) code: StripCode,
    pub(super) has_guard: bool,
    /// The condition alone, where the statement only counts how often one holds.
    pub(super) counted: Option<StripCode>,
    pub(super) fold: Fold,
    pub(super) out: Access,
    /// What outputs hold before the first contribution.
    pub(super) start: Vec<Scalar>,
    pub(super) registers: RegisterPlan,
    /// Variables cut into tiles of this size, so that accesses with different neighbours all stay in the nearest cache.
    pub(super) tiles: Vec<(usize, i64)>,
    /// The same as a matrix product.
    pub(super) contraction: Option<Contraction>,
}

/// An operand.
#[derive(Debug)]
pub(super) struct Read {
    pub(super) dtype: DType,
    pub(super) access: Access,
    pub(super) fill: Scalar,
    /// False if the code does not look at it; it may still be an error to read outside.
    pub(super) used: bool,
}

/// How values reach the outputs.
#[derive(Debug)]
pub(super) enum Fold {
    /// They are written.
    Write,
    /// Every component by an operation of its own.
    Simple(Vec<Part>),
    /// A tuple with loops of its own.
    Aggregate(Aggregate),
    /// A tuple combined by code.
    General {
        /// From two states to one.
        combine: StripCode,
        /// From reads, variables and a state to the next state.
        fused: StripCode,
    },
}

/// A component of a state that is folded by one operation.
#[derive(Clone, Copy, Debug)]
pub(super) struct Part {
    pub(super) monoid: Monoid,
    /// The elements that a guard lets through.
    pub(super) masked: RegisterId,
}

impl CompiledStatement {
    pub(crate) fn compile(kernel: &StatementKernel, provider: &Provider) -> Result<CompiledStatement> {
        check(kernel)?;
        let n_vars = kernel.vars.len();
        let n_reads = kernel.reads.len();
        let scalar = with_lift(kernel)?.without_dead_ops();
        let mut registers = RegisterPlan::default();
        let code = StripCode::compile(&scalar, &mut registers);
        let reads: Vec<Read> = kernel
            .reads
            .iter()
            .enumerate()
            .map(|(k, read)| Read {
                dtype: read.dtype,
                access: Access::new(&read.idx, &read.shape, read.edge),
                fill: read.fill,
                used: scalar.uses_param(k as u32),
            })
            .collect();
        let out = Access::new(&kernel.out_idx, &kernel.out_shape, kernel.out_edge);
        let fold = match &kernel.accum {
            None => Fold::Write,
            Some(accum) => match (monoids(accum), Aggregate::of(accum)) {
                (Some(monoids), _) => Fold::Simple(
                    monoids.into_iter().map(|(monoid, dtype)| Part { monoid, masked: registers.take(dtype) }).collect(),
                ),
                // Where a guard excludes points, code is asked about each of them.
                (None, Some(aggregate)) if !kernel.has_guard => Fold::Aggregate(aggregate),
                (None, _) => Fold::General {
                    combine: StripCode::compile(&accum.combine, &mut registers),
                    fused: StripCode::compile_after(code.params(), &fuse(kernel, accum, &scalar)?, &mut registers),
                },
            },
        };
        let counted = match &fold {
            Fold::Simple(parts) if parts.len() == 1 && parts[0].monoid == Monoid::Sum && !kernel.has_guard => {
                let condition = counted_condition(&scalar);
                condition.map(|condition| StripCode::compile_after(code.params(), &condition, &mut registers))
            }
            _ => None,
        };
        let order = loop_order(kernel, &reads, &out);
        let mut tiles = tiles(kernel, &order, &reads, &out);
        let slides = (0..n_vars)
            .any(|var| slides_with(var, &reads, &out).is_some() && kernel.vars[var].longest() >= LONG_WINDOW as u64);
        if tiles.is_empty() && matches!(fold, Fold::Aggregate(_)) && !slides {
            tiles = strips_of_states(&order, &out);
        }
        Ok(CompiledStatement {
            vars: kernel.vars.clone(),
            n_inner: n_flattened(kernel, &order, &tiles),
            tiles,
            order,
            used_vars: (0..n_vars).filter(|&v| scalar.uses_param((n_reads + v) as u32)).collect(),
            reads,
            code,
            has_guard: kernel.has_guard,
            counted,
            fold,
            out,
            start: kernel.accum.as_ref().map_or_else(|| kernel.out_fill.clone(), |accum| accum.identity.clone()),
            registers,
            contraction: Contraction::of(kernel, provider),
        })
    }
}

/// The code with bodies lifted.
fn with_lift(kernel: &StatementKernel) -> Result<ScalarCode> {
    let mut code = ScalarCode::new(kernel.code.params().to_vec());
    let params: Vec<Slot> = (0..kernel.code.params().len() as u32).map(|k| code.param(k)).collect();
    let mut results = code.inline(&kernel.code, &params)?;
    if let Some(accum) = &kernel.accum {
        let bodies = results.split_off(kernel.has_guard as usize);
        results.extend(code.inline(&accum.lift, &bodies)?);
    }
    code.set_results(results);
    Ok(code)
}

/// The condition of code that is 1 where it holds and 0 elsewhere.
fn counted_condition(code: &ScalarCode) -> Option<ScalarCode> {
    let [result] = code.results() else { return None };
    let op = |slot: Slot| code.ops()[slot.0 as usize];
    let is = |slot: Slot, value: i64| op(slot) == ScalarOp::Const(Scalar::I64(value));
    let condition = match op(*result) {
        ScalarOp::Cast(DType::I64, condition) => condition,
        ScalarOp::Select(condition, yes, no) if is(yes, 1) && is(no, 0) => condition,
        _ => return None,
    };
    let mut alone = code.clone();
    alone.set_results(vec![condition]);
    (code.dtype(condition) == DType::Bool).then(|| alone.without_dead_ops())
}

/// The code with states combined: parameters are followed by a state, results are the next state.
fn fuse(kernel: &StatementKernel, accum: &Accum, lifted: &ScalarCode) -> Result<ScalarCode> {
    let state_types = accum.state_types();
    let mut code = ScalarCode::new([lifted.params(), &state_types].concat());
    let params: Vec<Slot> = (0..code.params().len() as u32).map(|k| code.param(k)).collect();
    let (params, state) = params.split_at(lifted.params().len());
    let mut values = code.inline(lifted, params)?;
    let contribution = values.split_off(kernel.has_guard as usize);
    let mut next = code.inline(&accum.combine, &[state, &contribution].concat())?;
    if let [guard] = values[..] {
        for (next, state) in next.iter_mut().zip(state) {
            *next = code.select(guard, *next, *state)?;
        }
    }
    code.set_results(next);
    Ok(code)
}

/// Checks the preconditions of the loops below, so that a malformed kernel is an error and not a panic.
fn check(kernel: &StatementKernel) -> Result<()> {
    let wrong = |what: &str| Err(Error::internal(format!("a statement kernel whose {what}")));
    let n_vars = kernel.vars.len();
    let well_formed = |idx: &Idx| idx.max_var().is_none_or(|var| (var.0 as usize) < n_vars) && divides_by_positive(idx);
    kernel.code.verify()?;
    let params: Vec<DType> =
        kernel.reads.iter().map(|read| read.dtype).chain(std::iter::repeat_n(DType::I64, n_vars)).collect();
    if kernel.code.params() != params {
        return wrong("code does not take its reads and variables");
    }
    for read in &kernel.reads {
        if read.idx.len() != read.shape.len() || !read.idx.iter().all(well_formed) || read.fill.dtype() != read.dtype {
            return wrong("reads do not fit its variables");
        }
    }
    if kernel.out_idx.len() != kernel.out_shape.len() || !kernel.out_idx.iter().all(well_formed) {
        return wrong("output does not fit its variables");
    }
    let results = kernel.code.result_types();
    if kernel.has_guard && results.first() != Some(&DType::Bool) {
        return wrong("guard is not a bool");
    }
    let bodies = &results[kernel.has_guard as usize..];
    match &kernel.accum {
        Some(accum) => accum.verify(bodies),
        None if kernel.out_fill.iter().map(|fill| fill.dtype()).eq(bodies.iter().copied()) => Ok(()),
        None => wrong("fill values do not fit its bodies"),
    }
}

fn divides_by_positive(idx: &Idx) -> bool {
    idx.terms().iter().all(|(term, _)| match term {
        Term::Var(_) => true,
        Term::Div(inner, n) | Term::Mod(inner, n) => *n > 0 && divides_by_positive(inner),
        Term::Table(inner, _) => divides_by_positive(inner),
    })
}

/// An order of loops: innermost the variable along which accesses are neighbours; around it those that leave the output in place; outermost
/// those that move it, in the order of its axes.
fn loop_order(kernel: &StatementKernel, reads: &[Read], out: &Access) -> Vec<usize> {
    let n_vars = kernel.vars.len();
    let cost = |var: usize| {
        let accesses: u64 = reads.iter().map(|read| read.access.cost_along(var)).sum();
        // A short loop pays for its beginning more often.
        let short = 32 / kernel.vars[var].longest().clamp(1, 64);
        // Windows that slide along the innermost variable are reduced many at a time.
        let within_window = if slides_with(var, reads, out).is_some() { 4 } else { 0 };
        accesses + out.cost_along(var) + short + within_window
    };
    let Some(innermost) = (0..n_vars).rev().min_by_key(|&var| cost(var)) else { return Vec::new() };
    let axis_of = |var: usize| out.axes.iter().position(|axis| axis.idx.uses(tw_ir::Var(var as u32)));
    let mut order: Vec<usize> = (0..n_vars).filter(|&var| var != innermost).collect();
    // What moves within a window goes around what moves the window.
    let place = |var: usize| match slides_with(var, reads, out) {
        Some(along) => (axis_of(along).unwrap_or(usize::MAX), 0),
        None => (axis_of(var).unwrap_or(usize::MAX), 1),
    };
    order.sort_by_key(|&var| place(var));
    order.push(innermost);
    order
}

/// The variable that moves windows along the axis along which a reduced variable runs through each of them, if that is what the statement does:
/// one read, at the sum of both.
fn slides_with(var: usize, reads: &[Read], out: &Access) -> Option<usize> {
    let [read] = reads else { return None };
    let moves_output = |var: usize| out.cost_along(var) > 0;
    let mut axes = read.access.axes.iter().filter(|axis| axis.idx.uses(tw_ir::Var(var as u32)));
    let axis = axes.next().filter(|axis| axis.others.is_empty() && !moves_output(var))?;
    let coefficient = axis.affine.iter().find(|(other, _)| *other == var)?.1;
    let partner =
        axis.affine.iter().find(|(other, factor)| moves_output(*other) && factor.abs() <= coefficient.abs())?;
    axes.next().is_none().then_some(partner.0)
}

/// How many of the last loops are flattened into strips.
fn n_flattened(kernel: &StatementKernel, order: &[usize], tiles: &[(usize, i64)]) -> usize {
    let mut points = 1;
    let mut n = 0;
    for &var in order.iter().rev() {
        if n > 0 && points >= SHORT_ROW {
            break;
        }
        let tile = tiles.iter().find(|(tiled, _)| *tiled == var).map_or(u64::MAX, |&(_, size)| size as u64);
        points *= kernel.vars[var].longest().clamp(1, tile);
        n += 1;
    }
    n
}

/// Cuts the innermost variable into strips where it moves the output, so that the states of a strip stay near while rows pass over them.
fn strips_of_states(order: &[usize], out: &Access) -> Vec<(usize, i64)> {
    match *order {
        [.., _, innermost] if out.cost_along(innermost) > 0 => vec![(innermost, STRIP as i64)],
        _ => Vec::new(),
    }
}

/// Variables to be cut into tiles: the innermost one, and those along which other accesses are neighbours.
fn tiles(kernel: &StatementKernel, order: &[usize], reads: &[Read], out: &Access) -> Vec<(usize, i64)> {
    let Some(&innermost) = order.last() else { return Vec::new() };
    let long = |var: usize| kernel.vars[var].longest() > TILE_HEIGHT as u64;
    let mut vars: Vec<usize> = reads
        .iter()
        .map(|read| &read.access)
        .chain([out])
        .filter(|access| access.cost_along(innermost) > 1)
        .filter_map(|access| access.neighbours())
        .filter(|&var| var != innermost && long(var))
        .collect();
    vars.sort_unstable();
    vars.dedup();
    if vars.is_empty() || !long(innermost) {
        return Vec::new();
    }
    let mut tiles: Vec<(usize, i64)> = vars.into_iter().map(|var| (var, TILE_HEIGHT)).collect();
    tiles.push((innermost, TILE_LENGTH));
    tiles
}
