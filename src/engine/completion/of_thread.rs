//! What the message layer keeps for each thread: here, beside the thread's callbacks, where one
//! load finds it.

use super::{Trampoline, known, mine};
use std::ffi::c_void;

/// The context whose handlers this thread runs, kept here where it is at hand; null: none.
#[inline(always)]
pub fn set_serving(whom: *const c_void) {
    mine().serving.set(whom);
}

/// What set_serving() was told last.
pub fn serving() -> *const c_void {
    mine().serving.get()
}

/// This thread is the library's, and runs no handlers that the program polls for.
pub fn set_librarys() {
    mine().librarys.set(true);
}

/// Whether set_librarys() was called.
pub fn is_librarys() -> bool {
    // SAFETY: as in mine().
    unsafe { known::get().as_ref() }.is_some_and(|t| t.librarys.get())
}

/// Counts a poll of this thread that found nothing; returns how many there were one after the
/// other.
pub fn polled_in_vain() -> u32 {
    let polls = &mine().polls;
    polls.set(polls.get().wrapping_add(1));
    polls.get()
}

/// Counts such a poll, unless the one of this number may not be, or the thread runs a callback.
/// False: it was not counted. Here, since a poll has no time to look two things up that belong to
/// its thread.
#[inline(always)]
pub fn polled_in_vain_again(may: impl FnOnce(u32) -> bool) -> bool {
    // SAFETY: as in mine().
    let Some(t) = (unsafe { known::get().as_ref() }) else { return false };
    let next = t.polls.get().wrapping_add(1);
    let again = !t.is_running() && may(next);
    if again {
        t.polls.set(next);
    }
    again
}

/// A poll of this thread has found something.
pub fn polled_with_result() {
    mine().polls.set(0);
}

/// The calling thread's callbacks, for one that runs many functions of the user.
pub struct Callbacks<'a>(&'a Trampoline);

impl Callbacks<'_> {
    /// Its holder gives them to no other thread.
    #[inline(always)]
    pub fn of_thread() -> Self {
        Callbacks(mine())
    }

    /// As enter().
    #[inline(always)]
    pub fn enter(&self, function: *const c_void, call: impl FnOnce()) {
        self.0.outermost(function, call);
    }
}
