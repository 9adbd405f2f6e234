//! Rows of a column into the elements of a block.

use std::panic::{AssertUnwindSafe, catch_unwind};

use ::parquet::basic::Type as Physical;
use ::parquet::column::reader::ColumnReaderImpl;
use ::parquet::data_type::{BoolType, DataType, DoubleType, FloatType, Int32Type, Int64Type};
use ::parquet::errors::ParquetError;
use ::parquet::file::serialized_reader::SerializedPageReader;
use tw_ir::{Buffer, DType, Error, Result};

use super::file::ParquetFile;
use super::pages::BoundedPages;

/// Rows that are decoded at once: they stay in the cache until they are in the block.
const BATCH: usize = 8192;

/// What stands for a null in a column of times.
const NAT: i64 = i64::MIN;

/// Where the rows of a column go: every `stride`-th element from `first` on.
pub(super) struct Place<'a> {
    pub(super) buffer: &'a mut Buffer,
    pub(super) first: usize,
    pub(super) stride: usize,
}

/// Runs code of the crate, which may panic on bytes that nobody would write; an error then.
pub(super) fn guarded<T>(run: impl FnOnce() -> Result<T, ParquetError>) -> Result<T, String> {
    match catch_unwind(AssertUnwindSafe(run)) {
        Ok(result) => result.map_err(|error| error.to_string()),
        Err(_) => Err("its bytes make no sense".into()),
    }
}

/// Reads `n` rows of a row group from the `skip`-th on.
pub(super) fn read(
    file: &ParquetFile,
    group: usize,
    column: usize,
    rows: (usize, usize),
    place: Place<'_>,
) -> Result<()> {
    let failed = |what: String| {
        let name = file.columns[column].name.escape_debug().to_string();
        Error::io(format!("{}: column `{name}`, row group {group}: {what}", file.path.display()))
    };
    match guarded(|| dispatch(file, group, column, rows, place)) {
        Err(what) => Err(failed(what)),
        Ok(Outcome::All) => Ok(()),
        Ok(Outcome::Short(n)) => Err(failed(format!("it ends after {n} of {} rows", rows.0 + rows.1))),
        Ok(Outcome::Null(row)) => {
            let row = file.groups[group].rows.start + row as u64;
            let dtype = file.columns[column].dtype;
            let name = file.columns[column].name.escape_debug().to_string();
            let message = format!(
                "{}: column `{name}` is null in row {row}, but {dtype} has no value for that",
                file.path.display()
            );
            Err(Error::io(message).help("fill the nulls before the file is written, or store the column as floats"))
        }
    }
}

enum Outcome {
    All,
    /// Rows that are there.
    Short(usize),
    /// The first null in a column whose type has none, as a row of the row group.
    Null(usize),
}

/// Chooses the types: of what the file holds, and of what the block holds.
fn dispatch(
    file: &ParquetFile,
    group: usize,
    column: usize,
    rows: (usize, usize),
    place: Place<'_>,
) -> Result<Outcome, ParquetError> {
    let dtype = file.columns[column].dtype;
    let Place { buffer, first, stride } = place;
    macro_rules! go {
        ($type:ty, $values:ident, $missing:expr, $convert:expr) => {
            fill::<$type, _>(&mut open(file, group, column)?, rows, &mut $values[first..], stride, $missing, $convert)
        };
    }
    match (buffer, dtype, file.columns[column].physical) {
        (Buffer::Bool(out), DType::Bool, Physical::BOOLEAN) => go!(BoolType, out, None, |&x| x),
        (Buffer::I8(out), DType::I8, Physical::INT32) => go!(Int32Type, out, None, |&x| x as i8),
        (Buffer::I16(out), DType::I16, Physical::INT32) => go!(Int32Type, out, None, |&x| x as i16),
        (Buffer::I32(out), DType::I32, Physical::INT32) => go!(Int32Type, out, None, |&x| x),
        (Buffer::U8(out), DType::U8, Physical::INT32) => go!(Int32Type, out, None, |&x| x as u8),
        (Buffer::U16(out), DType::U16, Physical::INT32) => go!(Int32Type, out, None, |&x| x as u16),
        (Buffer::U32(out), DType::U32, Physical::INT32) => go!(Int32Type, out, None, |&x| x as u32),
        (Buffer::I64(out), DType::DateTime(_), Physical::INT32) => go!(Int32Type, out, Some(NAT), |&x| i64::from(x)),
        (Buffer::I64(out), DType::DateTime(_), Physical::INT64) => go!(Int64Type, out, Some(NAT), |&x| x),
        (Buffer::I64(out), DType::I64, Physical::INT64) => go!(Int64Type, out, None, |&x| x),
        (Buffer::U64(out), DType::U64, Physical::INT64) => go!(Int64Type, out, None, |&x| x as u64),
        (Buffer::F32(out), DType::F32, Physical::FLOAT) => go!(FloatType, out, Some(f32::NAN), |&x| x),
        (Buffer::F64(out), DType::F64, Physical::DOUBLE) => go!(DoubleType, out, Some(f64::NAN), |&x| x),
        // A table of several types is one of doubles.
        (Buffer::F64(out), DType::F32, Physical::FLOAT) => go!(FloatType, out, Some(f64::NAN), |&x| f64::from(x)),
        (Buffer::F64(out), DType::Bool, Physical::BOOLEAN) => go!(BoolType, out, Some(f64::NAN), |&x| f64::from(x)),
        (Buffer::F64(out), DType::U8 | DType::U16 | DType::U32, Physical::INT32) => {
            go!(Int32Type, out, Some(f64::NAN), |&x| f64::from(x as u32))
        }
        (Buffer::F64(out), _, Physical::INT32) => go!(Int32Type, out, Some(f64::NAN), |&x| f64::from(x)),
        (Buffer::F64(out), DType::U64, Physical::INT64) => go!(Int64Type, out, Some(f64::NAN), |&x| x as u64 as f64),
        (Buffer::F64(out), _, Physical::INT64) => go!(Int64Type, out, Some(f64::NAN), |&x| x as f64),
        (buffer, ..) => Err(ParquetError::General(format!("a column of {dtype} as {}", buffer.dtype()))),
    }
}

fn open<T: DataType>(file: &ParquetFile, group: usize, column: usize) -> Result<ColumnReaderImpl<T>, ParquetError> {
    let (chunk, codec) = file.chunk(group, column).map_err(ParquetError::General)?;
    let n_rows = file.groups[group].rows.end - file.groups[group].rows.start;
    let pages = SerializedPageReader::new(file.bytes.clone(), chunk, n_rows as usize, None)?;
    let pages = BoundedPages::new(pages, codec, n_rows, T::get_type_size() as u64);
    Ok(ColumnReaderImpl::new(chunk.column_descr_ptr(), Box::new(pages)))
}

fn fill<T: DataType, E: Copy>(
    reader: &mut ColumnReaderImpl<T>,
    (skip, n): (usize, usize),
    out: &mut [E],
    stride: usize,
    missing: Option<E>,
    convert: impl Fn(&T::T) -> E,
) -> Result<Outcome, ParquetError> {
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
                *place = if level == 0 { missing } else { next.next().map_or(missing, &convert) };
            }
        }
        done += read;
    }
    Ok(Outcome::All)
}
