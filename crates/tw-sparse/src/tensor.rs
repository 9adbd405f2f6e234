//! Stored tensors: levels and values in shared arrays, and the checks that let compiled code read them without bounds checks.

use std::sync::Arc;

use tw_ir::dtype::Element;
use tw_ir::scalar::eval_binary;
use tw_ir::{BinaryOp, Buffer, DType, Error, Result, Scalar, with_buffer};

use crate::format::TensorFormat;
use crate::level::{Fibres, full_size};
use crate::width::index_at;

/// What becomes of an element that is given twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Duplicates {
    /// Its values are added.
    Sum,
    /// It is an error.
    Refuse,
}

/// Elements by coordinate: all coordinates of the first, then of the second, and so on, in the order of modes.
#[derive(Clone, Debug, PartialEq)]
pub struct CoordinateList {
    /// One integer per mode and element.
    pub coordinates: Vec<u64>,
    /// One value per element.
    pub values: Buffer,
}

/// A tensor as it is stored. Arrays are shared, so tensors of one pattern may hold it once.
#[derive(Clone, Debug, PartialEq)]
pub struct SparseTensor {
    shape: Vec<u64>,
    format: TensorFormat,
    dtype: DType,
    fill: Scalar,
    levels: Vec<Vec<Arc<Buffer>>>,
    values: Arc<Buffer>,
}

/// One element of storage: its coordinates in the order of modes, and the position of its value.
type Visit<'a> = &'a mut dyn FnMut(&[u64], u64);

impl SparseTensor {
    /// Stores a tensor from its arrays, which are checked: whatever code relies on is true of the result.
    pub fn from_parts(
        shape: Vec<u64>,
        format: TensorFormat,
        fill: Scalar,
        levels: Vec<Vec<Arc<Buffer>>>,
        values: Arc<Buffer>,
    ) -> Result<SparseTensor> {
        let tensor = SparseTensor::from_trusted_parts(shape, format, fill, levels, values);
        tensor.check()?;
        Ok(tensor)
    }

    /// Stores a tensor from arrays that a kernel has made. Debug builds check them all the same.
    pub(crate) fn from_trusted_parts(
        shape: Vec<u64>,
        format: TensorFormat,
        fill: Scalar,
        levels: Vec<Vec<Arc<Buffer>>>,
        values: Arc<Buffer>,
    ) -> SparseTensor {
        SparseTensor { shape, format, dtype: fill.dtype(), fill, levels, values }
    }

