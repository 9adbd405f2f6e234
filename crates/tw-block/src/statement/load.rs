//! Operands of a strip.

use tw_ir::{Buffer, Edge, Error, Result, Scalar};

use super::access::{Access, EvenRows, Flight, Piece, Place};
use super::compile::Read;
use super::frame::{Frame, Strip};
use super::run::{Scratch, Task};
use crate::block::Block;
use crate::strip::{Element, Lane, RegisterId, Registers, Values, with_dtype};

impl Task<'_> {
    /// Makes the parameters of the code ready: as a slice of a block where possible, otherwise in the parameter's register.
    pub(super) fn load(&mut self, strip: Strip) -> Result<()> {
        let statement = self.statement;
        self.scratch.misses.clear();
        for (k, read) in statement.reads.iter().enumerate() {
            self.load_read(k, read, strip)?;
        }
        for &var in &statement.used_vars {
            self.load_var(var, strip);
        }
        if !statement.has_guard
            && let Some(&(read, offset, _)) = self.scratch.misses.first()
        {
            return Err(self.read_outside(read, strip, offset));
        }
        Ok(())
    }

    fn load_read(&mut self, k: usize, read: &Read, strip: Strip) -> Result<()> {
        let Scratch { registers, frame, plans, misses, .. } = &mut *self.scratch;
        let plan = &plans[k];
        let block = self.blocks[k];
        if block.is_none() && read.access.edge == Edge::Fill {
            self.lanes[k] = Some(Lane::same(read.fill));
            return Ok(());
        }
        if !read.used && (read.access.edge == Edge::Fill || plan.is_direct()) {
            return Ok(());
        }
        let register = self.statement.code.params()[k];
        let lane = &mut self.lanes[k];
        *lane = None;
        if let (Some(block), Some(rows)) = (block, plan.even_rows(frame, strip)) {
            // Rows that are all the same are still there from the strip before.
            let here = (rows.position, strip.len);
            let loaded = self.loaded[k].is_some_and(|(position, len)| position == here.0 && len >= here.1);
            if rows.row_step != 0 || !loaded {
                copy_rows(registers, register, block.data(), &rows);
                self.loaded[k] = (rows.row_step == 0).then_some(here);
            }
            return Ok(());
        }
        if let (Some(block), Some(flight)) = (block, plan.flight(frame, strip)) {
            copy_flight(registers, register, block.data(), &flight, strip.len);
            return Ok(());
        }
        let mut elsewhere = false;
        plan.pieces(&read.access, frame, strip, |piece| {
            match (piece.place, block) {
                (Place::Inside { position, slope }, Some(block)) => {
                    if piece.len == strip.len
                        && let Some(whole) = borrow(block.data(), position, slope, piece.len)
                    {
                        *lane = Some(whole);
                    } else {
                        copy_piece(registers, register, block.data(), (position, slope), &piece, strip.len);
                    }
                    return Ok(());
                }
                (Place::Outside, _) if read.access.edge != Edge::Fill => misses.push((k, piece.offset, piece.len)),
                (Place::Elsewhere, _) => {
                    elsewhere = true;
                    misses.push((k, piece.offset, piece.len));
                }
                (Place::Outside | Place::Inside { .. }, _) => {}
            }
            fill_piece(registers, register, read.fill, &piece, strip.len);
            Ok::<(), Error>(())
        })?;
        if elsewhere && !self.statement.has_guard {
            return Err(missing_part(self.blocks[k]));
        }
        Ok(())
    }

    /// Repeats elements right where the output has them, if the statement does nothing else.
    pub(super) fn repeat_into(&mut self, strip: Strip, start: usize) -> bool {
        let statement = self.statement;
        let (Some(0), [_], [output]) = (statement.code.as_param(), &statement.reads[..], &mut self.buffers[..]) else {
            return false;
        };
        let Scratch { frame, plans, .. } = &mut *self.scratch;
        let flight = self.blocks[0].and_then(|block| Some((block, plans[0].flight(frame, strip)?)));
        let Some((block, flight)) = flight.filter(|(block, _)| block.dtype() == output.dtype()) else { return false };
        with_dtype!(output.dtype(), T => climb(T::of(block.data()), &flight, &mut T::of_mut(output)[start..start + strip.len]));
        true
    }

    fn load_var(&mut self, var: usize, strip: Strip) {
        let Scratch { registers, frame, .. } = &mut *self.scratch;
        let param = self.statement.reads.len() + var;
        let depth = frame.loop_of(var);
        match depth {
            Some(depth) if depth >= frame.n_outer => {}
            _ => {
                let counter = depth.map_or(0, |depth| frame.counters[depth]);
                self.lanes[param] = Some(Lane::I64(Values::Same(frame.starts[var] + counter)));
                return;
            }
        }
        let Some(depth) = depth else { return };
        self.lanes[param] = None;
        let register = self.statement.code.params()[param];
        let vector = registers.vector::<i64>(register.index, strip.len);
        let filled: Result<(), Error> = frame.runs(strip, |frame, offset, len| {
            let value = frame.starts[var] + frame.counters[depth];
            let run = &mut vector[offset..offset + len];
            if depth + 1 == frame.loops.len() {
                run.iter_mut().zip(value..).for_each(|(out, value)| *out = value);
            } else {
                run.fill(value);
            }
            Ok(())
        });
        debug_assert!(filled.is_ok(), "filling cannot fail");
    }

    /// The error of a read outside its tensor at a point of a strip.
    pub(super) fn read_outside(&mut self, read: usize, strip: Strip, offset: usize) -> Error {
        let statement = self.statement;
        let point = point_at(&mut self.scratch.frame, strip, offset);
        outside(&statement.reads[read].access, &point)
            .map_or_else(|| missing_part(self.blocks[read]), |what| Error::data(format!("a read outside: {what}")))
    }
}

