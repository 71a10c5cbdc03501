//! The algorithms: pure functions from a problem and a rank to the program of that rank. To add
//! one, write a function in the file of its operation and a row in its table.

pub mod allgather;
pub mod allreduce;
pub mod alltoall;
pub mod alone;
pub mod blocks;
pub mod eager;
pub mod exscan;
pub mod gather;
pub mod levels;
pub mod reduce;
pub mod reduce_scatter;
pub mod scan;
pub mod scatter;
pub mod vectors;

pub mod barrier;
pub mod broadcast;

use crate::coll::problem::{Operation, Problem};
use crate::coll::schedule::Program;

/// A row of an operation's table.
pub struct Algorithm {
    /// The operation that it performs.
    pub operation: Operation,
    /// The name by which configuration and llcl_coll_query() know it.
    pub name: &'static str,
    /// Makes the program of one rank.
    pub program: fn(&Problem, usize) -> Program,
    /// Whether it can solve a problem. Problems of one rank are solved by `alone` and never come
    /// here.
    pub fits: fn(&Problem) -> bool,
    /// Whether it combines strictly in the order of ranks, so that the result is right for
    /// operations that do not commute.
    pub ordered: bool,
    /// Whether each byte is copied once, directly between users' buffers, without staging. For
    /// ranks that share memory.
    pub single_copy: bool,
    /// Whether its steps may read memory of any rank, so that all ranks must share memory. The
    /// steps of other algorithms read memory of their own node only.
    pub pulls: bool,
}

impl Algorithm {
    /// A row of an algorithm that solves every problem, combines in the order of ranks if at all,
    /// stages its data in scratch memory, and may put to other nodes. The functions below change
    /// that.
    pub const fn new(
        operation: Operation,
        name: &'static str,
        program: fn(&Problem, usize) -> Program,
    ) -> Algorithm {
        Algorithm {
            operation,
            name,
            program,
            fits: |_| true,
            ordered: true,
            single_copy: false,
            pulls: false,
        }
    }

    /// It solves only some problems.
    pub const fn only_if(self, fits: fn(&Problem) -> bool) -> Algorithm {
        Algorithm { fits, ..self }
    }

    /// It may combine in any order.
    pub const fn in_any_order(self) -> Algorithm {
        Algorithm { ordered: false, ..self }
    }

    /// It is a single-copy algorithm.
    pub const fn copying_once(self) -> Algorithm {
        Algorithm { single_copy: true, ..self }
    }

    /// It reads memory of any rank.
    pub const fn pulling(self) -> Algorithm {
        Algorithm { pulls: true, ..self }
    }
}

/// All algorithms of all operations.
pub fn all() -> impl Iterator<Item = &'static Algorithm> {
    [
        barrier::ALGORITHMS,
        broadcast::ALGORITHMS,
        reduce::ALGORITHMS,
        allreduce::ALGORITHMS,
        gather::ALGORITHMS,
        scatter::ALGORITHMS,
        allgather::ALGORITHMS,
        alltoall::ALGORITHMS,
        reduce_scatter::ALGORITHMS,
        scan::ALGORITHMS,
        exscan::ALGORITHMS,
    ]
    .into_iter()
    .flatten()
}
