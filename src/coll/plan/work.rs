//! Working for a plan between the start of a round and its end.

use crate::coll::plan::{AT_START, Bounce, Engine, Plan};
use crate::coll::queue::{Claim, between_word_and_look};
use crate::coll::record::compile;
use crate::coll::run::{End, Errand};
use crate::core::agenda::Task;
use crate::engine::completion;
use crate::util::pin::pin;
use crate::util::status::Status;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// Bytes that are moved at one go for the own rank, and for another one.
pub(super) const BURST: u64 = 1 << 20;
const HELP: u64 = 256 << 10;
/// Nanoseconds between start and wait up to which nobody need stand in for the owner meanwhile.
const PROMPT: u64 = 1_000;
/// How long a rank whose plan has failed waits for others to stop touching its buffers.
const QUIET: Duration = Duration::from_millis(500);

impl Plan {
    fn queues(&self) -> usize {
        self.stage.members[self.stage.me].session.queues()
    }

    /// Whether the queue has steps; one that has none has always ended.
    fn has_steps(&self, queue: usize) -> bool {
        !self.stage.members[self.stage.me].session.records(queue).is_empty()
    }

    /// The first queue that has not ended the round; None: the round is over.
    #[inline]
    pub(super) fn unfinished(&self, round: u32) -> Option<usize> {
        let session = &self.stage.members[self.stage.me].session;
        let finished = |queue: usize| session.queue(queue).control().finished();
        (0..session.queues()).find(|queue| self.has_steps(*queue) && finished(*queue) != round)
    }

    /// Makes the queues active, once a round, if that does not take more than `most` bytes. True: they are.
    pub(super) fn open(&self, round: u32, most: u64) -> bool {
        let opened = self.opened.load(Ordering::Acquire);
        if opened == round {
            return true;
        }
        let bytes = self.inputs.iter().flatten().map(|bounce| bounce.bytes).sum::<u64>();
        if bytes > most || !claim(&self.opening, round) {
            return false;
        }
        let session = &self.stage.members[self.stage.me].session;
        if !self.inputs.iter().flatten().all(|bounce| self.bounce(bounce, true)) {
            // The next look ends the round.
            self.stage.fail(Status::ERR_KEY);
        }
        if self.about.engine == Engine::Thread {
            let program = (self.recipe.program)(&self.recipe.problem, self.stage.me);
            // SAFETY: as many records as at init; nobody else runs steps of this rank.
            unsafe { session.write(&compile(&program)) };
        }
        self.activate(round);
        true
    }

    /// Opens a round that needs no more than that, in the thread that starts it and before anybody else knows
    /// of it. False: the plan needs more.
    #[inline]
    pub(super) fn open_at_start(&self, round: u32) -> bool {
        let plain = self.about.engine == Engine::Offload && self.inputs[0].is_none();
        if plain && self.inputs[1].is_none() {
            self.opening.store(round, Ordering::Relaxed);
            self.activate(round);
            return true;
        }
        false
    }

    /// Starts a round of a plain plan, and runs what is ready.
    #[inline]
    pub(super) fn start_plain(&self, round: u32) {
        let me = self.stage.me;
        let line = self.stage.members[me].session.queue(0);
        self.opening.store(round, Ordering::Relaxed);
        let mut mine = line.activate_claimed(round.wrapping_sub(1), me);
        // Release: pairs with advance(); the queue is active.
        self.opened.store(round, Ordering::Release);
        self.rounds.store(round, Ordering::Release);
        if is_sampled(round) {
            self.began.store(self.clock(), Ordering::Relaxed);
        }
        let mut errand = Errand::small(AT_START);
        let end = self.stage.run_claimed(me, 0, &mut mine, &mut errand);
        match end {
            End::Finished => self.end_plainly(round),
            End::Full => self.let_go(mine, &mut errand),
            _ if self.prompt.load(Ordering::Relaxed) => line.lease(mine),
            _ => self.let_go(mine, &mut errand),
        }
        self.stage.run_released(&mut errand);
        self.leave(&errand);
    }

    /// Notes, now and then, whether the user waits as soon as a round of a plain plan is started.
    #[inline]
    pub(super) fn note_wait(&self, round: u32) {
        if is_sampled(round) {
            let passed = self.clock().saturating_sub(self.began.load(Ordering::Relaxed));
            self.prompt.store(passed < PROMPT && !self.crowded, Ordering::Relaxed);
        }
    }

