//! Reading elements at positions that are data.

use tw_ir::{Buffer, Edge, Error, Result, Scalar};

use crate::block::Block;
use crate::copy::{Place, copy_typed};
use crate::indexing::{Indexing, Moves, Pair, Side, Vector};
use crate::width::{Bits, with_width};

/// A gather made ready.
#[derive(Debug)]
pub(crate) struct Gather {
    indexing: Indexing,
    fill: Scalar,
    edge: Edge,
}

impl Gather {
    pub(crate) fn compile(axes: &[u32], shape: &[u64], edge: Edge, fill: Scalar) -> Result<Gather> {
        Ok(Gather { indexing: Indexing::new(axes, shape, edge)?, fill, edge })
    }

    pub(crate) fn run(&self, first: bool, operands: &[Option<&Block>], outputs: &mut [Block]) -> Result<()> {
        let (Some(n_data), [output]) = (operands.len().checked_sub(self.indexing.n_axes()), outputs) else {
            return Err(Error::internal("a gather takes data and indices, and makes one block"));
        };
        if first && self.edge == Edge::Fill {
            output.fill(self.fill)?;
        }
        let (data, indices) = operands.split_at(n_data);
        let present = |blocks: &[Option<&'_ Block>]| blocks.iter().all(Option::is_some) && !blocks.is_empty();
        if !present(data) || !present(indices) {
            // Without data or without indices nothing is read, and the result holds the fill value.
            return match self.edge {
                Edge::Fill => Ok(()),
                _ => Err(Error::internal("a gather lacks an operand")),
            };
        }
        let data: Vec<&Block> = data.iter().flatten().copied().collect();
        let indices: Vec<&Block> = indices.iter().flatten().copied().collect();
        if let Some(other) = data.iter().find(|block| block.dtype() != output.dtype()) {
            return Err(Error::internal(format!("a gather of {} into {}", other.dtype(), output.dtype())));
        }
        let (sides, data) = joined(&data);
        let to = Side::of(output);
        let (_, mut target) = output.target()?;
        with_width!(target.dtype(), T => {
            let data: Vec<&[T]> = data.iter().map(|data| T::of(data)).collect();
            let out = T::of_mut(&mut target);
            if let Some(done) = self.indexing.vector(&indices, &sides, &to, |from| take(&from, &data, out)) {
                return done;
            }
            self.indexing.transfer(&indices, &sides, &to, |pairs, moves| move_pairs(pairs, moves, &data, out))
        })
    }
}

/// Data blocks as sides of a transfer. Blocks of a vector that lie next to each other in one storage, as views of an array of the host do, are one: then no
/// index has to be looked up.
fn joined<'a>(blocks: &[&'a Block]) -> (Vec<Side>, Vec<&'a Buffer>) {
    let mut sides: Vec<Side> = Vec::with_capacity(blocks.len());
    let mut data: Vec<&Buffer> = Vec::with_capacity(blocks.len());
    for block in blocks {
        let side = Side::of(block);
        let same_storage = data.last().is_some_and(|storage| std::ptr::eq(*storage, block.data()));
        if !same_storage || !sides.last_mut().is_some_and(|last| last.append(&side)) {
            sides.push(side);
            data.push(block.data());
        }
    }
    (sides, data)
}

/// Indices of a vector that are looked up before anything is read.
const BATCH: usize = 256;

/// No data block has it.
const NOWHERE: (u32, usize) = (u32::MAX, 0);

/// Elements of a vector that indices name, one by one; tells the first index outside. Those outside the data blocks are left alone.
fn take<T: Copy>(vector: &Vector<'_>, data: &[&[T]], out: &mut [T]) -> std::result::Result<(), usize> {
    let out = &mut out[vector.points.clone()];
    if let ([data], true) = (data, vector.is_whole()) {
        let data = &data[vector.first()..vector.first() + vector.extent];
        for (k, (out, &index)) in out.iter_mut().zip(vector.indices).enumerate() {
            match data.get(index as usize) {
                Some(&value) if index >= 0 => *out = value,
                _ => match vector.place(index) {
                    Some(place) => *out = data[place as usize],
                    None if vector.edge == Edge::Error => return Err(k),
                    None => {}
                },
            }
        }
        return Ok(());
    }
    // Places are found first, so that the reads, which miss the caches, do not wait for anything but each other.
    let mut places = [(0u32, 0usize); BATCH];
    for (batch, (out, indices)) in out.chunks_mut(BATCH).zip(vector.indices.chunks(BATCH)).enumerate() {
        for (k, (found, &index)) in places.iter_mut().zip(indices).enumerate() {
            *found = match vector.place(index) {
                Some(place) => vector.tiles.find(place).unwrap_or(NOWHERE),
                None if vector.edge == Edge::Error => return Err(batch * BATCH + k),
                None => NOWHERE,
            };
        }
        for (out, &(side, at)) in out.iter_mut().zip(&places) {
            if let Some(&value) = data.get(side as usize).and_then(|data| data.get(at)) {
                *out = value;
            }
        }
    }
    Ok(())
}

/// Copies what pairs say, in runs where elements are neighbours.
fn move_pairs<T: Copy>(pairs: &[Pair], moves: &[Moves], data: &[&[T]], out: &mut [T]) {
    let run = moves[0].run().filter(|&run| moves.iter().all(|each| each.run() == Some(run)));
    match run {
        // Runs of common lengths are copied without a call.
        Some(1) => copy_runs::<T, 1>(pairs, data, out),
        Some(2) => copy_runs::<T, 2>(pairs, data, out),
        Some(4) => copy_runs::<T, 4>(pairs, data, out),
        Some(8) => copy_runs::<T, 8>(pairs, data, out),
        Some(16) => copy_runs::<T, 16>(pairs, data, out),
        Some(run) => {
            for pair in pairs {
                let from = &data[pair.side as usize][pair.data..pair.data + run];
                out[pair.point..pair.point + run].copy_from_slice(from);
            }
        }
        None => {
            for pair in pairs {
                let moves = &moves[pair.side as usize];
                let from = Place { offset: pair.data, strides: &moves.data_strides };
                let to = Place { offset: pair.point, strides: &moves.point_strides };
                copy_typed(&moves.shape, data[pair.side as usize], from, out, to);
            }
        }
    }
}

fn copy_runs<T: Copy, const N: usize>(pairs: &[Pair], data: &[&[T]], out: &mut [T]) {
    if let [data] = data {
        for pair in pairs {
            out[pair.point..pair.point + N].copy_from_slice(&data[pair.data..pair.data + N]);
        }
        return;
    }
    for pair in pairs {
        let from = &data[pair.side as usize][pair.data..pair.data + N];
        out[pair.point..pair.point + N].copy_from_slice(from);
    }
}
