//! Allgather: a block of everybody for everybody.

use crate::coll::algorithms::Algorithm;
use crate::coll::algorithms::blocks::{Lane, distances, lanes, others, runs, single};
use crate::coll::algorithms::eager::exchange_blocks;
use crate::coll::problem::{Operation, Problem};
use crate::coll::schedule::{Appender, Program};

/// Copies what rank `rank` contributes to where it belongs in its own output.
fn copy_own(lane: &Lane, queue: &mut Appender, rank: usize) {
    let problem = lane.problem;
    let (from, to) = (problem.source(rank, rank, 0), problem.target(rank, rank, 0));
    lane.copy(queue, from, to, problem.receive_block(rank, rank).size);
}

/// Round the ring: each rank hands its right neighbour what the left one has given it, output to
/// output, n - 1 times. As many signals one after the other; each rank copies n - 1 blocks, always
/// to the same rank, which is the way for networks that have one link each (Thakur, Rabenseifner
/// and Gropp, "Optimization of collective communication operations in MPICH", 2005).
fn ring(problem: &Problem, rank: usize) -> Program {
    let ranks = problem.ranks;
    let (left, right) = ((rank + ranks - 1) % ranks, (rank + 1) % ranks);
    let size = |peer| problem.receive_block(rank, peer).size;
    // Of two ranks the neighbour is both, and has said first that it is ready.
    let earlier = u32::from(left == right);
    lanes(problem, |lane, queue| {
        queue.signal(left, lane.number);
        queue.wait(right, 1);
        for step in 0..ranks - 1 {
            let block = (rank + ranks - step) % ranks;
            let mut from = problem.source(rank, right, 0);
            if step > 0 {
                queue.wait(left, earlier + step as u32);
                from = problem.target(rank, block, 0);
            }
            lane.copy(queue, from, problem.target(right, block, 0), size(block));
            queue.signal(right, lane.number);
        }
        copy_own(lane, queue, rank);
        queue.wait(left, earlier + ranks as u32 - 1);
    })
}

/// Copies the `count` equal blocks from that of rank `first` on, from the output of the first of
/// `ends` to that of the second.
fn push(lane: &Lane, queue: &mut Appender, ends: (usize, usize), first: usize, count: usize) {
    let problem = lane.problem;
    for (first, _, blocks) in runs(problem.ranks, first, count) {
        let (from, to) = (problem.target(ends.0, first, 0), problem.target(ends.1, first, 0));
        lane.copy(queue, from, to, blocks as u64 * problem.bytes());
    }
}

/// Pairs at doubled distances, for a power of two: in step k a rank exchanges the 2^k blocks that
/// it has with the rank whose number differs in bit k. log n exchanges; each rank copies n - 1
/// blocks (Thakur, Rabenseifner and Gropp 2005).
fn recursive_doubling(problem: &Problem, rank: usize) -> Program {
    single(problem, 0, |lane, queue| {
        for distance in distances(problem.ranks) {
            queue.signal(rank ^ distance, 0);
        }
        copy_own(lane, queue, rank);
        for distance in distances(problem.ranks) {
            let peer = rank ^ distance;
            queue.wait(peer, 1);
            push(lane, queue, (rank, peer), rank & !(distance - 1), distance);
            // What comes back is needed by the next step.
            queue.signal(peer, 0).wait(peer, 2);
        }
    })
}

/// Bruck's way, for any number of ranks: in step k a rank gives all that it has, the blocks of 2^k
/// ranks from itself on, to the rank 2^k to its left. log n steps; each rank copies n - 1 blocks
/// (Bruck, Ho, Kipnis, Upfal and Weathersby, "Efficient algorithms for all-to-all communications in
/// multiport message-passing systems", 1997). Blocks are written where they belong, so nothing is
/// rotated at the end.
fn bruck(problem: &Problem, rank: usize) -> Program {
    let ranks = problem.ranks;
    single(problem, 0, |lane, queue| {
        for distance in distances(ranks) {
            queue.signal((rank + distance) % ranks, 0);
        }
        copy_own(lane, queue, rank);
        for distance in distances(ranks) {
            let (to, from) = ((rank + ranks - distance) % ranks, (rank + distance) % ranks);
            queue.wait(to, 1);
            push(lane, queue, (rank, to), rank, distance.min(ranks - distance));
            // A rank a power of two away in both directions has said first that it is ready.
            let earlier = u32::from((ranks - distance).is_power_of_two());
            queue.signal(to, 0).wait(from, earlier + 1);
        }
    })
}

/// Single copy: each rank fetches the blocks of the others from where they lie, beginning with its
/// right neighbour's, so that not all fetch from one. Two signals one after the other, 2 (n - 1) in
/// all for each rank: the owner is ready, the block has been fetched. Nothing is said about blocks
/// of no bytes.
fn direct(problem: &Problem, rank: usize) -> Program {
    let ranks = problem.ranks;
    let size = |peer| problem.receive_block(rank, peer).size;
    lanes(problem, |lane, queue| {
        let offers = lane.carries(size(rank));
        if offers {
            // The left neighbour fetches from here first.
            others(rank, ranks).rev().for_each(|peer| _ = queue.signal(peer, lane.number));
        }
        copy_own(lane, queue, rank);
        for peer in others(rank, ranks).filter(|peer| lane.carries(size(*peer))) {
            queue.wait(peer, 1);
            let (from, to) = (problem.source(peer, rank, 0), problem.target(rank, peer, 0));
            lane.copy(queue, from, to, size(peer));
            queue.signal(peer, lane.number);
        }
        if offers {
            for peer in others(rank, ranks).rev() {
                queue.wait(peer, 1 + u32::from(lane.carries(size(peer))));
            }
        }
    })
}

/// The table of this operation.
pub const ALGORITHMS: &[Algorithm] = &[
    Algorithm::new(Operation::Allgather, "direct", direct).copying_once().pulling(),
    Algorithm::new(Operation::Allgather, "ring", ring),
    Algorithm::new(Operation::Allgather, "bruck", bruck)
        .only_if(|problem| problem.varied.is_none()),
    Algorithm::new(Operation::Allgather, "recursive_doubling", recursive_doubling)
        .only_if(|problem| problem.varied.is_none() && problem.ranks.is_power_of_two()),
    Algorithm::new(Operation::Allgather, "eager", exchange_blocks)
        .only_if(|problem| problem.varied.is_none()),
];
