//! What a receiver does when no message arrives: it skips tickets of dead senders, corrects the
//! counters of the policy limit, and prepares for sleep.

use super::{Class, MessageReceiver, ShareState};
use crate::transport::memory::message_area::Policy;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// How long the receiver waits for the claim of a ticket while a later one is claimed; then it
/// passes the ticket over.
const UNCLAIMED: Duration = Duration::from_millis(2);

impl MessageReceiver {
    /// Passes over the tickets of the current share that nobody will publish; the head of `slots`
    /// says which. The current share has no message, but the others may be busy.
    #[cold]
    pub(super) fn handle_unfinished(&mut self) {
        self.drop_dead_asides();
        loop {
            let at = self.at;
            self.pass_asides();
            self.turn_to(at);
            let state = &mut self.states[self.at];
            state.misses = 0;
            let (share, next) = (state.share, state.next);
            if share.is_ready(next) || !state.is_begun() {
                state.unfinished = None;
                break;
            }
            let since = state.unfinished.unwrap_or_else(Instant::now);
            let dead = |rank: u32| {
                let flag = self.dead.get(rank as usize);
                // Acquire: pairs with the Release in Node::mark_dead.
                flag.is_none_or(|dead| dead.load(Ordering::Acquire))
            };
            if !share.pass_over(next, dead, since.elapsed() > UNCLAIMED) {
                state.unfinished = Some(since);
                if !self.set_aside(since) {
                    break;
                }
                continue;
            }
            self.counts.skips.up();
            self.done();
        }
        self.set_next();
        self.settle();
        self.correct_limit();
    }

    /// Policy limit: corrects `sent`. A sender that dies after it has counted its message and
    /// before it has a ticket leaves `sent` too high. While no message is in the slots, both
    /// counters must be equal; if they differ for a while, the receiver makes them equal. If a
    /// living sender is just between the two steps, one message more than the limit can be sent;
    /// the slots still bound the number.
    fn correct_limit(&mut self) {
        if self.message_area.sizes.policy != Policy::Limit || self.class != Class::Requests {
            return;
        }
        let head = self.message_area.head;
        let (sent, consumed) = (&head.sent.0, head.consumed.0.load(Ordering::Relaxed));
        let seen = sent.load(Ordering::Relaxed);
        let idle = self.states[0].share.sent() == self.states[0].next;
        if seen == consumed || !idle {
            self.mismatch = None;
        } else if self.mismatch.get_or_insert_with(Instant::now).elapsed() > UNCLAIMED
            && sent.compare_exchange(seen, consumed, Ordering::Relaxed, Ordering::Relaxed).is_ok()
        {
            self.mismatch = None;
            self.counts.skips.up();
            head.request_wakes.ring_all(|rank| self.peers.ring_progress(rank));
        }
    }

    /// Announces that the caller will sleep, so that senders must ring. `other`: a second receiver
    /// with the same wake flag. Some: how long the caller may sleep; None: a message has arrived,
    /// or a sender has begun one.
    pub fn arm(
        &mut self,
        longest: Duration,
        other: Option<&mut MessageReceiver>,
    ) -> Option<Duration> {
        /// The longest sleep where the kernel has no fence, since a sender may then miss the
        /// armed flag.
        const NAP: Duration = Duration::from_millis(1);
        self.handle_all_unfinished();
        let other = other.map(|other| {
            other.handle_all_unfinished();
            &*other
        });
        let certain = self.wake_flag().arm();
        // After the fence of close(): this finds a sleeping sender that idle() has missed, and the
        // next line a message whose sender has missed the armed flag.
        self.wake_a_sender(true);
        let quiet = !self.is_begun() && !other.is_some_and(MessageReceiver::is_begun);
        if !quiet || self.mismatch.is_some() {
            self.wake_flag().disarm();
            return None;
        }
        Some(if certain { longest } else { NAP })
    }

    /// Whether no sender has begun a message. For a receiver that has called WakeFlag::arm_fenced()
    /// before. Two words of each share are mostly enough: senders take tickets in order, so if
    /// SendCNT is the next ticket and this ticket is not claimed, no later one is.
    pub fn is_quiet(&mut self) -> bool {
        let none =
            |state: &ShareState| state.share.awaits(state.next) && state.next == state.returned;
        if self.asides.is_empty() && self.states.iter().all(none) {
            return true;
        }
        self.handle_all_unfinished();
        !self.is_begun()
    }

    fn handle_all_unfinished(&mut self) {
        let present = self.at;
        for at in 0..self.states.len() {
            self.turn_to(at);
            self.handle_unfinished();
        }
        // Back, since the next message most likely arrives in the share of the last one.
        self.turn_to(present);
    }

    /// Whether a sender has begun a message that the receiver has not taken.
    fn is_begun(&self) -> bool {
        self.states.iter().any(ShareState::is_begun) || self.asides_have_come()
    }
}
