//! How the dispatcher wakes threads of this process that sleep on words. A handler may change any
//! word, so all of them are woken after handlers have run.

use super::Dispatcher;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// While message follows message, threads that sleep on words are woken once in this time: each
/// wake-up is a system call, and the woken thread uses a core to look at its word. During a long
/// handler no wake-up comes. A sleep then ends after its longest time, see `transport::waiters`.
const NOTIFY: Duration = Duration::from_micros(20);

/// Most handlers that run between two looks at the clock.
const STRIDE: u32 = 16;

/// When sleeping threads were woken last, and when the clock is read next. While message follows
/// message, the clock is not read after each one.
pub(super) struct Notified {
    at: Instant,
    looked: Instant,
    /// The number of handlers between two looks at the clock, and until the next look.
    stride: u32,
    left: u32,
}

impl Notified {
    pub(super) fn now() -> Notified {
        let now = Instant::now();
        Notified { at: now, looked: now, stride: 1, left: 1 }
    }

    /// To be called after each handler. Returns whether it is time to wake the sleeping threads.
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
    /// Wakes sleeping threads, if handlers have run since they were last woken.
    #[inline]
    pub fn notify_sleepers(&self) {
        if self.unnotified.load(Ordering::Relaxed) && self.unnotified.swap(false, Ordering::AcqRel)
        {
            self.post.routes.waiters().touched_anything();
        }
    }

    /// To be called after a handler if threads sleep: wakes them now or leaves it to
    /// notify_sleepers().
    #[cold]
    pub(super) fn notify_in_time(&self, notified: &mut Notified) {
        // Release: the words that the handler changed come before; pairs with notify_sleepers().
        self.unnotified.store(true, Ordering::Release);
        if notified.is_due() {
            self.notify_sleepers();
        }
    }
}
