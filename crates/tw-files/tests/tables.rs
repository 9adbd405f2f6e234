//! Tables of numbers as text, and several files as one.
#![allow(clippy::unwrap_used)]

use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

use tw_block::{Block, Meter};
use tw_files::{
    FileOptions, FileTarget, TableOptions, blocks_for, create, describe, expand, open, open_all, open_table,
    read_array, write_array,
};
use tw_ir::{Array, Axis, Blame, BoxRegion, Buffer, DType, Grid};

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
fn text_that_nobody_would_write_is_read_or_refused() {
    let directory = Directory::new("hostile");
    // Line ends of all kinds, more empty lines than are looked at at once, and a mark of UTF-8 before quotes.
    let empty = "\r\n".repeat(300_000) + &"\n".repeat(600_000) + &"\r".repeat(400_000) + "\n";
    let text = format!("\u{feff}\"a\",b\r\n{empty}1,2\r\r\n{empty}\"3\",\r\n{empty}");
    let (names, extents, found) = values(&directory.file("x.csv", text), None);
    assert_eq!((names.as_slice(), extents), (&["a".to_string(), "b".to_string()][..], vec![2, 2]));
    assert!(found[..3] == [1.0, 2.0, 3.0] && found[3].is_nan());
    // A field of many digits, and one of many letters in a column that is not wanted.
    let digits = format!("a,b\n{}.5,{}\n", "1".repeat(300), "x".repeat(3 << 20));
    assert_eq!(
        values(&directory.file("x.csv", digits), Some(&["a"])).2,
        [format!("{}.5", "1".repeat(300)).parse::<f64>().unwrap()]
    );
    for (text, message) in [
        (&b"\xff\xfea\0,\0b\0\n\0"[..], "UTF-16"),
        (b"a,b\n1,2\n1,\x002\n", "no column holds numbers"),
        (b"a,b\n1,2\n\n1,2,\n", "line 4: 3 fields instead of 2"),
        (b"a,b\n1,2\n\"1,2\n3,4\n", "line 3: a quote does not end"),
    ] {
        let path = directory.file("x.csv", text);
        let found = open_table(&path, &options(None)).and_then(|(source, names)| {
            source.to_array()?;
            Err::<(), _>(tw_ir::Error::io(format!("{}: no column holds numbers but {names:?}", path.display())))
        });
        let error = found.unwrap_err();
        assert!(error.message().contains(message), "{error}");
    }
    let many = "a,b\n".to_string() + &"1,2\n".repeat(200);
    for (row, message) in [
        (&b"1,2\x00\n"[..], "line 202: column `b`: `2\\0` is not a number"),
        (b"1,\xff\n", "line 202: column `b`: `\u{fffd}` is not a number"),
        (b"1,2,\n", "line 202: 3 fields instead of 2"),
        (b"\"1\n2\",3\n", "line 202: column `a`: `\\\"1\\n2\\\"` is not a number"),
    ] {
        let path = directory.file("x.csv", [many.as_bytes(), row, &many.as_bytes()[4..]].concat());
        let error = read_array(&path).unwrap_err();
        assert!(error.message().contains(message), "{error}");
    }
    // Nothing is made room for: the file has no blocks on the disk.
    let path = directory.file("x.csv", "a,b\n1,2\n");
    fs::File::options().write(true).open(&path).unwrap().set_len(1 << 40).unwrap();
    let error = open(&path).map(drop).unwrap_err();
    assert!(error.message().contains("line 3: a row has more than 16777216 bytes"), "{error}");
    for delimiter in [b'5', b'.', b'e', b'"', b'\n'] {
        let odd = TableOptions { delimiter, ..options(None) };
        assert_eq!(open_table(&path, &odd).map(drop).unwrap_err().blame(), Blame::Source);
    }
}

