//! Which parts of the language programs use.

use std::collections::BTreeMap;

use tw_ir::program::{IndexStmt, SourceOp};
use tw_ir::spec::{GatherSpec, ScanSpec, ScatterSpec, SortSpec};
use tw_ir::{
    Accum, Axis, BinaryOp, Edge, Extent, Idx, OnEmpty, Op, Program, RandomDistribution, Region, ScalarCode, ScalarOp,
    Term, Tiling,
};

use crate::generate::DTYPES;

/// Counts of features by name, such as `op index`, `edge read wrap`, `accum argmax` or `unary sqrt`.
#[derive(Clone, Debug, Default)]
pub struct Coverage {
    counts: BTreeMap<String, u64>,
}

impl Coverage {
    /// Adds everything a program uses.
    pub fn add(&mut self, program: &Program) {
        for info in program.values.values() {
            self.count(format!("dtype {}", info.ty.dtype));
            self.count(format!("rank {}", info.ty.rank()));
            for extent in &info.ty.shape {
                match extent {
                    Extent::Known(0) => self.count("extent zero"),
                    Extent::Known(_) => {}
                    Extent::Deferred(_) => self.count("extent deferred"),
                }
            }
            if let Some(Tiling::Grid(axes)) = &info.ty.tiling {
                let is_ragged = axes.iter().any(|axis| matches!(axis, Axis::Ragged(_)));
                self.count(if is_ragged { "tiling ragged" } else { "tiling uniform" });
            }
        }
        self.region(&program.body);
    }

    /// How often a feature occurred.
    pub fn get(&self, feature: &str) -> u64 {
        self.counts.get(feature).copied().unwrap_or(0)
    }

    /// Every feature that occurred, with its count.
    pub fn iter(&self) -> impl Iterator<Item = (&str, u64)> {
        self.counts.iter().map(|(name, &count)| (name.as_str(), count))
    }

    fn count(&mut self, feature: impl Into<String>) {
        *self.counts.entry(feature.into()).or_default() += 1;
    }

    fn region(&mut self, region: &Region) {
        for node in &region.nodes {
            self.count(format!("op {}", node.op.name()));
            match &node.op {
                Op::Source(SourceOp::Input { .. }) => self.count("source input"),
                Op::Source(SourceOp::Constant(_)) => self.count("source constant"),
                Op::Index(stmt) => self.statement(stmt),
                Op::Scan(ScanSpec { accum, exclusive, reverse, .. }) => {
                    self.count(format!("scan exclusive {exclusive} reverse {reverse}"));
                    self.accum(accum);
                }
                Op::Gather(GatherSpec { edge, .. }) => self.edge("gather", *edge),
                Op::Scatter { spec: ScatterSpec { edge, accum, .. }, .. } => {
                    self.edge("scatter", *edge);
                    self.accum(accum);
                }
                Op::Sort { spec: SortSpec { descending, .. }, limit } => {
                    self.count(format!("sort descending {descending}"));
                    self.count(format!("sort limited {}", limit.is_some()));
                }
                Op::BlockFn(call) => self.count(format!("block function {}", call.function.0.name())),
                Op::Routine(spec) => self.count(format!("routine {}", spec.routine().name())),
                op => op.regions().for_each(|region| self.region(region)),
            }
        }
    }

    fn statement(&mut self, stmt: &IndexStmt) {
        for read in &stmt.reads {
            self.edge("read", read.edge);
            read.idx.iter().for_each(|idx| self.idx("read", idx));
        }
        self.edge("write", stmt.out.edge);
        stmt.out.idx.iter().for_each(|idx| self.idx("write", idx));
        self.code(&stmt.code);
        if stmt.has_guard {
            let reads_data = (0..stmt.reads.len() as u32).any(|k| guard_uses(&stmt.code, k));
            self.count(if reads_data { "guard data" } else { "guard index" });
        }
        if let Some(accum) = &stmt.accum {
            self.count(if stmt.reads.len() > 2 { "reduction of many" } else { "reduction of few" });
            self.accum(accum);
        }
    }

    fn edge(&mut self, place: &str, edge: Edge) {
        self.count(format!("edge {place} {}", edge.name()));
    }

    fn idx(&mut self, place: &str, idx: &Idx) {
        let kind = if idx.terms().is_empty() {
            "constant"
        } else if idx.as_var().is_some() {
            "variable"
        } else if idx.terms().iter().any(|(term, _)| matches!(term, Term::Div(..))) {
            "quotient"
        } else if idx.terms().iter().any(|(term, _)| matches!(term, Term::Mod(..))) {
            "remainder"
        } else if idx.has_table() {
            "table"
        } else {
            "affine"
        };
        self.count(format!("index {place} {kind}"));
    }

    fn code(&mut self, code: &ScalarCode) {
        for op in code.ops() {
            match op {
                ScalarOp::Unary(op, _) => self.count(format!("unary {op}")),
                ScalarOp::Binary(op, a, _) => {
                    self.count(format!("binary {op}"));
                    self.count(format!("binary {op} {}", code.dtype(*a)));
                }
                ScalarOp::Select(..) => self.count("scalar select"),
                ScalarOp::Cast(dtype, a) => self.count(format!("cast {} {dtype}", code.dtype(*a))),
                ScalarOp::Random { distribution, .. } => self.count(match distribution {
                    RandomDistribution::Uniform => "random uniform",
                    RandomDistribution::Normal => "random normal",
                    RandomDistribution::Integer { .. } => "random integer",
                }),
                ScalarOp::Param(_) | ScalarOp::Const(_) => {}
            }
        }
    }

