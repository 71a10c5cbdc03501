//! The wait for the end of a round. The thread first stays awake and works for the plan, also on
//! other ranks' queues. Then it sleeps.

use crate::coll::plan::policy::BARE_LOOKS;
use crate::coll::plan::work::BURST;
use crate::coll::plan::{Engine, Plan};
use crate::coll::runner::members::Member;
use crate::coll::runner::owning::Owner;
use crate::coll::runner::put_receiver::while_waiting;
use crate::coll::runner::queue::full_fence;
use crate::coll::runner::shared::{End, Worklist};
use crate::coll::runner::stepping::Ranks;
use crate::fail;
use crate::transport::address::Address;
use crate::util::status::{Result, Status};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// The number of looks without work after which a waiting thread of a heavy plan looks for steps of
/// other ranks.
const LOOKS_BEFORE_HELP: u32 = 3;
/// In the second phase the thread reads the clock and looks for deaths in one of this number of
/// turns.
const TURNS: u32 = 16;
/// Where no descriptor says that a network has events, a poll takes longer than a look at memory. A
/// rank whose steps name no rank of another node polls in one of so many turns: the leader of its
/// node, for which it waits, may need its core.
const TURNS_BESIDE: u32 = 8;
/// The first sleep of a waiting thread. After it the thread looks whether another rank has left a
/// step undone that this one can run. Each further sleep is twice as long, since each look
/// interrupts the cores on which other ranks compute.
const FIRST_SLEEP: Duration = Duration::from_millis(10);
/// The longest sleep, see FIRST_SLEEP.
const LONGEST_SLEEP: Duration = Duration::from_millis(80);
/// The pause between two looks whether other ranks have ended a round.
pub(super) const PAUSE: Duration = Duration::from_micros(100);
/// How often a thread that must not outlive the context looks whether the context is being
/// finalized.
const SLICE: Duration = Duration::from_millis(20);
/// How long after its time-out a thread still works if there is always more to do.
const LATE: Duration = Duration::from_millis(10);

#[cold]
fn timed_out(timeout: Option<Duration>) -> Result<()> {
    fail!(ERR_TIMEOUT, "the round did not end within {:?}", timeout.unwrap_or_default());
}

impl Plan {
    /// Waits for the end of the round that is under way.
    pub fn wait(&self, timeout: Option<Duration>) -> Result<()> {
        self.services.may_block()?;
        let Some(round) = self.under_way()? else { return Ok(()) };
        self.waiting.store(true, Ordering::Relaxed);
        self.note_wait(round);
        // This thread is awake and does the work of the progress thread, so deliverers need not
        // ring.
        if !self.about.shared && self.asleep.swap(false, Ordering::Relaxed) {
            self.stage.members[self.stage.me].session.set_asleep(false);
        }
        let wait = || match self.has_ended(round) || self.wait_awake(round) {
            true => Ok(()),
            false => self.wait_slowly(round, timeout),
        };
        let ended = match self.about.engine {
            Engine::Offload => while_waiting(&self.stage, wait),
            Engine::Thread => wait(),
        };
        self.waiting.store(false, Ordering::Relaxed);
        if ended.is_err() && self.far.is_some() && self.is_ready() {
            // This thread has received the signal, and has not called the progress thread.
            self.services.background.call(true);
        }
        ended?;
        self.settle(round)
    }

    /// Waits for the end of the round that is under way; gives up when the context is finalized.
    pub fn wait_or_leave(&self) -> Result<()> {
        loop {
            match self.wait(Some(SLICE)) {
                Err(error) if error.status == Status::ERR_TIMEOUT => self.services.must_stay()?,
                ended => return ended,
            }
        }
    }

    /// Waits until the next round may be started; gives up when the context is finalized.
    pub fn wait_until_idle(&self) -> Result<()> {
        while !self.may_start() {
            self.services.must_stay()?;
            if !self.services.help_others() {
                std::thread::sleep(PAUSE);
            }
        }
        Ok(())
    }

    fn ends_now(&self, round: u32) -> bool {
        self.close(round);
        self.has_ended(round)
    }

    /// Marks all queues of this rank as polled, or as not polled.
    pub(super) fn set_polling(&self, polling: bool) {
        let session = &self.stage.members[self.stage.me].session;
        for queue in 0..session.queues() {
            match polling {
                true => session.queue(queue).begin_polling(),
                false => session.queue(queue).end_polling(),
            }
        }
    }

    /// The first phase for a plain plan: the thread holds the claim and polls the signals, so that
    /// few instructions remain when the last one comes. True: the round has ended.
    fn wait_holding(&self, round: u32) -> bool {
        let me = self.stage.me;
        let queue = self.stage.members[me].session.queue(0);
        let mut held = None;
        let mut idle = 0;
        while idle < self.policy.looks {
            let Some(mine) = &mut held else {
                if queue.control().finished() == round {
                    self.end_plain(round);
                    self.habits.note_quick_end();
                    return true;
                }
                held = queue.claim(me);
                idle += 1;
                continue;
            };
            if !self.stage.is_next_ready(me, 0, mine) {
                idle += 1;
                if idle > BARE_LOOKS {
                    std::hint::spin_loop();
                }
                continue;
            }
            let mut worklist = Worklist::new(BURST, true);
            let end = self.stage.run_claimed(me, 0, mine, &mut worklist);
            if end == End::Finished {
                self.end_plain(round);
                self.habits.note_quick_end();
            } else if worklist.has_released() {
                self.stage.release_for_others(0, *mine, self.polls_on());
                held = None;
            }
            self.stage.run_released(&mut worklist);
            self.note_left(&worklist);
            if end == End::Finished {
                return true;
            }
            if self.trouble().is_some() {
                break;
            }
            idle = 0;
        }
        match held {
            Some(mine) => {
                let mut worklist = Worklist::new(BURST, true);
                self.habits.note_slow_end();
                self.stage.release_and_look(0, mine, &mut worklist);
                self.note_left(&worklist);
            }
            // Another thread holds or held the claim. From now on deliverers must not rely on this
            // thread; it looks once more below.
            None => {
                self.habits.note_slow_end();
                queue.end_polling();
            }
        }
        self.ends_now(round)
    }

