//! Barriers: nobody leaves before everybody has come. A step of a rank runs only after that rank
//! has started, on whatever rank it runs, so it is enough that each rank's last wait follows a
//! signal of every other.

use super::Algorithm;
use crate::coll::problem::{Operation, Problem};
use crate::coll::schedule::Program;

/// Children of a rank in the tree: few enough that its signals, one after another, are not later
/// than another level would be.
const ARITY: usize = 4;

/// The algorithms of this file.
pub const ALGORITHMS: &[Algorithm] = &[
    Algorithm::new(Operation::Barrier, "dissemination", dissemination),
    Algorithm::new(Operation::Barrier, "tree", tree),
];

/// Dissemination (Hensgen, Finkel and Manber, 1988): in step k each rank tells the rank 2^k further
/// on, and waits for the one 2^k before it, by which it then knows of 2^(k+1) ranks. ceil(log2 p)
/// signals one after another, p * ceil(log2 p) in all: the shortest path, as long as each rank has
/// a core.
fn dissemination(problem: &Problem, rank: usize) -> Program {
    let ranks = problem.ranks;
    let mut program = Program::new(1);
    let mut queue = program.queue(0);
    let mut distance = 1;
    while distance < ranks {
        queue.signal((rank + distance) % ranks, 0).wait((rank + ranks - distance) % ranks, 1);
        distance *= 2;
    }
    drop(queue);
    program
}

/// A tree: each rank waits for its children, tells its parent, waits for the parent, and tells its
/// children. 2 log_k p levels, but only 2 (p - 1) signals in all: best where ranks share cores.
fn tree(problem: &Problem, rank: usize) -> Program {
    let children = || (rank * ARITY + 1..=rank * ARITY + ARITY).take_while(|&c| c < problem.ranks);
    let mut program = Program::new(1);
    let mut queue = program.queue(0);
    for child in children() {
        queue.wait(child, 1);
    }
    if rank > 0 {
        let parent = (rank - 1) / ARITY;
        queue.signal(parent, 0).wait(parent, 1);
    }
    for child in children() {
        queue.signal(child, 0);
    }
    drop(queue);
    program
}
