//! Broadcasts. The output buffer of every rank gets the vector; that of the root has it from the
//! beginning. Except in `eager`, a rank signals that it is ready, and a rank that has the data
//! copies them straight into that rank's buffer and signals back.
//!
//! Nodes of the trees are numbered from the root: node 0 is the root, node v the rank v further on.

use super::Algorithm;
use super::blocks::most_shares;
use super::levels::{Part, Parts, in_turn, is_short, nodes};
use crate::coll::problem::{Block, Operation, Problem};
use crate::coll::schedule::{Appender, CELL, CELL_WORD, Program, receive, scratch};

/// The table of this operation.
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

/// How many rounds a root may be ahead if a cell holds the data. A root that has a core can run
/// about so many rounds before the other ranks get a core. A power of two.
const AHEAD: u32 = 64;
/// Like `AHEAD`, for more than two ranks and up to DEEP bytes that no cell holds. Two ranks with a
/// core each are hardly ever several rounds apart. They have two copies, which stay in closer
/// caches.
const AHEAD_BEYOND: u32 = 16;
const DEEP: u64 = 256;
/// The longest vector that a root sends ahead to other nodes, and how many bytes of scratch memory
/// the rounds that it may be ahead take. It is never more than `AHEAD` rounds ahead. A network
/// brings several messages in little more time than one, and the signal that they were read takes
/// as long as a message.
const SHORT: u64 = 64 << 10;
const ALL_BETWEEN: u64 = 4 * SHORT;

/// The copies of the scratch memory of `eager` between nodes.
fn turns_between(bytes: u64) -> u32 {
    1 << (ALL_BETWEEN / bytes.max(CELL)).clamp(2, AHEAD.into()).ilog2()
}

/// Binomial tree: a rank that has the data sends them to nodes at distances that halve each time.
/// ceil(log2 p) signals follow each other, the fewest possible if a node signals one node at a
/// time. For small sizes.
fn binomial(problem: &Problem, rank: usize) -> Program {
    in_shares(problem, rank, Tree::Binomial, 1)
}

/// Chain: each node sends each segment to the next node. The last node gets the first segment after
/// p - 1 signals, but each node sends every byte only once. For large sizes on few ranks that have
/// a core each.
fn chain(problem: &Problem, rank: usize) -> Program {
    in_shares(problem, rank, Tree::Heap { arity: 1, turn: 0 }, 2)
}

/// Like `chain`, but a tree with four children of each node. It has log4 p levels, and a node with
/// children sends each byte up to four times.
fn kary(problem: &Problem, rank: usize) -> Program {
    in_shares(problem, rank, Tree::Heap { arity: 4, turn: 0 }, 2)
}

/// Single copy: the root copies straight into the buffers of up to eight ranks; if there are more
/// ranks, each of these copies to eight others. Each byte is written once for each rank. A large
/// vector is cut into up to four parts (for two ranks into two), each in a queue of its own, so
/// that waiting ranks can run some of them.
fn direct(problem: &Problem, rank: usize) -> Program {
    in_shares(problem, rank, Tree::Heap { arity: 8, turn: 0 }, most_shares(problem))
}

/// Eager: a rank that has the data puts them into the scratch memory of up to eight ranks, which do
/// the same. No rank signals that it is ready: the scratch memory exists in several copies, which
/// rounds use in turn. A copy may be written again when its owner has signalled that it was read.
/// So the root may be as many rounds ahead as there are copies. An owner sends this signal once for
/// a quarter of the copies. If the data are small enough, the scratch memory is a cell, which holds
/// the signal too. For small sizes.
fn eager(problem: &Problem, rank: usize) -> Program {
    let turns = match problem.bytes() {
        bytes if problem.nodes.is_some() => turns_between(bytes),
        bytes if bytes <= CELL - CELL_WORD => AHEAD,
        bytes if problem.ranks > 2 && bytes <= DEEP => AHEAD_BEYOND,
        _ => 2,
    };
    eager_in_turns(problem, rank, turns)
}

