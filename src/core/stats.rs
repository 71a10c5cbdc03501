//! The counters of a context, for its user.

use crate::core::context::Context;
use crate::util::counters::SHARES;
use crate::util::status::{Result, Status};

/// The counters, named as in llcl_stats_t.
#[allow(missing_docs)]
pub struct Counted {
    pub am_sent: u64,
    pub am_handled: u64,
    pub am_unknown: u64,
    pub am_replies: u64,
    pub retry_no_credit: u64,
    pub retry_queue_full: u64,
    pub retry_no_tag: u64,
    pub retry_busy: u64,
    pub retry_connecting: u64,
    pub parked: u64,
    pub parked_high_water: u64,
    pub credit_reads: u64,
    pub credit_updates: [u64; SHARES],
    pub skips: u64,
    pub wake_ups: u64,
    pub credit_sleeps: u64,
    pub slots_high_water: u64,
    pub requests_high_water: u64,
    pub am_memory: u64,
    pub am_slots_retired: u64,
    pub coll_cache_hits: u64,
    pub coll_cache_misses: u64,
    pub owner_requests: u64,
}

/// The "try again" statuses, in the order of their counters.
const REASONS: [Status; 5] = [
    Status::RETRY_QUEUE_FULL,
    Status::RETRY_NO_TAG,
    Status::RETRY_BUSY,
    Status::RETRY_NO_CREDIT,
    Status::RETRY_CONNECTING,
];

impl Context {
    /// Counts a refusal by its reason.
    #[inline]
    pub(super) fn counted<T>(&self, end: Result<T>) -> Result<T> {
        end.inspect_err(|error| {
            let at = REASONS.iter().position(|status| *status == error.status);
            if let Some(at) = at {
                self.post.counts.retries[at].up();
            }
        })
    }

    /// Reads the counters.
    pub fn stats(&self) -> Counted {
        let counts = &self.post.counts;
        let [queue_full, no_tag, busy, no_credit, connecting] =
            [0, 1, 2, 3, 4].map(|at: usize| counts.retries[at].get());
        Counted {
            am_sent: counts.sent(),
            am_handled: counts.handled.get(),
            am_unknown: counts.unknown.get(),
            am_replies: counts.replies(),
            retry_no_credit: no_credit,
            retry_queue_full: queue_full,
            retry_no_tag: no_tag,
            retry_busy: busy,
            retry_connecting: connecting,
            parked: counts.parked.get(),
            parked_high_water: counts.parked_high_water.get(),
            credit_reads: counts.credit_reads.get(),
            credit_updates: counts.credit_updates(),
            skips: counts.skips.get(),
            wake_ups: counts.wake_ups.get(),
            credit_sleeps: counts.credit_sleeps.get(),
            slots_high_water: counts.slots_high_water.get(),
            requests_high_water: counts.requests_high_water.get(),
            am_memory: self.routes.fabric().message_bytes(),
            am_slots_retired: self.routes.fabric().slots_retired(),
            coll_cache_hits: counts.plans_found.get(),
            coll_cache_misses: counts.plans_made.get(),
            owner_requests: counts.owner_requests.get(),
        }
    }

    /// The number of shares into which this rank's slots are split.
    pub fn am_shares(&self) -> u32 {
        self.routes.fabric().message_shares()
    }
}
