//! The inbox: where the ranks of a node leave requests for one rank's agent. One queue of fixed
//! size in the receiver's control area, whatever the number of senders; many producers in many
//! processes, each of which may be killed at any moment; one consumer.
//!
//! A slot's mark tells its state for one ticket:
//!
//! ```text
//! FREE(p)  --sender of ticket p: compare-and-swap-->  CLAIMED(p, rank)  --store-->  READY(p)
//!    |                                                    |                            |
//!    +--receiver: nobody claims it-----> FREE(p + N) <----+--- its rank is dead       |
//!                                             ^------------------- receiver: consumed--+
//! ```
//!
//! A sender that dies before it claims leaves FREE(p), which the receiver may skip at any time,
//! because a living sender then fails to claim and takes another ticket. A sender that dies later
//! leaves its rank in the mark, and the receiver skips it when that rank is known to be dead. So a
//! hole never stops the queue, and no slot is written by two senders at once.

use crate::transport::{MESSAGE_WORDS, Message, Posted};
use crate::util::sync::{AtomicU64, Ordering};

#[cfg(all(test, loom))]
mod models;

const FREE: u64 = 0;
const CLAIMED: u64 = 1;
const READY: u64 = 2;
const STATE_MASK: u64 = 3;
const RANK_SHIFT: u32 = 2;
const RANK_MASK: u64 = (1 << 24) - 1;
const TICKET_SHIFT: u32 = 26;

/// Bit 0 of the tail: the receiver sleeps. The rest is the next ticket.
const WAITING: u64 = 1;

/// The mark of a slot: state (2 bits), claiming rank (24), ticket (38; wraps without harm, because
/// two tickets that share a slot differ by far less).
const fn mark(state: u64, rank: u32, ticket: u64) -> u64 {
    state | (rank as u64) << RANK_SHIFT | ticket << TICKET_SHIFT
}

/// One message and its mark; the words are atomics because another process writes them.
#[repr(C, align(128))]
#[derive(Debug)]
pub struct Slot {
    mark: AtomicU64,
    /// Kind in the low half, source in the high half.
    head: AtomicU64,
    tag: AtomicU64,
    words: [AtomicU64; MESSAGE_WORDS],
}

/// The queue's own words; the ticket line belongs to the senders.
#[repr(C, align(128))]
#[derive(Debug)]
pub struct Counters {
    tail: AtomicU64,
}

/// A view of an inbox, wherever it lies.
#[derive(Clone, Copy)]
pub struct Inbox<'a> {
    /// The counters.
    pub counters: &'a Counters,
    /// The slots: a power of two.
    pub slots: &'a [Slot],
}

/// What a look at the next slot found.
#[derive(Debug, PartialEq, Eq)]
pub enum Taken {
    /// A message.
    Message(Message),
    /// Nothing was sent.
    Nothing,
    /// A sender has a ticket but has not finished: look again soon, do not sleep.
    Unfinished,
}

