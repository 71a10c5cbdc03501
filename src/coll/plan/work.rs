//! The work for a plan between the start of a round and its end.

use crate::coll::plan::{Bounce, COUNTED, Engine, Far, Plan};
use crate::coll::runner::owning::Owner;
use crate::coll::runner::put_sender::PutSender;
use crate::coll::runner::queue::full_fence;
use crate::coll::runner::shared::Worklist;
use crate::coll::runner::stepping::Ranks;
use crate::core::background::Task;
use crate::engine::completion;
use crate::util::pin::pin;
use crate::util::status::Status;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

/// The most bytes that one call moves for this rank.
pub(super) const BURST: u64 = 1 << 20;
/// The most bytes that one call moves for another rank.
const HELP: u64 = 256 << 10;

impl Plan {
    pub(super) fn queues(&self) -> usize {
        self.stage.members[self.stage.me].session.queues()
    }

    /// Whether the queue has steps; a queue without steps is not counted when a round ends.
    pub(super) fn has_steps(&self, queue: usize) -> bool {
        !self.stage.members[self.stage.me].session.records(queue).is_empty()
    }

    /// The first queue that has not finished the round; None: all have.
    #[inline]
    pub(super) fn unfinished(&self, round: u32) -> Option<usize> {
        let session = &self.stage.members[self.stage.me].session;
        session.finished().find(|(_, finished)| *finished != round).map(|(queue, _)| queue)
    }

    /// Opens the round unless a thread has done so: copies the input, if it has at most `most`
    /// bytes, and makes the queues active. True: the round is open.
    pub(super) fn open(&self, round: u32, most: u64) -> bool {
        let opened = self.opened.load(Ordering::Acquire);
        if opened == round {
            return true;
        }
        let bytes = self.inputs.iter().map(|bounce| bounce.bytes).sum::<u64>();
        if bytes > most || !open_next(&self.opening, round) {
            return false;
        }
        if !self.bounce(self.inputs.iter().copied(), true) {
            // The next look finds the failure and ends the round.
            self.fail(Status::ERR_KEY);
        }
        self.activate(round);
        true
    }

    /// Notes how soon the user waits, in rounds in which the start has read the clock.
    #[inline]
    pub(super) fn note_wait(&self, round: u32) {
        if self.policy.looks_at_the_clock(round) {
            self.habits.note_wait(self.clock(), self.policy.crowded);
        }
    }

    /// Whether the owner of a plain plan may set POLLED_ON now, so that deliverers need no fence.
    #[inline]
    pub(super) fn polls_on(&self) -> bool {
        self.policy.may_poll_on && self.habits.has_quick_ends()
    }

    /// Whether a step of this rank's queues can probably run: a hint.
    #[inline]
    pub(super) fn is_ready(&self) -> bool {
        (0..self.queues()).any(|queue| self.may_run(queue))
    }

    /// Whether the next step of one of this rank's queues can probably run: a hint.
    #[inline]
    fn may_run(&self, queue: usize) -> bool {
        let waits = |put_sender: &Arc<PutSender>| put_sender.is_stalled(queue);
        self.stage.is_ready(self.stage.me, queue)
            && !self.stage.put_sender.as_ref().is_some_and(waits)
    }

    /// Runs the ready steps of this rank's queues.
    #[inline]
    pub(super) fn run_own(&self, worklist: &mut Worklist) -> bool {
        let me = self.stage.me;
        (0..self.queues()).fold(false, |worked, queue| {
            let ready = self.may_run(queue);
            (ready && self.stage.run(me, queue, worklist)) | worked
        })
    }

    /// Runs the ready steps of one queue of another rank. Returns whether it ran any.
    pub(super) fn run_others(&self) -> bool {
        for member in self.stage.members.others(self.stage.me) {
            if !member.shared {
                continue;
            }
            for queue in 0..member.session.queues() {
                if !self.stage.needs_help(member.rank, queue) {
                    continue;
                }
                let mut worklist = Worklist::new(HELP, true);
                let worked = self.stage.run(member.rank, queue, &mut worklist);
                self.note_left(&worklist);
                if worked {
                    return true;
                }
            }
        }
        false
    }

    /// Runs the steps that are ready. `opened`: this rank's queues are active. `help`: also runs
    /// steps of other ranks.
    pub(super) fn work(&self, opened: bool, help: bool) -> bool {
        // A polling thread calls this very often, so a worklist is made only if a step is ready.
        let own = opened && self.is_ready() && {
            let mut worklist = Worklist::new(BURST, true);
            let worked = self.run_own(&mut worklist);
            self.note_left(&worklist);
            worked
        };
        own || help && self.run_others()
    }

