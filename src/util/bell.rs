//! A counter to sleep on, possibly in memory shared by processes. `engine::doorbell` says in which
//! order of steps no wake-up is lost.

use std::time::Duration;

#[cfg(not(loom))]
use crate::util::futex;
use crate::util::sync::{AtomicU32, Ordering};

/// A counter to sleep on. Four zero bytes are a bell that was never rung, so fresh shared memory
/// needs no initialisation. Another process that overwrites the word can cause idle rounds or make
/// sleeps last as long as their limit, and nothing worse.
#[repr(C)]
#[derive(Debug, Default)]
pub struct Bell {
    word: AtomicU32,
    #[cfg(loom)]
    kernel: kernel::Kernel,
}

/// The count when the sleeper began to look for work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ticket(u32);

impl Bell {
    /// A bell that was never rung.
    pub fn new() -> Bell {
        Bell::default()
    }

    /// Step 1 of the protocol: the sleeper takes a ticket before it arms the sources.
    #[inline]
    pub fn ticket(&self) -> Ticket {
        // Acquire: pairs with the Release in count(); a ticket that includes a ring comes after
        // the change of the source that caused it.
        Ticket(self.word.load(Ordering::Acquire))
    }

    /// Wakes all sleepers of this bell.
    pub fn ring(&self) {
        self.count();
        self.wake(i32::MAX);
    }

    /// Wakes one sleeper. Use it only if each sleeper can do the work. Otherwise the wake-up may
    /// reach a sleeper that cannot. Returns whether there was a sleeper.
    pub fn ring_one(&self) -> bool {
        self.count();
        self.wake(1)
    }

    /// Sleeps until the bell is rung after `ticket` was taken, at most for `limit` (`None`: no
    /// limit). False when the time ran out. True may also come early: look for work again.
    pub fn wait(&self, ticket: Ticket, limit: Option<Duration>) -> bool {
        self.sleep(ticket.0, limit)
    }

    fn count(&self) {
        // Release: the work and the cleared mark come before it; pairs with the Acquire in
        // ticket(). A wrapped count equals an old ticket only after 2^32 rings within one sleep,
        // each of which would have ended it.
        self.word.fetch_add(1, Ordering::Release);
    }

    #[cfg(not(loom))]
    fn wake(&self, sleepers: i32) -> bool {
        futex::wake(&self.word, sleepers) > 0
    }

    #[cfg(not(loom))]
    fn sleep(&self, ticket: u32, limit: Option<Duration>) -> bool {
        futex::wait(&self.word, ticket, limit)
    }

    #[cfg(loom)]
    fn wake(&self, sleepers: i32) -> bool {
        self.kernel.wake(sleepers)
    }

    #[cfg(loom)]
    fn sleep(&self, ticket: u32, _limit: Option<Duration>) -> bool {
        self.kernel.wait(&self.word, ticket)
    }
}

#[cfg(not(loom))]
const _: () = assert!(size_of::<Bell>() == 4);

/// A model of the kernel's futex: a lock around "compare and queue" and around "wake".
#[cfg(loom)]
mod kernel {
    use super::{AtomicU32, Ordering};
    use loom::sync::{Condvar, Mutex};

    #[derive(Debug, Default)]
    pub struct Kernel {
        /// How many sleep.
        queue: Mutex<i32>,
        sleepers: Condvar,
    }

    impl Kernel {
        /// FUTEX_WAIT. The relaxed read is on purpose: the kernel promises no more about it than
        /// that it is atomic with the queueing.
        pub fn wait(&self, word: &AtomicU32, expected: u32) -> bool {
            let mut queue = self.queue.lock().unwrap();
            if word.load(Ordering::Relaxed) == expected {
                *queue += 1;
                drop(self.sleepers.wait(queue).unwrap());
            }
            true
        }

        /// FUTEX_WAKE. Returns whether there was a sleeper.
        pub fn wake(&self, sleepers: i32) -> bool {
            let mut queue = self.queue.lock().unwrap();
            let slept = *queue > 0;
            match sleepers {
                1 if slept => {
                    *queue -= 1;
                    self.sleepers.notify_one();
                }
                1 => {}
                _ => {
                    *queue = 0;
                    self.sleepers.notify_all();
                }
            }
            slept
        }
    }
}
