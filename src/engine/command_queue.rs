//! The command queue: a bounded ring that any number of threads fill without a lock and one
//! consumer, the holder of the lane's role, empties.
//!
//! A post is *reserve, fill, commit*. Its budget: one read-modify-write, no system call, no
//! allocation. It writes to the cache lines of the tail and of its own slots. Every eighth post
//! also fetches the lines of eight slots that will be filled soon.
//!
//! # Words that threads share
//!
//! Positions count slots since the beginning and are kept shifted left by one, so that bit 0 is
//! free for a flag and the arithmetic wraps by itself. A position's slot is `position / 2` modulo
//! the capacity.
//!
//! - `tail`: the next position to reserve. Bit 0 is `WAITING`: the consumer sleeps. Producers
//!   change the word by compare-and-swap. The consumer changes bit 0 only.
//! - `cached_head`: a value that `head` had. It lies beside `tail`, in the line that a producer
//!   holds anyway. Producers write `cached_head`.
//! - `head`: the next position to consume. The consumer writes it, once for each batch.
//! - `Slot::mark`: the low half of a position, with bit 0 set, if the slot is filled for that
//!   position. With any other value the slot is not filled yet. The producer that reserved the slot
//!   writes it.
//! - `Slot::touched`: its value has no meaning. A producer stores to it while the slot is free, to
//!   fetch the line.
//!
//! A slot is free for position p when p < head + capacity. The consumer never writes to slots, so a
//! filled line moves in one direction only. It need not erase marks: the mark of an earlier round
//! differs in the position, and that of an unused slot (0) in bit 0.
//!
//! The orders on `tail` are relaxed, since it only gives each position to one producer. `head`
//! decides whether a producer may write to a slot, `mark` whether the consumer may read it, and
//! these two carry the Release and Acquire.
//!
//! # Sleeping
//!
//! The consumer goes to sleep by setting `WAITING` with a compare-and-swap that succeeds only while
//! the ring is empty ([`Consumer::try_wait`]); the next reservation clears it in the same
//! compare-and-swap that takes the position. So exactly one producer learns that it has to ring
//! ([`Reservation::commit`] returns true), and a post to a consumer that is awake wakes no thread.
//! `engine::doorbell` continues from there.
//!
//! A producer that is preempted before its commit delays the entries behind its own, whether or not
//! the consumer sleeps. A producer that is preempted between its commit and its ring delays them,
//! too: no other producer rings. Then a thread that takes the lane's role can still empty the
//! queue.

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

/// Most slots of a ring. A mark has 32 bits of a position; with more slots, a slot's marks in two
/// successive rounds would be equal.
const MOST_SLOTS: usize = 1 << 30;

/// Most slots that one reservation may take.
pub const MAX_RUN: usize = 8;

/// A value that a ring can carry: plain data, of which one value stands for "nothing to do".
pub trait Entry: Copy + Send + 'static {
    /// The value of the slots of a reservation that was dropped without commit. The executor skips
    /// it.
    const NOTHING: Self;
}

/// The producers' end. Clones are handles to the same ring.
pub struct CommandQueue<T: Entry> {
    shared: Arc<Shared<T>>,
}

/// The consumer's end, of which there is one. The holder of the lane's role uses it. It may pass
/// from thread to thread under any lock that orders its holders, as the role does.
pub struct Consumer<T: Entry> {
    shared: Arc<Shared<T>>,
    /// Next position to consume; `head` is the published copy.
    position: u64,
    /// Slots from `position` on that are known to be filled, without a gap.
    seen: Cell<u64>,
}

/// Slots that belong to the caller until it commits. A drop without commit (an early return, a
/// panic) leaves [`Entry::NOTHING`] in them, since a position that was taken cannot be given back.
#[must_use = "dropping a reservation discards it; fill its slots and commit"]
pub struct Reservation<'a, T: Entry> {
    shared: &'a Shared<T>,
    position: u64,
    count: u32,
    /// This reservation has cleared WAITING, so its thread must ring the doorbell.
    waiting: bool,
    /// Another producer has taken a position between this one's load of `tail` and its exchange.
    contended: bool,
}