    /// Ends the round, once, if all queues have finished it. Rounds of a plain plan are ended only
    /// by the thread that starts and waits.
    #[inline]
    pub(super) fn close(&self, round: u32) {
        if self.opened.load(Ordering::Acquire) == round && self.unfinished(round).is_none() {
            match self.policy.plain {
                true if self.has_ended(round) => {}
                true => self.end_plain(round),
                false => self.end(round, Status::OK),
            }
        }
    }

    /// Ends a round of a plain plan whose queue has finished it. Only the thread that starts and
    /// waits calls this, once.
    #[inline(always)]
    pub(super) fn end_plain(&self, round: u32) {
        if !self.outputs.is_empty() && !self.bounce(self.outputs.iter().copied(), false) {
            self.fail_ended(Status::ERR_KEY);
        }
        self.round_end().end_own(round);
    }

    pub(super) fn end(&self, round: u32, status: Status) {
        if !self.may_report()
            || !self.round_end().take(round, self.stage.me) && !self.take_over_from_dead(round)
        {
            return;
        }
        let status = match status {
            Status::OK if !self.bounce(self.outputs.iter().copied(), false) => Status::ERR_KEY,
            Status::OK if self.on_complete.kind != completion::NONE => match self.copy_out() {
                Ok(()) => Status::OK,
                Err(error) => error.status,
            },
            _ => status,
        };
        // ERR_CANCELED is no failure for the other ranks, which are about to finalize as well.
        if !matches!(status, Status::OK | Status::ERR_CANCELED) {
            return self.fail_round(round, status);
        }
        self.report_end(round, status);
    }

    /// Whether this thread may report the end of a round. If the user's callback would have to wait
    /// here until a running one has returned, and there is no room for it to wait, the progress
    /// thread ends the round. It would otherwise run inside the running callback, and a callback
    /// that starts its plan again would run inside itself, round after round.
    pub(super) fn may_report(&self) -> bool {
        let may = self.on_complete.kind != completion::CALL || completion::has_room(1);
        if !may {
            self.services.background.call(true);
        }
        may
    }

    /// Reports the end of a round, which the caller has taken, to the user.
    pub(super) fn report_end(&self, round: u32, status: Status) {
        let completion = self.completion();
        self.outcome.store(status.0, Ordering::Relaxed);
        // See the head of `runner::round_end` for the order.
        let by_word = matches!(self.on_complete.kind, completion::STORE | completion::ADD);
        // SAFETY: it was checked when the plan or the round was accepted. It fires once in each
        // round, and the user keeps it valid until then.
        let fire = || unsafe { self.services.fire(&completion, status) };
        if by_word {
            fire();
        }
        self.round_end().end(round);
        if !by_word {
            fire();
        }
        // Last: a thread that waits for a word which the completion changes gives up after a death
        // if no task is under way.
        self.remove_work(round);
    }

    /// The progress thread need no longer look at this round.
    fn remove_work(&self, round: u32) {
        let (counted, ok) = (COUNTED | u64::from(round), Ordering::Relaxed);
        if self.policy.tasked && self.counted.compare_exchange(counted, 0, ok, ok).is_ok() {
            self.services.background.remove_work();
        }
    }

    /// Takes the round over if the rank that took it has died before it ended the round.
    fn take_over_from_dead(&self, round: u32) -> bool {
        let closer = self.round_end().closer(round).filter(|closer| *closer != self.stage.me);
        let peer = closer.and_then(|closer| self.stage.peers.get(closer));
        peer.is_some_and(|peer| self.services.routes.is_dead(*peer))
            && closer.is_some_and(|dead| self.round_end().take_over(round, dead, self.stage.me))
    }

    /// Copies between buffers that peers do not map and their copies in the session. False: the
    /// user has freed one of the buffers.
    pub(super) fn bounce(&self, mut bounces: impl Iterator<Item = Bounce>, inwards: bool) -> bool {
        let _pinned = pin();
        bounces.all(|bounce| {
            let Some(user) = self.services.routes.own().find_near(bounce.user, bounce.bytes) else {
                return false;
            };
            let (from, to) = if inwards { (user, bounce.plan) } else { (bounce.plan, user) };
            // SAFETY: found while pinned; the copy lies in the plan's block, and no other thread
            // touches it between two rounds. The two do not overlap.
            unsafe { std::ptr::copy_nonoverlapping(from, to, bounce.bytes as usize) };
            true
        })
    }

    /// The reason why the plan cannot continue: it has failed, or a rank has died or left early.
    #[inline]
    pub fn trouble(&self) -> Option<Status> {
        let own = &self.stage.members[self.stage.me].session;
        let deaths = self.services.routes.deaths();
        // During finalize, ranks that leave are not dead.
        let open = self.services.must_be_open().is_ok();
        if open && deaths != self.deaths.load(Ordering::Relaxed) && !self.all_alive(deaths) {
            return Some(Status::ERR_PEER_DEAD);
        }
        own.failed()
    }

