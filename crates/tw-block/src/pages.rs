//! Memory from the system: zeroed, and in large pages where that helps. All that is unsafe about it is here.

use std::alloc::{GlobalAlloc, Layout, System, alloc_zeroed};

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

/// An allocator for programs that keep to a memory budget: large memory comes from the system itself and goes back to it, all but the last 16 MiB at once. What is smaller is the system
/// allocator's.
///
/// glibc serves memory of up to 32 MiB from its heap once memory of that size was freed. Blocks of many sizes then leave holes between others that live, which stay resident: sorts under a budget held half
/// as much again as their blocks had.
#[derive(Clone, Copy, Debug, Default)]
pub struct ReturnedAtOnce;

#[cfg(all(target_os = "linux", target_pointer_width = "64"))]
mod mapped {
    use std::alloc::Layout;
    use std::ffi::{c_int, c_void};
    use std::ptr::null_mut;
    use std::sync::Mutex;

    unsafe extern "C" {
        fn mmap(
            start: *mut c_void,
            length: usize,
            protection: c_int,
            flags: c_int,
            file: c_int,
            at: i64,
        ) -> *mut c_void;
        fn munmap(start: *mut c_void, length: usize) -> c_int;
        fn mremap(start: *mut c_void, old: usize, new: usize, flags: c_int, ...) -> *mut c_void;
    }

    const READ_AND_WRITE: c_int = 1 | 2;
    const PRIVATE: c_int = 2;
    const ANONYMOUS: c_int = 32;
    const MAY_MOVE: c_int = 1;
    /// What the calls give if they fail.
    const FAILED: usize = usize::MAX;

    /// Smaller memory is not worth the faults of fresh pages.
    const LARGE: usize = 1 << 20;
    /// Alignment that every mapping has.
    const ALIGNED: usize = 4096;

    /// Mappings that were freed last, for tasks that take the same again and again: fresh pages cost a fault each.
    static FREED: Mutex<Freed> = Mutex::new(Freed { places: [(0, 0); PLACES], oldest: 0 });
    const PLACES: usize = 4;
    /// Larger mappings are not kept.
    const LARGEST_KEPT: usize = 4 << 20;

    struct Freed {
        /// Address and size; nothing if the size is 0.
        places: [(usize, usize); PLACES],
        oldest: usize,
    }

    /// Memory of this size that was freed lately, with whatever it holds. Nobody waits for the list: a child process may have got it locked.
    fn freed_lately(size: usize) -> Option<*mut u8> {
        let mut freed = FREED.try_lock().ok()?;
        let place = freed.places.iter_mut().find(|place| place.1 == size)?;
        let (address, _) = std::mem::take(place);
        Some(std::ptr::with_exposed_provenance_mut(address))
    }

    /// True of memory that comes from the system itself.
    pub(super) fn is_large(size: usize, align: usize) -> bool {
        size >= LARGE && align <= ALIGNED
    }

    /// Memory; null if there is none.
    pub(super) fn take(size: usize) -> *mut u8 {
        freed_lately(size).unwrap_or_else(|| map(size))
    }

    /// Zeroed memory; null if there is none.
    pub(super) fn take_zeroed(size: usize) -> *mut u8 {
        match freed_lately(size) {
            Some(start) => {
                // SAFETY: a mapping of this size that has no other owner.
                unsafe { start.write_bytes(0, size) };
                start
            }
            None => map(size),
        }
    }

    fn map(size: usize) -> *mut u8 {
        // SAFETY: a new mapping touches no memory that has an owner.
        let start = unsafe { mmap(null_mut(), size, READ_AND_WRITE, PRIVATE | ANONYMOUS, -1, 0) };
        if start.addr() == FAILED { null_mut() } else { start.cast() }
    }

    /// Gives memory back.
    ///
    /// # Safety
    /// It came from [`take`], [`take_zeroed`] or [`resize`] with this size, and nobody uses it any more.
    pub(super) unsafe fn give_back(start: *mut u8, size: usize) {
        let (mut start, mut size) = (start, size);
        if size <= LARGEST_KEPT
            && let Ok(mut freed) = FREED.try_lock()
        {
            let oldest = freed.oldest;
            freed.oldest = (oldest + 1) % PLACES;
            let place = std::mem::replace(&mut freed.places[oldest], (start.expose_provenance(), size));
            (start, size) = (std::ptr::with_exposed_provenance_mut(place.0), place.1);
        }
        if size > 0 {
            // SAFETY: the caller's promise, now or when the memory was kept. Failure would leave the memory where it is.
            unsafe { munmap(start.cast(), size) };
        }
    }

