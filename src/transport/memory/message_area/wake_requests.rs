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
//! taken the slots before the rank runs, it adds its request again. If two ranks add requests at
//! one place, the receiver rings all ranks.
//!
//! [`Credit`]: super::Credit
//! [`heavy_fence`]: crate::util::fence::heavy_fence

use crate::util::fence::light_fence;
use crate::util::sync::{AtomicU32, Ordering};

/// Number of places; a rank adds its request at place `rank % PLACES`.
#[cfg(not(loom))]
const PLACES: usize = 64;
/// One, so that loom can try every order.
#[cfg(loom)]
const PLACES: usize = 1;

/// The value of a place at which several ranks have added requests.
const ALL: u32 = u32::MAX;

/// The wake requests of all ranks. All zero: there are none.
#[repr(C, align(128))]
#[derive(Debug)]
pub struct WakeRequests {
    /// Not 0: there may be requests.
    any: AtomicU32,
    /// 1 + the rank; 0: no request; ALL.
    ranks: [AtomicU32; PLACES],
}

impl Default for WakeRequests {
    fn default() -> WakeRequests {
        WakeRequests { any: AtomicU32::new(0), ranks: std::array::from_fn(|_| AtomicU32::new(0)) }
    }
}

impl WakeRequests {
    /// Adds the request of a rank. The rank then calls heavy_fence() and tries once more.
    pub fn add(&self, rank: u32) {
        let place = &self.ranks[rank as usize % PLACES];
        let met = place.compare_exchange(0, rank + 1, Ordering::Relaxed, Ordering::Relaxed);
        if met.is_err_and(|other| other != rank + 1) {
            place.store(ALL, Ordering::Relaxed);
        }
        // Release: publishes the rank; pairs with take().
        self.any.store(1, Ordering::Release);
    }

    /// Called by the receiver after it has given slots back: takes all requests, and calls `ring`
    /// for each rank; None stands for all ranks.
    #[inline(always)]
    pub fn ring_all(&self, ring: impl FnMut(Option<u32>)) {
        light_fence();
        if self.any.load(Ordering::Relaxed) != 0 {
            self.take(ring);
        }
    }

    #[cold]
    fn take(&self, mut ring: impl FnMut(Option<u32>)) {
        // Acquire: pairs with add(). Cleared before the places are read: a request that is added
        // meanwhile is found now, or sets `any` again.
        self.any.swap(0, Ordering::AcqRel);
        for place in &self.ranks {
            match place.swap(0, Ordering::AcqRel) {
                0 => {}
                ALL => ring(None),
                one => ring(Some(one - 1)),
            }
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn each_request_is_served_once_and_where_two_meet_all_are_rung() {
        let (requests, mut rung) = (WakeRequests::default(), Vec::new());
        requests.ring_all(|rank| rung.push(rank));
        assert!(rung.is_empty());
        [3, 7, 3, 9, 9 + PLACES as u32].iter().for_each(|rank| requests.add(*rank));
        requests.ring_all(|rank| rung.push(rank));
        requests.ring_all(|rank| rung.push(rank));
        assert_eq!(rung, [Some(3), Some(7), None]);
    }
}
