//! Scalar loops, compiled for the widest vectors of this CPU.
#![allow(unsafe_code)]

/// Runs loops that the compiler can vectorise; the closure, and what it calls in its loops, must be
/// `#[inline(always)]`.
///
/// The operations are the same with any instructions, and so are the results: the compiler fuses a
/// multiplication with an addition only where `mul_add` asks for it.
#[inline]
pub(crate) fn wide<R>(work: impl FnOnce() -> R) -> R {
    #[cfg(target_arch = "x86_64")]
    if is_fused() {
        #[target_feature(enable = "avx2,fma")]
        fn with_avx2<R>(work: impl FnOnce() -> R) -> R {
            work()
        }
        // SAFETY: the CPU has both, as detected above.
        return unsafe { with_avx2(work) };
    }
    work()
}

/// Returns true if this CPU has AVX2 and fused multiply-add.
#[inline]
pub(crate) fn is_fused() -> bool {
    #[cfg(target_arch = "x86_64")]
    return is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma");
    #[cfg(not(target_arch = "x86_64"))]
    false
}
