//! What tells any thread, without a role, whether a message waits: the slots at which a receiver's
//! shares stand, and the marks that it awaits there.
//!
//! The receiver writes both, and every thread that polls reads them and the marks of the slots. An
//! answer is a hint: a thread may read a slot and the mark of another ticket, or find what has been
//! consumed meanwhile. A thread that needs certainty takes the receiver.

use crate::transport::memory::segment::Segment;
use crate::transport::memory::slots::{FIRST, Slot, SlotShare, mark};
use std::sync::Arc;
use std::sync::atomic::{AtomicPtr, AtomicU64, Ordering};

/// Where one share stands.
#[repr(align(64))]
pub(super) struct Look {
    slot: AtomicPtr<Slot>,
    awaited: AtomicU64,
}

impl Look {
    #[inline(always)]
    fn has_come(&self) -> bool {
        // SAFETY: always a slot of the lookout's segment, of which holds() reads the mark, an
        // atomic word.
        let slot = unsafe { &*self.slot.load(Ordering::Relaxed) };
        // Relaxed, both: a hint; see the head of the file.
        slot.holds(self.awaited.load(Ordering::Relaxed))
    }

    /// The receiver has come to this slot of the share, where it awaits this mark.
    #[inline(always)]
    pub(super) fn moved(&self, slot: &'static Slot, awaited: u64) {
        self.slot.store(std::ptr::from_ref(slot).cast_mut(), Ordering::Relaxed);
        self.awaited.store(awaited, Ordering::Relaxed);
    }
}

/// See the head of the file.
pub struct Lookout {
    looks: Box<[Look]>,
    /// That of the share from which the receiver takes at present.
    front: AtomicPtr<Look>,
    /// Holds the slots.
    _own: Arc<Segment>,
}

impl Lookout {
    /// A lookout over shares in `own` of which nothing has been consumed.
    pub fn new(own: Arc<Segment>, shares: &[SlotShare<'static>]) -> Lookout {
        let look = |share: &SlotShare<'static>| Look {
            slot: AtomicPtr::new(std::ptr::from_ref(share.slot(FIRST)).cast_mut()),
            awaited: AtomicU64::new(mark(FIRST)),
        };
        let looks: Box<[Look]> = shares.iter().map(look).collect();
        let front = AtomicPtr::new(std::ptr::from_ref(&looks[0]).cast_mut());
        Lookout { looks, front, _own: own }
    }

    /// Whether a message waits in any share, as far as a look tells.
    #[inline(always)]
    pub fn has_come(&self) -> bool {
        self.looks.iter().any(Look::has_come)
    }

    /// Of the share from which the receiver takes at present.
    #[inline(always)]
    pub(super) fn front(&self) -> &Look {
        // SAFETY: always one of `looks`.
        unsafe { &*self.front.load(Ordering::Relaxed) }
    }

    /// Whether a message waits in the share from which the receiver takes at present, likewise.
    #[inline(always)]
    pub fn next_has_come(&self) -> bool {
        self.front().has_come()
    }

    /// The receiver takes from this share now.
    pub(super) fn turned_to(&self, share: usize) {
        self.front.store(std::ptr::from_ref(&self.looks[share]).cast_mut(), Ordering::Relaxed);
    }

    /// The receiver has come to this slot of the present share, where it awaits this mark.
    #[inline(always)]
    pub(super) fn moved(&self, slot: &'static Slot, awaited: u64) {
        self.front().moved(slot, awaited);
    }
}
