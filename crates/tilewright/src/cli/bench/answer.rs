//! Compares the results of both sides: shapes, sums and sampled elements.

use serde_json::Value;
use tw_ir::error::{Error, Result};
use tw_ir::{DType, shape};
use tw_run::{BlockHandle, TensorHandle};

use crate::cli::digest::{Digest, Sum};

/// Elements that are compared, spread over the whole; `SAMPLES` in `rivals/driver.py`.
const SAMPLES: u64 = 61;

/// What is compared.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Answer {
    shape: Vec<u64>,
    sum: f64,
    samples: Vec<f64>,
    /// Relative error that is allowed.
    tolerance: f64,
}

impl Answer {
    pub(super) fn of_handle(handle: &TensorHandle) -> Result<Answer> {
        let shape = handle.shape();
        let sum = match Digest::of_handle(handle)?.sum() {
            Sum::Integer(sum) => sum as f64,
            Sum::Float(sum) => sum,
            // The cases compare real numbers; of others the magnitude has to do.
            Sum::Complex(re, im) => re.hypot(im),
            Sum::None => 0.0,
        };
        let last = shape::n_elements(&shape)?.saturating_sub(1);
        let blocks = handle.blocks().iter().map(BlockHandle::block).collect::<Result<Vec<_>>>()?;
        let sample = |k: u64| {
            let coords = shape::unravel(k * last / (SAMPLES - 1), &shape);
            let element = blocks.iter().find_map(|block| block.get(&coords));
            element.map(|scalar| scalar.as_f64()).ok_or_else(|| Error::internal("a result without elements"))
        };
        let samples = (0..SAMPLES).map(sample).collect::<Result<_>>()?;
        let tolerance = match handle.dtype() {
            DType::F64 => 1e-9,
            DType::F32 => 1e-4,
            _ => 0.0,
        };
        Ok(Answer { shape, sum, samples, tolerance })
    }

    /// Why the rival's answer is another one; `None` if it is the same.
    pub(super) fn difference(&self, rival: &Value) -> Option<String> {
        let Some(theirs) = rival["shape"].as_array() else { return Some("the rival gave no shape".to_string()) };
        let theirs: Vec<u64> = theirs.iter().filter_map(Value::as_u64).collect();
        if theirs != self.shape {
            return Some(format!("our shape is {}, the rival's {}", shape::display(&self.shape), rival["shape"]));
        }
        let typical = self.samples.iter().map(|x| x.abs()).sum::<f64>() / self.samples.len() as f64;
        let n = self.shape.iter().product::<u64>() as f64;
        let number = |value: &Value| value.as_f64().unwrap_or(f64::NAN);
        let sum = number(&rival["sum"]);
        if self.differ(self.sum, sum, n * typical) {
            return Some(format!("our sum is {}, the rival's {sum}", self.sum));
        }
        let samples = rival["samples"].as_array().map_or(&[][..], Vec::as_slice);
        let mut pairs = self.samples.iter().zip(samples).map(|(&ours, theirs)| (ours, number(theirs)));
        match pairs.find(|&(ours, theirs)| self.differ(ours, theirs, typical)) {
            Some((ours, theirs)) => Some(format!("an element of ours is {ours}, of the rival {theirs}")),
            None if samples.len() != self.samples.len() => Some("the rival gave too few elements".to_string()),
            None => None,
        }
    }

    fn differ(&self, ours: f64, theirs: f64, scale: f64) -> bool {
        // Not `>`: NaN on one side only is a difference.
        let near = (ours - theirs).abs() <= self.tolerance * ours.abs().max(theirs.abs()).max(scale);
        !(near || (ours.is_nan() && theirs.is_nan()))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::Session;

    #[test]
    fn differences_are_found() {
        let session = Session::builder().threads(1).tile(7).build();
        let ours = Answer::of_handle(&session.arange(0.0, 61.0, 1.0).unwrap().persist().unwrap()).unwrap();
        let samples: Vec<f64> = (0..61).map(f64::from).collect();
        let same = json!({ "shape": [61], "sum": 1830.0, "samples": samples });
        assert_eq!(ours.difference(&same), None);
        let mut other = same.clone();
        other["samples"][60] = 60.001.into();
        assert!(ours.difference(&other).unwrap().contains("60.001"));
        let mut other = same.clone();
        other["sum"] = f64::NAN.into();
        assert!(ours.difference(&other).is_some());
        let mut other = same;
        other["shape"] = json!([1, 61]);
        assert!(ours.difference(&other).unwrap().contains("shape"));
    }
}
