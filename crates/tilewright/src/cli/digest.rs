//! Sums and checksums of results, block by block.

use tw_block::{Block, Meter, Source};
use tw_ir::dtype::Element;
use tw_ir::error::Result;
use tw_ir::{BoxRegion, Buffer, DType, Scalar, shape, with_buffer};
use tw_run::TensorHandle;

/// Elements of a file that are read at once.
const CHUNK: u64 = 1 << 22;

/// The sum and a checksum of a tensor. Neither depends on how it is cut.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Digest {
    integers: i128,
    real: Accurate,
    imaginary: Accurate,
    kind: Kind,
    /// Every element is mixed with its position in row-major order; the mixtures are added, so blocks may come in any order.
    checksum: u64,
}

/// What the elements are added up as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Integer,
    Float,
    Complex,
    /// Points in time have no sum.
    Time,
}

/// The sum of all elements.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Sum {
    Integer(i128),
    Float(f64),
    Complex(f64, f64),
    /// The elements have no sum.
    None,
}

/// Neumaier's sum: the error does not grow with the number of elements.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Accurate {
    sum: f64,
    /// What rounding took from it.
    compensation: f64,
}

impl Accurate {
    fn add(&mut self, value: f64) {
        let sum = self.sum + value;
        if sum.is_finite() {
            let (large, small) = if self.sum.abs() >= value.abs() { (self.sum, value) } else { (value, self.sum) };
            self.compensation += (large - sum) + small;
        }
        self.sum = sum;
    }

    fn total(self) -> f64 {
        self.sum + self.compensation
    }
}

impl Digest {
    /// Of a tensor of this type, without elements yet.
    pub(crate) fn new(dtype: DType) -> Digest {
        let kind = match dtype {
            _ if dtype.is_float() => Kind::Float,
            _ if dtype.is_complex() => Kind::Complex,
            _ if dtype.is_time() => Kind::Time,
            _ => Kind::Integer,
        };
        Digest { integers: 0, real: Accurate::default(), imaginary: Accurate::default(), kind, checksum: 0 }
    }

    pub(crate) fn of_handle(handle: &TensorHandle) -> Result<Digest> {
        let shape = handle.shape();
        let mut digest = Digest::new(handle.dtype());
        for block in handle.blocks() {
            digest.add(&*block.block()?, &shape)?;
        }
        Ok(digest)
    }

    /// Reads a source in pieces: it may be larger than memory.
    pub(crate) fn of_source(source: &dyn Source) -> Result<Digest> {
        let shape = source.shape()?;
        let mut digest = Digest::new(source.ty().dtype);
        let meter = Meter::new();
        let mut pieces = vec![BoxRegion::whole(&shape)];
        while let Some(mut piece) = pieces.pop() {
            let longest = (0..piece.rank()).find(|&axis| piece.hi[axis] - piece.lo[axis] > 1);
            match longest {
                // The first axis that can be halved: pieces stay contiguous in the file.
                Some(axis) if piece.n_elements() > CHUNK => {
                    let mut second = piece.clone();
                    let middle = piece.lo[axis] + (piece.hi[axis] - piece.lo[axis]) / 2;
                    (piece.hi[axis], second.lo[axis]) = (middle, middle);
                    pieces.extend([second, piece]);
                }
                _ => digest.add(&*source.read(&piece, &meter)?, &shape)?,
            }
        }
        Ok(digest)
    }

    pub(crate) fn sum(&self) -> Sum {
        match self.kind {
            Kind::Integer => Sum::Integer(self.integers),
            Kind::Float => Sum::Float(self.real.total()),
            Kind::Complex => Sum::Complex(self.real.total(), self.imaginary.total()),
            Kind::Time => Sum::None,
        }
    }

    /// 16 hexadecimal digits.
    pub(crate) fn checksum(&self) -> String {
        format!("{:016x}", self.checksum)
    }

