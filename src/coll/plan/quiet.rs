//! How a failed round ends. The user may use the buffers once the failure is reported. So it is
//! reported only when no thread runs a step that may access this rank's buffers, and no network
//! reads them. Until then the round is parked, and each thread that tests, waits for or advances
//! the plan looks again. A thread that runs a step ends it or dies, and each write ends, also if
//! the peer dies. So the round does not stay parked for ever. A rank of another node may still
//! write to this rank's output until its own round has failed.

use crate::coll::plan::Plan;
use crate::util::pin::global_fence_or_pause;
use crate::util::status::Status;
use std::sync::atomic::{AtomicU64, Ordering};

/// A failed round that was not reported yet.
#[derive(Default)]
pub(super) struct Parked(AtomicU64);

/// Set while a round is parked; the lower half is its number.
const PARKED: u64 = 1 << 32;

impl Parked {
    pub(super) fn any(&self) -> bool {
        self.0.load(Ordering::Relaxed) != 0
    }
}

impl Plan {
    /// Fails the plan at all ranks and ends the round, which the caller has taken.
    pub(super) fn fail_round(&self, round: u32, status: Status) {
        self.fail(status);
        if let Some(far) = &self.far {
            // From now on control messages of other nodes do not touch the buffers.
            far.put_receiver.close();
        }
        // A thread that claims a queue or starts a round reads afterwards whether the plan has
        // failed, without a fence in between. This call makes all such threads execute a fence:
        // either the thread sees the failure, or is_touched() sees its claim.
        global_fence_or_pause();
        self.outcome.store(status.0, Ordering::Relaxed);
        // Release: publishes the outcome; pairs with end_if_quiet().
        self.parked.0.store(PARKED | u64::from(round), Ordering::Release);
        self.end_if_quiet(false);
    }

    /// Reports the parked round, if there is one and no thread may access this rank's buffers.
    /// `at_once`: reports it even if a thread may.
    pub(super) fn end_if_quiet(&self, at_once: bool) {
        // Acquire: pairs with fail_round().
        let parked = self.parked.0.load(Ordering::Acquire);
        let (ok, bad) = (Ordering::AcqRel, Ordering::Relaxed);
        if parked != 0
            && (at_once || !self.is_touched())
            && self.may_report()
            && self.parked.0.compare_exchange(parked, 0, ok, bad).is_ok()
        {
            self.report_end(parked as u32, Status(self.outcome.load(Ordering::Relaxed)));
        }
    }

    /// Whether a living rank holds a claim, and so may run a step that accesses this rank's
    /// buffers, or a write from them is under way.
    fn is_touched(&self) -> bool {
        let writes = self.stage.put_sender.as_ref().is_some_and(|put_sender| put_sender.writes());
        writes
            || self.stage.members.iter().any(|member| {
                (0..member.session.queues()).any(|queue| {
                    let claimer = member.session.queue(queue).control().claimer();
                    let claimer = claimer.and_then(|rank| self.stage.peers.get(rank));
                    claimer.is_some_and(|peer| !self.services.routes.is_dead(*peer))
                })
            })
    }
}
