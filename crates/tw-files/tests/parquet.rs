//! Parquet files written by pyarrow (`tests/data`, by the script in its README), and files that lie.
#![cfg(feature = "parquet")]
#![allow(clippy::unwrap_used)]

use std::fs;
use std::path::PathBuf;
use std::slice::from_ref;
use std::sync::Arc;

use parquet::data_type::Int64Type;
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::parser::parse_message_type;
use tw_block::{Block, Meter, Source};
use tw_files::{
    FileOptions, FileTarget, create, create_columns, describe, is_known, open, open_column_table, open_columns,
};
use tw_ir::{Array, Axis, Blame, BoxRegion, Buffer, DType, Grid, TimeUnit};

fn data(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(name)
}

fn names(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| name.to_string()).collect()
}

/// The value that a column has in a row, as a double; NaN for nulls.
fn expected(column: &str, k: u64) -> f64 {
    let x = k as f64;
    match column {
        "f" if k % 7 == 3 => f64::NAN,
        "f" => x / 4.0 - 100.0,
        "g" => (k % 5) as f64,
        "i" => x * x - 50.0,
        "u" => (k % 256) as f64,
        "h" => x - 500.0,
        "b" => k.is_multiple_of(3) as u8 as f64,
        "n" if k == 998 => f64::NAN,
        "n" => x,
        other => panic!("{other}"),
    }
}

fn rows_of(rows: std::ops::Range<u64>) -> BoxRegion {
    BoxRegion { lo: vec![rows.start], hi: vec![rows.end] }
}

fn same(a: f64, b: f64) -> bool {
    a == b || a.is_nan() && b.is_nan()
}

const FILES: [&str; 5] =
    ["snappy.parquet", "plain.parquet", "gzip_v2.parquet", "zstd_encodings.parquet", "lz4.parquet"];

#[test]
fn columns_of_every_codec_and_encoding() {
    for file in FILES {
        let wanted = names(&["f", "g", "i", "u", "h", "b"]);
        let found = open_columns(&[data(file)], Some(&wanted)).unwrap();
        let types: Vec<DType> = found.iter().map(|(_, source)| source.ty().dtype).collect();
        assert_eq!(types, [DType::F64, DType::F32, DType::I64, DType::U8, DType::I16, DType::Bool], "{file}");
        for (name, source) in &found {
            assert_eq!(source.shape().unwrap(), [1000]);
            let all = source.to_array().unwrap().to_f64_vec();
            for (k, &value) in all.iter().enumerate() {
                assert!(same(value, expected(name, k as u64)), "{file} {name} row {k}: {value}");
            }
            // Parts of row groups, and across them.
            for rows in [0..1, 299..301, 17..800, 600..900, 950..1000, 5..5] {
                let block = source.read(&rows_of(rows.clone()), &Meter::new()).unwrap();
                for k in rows {
                    assert!(same(block.get(&[k]).unwrap().as_f64(), expected(name, k)), "{file} {name} row {k}");
                }
            }
        }
    }
}

#[test]
fn times_and_tables() {
    let times = open_columns(&[data("snappy.parquet")], Some(&names(&["t"]))).unwrap().remove(0).1;
    assert_eq!(times.ty().dtype, DType::DateTime(TimeUnit::Micro));
    let block = times.read(&rows_of(4..7), &Meter::new()).unwrap().to_array().unwrap();
    assert_eq!(block.data(), &tw_ir::Buffer::I64(vec![4000, i64::MIN, 6000]));
    // A table of several types is one of doubles, and has NaN for all nulls; of one type it has that type.
    let (table, found) = open_column_table(&[data("snappy.parquet")], None).unwrap();
    assert_eq!(found, ["f", "g", "i", "u", "h", "b", "n"]);
    assert_eq!((table.ty().dtype, table.shape().unwrap()), (DType::F64, vec![1000, 7]));
    let block = table.read(&BoxRegion::from_ranges([290..1000, 2..7]), &Meter::new()).unwrap();
    for k in 290..1000 {
        for column in 2..7 {
            let value = block.get(&[k, column]).unwrap().as_f64();
            assert!(same(value, expected(&found[column as usize], k)), "{k} {column}: {value}");
        }
    }
    let (one, _) = open_column_table(&[data("plain.parquet")], Some(&names(&["i", "i"]))).unwrap();
    assert_eq!((one.ty().dtype, one.shape().unwrap()), (DType::I64, vec![1000, 2]));
    assert_eq!(open(data("plain.parquet")).unwrap().shape().unwrap(), [1000, 7]);
    assert!(open_column_table(&[data("plain.parquet")], Some(&names(&["i", "t"]))).is_err());
}

