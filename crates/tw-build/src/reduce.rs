//! Reductions along axes.

use tw_ir::{Accum, DType, Error, Extent, Idx, Op, Result, Slot, TensorType, Var, shape};

use super::accums;
use super::axes::{check_axes, display_shape};
use super::statement::{StatementBuilder, linear_position};

/// What many elements become.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Reduction {
    /// Sum; bools are counted.
    Sum,
    /// Product; bools as integers.
    Prod,
    /// Smallest.
    Min,
    /// Largest.
    Max,
    /// True if any element is not zero.
    Any,
    /// True if no element is zero.
    All,
    /// Mean; of integers and bools in f64.
    Mean,
    /// Variance with `n - ddof` in the denominator.
    Var {
        /// Degrees of freedom taken off.
        ddof: f64,
    },
    /// Square root of the variance.
    Std {
        /// Degrees of freedom taken off.
        ddof: f64,
    },
    /// Position of the smallest, among the reduced axes in row-major order.
    ArgMin,
    /// Position of the largest, among the reduced axes in row-major order.
    ArgMax,
    /// How many elements are not zero.
    Count,
}

impl Reduction {
    /// The name used in messages and in program text.
    pub fn name(self) -> &'static str {
        match self {
            Reduction::Sum => "sum",
            Reduction::Prod => "prod",
            Reduction::Min => "min",
            Reduction::Max => "max",
            Reduction::Any => "any",
            Reduction::All => "all",
            Reduction::Mean => "mean",
            Reduction::Var { .. } => "var",
            Reduction::Std { .. } => "std",
            Reduction::ArgMin => "argmin",
            Reduction::ArgMax => "argmax",
            Reduction::Count => "count",
        }
    }

    /// The reduction of this name, with variances of the whole population.
    pub fn named(name: &str) -> Option<Reduction> {
        let all = [
            Reduction::Sum,
            Reduction::Prod,
            Reduction::Min,
            Reduction::Max,
            Reduction::Any,
            Reduction::All,
            Reduction::Mean,
            Reduction::Var { ddof: 0.0 },
            Reduction::Std { ddof: 0.0 },
            Reduction::ArgMin,
            Reduction::ArgMax,
            Reduction::Count,
        ];
        all.into_iter().find(|kind| kind.name() == name)
    }

    /// The type elements are converted to before they are combined.
    pub fn working_type(self, dtype: DType) -> DType {
        let plain = dtype == DType::Bool || dtype.is_integer();
        match self {
            Reduction::Any | Reduction::All | Reduction::Count => DType::Bool,
            // As in NumPy: sums of small integers are wide.
            Reduction::Sum | Reduction::Prod if dtype.is_unsigned() => DType::U64,
            Reduction::Sum | Reduction::Prod if plain => DType::I64,
            Reduction::Mean | Reduction::Var { .. } | Reduction::Std { .. } if plain => DType::F64,
            _ => dtype,
        }
    }

    /// True if a group without elements has no value.
    pub fn refuses_empty(self) -> bool {
        matches!(self, Reduction::Min | Reduction::Max | Reduction::ArgMin | Reduction::ArgMax)
    }

    /// True if the accumulator takes a position beside the value.
    pub fn takes_position(self) -> bool {
        matches!(self, Reduction::ArgMin | Reduction::ArgMax)
    }

    /// The accumulator for elements of the working type (see [`Reduction::working_type`]); counts take i64.
    pub fn accum(self, dtype: DType) -> Result<Accum> {
        accums::accum(self, dtype)
    }
}

/// Aggregates over some axes (all by default). With `keepdims` they stay with extent 1.
pub fn reduce(x: &TensorType, kind: Reduction, axes: Option<&[usize]>, keepdims: bool) -> Result<Op> {
    let rank = x.rank();
    let reduced: Vec<bool> = match axes {
        None => vec![true; rank],
        Some(axes) => {
            check_axes(axes, rank)?;
            (0..rank).map(|axis| axes.contains(&axis)).collect()
        }
    };
    check_not_empty(x, kind, &reduced)?;
    let mut statement = StatementBuilder::of(x);
    let bodies = bodies(&mut statement, x, kind, &reduced)?;
    let (mut idx, mut shape) = (Vec::new(), Vec::new());
    for (axis, &gone) in reduced.iter().enumerate() {
        if !gone {
            idx.push(Idx::var(Var(axis as u32)));
            shape.push(x.shape[axis]);
        } else if keepdims {
            idx.push(Idx::constant(0));
            shape.push(Extent::Known(1));
        }
    }
    let accum = kind.accum(kind.working_type(x.dtype))?;
    Ok(statement.accumulated(bodies, accum, idx, shape))
}

fn bodies(statement: &mut StatementBuilder, x: &TensorType, kind: Reduction, reduced: &[bool]) -> Result<Vec<Slot>> {
    let value = statement.read(0);
    let value = statement.code.cast(kind.working_type(x.dtype), value);
    if kind == Reduction::Count {
        return Ok(vec![statement.code.cast(DType::I64, value)]);
    }
    if !kind.takes_position() {
        return Ok(vec![value]);
    }
    let vars: Vec<usize> = (0..x.rank()).filter(|&axis| reduced[axis]).collect();
    // The outermost extent does not enter a row-major position.
    let extents: Vec<Extent> =
        vars.iter().enumerate().map(|(k, &axis)| if k == 0 { Extent::Known(0) } else { x.shape[axis] }).collect();
    let lacking = || Error::plan("a position along axes whose extents depend on data");
    let extents = shape::require_all(&extents, lacking)?;
    let position = linear_position(statement, &vars, &extents)?;
    Ok(vec![value, position])
}

fn check_not_empty(x: &TensorType, kind: Reduction, reduced: &[bool]) -> Result<()> {
    let empty = |wanted: bool| {
        x.shape.iter().zip(reduced).any(|(extent, &reduced)| reduced == wanted && *extent == Extent::Known(0))
    };
    if kind.refuses_empty() && empty(true) && !empty(false) {
        let (name, shape) = (kind.name(), display_shape(&x.shape));
        return Err(Error::source(format!("`{name}` over an empty axis of a tensor of shape {shape}")));
    }
    Ok(())
}
