//! How blocks are cut and counted: lanes and pieces, runs of neighbouring blocks, binomial trees.

use crate::coll::problem::Problem;
use crate::coll::schedule::{Appender, Place, Program};

/// Most lanes of a program: not more than the problem allows, nor more than there are threads to
/// share them, since each costs every start the way of a cache line.
pub fn most_lanes(problem: &Problem) -> u64 {
    problem.ranks.min(problem.queues).min(4) as u64
}

/// One of a program's queues, all of which do the same with their shares of each block: side by
/// side, so that ranks with nothing to do can carry some of them.
pub struct Lane<'a> {
    /// What is to be solved.
    pub problem: &'a Problem,
    /// The queue, at every rank.
    pub number: usize,
    lanes: usize,
}

impl Lane<'_> {
    /// This lane's pieces of a block of `size` bytes: offset and length of each. They lie side by
    /// side; where the pieces do not divide evenly the first lanes have one more.
    pub fn pieces(&self, size: u64) -> impl Iterator<Item = (u64, u64)> + use<> {
        let all = self.problem.segments(size).count();
        let (each, more) = (all / self.lanes, all % self.lanes);
        let first = self.number * each + self.number.min(more);
        self.problem.segments(size).skip(first).take(each + usize::from(self.number < more))
    }

    /// Whether this lane has a piece of a block of `size` bytes.
    pub fn carries(&self, size: u64) -> bool {
        self.pieces(size).next().is_some()
    }

    /// Copies this lane's pieces of a block of `size` bytes.
    pub fn copy(&self, queue: &mut Appender, from: Place, to: Place, size: u64) {
        for (offset, length) in self.pieces(size) {
            queue.copy(from.plus(offset), to.plus(offset), length);
        }
    }
}

/// Every rank but the root moves its own block, `size(rank)` bytes from the first of the
/// `ends(rank)` to the second, when the root is ready, side by side; so the root sends n - 1
/// signals and waits for as many.
pub fn with_root(
    problem: &Problem,
    rank: usize,
    size: impl Fn(usize) -> u64 + Copy,
    ends: (Place, Place),
) -> Program {
    let root = problem.root;
    lanes(problem, |lane, queue| {
        if rank != root {
            if lane.carries(size(rank)) {
                queue.wait(root, 1);
                lane.copy(queue, ends.0, ends.1, size(rank));
                queue.signal(root, lane.number);
            }
            return;
        }
        let peers = others(root, problem.ranks).filter(|peer| lane.carries(size(*peer)));
        for peer in peers.clone() {
            queue.signal(peer, lane.number);
        }
        lane.copy(queue, ends.0, ends.1, size(root));
        for peer in peers {
            queue.wait(peer, 1);
        }
    })
}

/// A program of as many lanes as the largest of the blocks has segments, up to `most_lanes`; `fill`
/// fills the queue of each.
pub fn lanes(problem: &Problem, fill: impl Fn(&Lane, &mut Appender)) -> Program {
    let lanes = (problem.largest() / problem.segment).clamp(1, most_lanes(problem)) as usize;
    let mut program = Program::new(lanes);
    for number in 0..lanes {
        fill(&Lane { problem, number, lanes }, &mut program.queue(number));
    }
    program
}

/// A program of one lane, filled by `fill`, with `scratch` bytes of scratch memory.
pub fn single(problem: &Problem, scratch: u64, fill: impl FnOnce(&Lane, &mut Appender)) -> Program {
    let mut program = Program { scratch, ..Program::new(1) };
    fill(&Lane { problem, number: 0, lanes: 1 }, &mut program.queue(0));
    program
}

/// The ranks but `rank`, from its right neighbour on.
pub fn others(rank: usize, ranks: usize) -> impl DoubleEndedIterator<Item = usize> + Clone {
    (1..ranks).map(move |distance| (rank + distance) % ranks)
}

/// The powers of two below `ranks`.
pub fn distances(ranks: usize) -> impl DoubleEndedIterator<Item = usize> + Clone {
    (0..ranks.next_power_of_two().trailing_zeros()).map(|step| 1 << step)
}

/// The equal blocks of `count` ranks from rank `first` on, rank 0 following the last, as at most
/// two runs of neighbours: the first rank of each, how many blocks were before it, how many it has.
pub fn runs(ranks: usize, first: usize, count: usize) -> [(usize, usize, usize); 2] {
    let first = first % ranks;
    let head = count.min(ranks - first);
    [(first, 0, head), (0, head, count - head)]
}

/// A node of the binomial tree over the ranks, numbered from the root on.
#[derive(Clone, Copy)]
pub struct Node {
    /// Its number: 0 is the root.
    pub number: usize,
    root: usize,
    ranks: usize,
}

impl Node {
    /// The node that rank `rank` is.
    pub fn of(problem: &Problem, rank: usize) -> Node {
        let (ranks, root) = (problem.ranks, problem.root);
        Node { number: (rank + ranks - root) % ranks, root, ranks }
    }

    /// Its rank.
    pub fn rank(self) -> usize {
        (self.root + self.number) % self.ranks
    }

    /// The node above, which is the one whose number lacks the lowest bit; none above the root.
    pub fn parent(self) -> Option<Node> {
        let number = self.number & self.number.wrapping_sub(1);
        (self.number > 0).then_some(Node { number, ..self })
    }

    /// How many nodes its subtree has: itself and those that follow it.
    pub fn size(self) -> usize {
        let low =
            if self.number == 0 { self.ranks } else { self.number & self.number.wrapping_neg() };
        low.min(self.ranks - self.number)
    }

    /// The nodes right below, smallest subtree first (but for the last, which may be cut short).
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
    fn lanes_share_every_block_without_gap() {
        let problem = problem(2, 0);
        for lanes in 1..=4 {
            for size in (0..400).step_by(4) {
                let mut end = 0;
                for number in 0..lanes {
                    let lane = Lane { problem: &problem, number, lanes };
                    assert_eq!(lane.carries(size), size.div_ceil(16) > number as u64);
                    for (offset, length) in lane.pieces(size) {
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
