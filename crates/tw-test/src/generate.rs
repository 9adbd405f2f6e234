//! Random programs over every operator, with inputs that suit them.
//!
//! Programs are valid by construction, or by throwing away what inference refuses, and the oracle has run them without error. Their data are small
//! integers, so that sums in any order are exact; see [`Options::inexact`] for the others.

use std::collections::{BTreeMap, BTreeSet};

use tw_ir::program::SourceOp;
use tw_ir::{Array, DType, Extent, Op, Program, Region, Span, TensorType, ValueId, oracle};

use body::Fact;
use rng::Rng;

use crate::differential::SINGLE;

mod access;
mod accum;
mod body;
mod control;
mod data;
mod functions;
mod indexed;
mod operators;
mod rng;
mod statement;

pub(crate) use data::DTYPES;
pub use functions::function_table;

/// What random programs may contain.
#[derive(Clone, Debug)]
pub struct Options {
    /// How many operators to ask for at the outermost level.
    pub n_nodes: usize,
    /// The largest extent of sources. Small ones meet more corner cases; large ones fill vectors and panels.
    pub max_extent: u64,
    /// Points one statement may have, and elements one value: the oracle should need milliseconds.
    pub max_points: u64,
    /// Allows transcendental functions and sums of fractions. Results then depend on who computes them and must be compared with a
    /// tolerance; nothing that jumps (comparisons, rounding, positions) depends on them.
    pub inexact: bool,
    /// Puts NaN, infinities and negative zeros into some inputs.
    pub special_values: bool,
    /// Allows loops and branches.
    pub control_flow: bool,
    /// How many turns every loop has; a few, as its data says, if not given.
    pub turns: Option<i64>,
    /// Allows extents that depend on data.
    pub deferred: bool,
    /// Allows block functions; see [`function_table`].
    pub block_functions: bool,
    /// Allows stores.
    pub stores: bool,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            n_nodes: 12,
            max_extent: 6,
            max_points: 4_000,
            inexact: false,
            special_values: true,
            control_flow: true,
            turns: None,
            deferred: true,
            block_functions: true,
            stores: true,
        }
    }
}

impl Options {
    /// The usual options of a seed. Stores are left out: they would write files.
    pub fn of_seed(seed: u64) -> Options {
        Options { inexact: seed % 4 == 3, stores: false, ..Options::default() }
    }

    /// What results of a program may differ by from those of the oracle. Doubles made of singles, or of pairs of them, are only as good as those.
    pub fn tolerance(&self, program: &Program) -> f64 {
        match program.values.values().any(|info| matches!(info.ty.dtype, DType::F32 | DType::C64)) {
            _ if !self.inexact => 0.0,
            true => SINGLE,
            false => 1e-9,
        }
    }
}

/// Attempts before giving up on a seed. Most succeed at once.
const MAX_ATTEMPTS: u64 = 40;
/// Nodes and turns of loops one program may run.
const MAX_STEPS: u64 = 2_000;
/// The largest extent that depends on data.
const MAX_DEFERRED: u64 = 400;

/// A random program and its inputs. Equal arguments give equal results.
///
/// # Panics
///
/// If no attempt gives a program that runs, which would be a fault of the generator.
pub fn random_program(seed: u64, options: &Options) -> (Program, BTreeMap<String, Array>) {
    (0..MAX_ATTEMPTS)
        .find_map(|attempt| {
            let (program, inputs) = Generator::new(seed.wrapping_add(attempt << 48), options).run();
            let runs = !program.outputs.is_empty() && oracle::evaluate_with_limit(&program, &inputs, MAX_STEPS).is_ok();
            runs.then_some((program, inputs))
        })
        .unwrap_or_else(|| panic!("no attempt with seed {seed} gave a program that runs"))
}

/// A program under construction.
struct Generator<'a> {
    rng: Rng,
    options: &'a Options,
    program: Program,
    inputs: BTreeMap<String, Array>,
    /// The region nodes are added to; those around it are kept by whoever entered it.
    region: Region,
    /// Values that may be read here.
    pool: Vec<ValueId>,
    facts: BTreeMap<ValueId, Fact>,
    read: BTreeSet<ValueId>,
    /// Nesting of regions.
    depth: u32,
    n_stores: usize,
    /// Stands for the place in a program text that nobody wrote.
    place: usize,
}

