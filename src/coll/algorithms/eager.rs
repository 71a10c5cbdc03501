//! Eager forms: a rank that has data puts them into scratch memory of their receiver, which need
//! not be ready. Only a rank's own steps touch its user's buffers. Each byte is copied twice, so
//! this is for small sizes.
//!
//! Every rank has a slot for each rank that sends to it. A slot of up to 60 bytes is a cell, whose
//! line holds data and signal. The slots are there several times, in turns, round by round. What
//! keeps a sender from writing a slot that has not been read yet:
//!
//! - **one way** (rooted operations, scan): the receiver says once in a quarter of the turns what
//!   it has read, and the sender asks as often. So the sender may be as many rounds ahead as there
//!   are turns, less one quarter.
//! - **mutual** (every rank waits for every other one in each round): two turns are enough and
//!   nothing is said. A sender that begins round n + 1 has the data of round n of the receiver,
//!   which therefore has ended round n - 1 and read that round's slot.

use super::blocks::others;
use crate::coll::problem::Problem;
use crate::coll::schedule::{Appender, CELL, CELL_WORD, Place, Program, cell, scratch};

/// Most turns: a sender does so many rounds while it has a core, and the receiver takes them when
/// it has one.
const MOST_TURNS: u64 = 256;
/// All turns of the slots of one rank take at most so many bytes, if two turns do: more would not
/// stay in the caches.
const ALL_TURNS: u64 = 32 << 10;

/// The slots of each rank.
#[derive(Clone, Copy)]
pub struct Slots {
    bytes: u64,
    turns: u32,
    one_way: bool,
}

impl Slots {
    /// For blocks of so many bytes, of which a rank gets up to `most` in a round and does not
    /// answer them.
    pub fn one_way(bytes: u64, most: usize) -> Slots {
        let slots = Slots { bytes, turns: 0, one_way: true };
        let turns = ALL_TURNS / (slots.size() * most as u64);
        let turns = turns.clamp(2, MOST_TURNS);
        Slots { turns: 1 << turns.ilog2(), ..slots }
    }

    /// Like `one_way`, where in each round every rank sends to every other.
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

    /// In how many rounds once the receiver says what it has read.
    fn every(&self) -> u32 {
        (self.turns / 4).max(1)
    }

    /// A program of one queue, of a rank with `count` slots.
    pub fn program(&self, count: usize, fill: impl FnOnce(&mut Appender)) -> Program {
        let scratch = self.size() * count as u64;
        let mut program = Program { scratch, turns: self.turns, ..Program::new(1) };
        fill(&mut program.queue(0));
        program
    }

    /// Slot `number` of `rank`.
    pub fn place(&self, rank: usize, number: usize) -> Place {
        match self.is_cell() {
            true => cell(rank, number),
            false => scratch(rank, number as u64 * self.size()),
        }
    }

    /// Puts the bytes at `from` into slot `number` of `to`, when that may be written, and tells.
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

    /// The next step waits for what `from` puts into slot `number` of `rank`, whose program this
    /// is.
    pub fn wait(&self, queue: &mut Appender, from: usize, rank: usize, number: usize) -> Place {
        match self.is_cell() {
            true => queue.wait_cell(from, number),
            false => queue.wait(from, 1),
        };
        self.place(rank, number)
    }

    /// Says, where that must be said, that what `from` has put has been read by what was appended
    /// last.
    pub fn has_read(&self, queue: &mut Appender, from: usize) {
        if self.one_way {
            queue.signal_every(from, 0, self.every());
        }
    }
}

/// The number of the slot of `peer` at `rank`: a rank has none for itself.
pub fn number(peer: usize, rank: usize) -> usize {
    peer - usize::from(peer > rank)
}

/// Appends the combination, in the order of ranks, of what the others put into the slots of `rank`
/// with its own bytes. `to` may be where its own bytes lie; partial results lie in the slot behind
/// those of the others.
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

/// The forms in which every rank has a block for every other: `from(peer)` is where it lies, `fill`
/// appends what is done with what comes.
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

/// The exchange in which each rank copies the blocks that come to where they belong.
pub fn exchange_blocks(problem: &Problem, rank: usize) -> Program {
    let bytes = problem.bytes();
    let from = |peer: usize| problem.source(rank, peer, 0);
    exchange(problem, rank, bytes, from, |queue, slots| {
        queue.copy(from(rank), problem.target(rank, rank, 0), bytes);
        // In the order in which the others, in step with this rank, have put them.
        for peer in others(rank, problem.ranks).rev() {
            let slot = slots.wait(queue, peer, rank, number(peer, rank));
            queue.copy(slot, problem.target(rank, peer, 0), bytes);
        }
    })
}