    fn accum(&mut self, accum: &Accum) {
        self.count(format!("accum {}", accum_name(accum)));
        self.count(match accum.on_empty {
            OnEmpty::Identity => "empty identity",
            OnEmpty::Error => "empty error",
            OnEmpty::Value(_) => "empty value",
        });
    }
}

/// True if the guard, the first result of the code, depends on a parameter.
fn guard_uses(code: &ScalarCode, param: u32) -> bool {
    let mut guard = code.clone();
    guard.set_results(code.results()[..1].to_vec());
    guard.without_dead_ops().uses_param(param)
}

/// The constructor that makes an accumulator, `several` for other tuples, or the operation of other simple ones.
fn accum_name(accum: &Accum) -> String {
    let Some(first) = accum.identity.first().copied() else { return "none".to_string() };
    let dtype = first.dtype();
    let mut known = vec![("any", Accum::any()), ("all", Accum::all()), ("last", Accum::last(dtype, first))];
    if BinaryOp::Add.result(dtype).is_some() {
        known.extend([("sum", Accum::sum(dtype)), ("product", Accum::product(dtype))]);
    }
    if BinaryOp::Lt.result(dtype).is_some() {
        known.extend([("min", Accum::min(dtype)), ("max", Accum::max(dtype))]);
        known.extend([("argmin", Accum::argmin(dtype)), ("argmax", Accum::argmax(dtype))]);
    }
    if dtype.has_float_arithmetic() {
        known.extend([("mean", Accum::mean(dtype)), ("variance", Accum::variance(dtype, 0.0))]);
    }
    let same = |other: &Accum| Accum { on_empty: OnEmpty::Error, ..other.clone() };
    if let Some((name, _)) = known.iter().find(|(_, other)| same(other) == same(accum)) {
        return name.to_string();
    }
    match accum.as_simple() {
        Some((op, _)) => op.to_string(),
        None if accum.identity.len() > 1 => "several".to_string(),
        None => "other".to_string(),
    }
}

/// Every feature that a thorough test must meet.
pub fn expected_features() -> Vec<String> {
    let mut features: Vec<String> = Vec::new();
    let mut add = |prefix: &str, words: &str| features.extend(words.split(' ').map(|word| format!("{prefix} {word}")));
    add(
        "op",
        "source index scan gather scatter compact expand sort reshape retile concat block_fn routine resolve while if store",
    );
    add("source", "input constant");
    for place in ["read", "write", "gather", "scatter"] {
        add(&format!("edge {place}"), "error fill clamp wrap");
    }
    for place in ["read", "write"] {
        add(&format!("index {place}"), "constant variable affine quotient remainder");
    }
    add("accum", "sum product min max any all argmin argmax last mean variance several other or xor");
    add("empty", "identity error value");
    add("guard", "index data");
    add("reduction of", "many few");
    add("block function", "reverse total rows add_first");
    add("routine", "select fourier svdvals");
    add("random", "uniform normal integer");
    add("rank", "0 1 2 3 4");
    add("extent", "zero deferred");
    add("tiling", "uniform ragged");
    add("sort descending", "true false");
    add("sort limited", "true false");
    for exclusive in [true, false] {
        add(&format!("scan exclusive {exclusive} reverse"), "true false");
    }
    add("scalar", "select");
    features.extend(DTYPES.iter().map(|dtype| format!("dtype {dtype}")));
    let taken = |op: &tw_ir::UnaryOp| DTYPES.iter().any(|dtype| op.result(*dtype).is_some());
    features.extend(tw_ir::UnaryOp::ALL.iter().filter(|op| taken(op)).map(|op| format!("unary {op}")));
    for op in tw_ir::BinaryOp::ALL {
        let types = DTYPES.iter().filter(|dtype| op.result(**dtype).is_some_and(|result| DTYPES.contains(&result)));
        features.extend(types.map(|dtype| format!("binary {op} {dtype}")));
    }
    for from in DTYPES {
        // Between halves and complex numbers programs go through singles, so that infinities can be cut off.
        let through = |to: tw_ir::DType| from.is_half() && to.is_complex() || from.is_complex() && to.is_half();
        let others = DTYPES.iter().filter(|to| **to != from && !through(**to));
        features.extend(others.map(|to| format!("cast {from} {to}")));
    }
    features
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::generate::{Options, random_program};
    use tw_ir::{DType, Scalar};

    #[test]
    fn a_thousand_programs_use_everything() {
        let mut coverage = Coverage::default();
        for seed in 0..1000 {
            let options = Options { inexact: seed % 2 == 1, ..Options::default() };
            coverage.add(&random_program(seed, &options).0);
        }
        let missing: Vec<String> =
            expected_features().into_iter().filter(|feature| coverage.get(feature) == 0).collect();
        assert!(missing.is_empty(), "no program has {missing:?}");
    }

    #[test]
    fn accumulators_are_recognised() {
        assert_eq!(accum_name(&Accum::variance(DType::F32, 0.0)), "variance");
        assert_eq!(accum_name(&Accum::last(DType::I64, Scalar::I64(3))), "last");
        let both = Accum::several(&[Accum::sum(DType::I64), Accum::any()]).unwrap();
        assert_eq!(accum_name(&both), "several");
    }
}
