//! Kernels with results that were computed by hand, and the shapes that kernels must have.
#![allow(clippy::unwrap_used, unreachable_pub)]

mod common;

use common::check_against_dense;
use common::notation::read;
use tw_ir::{Buffer, Scalar};
use tw_sparse::expr::OperandType;
use tw_sparse::{CompiledStatement, InterpretedLoops, SparseTensor, TensorFormat};

const ZERO: Scalar = Scalar::F64(0.0);

fn operand(name: &str, format: &str) -> OperandType {
    OperandType { name: name.into(), format: format.parse().unwrap(), fill: ZERO }
}

fn stored(shape: &[u64], format: &str, dense: &[f64]) -> SparseTensor {
    SparseTensor::from_dense(shape.to_vec(), format.parse().unwrap(), ZERO, &Buffer::F64(dense.to_vec())).unwrap()
}

/// Runs `text` on operands given as (name, format, shape, elements).
fn run(
    text: &str,
    output: &str,
    operands: &[(&str, &str, &[u64], &[f64])],
    extents: &[Option<u64>],
) -> (SparseTensor, String) {
    let types = operands.iter().map(|(name, format, ..)| operand(name, format)).collect();
    let tensors: Vec<SparseTensor> =
        operands.iter().map(|(_, format, shape, dense)| stored(shape, format, dense)).collect();
    let compiled = CompiledStatement::new(read(text, operand("A", output), types).unwrap()).unwrap();
    let borrowed: Vec<&SparseTensor> = tensors.iter().collect();
    let text = compiled.lowered().kernel.to_string();
    (compiled.run(&InterpretedLoops, &borrowed, extents).unwrap_or_else(|e| panic!("{e}\n{text}")), text)
}

const B: [f64; 9] = [1.0, 0.0, 2.0, 0.0, 0.0, 0.0, 3.0, 4.0, 0.0];
const C: [f64; 9] = [0.0, 5.0, 0.0, 6.0, 0.0, 0.0, 0.0, 0.0, 7.0];

#[test]
fn all_triples_of_the_product() {
    // By hand: B * C.
    let expected = Buffer::F64(vec![0.0, 5.0, 14.0, 0.0, 0.0, 0.0, 24.0, 15.0, 0.0]);
    let formats = ["dense, dense", "dense, compressed", "dense, compressed by 1 0", "compressed(nonunique), singleton"];
    for a in formats {
        for b in formats {
            for c in formats {
                let operands = [("B", b, &[3, 3][..], &B[..]), ("C", c, &[3, 3], &C)];
                let (product, text) = run("A(i,j) = (B(i,k) * C(k,j))", a, &operands, &[]);
                product.check().unwrap();
                assert_eq!(product.to_dense().unwrap(), expected, "{a} = {b} * {c}\n{text}");
                // Every element of a dense operand is an element, zeros too.
                if [a, b, c].iter().all(|format| *format != "dense, dense") {
                    assert_eq!(product.values().len(), 4, "{a} = {b} * {c}\n{text}");
                }
            }
        }
    }
}

#[test]
fn empty_and_full_operands() {
    for (n, element) in [(0, 0.0), (1, 0.0), (3, 0.0), (3, 2.0)] {
        let dense = vec![element; n * n];
        let shape = [n as u64; 2];
        for format in
            ["dense, compressed", "compressed, compressed", "compressed(nonunique), singleton", "hashed, bitmap"]
        {
            for text in ["A(i,j) = (B(i,k) * C(k,j))", "A(i,j) = (B(i,j) + C(j,i))", "A(i,j) = (B(i,j) * C(i,j))"] {
                let types = vec![operand("B", format), operand("C", format)];
                let statement = read(text, operand("A", format), types).unwrap();
                let tensors = [stored(&shape, format, &dense), stored(&shape, format, &dense)];
                let extents = vec![n as u64; statement.variables.len()];
                check_against_dense(&InterpretedLoops, &statement, &tensors, &extents).unwrap();
            }
        }
    }
}

