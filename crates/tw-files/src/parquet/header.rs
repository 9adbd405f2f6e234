//! Headers of pages.

use super::thrift::{Compact, FALSE, I32, STRUCT, TRUE};

/// Fields that are not needed are skipped if they are nested at most this deep.
const MOST_SKIPPED_LEVELS: usize = 16;

/// What a page holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PageKind {
    /// Values with levels before them, compressed together.
    Data {
        levels: i32,
    },
    /// Levels of so many bytes, which are not compressed, then values.
    DataV2 {
        n_nulls: u64,
        level_bytes: usize,
        is_compressed: bool,
    },
    Dictionary {
        is_sorted: bool,
    },
    /// Something that is not needed.
    Other,
}

/// What a header says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PageHeader {
    pub(super) kind: PageKind,
    /// Bytes of the page in the file, without its header.
    pub(super) bytes: usize,
    /// Bytes of the page when it is decompressed.
    pub(super) unfolded: usize,
    pub(super) n_values: u64,
    /// The number of an encoding.
    pub(super) encoding: i32,
}

/// Reads a header, and how many bytes it has.
pub(super) fn read(bytes: &[u8]) -> Result<(PageHeader, usize), String> {
    let mut rest = Compact(bytes);
    let (mut ty, mut unfolded, mut in_file, mut own) = (None, None, None, None);
    let mut last = 0;
    while let Some((id, field)) = rest.field(last)? {
        match (id, field) {
            (1, I32) => ty = Some(rest.int()?),
            (2, I32) => unfolded = Some(rest.int()?),
            (3, I32) => in_file = Some(rest.int()?),
            (5 | 7 | 8, STRUCT) => own = Some((id, Numbers::read(&mut rest)?)),
            _ => rest.skip(field, MOST_SKIPPED_LEVELS)?,
        }
        last = id;
    }
    let size = |n: Option<i32>| n.and_then(|n| usize::try_from(n).ok()).ok_or("the header of a page has no size");
    let (bytes_in_file, unfolded) = (size(in_file)?, size(unfolded)?);
    let numbers = |id: i16| match own {
        Some((found, numbers)) if found == id => Ok(numbers),
        _ => Err("the header of a page lacks what its type needs".to_string()),
    };
    let count = |n: Option<i32>| {
        let count = n.and_then(|n| u64::try_from(n).ok());
        count.ok_or_else(|| "the header of a page has no number of values".to_string())
    };
    let (kind, n_values, encoding) = match ty {
        Some(0) => {
            let [n_values, encoding, levels, ..] = numbers(5)?.0;
            (PageKind::Data { levels: levels.unwrap_or(-1) }, count(n_values)?, encoding)
        }
        Some(2) => {
            let [n_values, encoding, is_sorted, ..] = numbers(7)?.0;
            (PageKind::Dictionary { is_sorted: is_sorted == Some(1) }, count(n_values)?, encoding)
        }
        Some(3) => {
            let [n_values, n_nulls, n_rows, encoding, definitions, repetitions, is_compressed, ..] = numbers(8)?.0;
            let (n_values, n_nulls) = (count(n_values)?, count(n_nulls)?);
            let level_bytes = size(definitions)?.saturating_add(size(repetitions)?);
            if level_bytes > bytes_in_file || n_nulls > n_values || count(n_rows)? != n_values {
                return Err("the header of a page contradicts itself".into());
            }
            let is_compressed = is_compressed != Some(0);
            (PageKind::DataV2 { n_nulls, level_bytes, is_compressed }, n_values, encoding)
        }
        Some(_) => (PageKind::Other, 0, Some(0)),
        None => return Err("the header of a page has no type".into()),
    };
    let encoding = encoding.ok_or("the header of a page has no encoding")?;
    let header = PageHeader { kind, bytes: bytes_in_file, unfolded, n_values, encoding };
    Ok((header, bytes.len() - rest.0.len()))
}

/// The fields of a struct that are numbers of 32 bits or bools, by their own numbers from one on.
#[derive(Clone, Copy, Default)]
struct Numbers([Option<i32>; 8]);

impl Numbers {
    fn read(rest: &mut Compact<'_>) -> Result<Numbers, String> {
        let mut numbers = Numbers::default();
        let mut last = 0;
        while let Some((id, field)) = rest.field(last)? {
            let value = match field {
                I32 => Some(rest.int()?),
                TRUE => Some(1),
                FALSE => Some(0),
                _ => {
                    rest.skip(field, MOST_SKIPPED_LEVELS)?;
                    None
                }
            };
            let place = usize::try_from(id).ok().and_then(|id| numbers.0.get_mut(id.checked_sub(1)?));
            if let (Some(place), Some(value)) = (place, value) {
                *place = Some(value);
            }
            last = id;
        }
        Ok(numbers)
    }
}
