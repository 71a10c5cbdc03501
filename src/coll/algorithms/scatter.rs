//! Scatter: each rank gets a block of the root.

use crate::coll::algorithms::Algorithm;
use crate::coll::algorithms::blocks::{Node, Share, others, runs, shares, single, with_root};
use crate::coll::algorithms::eager::Slots;
use crate::coll::problem::{Operation, Problem};
use crate::coll::schedule::{Appender, Program, scratch};

/// Down the binomial tree: each node copies the block of a child to the child's output, and the
/// blocks of the rest of the child's subtree to the child's scratch memory. The child with the
/// largest subtree comes first. For n ranks log n signals and copies follow each other, and each
/// block is copied once for each level. It is the reverse of the gather of this name (Thakur,
/// Rabenseifner and Gropp 2005).
fn binomial(problem: &Problem, rank: usize) -> Program {
    let (node, bytes) = (Node::of(problem, rank), problem.bytes());
    let below = if node.number == 0 { 0 } else { node.size() - 1 };
    single(problem, below as u64 * bytes, |share, queue| {
        if let Some(parent) = node.parent() {
            queue.signal(parent.rank(), 0).wait(parent.rank(), 1);
        }
        for child in node.children().rev() {
            queue.wait(child.rank(), 1);
            hand_down(problem, share, queue, (node, child));
            queue.signal(child.rank(), 0);
        }
        if node.number == 0 {
            let (from, to) = (problem.source(rank, rank, 0), problem.target(rank, rank, 0));
            share.copy(queue, from, to, bytes);
        }
    })
}

/// Copies the blocks of a child's subtree from its parent.
fn hand_down(problem: &Problem, share: &Share, queue: &mut Appender, (node, child): (Node, Node)) {
    let (bytes, root, rank) = (problem.bytes(), problem.root, child.rank());
    let (own, below) = (problem.target(rank, root, 0), child.size() - 1);
    if node.number == 0 {
        share.copy(queue, problem.source(root, rank, 0), own, bytes);
        for (first, before, blocks) in runs(problem.ranks, rank + 1, below) {
            let to = scratch(rank, before as u64 * bytes);
            share.copy(queue, problem.source(root, first, 0), to, blocks as u64 * bytes);
        }
    } else {
        let from = scratch(node.rank(), (child.number - node.number - 1) as u64 * bytes);
        share.copy(queue, from, own, bytes);
        share.copy(queue, from.plus(bytes), scratch(rank, 0), below as u64 * bytes);
    }
}

/// Single copy: when the root is ready each rank copies its block from the root's input. So the
/// copies run at the same time, each into the cache of the core that needs the data. The root sends
/// n - 1 signals and waits for as many.
fn direct(problem: &Problem, rank: usize) -> Program {
    let root = problem.root;
    let size = |peer| problem.send_block(root, peer).size;
    with_root(problem, rank, size, (problem.source(root, rank, 0), problem.target(rank, root, 0)))
}

/// The root puts the blocks into slots of the others, and may be several rounds ahead of them. It
/// is for small sizes, since the root alone copies all blocks.
fn eager(problem: &Problem, rank: usize) -> Program {
    let Problem { ranks, root, .. } = *problem;
    let bytes = problem.bytes();
    let slots = Slots::one_way(bytes, 1);
    let to = problem.target(rank, root, 0);
    if rank == root {
        return slots.program(0, |queue| {
            for peer in others(root, ranks) {
                slots.put(queue, problem.source(root, peer, 0), peer, 0);
            }
            queue.copy(problem.source(root, root, 0), to, bytes);
        });
    }
    slots.program(1, |queue| {
        let slot = slots.wait(queue, root, rank, 0);
        queue.copy(slot, to, bytes);
        slots.has_read(queue, root);
    })
}

/// The root copies each block to the output of its receiver when that rank is ready. So n - 1
/// copies follow each other, and each block is copied once. No rank reads memory of another rank.
fn push(problem: &Problem, rank: usize) -> Program {
    let (ranks, root) = (problem.ranks, problem.root);
    let size = |peer: usize| problem.send_block(root, peer).size;
    shares(problem, |share, queue| {
        if rank != root {
            if share.carries(size(rank)) {
                queue.signal(root, share.number).wait(root, 1);
            }
            return;
        }
        for peer in others(root, ranks).filter(|peer| share.carries(size(*peer))) {
            queue.wait(peer, 1);
            let (from, to) = (problem.source(root, peer, 0), problem.target(peer, root, 0));
            share.copy(queue, from, to, size(peer));
            queue.signal(peer, share.number);
        }
        let (from, to) = (problem.source(root, root, 0), problem.target(root, root, 0));
        share.copy(queue, from, to, size(root));
    })
}

/// The table of this operation.
pub const ALGORITHMS: &[Algorithm] = &[
    Algorithm::new(Operation::Scatter, "direct", direct).copying_once().pulling(),
    Algorithm::new(Operation::Scatter, "push", push),
    Algorithm::new(Operation::Scatter, "binomial", binomial)
        .only_if(|problem| problem.varied.is_none()),
    Algorithm::new(Operation::Scatter, "eager", eager).only_if(|problem| problem.varied.is_none()),
];
