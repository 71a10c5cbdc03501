//! Hints that lines will be needed soon. They change nothing but the time that it takes to come to
//! them.

/// A line that will be read.
#[inline(always)]
pub fn prefetch<T>(place: *const T) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a hint; it does not fault, whatever the address.
    unsafe {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T0>(place.cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = place;
}

/// The first `bytes` of a function that will be called: the second-level cache is for code as well.
#[inline(always)]
pub fn prefetch_code(function: *const (), bytes: usize) {
    for offset in (0..bytes).step_by(64) {
        prefetch(function.wrapping_byte_add(offset));
    }
}
