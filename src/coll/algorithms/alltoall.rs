//! Alltoall: each rank gets a block of each rank, meant for it.

use crate::coll::algorithms::Algorithm;
use crate::coll::algorithms::blocks::{Share, distances, others, shares, single};
use crate::coll::algorithms::eager::exchange_blocks;
use crate::coll::algorithms::levels::{Part, Parts, all_have_come, distribute, in_turn, nodes};
use crate::coll::problem::{Operation, Problem};
use crate::coll::schedule::{Appender, Place, Program, receive, scratch};

/// Bytes of the block of `peer` for `rank`.
fn size(problem: &Problem, rank: usize, peer: usize) -> u64 {
    problem.receive_block(rank, peer).size
}

/// Copies the block of `rank` for itself.
fn copy_own(share: &Share, queue: &mut Appender, rank: usize) {
    let problem = share.problem;
    let (from, to) = (problem.source(rank, rank, 0), problem.target(rank, rank, 0));
    share.copy(queue, from, to, size(problem, rank, rank));
}

/// Single copy: each rank copies its blocks from the inputs of the others. It begins with its right
/// neighbour, so that not all ranks read from one rank. Two signals follow each other (the owner is
/// ready; the block was read), and each rank sends 2 (n - 1). There are no signals for empty
/// blocks. In place: see [`swap`].
fn direct(problem: &Problem, rank: usize) -> Program {
    if problem.in_place {
        return swap(problem, rank);
    }
    let ranks = problem.ranks;
    shares(problem, |share, queue| {
        let gives = |peer: &usize| share.carries(size(problem, *peer, rank));
        let takes = |peer: &usize| share.carries(size(problem, rank, *peer));
        // The left neighbour reads from this rank first.
        for peer in others(rank, ranks).rev().filter(gives) {
            queue.signal(peer, share.number);
        }
        copy_own(share, queue, rank);
        for peer in others(rank, ranks).filter(takes) {
            queue.wait(peer, 1);
            let (from, to) = (problem.source(peer, rank, 0), problem.target(rank, peer, 0));
            share.copy(queue, from, to, size(problem, rank, peer));
            queue.signal(peer, share.number);
        }
        for peer in others(rank, ranks).rev().filter(gives) {
            queue.wait(peer, 1 + u32::from(takes(&peer)));
        }
    })
}

/// In place: one rank of each pair swaps the two blocks of the pair. It does so piece by piece
/// through scratch memory of one piece, which stays in its cache, with three copies for two pieces.
/// A rank does this for the half of the ranks that follows it. If the number of ranks is even, two
/// opposite ranks divide the shares of their pair between them. The blocks that two ranks have for
/// each other have one size, or no plan is made (`coll::tables`).
fn swap(problem: &Problem, rank: usize) -> Program {
    let ranks = problem.ranks;
    let mut program = shares(problem, |share, queue| {
        // Whether a rank swaps with the rank at this distance to its right.
        let swaps = |rank: usize, distance: usize| {
            2 * distance < ranks || (rank < distance) == share.number.is_multiple_of(2)
        };
        let to_left = |distance: usize| {
            let left = (rank + ranks - distance) % ranks;
            let has = swaps(left, distance) && share.carries(size(problem, rank, left));
            has.then_some(left)
        };
        for left in (1..=ranks / 2).filter_map(to_left) {
            queue.signal(left, share.number);
        }
        for distance in (1..=ranks / 2).filter(|distance| swaps(rank, *distance)) {
            let right = (rank + distance) % ranks;
            let bytes = size(problem, rank, right);
            if share.carries(bytes) {
                queue.wait(right, 1);
                let aside = scratch(rank, share.number as u64 * problem.segment);
                for (offset, length) in share.pieces(bytes) {
                    let mine = problem.target(rank, right, offset);
                    let its = problem.target(right, rank, offset);
                    queue.copy(mine, aside, length).copy(its, mine, length);
                    queue.copy(aside, its, length);
                }
                queue.signal(right, share.number);
            }
        }
        for left in (1..=ranks / 2).filter_map(to_left) {
            queue.wait(left, 1);
        }
    });
    program.scratch = program.queues.len() as u64 * problem.segment.min(problem.largest());
    program
}

