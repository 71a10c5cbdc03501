//! Whether threads other than the polling thread poll a wire without a descriptor. While they do,
//! the polling thread sleeps. A thread that falls asleep wakes it.

use crate::util::sync::{AtomicBool, AtomicU8, Ordering};

/// Which thread has polled since the polling thread looked last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Helper {
    /// None but the polling thread.
    Nobody,
    /// The progress thread.
    Progress,
    /// An application thread.
    Program,
}

/// See the head of the file.
pub struct Helpers {
    /// The number of a [`Helper`].
    last: AtomicU8,
    /// Such a thread is inside a poll, in which MPI, for instance, copies whole messages.
    inside: AtomicBool,
    /// The polling thread sleeps since others poll, or is about to.
    aside: AtomicBool,
}

impl Default for Helpers {
    fn default() -> Helpers {
        Helpers {
            last: AtomicU8::new(Helper::Nobody as u8),
            inside: AtomicBool::new(false),
            aside: AtomicBool::new(false),
        }
    }
}

impl Helpers {
    /// Which thread has polled.
    pub fn last(&self) -> Helper {
        // Relaxed: a hint.
        match self.last.load(Ordering::Relaxed) {
            it if it == Helper::Program as u8 => Helper::Program,
            it if it == Helper::Progress as u8 => Helper::Progress,
            _ => Helper::Nobody,
        }
    }

    /// Such a thread polls now.
    #[inline]
    pub fn note(&self, helper: Helper) {
        // Relaxed: a hint.
        self.last.store(helper as u8, Ordering::Relaxed);
    }

    /// Such a thread has the endpoint's lock, and polls until the result is dropped.
    #[inline]
    pub fn enter(&self, helper: Helper) -> Inside<'_> {
        // Relaxed: a hint, as in drop().
        self.inside.store(true, Ordering::Relaxed);
        Inside { helpers: self, helper }
    }

    /// Whether a thread polls, or has polled since the last call: then the polling thread sleeps,
    /// for a limited time, and calls come_back(). The caller need not hold the endpoint's lock:
    /// threads that poll would stop for it.
    pub fn step_aside(&self) -> bool {
        // SeqCst, as in leave(): either that thread sees `aside`, or this one sees `Nobody`.
        self.aside.store(true, Ordering::SeqCst);
        let helped = self.last.swap(Helper::Nobody as u8, Ordering::SeqCst);
        // This load comes after the swap, which sees the store of a thread that has called leave(),
        // so that thread's poll has ended.
        let steps = helped != Helper::Nobody as u8 || self.inside.load(Ordering::Relaxed);
        if !steps {
            self.come_back();
        }
        steps
    }

    /// The polling thread is awake again.
    pub fn come_back(&self) {
        self.aside.store(false, Ordering::Relaxed);
    }

    /// The calling thread polls no more, since it falls asleep. Other threads that poll note it
    /// again. True: the caller must wake the polling thread.
    #[must_use = "the polling thread sleeps"]
    pub fn leave(&self) -> bool {
        self.last.store(Helper::Nobody as u8, Ordering::SeqCst);
        self.aside.swap(false, Ordering::SeqCst)
    }
}

/// A poll of a thread other than the polling thread; see `Helpers::enter`.
#[must_use = "the poll ends when this is dropped"]
pub struct Inside<'a> {
    helpers: &'a Helpers,
    helper: Helper,
}

impl Drop for Inside<'_> {
    #[inline]
    fn drop(&mut self) {
        // Anew, since the polling thread may have looked during the poll.
        self.helpers.note(self.helper);
        self.helpers.inside.store(false, Ordering::Relaxed);
    }
}

#[cfg(all(test, loom))]
mod models {
    use super::*;
    use crate::util::sync::Arc;
    use loom::thread;

    /// A thread polls, and then falls asleep. The polling thread does not sleep for its whole time
    /// afterwards: it does not step aside, or is woken.
    #[test]
    fn loom_who_falls_asleep_leaves_the_polling_thread_awake() {
        loom::model(|| {
            let helpers = Arc::new(Helpers::default());
            let waiting = {
                let helpers = helpers.clone();
                thread::spawn(move || {
                    helpers.note(Helper::Program);
                    drop(helpers.enter(Helper::Program));
                    helpers.leave()
                })
            };
            let sleeps = helpers.step_aside();
            let woken = waiting.join().unwrap();
            assert!(!sleeps || woken);
        });
    }
}

#[cfg(all(test, feature = "simulated", not(loom)))]
mod tests;
