//! Ranks that have found no slot here, for a response or for a request that is parked, and sleep on
//! bells of their own, which other things ring as well: they wish to be rung when slots are free.
//!
//! 1. A rank that has found no slot notes its wish, executes the kernel's fence ([`heavy_fence`]),
//!    looks for a slot once more, and sleeps.
//! 2. The receiver gives slots back, and then looks whether there are wishes. If so it takes them
//!    all, and rings each of these ranks once.
//!
//! So either the receiver sees the wish, or the rank sees the slots. A rank that was rung and finds
//! that others have taken the slots notes its wish again. Where two ranks meet at one place, all
//! ranks are rung.
//!
//! [`heavy_fence`]: crate::util::fence::heavy_fence

use crate::util::fence::light_fence;
use crate::util::sync::{AtomicU32, Ordering};

/// Ranks that may wish at the same time without meeting at one place.
#[cfg(not(loom))]
const PLACES: usize = 64;
/// Few enough for loom to go through every order.
#[cfg(loom)]
const PLACES: usize = 1;

/// Of a place at which several ranks have met.
const ALL: u32 = u32::MAX;

/// See the head of the file. All zero: there are none.
#[repr(C, align(128))]
#[derive(Debug)]
pub struct Wishes {
    /// Not 0: there may be some.
    any: AtomicU32,
    /// 1 + the rank; 0: none; ALL.
    ranks: [AtomicU32; PLACES],
}

impl Default for Wishes {
    fn default() -> Wishes {
        Wishes { any: AtomicU32::new(0), ranks: std::array::from_fn(|_| AtomicU32::new(0)) }
    }
}

impl Wishes {
    /// A rank wants to be rung. It calls heavy_fence() before it looks for a slot once more.
    pub fn note(&self, rank: u32) {
        let place = &self.ranks[rank as usize % PLACES];
        let met = place.compare_exchange(0, rank + 1, Ordering::Relaxed, Ordering::Relaxed);
        if met.is_err_and(|other| other != rank + 1) {
            place.store(ALL, Ordering::Relaxed);
        }
        // Release: the rank comes before; pairs with take().
        self.any.store(1, Ordering::Release);
    }

    /// Slots were given back: tells `ring` of each rank that wants to be rung; None: of all ranks.
    #[inline(always)]
    pub fn grant(&self, ring: impl FnMut(Option<u32>)) {
        light_fence();
        if self.any.load(Ordering::Relaxed) != 0 {
            self.take(ring);
        }
    }

    #[cold]
    fn take(&self, mut ring: impl FnMut(Option<u32>)) {
        // Acquire: pairs with note(). Before the ranks: one that comes meanwhile is found now or
        // sets it again.
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
    fn each_wish_is_granted_once_and_where_two_meet_all_are_rung() {
        let (wishes, mut rung) = (Wishes::default(), Vec::new());
        wishes.grant(|rank| rung.push(rank));
        assert!(rung.is_empty());
        [3, 7, 3, 9, 9 + PLACES as u32].iter().for_each(|rank| wishes.note(*rank));
        wishes.grant(|rank| rung.push(rank));
        wishes.grant(|rank| rung.push(rank));
        assert_eq!(rung, [Some(3), Some(7), None]);
    }
}
