//! Loom models of a queue: every interleaving of a few ranks that deliver, start, attend and help. What they
//! call around the queue follows `coll::run`, `coll::plan::work` and `coll::plan::wait` step by step.
//!
//! All that a step reads and writes is in cells that loom watches: two that run steps at once, or who reads
//! what it has not been shown, is an error even if no value is wrong. All threads end, as ranks do that
//! compute; what is ready then and has not been run is lost.
//!
//! Faults that were planted, one at a time, and how many of the fifteen models failed:
//!
//! | fault | models |
//! |---|---|
//! | send: Relaxed; has_sent: Relaxed | 10 each |
//! | the fence between word and look: none at all, or not after a signal; no look after a signal | 14 each |
//! | release: no fence after it | 10 |
//! | give_back: Relaxed | 3 |
//! | give_back: the next step not stored | the models end early |
//! | finish: Relaxed | 3 |
//! | finish: "active" stays | 14 |
//! | claim: also what somebody has | 14 |
//! | activate: Relaxed | 1, who sees the round |
//! | control: Relaxed | 3 |
//! | unattend: does nothing | 5 |
//! | unattend: no fence after it | 2 |
//! | who starts, holds or leases: attention not taken back; no look after the release | 3, 4 |
//! | who starts, or sees that another thread has: no fence before the look | 3, 1 |
//! | who runs a queue: no look after the release | 8 |
//!
//! Not found: the claim without its fence or Relaxed, since whoever holds it releases it with a fence and looks; a lease whose
//! attention comes late or not at all, since then the deliverer does the work; an owner that finds its queue taken and does not look
//! itself, since the taker does. `at` that is not set back was not found by the former models; the model of the next round now has
//! a claim given back in the middle of a queue.

use super::*;
use crate::util::sync::{Arc, UnsafeCell};
use loom::thread;

fn check(preemptions: usize, model: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(preemptions);
    builder.check(model);
}

const MEMBERS: usize = 3;
const ROUNDS: usize = 2;

/// A step waits for the one signal of a rank in each round, and signals a queue on behalf of its own.
#[derive(Clone, Copy)]
struct Step {
    wait: Option<usize>,
    signal: Option<usize>,
}

/// After the signal of rank `from`.
fn after(from: usize) -> Step {
    Step { wait: Some(from), signal: None }
}

/// A queue, its steps, and what they touch. Queue number r belongs to rank r.
struct Line {
    head: Head,
    sent: Vec<AtomicU32>,
    steps: Vec<Step>,
    /// What the owner has made ready: how many rounds it has started.
    ready: UnsafeCell<u32>,
    /// What each rank has made ready for each round, before it signals.
    given: Vec<Vec<UnsafeCell<u32>>>,
    /// The steps that were run, counted through all rounds.
    ran: UnsafeCell<Vec<u32>>,
}

impl Line {
    fn new(steps: &[Step]) -> Line {
        let cells = || (0..ROUNDS).map(|_| UnsafeCell::new(0)).collect();
        Line {
            head: Head::default(),
            sent: (0..MEMBERS).map(|_| AtomicU32::new(0)).collect(),
            steps: steps.to_vec(),
            ready: UnsafeCell::new(0),
            given: (0..MEMBERS).map(|_| cells()).collect(),
            ran: UnsafeCell::new(Vec::new()),
        }
    }

    fn queue(&self) -> Queue<'_> {
        Queue { head: &self.head, sent: &self.sent }
    }

    /// What the step reads must be of its round, whoever runs it.
    fn perform(&self, at: u32, round: u32) {
        // SAFETY: nobody writes meanwhile, or loom reports it.
        self.ready.with(|ready| assert_eq!(unsafe { *ready }, round + 1, "not started"));
        if let Some(from) = self.steps[at as usize].wait {
            let given = &self.given[from][round as usize];
            // SAFETY: as above.
            given.with(|given| assert_eq!(unsafe { *given }, round + 1, "not given"));
        }
        let number = round * self.steps.len() as u32 + at;
        // SAFETY: as above; only the holder of the claim comes here.
        self.ran.with_mut(|ran| unsafe { (*ran).push(number) });
    }

    /// All steps of `rounds` rounds were run, once, in their order.
    fn assert_ran(&self, rounds: u32) {
        let all = (0..rounds * self.steps.len() as u32).collect::<Vec<_>>();
        // SAFETY: nobody runs steps any more, or loom reports it.
        self.ran.with(|ran| assert_eq!(unsafe { &*ran }, &all, "steps that were run"));
    }
}

