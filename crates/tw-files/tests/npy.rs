//! Files: round trips, regions, and everything that can be wrong with one.
#![allow(clippy::unwrap_used)]

use std::fs::{self, OpenOptions};
use std::path::PathBuf;
use std::sync::Arc;

use tw_block::{Block, Meter, Sink};
use tw_files::npy::{NpyReader, NpyWriter};
use tw_files::{read_array, write_array};
use tw_ir::{Array, Blame, BoxRegion, DType, Error, Scalar, TimeUnit, shape};

#[path = "../../tw-block/tests/support/mod.rs"]
mod support;
use support::{Dice, part, points};

/// A path of its own for each test.
fn path(name: &str) -> PathBuf {
    let directory = PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
    fs::create_dir_all(&directory).unwrap();
    directory.join(format!("{}-{name}.npy", std::process::id()))
}

/// A file with the given header text, version and data.
fn file_bytes(version: u8, text: &str, data: &[u8]) -> Vec<u8> {
    let mut bytes = b"\x93NUMPY".to_vec();
    bytes.extend([version, 0]);
    if version == 1 {
        bytes.extend((text.len() as u16).to_le_bytes());
    } else {
        bytes.extend((text.len() as u32).to_le_bytes());
    }
    bytes.extend(text.as_bytes());
    bytes.extend(data);
    bytes
}

fn f64_bytes(values: &[f64]) -> Vec<u8> {
    values.iter().flat_map(|v| v.to_le_bytes()).collect()
}

/// The error a file with these bytes gives.
fn error_of(name: &str, bytes: &[u8]) -> Error {
    let path = path(name);
    fs::write(&path, bytes).unwrap();
    let error = read_array(&path).unwrap_err();
    fs::remove_file(&path).unwrap();
    assert_eq!(error.blame(), Blame::Io, "{error}");
    assert!(error.message().contains(name), "the error does not name its file: {error}");
    error
}

/// Every dtype that NumPy has.
fn savable() -> Vec<DType> {
    let times = [DType::DateTime(TimeUnit::Nano), DType::TimeDelta(TimeUnit::Month)];
    DType::PHYSICAL.into_iter().filter(|dtype| *dtype != DType::BF16).chain(times).collect()
}

#[test]
fn arrays_survive_a_round_trip() {
    let dice = &mut Dice::new(3);
    for dtype in savable() {
        for extents in [&[][..], &[0], &[1], &[7], &[3, 0, 2], &[4, 5], &[2, 3, 4, 5], &[5000]] {
            let path = path("round-trip");
            let array = dice.array(extents, dtype, true);
            write_array(&path, &array).unwrap();
            let reader = NpyReader::open(&path).unwrap();
            let header = reader.header();
            assert_eq!((header.dtype, header.shape.as_slice(), header.fortran), (dtype, extents, false));
            assert_eq!(header.data_offset % 64, 0, "elements must be aligned");
            assert!(read_array(&path).unwrap().same_bits(&array));
            fs::remove_file(&path).unwrap();
        }
    }
}

#[test]
fn regions_hold_what_the_array_holds() {
    for seed in 0..60 {
        let dice = &mut Dice::new(seed);
        let rank = dice.below(5);
        let extents: Vec<u64> = (0..rank).map(|_| dice.number(1, 8) as u64).collect();
        let dtype = dice.pick(&savable()).storage();
        let array = dice.array(&extents, dtype, true);
        let fortran = dice.one_in(2);
        let path = path("regions");
        if fortran {
            let reversed: Vec<u64> = extents.iter().rev().copied().collect();
            let mut transposed = Array::zeros(&reversed, dtype).unwrap();
            for at in points(&BoxRegion::whole(&extents)) {
                let mirrored: Vec<u64> = at.iter().rev().copied().collect();
                transposed.set(&mirrored, array.get(&at));
            }
            write_array(&path, &transposed).unwrap();
            // The same bytes under a header that says Fortran order, for the shape as it was.
            let bytes = fs::read(&path).unwrap();
            let offset = NpyReader::open(&path).unwrap().header().data_offset as usize;
            let start = String::from_utf8_lossy(&bytes[10..offset]).into_owned();
            let descr = start.split('\'').nth(3).unwrap();
            let tuple: String = extents.iter().map(|n| format!("{n}, ")).collect();
            let text = format!("{{'descr': '{descr}', 'fortran_order': True, 'shape': ({tuple}), }}\n");
            fs::write(&path, file_bytes(1 + (seed % 3) as u8, &text, &bytes[offset..])).unwrap();
        } else {
            write_array(&path, &array).unwrap();
        }
        let reader = NpyReader::open(&path).unwrap();
        assert_eq!(reader.header().fortran, fortran);
        let meter = Meter::new();
        for _ in 0..4 {
            let region = dice.box_inside(&extents);
            let block = reader.read_region(&region, Some(&meter)).unwrap();
            assert_eq!(block.bbox(), &region);
            assert_eq!(meter.now(), block.n_bytes());
            assert!(block.to_array().unwrap().same_bits(&part(&array, &region)), "seed {seed} {region}");
        }
        assert_eq!(meter.now(), 0);
        fs::remove_file(&path).unwrap();
    }
}