impl<T: Entry> CommandQueue<T> {
    /// A ring of `capacity` slots, a power of two and at least 8.
    ///
    /// `wake` rings the doorbell of the thread that sleeps after [`Consumer::try_wait`]. The queue
    /// calls it only when a reservation that must ring is dropped. A commit returns the duty to its
    /// caller, which may take the lane's role instead of ringing.
    ///
    /// Fails if there is no memory for the slots.
    ///
    /// # Panics
    /// If the capacity is no power of two or out of range; the configuration was checked before.
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

    /// Takes `count` consecutive slots (1 to [`MAX_RUN`]), or none. `None`: the ring does not have
    /// that many free slots. Never waits.
    ///
    /// Lock-free: if another thread makes the compare-and-swap fail, that thread's has succeeded.
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
                // If only WAITING has changed, or if the exchange has failed spuriously, there is
                // no other producer.
                Err(now) => contended |= (now ^ tail) & !WAITING != 0,
            }
            backoff.spin();
            // Loaded again: other producers may have changed it during the pause.
            tail = shared.tail.tail.load(Ordering::Relaxed);
        }
    }

    /// Whether no slot is reserved or filled. A hint: other threads may change it at once.
    pub fn is_empty(&self) -> bool {
        // Relaxed: a hint, on which no further load relies.
        let tail = self.shared.tail.tail.load(Ordering::Relaxed) & !WAITING;
        tail == self.shared.head.load(Ordering::Relaxed)
    }

    /// Whether the consumer has released all slots that the caller knows to be posted. If so, the
    /// caller sees what the consumer did before it released them.
    #[inline]
    pub fn is_drained(&self) -> bool {
        // Relaxed: the posts that the caller knows of lie before any tail that it can read. If head
        // equals that tail, the consumer has released them, whichever word was read first.
        let tail = self.shared.tail.tail.load(Ordering::Relaxed) & !WAITING;
        // Acquire: pairs with the Release in Consumer::release.
        tail == self.shared.head.load(Ordering::Acquire)
    }

    /// How many slots are reserved or filled. A hint, like is_empty().
    #[inline]
    pub fn backlog(&self) -> usize {
        // Relaxed: a hint, on which no further load relies.
        let head = self.shared.head.load(Ordering::Relaxed);
        let tail = self.shared.tail.tail.load(Ordering::Relaxed) & !WAITING;
        (tail.wrapping_sub(head) / STEP) as usize
    }

    /// The number of slots.
    pub fn capacity(&self) -> usize {
        self.shared.slots.len()
    }
}

