//! Eager algorithms: a rank that has data puts them into scratch memory of the receiver, which need
//! not be ready. Only a rank's own steps access the buffers of its user. Each byte is copied twice,
//! so this is for small sizes.
//!
//! Every rank has a slot for each rank that sends to it. A slot of up to 60 bytes is a cell, whose
//! line holds data and signal. Each slot exists in several copies, which rounds use in turn. A
//! sender must not overwrite a slot that was not read yet:
//!
//! - **one way** (rooted operations, scan): after each quarter of the copies the receiver signals
//!   that it has read them, and the sender waits for this signal before it writes them again. So
//!   the sender may be three quarters of the copies ahead without waiting.
//! - **mutual** (in each round every rank waits for every other one): two turns are enough, and the
//!   receiver signals nothing. A sender that begins round n + 1 has the receiver's data of round n;
//!   so the receiver has ended round n - 1 and has read the slot of that round.

use super::blocks::others;
use crate::coll::problem::Problem;
use crate::coll::schedule::{Appender, CELL, CELL_WORD, Place, Program, cell, scratch};

/// The most copies, here called turns. A sender that has a core can run about so many rounds before
/// a receiver that waits for a core reads the first one.
const MOST_TURNS: u64 = 256;
/// The most bytes of all copies of one rank's slots, unless there are only two copies. More would
/// not stay in the caches.
const ALL_TURNS: u64 = 32 << 10;

/// The slots of each rank.
#[derive(Clone, Copy)]
pub struct Slots {
    bytes: u64,
    turns: u32,
    one_way: bool,
}

impl Slots {
    /// Slots for blocks of `bytes` bytes. In a round a rank receives up to `most` blocks, and the
    /// senders receive none from it.
    pub fn one_way(bytes: u64, most: usize) -> Slots {
        let slots = Slots { bytes, turns: 0, one_way: true };
        let turns = ALL_TURNS / (slots.size() * most as u64);
        let turns = turns.clamp(2, MOST_TURNS);
        Slots { turns: 1 << turns.ilog2(), ..slots }
    }

    /// Like `one_way`, but in each round every rank sends to every other one.
    pub fn mutual(bytes: u64) -> Slots {
        Slots { bytes, turns: 2, one_way: false }
    }

    fn is_cell(&self) -> bool {
        self.bytes <= CELL - CELL_WORD
    }

    /// Bytes of a slot.
    fn size(&self) -> u64 {
        self.bytes.next_multiple_of(CELL).max(CELL)
    }

    /// The number of rounds after which the receiver signals that it has read their slots.
    fn every(&self) -> u32 {
        (self.turns / 4).max(1)
    }

    /// A program of one queue for a rank with `count` slots; `fill` appends the steps.
    pub fn program(&self, count: usize, fill: impl FnOnce(&mut Appender)) -> Program {
        let scratch = self.size() * count as u64;
        let mut program = Program { scratch, turns: self.turns, ..Program::new(1) };
        fill(&mut program.queue(0));
        program
    }

    /// The place of slot `number` of `rank`.
    pub fn place(&self, rank: usize, number: usize) -> Place {
        match self.is_cell() {
            true => cell(rank, number),
            false => scratch(rank, number as u64 * self.size()),
        }
    }

    /// Puts the bytes at `from` into slot `number` of `to` and signals. If necessary, it first
    /// waits until the slot may be overwritten.
    pub fn put(&self, queue: &mut Appender, from: Place, to: usize, number: usize) {
        if self.one_way {
            queue.wait_read(to, self.turns, self.every());
        }
        queue.copy(from, self.place(to, number), self.bytes);
        match self.is_cell() {
            true => queue.signal_cell(to, 0, number),
            false => queue.signal(to, 0),
        };
    }

    /// Makes the next step wait until `from` has put data into slot `number` of `rank`, the owner
    /// of this program. Returns the slot.
    pub fn wait(&self, queue: &mut Appender, from: usize, rank: usize, number: usize) -> Place {
        match self.is_cell() {
            true => queue.wait_cell(from, number),
            false => queue.wait(from, 1),
        };
        self.place(rank, number)
    }

    /// Signals to `from`, if it needs the signal, that the steps so far have read its slot.
    pub fn has_read(&self, queue: &mut Appender, from: usize) {
        if self.one_way {
            queue.signal_every(from, 0, self.every());
        }
    }
}

/// The number of `peer`'s slot at `rank`; a rank has no slot for itself.
pub fn number(peer: usize, rank: usize) -> usize {
    peer - usize::from(peer > rank)
}

/// Combines the bytes in the slots of `rank` with its own bytes, in the order of ranks. `ends`: the
/// place of its own bytes and that of the result, which may be equal. Partial results are stored in
/// an additional slot, the last one.
pub fn fold(
    queue: &mut Appender,
    problem: &Problem,
    slots: Slots,
    rank: usize,
    ends: (Place, Place),
) {
    let (own, to) = ends;
    let partial = slots.place(rank, problem.ranks - 1);
    let mut left = own;
    for peer in 0..problem.ranks {
        let mut right = own;
        if peer != rank {
            right = slots.wait(queue, peer, rank, number(peer, rank));
        }
        if peer > 0 {
            let last = peer + 1 == problem.ranks;
            queue.combine(left, right, if last { to } else { partial }, slots.bytes);
            right = partial;
        }
        if peer != rank && peer > 0 {
            slots.has_read(queue, peer);
        }
        left = right;
    }
    if rank > 0 {
        slots.has_read(queue, 0);
    }
}

/// A program in which every rank has a block for every other one. `from(peer)`: the place of the
/// block for `peer`. `fill` appends the steps that use the blocks which arrive.
pub fn exchange(
    problem: &Problem,
    rank: usize,
    bytes: u64,
    from: impl Fn(usize) -> Place,
    fill: impl FnOnce(&mut Appender, Slots),
) -> Program {
    let slots = Slots::mutual(bytes);
    slots.program(problem.ranks, |queue| {
        for peer in others(rank, problem.ranks) {
            slots.put(queue, from(peer), peer, number(rank, peer));
        }
        fill(queue, slots);
    })
}

/// The exchange in which each rank copies the blocks that arrive to its output.
pub fn exchange_blocks(problem: &Problem, rank: usize) -> Program {
    let bytes = problem.bytes();
    let from = |peer: usize| problem.source(rank, peer, 0);
    exchange(problem, rank, bytes, from, |queue, slots| {
        queue.copy(from(rank), problem.target(rank, rank, 0), bytes);
        // This is the order in which the blocks arrive if all ranks begin at the same time.
        for peer in others(rank, problem.ranks).rev() {
            let slot = slots.wait(queue, peer, rank, number(peer, rank));
            queue.copy(slot, problem.target(rank, peer, 0), bytes);
        }
    })
}
