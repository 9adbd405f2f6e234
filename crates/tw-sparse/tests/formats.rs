//! Storage: what goes in comes out, in every format, and what lies is refused.
#![allow(clippy::unwrap_used, unreachable_pub)]

use std::sync::Arc;

use tw_ir::{Blame, Buffer, Scalar};
use tw_sparse::{CoordinateList, Duplicates, IndexWidth, SparseTensor, TensorFormat};

const ZERO: Scalar = Scalar::F64(0.0);

fn format(text: &str) -> TensorFormat {
    text.parse().unwrap()
}

fn u32s(values: &[u32]) -> Arc<Buffer> {
    Arc::new(Buffer::U32(values.to_vec()))
}

fn f64s(values: &[f64]) -> Arc<Buffer> {
    Arc::new(Buffer::F64(values.to_vec()))
}

/// CSR of a 3 x 4 matrix from parts.
fn csr(pos: &[u32], crd: &[u32], values: &[f64]) -> tw_ir::Result<SparseTensor> {
    let levels = vec![vec![], vec![u32s(pos), u32s(crd)]];
    SparseTensor::from_parts(vec![3, 4], format("dense, compressed"), ZERO, levels, f64s(values))
}

#[test]
fn every_pair_of_formats_converts() {
    let texts = [
        "dense, dense, dense",
        "compressed, compressed, compressed by 2 0 1",
        "dense, compressed, dense by 1 2 0",
        "compressed(nonunique), singleton(nonunique), singleton",
        "bitmap, compressed, hashed u64",
        "compressed, banded, bitmap",
        "dense, hashed, banded by 2 1 0",
        "dense, dense, compressed u64",
        "hashed, compressed, dense by 2 1 0",
        "hashed, hashed, compressed by 1 0 2",
    ];
    let shape = vec![3, 4, 5];
    let dense = Buffer::I64((0..60).map(|k| if k % 7 == 0 || k % 11 == 3 { k + 1 } else { 0 }).collect());
    for from in texts {
        let stored = SparseTensor::from_dense(shape.clone(), format(from), Scalar::I64(0), &dense).unwrap();
        stored.check().unwrap();
        assert_eq!(stored.to_dense().unwrap(), dense, "{from}");
        for to in texts {
            let converted = stored.convert(&format(to)).unwrap();
            converted.check().unwrap();
            assert_eq!(converted.to_dense().unwrap(), dense, "{from} to {to}");
            let direct = SparseTensor::from_dense(shape.clone(), format(to), Scalar::I64(0), &dense).unwrap();
            assert_eq!(converted, direct, "{from} to {to}");
        }
    }
}

#[test]
fn arrays_that_lie_are_refused() {
    assert!(csr(&[0, 2, 2, 3], &[1, 3, 0], &[1.0, 2.0, 3.0]).is_ok());
    for (pos, crd, values, what) in [
        (&[0, 2, 2][..], &[1, 3][..], &[1.0, 2.0][..], "too few rows"),
        (&[1, 2, 2, 2], &[1, 3], &[1.0, 2.0], "a start that is not 0"),
        (&[0, 2, 1, 3], &[1, 3, 0], &[1.0, 2.0, 3.0], "a fall"),
        (&[0, 2, 2, 4], &[1, 3, 0], &[1.0, 2.0, 3.0], "an end past the coordinates"),
        (&[0, 2, 2, 3], &[3, 1, 0], &[1.0, 2.0, 3.0], "no order"),
        (&[0, 2, 2, 3], &[1, 1, 0], &[1.0, 2.0, 3.0], "a coordinate twice"),
        (&[0, 2, 2, 3], &[1, 4, 0], &[1.0, 2.0, 3.0], "a coordinate outside"),
        (&[0, 2, 2, 3], &[1, 3, 0], &[1.0, 2.0], "too few values"),
    ] {
        let error = csr(pos, crd, values).unwrap_err();
        assert_eq!(error.blame(), Blame::Data, "{what}: {error}");
    }
}

#[test]
fn lists_of_coordinates_must_be_sorted_as_a_whole() {
    let list = |rows: &[u32], columns: &[u32], text: &str| {
        let n = rows.len() as u32;
        let levels = vec![vec![u32s(&[0, n]), u32s(rows)], vec![u32s(columns)]];
        let values = f64s(&vec![1.0; rows.len()]);
        SparseTensor::from_parts(vec![3, 4], format(text), ZERO, levels, values)
    };
    let coo = "compressed(nonunique), singleton";
    assert!(list(&[0, 0, 2], &[1, 3, 0], coo).is_ok());
    assert!(list(&[0, 0, 2], &[3, 1, 0], coo).is_err());
    assert!(list(&[0, 0, 2], &[1, 1, 0], coo).is_err());
    let with_duplicates = "compressed(nonunique), singleton(nonunique)";
    let twice = list(&[0, 0, 2], &[1, 1, 0], with_duplicates).unwrap();
    assert_eq!(twice.to_dense().unwrap().get(1), Scalar::F64(2.0));
    assert_eq!(twice.convert(&format("dense, compressed")).unwrap().values().len(), 2);
}

#[test]
fn indices_that_do_not_fit_are_refused() {
    let far = CoordinateList { coordinates: vec![1 << 33], values: Buffer::F64(vec![1.0]) };
    let narrow = TensorFormat::compressed(1);
    let shape = vec![1 << 34];
    let error = SparseTensor::from_coordinates(shape.clone(), narrow.clone(), ZERO, &far, Duplicates::Sum).unwrap_err();
    assert!(error.to_string().contains("does not fit"), "{error}");
    let wide = narrow.with_width(IndexWidth::U64);
    let stored = SparseTensor::from_coordinates(shape, wide, ZERO, &far, Duplicates::Sum).unwrap();
    assert_eq!(stored.to_coordinates().coordinates, [1 << 33]);
    // Dense levels that no memory holds are refused before anything is allocated.
    let huge = SparseTensor::from_coordinates(
        vec![1 << 31, 1 << 31],
        TensorFormat::dense(2),
        ZERO,
        &CoordinateList { coordinates: vec![], values: Buffer::F64(vec![]) },
        Duplicates::Sum,
    );
    assert_eq!(huge.unwrap_err().blame(), Blame::Resource);
}

#[test]
fn duplicates_are_summed_or_refused() {
    let list = CoordinateList { coordinates: vec![0, 1, 0, 1], values: Buffer::F64(vec![2.0, 5.0]) };
    let store = |how| SparseTensor::from_coordinates(vec![2, 2], format("dense, compressed"), ZERO, &list, how);
    assert_eq!(*store(Duplicates::Sum).unwrap().values(), f64s(&[7.0]));
    assert!(store(Duplicates::Refuse).is_err());
    let outside = CoordinateList { coordinates: vec![0, 2], values: Buffer::F64(vec![2.0]) };
    assert!(
        SparseTensor::from_coordinates(vec![2, 2], TensorFormat::dense(2), ZERO, &outside, Duplicates::Sum).is_err()
    );
}
