//! A hint for any thread, without the receiver's role: whether a message waits. For each share of a
//! receiver it has the slot of the next message, and the mark that the slot will hold.
//!
//! The receiver writes both words; polling threads read them, and the mark of the slot. The hint
//! may be wrong: a thread may read the slot of one ticket with the mark of another, or see a
//! message that the receiver has just consumed. A thread that must be certain takes the receiver.

use crate::transport::memory::segment::Segment;
use crate::transport::memory::slots::{FIRST, Slot, SlotShare, mark};
use std::sync::Arc;
use std::sync::atomic::{AtomicPtr, AtomicU64, Ordering};

/// The next message of one share.
#[repr(align(64))]
pub(super) struct Look {
    slot: AtomicPtr<Slot>,
    awaited: AtomicU64,
}

impl Look {
    #[inline(always)]
    fn has_come(&self) -> bool {
        // SAFETY: it points to a slot of the segment that the lookout keeps; holds() reads only the
        // mark, an atomic word.
        let slot = unsafe { &*self.slot.load(Ordering::Relaxed) };
        // Relaxed, both: a hint; see the head of the file.
        slot.holds(self.awaited.load(Ordering::Relaxed))
    }

    /// Sets the slot of the next message of the share, and its mark.
    #[inline(always)]
    pub(super) fn moved(&self, slot: &'static Slot, awaited: u64) {
        self.slot.store(std::ptr::from_ref(slot).cast_mut(), Ordering::Relaxed);
        self.awaited.store(awaited, Ordering::Relaxed);
    }
}

/// The next messages of a receiver's shares.
pub struct Lookout {
    looks: Box<[Look]>,
    /// The share from which the receiver takes messages at present.
    front: AtomicPtr<Look>,
    /// Keeps the slots mapped.
    _own: Arc<Segment>,
}

impl Lookout {
    /// A lookout over fresh shares in `own`.
    pub fn new(own: Arc<Segment>, shares: &[SlotShare<'static>]) -> Lookout {
        let look = |share: &SlotShare<'static>| Look {
            slot: AtomicPtr::new(std::ptr::from_ref(share.slot(FIRST)).cast_mut()),
            awaited: AtomicU64::new(mark(FIRST)),
        };
        let looks: Box<[Look]> = shares.iter().map(look).collect();
        let front = AtomicPtr::new(std::ptr::from_ref(&looks[0]).cast_mut());
        Lookout { looks, front, _own: own }
    }

    /// Whether a message waits in any share. A hint.
    #[inline(always)]
    pub fn has_come(&self) -> bool {
        self.looks.iter().any(Look::has_come)
    }

    /// The present share of the receiver.
    #[inline(always)]
    pub(super) fn front(&self) -> &Look {
        // SAFETY: always one of `looks`.
        unsafe { &*self.front.load(Ordering::Relaxed) }
    }

    /// Whether a message waits in the present share of the receiver. A hint.
    #[inline(always)]
    pub fn next_has_come(&self) -> bool {
        self.front().has_come()
    }

    /// Sets the present share of the receiver.
    pub(super) fn turned_to(&self, share: usize) {
        self.front.store(std::ptr::from_ref(&self.looks[share]).cast_mut(), Ordering::Relaxed);
    }

    /// Sets the slot of the next message of the present share, and its mark.
    #[inline(always)]
    pub(super) fn moved(&self, slot: &'static Slot, awaited: u64) {
        self.front().moved(slot, awaited);
    }
}
