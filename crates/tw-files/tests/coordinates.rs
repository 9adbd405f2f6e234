//! Matrix Market and FROSTT files. Expected matrices were written down by hand from the format's definition.
#![allow(clippy::unwrap_used)]

use std::fs;
use std::path::PathBuf;

use tw_block::Meter;
use tw_files::{describe, open, read_array, read_coordinates};
use tw_ir::{Blame, BoxRegion, DType};

fn file(test: &str, name: &str, text: impl AsRef<[u8]>) -> PathBuf {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("{}-{test}-{name}", std::process::id()));
    fs::write(&path, text).unwrap();
    path
}

#[test]
fn matrices_of_every_kind() {
    for (text, dtype, extents, expected) in [
        (
            "%%MatrixMarket matrix coordinate real general\n% why\n\n2 3 3\n1 1 1.5\n2 3 -2e1\n1 1 1\n",
            DType::F64,
            [2, 3],
            vec![2.5, 0., 0., 0., 0., -20.],
        ),
        (
            "%%MatrixMarket matrix coordinate integer symmetric\n2 2 2\n1 1 4\n2 1 7\n",
            DType::I64,
            [2, 2],
            vec![4., 7., 7., 0.],
        ),
        (
            "%%MatrixMarket matrix coordinate real skew-symmetric\n2 2 1\n2 1 7\n",
            DType::F64,
            [2, 2],
            vec![0., -7., 7., 0.],
        ),
        (
            "%%matrixmarket MATRIX coordinate pattern general\r\n2 2 1\r\n2 1\r\n",
            DType::F64,
            [2, 2],
            vec![0., 0., 1., 0.],
        ),
        ("%%MatrixMarket matrix array real general\n2 2\n1\n2\n3\n4\n", DType::F64, [2, 2], vec![1., 3., 2., 4.]),
        ("%%MatrixMarket matrix array integer symmetric\n2 2\n1\n2\n3\n", DType::I64, [2, 2], vec![1., 2., 2., 3.]),
        ("%%MatrixMarket matrix array real skew-symmetric\n2 2\n5\n", DType::F64, [2, 2], vec![0., -5., 5., 0.]),
    ] {
        let path = file("kinds", "x.mtx", text);
        let array = read_array(&path).unwrap();
        assert_eq!((array.dtype(), array.shape()), (dtype, &extents[..]), "{text}");
        assert_eq!(array.to_f64_vec(), expected, "{text}");
    }
    let path = file("kinds", "h.mtx", "%%MatrixMarket matrix coordinate complex hermitian\n2 2 2\n1 1 1 0\n2 1 3 4\n");
    let array = read_array(&path).unwrap();
    assert_eq!(array.dtype(), DType::C128);
    assert_eq!(
        (array.get(&[0, 1]).to_string(), array.get(&[1, 0]).to_string()),
        ("(3.0 -4.0)".into(), "(3.0 4.0)".into())
    );
    let empty = read_array(file("kinds", "e.mtx", "%%MatrixMarket matrix coordinate real general\n0 3 0\n")).unwrap();
    assert_eq!(empty.shape(), [0, 3]);
}

#[test]
fn tensors_and_their_coordinates() {
    let path = file("tns", "x.tns", "# three axes\n2 1 3 1.5\n1 2 1 2\n\n2 1 3 0.5\n");
    let found = read_coordinates(&path).unwrap();
    assert_eq!((found.shape.as_slice(), found.len()), (&[2, 2, 3][..], 2));
    assert_eq!((found.at(0), found.at(1)), (&[0, 1, 0][..], &[1, 0, 2][..]));
    let source = open(&path).unwrap();
    let all = source.to_array().unwrap();
    assert_eq!((all.get(&[0, 1, 0]).as_f64(), all.get(&[1, 0, 2]).as_f64()), (2.0, 2.0));
    assert_eq!(all.to_f64_vec().iter().sum::<f64>(), 4.0);
    let block = source.read(&BoxRegion::from_ranges([1..2, 0..2, 1..3]), &Meter::new()).unwrap();
    assert_eq!(block.to_array().unwrap().to_f64_vec(), [0.0, 2.0, 0.0, 0.0]);
    assert!(describe(&path).unwrap().format.contains("2 elements are stored"));
}

