//! Corpus, random programs and checks of this repository.
#![forbid(unsafe_code)]

pub mod corpus;
pub mod coverage;
pub mod differential;
pub mod generate;
pub mod plans;
pub mod repository;
pub mod scratch;
pub mod shrink;

/// The Rust examples of the front page, compiled and run as documentation tests.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
pub struct FrontPage;