    #[cold]
    fn all_alive(&self, deaths: u32) -> bool {
        let dead = |peer: u32| self.services.routes.is_dead(peer);
        let alive = !self.stage.peers.iter().any(|peer| dead(*peer));
        if alive {
            self.deaths.store(deaths, Ordering::Relaxed);
        }
        alive
    }

    /// Fails the plan if a rank of another node has reported that it does not take part in this
    /// round.
    #[cold]
    fn check_refusal(&self, far: &Far, round: u32) {
        if let Some(status) = far.put_receiver.failed_after(round.wrapping_sub(1)) {
            self.fail(status);
        }
    }

    /// Ends a round that cannot continue. False: it can.
    pub(super) fn end_if_in_trouble(&self, round: u32) -> bool {
        if let Some(far) = &self.far {
            self.check_refusal(far, round);
        }
        let trouble = self.trouble();
        if let Some(status) = trouble {
            // If this rank's steps are done, the round has ended well although another rank has
            // left.
            self.close(round);
            self.end(round, status);
            self.end_if_quiet(false);
        }
        trouble.is_some()
    }
}

/// Whether the caller is the thread that opens this round.
fn open_next(opening: &AtomicU32, round: u32) -> bool {
    let before = round.wrapping_sub(1);
    opening.compare_exchange(before, round, Ordering::AcqRel, Ordering::Acquire).is_ok()
}

impl Task for Plan {
    fn advance(&self) -> bool {
        let round = self.round();
        // The flag is cleared before the look, since steps that are left after the look set it
        // again.
        if self.left.load(Ordering::Relaxed) && self.left.swap(false, Ordering::AcqRel) {
            self.services.background.remove_work();
            if self.run_others() {
                self.leave_to_progress_thread();
                return true;
            }
        }
        if self.round_end().is_closed(round) {
            match self.has_ended(round) {
                true => self.remove_work(round),
                // A thread of another rank is ending the round; its rank may have died.
                false => _ = self.end_if_in_trouble(round),
            }
            return false;
        }
        let session = &self.stage.members[self.stage.me].session;
        let offload = self.about.engine == Engine::Offload;
        if offload && self.waiting.load(Ordering::Relaxed) {
            return false;
        }
        if self.asleep.load(Ordering::Relaxed) {
            self.asleep.store(false, Ordering::Relaxed);
            session.set_asleep(false);
        }
        if !offload {
            self.set_polling(true);
        }
        let opened = self.open(round, u64::MAX);
        // After the fence work() finds the signals of deliverers that saw the queues before they
        // were active.
        full_fence();
        // It also runs steps of other ranks: with engine `offload` a rank leaves its steps to any
        // thread that looks.
        let worked = self.work(opened, true);
        if self.policy.plain {
            // Only the waiting thread ends rounds of a plain plan, since this thread might end a
            // later round than the one that it has seen.
            return worked;
        }
        self.close(round);
        worked || self.round_end().is_closed(round) || self.end_if_in_trouble(round)
    }

    fn begin_sleep(&self) -> bool {
        let me = self.stage.me;
        let session = &self.stage.members[me].session;
        if !self.asleep.swap(true, Ordering::Relaxed) {
            session.set_asleep(true);
        }
        let offload = self.about.engine == Engine::Offload;
        if !offload {
            self.set_polling(false);
        }
        // This look finds signals that came before their senders could see that they must ring.
        let round = self.round();
        let under_way = !self.round_end().is_closed(round);
        under_way
            && !(offload && self.waiting.load(Ordering::Relaxed))
            && (self.is_ready()
                || self.opened.load(Ordering::Acquire) != round
                || !self.policy.plain
                    && (self.unfinished(round).is_none() || self.trouble().is_some()))
    }

    fn rung(&self) -> u32 {
        0
    }

    fn is_idle(&self) -> bool {
        let round = self.round();
        !self.parked.any()
            && (self.round_end().is_closed(round)
                || self.policy.plain && self.unfinished(round).is_none())
    }

    fn is_crowded(&self) -> bool {
        self.policy.crowded
    }

    fn is_worth_staying(&self) -> bool {
        let rounds = self.round();
        let used = self.watched.swap(rounds, Ordering::Relaxed) != rounds;
        used && self.policy.tasked && !self.policy.crowded && self.habits.is_away()
    }

    fn cancel(&self, status: Status) {
        let round = self.round();
        self.close(round);
        self.end(round, status);
        self.end_if_quiet(true);
    }
}
