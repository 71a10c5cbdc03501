//! A child that is forked inside a callback or handler must not return from it. It has a copy of
//! the library's call behind the callback, with the roles that this call holds at the parent. The
//! call would go on in both processes: both would execute its next operations and give its message
//! slots back. So the child ends with a message if it returns.

use super::{Trampoline, WAITING, known};
use crate::engine::user_function;

/// The count of waiting callbacks in such a child. So no other check than that of the count is
/// needed after a callback.
const FORKED: usize = WAITING + 1;

/// Called in a forked child: notes it if its thread is inside a callback.
pub(super) fn forbid_return() {
    // SAFETY: as in mine(). Null: the thread has run no callback.
    if let Some(own) = unsafe { known::get().as_ref() }
        && own.is_running()
    {
        own.count.set(FORKED);
    }
}

impl Trampoline {
    /// Whether this is a child that was forked inside the running callback. All its contexts are
    /// its parent's.
    pub(super) fn has_forked(&self) -> bool {
        self.count.get() == FORKED
    }

    /// Whether callbacks wait. To be called when one has returned.
    pub(super) fn has_waiting(&self) -> bool {
        if self.has_forked() {
            user_function::end_child(self.running.get());
        }
        self.count.get() > 0
    }
}
