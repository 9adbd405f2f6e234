//! Matrix Market files (`.mtx`) and FROSTT's tensors (`.tns`): coordinates with values, as text.
//!
//! [`read_coordinates`] gives what a file holds: sorted coordinates without repetitions. As a [`tw_block::Source`] the tensor is dense: blocks are filled from the coordinates, which stay in memory.
//! Lines are read one by one, and errors name the line. What a header claims is compared with what follows; nothing is allocated by it.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tw_block::{Block, Meter, Sink, Source, SourceAccess};
use tw_ir::schedule::Digest;
use tw_ir::{BoxRegion, Buffer, DType, Error, Grid, Result, TensorType, shape};

use crate::formats::{FileSummary, FileTarget, Format};
use crate::version::Version;

mod lines;
mod matrix_market;
mod tns;

/// A dense tensor of more bytes is refused: a file of a few bytes can declare any shape.
const MOST_DENSE_BYTES: u64 = 16 << 30;

/// The format, for the table of all.
pub(crate) struct CoordinateText;

/// The elements of a tensor that a file holds; all others are zero.
#[derive(Clone, Debug, PartialEq)]
pub struct Coordinates {
    /// Extents of the axes.
    pub shape: Vec<u64>,
    /// The coordinates of every element after each other, from zero on, in row-major order. None occurs twice.
    pub indices: Vec<u64>,
    /// The values: i64, f64 or c128. Values at the same place were added.
    pub values: Buffer,
}

impl Coordinates {
    /// How many elements there are.
    pub fn len(&self) -> usize {
        self.values.len()
    }

    /// True if all elements are zero.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The coordinates of one element.
    pub fn at(&self, k: usize) -> &[u64] {
        let rank = self.shape.len();
        &self.indices[k * rank..(k + 1) * rank]
    }
}

/// Values of one type while they are read.
trait Number: Copy {
    fn add(self, other: Self) -> Self;
    fn buffer(values: Vec<Self>) -> Buffer;
}

macro_rules! numbers {
    ($($type:ty, $variant:ident, $add:expr;)*) => {
        $(impl Number for $type {
            fn add(self, other: Self) -> Self {
                $add(self, other)
            }
            fn buffer(values: Vec<Self>) -> Buffer {
                Buffer::$variant(values)
            }
        })*
    };
}
numbers! {
    i64, I64, i64::wrapping_add;
    f64, F64, |a, b| a + b;
    tw_ir::dtype::Complex<f64>, C128, |a, b| a + b;
}

/// Sorts elements and adds those at the same place.
fn sorted<T: Number>(shape: Vec<u64>, indices: &[u64], values: &[T]) -> Coordinates {
    let rank = shape.len();
    let at = |k: usize| &indices[k * rank..(k + 1) * rank];
    let mut order: Vec<usize> = (0..values.len()).collect();
    // Stable, so that values at the same place are added in the order of the file.
    order.sort_by(|&a, &b| at(a).cmp(at(b)));
    let (mut places, mut sums): (Vec<u64>, Vec<T>) =
        (Vec::with_capacity(indices.len()), Vec::with_capacity(values.len()));
    for k in order {
        match sums.last_mut() {
            Some(last) if places[places.len() - rank..] == *at(k) => *last = last.add(values[k]),
            _ => {
                places.extend_from_slice(at(k));
                sums.push(values[k]);
            }
        }
    }
    Coordinates { shape, indices: places, values: T::buffer(sums) }
}

/// Reads the coordinates and values of a file, in the format that its name says.
pub fn read_coordinates(path: impl AsRef<Path>) -> Result<Coordinates> {
    let path = path.as_ref();
    read(path, &open_file(path)?)
}

fn read(path: &Path, file: &File) -> Result<Coordinates> {
    let read = if is_tns(path) { tns::read(file) } else { matrix_market::read(file) };
    read.map_err(|(line, what)| Error::io(format!("{}: line {line}: {what}", path.display())))
}

fn open_file(path: &Path) -> Result<File> {
    File::open(path).map_err(|error| Error::io(format!("{} cannot be opened: {error}", path.display())))
}

