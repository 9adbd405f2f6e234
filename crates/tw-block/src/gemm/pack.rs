//! Copies of operands in the order in which tiles read them.

use std::cell::Cell;

/// One cache line, so that packed memory begins with one.
#[derive(Clone, Copy)]
#[repr(align(64))]
struct Line {
    _bytes: [u8; LINE],
}
const LINE: usize = 64;

/// Neighbouring lines that are packed together.
const TOGETHER: usize = 128;

/// Memory for packed operands of one thread.
#[derive(Default)]
pub(super) struct Packed {
    left: Vec<Line>,
    right: Vec<Line>,
}

thread_local! {
    static PACKED: Cell<Option<Box<Packed>>> = const { Cell::new(None) };
}

/// Runs code with the packing memory of this thread.
pub(super) fn with_packed<R>(f: impl FnOnce(&mut Packed) -> R) -> R {
    let mut packed = PACKED.take().unwrap_or_default();
    let result = f(&mut packed);
    PACKED.set(Some(packed));
    result
}

impl Packed {
    /// Memory for so many elements of the left and of the right operand.
    pub(super) fn room<T: Copy>(&mut self, n_left: usize, n_right: usize) -> (*mut T, *mut T) {
        const { assert!(align_of::<T>() <= LINE) };
        let room = |lines: &mut Vec<Line>, n: usize| {
            let n_lines = (n * size_of::<T>()).div_ceil(LINE);
            if lines.len() < n_lines {
                lines.resize(n_lines, Line { _bytes: [0; LINE] });
            }
            lines.as_mut_ptr().cast::<T>()
        };
        (room(&mut self.left, n_left), room(&mut self.right, n_right))
    }
}

/// A matrix to be packed: panels of neighbouring lines (rows of the left operand, columns of the right one).
#[derive(Clone, Copy)]
pub(super) struct Lines<T> {
    pub(super) first: *const T,
    /// From line to line.
    pub(super) line: usize,
    /// From term to term.
    pub(super) term: usize,
    pub(super) n_lines: usize,
    pub(super) n_terms: usize,
}

/// Writes panels of `width` lines, each term by term; the last panel is filled up with zeros.
///
/// # Safety
/// Every element of `lines` can be read. `to` has room for whole panels.
#[inline(always)]
pub(super) unsafe fn pack<T: Copy + Default>(lines: Lines<T>, width: usize, to: *mut T) {
    let Lines { first, line, term, n_lines, n_terms } = lines;
    let n_whole = if line == 1 { n_lines - n_lines % width } else { 0 };
    // Neighbouring lines are read a good way along each term: a few at a time would be a new page for every line of cache.
    let group = (TOGETHER / width).max(1) * width;
    for start in (0..n_whole).step_by(group) {
        for k in 0..n_terms {
            for panel in (start..n_whole.min(start + group)).step_by(width) {
                // SAFETY: `width` lines from `panel` on exist and are neighbours. Panels before it took `panel * n_terms` elements.
                unsafe {
                    let to = to.add(panel * n_terms + k * width);
                    std::ptr::copy_nonoverlapping(first.add(k * term + panel), to, width);
                }
            }
        }
    }
    for start in (n_whole..n_lines).step_by(width) {
        let here = width.min(n_lines - start);
        // SAFETY: as above.
        let (from, to) = unsafe { (first.add(start * line), to.add(start * n_terms)) };
        for i in 0..width {
            for k in 0..n_terms {
                // SAFETY: line `i` of this panel exists wherever it is read, and the panel has room for `width` lines.
                unsafe {
                    *to.add(k * width + i) = if i < here { *from.add(i * line + k * term) } else { T::default() }
                };
            }
        }
    }
}
