//! Corpus, random programs and checks of this repository.
#![forbid(unsafe_code)]

pub mod differential;