    /// Stores the elements of a list; those that are missing have the fill value.
    pub fn from_coordinates(
        shape: Vec<u64>,
        format: TensorFormat,
        fill: Scalar,
        list: &CoordinateList,
        duplicates: Duplicates,
    ) -> Result<SparseTensor> {
        let (rank, n) = (shape.len(), list.values.len());
        if format.rank() != rank {
            return Err(Error::source(format!("a format of {} modes for a tensor of {rank}", format.rank())));
        }
        if list.coordinates.len() != n * rank || list.values.dtype() != fill.dtype().storage() {
            return Err(Error::data(format!(
                "{n} values of type {} do not go with {} coordinates of {rank} modes and fill {fill}",
                list.values.dtype(),
                list.coordinates.len()
            )));
        }
        for (k, &coordinate) in list.coordinates.iter().enumerate() {
            if coordinate >= shape[k % rank] {
                return Err(Error::data(format!(
                    "coordinate {coordinate} of mode {} is outside its extent {}",
                    k % rank,
                    shape[k % rank]
                )));
            }
        }
        if let Some(extent) = shape.iter().find(|&&extent| extent > format.width().max()) {
            return Err(Error::data(format!("extent {extent} does not fit into {}", format.width().dtype()))
                .help("store the tensor with 64-bit indices"));
        }
        let storage = |k: usize| format.order().iter().map(move |&mode| list.coordinates[k * rank + mode]);
        let mut sorted: Vec<usize> = (0..n).collect();
        if !sorted.is_sorted_by(|&a, &b| storage(a).le(storage(b))) {
            // Stable, so that values of one element are added in the order in which they were given.
            sorted.sort_by(|&a, &b| storage(a).cmp(storage(b)));
        }
        let twice = sorted.windows(2).find(|pair| storage(pair[0]).eq(storage(pair[1])));
        if let (Some(pair), Duplicates::Refuse) = (twice, duplicates) {
            let at = &list.coordinates[pair[0] * rank..][..rank];
            return Err(Error::data(format!("element {at:?} is given twice")));
        }
        if (twice.is_some() || format.stores_duplicates()) && BinaryOp::Add.result(fill.dtype()).is_none() {
            return Err(Error::data(format!("elements of type {} that are given twice cannot be added", fill.dtype())));
        }
        // One position per element, or one per given value where the format keeps them apart.
        let (mut kept, mut group): (Vec<usize>, Vec<usize>) = (Vec::new(), Vec::with_capacity(n));
        for (i, &k) in sorted.iter().enumerate() {
            if i == 0 || format.stores_duplicates() || !storage(sorted[i - 1]).eq(storage(k)) {
                kept.push(k);
            }
            group.push(kept.len() - 1);
        }
        let mut parents = vec![0u64; kept.len()];
        let (mut n_parents, mut levels) = (1u64, Vec::new());
        for (level, &mode) in format.levels().iter().zip(format.order()) {
            let coordinates: Vec<u64> = kept.iter().map(|&k| list.coordinates[k * rank + mode]).collect();
            let fibres = Fibres { n_parents, extent: shape[mode], parents: &parents, coordinates: &coordinates };
            let packed = level.pack(&fibres)?;
            let parts = packed.parts.into_iter().enumerate().map(|(part, values)| {
                let stored = level.part_type(part, format.width()).stored();
                match stored {
                    DType::Bool => Ok(Arc::new(Buffer::Bool(values.into_iter().map(|v| v != 0).collect()))),
                    _ => format.width().buffer(values).map(Arc::new),
                }
            });
            levels.push(parts.collect::<Result<Vec<_>>>()?);
            (parents, n_parents) = (packed.positions, packed.n_positions);
            // A table scatters its coordinates; levels below store theirs by rising position of the parent.
            if !parents.is_sorted() {
                let mut by_parent: Vec<usize> = (0..kept.len()).collect();
                by_parent.sort_by_key(|&element| parents[element]);
                kept = by_parent.iter().map(|&element| kept[element]).collect();
                parents = by_parent.iter().map(|&element| parents[element]).collect();
                let mut place = vec![0; kept.len()];
                by_parent.iter().enumerate().for_each(|(new, &old)| place[old] = new);
                group.iter_mut().for_each(|element| *element = place[*element]);
            }
        }
        full_size(n_parents, 1)?;
        let mut values = Buffer::full(fill, n_parents as usize);
        let mut filled = vec![false; n_parents as usize];
        for (&k, &group) in sorted.iter().zip(&group) {
            let (position, mut value) = (parents[group] as usize, list.values.get(k));
            if std::mem::replace(&mut filled[position], true) {
                value = eval_binary(BinaryOp::Add, values.get(position), value);
            }
            values.set(position, value);
        }
        Ok(SparseTensor::from_trusted_parts(shape, format, fill, levels, Arc::new(values)))
    }

    /// Stores the elements of a dense array in row-major order that differ from the fill value.
    pub fn from_dense(shape: Vec<u64>, format: TensorFormat, fill: Scalar, dense: &Buffer) -> Result<SparseTensor> {
        let n = shape.iter().try_fold(1, |n, &extent| full_size(n, extent))?;
        if dense.len() as u64 != n {
            return Err(Error::data(format!("{} elements for shape {shape:?}", dense.len())));
        }
        let mut list = CoordinateList { coordinates: Vec::new(), values: Buffer::zeros(fill.dtype(), 0) };
        for k in 0..n {
            let value = dense.get(k as usize);
            if value != fill {
                let mut rest = k;
                let start = list.coordinates.len();
                for &extent in shape.iter().rev() {
                    list.coordinates.push(rest % extent);
                    rest /= extent;
                }
                list.coordinates[start..].reverse();
                list.values.push(value);
            }
        }
        SparseTensor::from_coordinates(shape, format, fill, &list, Duplicates::Refuse)
    }