#[test]
fn blocks_written_by_threads_make_one_file() {
    let dice = &mut Dice::new(5);
    let path = path("threads");
    let array = Arc::new(dice.array(&[40, 30, 6], DType::F32, false));
    let writer = NpyWriter::create(&path, DType::F32, array.shape()).unwrap();
    std::thread::scope(|scope| {
        for rows in 0..4u64 {
            let (writer, array) = (&writer, &array);
            scope.spawn(move || {
                for columns in 0..3u64 {
                    let lo = vec![rows * 10, columns * 10, 0];
                    let region = BoxRegion { hi: vec![lo[0] + 10, lo[1] + 10, 6], lo };
                    let view = Block::view_of(array, &region).unwrap();
                    // Half of the blocks own their elements.
                    let owned = Block::from_array(&region.lo, view.to_array().unwrap(), None).unwrap();
                    writer.write(if columns == 1 { &owned } else { &view }).unwrap();
                }
            });
        }
    });
    assert!(!path.exists(), "a file has its name only when it is complete");
    writer.make_durable().and_then(|()| writer.commit()).unwrap();
    assert!(read_array(&path).unwrap().same_bits(&array));
    fs::remove_file(&path).unwrap();
}

#[test]
fn unfinished_files_leave_nothing_behind() {
    let directory = path("unfinished").with_extension("dir");
    fs::create_dir_all(&directory).unwrap();
    let target = directory.join("out.npy");
    drop(NpyWriter::create(&target, DType::F64, &[1000]).unwrap());
    assert_eq!(fs::read_dir(&directory).unwrap().count(), 0);
    fs::remove_dir(&directory).unwrap();
    let error = NpyWriter::create(&target, DType::F64, &[10]).unwrap_err();
    assert_eq!(error.blame(), Blame::Io);
    assert!(error.message().contains("out.npy"), "{error}");
}

#[test]
fn blocks_must_fit_their_file() {
    let path = path("misfit");
    let writer = NpyWriter::create(&path, DType::F64, &[4]).unwrap();
    let block = |dtype: DType, n: u64| Block::for_output(dtype, BoxRegion::whole(&[n]), None).unwrap();
    assert!(writer.write(&block(DType::F64, 5)).is_err());
    assert!(writer.write(&block(DType::F32, 4)).is_err());
    writer.write(&block(DType::F64, 4)).unwrap();
}

#[test]
fn wrong_files_are_named_with_the_reason() {
    let header = |descr: &str, shape: &str| {
        format!("{{'descr': {descr}, 'fortran_order': False, 'shape': {shape}, }}          \n")
    };
    let good = header("'<f8'", "(2,)");
    let data = f64_bytes(&[1.0, 2.0]);
    let cases: Vec<(&str, Vec<u8>, &str)> = vec![
        ("empty", vec![], "not a .npy file"),
        ("magic", b"PK\x03\x04 some other file".to_vec(), "magic"),
        ("version", file_bytes(9, &good, &data), "version 9"),
        ("long-double", file_bytes(1, &header("'<f16'", "(1,)"), &data), "`<f16`"),
        ("object", file_bytes(1, &header("'|O'", "(2,)"), &data), "`|O`"),
        ("raw", file_bytes(1, &header("'<V2'", "(8,)"), &data), "bfloat16"),
        ("unitless", file_bytes(1, &header("'<M8'", "(2,)"), &data), "`<M8`"),
        ("structured", file_bytes(1, &header("[('a', '<f8')]", "(2,)"), &data), "structured"),
        ("truncated", file_bytes(1, &good, &data[..11]), "truncated"),
        ("trailing", file_bytes(1, &good, &[&data[..], &[0]].concat()), "after the array"),
        ("huge", file_bytes(1, &header("'<f8'", "(99999999999, 99999999999)"), &data), "more elements"),
        ("terabytes", file_bytes(2, &header("'<f8'", "(999999999999,)"), &data), "truncated"),
        ("uncountable", file_bytes(1, &header("'<f8'", "(99999999999999999999999,)"), &data), "counted"),
        ("negative", file_bytes(1, &header("'<f8'", "(-2,)"), &data), "negative"),
        ("rank", file_bytes(1, &header("'<f8'", &format!("({})", "1,".repeat(40))), &data[..8]), "rank 40"),
        ("garbage", file_bytes(1, "}{ hello", &data), "malformed"),
        ("keys", file_bytes(1, "{'descr': '<f8', 'shape': (2,), }", &data), "lacks"),
        ("unknown-key", file_bytes(1, "{'colour': '<f8', }", &data), "`colour`"),
        ("twice", file_bytes(1, "{'descr': '<f8', 'descr': '<f8', }", &data), "two keys"),
        ("after", file_bytes(1, &format!("{} x", good.trim_end()), &data), "text after"),
    ];
    for (name, bytes, reason) in cases {
        let error = error_of(name, &bytes);
        assert!(error.to_string().contains(reason), "{name}: {error}");
    }
    let mut lying = file_bytes(2, &good, &data);
    lying[8..12].copy_from_slice(&u32::MAX.to_le_bytes());
    assert!(error_of("lying", &lying).message().contains("header of 4294967295 bytes"));
    let mut not_text = file_bytes(3, &good, &data);
    not_text[20] = 0xff;
    assert!(error_of("not-text", &not_text).message().contains("byte 20"));
    let missing = read_array(path("missing")).unwrap_err();
    assert_eq!(missing.blame(), Blame::Io);
    assert!(missing.message().contains("missing"), "{missing}");
}

