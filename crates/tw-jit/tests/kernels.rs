//! Statements whose kernels have vector code, and the shapes of operands at which such code can go wrong.
#![allow(clippy::unwrap_used, unreachable_pub)]

#[path = "../../tw-sparse/tests/common/mod.rs"]
mod common;

use common::bits;
use common::notation::read;
use tw_ir::{Buffer, Scalar};
use tw_jit::JitEngine;
use tw_sparse::expr::OperandType;
use tw_sparse::{CompiledStatement, InterpretedLoops, KernelEngine, SparseTensor};

/// Elements without a pattern, whose sums depend on their order.
fn elements(n: u64, sparse: bool, seed: u64) -> Buffer {
    let mut draw = common::random::Draw(seed);
    let mut next = || (draw.next() >> 12) as f64 / (1u64 << 40) as f64 - 2000.0;
    Buffer::F64((0..n).map(|k| if sparse && !(k + seed).is_multiple_of(3) { 0.0 } else { next() }).collect())
}

struct Case<'a> {
    text: &'a str,
    output: &'a str,
    /// Name, format and extents.
    operands: &'a [(&'a str, &'a str, &'a [u64])],
}

/// Runs a statement by the interpreter and compiled, with and without checks, and compares the bits of all arrays.
fn compare(case: &Case<'_>, engines: &[&dyn KernelEngine]) {
    let zero = Scalar::F64(0.0);
    let operand =
        |name: &str, format: &str| OperandType { name: name.into(), format: format.parse().unwrap(), fill: zero };
    let types = case.operands.iter().map(|(name, format, _)| operand(name, format)).collect();
    let compiled = CompiledStatement::new(read(case.text, operand("A", case.output), types).unwrap()).unwrap();
    let tensors: Vec<SparseTensor> = case
        .operands
        .iter()
        .zip(1..)
        .map(|((_, format, shape), seed)| {
            let dense = elements(shape.iter().product(), format.contains("compressed"), seed);
            SparseTensor::from_dense(shape.to_vec(), format.parse().unwrap(), zero, &dense).unwrap()
        })
        .collect();
    let borrowed: Vec<&SparseTensor> = tensors.iter().collect();
    let all = |tensor: &SparseTensor| -> Vec<String> {
        tensor.levels().iter().flatten().chain([tensor.values()]).map(|buffer| bits(buffer)).collect()
    };
    let expected = all(&compiled.run(&InterpretedLoops, &borrowed, &[]).unwrap());
    for engine in engines {
        let found = all(&compiled.run(*engine, &borrowed, &[]).unwrap());
        assert_eq!(found, expected, "{} {:?}\n{}", case.text, case.operands, compiled.lowered().kernel);
    }
}

#[test]
fn dense_inner_loops_of_every_length() {
    let (compiled, checked) = (JitEngine::new(), JitEngine::new().with_bounds_checks());
    let engines: [&dyn KernelEngine; 2] = [&checked, &compiled];
    for n in (0..=20).chain([31, 32, 33, 47, 64, 67]) {
        for m in [0, 1, 3, 4, 5, 9] {
            let csr = "dense, compressed";
            for case in [
                Case {
                    text: "A(i,j) = sum(k, (B(i,k) * C(k,j)))",
                    output: "dense, dense",
                    operands: &[("B", csr, &[5, m]), ("C", "dense, dense", &[m, n])],
                },
                Case {
                    text: "A(i,j) = (B(i,j) * sum(k, (C(i,k) * D(j,k))))",
                    output: csr,
                    operands: &[("B", csr, &[5, m]), ("C", "dense, dense", &[5, n]), ("D", "dense, dense", &[m, n])],
                },
                Case {
                    text: "A(i,j) = (B(i,j) * sum(k, (C(i,k) * D(k,j))))",
                    output: csr,
                    operands: &[("B", csr, &[5, m]), ("C", "dense, dense", &[5, n]), ("D", "dense, dense", &[n, m])],
                },
                Case {
                    text: "A(i,j) = sum(k, sum(l, ((B(i,k,l) * D(l,j)) * C(k,j))))",
                    output: "dense, dense",
                    operands: &[
                        ("B", "dense, compressed, compressed", &[3, 4, m]),
                        ("C", "dense, dense", &[4, n]),
                        ("D", "dense, dense", &[m, n]),
                    ],
                },
                Case {
                    text: "A(i,j) = ((B(i,j) * C(i,j)) + (D(i) / C(i,j)))",
                    output: "dense, dense",
                    operands: &[("B", "dense, dense", &[m, n]), ("C", "dense, dense", &[m, n]), ("D", "dense", &[m])],
                },
            ] {
                compare(&case, &engines);
            }
        }
    }
}

