//! Rings that must wait for a contact: a receiver of messages rings the progress thread of a rank
//! that sends to it, and has perhaps not mapped that rank's memory yet.

use crate::util::sync::{AtomicBool, Ordering, fence};

/// The ranks whose progress threads this rank rings as soon as they are contacted.
pub(super) struct LateRings(Box<[AtomicBool]>);

impl LateRings {
    /// No ring waits.
    pub(super) fn new(ranks: u32) -> LateRings {
        LateRings((0..ranks).map(|_| AtomicBool::new(false)).collect())
    }

    /// Notes that a rank must be rung, and looks once more for the contact: a rank that `contact`
    /// finds is rung by this caller, any other one by the caller of is_due().
    pub(super) fn note<C>(&self, rank: u32, contact: impl FnOnce() -> Option<C>) -> Option<C> {
        // SeqCst, both: pairs with is_due(); at least one of the two sees the other's store.
        self.0[rank as usize].store(true, Ordering::SeqCst);
        fence(Ordering::SeqCst);
        contact()
    }

    /// Whether a rank must be rung, once for all notes so far. To be called behind the store by
    /// which the caller of note() finds the contact.
    pub(super) fn is_due(&self, rank: u32) -> bool {
        // SeqCst, both: see note().
        fence(Ordering::SeqCst);
        self.0[rank as usize].swap(false, Ordering::SeqCst)
    }
}

#[cfg(all(test, loom))]
mod models {
    use super::*;
    use crate::util::sync::AtomicU32;
    use loom::sync::Arc;
    use loom::thread;

    /// Two threads ask for a ring while a third one makes the contact.
    #[test]
    fn loom_a_ring_that_waits_for_a_contact_is_not_lost() {
        loom::model(|| {
            let shared = Arc::new((LateRings::new(1), AtomicBool::new(false), AtomicU32::new(0)));
            let threads = [false, true].map(|asks| {
                let shared = shared.clone();
                thread::spawn(move || {
                    let (rings, contacted, rung) = &*shared;
                    let due = if asks {
                        // Release and Acquire: the contact is published as Once does it.
                        let found = || contacted.load(Ordering::Acquire).then_some(());
                        rings.note(0, found).is_some()
                    } else {
                        contacted.store(true, Ordering::Release);
                        rings.is_due(0)
                    };
                    rung.fetch_add(due.into(), Ordering::Relaxed);
                })
            });
            threads.into_iter().for_each(|thread| thread.join().unwrap());
            assert!(shared.2.load(Ordering::Relaxed) >= 1);
        });
    }
}
