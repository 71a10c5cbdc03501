//! The common parts of reductions: pieces of vectors, combinations of the vectors of all ranks,
//! dissemination, and the core, a power of two of the ranks.

use super::blocks::{distances, most_shares};
use crate::coll::problem::{MOST_SEGMENTS, Problem};
use crate::coll::schedule::{Appender, Place, Program, scratch};

/// The most bytes of a piece if a rank combines the pieces of all ranks one after the other. The
/// partial result then stays in the first-level cache.
pub const CACHED: u64 = 16 << 10;

/// The longest vector that one rank combines for all. A second working rank would save less time
/// than its signals take.
const SMALL: u64 = 2 << 10;

/// Whether vectors of `size` bytes are so short that one rank combines them for all.
pub fn is_small(problem: &Problem, size: u64) -> bool {
    size <= SMALL.min(problem.segment)
}

/// Bytes of a piece that is combined in the cache, unless there are too many: whole elements.
pub fn piece(problem: &Problem) -> u64 {
    let most = CACHED.max(problem.largest() / MOST_SEGMENTS).min(problem.segment);
    (most / problem.width).max(1) * problem.width
}

/// The number of queues among which the pieces of a block of `size` bytes are divided.
pub fn queues(problem: &Problem, size: u64) -> usize {
    size.div_ceil(piece(problem)).clamp(1, most_shares(problem)) as usize
}

/// The pieces of `size` bytes for queue `queue` of `queues`: offset and length of each.
pub fn pieces(
    problem: &Problem,
    size: u64,
    queue: usize,
    queues: usize,
) -> impl Iterator<Item = (u64, u64)> + use<> {
    let step = piece(problem);
    let all = (0..size.div_ceil(step)).map(move |i| (i * step, step.min(size - i * step)));
    all.skip(queue).step_by(queues)
}

/// Appends copies of at most a segment each.
pub fn copy(queue: &mut Appender, problem: &Problem, from: Place, to: Place, size: u64) {
    for (offset, length) in problem.segments(size) {
        queue.copy(from.plus(offset), to.plus(offset), length);
    }
}

/// Appends combinations of at most a segment each.
pub fn combine(queue: &mut Appender, problem: &Problem, [left, right, to]: [Place; 3], size: u64) {
    for (offset, length) in problem.segments(size) {
        queue.combine(left.plus(offset), right.plus(offset), to.plus(offset), length);
    }
}

/// A program with one queue.
pub fn single(scratch: u64, fill: impl FnOnce(&mut Appender)) -> Program {
    let mut program = Program { scratch, ..Program::new(1) };
    fill(&mut program.queue(0));
    program
}

/// The number of chunks of a vector, which are processed at the same time. Each chunk has at least
/// a segment for each rank, unless there is only one.
pub fn chunks(problem: &Problem) -> usize {
    let step = problem.segment.saturating_mul(problem.ranks as u64);
    (problem.bytes() / step).clamp(1, most_shares(problem)) as usize
}

/// A program with a queue for each chunk of the vector. `fill` appends the steps of each, given the
/// number of the queue, the offset of its chunk and the number of its elements.
pub fn chunked(
    problem: &Problem,
    scratch: u64,
    fill: impl Fn(&mut Appender, usize, u64, u64),
) -> Program {
    let chunks = chunks(problem);
    let mut program = Program { scratch, ..Program::new(chunks) };
    for number in 0..chunks {
        let chunk = problem.part(problem.count, number, chunks);
        fill(&mut program.queue(number), number, chunk.offset, chunk.size / problem.width);
    }
    program
}

/// Combines `size` bytes of all ranks' inputs, each at `source(rank)`, in the order of ranks.
/// Partial results go to `partial`, the last one to `to`, which may be one of the inputs.
pub fn fold(
    queue: &mut Appender,
    ranks: usize,
    source: impl Fn(usize) -> Place,
    [partial, to]: [Place; 2],
    size: u64,
) {
    let mut left = source(0);
    for rank in 1..ranks {
        let into = if rank + 1 == ranks { to } else { partial };
        queue.combine(left, source(rank), into, size);
        left = into;
    }
}

/// The form for short vectors. Rank 0 combines the first `size` bytes of all inputs in the order of
/// ranks at `to`, which may be its own input. It then copies to each rank its `share` (from, to,
/// size). Rank 0 and each other rank exchange two signals, and two signals follow each other in a
/// round.
pub fn by_one(
    queue: &mut Appender,
    problem: &Problem,
    rank: usize,
    (to, size): (Place, u64),
    share: impl Fn(usize) -> (Place, Place, u64),
) {
    if rank > 0 {
        queue.signal(0, 0).wait(0, 1);
        return;
    }
    let mut left = problem.source(0, 0, 0);
    for peer in 1..problem.ranks {
        queue.wait(peer, 1).combine(left, problem.source(peer, 0, 0), to, size);
        left = to;
    }
    for peer in 0..problem.ranks {
        let (from, to, size) = share(peer);
        queue.copy(from, to, size);
        if peer > 0 {
            queue.signal(peer, 0);
        }
    }
}

