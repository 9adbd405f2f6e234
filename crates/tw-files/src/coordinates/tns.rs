//! FROSTT's `.tns`: a line per element, its indices from one on and its value. There is no header: the first line has as many indices as the tensor has axes, and extents are the largest indices.

use std::fs::File;

use super::lines::{Lines, Wrong, index, number};
use super::{Coordinates, sorted};

/// More axes are not what anybody has.
const MOST_AXES: usize = 32;

pub(super) fn read(file: &File) -> Result<Coordinates, Wrong> {
    let mut lines = Lines::new(file);
    let (mut shape, mut indices, mut values): (Vec<u64>, Vec<u64>, Vec<f64>) = Default::default();
    loop {
        let at = lines.number + 1;
        let Some(line) = lines.next_full('#')? else { break };
        let n = line.split_ascii_whitespace().count();
        let entry = || -> Result<(Vec<u64>, f64), String> {
            if !(2..=MOST_AXES + 1).contains(&n) {
                return Err(format!("{n} fields, but an element has at least one index and a value"));
            }
            if !shape.is_empty() && n != shape.len() + 1 {
                return Err(format!("{} indices instead of {}", n - 1, shape.len()));
            }
            let mut fields = line.split_ascii_whitespace();
            let places =
                (0..n - 1).map(|_| index(fields.next(), i64::MAX as u64)).collect::<Result<Vec<u64>, String>>()?;
            Ok((places, number(fields.next(), "a number")?))
        };
        let (places, value) = entry().map_err(|what| (lines.number.max(at), what))?;
        shape.resize(places.len(), 0);
        shape.iter_mut().zip(&places).for_each(|(extent, &place)| *extent = (*extent).max(place + 1));
        indices.extend(places);
        values.push(value);
    }
    if shape.is_empty() {
        return Err((1, "there is no element, so the number of axes is not known".into()));
    }
    Ok(sorted(shape, &indices, &values))
}