#[test]
fn hypersparse_extents_cost_no_memory() {
    use tw_sparse::{CoordinateList, Duplicates, IndexWidth};
    let format = TensorFormat::compressed(2).with_width(IndexWidth::U64);
    let wide = 1u64 << 40;
    let list = CoordinateList { coordinates: vec![5, wide - 1, wide - 2, 3], values: Buffer::F64(vec![2.0, 3.0]) };
    let shape = vec![wide, wide];
    let tensor = SparseTensor::from_coordinates(shape, format.clone(), ZERO, &list, Duplicates::Sum).unwrap();
    let types = ["B", "C"].map(|name| OperandType { name: name.into(), format: format.clone(), fill: ZERO }).to_vec();
    let output = OperandType { name: "A".into(), format, fill: ZERO };
    let compiled = CompiledStatement::new(read("A(i,j) = (B(i,j) + C(i,j))", output, types).unwrap()).unwrap();
    let sum = compiled.run(&InterpretedLoops, &[&tensor, &tensor], &[]).unwrap();
    assert_eq!(sum.to_coordinates(), CoordinateList { values: Buffer::F64(vec![4.0, 6.0]), ..list });
}

#[test]
fn sampled_products_share_the_pattern_of_their_operand() {
    let operands = [
        ("B", "dense, compressed", &[3, 3][..], &B[..]),
        ("C", "dense, dense", &[3, 3], &C),
        ("D", "dense, dense", &[3, 3], &C),
    ];
    let (sampled, text) = run("A(i,j) = (B(i,j) * sum(k, (C(i,k) * D(k,j))))", "dense, compressed", &operands, &[]);
    // By hand: C * C is [[30, 0, 0], [0, 30, 0], [0, 0, 49]].
    assert_eq!(**sampled.values(), Buffer::F64(vec![30.0, 0.0, 0.0, 0.0]));
    assert!(!text.contains("push") && !text.contains("output A2"), "{text}");
}

#[test]
fn intersections_gallop_and_keep_coordinates_in_variables() {
    let operands = [("B", "compressed", &[9][..], &B[..]), ("C", "compressed", &[9], &C)];
    let (product, text) = run("A(i) = (B(i) * C(i))", "compressed", &operands, &[]);
    assert_eq!(product.values().len(), 0);
    assert!(text.contains("seek("), "{text}");
    let (sum, text) = run("A(i) = (B(i) + C(i))", "compressed", &operands, &[]);
    assert_eq!(sum.values().len(), 7);
    assert!(!text.contains("seek(") && text.contains("min(iB, iC)"), "{text}");
}

#[test]
fn operands_that_end_early_leave_the_others_where_they_are() {
    // D ends first; then B is ahead of C, which must catch up with it.
    let operands = [
        ("B", "compressed", &[3][..], &[0.0, 0.0, 2.0][..]),
        ("C", "compressed", &[3], &[0.0, 3.0, 5.0]),
        ("D", "compressed", &[3], &[7.0, 0.0, 0.0]),
    ];
    let (product, text) = run("A(i) = ((C(i) + D(i)) * B(i))", "dense", &operands, &[]);
    assert_eq!(product.to_dense().unwrap(), Buffer::F64(vec![0.0, 0.0, 10.0]), "{text}");
}

#[test]
fn products_of_rows_use_a_workspace() {
    let operands = [("B", "dense, compressed", &[3, 3][..], &B[..]), ("C", "dense, compressed", &[3, 3], &C)];
    let (_, text) = run("A(i,j) = (B(i,k) * C(k,j))", "dense, compressed", &operands, &[]);
    assert!(text.contains("workspace w: f64") && text.contains("sort list"), "{text}");
    let (_, text) = run("A(i,j) = (B(i,k) * C(k,j))", "dense, dense", &operands, &[]);
    assert!(!text.contains("workspace"), "{text}");
}

