//! The corner of a result, as NumPy would print it.

use tw_block::Block;
use tw_ir::error::Result;
use tw_ir::{Array, DType, Scalar, shape};

use super::digest::Sum;

/// Rows and columns shown.
const CORNER: u64 = 4;

/// The shape of the corner that is shown of a tensor.
pub(crate) fn corner_shape(whole: &[u64]) -> Vec<u64> {
    let rank = whole.len();
    (0..rank).map(|axis| if axis + 2 < rank { whole[axis].min(1) } else { whole[axis].min(CORNER) }).collect()
}

/// The corner of a tensor, from its blocks.
pub(crate) struct Corner {
    pub(crate) array: Array,
    origin: Vec<u64>,
}

impl Corner {
    /// Of a tensor of this shape and type, without elements yet.
    pub(crate) fn new(whole: &[u64], dtype: DType) -> Result<Corner> {
        let shape = corner_shape(whole);
        Ok(Corner { array: Array::zeros(&shape, dtype)?, origin: vec![0; shape.len()] })
    }

    /// Adds the elements of a block that are shown.
    pub(crate) fn add(&mut self, block: &Block) -> Result<()> {
        if block.bbox().lo.iter().zip(self.array.shape()).all(|(lo, n)| lo < n) {
            block.copy_overlap_into(&self.origin, &mut self.array)?;
        }
        Ok(())
    }
}

/// The corner as text; `whole` tells where something is left out.
pub(crate) fn corner_text(corner: &Array, whole: &[u64]) -> String {
    let rank = whole.len();
    if corner.data().is_empty() {
        return String::new();
    }
    let values: Vec<String> = corner.iter().map(scalar).collect();
    if rank == 0 {
        return values[0].clone();
    }
    let columns = corner.shape()[rank - 1] as usize;
    let width = values.iter().map(String::len).max().unwrap_or(0);
    let more_columns = if whole[rank - 1] > columns as u64 { "  ..." } else { "" };
    let row = |row: &[String]| {
        let cells: Vec<String> = row.iter().map(|cell| format!("{cell:>width$}")).collect();
        format!("{}{more_columns}", cells.join("  "))
    };
    let mut rows: Vec<String> = values.chunks(columns).map(row).collect();
    if rank >= 2 && whole[rank - 2] > corner.shape()[rank - 2] {
        rows.push("...".to_string());
    }
    if rank > 2 && shape::n_elements(&whole[..rank - 2]).is_ok_and(|n| n > 1) {
        let zeros = "0, ".repeat(rank - 2);
        rows.insert(0, format!("[{zeros}:, :] of it"));
    }
    rows.join("\n")
}

/// A sum as people read it.
pub(crate) fn sum_text(sum: Sum) -> String {
    match sum {
        Sum::Integer(value) => value.to_string(),
        Sum::Float(value) => float(value),
        Sum::Complex(re, im) => complex(re, im),
        Sum::None => "none".to_string(),
    }
}

fn scalar(value: Scalar) -> String {
    match value {
        Scalar::C64(_) | Scalar::C128(_) => {
            let value = value.as_c128();
            complex(value.re, value.im)
        }
        _ if value.dtype().is_float() => float(value.as_f64()),
        other => other.to_string(),
    }
}

fn complex(re: f64, im: f64) -> String {
    let sign = if im.is_sign_negative() { '-' } else { '+' };
    format!("{}{sign}{}j", float(re), float(im.abs()))
}

/// Six significant digits, like NumPy's summary.
fn float(value: f64) -> String {
    let magnitude = value.abs();
    if value == 0.0 || (1e-4..1e7).contains(&magnitude) {
        let digits_before = if magnitude < 1.0 { 1 } else { magnitude.log10().floor() as usize + 1 };
        let text = format!("{value:.*}", 7usize.saturating_sub(digits_before).max(1));
        let trimmed = text.trim_end_matches('0');
        return if trimmed.ends_with('.') { format!("{trimmed}0") } else { trimmed.to_string() };
    }
    if value.is_finite() { format!("{value:.6e}") } else { value.to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn floats_are_short() {
        assert_eq!(float(0.0), "0.0");
        assert_eq!(float(1.0), "1.0");
        assert_eq!(float(-1.5), "-1.5");
        assert_eq!(float(1.0 / 3.0), "0.333333");
        assert_eq!(float(123456.789), "123456.8");
        assert_eq!(float(1e20), "1.000000e20");
        assert_eq!(float(f64::NAN), "NaN");
    }

    #[test]
    fn corners_say_what_they_leave_out() {
        let text = |shape: &[u64]| {
            let corner = Array::full(&corner_shape(shape), Scalar::I64(7)).unwrap();
            corner_text(&corner, shape)
        };
        assert_eq!(text(&[]), "7");
        assert_eq!(text(&[2]), "7  7");
        assert_eq!(text(&[9]), "7  7  7  7  ...");
        assert_eq!(text(&[1, 2]), "7  7");
        assert_eq!(text(&[5, 2]), "7  7\n7  7\n7  7\n7  7\n...");
        assert_eq!(text(&[3, 1, 1]), "[0, :, :] of it\n7");
        assert_eq!(text(&[0, 3]), "");
    }
}