    /// Extents of the modes.
    pub fn shape(&self) -> &[u64] {
        &self.shape
    }
    /// How it is stored.
    pub fn format(&self) -> &TensorFormat {
        &self.format
    }
    /// The element type.
    pub fn dtype(&self) -> DType {
        self.dtype
    }
    /// The value of elements that are not stored.
    pub fn fill(&self) -> Scalar {
        self.fill
    }
    /// The arrays of each level.
    pub fn levels(&self) -> &[Vec<Arc<Buffer>>] {
        &self.levels
    }
    /// The values by position.
    pub fn values(&self) -> &Arc<Buffer> {
        &self.values
    }
    /// Extents in storage order.
    fn extents(&self) -> Vec<u64> {
        self.format.order().iter().map(|&mode| self.shape[mode]).collect()
    }

    /// Checks every invariant; what it has accepted is never read out of bounds.
    pub fn check(&self) -> Result<()> {
        let rank = self.format.rank();
        if self.shape.len() != rank || self.levels.len() != rank {
            return Err(Error::data(format!(
                "a format of {rank} modes, a shape of {} and {} levels",
                self.shape.len(),
                self.levels.len()
            )));
        }
        if self.format.stores_duplicates() && BinaryOp::Add.result(self.dtype).is_none() {
            return Err(Error::data(format!("elements of type {} cannot be added", self.dtype)));
        }
        let mut n = 1u64;
        for (l, extent) in self.extents().into_iter().enumerate() {
            let level = self.format.levels()[l];
            if extent > self.format.width().max() {
                return Err(Error::data(format!("extent {extent} does not fit into {}", self.format.width().dtype())));
            }
            if self.levels[l].len() != level.parts().len() {
                return Err(Error::data(format!("a {} level has parts {:?}", level.name(), level.parts())));
            }
            for (part, buffer) in self.levels[l].iter().enumerate() {
                let expected = level.part_type(part, self.format.width()).stored();
                if buffer.dtype() != expected {
                    return Err(Error::data(format!(
                        "`{}` of a {} level is {expected}, not {}",
                        level.parts()[part],
                        level.name(),
                        buffer.dtype()
                    )));
                }
                if let Buffer::U64(values) = &**buffer
                    && let Some(large) = values.iter().find(|&&value| value > i64::MAX as u64)
                {
                    return Err(Error::data(format!("index {large} of a {} level overflows", level.name())));
                }
            }
            let parts: Vec<&Buffer> = self.levels[l].iter().map(|part| &**part).collect();
            n = level.check(&parts, n, extent).map_err(|error| error.note(format!("at level {l}")))?;
        }
        if self.values.len() as u64 != n || self.values.dtype() != self.dtype.storage() {
            return Err(Error::data(format!(
                "{} values of type {} for {n} positions of type {}",
                self.values.len(),
                self.values.dtype(),
                self.dtype
            )));
        }
        self.check_runs()
    }

    /// Below a level that stores coordinates more than once, elements must rise as a whole.
    fn check_runs(&self) -> Result<()> {
        let levels = self.format.levels();
        let Some(top) = levels.iter().position(|level| !level.properties().unique) else { return Ok(()) };
        let last = (top..levels.len()).find(|&l| levels[l].properties().unique);
        let end = last.unwrap_or(levels.len() - 1);
        let coordinates = |l: usize, p: usize| {
            let part = if l == top && !levels[l].properties().branchless { 1 } else { 0 };
            index_at(&self.levels[l][part], p)
        };
        // Positions are those of one level, for the levels below `top` are branchless; parents part at the segments of `top`.
        let starts: Vec<u64> = if levels[top].properties().branchless {
            return Err(Error::internal("a singleton that is not unique needs a compressed level that is not"));
        } else {
            (0..self.levels[top][0].len()).map(|k| index_at(&self.levels[top][0], k)).collect()
        };
        for segment in starts.windows(2) {
            for p in segment[0] as usize + 1..segment[1] as usize {
                let order = (top..=end).map(|l| coordinates(l, p - 1).cmp(&coordinates(l, p))).find(|o| o.is_ne());
                match order {
                    Some(std::cmp::Ordering::Greater) => {
                        return Err(Error::data(format!("elements are not sorted at position {p}")));
                    }
                    None if last.is_some() => {
                        return Err(Error::data(format!("the element at position {p} is stored twice"))
                            .help("sum duplicates, or store them as singleton(nonunique)"));
                    }
                    _ => {}
                }
            }
        }
        Ok(())
    }

