//! Corpus, random programs and checks of this repository.
#![forbid(unsafe_code)]

pub mod corpus;
pub mod coverage;
pub mod differential;
pub mod generate;
pub mod plans;
pub mod ranks;
pub mod repository;
pub mod scratch;
pub mod shrink;

/// The Rust examples of the front page, compiled and run as documentation tests.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
pub struct FrontPage;

/// A number from the environment, such as how many random programs a test tries.
pub fn setting(name: &str, otherwise: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(otherwise)
}
