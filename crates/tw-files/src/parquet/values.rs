//! The pages of a column, decoded into the elements of a block: plain values and dictionaries.
//!
//! These are the encodings of nearly all columns of numbers. Values go from the decompressed page straight into the block; a batch in between, as the crate `parquet` has, costs as much as
//! the decoding. Columns in other encodings (deltas, split streams) are left to the crate.

use super::header::PageKind;
use super::hybrid::Hybrid;
use super::pages::{PLAIN, PLAIN_DICTIONARY, PageBody, Pages, RLE, RLE_DICTIONARY};

/// Indices of a dictionary that are decoded at once.
const BATCH: usize = 512;

/// A type of values as a file has it.
pub(super) trait FileNumber: Copy {
    /// Bytes of a plain value; 0 for bits.
    const BYTES: usize;

    /// The value in so many bytes.
    fn of(bytes: &[u8]) -> Self;
}

macro_rules! numbers {
    ($($type:ty)*) => {
        $(impl FileNumber for $type {
            const BYTES: usize = size_of::<$type>();

            fn of(bytes: &[u8]) -> $type {
                bytes.first_chunk().map_or_else(Default::default, |bytes| <$type>::from_le_bytes(*bytes))
            }
        })*
    };
}
numbers! { i32 i64 f32 f64 }

impl FileNumber for bool {
    const BYTES: usize = 0;

    fn of(bytes: &[u8]) -> bool {
        bytes.first().is_some_and(|&byte| byte != 0)
    }
}

/// What became of the rows.
pub(super) enum Outcome {
    All,
    /// Rows that are there.
    Short(usize),
    /// The first null in a column whose type has none, as a row of the row group.
    Null(usize),
    /// The column has pages in an encoding that is not decoded here. Elements of the block may have been written.
    Foreign,
}

/// Where values go, and what they become.
pub(super) struct Target<'a, E, F> {
    pub(super) out: &'a mut [E],
    /// Every so many elements of `out` are written.
    pub(super) stride: usize,
    /// What stands for a null, if anything does.
    pub(super) missing: Option<E>,
    /// A type of its own, so that it becomes a part of the loops.
    pub(super) convert: F,
}

/// The values of a page that are not null.
enum Values<'a, E> {
    Plain(&'a [u8]),
    Indexed(Hybrid<'a>, &'a [E]),
}

/// Decodes `n` rows from the `skip`-th on. Values of an optional column have levels before them that say which are null.
pub(super) fn decode<T: FileNumber, E: Copy, F: Fn(T) -> E + Copy>(
    pages: &mut Pages,
    is_optional: bool,
    (skip, n): (usize, usize),
    mut target: Target<'_, E, F>,
) -> Result<Outcome, String> {
    let bits =
        if T::BYTES == 0 { vec![(target.convert)(T::of(&[0])), (target.convert)(T::of(&[1]))] } else { Vec::new() };
    let mut dictionary: Option<Vec<E>> = None;
    // The first row of the page, and rows that are in the block.
    let (mut row, mut done) = (0, 0);
    while done < n {
        let Some(header) = pages.peek()? else { return Ok(Outcome::Short(row)) };
        let n_values = header.n_values as usize;
        match header.kind {
            PageKind::Other => {
                pages.pass()?;
                continue;
            }
            PageKind::Data { .. } | PageKind::DataV2 { .. } if row + n_values <= skip => {
                pages.pass()?;
                row += n_values;
                continue;
            }
            _ => {}
        }
        let Some(PageBody { levels, values, .. }) = pages.read()? else { return Ok(Outcome::Short(row)) };
        if let PageKind::Dictionary { .. } = header.kind {
            if dictionary.is_some() || !matches!(header.encoding, PLAIN | PLAIN_DICTIONARY) || T::BYTES == 0 {
                return Err("a dictionary where none can be".into());
            }
            let convert = target.convert;
            let known = values.chunks_exact(T::BYTES).take(n_values);
            dictionary = Some(known.map(|bytes| convert(T::of(bytes))).collect());
            continue;
        }
        let (levels, values) = match header.kind {
            PageKind::Data { levels: RLE } if is_optional => lengthened(values)?,
            PageKind::Data { .. } if is_optional => return Ok(Outcome::Foreign),
            _ => (levels, values),
        };
        let mut values = match (header.encoding, &dictionary) {
            (PLAIN, _) if T::BYTES == 0 => Values::Indexed(Hybrid::of_bits(values), &bits),
            (RLE, _) if T::BYTES == 0 => Values::Indexed(Hybrid::new(lengthened(values)?.0, 1)?, &bits),
            (PLAIN, _) => Values::Plain(values),
            (PLAIN_DICTIONARY | RLE_DICTIONARY, Some(dictionary)) => match values.split_first() {
                Some((&width, rest)) => Values::Indexed(Hybrid::new(rest, u32::from(width))?, dictionary),
                // A page of nulls has no values.
                None => Values::Plain(&[]),
            },
            (PLAIN_DICTIONARY | RLE_DICTIONARY, None) => return Err("a page without its dictionary".into()),
            _ => return Ok(Outcome::Foreign),
        };
        let skipped = skip.saturating_sub(row);
        let wanted = (n_values - skipped.min(n_values)).min(n - done);
        if !is_optional {
            values.skip::<T>(skipped)?;
            target.take(&mut values, done, wanted)?;
        } else {
            let mut levels = Hybrid::new(levels, 1)?;
            let mut passed = 0;
            while passed < skipped {
                let (defined, some) = levels.repeated((skipped - passed) as u64)?;
                if defined {
                    values.skip::<T>(some as usize)?;
                }
                passed += some as usize;
            }
            let mut taken = 0;
            while taken < wanted {
                let (defined, some) = levels.repeated((wanted - taken) as u64)?;
                let some = some as usize;
                if defined {
                    target.take(&mut values, done + taken, some)?;
                } else if !target.set_missing(done + taken, some) {
                    return Ok(Outcome::Null(skip + done + taken));
                }
                taken += some;
            }
        }
        done += wanted;
        row += n_values;
    }
    Ok(Outcome::All)
}

