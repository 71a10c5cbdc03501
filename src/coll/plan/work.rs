//! Working for a plan between the start of a round and its end.

use crate::coll::plan::{Bounce, ENLISTED, Engine, Far, Plan};
use crate::coll::runner::put_sender::PutSender;
use crate::coll::runner::queue::{Claim, between_word_and_look};
use crate::coll::runner::record::compile;
use crate::coll::runner::shared::Worklist;
use crate::coll::runner::stepping::Ranks;
use crate::core::background::Task;
use crate::engine::completion;
use crate::util::pin::pin;
use crate::util::status::Status;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

/// Bytes that are moved at one go for the own rank, and for another one.
pub(super) const BURST: u64 = 1 << 20;
const HELP: u64 = 256 << 10;

impl Plan {
    pub(super) fn queues(&self) -> usize {
        self.stage.members[self.stage.me].session.queues()
    }

    /// Whether the queue has steps; one that has none has always ended.
    pub(super) fn has_steps(&self, queue: usize) -> bool {
        !self.stage.members[self.stage.me].session.records(queue).is_empty()
    }

    /// The first queue that has not ended the round; None: the round is over.
    #[inline]
    pub(super) fn unfinished(&self, round: u32) -> Option<usize> {
        let session = &self.stage.members[self.stage.me].session;
        session.finished().find(|(_, finished)| *finished != round).map(|(queue, _)| queue)
    }

    /// Makes the queues active, once a round, if that does not take more than `most` bytes. True:
    /// they are.
    pub(super) fn open(&self, round: u32, most: u64) -> bool {
        let opened = self.opened.load(Ordering::Acquire);
        if opened == round {
            return true;
        }
        let bytes = self.inputs.iter().map(|bounce| bounce.bytes).sum::<u64>();
        if bytes > most || !open_next(&self.opening, round) {
            return false;
        }
        let session = &self.stage.members[self.stage.me].session;
        if !self.bounce(self.inputs.iter().copied(), true) {
            // The next look ends the round.
            self.stage.fail(Status::ERR_KEY);
        }
        if self.about.engine == Engine::Thread {
            // SAFETY: as many records as at init; nobody else runs steps of this rank.
            unsafe { session.write(&self.program.as_ref().map_or(Vec::new(), compile)) };
        }
        self.activate(round);
        true
    }

    /// Notes, in rounds in which the start has looked at the clock, how soon after it the user
    /// waits.
    #[inline]
    pub(super) fn note_wait(&self, round: u32) {
        if self.policy.looks_at_the_clock(round) {
            self.habits.note_wait(self.clock(), self.policy.crowded);
        }
    }

    /// Whether the owner of a plain plan polls its queue on from now on, so that deliverers need no
    /// fence.
    #[inline]
    pub(super) fn polls_on(&self) -> bool {
        self.policy.may_poll_on && self.habits.has_quick_ends()
    }

    /// Gives the queue of a plain plan back, and looks once more for what was left to this thread
    /// meanwhile.
    pub(super) fn let_go(&self, mine: Claim, worklist: &mut Worklist) {
        let me = self.stage.me;
        let line = self.stage.members[me].session.queue(0);
        self.habits.note_slow_end();
        line.end_polling();
        line.release(mine);
        if self.stage.is_ready(me, 0) {
            self.stage.run(me, 0, worklist);
        }
    }

    /// Whether a step of the own queues seems ready.
    #[inline]
    pub(super) fn is_ready(&self) -> bool {
        (0..self.queues()).any(|queue| self.may_run(queue))
    }

    /// Whether the next step of an own queue could be run: a hint.
    #[inline]
    fn may_run(&self, queue: usize) -> bool {
        let waits = |put_sender: &Arc<PutSender>| put_sender.is_stalled(queue);
        self.stage.is_ready(self.stage.me, queue)
            && !self.stage.put_sender.as_ref().is_some_and(waits)
    }

    /// Runs what is ready of the own queues.
    #[inline]
    pub(super) fn run_own(&self, worklist: &mut Worklist) -> bool {
        let me = self.stage.me;
        (0..self.queues()).fold(false, |worked, queue| {
            let ready = self.may_run(queue);
            (ready && self.stage.run(me, queue, worklist)) | worked
        })
    }

    /// Runs what is ready of some other rank's queues, for one of them.
    pub(super) fn run_others(&self) -> bool {
        for member in self.stage.members.others(self.stage.me) {
            if !member.shared {
                continue;
            }
            for queue in 0..member.session.queues() {
                if member.session.queue(queue).is_owners()
                    || !self.stage.is_ready(member.rank, queue)
                {
                    continue;
                }
                let mut worklist = Worklist::new(HELP, true);
                let worked = self.stage.run(member.rank, queue, &mut worklist);
                self.leave(&worklist);
                if worked {
                    return true;
                }
            }
        }
        false
    }

    /// Does what there is to do. `opened`: the own queues are active; `help`: other ranks' too.
    pub(super) fn work(&self, opened: bool, help: bool) -> bool {
        // A thread that polls comes here all the time: a worklist is made only where there is
        // something to do.
        let own = opened && self.is_ready() && {
            let mut worklist = Worklist::new(BURST, true);
            let worked = self.run_own(&mut worklist);
            self.leave(&worklist);
            worked
        };
        own || help && self.run_others()
    }

    /// Ends the round, once, if it is over. A plain plan's is ended by the thread that starts and
    /// waits.
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

    /// Ends a round of a plain plan that is over: once, by the thread that starts and waits.
    #[inline(always)]
    pub(super) fn end_plain(&self, round: u32) {
        if !self.outputs.is_empty() && !self.bounce(self.outputs.iter().copied(), false) {
            self.stage.fail(Status::ERR_KEY);
            self.outcome.store(Status::ERR_KEY.0, Ordering::Relaxed);
        }
        self.round_end().end_own(round);
    }

