//! How threads of this process that sleep for words learn that handlers have run, which may have
//! changed any of them.

use super::Dispatcher;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// While messages come one after the other, threads that sleep for a word are woken so often: each
/// time is a system call, and the woken one takes a core for a look.
/// (A handler that runs long delays them no more than a sleep lasts, `transport::waiters`.)
const NOTIFY: Duration = Duration::from_micros(20);

/// Most handlers that run between two looks at the clock.
const STRIDE: u32 = 16;

/// When sleeping threads were woken last, and when the clock is looked at next: in a flood not
/// after each message.
pub(super) struct Notified {
    at: Instant,
    looked: Instant,
    /// Handlers between the last two looks, and until the next one.
    stride: u32,
    left: u32,
}

impl Notified {
    pub(super) fn now() -> Notified {
        let now = Instant::now();
        Notified { at: now, looked: now, stride: 1, left: 1 }
    }

    /// A handler has run. Whether it is time to wake them.
    fn is_due(&mut self) -> bool {
        self.left -= 1;
        if self.left > 0 {
            return false;
        }
        let now = Instant::now();
        let quick = now.duration_since(self.looked) < NOTIFY / 4;
        self.stride = if quick { (2 * self.stride).min(STRIDE) } else { 1 };
        (self.looked, self.left) = (now, self.stride);
        let due = now.duration_since(self.at) >= NOTIFY;
        if due {
            self.at = now;
        }
        due
    }
}

impl Dispatcher {
    /// Wakes sleeping threads, since handlers have run, where serve() has left that to be done.
    #[inline]
    pub fn notify_sleepers(&self) {
        if self.owes.load(Ordering::Relaxed) && self.owes.swap(false, Ordering::AcqRel) {
            self.post.routes.waiters().touched_anything();
        }
    }

    /// A handler has run, and threads sleep.
    #[cold]
    pub(super) fn notify_in_time(&self, notified: &mut Notified) {
        // Release: the words that the handler changed come before; pairs with notify_sleepers().
        self.owes.store(true, Ordering::Release);
        if notified.is_due() {
            self.notify_sleepers();
        }
    }
}