    /// Adds the elements of a block of a tensor of this shape.
    pub(crate) fn add(&mut self, block: &Block, whole: &[u64]) -> Result<()> {
        let array = block.to_array()?;
        let region = block.bbox();
        let rank = whole.len();
        let row = if rank == 0 { 1 } else { (region.hi[rank - 1] - region.lo[rank - 1]) as usize };
        if array.data().is_empty() {
            return Ok(());
        }
        let outer_shape: Vec<u64> = (0..rank.saturating_sub(1)).map(|axis| region.hi[axis] - region.lo[axis]).collect();
        for k in 0..array.data().len() / row {
            let mut at = shape::unravel(k as u64, &outer_shape);
            at.iter_mut().zip(&region.lo).for_each(|(c, lo)| *c += lo);
            at.extend(region.lo.last());
            let first = shape::ravel(&at, whole);
            self.add_row(array.data(), k * row..(k + 1) * row, first);
        }
        Ok(())
    }

    fn add_row(&mut self, data: &Buffer, range: std::ops::Range<usize>, first: u64) {
        let positions = first..;
        with_buffer!(data, values => values[range].iter().zip(positions).for_each(|(&x, at)| self.element(x.to_scalar(), at)))
    }

    #[inline]
    fn element(&mut self, value: Scalar, position: u64) {
        let bits = match value {
            Scalar::F16(x) => x.to_bits() as u64,
            Scalar::BF16(x) => x.to_bits() as u64,
            Scalar::F32(x) => x.to_bits() as u64,
            Scalar::F64(x) => x.to_bits(),
            // The parts count as neighbours; the real part alone is summed first, so that sums of real numbers stay what they are.
            Scalar::C64(x) => {
                self.imaginary.add(x.im as f64);
                x.re.to_bits() as u64 ^ finalise(x.im.to_bits() as u64)
            }
            Scalar::C128(x) => {
                self.imaginary.add(x.im);
                x.re.to_bits() ^ finalise(x.im.to_bits())
            }
            Scalar::U64(x) => x,
            other => other.as_i64() as u64,
        };
        match value {
            Scalar::U64(x) => self.integers += x as i128,
            _ if self.kind == Kind::Integer => self.integers += value.as_i64() as i128,
            _ => self.real.add(value.as_f64()),
        }
        self.mix(bits, position);
    }

    /// Two rounds of a 64-bit mixer (the finaliser of splitmix64).
    fn mix(&mut self, bits: u64, position: u64) {
        self.checksum = self.checksum.wrapping_add(finalise(bits ^ finalise(position.wrapping_add(1))));
    }
}

fn finalise(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Session;

    fn digest(tile: u64) -> Digest {
        let session = Session::builder().threads(1).tile(tile).build();
        let x = session.random_normal(&[13, 7, 5], 3).unwrap();
        Digest::of_handle(&x.persist().unwrap()).unwrap()
    }

    #[test]
    fn cuts_do_not_matter_but_values_do() {
        assert_eq!(digest(100).checksum(), digest(2).checksum());
        assert_eq!(digest(3).checksum(), digest(5).checksum());
        let session = Session::builder().threads(1).build();
        let other = session.random_normal(&[13, 7, 5], 4).unwrap().persist().unwrap();
        assert_ne!(Digest::of_handle(&other).unwrap().checksum(), digest(100).checksum());
    }

    #[test]
    fn sums_are_exact_where_they_can_be() {
        let session = Session::builder().threads(1).tile(3).build();
        let x = session.range(0, 1000).unwrap().persist().unwrap();
        assert_eq!(Digest::of_handle(&x).unwrap().sum(), Sum::Integer(499_500));
        let x = session.array(crate::Array::from_f64(&[1e100, 1.0, -1e100])).persist().unwrap();
        assert_eq!(Digest::of_handle(&x).unwrap().sum(), Sum::Float(1.0));
        let x = session.array(crate::Array::from_f64(&[f64::INFINITY, 1.0])).persist().unwrap();
        assert_eq!(Digest::of_handle(&x).unwrap().sum(), Sum::Float(f64::INFINITY));
        let x = session.array(crate::Array::from_f64(&[])).persist().unwrap();
        assert_eq!(Digest::of_handle(&x).unwrap().sum(), Sum::Float(0.0));
    }
}
