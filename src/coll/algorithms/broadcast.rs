//! Broadcasts. The data lies in the output buffer of every rank, at the root from the beginning.
//! All algorithms push: a rank says that it is ready, and the rank that has the data copies them
//! straight into its buffer and tells it.
//!
//! Ranks are counted from the root: node 0 is the root, node v the rank v further on.

use super::Algorithm;
use super::blocks::most_lanes;
use super::levels::{Part, Parts, in_turn, is_short, nodes};
use crate::coll::problem::{Block, Operation, Problem};
use crate::coll::schedule::{Appender, CELL, CELL_WORD, Program, receive, scratch};

/// The algorithms of this file.
pub const ALGORITHMS: &[Algorithm] = &[
    Algorithm::new(Operation::Broadcast, "binomial", binomial),
    Algorithm::new(Operation::Broadcast, "chain", chain),
    Algorithm::new(Operation::Broadcast, "kary", kary),
    Algorithm::new(Operation::Broadcast, "trinaryx3", trinaryx3),
    Algorithm::new(Operation::Broadcast, "scatter_allgather", scatter_allgather),
    Algorithm::new(Operation::Broadcast, "direct", direct).copying_once(),
    Algorithm::new(Operation::Broadcast, "eager", eager),
    Algorithm::new(Operation::Broadcast, "two_level", two_level),
];

/// How many rounds a root may be ahead where a cell holds the data: it sends that many while it has
/// a core, and the others take them when it is their turn. A power of two.
const AHEAD: u32 = 64;
/// Like `AHEAD`, of more than two ranks with up to so many bytes. Of two ranks with a core each the
/// one is hardly ever ahead, and fewer lines stay closer.
const AHEAD_BEYOND: u32 = 16;
const DEEP: u64 = 256;

/// Binomial tree: a rank that has the data passes them on to the node half as far away as the last
/// time. ceil(log2 p) signals one after another, the fewest where a node tells one other at a time:
/// for small sizes.
fn binomial(problem: &Problem, rank: usize) -> Program {
    in_lanes(problem, rank, Tree::Binomial, 1)
}

/// Chain: each node passes each segment on to the next. p - 1 signals until the last node has the
/// first segment, but then each node sends every byte only once: for large sizes on few ranks with
/// a core each.
fn chain(problem: &Problem, rank: usize) -> Program {
    in_lanes(problem, rank, Tree::Heap { arity: 1, turn: 0 }, 2)
}

/// Like `chain`, with four children: log4 p levels, each byte sent four times by a node that has
/// children.
fn kary(problem: &Problem, rank: usize) -> Program {
    in_lanes(problem, rank, Tree::Heap { arity: 4, turn: 0 }, 2)
}

/// Single copy: the root pushes straight into the buffers of up to eight ranks; of more, these push
/// on to eight each. Every byte is written once for each rank. A large vector falls into four parts
/// (for two ranks into two), each in a queue of its own, so that ranks that wait can take part.
fn direct(problem: &Problem, rank: usize) -> Program {
    in_lanes(problem, rank, Tree::Heap { arity: 8, turn: 0 }, most_lanes(problem))
}

