//! Selecting and putting back with AVX-512, which packs and spreads the elements of a vector by a mask.
//!
//! No branch depends on the mask, and every element of the data is read, also those that values replace: processors foresee reads of one line after the
//! other. Reading single lines between others that are not needed took most of the time of a mask that holds nearly everywhere.

use std::arch::x86_64::{
    _mm512_add_epi64, _mm512_loadu_epi8, _mm512_loadu_epi32, _mm512_loadu_epi64, _mm512_mask_expand_epi32,
    _mm512_mask_expand_epi64, _mm512_maskz_compress_epi32, _mm512_maskz_compress_epi64, _mm512_set_epi64,
    _mm512_set1_epi64, _mm512_storeu_epi32, _mm512_storeu_epi64, _mm512_test_epi8_mask,
};

use crate::wide::Width;
use crate::width::Bits;

/// Elements of a mask that are looked at together.
const GROUP: usize = 64;

/// What was done with the beginning of a mask.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Done {
    /// Elements of the mask.
    pub(super) mask: usize,
    /// How many of them hold.
    pub(super) held: usize,
}

/// True if elements of a type are packed and spread here.
fn knows<T>() -> bool {
    matches!(size_of::<T>(), 4 | 8) && Width::of_processor() >= Width::Avx512
}

/// Copies elements where the mask holds, from the beginning on as far as whole vectors fit.
pub(super) fn select<T: Bits>(mask: &[bool], from: &[T], out: &mut [T]) -> Done {
    // SAFETY: the processor has what the functions ask for, and their elements have the size that their vectors are made of.
    match size_of::<T>() {
        4 if knows::<T>() => unsafe { select_4(mask, from, out) },
        8 if knows::<T>() => unsafe { select_8(mask, from, out) },
        _ => Done::default(),
    }
}

/// Writes the positions where the mask holds, from the beginning on as far as whole vectors fit.
pub(super) fn select_positions(mask: &[bool], first: u64, out: &mut [u64]) -> Done {
    match knows::<u64>() {
        // SAFETY: the processor has what the function asks for.
        true => unsafe { positions_8(mask, first, out) },
        false => Done::default(),
    }
}

/// Writes data with values where the mask holds, from the beginning on as far as whole vectors fit.
pub(super) fn put<T: Bits>(mask: &[bool], values: &[T], data: &[T], out: &mut [T]) -> Done {
    // SAFETY: the processor has what the functions ask for, and their elements have the size that their vectors are made of.
    match size_of::<T>() {
        4 if knows::<T>() => unsafe { put_4(mask, values, data, out) },
        8 if knows::<T>() => unsafe { put_8(mask, values, data, out) },
        _ => Done::default(),
    }
}

/// Functions for elements of one size: `$lanes` of them make a vector, and masks of vectors are a `$bits`.
macro_rules! sizes {
    ($($select:ident $put:ident $lanes:literal $bits:ident $load:ident $store:ident $compress:ident $expand:ident;)*) => {
        $(
            /// # Safety
            /// The elements have the size that vectors of this many are made of.
            #[target_feature(enable = "avx512f,avx512bw,popcnt")]
            unsafe fn $select<T: Bits>(mask: &[bool], from: &[T], out: &mut [T]) -> Done {
                let mut done = Done::default();
                for (group, from) in mask.as_chunks::<GROUP>().0.iter().zip(from.as_chunks::<GROUP>().0) {
                    if done.held + GROUP > out.len() {
                        break;
                    }
                    let mut bits = bits_of(group);
                    for vector in from.as_chunks::<$lanes>().0 {
                        let now = bits as $bits;
                        // SAFETY: the vector is as long as the elements; before the group there was room for all of it, and no more than its elements have been
                        // written since.
                        unsafe {
                            let packed = $compress(now, $load(vector.as_ptr().cast()));
                            $store(out.as_mut_ptr().add(done.held).cast(), packed);
                        }
                        done.held += now.count_ones() as usize;
                        bits = bits.wrapping_shr($lanes);
                    }
                    done.mask += GROUP;
                }
                done
            }

            /// # Safety
            /// The elements have the size that vectors of this many are made of.
            #[target_feature(enable = "avx512f,avx512bw,popcnt")]
            unsafe fn $put<T: Bits>(mask: &[bool], values: &[T], data: &[T], out: &mut [T]) -> Done {
                let mut done = Done::default();
                let groups = mask.as_chunks::<GROUP>().0.iter().zip(data.as_chunks::<GROUP>().0);
                for ((group, data), out) in groups.zip(out.as_chunks_mut::<GROUP>().0) {
                    if done.held + GROUP > values.len() {
                        break;
                    }
                    let mut bits = bits_of(group);
                    for (data, out) in data.as_chunks::<$lanes>().0.iter().zip(out.as_chunks_mut::<$lanes>().0) {
                        let now = bits as $bits;
                        // SAFETY: vectors are as long as the elements; before the group there were values for all of it, and no more have been taken since.
                        unsafe {
                            let new = $load(values.as_ptr().add(done.held).cast());
                            $store(out.as_mut_ptr().cast(), $expand($load(data.as_ptr().cast()), now, new));
                        }
                        done.held += now.count_ones() as usize;
                        bits = bits.wrapping_shr($lanes);
                    }
                    done.mask += GROUP;
                }
                done
            }
        )*
    };
}
sizes! {
    select_4 put_4 16 u16 _mm512_loadu_epi32 _mm512_storeu_epi32 _mm512_maskz_compress_epi32 _mm512_mask_expand_epi32;
    select_8 put_8 8 u8 _mm512_loadu_epi64 _mm512_storeu_epi64 _mm512_maskz_compress_epi64 _mm512_mask_expand_epi64;
}

#[target_feature(enable = "avx512f,avx512bw,popcnt")]
fn positions_8(mask: &[bool], first: u64, out: &mut [u64]) -> Done {
    const LANES: usize = 8;
    let mut done = Done::default();
    let mut places = _mm512_add_epi64(_mm512_set1_epi64(first as i64), _mm512_set_epi64(7, 6, 5, 4, 3, 2, 1, 0));
    let further = _mm512_set1_epi64(LANES as i64);
    for group in mask.as_chunks::<GROUP>().0 {
        if done.held + GROUP > out.len() {
            break;
        }
        let mut bits = bits_of(group);
        for _ in 0..GROUP / LANES {
            let now = bits as u8;
            // SAFETY: before the group there was room for all of it, and no more than its elements have been written since.
            unsafe {
                let packed = _mm512_maskz_compress_epi64(now, places);
                _mm512_storeu_epi64(out.as_mut_ptr().add(done.held).cast(), packed);
            }
            done.held += now.count_ones() as usize;
            bits >>= LANES;
            places = _mm512_add_epi64(places, further);
        }
        done.mask += GROUP;
    }
    done
}

/// Where a group holds, the first element in the lowest bit.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,popcnt")]
fn bits_of(group: &[bool; GROUP]) -> u64 {
    // SAFETY: a vector is as long as the group, and truth values are bytes.
    let bytes = unsafe { _mm512_loadu_epi8(group.as_ptr().cast()) };
    _mm512_test_epi8_mask(bytes, bytes)
}
