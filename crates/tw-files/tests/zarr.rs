//! Stores: round trips through our own code. Python's tests compare with the package zarr.
#![cfg(feature = "zarr")]
#![allow(clippy::unwrap_used)]

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;

use tw_block::{Block, Meter, ReadAhead, SourceAccess};
use tw_files::{FileOptions, FileTarget, create, describe, open, read_array, write_array};
use tw_ir::{Array, Axis, Blame, BoxRegion, DType, Grid, TimeUnit};

#[path = "../../tw-block/tests/support/mod.rs"]
mod support;
use support::{Dice, part};

struct Directory(PathBuf);

impl Directory {
    fn new(name: &str) -> Directory {
        let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("{}-zarr-{name}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Directory(path)
    }

    fn join(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    fn names(&self) -> Vec<String> {
        let mut names: Vec<String> =
            fs::read_dir(&self.0).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn dtypes() -> Vec<DType> {
    let times = [DType::DateTime(TimeUnit::Nano), DType::TimeDelta(TimeUnit::Second)];
    DType::PHYSICAL.into_iter().chain(times).collect()
}

/// A cut of an axis, now and then an uneven one.
fn cut(dice: &mut Dice, n: u64) -> Axis {
    if n > 3 && dice.one_in(3) {
        let first = 1 + dice.below(n as usize - 1) as u64;
        return Axis::from_lengths(&[first, n - first]).unwrap();
    }
    Axis::uniform(n, 1 + dice.below(n.max(1) as usize) as u64)
}

fn write_blocks(path: &std::path::Path, array: &Arc<Array>, grid: &Grid, target: &FileTarget) {
    let sink = create(path, array.dtype(), grid, target).unwrap();
    for position in 0..grid.n_blocks() {
        sink.write(&Block::view_of(array, &grid.box_of(position)).unwrap()).unwrap();
    }
    sink.make_durable().and_then(|()| sink.commit()).unwrap();
}

#[test]
fn arrays_survive_a_round_trip() {
    let directory = Directory::new("round-trip");
    let dice = &mut Dice::new(3);
    for dtype in dtypes() {
        for extents in [&[][..], &[0], &[1], &[7], &[3, 0, 2], &[4, 5], &[2, 3, 4, 5], &[5000]] {
            let path = directory.join("x.zarr");
            let array = dice.array(extents, dtype, true);
            write_array(&path, &array).unwrap();
            assert!(read_array(&path).unwrap().same_bits(&array), "{dtype} {extents:?}");
        }
    }
    assert_eq!(directory.names(), ["x.zarr"]);
}

#[test]
fn blocks_of_any_cut_make_the_array_and_any_region_is_read() {
    let directory = Directory::new("cuts");
    for seed in 0..120 {
        let dice = &mut Dice::new(seed);
        let rank = 1 + dice.below(3);
        let extents: Vec<u64> = (0..rank).map(|_| 1 + dice.below(13) as u64).collect();
        let dtype = dice.pick(&[DType::F64, DType::I16, DType::Bool, DType::C128]);
        let array = Arc::new(dice.array(&extents, dtype, false));
        let grid: Grid = extents.iter().map(|&n| cut(dice, n)).collect();
        let codec = dice.pick(&["zstd", "gzip", "blosc", "none"]).to_string();
        let version = dice.pick(&[2, 3]);
        let options = FileOptions { version: Some(version), codec: Some((codec, 1)), ..FileOptions::default() };
        let path = directory.join("x.zarr");
        write_blocks(&path, &array, &grid, &FileTarget::New(options));
        let source = open(&path).unwrap();
        assert_eq!(source.access(), SourceAccess::File);
        let held = source.for_run(source.n_bytes(), &ReadAhead::new(1 << 20)).unwrap();
        let meter = Meter::new();
        for _ in 0..12 {
            let region = BoxRegion::from_ranges(extents.iter().map(|&n| {
                let lo = dice.below(n as usize) as u64;
                lo..lo + 1 + dice.below((n - lo) as usize) as u64
            }));
            for source in [&source, &held] {
                let block = source.read(&region, &meter).unwrap();
                assert!(block.to_array().unwrap().same_bits(&part(&array, &region)), "seed {seed} {region}");
            }
        }
        drop(held);
        assert_eq!(meter.now(), 0);
    }
}

#[test]
fn regions_and_appends_change_what_they_should() {
    let directory = Directory::new("regions");
    for seed in 0..40 {
        let dice = &mut Dice::new(seed);
        let extents = [3 + dice.below(9) as u64, 3 + dice.below(9) as u64];
        let mut whole = dice.array(&extents, DType::F64, false);
        let grid: Grid = extents.iter().map(|&n| Axis::uniform(n, 1 + dice.below(n as usize) as u64)).collect();
        let path = directory.join("x.zarr");
        write_blocks(&path, &Arc::new(whole.clone()), &grid, &FileTarget::default());
        let lo = extents.map(|n| dice.below(n as usize) as u64);
        let region = BoxRegion::from_ranges(
            (0..2).map(|axis| lo[axis]..lo[axis] + 1 + dice.below((extents[axis] - lo[axis]) as usize) as u64),
        );
        let patch = Arc::new(dice.array(&region.shape(), DType::F64, false));
        let cuts: Grid = region.shape().iter().map(|&n| cut(dice, n)).collect();
        write_blocks(&path, &patch, &cuts, &FileTarget::Region(lo.to_vec()));
        let mut block = Block::view_of(&patch, &BoxRegion::whole(&region.shape())).unwrap();
        block.set_bbox(region).unwrap();
        block.copy_overlap_into(&[0, 0], &mut whole).unwrap();
        assert!(read_array(&path).unwrap().same_bits(&whole), "seed {seed}");
        let more = Arc::new(dice.array(&[2, extents[1]], DType::F64, false));
        let sink = create(&path, DType::F64, &Grid::whole(&[2, extents[1]]), &FileTarget::Append(0)).unwrap();
        sink.write(&Block::view_of(&more, &BoxRegion::whole(&[2, extents[1]])).unwrap()).unwrap();
        // The new length is written last.
        assert!(read_array(&path).unwrap().same_bits(&whole), "seed {seed}");
        sink.make_durable().and_then(|()| sink.commit()).unwrap();
        let after = read_array(&path).unwrap();
        assert_eq!(after.shape(), [extents[0] + 2, extents[1]]);
        assert!(part(&after, &BoxRegion::whole(&extents)).same_bits(&whole));
        let end = BoxRegion { lo: vec![extents[0], 0], hi: vec![extents[0] + 2, extents[1]] };
        assert!(part(&after, &end).same_bits(&more));
    }
    assert_eq!(directory.names(), ["x.zarr"]);
}

#[test]
fn threads_that_share_a_chunk_lose_nothing() {
    let directory = Directory::new("shared");
    let path = directory.join("x.zarr");
    write_array(&path, &Array::zeros(&[64], DType::I64).unwrap()).unwrap();
    let sink =
        create(&path, DType::I64, &Grid::from_iter([Axis::uniform(64, 1)]), &FileTarget::Region(vec![0])).unwrap();
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let sink = &sink;
            scope.spawn(move || {
                for k in (thread..64).step_by(4) {
                    sink.write(&Block::from_array(&[k], Array::from_i64(&[k as i64 + 1]), None).unwrap()).unwrap();
                }
            });
        }
    });
    sink.make_durable().and_then(|()| sink.commit()).unwrap();
    let expected: Vec<f64> = (1..=64).map(f64::from).collect();
    assert_eq!(read_array(&path).unwrap().to_f64_vec(), expected);
}

#[test]
fn a_sink_that_is_not_committed_leaves_nothing() {
    let directory = Directory::new("dropped");
    let path = directory.join("a/x.zarr");
    assert!(create(&path, DType::F64, &Grid::whole(&[3]), &FileTarget::default()).is_err(), "no such directory");
    let path = directory.join("x.zarr/deep/y");
    let sink = create(&path, DType::F64, &Grid::whole(&[3]), &FileTarget::default()).unwrap();
    sink.write(&Block::from_array(&[0], Array::from_f64(&[1.0, 2.0, 3.0]), None).unwrap()).unwrap();
    drop(sink);
    assert_eq!(directory.names(), [""; 0]);
    write_array(&path, &Array::from_f64(&[1.0, 2.0])).unwrap();
    assert_eq!(describe(directory.join("x.zarr")).unwrap().lines, ["deep/y: f64[2]"]);
    assert_eq!(read_array(&path).unwrap().to_f64_vec(), [1.0, 2.0]);
    // An array has no arrays inside.
    let error = write_array(path.join("z"), &Array::from_f64(&[1.0])).unwrap_err();
    assert!(error.message().contains("is an array"), "{error}");
    assert_eq!(directory.names(), ["x.zarr"]);
}

#[test]
fn versions_of_a_store_are_told_apart() {
    let directory = Directory::new("versions");
    let path = directory.join("x.zarr");
    write_array(&path, &Array::from_f64(&[1.0, 2.0])).unwrap();
    let before = open(&path).unwrap().fingerprint().unwrap();
    assert_eq!(open(&path).unwrap().fingerprint().unwrap(), before);
    std::thread::sleep(std::time::Duration::from_millis(20));
    let sink = create(&path, DType::F64, &Grid::whole(&[1]), &FileTarget::Region(vec![1])).unwrap();
    sink.write(&Block::from_array(&[0], Array::from_f64(&[9.0]), None).unwrap()).unwrap();
    sink.make_durable().and_then(|()| sink.commit()).unwrap();
    assert_ne!(open(&path).unwrap().fingerprint().unwrap(), before);
}

#[test]
fn options_that_cannot_be_are_refused() {
    let directory = Directory::new("options");
    let grid = Grid::from_iter([Axis::uniform(10, 4)]);
    let new = |options: FileOptions| {
        create(directory.join("x.zarr"), DType::F64, &grid, &FileTarget::New(options)).map(drop).unwrap_err()
    };
    let usual = FileOptions::default;
    for (options, message) in [
        (FileOptions { version: Some(1), ..usual() }, "version 1"),
        (FileOptions { codec: Some(("rar".into(), 1)), ..usual() }, "`rar`"),
        (FileOptions { inner_chunks: Some(vec![3]), ..usual() }, "do not fill"),
        (FileOptions { inner_chunks: Some(vec![2]), version: Some(2), ..usual() }, "no shards"),
        (FileOptions { attributes: Some("[]".into()), ..usual() }, "JSON object"),
    ] {
        let error = new(options);
        assert!(error.message().contains(message) && error.blame() == Blame::Source, "{error}");
    }
    let error = create(directory.join("x.npy"), DType::F64, &grid, &FileTarget::Append(0)).map(drop).unwrap_err();
    assert!(error.message().contains("written as a whole"), "{error}");
    assert_eq!(directory.names(), [""; 0]);
}
