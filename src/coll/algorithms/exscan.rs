//! Exclusive scan: each rank but the first gets the combination of the vectors of the ranks before
//! it.

use super::Algorithm;
use super::blocks::distances;
use super::eager::Slots;
use super::vectors::{combine, copy, pieces, queues, single};
use crate::coll::problem::{Operation, Problem};
use crate::coll::schedule::{Place, Program, scratch};

/// The table of this operation.
pub const ALGORITHMS: &[Algorithm] = &[
    Algorithm::new(Operation::Exscan, "direct", direct).copying_once().pulling(),
    Algorithm::new(Operation::Exscan, "recursive_doubling", recursive_doubling),
    Algorithm::new(Operation::Exscan, "eager", eager),
];

/// A chain, piece by piece: a rank combines the result and the input of the rank before it,
/// straight from that rank's buffers. No algorithm moves or combines fewer bytes, but the first
/// piece needs as many steps as there are ranks. A rank ends when the next rank has read its
/// buffers. In place the result overwrites the input. So a rank keeps the combination of both in
/// scratch memory for the next rank, and copies its own result from the rank before it.
fn direct(problem: &Problem, rank: usize) -> Program {
    let queues = queues(problem, problem.bytes());
    let last = rank + 1 == problem.ranks;
    let mut program = Program::new(queues);
    for number in 0..queues {
        let mut queue = program.queue(number);
        let pieces = pieces(problem, problem.bytes(), number, queues);
        for (index, (offset, size)) in pieces.enumerate() {
            if rank > 0 {
                queue.wait(rank - 1, index as u32 + 1);
                let to = problem.target(rank, 0, offset);
                match problem.in_place {
                    true => {
                        let before = inclusive(problem, rank - 1, offset);
                        if !last {
                            let own = problem.source(rank, 0, offset);
                            queue.combine(before, own, inclusive(problem, rank, offset), size);
                        }
                        queue.copy(before, to, size);
                    }
                    false if rank == 1 => {
                        queue.copy(problem.source(0, 0, offset), to, size);
                    }
                    false => {
                        let before = problem.target(rank - 1, 0, offset);
                        queue.combine(before, problem.source(rank - 1, 0, offset), to, size);
                    }
                }
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
    let keeps = problem.in_place && rank > 0 && !last;
    program.scratch = if keeps { problem.bytes() } else { 0 };
    program
}

/// In place: the place of the combination of the ranks up to and including `rank`.
fn inclusive(problem: &Problem, rank: usize, offset: u64) -> Place {
    if rank == 0 { problem.source(0, 0, offset) } else { scratch(rank, offset) }
}

/// In step k a rank sends the combination of the 2^k vectors up to its own to the rank whose number
/// is larger by 2^k (Hillis and Steele 1986). There are log2(ranks) steps. Each step sends the
/// whole vector and combines twice, once into the vector that the next step sends and once into the
/// result, which does not contain the rank's own vector. Each step has a place of its own for the
/// vector that it receives, and a signal reports to the sender that the place is free.
fn recursive_doubling(problem: &Problem, rank: usize) -> Program {
    let (ranks, size) = (problem.ranks, problem.bytes());
    let steps = distances(ranks).count() as u64;
    single((steps + 1) * size, |queue| {
        for distance in distances(rank + 1) {
            queue.signal(rank - distance, 0);
        }
        let to = problem.target(rank, 0, 0);
        let mut partial = problem.source(rank, 0, 0);
        for (step, distance) in distances(ranks).enumerate() {
            let slot = |rank: usize| scratch(rank, step as u64 * size);
            if rank + distance < ranks {
                queue.wait(rank + distance, 1);
                copy(queue, problem, partial, slot(rank + distance), size);
                queue.signal(rank + distance, 0);
            }
            if rank < distance {
                continue;
            }
            queue.wait(rank - distance, 1);
            // In place this must come before the result overwrites this rank's vector.
            if rank + 2 * distance < ranks {
                let sum = scratch(rank, steps * size);
                combine(queue, problem, [slot(rank), partial, sum], size);
                partial = sum;
            }
            match step {
                0 => copy(queue, problem, slot(rank), to, size),
                _ => combine(queue, problem, [slot(rank), to, to], size),
            }
        }
    })
}

/// A chain, like `eager` of the inclusive scan: a rank gets its result in its slot, combines the
/// result with its own input, and puts the combination into the slot of the next rank. For small
/// sizes on few ranks.
fn eager(problem: &Problem, rank: usize) -> Program {
    let (bytes, last) = (problem.bytes(), rank + 1 == problem.ranks);
    let slots = Slots::one_way(bytes, 2);
    let (own, to) = (problem.source(rank, 0, 0), problem.target(rank, 0, 0));
    let count = usize::from(rank > 0) + usize::from(rank > 0 && !last);
    slots.program(count, |queue| {
        if rank == 0 {
            return slots.put(queue, own, 1, 0);
        }
        let before = slots.wait(queue, rank - 1, rank, 0);
        if !last {
            // This comes before the copy of the result, which in place overwrites this rank's
            // input.
            let sum = slots.place(rank, 1);
            queue.combine(before, own, sum, bytes);
            slots.put(queue, sum, rank + 1, 0);
        }
        queue.copy(before, to, bytes);
        slots.has_read(queue, rank - 1);
    })
}
