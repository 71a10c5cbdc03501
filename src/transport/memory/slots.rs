//! A share: a ring of message slots with many senders and one receiver. It consists of two
//! counters, SendCNT and RecvCNT, N slots, and a claim (a word) for each slot; these may lie in the
//! memory of different ranks. The senders are threads of any processes, each of which may be killed
//! at any moment.
//!
//! Messages have tickets, in order. Ticket `t` belongs to slot `t mod N`, and a sender may take it
//! while `t < RecvCNT + N`. SendCNT is the ticket with which senders begin to search; RecvCNT is
//! the first ticket whose slot the receiver has not given back. A sender
//!
//! 1. takes a ticket by a compare-and-swap of the slot's claim, from (t - N, any rank) to (t, own
//!    rank). If this fails, it tries t + 1. So the claims say which tickets are taken, and by whom;
//! 2. stores t + 1 to SendCNT, so that the next sender need not search all taken claims. This is a
//!    store, not an addition: a late one sets SendCNT back, and the next sender searches from
//!    there;
//! 3. writes the slot, and publishes it by a store of the ticket to the slot's mark.
//!
//! So senders take tickets in order and by one atomic operation each, and each taken ticket names
//! its sender, even if the sender is killed.
//!
//! The receiver reads the mark of the next ticket's slot, so one message moves one cache line. It
//! writes to no slot: it gives slots back by RecvCNT, many at a time. It reads the claims only
//! after it has found no message for a while, and acts only if the next ticket or a later one is
//! claimed:
//!
//! - The claim names the next ticket and a dead rank: nobody will write the slot. The receiver
//!   skips the ticket.
//! - The next ticket is not claimed, but a later one is: SendCNT was set to a wrong value. After a
//!   moment the receiver claims the ticket itself, and senders that try it go on to the next.
//! - The claim names the next ticket and a living rank: the receiver waits. If messages behind it
//!   are ready, it sets the ticket aside until its sender publishes it
//!   (`message_receiver::asides`).
//!
//! The counters wrap around. They begin shortly before that, so that every program tests it.

use crate::util::sync::{AtomicU64, Ordering, UnsafeCell};

mod near;

#[cfg(all(test, loom))]
mod models;

/// The first value of every counter: 1000 before 2^64; the lower halves are 1000 before 2^32.
pub const FIRST: u64 = 0_u64.wrapping_sub(1000);

/// Words of a slot's body.
pub const BODY_WORDS: usize = 14;

/// Number of slots whose cache lines a sender fetches at a time.
const AHEAD: u64 = 8;

/// A claim has the rank in the lower 24 bits and the ticket's lower 40 bits above. That is enough:
/// two tickets of one slot that a thread may confuse differ by N.
const RANK_BITS: u32 = 24;
/// The rank in the receiver's own claims, by which it passes a ticket over.
const PASSED: u64 = (1 << RANK_BITS) - 1;

const fn claim(ticket: u64, rank: u64) -> u64 {
    ticket << RANK_BITS | rank
}

/// The mark of a ticket's slot after publication. Never 0, which fresh memory holds.
pub const fn mark(ticket: u64) -> u64 {
    ticket << 1 | 1
}

/// The mark of the next ticket.
pub const fn next_mark(mark: u64) -> u64 {
    mark.wrapping_add(2)
}

/// The slot of one message.
#[repr(C, align(128))]
pub struct Slot {
    mark: AtomicU64,
    /// Senders store here to get the cache line; nobody reads it.
    touched: AtomicU64,
    body: UnsafeCell<[u64; BODY_WORDS]>,
}

impl Slot {
    /// The body. The sender writes it between claim and publication; the receiver reads it between
    /// publication and give_back().
    #[inline(always)]
    pub fn body(&self) -> &UnsafeCell<[u64; BODY_WORDS]> {
        &self.body
    }

    /// Hands this slot, into which the caller has written the message of `ticket`, to the receiver.
    #[inline(always)]
    pub fn publish(&self, ticket: u64) {
        // Release: publishes the body; pairs with holds().
        self.mark.store(mark(ticket), Ordering::Release);
    }

    /// Whether the slot holds the message with this mark.
    #[inline(always)]
    pub fn holds(&self, awaited: u64) -> bool {
        // Acquire: pairs with publish().
        self.mark.load(Ordering::Acquire) == awaited
    }

    /// A slot as in fresh memory.
    #[cfg(test)]
    pub fn fresh() -> Slot {
        Slot {
            mark: AtomicU64::new(0),
            touched: AtomicU64::new(0),
            body: UnsafeCell::new([0; BODY_WORDS]),
        }
    }
}

