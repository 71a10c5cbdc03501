//! Gather: the root gets a block of each rank, in the order of ranks.

use crate::coll::algorithms::Algorithm;
use crate::coll::algorithms::blocks::{Node, others, runs, single, with_root};
use crate::coll::algorithms::eager::{Slots, number};
use crate::coll::problem::{Operation, Problem};
use crate::coll::schedule::{Program, scratch};

/// Up the binomial tree: each node collects the blocks of its subtree in scratch memory and sends
/// them together to its parent. The root's children write to the root's output. For n ranks log n
/// signals and copies follow each other, and each block is copied once for each level (the tree of
/// the MPI libraries: Thakur, Rabenseifner and Gropp, "Optimization of collective communication
/// operations in MPICH", 2005).
fn binomial(problem: &Problem, rank: usize) -> Program {
    let (node, bytes) = (Node::of(problem, rank), problem.bytes());
    let below = if node.number == 0 { 0 } else { node.size() - 1 };
    single(problem, below as u64 * bytes, |share, queue| {
        for child in node.children() {
            queue.signal(child.rank(), 0);
        }
        let own = problem.source(rank, problem.root, 0);
        if node.number == 0 {
            share.copy(queue, own, problem.target(rank, rank, 0), bytes);
        }
        for child in node.children() {
            queue.wait(child.rank(), 1);
        }
        let Some(parent) = node.parent() else { return };
        queue.wait(parent.rank(), 1);
        if parent.number == 0 {
            share.copy(queue, own, problem.target(parent.rank(), rank, 0), bytes);
            for (first, before, blocks) in runs(problem.ranks, rank + 1, below) {
                let from = scratch(rank, before as u64 * bytes);
                let to = problem.target(parent.rank(), first, 0);
                share.copy(queue, from, to, blocks as u64 * bytes);
            }
        } else {
            let to = scratch(parent.rank(), (node.number - parent.number - 1) as u64 * bytes);
            share.copy(queue, own, to, bytes);
            share.copy(queue, scratch(rank, 0), to.plus(bytes), below as u64 * bytes);
        }
        queue.signal(parent.rank(), 0);
    })
}

/// Single copy: when the root is ready each rank copies its block to the root's output, all at the
/// same time. The root sends n - 1 signals and waits for as many. Each byte is copied once, and
/// only its own block by the root.
fn direct(problem: &Problem, rank: usize) -> Program {
    let root = problem.root;
    let size = |peer| problem.receive_block(root, peer).size;
    with_root(problem, rank, size, (problem.source(rank, root, 0), problem.target(root, rank, 0)))
}

/// Each rank puts its block into a slot of the root, which copies the blocks to its output. A rank
/// waits for the root only if its slots are full. It is for small sizes, since the root alone
/// copies the blocks of all ranks.
fn eager(problem: &Problem, rank: usize) -> Program {
    let Problem { ranks, root, .. } = *problem;
    let bytes = problem.bytes();
    let slots = Slots::one_way(bytes, ranks - 1);
    let own = problem.source(rank, root, 0);
    if rank != root {
        return slots.program(0, |queue| slots.put(queue, own, root, number(rank, root)));
    }
    slots.program(ranks - 1, |queue| {
        queue.copy(own, problem.target(root, root, 0), bytes);
        for peer in others(root, ranks) {
            let slot = slots.wait(queue, peer, root, number(peer, root));
            queue.copy(slot, problem.target(root, peer, 0), bytes);
            slots.has_read(queue, peer);
        }
    })
}

/// The table of this operation.
pub const ALGORITHMS: &[Algorithm] = &[
    Algorithm::new(Operation::Gather, "direct", direct).copying_once(),
    Algorithm::new(Operation::Gather, "binomial", binomial)
        .only_if(|problem| problem.varied.is_none()),
    Algorithm::new(Operation::Gather, "eager", eager).only_if(|problem| problem.varied.is_none()),
];
