//! Runs the programs of all ranks of a problem in one thread and checks them; for tests only.
//!
//! Steps run in a random order that a seed determines. Every step is two events: first it reads,
//! later it writes and signals, and other steps may run in between. The result is compared with the
//! definition of the operation (`reference`).
//!
//! Each run finds all races. Only one queue sends the signals of a counter, and the steps of a
//! queue run in their order, so waits and signals alone determine the order of steps. Vector clocks
//! record that order (`shadow`). Two accesses to a byte that are not ordered, at least one of them
//! a write, are an error in any run. The user of a rank counts as a thread that writes its buffers
//! between two rounds. So a step that accesses them before the rank has started, or after it has
//! ended, races with the user.

mod documented;
mod long;
mod posted;
mod reference;
mod rules;
mod shadow;
mod sweep;
mod tables;
mod tests;

use crate::coll::problem::{Operation, Problem};
use crate::coll::schedule::{Action, Place, Program, Signal, Space, Step, Wait};
use reference::Round;
use shadow::{Clock, Epoch, Shadow};
use std::collections::VecDeque;

pub use reference::Random;
pub use sweep::{check, sweep, sweep_posted};
pub use tables::Table;

/// The least number of rounds that each rank runs.
const ROUNDS: usize = 3;

/// Runs the programs of all ranks for some rounds. The error says what is wrong and where.
pub fn run(
    problem: &Problem,
    programs: &[Program],
    ordered: bool,
    seed: u64,
) -> Result<(), String> {
    let totals = rules::verify(problem, programs)?;
    let mut random = Random::new(seed);
    // There are enough rounds that copies of scratch memory are used twice; with many ranks only
    // for root 0.
    let most = if problem.ranks <= 8 || problem.root == 0 { turns(programs) + 2 } else { 0 };
    let rounds = (0..ROUNDS.max(most))
        .map(|_| Round::new(problem, ordered, &mut random))
        .collect::<Vec<_>>();
    let mut run = Run::new(problem, programs, ordered, &rounds, totals);
    loop {
        if !run.wire.is_quiet() && (run.ready.is_empty() || random.below(4) == 0) {
            run.deliver(&mut random)?;
            continue;
        }
        let Some(thread) = run.pick(&mut random) else { return run.all_done() };
        run.event(thread, &mut random)?;
    }
}

/// The signals of one rank to one queue.
struct Counter {
    /// Signals in a round.
    total: u32,
    arrived: u32,
    /// The clocks of the latest signals, as many as a step may still wait for.
    clocks: VecDeque<Clock>,
}

/// The largest number of copies of scratch memory of any rank.
fn turns(programs: &[Program]) -> usize {
    programs.iter().map(|program| program.turns as usize).max().unwrap_or(1)
}

/// The number of signals that a wait needs in a rank's round `round`, counted from 1.
fn sought(round: usize, total: u32, wait: Wait) -> u32 {
    match wait.late {
        _ if !(round - 1).is_multiple_of(wait.every as usize) => 0,
        0 => (round as u32 - 1) * total + wait.count,
        late => (round as u32).saturating_sub(late) * total,
    }
}

/// A queue of a rank, or the rank's user.
#[derive(Clone)]
struct Thread {
    clock: Clock,
    next: usize,
    /// Whether its next step waits for a signal.
    blocked: bool,
    /// The bytes that its present step will write.
    under_way: Option<Vec<u8>>,
}

struct Rank {
    /// How many rounds it has begun.
    round: usize,
    /// How many queues have not reached their end.
    open: usize,
    /// A slow rank is taken in only one of this number of picks.
    slow: u64,
}

struct Run<'a> {
    problem: &'a Problem,
    programs: &'a [Program],
    ordered: bool,
    rounds: &'a [Round],
    /// By rank: its queues, then its user.
    threads: Vec<Thread>,
    /// Threads of each rank: its queues and its user.
    lanes: usize,
    /// The memories of each rank: input, output, then the copies of scratch memory.
    spaces: usize,
    ranks: Vec<Rank>,
    /// By rank, queue and source.
    counters: Vec<Counter>,
    /// By rank and space.
    memory: Vec<Vec<u8>>,
    shadow: Vec<Shadow>,
    /// The threads that can run.
    ready: Vec<usize>,
    wire: posted::Wire,
}

