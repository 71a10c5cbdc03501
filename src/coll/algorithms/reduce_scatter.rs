//! Reduce-scatter: all ranks' vectors are combined, and each rank gets a block of the result.

use super::Algorithm;
use super::blocks::others;
use super::eager::{exchange, fold as fold_slots, number};
use super::levels::{self, Part, Parts, all_have_come, distribute, in_turn, nodes};
use super::vectors::{
    between_disseminations, by_one, combine, copy, fold, is_small, piece, pieces, queues, single,
};
use crate::coll::problem::{Block, Operation, Problem, Row, Varied};
use crate::coll::schedule::{Place, Program, Space, receive, scratch};

/// The table of this operation.
pub const ALGORITHMS: &[Algorithm] = &[
    Algorithm::new(Operation::ReduceScatter, "direct", direct).copying_once().pulling(),
    Algorithm::new(Operation::ReduceScatter, "ring", ring).in_any_order(),
    Algorithm::new(Operation::ReduceScatter, "pairwise", pairwise),
    Algorithm::new(Operation::ReduceScatter, "eager", eager)
        .only_if(|problem| problem.varied.is_none()),
    Algorithm::new(Operation::ReduceScatter, "two_level", two_level)
        .in_any_order()
        .only_if(|problem| problem.varied.is_none()),
];

/// Bytes of the block of `peer`, equal in all inputs; `rank`: the owner of this program.
fn size(problem: &Problem, rank: usize, peer: usize) -> u64 {
    problem.send_block(rank, peer).size
}

/// Each rank combines its block from the inputs of all ranks, in the order of ranks. Each byte is
/// read once. A dissemination before (log2(ranks) signals of each rank, for each queue) ensures
/// that all ranks are ready, and one after that all are done. In place other ranks read the memory
/// of the output until then, so the result stays in scratch memory until the second dissemination
/// has ended. Rank 0 alone combines short vectors with equal blocks. Then rank 0 and each other
/// rank exchange two signals.
fn direct(problem: &Problem, rank: usize) -> Program {
    let ranks = problem.ranks;
    let all = problem.bytes() * ranks as u64;
    if problem.varied.is_none() && is_small(problem, all) {
        let block = |peer: usize| scratch(0, peer as u64 * problem.bytes());
        let share = |peer: usize| (block(peer), receive(peer, 0), problem.bytes());
        return single(all, |queue| by_one(queue, problem, rank, (block(0), all), share));
    }
    let own = size(problem, rank, rank);
    if problem.in_place {
        let mut program = between_disseminations(ranks, rank, 1, |queue, _| {
            for (offset, length) in pieces(problem, own, 0, 1) {
                let to = scratch(rank, offset);
                fold(queue, ranks, |peer| problem.source(peer, rank, offset), [to, to], length);
            }
        });
        copy(&mut program.queue(0), problem, scratch(rank, 0), receive(rank, 0), own);
        program.scratch = own;
        return program;
    }
    let queues = queues(problem, problem.largest());
    let mut program = between_disseminations(ranks, rank, queues, |queue, number| {
        let partial = scratch(rank, number as u64 * piece(problem));
        for (offset, length) in pieces(problem, own, number, queues) {
            let to = receive(rank, offset);
            fold(queue, ranks, |peer| problem.source(peer, rank, offset), [partial, to], length);
        }
    });
    program.scratch = queues as u64 * piece(problem);
    program
}

/// The ring: each block passes all ranks once, beginning right of its receiver. In each of ranks -
/// 1 steps a rank combines a block with its own and sends it to its right neighbour. In no
/// algorithm a rank sends fewer bytes.
fn ring(problem: &Problem, rank: usize) -> Program {
    let ranks = problem.ranks;
    let (left, right) = ((rank + ranks - 1) % ranks, (rank + 1) % ranks);
    // With two ranks both neighbours are one rank, and its ready signal comes first.
    let before = u32::from(left == right);
    let place = |block: usize| (0..block).map(|peer| size(problem, rank, peer)).sum::<u64>();
    single(place(ranks), |queue| {
        queue.signal(left, 0).wait(right, 1);
        for step in 0..ranks {
            let block = (rank + 2 * ranks - 1 - step) % ranks;
            let (own, size) = (problem.source(rank, block, 0), size(problem, rank, block));
            let slot = scratch(rank, place(block));
            let next = scratch(right, place(block));
            if step > 0 {
                queue.wait(left, before + step as u32);
            }
            match step {
                0 => copy(queue, problem, own, next, size),
                _ if step + 1 < ranks => combine(queue, problem, [slot, own, next], size),
                // In place the output may overlap the operands.
                _ if problem.in_place => {
                    combine(queue, problem, [slot, own, slot], size);
                    copy(queue, problem, slot, receive(rank, 0), size);
                }
                _ => combine(queue, problem, [slot, own, receive(rank, 0)], size),
            }
            if step + 1 < ranks {
                queue.signal(right, 0);
            }
        }
    })
}