fn is_tns(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "tns")
}

impl Format for CoordinateText {
    fn names(&self, path: &Path) -> bool {
        is_tns(path) || path.extension().is_some_and(|extension| extension == "mtx")
    }

    fn begins(&self, _: &Path) -> bool {
        false
    }

    fn open(&self, path: &Path) -> Result<Arc<dyn Source>> {
        let file = open_file(path)?;
        let version =
            Version::of(&file).map_err(|error| Error::io(format!("{} cannot be examined: {error}", path.display())))?;
        let coordinates = read(path, &file)?;
        version.check(path, &file)?;
        let n_bytes = shape::n_bytes(&coordinates.shape, coordinates.values.dtype().size()).unwrap_or(u64::MAX);
        if n_bytes > MOST_DENSE_BYTES {
            let message = format!(
                "{}: {} elements of shape {} would take more than {} GiB as a dense tensor",
                path.display(),
                coordinates.len(),
                shape::display(&coordinates.shape),
                MOST_DENSE_BYTES >> 30
            );
            return Err(Error::io(message).help("tensors are dense so far; take a part of the file"));
        }
        Ok(Arc::new(CoordinateSource { path: path.to_path_buf(), version, coordinates }))
    }

    fn create(&self, path: &Path, _: DType, _: &Grid, _: &FileTarget) -> Result<Arc<dyn Sink>> {
        Err(Error::source(format!("{}: coordinates are read, but not written", path.display()))
            .help("write an .npy file or a Zarr array"))
    }

    fn blocks_for(&self, _: &Path, _: DType, _: &[u64], _: &FileTarget) -> Result<Option<Grid>> {
        Ok(None)
    }

    fn describe(&self, path: &Path) -> Result<FileSummary> {
        let file = open_file(path)?;
        let bytes = file.metadata().ok().map(|metadata| metadata.len());
        let coordinates = read(path, &file)?;
        let format = if is_tns(path) { "FROSTT" } else { "Matrix Market" };
        Ok(FileSummary {
            format: format!("{format}, {} elements are stored", coordinates.len()),
            lines: Vec::new(),
            bytes_on_disk: bytes,
        })
    }
}

/// A file whose coordinates are in memory, as a dense tensor.
#[derive(Debug)]
struct CoordinateSource {
    path: PathBuf,
    /// That of the file when it was read.
    version: Version,
    coordinates: Coordinates,
}

impl Source for CoordinateSource {
    fn ty(&self) -> TensorType {
        TensorType::known(self.coordinates.values.dtype(), &self.coordinates.shape)
    }

    fn fingerprint(&self) -> Option<Digest> {
        Some(self.version.digest(&[]))
    }

    fn access(&self) -> SourceAccess {
        SourceAccess::File
    }

    fn layout(&self) -> String {
        format!("{} stored elements, as text", self.coordinates.len())
    }

    fn scratch(&self, _: &BoxRegion) -> u64 {
        0
    }

    fn read(&self, region: &BoxRegion, meter: &Arc<Meter>) -> Result<Arc<Block>> {
        let coordinates = &self.coordinates;
        let whole = BoxRegion::whole(&coordinates.shape);
        if region.rank() != whole.rank() || !whole.contains(region) {
            return Err(Error::internal(format!("a region {region} of {}", self.path.display())));
        }
        let mut block = Block::for_output(coordinates.values.dtype(), region.clone(), Some(meter))?;
        let (_, buffer) = block.output()?;
        match (buffer, &coordinates.values) {
            (Buffer::I64(out), Buffer::I64(values)) => fill(coordinates, region, values, out),
            (Buffer::F64(out), Buffer::F64(values)) => fill(coordinates, region, values, out),
            (Buffer::C128(out), Buffer::C128(values)) => fill(coordinates, region, values, out),
            (_, values) => return Err(Error::internal(format!("coordinates with values of {}", values.dtype()))),
        }
        Ok(Arc::new(block))
    }
}

