//! Allgather: a block of everybody for everybody.

use crate::coll::algorithms::Algorithm;
use crate::coll::algorithms::blocks::{Lane, distances, lanes, others, runs, single};
use crate::coll::algorithms::eager::exchange_blocks;
use crate::coll::algorithms::levels::{
    self, Part, Parts, come, hand_out, in_turn, is_short, nodes,
};
use crate::coll::algorithms::vectors::copy;
use crate::coll::problem::{Operation, Problem};
use crate::coll::schedule::{Appender, Place, Program, receive};

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

/// Two levels. A rank of each node is responsible for some of the node's blocks, of short blocks
/// one rank for all: it fetches them, gets those of the other nodes from the ranks that are
/// responsible for them there, and gives all to its node. So a block comes to each node once.
fn two_level(problem: &Problem, rank: usize) -> Program {
    let (nodes, bytes) = (nodes(problem), problem.bytes());
    let owners = if is_short(problem, bytes, SHORT) { 1 } else { nodes.least() };
    in_turn(rank, |rank| {
        let beside = nodes.beside(rank);
        let index = beside.iter().position(|other| *other == rank).unwrap_or(0);
        // The ranks of a node for whose blocks its rank of this index is responsible.
        let share = |node: usize| {
            let members = if index < owners { nodes.members(node) } else { &[] };
            &members[index * members.len() / owners..(index + 1) * members.len() / owners]
        };
        let is_owner = index < owners;
        let alike = if is_owner { nodes.indices(index) } else { Vec::new() };
        let fetch = Part::steps(rank, beside, |queue, own| {
            come(queue, beside.len(), own, owners);
            let place = |rank: usize| receive(own, rank as u64 * bytes);
            let mine = if is_owner { share(nodes.of(rank)) } else { &[rank] };
            let has = |peer: &usize| *peer != rank || !problem.in_place;
            let own_too = (!mine.contains(&rank)).then_some(rank);
            for peer in mine.iter().copied().chain(own_too).filter(has) {
                let at = beside.iter().position(|other| *other == peer).unwrap_or(own);
                let from = Place { rank: at, ..problem.source(peer, peer, 0) };
                copy(queue, problem, from, place(peer), bytes);
            }
        });
        let swap = Part::steps(rank, &alike, |queue, at| {
            let sets = (0..nodes.count()).map(|node| levels::runs(share(node)));
            swap_sets(queue, problem, at, &sets.collect::<Vec<_>>());
        });
        let give = Part::steps(rank, beside, |queue, own| {
            let mut all = (0..nodes.count()).flat_map(share).copied().collect::<Vec<_>>();
            all.sort_unstable();
            hand_out(queue, (beside.len(), own, owners), |queue, peer| {
                let others = all.iter().copied().filter(|other| *other != beside[peer]);
                copy_runs(queue, problem, (own, peer), &levels::runs(&others.collect::<Vec<_>>()));
            });
        });
        Parts { kept: 0, parts: vec![fetch, swap, give] }
    })
}

/// Up to so many bytes of a block one rank of a node is responsible for all.
const SHORT: u64 = 8 << 10;

/// Copies the blocks of these runs of ranks from the output of the first of `ends` to that of the
/// second.
fn copy_runs(
    queue: &mut Appender,
    problem: &Problem,
    ends: (usize, usize),
    runs: &[(usize, usize)],
) {
    for &(first, count) in runs {
        let (offset, size) = (first as u64 * problem.bytes(), count as u64 * problem.bytes());
        copy(queue, problem, receive(ends.0, offset), receive(ends.1, offset), size);
    }
}

/// Rank `rank` of as many as there are sets has the blocks of the set of its number in its output,
/// and gets those of all: short ones as [`bruck`] does it, long ones as [`ring`].
fn swap_sets(queue: &mut Appender, problem: &Problem, rank: usize, sets: &[Vec<(usize, usize)>]) {
    let ranks = sets.len();
    let to_left = |distance: usize| (rank + ranks - distance % ranks) % ranks;
    if is_short(problem, problem.bytes(), SHORT) {
        for distance in distances(ranks) {
            queue.signal((rank + distance) % ranks, 0);
        }
        for distance in distances(ranks) {
            let (to, from) = (to_left(distance), (rank + distance) % ranks);
            queue.wait(to, 1);
            for set in 0..distance.min(ranks - distance) {
                copy_runs(queue, problem, (rank, to), &sets[(rank + set) % ranks]);
            }
            let earlier = u32::from((ranks - distance).is_power_of_two());
            queue.signal(to, 0).wait(from, earlier + 1);
        }
    } else if ranks > 1 {
        let (left, right) = (to_left(1), (rank + 1) % ranks);
        let earlier = u32::from(left == right);
        queue.signal(left, 0).wait(right, 1);
        for step in 0..ranks - 1 {
            if step > 0 {
                queue.wait(left, earlier + step as u32);
            }
            copy_runs(queue, problem, (rank, right), &sets[to_left(step)]);
            queue.signal(right, 0);
        }
        queue.wait(left, earlier + ranks as u32 - 1);
    }
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
    Algorithm::new(Operation::Allgather, "two_level", two_level)
        .only_if(|problem| problem.varied.is_none()),
];
