//! An asymmetric fence between a store and a following load of what another thread has stored. Only
//! one of the two sides pays for it.
//!
//! The side that runs often calls [`light_fence`], which costs nothing. The side that runs rarely
//! calls [`heavy_fence`]: the kernel makes every running thread of every registered process execute
//! a full fence (`membarrier(2)`). After the call the caller sees each store that another thread
//! made before its own fence. A load that the other thread makes after its fence sees each store
//! that the caller made before the call.
//!
//! Loom has no such call. Under loom both sides execute a full fence, which is equivalent for one
//! pair of threads.

use crate::util::sync::Ordering;

/// The fence of the side that runs often.
#[cfg(not(loom))]
#[inline(always)]
pub fn light_fence() {
    // Keeps the compiler from moving the load before the store. The other side's heavy fence orders
    // the processor.
    std::sync::atomic::compiler_fence(Ordering::SeqCst);
}

/// The fence of the side that runs rarely. False: the kernel does not offer it, and light_fence()
/// then orders nothing.
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
