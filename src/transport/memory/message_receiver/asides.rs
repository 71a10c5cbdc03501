//! Messages whose senders were stopped or preempted between taking a ticket and publishing it. If
//! other messages wait behind such a ticket, the receiver sets it aside: it goes on with the next
//! ticket, and takes the message when it is published.
//!
//! Until then the sender may write the slot at any time, so no other sender may get the slot.
//! Before the receiver gives ticket `t` back, it claims ticket `t + N` of the same slot for itself;
//! senders that try `t + N` go on to the next ticket. When the receiver itself reaches `t + N` and
//! the message is still missing, it claims `t + 2N` first, and so on. In a share of one slot no
//! message can wait behind, so the receiver waits.
//!
//! So a message that is set aside takes one of the share's N tickets. A reply or an answer, for
//! which its receiver has reserved a slot, may then find none; its sender keeps it and tries again.

use super::MessageReceiver;
use crate::transport::memory::slots::{Slot, mark};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// How long the receiver waits for a ticket that is claimed and not published while other messages
/// wait behind it.
const PATIENCE: Duration = Duration::from_micros(50);

/// A message that was set aside.
pub(super) struct Aside {
    /// The index of the share in `states`.
    at: usize,
    ticket: u64,
    /// The sender's rank.
    rank: u32,
    /// A later ticket of the slot, which the receiver has claimed.
    passed: u64,
    /// The message was taken, or its sender is dead: senders get the slot again after `passed`.
    over: bool,
}

impl MessageReceiver {
    /// Sets the current share's next ticket aside, which is claimed at least since `since`, if
    /// messages wait behind it.
    pub(super) fn set_aside(&mut self, since: Instant) -> bool {
        let state = &self.states[self.at];
        let (at, share, ticket) = (self.at, state.share, state.next);
        if since.elapsed() < PATIENCE || !share.waits_behind(ticket) {
            return false;
        }
        let Some(rank) = share.set_aside(ticket) else { return false };
        let passed = ticket.wrapping_add(share.slots.len() as u64);
        self.asides.push(Aside { at, ticket, rank, passed, over: false });
        self.tell_asides(at);
        self.done();
        true
    }

    /// Passes over the tickets that the receiver has claimed itself, as far as they come next.
    pub(super) fn pass_asides(&mut self) {
        // So that done() below ends a ticket of the share, not a message that was set aside.
        self.current_aside = None;
        let turn = |it: &MessageReceiver| {
            it.asides.iter().position(|aside| it.states[aside.at].next == aside.passed)
        };
        while let Some(found) = turn(self) {
            let Aside { at, passed, over, .. } = self.asides[found];
            self.turn_to(at);
            let state = &mut self.states[at];
            state.unsent += 1;
            if over {
                self.asides.swap_remove(found);
            } else {
                state.share.keep_aside(passed);
                self.asides[found].passed = passed.wrapping_add(state.share.slots.len() as u64);
            }
            self.done();
        }
    }

    /// Turns to a message that was set aside and is published now. False: there is none.
    #[cold]
    pub(super) fn search_asides(&mut self) -> bool {
        self.pass_asides();
        let Some(found) = self.asides.iter().position(|aside| self.has_arrived(aside)) else {
            return false;
        };
        let Aside { at, ticket, .. } = self.asides[found];
        self.turn_to(at);
        (self.slot, self.awaited) = (self.aside_slot(at, ticket), mark(ticket));
        self.current_aside = Some(found);
        true
    }

    /// Whether a message that was set aside is published and not taken.
    pub(super) fn asides_have_come(&self) -> bool {
        self.asides.iter().any(|aside| self.has_arrived(aside))
    }

    fn has_arrived(&self, aside: &Aside) -> bool {
        !aside.over && self.states[aside.at].share.is_ready(aside.ticket)
    }

    fn aside_slot(&self, at: usize, ticket: u64) -> &'static Slot {
        self.states[at].share.slot(ticket)
    }

    /// The ticket of the message in `slot`.
    pub(super) fn current_ticket(&self) -> u64 {
        self.current_aside.map_or(self.states[self.at].next, |found| self.asides[found].ticket)
    }

    /// Ends the message in `slot`, which was set aside.
    #[cold]
    pub(super) fn aside_done(&mut self, found: usize) {
        self.asides[found].over = true;
        self.tell_asides(self.asides[found].at);
        self.set_next();
    }

    /// Tells the senders of a share how many of its messages are set aside.
    fn tell_asides(&self, at: usize) {
        let count = self.asides.iter().filter(|aside| aside.at == at && !aside.over).count();
        self.states[at].share.set_asides(count as u64);
    }

    /// Gives up the messages whose senders have died without publishing them.
    pub(super) fn drop_dead_asides(&mut self) {
        for aside in &mut self.asides {
            let dead = self.dead.get(aside.rank as usize);
            // Acquire: pairs with the Release in Node::mark_dead(); the load of the mark below
            // then sees what the dead sender has published.
            let dead = dead.is_none_or(|dead| dead.load(Ordering::Acquire));
            if !aside.over && dead && !self.states[aside.at].share.is_ready(aside.ticket) {
                aside.over = true;
                self.counts.skips.up();
            }
        }
        (0..self.states.len()).for_each(|at| self.tell_asides(at));
    }
}
