//! Allreduce: all ranks get the combination of all ranks' vectors.

use super::Algorithm;
use super::blocks::others;
use super::eager::{exchange, fold as fold_slots};
use super::levels::{Part, Parts, all_have_come, distribute, in_turn, is_short, nodes};
use super::vectors::{
    Core, by_one, chunked, chunks, combine, combine_slices, copy, fold, is_small, piece, pieces,
    single,
};
use crate::coll::problem::{Operation, Problem};
use crate::coll::schedule::{Appender, Place, Program, scratch};

/// The table of this operation.
pub const ALGORITHMS: &[Algorithm] = &[
    Algorithm::new(Operation::Allreduce, "direct", direct).copying_once().pulling(),
    Algorithm::new(Operation::Allreduce, "recursive_doubling", recursive_doubling),
    Algorithm::new(Operation::Allreduce, "rabenseifner", rabenseifner),
    Algorithm::new(Operation::Allreduce, "ring", ring).in_any_order(),
    Algorithm::new(Operation::Allreduce, "eager", eager),
    Algorithm::new(Operation::Allreduce, "two_level", two_level).in_any_order(),
];

/// Each rank combines a slice of the vector from the inputs of all ranks, in the order of ranks,
/// and copies the result to all outputs. It does so piece by piece, so that a piece is still in the
/// cache when it is copied. Each byte of the inputs is read once, and each byte of the outputs is
/// written once. A dissemination before (log2(ranks) signals of each rank, for each queue) ensures
/// that all ranks are ready, and one after that all are done. Rank 0 alone combines short vectors.
/// Then rank 0 and each other rank exchange two signals, and two signals follow each other.
fn direct(problem: &Problem, rank: usize) -> Program {
    let (ranks, size) = (problem.ranks, problem.bytes());
    if is_small(problem, size) {
        let to = problem.target(0, 0, 0);
        let share = |peer: usize| (to, problem.target(peer, 0, 0), size);
        return single(0, |queue| by_one(queue, problem, rank, (to, size), share));
    }
    combine_slices(problem, rank, rank, |queue, to, at, size| {
        for peer in others(rank, ranks) {
            queue.copy(to, problem.target(peer, rank, at), size);
        }
    })
}

/// In step k a rank exchanges its partial result with the rank whose number differs in bit k. There
/// are log2(ranks) steps, each of which sends and combines the whole vector. No signal reports that
/// a place is free: each step receives into a place of its own, which exists in two copies that
/// rounds use in turn. A sender that writes a copy again has had a signal of the receiver in the
/// round between, so the receiver has read what was there.
fn recursive_doubling(problem: &Problem, rank: usize) -> Program {
    let (core, size) = (Core::of(problem.ranks), problem.bytes());
    let steps = core.size.ilog2();
    let slot = |rank: usize, step: u32| scratch(rank, u64::from(step) * size);
    // The last slot is for the vector of a partner.
    let slots = if core.size == problem.ranks { steps } else { steps + 1 };
    let program = single(u64::from(slots) * size, |queue| {
        let whole = Range { offset: 0, size };
        let Some(own) = core.number(rank) else {
            return give_to_partner(queue, problem, core, rank, 0, whole, slot(rank + 1, steps));
        };
        let to = problem.target(rank, rank, 0);
        let mut partial = combine_partners(queue, problem, core, rank, whole, slot(rank, steps));
        for step in 0..steps {
            let peer = core.rank(own ^ 1 << step);
            copy(queue, problem, partial, slot(peer, step), size);
            queue.signal(peer, 0).wait(peer, 1);
            let (left, right) = in_order(own, step, partial, slot(rank, step));
            combine(queue, problem, [left, right, to], size);
            partial = to;
        }
        return_to_partner(queue, problem, core, rank, 0, whole);
    });
    Program { turns: 2, ..program }
}

