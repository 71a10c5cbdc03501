//! Allgather: all ranks get a block of each rank.

use crate::coll::algorithms::Algorithm;
use crate::coll::algorithms::blocks::{Share, distances, others, runs, shares, single};
use crate::coll::algorithms::eager::exchange_blocks;
use crate::coll::algorithms::levels::{
    self, Part, Parts, all_have_come, distribute, in_turn, is_short, nodes,
};
use crate::coll::algorithms::vectors::copy;
use crate::coll::problem::{Operation, Problem};
use crate::coll::schedule::{Appender, Place, Program, receive};

/// Copies the block that `rank` contributes to its own output.
fn copy_own(share: &Share, queue: &mut Appender, rank: usize) {
    let problem = share.problem;
    let (from, to) = (problem.source(rank, rank, 0), problem.target(rank, rank, 0));
    share.copy(queue, from, to, problem.receive_block(rank, rank).size);
}

/// The ring: n - 1 times each rank copies to its right neighbour the block that it last got from
/// the left one, from output to output. n - 1 signals follow each other. Each rank copies to one
/// other rank only, which suits networks with one link for each rank (Thakur, Rabenseifner and
/// Gropp, "Optimization of collective communication operations in MPICH", 2005).
fn ring(problem: &Problem, rank: usize) -> Program {
    let ranks = problem.ranks;
    let (left, right) = ((rank + ranks - 1) % ranks, (rank + 1) % ranks);
    let size = |peer| problem.receive_block(rank, peer).size;
    // With two ranks both neighbours are one rank, and its ready signal comes first.
    let earlier = u32::from(left == right);
    shares(problem, |share, queue| {
        queue.signal(left, share.number);
        queue.wait(right, 1);
        for step in 0..ranks - 1 {
            let block = (rank + ranks - step) % ranks;
            let mut from = problem.source(rank, right, 0);
            if step > 0 {
                queue.wait(left, earlier + step as u32);
                from = problem.target(rank, block, 0);
            }
            share.copy(queue, from, problem.target(right, block, 0), size(block));
            queue.signal(right, share.number);
        }
        copy_own(share, queue, rank);
        queue.wait(left, earlier + ranks as u32 - 1);
    })
}

/// Copies `count` equal blocks, from that of rank `first` on, from the output of rank `ends.0` to
/// that of rank `ends.1`.
fn push(share: &Share, queue: &mut Appender, ends: (usize, usize), first: usize, count: usize) {
    let problem = share.problem;
    for (first, _, blocks) in runs(problem.ranks, first, count) {
        let (from, to) = (problem.target(ends.0, first, 0), problem.target(ends.1, first, 0));
        share.copy(queue, from, to, blocks as u64 * problem.bytes());
    }
}

/// Recursive doubling, for a power of two: in step k a rank exchanges the 2^k blocks that it has
/// with the rank whose number differs in bit k. It takes log n exchanges, and each rank copies n -
/// 1 blocks (Thakur, Rabenseifner and Gropp 2005).
fn recursive_doubling(problem: &Problem, rank: usize) -> Program {
    single(problem, 0, |share, queue| {
        for distance in distances(problem.ranks) {
            queue.signal(rank ^ distance, 0);
        }
        copy_own(share, queue, rank);
        for distance in distances(problem.ranks) {
            let peer = rank ^ distance;
            queue.wait(peer, 1);
            push(share, queue, (rank, peer), rank & !(distance - 1), distance);
            // The next step needs the blocks that the peer sends.
            queue.signal(peer, 0).wait(peer, 2);
        }
    })
}