/// A share, as one process has it mapped.
#[derive(Clone, Copy)]
pub struct SlotShare<'a> {
    /// SendCNT.
    pub send: &'a AtomicU64,
    /// RecvCNT.
    pub recv: &'a AtomicU64,
    /// The number of messages that the receiver has set aside and not taken.
    pub asides: &'a AtomicU64,
    /// One for each slot.
    pub claims: &'a [AtomicU64],
    /// Their number is a power of two.
    pub slots: &'a [Slot],
}

/// The result of taking a ticket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Taken {
    /// The caller has this ticket, and must write and publish its slot.
    Ticket(u64),
    /// There is no credit: all tickets that have slots are taken.
    Full,
}

/// The result of a claim.
#[derive(PartialEq)]
enum Claim {
    Done,
    /// Another sender's compare-and-swap came first.
    Lost,
    /// The ticket was taken before, or the receiver has passed it over.
    Anothers,
}

/// Counts what senders do in order to get a ticket.
pub trait Tally {
    /// The sender has read RecvCNT.
    fn read_credit(&self);
    /// The sender's compare-and-swap has failed.
    fn lost(&self);
}

impl<'a> SlotShare<'a> {
    /// Makes an empty share of fresh words, before other threads see them.
    pub fn reset(&self) {
        self.send.store(FIRST, Ordering::Relaxed);
        self.recv.store(FIRST, Ordering::Relaxed);
        let before = FIRST.wrapping_sub(self.claims.len() as u64);
        for at in 0..self.claims.len() as u64 {
            let ticket = before.wrapping_add(at);
            self.claim_of(ticket).store(claim(ticket, PASSED), Ordering::Relaxed);
        }
    }