    /// Gives the queue of a plain plan back, and looks once more for what was left to this thread meanwhile.
    pub(super) fn let_go(&self, mine: Claim, errand: &mut Errand) {
        let me = self.stage.me;
        let line = self.stage.members[me].session.queue(0);
        line.unattend();
        line.release(mine);
        if self.stage.is_ready(me, 0) {
            self.stage.run(me, 0, errand);
        }
    }

    /// The round of a plain plan is over. Whoever else comes here, when the context ends, stores the same.
    #[inline]
    pub(super) fn end_plainly(&self, round: u32) {
        self.closed.store(round, Ordering::Relaxed);
        // Release: what the round did is seen by whoever sees that it has ended.
        self.ended.store(round, Ordering::Release);
    }

    fn activate(&self, round: u32) {
        let session = &self.stage.members[self.stage.me].session;
        for queue in (0..session.queues()).filter(|queue| self.has_steps(*queue)) {
            session.queue(queue).activate(round.wrapping_sub(1));
        }
        // Release: the input is in its place; pairs with close(), which may copy over it.
        self.opened.store(round, Ordering::Release);
    }

    /// Whether a step of the own queues seems ready.
    #[inline]
    fn is_ready(&self) -> bool {
        (0..self.queues()).any(|queue| self.stage.is_ready(self.stage.me, queue))
    }

    /// Runs what is ready of the own queues.
    #[inline]
    pub(super) fn run_own(&self, errand: &mut Errand) -> bool {
        let me = self.stage.me;
        (0..self.queues()).fold(false, |worked, queue| {
            let ready = self.stage.is_ready(me, queue);
            (ready && self.stage.run(me, queue, errand)) | worked
        })
    }

    /// Runs what is ready of some other rank's queues, for one of them.
    pub(super) fn run_others(&self) -> bool {
        let (me, ranks) = (self.stage.me, self.stage.members.len());
        for rank in (1..ranks).map(|step| (me + step) % ranks) {
            let member = &self.stage.members[rank];
            if !member.shared {
                continue;
            }
            for queue in 0..member.session.queues() {
                if self.stage.is_ready(rank, queue)
                    && self.stage.run(rank, queue, &mut Errand::new(HELP, true))
                {
                    return true;
                }
            }
        }
        false
    }

    /// Does what there is to do. `opened`: the own queues are active; `help`: other ranks' too.
    pub(super) fn work(&self, opened: bool, help: bool) -> bool {
        // Who polls comes here all the time: an errand is made only where there is something to do.
        let own = opened && self.is_ready() && {
            let mut errand = Errand::new(BURST, true);
            let worked = self.run_own(&mut errand);
            self.leave(&errand);
            worked
        };
        own || help && self.run_others()
    }

    /// Ends the round, once, if it is over.
    #[inline]
    pub(super) fn close(&self, round: u32) {
        if self.opened.load(Ordering::Acquire) == round && self.unfinished(round).is_none() {
            match self.plain {
                true => self.end_plainly(round),
                false => self.end(round, Status::OK),
            }
        }
    }

    pub(super) fn end(&self, round: u32, status: Status) {
        if !claim(&self.closed, round) {
            return;
        }
        let status = match &self.output {
            Some(bounce) if status == Status::OK && !self.bounce(bounce, false) => Status::ERR_KEY,
            _ => status,
        };
        // What is cancelled is no error of the others', who are about to leave as well.
        if !matches!(status, Status::OK | Status::ERR_CANCELED) {
            self.stage.fail(status);
            self.wait_for_quiet();
        }
        self.outcome.store(status.0, Ordering::Relaxed);
        if self.tasked && self.enlisted.swap(false, Ordering::Relaxed) {
            self.ground.agenda.discharge();
        }
        // Release: what the round did is seen by whoever sees that it has ended.
        self.ended.store(round, Ordering::Release);
        if self.on_complete.kind != completion::NONE {
            // Before the user is told, who may start the next round at once.
            self.settled.store(round, Ordering::Release);
            self.ground.fire(&self.on_complete, status);
        }
    }

    /// Copies between a buffer that peers do not map and its place in the session. False: the user has freed
    /// it.
    fn bounce(&self, bounce: &Bounce, inwards: bool) -> bool {
        let _pinned = pin();
        let Some(user) = self.ground.routes.own().find(bounce.user, bounce.bytes) else {
            return false;
        };
        let (from, to) = if inwards { (user, bounce.plan) } else { (bounce.plan, user) };
        // SAFETY: found while pinned; the plan's side is its own. The two do not overlap.
        unsafe { std::ptr::copy_nonoverlapping(from, to, bounce.bytes as usize) };
        true
    }

