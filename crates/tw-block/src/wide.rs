//! Compiling a function twice: for any processor, and for those with 256-bit vectors.
//!
//! Wider vectors change no bits: Rust never contracts or reorders floating point operations, so both versions compute the same.

/// Defines functions that run their wide version where the processor has one. Type parameters are written in square brackets.
macro_rules! wide {
    ($($(#[$attribute:meta])*
    pub(crate) fn $name:ident $([$($generics:tt)*])? ($($arg:ident: $type:ty),* $(,)?) $(-> $result:ty)? $body:block)*) => {
        $($(#[$attribute])*
        pub(crate) fn $name $(<$($generics)*>)? ($($arg: $type),*) $(-> $result)? {
            #[inline(always)]
            fn portable $(<$($generics)*>)? ($($arg: $type),*) $(-> $result)? $body
            #[cfg(target_arch = "x86_64")]
            {
                #[target_feature(enable = "avx2")]
                fn wide $(<$($generics)*>)? ($($arg: $type),*) $(-> $result)? {
                    portable($($arg),*)
                }
                if std::arch::is_x86_feature_detected!("avx2") {
                    // SAFETY: the processor has AVX2, which is all that `wide` asks for.
                    return unsafe { wide($($arg),*) };
                }
            }
            portable($($arg),*)
        })*
    };
}
pub(crate) use wide;
