//! Hints to the cache, where the processor takes some: a line that another core has is on its way while
//! this one does something else. They read and write nothing.

/// The line at this address will be read.
#[inline(always)]
pub fn to_read<T>(address: *const T) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a hint, for which any address will do.
    unsafe {
        std::arch::x86_64::_mm_prefetch::<{ std::arch::x86_64::_MM_HINT_T0 }>(address.cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = address;
}

/// The line at this address will be written: it is taken from the core that has it.
#[inline(always)]
pub fn to_write<T>(address: *const T) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a hint, for which any address will do; a processor that does not know it passes it over.
    unsafe {
        std::arch::asm!("prefetchw byte ptr [{}]", in(reg) address, options(nostack, preserves_flags, readonly));
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = address;
}
