//! Memory from the system: zeroed, and in large pages where that helps. All that is unsafe about it is here.

use std::alloc::{Layout, alloc_zeroed};

use tw_ir::{Buffer, DType, with_dtype};

/// Types whose value zero is all zero bits.
///
/// # Safety
/// Implement it only for such types: their elements are made by zeroing memory.
unsafe trait Zeroed: Sized {}

macro_rules! zeroed_types {
    (() $($variant:ident $type:ty;)*) => {
        // SAFETY: false is the byte 0; the zeros of integers, of floats, and of what is made of them are all zero bits.
        $(unsafe impl Zeroed for $type {})*
    };
}
tw_ir::for_physical_types!([zeroed_types], ());

/// `n` zeros, or `None` if there is no memory for them.
pub fn zeros(dtype: DType, n: usize) -> Option<Buffer> {
    Some(with_dtype!(dtype, T => Buffer::from(zeroed::<T>(n)?)))
}

fn zeroed<T: Zeroed>(n: usize) -> Option<Vec<T>> {
    let layout = Layout::array::<T>(n).ok()?;
    if layout.size() == 0 {
        return Some(Vec::new());
    }
    // SAFETY: the size is not zero.
    let start = unsafe { alloc_zeroed(layout) };
    if start.is_null() {
        return None;
    }
    large_pages(start, layout.size());
    // SAFETY: the memory comes from the global allocator with the layout of an array of `n` elements, so a vector of that capacity may own it;
    // all its bytes are zero, which are `n` values of a Zeroed type.
    Some(unsafe { Vec::from_raw_parts(start.cast(), n, n) })
}

/// An empty vector with room for `n` elements in large pages. Like `Vec::with_capacity` it ends the process if there is no memory.
pub(crate) fn reserve<T>(n: usize) -> Vec<T> {
    let mut vector: Vec<T> = Vec::with_capacity(n);
    large_pages(vector.as_mut_ptr().cast(), vector.capacity() * size_of::<T>());
    vector
}

/// Asks for large pages, as NumPy does: a fault per 2 MiB instead of one per 4 KiB is the difference between copying and crawling. Refusal does no harm.
#[cfg(target_os = "linux")]
fn large_pages(start: *mut u8, size: usize) {
    use std::ffi::{c_int, c_void};
    unsafe extern "C" {
        fn madvise(start: *mut c_void, length: usize, advice: c_int) -> c_int;
    }
    const HUGEPAGE: c_int = 14;
    const PAGE: usize = 4096;
    /// Below this size an allocation hardly holds a large page.
    const WORTHWHILE: usize = 4 << 20;
    if size < WORTHWHILE {
        return;
    }
    let skipped = start.addr().next_multiple_of(PAGE) - start.addr();
    // SAFETY: the range is inside the allocation, begins at a page, and the advice changes no contents. On systems with larger pages the call
    // fails, which is as good.
    unsafe { madvise(start.add(skipped).cast(), size - skipped, HUGEPAGE) };
}

#[cfg(not(target_os = "linux"))]
fn large_pages(_: *mut u8, _: usize) {}

/// Asks the allocator to give the memory that it holds for later back to the system. glibc would keep freed blocks between others that live.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
pub(crate) fn return_free_memory() {
    unsafe extern "C" {
        fn malloc_trim(pad: usize) -> std::ffi::c_int;
    }
    // SAFETY: the function takes any number, may be called by any thread at any time, and touches only memory that has no owner.
    unsafe { malloc_trim(0) };
}

#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
pub(crate) fn return_free_memory() {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_zero_and_can_be_given_back() {
        for n in [0, 1, 1000, 3_000_000] {
            for dtype in DType::PHYSICAL {
                let buffer = zeros(dtype, n).unwrap();
                assert_eq!((buffer.len(), buffer.dtype()), (n, dtype));
                assert!((0..n).step_by(997).all(|k| buffer.get(k) == dtype.zero()));
            }
        }
        assert!(zeros(DType::F64, usize::MAX / 4).is_none());
        assert!(zeros(DType::F64, 1 << 59).is_none());
    }
}
