//! The algorithm of a team with one rank, which copies its input to its output.

use crate::coll::algorithms::Algorithm;
use crate::coll::problem::{Operation, Problem};
use crate::coll::schedule::Program;

/// Solves every operation of a single rank, so the other algorithms need not handle one rank. It is
/// in no table.
pub static ALONE: Algorithm = Algorithm {
    operation: Operation::Barrier,
    name: "alone",
    program: alone,
    fits: |problem| problem.ranks == 1,
    ordered: true,
    single_copy: true,
    pulls: false,
};

/// One copy, which is omitted in place.
fn alone(problem: &Problem, _: usize) -> Program {
    let mut program = Program::new(1);
    if !matches!(problem.operation, Operation::Barrier | Operation::Broadcast | Operation::Exscan) {
        let size = problem.send_block(0, 0).size;
        let (from, to) = (problem.source(0, 0, 0), problem.target(0, 0, 0));
        for (offset, size) in problem.segments(size) {
            program.queue(0).copy(from.plus(offset), to.plus(offset), size);
        }
    }
    program
}
