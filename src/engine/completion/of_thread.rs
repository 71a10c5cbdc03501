//! Data of the message layer for each thread. It lies beside the thread's callbacks, so one load of
//! a thread-local pointer finds both.

use super::{Trampoline, known, mine};
use crate::util::pin::{hide_number, show_number};
use std::cell::Cell;
use std::ffi::c_void;

/// The last argument of Callbacks::set_serving() in this thread.
pub fn serving() -> *const c_void {
    mine().serving.get()
}

/// Notes that this thread is one of the library's, which never runs polled handlers.
pub fn set_library_thread() {
    mine().library_thread.set(true);
}

/// Whether set_library_thread() was called.
pub fn is_library_thread() -> bool {
    // SAFETY: as in mine().
    unsafe { known::get().as_ref() }.is_some_and(|t| t.library_thread.get())
}

/// Counts a poll of this thread that found no message; returns the number of such polls since the
/// last one that found some.
pub fn count_empty_poll() -> u32 {
    let empty = &mine().empty_polls;
    empty.set(empty.get().wrapping_add(1));
    empty.get()
}

/// Like count_empty_poll(), unless the thread is inside a callback or `may` refuses: then it
/// returns false and counts nothing. `may` gets the new number, and whether this poll asks a
/// network, if there is one; see note_network_poll(). One function for these checks, so that a poll
/// loads the thread-local pointer once.
#[inline(always)]
pub fn count_empty_poll_if(may: impl FnOnce(u32, bool) -> bool) -> bool {
    // SAFETY: as in mine().
    let Some(t) = (unsafe { known::get().as_ref() }) else { return false };
    let next = t.empty_polls.get().wrapping_add(1);
    let again = !t.is_running() && may(next, t.network_polls.get() > 0);
    if again {
        t.empty_polls.set(next);
    }
    again
}

/// Notes a poll of a network by this thread. Some: the poll has found something, and so many next
/// polls of the thread ask the network.
pub fn note_network_poll(next: Option<u32>) {
    let polls = &mine().network_polls;
    polls.set(next.unwrap_or(polls.get().saturating_sub(1)));
}

/// The state of a thread's polls of one context; see `engine::messages::dispatch`.
#[derive(Clone, Copy, Default)]
pub struct Polls {
    /// The number of the context's dispatcher; 0: of none.
    pub of: u64,
    /// Polls that found the role taken since the last one that yielded the core for this reason.
    pub taken: u32,
    /// The number of handlers that this thread has run.
    pub ran: u64,
    /// The handlers that all threads had run, and `ran`, when this thread last compared them.
    pub seen: (u64, u64),
    /// The handlers that all threads had run when this thread last noted their number.
    pub noted: u64,
}

impl Polls {
    /// Of no context.
    pub(super) const NONE: Polls = Polls { of: 0, taken: 0, ran: 0, seen: (0, 0), noted: 0 };
}

/// The calling thread's callbacks, for a thread that uses them several times in a row: it loads the
/// thread-local pointer once.
#[derive(Clone, Copy)]
pub struct Callbacks<'a>(&'a Trampoline);

impl<'a> Callbacks<'a> {
    /// The caller must not pass them to another thread.
    #[inline(always)]
    pub fn of_thread() -> Self {
        Callbacks(mine())
    }

    /// Like of_thread(). None: the thread is inside a callback, or none ever ran on it.
    #[inline(always)]
    pub fn of_thread_outside() -> Option<Self> {
        // SAFETY: as in mine().
        unsafe { known::get().as_ref() }.filter(|it| !it.is_running()).map(Callbacks)
    }

    /// Notes which dispatcher's handlers this thread runs. `whom`: the address of that dispatcher's
    /// state of requests; null: none.
    #[inline(always)]
    pub fn set_serving(self, whom: *const c_void) {
        self.0.serving.set(whom);
    }

    /// A poll of this thread has found a message.
    #[inline(always)]
    pub fn reset_empty_polls(self) {
        self.0.empty_polls.set(0);
    }

    /// The state of the thread's polls of the context that it polled last.
    #[inline(always)]
    pub fn polls(self) -> &'a Cell<Polls> {
        &self.0.polls
    }

    /// Like enter().
    #[inline(always)]
    pub fn enter(self, function: *const c_void, call: impl FnOnce()) {
        self.0.outermost(function, call);
    }

    /// Like enter(), for the handler of a response.
    #[inline(always)]
    pub fn enter_response(self, function: *const c_void, call: impl FnOnce()) {
        self.0.outermost(function, || {
            self.0.responding.set(true);
            hide_number();
            call();
            show_number();
            self.0.responding.set(false);
        });
    }
}
