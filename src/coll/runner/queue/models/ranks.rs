//! The ranks of the models: queues whose steps access cells that loom watches. The loops of the
//! library run them (`coll::runner::stepping`), in the order of the library's starts, waits and
//! sleeps (`coll::runner::owning`).

use super::super::*;
use crate::coll::runner::owning::Owner;
use crate::coll::runner::stepping::{End, Ranks};
use crate::coll::runner::worklist::Worklist;
use crate::util::sync::{Arc, UnsafeCell};

pub(super) const MEMBERS: usize = 3;
pub(super) const ROUNDS: usize = 2;

/// A step waits for the signal of a rank, which sends one in each round, and signals a queue.
#[derive(Clone, Copy)]
pub(super) struct Step {
    pub(super) wait: Option<usize>,
    pub(super) signal: Option<usize>,
}

/// What the owner does between start and wait.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Then {
    /// It computes, so it releases the queue.
    Computes,
    /// It is about to wait, and polls the queue meanwhile.
    Polls,
    /// It has polled for many rounds, and sets POLLED_ON.
    PollsOn,
}

/// A step that waits for rank `from`.
pub(super) fn after(from: usize) -> Step {
    Step { wait: Some(from), signal: None }
}

/// A queue with its steps and their data. Rank r has queue r.
pub(super) struct Line {
    head: Head,
    polled: AtomicU8,
    tail: u32,
    sent: Vec<AtomicU32>,
    steps: Vec<Step>,
    /// How many rounds the owner has started; stands for the input that it makes ready.
    pub(super) ready: UnsafeCell<u32>,
    /// What each rank has written for each round, before its signal. Ranks for which no step waits
    /// write nothing.
    given: Vec<Vec<UnsafeCell<u32>>>,
    /// The steps that were run, numbered through all rounds.
    ran: UnsafeCell<Vec<u32>>,
}

impl Line {
    /// The rank sends to the first `receivers` ranks only. Each interleaving makes every atomic and
    /// cell anew, which takes a good part of its time, so there are none that no thread uses.
    pub(super) fn new(steps: &[Step], receivers: usize) -> Line {
        let is_awaited = |from| steps.iter().any(|step| step.wait == Some(from));
        let cells = |from| if is_awaited(from) { ROUNDS } else { 0 };
        let given = |from| (0..cells(from)).map(|_| UnsafeCell::new(0)).collect();
        Line {
            head: Head::default(),
            polled: AtomicU8::new(NOBODY),
            tail: NO_TAIL,
            sent: (0..receivers).map(|_| AtomicU32::new(0)).collect(),
            steps: steps.to_vec(),
            ready: UnsafeCell::new(0),
            given: (0..MEMBERS).map(given).collect(),
            ran: UnsafeCell::new(Vec::new()),
        }
    }

    pub(super) fn queue(&self) -> Queue<'_> {
        let tail = self.tail;
        Queue { head: &self.head, polled: &self.polled, tail, sent: &self.sent }
    }

    /// Runs a step. The data that it reads must be of its round, whichever rank runs it.
    pub(super) fn perform(&self, at: u32, round: u32) {
        // SAFETY: no other thread writes meanwhile, or loom reports it.
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

    /// All steps of `rounds` rounds were run once, in their order.
    pub(super) fn assert_ran(&self, rounds: u32) {
        let all = (0..rounds * self.steps.len() as u32).collect::<Vec<_>>();
        // SAFETY: no other thread runs steps any more, or loom reports it.
        self.ran.with(|ran| assert_eq!(unsafe { &*ran }, &all, "steps that were run"));
    }
}

/// The queues of all ranks.
pub(super) struct Plan(pub(super) Vec<Line>);

pub(super) fn plan(lines: &[&[Step]]) -> Arc<Plan> {
    let none: &[Step] = &[];
    let line = |rank: usize| Line::new(lines.get(rank).unwrap_or(&none), lines.len());
    Arc::new(Plan((0..MEMBERS).map(line).collect()))
}

