//! Inputs that both sides can generate: an element depends only on its position and a seed.

use std::fmt;
use std::sync::Arc;

use serde_json::{Value, json};
use tw_block::Block;
use tw_ir::error::{Error, Result};
use tw_ir::{Array, BoxRegion, Buffer, DType, shape};

/// The contents of an input.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct InputData {
    pub(super) name: String,
    pub(super) dtype: DType,
    pub(super) shape: Vec<u64>,
    /// Inputs of one bench differ in it.
    pub(super) seed: u64,
    pub(super) low: f64,
    pub(super) high: f64,
}

impl InputData {
    /// Bytes of all elements.
    pub(super) fn n_bytes(&self) -> Result<u64> {
        shape::n_bytes(&self.shape, self.dtype.size())
    }

    /// The parameters with which the rival makes the same array.
    pub(super) fn to_json(&self) -> Result<Value> {
        let dtype = numpy_name(self.dtype)?;
        Ok(json!({
            "name": self.name, "dtype": dtype, "shape": self.shape, "seed": self.seed, "low": self.low, "high": self.high,
        }))
    }

    fn make(&self) -> Result<Array> {
        // Storage of a block, which is in large pages, as arrays of NumPy are and as files are read.
        let mut array = Block::for_output(self.dtype, BoxRegion::whole(&self.shape), None)?.into_array()?;
        let value = |index: usize| self.low + unit(index as u64 + 1, self.seed) * (self.high - self.low);
        match array.data_mut() {
            Buffer::F64(values) => values.iter_mut().enumerate().for_each(|(k, x)| *x = value(k)),
            Buffer::F32(values) => values.iter_mut().enumerate().for_each(|(k, x)| *x = value(k) as f32),
            Buffer::I64(values) => values.iter_mut().enumerate().for_each(|(k, x)| *x = value(k).floor() as i64),
            other => return Err(Error::internal(format!("no bench data of type {}", other.dtype()))),
        }
        Ok(array)
    }
}

impl fmt::Display for InputData {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}{}", self.name, self.dtype, shape::display(&self.shape))
    }
}

fn numpy_name(dtype: DType) -> Result<&'static str> {
    match dtype {
        DType::F64 => Ok("float64"),
        DType::F32 => Ok("float32"),
        DType::I64 => Ok("int64"),
        dtype => Err(Error::internal(format!("no bench data of type {dtype}"))),
    }
}

/// A number in [0, 1): splitmix64, which `uniform` in `rivals/driver.py` repeats.
fn unit(position: u64, seed: u64) -> f64 {
    let mut z = position.wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(seed << 32);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^= z >> 31;
    (z >> 11) as f64 * (-53f64).exp2()
}

/// Arrays of the last bench. Many benches in a row work on the same ones.
#[derive(Default)]
pub(super) struct Arrays {
    kept: Vec<(InputData, Arc<Array>)>,
}

impl Arrays {
    /// Creates missing arrays and drops unneeded ones.
    pub(super) fn make(&mut self, wanted: &[InputData]) -> Result<Vec<Arc<Array>>> {
        // Names do not change elements.
        let same = |a: &InputData, b: &InputData| InputData { name: b.name.clone(), ..a.clone() } == *b;
        self.kept.retain(|(data, _)| wanted.iter().any(|other| same(data, other)));
        let mut arrays = Vec::new();
        for data in wanted {
            let known = self.kept.iter().find(|(other, _)| same(other, data)).map(|(_, array)| array.clone());
            let array = match known {
                Some(array) => array,
                None => {
                    let array = Arc::new(data.make()?);
                    self.kept.push((data.clone(), array.clone()));
                    array
                }
            };
            arrays.push(array);
        }
        Ok(arrays)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn data(name: &str, seed: u64) -> InputData {
        InputData { name: name.into(), dtype: DType::F64, shape: vec![3, 4], seed, low: -1.0, high: 1.0 }
    }

    #[test]
    fn elements_depend_on_seed_and_position() {
        let (a, b) = (data("A", 1).make().unwrap(), data("A", 2).make().unwrap());
        assert_ne!(a, b);
        assert!(a.to_f64_vec().iter().all(|x| (-1.0..1.0).contains(x)));
        // As the rival computes it.
        assert_eq!(unit(1, 0), 0.8833108082136426);
    }

    #[test]
    fn equal_arrays_are_made_once() {
        let mut arrays = Arrays::default();
        let first = arrays.make(&[data("A", 1), data("B", 2)]).unwrap();
        let second = arrays.make(&[data("X", 2)]).unwrap();
        assert!(Arc::ptr_eq(&first[1], &second[0]));
        assert_eq!(arrays.kept.len(), 1);
    }
}
