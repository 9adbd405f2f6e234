//! Matrix Market: a header with kinds, a line with extents, then elements: coordinates with values, or values of all elements column by column.

use std::fs::File;

use tw_ir::dtype::Complex;

use super::lines::{Lines, Wrong, end, index, number};
use super::{Coordinates, Number, sorted};

#[derive(Clone, Copy, PartialEq)]
enum Symmetry {
    General,
    Symmetric,
    Skew,
    Hermitian,
}

pub(super) fn read(file: &File) -> Result<Coordinates, Wrong> {
    let mut lines = Lines::new(file);
    let header = lines.next()?.unwrap_or_default().to_ascii_lowercase();
    let words: Vec<&str> = header.split_ascii_whitespace().collect();
    let [mark, "matrix", layout @ ("coordinate" | "array"), field, symmetry] = words[..] else {
        return Err((1, "`%%MatrixMarket matrix coordinate|array KIND SYMMETRY` is expected".into()));
    };
    let symmetry = match symmetry {
        "general" => Symmetry::General,
        "symmetric" => Symmetry::Symmetric,
        "skew-symmetric" => Symmetry::Skew,
        "hermitian" if field == "complex" => Symmetry::Hermitian,
        other => return Err((1, format!("a matrix of {field} that is {other}"))),
    };
    if mark != "%%matrixmarket" {
        return Err((1, "`%%MatrixMarket` is expected".into()));
    }
    let is_array = layout == "array";
    match field {
        "real" | "double" => {
            elements(&mut lines, is_array, symmetry, |fields| number::<f64>(fields.next(), "a number"), |x| -x, |x| x)
        }
        "integer" => elements(
            &mut lines,
            is_array,
            symmetry,
            |fields| number::<i64>(fields.next(), "an integer"),
            i64::wrapping_neg,
            |x| x,
        ),
        "pattern" if !is_array => elements(&mut lines, is_array, symmetry, |_| Ok(1.0), |x: f64| -x, |x| x),
        "complex" => {
            let value = |fields: &mut std::str::SplitAsciiWhitespace<'_>| {
                let re: f64 = number(fields.next(), "a number")?;
                Ok(Complex::new(re, number(fields.next(), "a number")?))
            };
            elements(&mut lines, is_array, symmetry, value, |x: Complex<f64>| -x, |x| x.conj())
        }
        other => Err((1, format!("elements of kind `{}`", other.escape_debug()))),
    }
}

/// Reads the extents and all elements.
fn elements<T: Number>(
    lines: &mut Lines<'_>,
    is_array: bool,
    symmetry: Symmetry,
    value: impl Fn(&mut std::str::SplitAsciiWhitespace<'_>) -> Result<T, String>,
    negated: impl Fn(T) -> T,
    conjugate: impl Fn(T) -> T,
) -> Result<Coordinates, Wrong> {
    let sizes = lines.next_full('%')?.map(|line| {
        let mut fields = line.split_ascii_whitespace();
        let n_rows: u64 = number(fields.next(), "a number of rows")?;
        let n_columns: u64 = number(fields.next(), "a number of columns")?;
        let n: Option<u64> = if is_array { None } else { Some(number(fields.next(), "a number of elements")?) };
        end(fields)?;
        if symmetry != Symmetry::General && n_rows != n_columns {
            return Err(format!("a symmetric matrix of {n_rows} rows and {n_columns} columns"));
        }
        Ok((n_rows, n_columns, n))
    });
    let wrong = |lines: &Lines<'_>, what: String| (lines.number, what);
    let (n_rows, n_columns, n) = match sizes {
        None => return Err(wrong(lines, "the extents are missing".into())),
        Some(sizes) => sizes.map_err(|what| (lines.number, what))?,
    };
    let (mut indices, mut values): (Vec<u64>, Vec<T>) = (Vec::new(), Vec::new());
    let mut put = |row: u64, column: u64, x: T| {
        indices.extend([row, column]);
        values.push(x);
        if row != column && symmetry != Symmetry::General {
            indices.extend([column, row]);
            values.push(match symmetry {
                Symmetry::Skew => negated(x),
                Symmetry::Hermitian => conjugate(x),
                Symmetry::Symmetric | Symmetry::General => x,
            });
        }
    };
    // The next place in an array: of a symmetric one only what lies on and below the diagonal is there.
    let first_of = |column: u64| match symmetry {
        Symmetry::General => 0,
        Symmetry::Skew => column + 1,
        Symmetry::Symmetric | Symmetry::Hermitian => column,
    };
    // A matrix without rows has no columns to look for elements in, however many it claims.
    let (mut row, mut column) = (first_of(0), if n_rows == 0 { n_columns } else { 0 });
    let mut n_read = 0u64;
    while let Some(line) = lines.next_full('%')? {
        let mut fields = line.split_ascii_whitespace();
        let entry = || -> Result<(), String> {
            if is_array {
                while row >= n_rows && column < n_columns {
                    column += 1;
                    row = first_of(column);
                }
                if column >= n_columns {
                    return Err("there are more elements than the matrix has".into());
                }
                put(row, column, value(&mut fields)?);
                row += 1;
            } else {
                if Some(n_read) == n {
                    return Err(format!("there are more elements than the {n_read} that are declared"));
                }
                let (row, column) = (index(fields.next(), n_rows)?, index(fields.next(), n_columns)?);
                if symmetry != Symmetry::General && row < column {
                    return Err("an element above the diagonal of a symmetric matrix".into());
                }
                if symmetry == Symmetry::Skew && row == column {
                    return Err("an element on the diagonal of a skew-symmetric matrix".into());
                }
                put(row, column, value(&mut fields)?);
            }
            n_read += 1;
            end(fields)
        };
        entry().map_err(|what| (lines.number, what))?;
    }
    let missing = match n {
        Some(n) => n_read < n,
        None => {
            while row >= n_rows && column < n_columns {
                column += 1;
                row = first_of(column);
            }
            column < n_columns
        }
    };
    if missing {
        let declared = n.map_or_else(|| format!("of a matrix of {n_rows} x {n_columns}"), |n| format!("of {n}"));
        return Err(wrong(lines, format!("the file ends after {n_read} elements {declared}")));
    }
    Ok(sorted(vec![n_rows, n_columns], &indices, &values))
}
