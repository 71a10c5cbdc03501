//! The start of a round: a few stores and, for a small program, the steps that are ready.

use crate::coll::plan::policy::{AT_START, COPIED};
use crate::coll::plan::{COUNTED, Engine, Plan};
use crate::coll::runner::owning::Owner;
use crate::coll::runner::queue::{Claim, full_fence};
use crate::coll::runner::shared::{End, Worklist};
use crate::coll::runner::stepping::Ranks;
use crate::coll::schedule::QUEUES;
use crate::fail;
use crate::util::status::{Result, Status};
use std::sync::atomic::Ordering;

impl Plan {
    /// Starts the next round.
    #[inline(always)]
    pub fn start(&self) -> Result<()> {
        match &self.bound {
            None => self.begin(),
            Some(bound) => self.start_with(bound.places()),
        }
    }

    #[inline(never)]
    pub(super) fn begin(&self) -> Result<()> {
        self.services.must_be_open()?;
        let rounds = self.rounds.load(Ordering::Relaxed);
        if !self.is_settled(rounds as u32) {
            fail!(ERR_STATE, "the plan's previous round has not been waited for");
        }
        self.pass_failure_on()?;
        let rounds = rounds + 1;
        let round = rounds as u32;
        if self.policy.plain {
            self.start_plain(rounds);
            return Ok(());
        }
        if self.policy.tasked {
            // This comes before any other thread can end the round.
            self.add_work(round);
        }
        let offload = self.about.engine == Engine::Offload;
        if offload && self.inputs.is_empty() {
            self.opening.store(round, Ordering::Relaxed);
            if !self.policy.heavy {
                self.start_light(rounds);
                self.announce();
                return Ok(());
            }
            self.activate(round);
        }
        if self.policy.looks_at_the_clock(round) {
            self.habits.note_start(self.clock());
        }
        // Release: the input is ready; pairs with advance().
        self.rounds.store(rounds, Ordering::Release);
        self.announce();
        if offload && self.open(round, COPIED) && !self.policy.heavy {
            let mut worklist = Worklist::small(AT_START);
            full_fence();
            self.run_own(&mut worklist);
            self.note_left(&worklist);
            self.close(round);
        }
        Ok(())
    }

    /// Asks the progress thread to look at this round until it has ended; remove_work() ends that.
    /// If another thread has ended the round before, remove_work() may not have been called yet.
    /// The plan then stays counted.
    #[inline(always)]
    fn add_work(&self, round: u32) {
        if self.counted.swap(COUNTED | u64::from(round), Ordering::Relaxed) == 0 {
            self.services.background.add_work();
        }
    }

    /// Calls the progress thread, if this plan needs it.
    #[inline(always)]
    fn announce(&self) {
        if self.policy.tasked {
            self.services.background.call(self.policy.urgent || self.habits.is_worth_a_wake_up());
        }
    }

    /// Makes the queues active.
    #[inline(always)]
    pub(super) fn activate(&self, round: u32) {
        let session = &self.stage.members[self.stage.me].session;
        // With engine `thread` the progress thread opens the round and polls.
        let polls = self.about.engine != Engine::Offload || self.habits.is_prompt();
        for queue in (0..session.queues()).filter(|queue| self.has_steps(*queue)) {
            self.stage.open_queue(queue, round.wrapping_sub(1), polls);
        }
        // Release: the input has been copied; pairs with close(), after which the output may be
        // copied over it.
        self.opened.store(round, Ordering::Release);
    }

    /// Starts a round of a plain plan and runs the steps that are ready.
    #[inline]
    fn start_plain(&self, rounds: u64) {
        let round = rounds as u32;
        let me = self.stage.me;
        let queue = self.stage.members[me].session.queue(0);
        if !self.inputs.is_empty() && !self.bounce(self.inputs.iter().copied(), true) {
            // The user has freed the buffer, which the wait will report.
            self.fail(Status::ERR_KEY);
        }
        self.opening.store(round, Ordering::Relaxed);
        let mut mine = queue.activate_claimed(round.wrapping_sub(1), me);
        // Release: pairs with advance(); a thread that sees the number sees the active queue.
        self.opened.store(round, Ordering::Release);
        self.rounds.store(rounds, Ordering::Release);
        if self.policy.looks_at_the_clock(round) {
            self.habits.note_start(self.clock());
        }
        let mut worklist = Worklist::small(AT_START);
        let end = self.stage.run_claimed(me, 0, &mut mine, &mut worklist);
        let prompt = self.habits.is_prompt();
        if end == End::Finished {
            self.end_plain(round);
            self.habits.note_quick_end();
        } else if end == End::Full || !prompt {
            self.habits.note_slow_end();
        }
        let polls = prompt.then(|| self.polls_on());
        self.stage.leave_started((0, mine), end, polls, &mut worklist);
        self.note_left(&worklist);
    }

    /// Starts a round of a light program that is not plain. As in start_plain() the thread claims
    /// each queue when it activates it, before other threads know of the round. It then runs the
    /// ready steps and releases all queues with one fence.
    #[inline(never)]
    fn start_light(&self, rounds: u64) {
        let round = rounds as u32;
        let (me, before) = (self.stage.me, round.wrapping_sub(1));
        let session = &self.stage.members[me].session;
        let mut held: [Option<Claim>; QUEUES] = [None; QUEUES];
        for queue in (0..session.queues()).filter(|queue| self.has_steps(*queue)) {
            held[queue] = Some(session.queue(queue).activate_claimed(before, me));
        }
        // Release: pairs with advance(); a thread that sees the number sees the active queues.
        self.opened.store(round, Ordering::Release);
        self.rounds.store(rounds, Ordering::Release);
        if self.policy.looks_at_the_clock(round) {
            self.habits.note_start(self.clock());
        }
        let mut worklist = Worklist::small(AT_START);
        self.stage.run_and_leave(&mut held, self.habits.is_prompt(), &mut worklist);
        self.note_left(&worklist);
        self.close(round);
    }
}
