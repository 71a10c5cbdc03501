//! Ranks on several nodes. A put to another node is a message: it reads its bytes when it is sent,
//! and arrives at any later moment, before or after other messages of its sender. Its signal counts
//! when all messages that the sender's queue had sent to this rank before have arrived. The arrival
//! is not ordered with later steps of the sender, so each queue has a clock of its own for each
//! rank to which it puts.

use super::reference::Random;
use super::shadow::{Clock, Epoch};
use super::{Run, Step};
use crate::coll::nodes::Nodes;
use crate::coll::runner::posted::posted;
use crate::coll::schedule::{Action, Place, Program, Signal, Space};
use std::collections::{BTreeMap, BTreeSet};

/// A message that has not arrived.
struct Message {
    edge: usize,
    /// How many messages of this edge were sent before it.
    sequence: u32,
    to: Option<(Place, Vec<u8>)>,
    signal: Option<Signal>,
    /// The round and step of the sender.
    round: usize,
    step: usize,
    clock: Clock,
}

struct Edge {
    thread: usize,
    to: usize,
    sent: u32,
    next: u32,
    /// Messages that arrived before an earlier message of this edge.
    ahead: BTreeMap<u32, (Option<Signal>, Clock)>,
    clock: Clock,
}

/// The messages between nodes; see the head of the file.
#[derive(Default)]
pub struct Wire {
    edges: Vec<Edge>,
    flying: Vec<Message>,
    threads: usize,
}

/// The programs of ranks on these nodes, with their steps cut as by posted(). None: a program reads
/// memory of another node.
pub fn programs(programs: Vec<Program>, nodes: Option<&Nodes>) -> Option<Vec<Program>> {
    let is_far = |one, other| nodes.is_some_and(|nodes| !nodes.share(one, other));
    let cut = |(rank, program)| posted(program, rank, |peer| is_far(rank, peer));
    programs.into_iter().enumerate().map(cut).collect()
}

impl Wire {
    /// For these programs. `threads`: all threads; `lanes`: the threads of each rank.
    pub fn new(programs: &[Program], threads: usize, lanes: usize) -> Wire {
        let mut edges = BTreeSet::new();
        for (rank, program) in programs.iter().enumerate() {
            for (queue, steps) in program.queues.iter().enumerate() {
                let puts = steps.iter().filter_map(|step| step.puts_to(&program.far));
                edges.extend(puts.map(|to| (rank * lanes + queue, to)));
            }
        }
        let all = threads + edges.len();
        let edge = |(number, (thread, to))| {
            let clock = Clock::new(all, threads + number);
            Edge { thread, to, sent: 0, next: 0, ahead: BTreeMap::new(), clock }
        };
        Wire {
            edges: edges.into_iter().enumerate().map(edge).collect(),
            flying: Vec::new(),
            threads,
        }
    }

    /// The number of clocks besides those of the threads.
    pub fn clocks(&self) -> usize {
        self.edges.len()
    }

    /// Whether all messages have arrived.
    pub fn is_quiet(&self) -> bool {
        self.flying.is_empty()
    }
}

