//! The command queue: a bounded ring that any number of threads fill without a lock and one
//! consumer, the holder of the executor role, empties.
//!
//! A post is *reserve, fill, commit*. Its budget: one read-modify-write, no system call, no
//! allocation, and the cache lines it writes are the tail's and its own slots'; every eighth post
//! also fetches the lines of eight slots that will be filled soon.
//!
//! # Words that threads share
//!
//! Positions count slots since the beginning and are kept shifted left by one, so that bit 0 is
//! free for a flag and the arithmetic wraps by itself. A position's slot is `position / 2` modulo
//! the capacity.
//!
//! | word | encoding | written by |
//! |---|---|---|
//! | `tail` | next position to reserve; bit 0 is `WAITING`: the consumer sleeps | producers: compare-and-swap; consumer: bit 0 |
//! | `cached_head` | a value that `head` had; beside `tail`, in the line a producer holds anyway | producers |
//! | `head` | next position to consume; published once per batch | consumer |
//! | `Slot::mark` | low half of a position with bit 0 set: filled for that position; any other value: not yet | the producer that reserved it |
//! | `Slot::touched` | nothing; a store to it fetches the line | producers, while the slot is free |
//!
//! A slot is free for position p when p < head + capacity; the consumer never writes slots, so a
//! filled line travels one way only. The mark of an earlier round differs in the position, the
//! mark of a fresh slot (0) in bit 0, so nothing has to be erased.
//!
//! Nearly all orders on `tail` are relaxed: whether a slot may be written is told by `head`,
//! whether it may be read by `mark`. The tail only hands out positions, each to one producer.
//!
//! # Sleeping
//!
//! The consumer goes to sleep by setting `WAITING` with a compare-and-swap that succeeds only
//! while the ring is empty ([`Consumer::try_wait`]); the next reservation clears it in the same
//! compare-and-swap that takes the position. So exactly one producer learns that it has to ring
//! ([`Reservation::commit`] returns true) and posts to a consumer that is awake do nothing at all.
//! `engine::doorbell` continues from there.
//!
//! A producer that was preempted between the clearing and the ringing delays nobody needlessly:
//! its slot is the first one after the sleep and the consumer could not pass it anyway.

use std::cell::Cell;
use std::fmt;

use crossbeam_utils::{Backoff, CachePadded};

use crate::engine::command_queue::shared::{AHEAD, STEP, Shared, Slot, Tail, WAITING, mark};
use crate::util::reserve::boxed;
use crate::util::status::Result;
use crate::util::sync::{Arc, AtomicU32, AtomicU64, Ordering, UnsafeCell};

#[cfg(all(test, loom))]
mod models;
mod shared;
#[cfg(all(test, not(loom)))]
mod tests;

/// Most slots of a ring: the marks of two rounds that follow each other differ.
const MOST_SLOTS: usize = 1 << 30;

/// Most slots that one reservation may take.
pub const MAX_RUN: usize = 8;

/// What a ring can carry: plain values, of which one stands for "nothing to do".
pub trait Entry: Copy + Send + 'static {
    /// Fills the slots of a reservation that was dropped without commit. The consumer's owner
    /// passes over it as over a command that has no effect.
    const NOTHING: Self;
}

/// The producers' end. Clones are handles to the same ring.
pub struct CommandQueue<T: Entry> {
    shared: Arc<Shared<T>>,
}

/// The consumer's end: there is one, and the thread that has it is the executor. It may move
/// between threads through a lock, which is how the role does.
pub struct Consumer<T: Entry> {
    shared: Arc<Shared<T>>,
    /// Next position to consume; `head` is the published copy.
    position: u64,
    /// Slots from `position` on that are known to be filled, without a gap.
    seen: Cell<u64>,
}

/// Slots that belong to the caller until it commits. Dropping it instead (an early return, a panic)
/// leaves [`Entry::NOTHING`] in them: positions once taken cannot be given back.
#[must_use = "dropping a reservation discards it; fill its slots and commit"]
pub struct Reservation<'a, T: Entry> {
    shared: &'a Shared<T>,
    position: u64,
    count: u32,
    /// This reservation cleared WAITING: the duty to ring the doorbell is here.
    waiting: bool,
    /// An exchange has failed before.
    contended: bool,
}