#[test]
fn files_follow_each_other() {
    let paths = [data("snappy.parquet"), data("plain.parquet"), data("lz4.parquet")];
    let columns = open_columns(&paths, Some(&names(&["i"]))).unwrap();
    let all = columns[0].1.to_array().unwrap().to_f64_vec();
    assert_eq!((all.len(), all[1001], all[2999]), (3000, -49.0, 999.0 * 999.0 - 50.0));
    assert_eq!(open_column_table(&paths, None).unwrap().0.shape().unwrap(), [3000, 7]);
    assert!(open_columns(&[], None).is_err());
}

#[test]
fn what_is_not_there_has_a_clear_error() {
    let error = |column: &str| {
        let found = open_columns(&[data("snappy.parquet")], Some(&names(&[column])));
        found.and_then(|found| found[0].1.to_array().map(drop)).unwrap_err()
    };
    for (column, message) in [
        ("x", "there is no column `x`"),
        ("s", "column `s` does not hold numbers"),
        ("n", "column `n` is null in row 998, but i32 has no value for that"),
    ] {
        let error = error(column);
        assert!(error.message().contains(message) && error.message().contains("snappy.parquet"), "{error}");
        assert_eq!(error.blame(), Blame::Io);
    }
    let error = open(data("brotli.parquet")).map(drop).unwrap_err();
    assert!(error.message().contains("BROTLI") && error.message().contains("not supported"), "{error}");
    let summary = describe(data("snappy.parquet")).unwrap();
    assert!(summary.format.contains("4 row groups, columns f f64, g f32, i i64"), "{}", summary.format);
    assert!(summary.format.ends_with("no numbers: s"), "{}", summary.format);
    assert!(is_known(data("snappy.parquet")).unwrap());
}

#[test]
fn a_column_that_cannot_be_decompressed_leaves_the_others() {
    let path = write_columns("codecs", "message m { required int64 x; required int64 y; }");
    let mut bytes = fs::read(&path).unwrap();
    // The metadata of `y`: the end of its path, a list of one text, and its codec, which becomes Brotli.
    let codec = [0x18, 1, b'y', 0x15, 0];
    let at = bytes.windows(codec.len()).position(|window| window == codec).unwrap() + codec.len() - 1;
    bytes[at] = 2 * 4;
    fs::write(&path, bytes).unwrap();
    let x = open_columns(from_ref(&path), Some(&names(&["x"]))).unwrap().remove(0).1;
    assert_eq!(x.to_array().unwrap().to_f64_vec(), [0.0, 1.0]);
    assert!(describe(&path).unwrap().format.contains("columns x i64, y i64"));
    for error in [
        open_columns(from_ref(&path), Some(&names(&["y"]))).map(drop).unwrap_err(),
        open_columns(from_ref(&path), None).map(drop).unwrap_err(),
        open(&path).map(drop).unwrap_err(),
    ] {
        assert!(error.message().contains("column `y`: it is compressed with BROTLI"), "{error}");
    }
    fs::remove_file(path).unwrap();
}

/// Reads everything that can be read of damaged bytes; what matters is that nothing worse than an error happens.
fn read_all(path: &PathBuf) -> Result<(), tw_ir::Error> {
    for (_, source) in open_columns(from_ref(path), None)? {
        if source.n_bytes() < 1 << 26 {
            source.to_array()?;
        }
    }
    Ok(())
}

