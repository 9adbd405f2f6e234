//! The one place that refuses a memory budget.

use tw_ir::Span;
use tw_ir::error::{Error, Result};

use crate::units;

/// The bytes that a segment needs.
pub(crate) struct Need<'a> {
    /// Bytes alive at the peak, those of earlier results included.
    pub(crate) bytes: u64,
    /// The part of them that earlier results hold.
    pub(crate) held: u64,
    /// The statement that runs at the peak.
    pub(crate) at: Option<&'a Span>,
    /// What is known of the rest of the program.
    pub(crate) rest: Rest,
}

/// What is known of the rest of a program when a segment is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rest {
    /// The segment needs most of all, and this many bytes are enough for the program.
    Enough(u64),
    /// Other segments depend on data.
    Unknown,
}

impl Need<'_> {
    /// What a budget leaves beyond the need; an error that names a budget that works if the need does not fit.
    pub(crate) fn grant(&self, budget: u64) -> Result<u64> {
        if let Some(rest) = budget.checked_sub(self.bytes) {
            return Ok(rest);
        }
        let help = match self.rest {
            Rest::Enough(bytes) if bytes == self.bytes => {
                format!("the smallest budget that works is {bytes} bytes; smaller blocks may need less")
            }
            Rest::Enough(bytes) => format!("a budget of {bytes} bytes works; smaller blocks may need less"),
            Rest::Unknown => {
                format!("at least {} bytes are needed, and what depends on data may need more", self.bytes)
            }
        };
        let (needed, given) = (units::bytes(self.bytes), units::bytes(budget));
        // Figures that look alike in large units are told in bytes.
        let (needed, given) = match needed == given {
            true => (format!("{} bytes", self.bytes), format!("{budget} bytes")),
            false => (needed, given),
        };
        let mut error = Error::resource(format!("blocks need {needed}, but the budget is {given}")).help(help);
        if self.held > 0 {
            error = error.note(format!("{} of them are results that are kept", units::bytes(self.held)));
        }
        Err(error.at(self.at.unwrap_or(&Span::None)))
    }
}

/// The error for arrays of so many bytes that are wanted in memory and do not fit, where a budget of `enough` would do.
pub(crate) fn refused_array(budget: u64, arrays: u64, enough: u64, at: Option<&Span>) -> Error {
    let (needed, given) = (units::bytes(arrays), units::bytes(budget));
    let error = Error::resource(format!("a result of {needed} is wanted as one array, but the budget is {given}"));
    let help = "write it to a file, which takes it block by block, or reduce it first";
    error.help(format!("{help}; the smallest budget that works is {enough} bytes")).at(at.unwrap_or(&Span::None))
}