/// One pair after the other: in step k a rank writes to the rank k to its right, the rank k to its
/// left writes to it, and the step ends when both writes are done. There are n - 1 steps of two
/// signals each. Each memory is the target of only one rank at a time (Thakur, Rabenseifner and
/// Gropp, "Optimization of collective communication operations in MPICH", 2005). In place each rank
/// sends from a copy of its input.
fn pairwise(problem: &Problem, rank: usize) -> Program {
    let ranks = problem.ranks;
    // Where the block for a peer lies in the copy.
    let place = |peer: usize| (0..peer).map(|peer| size(problem, peer, rank)).sum::<u64>();
    let input = |peer: usize| match problem.in_place {
        true => scratch(rank, place(peer)),
        false => problem.source(rank, peer, 0),
    };
    let mut program = shares(problem, |share, queue| {
        copy_own(share, queue, rank);
        for peer in others(rank, ranks).filter(|_| problem.in_place) {
            share.copy(
                queue,
                problem.source(rank, peer, 0),
                input(peer),
                size(problem, peer, rank),
            );
        }
        for step in 1..ranks {
            let (right, left) = ((rank + step) % ranks, (rank + ranks - step) % ranks);
            // In step n - step these two ranks have exchanged roles, and the count of signals
            // includes that of the earlier of the two steps.
            let earlier = (u32::from(2 * step > ranks), u32::from(2 * step >= ranks));
            queue.signal(left, share.number).wait(right, 1 + earlier.0);
            share.copy(
                queue,
                input(right),
                problem.target(right, rank, 0),
                size(problem, right, rank),
            );
            queue.signal(right, share.number).wait(left, 1 + earlier.1);
        }
    });
    program.scratch = if problem.in_place { place(ranks) } else { 0 };
    program
}

/// Bruck's algorithm, for small blocks: the block for the rank i to the right is sent there in hops
/// of 2^k for the bits k of i, and all blocks with bit k are sent together. Only log n signals
/// follow each other. Each rank copies n/2 blocks in each of log n steps (Bruck, Ho, Kipnis, Upfal
/// and Weathersby, "Efficient algorithms for all-to-all communications in multiport message-passing
/// systems", 1997). The first hop of a block starts in the sender's input and the last one ends in
/// the receiver's output, so only the hops between them need scratch memory.
fn bruck(problem: &Problem, rank: usize) -> Program {
    let (ranks, bytes) = (problem.ranks, problem.bytes());
    let kept = if problem.in_place { ranks as u64 * bytes } else { 0 };
    let saved = saved(problem, rank, 0);
    single(problem, saved.offset + kept, |share, queue| {
        // In place later steps overwrite the input, which is still needed.
        share.copy(queue, receive(rank, 0), saved, kept);
        for distance in distances(ranks) {
            queue.signal((rank + ranks - distance) % ranks, 0);
        }
        copy_own(share, queue, rank);
        for (hop, distance) in distances(ranks).enumerate() {
            let (right, left) = ((rank + distance) % ranks, (rank + ranks - distance) % ranks);
            queue.wait(right, 1);
            for block in (distance..ranks).filter(|block| block & distance != 0) {
                let from = before_hop(problem, rank, block, hop);
                share.copy(queue, from, after_hop(problem, right, block, hop), bytes);
            }
            // A rank that is a power of two away in both directions sends its ready signal first.
            let earlier = u32::from((ranks - distance).is_power_of_two());
            queue.signal(right, 0).wait(left, earlier + 1);
        }
    })
}

/// In place: the place of the saved block of `rank` for `peer`, after the slots of blocks between
/// their hops.
fn saved(problem: &Problem, rank: usize, peer: usize) -> Place {
    let passing = (distances(problem.ranks).count() - 1) * (problem.ranks / 2);
    scratch(rank, (passing + peer) as u64 * problem.bytes())
}

/// The place, at `rank` and before hop `hop`, of the block whose receiver is `block` ranks to the
/// right of its sender.
fn before_hop(problem: &Problem, rank: usize, block: usize, hop: usize) -> Place {
    let peer = (rank + block) % problem.ranks;
    match block & ((1 << hop) - 1) {
        0 if problem.in_place => saved(problem, rank, peer),
        0 => problem.source(rank, peer, 0),
        gone => after_hop(problem, rank, block, gone.ilog2() as usize),
    }
}

