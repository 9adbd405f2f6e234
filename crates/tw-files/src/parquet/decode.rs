//! Rows of a column into the elements of a block.

use ::parquet::basic::Type as Physical;
use ::parquet::column::reader::ColumnReaderImpl;
use ::parquet::data_type::{BoolType, DataType, DoubleType, FloatType, Int32Type, Int64Type};
use ::parquet::errors::ParquetError;
use tw_ir::{Buffer, DType, Error, Result};

use super::file::ParquetFile;
use super::guarded::guarded;
use super::pages::{PageBuffers, Pages};
use super::values::{self, FileNumber, Outcome, Target};

/// Rows that the crate decodes at once: they stay in the cache until they are in the block.
const BATCH: usize = 8192;

/// What stands for a null in a column of times.
const NAT: i64 = i64::MIN;

/// Where the rows of a column go: every `stride`-th element from `first` on.
pub(super) struct Place<'a> {
    pub(super) buffer: &'a mut Buffer,
    pub(super) first: usize,
    pub(super) stride: usize,
}

/// Rows of a column of a row group that are read: `n` from the `skip`-th on.
#[derive(Clone, Copy)]
pub(super) struct Part<'a> {
    pub(super) file: &'a ParquetFile,
    pub(super) group: usize,
    pub(super) column: usize,
    pub(super) rows: (usize, usize),
}

impl Part<'_> {
    /// Reads the rows into a block.
    pub(super) fn read(self, place: Place<'_>, buffers: &mut PageBuffers) -> Result<()> {
        let Part { file, group, column, rows } = self;
        let own = &file.columns[column];
        let name = own.name.escape_debug();
        let path = file.path.display();
        let first_row = file.groups[group].rows.start;
        let failed = |what: String| {
            let rows = format!("row group {group} (from row {first_row} on)");
            Error::io(format!("{path}: column `{name}`, {rows}: {what}"))
        };
        match self.dispatch(place, buffers).map_err(failed)? {
            Outcome::All => Ok(()),
            Outcome::Short(n) => Err(failed(format!("it ends after {n} of {} rows", rows.0 + rows.1))),
            Outcome::Null(row) => {
                let (row, dtype) = (first_row + row as u64, own.dtype);
                let message =
                    format!("{path}: column `{name}` is null in row {row}, but {dtype} has no value for that");
                Err(Error::io(message).help("fill the nulls before the file is written, or store the column as floats"))
            }
            Outcome::Foreign => Err(failed("its encoding is not supported".into())),
        }
    }

    /// Chooses the types: of what the file holds, and of what the block holds.
    fn dispatch(self, place: Place<'_>, buffers: &mut PageBuffers) -> Result<Outcome, String> {
        let own = &self.file.columns[self.column];
        let dtype = own.dtype;
        let Place { buffer, first, stride } = place;
        macro_rules! go {
            ($type:ty, $values:ident, $missing:expr, $convert:expr) => {{
                let out = &mut $values[first..];
                self.decode::<$type, _, _>(Target { out, stride, missing: $missing, convert: $convert }, buffers)
            }};
        }
        match (buffer, dtype, own.physical) {
            (Buffer::Bool(out), DType::Bool, Physical::BOOLEAN) => go!(BoolType, out, None, |x| x),
            (Buffer::I8(out), DType::I8, Physical::INT32) => go!(Int32Type, out, None, |x| x as i8),
            (Buffer::I16(out), DType::I16, Physical::INT32) => go!(Int32Type, out, None, |x| x as i16),
            (Buffer::I32(out), DType::I32, Physical::INT32) => go!(Int32Type, out, None, |x| x),
            (Buffer::U8(out), DType::U8, Physical::INT32) => go!(Int32Type, out, None, |x| x as u8),
            (Buffer::U16(out), DType::U16, Physical::INT32) => go!(Int32Type, out, None, |x| x as u16),
            (Buffer::U32(out), DType::U32, Physical::INT32) => go!(Int32Type, out, None, |x| x as u32),
            (Buffer::I64(out), DType::DateTime(_), Physical::INT32) => go!(Int32Type, out, Some(NAT), i64::from),
            (Buffer::I64(out), DType::DateTime(_), Physical::INT64) => go!(Int64Type, out, Some(NAT), |x| x),
            (Buffer::I64(out), DType::I64, Physical::INT64) => go!(Int64Type, out, None, |x| x),
            (Buffer::U64(out), DType::U64, Physical::INT64) => go!(Int64Type, out, None, |x| x as u64),
            (Buffer::F32(out), DType::F32, Physical::FLOAT) => go!(FloatType, out, Some(f32::NAN), |x| x),
            (Buffer::F64(out), DType::F64, Physical::DOUBLE) => go!(DoubleType, out, Some(f64::NAN), |x| x),
            // A table of several types is one of doubles.
            (Buffer::F64(out), DType::F32, Physical::FLOAT) => go!(FloatType, out, Some(f64::NAN), f64::from),
            (Buffer::F64(out), DType::Bool, Physical::BOOLEAN) => go!(BoolType, out, Some(f64::NAN), f64::from),
            (Buffer::F64(out), DType::U8 | DType::U16 | DType::U32, Physical::INT32) => {
                go!(Int32Type, out, Some(f64::NAN), |x| f64::from(x as u32))
            }
            (Buffer::F64(out), _, Physical::INT32) => go!(Int32Type, out, Some(f64::NAN), f64::from),
            (Buffer::F64(out), DType::U64, Physical::INT64) => go!(Int64Type, out, Some(f64::NAN), |x| x as u64 as f64),
            (Buffer::F64(out), _, Physical::INT64) => go!(Int64Type, out, Some(f64::NAN), |x| x as f64),
            (buffer, ..) => Err(format!("a column of {dtype} as {}", buffer.dtype())),
        }
    }

    fn decode<T: DataType, E: Copy, F: Fn(T::T) -> E + Copy>(
        self,
        mut target: Target<'_, E, F>,
        buffers: &mut PageBuffers,
    ) -> Result<Outcome, String>
    where
        T::T: FileNumber,
    {
        let Part { file, group, column, rows } = self;
        let (chunk, codec) = file.chunk(group, column)?;
        let own = &file.groups[group].rows;
        let open = |buffers: PageBuffers| -> Result<Pages, String> {
            let opened = file.bytes.file().map_err(|error| format!("it cannot be opened: {error}"))?;
            let n_rows = own.end - own.start;
            Ok(Pages::new(opened, chunk.bytes.clone(), codec, n_rows, T::get_type_size() as u64, buffers))
        };
        let mut pages = open(std::mem::take(buffers))?;
        let Target { ref mut out, stride, missing, convert } = target;
        let outcome = values::decode(&mut pages, chunk.is_optional(), rows, Target { out, stride, missing, convert });
        *buffers = pages.into_buffers();
        match outcome? {
            Outcome::Foreign => {
                let pages = Box::new(open(PageBuffers::default())?);
                guarded(|| by_batches(&mut ColumnReaderImpl::<T>::new(chunk.column.clone(), pages), rows, target))
            }
            outcome => Ok(outcome),
        }
    }
}