/// The queues of all ranks.
struct Plan(Vec<Line>);

fn plan(lines: &[&[Step]]) -> Arc<Plan> {
    let none: &[Step] = &[];
    Arc::new(Plan((0..MEMBERS).map(|rank| Line::new(lines.get(rank).unwrap_or(&none))).collect()))
}

impl Plan {
    /// Stage::has_arrived().
    fn has_arrived(&self, queue: usize, at: u32, round: u32) -> bool {
        let wait = self.0[queue].steps[at as usize].wait;
        wait.is_none_or(|from| self.0[from].queue().has_sent(queue, round + 1))
    }

    fn is_over_or_ready(&self, queue: usize, at: u32, round: u32) -> bool {
        at as usize >= self.0[queue].steps.len() || self.has_arrived(queue, at, round)
    }

    /// Stage::is_ready().
    fn is_ready(&self, queue: usize) -> bool {
        let line = &self.0[queue];
        let control = line.queue().control();
        if !control.is_active() || control.claimer().is_some() {
            return false;
        }
        self.is_over_or_ready(queue, line.queue().at(), control.finished())
    }

    /// Stage::run(), for a queue and those that its steps release.
    fn run(&self, me: usize, queue: usize) {
        let mut waiting = vec![queue];
        while let Some(queue) = waiting.pop() {
            self.run_queue(me, queue, &mut waiting);
        }
    }

    fn run_queue(&self, me: usize, queue: usize, waiting: &mut Vec<usize>) {
        let line = &self.0[queue];
        while let Some(mut mine) = line.queue().claim(me) {
            if self.run_claimed(queue, &mut mine, waiting) {
                return;
            }
            line.queue().release(mine);
            if !self.is_ready(queue) {
                return;
            }
        }
    }

    /// Stage::run_claimed(). True: the round is over.
    fn run_claimed(&self, queue: usize, mine: &mut Claim, waiting: &mut Vec<usize>) -> bool {
        let (line, round, mut told) = (&self.0[queue], mine.round(), Vec::new());
        let over = loop {
            if mine.at as usize >= line.steps.len() {
                line.queue().finish(*mine);
                break true;
            }
            if !self.has_arrived(queue, mine.at, round) {
                break false;
            }
            line.perform(mine.at, round);
            let step = line.steps[mine.at as usize];
            mine.at += 1;
            if let Some(to) = step.signal {
                self.send(queue, to, round);
                told.push(to);
            }
        };
        waiting.extend(self.ask_told(&told));
        over
    }

    /// Stage::signal().
    fn send(&self, from: usize, to: usize, round: u32) {
        // SAFETY: nobody reads it before the signal, or loom reports it.
        self.0[to].given[from][round as usize].with_mut(|given| unsafe { *given = round + 1 });
        self.0[from].queue().send(to, round + 1);
    }

    /// Stage::ask_told(): those of which the caller takes care.
    fn ask_told(&self, told: &[usize]) -> Vec<usize> {
        if told.is_empty() {
            return Vec::new();
        }
        between_word_and_look();
        told.iter().copied().filter(|to| self.0[*to].queue().is_left_alone()).collect()
    }

    /// True: it is the caller who takes care.
    fn signal(&self, from: usize, to: usize, round: u32) -> bool {
        self.send(from, to, round);
        !self.ask_told(&[to]).is_empty()
    }

    /// Rank `me` signals in a round of its own and runs what it has released.
    fn deliver(&self, me: usize, to: usize, round: u32) {
        if self.signal(me, to, round) {
            self.run(me, to);
        }
    }

    /// run_own(), run_others(): looks once, and runs what is ready.
    fn look(&self, me: usize, queue: usize) {
        if self.is_ready(queue) {
            self.run(me, queue);
        }
    }

