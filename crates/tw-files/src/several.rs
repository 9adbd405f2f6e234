//! Several files as one tensor, one after the other along an axis.
//!
//! A name with `*` or `?` stands for all files that fit it, in natural order: `part-2` comes before `part-10`. Types and shapes of all of them are checked when they are opened.

use std::cmp::Ordering;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use tw_block::{Block, Meter, ReadAhead, Source, SourceAccess};
use tw_ir::schedule::Digest;
use tw_ir::{Axis, BoxRegion, Error, Grid, Result, TensorType, Tiling, shape};

use crate::formats;

/// More files are opened again for every read: a process may have only so many open at once.
const MOST_OPEN: usize = 256;

/// A pattern that fits more files is refused.
const MOST_FILES: usize = 1 << 20;

/// True for names that stand for several files.
pub(crate) fn is_pattern(path: &Path) -> bool {
    path.to_str().is_some_and(|text| text.contains(['*', '?'])) && !path.exists()
}

/// The files that a pattern stands for, in natural order.
pub fn expand(pattern: impl AsRef<Path>) -> Result<Vec<PathBuf>> {
    let pattern = pattern.as_ref();
    let mut found = vec![PathBuf::new()];
    for part in pattern.components() {
        let text = match part {
            Component::Normal(name) => name.to_str().filter(|text| text.contains(['*', '?'])),
            _ => None,
        };
        let Some(text) = text else {
            found.iter_mut().for_each(|path| path.push(part));
            continue;
        };
        let mut next = Vec::new();
        for directory in found {
            let place = if directory.as_os_str().is_empty() { Path::new(".") } else { directory.as_path() };
            let Ok(entries) = std::fs::read_dir(place) else { continue };
            for entry in entries {
                let entry = entry.map_err(|error| Error::io(format!("{} cannot be read: {error}", place.display())))?;
                let name = entry.file_name();
                // As in a shell, names that begin with a dot are hidden.
                let fits = name.to_str().is_some_and(|name| {
                    fits(text.as_bytes(), name.as_bytes()) && (!name.starts_with('.') || text.starts_with('.'))
                });
                if fits {
                    next.push(directory.join(name));
                }
                if next.len() > MOST_FILES {
                    return Err(Error::io(format!("{} fits more than {MOST_FILES} files", pattern.display())));
                }
            }
        }
        found = next;
    }
    found.retain(|path| path.exists());
    if found.is_empty() {
        return Err(Error::io(format!("no file fits {}", pattern.display())));
    }
    found.sort_by(|a, b| natural(&a.to_string_lossy(), &b.to_string_lossy()));
    Ok(found)
}

/// True if a name fits a pattern: `*` stands for any text, `?` for one byte.
fn fits(pattern: &[u8], name: &[u8]) -> bool {
    // Where the last star was, and how much of the name it stands for.
    let (mut p, mut n, mut star) = (0, 0, None);
    while n < name.len() {
        match pattern.get(p) {
            Some(b'*') => {
                star = Some((p, n));
                p += 1;
            }
            Some(&byte) if byte == b'?' || byte == name[n] => (p, n) = (p + 1, n + 1),
            _ => match star {
                Some((at, end)) => {
                    star = Some((at, end + 1));
                    (p, n) = (at + 1, end + 1);
                }
                None => return false,
            },
        }
    }
    pattern[p..].iter().all(|&byte| byte == b'*')
}

/// Compares names as people do: digits that follow each other are one number.
fn natural(a: &str, b: &str) -> Ordering {
    let (mut a, mut b) = (a.as_bytes(), b.as_bytes());
    loop {
        let (Some(&x), Some(&y)) = (a.first(), b.first()) else { return a.len().cmp(&b.len()) };
        if x.is_ascii_digit() && y.is_ascii_digit() {
            let digits = |text: &[u8]| text.iter().take_while(|byte| byte.is_ascii_digit()).count();
            let ((number_a, rest_a), (number_b, rest_b)) = (a.split_at(digits(a)), b.split_at(digits(b)));
            let strip = |number: &[u8]| number.iter().skip_while(|&&byte| byte == b'0').copied().collect::<Vec<u8>>();
            let (value_a, value_b) = (strip(number_a), strip(number_b));
            let order = value_a.len().cmp(&value_b.len()).then(value_a.cmp(&value_b));
            // Equal numbers with more zeros come first, so that no two names are equal.
            match order.then(number_b.len().cmp(&number_a.len())) {
                Ordering::Equal => (a, b) = (rest_a, rest_b),
                order => return order,
            }
        } else if x != y {
            return x.cmp(&y);
        } else {
            (a, b) = (&a[1..], &b[1..]);
        }
    }
}

