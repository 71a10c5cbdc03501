//! The senders for short messages, by rank. A thread that sends a short message reads its peer's
//! place here and knows by that alone that the peer is connected and alive.

use crate::util::sync::{AtomicBool, AtomicPtr, Ordering};
use std::ptr;

/// The place of each rank: null, or its sender. A sender lives as long as this table.
pub(super) struct ShortSenders<T>(Box<[AtomicPtr<T>]>);

impl<T> ShortSenders<T> {
    /// All places are null.
    pub(super) fn new(ranks: usize) -> ShortSenders<T> {
        ShortSenders((0..ranks).map(|_| AtomicPtr::new(ptr::null_mut())).collect())
    }

    /// The places, for the threads that send.
    pub(super) fn places(&self) -> &[AtomicPtr<T>] {
        &self.0
    }

    /// Publishes the sender to a peer, unless the peer is dead. Threads may publish
    /// the sender to one peer at the same time; all of them have the same sender.
    pub(super) fn open(&self, peer: u32, sender: &T, dead: &AtomicBool) {
        let place = &self.0[peer as usize];
        // Relaxed: a thread that sees the sender, which is always the same one, has nothing to do.
        if !place.load(Ordering::Relaxed).is_null() {
            return;
        }
        // SeqCst, both: pairs with mark_dead(); at least one of the two threads sees the other's
        // store, and takes the sender away. Release: publishes the sender; pairs with the Acquire
        // of the threads that send.
        place.swap(ptr::from_ref(sender).cast_mut(), Ordering::SeqCst);
        if dead.load(Ordering::SeqCst) {
            place.swap(ptr::null_mut(), Ordering::SeqCst);
        }
    }

    /// Marks a peer as dead and takes its sender away. Returns whether this call marked it.
    pub(super) fn mark_dead(&self, peer: u32, dead: &AtomicBool) -> bool {
        // Release: pairs with the Acquire of the threads that ask whether the peer is dead. SeqCst,
        // both: pairs with open().
        let first = !dead.swap(true, Ordering::SeqCst);
        self.0[peer as usize].swap(ptr::null_mut(), Ordering::SeqCst);
        first
    }
}

#[cfg(all(test, loom))]
mod models {
    use super::*;
    use crate::util::sync::{AtomicU32, UnsafeCell};
    use loom::sync::Arc;
    use loom::thread;

    /// The sender that the threads publish, and what they share.
    struct Shared {
        senders: ShortSenders<UnsafeCell<u32>>,
        dead: AtomicBool,
        sender: UnsafeCell<u32>,
        marked: AtomicU32,
    }

    fn shared() -> Arc<Shared> {
        let (senders, dead) = (ShortSenders::new(1), AtomicBool::new(false));
        let (sender, marked) = (UnsafeCell::new(0), AtomicU32::new(0));
        Arc::new(Shared { senders, dead, sender, marked })
    }

    impl Shared {
        fn open(&self) {
            self.senders.open(0, &self.sender, &self.dead);
        }

        fn mark(&self) {
            let first = self.senders.mark_dead(0, &self.dead);
            self.marked.fetch_add(first.into(), Ordering::Relaxed);
        }

        fn first(&self) -> *mut UnsafeCell<u32> {
            self.senders.places()[0].load(Ordering::Acquire)
        }
    }

    /// Two threads publish the sender to a peer that a third one finds to be dead.
    #[test]
    fn loom_no_short_sender_leads_to_the_dead() {
        loom::model(|| {
            let shared = shared();
            let roles: [fn(&Shared); 2] = [Shared::open, Shared::mark];
            let threads = roles.map(|role| {
                let shared = shared.clone();
                thread::spawn(move || role(&shared))
            });
            shared.open();
            threads.into_iter().for_each(|thread| thread.join().unwrap());
            assert!(shared.first().is_null());
            shared.mark();
            assert_eq!(shared.marked.load(Ordering::Relaxed), 1);
        });
    }

    /// A thread that finds a sender sees what was written to it before it was published.
    #[test]
    fn loom_a_short_sender_is_seen_whole() {
        loom::model(|| {
            let shared = shared();
            let maker = {
                let shared = shared.clone();
                thread::spawn(move || {
                    // SAFETY: the sender is not yet published.
                    shared.sender.with_mut(|value| unsafe { *value = 7 });
                    shared.open();
                })
            };
            // SAFETY: a published sender does not change, and `shared` keeps it.
            if let Some(sender) = unsafe { shared.first().as_ref() } {
                // SAFETY: as above.
                assert_eq!(sender.with(|value| unsafe { *value }), 7);
            }
            maker.join().unwrap();
            assert!(!shared.first().is_null());
        });
    }
}