#[test]
fn files_that_are_wrong_say_where() {
    let header = "%%MatrixMarket matrix coordinate real general\n";
    for (name, text, message) in [
        ("x.mtx", String::new(), "line 1: `%%MatrixMarket"),
        ("x.mtx", "2 2 1\n1 1 1\n".into(), "line 1: `%%MatrixMarket"),
        ("x.mtx", "%%MatrixMarket matrix coordinate quaternion general\n".into(), "line 1: elements of kind"),
        ("x.mtx", header.into(), "the extents are missing"),
        ("x.mtx", format!("{header}2 x 1\n"), "line 2: `x` is not a number of columns"),
        ("x.mtx", format!("{header}2 2 2\n1 1 1\n"), "the file ends after 1 elements of 2"),
        ("x.mtx", format!("{header}2 2 1\n1 1 1\n1 2 1\n"), "line 4: there are more elements than the 1"),
        ("x.mtx", format!("{header}2 2 1\n% c\n3 1 1\n"), "line 4: index 3 is not between 1 and 2"),
        ("x.mtx", format!("{header}2 2 1\n0 1 1\n"), "line 3: index 0"),
        ("x.mtx", format!("{header}2 2 1\n1 1 one\n"), "line 3: `one` is not a number"),
        ("x.mtx", format!("{header}2 2 1\n1 1 1 1\n"), "line 3: `1` is too much"),
        ("x.mtx", format!("{header}2 2 1\n1 1\n"), "line 3: a number is missing"),
        (
            "x.mtx",
            "%%MatrixMarket matrix array real general\n2 2\n1\n2\n3\n".into(),
            "the file ends after 3 elements of a matrix",
        ),
        (
            "x.mtx",
            format!("%%MatrixMarket matrix array real general\n0 {}\n1\n", u64::MAX),
            "line 3: there are more elements",
        ),
        ("x.mtx", "%%MatrixMarket matrix coordinate real symmetric\n2 2 1\n1 2 1\n".into(), "line 3: an element above"),
        (
            "x.mtx",
            "%%MatrixMarket matrix coordinate real symmetric\n2 3 1\n1 2 1\n".into(),
            "line 2: a symmetric matrix of 2 rows",
        ),
        // Claims that no memory follows.
        ("x.mtx", format!("{header}2 2 18446744073709551615\n1 1 1\n"), "the file ends after 1 elements"),
        ("x.mtx", format!("{header}9000000000000000000 9000000000000000000 1\n1 1 1\n"), "as a dense tensor"),
        ("x.mtx", format!("{header}{}\n", " ".repeat(100_000)), "line 2: it has more than"),
        ("x.tns", "# nothing\n".into(), "there is no element"),
        ("x.tns", "1 1 2\n1 1 1 2\n".into(), "line 2: 3 indices instead of 2"),
        ("x.tns", "5\n".into(), "line 1: 1 fields"),
        ("x.tns", "0 1 2\n".into(), "line 1: index 0"),
        ("x.tns", "1000000000 1000000000 2\n".into(), "as a dense tensor"),
        ("x.tns", "\u{fffd}".repeat(3) + " 1", "is not an index"),
    ] {
        let error = read_array(file("wrong", name, &text)).unwrap_err();
        assert!(error.message().contains(message), "{text}: {error}");
        assert_eq!(error.blame(), Blame::Io);
    }
    let error = read_array(file("wrong", "y.tns", b"1 2 \xff\n")).unwrap_err();
    assert!(error.message().contains("line 1: it is not text"), "{error}");
}
