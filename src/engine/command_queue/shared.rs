//! The words that producers and the consumer of a command queue share, and the functions that use
//! only these. The head of `engine::command_queue` defines the words.

use crate::engine::command_queue::Entry;
use crate::util::sync::{AtomicU32, AtomicU64, Ordering, UnsafeCell};
use crossbeam_utils::CachePadded;

/// Bit 0 of `tail`: the consumer sleeps, or is about to, and wants the doorbell rung.
pub(super) const WAITING: u64 = 1;

/// Bit 0 of `Slot::mark`: filled, for the position in the other bits.
const FILLED: u32 = 1;

/// The mark of the slot of `position` when it is filled. The low half of the position is enough:
/// the slot's mark is either this one or that of the round before.
#[inline]
pub(super) fn mark(position: u64) -> u32 {
    position as u32 | FILLED
}

/// The distance of two neighbouring positions.
pub(super) const STEP: u64 = 2;

/// Slots whose lines a producer fetches at a time before they are filled, or whose marks the
/// consumer reads at a time.
pub(super) const AHEAD: u64 = 8;

/// One slot, aligned to 64 bytes: a value of up to 56 bytes is handed over in one cache line, a
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

// SAFETY: only the producer that took a slot's position by compare-and-swap writes its value, until
// it sets the mark; only the one Consumer reads it, from then until it moves head. Both hand-overs
// are Release/Acquire pairs. T must be Send, because values move between threads.
unsafe impl<T: Send> Sync for Shared<T> {}

impl<T: Entry> Shared<T> {
    #[inline]
    pub(super) fn slot(&self, position: u64) -> &Slot<T> {
        let mask = self.slots.len() - 1;
        // SAFETY: the length is a power of two (asserted where the ring is made), so the masked
        // index is below it.
        unsafe { self.slots.get_unchecked((position / STEP) as usize & mask) }
    }

    /// Fetches the lines of slots that will be filled soon, by stores whose value has no meaning.
    /// Without them each post stores to a line that the consumer's core holds, and the next post's
    /// compare-and-swap waits for that store. Stores to several lines at once overlap.
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
        // Relaxed: an outdated value does no harm. The check only avoids stores to slots that the
        // consumer still reads, since each store would take the line away from it.
        let head = self.tail.cached_head.load(Ordering::Relaxed);
        let used = first.wrapping_sub(head) as i64;
        // Negative: this producer was preempted while others filled the whole queue once, and they
        // fill these slots now.
        if used < 0 || used + (STEP * AHEAD) as i64 > (STEP as usize * self.slots.len()) as i64 {
            return;
        }
        for at in 0..AHEAD {
            // Relaxed: no thread reads it.
            self.slot(first.wrapping_add(STEP * at)).touched.store(0, Ordering::Relaxed);
        }
    }

    /// Whether `count` slots from `position` on are free.
    #[inline]
    pub(super) fn has_room(&self, position: u64, count: usize) -> bool {
        let room = |head: u64| {
            // Negative if `position` is an old tail and the consumer is past it. That does not mean
            // "full": the exchange will fail, and the caller loads the new tail.
            let used = position.wrapping_sub(head) as i64;
            used + (STEP as i64 * count as i64) <= STEP as i64 * self.slots.len() as i64
        };
        // Acquire: pairs with the Release below, and so with the consumer's before that.
        let cached = self.tail.cached_head.load(Ordering::Acquire);
        if room(cached) {
            return true;
        }
        // Acquire: pairs with the Release in Consumer::release, so that the consumer has finished
        // reading the slots before they are written again.
        let head = self.head.load(Ordering::Acquire);
        if head == cached {
            // Full. No store: threads that retry must not take the line from those that post.
            return false;
        }
        // Release: a producer that reads only the copy is ordered behind the consumer, too. A
        // thread with an older head may overwrite a newer copy; then the copy says "full" too
        // early, and the next producer that sees this loads head again.
        self.tail.cached_head.store(head, Ordering::Release);
        room(head)
    }
}