#[test]
fn damaged_files_are_read_or_refused() {
    std::panic::set_hook(Box::new(|_| {}));
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("{}-damaged.parquet", std::process::id()));
    for file in FILES {
        let bytes = fs::read(data(file)).unwrap();
        let mut n_refused = 0;
        for length in (0..bytes.len()).step_by(bytes.len() / 60) {
            fs::write(&path, &bytes[..length]).unwrap();
            let error = read_all(&path).unwrap_err();
            assert_eq!(error.blame(), Blame::Io, "{error}");
        }
        // All of the footer, and some of the rest.
        let footer = bytes.len() - 8 - u32::from_le_bytes(*bytes[bytes.len() - 8..].first_chunk().unwrap()) as usize;
        let places = (0..footer).step_by(97).chain((footer..bytes.len()).step_by(3));
        for (round, at) in places.enumerate() {
            let mut damaged = bytes.clone();
            damaged[at] ^= [0x01, 0x80, 0xff, 0x10][round % 4];
            fs::write(&path, &damaged).unwrap();
            if let Err(error) = read_all(&path) {
                assert!(matches!(error.blame(), Blame::Io | Blame::Resource), "byte {at}: {error}");
                n_refused += 1;
            }
        }
        assert!(n_refused > 50, "{file}: {n_refused}");
    }
    fs::remove_file(&path).unwrap();
}

/// Writes a file with a row group of two rows. The `k`-th of its columns of 64-bit integers holds `10 k` and `10 k + 1`.
fn write_columns(name: &str, schema: &str) -> PathBuf {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("{}-{name}.parquet", std::process::id()));
    let schema = Arc::new(parse_message_type(schema).unwrap());
    let mut writer = SerializedFileWriter::new(fs::File::create(&path).unwrap(), schema, Arc::default()).unwrap();
    let mut group = writer.next_row_group().unwrap();
    let mut k = 0;
    while let Some(mut column) = group.next_column().unwrap() {
        column.typed::<Int64Type>().write_batch(&[10 * k, 10 * k + 1], None, None).unwrap();
        column.close().unwrap();
        k += 1;
    }
    group.close().unwrap();
    writer.close().unwrap();
    path
}

#[test]
fn a_name_that_two_columns_have_chooses_neither() {
    let two = "message m { required int64 x; required int64 y; required int64 x; }";
    let path = write_columns("twice", two);
    let values = |sources: &[(String, Arc<dyn Source>)]| -> Vec<(String, Vec<f64>)> {
        sources.iter().map(|(name, source)| (name.clone(), source.to_array().unwrap().to_f64_vec())).collect()
    };
    let expected =
        [("x".to_string(), vec![0.0, 1.0]), ("y".to_string(), vec![10.0, 11.0]), ("x".to_string(), vec![20.0, 21.0])];
    assert_eq!(values(&open_columns(from_ref(&path), None).unwrap()), expected);
    let (table, found) = open_column_table(from_ref(&path), None).unwrap();
    assert_eq!(found, ["x", "y", "x"]);
    assert_eq!(table.to_array().unwrap().to_f64_vec(), [0.0, 10.0, 20.0, 1.0, 11.0, 21.0]);
    assert_eq!(open(&path).unwrap().to_array().unwrap().to_f64_vec(), [0.0, 10.0, 20.0, 1.0, 11.0, 21.0]);
    let error = open_columns(from_ref(&path), Some(&names(&["x"]))).map(drop).unwrap_err();
    assert!(error.message().contains("the number of columns called `x` is 2 instead of 1"), "{error}");
    assert_eq!(values(&open_columns(from_ref(&path), Some(&names(&["y"]))).unwrap()), expected[1..2]);
    // Columns of another file are found by their names, whatever their order is there.
    let other = write_columns("order", "message m { required int64 y; required int64 x; required int64 x; }");
    let both = values(&open_columns(&[path.clone(), other.clone()], None).unwrap());
    let expected = [[0.0, 1.0, 10.0, 11.0], [10.0, 11.0, 0.0, 1.0], [20.0, 21.0, 20.0, 21.0]];
    assert_eq!(both.into_iter().map(|(_, values)| values).collect::<Vec<_>>(), expected);
    let once = write_columns("once", "message m { required int64 x; required int64 y; }");
    let error = open_columns(&[path.clone(), once.clone()], None).map(drop).unwrap_err();
    assert!(error.message().contains("the number of columns called `x` is 1 instead of 2"), "{error}");
    // The field of a struct is no column, whatever it is called.
    let nested = write_columns("nested", "message m { required group a { required int64 b; } required int64 c; }");
    let found = open_columns(from_ref(&nested), None).unwrap();
    assert_eq!(values(&found), [("c".to_string(), vec![10.0, 11.0])]);
    assert!(describe(&nested).unwrap().format.ends_with("no numbers: a.b"));
    for path in [path, other, once, nested] {
        fs::remove_file(path).unwrap();
    }
}