/// Bruck's algorithm, for any number of ranks: in step k a rank copies the blocks that it has,
/// those of 2^k ranks from itself on, to the rank 2^k to its left. It takes log n steps, and each
/// rank copies n - 1 blocks (Bruck, Ho, Kipnis, Upfal and Weathersby, "Efficient algorithms for
/// all-to-all communications in multiport message-passing systems", 1997). Blocks are written to
/// their final places, so there is no rotation at the end.
fn bruck(problem: &Problem, rank: usize) -> Program {
    let ranks = problem.ranks;
    single(problem, 0, |share, queue| {
        for distance in distances(ranks) {
            queue.signal((rank + distance) % ranks, 0);
        }
        copy_own(share, queue, rank);
        for distance in distances(ranks) {
            let (to, from) = ((rank + ranks - distance) % ranks, (rank + distance) % ranks);
            queue.wait(to, 1);
            push(share, queue, (rank, to), rank, distance.min(ranks - distance));
            // A rank that is a power of two away in both directions sends its ready signal first.
            let earlier = u32::from((ranks - distance).is_power_of_two());
            queue.signal(to, 0).wait(from, earlier + 1);
        }
    })
}

/// Single copy: each rank copies the blocks of the others from their buffers. It begins with its
/// right neighbour, so that not all ranks read from one rank. Two signals follow each other (the
/// owner is ready; the block was read), and each rank sends 2 (n - 1). There are no signals for
/// empty blocks.
fn direct(problem: &Problem, rank: usize) -> Program {
    let ranks = problem.ranks;
    let size = |peer| problem.receive_block(rank, peer).size;
    shares(problem, |share, queue| {
        let offers = share.carries(size(rank));
        if offers {
            // The left neighbour reads from this rank first.
            others(rank, ranks).rev().for_each(|peer| _ = queue.signal(peer, share.number));
        }
        copy_own(share, queue, rank);
        for peer in others(rank, ranks).filter(|peer| share.carries(size(*peer))) {
            queue.wait(peer, 1);
            let (from, to) = (problem.source(peer, rank, 0), problem.target(rank, peer, 0));
            share.copy(queue, from, to, size(peer));
            queue.signal(peer, share.number);
        }
        if offers {
            for peer in others(rank, ranks).rev() {
                queue.wait(peer, 1 + u32::from(share.carries(size(peer))));
            }
        }
    })
}

/// Two levels. Each of the first `owners` ranks of a node is responsible for some of the node's
/// blocks; if blocks are short, the first rank for all of them. An owner collects its blocks,
/// exchanges them with the owners of the same index in the other nodes, and copies all that it has
/// to the ranks of its node. So each block enters a node once.
fn two_level(problem: &Problem, rank: usize) -> Program {
    let (nodes, bytes) = (nodes(problem), problem.bytes());
    let owners = if is_short(problem, bytes, SHORT) { 1 } else { nodes.least() };
    in_turn(rank, |rank| {
        let beside = nodes.beside(rank);
        let index = beside.iter().position(|other| *other == rank).unwrap_or(0);
        // The ranks of a node for whose blocks the rank with this index is responsible.
        let share = |node: usize| {
            let members = if index < owners { nodes.members(node) } else { &[] };
            &members[index * members.len() / owners..(index + 1) * members.len() / owners]
        };
        let is_owner = index < owners;
        let alike = if is_owner { nodes.indices(index) } else { Vec::new() };
        let fetch = Part::steps(rank, beside, |queue, own| {
            all_have_come(queue, beside.len(), own, owners);
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
            distribute(queue, (beside.len(), own, owners), |queue, peer| {
                let others = all.iter().copied().filter(|other| *other != beside[peer]);
                copy_runs(queue, problem, (own, peer), &levels::runs(&others.collect::<Vec<_>>()));
            });
        });
        Parts { kept: 0, parts: vec![fetch, swap, give] }
    })
}

/// The largest block for which one rank of each node exchanges all blocks of its node.
const SHORT: u64 = 8 << 10;

/// Copies the blocks of these runs of ranks from the output of rank `ends.0` to that of `ends.1`.
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

/// Each of as many ranks as there are sets begins with the blocks of its own set in its output, and
/// gets those of all sets. Short blocks are exchanged as in [`bruck`], long ones as in [`ring`].
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
