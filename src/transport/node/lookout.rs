//! What tells any thread, without a role, whether a message waits: the tickets at which a receiver's
//! shares stand, and their slots.
//!
//! The receiver writes the tickets, and every thread that polls reads them and the marks of their slots. An
//! answer is a hint: the ticket that a thread has read may have been consumed meanwhile, and a new one may be
//! there. Who needs certainty takes the receiver.

use crate::transport::node::segment::Segment;
use crate::transport::node::slots::{FIRST, SlotShare};
use crate::util::sync::{AtomicU64, Ordering};
use crossbeam_utils::CachePadded;
use std::sync::Arc;

/// See the head of the file.
pub struct Lookout {
    /// Holds what `shares` points into.
    _own: Arc<Segment>,
    shares: Box<[SlotShare<'static>]>,
    /// For each share the ticket that its receiver takes next.
    next: Box<[CachePadded<AtomicU64>]>,
}

// SAFETY: a lookout reads the marks of slots, which are atomics, and never their bodies.
unsafe impl Send for Lookout {}
// SAFETY: as above.
unsafe impl Sync for Lookout {}

impl Lookout {
    /// A lookout over shares in `own` of which nothing has been consumed.
    pub fn new(own: Arc<Segment>, shares: Box<[SlotShare<'static>]>) -> Lookout {
        let next = shares.iter().map(|_| CachePadded::new(AtomicU64::new(FIRST))).collect();
        Lookout { _own: own, shares, next }
    }

    /// Whether a message waits, as far as a look tells.
    #[inline(always)]
    pub fn has_come(&self) -> bool {
        let mut stands = self.shares.iter().zip(self.next.iter());
        // Relaxed: a hint; see the head of the file.
        stands.any(|(share, next)| share.is_ready(next.load(Ordering::Relaxed)))
    }

    /// The receiver has come to this ticket of a share.
    #[inline(always)]
    pub(super) fn moved(&self, share: usize, next: u64) {
        if let Some(place) = self.next.get(share) {
            place.store(next, Ordering::Relaxed);
        }
    }
}
