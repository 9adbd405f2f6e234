//! Files whose footers and pages claim what is not so.

use std::fs;
use std::path::PathBuf;
use std::slice::from_ref;

use tw_block::Meter;
use tw_ir::BoxRegion;

use super::thrift_writer::Writer;
use super::{MAGIC, open_columns};

/// The header of a page and what follows it.
struct Claims {
    ty: i32,
    unfolded: i32,
    in_file: i32,
    n_values: i32,
    encoding: i32,
    body: Vec<u8>,
}

/// Four plain doubles.
fn honest() -> Claims {
    let body: Vec<u8> = (0..4).flat_map(|k| f64::from(k).to_le_bytes()).collect();
    Claims { ty: 0, unfolded: 32, in_file: 32, n_values: 4, encoding: 0, body }
}

impl Claims {
    fn bytes(&self) -> Vec<u8> {
        let mut bytes = Writer::whole(|header| {
            header.i32(1, self.ty);
            header.i32(2, self.unfolded);
            header.i32(3, self.in_file);
            header.nested(if self.ty == 2 { 7 } else { 5 }, |own| {
                own.i32(1, self.n_values);
                own.i32(2, self.encoding);
                own.i32(3, 3);
                own.i32(4, 3);
            });
        });
        bytes.extend_from_slice(&self.body);
        bytes
    }
}

/// Reads the first rows of a file with one column of doubles in one row group of so many rows. The column is optional or not, and has a codec.
fn read(name: &str, pages: &[Claims], n_rows: u64, is_optional: bool, codec: i32) -> Result<Vec<f64>, String> {
    let pages: Vec<u8> = pages.iter().flat_map(Claims::bytes).collect();
    let footer = Writer::whole(|file| {
        file.i32(1, 2);
        file.structs(2, [true, false].into_iter(), |element, is_root| match is_root {
            true => {
                element.text(4, "schema");
                element.i32(5, 1);
            }
            false => {
                element.i32(1, 5);
                element.i32(3, is_optional as i32);
                element.text(4, "x");
            }
        });
        file.i64(3, n_rows);
        file.structs(4, [()].into_iter(), |group, ()| {
            group.structs(1, [()].into_iter(), |chunk, ()| {
                chunk.i64(2, 0);
                chunk.nested(3, |meta| {
                    meta.i32(1, 5);
                    meta.ints(2, &[0]);
                    meta.texts(3, &["x"]);
                    meta.i32(4, codec);
                    meta.i64(5, n_rows);
                    meta.i64(6, pages.len() as u64);
                    meta.i64(7, pages.len() as u64);
                    meta.i64(9, 4);
                });
            });
            group.i64(2, pages.len() as u64);
            group.i64(3, n_rows);
        });
    });
    let length = (footer.len() as u32).to_le_bytes();
    let path = std::env::temp_dir().join(format!("{}-lies-{name}.parquet", std::process::id()));
    let found = fs::write(&path, [&MAGIC[..], &pages, &footer, &length, MAGIC].concat())
        .map_err(|error| error.to_string())
        .and_then(|()| first_rows(&path));
    let _ = fs::remove_file(&path);
    found
}

fn first_rows(path: &PathBuf) -> Result<Vec<f64>, String> {
    let message = |error: tw_ir::Error| error.message().to_string();
    let source = open_columns(from_ref(path), None).map_err(message)?.remove(0).1;
    let n = source.shape().map_err(message)?[0].min(1 << 20);
    let rows = BoxRegion { lo: vec![0], hi: vec![n] };
    assert!(source.scratch(&rows) < 1 << 30);
    let block = source.read(&rows, &Meter::new()).map_err(message)?;
    Ok(block.to_array().map_err(message)?.to_f64_vec())
}

