//! Reduce: the root gets the combination of all ranks' vectors.

use super::Algorithm;
use super::blocks::Node;
use super::eager::{self, Slots};
use super::levels::{Part, Parts, in_turn, is_short, nodes};
use super::vectors::{combine_slices, is_small, single};
use crate::coll::problem::{Operation, Problem};
use crate::coll::schedule::{Place, Program, Space, scratch};

/// The table of this operation.
pub const ALGORITHMS: &[Algorithm] = &[
    Algorithm::new(Operation::Reduce, "direct", direct).copying_once().pulling(),
    Algorithm::new(Operation::Reduce, "binomial", binomial).in_any_order(),
    Algorithm::new(Operation::Reduce, "eager", eager),
    Algorithm::new(Operation::Reduce, "two_level", two_level).in_any_order(),
];

/// Each rank combines a slice of the vector from the inputs of all ranks, in the order of ranks,
/// into the root's output. Each byte is read once. A dissemination before (log2(ranks) signals of
/// each rank, for each queue) ensures that all ranks are ready, and one after that all are done.
/// The root alone combines short vectors. Then the root and each other rank exchange two signals.
fn direct(problem: &Problem, rank: usize) -> Program {
    if is_small(problem, problem.bytes()) {
        return by_root(problem, rank);
    }
    combine_slices(problem, rank, problem.root, |_, _, _, _| {})
}

/// The root combines all vectors, and signals each rank as soon as it has read its vector.
fn by_root(problem: &Problem, rank: usize) -> Program {
    let Problem { ranks, root, .. } = *problem;
    if rank != root {
        return single(0, |queue| {
            queue.signal(root, 0).wait(root, 1);
        });
    }
    let source = |peer: usize| problem.source(peer, root, 0);
    let (size, to) = (problem.bytes(), problem.target(root, root, 0));
    single(size, |queue| {
        let mut left = source(0);
        if root != 0 {
            queue.wait(0, 1);
        }
        for peer in 1..ranks {
            if peer != root {
                queue.wait(peer, 1);
            }
            let into = if peer + 1 == ranks { to } else { scratch(root, 0) };
            queue.combine(left, source(peer), into, size);
            if peer != root {
                queue.signal(peer, 0);
            }
            if peer == 1 && root != 0 {
                queue.signal(0, 0);
            }
            left = into;
        }
    })
}

/// Each rank puts its vector into a slot of the root, which combines them in the order of ranks. A
/// rank waits for the root only if its slots are full. It is for small sizes, since the root alone
/// combines the vectors of all ranks.
fn eager(problem: &Problem, rank: usize) -> Program {
    let Problem { ranks, root, .. } = *problem;
    let slots = Slots::one_way(problem.bytes(), ranks);
    let own = problem.source(rank, root, 0);
    if rank != root {
        let number = eager::number(rank, root);
        return slots.program(0, |queue| slots.put(queue, own, root, number));
    }
    let ends = (own, problem.target(root, root, 0));
    slots.program(ranks, |queue| eager::fold(queue, problem, slots, root, ends))
}

/// Up a binomial tree, piece by piece: a rank combines the pieces of its children, and writes the
/// last combination straight to its parent. A rank has space for two pieces of each child, and
/// signals the child when it may send the next one. So it needs little memory however long the
/// vector is. The first piece takes log2(ranks) steps, and an inner node combines the whole vector
/// once for each child. It does not combine in the order of ranks, unless the root is rank 0.
fn binomial(problem: &Problem, rank: usize) -> Program {
    let (node, root) = (Node::of(problem, rank), problem.root);
    let room = (problem.segment / problem.width).max(1) * problem.width;
    let pieces = problem.segments(problem.bytes()).count();
    // Scratch memory: two places for each child, which are numbered from the smallest subtree on,
    // then the partial result.
    let slot = |parent: usize, child: usize, piece: usize| {
        scratch(parent, (2 * child + piece % 2) as u64 * room)
    };
    let children = node.children().count();
    single((2 * children + 1) as u64 * room, |queue| {
        for child in node.children() {
            queue.signal(child.rank(), 0);
        }
        for (piece, (offset, size)) in problem.segments(problem.bytes()).enumerate() {
            let to = match node.parent() {
                // This node is the parent's child `number`; the parent's signal frees the place.
                Some(parent) => {
                    let number = (node.number - parent.number).ilog2() as usize;
                    queue.wait(parent.rank(), piece.max(1) as u32);
                    slot(parent.rank(), number, piece)
                }
                None => problem.target(root, root, offset),
            };
            let mut left = problem.source(rank, root, offset);
            for (number, child) in node.children().enumerate() {
                let partial = scratch(rank, 2 * children as u64 * room);
                let into = if number + 1 == children { to } else { partial };
                queue.wait(child.rank(), piece as u32 + 1);
                queue.combine(left, slot(rank, number, piece), into, size);
                if piece + 2 < pieces {
                    queue.signal(child.rank(), 0);
                }
                left = into;
            }
            if children == 0 {
                queue.copy(left, to, size);
            }
            if let Some(parent) = node.parent() {
                queue.signal(parent.rank(), 0);
            }
        }
        if let (Some(parent), 0) = (node.parent(), pieces) {
            queue.wait(parent.rank(), 1);
        }
    })
}

/// Two levels: each node combines the vectors of its ranks at its leader, which is the root in the
/// root's node. Then the vectors of the leaders are combined at the root. One vector leaves each
/// node.
fn two_level(problem: &Problem, rank: usize) -> Program {
    let (nodes, root) = (nodes(problem), problem.root);
    let leaders = nodes.leaders(root);
    let up_to = |most: u64| is_short(problem, problem.bytes(), most);
    let between = if up_to(SHORT) && leaders.len() <= FEW { eager } else { binomial };
    let inside = if up_to(EAGER_INSIDE) { eager } else { direct };
    // A leader keeps the combination of its node in scratch memory, except the root, which has an
    // output.
    let partial = |place: Place| match place.rank == root {
        true => place,
        false => scratch(place.rank, place.offset),
    };
    in_turn(rank, |rank| {
        let (node, beside) = (nodes.of(rank), nodes.beside(rank));
        let leader = leaders[node];
        let at = beside.iter().position(|other| *other == leader).unwrap_or(0);
        let in_place = problem.in_place && leader == root;
        let inner = Problem { root: at, in_place, ..problem.clone() };
        let outer = Problem { root: nodes.of(root), in_place: true, ..problem.clone() };
        let parts = vec![
            Part::new(rank, beside, inner, inside).at(move |place| match place.space {
                Space::Receive => partial(place),
                Space::Send | Space::Scratch => place,
            }),
            Part::new(rank, &leaders, outer, between).at(partial),
        ];
        let kept = if rank == leader && rank != root { problem.bytes() } else { 0 };
        Parts { kept, parts }
    })
}

/// The most nodes whose leaders put straight to the root, if the vector has at most `SHORT` bytes.
const FEW: usize = 16;
/// See `FEW`.
const SHORT: u64 = 8 << 10;
/// The longest vector for which the algorithm inside a node is `eager`.
const EAGER_INSIDE: u64 = 4 << 10;