/// Like `plan`; the tail of each queue begins with step `tail`.
pub(super) fn plan_with_tails(lines: &[&[Step]], tail: u32) -> Arc<Plan> {
    let receivers = lines.len();
    let lines = lines.iter().map(|steps| {
        let line = Line { tail, ..Line::new(steps, receivers) };
        line.queue().take_tail();
        line
    });
    let none = |_| Line::new(&[], receivers);
    let rest = (0..MEMBERS).map(none);
    Arc::new(Plan(lines.chain(rest).take(MEMBERS).collect()))
}

/// The ranks as one of them reaches them; each has one queue.
#[derive(Clone, Copy)]
pub(super) struct Reached<'a> {
    plan: &'a Plan,
    me: usize,
}

/// Step `at` of the queue of rank `of`.
#[derive(Clone, Copy)]
pub(super) struct Number {
    of: usize,
    at: u32,
}

impl Ranks for Reached<'_> {
    type Step = Number;

    fn me(&self) -> usize {
        self.me
    }

    fn queue(&self, rank: usize, _: usize) -> Queue<'_> {
        self.plan.0[rank].queue()
    }

    fn step(&self, rank: usize, _: usize, at: u32) -> Option<Number> {
        ((at as usize) < self.plan.0[rank].steps.len()).then_some(Number { of: rank, at })
    }

    fn has_arrived(&self, rank: usize, _: usize, step: Number, round: u32) -> bool {
        let wait = self.plan.0[rank].steps[step.at as usize].wait;
        wait.is_none_or(|from| self.plan.0[from].queue().has_sent(rank, round + 1))
    }

    fn has_failed(&self, _: usize) -> bool {
        false
    }

    fn size(&self, _: Number) -> u64 {
        0
    }

    fn is_users(&self, _: Number) -> bool {
        false
    }

    fn perform(&self, step: Number, round: u32, _: &mut Worklist) -> Result<(), End> {
        self.plan.0[step.of].perform(step.at, round);
        Ok(())
    }

    fn signal(&self, rank: usize, step: Number, round: u32) -> Option<(usize, usize)> {
        let to = self.plan.0[rank].steps[step.at as usize].signal?;
        self.plan.send(rank, to, round);
        Some((to, 0))
    }

    fn is_shared(&self, _: usize) -> bool {
        true
    }

    fn ring_if_asleep(&self, _: usize) {}

    fn notify_finished(&self, _: usize, _: usize, _: u32) {}
}

/// A worklist without limit.
fn worklist() -> Worklist {
    Worklist::new(u64::MAX, true)
}