#[test]
fn claims_of_footers_and_pages_are_compared_with_what_is_there() {
    assert_eq!(read("honest", &[honest()], 4, false, 0), Ok(vec![0.0, 1.0, 2.0, 3.0]));
    let levels = |levels: &[u8], values: &[u8]| [&(levels.len() as u32).to_le_bytes(), levels, values].concat();
    let page = |body: Vec<u8>, encoding: i32, n_values: i32| {
        let n = body.len() as i32;
        Claims { unfolded: n, in_file: n, encoding, n_values, body, ..honest() }
    };
    let dictionary = |body: Vec<u8>, n_values: i32| Claims { ty: 2, ..page(body, 0, n_values) };
    let one = 1f64.to_le_bytes().to_vec();
    let zstd = |n: usize| zstd::bulk::compress(&vec![0; n], 1).unwrap_or_default();
    let folded = |unfolded: i32, n: usize| Claims { unfolded, n_values: 4, ..page(zstd(n), 0, 4) };
    // A name, pages, rows, whether the column is optional, its codec, and the message.
    type Case = (&'static str, Vec<Claims>, u64, bool, i32, &'static str);
    let cases: Vec<Case> = vec![
        ("rows", vec![honest()], 1_000_000_000_000_000, false, 0, "1000000000000000 rows are more than can be planned"),
        (
            "many",
            vec![honest()],
            1_000_000_000_000,
            false,
            0,
            "column `x`, row group 0 (from row 0 on): it ends after 4 of",
        ),
        ("fewer", vec![honest()], 3, false, 0, "a page has 4 values, but there are 3 rows"),
        ("none", vec![], 4, false, 0, "it ends after 0 of 4 rows"),
        ("beyond", vec![Claims { in_file: 33, ..honest() }], 4, false, 0, "a page of 33 bytes, of which 32 are there"),
        ("huge", vec![Claims { in_file: i32::MAX, ..honest() }], 4, false, 0, "a page of 2147483647 bytes"),
        ("negative", vec![Claims { in_file: -1, ..honest() }], 4, false, 0, "has no size"),
        ("minus", vec![Claims { n_values: -4, ..honest() }], 4, false, 0, "has no number of values"),
        ("short", vec![page(one.clone(), 0, 4)], 4, false, 0, "a page ends after 1 of 4 values"),
        ("encoding", vec![Claims { encoding: 77, ..honest() }], 4, false, 0, "encoding 77"),
        ("kind", vec![Claims { ty: 9, ..honest() }, honest()], 4, false, 0, ""),
        ("no dictionary", vec![page(vec![1, 3, 0], 8, 4)], 4, false, 0, "a page without its dictionary"),
        (
            "entries",
            vec![dictionary(one.clone(), 4), page(vec![1, 3, 0], 8, 4)],
            4,
            false,
            0,
            "a dictionary of 4 values in 8 bytes",
        ),
        (
            "index",
            vec![dictionary(one.clone(), 1), page(vec![1, 3, 2], 8, 4)],
            4,
            false,
            0,
            "value 1 of a dictionary of 1",
        ),
        ("wide", vec![dictionary(one.clone(), 1), page(vec![99, 3, 2], 8, 4)], 4, false, 0, "numbers of 99 bits"),
        (
            "twice",
            vec![dictionary(one.clone(), 1), dictionary(one.clone(), 1)],
            4,
            false,
            0,
            "a dictionary where none can be",
        ),
        ("levels", vec![page(levels(&[3, 0xff], &one), 0, 4)], 4, true, 0, "a page ends after 1 of"),
        ("cut levels", vec![page(vec![200, 0, 0, 0, 1], 0, 4)], 4, true, 0, "levels of 200 bytes in a page of 5"),
        ("no levels", vec![page(vec![1], 0, 4)], 4, true, 0, "too short for its levels"),
        ("nulls", vec![page(levels(&[0xfe, 0xff, 0xff, 0xff, 0x0f, 0], &[]), 0, 4)], 4, true, 0, ""),
        ("bomb", vec![folded(64 << 20, 64 << 20)], 4, false, 6, "it unfolds to more than the 65584 bytes"),
        ("more", vec![folded(32, 64)], 4, false, 6, "a page cannot be decompressed"),
        ("less", vec![folded(32, 16)], 4, false, 6, "it unfolds to 16 bytes instead of 32"),
        ("noise", vec![honest()], 4, false, 6, "a page cannot be decompressed"),
    ];
    for (name, pages, n_rows, is_optional, codec, message) in cases {
        let found = read(name, &pages, n_rows, is_optional, codec);
        match message {
            "" => assert!(found.is_ok_and(|values| values.len() == 4), "{name}"),
            _ => assert!(found.as_ref().is_err_and(|error| error.contains(message)), "{name}: {found:?}"),
        }
    }
}
