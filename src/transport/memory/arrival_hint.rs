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
pub(super) struct ShareHint {
    slot: AtomicPtr<Slot>,
    awaited: AtomicU64,
}

impl ShareHint {
    #[inline(always)]
    fn has_come(&self) -> bool {
        // SAFETY: it points to a slot of the segment that `_own` keeps; holds() reads only the
        // mark, an atomic word.
        let slot = unsafe { &*self.slot.load(Ordering::Relaxed) };
        // Relaxed, both: a hint; see the head of the file.
        slot.holds(self.awaited.load(Ordering::Relaxed))
    }

    /// Sets the slot of the next message of the share, and its mark.
    #[inline(always)]
    pub(super) fn set_next(&self, slot: &'static Slot, awaited: u64) {
        self.slot.store(std::ptr::from_ref(slot).cast_mut(), Ordering::Relaxed);
        self.awaited.store(awaited, Ordering::Relaxed);
    }
}

/// The next messages of a receiver's shares.
pub struct ArrivalHint {
    all: Box<[ShareHint]>,
    /// The share from which the receiver takes messages at present.
    current: AtomicPtr<ShareHint>,
    /// Keeps the slots mapped.
    _own: Arc<Segment>,
}

impl ArrivalHint {
    /// A hint for fresh shares in `own`.
    pub fn new(own: Arc<Segment>, shares: &[SlotShare<'static>]) -> ArrivalHint {
        let hint = |share: &SlotShare<'static>| ShareHint {
            slot: AtomicPtr::new(std::ptr::from_ref(share.slot(FIRST)).cast_mut()),
            awaited: AtomicU64::new(mark(FIRST)),
        };
        let all: Box<[ShareHint]> = shares.iter().map(hint).collect();
        let current = AtomicPtr::new(std::ptr::from_ref(&all[0]).cast_mut());
        ArrivalHint { all, current, _own: own }
    }

    /// Whether a message waits in any share. A hint.
    #[inline(always)]
    pub fn has_come(&self) -> bool {
        self.all.iter().any(ShareHint::has_come)
    }

    /// The current share of the receiver.
    #[inline(always)]
    pub(super) fn current(&self) -> &ShareHint {
        // SAFETY: always one of `all`.
        unsafe { &*self.current.load(Ordering::Relaxed) }
    }

    /// Whether a message waits in the current share of the receiver. A hint.
    #[inline(always)]
    pub fn next_has_come(&self) -> bool {
        self.current().has_come()
    }

    /// Sets the current share of the receiver.
    pub(super) fn set_current(&self, share: usize) {
        self.current.store(std::ptr::from_ref(&self.all[share]).cast_mut(), Ordering::Relaxed);
    }

    /// Sets the slot of the next message of the current share, and its mark.
    #[inline(always)]
    pub(super) fn set_next(&self, slot: &'static Slot, awaited: u64) {
        self.current().set_next(slot, awaited);
    }
}
