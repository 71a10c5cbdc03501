//! What producers and the consumer of a ring share: its words, and what follows from them alone.
//! The head of `ring` says what they mean.

use crate::engine::command_queue::Entry;
use crate::util::sync::{AtomicU32, AtomicU64, Ordering, UnsafeCell};
use crossbeam_utils::CachePadded;

/// Bit 0 of `tail`: the consumer sleeps, or is about to, and wants the doorbell rung.
pub(super) const WAITING: u64 = 1;

/// Bit 0 of `Slot::mark`: filled, for the position in the other bits.
const FILLED: u32 = 1;

/// What the slot of `position` holds when it is filled. Half of the position is enough: the slot
/// can only hold this mark or that of the round before.
#[inline]
pub(super) fn mark(position: u64) -> u32 {
    position as u32 | FILLED
}

/// What one slot adds to a position.
pub(super) const STEP: u64 = 2;

/// Slots whose lines a producer fetches at a time, before they are filled.
pub(super) const AHEAD: u64 = 8;

/// One element. 64-byte alignment: a value of up to 56 bytes is handed over in one cache line, a
/// value of up to 120 bytes in two.
#[repr(C, align(64))]
pub(super) struct Slot<T> {
    pub(super) mark: AtomicU32,
    pub(super) touched: AtomicU32,
    pub(super) value: UnsafeCell<T>,
}

/// The two words that producers touch on every post, in one cache line.
pub(super) struct Tail {
    pub(super) tail: AtomicU64,
    pub(super) cached_head: AtomicU64,
}

pub(super) struct Shared<T> {
    pub(super) tail: CachePadded<Tail>,
    pub(super) head: CachePadded<AtomicU64>,
    pub(super) slots: Box<[Slot<T>]>,
    pub(super) wake: Box<dyn Fn() + Send + Sync>,
}

// SAFETY: a slot's value is written only by the producer that took its position by compare-and-swap
// and has not set its mark yet, and read only by the one Consumer between mark and head. Both
// hand-overs are Release/Acquire pairs. T is Send because values move between threads so.
unsafe impl<T: Send> Sync for Shared<T> {}

impl<T: Entry> Shared<T> {
    #[inline]
    pub(super) fn slot(&self, position: u64) -> &Slot<T> {
        let mask = self.slots.len() - 1;
        // SAFETY: the length is a power of two (asserted where the ring is made), so the masked
        // index is below it.
        unsafe { self.slots.get_unchecked((position / STEP) as usize & mask) }
    }

    /// Fetches the lines of slots that will be filled soon. The next post's compare-and-swap waits
    /// until the stores of this one are done, that is, until the consumer's core has given the line
    /// up; so the lines of several slots are asked for at once, by stores that mean nothing, which
    /// overlap.
    #[inline]
    pub(super) fn fetch_ahead(&self, position: u64, next: u64) {
        let group = |position: u64| position / STEP / AHEAD;
        if group(position) != group(next) && self.slots.len() as u64 >= 4 * AHEAD {
            self.touch(group(next) + 1);
        }
    }

    #[inline(never)]
    pub(super) fn touch(&self, group: u64) {
        let first = group.wrapping_mul(AHEAD * STEP);
        // Relaxed: a slot that is not free for these positions is left to the consumer, which reads
        // it.
        let head = self.tail.cached_head.load(Ordering::Relaxed);
        let used = first.wrapping_sub(head) as i64;
        // Negative: this producer was preempted for a round, and others fill those slots.
        if used < 0 || used + (STEP * AHEAD) as i64 > (STEP as usize * self.slots.len()) as i64 {
            return;
        }
        for at in 0..AHEAD {
            // Relaxed: nobody reads it.
            self.slot(first.wrapping_add(STEP * at)).touched.store(0, Ordering::Relaxed);
        }
    }

    /// Whether `count` slots from `position` on are free.
    #[inline]
    pub(super) fn has_room(&self, position: u64, count: usize) -> bool {
        let room = |head: u64| {
            // Negative when `position` is an old tail and the consumer has passed it meanwhile: the
            // exchange is going to fail and bring a new one, so that is not "full".
            let used = position.wrapping_sub(head) as i64;
            used + (STEP as i64 * count as i64) <= STEP as i64 * self.slots.len() as i64
        };
        // Acquire: pairs with the Release below, and through it with the consumer's.
        let cached = self.tail.cached_head.load(Ordering::Acquire);
        if room(cached) {
            return true;
        }
        // Acquire: pairs with the Release in Consumer::release, so that the consumer has finished
        // reading the slots before they are written again.
        let head = self.head.load(Ordering::Acquire);
        if head == cached {
            // Full, and nothing is written: retrying threads leave the line to those that post.
            return false;
        }
        // Release: passes the above on to producers that read only the copy. A thread with an older
        // head may overwrite a newer one; the copy then only says "full" too early and is renewed.
        self.tail.cached_head.store(head, Ordering::Release);
        room(head)
    }
}
