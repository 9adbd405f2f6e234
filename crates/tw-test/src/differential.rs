//! One program on the oracle and on the engine.

use std::collections::BTreeMap;

use tilewright::{Array, Session, SessionBuilder, in_memory};
use tw_ir::error::{Blame, Error};
use tw_ir::{DType, Program, oracle};
use tw_place::Cluster;

/// How the engine runs a program in a comparison.
#[derive(Clone, Debug)]
pub struct Configuration {
    /// Threads of the runtime.
    pub threads: usize,
    /// Rewrites on or off.
    pub rewrites: bool,
    /// Tile length where the program does not say.
    pub tile: Option<u64>,
    /// Seed of random scheduling.
    pub chaos: Option<u64>,
    /// Workers that are planned for.
    pub cluster: Option<Cluster>,
}

impl Configuration {
    /// A session that runs this way.
    pub fn session(&self) -> Session {
        self.builder().build()
    }

    /// What a session that runs this way is built from.
    pub fn builder(&self) -> SessionBuilder {
        let mut builder = Session::builder().threads(self.threads).rewrites(self.rewrites);
        if let Some(tile) = self.tile {
            builder = builder.tile(tile);
        }
        // One thread is the engine `serial`, the reference for the others.
        if self.threads == 1 && self.chaos.is_none() {
            builder = builder.serial();
        }
        if let Some(cluster) = self.cluster.clone() {
            builder = builder.cluster(cluster);
        }
        if let Some(seed) = self.chaos {
            builder = builder.chaos(seed);
        }
        builder
    }
}

/// Results by output name.
pub type Results = BTreeMap<String, Array>;

/// Runs a program on the engine.
pub fn run(session: &Session, program: &Program, inputs: &Results) -> Result<Results, Error> {
    let bound = inputs.iter().map(|(name, array)| (name.clone(), in_memory(array.clone()))).collect();
    let stored = session.run(program, &bound)?;
    stored.into_iter().map(|(name, stored)| Ok((name, session.fetch(&stored, None)?.to_array()?))).collect()
}

/// What a comparison came to.
#[derive(Clone, Debug, PartialEq)]
pub enum Verdict {
    /// Equal results.
    Equal,
    /// The oracle refuses the data, so there is nothing to compare; the engine may refuse too or, having fused the fault away, not notice.
    Refused,
    /// They differ.
    Differs(String),
}

/// Compares the engine with the oracle. `tolerance` is relative; 0 asks for equality (of values: NaN equals NaN, 0 equals -0).
pub fn compare(session: &Session, program: &Program, inputs: &Results, tolerance: f64) -> Verdict {
    let expected = match oracle::evaluate(program, inputs) {
        Ok(expected) => expected,
        Err(error) if error.blame() == Blame::Data => return Verdict::Refused,
        Err(error) => return Verdict::Differs(format!("the oracle fails: {error}")),
    };
    match run(session, program, inputs) {
        Ok(results) => match differences(&expected, &results, tolerance) {
            None => Verdict::Equal,
            Some(what) => Verdict::Differs(what),
        },
        Err(error) => Verdict::Differs(format!("the engine fails where the oracle does not: {error:?}")),
    }
}

/// The first difference between results, in words.
pub fn differences(expected: &Results, got: &Results, tolerance: f64) -> Option<String> {
    if expected.keys().ne(got.keys()) {
        return Some(format!("outputs {:?}, expected {:?}", got.keys(), expected.keys()));
    }
    expected.iter().find_map(|(name, array)| {
        array_difference(array, &got[name], tolerance).map(|what| format!("`{name}`: {what}"))
    })
}

/// The first difference between two arrays, in words.
pub fn array_difference(expected: &Array, got: &Array, tolerance: f64) -> Option<String> {
    if expected.shape() != got.shape() || expected.dtype() != got.dtype() {
        return Some(format!("{}{:?}, expected {}{:?}", got.dtype(), got.shape(), expected.dtype(), expected.shape()));
    }
    let tolerance = match expected.dtype() {
        DType::F64 | DType::C128 => tolerance,
        _ => f32_tolerance(tolerance),
    };
    let rounds = expected.dtype().is_float() || expected.dtype().is_complex();
    let equal = |k: usize| {
        let (a, b) = (expected.data().get(k), got.data().get(k));
        let (x, y) = (a.as_c128(), b.as_c128());
        // Halves are never made of inexact values, so they are equal or close.
        if rounds { close(x.re, y.re, tolerance) && close(x.im, y.im, tolerance) } else { a == b }
    };
    (0..expected.data().len()).find(|&k| !equal(k)).map(|k| {
        let coords = tw_ir::shape::unravel(k as u64, expected.shape());
        format!("{} at {coords:?}, expected {}", got.data().get(k), expected.data().get(k))
    })
}

/// What sums of a few hundred singles may differ by when they are added in another order.
pub const SINGLE: f64 = 1e-4;

fn f32_tolerance(tolerance: f64) -> f64 {
    if tolerance == 0.0 { 0.0 } else { tolerance.max(SINGLE) }
}

fn close(a: f64, b: f64, tolerance: f64) -> bool {
    a == b || (a.is_nan() && b.is_nan()) || (a - b).abs() <= tolerance * a.abs().max(b.abs()).max(1.0)
}

/// True if two sets of results agree in every bit.
pub fn same_bits(a: &Results, b: &Results) -> bool {
    a.keys().eq(b.keys()) && a.iter().all(|(name, array)| array.same_bits(&b[name]))
}