/// Rabenseifner's algorithm: in step k a rank exchanges half of the part that it is still
/// responsible for with the rank whose number differs in bit k, and combines the half that it
/// keeps. Then the steps are repeated in reverse order with results. In 2 log2(ranks) steps a rank
/// sends twice the vector's bytes less two shares, and combines the vector's bytes less one share.
/// A partner that sends its result has read what it was sent before, so no other signals are
/// necessary.
fn rabenseifner(problem: &Problem, rank: usize) -> Program {
    let core = Core::of(problem.ranks);
    // The largest share of a rank in a chunk. The places into which the steps receive are adjacent.
    let share = problem.count.div_ceil(chunks(problem) as u64).div_ceil(core.size as u64);
    let room = share * problem.width * core.size as u64;
    let places = chunks(problem) as u64 * 2 * room;
    chunked(problem, places, |queue, number, chunk, elements| {
        let begin = |index: usize| match index == core.size {
            true => chunk + elements * problem.width,
            false => chunk + problem.part(elements, index, core.size).offset,
        };
        let range = |first: usize, end: usize| Range {
            offset: begin(first),
            size: begin(end) - begin(first),
        };
        let slot = |rank: usize, step: u32| {
            let before = room - room / core.size as u64 * (core.size >> step) as u64;
            scratch(rank, number as u64 * 2 * room + before)
        };
        let spare = |rank: usize| scratch(rank, (number as u64 * 2 + 1) * room);
        let whole = range(0, core.size);
        let Some(own) = core.number(rank) else {
            return give_to_partner(queue, problem, core, rank, number, whole, spare(rank + 1));
        };
        let result = |rank: usize, range: Range| problem.target(rank, rank, range.offset);
        let mut partial = combine_partners(queue, problem, core, rank, whole, spare(rank));
        let (mut first, mut end) = (0, core.size);
        for step in 0..core.size.ilog2() {
            let (peer, middle) = (core.rank(own ^ 1 << step), (first + end) / 2);
            let (low, high) = (range(first, middle), range(middle, end));
            let (keep, give) = match own >> step & 1 {
                0 => (low, high),
                _ => (high, low),
            };
            let at = |range: Range| partial.plus(range.offset - whole.offset);
            copy(queue, problem, at(give), slot(peer, step), give.size);
            queue.signal(peer, number).wait(peer, 1);
            let (left, right) = in_order(own, step, at(keep), slot(rank, step));
            combine(queue, problem, [left, right, result(rank, keep)], keep.size);
            partial = result(rank, whole);
            (first, end) = if own >> step & 1 == 0 { (first, middle) } else { (middle, end) };
        }
        for step in (0..core.size.ilog2()).rev() {
            let (peer, mine) = (core.rank(own ^ 1 << step), range(first, end));
            copy(queue, problem, result(rank, mine), result(peer, mine), mine.size);
            queue.signal(peer, number).wait(peer, 2);
            let width = end - first;
            first -= first & width;
            end = first + 2 * width;
        }
        return_to_partner(queue, problem, core, rank, number, whole);
    })
}

/// A range of the vector, in bytes.
#[derive(Clone, Copy)]
struct Range {
    offset: u64,
    size: u64,
}

/// The steps of the lower rank of a pair: it copies its bytes to its partner and waits for the
/// result.
fn give_to_partner(
    queue: &mut Appender,
    problem: &Problem,
    core: Core,
    rank: usize,
    number: usize,
    range: Range,
    to: Place,
) {
    let Some(partner) = core.partner(rank) else { return };
    copy(queue, problem, problem.source(rank, rank, range.offset), to, range.size);
    queue.signal(partner, number).wait(partner, 1);
}

/// Appends the combination of the rank's input with the bytes of its partner, if it has one; they
/// arrive at `from`. Returns the place of the result, or of the input.
fn combine_partners(
    queue: &mut Appender,
    problem: &Problem,
    core: Core,
    rank: usize,
    range: Range,
    from: Place,
) -> Place {
    let own = problem.source(rank, rank, range.offset);
    let Some(partner) = core.partner(rank) else { return own };
    let to = problem.target(rank, rank, range.offset);
    queue.wait(partner, 1);
    combine(queue, problem, [from, own, to], range.size);
    to
}

/// Copies the result to the partner that has given its bytes.
fn return_to_partner(
    queue: &mut Appender,
    problem: &Problem,
    core: Core,
    rank: usize,
    number: usize,
    range: Range,
) {
    let Some(partner) = core.partner(rank) else { return };
    let place = |rank: usize| problem.target(rank, rank, range.offset);
    copy(queue, problem, place(rank), place(partner), range.size);
    queue.signal(partner, number);
}

/// Orders two operands of step `step` by rank: those of number `own` and of its partner.
fn in_order(own: usize, step: u32, mine: Place, got: Place) -> (Place, Place) {
    if own >> step & 1 == 0 { (mine, got) } else { (got, mine) }
}

/// The ring: each block passes all ranks once to be combined, beginning right of the rank where it
/// will be complete, and once more as a result. In each of 2 (ranks - 1) steps a rank sends a block
/// to its right neighbour. In no algorithm a rank sends fewer bytes (Patarasuk and Yuan 2009).
fn ring(problem: &Problem, rank: usize) -> Program {
    let ranks = problem.ranks;
    let (left, right) = ((rank + ranks - 1) % ranks, (rank + 1) % ranks);
    // With two ranks both neighbours are one rank, and its ready signal comes first.
    let before = u32::from(left == right);
    chunked(problem, problem.bytes(), |queue, number, chunk, elements| {
        let block = |distance: usize| {
            let block = problem.part(elements, (rank + ranks - distance) % ranks, ranks);
            Range { offset: chunk + block.offset, size: block.size }
        };
        let result = |rank: usize, range: Range| problem.target(rank, rank, range.offset);
        queue.signal(left, number).wait(right, 1);
        for step in 0..ranks {
            let Range { offset, size } = block(step);
            let (own, slot) = (problem.source(rank, rank, offset), scratch(rank, offset));
            let next = scratch(right, offset);
            if step > 0 {
                queue.wait(left, before + step as u32);
            }
            match step {
                0 => copy(queue, problem, own, next, size),
                _ if step + 1 < ranks => combine(queue, problem, [slot, own, next], size),
                _ => combine(queue, problem, [slot, own, result(rank, block(step))], size),
            }
            if step + 1 < ranks {
                queue.signal(right, number);
            }
        }
        for step in 0..ranks - 1 {
            // Begins with the block that is complete at this rank.
            let range = block((ranks - 1 + step) % ranks);
            if step > 0 {
                queue.wait(left, before + (ranks - 1 + step) as u32);
            }
            copy(queue, problem, result(rank, range), result(right, range), range.size);
            queue.signal(right, number);
        }
        queue.wait(left, before + 2 * (ranks - 1) as u32);
    })
}