#[test]
fn files_that_change_while_they_are_open_are_refused() {
    let directory = Directory::new("change");
    for name in ["x.csv", "x.mtx"] {
        let text = match name {
            "x.csv" => "a\n1\n2\n",
            _ => "%%MatrixMarket matrix coordinate real general\n2 2 1\n1 1 3\n",
        };
        let path = directory.file(name, text);
        let source = open(&path).unwrap();
        let before = source.fingerprint();
        assert_eq!(before, open(&path).unwrap().fingerprint());
        fs::write(&path, text.to_string() + "\n").unwrap();
        // What tells it from others is what it was when it was read.
        assert_eq!(source.fingerprint(), before, "{name}");
        assert_ne!(open(&path).unwrap().fingerprint(), before, "{name}");
        if name == "x.csv" {
            let error = source.to_array().map(drop).unwrap_err();
            assert!(error.message().contains("has changed since it was opened"), "{error}");
        }
    }
}

/// Writes the blocks of a grid in some order.
fn write_blocks(path: &Path, array: &Array, grid: &Grid, target: &FileTarget, order: &[u64]) {
    let sink = create(path, array.dtype(), grid, target).unwrap();
    let array = std::sync::Arc::new(array.clone());
    for &position in order {
        sink.write(&Block::view_of(&array, &grid.box_of(position)).unwrap()).unwrap();
    }
    sink.make_durable().and_then(|()| sink.commit()).unwrap();
}

#[test]
fn tables_are_written_as_text() {
    let directory = Directory::new("write");
    let path = directory.0.join("x.csv");
    let numbers = vec![0.1, -2.0, 1e300, f64::NAN, f64::INFINITY, 5e-324, -0.0, 123456789.0];
    let array = Array::new(vec![4, 2], Buffer::F64(numbers)).unwrap();
    let grid = Grid::from_iter([Axis::uniform(4, 2), Axis::whole(2)]);
    let named = FileOptions { dimensions: Some(vec!["a".into(), "b,\"c\"".into()]), ..FileOptions::default() };
    for order in [[0, 1], [1, 0]] {
        write_blocks(&path, &array, &grid, &FileTarget::New(named.clone()), &order);
        let text = "a,\"b,'c'\"\n0.1,-2.0\n1e300,NaN\ninf,5e-324\n-0.0,123456789.0\n";
        assert_eq!(fs::read_to_string(&path).unwrap(), text);
    }
    assert_eq!(read_array(&path).unwrap().to_f64_vec()[..3], [0.1, -2.0, 1e300]);
    assert!(describe(&path).unwrap().format.ends_with("columns a, b,'c'"));
    // Whole numbers, one column, and no rows.
    let whole = Array::new(vec![3], Buffer::I64(vec![1, i64::MIN, i64::MAX])).unwrap();
    let tabs = directory.0.join("x.tsv");
    write_blocks(&tabs, &whole, &Grid::from_iter([Axis::uniform(3, 2)]), &FileTarget::default(), &[1, 0]);
    assert_eq!(fs::read_to_string(&tabs).unwrap(), "0\n1\n-9223372036854775808\n9223372036854775807\n");
    let none = Array::zeros(&[0, 3], DType::F32).unwrap();
    write_array(&tabs, &none).unwrap();
    assert_eq!(fs::read_to_string(&tabs).unwrap(), "0\t1\t2\n");
    assert_eq!(blocks_for(&path, DType::F64, &[1 << 40, 2], &FileTarget::default()).unwrap().unwrap()[1].n_tiles(), 1);
    // What cannot be written leaves what is there.
    let before = fs::read(&path).unwrap();
    drop(create(&path, DType::F64, &grid, &FileTarget::default()).unwrap());
    let cut = Grid::from_iter([Axis::whole(4), Axis::uniform(2, 1)]);
    let one_name = FileTarget::New(FileOptions { dimensions: Some(vec!["a".into()]), ..FileOptions::default() });
    for (dtype, grid, target, message) in [
        (DType::F64, &cut, FileTarget::default(), "its blocks cut them"),
        (DType::C128, &grid, FileTarget::default(), "c128 are not written as text"),
        (DType::F64, &Grid::whole(&[2, 2, 2]), FileTarget::default(), "one or two axes"),
        (DType::F64, &grid, FileTarget::Append(0), "written as a whole"),
        (DType::F64, &grid, one_name, "1 names for 2 columns"),
    ] {
        let error = create(&path, dtype, grid, &target).map(drop).unwrap_err();
        assert!(error.message().contains(message), "{error}");
    }
    assert_eq!(fs::read(&path).unwrap(), before);
    assert_eq!(fs::read_dir(&directory.0).unwrap().count(), 2);
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