/// How many loops of each kind the code of a statement has: elements in vectors, sums of a row in registers, calls for rows, calls for dots.
fn shape(text: &str, output: &str, operands: &[(&str, &str)]) -> [usize; 4] {
    let zero = Scalar::F64(0.0);
    let operand =
        |name: &str, format: &str| OperandType { name: name.into(), format: format.parse().unwrap(), fill: zero };
    let types = operands.iter().map(|(name, format)| operand(name, format)).collect();
    let compiled = CompiledStatement::new(read(text, operand("A", output), types).unwrap()).unwrap();
    let summary = JitEngine::new().prepare(&compiled.lowered().kernel).unwrap();
    [summary.vector_loops, summary.row_loops, summary.row_calls, summary.dot_calls]
}

#[test]
fn dense_inner_loops_become_vectors() {
    let (csr, dense) = ("dense, compressed", "dense, dense");
    let product = "A(i,j) = sum(k, (B(i,k) * C(k,j)))";
    assert_eq!(shape(product, dense, &[("B", csr), ("C", dense)]), [0, 0, 1, 0]);
    let sampled = "A(i,j) = (B(i,j) * sum(k, (C(i,k) * D(j,k))))";
    assert_eq!(shape(sampled, csr, &[("B", csr), ("C", dense), ("D", dense)]), [0, 0, 0, 1]);
    let csf = "dense, compressed, compressed";
    let mttkrp = "A(i,j) = sum(k, sum(l, ((B(i,k,l) * D(l,j)) * C(k,j))))";
    assert_eq!(shape(mttkrp, dense, &[("B", csf), ("C", dense), ("D", dense)]), [0, 1, 0, 0], "{mttkrp}");
    let elementwise = "A(i,j) = ((B(i,j) * C(i,j)) + D(i))";
    assert_eq!(shape(elementwise, dense, &[("B", dense), ("C", dense), ("D", "dense")]), [1, 0, 0, 0]);
    // Four rows at a time; the sum of each keeps its order.
    assert_eq!(shape("A(i) = sum(k, (B(i,k) * C(k)))", "dense", &[("B", dense), ("C", "dense")]), [0, 0, 0, 1]);
    assert_eq!(shape("A = sum(k, (B(k) * C(k)))", "", &[("B", "dense"), ("C", "dense")]), [0, 0, 0, 0]);
}

#[test]
fn all_triples_of_the_product() {
    let (compiled, checked) = (JitEngine::new(), JitEngine::new().with_bounds_checks());
    let formats = ["dense, dense", "dense, compressed", "dense, compressed by 1 0", "compressed(nonunique), singleton"];
    for a in formats {
        for b in formats {
            for c in formats {
                for shape in [[3, 3], [7, 7], [1, 1]] {
                    let operands: [(&str, &str, &[u64]); 2] = [("B", b, &shape), ("C", c, &shape)];
                    let case = Case { text: "A(i,j) = sum(k, (B(i,k) * C(k,j)))", output: a, operands: &operands };
                    compare(&case, &[&checked, &compiled]);
                }
            }
        }
    }
    assert!(compiled.statistics().compiled > 20);
}

#[test]
fn empty_full_and_hypersparse_operands() {
    use tw_sparse::{CoordinateList, Duplicates, IndexWidth, TensorFormat};
    let engine = JitEngine::new().with_bounds_checks();
    let wide = 1u64 << 40;
    let format = TensorFormat::compressed(2).with_width(IndexWidth::U64);
    let zero = Scalar::F64(0.0);
    let types: Vec<OperandType> =
        ["B", "C"].map(|name| OperandType { name: name.into(), format: format.clone(), fill: zero }).into();
    let output = OperandType { name: "A".into(), format: format.clone(), fill: zero };
    for coordinates in [vec![], vec![5, wide - 1, wide - 2, 3, wide - 1, 5]] {
        let n = coordinates.len() / 2;
        let list = CoordinateList { coordinates, values: Buffer::F64((1..=n).map(|k| k as f64).collect()) };
        let tensor =
            SparseTensor::from_coordinates(vec![wide, wide], format.clone(), zero, &list, Duplicates::Sum).unwrap();
        for text in ["A(i,j) = (B(i,j) + C(i,j))", "A(i,j) = (B(i,j) * C(i,j))", "A(i,j) = sum(k, (B(i,k) * C(k,j)))"] {
            let statement = read(text, output.clone(), types.clone()).unwrap();
            let compiled = CompiledStatement::new(statement).unwrap();
            let found = compiled.run(&engine, &[&tensor, &tensor], &[]).unwrap();
            assert_eq!(found, compiled.run(&InterpretedLoops, &[&tensor, &tensor], &[]).unwrap(), "{text}");
            if text.contains("sum") && n > 0 {
                // (5, w-1) * (w-1, 5) and (w-1, 5) * (5, w-1).
                let products = found.to_coordinates();
                assert_eq!(products.coordinates, [5, 5, wide - 1, wide - 1]);
                assert_eq!(products.values, Buffer::F64(vec![3.0, 3.0]));
            }
        }
    }
}
