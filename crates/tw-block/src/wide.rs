//! Compiling a function several times: for any processor, and for those with wider vectors.
//!
//! Wider vectors change no bits: Rust never contracts or reorders floating point operations, and `mul_add` is exact with the instruction and
//! without it. On processors whose vectors are part of the architecture (aarch64) the portable version is the vectorised one.

#[cfg(target_arch = "x86_64")]
use std::sync::atomic::{AtomicU8, Ordering};

/// The widest version that the processor can run.
#[cfg(target_arch = "x86_64")]
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub(crate) enum Width {
    /// What every processor of the architecture has.
    Portable = 1,
    /// AVX2, fused multiply-add and the count of bits.
    Avx2 = 2,
    /// The parts of AVX-512 that all processors made for computing have.
    Avx512 = 3,
}

#[cfg(target_arch = "x86_64")]
impl Width {
    /// That of this processor. Asked before every loop, so the answer is kept.
    #[inline]
    pub(crate) fn of_processor() -> Width {
        static KNOWN: AtomicU8 = AtomicU8::new(0);
        match KNOWN.load(Ordering::Relaxed) {
            1 => Width::Portable,
            2 => Width::Avx2,
            3 => Width::Avx512,
            _ => {
                let width = Width::detect();
                KNOWN.store(width as u8, Ordering::Relaxed);
                width
            }
        }
    }

    #[cold]
    fn detect() -> Width {
        use std::arch::is_x86_feature_detected as has;
        if !(has!("avx2") && has!("fma") && has!("popcnt")) {
            Width::Portable
        } else if has!("avx512f") && has!("avx512vl") && has!("avx512dq") && has!("avx512bw") {
            Width::Avx512
        } else {
            Width::Avx2
        }
    }
}

/// Defines functions that run the widest version the processor has. Type parameters are written in square brackets.
macro_rules! wide {
    ($($(#[$attribute:meta])*
    pub(crate) fn $name:ident $([$($generics:tt)*])? ($($arg:ident: $type:ty),* $(,)?) $(-> $result:ty)? $body:block)*) => {
        $($(#[$attribute])*
        pub(crate) fn $name $(<$($generics)*>)? ($($arg: $type),*) $(-> $result)? {
            #[inline(always)]
            fn portable $(<$($generics)*>)? ($($arg: $type),*) $(-> $result)? $body
            #[cfg(target_arch = "x86_64")]
            {
                use $crate::wide::Width;
                #[target_feature(enable = "avx2,fma,popcnt")]
                fn avx2 $(<$($generics)*>)? ($($arg: $type),*) $(-> $result)? {
                    portable($($arg),*)
                }
                #[target_feature(enable = "avx512f,avx512vl,avx512dq,avx512bw,avx2,fma,popcnt")]
                fn avx512 $(<$($generics)*>)? ($($arg: $type),*) $(-> $result)? {
                    portable($($arg),*)
                }
                match Width::of_processor() {
                    // SAFETY: the processor has what `avx512` asks for.
                    Width::Avx512 => return unsafe { avx512($($arg),*) },
                    // SAFETY: the processor has what `avx2` asks for.
                    Width::Avx2 => return unsafe { avx2($($arg),*) },
                    Width::Portable => {}
                }
            }
            portable($($arg),*)
        })*
    };
}
pub(crate) use wide;
