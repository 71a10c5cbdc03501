//! Runs of ranks on several nodes. A put to another node is a message, which takes its bytes from
//! memory as it is sent and comes at any later moment, before or after others of its sender; its
//! signal counts when all that its sender's queue had sent to this rank before has come. What the
//! sender does after a put follows nothing that happens at the receiver: so each queue has a clock
//! of its own for each rank that it puts to.

use super::reference::Random;
use super::shadow::{Clock, Epoch};
use super::{Run, Step};
use crate::coll::nodes::Nodes;
use crate::coll::runner::posted::posted;
use crate::coll::schedule::{Action, Place, Program, Signal, Space};
use std::collections::{BTreeMap, BTreeSet};

/// What is on its way.
struct Message {
    edge: usize,
    /// How many came before it on this edge.
    sequence: u32,
    to: Option<(Place, Vec<u8>)>,
    signal: Option<Signal>,
    /// The sender's round and step.
    round: usize,
    step: usize,
    clock: Clock,
}

struct Edge {
    thread: usize,
    to: usize,
    sent: u32,
    next: u32,
    /// Those that have come before their turn.
    ahead: BTreeMap<u32, (Option<Signal>, Clock)>,
    clock: Clock,
}

/// See the head of the file.
#[derive(Default)]
pub struct Wire {
    edges: Vec<Edge>,
    flying: Vec<Message>,
    threads: usize,
}

/// The programs of ranks on these nodes, cut; None: one of them reads another node's memory.
pub fn programs(programs: Vec<Program>, nodes: Option<&Nodes>) -> Option<Vec<Program>> {
    let is_far = |one, other| nodes.is_some_and(|nodes| !nodes.share(one, other));
    let cut = |(rank, program)| posted(program, rank, |peer| is_far(rank, peer));
    programs.into_iter().enumerate().map(cut).collect()
}

impl Wire {
    /// For programs whose queues are that many threads, so many for each rank.
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

    /// How many clocks there are besides those of threads.
    pub fn clocks(&self) -> usize {
        self.edges.len()
    }

    /// Whether nothing is on its way.
    pub fn is_quiet(&self) -> bool {
        self.flying.is_empty()
    }
}

impl Run<'_> {
    /// Whether a step is a put to another node, and to whom.
    pub(super) fn put_of(&self, thread: usize, step: &Step) -> Option<usize> {
        step.puts_to(&self.programs[thread / self.lanes].far)
    }

    /// Sends a put.
    pub(super) fn send(&mut self, thread: usize, step: Step, (to, bytes): (usize, &[u8])) {
        let round = self.ranks[thread / self.lanes].round;
        let told = step.signal.filter(|signal| round.is_multiple_of(signal.every as usize));
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
        let message = Message { edge, sequence, to: place, signal: told, round, step, clock };
        self.wire.flying.push(message);
    }

    /// Delivers one of the messages that are on their way.
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
            // The moment of the edge that its signals will have reached.
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
                self.tell(source, signal, clock);
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::broadcast_to;
    use super::super::{run, sweep_posted};
    use super::*;
    use crate::coll::algorithms::all;
    use crate::coll::problem::Problem;
    use crate::coll::schedule::receive;

    #[test]
    fn algorithms_that_put_are_right_over_several_nodes() {
        sweep_posted(all().filter(|row| !row.pulls && row.name != "two_level"));
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

    /// Runs with each rank on a node of its own; the error of the first seed that has one.
    fn caught(programs: Vec<Program>) -> Option<String> {
        let ranks = programs.len();
        let cut = |(rank, program)| posted(program, rank, |peer| peer != rank).unwrap();
        let programs = programs.into_iter().enumerate().map(cut).collect::<Vec<_>>();
        (0..50).find_map(|seed| run(&broadcast_to(ranks), &programs, true, seed).err())
    }

    /// Rank 0 puts to both, and tells rank 2 of both puts; rank 2 tells rank 1.
    fn told_by_another(round_about: bool) -> Vec<Program> {
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
    fn a_put_is_told_of_by_its_own_sender_only() {
        assert_eq!(caught(told_by_another(false)), None);
        let shared = told_by_another(true);
        assert!(
            (0..50).all(|seed| run(&broadcast_to(3), &shared, true, seed).is_ok()),
            "in one node"
        );
        assert!(caught(told_by_another(true)).is_some());
    }
}
