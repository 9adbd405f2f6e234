//! The command `tw`, run as users run it: a process, files, exit codes.
#![cfg(feature = "cli")]
#![allow(clippy::unwrap_used)]

mod alone;
mod demo;
mod diff;
mod doctor;
mod errors;
mod explain;
mod full;
mod info;
mod pictures;
mod pieces;
mod plan;
mod planner;
mod resume;
mod run;
mod tool;