/// Eager: a rank that has the data puts them into the scratch memory of up to eight ranks, which
/// take them from there and pass them on. Nobody says that it is ready: each scratch memory is
/// written again some rounds later, when its owner has said that it has read it; so the root runs
/// as many rounds ahead. It is said, and asked for, once in a quarter of these rounds. Of what is
/// small enough the scratch memory is a cell, which holds the signal, too. For small sizes.
fn eager(problem: &Problem, rank: usize) -> Program {
    let (ranks, bytes) = (problem.ranks, problem.bytes());
    let tree = Tree::Heap { arity: 8, turn: 0 };
    let node = (rank + ranks - problem.root) % ranks;
    let rank_of = |node: usize| (node + problem.root) % ranks;
    let cell = bytes <= CELL - CELL_WORD;
    let (scratch_bytes, turns) = match cell {
        true => (CELL, AHEAD),
        false if ranks > 2 && bytes <= DEEP => (bytes, AHEAD_BEYOND),
        false => (bytes, 2),
    };
    let every = (turns / 4).max(1);
    let mut program = Program { scratch: scratch_bytes, turns, ..Program::new(1) };
    let mut queue = program.queue(0);
    let parent = tree.parent(ranks, node).map(rank_of);
    let from = match parent {
        Some(parent) => {
            if cell {
                queue.wait_cell(parent, 0)
            } else {
                queue.wait(parent, 1)
            };
            scratch(rank, 0)
        }
        None => receive(rank, 0),
    };
    for child in tree.children(ranks, node).into_iter().map(rank_of) {
        queue.wait_read(child, turns, every).copy(from, scratch(child, 0), bytes);
        if cell {
            queue.signal_cell(child, 0, 0)
        } else {
            queue.signal(child, 0)
        };
    }
    if let Some(parent) = parent {
        queue.copy(from, receive(rank, 0), bytes).signal_every(parent, 0, every);
    }
    drop(queue);
    program
}

/// After Trinaryx3, Fujitsu's broadcast of the K computer and the FX100: the data fall into three
/// fragments, and each goes its own way down a ternary tree, as a pipeline of segments. The
/// published algorithm embeds three trees without a common edge in a torus. A node has no torus, so
/// here the trees are turned against each other such that no rank but the root passes on data in
/// more than one: each sends one vector at most (the root three), and the trees work at the same
/// time.
fn trinaryx3(problem: &Problem, rank: usize) -> Program {
    let mut program = Program::new(3);
    for fragment in 0..3 {
        let slice = problem.part(problem.count, fragment, 3);
        push(problem, rank, ternary(problem.ranks, fragment), slice, fragment, &mut program);
    }
    program
}

/// The tree of a fragment. Of its m nodes besides the root less than m / 3 have children.
fn ternary(ranks: usize, fragment: usize) -> Tree {
    Tree::Heap { arity: 3, turn: fragment * ((ranks - 1) / 3) }
}

/// Which rank passes data on to which.
#[derive(Clone, Copy)]
enum Tree {
    Binomial,
    /// A complete tree, filled level by level: with the root, then with the nodes from `1 + turn`
    /// on, round to `turn`.
    Heap {
        arity: usize,
        turn: usize,
    },
}

impl Tree {
    fn parent(self, ranks: usize, node: usize) -> Option<usize> {
        match self {
            _ if node == 0 => None,
            Tree::Binomial => Some(node & (node - 1)),
            Tree::Heap { arity, turn } => {
                let place = 1 + (node - 1 + ranks - 1 - turn) % (ranks - 1);
                Some(Tree::at(ranks, turn, (place - 1) / arity))
            }
        }
    }

    /// The children, those first that have most to pass on.
    fn children(self, ranks: usize, node: usize) -> Vec<usize> {
        match self {
            Tree::Binomial => {
                let span = span(ranks, node).next_power_of_two();
                let halves = (0..span.ilog2()).rev().map(|k| node + (1 << k));
                halves.filter(|&child| child < ranks).collect()
            }
            Tree::Heap { arity, turn } => {
                let place = match node {
                    0 => 0,
                    _ => 1 + (node - 1 + ranks - 1 - turn) % (ranks - 1),
                };
                let places = place * arity + 1..=place * arity + arity;
                places.filter(|&p| p < ranks).map(|p| Tree::at(ranks, turn, p)).collect()
            }
        }
    }

    /// The node at a place of the heap.
    fn at(ranks: usize, turn: usize, place: usize) -> usize {
        if place == 0 { 0 } else { 1 + (place - 1 + turn) % (ranks - 1) }
    }
}

/// How many nodes the binomial tree has from `node` on downwards: `node` and those right after it.
fn span(ranks: usize, node: usize) -> usize {
    let whole = if node == 0 { ranks } else { 1 << node.trailing_zeros() };
    whole.min(ranks - node)
}

