//! Ranks that wait for free slots of this receiver without sleeping at [`Credit`]: a handler thread
//! that has a response to send, or a progress thread with a request. Such a thread sleeps on
//! its own rank's bell, which other events ring, too. So its rank leaves a *wake request* here: the
//! receiver rings the rank when slots are free.
//!
//! 1. A rank that has found no slot adds its wake request, calls [`heavy_fence`], tries once more
//!    to get a slot, and sleeps.
//! 2. The receiver gives slots back, and then checks whether there are wake requests. If so, it
//!    takes them all, and rings each of these ranks once.
//!
//! So either the receiver sees the request, or the rank sees the free slots. If other senders have
//! taken the slots before the rank runs, it adds its request again.
//!
//! [`Credit`]: super::Credit
//! [`heavy_fence`]: crate::util::fence::heavy_fence

#[cfg(not(loom))]
use crate::bootstrap::MAX_RANKS;
use crate::util::fence::light_fence;
use crate::util::sync::{AtomicU32, AtomicU64, Ordering};

/// Number of words; a rank's bit is in word `rank % WORDS`, so that few of the ranks that ask at a
/// time change the same word.
#[cfg(not(loom))]
const WORDS: u32 = MAX_RANKS / u64::BITS;
/// One, so that loom can try every order.
#[cfg(loom)]
const WORDS: u32 = 1;

/// The wake requests of all ranks. All zero: there are none.
#[repr(C, align(128))]
#[derive(Debug)]
pub struct WakeRequests {
    /// Not 0: there may be requests.
    any: AtomicU32,
    /// A bit for each rank.
    ranks: [AtomicU64; WORDS as usize],
}

impl Default for WakeRequests {
    fn default() -> WakeRequests {
        WakeRequests { any: AtomicU32::new(0), ranks: std::array::from_fn(|_| AtomicU64::new(0)) }
    }
}

impl WakeRequests {
    /// Adds the request of a rank. The rank then calls heavy_fence() and tries once more.
    pub fn add(&self, rank: u32) {
        // Relaxed: published by `any`.
        self.ranks[(rank % WORDS) as usize].fetch_or(1 << (rank / WORDS), Ordering::Relaxed);
        // Release: publishes the rank; pairs with take().
        self.any.store(1, Ordering::Release);
    }

    /// Called by the receiver after it has given slots back: takes all requests, and calls `ring`
    /// for each rank.
    #[inline(always)]
    pub fn ring_all(&self, ring: impl FnMut(u32)) {
        light_fence();
        if self.any.load(Ordering::Relaxed) != 0 {
            self.take(ring);
        }
    }

    #[cold]
    fn take(&self, mut ring: impl FnMut(u32)) {
        // Acquire: pairs with add(). Cleared before the words are read: a request that is added
        // meanwhile is found now, or sets `any` again.
        self.any.swap(0, Ordering::AcqRel);
        for (word, first) in self.ranks.iter().zip(0..) {
            let mut bits = word.swap(0, Ordering::AcqRel);
            while bits != 0 {
                ring(first + WORDS * bits.trailing_zeros());
                bits &= bits - 1;
            }
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn each_request_is_served_once() {
        let (requests, mut rung) = (WakeRequests::default(), Vec::new());
        requests.ring_all(|rank| rung.push(rank));
        assert!(rung.is_empty());
        let asking = [3, 7, 3, 9, 9 + WORDS, 9 + 63 * WORDS, MAX_RANKS - 1];
        asking.iter().for_each(|rank| requests.add(*rank));
        requests.ring_all(|rank| rung.push(rank));
        requests.ring_all(|rank| rung.push(rank));
        assert_eq!(rung, [3, 7, 9, 9 + WORDS, 9 + 63 * WORDS, MAX_RANKS - 1]);
    }
}
