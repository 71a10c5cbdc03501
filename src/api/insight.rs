//! 17. Statistics: the counters of a context.

use crate::api::guard::{given, guard, known_size};
use crate::api::life::{live, llcl_context_t};
use crate::api::status::llcl_status_t;

/// Most shares of a receiver's credits.
pub const LLCL_AM_SHARES: u32 = 16;

/// Counts since the context was made. Unless a field says otherwise, it counts what this rank did
/// as a sender, whatever the receiver.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct llcl_stats_t {
    /// Bytes of this struct, set by the caller before the call.
    pub struct_size: u64,
    /// Active messages sent.
    pub am_sent: u64,
    /// Active messages taken from this rank's slots and handled.
    pub am_handled: u64,
    /// Active messages that arrived at this rank and had no handler.
    pub am_unknown: u64,
    /// Replies and acknowledgements sent.
    pub am_replies: u64,
    /// How often a request was answered by LLCL_RETRY_NO_CREDIT.
    pub retry_no_credit: u64,
    /// How often by LLCL_RETRY_QUEUE_FULL.
    pub retry_queue_full: u64,
    /// How often by LLCL_RETRY_NO_TAG.
    pub retry_no_tag: u64,
    /// How often by LLCL_RETRY_BUSY.
    pub retry_busy: u64,
    /// How often by LLCL_RETRY_CONNECTING.
    pub retry_connecting: u64,
    /// Requests with LLCL_FLAG_PARK that found no room and were parked.
    pub parked: u64,
    /// The most requests that were parked at one time; see LLCL_PARKED.
    pub parked_high_water: u64,
    /// How often this rank read a peer's count of received messages (RecvCNT in
    /// docs/flow-control.md), because its copy said that no slot is free.
    pub credit_reads: u64,
    /// Atomic exchanges by which this rank tried to take slots of peers, for each share.
    pub credit_updates: [u64; 16],
    /// Slots of this rank that it skipped, because their senders had died or were stopped.
    pub skips: u64,
    /// How often this rank's messages and replies woke a sleeping receiver: a system call each.
    pub wake_ups: u64,
    /// How often a thread of this rank slept because there was no credit.
    pub credit_sleeps: u64,
    /// The most messages that waited in this rank's slots at one time.
    pub slots_high_water: u64,
    /// The most messages of this rank that waited for their end at one time. The number may be too
    /// small, but is at least the most that one thread had waiting, up to 64.
    pub requests_high_water: u64,
    /// Bytes of this rank's memory that message slots and reply slots take at most, whatever the
    /// number of ranks.
    pub am_memory: u64,
    /// Collectives without a plan of the user's, blocking or not, that found the plan of an earlier
    /// call; see LLCL_COLL_CACHE. Without llcl_barrier.
    pub coll_cache_hits: u64,
    /// Such collectives that found none and made a plan, which is kept.
    pub coll_cache_misses: u64,
    /// Receive buffers for messages from a network that are not used again, because a rank that has
    /// died may still write to them. If the network can tell when no more data of a rank can
    /// arrive, the library uses the buffers again from then on.
    pub am_slots_retired: u64,
    /// Requests to ranks for their own memory, where neither this rank nor a network could access
    /// it. One request brings many pieces of a box or list. Questions of the library itself, for
    /// example for the address of a region, are not counted.
    pub owner_requests: u64,
}

/// Reads the counters of a context.
///
/// `context`: a live context. `stats`: the caller's struct with its struct_size set; filled. The
/// counters are read one after the other, while other threads may change them.
/// LLCL_OK; LLCL_ERR_INVALID: NULL, or an unknown struct_size. Any thread may call it.
/// From: fi_cntr_read of libfabric reads such counts; the choice of counters is this library's
/// own.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn llcl_stats_get(
    context: *mut llcl_context_t,
    stats: *mut llcl_stats_t,
) -> llcl_status_t {
    guard(|| {
        // SAFETY: the caller gives a live context and a struct.
        let (context, asked) = unsafe { (live(context)?, given(stats, "stats")?) };
        known_size(asked.struct_size, size_of::<llcl_stats_t>())?;
        let counted = context.stats();
        let answer = llcl_stats_t {
            struct_size: asked.struct_size,
            am_sent: counted.am_sent,
            am_handled: counted.am_handled,
            am_unknown: counted.am_unknown,
            am_replies: counted.am_replies,
            retry_no_credit: counted.retry_no_credit,
            retry_queue_full: counted.retry_queue_full,
            retry_no_tag: counted.retry_no_tag,
            retry_busy: counted.retry_busy,
            retry_connecting: counted.retry_connecting,
            parked: counted.parked,
            parked_high_water: counted.parked_high_water,
            credit_reads: counted.credit_reads,
            credit_updates: counted.credit_updates,
            skips: counted.skips,
            wake_ups: counted.wake_ups,
            credit_sleeps: counted.credit_sleeps,
            slots_high_water: counted.slots_high_water,
            requests_high_water: counted.requests_high_water,
            am_memory: counted.am_memory,
            coll_cache_hits: counted.coll_cache_hits,
            coll_cache_misses: counted.coll_cache_misses,
            am_slots_retired: counted.am_slots_retired,
            owner_requests: counted.owner_requests,
        };
        // SAFETY: as above.
        unsafe { stats.write(answer) };
        Ok(())
    })
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_versions_agree() {
        use crate::api::life::{LLCL_VERSION_MAJOR, LLCL_VERSION_MINOR, LLCL_VERSION_PATCH};
        let text = format!("{LLCL_VERSION_MAJOR}.{LLCL_VERSION_MINOR}.{LLCL_VERSION_PATCH}");
        assert_eq!(text, env!("CARGO_PKG_VERSION"));
    }
}