impl<'a> Run<'a> {
    fn new(
        problem: &'a Problem,
        programs: &'a [Program],
        ordered: bool,
        rounds: &'a [Round],
        totals: Vec<u32>,
    ) -> Run<'a> {
        let ranks = problem.ranks;
        let lanes = programs.iter().map(|p| p.queues.len()).max().unwrap_or(0) + 1;
        let wire = posted::Wire::new(programs, ranks * lanes, lanes);
        let clocks = ranks * lanes + wire.clocks();
        let threads = (0..ranks * lanes)
            .map(|t| Thread {
                clock: Clock::new(clocks, t),
                next: 0,
                blocked: false,
                under_way: None,
            })
            .collect();
        let grain = rules::grain(programs);
        let spaces = 2 + turns(programs);
        let sizes = || {
            let all = 0..ranks * spaces;
            all.map(|i| rules::length(problem, programs, i / spaces, i % spaces))
        };
        Run {
            problem,
            programs,
            ordered,
            rounds,
            threads,
            lanes,
            spaces,
            ranks: (0..ranks).map(|_| Rank { round: 0, open: 0, slow: 1 }).collect(),
            counters: totals
                .into_iter()
                .map(|total| Counter { total, arrived: 0, clocks: VecDeque::new() })
                .collect(),
            memory: sizes().map(|size| vec![0; size as usize]).collect(),
            shadow: sizes().map(|size| Shadow::new(size, grain)).collect(),
            ready: (0..ranks).map(|rank| rank * lanes + lanes - 1).collect(),
            wire,
        }
    }

    /// Picks a thread that can run, with a lower probability if its rank is slow.
    fn pick(&mut self, random: &mut Random) -> Option<usize> {
        let mut index = 0;
        for _ in 0..4 {
            index = random.below(self.ready.len() as u64) as usize;
            let thread = self.ready.get(index)?;
            if random.below(self.ranks[thread / self.lanes].slow) == 0 {
                break;
            }
        }
        Some(self.ready.swap_remove(index))
    }

    fn event(&mut self, thread: usize, random: &mut Random) -> Result<(), String> {
        let (rank, queue) = (thread / self.lanes, thread % self.lanes);
        if queue + 1 == self.lanes {
            self.ranks[rank].slow = [1, 1, 1, 8, 64][random.below(5) as usize];
            let ended = self.ranks[rank].round as i64 - 1;
            return self
                .turn(rank)
                .map_err(|what| format!("rank {rank}, at the end of round {ended}: {what}"));
        }
        let index = self.threads[thread].next;
        let step = self.programs[rank].queues[queue][index];
        let done = match self.threads[thread].under_way.take() {
            None => self.begin(thread, step),
            Some(bytes) => {
                self.end(thread, step, &bytes);
                Ok(())
            }
        };
        done.map_err(|what| {
            let round = self.ranks[rank].round - 1;
            format!("round {round}, rank {rank}, queue {queue}, step {index} ({step:?}): {what}")
        })
    }

    /// The user's turn: checks the result of the round that has ended, and starts the next one.
    fn turn(&mut self, rank: usize) -> Result<(), String> {
        let (round, user) = (self.ranks[rank].round, self.user(rank));
        for space in [Space::Send, Space::Receive] {
            let whole = Place { rank, space, offset: 0 };
            let size = self.memory[self.index(user, whole)].len() as u64;
            self.access(user, whole, size, true)?;
        }
        if round > 0 && self.problem.operation == Operation::Barrier {
            // The order must follow from waits and signals: the order in which steps ran is not
            // enough.
            let clock = &self.threads[user].clock;
            let late =
                (0..self.ranks.len()).find(|&peer| !clock.has(self.user(peer), round as u32));
            if let Some(peer) = late {
                return Err(format!("leaves the barrier before rank {peer} has begun"));
            }
        }
        if round > 0 {
            let (send, receive) =
                (&self.memory[rank * self.spaces], &self.memory[rank * self.spaces + 1]);
            self.rounds[round - 1].compare(self.problem, rank, send, receive)?;
        }
        self.ranks[rank].round += 1;
        let Some(next) = self.rounds.get(round) else { return Ok(()) };
        self.memory[rank * self.spaces].copy_from_slice(&next.inputs[rank].send);
        self.memory[rank * self.spaces + 1].copy_from_slice(&next.inputs[rank].receive);

        let queues = &self.programs[rank].queues;
        self.ranks[rank].open = queues.iter().filter(|queue| !queue.is_empty()).count();
        if self.ranks[rank].open == 0 {
            self.ready.push(user);
        }
        let clock = self.threads[user].clock.clone();
        self.threads[user].clock.tick(user);
        for queue in (0..queues.len()).filter(|&queue| !queues[queue].is_empty()) {
            let thread = rank * self.lanes + queue;
            self.threads[thread].clock.join(&clock);
            self.threads[thread].next = 0;
            self.arm(thread);
        }
        Ok(())
    }

    /// The first half of a step, which reads.
    fn begin(&mut self, thread: usize, step: Step) -> Result<(), String> {
        let rank = thread / self.lanes;
        if let Some(wait) = step.wait {
            let counter = &mut self.counters[thread * self.problem.ranks + wait.from];
            let first = counter.arrived - counter.clocks.len() as u32;
            let sought = sought(self.ranks[rank].round, counter.total, wait);
            if sought > first {
                counter.clocks.drain(..(sought - first - 1) as usize);
                self.threads[thread].clock.join(&counter.clocks[0]);
            }
        }
        let bytes = match step.action {
            Action::Nothing => Vec::new(),
            Action::Copy { from, to, size } => {
                self.access(thread, from, size, false)?;
                if self.put_of(thread, &step).is_none() {
                    self.access(thread, to, size, true)?;
                }
                self.bytes(thread, from, size).to_vec()
            }
            Action::Combine { left, right, to, size } => {
                self.access(thread, left, size, false)?;
                self.access(thread, right, size, false)?;
                self.access(thread, to, size, true)?;
                let (left, right) =
                    (self.bytes(thread, left, size), self.bytes(thread, right, size));
                reference::combine(self.ordered, self.problem.width, left, right)
            }
        };
        self.threads[thread].under_way = Some(bytes);
        self.ready.push(thread);
        Ok(())
    }

    /// The second half of a step, which writes and signals.
    fn end(&mut self, thread: usize, step: Step, bytes: &[u8]) {
        if let Some(to) = self.put_of(thread, &step) {
            self.send(thread, step, (to, bytes));
            self.threads[thread].next += 1;
            return self.arm(thread);
        }
        if let Action::Copy { to, .. } | Action::Combine { to, .. } = step.action {
            let begin = to.offset as usize;
            let memory = self.index(thread, to);
            self.memory[memory][begin..begin + bytes.len()].copy_from_slice(bytes);
        }
        self.threads[thread].next += 1;
        let round = self.ranks[thread / self.lanes].round;
        let due = step.signal.filter(|signal| round.is_multiple_of(signal.every as usize));
        if let Some(signal) = due {
            let clock = self.threads[thread].clock.clone();
            self.threads[thread].clock.tick(thread);
            self.signal(thread / self.lanes, signal, clock);
        }
        self.arm(thread);
    }

    /// Rank `source` sends a signal.
    fn signal(&mut self, source: usize, signal: Signal, clock: Clock) {
        let target = signal.rank * self.lanes + signal.queue;
        let counter = &mut self.counters[target * self.problem.ranks + source];
        counter.arrived += signal.every;
        counter.clocks.extend((0..signal.every).map(|_| clock.clone()));
        if self.threads[target].blocked {
            self.arm(target);
        }
    }

    /// The thread of a rank's user. It ticks at the beginning of each round.
    fn user(&self, rank: usize) -> usize {
        rank * self.lanes + self.lanes - 1
    }

    /// Called when the queue may have become ready: it can run, must wait, or is at its end.
    fn arm(&mut self, thread: usize) {
        let (rank, queue) = (thread / self.lanes, thread % self.lanes);
        if self.threads[thread].next == self.programs[rank].queues[queue].len() {
            let user = self.user(rank);
            let clock = self.threads[thread].clock.clone();
            self.threads[thread].clock.tick(thread);
            self.threads[user].clock.join(&clock);
            self.ranks[rank].open -= 1;
            if self.ranks[rank].open == 0 {
                self.ready.push(user);
            }
            return;
        }
        self.threads[thread].blocked = !self.may_pass(thread);
        if !self.threads[thread].blocked {
            self.ready.push(thread);
        }
    }

    /// Whether the signal that the queue's next step waits for has come.
    fn may_pass(&self, thread: usize) -> bool {
        let (rank, queue) = (thread / self.lanes, thread % self.lanes);
        let step = self.programs[rank].queues[queue][self.threads[thread].next];
        step.wait.is_none_or(|wait| {
            let counter = &self.counters[thread * self.problem.ranks + wait.from];
            counter.arrived >= sought(self.ranks[rank].round, counter.total, wait)
        })
    }

    /// Called when no thread can run: all rounds must be over.
    fn all_done(&self) -> Result<(), String> {
        if let Some(thread) = self.threads.iter().position(|thread| thread.blocked) {
            let (rank, queue) = (thread / self.lanes, thread % self.lanes);
            let index = self.threads[thread].next;
            let step = self.programs[rank].queues[queue][index];
            let round = self.ranks[rank].round - 1;
            return Err(format!(
                "deadlock: round {round}, rank {rank}, queue {queue}, step {index} ({step:?}) still \
                 waits"
            ));
        }
        match self.ranks.iter().position(|rank| rank.round != self.rounds.len() + 1) {
            Some(rank) => Err(format!("rank {rank} has not ended all its rounds")),
            None => Ok(()),
        }
    }

    /// Records that a thread accesses some bytes, and checks that it may.
    fn access(
        &mut self,
        thread: usize,
        place: Place,
        size: u64,
        write: bool,
    ) -> Result<(), String> {
        let Thread { clock, next, .. } = &self.threads[thread];
        let round = self.ranks[thread / self.lanes].round;
        let epoch = Epoch::new(thread, clock, *next, round);
        let memory = self.index(thread, place);
        let shadow = &mut self.shadow[memory];
        let is_scratch = place.space == Space::Scratch;
        let clash = match write {
            true => shadow.write(place.offset, size, clock, epoch),
            false => shadow.read(place.offset, size, clock, epoch, is_scratch)?,
        };
        let Some(other) = clash else { return Ok(()) };
        let (rank, queue) = (other.thread() / self.lanes, other.thread() % self.lanes);
        let Place { rank: owner, space, offset } = place;
        let what = match (queue + 1 == self.lanes, thread % self.lanes + 1 == self.lanes) {
            (true, _) => format!("outside its round {}", other.round),
            (_, true) => format!(
                "after its round, still touched by rank {rank}, queue {queue}, step {}",
                other.step
            ),
            _ => format!("in a race with rank {rank}, queue {queue}, step {}", other.step),
        };
        let verb = if write { "writes" } else { "reads" };
        Err(format!("{verb} {size} bytes of {space:?} of rank {owner} from byte {offset}: {what}"))
    }

    /// The index of the memory that a place means for a thread in its present round.
    fn index(&self, thread: usize, place: Place) -> usize {
        let round = self.ranks[thread / self.lanes].round;
        let turns = match place.space {
            Space::Scratch => self.programs[place.rank].turns as usize,
            _ => 1,
        };
        place.rank * self.spaces + place.space as usize + round % turns
    }

    fn bytes(&self, thread: usize, place: Place, size: u64) -> &[u8] {
        &self.memory[self.index(thread, place)]
            [place.offset as usize..(place.offset + size) as usize]
    }
}