/// Pushes the vector down a tree; a large one in up to `lanes` parts at the same time.
fn in_lanes(problem: &Problem, rank: usize, tree: Tree, lanes: u64) -> Program {
    let lanes = (problem.bytes() / problem.segment).clamp(1, lanes) as usize;
    let mut program = Program::new(lanes);
    for lane in 0..lanes {
        let slice = problem.part(problem.count, lane, lanes);
        push(problem, rank, tree, slice, lane, &mut program);
    }
    program
}

/// Pushes a slice of the vector down a tree, segment by segment. A node without children is told
/// only when all of it is there.
fn push(
    problem: &Problem,
    rank: usize,
    tree: Tree,
    slice: Block,
    lane: usize,
    program: &mut Program,
) {
    let ranks = problem.ranks;
    let node = (rank + ranks - problem.root) % ranks;
    let rank_of = |node: usize| (node + problem.root) % ranks;
    let parent = tree.parent(ranks, node).map(rank_of);
    let children: Vec<(usize, bool)> = tree
        .children(ranks, node)
        .into_iter()
        .map(|child| (rank_of(child), tree.children(ranks, child).is_empty()))
        .collect();
    let mut queue = program.queue(lane);
    if let Some(parent) = parent {
        queue.signal(parent, lane);
    }
    if let (Some(parent), true) = (parent, children.is_empty()) {
        queue.wait(parent, 1);
        return;
    }
    // The first child is asked for before the data are there: one step less when they come.
    queue.wait(children[0].0, 1);
    let mut segments = problem.segments(slice.size).collect::<Vec<_>>();
    if segments.is_empty() {
        segments.push((0, 0));
    }
    for (i, &(offset, size)) in segments.iter().enumerate() {
        if let Some(parent) = parent {
            queue.wait(parent, i as u32 + 1);
        }
        for (j, &(child, leaf)) in children.iter().enumerate() {
            if i == 0 && j > 0 {
                queue.wait(child, 1);
            }
            let offset = slice.offset + offset;
            queue.copy(receive(rank, offset), receive(child, offset), size);
            if !leaf || i + 1 == segments.len() {
                queue.signal(child, lane);
            }
        }
    }
}

/// Scatter and allgather (van de Geijn and others, 1994): the vector falls into a block for each
/// node. Down a binomial tree each node gets the blocks of itself and of all nodes below; then the
/// blocks go round in a ring, to the nodes that have not got them. Each node receives every byte
/// once and sends less than two vectors, the root too. ceil(log2 p) + p - 1 signals one after
/// another: for large sizes on many ranks.
fn scatter_allgather(problem: &Problem, rank: usize) -> Program {
    let most = problem.queues.min(2) as u64;
    let lanes = (problem.bytes() / problem.segment / problem.ranks as u64).clamp(1, most) as usize;
    let mut program = Program::new(lanes);
    for lane in 0..lanes {
        scatter_and_ring(problem, rank, lane, lanes, &mut program);
    }
    program
}