/// Decodes through the crate, a batch at a time.
fn by_batches<T: DataType, E: Copy, F: Fn(T::T) -> E + Copy>(
    reader: &mut ColumnReaderImpl<T>,
    (skip, n): (usize, usize),
    target: Target<'_, E, F>,
) -> Result<Outcome, ParquetError> {
    let Target { out, stride, missing, convert } = target;
    let convert = |value: &T::T| convert(value.clone());
    let skipped = if skip == 0 { 0 } else { reader.skip_records(skip)? };
    if skipped < skip {
        return Ok(Outcome::Short(skipped));
    }
    let (mut values, mut levels): (Vec<T::T>, Vec<i16>) = (Vec::new(), Vec::new());
    let mut done = 0;
    while done < n {
        values.clear();
        levels.clear();
        let (read, n_values, _) = reader.read_records(BATCH.min(n - done), Some(&mut levels), None, &mut values)?;
        if read == 0 {
            return Ok(Outcome::Short(skip + done));
        }
        let place = out.get_mut(done * stride..).unwrap_or_default();
        if n_values == read {
            place.iter_mut().step_by(stride).zip(&values).for_each(|(place, value)| *place = convert(value));
        } else {
            let Some(missing) = missing else {
                let null = levels.iter().position(|&level| level == 0).unwrap_or(0);
                return Ok(Outcome::Null(skip + done + null));
            };
            let mut next = values.iter();
            for (place, &level) in place.iter_mut().step_by(stride).zip(&levels) {
                *place = if level == 0 { missing } else { next.next().map_or(missing, convert) };
            }
        }
        done += read;
    }
    Ok(Outcome::All)
}