    /// Visits everything stored, in storage order.
    fn walk(&self, visit: Visit<'_>) {
        // Coordinates of one level after the other; the levels are walked as a whole, because a level knows no single parent.
        let rank = self.format.rank();
        if rank == 0 {
            return visit(&[], 0);
        }
        // Positions of a level, and `rank` coordinates for each.
        let (mut positions, mut coordinates) = (vec![0u64], vec![0u64; rank]);
        let mut n = 1u64;
        for (l, extent) in self.extents().into_iter().enumerate() {
            let level = self.format.levels()[l];
            let parts: Vec<&Buffer> = self.levels[l].iter().map(|part| &**part).collect();
            let (mut below, mut below_coordinates) = (Vec::new(), Vec::new());
            let (mut last, mut next) = (0, 0);
            let mode = self.format.order()[l];
            // Parents rise. Only below a table do positions not rise with them.
            let rises = positions.is_sorted();
            let by_position: std::collections::HashMap<u64, usize> = match rises {
                true => Default::default(),
                false => positions.iter().enumerate().map(|(k, position)| (*position, k)).collect(),
            };
            level.walk(&parts, n, extent, &mut |parent, coordinate, position| {
                last = last.max(position + 1);
                let found = if rises {
                    while positions.get(next).is_some_and(|&other| other < parent) {
                        next += 1;
                    }
                    (positions.get(next) == Some(&parent)).then_some(next)
                } else {
                    by_position.get(&parent).copied()
                };
                if let Some(k) = found {
                    below.push(position);
                    below_coordinates.extend_from_slice(&coordinates[k * rank..][..rank]);
                    let end = below_coordinates.len();
                    below_coordinates[end - rank + mode] = coordinate;
                }
            });
            n = level.check(&parts, n, extent).unwrap_or(last);
            (positions, coordinates) = (below, below_coordinates);
        }
        coordinates.chunks_exact(rank).zip(&positions).for_each(|(at, position)| visit(at, *position));
    }

    /// Everything stored, in storage order; an element that is stored several times comes several times.
    pub fn to_coordinates(&self) -> CoordinateList {
        let mut list = CoordinateList { coordinates: Vec::new(), values: Buffer::zeros(self.dtype.storage(), 0) };
        self.walk(&mut |at, position| {
            list.coordinates.extend_from_slice(at);
            list.values.push(self.values.get(position as usize));
        });
        list
    }

    /// All elements in row-major order.
    pub fn to_dense(&self) -> Result<Buffer> {
        let n = self.shape.iter().try_fold(1, |n, &extent| full_size(n, extent))?;
        let mut dense = Buffer::full(self.fill, n as usize);
        let mut seen = vec![false; n as usize];
        self.walk(&mut |at, position| {
            let k = at.iter().zip(&self.shape).fold(0, |k, (i, extent)| k * extent + i) as usize;
            let mut value = self.values.get(position as usize);
            if std::mem::replace(&mut seen[k], true) {
                value = eval_binary(BinaryOp::Add, dense.get(k), value);
            }
            dense.set(k, value);
        });
        Ok(dense)
    }

    /// The same tensor in another format. Elements that the new format need not store are dropped only if padding put them there.
    pub fn convert(&self, format: &TensorFormat) -> Result<SparseTensor> {
        if self.format == *format {
            return Ok(self.clone());
        }
        let mut list = self.to_coordinates();
        let pads = self.format.levels().iter().any(|level| level.properties().full || !level.properties().compact);
        if pads && !format.is_dense() {
            list = without_fill(&list, self.shape.len(), self.fill);
        }
        SparseTensor::from_coordinates(self.shape.clone(), format.clone(), self.fill, &list, Duplicates::Sum)
    }

    /// Bytes of all arrays.
    pub fn bytes(&self) -> u64 {
        let arrays = self.levels.iter().flatten().chain([&self.values]);
        arrays.map(|buffer| buffer.len() as u64 * with_buffer!(&**buffer, values => size_of_element(values))).sum()
    }
}

fn size_of_element<T: Element>(_: &[T]) -> u64 {
    size_of::<T>() as u64
}

fn without_fill(list: &CoordinateList, rank: usize, fill: Scalar) -> CoordinateList {
    let mut kept = CoordinateList { coordinates: Vec::new(), values: Buffer::zeros(fill.dtype().storage(), 0) };
    for k in 0..list.values.len() {
        let value = list.values.get(k);
        if value != fill.cast(value.dtype()) {
            kept.coordinates.extend_from_slice(&list.coordinates[k * rank..][..rank]);
            kept.values.push(value);
        }
    }
    kept
}
