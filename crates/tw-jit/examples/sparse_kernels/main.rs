//! Times compiled kernels of sparse statements beside loops written by hand in Rust, on generated operands, with one thread:
//!
//! ```text
//! cargo run --release -p tw-jit --example sparse_kernels -- [--repeats 7] [--nonzeros 2000000] [--only SpMM] [--text] [--write DIR]
//! ```
//!
//! Printed are the best times in milliseconds. Both sides allocate their results. `--text` prints the loop nests, `--write` stores the operands for
//! `python/benchmarks/sparse_kernels.py`, which times scipy and numba on them.
#![allow(clippy::unwrap_used, unreachable_pub)]

use std::path::PathBuf;
use std::time::Instant;

use tw_ir::{Buffer, Scalar};
use tw_jit::JitEngine;
use tw_sparse::expr::OperandType;
use tw_sparse::{CompiledStatement, SparseTensor};

mod by_hand;
#[allow(dead_code)]
#[path = "../../../tw-sparse/tests/common/notation.rs"]
mod notation;
mod operands;

use operands::{Csr, Fibres};

struct Options {
    repeats: usize,
    nonzeros: usize,
    only: Option<String>,
    text: bool,
    write: Option<PathBuf>,
}

fn options() -> Options {
    let mut options = Options { repeats: 7, nonzeros: 2_000_000, only: None, text: false, write: None };
    let mut args = std::env::args().skip(1);
    while let Some(arg) = args.next() {
        let mut value = || args.next().expect("a value after the option");
        match arg.as_str() {
            "--repeats" => options.repeats = value().parse().expect("a number"),
            "--nonzeros" => options.nonzeros = value().parse().expect("a number"),
            "--only" => options.only = Some(value()),
            "--text" => options.text = true,
            "--write" => options.write = Some(value().into()),
            other => panic!("unknown option {other}"),
        }
    }
    options
}

/// An operand: its name in the statement and the tensor.
type Given<'a> = (&'a str, &'a SparseTensor);

struct Bench {
    options: Options,
    engine: JitEngine,
}