/// `eager` with so many copies of the scratch memory, a power of two.
fn eager_in_turns(problem: &Problem, rank: usize, turns: u32) -> Program {
    let (ranks, bytes) = (problem.ranks, problem.bytes());
    let tree = Tree::Heap { arity: 8, turn: 0 };
    let node = (rank + ranks - problem.root) % ranks;
    let rank_of = |node: usize| (node + problem.root) % ranks;
    let cell = bytes <= CELL - CELL_WORD;
    let scratch_bytes = if cell { CELL } else { bytes };
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

/// After Trinaryx3, Fujitsu's broadcast of the K computer and the FX100: the vector is cut into
/// three fragments, and each is sent down a ternary tree of its own, as a pipeline of segments. The
/// published algorithm embeds three trees without common edges in a torus. Ranks that share memory
/// have no torus. Here the trees are rotated against each other so that no rank but the root has
/// children in more than one. So the three trees work at the same time, and no rank sends more than
/// one vector, or the root three.
fn trinaryx3(problem: &Problem, rank: usize) -> Program {
    let mut program = Program::new(3);
    for fragment in 0..3 {
        let slice = problem.part(problem.count, fragment, 3);
        push(problem, rank, ternary(problem.ranks, fragment), slice, fragment, &mut program);
    }
    program
}

/// The tree of a fragment. Apart from the root, less than a third of the ranks have children in it.
fn ternary(ranks: usize, fragment: usize) -> Tree {
    Tree::Heap { arity: 3, turn: fragment * ((ranks - 1) / 3) }
}

/// A tree of nodes. A node sends the data to its children.
#[derive(Clone, Copy)]
enum Tree {
    Binomial,
    /// A complete tree, filled level by level with the root, then the nodes from `1 + turn` to the
    /// last one, then those from 1 to `turn`.
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

    /// The children, those with the largest subtrees first.
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

/// The number of nodes in the subtree of `node` in the binomial tree. They are numbered from `node`
/// on.
fn span(ranks: usize, node: usize) -> usize {
    let whole = if node == 0 { ranks } else { 1 << node.trailing_zeros() };
    whole.min(ranks - node)
}

/// Sends the vector down a tree. A large vector is sent in up to `shares` parts at the same time.
fn in_shares(problem: &Problem, rank: usize, tree: Tree, shares: u64) -> Program {
    let shares = (problem.bytes() / problem.segment).clamp(1, shares) as usize;
    let mut program = Program::new(shares);
    for share in 0..shares {
        let slice = problem.part(problem.count, share, shares);
        push(problem, rank, tree, slice, share, &mut program);
    }
    program
}

/// Sends a slice of the vector down a tree, segment by segment. A node without children gets only
/// one signal, after the last segment.
fn push(
    problem: &Problem,
    rank: usize,
    tree: Tree,
    slice: Block,
    share: usize,
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
    let mut queue = program.queue(share);
    if let Some(parent) = parent {
        queue.signal(parent, share);
    }
    if let (Some(parent), true) = (parent, children.is_empty()) {
        queue.wait(parent, 1);
        return;
    }
    // This wait comes before the wait for the data, so that fewer steps remain when the data
    // arrive.
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
                queue.signal(child, share);
            }
        }
    }
}

/// Scatter and allgather (van de Geijn and others, 1994): the vector is cut into a block for each
/// node. Down a binomial tree each node gets its own block and those of all nodes below it. Then
/// the blocks are sent around a ring, to the nodes that do not have them yet. Each node receives
/// every byte once, and each node, also the root, sends less than two vectors. ceil(log2 p) + p - 1
/// signals follow each other. For large sizes on many ranks.
fn scatter_allgather(problem: &Problem, rank: usize) -> Program {
    let most = problem.queues.min(2) as u64;
    let shares = (problem.bytes() / problem.segment / problem.ranks as u64).clamp(1, most) as usize;
    let mut program = Program::new(shares);
    for share in 0..shares {
        scatter_and_ring(problem, rank, share, shares, &mut program);
    }
    program
}

fn scatter_and_ring(
    problem: &Problem,
    rank: usize,
    share: usize,
    shares: usize,
    program: &mut Program,
) {
    let ranks = problem.ranks;
    let node = (rank + ranks - problem.root) % ranks;
    let rank_of = |node: usize| (node + problem.root) % ranks;
    // The blocks of a queue are adjacent, so those of neighbouring nodes form one range.
    let begin = |node: usize| match share * ranks + node {
        end if end == shares * ranks => problem.bytes(),
        part => problem.part(problem.count, part, shares * ranks).offset,
    };
    let (left, right) = ((node + ranks - 1) % ranks, (node + 1) % ranks);
    let parent = Tree::Binomial.parent(ranks, node);
    let mut queue = program.queue(share);
    let copy = |queue: &mut Appender, to: usize, first: usize, end: usize| {
        for (offset, size) in problem.segments(begin(end) - begin(first)) {
            let offset = begin(first) + offset;
            queue.copy(receive(rank, offset), receive(to, offset), size);
        }
        queue.signal(to, share);
    };

    if let Some(parent) = parent {
        queue.signal(rank_of(parent), share).wait(rank_of(parent), 1);
    }
    for child in Tree::Binomial.children(ranks, node) {
        queue.wait(rank_of(child), 1);
        copy(&mut queue, rank_of(child), child, child + span(ranks, child));
    }

    // The left neighbour sends the blocks node - 1, node - 2 and so on, up to those that the
    // scatter has brought. The right neighbour is ready: it is a child of this node, or a node
    // above both has sent to it before it sent to this one.
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

/// Two levels: the root sends to one rank of each other node, and that rank sends to the ranks of
/// its node. Each byte enters a node once.
fn two_level(problem: &Problem, rank: usize) -> Program {
    let nodes = nodes(problem);
    let leaders = nodes.leaders(problem.root);
    let up_to = |most: u64| is_short(problem, problem.bytes(), most);
    // The parts have as many copies, since rounds use the copies of all scratch memory in turn.
    let turns = turns_between(problem.bytes());
    let eager = |problem: &Problem, rank: usize| eager_in_turns(problem, rank, turns);
    let between: &dyn Fn(&Problem, usize) -> Program = match leaders.len() <= FEW && up_to(SHORT) {
        true => &eager,
        false if leaders.len() == 2 || problem.bytes() <= LONG.min(2 * problem.segment) => {
            &binomial
        }
        false => &scatter_allgather,
    };
    let inside: &dyn Fn(&Problem, usize) -> Program =
        if up_to(EAGER_INSIDE) { &eager } else { &direct };
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

/// The most nodes to each of which the root puts the vector itself, if it has at most `SHORT`
/// bytes.
const FEW: usize = 16;
/// The longest vector that nodes send by a binomial tree, which takes few messages. Longer ones
/// they send by scatter and allgather, which send few bytes (but more than once between two nodes).
const LONG: u64 = 128 << 10;
/// The longest vector for which the algorithm inside a node is `eager`.
const EAGER_INSIDE: u64 = 8 << 10;

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
