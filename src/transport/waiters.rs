//! Threads that sleep until a word in memory changes, and how whoever changes it wakes them.
//!
//! Lies in the control area of the rank whose threads sleep, so that peers can look. Who stores
//! into memory of the rank asks after the store: does anybody sleep ([`Waiters::touched`])? That is
//! one load from a line that nobody writes while nobody falls asleep. The fence between "store the
//! word" and "look for sleepers" is again paid by the other side: who falls asleep makes every
//! process run one, by `membarrier(2)`, before the last look at the word. Where the kernel does not
//! offer that, sleepers only nap.

use crate::transport::address::Address;
use crate::util::bell::Bell;
use crate::util::pin::global_fence;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering, compiler_fence, fence};
use std::time::Duration;

/// Threads of one rank that can sleep at the same time; a further one naps.
const PLACES: usize = 16;
/// How long a thread sleeps at most before it looks again: stores that go through a pointer from
/// `llcl_remote_pointer` wake nobody.
const LONGEST: Duration = Duration::from_millis(10);
/// The same for a thread that nobody can wake.
const NAP: Duration = Duration::from_millis(1);

/// One sleeping thread.
#[repr(C, align(64))]
struct Place {
    /// 0: free; 2: a thread fills it in; 1: the thread sleeps, or is about to.
    taken: AtomicU32,
    bell: Bell,
    /// The word as peers name it; key 0: no peer can reach it.
    key: AtomicU64,
    offset: AtomicU64,
}

/// The sleeping threads of one rank. All zero: nobody sleeps.
#[repr(C, align(64))]
pub struct Waiters {
    /// How many places are taken.
    sleepers: AtomicU32,
    places: [Place; PLACES],
}

impl Waiters {
    /// To be called after a store into `size` bytes at `address` of the rank's memory.
    #[inline(always)]
    pub fn touched(&self, address: Address, size: u64) {
        if self.any() {
            self.wake_at(address, size);
        }
    }

    /// Whether somebody sleeps: to be asked after the store.
    #[inline(always)]
    pub fn any(&self) -> bool {
        // Keeps the compiler from looking before the store; the processor is held back by the
        // sleeper's global fence.
        compiler_fence(Ordering::SeqCst);
        self.sleepers.load(Ordering::Relaxed) != 0
    }

    /// Wakes those who sleep on a word in `size` bytes at `address`.
    #[cold]
    pub fn wake_at(&self, address: Address, size: u64) {
        self.wake(|key, offset| {
            key == address.key
                && offset < address.offset.saturating_add(size)
                && address.offset < offset.saturating_add(8)
        });
    }

    /// To be called after the rank's own process stored into a completion word, or ran a callback
    /// that may have stored anywhere.
    #[inline(always)]
    pub fn touched_privately(&self) {
        if self.any() {
            self.wake(|_, _| true);
        }
    }

    #[cold]
    fn wake(&self, concerns: impl Fn(u64, u64) -> bool) {
        fence(Ordering::SeqCst);
        for place in &self.places {
            // Acquire: pairs with the Release in sleep(); key and offset are of this taking.
            if place.taken.load(Ordering::Acquire) == 1
                && concerns(place.key.load(Ordering::Relaxed), place.offset.load(Ordering::Relaxed))
            {
                place.bell.ring();
            }
        }
    }

    /// Sleeps until the word at `word` may have changed, or `limit` is over, or a while has passed;
    /// not at all when `enough` already says so. The caller looks again in any case. True: somebody
    /// has stored into the word.
    pub fn sleep(
        &self,
        word: Option<Address>,
        limit: Option<Duration>,
        enough: impl Fn() -> bool,
    ) -> bool {
        let limit = limit.unwrap_or(LONGEST);
        // Acquire: pairs with the Release that gave the place back.
        let free = self.places.iter().find(|place| {
            place.taken.compare_exchange(0, 2, Ordering::Acquire, Ordering::Relaxed).is_ok()
        });
        let Some(place) = free else {
            std::thread::sleep(limit.min(NAP));
            return false;
        };
        let ticket = place.bell.ticket();
        place.key.store(word.map_or(0, |word| word.key), Ordering::Relaxed);
        place.offset.store(word.map_or(0, |word| word.offset), Ordering::Relaxed);
        // Release: publishes key and offset; pairs with the Acquire in wake().
        place.taken.store(1, Ordering::Release);
        self.sleepers.fetch_add(1, Ordering::SeqCst);
        let longest = if global_fence() { LONGEST } else { NAP };
        let woken = enough() || place.bell.wait(ticket, Some(limit.min(longest)));
        self.sleepers.fetch_sub(1, Ordering::SeqCst);
        place.taken.store(0, Ordering::Release);
        woken
    }
}

#[cfg(all(test, not(loom)))]
mod tests;