    /// Plan::open().
    fn open(&self, me: usize, round: u32) {
        // SAFETY: nobody runs the round before it is active, or loom reports it.
        self.0[me].ready.with_mut(|ready| unsafe { *ready = round + 1 });
        self.0[me].queue().activate(round);
    }

    /// Plan::start() of a plan with more than one queue: opened, then looked at.
    fn start(&self, me: usize, round: u32) {
        self.open(me, round);
        between_word_and_look();
        self.look(me, me);
    }

    /// Plan::start_plain(). `prompt`: it is going to wait, and leases the queue meanwhile.
    fn start_plain(&self, me: usize, round: u32, prompt: bool) {
        let line = &self.0[me];
        // SAFETY: as in open().
        line.ready.with_mut(|ready| unsafe { *ready = round + 1 });
        let mut mine = line.queue().activate_claimed(round, me);
        let mut waiting = Vec::new();
        if !self.run_claimed(me, &mut mine, &mut waiting) {
            match prompt {
                true => line.queue().lease(mine),
                false => self.let_go(me, mine),
            }
        }
        waiting.iter().for_each(|queue| self.run(me, *queue));
    }

    /// Plan::let_go().
    fn let_go(&self, me: usize, mine: Claim) {
        self.0[me].queue().unattend();
        self.0[me].queue().release(mine);
        self.look(me, me);
    }

    /// Plan::wait_holding() with as few looks as there can be, up to the moment when its thread has something else to do.
    fn hold_in_vain(&self, me: usize) {
        let Some(mut mine) = self.0[me].queue().claim(me) else {
            self.0[me].queue().unattend();
            return self.look(me, me);
        };
        let mut waiting = Vec::new();
        if !self.run_claimed(me, &mut mine, &mut waiting) {
            self.let_go(me, mine);
        }
        waiting.iter().for_each(|queue| self.run(me, *queue));
    }

    fn finished(&self, queue: usize) -> u32 {
        self.0[queue].queue().control().finished()
    }

    /// Plan::wait() up to the moment when its thread has something else to do: it attends, looks, no longer
    /// attends, looks once more.
    fn wait_in_vain(&self, me: usize) {
        self.0[me].queue().attend();
        self.look(me, me);
        self.0[me].queue().unattend();
        self.look(me, me);
    }

    /// The rounds are over, and the queue is as it was.
    fn assert_over(&self, queue: usize, rounds: u32) {
        let control = self.0[queue].queue().control();
        assert_eq!(control.finished(), rounds, "a step is ready and nobody cares");
        assert_eq!((control.is_active(), control.claimer()), (false, None));
        self.0[queue].assert_ran(rounds);
    }
}

fn spawn(plan: &Arc<Plan>, run: impl FnOnce(&Plan) + 'static) -> thread::JoinHandle<()> {
    let plan = plan.clone();
    thread::spawn(move || run(&plan))
}

/// Two deliver, the owner starts; whoever comes last has to run what is left.
#[test]
fn loom_every_step_is_run_once() {
    check(3, || {
        let plan = plan(&[&[after(1), after(2)]]);
        let one = spawn(&plan, |plan| plan.deliver(1, 0, 0));
        let two = spawn(&plan, |plan| plan.deliver(2, 0, 0));
        plan.start(0, 0);
        one.join().unwrap();
        two.join().unwrap();
        plan.assert_over(0, 1);
    });
}

/// A holder finds nothing to do and releases; the signal comes at that moment.
#[test]
fn loom_a_release_meets_a_poke() {
    check(5, || {
        let plan = plan(&[&[after(1)]]);
        plan.open(0, 0);
        let deliverer = spawn(&plan, |plan| plan.deliver(1, 0, 0));
        plan.run(0, 0);
        deliverer.join().unwrap();
        plan.assert_over(0, 1);
    });
}

/// The same with a helper, who looks before it claims, and a step that anybody may run at once.
#[test]
fn loom_a_helper_is_in_nobodys_way() {
    check(3, || {
        let free = Step { wait: None, signal: None };
        let plan = plan(&[&[free, after(1)]]);
        let deliverer = spawn(&plan, |plan| plan.deliver(1, 0, 0));
        let helper = spawn(&plan, |plan| plan.look(2, 0));
        plan.start(0, 0);
        deliverer.join().unwrap();
        helper.join().unwrap();
        plan.assert_over(0, 1);
    });
}