/// Writes a file without rows whose schema is a list of elements: the text of a name, and the number of children.
fn write_schema(name: &str, elements: &[(String, i32)]) -> PathBuf {
    fn varint(bytes: &mut Vec<u8>, mut value: u64) {
        while value >= 0x80 {
            bytes.push(value as u8 | 0x80);
            value >>= 7;
        }
        bytes.push(value as u8);
    }
    // Thrift's compact protocol: the version is 1, and the schema a list of structs.
    let mut footer = vec![0x15, 2, 0x19, 0xfc];
    varint(&mut footer, elements.len() as u64);
    for (k, (text, n_children)) in elements.iter().enumerate() {
        let mut last = 0;
        let mut field = |footer: &mut Vec<u8>, id: u8, ty: u8| {
            footer.push((id - last) << 4 | ty);
            last = id;
        };
        if *n_children == 0 {
            field(&mut footer, 1, 5);
            varint(&mut footer, 2 * 5);
        }
        if k > 0 {
            field(&mut footer, 3, 5);
            varint(&mut footer, 0);
        }
        field(&mut footer, 4, 8);
        varint(&mut footer, text.len() as u64);
        footer.extend(text.as_bytes());
        if *n_children != 0 {
            field(&mut footer, 5, 5);
            varint(&mut footer, ((*n_children as i64) << 1 ^ (*n_children as i64) >> 63) as u64);
        }
        footer.push(0);
    }
    // No rows, and no row groups.
    footer.extend([0x16, 0, 0x19, 0x0c, 0]);
    let bytes = [b"PAR1", &footer[..], &(footer.len() as u32).to_le_bytes(), b"PAR1"].concat();
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("{}-{name}.parquet", std::process::id()));
    fs::write(&path, bytes).unwrap();
    path
}

#[test]
fn schemas_that_lie_are_refused() {
    let nested = |levels: usize| {
        let mut elements = vec![("g".to_string(), 1); levels];
        elements.push(("x".into(), 0));
        elements
    };
    let element = |text: &str, n_children: i32| (text.to_string(), n_children);
    let group = |text: String, n: i32| {
        let columns = (0..n).map(|k| (k.to_string(), 0));
        [("root".to_string(), 1), (text, n)].into_iter().chain(columns).collect::<Vec<_>>()
    };
    // A column below a group is nested, so there is no column of numbers; the schema itself is fine.
    for (name, elements) in [("levels", nested(100)), ("group", group("g".into(), 1000))] {
        let path = write_schema(name, &elements);
        assert!(describe(&path).unwrap().format.contains("0 row groups"), "{name}");
        fs::remove_file(path).unwrap();
    }
    for (name, elements, message) in [
        ("deep", nested(101), "nested deeper than 100 levels"),
        ("deepest", nested(100_000), "nested deeper than 100 levels"),
        ("most", vec![element("root", i32::MAX)], "fewer than they claim"),
        ("negative", vec![element("root", -1)], "-1 children"),
        // Each claim alone fits the elements that are left.
        (
            "twice",
            [vec![element("root", 3), element("g", 3)], vec![element("x", 0); 3]].concat(),
            "fewer than they claim",
        ),
        ("roots", vec![element("root", 1), element("x", 0), element("y", 0)], "more than one root"),
        ("names", group("g".repeat(10_000), 30_000), "paths of its columns"),
    ] {
        let path = write_schema(name, &elements);
        let error = describe(&path).map(drop).unwrap_err();
        assert!(error.message().contains(message), "{name}: {error}");
        assert_eq!(error.blame(), Blame::Io);
        fs::remove_file(path).unwrap();
    }
}

/// A directory of a test, which goes with it.
struct Directory(PathBuf);