impl Plan {
    fn reached(&self, me: usize) -> Reached<'_> {
        Reached { plan: self, me }
    }

    /// Rank `me` runs the ready steps of a queue, and the steps that these release.
    pub(super) fn run(&self, me: usize, of: usize) {
        self.reached(me).run(of, 0, &mut worklist());
    }

    /// Writes the data of rank `from` for rank `to` in a round, and signals.
    fn send(&self, from: usize, to: usize, round: u32) {
        assert!(to < self.0[from].sent.len(), "a rank without steps");
        // SAFETY: nobody reads it before the signal, or loom reports it.
        self.0[to].given[from][round as usize].with_mut(|given| unsafe { *given = round + 1 });
        self.0[from].queue().send(to, round + 1);
    }

    /// Rank `me` signals in its round `round` and runs what it has released.
    pub(super) fn deliver(&self, me: usize, to: usize, round: u32) {
        let (ranks, mut worklist) = (self.reached(me), worklist());
        self.send(me, to, round);
        ranks.note_signalled(to, 0, &mut worklist);
        ranks.find_runners_if_any(&mut worklist);
        ranks.run_released(&mut worklist);
    }

    /// Rank `from` signals, and may not run steps of the other rank. True: it rings.
    pub(super) fn signal(&self, from: usize, to: usize, round: u32) -> bool {
        let (ranks, mut worklist) = (self.reached(from), worklist());
        self.send(from, to, round);
        ranks.note_signalled(to, 0, &mut worklist);
        ranks.find_runners_if_any(&mut worklist);
        worklist.has_released()
    }

    /// As run_own() and run_others(): looks once and runs what is ready.
    pub(super) fn look(&self, me: usize, queue: usize) {
        let ranks = self.reached(me);
        if if me == queue { ranks.is_ready(me, 0) } else { ranks.needs_help(queue, 0) } {
            self.run(me, queue);
        }
    }

    /// As Plan::open() with Plan::activate(), for a user that is not expected to wait at once.
    pub(super) fn open(&self, me: usize, round: u32) {
        // SAFETY: no other thread runs the round before it is active, or loom reports it.
        self.0[me].ready.with_mut(|ready| unsafe { *ready = round + 1 });
        self.reached(me).open_queue(0, round, false);
    }

    /// As Plan::start_light(): claims with the start, releases, then looks.
    pub(super) fn start_light(&self, me: usize, round: u32) {
        let line = &self.0[me];
        // SAFETY: as in open().
        line.ready.with_mut(|ready| unsafe { *ready = round + 1 });
        let mut held = [Some(line.queue().activate_claimed(round, me))];
        self.reached(me).run_and_leave(&mut held, false, &mut worklist());
    }

    /// As Plan::start() of a plan with more than one queue: opens, then looks.
    pub(super) fn start(&self, me: usize, round: u32) {
        self.open(me, round);
        full_fence();
        self.look(me, me);
    }

    /// As Plan::start_plain().
    pub(super) fn start_plain(&self, me: usize, round: u32, then: Then) {
        let line = &self.0[me];
        // SAFETY: as in open().
        line.ready.with_mut(|ready| unsafe { *ready = round + 1 });
        let mut mine = line.queue().activate_claimed(round, me);
        let (ranks, mut worklist) = (self.reached(me), worklist());
        let end = ranks.run_claimed(me, 0, &mut mine, &mut worklist);
        let polls = (then != Then::Computes).then_some(then == Then::PollsOn);
        ranks.leave_started((0, mine), end, polls, &mut worklist);
    }

    /// As Plan::wait_holding() with the fewest looks, until its thread has something else to do.
    pub(super) fn hold_in_vain(&self, me: usize) {
        let Some(mut mine) = self.0[me].queue().claim(me) else {
            self.0[me].queue().end_polling();
            return self.look(me, me);
        };
        let (ranks, mut worklist) = (self.reached(me), worklist());
        if ranks.run_claimed(me, 0, &mut mine, &mut worklist) != End::Finished {
            if worklist.has_released() {
                ranks.release_for_others(0, mine, false);
                ranks.run_released(&mut worklist);
                return self.look(me, me);
            }
            ranks.release_and_look(0, mine, &mut worklist);
        }
        ranks.run_released(&mut worklist);
    }

    pub(super) fn finished(&self, queue: usize) -> u32 {
        self.0[queue].queue().control().finished()
    }

    /// As Plan::wait() until its thread has something else to do: it polls, looks, stops polling,
    /// and looks once more.
    pub(super) fn wait_in_vain(&self, me: usize) {
        self.0[me].queue().begin_polling();
        self.look(me, me);
        self.0[me].queue().end_polling();
        self.look(me, me);
    }

    /// As Plan::sleep(): its thread looks, and `asleep` is what other threads do while it sleeps.
    pub(super) fn sleep(&self, me: usize, asleep: impl FnOnce()) {
        self.reached(me).leaving_tails(1, || {
            self.look(me, me);
            asleep();
        });
    }

    /// The rounds are over, and the queue is as before.
    pub(super) fn assert_over(&self, queue: usize, rounds: u32) {
        let control = self.0[queue].queue().control();
        assert_eq!(control.finished(), rounds, "a step is ready and nobody cares");
        assert_eq!((control.is_active(), control.claimer()), (false, None));
        self.0[queue].assert_ran(rounds);
    }
}