/// Puts the elements of a box into its block.
fn fill<T: Number + Default>(coordinates: &Coordinates, region: &BoxRegion, values: &[T], out: &mut [T]) {
    out.fill(T::default());
    let extents = region.shape();
    for_each_inside(coordinates, region, |k| {
        let at = coordinates.at(k);
        let place = (0..at.len()).fold(0, |place, axis| place * extents[axis] + (at[axis] - region.lo[axis]));
        out[place as usize] = values[k];
    });
}

/// Visits the elements of a box. Elements outside it are jumped over: their order is that of their coordinates, so those between two rows of the box follow each other. Gives the
/// number of elements that were looked at.
fn for_each_inside(coordinates: &Coordinates, region: &BoxRegion, mut visit: impl FnMut(usize)) -> usize {
    if region.is_empty() {
        return 0;
    }
    let mut n_seen = 0;
    let mut first_from = |from: usize, wanted: &[u64]| {
        // Steps that double, then halves of the last one: near elements are found soon.
        let (mut lo, mut step) = (from, 1);
        let mut is_before = |k: usize| {
            n_seen += 1;
            coordinates.at(k) < wanted
        };
        while lo < coordinates.len() && is_before(lo) {
            lo += step;
            step *= 2;
        }
        // The one before the last step is before it, too.
        let (mut lo, mut hi) = if step == 1 { (lo, lo) } else { (lo - step / 2 + 1, lo.min(coordinates.len())) };
        while lo < hi {
            let middle = lo + (hi - lo) / 2;
            if is_before(middle) { lo = middle + 1 } else { hi = middle }
        }
        lo
    };
    let mut k = first_from(0, &region.lo);
    while k < coordinates.len() {
        let at = coordinates.at(k);
        let Some(axis) = (0..at.len()).find(|&axis| at[axis] < region.lo[axis] || at[axis] >= region.hi[axis]) else {
            visit(k);
            k += 1;
            continue;
        };
        // The first place of the box after this one.
        let mut next = at.to_vec();
        let mut reset = axis;
        if at[axis] >= region.hi[axis] {
            let Some(step) = (0..axis).rev().find(|&step| at[step] + 1 < region.hi[step]) else { break };
            next[step] += 1;
            reset = step + 1;
        }
        next[reset..].copy_from_slice(&region.lo[reset..]);
        k = first_from(k, &next);
    }
    n_seen
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn elements_of_a_box_are_found_without_looking_at_all_others() {
        let mut state = 3u64;
        let mut random = |n: u64| {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (state >> 33) % n
        };
        for round in 0..400 {
            let shape = [vec![50], vec![9, 200], vec![4, 5, 30], vec![1000, 1]][round % 4].clone();
            let n = random(600) as usize;
            let indices: Vec<u64> =
                (0..n).flat_map(|_| shape.iter().map(|&n| random(n)).collect::<Vec<u64>>()).collect();
            let found = sorted(shape.clone(), &indices, &vec![1i64; n]);
            let lo: Vec<u64> = shape.iter().map(|&n| random(n + 1)).collect();
            let hi = lo.iter().zip(&shape).map(|(&lo, &n)| lo + random(n - lo + 1)).collect();
            let region = BoxRegion { lo, hi };
            let mut inside = Vec::new();
            for_each_inside(&found, &region, |k| inside.push(k));
            let is_inside =
                |&k: &usize| found.at(k).iter().enumerate().all(|(axis, &x)| region.range(axis).contains(&x));
            assert_eq!(inside, (0..found.len()).filter(is_inside).collect::<Vec<_>>(), "{region} of {shape:?}");
        }
        // A column of a full matrix: a few steps for each row.
        let indices: Vec<u64> = (0..100u64).flat_map(|row| (0..1000).flat_map(move |column| [row, column])).collect();
        let full = sorted(vec![100, 1000], &indices, &vec![1i64; 100_000]);
        let mut n_inside = 0;
        let n_seen = for_each_inside(&full, &BoxRegion::from_ranges([0..100, 500..501]), |_| n_inside += 1);
        assert!(n_inside == 100 && n_seen < 100 * 32, "{n_seen} elements were looked at");
    }
}
