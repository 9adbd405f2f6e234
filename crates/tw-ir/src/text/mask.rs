//! Counts of masks.

use super::cursor::Cursor;
use super::printer::commas;
use super::types::{parse_tiling, print_tiling};
use crate::error::Result;
use crate::program::MaskCounts;
use crate::tiling::Tiling;

/// The clause ` pieces tile(4096 of 10000) counts [17, 4, 20]`, or nothing.
pub(super) fn print_counts(counts: Option<&MaskCounts>) -> String {
    let clause = |counts: &MaskCounts| {
        let cut = print_tiling(&Tiling::Grid(counts.cut().clone()), &[]);
        format!(" pieces {cut} counts [{}]", commas(counts.counts()))
    };
    counts.map_or_else(String::new, clause)
}

/// Reads what [`print_counts`] writes.
pub(super) fn parse_counts(cursor: &mut Cursor<'_>) -> Result<Option<MaskCounts>> {
    let start = cursor.place();
    if !cursor.eat("pieces") {
        return Ok(None);
    }
    let tiling = parse_tiling(cursor, &[])?;
    cursor.expect("counts")?;
    let counts = cursor.list("[", "]", Cursor::length)?;
    let Some(cut) = tiling.grid() else { return Err(cursor.error_since(start, "pieces of a mask are cut by a grid")) };
    cursor.located(start, MaskCounts::new(cut.clone(), counts)).map(Some)
}

/// As [`parse_counts`], where there must be counts.
pub(super) fn expect_counts(cursor: &mut Cursor<'_>) -> Result<MaskCounts> {
    let start = cursor.place();
    parse_counts(cursor)?.ok_or_else(|| cursor.error_since(start, "the counts of the mask are missing"))
}
