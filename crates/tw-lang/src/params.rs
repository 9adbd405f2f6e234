//! Values of parameters.

use std::fmt;
use std::str::FromStr;

use tw_ir::{Error, Scalar};

/// The value of a parameter.
///
/// ```
/// use tw_lang::ParamValue;
/// assert_eq!("4000".parse(), Ok(ParamValue::Int(4000)));
/// assert_eq!("1e-3".parse(), Ok(ParamValue::Float(1e-3)));
/// assert!("many".parse::<ParamValue>().is_err());
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ParamValue {
    /// A whole number.
    Int(i64),
    /// Any other number.
    Float(f64),
    /// `true` or `false`.
    Bool(bool),
}

impl ParamValue {
    pub(super) fn from_scalar(value: Scalar) -> ParamValue {
        match value {
            Scalar::Bool(v) => ParamValue::Bool(v),
            value if value.dtype().is_integer() => ParamValue::Int(value.as_i64()),
            value => ParamValue::Float(value.as_f64()),
        }
    }

    pub(super) fn scalar(self) -> Scalar {
        match self {
            ParamValue::Int(v) => Scalar::I64(v),
            ParamValue::Float(v) => Scalar::F64(v),
            ParamValue::Bool(v) => Scalar::Bool(v),
        }
    }
}

impl fmt::Display for ParamValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.scalar().fmt(f)
    }
}

impl FromStr for ParamValue {
    type Err = Error;
    fn from_str(text: &str) -> Result<ParamValue, Error> {
        let digits = text.replace('_', "");
        if let Ok(value) = digits.parse() {
            return Ok(ParamValue::Int(value));
        }
        match (digits.parse::<f64>(), text) {
            (Ok(value), _) if value.is_finite() => Ok(ParamValue::Float(value)),
            (_, "true") => Ok(ParamValue::Bool(true)),
            (_, "false") => Ok(ParamValue::Bool(false)),
            _ => Err(Error::source(format!("`{text}` is not a number that a parameter can have"))),
        }
    }
}
