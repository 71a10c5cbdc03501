//! The counters of a context: many threads add to them, and they are read rarely.

use crate::util::pin::{number_thread, thread_number};
use crossbeam_utils::CachePadded;
use std::sync::atomic::{AtomicU64, Ordering};

/// Most shares of a receiver's credits.
pub const SHARES: usize = 16;
/// The number of threads that count their messages without an atomic read-modify-write, each on a
/// cache line of its own.
const COUNTING: usize = 32;

/// One number.
#[derive(Debug, Default)]
pub struct Count(AtomicU64);

impl Count {
    /// Adds one.
    #[inline(always)]
    pub fn up(&self) {
        // Release: pairs with get_done().
        self.0.fetch_add(1, Ordering::Release);
    }

    /// Like `up`, for a counter that only one thread at a time changes: a plain load and store.
    #[inline(always)]
    pub fn up_alone(&self, by: u64) {
        // Release: publishes the counted work; pairs with get_done().
        self.0.store(self.get().wrapping_add(by), Ordering::Release);
    }

    /// The number. The caller sees the effects of the work that was counted.
    #[inline(always)]
    pub fn get_done(&self) -> u64 {
        // Acquire: pairs with up() and up_alone().
        self.0.load(Ordering::Acquire)
    }

    /// Raises the number to `value`, if it is lower.
    #[inline]
    pub fn raise(&self, value: u64) {
        if value > self.get() {
            self.0.fetch_max(value, Ordering::Relaxed);
        }
    }

    /// The number.
    #[inline(always)]
    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// The counts of one context.
#[derive(Default)]
pub struct Counters {
    /// Messages sent by the threads that have a line of their own, by thread and share; last the
    /// replies and acknowledgements.
    sent: [CachePadded<[Count; SHARES + 1]>; COUNTING],
    /// Those of the other threads.
    sent_by_others: CachePadded<[Count; SHARES + 1]>,
    /// Changes of a peer's SendCNT that failed or were taken back, by share.
    lost_updates: [Count; SHARES],
    /// Reads of a peer's RecvCNT.
    pub credit_reads: Count,
    /// Sleeps because there was no credit.
    pub credit_sleeps: Count,
    /// Wake-ups of a peer's receiver.
    pub wake_ups: Count,
    /// Requests to owners of memory.
    pub owner_requests: Count,
    /// Refusals by reason: queue full, no tag, busy, no credit, connecting.
    pub retries: [Count; 5],
    /// Requests that were parked.
    pub parked: Count,
    /// Most requests that were parked at one time.
    pub parked_high_water: Count,
    /// Slots that were skipped.
    pub skips: Count,
    /// Messages handled.
    pub handled: CachePadded<Count>,
    /// Messages without a handler.
    pub unknown: Count,
    /// The most messages that were found waiting at one time.
    pub slots_high_water: Count,
    /// The most requests that were seen to wait for their end at one time.
    pub requests_high_water: Count,
    /// Collectives without a plan of the program for which the team's cache had a plan.
    pub plans_found: Count,
    /// Collectives without a plan of the program for which the library made a plan.
    pub plans_made: Count,
}

impl Counters {
    /// A message was sent, with a ticket of this share.
    #[inline(always)]
    pub fn message_sent(&self, share: usize) {
        match thread_number() {
            Some(own) => self.message_sent_by(own, share),
            None => self.other_sent(None, share % SHARES),
        }
    }

    /// Like message_sent(), for a calling thread whose number is `own`.
    #[inline(always)]
    pub fn message_sent_by(&self, own: usize, share: usize) {
        match own < COUNTING {
            // One living thread has the number.
            true => self.sent[own][share % SHARES].up_alone(1),
            false => self.other_sent(Some(own), share % SHARES),
        }
    }

    /// A reply, a response or an acknowledgement was sent.
    #[inline(always)]
    pub fn replied(&self) {
        match thread_number() {
            Some(own) => self.replied_by(own),
            None => self.other_sent(None, SHARES),
        }
    }

    /// Like replied(), for a calling thread whose number is `own`.
    #[inline(always)]
    pub fn replied_by(&self, own: usize) {
        match own < COUNTING {
            true => self.sent[own][SHARES].up_alone(1),
            false => self.other_sent(Some(own), SHARES),
        }
    }

    /// Counts a message of a thread that has no line of its own.
    #[cold]
    fn other_sent(&self, number: Option<usize>, what: usize) {
        self.sent_by_others[what].up();
        if number.is_none() {
            number_thread();
        }
    }

    /// A change of this share's SendCNT failed, or was taken back.
    #[cold]
    pub fn update_lost(&self, share: usize) {
        self.lost_updates[share % SHARES].up();
    }

    /// Messages sent with tickets of one share; of SHARES: replies.
    fn sent_of(&self, share: usize) -> u64 {
        let lines = self.sent.iter().chain([&self.sent_by_others]);
        lines.map(|line| line[share].get()).sum()
    }

    /// Replies and acknowledgements.
    pub fn replies(&self) -> u64 {
        self.sent_of(SHARES)
    }

    /// Messages sent.
    pub fn sent(&self) -> u64 {
        (0..SHARES).map(|share| self.sent_of(share)).sum()
    }

    /// Changes of peers' SendCNT that were tried, by share.
    pub fn credit_updates(&self) -> [u64; SHARES] {
        std::array::from_fn(|share| self.sent_of(share) + self.lost_updates[share].get())
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn what_several_threads_count_is_summed() {
        let counts = Counters::default();
        std::thread::scope(|scope| {
            for _ in 0..COUNTING + 8 {
                scope.spawn(|| (0..1000).for_each(|_| counts.message_sent(3)));
            }
        });
        let all = (COUNTING as u64 + 8) * 1000;
        assert_eq!(counts.sent(), all);
        counts.update_lost(3);
        assert_eq!(counts.credit_updates()[3], all + 1);
        counts.requests_high_water.raise(7);
        counts.requests_high_water.raise(3);
        assert_eq!(counts.requests_high_water.get(), 7);
    }
}
