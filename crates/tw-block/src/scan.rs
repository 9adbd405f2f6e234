//! Running aggregates along an axis.
//!
//! A block is seen as `outer` slabs of `n` rows of `inner` elements, and the axis runs over the rows. Contributions are combined in the order of
//! the axis, so only associativity is used.

use std::borrow::Cow;

use tw_ir::{Accum, BoxRegion, Buffer, Error, OnEmpty, Result, Scalar, SliceMut};

use crate::block::Block;
use crate::strip::{Element, Monoid, with_dtype};

mod general;
mod simple;

use general::StateScan;

/// A direction along an axis.
#[derive(Clone, Copy, Debug)]
struct Direction {
    axis: usize,
    reverse: bool,
}

impl Direction {
    /// The row that is reached after `k` of `n` steps.
    fn row(self, k: usize, n: usize) -> usize {
        if self.reverse { n - 1 - k } else { k }
    }
}

/// How a block is seen.
#[derive(Clone, Copy, Debug)]
struct Slabs {
    outer: usize,
    n: usize,
    inner: usize,
}

impl Slabs {
    fn of(bbox: &BoxRegion, axis: usize) -> Result<Slabs> {
        let shape = bbox.shape();
        if axis >= shape.len() {
            return Err(Error::internal(format!("a scan along axis {axis} of a block at {bbox}")));
        }
        let size = |part: &[u64]| part.iter().product::<u64>() as usize;
        Ok(Slabs { outer: size(&shape[..axis]), n: shape[axis] as usize, inner: size(&shape[axis + 1..]) })
    }

    fn n_elements(self) -> usize {
        self.outer * self.n * self.inner
    }

    /// Elements of a block that is one row long.
    fn n_across(self) -> usize {
        self.outer * self.inner
    }
}

/// How a scan is done.
#[derive(Debug)]
enum Way {
    /// States are single values that nothing changes on the way in or out.
    Simple(Monoid),
    /// Anything else.
    States(Box<StateScan>),
}

impl Way {
    fn of(accum: &Accum) -> Result<Way> {
        Ok(match accum.as_simple().and_then(|(op, dtype)| Monoid::of(op, dtype)) {
            Some(monoid) => Way::Simple(monoid),
            None => Way::States(Box::new(StateScan::compile(accum)?)),
        })
    }
}

/// Aggregate of a block along an axis.
#[derive(Debug)]
pub(crate) struct ScanTotal {
    direction: Direction,
    identity: Vec<Scalar>,
    way: Way,
}

impl ScanTotal {
    pub(crate) fn compile(accum: &Accum, axis: usize, reverse: bool) -> Result<ScanTotal> {
        let direction = Direction { axis, reverse };
        Ok(ScanTotal { direction, identity: accum.identity.clone(), way: Way::of(accum)? })
    }

    pub(crate) fn run(&self, bodies: &[&Block], outputs: &mut [Block]) -> Result<()> {
        let (slabs, bodies) = read_bodies(self.direction.axis, bodies)?;
        let types = self.identity.iter().map(|value| value.dtype());
        if !outputs.iter().map(Block::dtype).eq(types) {
            return Err(misfit());
        }
        for (output, &value) in outputs.iter_mut().zip(&self.identity) {
            output.fill(value)?;
        }
        let mut totals = writable(outputs, slabs.n_across())?;
        match (&self.way, bodies.as_slice(), totals.as_mut_slice()) {
            (Way::Simple(monoid), [body], [total]) if body.dtype() == total.dtype() => {
                with_dtype!(body.dtype(), T => simple::total(*monoid, slabs, T::of(body), T::of_mut(total)));
                Ok(())
            }
            (Way::States(scan), bodies, totals) => scan.total(self.direction, slabs, bodies, totals),
            _ => Err(misfit()),
        }
    }
}

/// Running aggregate inside a block.
#[derive(Debug)]
pub(crate) struct ScanBlock {
    direction: Direction,
    exclusive: bool,
    identity: Vec<Scalar>,
    n_bodies: usize,
    /// The first result of an exclusive scan; `None` if that is an error.
    nothing: Option<Vec<Scalar>>,
    way: Way,
}