    /// The first phase for other plans: polls and works. True: the round has ended.
    fn wait_awake(&self, round: u32) -> bool {
        if self.policy.plain {
            return self.wait_holding(round);
        }
        let offload = self.about.engine == Engine::Offload;
        let opened = offload && self.open(round, u64::MAX);
        if opened && !self.ends_now(round) {
            self.set_polling(true);
        }
        full_fence();
        let mut idle = 0;
        while idle < self.policy.looks && !self.ends_now(round) {
            let help = self.policy.heavy && idle >= LOOKS_BEFORE_HELP;
            if offload && self.work(opened, help) || self.helps_lane() {
                idle = 0;
            } else {
                idle += 1;
                std::hint::spin_loop();
            }
        }
        let ended = self.ends_now(round);
        if opened && !ended {
            self.set_polling(false);
        }
        ended
    }

    /// Works for the lane, which receives the puts of ranks of other nodes. Returns whether there
    /// was work.
    #[inline]
    pub(super) fn helps_lane(&self) -> bool {
        self.far.is_some() && self.services.help_others()
    }

    /// The second phase: yields the core between looks, and finally sleeps.
    pub(super) fn wait_slowly(&self, round: u32, timeout: Option<Duration>) -> Result<()> {
        let offload = self.about.engine == Engine::Offload;
        let begin = timeout.map(|_| Instant::now());
        // The time of the first turn without work that read the clock, after the last work.
        let mut since = None;
        let mut turns = 0u32;
        let mut longest = FIRST_SLEEP;
        let beside = self.far.is_none() && self.services.routes.fabric().has_silent_wire();
        while !self.ends_now(round) {
            let opened = offload && self.open(round, u64::MAX);
            let helps = !beside || turns.is_multiple_of(TURNS_BESIDE);
            if offload && self.work(opened, true) || helps && self.services.help_others() {
                since = None;
                // Messages may come without an end.
                if begin
                    .zip(timeout)
                    .is_some_and(|(begin, timeout)| begin.elapsed() > timeout + LATE)
                    && !self.ends_now(round)
                {
                    return timed_out(timeout);
                }
                continue;
            }
            turns = turns.wrapping_add(1);
            if !turns.is_multiple_of(TURNS) && timeout != Some(Duration::ZERO) {
                self.give_way();
                continue;
            }
            // Another thread may be ending the round at this moment.
            if self.end_if_in_trouble(round) && self.has_ended(round) {
                break;
            }
            let passed = begin.map_or(Duration::ZERO, |begin| begin.elapsed());
            let left = timeout.map(|timeout| timeout.saturating_sub(passed));
            if left == Some(Duration::ZERO) {
                return timed_out(timeout);
            }
            if since.get_or_insert_with(Instant::now).elapsed() <= self.services.spin() {
                continue;
            }
            let limit = left.map_or(longest, |left| left.min(longest));
            if self.sleep(round, Some(limit)) {
                since = None;
            } else {
                longest = (longest * 2).min(LONGEST_SLEEP);
            }
        }
        Ok(())
    }

    /// Yields the core. The thread that gets it may keep it for a whole time slice. So if each rank
    /// has a core, the progress thread may work for the round meanwhile, if it is awake, on another
    /// core.
    fn give_way(&self) {
        self.waiting.store(self.policy.crowded, Ordering::Relaxed);
        std::thread::yield_now();
        self.waiting.store(true, Ordering::Relaxed);
    }

    fn sleep(&self, round: u32, limit: Option<Duration>) -> bool {
        let member = &self.stage.members[self.stage.me];
        self.stage.leaving_tails(self.queues(), || {
            self.about.engine == Engine::Offload && self.is_ready()
                || self.sleep_at(round, limit, member)
        })
    }

    fn sleep_at(&self, round: u32, limit: Option<Duration>, member: &Member) -> bool {
        let queue = self.unfinished(round).unwrap_or(0);
        let control = member.session.offset(queue) as u64;
        let word = Address { offset: member.address.offset + control, ..member.address };
        self.waiting.store(false, Ordering::Relaxed);
        let woken = self.services.sleep(word, limit, || {
            // A signal of another node that arrives while a thread waits does not wake the progress
            // thread, so this thread must look for it.
            self.far.is_some() && self.about.engine == Engine::Offload && self.is_ready()
                || self.unfinished(round).is_none()
                || self.trouble().is_some() && !self.parked.any()
        });
        self.waiting.store(true, Ordering::Relaxed);
        woken
    }
}