impl<'a> Generator<'a> {
    fn new(seed: u64, options: &'a Options) -> Generator<'a> {
        Generator {
            rng: Rng::new(seed),
            options,
            program: Program::new(),
            inputs: BTreeMap::new(),
            region: Region::default(),
            pool: Vec::new(),
            facts: BTreeMap::new(),
            read: BTreeSet::new(),
            depth: 0,
            n_stores: 0,
            place: 0,
        }
    }

    fn run(mut self) -> (Program, BTreeMap<String, Array>) {
        for _ in 0..2 {
            self.source();
        }
        for _ in 0..self.options.n_nodes {
            self.node();
        }
        self.program.body = std::mem::take(&mut self.region);
        let unread: Vec<ValueId> = self.pool.iter().copied().filter(|value| !self.read.contains(value)).collect();
        for (k, value) in unread.into_iter().rev().take(4).enumerate() {
            self.program.output(format!("out{k}"), value);
        }
        if let Some(value) = self.rng.try_pick(&self.pool) {
            self.program.output("extra", value);
        }
        (self.program, self.inputs)
    }

    /// Adds one random operator and what it needs. Nothing, if what was drawn does not fit.
    fn node(&mut self) -> Option<()> {
        let options = self.options;
        match self.rng.range(0, 99) {
            0..=7 => self.source(),
            8..=49 => self.statement(),
            50..=55 => self.scan(),
            56..=60 => self.gather(),
            61..=65 => self.scatter(),
            66..=69 => self.sort(),
            70..=74 => self.reshape(),
            75..=79 => self.retile(),
            80..=83 => self.concat(),
            84..=86 if options.block_functions => self.block_fn(),
            87 if options.block_functions => self.routine(),
            88..=90 if options.deferred => self.compact(),
            91 => self.compact_known(),
            92 => self.repeat_known(),
            93..=95 if options.control_flow && self.depth < 2 => self.while_loop(),
            96..=98 if options.control_flow && self.depth < 2 => self.branch(),
            99 if options.stores => self.store(),
            _ => self.statement(),
        }
    }

    /// Adds a node, if inference accepts it. Results join the pool with their facts.
    fn emit(&mut self, op: Op, args: &[ValueId], facts: &[Fact]) -> Option<Vec<ValueId>> {
        let span = Span::text(self.place, self.place + 1);
        let results = self.program.push_into(&mut self.region, op, args, &span).ok()?;
        self.place += 2;
        self.read.extend(args);
        for (&value, &fact) in results.iter().zip(facts) {
            self.facts.insert(value, fact);
            self.pool.push(value);
        }
        Some(results)
    }

    fn fact(&self, value: ValueId) -> Fact {
        self.facts.get(&value).copied().unwrap_or(Fact { exact: false, integral: false, bound: f64::MAX })
    }

    fn ty(&self, value: ValueId) -> TensorType {
        self.program.ty(value).clone()
    }

    /// A value of the pool, preferably a recent one, for which the condition holds.
    fn pick(&mut self, condition: impl Fn(&Generator<'a>, ValueId) -> bool) -> Option<ValueId> {
        let fitting: Vec<ValueId> = self.pool.iter().copied().filter(|&value| condition(self, value)).collect();
        let recent = fitting.len().saturating_sub(5);
        if self.rng.chance(60) { self.rng.try_pick(&fitting[recent..]) } else { self.rng.try_pick(&fitting) }
    }

    fn pick_any(&mut self) -> Option<ValueId> {
        self.pick(|_, _| true)
    }

    /// A value whose shape is known.
    fn pick_known(&mut self, min_rank: usize) -> Option<(ValueId, Vec<u64>)> {
        let value = self.pick(|this, value| {
            let ty = this.program.ty(value);
            ty.rank() >= min_rank && ty.known_shape().is_some()
        })?;
        let shape = self.program.ty(value).known_shape()?;
        Some((value, shape))
    }

    /// An input or a constant.
    fn source(&mut self) -> Option<()> {
        let (dtype, shape) = (self.rng.pick(&DTYPES), data::shape(&mut self.rng, self.options));
        let array = data::array(&mut self.rng, dtype, &shape, self.options.special_values)?;
        let fact = Fact::integers(data::MAGNITUDE as f64);
        if self.depth > 0 || self.rng.chance(25) {
            self.emit(Op::Source(SourceOp::Constant(array.into())), &[], &[fact])?;
            return Some(());
        }
        let mut ty = TensorType::known(dtype, &shape);
        if self.rng.chance(70) {
            ty = ty.with_tiling(data::tiling(&mut self.rng, &shape));
        }
        if self.rng.chance(20) {
            ty = ty.with_fill(data::scalar(&mut self.rng, dtype, false));
        }
        let name = format!("in{}", self.inputs.len());
        self.inputs.insert(name.clone(), array);
        let value = self.emit(Op::Source(SourceOp::Input { name: name.clone(), ty }), &[], &[fact])?[0];
        self.program.name(value, name);
        Some(())
    }

    fn store(&mut self) -> Option<()> {
        if self.depth > 0 {
            return None;
        }
        let (value, _) = self.pick_known(0)?;
        let path = format!("stored{}.npy", self.n_stores);
        self.n_stores += 1;
        self.emit(Op::Store { path }, &[value], &[])?;
        Some(())
    }
}

/// Extents that are all known.
fn known(shape: &[u64]) -> Vec<Extent> {
    shape.iter().map(|&n| Extent::Known(n)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use tw_ir::text::{parse_program, print_program};

    fn options(seed: u64) -> Options {
        Options { inexact: seed % 3 == 2, ..Options::default() }
    }

    #[test]
    fn equal_seeds_give_equal_programs() {
        for seed in 0..20 {
            let (a, b) = (random_program(seed, &options(seed)), random_program(seed, &options(seed)));
            assert_eq!((&a.0, a.1.len()), (&b.0, b.1.len()));
        }
        assert_ne!(random_program(1, &options(1)).0, random_program(4, &options(4)).0);
    }

    #[test]
    fn most_attempts_succeed() {
        let n = 300;
        let good = (0..n).filter(|&seed| {
            let (program, inputs) = Generator::new(seed, &options(seed)).run();
            tw_ir::program::verify(&program).unwrap();
            oracle::evaluate_with_limit(&program, &inputs, MAX_STEPS).is_ok()
        });
        let good = good.count();
        assert!(good * 10 > n as usize * 8, "{good} of {n} programs run");
    }

    #[test]
    fn text_gives_programs_back() {
        let functions = function_table();
        for seed in 0..300 {
            let (program, _) = random_program(seed, &options(seed));
            let text = print_program(&program);
            let back = parse_program(&text, &functions).unwrap_or_else(|error| panic!("{error}\n{text}"));
            assert_eq!(back, program, "{text}");
            assert_eq!(print_program(&back), text);
        }
    }
}
