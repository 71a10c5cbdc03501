//! How a round ends that has failed: the user is told when no thread runs a step any more that may
//! touch this rank's buffers, since the user may use them from then on. The round is parked until
//! then, and each thread that tests, waits or advances the plan looks again. A thread that runs a
//! step ends it or dies, so the round does not stay parked for ever.

use crate::coll::plan::Plan;
use crate::util::pin::global_fence_or_pause;
use crate::util::status::Status;
use std::sync::atomic::{AtomicU64, Ordering};

/// A round that has failed and has not been told.
#[derive(Default)]
pub(super) struct Parked(AtomicU64);

/// Set while a round is parked, whose number is in the lower half.
const PARKED: u64 = 1 << 32;

impl Parked {
    pub(super) fn any(&self) -> bool {
        self.0.load(Ordering::Relaxed) != 0
    }
}

impl Plan {
    /// Fails the round, which the caller has taken, at all ranks.
    pub(super) fn fail_round(&self, round: u32, status: Status) {
        self.stage.fail(status);
        if let Some(far) = &self.far {
            // What comes now does not touch the buffers any more.
            far.put_receiver.close();
        }
        // A thread that claims a queue or starts a round looks afterwards whether the plan has
        // failed, and has no fence between the two. This fence is for all of them: either that
        // thread sees the failure, or is_touched() sees its claim.
        global_fence_or_pause();
        self.outcome.store(status.0, Ordering::Relaxed);
        // Release: the outcome comes before; pairs with end_if_quiet().
        self.parked.0.store(PARKED | u64::from(round), Ordering::Release);
        self.end_if_quiet(false);
    }

    /// Ends the round that is parked, if there is one and nobody touches this rank's buffers.
    /// `at_once`: even if somebody does.
    pub(super) fn end_if_quiet(&self, at_once: bool) {
        // Acquire: pairs with fail_round().
        let parked = self.parked.0.load(Ordering::Acquire);
        let (ok, bad) = (Ordering::AcqRel, Ordering::Relaxed);
        if parked != 0
            && (at_once || !self.is_touched())
            && self.parked.0.compare_exchange(parked, 0, ok, bad).is_ok()
        {
            self.report_end(parked as u32, Status(self.outcome.load(Ordering::Relaxed)));
        }
    }

    /// Whether a living rank runs a step that may touch this rank's buffers.
    fn is_touched(&self) -> bool {
        self.stage.members.iter().any(|member| {
            (0..member.session.queues()).any(|queue| {
                let claimer = member.session.queue(queue).control().claimer();
                let claimer = claimer.and_then(|rank| self.stage.peers.get(rank));
                claimer.is_some_and(|peer| !self.services.routes.is_dead(*peer))
            })
        })
    }
}