impl Directory {
    fn new(name: &str) -> Directory {
        let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("{}-parquet-{name}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Directory(path)
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// A column of a type: its elements count up, with what is missing or largest at places that are no round numbers.
fn column(dtype: DType, n: usize) -> Array {
    let k = || 0..n as i64;
    let time = |k: i64| if k % 11 == 7 { i64::MIN } else { k - 5 };
    let buffer = match dtype {
        DType::Bool => Buffer::Bool(k().map(|k| k % 3 == 1).collect()),
        DType::I8 => Buffer::I8(k().map(|k| k as i8).collect()),
        DType::I16 => Buffer::I16(k().map(|k| (k * 3) as i16).collect()),
        DType::I32 => Buffer::I32(k().map(|k| k as i32 - 9).collect()),
        DType::I64 => Buffer::I64(k().map(|k| k.wrapping_mul(i64::MAX / 3)).collect()),
        DType::U8 => Buffer::U8(k().map(|k| k as u8).collect()),
        DType::U16 => Buffer::U16(k().map(|k| (k * 7) as u16).collect()),
        DType::U32 => Buffer::U32(k().map(|k| u32::MAX - k as u32).collect()),
        DType::U64 => Buffer::U64(k().map(|k| u64::MAX - k as u64).collect()),
        DType::F32 => Buffer::F32(k().map(|k| if k == 3 { f32::NAN } else { k as f32 / 2.0 }).collect()),
        DType::F64 => Buffer::F64(k().map(|k| if k == 4 { f64::NAN } else { k as f64 / 3.0 }).collect()),
        _ => Buffer::I64(k().map(time).collect()),
    };
    Array::new(vec![n as u64], buffer).unwrap()
}

const TYPES: [DType; 15] = [
    DType::Bool,
    DType::I8,
    DType::I16,
    DType::I32,
    DType::I64,
    DType::U8,
    DType::U16,
    DType::U32,
    DType::U64,
    DType::F32,
    DType::F64,
    DType::DateTime(TimeUnit::Day),
    DType::DateTime(TimeUnit::Milli),
    DType::DateTime(TimeUnit::Micro),
    DType::DateTime(TimeUnit::Nano),
];

fn same_bits(a: &Buffer, b: &Buffer) -> bool {
    match (a, b) {
        (Buffer::F32(a), Buffer::F32(b)) => a.iter().map(|x| x.to_bits()).eq(b.iter().map(|x| x.to_bits())),
        (Buffer::F64(a), Buffer::F64(b)) => a.iter().map(|x| x.to_bits()).eq(b.iter().map(|x| x.to_bits())),
        (a, b) => a == b,
    }
}

#[test]
fn columns_of_every_type_are_written_and_read_again() {
    let directory = Directory::new("types");
    let path = directory.0.join("x.parquet");
    let declared: Vec<(String, DType)> = TYPES.iter().map(|dtype| (format!("c {dtype}"), *dtype)).collect();
    let mut files = Vec::new();
    for (codec, level) in [("none", 1), ("snappy", 1), ("gzip", 1), ("lz4", 1), ("zstd", 3)] {
        // Once more than a page, and more than a row group.
        let n = if codec == "zstd" { (1 << 18) + 1000 } else { 1000 };
        for backwards in [false, true] {
            let places = create_columns(&path, &declared, n as u64, Some((codec.into(), level))).unwrap();
            let mut sinks: Vec<_> = Vec::new();
            for (place, &dtype) in places.into_iter().zip(&TYPES) {
                let grid = Grid::from_iter([Axis::uniform(n as u64, 1 << 18)]);
                let target = FileTarget::Column(place);
                assert_eq!(tw_files::blocks_for(&path, dtype, &[n as u64], &target).unwrap(), Some(grid.clone()));
                sinks.push((create(&path, dtype, &grid, &target).unwrap(), grid, Arc::new(column(dtype, n))));
            }
            let n_blocks = sinks[0].1.n_blocks();
            let mut tasks: Vec<(usize, u64)> =
                (0..n_blocks).flat_map(|block| (0..15).map(move |sink| (sink, block))).collect();
            if backwards {
                tasks.reverse();
            }
            for (sink, block) in tasks {
                let (sink, grid, array) = &sinks[sink];
                sink.write(&Block::view_of(array, &grid.box_of(block)).unwrap()).unwrap();
            }
            for (k, (sink, ..)) in sinks.iter().enumerate() {
                // The last of them gives the file its name.
                assert!(fs::exists(&path).unwrap() != files.is_empty(), "{k}");
                sink.make_durable().and_then(|()| sink.commit()).unwrap();
            }
            drop(sinks);
            assert_eq!(fs::read_dir(&directory.0).unwrap().count(), 1);
            files.push(fs::read(&path).unwrap());
        }
        // The order of tasks does not show.
        assert!(files[files.len() - 1] == files[files.len() - 2], "{codec}");
        let found = open_columns(from_ref(&path), None).unwrap();
        for ((name, source), dtype) in found.iter().zip(TYPES) {
            assert_eq!((name, source.ty().dtype), (&format!("c {dtype}"), dtype));
            let read = source.read(&rows_of(0..n as u64), &Meter::new()).unwrap().to_array().unwrap();
            assert!(same_bits(read.data(), column(dtype, n).data()), "{codec} {dtype}");
        }
    }
    assert!(describe(&path).unwrap().format.contains("2 row groups, columns c bool bool, c i8 i8"));
}

#[test]
fn other_readers_understand_what_is_written() {
    let directory = Directory::new("others");
    let path = directory.0.join("x.parquet");
    let declared: Vec<(String, DType)> = TYPES.iter().map(|dtype| (dtype.to_string(), *dtype)).collect();
    let codec = Some(("none".to_string(), 1));
    for (place, &dtype) in create_columns(&path, &declared, 12, codec).unwrap().into_iter().zip(&TYPES) {
        let sink = create(&path, dtype, &Grid::whole(&[12]), &FileTarget::Column(place)).unwrap();
        sink.write(&Block::view_of(&Arc::new(column(dtype, 12)), &rows_of(0..12)).unwrap()).unwrap();
        sink.make_durable().and_then(|()| sink.commit()).unwrap();
    }
    let file = SerializedFileReader::new(fs::File::open(&path).unwrap()).unwrap();
    assert_eq!((file.metadata().num_row_groups(), file.metadata().file_metadata().num_rows()), (1, 12));
    let rows: Vec<Vec<String>> = file
        .get_row_iter(None)
        .unwrap()
        .map(|row| row.unwrap().get_column_iter().map(|(_, field)| field.to_string()).collect())
        .collect();
    // The rows with NaN and with nothing where times are missing.
    let shown = |row: usize| rows[row].join(" ");
    assert!(shown(4).starts_with("true 4 12 -5 "), "{}", shown(4));
    assert!(
        shown(4).contains(" 4 28 4294967291 18446744073709551611 2.0 NaN 1969-12-31 1969-12-31 23:59:59.999"),
        "{}",
        shown(4)
    );
    assert!(shown(7).ends_with("null null null null"), "{}", shown(7));
}

#[test]
fn tensors_become_tables() {
    let directory = Directory::new("tables");
    let path = directory.0.join("x.parquet");
    let array = Arc::new(Array::new(vec![5, 3], Buffer::F32((0..15).map(|k| k as f32).collect())).unwrap());
    let options = FileOptions { dimensions: Some(names(&["a", "b", "c"])), ..FileOptions::default() };
    // Blocks may cut the columns: no two of them have a part of one row group's column.
    for (rows, columns) in [(5, 3), (2, 3), (2, 2), (1, 1)] {
        let grid = Grid::from_iter([Axis::uniform(5, rows), Axis::uniform(3, columns)]);
        let sink = create(&path, DType::F32, &grid, &FileTarget::New(options.clone())).unwrap();
        for position in (0..grid.n_blocks()).rev() {
            sink.write(&Block::view_of(&array, &grid.box_of(position)).unwrap()).unwrap();
        }
        let again = sink.write(&Block::view_of(&array, &grid.box_of(0)).unwrap()).unwrap_err();
        assert!(again.message().contains("written twice"), "{again}");
        sink.make_durable().and_then(|()| sink.commit()).unwrap();
        let (table, found) = open_column_table(from_ref(&path), None).unwrap();
        assert_eq!((found, table.to_array().unwrap()), (names(&["a", "b", "c"]), array.as_ref().clone()));
    }
    let none = Array::zeros(&[0, 2], DType::I64).unwrap();
    tw_files::write_array(&path, &none).unwrap();
    assert_eq!(open(&path).unwrap().shape().unwrap(), [0, 2]);
    // A row group that was never written, and what cannot be written, leave what is there.
    let before = fs::read(&path).unwrap();
    let sink = create(&path, DType::F32, &Grid::whole(&[5, 3]), &FileTarget::default()).unwrap();
    assert!(sink.make_durable().is_err());
    drop(sink);
    let whole = Grid::whole(&[5, 3]);
    let codec = |name: &str, level| FileOptions { codec: Some((name.into(), level)), ..FileOptions::default() };
    let same = FileOptions { dimensions: Some(names(&["a", "b", "a"])), ..FileOptions::default() };
    for (dtype, grid, options, message) in [
        (DType::C128, &whole, FileOptions::default(), "column `0` is c128"),
        (DType::DateTime(TimeUnit::Second), &whole, FileOptions::default(), "which Parquet files do not have"),
        (DType::F64, &Grid::whole(&[2, 2, 2]), FileOptions::default(), "one or two axes"),
        (DType::F64, &Grid::whole(&[2, 0]), FileOptions::default(), "at least one column"),
        (DType::F64, &whole, codec("brotli", 1), "there is no codec `brotli`"),
        (DType::F64, &whole, codec("zstd", 23), "levels from 1 to 22"),
        (DType::F64, &whole, same, "two columns are called `a`"),
    ] {
        let error = create(&path, dtype, grid, &FileTarget::New(options)).map(drop).unwrap_err();
        assert!(error.message().contains(message), "{error}");
    }
    let late = Array::new(vec![2], Buffer::I64(vec![0, 1 << 40])).unwrap();
    let sink = create(&path, DType::DateTime(TimeUnit::Day), &Grid::whole(&[2]), &FileTarget::default()).unwrap();
    let error = sink.write(&Block::view_of(&Arc::new(late), &rows_of(0..2)).unwrap()).unwrap_err();
    assert!(error.message().contains("column `0`: row 1: 1099511627776 days"), "{error}");
    drop(sink);
    assert_eq!(fs::read(&path).unwrap(), before);
    assert_eq!(fs::read_dir(&directory.0).unwrap().count(), 1);
}

#[test]
fn scratch_follows_from_the_pages() {
    let directory = Directory::new("scratch");
    let path = directory.0.join("x.parquet");
    let array = Array::new(vec![400_000], Buffer::F64((0..400_000).map(|k| f64::from(k).sqrt()).collect())).unwrap();
    tw_files::write_array(&path, &array).unwrap();
    let large = open_columns(from_ref(&path), None).unwrap().remove(0).1;
    let scratch = large.scratch(&rows_of(0..400_000));
    // A page of 1 MiB before and after it is compressed.
    assert!((1 << 20..=(2 << 20) + 4096).contains(&scratch), "{scratch}");
    let small = open_columns(&[data("snappy.parquet")], Some(&names(&["f"]))).unwrap().remove(0).1;
    assert!(small.scratch(&rows_of(0..1000)) < 64 << 10, "{}", small.scratch(&rows_of(0..1000)));
    assert_eq!(small.scratch(&rows_of(3..3)), 0);
}

#[test]
fn files_that_change_while_they_are_open_are_refused() {
    let directory = Directory::new("change");
    let path = directory.0.join("x.parquet");
    fs::copy(data("plain.parquet"), &path).unwrap();
    let source = open_columns(from_ref(&path), Some(&names(&["i"]))).unwrap().remove(0).1;
    let before = source.fingerprint();
    let mut bytes = fs::read(&path).unwrap();
    bytes.push(0);
    fs::write(&path, bytes).unwrap();
    assert_eq!(source.fingerprint(), before);
    let error = source.to_array().unwrap_err();
    assert!(error.message().contains("has changed since it was opened"), "{error}");
}