/// Bytes whose number is written before them, and what follows.
fn lengthened(bytes: &[u8]) -> Result<(&[u8], &[u8]), String> {
    let (length, rest) = bytes.split_first_chunk::<4>().ok_or("a page is too short for its levels")?;
    let length = u32::from_le_bytes(*length) as usize;
    rest.split_at_checked(length).ok_or_else(|| format!("levels of {length} bytes in a page of {}", bytes.len()))
}

impl<E> Values<'_, E> {
    fn skip<T: FileNumber>(&mut self, n: usize) -> Result<(), String> {
        match self {
            Values::Plain(bytes) => *bytes = plain::<T>(bytes, n)?.1,
            Values::Indexed(indices, _) => indices.skip(n as u64)?,
        }
        Ok(())
    }
}

/// So many plain values, and what follows them.
fn plain<T: FileNumber>(bytes: &[u8], n: usize) -> Result<(&[u8], &[u8]), String> {
    let split = n.checked_mul(T::BYTES).and_then(|n_bytes| bytes.split_at_checked(n_bytes));
    split.ok_or_else(|| format!("a page ends after {} of {n} values", bytes.len() / T::BYTES.max(1)))
}

impl<E: Copy, F> Target<'_, E, F> {
    /// The elements of some rows.
    fn places(&mut self, first: usize, n: usize) -> impl Iterator<Item = &mut E> {
        let start = (first * self.stride).min(self.out.len());
        self.out[start..].iter_mut().step_by(self.stride).take(n)
    }

    fn set_missing(&mut self, first: usize, n: usize) -> bool {
        let Some(missing) = self.missing else { return false };
        self.places(first, n).for_each(|place| *place = missing);
        true
    }

    /// The next values as the elements of some rows.
    fn take<T: FileNumber>(&mut self, values: &mut Values<'_, E>, first: usize, n: usize) -> Result<(), String>
    where
        F: Fn(T) -> E + Copy,
    {
        let convert = self.convert;
        match values {
            Values::Plain(bytes) => {
                let (own, rest) = plain::<T>(bytes, n)?;
                *bytes = rest;
                let own = own.chunks_exact(T::BYTES).map(|bytes| convert(T::of(bytes)));
                if self.stride == 1 {
                    // Steps of one are a loop that the compiler makes vectors of.
                    self.out[first..first + n].iter_mut().zip(own).for_each(|(place, value)| *place = value);
                } else {
                    self.places(first, n).zip(own).for_each(|(place, value)| *place = value);
                }
            }
            Values::Indexed(indices, table) => {
                let mut batch = [0; BATCH];
                for start in (0..n).step_by(BATCH) {
                    let batch = &mut batch[..BATCH.min(n - start)];
                    indices.fill(batch)?;
                    let largest = batch.iter().copied().max().unwrap_or(0) as usize;
                    if largest >= table.len() {
                        return Err(format!("value {largest} of a dictionary of {}", table.len()));
                    }
                    if self.stride == 1 {
                        let places = &mut self.out[first + start..][..batch.len()];
                        places.iter_mut().zip(&*batch).for_each(|(place, &index)| *place = table[index as usize]);
                    } else {
                        let places = self.places(first + start, batch.len());
                        places.zip(&*batch).for_each(|(place, &index)| *place = table[index as usize]);
                    }
                }
            }
        }
        Ok(())
    }
}