/// The place of that block at `rank` after hop `hop`: in the output if that was the last hop, else
/// in a slot for this hop and block. A hop has at most n/2 slots, numbered by the bits of the block
/// above the hop (not all 0) and below it.
fn after_hop(problem: &Problem, rank: usize, block: usize, hop: usize) -> Place {
    let (above, below) = (block >> (hop + 1), block & ((1 << hop) - 1));
    if above == 0 {
        return problem.target(rank, (rank + problem.ranks - block) % problem.ranks, 0);
    }
    let slot = hop * (problem.ranks / 2) + ((above - 1) << hop) + below;
    scratch(rank, slot as u64 * problem.bytes())
}

/// Two levels: the leader of each node collects the blocks of its node for each other node, puts
/// them to the leader there as one message, and distributes the blocks that arrive. There is one
/// message for each pair of nodes, but two more copies of each block, so it is for short blocks.
/// Leaders put into one of two copies of the receiver's memory without waiting for the receiver: a
/// leader that puts has had a message of the receiver in the round before.
fn two_level(problem: &Problem, rank: usize) -> Program {
    let (nodes, bytes) = (nodes(problem), problem.bytes());
    let leaders = nodes.indices(0);
    let count = |node: usize| nodes.members(node).len() as u64;
    let before = |node: usize| (0..node).map(count).sum::<u64>();
    // Offsets at a leader: of the blocks of node `of` for node `other`, and of the blocks that node
    // `of` gets from node `other`. Both are ordered by receiver, then sender.
    let out = |of: usize, other: usize| count(of) * before(other) * bytes;
    let came = |of: usize, other: usize| count(of) * problem.ranks as u64 * bytes + out(of, other);
    in_turn(rank, |rank| {
        let (node, beside) = (nodes.of(rank), nodes.beside(rank));
        let collect = Part::steps(rank, beside, |queue, own| {
            all_have_come(queue, beside.len(), own, 1);
            let source =
                |at: usize, to: usize| Place { rank: at, ..problem.source(beside[at], to, 0) };
            if !problem.in_place {
                queue.copy(source(own, rank), receive(own, rank as u64 * bytes), bytes);
            }
            let all = (0..nodes.count()).flat_map(|other| nodes.members(other));
            let mut to = scratch(own, 0);
            for receiver in all.filter(|_| own == 0) {
                for sender in 0..beside.len() {
                    queue.copy(source(sender, *receiver), to, bytes);
                    to = to.plus(bytes);
                }
            }
        });
        let swap = Part::steps(rank, &leaders, |queue, own| {
            for peer in others(own, leaders.len()) {
                let size = count(own) * count(peer) * bytes;
                let (from, to) = (scratch(own, out(own, peer)), scratch(peer, came(peer, own)));
                queue.copy(from, to, size).signal(peer, 0);
            }
            others(own, leaders.len()).for_each(|peer| _ = queue.wait(peer, 1));
        });
        let deal = |queue: &mut Appender, peer: usize| {
            for other in 0..nodes.count() {
                let at = if other == node { out(node, node) } else { came(node, other) };
                let first = at + peer as u64 * count(other) * bytes;
                for (sender, from) in nodes.members(other).iter().zip(0..) {
                    if *sender != beside[peer] {
                        let to = receive(peer, *sender as u64 * bytes);
                        queue.copy(scratch(0, first + from * bytes), to, bytes);
                    }
                }
            }
        };
        let give = Part::steps(rank, beside, |queue, own| {
            if own == 0 {
                deal(queue, 0);
            }
            distribute(queue, (beside.len(), own, 1), deal);
        });
        let kept = if rank == beside[0] { came(node, nodes.count()) } else { 0 };
        Parts { kept, parts: vec![collect, swap.in_turns(2), give] }
    })
}

/// The table of this operation.
pub const ALGORITHMS: &[Algorithm] = &[
    Algorithm::new(Operation::Alltoall, "direct", direct).copying_once().pulling(),
    Algorithm::new(Operation::Alltoall, "pairwise", pairwise).copying_once(),
    Algorithm::new(Operation::Alltoall, "bruck", bruck).only_if(|problem| problem.varied.is_none()),
    Algorithm::new(Operation::Alltoall, "eager", exchange_blocks)
        .only_if(|problem| problem.varied.is_none()),
    Algorithm::new(Operation::Alltoall, "two_level", two_level)
        .only_if(|problem| problem.varied.is_none()),
];
