//! A share of a receiver's message slots: the counters, the claims and the slots that belong
//! together, wherever each of them lies. Any number of senders in any number of processes, each of
//! which may be killed at any moment; one receiver.
//!
//! SendCNT is where senders begin to look for a ticket, RecvCNT the first that has not been
//! consumed. Ticket `t` is for slot `t mod N`, and may be taken while `t < RecvCNT + N`. A sender
//!
//! 1. takes a ticket: compare-and-swap of the slot's claim from the ticket before, (t - N, any), to
//!    (t, rank); a sender that fails goes on with t + 1. The claims say what is taken, and by whom;
//! 2. stores t + 1 to SendCNT, so that the next one need not look at all those claims. A store and
//!    no addition: one that comes late sets it back, and the next sender walks on from there;
//! 3. writes the slot, and publishes it: a store of the ticket to the slot's mark.
//!
//! So tickets are taken in order, one atomic operation takes one, and nobody dies with a ticket
//! that does not bear a name.
//!
//! The receiver reads the mark only, so that one line is handed over for a message, and writes to
//! no slot: consumed slots go back by RecvCNT, many at a time. It looks at the claims only where
//! nothing came for a while, and acts where one of them names the ticket that it waits for, or a
//! later one. Then:
//!
//! - the claim names the ticket and a rank that is dead: nobody writes the slot any more; skip it;
//! - the claim is that of the ticket before, and a later ticket is taken: somebody has written
//!   nonsense to SendCNT. After a moment the receiver claims it itself; a sender that comes to it
//!   goes on;
//! - else its sender is at work: wait; or, where others wait behind it, leave the slot out of the
//!   round until it has published (`message_receiver::asides`).
//!
//! Counters wrap. They begin shortly before they do, so that every program goes through it.

use crate::util::sync::{AtomicU64, Ordering, UnsafeCell};

#[cfg(all(test, loom))]
mod models;

/// Where every counter begins: this many tickets before 2^64, and before 2^32 in its lower half.
pub const FIRST: u64 = 0_u64.wrapping_sub(1000);

/// Words of a slot behind its mark.
pub const BODY_WORDS: usize = 14;

/// Slots whose lines a sender fetches at a time.
const AHEAD: u64 = 8;

/// A claim: rank in the lower 24 bits, ticket above (40 bits; two tickets of one slot that can be
/// met at one time differ by one round).
const RANK_BITS: u32 = 24;
/// The receiver's own claim, by which it passes a ticket over.
const PASSED: u64 = (1 << RANK_BITS) - 1;

const fn claim(ticket: u64, rank: u64) -> u64 {
    ticket << RANK_BITS | rank
}

/// What the mark of a ticket's slot is once it is published; never 0, which fresh memory holds.
pub const fn mark(ticket: u64) -> u64 {
    ticket << 1 | 1
}

/// The mark of the ticket behind the one of a mark.
pub const fn next_mark(mark: u64) -> u64 {
    mark.wrapping_add(2)
}

/// One message: its mark, and what the sender has written.
#[repr(C, align(128))]
pub struct Slot {
    mark: AtomicU64,
    /// Written by senders to own the line; says nothing.
    touched: AtomicU64,
    body: UnsafeCell<[u64; BODY_WORDS]>,
}

impl Slot {
    /// The body. Its sender writes it between claim and publication, the receiver reads it between
    /// publication and the return of the slot.
    #[inline(always)]
    pub fn body(&self) -> &UnsafeCell<[u64; BODY_WORDS]> {
        &self.body
    }

    /// Hands the slot of a ticket, which the caller has written, to the receiver.
    #[inline(always)]
    pub fn publish(&self, ticket: u64) {
        // Release: the body comes before; pairs with holds().
        self.mark.store(mark(ticket), Ordering::Release);
    }

    /// Whether the slot holds the message whose mark this is.
    #[inline(always)]
    pub fn holds(&self, awaited: u64) -> bool {
        // Acquire: pairs with publish().
        self.mark.load(Ordering::Acquire) == awaited
    }

    /// A slot that was never used, as fresh memory is.
    #[cfg(test)]
    pub fn fresh() -> Slot {
        Slot {
            mark: AtomicU64::new(0),
            touched: AtomicU64::new(0),
            body: UnsafeCell::new([0; BODY_WORDS]),
        }
    }
}

/// A view of a share.
#[derive(Clone, Copy)]
pub struct SlotShare<'a> {
    /// SendCNT.
    pub send: &'a AtomicU64,
    /// RecvCNT.
    pub recv: &'a AtomicU64,
    /// One for each slot, as many as there are.
    pub claims: &'a [AtomicU64],
    /// A power of two.
    pub slots: &'a [Slot],
}

/// What became of an attempt to take a ticket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Taken {
    /// The ticket is the caller's, who writes its slot and publishes it.
    Ticket(u64),
    /// All slots hold messages.
    Full,
}