#[test]
fn big_endian_files_are_read() {
    let cases: [(&str, &[u8], Scalar); 6] = [
        ("i2", &[1, 2], Scalar::I16(0x102)),
        ("u4", &[1, 2, 3, 4], Scalar::U32(0x1020304)),
        ("f2", &[0x3c, 0], Scalar::F32(1.0).cast(DType::F16)),
        ("f8", &[0x3f, 0xf8, 0, 0, 0, 0, 0, 0], Scalar::F64(1.5)),
        ("c8", &[0x3f, 0x80, 0, 0, 0xbf, 0x80, 0, 0], Scalar::C64(tw_ir::dtype::C64::new(1.0, -1.0))),
        ("m8[s]", &[0, 0, 0, 0, 0, 0, 0, 9], Scalar::TimeDelta(9, TimeUnit::Second)),
    ];
    for (descr, bytes, expected) in cases {
        let path = path("big-endian");
        let text = format!("{{'descr': '>{descr}', 'fortran_order': False, 'shape': (), }}\n");
        fs::write(&path, file_bytes(1, &text, bytes)).unwrap();
        assert_eq!(read_array(&path).unwrap().item(), Some(expected), "{descr}");
        fs::remove_file(&path).unwrap();
    }
}

#[test]
fn what_numpy_lacks_is_not_written() {
    let error = NpyWriter::create(path("brain"), DType::BF16, &[2]).unwrap_err();
    assert!(error.to_string().contains("bf16"), "{error}");
}

#[test]
fn every_version_is_read() {
    for version in 1..=3 {
        let path = path("version-ok");
        let text = "{\"shape\": (2, 1L), 'fortran_order': False, 'descr': '<f8'}\n";
        fs::write(&path, file_bytes(version, text, &f64_bytes(&[1.5, -2.5]))).unwrap();
        assert_eq!(read_array(&path).unwrap(), Array::from_f64(&[1.5, -2.5]).reshaped(&[2, 1]).unwrap());
        fs::remove_file(&path).unwrap();
    }
}

#[test]
fn bytes_other_than_one_are_true() {
    let path = path("bools");
    let text = "{'descr': '|b1', 'fortran_order': False, 'shape': (3,), }\n";
    fs::write(&path, file_bytes(1, text, &[0, 1, 200])).unwrap();
    let array = read_array(&path).unwrap();
    assert_eq!([0, 1, 2].map(|k| array.get(&[k])), [false, true, true].map(Scalar::Bool));
    fs::remove_file(&path).unwrap();
}

#[test]
fn a_file_that_shrinks_is_an_error() {
    let path = path("shrinking");
    write_array(&path, &Array::from_f64(&[1.0; 1000])).unwrap();
    let reader = NpyReader::open(&path).unwrap();
    OpenOptions::new().write(true).open(&path).unwrap().set_len(200).unwrap();
    let error = reader.read_region(&BoxRegion::whole(&[1000]), None).unwrap_err();
    assert_eq!(error.blame(), Blame::Io);
    assert!(error.message().contains("shrinking") && error.message().contains("byte 128"), "{error}");
    fs::remove_file(&path).unwrap();
}

/// Whatever the bytes, reading ends in an array or an error.
#[test]
fn corruption_never_panics() {
    let path = path("corrupt");
    let dice = &mut Dice::new(11);
    let good = file_bytes(
        1,
        "{'descr': '<f8', 'fortran_order': True, 'shape': (3, 2), }      \n",
        &f64_bytes(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]),
    );
    let mut read = 0;
    for _ in 0..1500 {
        let mut bytes = good.clone();
        for _ in 0..1 + dice.below(4) {
            let at = dice.below(bytes.len());
            match dice.below(4) {
                0 => bytes[at] = dice.number(0, 256) as u8,
                1 => bytes[at] = dice.pick(b"{}()[]',:0123456789-L \n\"\\"),
                2 => bytes.truncate(at.max(1)),
                _ => bytes.insert(at, dice.number(0, 256) as u8),
            }
        }
        fs::write(&path, &bytes).unwrap();
        match read_array(&path) {
            Ok(array) => {
                read += 1;
                assert!(shape::n_elements(array.shape()).unwrap() * array.dtype().size() <= bytes.len() as u64);
            }
            Err(error) => assert_eq!(error.blame(), Blame::Io, "{error}"),
        }
    }
    assert!(read > 30, "nearly every corruption was fatal: {read}");
    fs::remove_file(&path).unwrap();
}