impl Run<'_> {
    /// The rank of another node to which a step puts, if there is one.
    pub(super) fn put_of(&self, thread: usize, step: &Step) -> Option<usize> {
        step.puts_to(&self.programs[thread / self.lanes].far)
    }

    /// Sends a put.
    pub(super) fn send(&mut self, thread: usize, step: Step, (to, bytes): (usize, &[u8])) {
        assert!(step.signal.is_none_or(|signal| signal.rank == to), "a put to two ranks: {step:?}");
        let round = self.ranks[thread / self.lanes].round;
        let due = step.signal.filter(|signal| round.is_multiple_of(signal.every as usize));
        let place = match step.action {
            Action::Copy { to, .. } => Some((to, bytes.to_vec())),
            _ => None,
        };
        let found = self.wire.edges.iter().position(|edge| (edge.thread, edge.to) == (thread, to));
        let edge = found.expect("an edge of the program");
        let sequence = self.wire.edges[edge].sent;
        self.wire.edges[edge].sent += 1;
        let clock = self.threads[thread].clock.clone();
        self.threads[thread].clock.tick(thread);
        let step = self.threads[thread].next;
        let message = Message { edge, sequence, to: place, signal: due, round, step, clock };
        self.wire.flying.push(message);
    }

    /// Delivers one of the messages that have not arrived.
    pub(super) fn deliver(&mut self, random: &mut Random) -> Result<(), String> {
        let at = random.below(self.wire.flying.len() as u64) as usize;
        let Message { edge, sequence, to, signal, round, step, clock } =
            self.wire.flying.swap_remove(at);
        let own = self.wire.threads + edge;
        if let Some((to, bytes)) = to {
            let turns = match to.space {
                Space::Scratch => self.programs[to.rank].turns as usize,
                _ => 1,
            };
            let memory = to.rank * self.spaces + to.space as usize + round % turns;
            // The moment of the edge's clock that the signal of this message reaches.
            let mut now = clock.clone();
            now.set(own, sequence + 2);
            let epoch = Epoch::new(own, &now, step, round);
            if let Some(other) =
                self.shadow[memory].write(to.offset, bytes.len() as u64, &clock, epoch)
            {
                let (rank, queue) = (other.thread() / self.lanes, other.thread() % self.lanes);
                let sender = self.wire.edges[edge].thread;
                return Err(format!(
                    "what rank {}, queue {}, step {step} puts to {to:?} in round {round} is in a race \
                     with rank {rank}, queue {queue} (or edge {}), step {} of round {}",
                    sender / self.lanes,
                    sender % self.lanes,
                    other.thread() as i64 - self.wire.threads as i64,
                    other.step,
                    other.round,
                ));
            }
            let begin = to.offset as usize;
            self.memory[memory][begin..begin + bytes.len()].copy_from_slice(&bytes);
        }
        let arrived = &mut self.wire.edges[edge];
        arrived.ahead.insert(sequence, (signal, clock));
        loop {
            let arrived = &mut self.wire.edges[edge];
            let Some((signal, clock)) = arrived.ahead.remove(&arrived.next) else { break };
            arrived.next += 1;
            arrived.clock.join(&clock);
            arrived.clock.set(own, arrived.next + 1);
            let (clock, source) = (arrived.clock.clone(), arrived.thread / self.lanes);
            if let Some(signal) = signal {
                self.signal(source, signal, clock);
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::broadcast_to;
    use super::super::{run, sweep::has_root, sweep_posted};
    use super::*;
    use crate::coll::algorithms::{Algorithm, all};
    use crate::coll::problem::Problem;
    use crate::coll::schedule::receive;

    /// Two tests, which run at the same time.
    fn sweep_puts(rooted: bool) {
        let puts = |row: &&Algorithm| !row.pulls && row.name != "two_level";
        sweep_posted(all().filter(puts).filter(|row| has_root(row.operation) == rooted));
    }

    #[test]
    fn algorithms_with_a_root_that_put_are_right_over_several_nodes() {
        sweep_puts(true);
    }

    #[test]
    fn algorithms_without_a_root_that_put_are_right_over_several_nodes() {
        sweep_puts(false);
    }

    #[test]
    fn algorithms_of_two_levels_are_right_over_any_nodes() {
        let rows = || all().filter(|row| row.name == "two_level");
        assert!(rows().next().is_some(), "nothing to test");
        sweep_posted(rows());
    }

    #[test]
    fn algorithms_that_say_so_pull() {
        for algorithm in all().filter(|algorithm| algorithm.pulls) {
            let pulls = |count| {
                let problem = Problem { count, operation: algorithm.operation, ..broadcast_to(3) };
                let program = |rank| (algorithm.program)(&problem, rank);
                programs((0..3).map(program).collect(), Some(&Nodes::new(0..3))).is_none()
            };
            assert!([4, 4000].into_iter().any(pulls), "{:?}", algorithm.operation);
        }
    }

    /// Runs the programs with each rank on a node of its own; returns the error of the first seed
    /// that finds one.
    fn caught(programs: Vec<Program>) -> Option<String> {
        let ranks = programs.len();
        let cut = |(rank, program)| posted(program, rank, |peer| peer != rank).unwrap();
        let programs = programs.into_iter().enumerate().map(cut).collect::<Vec<_>>();
        (0..50).find_map(|seed| run(&broadcast_to(ranks), &programs, true, seed).err())
    }

    /// Rank 0 puts to ranks 1 and 2, and signals both puts to rank 2, which signals rank 1.
    fn signalled_by_another(round_about: bool) -> Vec<Program> {
        let mut programs = vec![Program::new(1), Program::new(1), Program::new(1)];
        let mut queue = programs[0].queue(0);
        queue.wait(1, 1).copy(receive(0, 0), receive(1, 0), 16);
        if !round_about {
            queue.signal(1, 0);
        }
        queue.wait(2, 1).copy(receive(0, 0), receive(2, 0), 16).signal(2, 0);
        drop(queue);
        let mut queue = programs[1].queue(0);
        queue.signal(0, 0).wait(if round_about { 2 } else { 0 }, 1);
        drop(queue);
        let mut queue = programs[2].queue(0);
        queue.signal(0, 0).wait(0, 1);
        if round_about {
            queue.signal(1, 0);
        }
        drop(queue);
        programs
    }

    #[test]
    fn a_put_is_signalled_by_its_own_sender_only() {
        assert_eq!(caught(signalled_by_another(false)), None);
        let shared = signalled_by_another(true);
        assert!(
            (0..50).all(|seed| run(&broadcast_to(3), &shared, true, seed).is_ok()),
            "in one node"
        );
        assert!(caught(signalled_by_another(true)).is_some());
    }
}