/// Dissemination (Hensgen, Finkel and Manber): the queue continues when all ranks have begun it.
/// Each rank sends one signal for each distance. `number`: the number of this queue. `nth`: this is
/// the queue's nth dissemination in the round.
pub fn dissemination(queue: &mut Appender, ranks: usize, rank: usize, number: usize, nth: u32) {
    for distance in distances(ranks) {
        queue.signal((rank + distance) % ranks, number);
        queue.wait((rank + ranks - distance) % ranks, nth);
    }
}

/// The form in which every rank accesses the buffers of all others: a program with `queues` queues,
/// as many as at each other rank. Each queue begins when all ranks are ready and ends when all are
/// done. `work` appends the steps in between.
pub fn between_disseminations(
    ranks: usize,
    rank: usize,
    queues: usize,
    work: impl Fn(&mut Appender, usize),
) -> Program {
    let mut program = Program::new(queues);
    for number in 0..queues {
        let mut queue = program.queue(number);
        let first = number == 0;
        if first {
            dissemination(&mut queue, ranks, rank, 0, 1);
            for other in 1..queues {
                queue.signal(rank, other);
            }
        } else {
            queue.wait(rank, 1);
        }
        work(&mut queue, number);
        dissemination(&mut queue, ranks, rank, number, if first { 2 } else { 1 });
    }
    program
}

/// Each rank combines its slice of the inputs of all ranks, straight from their buffers and in the
/// order of ranks, into the result of rank `owner`. `then` appends the steps that follow a piece,
/// given the piece's place, its offset in the vector and its bytes.
pub fn combine_slices(
    problem: &Problem,
    rank: usize,
    owner: usize,
    then: impl Fn(&mut Appender, Place, u64, u64),
) -> Program {
    let ranks = problem.ranks;
    let slice = problem.part(problem.count, rank, ranks);
    let queues = queues(problem, problem.part(problem.count, 0, ranks).size);
    let mut program = between_disseminations(ranks, rank, queues, |queue, number| {
        let partial = scratch(rank, number as u64 * piece(problem));
        for (offset, size) in pieces(problem, slice.size, number, queues) {
            let at = slice.offset + offset;
            let to = problem.target(owner, owner, at);
            fold(queue, ranks, |peer| problem.source(peer, owner, at), [partial, to], size);
            then(queue, to, at, size);
        }
    });
    program.scratch = queues as u64 * piece(problem);
    program
}

/// The core: a power of two of the ranks, the largest, for algorithms that need one. The first
/// ranks form as many pairs as there are surplus ranks. The lower rank of a pair gives its vector
/// to the upper one and then only waits for the result. So each rank of the core has its own vector
/// or those of two adjacent ranks, and the order of ranks is kept (Thakur, Rabenseifner and Gropp
/// 2005).
#[derive(Clone, Copy)]
pub struct Core {
    /// The number of ranks in the core: a power of two.
    pub size: usize,
    surplus: usize,
}

impl Core {
    /// The core of `ranks` ranks.
    pub fn of(ranks: usize) -> Core {
        let size = 1 << ranks.ilog2();
        Core { size, surplus: ranks - size }
    }

    /// The other rank of the pair of `rank`. None for a rank in no pair.
    pub fn partner(self, rank: usize) -> Option<usize> {
        (rank < 2 * self.surplus).then_some(rank ^ 1)
    }

    /// The number of `rank` in the core. None for the lower rank of a pair.
    pub fn number(self, rank: usize) -> Option<usize> {
        match rank < 2 * self.surplus {
            true => (rank % 2 == 1).then_some(rank / 2),
            false => Some(rank - self.surplus),
        }
    }

    /// The rank with this number.
    pub fn rank(self, number: usize) -> usize {
        if number < self.surplus { 2 * number + 1 } else { number + self.surplus }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::coll::problem::Operation;
    use crate::coll::schedule::QUEUES;

    #[test]
    fn pieces_of_all_queues_make_up_the_whole() {
        let problem = Problem {
            operation: Operation::Allreduce,
            ranks: 2,
            root: 0,
            count: 0,
            width: 8,
            segment: 30,
            in_place: false,
            queues: QUEUES,
            varied: None,
            nodes: None,
        };
        for size in (0..500).step_by(8) {
            let queues = queues(&problem, size);
            let mut all: Vec<_> =
                (0..queues).flat_map(|queue| pieces(&problem, size, queue, queues)).collect();
            all.sort_unstable();
            let mut end = 0;
            for (offset, length) in all {
                assert!(offset == end && length > 0 && length <= 24 && length % 8 == 0);
                end += length;
            }
            assert_eq!(end, size);
        }
    }

    #[test]
    fn a_core_is_a_power_of_two_in_order() {
        for ranks in 2..=33 {
            let core = Core::of(ranks);
            assert!(core.size.is_power_of_two() && core.size <= ranks && core.size * 2 > ranks);
            let numbers: Vec<_> = (0..ranks).filter_map(|rank| core.number(rank)).collect();
            assert_eq!(numbers, (0..core.size).collect::<Vec<_>>());
            for rank in 0..ranks {
                match core.number(rank) {
                    Some(number) => assert_eq!(core.rank(number), rank),
                    None => assert_eq!(core.partner(rank), Some(rank + 1)),
                }
            }
        }
    }
}