/// The owner attends and stops attending; the deliverer that has seen the bit relies on its last look.
#[test]
fn loom_who_attended_looks_once_more() {
    check(5, || {
        let plan = plan(&[&[after(1)]]);
        plan.open(0, 0);
        let deliverer = spawn(&plan, |plan| plan.deliver(1, 0, 0));
        plan.wait_in_vain(0);
        deliverer.join().unwrap();
        plan.assert_over(0, 1);
    });
}

/// Two threads of the owner: one waits, the other one, its progress thread, takes the bit away and looks.
#[test]
fn loom_another_thread_takes_the_bit_away() {
    check(2, || {
        let plan = plan(&[&[after(1)]]);
        plan.open(0, 0);
        let deliverer = spawn(&plan, |plan| plan.deliver(1, 0, 0));
        let progress = spawn(&plan, |plan| {
            plan.0[0].queue().unattend();
            plan.look(0, 0);
        });
        plan.wait_in_vain(0);
        deliverer.join().unwrap();
        progress.join().unwrap();
        plan.assert_over(0, 1);
    });
}

/// The owner starts and holds the claim, leases it, takes it again and gives it back in the end; a deliverer that has seen
/// any of these relies on it.
#[test]
fn loom_who_held_looks_once_more() {
    check(4, || {
        let plan = plan(&[&[after(1), after(2)]]);
        let one = spawn(&plan, |plan| plan.deliver(1, 0, 0));
        let two = spawn(&plan, |plan| plan.deliver(2, 0, 0));
        plan.start_plain(0, 0, true);
        plan.hold_in_vain(0);
        one.join().unwrap();
        two.join().unwrap();
        plan.assert_over(0, 1);
    });
}

/// The same without a lease: the start gives the claim back.
#[test]
fn loom_who_started_looks_once_more() {
    check(4, || {
        let plan = plan(&[&[after(1), after(2)]]);
        let one = spawn(&plan, |plan| plan.deliver(1, 0, 0));
        let two = spawn(&plan, |plan| plan.deliver(2, 0, 0));
        plan.start_plain(0, 0, false);
        one.join().unwrap();
        two.join().unwrap();
        plan.assert_over(0, 1);
    });
}

/// A queue that is leased and needed: a third rank takes it, and the owner finds it taken, or over.
#[test]
fn loom_a_lease_may_be_taken() {
    check(4, || {
        let plan = plan(&[&[after(1)]]);
        let deliverer = spawn(&plan, |plan| plan.deliver(1, 0, 0));
        let helper = spawn(&plan, |plan| plan.look(2, 0));
        plan.start_plain(0, 0, true);
        plan.hold_in_vain(0);
        deliverer.join().unwrap();
        helper.join().unwrap();
        plan.assert_over(0, 1);
    });
}

/// The bit of a round that has ended, or of a lease, must not be relied upon in the next one.
#[test]
fn loom_attention_ends_before_the_next_round() {
    check(4, || {
        let plan = plan(&[&[after(1)]]);
        let deliverer = spawn(&plan, |plan| {
            plan.deliver(1, 0, 0);
            plan.deliver(1, 0, 1);
        });
        plan.start_plain(0, 0, true);
        while plan.finished(0) == 0 {
            plan.hold_in_vain(0);
            thread::yield_now();
        }
        plan.start_plain(0, 1, false);
        deliverer.join().unwrap();
        plan.assert_over(0, 2);
    });
}

/// A queue that was opened by one thread and is looked at by another one of the same rank.
#[test]
fn loom_who_sees_the_round_sees_what_came_before() {
    check(5, || {
        let (plan, rounds) = (plan(&[&[after(1)]]), Arc::new(AtomicU32::new(0)));
        let deliverer = spawn(&plan, |plan| plan.deliver(1, 0, 0));
        let (other, word) = (plan.clone(), rounds.clone());
        let progress = thread::spawn(move || {
            while word.load(Ordering::Acquire) == 0 {
                thread::yield_now();
            }
            between_word_and_look();
            other.look(0, 0);
        });
        plan.open(0, 0);
        rounds.store(1, Ordering::Release);
        deliverer.join().unwrap();
        progress.join().unwrap();
        plan.assert_over(0, 1);
    });
}