/// Each rank puts its vector into a slot of every other rank, and combines the vectors that it has
/// received in the order of ranks. There are ranks * (ranks - 1) signals, none of which depends on
/// another one. For small sizes on few ranks.
fn eager(problem: &Problem, rank: usize) -> Program {
    let own = problem.source(rank, 0, 0);
    exchange(
        problem,
        rank,
        problem.bytes(),
        |_| own,
        |queue, slots| {
            fold_slots(queue, problem, slots, rank, (own, problem.target(rank, 0, 0)));
        },
    )
}

/// Two levels. Each of the first `owners` ranks of a node is responsible for a slice of the vector;
/// for a short vector, the first rank for all of it. An owner combines its slice over the ranks of
/// its node, then with the owners of the same slice in the other nodes, and copies the result to
/// the ranks of its node. So about one vector leaves each node, sent by as many ranks as the
/// smallest node has.
fn two_level(problem: &Problem, rank: usize) -> Program {
    let nodes = nodes(problem);
    let short = is_small(problem, problem.bytes());
    let owners = if short { 1 } else { nodes.least() };
    in_turn(rank, |rank| {
        let beside = nodes.beside(rank);
        let index = beside.iter().position(|other| *other == rank).unwrap_or(0);
        let (alike, slice) = match index < owners {
            true => (nodes.indices(index), problem.part(problem.count, index, owners)),
            false => (Vec::new(), problem.part(0, 0, 1)),
        };
        // Between two ranks both algorithms send as many bytes, the first one in one step.
        let short = match alike.len() {
            2 => slice.size <= SHORT_OF_TWO,
            _ => is_short(problem, slice.size, SHORT),
        };
        let between = if short { recursive_doubling } else { rabenseifner };
        let count = slice.size / problem.width;
        let outer = Problem { count, in_place: true, ..problem.clone() };
        let outer = Part::new(rank, &alike, outer, between);
        let inner = |problem: &Problem, work: fn(&Problem, usize, usize) -> Program| {
            let work = |problem: &Problem, index| work(problem, index, owners);
            Part::new(rank, beside, problem.clone(), work)
        };
        let parts = vec![
            inner(problem, combine_slice),
            outer.at(move |place| place.plus(slice.offset)),
            inner(&Problem { in_place: true, ..problem.clone() }, give_slice),
        ];
        Parts { kept: 0, parts }
    })
}

/// The largest slice that nodes combine by recursive doubling, which sends few messages. Larger
/// ones they combine by Rabenseifner's algorithm, which sends few bytes.
const SHORT: u64 = 16 << 10;
/// See `SHORT`, for two nodes. The scratch memory of recursive doubling takes two such slices.
const SHORT_OF_TWO: u64 = 2 << 20;

/// Each of the first `owners` ranks combines its slice of all vectors into its own output.
fn combine_slice(problem: &Problem, rank: usize, owners: usize) -> Program {
    let ranks = problem.ranks;
    single(if rank < owners { piece(problem) } else { 0 }, |queue| {
        all_have_come(queue, ranks, rank, owners);
        if rank >= owners {
            return;
        }
        let slice = problem.part(problem.count, rank, owners);
        for (offset, size) in pieces(problem, slice.size, 0, 1) {
            let at = slice.offset + offset;
            let ends = [scratch(rank, 0), problem.target(rank, rank, at)];
            fold(queue, ranks, |peer| problem.source(peer, rank, at), ends, size);
        }
    })
}

/// The first `owners` ranks copy their slices of the result to all ranks.
fn give_slice(problem: &Problem, rank: usize, owners: usize) -> Program {
    single(0, |queue| {
        distribute(queue, (problem.ranks, rank, owners), |queue, peer| {
            let slice = problem.part(problem.count, rank, owners);
            let place = |rank: usize| problem.target(rank, rank, slice.offset);
            copy(queue, problem, place(rank), place(peer), slice.size);
        });
    })
}