impl<T: Entry> CommandQueue<T> {
    /// A ring of `capacity` slots, a power of two and at least 8.
    ///
    /// `wake` rings the doorbell of the thread that sleeps after [`Consumer::try_wait`]. The ring
    /// calls it only where a dropped reservation leaves the duty to ring with nobody; a commit
    /// hands it to its caller, which may prefer to take the executor's role itself.
    ///
    /// Fails where there is no memory for it.
    ///
    /// # Panics
    /// When the capacity is not as said; configuration is checked before it gets here.
    pub fn new(
        capacity: usize,
        wake: impl Fn() + Send + Sync + 'static,
    ) -> Result<(CommandQueue<T>, Consumer<T>)> {
        CommandQueue::starting_at(0, capacity, Box::new(wake))
    }

    /// Like `new`, at a position that tests choose close to where the arithmetic wraps.
    fn starting_at(
        position: u64,
        capacity: usize,
        wake: Box<dyn Fn() + Send + Sync>,
    ) -> Result<(CommandQueue<T>, Consumer<T>)> {
        assert!(
            capacity.is_power_of_two() && (MAX_RUN..=MOST_SLOTS).contains(&capacity),
            "ring capacity is {capacity}, expected a power of two from {MAX_RUN} to {MOST_SLOTS}"
        );
        let slot = || Slot {
            mark: AtomicU32::new(0),
            touched: AtomicU32::new(0),
            value: UnsafeCell::new(T::NOTHING),
        };
        let shared = Arc::new(Shared {
            tail: CachePadded::new(Tail {
                tail: AtomicU64::new(position),
                cached_head: AtomicU64::new(position),
            }),
            head: CachePadded::new(AtomicU64::new(position)),
            slots: boxed("slots of a command queue", (0..capacity).map(|_| slot()))?,
            wake,
        });
        let ring = CommandQueue { shared: shared.clone() };
        Ok((ring, Consumer { shared, position, seen: Cell::new(0) }))
    }

    /// Takes `count` consecutive slots (1 to [`MAX_RUN`]), or none: `None` means full, at once.
    ///
    /// Lock-free: a compare-and-swap fails only because another thread's succeeded.
    ///
    /// # Panics
    /// When `count` is 0 or above [`MAX_RUN`].
    #[inline]
    pub fn reserve(&self, count: usize) -> Option<Reservation<'_, T>> {
        assert!((1..=MAX_RUN).contains(&count), "a reservation of {count} slots");
        let shared = &*self.shared;
        let backoff = Backoff::new();
        let mut contended = false;
        // Relaxed, here and in the exchange: see "Words that threads share".
        let mut tail = shared.tail.tail.load(Ordering::Relaxed);
        loop {
            let position = tail & !WAITING;
            if !shared.has_room(position, count) {
                return None;
            }
            let next = position.wrapping_add(STEP * count as u64);
            match shared.tail.tail.compare_exchange_weak(
                tail,
                next,
                Ordering::Relaxed,
                Ordering::Relaxed,
            ) {
                Ok(_) => {
                    shared.fetch_ahead(position, next);
                    let waiting = tail & WAITING != 0;
                    let count = count as u32;
                    return Some(Reservation { shared, position, count, waiting, contended });
                }
                // Not where the consumer lay down or got up, nor where an exchange fails for no
                // reason.
                Err(now) => contended |= (now ^ tail) & !WAITING != 0,
            }
            backoff.spin();
            // Not what the exchange has seen: during the pause others have gone on.
            tail = shared.tail.tail.load(Ordering::Relaxed);
        }
    }

    /// Whether nothing is reserved or filled. A hint: it may be outdated when it arrives.
    pub fn is_empty(&self) -> bool {
        // Relaxed: nothing is read on the strength of the answer.
        let tail = self.shared.tail.tail.load(Ordering::Relaxed) & !WAITING;
        tail == self.shared.head.load(Ordering::Relaxed)
    }

    /// Whether all that the caller knows to have been posted has been released: what the consumer
    /// did before that is seen.
    #[inline]
    pub fn is_drained(&self) -> bool {
        // Relaxed: whatever the caller knows of lies before it, and where the two are the same,
        // whichever was read first, the consumer has passed it.
        let tail = self.shared.tail.tail.load(Ordering::Relaxed) & !WAITING;
        // Acquire: pairs with the Release in Consumer::release.
        tail == self.shared.head.load(Ordering::Acquire)
    }

    /// How many slots are reserved or filled; a number of the past.
    #[inline]
    pub fn backlog(&self) -> usize {
        // Relaxed: nothing is read on the strength of the answer.
        let head = self.shared.head.load(Ordering::Relaxed);
        let tail = self.shared.tail.tail.load(Ordering::Relaxed) & !WAITING;
        (tail.wrapping_sub(head) / STEP) as usize
    }

    /// How many slots there are.
    pub fn capacity(&self) -> usize {
        self.shared.slots.len()
    }
}