impl<T: Entry> Reservation<'_, T> {
    /// The number of reserved slots.
    #[inline]
    pub fn count(&self) -> usize {
        self.count as usize
    }

    /// Whether another producer has reserved at the same moment.
    #[inline]
    pub fn is_contended(&self) -> bool {
        self.contended
    }

    /// Slot `index`, to be filled in place. It holds an old value: set every field.
    ///
    /// # Panics
    /// When `index` is not below the reserved count.
    #[inline]
    pub fn slot_mut(&mut self, index: usize) -> &mut T {
        assert!(index < self.count as usize, "slot {index} of {}", self.count);
        let slot = self.shared.slot(self.position.wrapping_add(STEP * index as u64));
        // SAFETY: the position belongs to this reservation alone until the mark is set, which
        // consumes the reservation. The consumer is done with the slot (has_room). It is always
        // initialised: the ring fills every slot with NOTHING at the beginning.
        slot.value.with_mut(|value| unsafe { &mut *value })
    }

    /// Puts `value` into slot `index`.
    #[inline]
    pub fn write(&mut self, index: usize, value: T) {
        *self.slot_mut(index) = value;
    }

    /// Hands the slots to the consumer. True: the consumer sleeps, and the caller is the only
    /// thread that must ring its doorbell. Instead the caller may take the lane's role, and arm the
    /// queue again when it gives the role up.
    #[inline]
    #[must_use = "true obliges the caller to wake the consumer"]
    pub fn commit(self) -> bool {
        self.publish();
        let waiting = self.waiting;
        std::mem::forget(self);
        waiting
    }

    /// Sets the marks, that of the first slot last. A consumer that sees the first mark then sees
    /// all slots of the reservation.
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
    /// The entry `index` slots behind the next one, if that slot and all before it are filled.
    ///
    /// `None` also if a producer has reserved the slot and was preempted before its commit. In this
    /// state [`try_wait`](Consumer::try_wait) refuses; do not spin, but yield the core or nap.
    #[inline]
    pub fn peek(&self, index: usize) -> Option<&T> {
        if self.seen.get() <= index as u64 && !self.see(index as u64) {
            return None;
        }
        let slot = self.shared.slot(self.position.wrapping_add(STEP * index as u64));
        // SAFETY: filled, as seen above, and no producer writes to it before release(), which
        // borrows the Consumer mutably and so ends this borrow.
        Some(slot.value.with(|value| unsafe { &*value }))
    }

    /// Reads the marks up to AHEAD slots from `index` on, so that their lines are fetched in
    /// parallel. If the consumer executed each entry before it read the next mark, no two fetches
    /// would overlap. False: slot `index` is not filled.
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

    /// Gives the slots of the first `count` entries back to the producers, by one store.
    ///
    /// # Panics
    /// If [`peek`](Consumer::peek) has shown fewer entries.
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

    /// Whether no slot is reserved or filled that was not released.
    #[inline]
    pub fn is_empty(&self) -> bool {
        // Relaxed: only this thread moves the position, and a caller that needs certainty calls
        // try_wait.
        self.shared.tail.tail.load(Ordering::Relaxed) & !WAITING == self.position
    }

    /// How many slots are reserved or filled and were not released.
    #[inline]
    pub fn backlog(&self) -> usize {
        // Relaxed: a hint, on which no further load relies.
        let tail = self.shared.tail.tail.load(Ordering::Relaxed) & !WAITING;
        (tail.wrapping_sub(self.position) / STEP) as usize
    }

    /// Arms the queue for a sleep. True: the queue is empty, and the next reservation will find
    /// `WAITING` set. False: an entry is filled, or a producer has reserved a slot.
    ///
    /// The caller has read its doorbell's ticket before, and sleeps only if all its sources have
    /// returned true (see `engine::doorbell`). It may give the role up while it sleeps: each later
    /// holder calls this again before it gives the role up, and rings if the result is false.
    pub fn try_wait(&mut self) -> bool {
        // Relaxed: only the order of this word's changes matters. The doorbell's own Release and
        // Acquire ensure that the ticket is old enough.
        let armed = self.shared.tail.tail.compare_exchange(
            self.position,
            self.position | WAITING,
            Ordering::Relaxed,
            Ordering::Relaxed,
        );
        // If the exchange fails with the bit set, the queue was armed before, and no producer has
        // cleared the bit.
        armed.is_ok() || armed == Err(self.position | WAITING)
    }

    /// Cancels [`try_wait`](Consumer::try_wait). False: the bit was not set, or a producer has
    /// cleared it and rings, or has rung. After such a ring the consumer's next sleep may end
    /// without work.
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
        write!(f, "CommandQueue {{ capacity: {}, empty: {} }}", self.capacity(), self.is_empty())
    }
}

#[cfg(not(loom))]
const _: () = {
    assert!(size_of::<Slot<[u64; 7]>>() == 64);
    assert!(size_of::<Slot<[u64; 15]>>() == 128);
};
