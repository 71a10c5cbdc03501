//! Loads that stay as narrow as the words they read.
//!
//! A caller fills the parameters of a request word by word and calls at once, so the words are
//! still in the processor's store buffer. A load of one such word is served from there; a wider
//! load that the compiler makes of two neighbours is not: it waits until both stores have reached
//! the cache, and before them all earlier ones, such as that to the queue's last slot, whose line
//! the consumer holds. One wide load made each post to the queue cost a hand-over of a cache line.

/// What one load can read.
pub trait Word: Copy {}

impl Word for u16 {}
impl Word for u32 {}
impl Word for u64 {}
impl<T> Word for *const T {}
impl<T> Word for *mut T {}

/// Reads a word by a load of its own.
#[inline(always)]
pub fn narrow<T: Word>(word: &T) -> T {
    // SAFETY: a reference is valid to be read.
    unsafe { std::ptr::read_volatile(word) }
}
