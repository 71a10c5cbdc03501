//! Scan: each rank gets the combination of the vectors of the ranks up to itself.

use super::Algorithm;
use super::blocks::distances;
use super::eager::Slots;
use super::vectors::{combine, copy, pieces, queues, single};
use crate::coll::problem::{Operation, Problem};
use crate::coll::schedule::{Program, scratch};

/// The table of this operation.
pub const ALGORITHMS: &[Algorithm] = &[
    Algorithm::new(Operation::Scan, "direct", direct).copying_once().pulling(),
    Algorithm::new(Operation::Scan, "recursive_doubling", recursive_doubling),
    Algorithm::new(Operation::Scan, "eager", eager),
];

/// A chain, piece by piece: a rank combines the result of the rank before it, straight from that
/// rank's buffer, with its own input. No algorithm moves or combines fewer bytes, but the first
/// piece needs as many steps as there are ranks. A rank ends when the next rank has read its
/// result.
fn direct(problem: &Problem, rank: usize) -> Program {
    let queues = queues(problem, problem.bytes());
    let mut program = Program::new(queues);
    for number in 0..queues {
        let mut queue = program.queue(number);
        let last = rank + 1 == problem.ranks;
        let pieces = pieces(problem, problem.bytes(), number, queues);
        for (index, (offset, size)) in pieces.enumerate() {
            let (own, to) = (problem.source(rank, 0, offset), problem.target(rank, 0, offset));
            if rank > 0 {
                let before = problem.target(rank - 1, 0, offset);
                queue.wait(rank - 1, index as u32 + 1).combine(before, own, to, size);
            } else {
                queue.copy(own, to, size);
            }
            if !last {
                queue.signal(rank + 1, number);
            }
        }
        if rank > 0 {
            queue.signal(rank - 1, number);
        }
        if !last {
            queue.wait(rank + 1, 1);
        }
    }
    program
}

/// In step k a rank sends the combination of the 2^k vectors up to its own to the rank whose number
/// is larger by 2^k (Hillis and Steele 1986). There are log2(ranks) steps, each of which sends and
/// combines the whole vector. Each step receives into a place of its own, and a signal reports to
/// the sender that the place is free.
fn recursive_doubling(problem: &Problem, rank: usize) -> Program {
    let (ranks, size) = (problem.ranks, problem.bytes());
    let steps = distances(ranks).count() as u64;
    single(steps * size, |queue| {
        for distance in distances(rank + 1) {
            queue.signal(rank - distance, 0);
        }
        let (own, to) = (problem.source(rank, 0, 0), problem.target(rank, 0, 0));
        if rank == 0 {
            copy(queue, problem, own, to, size);
        }
        let mut partial = own;
        for (step, distance) in distances(ranks).enumerate() {
            let slot = |rank: usize| scratch(rank, step as u64 * size);
            if rank + distance < ranks {
                queue.wait(rank + distance, 1);
                copy(queue, problem, partial, slot(rank + distance), size);
                queue.signal(rank + distance, 0);
            }
            if rank >= distance {
                queue.wait(rank - distance, 1);
                combine(queue, problem, [slot(rank), partial, to], size);
                partial = to;
            }
        }
    })
}

/// A chain in which each rank puts its result into a slot of the next rank, and may be several
/// rounds ahead of that rank. In a round ranks - 1 steps follow each other, but steps of several
/// rounds run at the same time. For small sizes on few ranks.
fn eager(problem: &Problem, rank: usize) -> Program {
    let bytes = problem.bytes();
    let slots = Slots::one_way(bytes, 1);
    let (own, to) = (problem.source(rank, 0, 0), problem.target(rank, 0, 0));
    slots.program(usize::from(rank > 0), |queue| {
        let mut result = own;
        if rank > 0 {
            let before = slots.wait(queue, rank - 1, rank, 0);
            queue.combine(before, own, to, bytes);
            slots.has_read(queue, rank - 1);
            result = to;
        }
        if rank + 1 < problem.ranks {
            slots.put(queue, result, rank + 1, 0);
        }
        // The result of the first rank is its input.
        queue.copy(result, to, bytes);
    })
}
