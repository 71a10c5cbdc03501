//! Messages whose senders were stopped or preempted between taking a ticket and publishing it.
//! While others wait behind one, the receiver sets it aside: it goes on with the next ticket, and
//! takes the message when it comes.
//!
//! The sender may write the slot at any time until it has published. So the slot takes no part in
//! the round until then: before the receiver gives the ticket `t` back it claims `t + N` of the
//! same slot for itself, and senders go on to the next ticket. When it comes to `t + N` and the
//! message is still missing, it claims `t + 2N` first, and so on. A share of one slot has no other,
//! and waits.

use super::{Class, MessageReceiver};
use crate::transport::memory::slots::{Slot, mark};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// How long a ticket that is taken and not published is waited for while others wait behind it.
const PATIENCE: Duration = Duration::from_micros(50);

/// A message that was set aside.
pub(super) struct Aside {
    /// The share, by its place among the receiver's.
    at: usize,
    ticket: u64,
    /// The rank that sends it.
    rank: u32,
    /// The slot's next ticket, which the receiver has claimed.
    passed: u64,
    /// It has been taken, or its sender is dead: the slot is in the round again behind `passed`.
    over: bool,
}

impl MessageReceiver {
    /// Sets the present share's next ticket aside, which has been taken `since`, where others wait
    /// behind it.
    pub(super) fn set_aside(&mut self, since: Instant) -> bool {
        let stand = &self.stands[self.at];
        let (at, share, ticket) = (self.at, stand.share, stand.next);
        if self.class == Class::Replies || since.elapsed() < PATIENCE || !share.waits_behind(ticket)
        {
            return false;
        }
        let Some(rank) = share.set_aside(ticket) else { return false };
        let passed = ticket.wrapping_add(share.slots.len() as u64);
        self.asides.push(Aside { at, ticket, rank, passed, over: false });
        self.done();
        true
    }

    /// Passes over the tickets that keep slots out of the round, where it is their turn.
    pub(super) fn pass_asides(&mut self) {
        // What done() is called for here is no message that was aimed at.
        self.present_aside = None;
        let turn = |it: &MessageReceiver| {
            it.asides.iter().position(|aside| it.stands[aside.at].next == aside.passed)
        };
        while let Some(found) = turn(self) {
            let Aside { at, passed, over, .. } = self.asides[found];
            self.turn_to(at);
            let stand = &mut self.stands[at];
            stand.unsent += 1;
            if over {
                self.asides.swap_remove(found);
            } else {
                stand.share.keep_aside(passed);
                self.asides[found].passed = passed.wrapping_add(stand.share.slots.len() as u64);
            }
            self.done();
        }
    }

    /// Aims at a message that was set aside and has come. False: there is none.
    #[cold]
    pub(super) fn search_asides(&mut self) -> bool {
        self.pass_asides();
        let Some(found) = self.asides.iter().position(|aside| self.has_arrived(aside)) else {
            return false;
        };
        let Aside { at, ticket, .. } = self.asides[found];
        self.turn_to(at);
        (self.slot, self.awaited) = (self.aside_slot(at, ticket), mark(ticket));
        self.present_aside = Some(found);
        true
    }

    /// Whether one has come that has not been taken.
    pub(super) fn asides_have_come(&self) -> bool {
        self.asides.iter().any(|aside| self.has_arrived(aside))
    }

    fn has_arrived(&self, aside: &Aside) -> bool {
        !aside.over && self.stands[aside.at].share.is_ready(aside.ticket)
    }

    fn aside_slot(&self, at: usize, ticket: u64) -> &'static Slot {
        self.stands[at].share.slot(ticket)
    }

    /// The ticket of the message that the receiver aims at.
    pub(super) fn aimed_ticket(&self) -> u64 {
        self.present_aside.map_or(self.stands[self.at].next, |found| self.asides[found].ticket)
    }

    /// The message that was aimed at has been consumed.
    #[cold]
    pub(super) fn aside_done(&mut self, found: usize) {
        self.asides[found].over = true;
        self.aim();
    }

    /// Gives up those whose senders have died.
    pub(super) fn drop_dead_asides(&mut self) {
        for aside in &mut self.asides {
            let dead = self.dead.get(aside.rank as usize);
            // Acquire: pairs with the Release of the mark; what the dead has published comes
            // before.
            let dead = dead.is_none_or(|dead| dead.load(Ordering::Acquire));
            if !aside.over && dead && !self.stands[aside.at].share.is_ready(aside.ticket) {
                aside.over = true;
                self.counts.skips.up();
            }
        }
    }
}
