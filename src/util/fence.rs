//! The fence between "I have published something" and "I look at what the other one has published",
//! paid by one side alone.
//!
//! The side that does this often calls [`light_fence`], which costs nothing. The side that does it
//! seldom calls [`heavy_fence`]: the kernel makes every running thread of every process that has
//! joined execute a full fence (`membarrier(2)`). So whatever another thread had stored before that
//! moment is seen after the call, and whatever it loads later sees what was stored before the call.
//!
//! Loom knows no such call. Under it both execute a full fence, which is what the kernel's amounts
//! to for one pair of sides.

use crate::util::sync::Ordering;

/// The half of the side that must cost nothing.
#[cfg(not(loom))]
#[inline(always)]
pub fn light_fence() {
    // Keeps the compiler from moving the look before the store; the processor is held back by the
    // other side.
    std::sync::atomic::compiler_fence(Ordering::SeqCst);
}

/// The half of the side that pays. False where the kernel does not offer it: then the light half is
/// none.
#[cfg(not(loom))]
pub fn heavy_fence() -> bool {
    crate::util::pin::global_fence()
}

/// See the head of the file.
#[cfg(loom)]
pub fn light_fence() {
    crate::util::sync::fence(Ordering::SeqCst);
}

/// See the head of the file.
#[cfg(loom)]
pub fn heavy_fence() -> bool {
    crate::util::sync::fence(Ordering::SeqCst);
    true
}