impl Bench {
    /// Times a statement and a function that computes the same values; the latter returns them.
    fn run(
        &self,
        name: &str,
        data: &str,
        text: &str,
        output: &str,
        operands: &[Given<'_>],
        by_hand: &dyn Fn() -> Vec<f64>,
    ) {
        if self.options.only.as_ref().is_some_and(|only| only != name) {
            return;
        }
        let zero = Scalar::F64(0.0);
        let operand =
            |name: &str, format: &str| OperandType { name: name.into(), format: format.parse().unwrap(), fill: zero };
        let types = operands.iter().map(|(name, tensor)| operand(name, &tensor.format().to_string())).collect();
        let statement = notation::read(text, operand("A", output), types).unwrap();
        let begin = Instant::now();
        let compiled = CompiledStatement::new(statement).unwrap();
        let lowering = begin.elapsed();
        let compile = |engine: &JitEngine| {
            let begin = Instant::now();
            engine.prepare(&compiled.lowered().kernel).unwrap();
            begin.elapsed()
        };
        // The first call of all includes what an engine does once.
        let first = compile(&self.engine);
        let again = (0..3).map(|_| compile(&JitEngine::new())).min().unwrap_or(first);
        if self.options.text {
            println!("{}", compiled.lowered().kernel);
        }
        let tensors: Vec<&SparseTensor> = operands.iter().map(|(_, tensor)| *tensor).collect();
        let (mut ours, mut theirs) = (f64::INFINITY, f64::INFINITY);
        for round in 0..self.options.repeats {
            let begin = Instant::now();
            let result = compiled.run(&self.engine, &tensors, &[]).unwrap();
            ours = ours.min(begin.elapsed().as_secs_f64());
            let begin = Instant::now();
            let expected = by_hand();
            theirs = theirs.min(begin.elapsed().as_secs_f64());
            if round == 0 {
                let Buffer::F64(found) = &**result.values() else { panic!() };
                assert_eq!(found.len(), expected.len(), "{name} {data}");
                let far = found.iter().zip(&expected).position(|(a, b)| (a - b).abs() > 1e-9 * b.abs().max(1.0));
                assert_eq!(far, None, "{name} {data}");
            }
        }
        println!(
            "{name:10} {data:10} {:9.2} {:9.2} {:6.2}   lower {:5.2}  compile first {:5.2}, best {:5.2}",
            ours * 1e3,
            theirs * 1e3,
            theirs / ours,
            lowering.as_secs_f64() * 1e3,
            first.as_secs_f64() * 1e3,
            again.as_secs_f64() * 1e3
        );
    }

    fn matrices(&self, data: &str, csr: &Csr) {
        let (n, m) = (csr.rows, csr.columns);
        let a = csr.tensor();
        let x = operands::dense(&[m], 1);
        self.run("SpMV", data, "A(i) = sum(k, (B(i,k) * C(k)))", "dense", &[("B", &a), ("C", &x.tensor)], &|| {
            by_hand::spmv(csr, &x.values)
        });
        let right = operands::dense(&[m, 32], 2);
        let operands = [("B", &a), ("C", &right.tensor)];
        self.run("SpMM", data, "A(i,j) = sum(k, (B(i,k) * C(k,j)))", "dense, dense", &operands, &|| {
            by_hand::spmm(csr, &right.values, 32)
        });
        let (second, third) = (csr.shifted(1), csr.shifted(2));
        let (b, c) = (second.tensor(), third.tensor());
        let operands = [("B", &a), ("C", &b), ("D", &c)];
        self.run("SpAdd3", data, "A(i,j) = ((B(i,j) + C(i,j)) + D(i,j))", "dense, compressed", &operands, &|| {
            by_hand::add3(csr, &second, &third)
        });
        let (left, right) = (operands::dense(&[n, 64], 3), operands::dense(&[m, 64], 4));
        let operands = [("B", &a), ("C", &left.tensor), ("D", &right.tensor)];
        self.run(
            "SDDMM",
            data,
            "A(i,j) = (B(i,j) * sum(k, (C(i,k) * D(j,k))))",
            "dense, compressed",
            &operands,
            &|| by_hand::sddmm(csr, &left.values, &right.values, 64),
        );
        let operands = [("B", &a), ("C", &b)];
        self.run("SpGEMM", data, "A(i,j) = sum(k, (B(i,k) * C(k,j)))", "dense, compressed", &operands, &|| {
            by_hand::spgemm(csr, &second)
        });
    }

    fn tensors(&self, data: &str, fibres: &Fibres) {
        let b = fibres.tensor();
        let c = operands::dense(&[fibres.shape[2]], 5);
        let text = "A(i,j) = sum(k, (B(i,j,k) * C(k)))";
        self.run("SpTTV", data, text, "dense, compressed", &[("B", &b), ("C", &c.tensor)], &|| {
            by_hand::ttv(fibres, &c.values)
        });
        let (c, d) = (operands::dense(&[fibres.shape[1], 32], 6), operands::dense(&[fibres.shape[2], 32], 7));
        let text = "A(i,j) = sum(k, sum(l, ((B(i,k,l) * D(l,j)) * C(k,j))))";
        let operands = [("B", &b), ("C", &c.tensor), ("D", &d.tensor)];
        self.run("SpMTTKRP", data, text, "dense, dense", &operands, &|| {
            by_hand::mttkrp(fibres, &c.values, &d.values, 32)
        });
    }
}

fn main() {
    let bench = Bench { options: options(), engine: JitEngine::new() };
    let nonzeros = bench.options.nonzeros;
    println!("{:10} {:10} {:>9} {:>9} {:>6}", "kernel", "data", "jit ms", "rust ms", "ratio");
    for (name, csr) in [
        ("uniform", operands::uniform(nonzeros)),
        ("banded", operands::banded(nonzeros)),
        ("power-law", operands::power_law(nonzeros)),
    ] {
        if let Some(directory) = &bench.options.write {
            csr.write(directory, name).expect("the directory can be written");
        }
        bench.matrices(name, &csr);
    }
    for (name, per_fibre) in [("uniform", 1), ("fibres", 10)] {
        let fibres = operands::fibres(nonzeros, per_fibre);
        if let Some(directory) = &bench.options.write {
            fibres.write(directory, &format!("tensor-{name}")).expect("the directory can be written");
        }
        bench.tensors(name, &fibres);
    }
}
