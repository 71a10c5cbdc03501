//! How long libllcl's polling thread may sleep.

use crate::lane::MpiLane;
use crate::table::Armed;

/// How long it sleeps while bytes of large operations are under way: MPI moves them inside its
/// calls only, and at the end of a sleep of a millisecond a socket would have been empty for most
/// of that time.
const SHORT_NS: i64 = 20_000;
/// After so many such sleeps without an event its sleeps get longer: the peer is perhaps stopped.
const MOST: u32 = 100;
/// Values of `how` of llcl_wire_armed_t.
const POLL_NOW: u32 = 0;
const POLL_AFTER: u32 = 2;

impl MpiLane {
    /// What arm() of llcl_wire.h returns.
    pub fn arm(&mut self) -> Armed {
        let how = if self.must_poll() { POLL_NOW } else { POLL_AFTER };
        let moves = self.remote.transfers.used() > 0 || self.remote.served.used() > 0;
        let is_short = moves && self.short_sleeps < MOST && !self.is_over();
        self.short_sleeps += u32::from(is_short);
        Armed { how, fd: -1, after_ns: if is_short { SHORT_NS } else { 0 } }
    }

    /// Whether the next poll() has an event without a call of MPI, or an answer to send.
    fn must_poll(&self) -> bool {
        let sends = !self.unsent.is_empty() && !self.is_over() && self.requests.may_call();
        sends || !self.requests.events.is_empty()
    }
}