/// What became of a claim.
#[derive(PartialEq)]
enum Claim {
    Done,
    /// Another was faster.
    Lost,
    /// The ticket was taken before, or the receiver has passed it over.
    Anothers,
}

/// What a sender has to count.
pub trait Tally {
    /// RecvCNT was read.
    fn read_credit(&self);
    /// An exchange was lost to another sender.
    fn lost(&self);
}

impl<'a> SlotShare<'a> {
    /// Makes fresh words an empty share, before anybody else sees them.
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
        // SAFETY: there are as many as slots, among which the place is.
        unsafe { self.claims.get_unchecked(self.index(ticket)) }
    }

    /// The slot of a ticket.
    #[inline(always)]
    pub fn slot(&self, ticket: u64) -> &'a Slot {
        debug_assert!(self.slots.len().is_power_of_two());
        // SAFETY: below the length, which is a power of two.
        unsafe { self.slots.get_unchecked(self.index(ticket)) }
    }

    /// The slot whose mark this will be.
    #[inline(always)]
    pub fn slot_marked(&self, mark: u64) -> &'a Slot {
        self.slot(mark >> 1)
    }

    /// The place of a ticket's slot among all, and of its claim.
    #[inline(always)]
    pub fn index(&self, ticket: u64) -> usize {
        ticket as usize & (self.slots.len() - 1)
    }

    /// Whether a ticket is one of those for which there are slots, as far as RecvCNT tells. Neither
    /// are those that are behind it: SendCNT may have been read, or stored, long ago.
    #[inline(always)]
    fn has_slot(&self, ticket: u64, taken: u64) -> bool {
        ticket.wrapping_sub(taken) < self.slots.len() as u64
    }

    /// Whether a ticket could be taken now, as far as a look tells.
    pub fn has_room(&self) -> bool {
        let taken = self.recv.load(Ordering::Acquire);
        self.send.load(Ordering::Relaxed).wrapping_sub(taken) != self.slots.len() as u64
    }

    /// Takes a ticket for a rank. `cached`: what this process last saw of RecvCNT.
    #[inline(always)]
    pub fn take(&self, rank: u32, cached: &AtomicU64, tally: &impl Tally) -> Taken {
        // Relaxed, here and below: a place to begin at. The claim and the mark hand the slot over.
        let begin = self.send.load(Ordering::Relaxed);
        let mut ticket = begin;
        loop {
            // Acquire: pairs with the Release in look(); what the receiver has read of the slot
            // comes before our words.
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

    /// The first step of take() alone: None where that one would look further, and nothing has
    /// happened. The ticket and its slot.
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

    /// Reads RecvCNT, since its copy says that a ticket has no slot. The ticket to be tried; None:
    /// all are taken that have slots.
    #[inline(never)]
    fn look(&self, begin: u64, ticket: u64, cached: &AtomicU64) -> Option<u64> {
        // Acquire: pairs with give_back().
        let taken = self.recv.load(Ordering::Acquire);
        cached.store(taken, Ordering::Release);
        if self.has_slot(ticket, taken) {
            return Some(ticket);
        }
        if ticket.wrapping_sub(taken) != self.slots.len() as u64 {
            // Behind, or where no sender can have come. What comes before RecvCNT is taken.
            return Some(taken);
        }
        if ticket != begin {
            // So that has_room() knows it, too.
            self.send.store(ticket, Ordering::Relaxed);
        }
        None
    }

    /// Whether a claim, where that of a ticket will be, is the one before. Else it is the ticket's
    /// own, or, for a sender that began at an old SendCNT, one of a later round.
    #[inline(always)]
    fn is_free(&self, ticket: u64, seen: u64) -> bool {
        let before = ticket.wrapping_sub(self.slots.len() as u64);
        seen >> RANK_BITS == claim(before, 0) >> RANK_BITS
    }

    #[inline(always)]
    fn claim(&self, ticket: u64, rank: u32) -> Claim {
        self.claim_at(self.index(ticket), ticket, rank)
    }

    /// As claim(), where the index of the ticket is known.
    #[inline(always)]
    fn claim_at(&self, index: usize, ticket: u64, rank: u32) -> Claim {
        debug_assert!(index == self.index(ticket) && self.claims.len() == self.slots.len());
        // SAFETY: there are as many as slots, among which the index is.
        let place = unsafe { self.claims.get_unchecked(index) };
        let seen = place.load(Ordering::Relaxed);
        let ours = claim(ticket, rank.into());
        // is_free(), in fewer steps.
        let before = ours.wrapping_sub((self.slots.len() as u64) << RANK_BITS);
        if (seen ^ before) >> RANK_BITS != 0 {
            return Claim::Anothers;
        }
        // Acquire and Release: of the two, the second knows the first.
        match place.compare_exchange(seen, ours, Ordering::AcqRel, Ordering::Relaxed) {
            Ok(_) => Claim::Done,
            Err(_) => Claim::Lost,
        }
    }

    /// Fetches the lines of slots that will be written soon. A sender's next atomic operation waits
    /// until its stores to the last slot are done, that is, until the receiver has given the line
    /// up; so the lines of several slots are asked for at once, by stores that mean nothing, which
    /// overlap. (A prefetch for writing does not do it: decision 0006.) Only where the slots have
    /// been consumed.
    #[inline(always)]
    pub fn fetch_ahead(&self, ticket: u64, cached: &AtomicU64) {
        if self.fetches_ahead(ticket) && self.slots.len() as u64 >= 4 * AHEAD {
            self.touch(ticket, cached.load(Ordering::Relaxed));
        }
    }

    /// Whether fetch_ahead() does anything, of a share that is large enough.
    #[inline(always)]
    pub fn fetches_ahead(&self, ticket: u64) -> bool {
        ticket.is_multiple_of(AHEAD)
    }

    #[inline(never)]
    fn touch(&self, ticket: u64, taken: u64) {
        // Tickets behind this one that have slots.
        let free = (self.slots.len() as u64).wrapping_sub(ticket.wrapping_sub(taken));
        for ahead in AHEAD..free.min(2 * AHEAD) {
            self.slot(ticket.wrapping_add(ahead)).touched.store(0, Ordering::Relaxed);
        }
    }

    /// Hands the slot of a ticket, which the caller has written, to the receiver.
    #[inline(always)]
    pub fn publish(&self, ticket: u64) {
        self.slot(ticket).publish(ticket);
    }

    /// Whether the message of a ticket is there. Its receiver asks.
    #[inline(always)]
    pub fn is_ready(&self, ticket: u64) -> bool {
        self.slot(ticket).holds(mark(ticket))
    }

    /// Lets senders use the slots of all tickets before `next` again.
    #[inline(always)]
    pub fn give_back(&self, next: u64) {
        // Release: our reads come before the next senders' words; pairs with take().
        self.recv.store(next, Ordering::Release);
    }

    /// The next ticket that will be taken.
    pub fn sent(&self) -> u64 {
        // Acquire: pairs with give_back(). What comes before is taken, and what is taken has a
        // slot.
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
        // Relaxed: a sender that publishes after this look knocks; see `message_area::Door`.
        let seen = self.claim_of(ticket).load(Ordering::Relaxed);
        seen >> RANK_BITS == claim(ticket, 0) >> RANK_BITS && seen & PASSED != PASSED
    }

    /// Whether a sender has begun with the ticket `next` or a later one. Looks at the claims, which
    /// lie with the receiver, wherever SendCNT lies.
    pub fn is_begun(&self, next: u64) -> bool {
        (0..self.claims.len() as u64).any(|ahead| self.is_claimed(next.wrapping_add(ahead)))
    }

    /// Whether the ticket `next` is the one that the next sender takes, as far as its claim and
    /// SendCNT tell. Not where a sender has begun with it before a fence that the caller has
    /// executed.
    pub fn awaits(&self, next: u64) -> bool {
        !self.is_claimed(next) && self.send.load(Ordering::Relaxed) == next
    }

    /// Whether a message of a ticket behind `next` is there.
    pub fn waits_behind(&self, next: u64) -> bool {
        (1..self.slots.len() as u64).any(|ahead| self.is_ready(next.wrapping_add(ahead)))
    }

    /// Takes the slot of the ticket `next` out of the round: it is claimed and not published. To be
    /// called before the ticket is given back, since nobody can take the slot's next ticket then.
    /// Whose it is; None: it has been published, or not been claimed.
    pub fn set_aside(&self, next: u64) -> Option<u32> {
        let place = self.claim_of(next);
        let seen = place.load(Ordering::Acquire);
        if seen >> RANK_BITS != claim(next, 0) >> RANK_BITS || self.is_ready(next) {
            return None;
        }
        self.keep_aside(next);
        Some((seen & PASSED) as u32)
    }

    /// Leaves the slot of a ticket out for one more round, before the ticket is given back.
    pub fn keep_aside(&self, ticket: u64) {
        let later = ticket.wrapping_add(self.slots.len() as u64);
        // Relaxed: give_back() publishes it, and before that nobody looks for the later ticket.
        self.claim_of(ticket).store(claim(later, PASSED), Ordering::Relaxed);
    }

    /// Passes over the ticket `next`, which has not been published, if its sender is `dead`, or,
    /// where `unclaimed_too`, if it has not been claimed. True: nobody will write the slot, and
    /// there is no message in it.
    pub fn pass_over(&self, next: u64, dead: impl Fn(u32) -> bool, unclaimed_too: bool) -> bool {
        let place = self.claim_of(next);
        // Acquire: pairs with claim().
        let seen = place.load(Ordering::Acquire);
        if seen >> RANK_BITS == claim(next, 0) >> RANK_BITS {
            // It may have published before it died.
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