/// Opens several files as one tensor, one after the other along an axis.
pub fn open_all(paths: &[PathBuf], axis: usize) -> Result<Arc<dyn Source>> {
    let parts = paths.iter().map(|path| Ok((path.clone(), formats::open(path)?)));
    chain(parts, axis, Again(Arc::new(|path: &Path| formats::open(path))))
}

/// Opens a part again: of very many only the first stay open.
#[derive(Clone)]
pub(crate) struct Again(pub(crate) Arc<Open>);

type Open = dyn Fn(&Path) -> Result<Arc<dyn Source>> + Send + Sync;

impl std::fmt::Debug for Again {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Again")
    }
}

/// Sources with the files that they come from as one tensor, one after the other along an axis.
pub(crate) fn chain(
    sources: impl Iterator<Item = Result<(PathBuf, Arc<dyn Source>)>>,
    axis: usize,
    again: Again,
) -> Result<Arc<dyn Source>> {
    let mut sources = sources.peekable();
    let (first, ty) = match sources.peek() {
        Some(Ok((path, source))) => (path.clone(), source.ty()),
        Some(Err(error)) => return Err(error.clone()),
        None => return Err(Error::source("no files to put together")),
    };
    let mut shape = ty.known_shape().ok_or_else(|| Error::internal("a file without a shape"))?;
    if axis >= shape.len() {
        return Err(Error::source(format!(
            "{} has {} axes, so files cannot follow each other along axis {axis}",
            first.display(),
            shape.len()
        )));
    }
    let (mut ends, mut parts, mut cuts) = (Vec::new(), Vec::new(), Some(vec![0]));
    let mut end = 0u64;
    for each in sources {
        let (path, source) = each?;
        let (own, own_shape) = (source.ty(), source.shape()?);
        let same = own.dtype == ty.dtype
            && own_shape.len() == shape.len()
            && own_shape.iter().zip(&shape).enumerate().all(|(k, (a, b))| k == axis || a == b);
        if !same {
            return Err(Error::io(format!("{} holds {own}, but {} holds {ty}", path.display(), first.display()))
                .help(format!("files that follow each other agree in everything but the length of axis {axis}")));
        }
        // Where files have a cut of their own along the axis, that of the whole is made of them.
        cuts = match (cuts, own.tiling.as_ref().and_then(Tiling::grid)) {
            (Some(mut cuts), Some(grid)) => {
                cuts.extend(grid[axis].boundaries().into_iter().skip(1).map(|cut| end + cut));
                cuts.dedup();
                Some(cuts)
            }
            _ => None,
        };
        end = end
            .checked_add(own_shape[axis])
            .ok_or_else(|| Error::io("files with more elements than can be counted"))?;
        ends.push(end);
        parts.push(if parts.len() < MOST_OPEN { Part::Open(source) } else { Part::Named(path, own_shape) });
    }
    shape[axis] = end;
    shape::n_bytes(&shape, ty.dtype.size())?;
    let grid = match (cuts, ty.tiling.as_ref().and_then(Tiling::grid)) {
        (Some(cuts), Some(first)) => {
            let mut grid = first.clone();
            grid[axis] = Axis::from_boundaries(cuts);
            Some(grid)
        }
        _ => None,
    };
    Ok(Arc::new(Several { shape, dtype: ty, axis, ends: ends.into(), parts, grid, again }))
}

#[derive(Debug)]
enum Part {
    Open(Arc<dyn Source>),
    /// Opened for every read; the shape is what it had when it was checked.
    Named(PathBuf, Vec<u64>),
}

impl Part {
    fn source(&self, again: &Again) -> Result<Arc<dyn Source>> {
        match self {
            Part::Open(source) => Ok(source.clone()),
            Part::Named(path, shape) => {
                let source = (again.0)(path)?;
                if source.shape()? != *shape {
                    return Err(Error::io(format!("{} has another shape than when it was opened", path.display())));
                }
                Ok(source)
            }
        }
    }
}

