//! Loom models of a queue: every interleaving of a few ranks that deliver, start, attend and help. What they
//! call around the queue follows `coll::run`, `coll::plan::work` and `coll::plan::wait` step by step.
//!
//! All that a step reads and writes is in cells that loom watches: two that run steps at once, or who reads
//! what it has not been shown, is an error even if no value is wrong. All threads end, as ranks do that
//! compute; what is ready then and has not been run is lost.
//!
//! Faults that were planted, one at a time, and how many models failed: of ten, to which the sleeper's came
//! last, whose faults were planted in the steps that it copies from `coll::session`:
//!
//! | fault | models |
//! |---|---|
//! | deliver: signal stored Relaxed; poke Relaxed, or Acquire only; poke before the signal | 10 each |
//! | deliver: no poke | 6 |
//! | arrived: Relaxed | 10 |
//! | control: Relaxed (next round, count) | 3 |
//! | activate: Relaxed, or Acquire only | 4 each |
//! | claim: Relaxed | 6 |
//! | claim: also what somebody has | 10 |
//! | release: Relaxed where it succeeds | 5 |
//! | release: Relaxed where it fails; the word loaded after the look; an unconditional change | 6 each |
//! | finish: Relaxed (next round, count) | 3 |
//! | finish: `at` goes back after the swap (next round) | 2 |
//! | finish: a store instead of a swap | all, the sleeper's too |
//! | finish: "active" stays | 9 |
//! | finish: "attended" stays | 1, the ended round |
//! | attend: sets its bit unconditionally | 1, the ended round |
//! | attend: a store | 3 |
//! | unattend: does nothing | 3 |
//! | who waits: no look after unattend, or the look before it | 2 each |
//! | who starts: no look after activate; buffers made ready after it | 4 each |
//! | asleep: without the fence of either side | 1 each, the sleeper |
//!
//! Not found, because whoever changes the word acquires it again by the look or the claim that follows: the
//! poke with Release only, activate with Release only, unattend Relaxed. They stay as strong as they are,
//! which costs nothing on x86-64. (With control Relaxed as well, unattend Relaxed is found by the model of who
//! attended.) Nor is it found when the progress thread that takes the waiting thread's bit away does not
//! look: the waiting thread still does.

use super::*;
use crate::util::sync::{Arc, UnsafeCell, fence};
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
    signals: Vec<AtomicU32>,
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
            signals: (0..MEMBERS).map(|_| AtomicU32::new(0)).collect(),
            steps: steps.to_vec(),
            ready: UnsafeCell::new(0),
            given: (0..MEMBERS).map(|_| cells()).collect(),
            ran: UnsafeCell::new(Vec::new()),
        }
    }

    fn queue(&self) -> Queue<'_> {
        Queue { head: &self.head, signals: &self.signals }
    }

    fn has_arrived(&self, at: u32, control: Control) -> bool {
        let wait = self.steps[at as usize].wait;
        wait.is_none_or(|from| self.queue().arrived(from, control.finished().wrapping_add(1)))
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
    Arc::new(Plan(lines.iter().map(|steps| Line::new(steps)).collect()))
}

impl Plan {
    /// Stage::is_ready().
    fn is_ready(&self, queue: usize) -> bool {
        let line = &self.0[queue];
        let control = line.queue().control();
        if !control.is_active() || control.claimer().is_some() {
            return false;
        }
        let at = line.queue().at();
        at as usize >= line.steps.len() || line.has_arrived(at, control)
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
        let Some(mut seen) = line.queue().claim(me) else { return };
        loop {
            let at = line.queue().at();
            if at as usize >= line.steps.len() {
                return line.queue().finish();
            }
            if !line.has_arrived(at, seen) {
                match line.queue().release(seen) {
                    Ok(()) => return,
                    Err(now) => seen = now,
                }
                continue;
            }
            line.perform(at, seen.finished());
            line.queue().advance_to(at + 1);
            if let Some(to) = line.steps[at as usize].signal {
                if self.signal(queue, to, seen.finished()) {
                    waiting.push(to);
                }
            }
        }
    }

    /// Stage::signal(). True: it is the caller who takes care.
    fn signal(&self, from: usize, to: usize, round: u32) -> bool {
        let line = &self.0[to];
        // SAFETY: nobody reads it before the signal, or loom reports it.
        line.given[from][round as usize].with_mut(|given| unsafe { *given = round + 1 });
        let found = line.queue().deliver(from, round + 1);
        found.is_active() && found.claimer().is_none() && !found.is_attended()
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
        self.0[me].queue().activate();
    }

    /// Plan::start().
    fn start(&self, me: usize, round: u32) {
        self.open(me, round);
        self.look(me, me);
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
        let rest = (control.is_active(), control.is_attended(), control.claimer());
        assert_eq!(rest, (false, false, None));
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

/// To attend while the last step is run must not bring the round back, nor leave the bit for the next one,
/// whose deliverer would rely on somebody who has gone.
#[test]
fn loom_an_ended_round_is_not_revived() {
    check(4, || {
        let plan = plan(&[&[after(1)]]);
        plan.open(0, 0);
        let deliverer = spawn(&plan, |plan| plan.deliver(1, 0, 0));
        plan.0[0].queue().attend();
        // A thread that attends when its round ends looks at the count, and goes.
        if plan.finished(0) == 0 {
            plan.0[0].queue().unattend();
            plan.look(0, 0);
        }
        deliverer.join().unwrap();
        plan.assert_over(0, 1);
        plan.start(0, 1);
        plan.deliver(1, 0, 1);
        plan.assert_over(0, 2);
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
        plan.deliver(2, 0, 0);
        let one = spawn(&plan, |plan| plan.deliver(1, 0, 0));
        let two = spawn(&plan, |plan| plan.deliver(2, 0, 1));
        while plan.finished(0) == 0 {
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
