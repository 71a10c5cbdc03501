//! The algorithms: pure functions from a problem and a rank to that rank's program. To add one: a
//! function in the file of its operation, and a row in the table below.

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

/// One algorithm.
pub struct Algorithm {
    /// What it does.
    pub operation: Operation,
    /// Its name, as the configuration and `llcl_coll_query` know it.
    pub name: &'static str,
    /// Makes the program of one rank.
    pub program: fn(&Problem, usize) -> Program,
    /// Which problems it can solve. In any case there is more than one rank.
    pub fits: fn(&Problem) -> bool,
    /// It combines strictly in the order of ranks, so that operations that do not commute are
    /// right.
    pub ordered: bool,
    /// It reads or writes the users' buffers of other ranks directly, once, without staging: the
    /// single-copy forms for ranks that share memory.
    pub single_copy: bool,
    /// Its steps read memory of any other rank: it is for ranks that share memory. Those of all
    /// other algorithms read that of ranks of their own node only.
    pub pulls: bool,
}

impl Algorithm {
    /// A row of a table: it solves every problem, combines in the order of ranks if at all, and
    /// moves bytes by way of buffers of its own; the functions below say otherwise.
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

    /// It solves some problems only.
    pub const fn only_if(self, fits: fn(&Problem) -> bool) -> Algorithm {
        Algorithm { fits, ..self }
    }

    /// It combines in any order.
    pub const fn in_any_order(self) -> Algorithm {
        Algorithm { ordered: false, ..self }
    }

    /// It is a single-copy form.
    pub const fn copying_once(self) -> Algorithm {
        Algorithm { single_copy: true, ..self }
    }

    /// It reads memory of any other rank.
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