/// Files one after the other.
#[derive(Debug)]
struct Several {
    shape: Vec<u64>,
    /// The type of the first file.
    dtype: TensorType,
    axis: usize,
    /// Where each file ends along the axis.
    ends: Arc<[u64]>,
    parts: Vec<Part>,
    grid: Option<Grid>,
    again: Again,
}

impl Source for Several {
    fn ty(&self) -> TensorType {
        let tiling = self.grid.clone().map(Tiling::Grid);
        TensorType { tiling, ..TensorType::known(self.dtype.dtype, &self.shape) }
    }

    fn chunks(&self) -> Option<&Grid> {
        self.grid.as_ref()
    }

    fn fingerprint(&self) -> Option<Digest> {
        let each = self.parts.iter().map(|part| part.source(&self.again).ok()?.fingerprint());
        Some(Digest::of_all(&each.collect::<Option<Vec<Digest>>>()?))
    }

    fn access(&self) -> SourceAccess {
        SourceAccess::File
    }

    fn layout(&self) -> String {
        let first = self.parts.first().and_then(|part| part.source(&self.again).ok()).map(|source| source.layout());
        format!("{} files along axis {}, {}", self.parts.len(), self.axis, first.unwrap_or_default())
    }

    fn scratch(&self, region: &BoxRegion) -> u64 {
        // A part is read beside the block that it becomes a part of.
        region.n_elements().saturating_mul(self.dtype.dtype.size()).saturating_mul(2)
    }

    fn read(&self, region: &BoxRegion, meter: &Arc<Meter>) -> Result<Arc<Block>> {
        let axis = self.axis;
        let mut block = Block::for_output(self.dtype.dtype, region.clone(), Some(meter))?;
        if region.is_empty() {
            return Ok(Arc::new(block));
        }
        let first = self.ends.partition_point(|&end| end <= region.lo[axis]);
        for (k, part) in self.parts.iter().enumerate().skip(first) {
            let start = if k == 0 { 0 } else { self.ends[k - 1] };
            if start >= region.hi[axis] {
                break;
            }
            let (lo, hi) = (region.lo[axis].max(start), region.hi[axis].min(self.ends[k]));
            if lo >= hi {
                continue;
            }
            let (mut own, mut place) = (region.clone(), region.clone());
            (own.lo[axis], own.hi[axis]) = (lo - start, hi - start);
            (place.lo[axis], place.hi[axis]) = (lo, hi);
            let read = part.source(&self.again)?.read(&own, meter)?;
            let (target, buffer) = block.output()?;
            let target = target.clone();
            read.copy_moved_overlap(&place, &target, buffer)?;
        }
        Ok(Arc::new(block))
    }

    fn for_run(&self, bytes: u64, ahead: &Arc<ReadAhead>) -> Option<Arc<dyn Source>> {
        let share = |part: &Part| match part {
            Part::Open(source) => {
                let own =
                    (bytes as u128 * source.n_bytes() as u128 / (self as &dyn Source).n_bytes().max(1) as u128) as u64;
                Part::Open(source.for_run(own, ahead).unwrap_or_else(|| source.clone()))
            }
            Part::Named(path, shape) => Part::Named(path.clone(), shape.clone()),
        };
        Some(Arc::new(Several {
            shape: self.shape.clone(),
            dtype: self.dtype.clone(),
            axis: self.axis,
            ends: self.ends.clone(),
            parts: self.parts.iter().map(share).collect(),
            grid: self.grid.clone(),
            again: self.again.clone(),
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_fit_patterns() {
        for (pattern, name, expected) in [
            ("part-*.npy", "part-1.npy", true),
            ("part-*.npy", "part-.npy", true),
            ("part-*.npy", "part-1.npz", false),
            ("*a*b", "xaab", true),
            ("*a*b", "xba", false),
            ("?", "x", true),
            ("?", "", false),
            ("**", "anything", true),
            ("a*b*c", "aXbYbZc", true),
        ] {
            assert_eq!(fits(pattern.as_bytes(), name.as_bytes()), expected, "{pattern} {name}");
        }
    }

    #[test]
    fn numbers_in_names_are_numbers() {
        let mut names = ["p10", "p2", "p1", "p02", "p", "q1", "p2b", "p2a10", "p2a9"];
        names.sort_by(|a, b| natural(a, b));
        assert_eq!(names, ["p", "p1", "p02", "p2", "p2a9", "p2a10", "p2b", "p10", "q1"]);
    }
}