/// Each rank puts a block into scratch memory of each other rank, which combines the blocks that it
/// gets in the order of ranks. There are ranks * (ranks - 1) signals, none of which depends on
/// another one, and each byte is moved once. Two copies of the memory are enough: a rank that sends
/// has had a signal of the receiver in the round before.
fn pairwise(problem: &Problem, rank: usize) -> Program {
    let (ranks, own) = (problem.ranks, size(problem, rank, rank));
    // Slots begin at multiples of 64, so that elements of any type are aligned.
    let slot = |to: usize, number: usize| {
        scratch(to, number as u64 * size(problem, rank, to).next_multiple_of(64))
    };
    let (input, partial) = (problem.source(rank, rank, 0), slot(rank, ranks - 1));
    let program = single(slot(rank, ranks).offset, |queue| {
        for peer in others(rank, ranks) {
            let from = problem.source(rank, peer, 0);
            copy(queue, problem, from, slot(peer, number(rank, peer)), size(problem, rank, peer));
            queue.signal(peer, 0);
        }
        let mut left = input;
        for peer in 0..ranks {
            let mut right = input;
            if peer != rank {
                queue.wait(peer, 1);
                right = slot(rank, number(peer, rank));
            }
            if peer > 0 {
                // In place the output may overlap the input.
                let ends = peer + 1 == ranks && !problem.in_place;
                let to = if ends { receive(rank, 0) } else { partial };
                combine(queue, problem, [left, right, to], own);
                right = to;
            }
            left = right;
        }
        copy(queue, problem, left, receive(rank, 0), own);
    });
    Program { turns: 2, ..program }
}

/// Each rank puts the blocks of the others into their slots, and combines the blocks that it gets
/// in the order of ranks. There are ranks * (ranks - 1) signals, none of which depends on another
/// one. For small sizes on few ranks.
fn eager(problem: &Problem, rank: usize) -> Program {
    let from = |peer: usize| problem.source(rank, peer, 0);
    exchange(problem, rank, problem.bytes(), from, |queue, slots| {
        fold_slots(queue, problem, slots, rank, (from(rank), receive(rank, 0)));
    })
}

/// Two levels: the leader of each node combines the vectors of its node, the leaders exchange and
/// combine the blocks for each node, and each leader distributes the blocks of its node. One vector
/// leaves each node. It is for short blocks, since one rank of each node does most of the work.
fn two_level(problem: &Problem, rank: usize) -> Program {
    let (nodes, bytes) = (nodes(problem), problem.bytes());
    let leaders = nodes.indices(0);
    let count = |node: usize| nodes.members(node).len() as u64;
    // The scratch memory of a leader: the blocks of all nodes, node by node, then the result for
    // its own node.
    let blocks = (0..nodes.count()).scan(0, |end, node| {
        let block = Block { offset: *end, size: count(node) * bytes };
        *end += block.size;
        Some(block)
    });
    let blocks = blocks.collect::<Vec<_>>();
    let result = (problem.ranks as u64 * bytes).next_multiple_of(64);
    in_turn(rank, |rank| {
        let (node, beside) = (nodes.of(rank), nodes.beside(rank));
        let collect = Part::steps(rank, beside, |queue, own| {
            all_have_come(queue, beside.len(), own, 1);
            let all = (0..nodes.count()).flat_map(|node| levels::runs(nodes.members(node)));
            let mut to = scratch(own, 0);
            for (first, count) in all.filter(|_| own == 0) {
                let size = count as u64 * bytes;
                for (offset, size) in pieces(problem, size, 0, 1) {
                    let (from, to) = (first as u64 * bytes + offset, to.plus(offset));
                    let source =
                        |at: usize| Place { rank: at, ..problem.source(beside[at], 0, from) };
                    match beside.len() {
                        1 => _ = queue.copy(source(0), to, size),
                        ranks => fold(queue, ranks, source, [to, to], size),
                    }
                }
                to = to.plus(size);
            }
        });
        let mut send = vec![Row::One(Block::default()); leaders.len()];
        send[node] = Row::Each(blocks.clone());
        let receive_rows = vec![Row::One(Block::default()); leaders.len()];
        let largest = blocks.iter().map(|block| block.size).max().unwrap_or(0);
        let varied = Some(Varied { send, receive: receive_rows, largest });
        let between = if leaders.len() <= FEW { pairwise } else { ring };
        let outer = Problem { in_place: false, varied, ..problem.clone() };
        let swap = Part::new(rank, &leaders, outer, between).at(move |place| match place.space {
            Space::Receive => scratch(place.rank, result + place.offset),
            Space::Send | Space::Scratch => scratch(place.rank, place.offset),
        });
        let give = Part::steps(rank, beside, |queue, own| {
            let block = |peer: usize| scratch(0, result + peer as u64 * bytes);
            if own == 0 {
                copy(queue, problem, block(0), receive(0, 0), bytes);
            }
            distribute(queue, (beside.len(), own, 1), |queue, peer| {
                copy(queue, problem, block(peer), receive(peer, 0), bytes);
            });
        });
        let kept = if rank == beside[0] { result + count(node) * bytes } else { 0 };
        Parts { kept, parts: vec![collect, swap, give] }
    })
}

/// The most nodes whose leaders put straight to each other.
const FEW: usize = 16;
