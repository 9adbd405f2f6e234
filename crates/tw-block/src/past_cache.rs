//! Writing past the caches. All that is unsafe about it is here.
//!
//! An ordinary store first reads the line it writes to, and pushes something else out of the cache. For results that are not read again soon that
//! is a third of all traffic, for nothing.

/// Copies elements past the caches where the processor can. Other threads see them after [`fence`] at the latest.
pub(crate) fn copy<T: Copy>(from: &[T], to: &mut [T]) {
    assert_eq!(from.len(), to.len(), "a copy between slices of one length");
    #[cfg(target_arch = "x86_64")]
    if crate::wide::Width::of_processor() >= crate::wide::Width::Avx2 && size_of_val(from) >= 4 * LINE {
        // SAFETY: the processor has AVX2, which includes AVX.
        return unsafe { copy_lines(from, to) };
    }
    to.copy_from_slice(from);
}

/// A line of the cache, filled before it is written past it.
#[derive(Clone, Copy)]
#[repr(align(64))]
pub(crate) struct Line([u8; LINE]);

impl Line {
    /// Writes the line past the caches where the processor can.
    ///
    /// # Safety
    /// `to` is good for writing a line, and is aligned to one.
    #[inline(always)]
    pub(crate) unsafe fn write(&self, to: *mut u8) {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: every processor of this architecture has SSE2; the line is aligned, and so is the target by the caller's promise.
        unsafe {
            use std::arch::x86_64::{__m128i, _mm_load_si128, _mm_stream_si128};
            let (from, to) = (self.0.as_ptr().cast::<__m128i>(), to.cast::<__m128i>());
            for quarter in 0..LINE / size_of::<__m128i>() {
                _mm_stream_si128(to.add(quarter), _mm_load_si128(from.add(quarter)));
            }
        }
        #[cfg(not(target_arch = "x86_64"))]
        // SAFETY: the caller's promise.
        unsafe {
            to.copy_from_nonoverlapping(self.0.as_ptr(), LINE);
        }
    }
}

/// Makes the copied elements visible to threads that synchronise with this one.
pub(crate) fn fence() {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: every processor of this architecture has SSE.
    unsafe {
        std::arch::x86_64::_mm_sfence()
    };
}

/// Bytes of a line of the cache.
pub(crate) const LINE: usize = 64;

/// Whole cache lines bypass the caches; the elements before and after them do not. The slices have one length.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx")]
fn copy_lines<T: Copy>(from: &[T], to: &mut [T]) {
    use std::arch::x86_64::{__m256i, _mm256_loadu_si256, _mm256_stream_si256};
    let size = size_of::<T>();
    let before = to.as_ptr().addr().next_multiple_of(LINE) - to.as_ptr().addr();
    if size == 0 || !before.is_multiple_of(size) || !LINE.is_multiple_of(size) {
        to.copy_from_slice(from);
        return;
    }
    let head = (before / size).min(to.len());
    let n_lines = (to.len() - head) * size / LINE;
    let tail = head + n_lines * (LINE / size);
    to[..head].copy_from_slice(&from[..head]);
    let (source, target) = (from[head..tail].as_ptr().cast::<__m256i>(), to[head..tail].as_mut_ptr().cast::<__m256i>());
    for half in 0..2 * n_lines {
        // SAFETY: `head..tail` are `n_lines` lines of both slices, so vector `half` lies inside them; the target begins at a line, so its vectors are
        // aligned. T is Copy, so its bytes may be copied.
        unsafe { _mm256_stream_si256(target.add(half), _mm256_loadu_si256(source.add(half))) };
    }
    to[tail..].copy_from_slice(&from[tail..]);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_element_arrives() {
        let from: Vec<u32> = (0..5000).collect();
        for (start, n) in [(0, 5000), (1, 4999), (3, 64), (7, 100), (15, 2000), (16, 17), (5, 0)] {
            let mut to = vec![u32::MAX; 5000];
            copy(&from[start..start + n], &mut to[start..start + n]);
            fence();
            for (k, &value) in to.iter().enumerate() {
                let copied = (start..start + n).contains(&k);
                assert_eq!(value, if copied { k as u32 } else { u32::MAX }, "{k} of {start}+{n}");
            }
        }
        let mut wide = vec![[0u64; 2]; 300];
        copy(&vec![[7, 9]; 299], &mut wide[1..]);
        assert!(wide[0] == [0, 0] && wide[1..].iter().all(|&x| x == [7, 9]));
    }
}
