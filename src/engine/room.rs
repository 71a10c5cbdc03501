//! Threads that wait for room in a full queue: asleep, because to spin would keep the core from those
//! who make the room.

use crate::util::bell::Bell;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

/// How long a thread sleeps at most. Who empties the queue looks for sleepers without a fence; of
/// the many looks that a full queue brings with it one could be too early, but not all.
const LONGEST: Duration = Duration::from_millis(1);

/// How often a thread looks before it sleeps, and pauses between two looks: some 3 us in all.
const LOOKS: usize = 16;
const PAUSES: usize = 16;

/// How often a thread may make room for itself while others wait.
const TURNS: u32 = 4;

/// Who waits for room.
#[derive(Default)]
pub struct Room {
    waiting: AtomicU32,
    /// How often room was made while somebody waited.
    turns: AtomicU32,
    bell: Bell,
}

impl Room {
    /// Waits until there may be room, unless `attempt` succeeds. While somebody empties the queue
    /// there is room within a microsecond; so it looks a few times before it sleeps.
    pub fn wait<T>(&self, attempt: impl Fn() -> Option<T>) -> Option<T> {
        for _ in 0..LOOKS {
            (0..PAUSES).for_each(|_| std::hint::spin_loop());
            if let Some(end) = attempt() {
                return Some(end);
            }
        }
        let ticket = self.bell.ticket();
        self.waiting.fetch_add(1, Ordering::SeqCst);
        let end = attempt();
        if end.is_none() {
            self.bell.wait(ticket, Some(LONGEST));
        }
        self.waiting.fetch_sub(1, Ordering::Relaxed);
        end
    }

    /// To be called by a thread that has made room itself. Where others wait, it would fill and empty
    /// the queue for as long as the system lets it run; so after some turns it goes to the end of
    /// the line.
    pub fn take_turns(&self) {
        if self.is_wanted() && self.turns.fetch_add(1, Ordering::Relaxed) % TURNS == TURNS - 1 {
            self.waiting.fetch_add(1, Ordering::Relaxed);
            self.announce();
            self.bell.wait(self.bell.ticket(), Some(LONGEST));
            self.waiting.fetch_sub(1, Ordering::Relaxed);
        }
    }

    /// Whether somebody waits.
    #[inline]
    pub fn is_wanted(&self) -> bool {
        self.waiting.load(Ordering::Relaxed) != 0
    }

    /// There is room: wakes the one who has waited longest. If others could have it, too, they
    /// would only find it taken; each has its turn, or looks by itself after a moment.
    pub fn announce(&self) {
        self.bell.ring_one();
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicBool;

    #[test]
    fn who_waits_is_woken_and_tries_again() {
        let (room, free) = (Room::default(), AtomicBool::new(false));
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
}
