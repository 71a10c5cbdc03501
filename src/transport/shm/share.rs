//! A share of a receiver's message slots: the counters, the claims and the slots that belong
//! together, wherever each of them lies. Any number of senders in any number of processes, each of
//! which may be killed at any moment; one receiver.
//!
//! SendCNT is the next ticket, RecvCNT the first that has not been consumed. Ticket `t` is for slot
//! `t mod N`, and may be taken while `t < RecvCNT + N`. A sender
//!
//! 1. takes a ticket: compare-and-swap of SendCNT from `t` to `t + 1`, so that no ticket is taken
//!    for which there is no slot (an addition would have to be taken back, or waited for);
//! 2. claims it: compare-and-swap of the slot's claim, which names the ticket before, to (t, rank);
//! 3. writes the slot, and publishes it: a store of the ticket to the slot's mark.
//!
//! The receiver reads the mark only, so that one line is handed over for a message, and writes to
//! no slot: consumed slots go back by RecvCNT, many at a time. It looks at the claims only where
//! nothing came for a while, and acts where one of them names the ticket that it waits for, or a
//! later one. Then:
//!
//! - the claim names the ticket and a rank that is dead: nobody writes the slot any more; skip it;
//! - the claim is that of the ticket before: its sender is between 1 and 2, dead or preempted. After
//!   a moment the receiver claims it itself; a living sender then fails at 2 and takes another ticket;
//! - else its sender is at work: wait.
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
const fn mark(ticket: u64) -> u64 {
    ticket << 1 | 1
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
pub struct Share<'a> {
    /// SendCNT.
    pub send: &'a AtomicU64,
    /// RecvCNT.
    pub recv: &'a AtomicU64,
    /// One for each slot.
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

/// What a sender has to count.
pub trait Tally {
    /// RecvCNT was read.
    fn read_credit(&self);
    /// Another sender was faster, or the receiver has passed the ticket over.
    fn lost(&self);
}

impl<'a> Share<'a> {
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
        debug_assert!(self.claims.len().is_power_of_two());
        // SAFETY: below the length, which is a power of two.
        unsafe { self.claims.get_unchecked(ticket as usize & (self.claims.len() - 1)) }
    }

    /// The slot of a ticket.
    #[inline(always)]
    pub fn slot(&self, ticket: u64) -> &'a Slot {
        debug_assert!(self.slots.len().is_power_of_two());
        // SAFETY: below the length, which is a power of two.
        unsafe { self.slots.get_unchecked(ticket as usize & (self.slots.len() - 1)) }
    }

    /// The place of a ticket's slot among all.
    #[inline(always)]
    pub fn index(&self, ticket: u64) -> usize {
        ticket as usize & (self.slots.len() - 1)
    }

    #[inline(always)]
    fn is_full(&self, ticket: u64, taken: u64) -> bool {
        // Signed: a ticket that was read long ago may lie behind RecvCNT.
        ticket.wrapping_sub(taken) as i64 >= self.slots.len() as i64
    }

    /// Whether a ticket could be taken now, as far as a look tells.
    pub fn has_room(&self) -> bool {
        let taken = self.recv.load(Ordering::Acquire);
        !self.is_full(self.send.load(Ordering::Relaxed), taken)
    }

    /// Takes and claims a ticket for a rank. `cached`: what this process last saw of RecvCNT.
    #[inline(always)]
    pub fn take(&self, rank: u32, cached: &AtomicU64, tally: &impl Tally) -> Taken {
        let mut ticket = self.send.load(Ordering::Relaxed);
        loop {
            // Acquire: pairs with the Release below; what the receiver has read of the slot comes
            // before our words.
            if self.is_full(ticket, cached.load(Ordering::Acquire)) {
                tally.read_credit();
                // Acquire: pairs with give_back().
                let taken = self.recv.load(Ordering::Acquire);
                cached.store(taken, Ordering::Release);
                if self.is_full(ticket, taken) {
                    let now = self.send.load(Ordering::Relaxed);
                    if now == ticket {
                        return Taken::Full;
                    }
                    ticket = now;
                    continue;
                }
            }
            // Relaxed: the claim and the mark hand the slot over, not the counter.
            let next = ticket.wrapping_add(1);
            match self.send.compare_exchange(ticket, next, Ordering::Relaxed, Ordering::Relaxed) {
                Ok(_) if self.claim(ticket, rank) => return Taken::Ticket(ticket),
                Ok(_) => ticket = next,
                Err(now) => ticket = now,
            }
            tally.lost();
        }
    }

    /// False: the receiver has passed the ticket over.
    #[inline(always)]
    fn claim(&self, ticket: u64, rank: u32) -> bool {
        let place = self.claim_of(ticket);
        let seen = place.load(Ordering::Relaxed);
        // A sender that slept since it took the ticket may find a later one.
        let before = ticket.wrapping_sub(self.claims.len() as u64);
        // Acquire and Release: whoever of us comes second knows the first.
        seen >> RANK_BITS == claim(before, 0) >> RANK_BITS
            && place
                .compare_exchange(
                    seen,
                    claim(ticket, rank.into()),
                    Ordering::AcqRel,
                    Ordering::Relaxed,
                )
                .is_ok()
    }

    /// Fetches the lines of slots that will be written soon. A sender's next atomic operation waits until
    /// its stores to the last slot are done, that is, until the receiver has given the line up; so the
    /// lines of several slots are asked for at once, by stores that mean nothing, which overlap. (A
    /// prefetch for writing does not do it: decision 0006.) Only where the slots have been consumed.
    #[inline(always)]
    pub fn fetch_ahead(&self, ticket: u64, cached: &AtomicU64) {
        if ticket.is_multiple_of(AHEAD) && self.slots.len() as u64 >= 4 * AHEAD {
            self.touch(ticket, cached.load(Ordering::Relaxed));
        }
    }

    #[inline(never)]
    fn touch(&self, ticket: u64, taken: u64) {
        for ahead in AHEAD..2 * AHEAD {
            let later = ticket.wrapping_add(ahead);
            if self.is_full(later, taken) {
                return;
            }
            self.slot(later).touched.store(0, Ordering::Relaxed);
        }
    }

    /// Hands the slot of a ticket, which the caller has written, to the receiver.
    #[inline(always)]
    pub fn publish(&self, ticket: u64) {
        // Release: the body comes before; pairs with is_ready().
        self.slot(ticket).mark.store(mark(ticket), Ordering::Release);
    }

    /// Whether the message of a ticket is there. Its receiver asks.
    #[inline(always)]
    pub fn is_ready(&self, ticket: u64) -> bool {
        // Acquire: pairs with publish().
        self.slot(ticket).mark.load(Ordering::Acquire) == mark(ticket)
    }

    /// Lets senders use the slots of all tickets before `next` again.
    #[inline(always)]
    pub fn give_back(&self, next: u64) {
        // Release: our reads come before the next senders' words; pairs with take().
        self.recv.store(next, Ordering::Release);
    }

    /// The next ticket that will be taken.
    pub fn sent(&self) -> u64 {
        self.send.load(Ordering::Acquire)
    }

    /// Whether the ticket `next` has been taken. For a receiver with which SendCNT lies; it sees what
    /// is_begun() cannot: a sender that died before its claim, where no later ticket is left to be
    /// claimed.
    pub fn is_taken(&self, next: u64) -> bool {
        // Signed: what a hostile peer writes here must not look like a lead of 2^63 tickets.
        self.sent().wrapping_sub(next) as i64 > 0
    }

    #[inline]
    fn is_claimed(&self, ticket: u64) -> bool {
        // Relaxed: who publishes after this look knocks; see `mail::Door`.
        self.claim_of(ticket).load(Ordering::Relaxed) >> RANK_BITS == claim(ticket, 0) >> RANK_BITS
    }

    /// Whether a sender has begun with the ticket `next` or a later one. Looks at the claims, which
    /// lie with the receiver, wherever SendCNT lies.
    pub fn is_begun(&self, next: u64) -> bool {
        (0..self.claims.len() as u64).any(|ahead| self.is_claimed(next.wrapping_add(ahead)))
    }

    /// Passes over the ticket `next`, which has not been published, if its sender is `dead`, or, where
    /// `unclaimed_too`, if it has not been claimed. True: nobody will write the slot, and there is
    /// no message in it.
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
