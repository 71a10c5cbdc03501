//! Barriers: no rank leaves before all ranks have come. A step runs only after its owner has
//! started the round, whichever thread runs it. So it is enough that the last wait of each rank
//! follows, directly or through others, a signal of every other rank.

use super::Algorithm;
use super::levels::{Part, Parts, in_turn, nodes};
use crate::coll::problem::{Operation, Problem};
use crate::coll::schedule::{Appender, Program};

/// Children of a rank in the tree. With more of them the parent's signals, which it sends one after
/// another, would take longer than a further level of the tree.
const ARITY: usize = 4;

/// The algorithms of this file.
pub const ALGORITHMS: &[Algorithm] = &[
    Algorithm::new(Operation::Barrier, "dissemination", dissemination),
    Algorithm::new(Operation::Barrier, "tree", tree),
    Algorithm::new(Operation::Barrier, "two_level", two_level),
];

/// Dissemination (Hensgen, Finkel and Manber, 1988): in step k each rank signals the rank 2^k to
/// its right and waits for the rank 2^k to its left. It then knows that 2^(k+1) ranks have come.
/// There are p * ceil(log2 p) signals, of which ceil(log2 p) follow each other. It is the fastest
/// if each rank has a core.
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

/// A tree: each rank waits for its children, signals its parent, waits for the parent, and signals
/// its children. About 2 log_k p signals follow each other, but there are only 2 (p - 1), so it is
/// the fastest if ranks share cores.
fn tree(problem: &Problem, rank: usize) -> Program {
    let mut program = Program::new(1);
    let mut queue = program.queue(0);
    climb(&mut queue, problem, rank);
    descend(&mut queue, problem, rank);
    drop(queue);
    program
}

/// The children of a rank in the tree.
fn children(problem: &Problem, rank: usize) -> impl Iterator<Item = usize> + use<> {
    let ranks = problem.ranks;
    (rank * ARITY + 1..=rank * ARITY + ARITY).take_while(move |&child| child < ranks)
}

/// Up the tree: afterwards rank 0 knows that all ranks have come.
fn climb(queue: &mut Appender, problem: &Problem, rank: usize) {
    for child in children(problem, rank) {
        queue.wait(child, 1);
    }
    if rank > 0 {
        queue.signal((rank - 1) / ARITY, 0);
    }
}

/// Down the tree: each rank learns that rank 0 has begun this phase.
fn descend(queue: &mut Appender, problem: &Problem, rank: usize) {
    if rank > 0 {
        queue.wait((rank - 1) / ARITY, 1);
    }
    for child in children(problem, rank) {
        queue.signal(child, 0);
    }
}

/// Two levels: up a tree in each node, dissemination between the roots of these trees, and down the
/// trees. One rank of each node sends ceil(log2 nodes) messages.
fn two_level(problem: &Problem, rank: usize) -> Program {
    let nodes = nodes(problem);
    let leaders = nodes.leaders(0);
    let half = |fill: fn(&mut Appender, &Problem, usize)| {
        move |problem: &Problem, rank: usize| {
            let mut program = Program::new(1);
            fill(&mut program.queue(0), problem, rank);
            program
        }
    };
    in_turn(rank, |rank| {
        let beside = nodes.beside(rank);
        let parts = vec![
            Part::new(rank, beside, problem.clone(), half(climb)),
            Part::new(rank, &leaders, problem.clone(), dissemination),
            Part::new(rank, beside, problem.clone(), half(descend)),
        ];
        Parts { kept: 0, parts }
    })
}