    #[inline(always)]
    fn claim_of(&self, ticket: u64) -> &'a AtomicU64 {
        debug_assert!(self.claims.len() == self.slots.len());
        // SAFETY: index() is below the number of slots, and there are as many claims.
        unsafe { self.claims.get_unchecked(self.index(ticket)) }
    }

    /// The slot of a ticket.
    #[inline(always)]
    pub fn slot(&self, ticket: u64) -> &'a Slot {
        debug_assert!(self.slots.len().is_power_of_two());
        // SAFETY: index() is below the length, which is a power of two.
        unsafe { self.slots.get_unchecked(self.index(ticket)) }
    }

    /// The slot of the ticket with this mark.
    #[inline(always)]
    pub fn slot_marked(&self, mark: u64) -> &'a Slot {
        self.slot(mark >> 1)
    }

    /// The index of a ticket's slot and claim.
    #[inline(always)]
    pub fn index(&self, ticket: u64) -> usize {
        ticket as usize & (self.slots.len() - 1)
    }

    /// How often the slots were used before a ticket, modulo 2^63 divided by their number.
    #[inline(always)]
    pub fn round(&self, ticket: u64) -> u64 {
        ticket >> self.slots.len().trailing_zeros()
    }

    /// Whether a sender may take a ticket: RecvCNT <= ticket < RecvCNT + N, where `taken` is
    /// RecvCNT. A ticket may be below RecvCNT, since SendCNT may be old.
    #[inline(always)]
    fn has_slot(&self, ticket: u64, taken: u64) -> bool {
        ticket.wrapping_sub(taken) < self.slots.len() as u64
    }

    /// Whether a sender could take a ticket now. A hint.
    pub fn has_room(&self) -> bool {
        let taken = self.recv.load(Ordering::Acquire);
        self.send.load(Ordering::Relaxed).wrapping_sub(taken) != self.slots.len() as u64
    }

    /// Takes a ticket for a rank. `cached`: the value of RecvCNT that this process has last read.
    #[inline(always)]
    pub fn take(&self, rank: u32, cached: &AtomicU64, tally: &impl Tally) -> Taken {
        // Relaxed, here and below: SendCNT is a hint. The claim and the mark hand the slot over.
        let begin = self.send.load(Ordering::Relaxed);
        let mut ticket = begin;
        loop {
            // Acquire: pairs with the Release in look(): the receiver has read the slot's last
            // message before this sender writes the next.
            if !self.has_slot(ticket, cached.load(Ordering::Acquire)) {
                tally.read_credit();
                match self.look(begin, ticket, cached) {
                    Some(better) => ticket = better,
                    None => return Taken::Full,
                }
            }
            match self.claim(ticket, rank) {
                Claim::Done => {
                    self.send.store(ticket.wrapping_add(1), Ordering::Relaxed);
                    return Taken::Ticket(ticket);
                }
                Claim::Lost => tally.lost(),
                Claim::Anothers => {}
            }
            ticket = ticket.wrapping_add(1);
        }
    }

    /// Tries the ticket of SendCNT only, with the cached RecvCNT. Returns the ticket and its slot.
    /// None: nothing has changed, and take() may still find a ticket.
    #[inline(always)]
    pub fn take_at_once(&self, rank: u32, cached: &AtomicU64) -> Option<(u64, &'a Slot)> {
        let ticket = self.send.load(Ordering::Relaxed);
        // Acquire: as in take().
        if !self.has_slot(ticket, cached.load(Ordering::Acquire)) {
            return None;
        }
        let index = self.index(ticket);
        if self.claim_at(index, ticket, rank) != Claim::Done {
            return None;
        }
        self.send.store(ticket.wrapping_add(1), Ordering::Relaxed);
        // SAFETY: as in slot().
        Some((ticket, unsafe { self.slots.get_unchecked(index) }))
    }

    /// Reads RecvCNT, since by its cached value a ticket has no slot. Returns the ticket to try
    /// next; None: all tickets that have slots are taken.
    #[inline(never)]
    fn look(&self, begin: u64, ticket: u64, cached: &AtomicU64) -> Option<u64> {
        // Acquire: pairs with give_back().
        let taken = self.recv.load(Ordering::Acquire);
        cached.store(taken, Ordering::Release);
        if self.has_slot(ticket, taken) {
            return Some(ticket);
        }
        if ticket.wrapping_sub(taken) != self.slots.len() as u64 {
            // The ticket is below RecvCNT, or further ahead than any sender can be: SendCNT was
            // old or wrong. RecvCNT is the lowest ticket that may be free.
            return Some(taken);
        }
        if ticket != begin {
            // So that has_room() of other senders sees that the share is full.
            self.send.store(ticket, Ordering::Relaxed);
        }
        None
    }

    /// Whether `seen`, read from the claim of a ticket, is still that of the slot's ticket before.
    /// Else it is the ticket's own, or, for a sender with an old SendCNT, that of a later ticket.
    #[inline(always)]
    fn is_free(&self, ticket: u64, seen: u64) -> bool {
        let before = ticket.wrapping_sub(self.slots.len() as u64);
        seen >> RANK_BITS == claim(before, 0) >> RANK_BITS
    }

    #[inline(always)]
    fn claim(&self, ticket: u64, rank: u32) -> Claim {
        self.claim_at(self.index(ticket), ticket, rank)
    }

    /// claim() with the ticket's index.
    #[inline(always)]
    fn claim_at(&self, index: usize, ticket: u64, rank: u32) -> Claim {
        debug_assert!(index == self.index(ticket) && self.claims.len() == self.slots.len());
        // SAFETY: the index is below the number of slots, and there are as many claims.
        let place = unsafe { self.claims.get_unchecked(index) };
        let seen = place.load(Ordering::Relaxed);
        let ours = claim(ticket, rank.into());
        // is_free(), with fewer instructions.
        let before = ours.wrapping_sub((self.slots.len() as u64) << RANK_BITS);
        if (seen ^ before) >> RANK_BITS != 0 {
            return Claim::Anothers;
        }
        // Acquire and Release: the later of two claims on a slot sees what came before the earlier.
        match place.compare_exchange(seen, ours, Ordering::AcqRel, Ordering::Relaxed) {
            Ok(_) => Claim::Done,
            Err(_) => Claim::Lost,
        }
    }

    /// Fetches the cache lines of slots that senders will write soon. A sender's next atomic
    /// operation waits until its stores to the last slot are complete, and for that the receiver's
    /// core must hand over the line. So the sender requests the lines of several free slots at
    /// once, by stores to `touched`, which overlap. (A prefetch for writing does not help, see
    /// decision 0006.)
    #[inline(always)]
    pub fn fetch_ahead(&self, ticket: u64, cached: &AtomicU64) {
        if self.fetches_ahead(ticket) && self.slots.len() as u64 >= 4 * AHEAD {
            self.touch(ticket, cached.load(Ordering::Relaxed));
        }
    }

    /// Whether fetch_ahead() after this ticket fetches lines, if the share is large enough.
    #[inline(always)]
    pub fn fetches_ahead(&self, ticket: u64) -> bool {
        ticket.is_multiple_of(AHEAD)
    }

    #[inline(never)]
    fn touch(&self, ticket: u64, taken: u64) {
        let touch = |slot: &Slot| slot.touched.store(0, Ordering::Relaxed);
        // How far ahead of this ticket there are free slots.
        let free = (self.slots.len() as u64).wrapping_sub(ticket.wrapping_sub(taken));
        // The ticket is a multiple of AHEAD, so the slots lie one behind the other.
        let rest = self.slots.get(self.index(ticket.wrapping_add(AHEAD))..).unwrap_or_default();
        match rest.first_chunk::<{ AHEAD as usize }>() {
            Some(slots) if free >= 2 * AHEAD => slots.iter().for_each(touch),
            _ => rest.iter().take(free.saturating_sub(AHEAD).min(AHEAD) as usize).for_each(touch),
        }
    }

    /// Hands the slot of a ticket, which the caller has written, to the receiver; see
    /// [`Slot::publish`].
    #[inline(always)]
    pub fn publish(&self, ticket: u64) {
        self.slot(ticket).publish(ticket);
    }

    /// Whether the message of a ticket is published. For the receiver.
    #[inline(always)]
    pub fn is_ready(&self, ticket: u64) -> bool {
        self.slot(ticket).holds(mark(ticket))
    }

    /// Gives the slots of all tickets before `next` back to senders.
    #[inline(always)]
    pub fn give_back(&self, next: u64) {
        // Release: the receiver's loads come before the next senders' stores; pairs with take().
        self.recv.store(next, Ordering::Release);
    }

    /// The first ticket that is not taken.
    pub fn sent(&self) -> u64 {
        // Acquire: pairs with give_back(). All tickets before RecvCNT are taken, and none is taken
        // from RecvCNT + N on, so the claims in between show it.
        let taken = self.recv.load(Ordering::Acquire);
        let all = self.slots.len() as u64;
        let is_free = |ahead: &u64| {
            let ticket = taken.wrapping_add(*ahead);
            self.is_free(ticket, self.claim_of(ticket).load(Ordering::Acquire))
        };
        let free = (0..all).find(is_free);
        taken.wrapping_add(free.unwrap_or(all))
    }

    /// Whether a sender has claimed a ticket.
    #[inline]
    fn is_claimed(&self, ticket: u64) -> bool {
        // Relaxed: a sender that publishes after this load wakes the receiver; see
        // `message_area::WakeFlag`.
        let seen = self.claim_of(ticket).load(Ordering::Relaxed);
        seen >> RANK_BITS == claim(ticket, 0) >> RANK_BITS && seen & PASSED != PASSED
    }

    /// Whether a sender has claimed the ticket `next` or a later one. Reads the claims, which lie
    /// in the receiver's memory, not SendCNT, which may lie elsewhere.
    pub fn is_begun(&self, next: u64) -> bool {
        (0..self.claims.len() as u64).any(|ahead| self.is_claimed(next.wrapping_add(ahead)))
    }

    /// Whether no sender has claimed the ticket `next` or set SendCNT beyond it. False if a sender
    /// has done so before a fence that the caller has executed.
    pub fn awaits(&self, next: u64) -> bool {
        !self.is_claimed(next) && self.send.load(Ordering::Relaxed) == next
    }

    /// Whether a message of a later ticket than `next` is published.
    pub fn waits_behind(&self, next: u64) -> bool {
        (1..self.slots.len() as u64).any(|ahead| self.is_ready(next.wrapping_add(ahead)))
    }

    /// Reserves the slot of the ticket `next`, which a sender has claimed and not published, for
    /// one more round. The receiver calls it before it gives the ticket back; until then no sender
    /// can take the slot's next ticket. Returns the sender's rank; None: the ticket was published,
    /// or is not claimed.
    pub fn set_aside(&self, next: u64) -> Option<u32> {
        let place = self.claim_of(next);
        let seen = place.load(Ordering::Acquire);
        if seen >> RANK_BITS != claim(next, 0) >> RANK_BITS || self.is_ready(next) {
            return None;
        }
        self.keep_aside(next);
        Some((seen & PASSED) as u32)
    }

    /// Claims the next ticket of a ticket's slot for the receiver, before the ticket is given back:
    /// no sender uses the slot for one more round.
    pub fn keep_aside(&self, ticket: u64) {
        let later = ticket.wrapping_add(self.slots.len() as u64);
        // Relaxed: give_back() publishes the claim, and before that no sender tries the later
        // ticket.
        self.claim_of(ticket).store(claim(later, PASSED), Ordering::Relaxed);
    }

    /// Passes over the ticket `next`, which is not published, if its sender is `dead`, or, with
    /// `unclaimed_too`, if it is not claimed. True: the slot holds no message, and nobody will
    /// write it.
    pub fn pass_over(&self, next: u64, dead: impl Fn(u32) -> bool, unclaimed_too: bool) -> bool {
        let place = self.claim_of(next);
        // Acquire: pairs with claim().
        let seen = place.load(Ordering::Acquire);
        if seen >> RANK_BITS == claim(next, 0) >> RANK_BITS {
            // The sender may have published before it died.
            return dead((seen & PASSED) as u32) && !self.is_ready(next);
        }
        unclaimed_too
            && place
                .compare_exchange(seen, claim(next, PASSED), Ordering::AcqRel, Ordering::Relaxed)
                .is_ok()
    }
}

#[cfg(all(test, not(loom)))]
mod tests;
