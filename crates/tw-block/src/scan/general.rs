//! Scans whose state is a tuple combined by code.
//!
//! Where rows are longer than one element, the states of a whole row move along together. Where the axis is the last one, a strip
//! of it is scanned in logarithmically many steps, each over the whole strip.

use std::borrow::Cow;

use tw_ir::{Accum, Buffer, Result, Scalar, ScalarCode, SliceMut, Slot};

use super::{Direction, Slabs};
use crate::states::{combine_strips, overwrite, strip_buffers};
use crate::strip::{Direct, Element, Lane, RegisterPlan, Registers, STRIP, StripCode, with_dtype, with_registers};

/// The code of a scan made ready.
#[derive(Debug)]
pub(super) struct StateScan {
    identity: Vec<Scalar>,
    /// From bodies to states.
    lift: StripCode,
    /// From two states to one.
    combine: StripCode,
    /// From bodies and a state to the next state.
    step: StripCode,
    /// From states to results.
    finish: StripCode,
    registers: RegisterPlan,
}

impl StateScan {
    pub(super) fn compile(accum: &Accum) -> Result<StateScan> {
        let mut registers = RegisterPlan::default();
        Ok(StateScan {
            identity: accum.identity.clone(),
            lift: StripCode::compile(&accum.lift, &mut registers),
            combine: StripCode::compile(&accum.combine, &mut registers),
            step: StripCode::compile(&step_code(accum)?, &mut registers),
            finish: StripCode::compile(&accum.finish, &mut registers),
            registers,
        })
    }