impl<T: Entry> Reservation<'_, T> {
    /// How many slots this is.
    #[inline]
    pub fn count(&self) -> usize {
        self.count as usize
    }

    /// Whether another producer came in between.
    #[inline]
    pub fn is_contended(&self) -> bool {
        self.contended
    }

    /// Slot `index`, to be filled in place. It holds some value of the past: set every field.
    ///
    /// # Panics
    /// When `index` is not below the reserved count.
    #[inline]
    pub fn slot_mut(&mut self, index: usize) -> &mut T {
        assert!(index < self.count as usize, "slot {index} of {}", self.count);
        let slot = self.shared.slot(self.position.wrapping_add(STEP * index as u64));
        // SAFETY: the position is this reservation's alone until its mark is set, which consumes
        // the reservation; the consumer is done with the slot (has_room). It is always initialised:
        // the ring fills every slot with NOTHING at the beginning.
        slot.value.with_mut(|value| unsafe { &mut *value })
    }

    /// Puts `value` into slot `index`.
    #[inline]
    pub fn write(&mut self, index: usize, value: T) {
        *self.slot_mut(index) = value;
    }

    /// Hands the slots to the consumer. True: it sleeps, and this caller, as the only one, has to
    /// ring its doorbell (or to take the executor's role and, on leaving it, arm again).
    #[inline]
    #[must_use = "true obliges the caller to wake the consumer"]
    pub fn commit(self) -> bool {
        self.publish();
        let waiting = self.waiting;
        std::mem::forget(self);
        waiting
    }

    /// Sets the marks, the first slot's last: a thread that sees that one sees all slots of the
    /// reservation.
    #[inline]
    fn publish(&self) {
        for index in (1..u64::from(self.count)).rev() {
            let position = self.position.wrapping_add(STEP * index);
            // Relaxed: the consumer reads marks in order, so it has met the Release below before.
            self.shared.slot(position).mark.store(mark(position), Ordering::Relaxed);
        }
        // Release: publishes every slot and mark written above; pairs with the Acquire in
        // Consumer::see.
        self.shared.slot(self.position).mark.store(mark(self.position), Ordering::Release);
    }
}

impl<T: Entry> Drop for Reservation<'_, T> {
    fn drop(&mut self) {
        for index in 0..self.count() {
            self.write(index, T::NOTHING);
        }
        self.publish();
        if self.waiting {
            (self.shared.wake)();
        }
    }
}

impl<T: Entry> Consumer<T> {
    /// The entry `index` places behind the next one, where it and all before it are filled.
    ///
    /// `None` means "nothing yet", also when a producer has reserved the slot and was preempted
    /// before its commit. Do not spin on that: [`try_wait`](Consumer::try_wait) refuses in this
    /// state, so yield the core, or nap, and look again.
    #[inline]
    pub fn peek(&self, index: usize) -> Option<&T> {
        if self.seen.get() <= index as u64 && !self.see(index as u64) {
            return None;
        }
        let slot = self.shared.slot(self.position.wrapping_add(STEP * index as u64));
        // SAFETY: filled, as seen above, and no producer writes it before release(), which needs
        // the Consumer mutably and so ends this borrow.
        Some(slot.value.with(|value| unsafe { &*value }))
    }