    /// Memory of another size with the same contents, or null, and then the old memory is unchanged.
    ///
    /// # Safety
    /// It came from [`take`], [`take_zeroed`] or [`resize`] with the size of the layout.
    pub(super) unsafe fn resize(start: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: the caller's promise.
        let start = unsafe { mremap(start.cast(), layout.size(), size, MAY_MOVE) };
        if start.addr() == FAILED { null_mut() } else { start.cast() }
    }
}

#[cfg(all(target_os = "linux", target_pointer_width = "64"))]
// SAFETY: memory is large or not by its layout alone, so what was mapped is unmapped and what the system allocator gave goes back to it. Mappings have the size of the layout, begin at pages,
// and are zeroed.
unsafe impl GlobalAlloc for ReturnedAtOnce {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        match mapped::is_large(layout.size(), layout.align()) {
            true => mapped::take(layout.size()),
            // SAFETY: the caller's promise.
            false => unsafe { System.alloc(layout) },
        }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        match mapped::is_large(layout.size(), layout.align()) {
            true => mapped::take_zeroed(layout.size()),
            // SAFETY: the caller's promise.
            false => unsafe { System.alloc_zeroed(layout) },
        }
    }

    unsafe fn dealloc(&self, start: *mut u8, layout: Layout) {
        match mapped::is_large(layout.size(), layout.align()) {
            // SAFETY: the caller's promise: it was allocated here with this layout.
            true => unsafe { mapped::give_back(start, layout.size()) },
            // SAFETY: as above.
            false => unsafe { System.dealloc(start, layout) },
        }
    }

    unsafe fn realloc(&self, start: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        let (was, is) = (mapped::is_large(layout.size(), layout.align()), mapped::is_large(size, layout.align()));
        match (was, is) {
            // SAFETY: the caller's promise: it was allocated here with this layout.
            (true, true) => unsafe { mapped::resize(start, layout, size) },
            // SAFETY: as above.
            (false, false) => unsafe { System.realloc(start, layout, size) },
            _ => {
                // SAFETY: the caller's promise: with this alignment, `size` is that of a layout.
                let new = unsafe { Layout::from_size_align_unchecked(size, layout.align()) };
                // SAFETY: no size is zero. Both places have as many bytes as are copied, and do not overlap; the old one is not used again.
                unsafe {
                    let place = self.alloc(new);
                    if !place.is_null() {
                        place.copy_from_nonoverlapping(start, layout.size().min(size));
                        self.dealloc(start, layout);
                    }
                    place
                }
            }
        }
    }
}

#[cfg(not(all(target_os = "linux", target_pointer_width = "64")))]
// SAFETY: all is the system allocator's.
unsafe impl GlobalAlloc for ReturnedAtOnce {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's promise.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, start: *mut u8, layout: Layout) {
        // SAFETY: the caller's promise.
        unsafe { System.dealloc(start, layout) }
    }
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
    fn large_memory_grows_shrinks_and_goes_back() {
        let layout = |size: usize| Layout::from_size_align(size, 8).unwrap();
        let sizes = [100, 5 << 20, 2 << 20, 40 << 20, 3 << 20, 64 << 10, 1 << 20, (1 << 20) - 1, 7 << 20];
        // SAFETY: every place is used with the layout that it has, by its only owner.
        unsafe {
            let mut place = ReturnedAtOnce.alloc_zeroed(layout(sizes[0]));
            assert!((0..sizes[0]).all(|k| place.add(k).read() == 0));
            place.write_bytes(7, sizes[0]);
            for pair in sizes.windows(2) {
                place = ReturnedAtOnce.realloc(place, layout(pair[0]), pair[1]);
                let kept = pair[0].min(pair[1]);
                assert!((0..kept).step_by(61).all(|k| place.add(k).read() == 7), "{pair:?}");
                place.write_bytes(7, pair[1]);
            }
            ReturnedAtOnce.dealloc(place, layout(sizes[sizes.len() - 1]));
            for size in [9 << 20, 2 << 20, 3 << 20] {
                // What was freed last may be served again.
                for _ in 0..3 {
                    let fresh = ReturnedAtOnce.alloc_zeroed(layout(size));
                    assert!((0..size).step_by(997).all(|k| fresh.add(k).read() == 0));
                    fresh.write_bytes(7, size);
                    ReturnedAtOnce.dealloc(fresh, layout(size));
                }
            }
            let held: Vec<*mut u8> = (0..9).map(|_| ReturnedAtOnce.alloc(layout(2 << 20))).collect();
            for (k, place) in held.iter().enumerate() {
                place.write_bytes(k as u8, 2 << 20);
            }
            assert!(held.iter().enumerate().all(|(k, place)| place.read() == k as u8));
            held.into_iter().for_each(|place| ReturnedAtOnce.dealloc(place, layout(2 << 20)));
            assert!(ReturnedAtOnce.alloc(layout(isize::MAX as usize - 4096)).is_null());
        }
    }

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