/// The values of all variables at a point of a strip.
pub(super) fn point_at(frame: &mut Frame, strip: Strip, offset: usize) -> Vec<i64> {
    let mut point = Vec::new();
    let at = Strip { start: strip.start + offset, len: 1 };
    let found: Result<(), Error> = frame.runs(at, |frame, _, _| {
        frame.set_point();
        point.clone_from(&frame.point);
        Ok(())
    });
    debug_assert!(found.is_ok(), "looking cannot fail");
    point
}

/// Says which index of an access is outside at a point; `None` if all are inside.
pub(super) fn outside(access: &Access, point: &[i64]) -> Option<String> {
    access.axes.iter().enumerate().find_map(|(axis, index)| {
        let value = index.idx.eval(point);
        let inside = access.edge.apply(value, index.extent as u64).is_some();
        (!inside)
            .then(|| format!("index {value} of axis {axis}, which has length {}, at point {point:?}", index.extent))
    })
}

fn missing_part(block: Option<&Block>) -> Error {
    match block {
        Some(block) => Error::internal(format!("the block at {} does not hold what its task reads", block.bbox())),
        None => Error::internal("a task lacks a block that it reads"),
    }
}

/// A strip that needs no copy: neighbours, or one element for all.
fn borrow(data: &Buffer, position: i64, slope: i64, len: usize) -> Option<Lane<'_>> {
    let start = position as usize;
    match slope {
        1 => Some(Lane::slice(data, start..start + len)),
        0 => Some(Lane::same(data.get(start))),
        _ => None,
    }
}

fn copy_piece(
    registers: &mut Registers,
    register: RegisterId,
    data: &Buffer,
    (position, slope): (i64, i64),
    piece: &Piece,
    strip_len: usize,
) {
    let start = position as usize;
    let step = slope.unsigned_abs() as usize;
    with_dtype!(register.dtype, T => {
        let data = T::of(data);
        let out = &mut registers.vector::<T>(register.index, strip_len)[piece.offset..piece.offset + piece.len];
        match slope {
            1 => out.copy_from_slice(&data[start..start + piece.len]),
            0 => out.fill(data[start]),
            2.. => out.iter_mut().zip(data[start..].iter().step_by(step)).for_each(|(out, x)| *out = *x),
            _ => out.iter_mut().zip(data[..=start].iter().rev().step_by(step)).for_each(|(out, x)| *out = *x),
        }
    })
}

fn copy_rows(registers: &mut Registers, register: RegisterId, data: &Buffer, rows: &EvenRows) {
    with_dtype!(register.dtype, T => {
        let data = T::of(data);
        let out = registers.vector::<T>(register.index, rows.rows * rows.columns);
        for (row, out) in out.chunks_exact_mut(rows.columns).enumerate() {
            let start = rows.position + row as i64 * rows.row_step;
            match rows.column_step {
                1 => out.iter_mut().zip(&data[start as usize..]).for_each(|(out, x)| *out = *x),
                0 => out.fill(data[start as usize]),
                step => {
                    for (column, out) in out.iter_mut().enumerate() {
                        *out = data[(start + column as i64 * step) as usize];
                    }
                }
            }
        }
    })
}

fn copy_flight(registers: &mut Registers, register: RegisterId, data: &Buffer, flight: &Flight, strip_len: usize) {
    with_dtype!(register.dtype, T => climb(T::of(data), flight, registers.vector::<T>(register.index, strip_len)))
}

/// Repeats elements, each as often as its stair is long.
fn climb<T: Copy>(data: &[T], flight: &Flight, out: &mut [T]) {
    let at = |stair: usize| data[(flight.position + stair as i64 * flight.rise) as usize];
    let (head, rest) = out.split_at_mut((flight.divisor - flight.phase).min(out.len()));
    head.fill(at(0));
    let n = rest.len().div_ceil(flight.divisor);
    let first = flight.position as usize + 1;
    match (flight.rise, flight.divisor) {
        (1, 2) => repeat_each::<T, 2>(rest, &data[first..first + n]),
        (1, 3) => repeat_each::<T, 3>(rest, &data[first..first + n]),
        (1, 4) => repeat_each::<T, 4>(rest, &data[first..first + n]),
        (_, divisor) => rest.chunks_mut(divisor).enumerate().for_each(|(k, out)| out.fill(at(k + 1))),
    }
}

/// Stairs of a length that the compiler knows. The last may be shorter.
fn repeat_each<T: Copy, const N: usize>(out: &mut [T], from: &[T]) {
    let (stairs, tail) = out.as_chunks_mut::<N>();
    stairs.iter_mut().zip(from).for_each(|(out, &value)| *out = [value; N]);
    if let (false, Some(&value)) = (tail.is_empty(), from.last()) {
        tail.fill(value);
    }
}

fn fill_piece(registers: &mut Registers, register: RegisterId, fill: Scalar, piece: &Piece, strip_len: usize) {
    with_dtype!(register.dtype, T => {
        let range = piece.offset..piece.offset + piece.len;
        registers.vector::<T>(register.index, strip_len)[range].fill(T::from_scalar(fill));
    })
}