    /// Looks for filled slots up to a few behind `index`: the lines of all come at a time, where
    /// entries that are executed in between would make each wait for the one before. False: `index`
    /// is none.
    #[inline]
    fn see(&self, index: u64) -> bool {
        let mut seen = self.seen.get();
        while seen < index + AHEAD {
            let position = self.position.wrapping_add(STEP * seen);
            // Acquire: pairs with the Release in publish; the values written before are visible.
            if self.shared.slot(position).mark.load(Ordering::Acquire) != mark(position) {
                break;
            }
            seen += 1;
        }
        self.seen.set(seen);
        seen > index
    }

    /// Gives the first `count` entries' slots back to the producers: one store for a whole batch.
    ///
    /// # Panics
    /// When `count` exceeds what [`peek`](Consumer::peek) has shown.
    #[inline]
    pub fn release(&mut self, count: usize) {
        let seen = self.seen.get();
        assert!(count as u64 <= seen, "release of {count} entries, {seen} were seen");
        self.seen.set(seen - count as u64);
        self.position = self.position.wrapping_add(STEP * count as u64);
        // Release: the reads of those entries are over; pairs with the Acquire of `head` in
        // has_room.
        self.shared.head.store(self.position, Ordering::Release);
    }

    /// Whether nothing is reserved or filled behind what was released.
    #[inline]
    pub fn is_empty(&self) -> bool {
        // Relaxed: only this thread moves the position, and a caller that needs certainty calls
        // try_wait.
        self.shared.tail.tail.load(Ordering::Relaxed) & !WAITING == self.position
    }

    /// How many slots are reserved or filled behind what was released.
    #[inline]
    pub fn backlog(&self) -> usize {
        // Relaxed: a number of the past by the time it is used.
        let tail = self.shared.tail.tail.load(Ordering::Relaxed) & !WAITING;
        (tail.wrapping_sub(self.position) / STEP) as usize
    }

    /// Arms the ring for a sleep: true when it is empty and the next reservation will find
    /// `WAITING` set. False: there is work, or a producer is about to commit some.
    ///
    /// The caller has taken its doorbell's ticket before and sleeps only after all its sources have
    /// answered true (see `engine::doorbell`). It may give the role away while it sleeps: a thread
    /// that leaves the role afterwards calls this again in its name, and rings where it answers
    /// false.
    pub fn try_wait(&mut self) -> bool {
        // Relaxed: what counts is the order of the changes of this one word. That the doorbell's
        // ticket is old enough follows from its own Release and Acquire.
        let armed = self.shared.tail.tail.compare_exchange(
            self.position,
            self.position | WAITING,
            Ordering::Relaxed,
            Ordering::Relaxed,
        );
        // An error with the bit set: armed before and not cleared by anybody since.
        armed.is_ok() || armed == Err(self.position | WAITING)
    }

    /// Takes [`try_wait`](Consumer::try_wait) back. False: a producer has cleared the bit already
    /// and rings, or has rung; that costs the next sleep one vain round and nothing else.
    pub fn cancel_wait(&mut self) -> bool {
        // Relaxed: as in try_wait.
        self.shared.tail.tail.fetch_and(!WAITING, Ordering::Relaxed) & WAITING != 0
    }
}

impl<T: Entry> Clone for CommandQueue<T> {
    fn clone(&self) -> CommandQueue<T> {
        CommandQueue { shared: self.shared.clone() }
    }
}

impl<T: Entry> fmt::Debug for CommandQueue<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Ring {{ capacity: {}, empty: {} }}", self.capacity(), self.is_empty())
    }
}

#[cfg(not(loom))]
const _: () = {
    assert!(size_of::<Slot<[u64; 7]>>() == 64);
    assert!(size_of::<Slot<[u64; 15]>>() == 128);
};