impl ScanBlock {
    pub(crate) fn compile(accum: &Accum, axis: usize, exclusive: bool, reverse: bool) -> Result<ScanBlock> {
        Ok(ScanBlock {
            direction: Direction { axis, reverse },
            exclusive,
            identity: accum.identity.clone(),
            n_bodies: accum.lift.params().len(),
            nothing: (accum.on_empty != OnEmpty::Error).then(|| accum.empty_results()),
            way: Way::of(accum)?,
        })
    }

    pub(crate) fn run(&self, operands: &[&Block], outputs: &mut [Block]) -> Result<()> {
        let (bodies, carried) = operands.split_at(self.n_bodies.min(operands.len()));
        let (slabs, bodies) = read_bodies(self.direction.axis, bodies)?;
        let sees_nothing = self.exclusive && carried.is_empty() && slabs.n_elements() > 0;
        if sees_nothing && self.nothing.is_none() {
            let at = outputs.first().map(|output| output.bbox().lo.clone()).unwrap_or_default();
            return Err(Error::data(format!("nothing comes before the first element, at {at:?}")));
        }
        let carried = self.read_carried(carried, slabs)?;
        let mut results = writable(outputs, slabs.n_elements())?;
        self.run_way(slabs, &bodies, &carried, &mut results)?;
        if sees_nothing {
            self.write_nothing(slabs, &mut results);
        }
        Ok(())
    }

    /// Sets the first element along the axis to the result of an empty group.
    fn write_nothing(&self, slabs: Slabs, results: &mut [SliceMut<'_>]) {
        for (result, &value) in results.iter_mut().zip(self.nothing.iter().flatten()) {
            for slab in 0..slabs.outer {
                let start = (slab * slabs.n + self.direction.row(0, slabs.n)) * slabs.inner;
                with_dtype!(value.dtype(), T => T::of_mut(result)[start..start + slabs.inner].fill(T::from_scalar(value)));
            }
        }
    }

    fn run_way(
        &self,
        slabs: Slabs,
        bodies: &[Cow<'_, Buffer>],
        carried: &[Cow<'_, Buffer>],
        results: &mut [SliceMut<'_>],
    ) -> Result<()> {
        match (&self.way, bodies, results) {
            (Way::Simple(monoid), [body], [result]) if body.dtype() == result.dtype() => {
                with_dtype!(body.dtype(), T => {
                    let mut state = T::of(&carried[0]).to_vec();
                    let (body, result) = (T::of(body), T::of_mut(result));
                    simple::scan(*monoid, self.direction, self.exclusive, slabs, body, &mut state, result);
                });
                Ok(())
            }
            (Way::States(scan), bodies, results) => {
                scan.scan(self.direction, self.exclusive, slabs, bodies, carried, results)
            }
            _ => Err(misfit()),
        }
    }

    /// The state carried in from the blocks before, if there are any.
    fn read_carried<'a>(&self, carried: &[&'a Block], slabs: Slabs) -> Result<Vec<Cow<'a, Buffer>>> {
        if carried.is_empty() {
            let buffers = self.identity.iter().map(|&value| Cow::Owned(Buffer::full(value, slabs.n_across())));
            return Ok(buffers.collect());
        }
        let types = self.identity.iter().map(|value| value.dtype());
        let fits = carried.iter().map(|block| block.dtype()).eq(types)
            && carried.iter().all(|block| block.n_elements() as usize == slabs.n_across());
        if !fits {
            return Err(misfit());
        }
        carried.iter().map(|block| block.row_major()).collect()
    }
}

fn misfit() -> Error {
    Error::internal("the blocks of a scan do not fit each other")
}

fn read_bodies<'a>(axis: usize, blocks: &[&'a Block]) -> Result<(Slabs, Vec<Cow<'a, Buffer>>)> {
    let first = blocks.first().ok_or_else(misfit)?;
    if blocks.iter().any(|block| block.bbox() != first.bbox()) {
        return Err(misfit());
    }
    let bodies = blocks.iter().map(|block| block.row_major()).collect::<Result<_>>()?;
    Ok((Slabs::of(first.bbox(), axis)?, bodies))
}

fn writable(outputs: &mut [Block], n: usize) -> Result<Vec<SliceMut<'_>>> {
    outputs
        .iter_mut()
        .map(|output| {
            let (_, target) = output.target()?;
            if target.len() == n { Ok(target) } else { Err(misfit()) }
        })
        .collect()
}