    /// Aggregates along the axis, into blocks that are one row long.
    pub(super) fn total(
        &self,
        direction: Direction,
        slabs: Slabs,
        bodies: &[Cow<'_, Buffer>],
        totals: &mut [SliceMut<'_>],
    ) -> Result<()> {
        let start: Vec<Cow<'_, Buffer>> =
            self.identity.iter().map(|&value| Cow::Owned(Buffer::full(value, slabs.n_across()))).collect();
        self.run(
            direction,
            slabs,
            bodies,
            &start,
            |_, _| {},
            |position, states, len| {
                totals.iter_mut().zip(states).for_each(|(total, state)| overwrite(total, position, state, len));
            },
        );
        Ok(())
    }

    /// Running aggregates, from the carried states on.
    pub(super) fn scan(
        &self,
        direction: Direction,
        exclusive: bool,
        slabs: Slabs,
        bodies: &[Cow<'_, Buffer>],
        carried: &[Cow<'_, Buffer>],
        results: &mut [SliceMut<'_>],
    ) -> Result<()> {
        let see = |seen: Seen<'_>, registers: &mut Registers| {
            let states = if exclusive { seen.before } else { seen.after };
            let lanes: Vec<Option<Lane<'_>>> =
                states.iter().map(|state| Some(Lane::slice(state, 0..seen.len))).collect();
            let direct = Direct { buffers: &mut *results, start: seen.position };
            self.finish.eval_into(&lanes, registers, seen.len, Some(direct));
        };
        self.run(direction, slabs, bodies, carried, see, |_, _, _| {});
        Ok(())
    }

    /// Runs over all slabs. `see` is called with states before and after elements that are neighbours in the block; `end` with the position
    /// across the axis, the last states, and their number.
    fn run(
        &self,
        direction: Direction,
        slabs: Slabs,
        bodies: &[Cow<'_, Buffer>],
        start: &[Cow<'_, Buffer>],
        mut see: impl FnMut(Seen<'_>, &mut Registers),
        mut end: impl FnMut(usize, &[Buffer], usize),
    ) {
        with_registers(&self.registers, |registers| {
            let mut pass = Pass::new(self, direction, bodies, registers);
            for slab in 0..slabs.outer {
                for column in (0..slabs.inner).step_by(STRIP) {
                    let len = STRIP.min(slabs.inner - column);
                    let across = slab * slabs.inner + column;
                    pass.begin(start, across, len);
                    let first = slab * slabs.n * slabs.inner + column;
                    match slabs.inner {
                        1 => pass.along_axis(first, slabs.n, &mut see),
                        _ => pass.along_rows(first, slabs, len, &mut see),
                    }
                    end(across, &pass.state, len);
                }
            }
        })
    }
}

/// States of neighbouring elements.
struct Seen<'a> {
    position: usize,
    len: usize,
    before: &'a [Buffer],
    after: &'a [Buffer],
}

/// The buffers of a running scan.
struct Pass<'a> {
    scan: &'a StateScan,
    direction: Direction,
    bodies: &'a [Cow<'a, Buffer>],
    registers: &'a mut Registers,
    /// Where the scan is: one state per column, or one.
    state: Vec<Buffer>,
    next: Vec<Buffer>,
    prefixes: Vec<Buffer>,
}

impl<'a> Pass<'a> {
    fn new(
        scan: &'a StateScan,
        direction: Direction,
        bodies: &'a [Cow<'a, Buffer>],
        registers: &'a mut Registers,
    ) -> Pass<'a> {
        let states = || strip_buffers(scan.identity.iter().map(|value| value.dtype()));
        Pass { scan, direction, bodies, registers, state: states(), next: states(), prefixes: states() }
    }

    /// Takes over the states of some columns.
    fn begin(&mut self, start: &[Cow<'_, Buffer>], position: usize, len: usize) {
        for (state, start) in self.state.iter_mut().zip(start) {
            with_dtype!(state.dtype(), T => {
                T::of_mut(state)[..len].copy_from_slice(&T::of(start)[position..position + len]);
            });
        }
    }

    fn along_rows(&mut self, first: usize, slabs: Slabs, len: usize, see: &mut impl FnMut(Seen<'_>, &mut Registers)) {
        for k in 0..slabs.n {
            let position = first + self.direction.row(k, slabs.n) * slabs.inner;
            let lanes: Vec<Option<Lane<'_>>> = (self.bodies.iter())
                .map(|body| Lane::slice(body, position..position + len))
                .chain(self.state.iter().map(|state| Lane::slice(state, 0..len)))
                .map(Some)
                .collect();
            let direct = Direct { buffers: &mut self.next, start: 0 };
            self.scan.step.eval_into(&lanes, self.registers, len, Some(direct));
            see(Seen { position, len, before: &self.state, after: &self.next }, self.registers);
            std::mem::swap(&mut self.state, &mut self.next);
        }
    }

    fn along_axis(&mut self, first: usize, n: usize, see: &mut impl FnMut(Seen<'_>, &mut Registers)) {
        for done in (0..n).step_by(STRIP) {
            let len = STRIP.min(n - done);
            let position = first + if self.direction.reverse { n - done - len } else { done };
            self.scan_strip(position, len);
            // Everything before the strip comes in, as one state for all.
            let state: Vec<Scalar> = self.state.iter().map(|state| state.get(0)).collect();
            let lanes: Vec<Option<Lane<'_>>> = (state.iter().map(|&value| Lane::same(value)))
                .chain(self.prefixes.iter().map(|prefix| Lane::slice(prefix, 0..len)))
                .map(Some)
                .collect();
            let direct = Direct { buffers: &mut self.next, start: 0 };
            self.scan.combine.eval_into(&lanes, self.registers, len, Some(direct));
            for ((next, before), state) in self.next.iter_mut().zip(&mut self.prefixes).zip(&mut self.state) {
                with_dtype!(next.dtype(), T => {
                    let (next, before) = (&mut T::of_mut(next)[..len], &mut T::of_mut(before)[..len]);
                    let state = &mut T::of_mut(state)[0];
                    before[0] = *state;
                    before[1..].copy_from_slice(&next[..len - 1]);
                    *state = next[len - 1];
                    if self.direction.reverse {
                        before.reverse();
                        next.reverse();
                    }
                });
            }
            see(Seen { position, len, before: &self.prefixes, after: &self.next }, self.registers);
        }
    }

    /// Fills `prefixes`, in the order of the axis: each element combined with all before it in the strip.
    fn scan_strip(&mut self, position: usize, len: usize) {
        let lanes: Vec<Option<Lane<'_>>> =
            self.bodies.iter().map(|body| Some(Lane::slice(body, position..position + len))).collect();
        let direct = Direct { buffers: &mut self.prefixes, start: 0 };
        self.scan.lift.eval_into(&lanes, self.registers, len, Some(direct));
        if self.direction.reverse {
            self.prefixes.iter_mut().for_each(|prefix| tw_ir::with_buffer!(prefix, values => values[..len].reverse()));
        }
        let mut reach = 1;
        while reach < len {
            let (n, prefixes) = (len - reach, &mut self.prefixes);
            combine_strips(&self.scan.combine, (prefixes, 0), (prefixes, reach), n, &mut self.next, self.registers);
            prefixes.iter_mut().zip(&self.next).for_each(|(to, from)| overwrite(to, reach, from, n));
            reach *= 2;
        }
    }
}

/// From bodies and a state to the next state.
fn step_code(accum: &Accum) -> Result<ScalarCode> {
    let n_bodies = accum.lift.params().len();
    let mut code = ScalarCode::new([accum.lift.params(), &accum.state_types()].concat());
    let params: Vec<Slot> = (0..code.params().len() as u32).map(|k| code.param(k)).collect();
    let (bodies, state) = params.split_at(n_bodies);
    let lifted = code.inline(&accum.lift, bodies)?;
    let next = code.inline(&accum.combine, &[state, &lifted].concat())?;
    code.set_results(next);
    Ok(code)
}
