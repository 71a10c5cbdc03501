//! How threads of this process that sleep for words learn that handlers have run, which may have changed any of them.

use super::Dispatcher;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// While messages come one after the other, threads that sleep for a word are woken so often: each time is
/// a system call, and the woken one takes a core for a look.
/// (A handler that runs long delays them no more than a sleep lasts, `transport::waiters`.)
const TELL: Duration = Duration::from_micros(20);

impl Dispatcher {
    /// Tells those who sleep that handlers have run, where serve() has left that to be done.
    #[inline]
    pub fn tell(&self) {
        if self.owes.load(Ordering::Relaxed) && self.owes.swap(false, Ordering::AcqRel) {
            self.post.routes.waiters().touched_anything();
        }
    }

    /// A handler has run.
    #[inline]
    pub(super) fn owe(&self, told: &mut Instant) {
        if self.post.routes.waiters().any() {
            self.tell_in_time(told);
        }
    }

    #[cold]
    fn tell_in_time(&self, told: &mut Instant) {
        // Release: the words that the handler changed come before; pairs with tell().
        self.owes.store(true, Ordering::Release);
        let now = Instant::now();
        if now.duration_since(*told) >= TELL {
            *told = now;
            self.tell();
        }
    }
}