#[test]
fn counting_leaves_values_alone() {
    let operands = [("B", "dense, compressed", &[3, 3][..], &B[..]), ("C", "dense, compressed", &[3, 3], &C)];
    let types: Vec<OperandType> = operands.iter().map(|(name, format, ..)| operand(name, format)).collect();
    let tensors: Vec<SparseTensor> =
        operands.iter().map(|(_, format, shape, dense)| stored(shape, format, dense)).collect();
    let borrowed: Vec<&SparseTensor> = tensors.iter().collect();
    // B + C has the elements (0,0) (0,1) (0,2) (1,0) (2,0) (2,1) (2,2), B * C has four.
    for (text, n) in [("A(i,j) = (B(i,j) + C(i,j))", 7), ("A(i,j) = sum(k, (B(i,k) * C(k,j)))", 4)] {
        let compiled =
            CompiledStatement::new(read(text, operand("A", "dense, compressed"), types.clone()).unwrap()).unwrap();
        let counting = tw_sparse::loops::counting(&compiled.lowered().kernel).to_string();
        for gone in ["push A", " = B[", " = C[", "w["] {
            assert!(!counting.contains(gone), "`{gone}` in\n{counting}");
        }
        // Positions, coordinates and values.
        assert_eq!(compiled.count(&InterpretedLoops, &borrowed, &[]).unwrap(), [4, n, n], "{counting}");
        let phased = compiled.run_in_two_phases(&InterpretedLoops, &borrowed, &[]).unwrap();
        assert_eq!(phased, compiled.run(&InterpretedLoops, &borrowed, &[]).unwrap());
    }
}

#[test]
fn sums_of_sums_are_one_sum() {
    let operands = [
        ("B", "dense, compressed, compressed", &[1, 3, 3][..], &B[..]),
        ("C", "dense, dense", &[3, 3], &C),
        ("D", "dense, dense", &[3, 3], &C),
    ];
    let (nested, text) = run("A(i,j) = sum(k, sum(l, (B(i,k,l) * (C(k,j) * D(l,j)))))", "dense, dense", &operands, &[]);
    let (flat, flat_text) = run("A(i,j) = (B(i,k,l) * (C(k,j) * D(l,j)))", "dense, dense", &operands, &[]);
    assert_eq!(nested.to_dense().unwrap(), flat.to_dense().unwrap());
    assert_eq!(text, flat_text);
}

#[test]
fn repeated_indices_and_slices() {
    let operands = [("B", "dense, compressed", &[3, 3][..], &[1.0, 2.0, 0.0, 0.0, 0.0, 3.0, 4.0, 0.0, 5.0][..])];
    let (diagonal, _) = run("A(i) = B(i,i)", "dense", &operands, &[]);
    assert_eq!(diagonal.to_dense().unwrap(), Buffer::F64(vec![1.0, 0.0, 5.0]));
    // The rows of B are the pattern of the result only if the diagonal is not looked up on the way.
    for output in ["compressed", "dense"] {
        let operands = [("B", "compressed, compressed", operands[0].2, operands[0].3)];
        let (diagonal, text) = run("A(i) = B(i,i)", output, &operands, &[]);
        assert_eq!(diagonal.to_dense().unwrap(), Buffer::F64(vec![1.0, 0.0, 5.0]), "{text}");
    }
}

#[test]
fn extents_that_disagree_are_refused() {
    let types = vec![operand("B", "compressed"), operand("C", "compressed")];
    let compiled = CompiledStatement::new(read("A(i) = (B(i) * C(i))", operand("A", "dense"), types).unwrap()).unwrap();
    let (b, c) = (stored(&[2], "compressed", &[1.0, 2.0]), stored(&[3], "compressed", &[1.0, 2.0, 3.0]));
    let error = compiled.run(&InterpretedLoops, &[&b, &c], &[]).unwrap_err();
    assert!(error.to_string().contains("extent 2"), "{error}");
    assert!(compiled.run(&InterpretedLoops, &[&b], &[]).is_err());
    let dense = stored(&[2], "dense", &[1.0, 2.0]);
    assert!(compiled.run(&InterpretedLoops, &[&b, &dense], &[]).is_err());
}