/// A rank is a round ahead: its next signal meets the end of this round and the start of the next.
#[test]
fn loom_a_signal_of_the_next_round_is_kept() {
    check(3, || {
        let plan = plan(&[&[after(1)]]);
        plan.open(0, 0);
        let ahead = spawn(&plan, |plan| {
            plan.deliver(1, 0, 0);
            plan.deliver(1, 0, 1);
        });
        while plan.finished(0) == 0 {
            plan.look(0, 0);
            thread::yield_now();
        }
        plan.start(0, 1);
        ahead.join().unwrap();
        plan.assert_over(0, 2);
    });
}

/// The owner sees the count and starts the next round while whoever ended this one is on the way out, and
/// while another rank delivers for it.
#[test]
fn loom_the_next_round_begins_as_this_one_ends() {
    check(3, || {
        let plan = plan(&[&[after(1), after(2)]]);
        plan.open(0, 0);
        // The first step is run and the claim given back, so there is a next step to be forgotten in the end.
        plan.deliver(1, 0, 0);
        let one = spawn(&plan, |plan| {
            plan.deliver(2, 0, 0);
            plan.deliver(2, 0, 1);
        });
        let two = spawn(&plan, |plan| plan.look(1, 0));
        while plan.finished(0) == 0 {
            plan.look(0, 0);
            thread::yield_now();
        }
        plan.start(0, 1);
        plan.deliver(1, 0, 1);
        one.join().unwrap();
        two.join().unwrap();
        plan.assert_over(0, 2);
    });
}

/// Steps run by different ranks: who sees the count sees what all of them did, and may use the buffers.
#[test]
fn loom_the_count_shows_what_the_round_did() {
    check(3, || {
        let plan = plan(&[&[after(1), after(2)]]);
        plan.open(0, 0);
        let one = spawn(&plan, |plan| plan.deliver(1, 0, 0));
        let two = spawn(&plan, |plan| plan.deliver(2, 0, 0));
        if plan.finished(0) == 1 {
            plan.0[0].assert_ran(1);
            // SAFETY: nobody reads it after the round, or loom reports it.
            plan.0[0].ready.with_mut(|ready| unsafe { *ready = 0 });
        }
        one.join().unwrap();
        two.join().unwrap();
        assert_eq!(plan.finished(0), 1);
    });
}

/// Steps that only the owner may run: its progress thread says that it sleeps, looks, and sleeps; the deliverer
/// rings if it sleeps. `asleep` is that of `coll::session`, with its fences.
#[test]
fn loom_who_sleeps_is_rung_for() {
    check(5, || {
        let (plan, asleep) = (plan(&[&[after(1)]]), Arc::new(AtomicU32::new(0)));
        plan.open(0, 0);
        let (other, word) = (plan.clone(), asleep.clone());
        let deliverer = thread::spawn(move || {
            let rings = other.signal(1, 0, 0) && {
                fence(Ordering::SeqCst);
                word.load(Ordering::Relaxed) != 0
            };
            rings.then_some(())
        });
        asleep.store(1, Ordering::Relaxed);
        fence(Ordering::SeqCst);
        plan.look(0, 0);
        if deliverer.join().unwrap().is_some() {
            plan.look(0, 0);
        }
        plan.assert_over(0, 1);
    });
}

/// Queues that release each other: 2 signals 0, whose step signals 1, whose step signals 0.
#[test]
fn loom_a_chain_of_queues_comes_to_its_end() {
    check(3, || {
        let to = |from, signal| Step { wait: Some(from), signal: Some(signal) };
        let plan = plan(&[&[to(2, 1), after(1)], &[to(0, 0)]]);
        let first = spawn(&plan, |plan| plan.deliver(2, 0, 0));
        let second = spawn(&plan, |plan| plan.start(1, 0));
        plan.start(0, 0);
        first.join().unwrap();
        second.join().unwrap();
        plan.assert_over(0, 1);
        plan.assert_over(1, 1);
    });
}