fn scatter_and_ring(
    problem: &Problem,
    rank: usize,
    lane: usize,
    lanes: usize,
    program: &mut Program,
) {
    let ranks = problem.ranks;
    let node = (rank + ranks - problem.root) % ranks;
    let rank_of = |node: usize| (node + problem.root) % ranks;
    // The blocks of a lane follow each other, so those of neighbours are one range.
    let begin = |node: usize| match lane * ranks + node {
        end if end == lanes * ranks => problem.bytes(),
        part => problem.part(problem.count, part, lanes * ranks).offset,
    };
    let (left, right) = ((node + ranks - 1) % ranks, (node + 1) % ranks);
    let parent = Tree::Binomial.parent(ranks, node);
    let mut queue = program.queue(lane);
    let copy = |queue: &mut Appender, to: usize, first: usize, end: usize| {
        for (offset, size) in problem.segments(begin(end) - begin(first)) {
            let offset = begin(first) + offset;
            queue.copy(receive(rank, offset), receive(to, offset), size);
        }
        queue.signal(to, lane);
    };

    if let Some(parent) = parent {
        queue.signal(rank_of(parent), lane).wait(rank_of(parent), 1);
    }
    for child in Tree::Binomial.children(ranks, node) {
        queue.wait(rank_of(child), 1);
        copy(&mut queue, rank_of(child), child, child + span(ranks, child));
    }

    // Round the ring come the blocks node - 1, node - 2, ... as far as the scatter has not brought
    // them. The right neighbour is ready: it is a child, or a node above has served it before it
    // served this one.
    let missing = |node: usize| ranks - span(ranks, node);
    let before = usize::from(parent == Some(left));
    for step in 0..missing(right) {
        if (1..=missing(node)).contains(&step) {
            queue.wait(rank_of(left), (before + step) as u32);
        }
        let block = (node + ranks - step) % ranks;
        copy(&mut queue, rank_of(right), block, block + 1);
    }
    if node != 0 {
        queue.wait(rank_of(left), (before + missing(node)) as u32);
    }
}

/// Two levels: first the root and a rank of each other node, then each of these and the ranks of
/// its node. A byte comes to each node once.
fn two_level(problem: &Problem, rank: usize) -> Program {
    let nodes = nodes(problem);
    let leaders = nodes.leaders(problem.root);
    let up_to = |most: u64| is_short(problem, problem.bytes(), most);
    let between = match leaders.len() <= FEW && up_to(SHORT) {
        true => eager,
        false if problem.bytes() <= LONG.min(2 * problem.segment) => binomial,
        false => scatter_allgather,
    };
    let inside = if up_to(EAGER_INSIDE) { eager } else { direct };
    in_turn(rank, |rank| {
        let (node, beside) = (nodes.of(rank), nodes.beside(rank));
        let root = beside.iter().position(|other| *other == leaders[node]).unwrap_or(0);
        let outer = Problem { root: nodes.of(problem.root), ..problem.clone() };
        let inner = Problem { root, ..problem.clone() };
        let parts =
            vec![Part::new(rank, &leaders, outer, between), Part::new(rank, beside, inner, inside)];
        Parts { kept: 0, parts }
    })
}

/// Up to so many nodes the root puts to each of them, if the bytes are at most `SHORT`.
const FEW: usize = 16;
/// See `FEW`.
const SHORT: u64 = 8 << 10;
/// Up to so many bytes few messages one after the other count more than few bytes.
const LONG: u64 = 128 << 10;
/// Up to so many bytes the ranks of a node need not be ready.
const EAGER_INSIDE: u64 = 2 << 10;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn children_and_parents_agree_and_everybody_has_one() {
        for ranks in 2..70 {
            let heaps = [1, 2, 3, 4, 8].map(|arity| Tree::Heap { arity, turn: 0 });
            let ternaries = (0..3).map(|fragment| ternary(ranks, fragment));
            for tree in heaps.into_iter().chain(ternaries).chain([Tree::Binomial]) {
                let mut seen = vec![false; ranks];
                for node in 0..ranks {
                    for child in tree.children(ranks, node) {
                        assert_eq!(tree.parent(ranks, child), Some(node), "{ranks} ranks");
                        assert!(!std::mem::replace(&mut seen[child], true), "{ranks} ranks");
                    }
                }
                assert_eq!(seen.iter().filter(|&&seen| seen).count(), ranks - 1);
            }
        }
    }

    #[test]
    fn the_three_trees_have_no_inner_node_in_common() {
        for ranks in 2..200 {
            for node in 1..ranks {
                let inner = |f: &usize| !ternary(ranks, *f).children(ranks, node).is_empty();
                assert!((0..3).filter(inner).count() <= 1, "node {node} of {ranks}");
            }
        }
    }
}
