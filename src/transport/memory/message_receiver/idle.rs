//! What a receiver does when nothing comes: it skips what dead senders have begun, corrects a
//! limit, and prepares for sleep.

use super::{Class, MessageReceiver, Stand};
use crate::transport::memory::message_area::Policy;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// How long a ticket may stay unclaimed before it is passed over. Its sender is between two
/// instructions: preempted, or dead.
const UNCLAIMED: Duration = Duration::from_millis(2);

impl MessageReceiver {
    /// Passes over the tickets of the present share that nobody will publish; the head of `slots`
    /// says when. The other shares, which may be busy, do not keep the receiver from it.
    #[cold]
    pub(super) fn look_after_the_unfinished(&mut self) {
        self.drop_dead_asides();
        loop {
            let at = self.at;
            self.pass_asides();
            self.turn_to(at);
            let stand = &mut self.stands[self.at];
            stand.misses = 0;
            let (share, next) = (stand.share, stand.next);
            if share.is_ready(next) || !stand.is_begun() {
                stand.unfinished = None;
                break;
            }
            let since = stand.unfinished.unwrap_or_else(Instant::now);
            let dead = |rank: u32| {
                let flag = self.dead.get(rank as usize);
                // Acquire: pairs with the Release in Node::mark_dead.
                flag.is_none_or(|dead| dead.load(Ordering::Acquire))
            };
            if !share.pass_over(next, dead, since.elapsed() > UNCLAIMED) {
                stand.unfinished = Some(since);
                if !self.set_aside(since) {
                    break;
                }
                continue;
            }
            self.counts.skips.up();
            self.done();
        }
        self.aim();
        self.settle();
        self.find_astray();
    }

    /// Policy limit: a sender that died after it had counted its message and before it had a ticket
    /// leaves the counter too high for ever. Where nothing is under way both counters are equal; if
    /// they are not for a while, they are made so. A living sender that is in between then lets one
    /// message more through than the limit says, which the slots do not mind.
    fn find_astray(&mut self) {
        if self.message_area.sizes.policy != Policy::Limit || self.class != Class::Requests {
            return;
        }
        let head = self.message_area.head;
        let (sent, consumed) = (&head.sent.0, head.consumed.0.load(Ordering::Relaxed));
        let seen = sent.load(Ordering::Relaxed);
        let idle = self.stands[0].share.sent() == self.stands[0].next;
        if seen == consumed || !idle {
            self.astray = None;
        } else if self.astray.get_or_insert_with(Instant::now).elapsed() > UNCLAIMED
            && sent.compare_exchange(seen, consumed, Ordering::Relaxed, Ordering::Relaxed).is_ok()
        {
            self.astray = None;
            self.counts.skips.up();
        }
    }

    /// Announces that nobody looks from now on, so that a sender must ring. `other`: a
    /// receiver behind the same door. Some: how long the caller may sleep; None: something has come
    /// already, or is just coming.
    pub fn arm(
        &mut self,
        longest: Duration,
        other: Option<&mut MessageReceiver>,
    ) -> Option<Duration> {
        /// Where the kernel does not run the fence a message may be overlooked for so long.
        const NAP: Duration = Duration::from_millis(1);
        self.look_after_all();
        let other = other.map(|other| {
            other.look_after_all();
            &*other
        });
        let certain = self.door().close();
        // A message that was overlooked before the fence is seen now.
        self.wake_a_sender(true);
        let quiet = !self.is_begun() && !other.is_some_and(MessageReceiver::is_begun);
        if !quiet || self.astray.is_some() {
            self.door().open();
            return None;
        }
        Some(if certain { longest } else { NAP })
    }

    /// Whether no sender has begun with a message, for a receiver whose senders look at a door that
    /// was closed by Door::close_fenced() before. In most cases two words of each share tell:
    /// tickets are taken in their order, so where the next one is free all behind it are, unless
    /// somebody has written nonsense to SendCNT.
    pub fn is_quiet(&mut self) -> bool {
        let none = |stand: &Stand| stand.share.awaits(stand.next) && stand.next == stand.returned;
        if self.asides.is_empty() && self.stands.iter().all(none) {
            return true;
        }
        self.look_after_all();
        !self.is_begun()
    }

    fn look_after_all(&mut self) {
        let present = self.at;
        for at in 0..self.stands.len() {
            self.turn_to(at);
            self.look_after_the_unfinished();
        }
        // That is where the next message is looked for first.
        self.turn_to(present);
    }

    /// Whether a sender has begun with a message that has not been taken.
    fn is_begun(&self) -> bool {
        self.stands.iter().any(Stand::is_begun) || self.asides_have_come()
    }
}
