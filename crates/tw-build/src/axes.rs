//! Axes and shapes, shared by all builders.

use tw_ir::{DType, Error, Extent, Result, shape};

use super::promote::common;

/// A shape as the user would write it, with `?` for extents that depend on data.
pub fn display_shape(shape: &[Extent]) -> String {
    shape::display_extents(shape)
}

/// A result that lacks nothing but an extent is reported after mistakes in element types: those are known without computing the extent.
pub(super) fn types_first<T>(result: Result<T>, dtypes: impl Iterator<Item = DType>) -> Result<T> {
    if let Err(error) = &result
        && !error.needed_extents().is_empty()
    {
        common(dtypes)?;
    }
    result
}

/// The shape operands broadcast to, by NumPy's rules. An extent that depends on data meets itself and 1; to meet another one it has to be known.
pub fn broadcast_shapes(shapes: &[&[Extent]]) -> Result<Vec<Extent>> {
    let rank = shapes.iter().map(|shape| shape.len()).max().unwrap_or(0);
    let mut result = vec![Extent::Known(1); rank];
    let mut open = Ok(());
    for shape in shapes {
        let skip = rank - shape.len();
        for (axis, &extent) in shape.iter().enumerate() {
            let meets = &mut result[skip + axis];
            if *meets == Extent::Known(1) {
                *meets = extent;
            } else if extent != Extent::Known(1)
                && let Err(error) = shape::require_equal(&[*meets], &[extent], || mismatch(shapes, *meets, extent))
            {
                // What cannot fit whatever the data is said before anything is asked for.
                if error.needed_extents().is_empty() {
                    return Err(error);
                }
                open = open.and(Err(error));
            }
        }
    }
    open.map(|()| result)
}

fn mismatch(shapes: &[&[Extent]], a: Extent, b: Extent) -> Error {
    let all: Vec<String> = shapes.iter().map(|shape| display_shape(shape)).collect();
    let error = Error::source(format!("shapes {} do not broadcast together", all.join(" and ")));
    match (a, b) {
        (Extent::Known(a), Extent::Known(b)) => {
            error.help(format!("an axis of {a} meets an axis of {b}; they must be equal, or one of them 1"))
        }
        _ => error.help("an axis whose extent depends on data meets another that may differ"),
    }
}

/// An axis counted from the front, or with a negative number from the back.
pub fn normalize_axis(axis: i64, rank: usize) -> Result<usize> {
    let n = rank as i64;
    let counted = if axis < 0 { axis.saturating_add(n) } else { axis };
    if (0..n).contains(&counted) {
        return Ok(counted as usize);
    }
    Err(match rank {
        0 => Error::source(format!("axis {axis} of a scalar, which has no axes")),
        _ => Error::source(format!("axis {axis} of a tensor of rank {rank}; axes go from -{rank} to {}", rank - 1)),
    })
}

/// Several axes, each at most once, in the order given.
pub fn normalize_axes(axes: &[i64], rank: usize) -> Result<Vec<usize>> {
    let mut seen = vec![false; rank];
    axes.iter()
        .map(|&axis| {
            let axis = normalize_axis(axis, rank)?;
            if std::mem::replace(&mut seen[axis], true) {
                return Err(Error::source(format!("axis {axis} is named twice")));
            }
            Ok(axis)
        })
        .collect()
}

/// Checks axes that were counted from the front already.
pub(super) fn check_axes(axes: &[usize], rank: usize) -> Result<()> {
    let signed: Vec<i64> = axes.iter().map(|&axis| axis.min(i64::MAX as usize) as i64).collect();
    normalize_axes(&signed, rank).map(drop)
}

/// A name for the k-th variable of a statement made by a builder.
pub(super) fn variable_name(k: usize) -> String {
    const LETTERS: [&str; 6] = ["i", "j", "k", "l", "m", "n"];
    match LETTERS.get(k) {
        Some(letter) => letter.to_string(),
        None => format!("i{k}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn broadcasting_follows_numpy() {
        let known = |shape: &[u64]| shape.iter().map(|&n| Extent::Known(n)).collect::<Vec<_>>();
        let (a, b, c) = (known(&[3, 1]), known(&[4]), known(&[0, 1, 1]));
        assert_eq!(broadcast_shapes(&[&a, &b]).unwrap(), known(&[3, 4]));
        assert_eq!(broadcast_shapes(&[&c, &a, &b]).unwrap(), known(&[0, 3, 4]));
        let error = broadcast_shapes(&[&known(&[2, 3]), &known(&[3, 2])]).unwrap_err();
        assert!(error.message().contains("[2, 3] and [3, 2]"), "{error}");
    }

    #[test]
    fn axes_count_from_both_ends() {
        assert_eq!(normalize_axis(-1, 3).unwrap(), 2);
        assert!(normalize_axis(3, 3).is_err() && normalize_axis(-4, 3).is_err() && normalize_axis(0, 0).is_err());
        assert!(normalize_axes(&[0, -3], 3).is_err());
        assert!(normalize_axis(i64::MIN, 3).is_err());
    }
}
