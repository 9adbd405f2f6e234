//! From program text or builder to a frozen schedule.
#![forbid(unsafe_code)]

pub mod build;
pub mod lang;
