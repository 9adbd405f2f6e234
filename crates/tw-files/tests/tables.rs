//! Tables of numbers as text, and several files as one.
#![allow(clippy::unwrap_used)]

use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

use tw_block::Meter;
use tw_files::{TableOptions, expand, open, open_all, open_table, read_array, write_array};
use tw_ir::{Array, Blame, BoxRegion, DType};

struct Directory(PathBuf);

impl Directory {
    fn new(name: &str) -> Directory {
        let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("{}-tables-{name}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Directory(path)
    }

    fn file(&self, name: &str, text: impl AsRef<[u8]>) -> PathBuf {
        let path = self.0.join(name);
        fs::write(&path, text).unwrap();
        path
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn options(columns: Option<&[&str]>) -> TableOptions {
    let columns = columns.map(|names| names.iter().map(|name| name.to_string()).collect());
    TableOptions { columns, ..TableOptions::of(Path::new("x.csv")) }
}

fn values(path: &Path, columns: Option<&[&str]>) -> (Vec<String>, Vec<u64>, Vec<f64>) {
    let (source, names) = open_table(path, &options(columns)).unwrap();
    (names, source.shape().unwrap(), source.to_array().unwrap().to_f64_vec())
}

#[test]
fn tables_of_all_kinds() {
    let directory = Directory::new("kinds");
    let plain = ([2, 2], vec![1.0, 2.5, -3.0, 4e3]);
    for (name, text) in [
        ("lf", "a,b\n1,2.5\n-3,4e3\n"),
        ("no-end", "a,b\n1,2.5\n-3,4e3"),
        ("crlf", "a,b\r\n1,2.5\r\n-3,4e3\r\n"),
        ("mark", "\u{feff}a,b\n1,2.5\n-3,4e3\n"),
        ("blank", "\na,b\n\n1,2.5\n\r\n-3,4e3\n\n\n"),
        ("quotes", "\"a\",\"b\"\n\"1\",2.5\n-3,\"4e3\"\n"),
        ("spaces", "a, b\n 1 , 2.5\n-3, 4e3\n"),
    ] {
        let (names, extents, found) = values(&directory.file("x.csv", text), None);
        assert_eq!(
            (names, extents.as_slice(), found),
            (vec!["a".into(), "b".into()], &plain.0[..], plain.1.clone()),
            "{name}"
        );
    }
    let path = directory.file("x.csv", "a,who,b\n1,\"x, y\n\"\"z\",2\n,q,NA\n");
    let (names, _, found) = values(&path, None);
    assert_eq!(names, ["a", "b"]);
    assert!(found[..2] == [1.0, 2.0] && found[2].is_nan() && found[3].is_nan());
    assert_eq!(values(&path, Some(&["b", "a", "b"])).2[..3], [2.0, 1.0, 2.0]);
    let path = directory.file("x.tsv", "1\t2\n3\t4\n");
    let tabs = TableOptions { header: false, ..TableOptions::of(&path) };
    let (source, names) = open_table(&path, &tabs).unwrap();
    assert_eq!(
        (names, source.to_array().unwrap().to_f64_vec()),
        (vec!["0".into(), "1".into()], vec![1.0, 2.0, 3.0, 4.0])
    );
    let (_, extents, found) = values(&directory.file("x.csv", "a,b\n"), None);
    assert_eq!((extents, found), (vec![0, 2], vec![]));
}

#[test]
fn blocks_are_parsed_on_their_own() {
    let directory = Directory::new("blocks");
    let mut text = String::from("k,half,word\n");
    for k in 0..300_000u64 {
        // Some lines are blank, and some fields have line ends.
        let word = if k.is_multiple_of(1000) { "\"two\nlines\"" } else { "word-that-takes-some-room" };
        let blank = if k.is_multiple_of(777) { "\n" } else { "" };
        writeln!(text, "{k},{},{word}{blank}", k as f64 / 2.0).unwrap();
    }
    let path = directory.file("x.csv", &text);
    let source = open(&path).unwrap();
    assert_eq!(source.shape().unwrap(), [300_000, 2]);
    assert!(source.chunks().unwrap().n_blocks() > 2);
    let meter = Meter::new();
    for (rows, columns) in [(0..5, 0..2), (299_990..300_000, 1..2), (100_000..200_001, 0..1), (149_000..149_001, 0..2)]
    {
        let region = BoxRegion::from_ranges([rows.clone(), columns.clone()]);
        let block = source.read(&region, &meter).unwrap();
        for row in [rows.start, rows.end - 1] {
            for column in columns.clone() {
                let expected = if column == 0 { row as f64 } else { row as f64 / 2.0 };
                assert_eq!(block.get(&[row, column]).unwrap().as_f64(), expected);
            }
        }
    }
}

#[test]
fn tables_that_are_wrong_say_where() {
    let directory = Directory::new("wrong");
    let mut late = "a,b\n".to_string() + &"1,2\n".repeat(500);
    late += "1,oops\n";
    let mut short = "a,b\n".to_string() + &"1,2\n".repeat(500);
    short += "1\n";
    for (text, message) in [
        ("", "line 1"),
        ("a,b\n1\n", "line 2: 1 fields instead of 2"),
        ("a\nx\n", "no column holds numbers"),
        ("a,b\n1,\"2\n", "a quote does not end"),
        (late.as_str(), "line 502: column `b`: `oops` is not a number"),
        (short.as_str(), "line 502: 1 fields instead of 2"),
    ] {
        let path = directory.file("x.csv", text);
        let error = read_array(&path).unwrap_err();
        assert!(error.message().contains(message) && error.message().contains("x.csv"), "{error}");
        assert_eq!(error.blame(), Blame::Io);
    }
    let path = directory.file("x.csv", "a,b\n1,x\n");
    for (column, message) in [("c", "no column `c`"), ("b", "does not hold numbers")] {
        let error = open_table(&path, &options(Some(&[column]))).map(drop).unwrap_err();
        assert!(error.message().contains(message), "{error}");
    }
}

#[test]
fn files_follow_each_other_in_natural_order() {
    let directory = Directory::new("several");
    let mut expected = Vec::new();
    for k in 0..12 {
        let rows = k % 3 + 1;
        let own: Vec<f64> = (0..rows * 4).map(|n| (k * 100 + n) as f64).collect();
        expected.extend(own.iter().copied());
        let array = Array::new(vec![rows as u64, 4], tw_ir::Buffer::F64(own)).unwrap();
        write_array(directory.0.join(format!("part-{k}.npy")), &array).unwrap();
    }
    let pattern = directory.0.join("part-*.npy");
    let source = open(&pattern).unwrap();
    assert_eq!(source.shape().unwrap(), [24, 4]);
    assert_eq!(source.to_array().unwrap().to_f64_vec(), expected);
    let block = source.read(&BoxRegion::from_ranges([5..9, 1..3]), &Meter::new()).unwrap();
    assert_eq!(block.get(&[6, 2]).unwrap().as_f64(), expected[6 * 4 + 2]);
    assert!(source.fingerprint().is_some());
    let paths = expand(&pattern).unwrap();
    let error = open_all(&paths, 1).map(drop).unwrap_err();
    assert!(error.message().contains("part-1.npy"), "{error}");
    assert!(open_all(&paths, 2).is_err() && open_all(&[], 0).is_err());
    write_array(directory.0.join("part-5.npy"), &Array::zeros(&[1, 4], DType::F32).unwrap()).unwrap();
    let error = open(&pattern).map(drop).unwrap_err();
    assert!(error.message().contains("part-5.npy holds f32"), "{error}");
    assert!(open(directory.0.join("none-*.npy")).map(drop).unwrap_err().message().contains("no file fits"));
}

#[test]
fn very_many_files_are_not_all_open_at_once() {
    let directory = Directory::new("many");
    for k in 0..600 {
        write_array(directory.0.join(format!("{k}.npy")), &Array::from_f64(&[k as f64, 0.5])).unwrap();
    }
    let source = open(directory.0.join("*.npy")).unwrap();
    let all = source.to_array().unwrap().to_f64_vec();
    assert_eq!((all.len(), all[1198], all[1199]), (1200, 599.0, 0.5));
}