    /// Why the plan cannot go on: it has failed, or a rank has died or has left.
    #[inline]
    pub(super) fn trouble(&self) -> Option<Status> {
        let own = &self.stage.members[self.stage.me].session;
        let burials = self.ground.routes.burials();
        // In the midst of finalize who leaves has not died.
        let open = self.ground.must_be_open().is_ok();
        if open && burials != self.burials.load(Ordering::Relaxed) && !self.all_alive(burials) {
            return Some(Status::ERR_PEER_DEAD);
        }
        own.failed()
    }

    #[cold]
    fn all_alive(&self, burials: u32) -> bool {
        let dead = |peer: u32| self.ground.routes.is_dead(peer);
        let alive = !self.stage.members.iter().any(|member| dead(member.peer));
        if alive {
            self.burials.store(burials, Ordering::Relaxed);
        }
        alive
    }

    /// Ends a round that cannot go on. True: it did.
    pub(super) fn end_if_in_trouble(&self, round: u32) -> bool {
        let trouble = self.trouble();
        if let Some(status) = trouble {
            // A rank that has left after the last step for this one is no trouble.
            self.close(round);
            self.end(round, status);
        }
        trouble.is_some()
    }

    /// Waits until nobody runs a step that may touch this rank's buffers.
    fn wait_for_quiet(&self) {
        let since = Instant::now();
        let busy = || {
            self.stage.members.iter().any(|member| {
                (0..member.session.queues()).any(|queue| {
                    let claimer = member.session.queue(queue).control().claimer();
                    let claimer = claimer.and_then(|rank| self.stage.members.get(rank));
                    claimer.is_some_and(|by| !self.ground.routes.is_dead(by.peer))
                })
            })
        };
        while busy() && since.elapsed() < QUIET {
            std::thread::yield_now();
        }
    }
}

/// Rounds in which it is looked at the clock, since that takes as long as half a signal.
fn is_sampled(round: u32) -> bool {
    round % 16 == 1
}

/// Whether the caller is the one who moves `counter` on to `round`.
fn claim(counter: &AtomicU32, round: u32) -> bool {
    let before = round.wrapping_sub(1);
    counter.compare_exchange(before, round, Ordering::AcqRel, Ordering::Acquire).is_ok()
}

impl Task for Plan {
    fn advance(&self) -> bool {
        // Acquire: pairs with start().
        let round = self.rounds.load(Ordering::Acquire);
        // Taken before the look: what is left later is a debt of its own.
        if self.debts.load(Ordering::Relaxed) && self.debts.swap(false, Ordering::AcqRel) {
            self.ground.agenda.discharge();
            if self.run_others() {
                self.owe();
                return true;
            }
        }
        if self.closed.load(Ordering::Acquire) == round {
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
            self.attend(true);
        }
        let opened = self.open(round, u64::MAX);
        // Signals of those who saw the queues before they were active.
        between_word_and_look();
        let worked = self.work(opened, offload);
        self.close(round);
        worked || self.closed.load(Ordering::Relaxed) == round || self.end_if_in_trouble(round)
    }

    fn rest(&self) -> bool {
        let me = self.stage.me;
        let session = &self.stage.members[me].session;
        if !self.asleep.swap(true, Ordering::Relaxed) {
            session.set_asleep(true);
        }
        let offload = self.about.engine == Engine::Offload;
        if !offload {
            self.attend(false);
        }
        // What has come before others knew that they must ring.
        let round = self.rounds.load(Ordering::Acquire);
        let under_way = self.closed.load(Ordering::Acquire) != round;
        under_way
            && !(offload && self.waiting.load(Ordering::Relaxed))
            && (self.is_ready()
                || self.opened.load(Ordering::Acquire) != round
                || self.unfinished(round).is_none()
                || self.trouble().is_some())
    }

    fn is_idle(&self) -> bool {
        self.closed.load(Ordering::Acquire) == self.rounds.load(Ordering::Acquire)
    }

    fn cancel(&self, status: Status) {
        let round = self.rounds.load(Ordering::Acquire);
        self.close(round);
        self.end(round, status);
    }
}
