//! How a plan fails at all of its ranks. A rank marks the sessions of the ranks that it knows,
//! which may be few, and sends the failure to those that it puts to. So each rank that finds the
//! mark passes it on: when its round ends (`quiet`) or, between two rounds, when it refuses the
//! next start.
//!
//! The plans of one handle (`coll::rounds`) fail together: a rank that knows that a round has
//! failed starts none of the next ones, in which the other ranks would wait for it.

use crate::coll::plan::Plan;
use crate::coll::plan::wait::PAUSE;
use crate::coll::runner::session::Session;
use crate::util::once::Once;
use crate::util::status::{Error, Result, Status};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};

/// The other plans of the same handle.
#[derive(Default)]
pub(super) struct Beside(Once<Box<[Weak<Plan>]>>);

impl Plan {
    /// Makes these plans fail together from now on. Called before the first start of any of them.
    pub fn fail_together(plans: &[&Arc<Plan>]) {
        for plan in plans {
            let others = plans.iter().filter(|other| !Arc::ptr_eq(other, plan));
            plan.beside.0.get_or_init(|| others.map(|other| Arc::downgrade(other)).collect());
        }
    }

    /// Fails the plan, and those beside it, at the ranks that this one knows.
    #[cold]
    pub(super) fn fail(&self, status: Status) {
        self.stage.fail(status);
        let beside = self.beside.0.get().into_iter().flatten();
        beside.filter_map(Weak::upgrade).for_each(|plan| plan.stage.fail(status));
    }

    /// Fails the plan because the output of a round that is over cannot be copied to the user.
    #[cold]
    pub(super) fn fail_ended(&self, status: Status) {
        self.outcome.store(status.0, Ordering::Relaxed);
        self.fail(status);
    }

    /// Fails the plan for all rounds that this rank has not started. Ranks of other nodes end the
    /// rounds in which this rank took part.
    #[cold]
    pub(super) fn fail_next(&self, status: Status) -> Error {
        if let Some(put_sender) = &self.stage.put_sender {
            let rounds = self.rounds.load(Ordering::Relaxed);
            put_sender.send_failed(
                &self.stage.members,
                status,
                (rounds > 0).then_some(rounds as u32),
            );
        }
        self.fail(status);
        failed(status)
    }

    /// Fails if the plan has failed, and passes the failure on.
    #[inline(always)]
    pub(super) fn pass_failure_on(&self) -> Result<()> {
        self.trouble().map_or(Ok(()), |status| Err(self.fail_next(status)))
    }

    /// Called if this rank refuses the next round, which others may have begun: the plan fails at
    /// all ranks. Other ranks may still be in earlier rounds, which end first.
    #[cold]
    pub fn refuse(&self, status: Status) {
        let round = self.round();
        let reached = |finished: u32| finished.wrapping_sub(round) as i32 >= 0;
        let is_over = |session: &Session| session.finished().all(|(_, finished)| reached(finished));
        let all_over = || self.stage.members.iter().all(|member| is_over(&member.session));
        let stays = || self.services.must_stay().is_ok();
        while !all_over() && self.trouble().is_none() && stays() {
            if !self.run_others() {
                std::thread::sleep(PAUSE);
            }
        }
        self.fail_next(status);
    }
}

/// The answer of a call for a plan that has failed.
#[cold]
pub(super) fn failed(status: Status) -> Error {
    let text = status.text().trim_end_matches('\0');
    Error::new(status, format!("the plan has failed: {text}"))
}