    pub(super) fn end(&self, round: u32, status: Status) {
        if !self.round_end().take(round, self.stage.me) && !self.inherit(round) {
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
        // What is cancelled is no error of the others', which are about to leave as well.
        if !matches!(status, Status::OK | Status::ERR_CANCELED) {
            return self.fail_round(round, status);
        }
        self.report_end(round, status);
    }

    /// Tells the user that a round has ended, which the caller has taken.
    pub(super) fn report_end(&self, round: u32, status: Status) {
        let completion = self.completion();
        self.outcome.store(status.0, Ordering::Relaxed);
        self.discharge(round);
        // See the head of `runner::round_end` for the order.
        let by_word = matches!(self.on_complete.kind, completion::STORE | completion::ADD);
        if by_word {
            self.services.fire(&completion, status);
        }
        self.round_end().end(round);
        if !by_word {
            self.services.fire(&completion, status);
        }
    }

    /// The progress thread need not look at this round any more.
    fn discharge(&self, round: u32) {
        let (enlisted, ok) = (ENLISTED | u64::from(round), Ordering::Relaxed);
        if self.policy.tasked && self.enlisted.compare_exchange(enlisted, 0, ok, ok).is_ok() {
            self.services.background.discharge();
        }
    }

    /// Whether another rank has taken it on itself to end the round, and has died before it did.
    fn inherit(&self, round: u32) -> bool {
        let closer = self.round_end().closer(round).filter(|closer| *closer != self.stage.me);
        let peer = closer.and_then(|closer| self.stage.peers.get(closer));
        peer.is_some_and(|peer| self.services.routes.is_dead(*peer))
            && closer.is_some_and(|dead| self.round_end().take_over(round, dead, self.stage.me))
    }

    /// Copies between buffers that peers do not map and the plan's copies of them. False: the user
    /// has freed one of them.
    pub(super) fn bounce(&self, mut bounces: impl Iterator<Item = Bounce>, inwards: bool) -> bool {
        let _pinned = pin();
        bounces.all(|bounce| {
            let Some(user) = self.services.routes.own().find_near(bounce.user, bounce.bytes) else {
                return false;
            };
            let (from, to) = if inwards { (user, bounce.plan) } else { (bounce.plan, user) };
            // SAFETY: found while pinned; the plan's side is its own, as long as the block, and
            // nobody touches it between two rounds. The two do not overlap.
            unsafe { std::ptr::copy_nonoverlapping(from, to, bounce.bytes as usize) };
            true
        })
    }

    /// Why the plan cannot go on: it has failed, or a rank has died or has left.
    #[inline]
    pub(super) fn trouble(&self) -> Option<Status> {
        let own = &self.stage.members[self.stage.me].session;
        let deaths = self.services.routes.deaths();
        // In the midst of finalize a rank that leaves has not died.
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

    /// Fails the plan if a rank of another node has said that it does not take part in this round.
    #[cold]
    fn hear_refusal(&self, far: &Far, round: u32) {
        if let Some(status) = far.put_receiver.failed_after(round.wrapping_sub(1)) {
            self.stage.fail(status);
        }
    }

    /// Ends a round that cannot go on. True: it did.
    pub(super) fn end_if_in_trouble(&self, round: u32) -> bool {
        if let Some(far) = &self.far {
            self.hear_refusal(far, round);
        }
        let trouble = self.trouble();
        if let Some(status) = trouble {
            // A rank that has left after the last step for this one is no trouble.
            self.close(round);
            self.end(round, status);
            self.end_if_quiet(false);
        }
        trouble.is_some()
    }
}

/// Whether the caller opens this round.
fn open_next(opening: &AtomicU32, round: u32) -> bool {
    let before = round.wrapping_sub(1);
    opening.compare_exchange(before, round, Ordering::AcqRel, Ordering::Acquire).is_ok()
}

impl Task for Plan {
    fn advance(&self) -> bool {
        // Acquire: pairs with start().
        let round = self.rounds.load(Ordering::Acquire);
        // Taken before the look: what is left later is a debt of its own.
        if self.debts.load(Ordering::Relaxed) && self.debts.swap(false, Ordering::AcqRel) {
            self.services.background.discharge();
            if self.run_others() {
                self.owe();
                return true;
            }
        }
        if self.round_end().is_closed(round) {
            match self.has_ended(round) {
                true => self.discharge(round),
                // Another rank is at it, and may have died.
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
        // Signals of deliverers that saw the queues before they were active.
        between_word_and_look();
        // Others' queues, too: ranks of engine `offload` leave theirs to any thread that looks.
        let worked = self.work(opened, true);
        if self.policy.plain {
            // The waiting thread ends its rounds, with or without success: this thread might come
            // late, in the midst of further ones.
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
        // What has come before others knew that they must ring.
        let round = self.rounds.load(Ordering::Acquire);
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
        let round = self.rounds.load(Ordering::Acquire);
        !self.parked.any()
            && (self.round_end().is_closed(round)
                || self.policy.plain && self.unfinished(round).is_none())
    }

    fn is_crowded(&self) -> bool {
        self.policy.crowded
    }

    fn is_worth_staying(&self) -> bool {
        let rounds = self.rounds.load(Ordering::Relaxed);
        let used = self.watched.swap(rounds, Ordering::Relaxed) != rounds;
        used && self.policy.tasked && !self.policy.crowded && self.habits.is_away()
    }

    fn cancel(&self, status: Status) {
        let round = self.rounds.load(Ordering::Acquire);
        self.close(round);
        self.end(round, status);
        self.end_if_quiet(true);
    }
}