impl Inbox<'_> {
    /// Makes fresh memory an empty inbox, before anyone else sees it.
    pub fn reset(&self, first: u64) {
        self.counters.tail.store(first << 1, Ordering::Relaxed);
        for ticket in (first..).take(self.slots.len()) {
            self.slot(ticket).mark.store(mark(FREE, 0, ticket), Ordering::Relaxed);
        }
    }

    fn slot(&self, ticket: u64) -> &Slot {
        &self.slots[ticket as usize & (self.slots.len() - 1)]
    }

    /// Sends. The second answer: the receiver slept, so the caller must ring its bell.
    pub fn send(&self, message: &Message) -> (Posted, bool) {
        let mut ring = false;
        loop {
            let tail = self.counters.tail.load(Ordering::Relaxed);
            let ticket = tail >> 1;
            // Relaxed: only a hint; the claim below decides.
            let seen = self.slot(ticket).mark.load(Ordering::Relaxed);
            if seen != mark(FREE, 0, ticket) {
                if self.counters.tail.load(Ordering::Relaxed) >> 1 == ticket {
                    return (Posted::Full, ring);
                }
                continue;
            }
            // AcqRel: takes over the duty that WAITING stands for; pairs with arm().
            let next = (ticket + 1) << 1;
            if self
                .counters
                .tail
                .compare_exchange_weak(tail, next, Ordering::AcqRel, Ordering::Relaxed)
                .is_err()
            {
                continue;
            }
            ring |= tail & WAITING != 0;
            if self.fill(ticket, message) {
                return (Posted::Taken, ring);
            }
        }
    }

    /// Writes the message behind the ticket; false when the receiver has skipped it.
    fn fill(&self, ticket: u64, message: &Message) -> bool {
        let slot = self.slot(ticket);
        let claimed = mark(CLAIMED, message.source, ticket);
        // Acquire: pairs with the Release of the receiver that freed the slot; our words come
        // after its reads.
        let claim = slot.mark.compare_exchange(
            mark(FREE, 0, ticket),
            claimed,
            Ordering::Acquire,
            Ordering::Relaxed,
        );
        if claim.is_err() {
            return false;
        }
        slot.head
            .store(u64::from(message.kind) | u64::from(message.source) << 32, Ordering::Relaxed);
        slot.tag.store(message.tag, Ordering::Relaxed);
        for (place, word) in slot.words.iter().zip(message.words) {
            place.store(word, Ordering::Relaxed);
        }
        // Release: publishes the words; pairs with the Acquire in take().
        slot.mark.store(mark(READY, 0, ticket), Ordering::Release);
        true
    }

    /// Takes the message of ticket `next`, which the receiver then counts up. `dead` says whether a
    /// rank is known to be dead; `skip_unclaimed` allows to pass a ticket that nobody has claimed.
    pub fn take(&self, next: &mut u64, dead: impl Fn(u32) -> bool, skip_unclaimed: bool) -> Taken {
        // A peer that has scribbled over the tail costs a round of the inbox at a time.
        for _ in 0..self.slots.len() {
            let slot = self.slot(*next);
            // Acquire: pairs with the Release in fill().
            let seen = slot.mark.load(Ordering::Acquire);
            let rank = (seen >> RANK_SHIFT & RANK_MASK) as u32;
            let freed = mark(FREE, 0, next.wrapping_add(self.slots.len() as u64));
            match seen & STATE_MASK {
                READY => {
                    let message = self.read(slot);
                    // Release: our reads come before the next sender's words.
                    slot.mark.store(freed, Ordering::Release);
                    *next += 1;
                    return Taken::Message(message);
                }
                CLAIMED if !dead(rank) => return Taken::Unfinished,
                CLAIMED => slot.mark.store(freed, Ordering::Release),
                _ if self.counters.tail.load(Ordering::Acquire) >> 1 == *next => {
                    return Taken::Nothing;
                }
                _ if !skip_unclaimed => return Taken::Unfinished,
                _ => {
                    let skip = slot.mark.compare_exchange(
                        seen,
                        freed,
                        Ordering::AcqRel,
                        Ordering::Relaxed,
                    );
                    if skip.is_err() {
                        continue;
                    }
                }
            }
            *next += 1;
        }
        Taken::Unfinished
    }

    fn read(&self, slot: &Slot) -> Message {
        let head = slot.head.load(Ordering::Relaxed);
        let mut words = [0; MESSAGE_WORDS];
        for (word, place) in words.iter_mut().zip(&slot.words) {
            *word = place.load(Ordering::Relaxed);
        }
        let tag = slot.tag.load(Ordering::Relaxed);
        Message { kind: head as u32, source: (head >> 32) as u32, tag, words }
    }

    /// Announces that the receiver will sleep; false when something was sent that it has not taken.
    pub fn arm(&self, next: u64) -> bool {
        let empty = next << 1;
        // AcqRel: the newest tail decides, and who changes it after us sees WAITING.
        match self.counters.tail.compare_exchange(
            empty,
            empty | WAITING,
            Ordering::AcqRel,
            Ordering::Acquire,
        ) {
            Ok(_) => true,
            Err(tail) => tail == empty | WAITING,
        }
    }

    /// The receiver is awake again: nobody needs to ring.
    pub fn disarm(&self) {
        if self.counters.tail.load(Ordering::Relaxed) & WAITING != 0 {
            self.counters.tail.fetch_and(!WAITING, Ordering::AcqRel);
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_scribbled_tail_holds_the_receiver_for_one_round_at_a_time() {
        let counters = Counters { tail: AtomicU64::new(0) };
        // SAFETY: made of atomics.
        let slots: Vec<Slot> = (0..8).map(|_| unsafe { std::mem::zeroed() }).collect();
        let inbox = Inbox { counters: &counters, slots: &slots };
        inbox.reset(0);
        counters.tail.store(1 << 40, Ordering::Relaxed);
        let mut next = 0;
        assert_eq!(inbox.take(&mut next, |_| false, true), Taken::Unfinished);
        assert_eq!(next, 8);
    }
}
