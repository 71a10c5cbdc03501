//! How algorithms divide and number blocks: shares and pieces, runs of adjacent blocks, and
//! binomial trees.

use crate::coll::problem::Problem;
use crate::coll::schedule::{Appender, Place, Program};

/// The most queues among which a program divides its blocks. There are at most as many as the
/// problem allows, and as there are ranks to run them, since each start of a queue takes the
/// transfer of a cache line.
pub fn most_shares(problem: &Problem) -> u64 {
    problem.ranks.min(problem.queues).min(4) as u64
}

/// One of the queues of a program. Each queue handles its share of every block. The queues are
/// independent, so that idle ranks can run some of them.
pub struct Share<'a> {
    /// The problem to solve.
    pub problem: &'a Problem,
    /// The number of the queue, equal at every rank.
    pub number: usize,
    shares: usize,
}

impl Share<'_> {
    /// The pieces of a block of `size` bytes that are in this share: offset and length of each.
    /// They are adjacent. If the pieces do not divide evenly, the first shares have one more.
    pub fn pieces(&self, size: u64) -> impl Iterator<Item = (u64, u64)> + use<> {
        let all = self.problem.segments(size).count();
        let (each, more) = (all / self.shares, all % self.shares);
        let first = self.number * each + self.number.min(more);
        self.problem.segments(size).skip(first).take(each + usize::from(self.number < more))
    }

    /// Whether this share has a piece of a block of `size` bytes.
    pub fn carries(&self, size: u64) -> bool {
        self.pieces(size).next().is_some()
    }

    /// Copies the pieces of a block of `size` bytes that are in this share.
    pub fn copy(&self, queue: &mut Appender, from: Place, to: Place, size: u64) {
        for (offset, length) in self.pieces(size) {
            queue.copy(from.plus(offset), to.plus(offset), length);
        }
    }
}

/// Every rank but the root copies its own block, `size(rank)` bytes from `ends.0` to `ends.1`, when
/// the root is ready. All ranks copy at the same time. The root sends n - 1 signals and waits for
/// as many.
pub fn with_root(
    problem: &Problem,
    rank: usize,
    size: impl Fn(usize) -> u64 + Copy,
    ends: (Place, Place),
) -> Program {
    let root = problem.root;
    shares(problem, |share, queue| {
        if rank != root {
            if share.carries(size(rank)) {
                queue.wait(root, 1);
                share.copy(queue, ends.0, ends.1, size(rank));
                queue.signal(root, share.number);
            }
            return;
        }
        let peers = others(root, problem.ranks).filter(|peer| share.carries(size(*peer)));
        for peer in peers.clone() {
            queue.signal(peer, share.number);
        }
        share.copy(queue, ends.0, ends.1, size(root));
        for peer in peers {
            queue.wait(peer, 1);
        }
    })
}

/// A program with as many queues as the largest block has segments, up to `most_shares`; `fill`
/// appends the steps of each.
pub fn shares(problem: &Problem, fill: impl Fn(&Share, &mut Appender)) -> Program {
    let shares = (problem.largest() / problem.segment).clamp(1, most_shares(problem)) as usize;
    let mut program = Program::new(shares);
    for number in 0..shares {
        fill(&Share { problem, number, shares }, &mut program.queue(number));
    }
    program
}

/// A program with one queue and `scratch` bytes of scratch memory.
pub fn single(
    problem: &Problem,
    scratch: u64,
    fill: impl FnOnce(&Share, &mut Appender),
) -> Program {
    let mut program = Program { scratch, ..Program::new(1) };
    fill(&Share { problem, number: 0, shares: 1 }, &mut program.queue(0));
    program
}

/// All ranks but `rank`, beginning with its right neighbour.
pub fn others(rank: usize, ranks: usize) -> impl DoubleEndedIterator<Item = usize> + Clone {
    (1..ranks).map(move |distance| (rank + distance) % ranks)
}

/// The powers of two below `ranks`.
pub fn distances(ranks: usize) -> impl DoubleEndedIterator<Item = usize> + Clone {
    (0..ranks.next_power_of_two().trailing_zeros()).map(|step| 1 << step)
}

/// The `count` blocks from that of rank `first` on, where rank 0 follows the last rank, as at most
/// two runs of adjacent blocks. A run: its first rank, how many blocks come before it, and how many
/// it has.
pub fn runs(ranks: usize, first: usize, count: usize) -> [(usize, usize, usize); 2] {
    let first = first % ranks;
    let head = count.min(ranks - first);
    [(first, 0, head), (0, head, count - head)]
}

/// A node of the binomial tree over the ranks, numbered from the root on.
#[derive(Clone, Copy)]
pub struct Node {
    /// Its number; the root has 0.
    pub number: usize,
    root: usize,
    ranks: usize,
}

impl Node {
    /// The node of a rank.
    pub fn of(problem: &Problem, rank: usize) -> Node {
        let (ranks, root) = (problem.ranks, problem.root);
        Node { number: (rank + ranks - root) % ranks, root, ranks }
    }

    /// The rank of this node.
    pub fn rank(self) -> usize {
        (self.root + self.number) % self.ranks
    }

    /// Its parent, whose number lacks the lowest bit of this one; None for the root.
    pub fn parent(self) -> Option<Node> {
        let number = self.number & self.number.wrapping_sub(1);
        (self.number > 0).then_some(Node { number, ..self })
    }

    /// How many nodes its subtree has; they are numbered from this one on.
    pub fn size(self) -> usize {
        let low =
            if self.number == 0 { self.ranks } else { self.number & self.number.wrapping_neg() };
        low.min(self.ranks - self.number)
    }

    /// Its children, in the order of the sizes of their subtrees, except that the last subtree may
    /// be incomplete.
    pub fn children(self) -> impl DoubleEndedIterator<Item = Node> {
        distances(self.size()).map(move |distance| Node { number: self.number + distance, ..self })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::coll::problem::Operation;
    use crate::coll::schedule::QUEUES;

    fn problem(ranks: usize, root: usize) -> Problem {
        Problem {
            operation: Operation::Gather,
            ranks,
            root,
            count: 5,
            width: 4,
            segment: 16,
            in_place: false,
            queues: QUEUES,
            varied: None,
            nodes: None,
        }
    }

    #[test]
    fn shares_cover_every_block_without_gap() {
        let problem = problem(2, 0);
        for shares in 1..=4 {
            for size in (0..400).step_by(4) {
                let mut end = 0;
                for number in 0..shares {
                    let share = Share { problem: &problem, number, shares };
                    assert_eq!(share.carries(size), size.div_ceil(16) > number as u64);
                    for (offset, length) in share.pieces(size) {
                        assert_eq!(offset, end);
                        assert!(length > 0 && length <= 16);
                        end += length;
                    }
                }
                assert_eq!(end, size);
            }
        }
    }

    #[test]
    fn a_subtree_is_its_node_and_the_subtrees_of_its_children() {
        for ranks in 1..=33 {
            for rank in 0..ranks {
                let node = Node::of(&problem(ranks, 3 % ranks), rank);
                assert_eq!(node.rank(), rank);
                let mut next = node.number + 1;
                for child in node.children() {
                    assert_eq!(child.parent().unwrap().number, node.number);
                    assert_eq!(child.number, next);
                    next += child.size();
                }
                assert_eq!(next, node.number + node.size());
            }
        }
    }
}
