//! Loads that the compiler does not join into wider ones.
//!
//! A caller fills the parameters of a request word by word and calls at once, so the words are
//! still in the processor's store buffer. The processor forwards one word from there to a load of
//! that word. The compiler may join two neighbouring loads into a wider one. The processor cannot
//! forward two stores to one load, so the load waits until both stores, and all earlier ones, have
//! reached the cache. One of the earlier stores is that to the queue's last slot, whose line the
//! consumer holds. So one wide load made each post to the queue wait for the transfer of a cache
//! line.

/// A type that one load reads.
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
