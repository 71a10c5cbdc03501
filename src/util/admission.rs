//! Threads that wait for room in a full queue: asleep, because to spin would keep the core from
//! those who make the room; and in turn, because a thread that is awake would post for as long as
//! the system lets it run, and the system knows nothing of the queue.
//!
//! While somebody waits, a thread may post a share of commands. Then it is refused, as if the queue
//! were full, until it has waited in the line: it wakes the first one there and goes to the end.
//! The kernel keeps the line: threads that sleep on one word are woken in order.

use crate::util::bell::Bell;
use std::cell::Cell;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

/// How long a thread sleeps at most. The thread that empties the queue looks for sleepers without a
/// fence; of the many looks that a full queue brings with it one could be too early, but not all.
const LONGEST: Duration = Duration::from_millis(1);
/// Like `LONGEST`, for a thread that waits for its turn, which comes when all others have had
/// theirs.
const LONGEST_TURN: Duration = Duration::from_millis(50);

/// How often a thread looks before it sleeps, and pauses between two looks: some 3 us in all.
const LOOKS: usize = 16;
const PAUSES: usize = 16;

/// Commands that a thread may post while others wait.
const SHARE: i32 = 8192;
/// How often it is refused afterwards if it does not wait in the line: a thread that only tries is
/// slowed down and not locked out.
const REFUSALS: i32 = 8;

thread_local! {
    /// What is left of this thread's share; below 0 the refusals, counted.
    static LEFT: Cell<i32> = const { Cell::new(SHARE) };
}

/// Threads that wait for room.
#[derive(Default)]
pub struct Admission {
    waiting: AtomicU32,
    bell: Bell,
}

impl Admission {
    /// Waits until there may be room, unless `attempt` succeeds. While somebody empties the queue
    /// there is room within a microsecond; so it looks a few times before it sleeps.
    pub fn wait<T>(&self, attempt: impl Fn() -> Option<T>) -> Option<T> {
        for _ in 0..LOOKS {
            (0..PAUSES).for_each(|_| std::hint::spin_loop());
            if let Some(end) = attempt() {
                return Some(end);
            }
        }
        self.wait_asleep(LONGEST, attempt)
    }

    /// Like `wait`, without the looks, where another thread takes them for all; at most for
    /// `longest`.
    pub fn wait_asleep<T>(&self, longest: Duration, attempt: impl Fn() -> Option<T>) -> Option<T> {
        let ticket = self.bell.ticket();
        self.waiting.fetch_add(1, Ordering::SeqCst);
        let end = attempt();
        if end.is_none() {
            self.bell.wait(ticket, Some(longest));
        }
        self.waiting.fetch_sub(1, Ordering::Relaxed);
        LEFT.set(SHARE);
        end
    }

    /// Whether the calling thread may post now: to be asked once per command.
    #[inline]
    pub fn admits(&self) -> bool {
        !self.is_wanted() || spend()
    }

    /// For a thread that had its share: lets the first of the line go on, and waits at its end.
    /// False: it has not had it.
    pub fn wait_for_turn(&self) -> bool {
        if !self.is_wanted() || LEFT.get() > 0 {
            return false;
        }
        self.announce();
        let ticket = self.bell.ticket();
        self.waiting.fetch_add(1, Ordering::SeqCst);
        self.bell.wait(ticket, Some(LONGEST_TURN));
        self.waiting.fetch_sub(1, Ordering::Relaxed);
        LEFT.set(SHARE);
        true
    }

    /// Whether somebody waits.
    #[inline]
    pub fn is_wanted(&self) -> bool {
        self.waiting() != 0
    }

    /// How many wait.
    #[inline(always)]
    pub fn waiting(&self) -> u32 {
        self.waiting.load(Ordering::Relaxed)
    }

    /// There is room: wakes the thread that has waited longest. If others could have it, too, they
    /// would only find it taken; each has its turn, or looks by itself after a moment.
    pub fn announce(&self) {
        self.bell.ring_one();
    }
}

/// Takes one command of the thread's share; false: nothing is left of it.
#[inline(never)]
fn spend() -> bool {
    let left = LEFT.get() - 1;
    LEFT.set(if left <= -REFUSALS { SHARE } else { left });
    left >= 0
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicBool;

    #[test]
    fn who_waits_is_woken_and_tries_again() {
        let (room, free) = (Admission::default(), AtomicBool::new(false));
        std::thread::scope(|scope| {
            let waiter = scope.spawn(|| {
                let attempt = || free.load(Ordering::SeqCst).then_some(7);
                loop {
                    if let Some(end) = room.wait(attempt) {
                        return end;
                    }
                }
            });
            while !room.is_wanted() {
                std::thread::yield_now();
            }
            free.store(true, Ordering::SeqCst);
            room.announce();
            assert_eq!(waiter.join().unwrap(), 7);
        });
        assert!(!room.is_wanted());
    }

    #[test]
    fn who_had_its_share_is_refused_only_while_others_wait_and_not_for_ever() {
        let room = Admission::default();
        for _ in 0..2 * SHARE {
            assert!(room.admits());
        }
        room.waiting.store(1, Ordering::Relaxed);
        for _ in 0..2 {
            assert!(!room.wait_for_turn(), "it has not had its share");
            assert!((0..SHARE).all(|_| room.admits()));
            assert!((0..REFUSALS).all(|_| !room.admits()));
        }
    }
}
