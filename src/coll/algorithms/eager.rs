//! Eager algorithms: a rank that has data puts them into scratch memory of the receiver, which need
//! not be ready. Only a rank's own steps touch its user's buffers. Each byte is copied twice, so
//! this is for small sizes.
//!
//! Every rank has a slot for each rank that sends to it. A slot of up to 60 bytes is a cell, whose
//! line holds data and signal. Each slot exists in several copies, which rounds use in turn. A
//! sender must not overwrite a slot that was not read yet:
//!
//! - **one way** (rooted operations, scan): once in a quarter of the turns the receiver signals
//!   what it has read, and the sender waits for that signal as often. So the sender may be up to
//!   three quarters of the turns ahead without waiting.
//! - **mutual** (in each round every rank waits for every other one): two turns are enough, and the
//!   receiver signals nothing. A sender that begins round n + 1 has the receiver's data of round n;
//!   so the receiver has ended round n - 1 and has read the slot of that round.

use super::blocks::others;
use crate::coll::problem::Problem;
use crate::coll::schedule::{Appender, CELL, CELL_WORD, Place, Program, cell, scratch};

/// Most turns. A sender that has a core can run so many rounds before the receiver, which may have
/// to wait for its core, reads them.
const MOST_TURNS: u64 = 256;
/// All copies of one rank's slots take at most so many bytes, unless there are only two: more would
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
    /// For blocks of `bytes` bytes. In a round a rank receives up to `most` blocks and sends none
    /// back.
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

    /// Once in how many rounds the receiver signals what it has read.
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

    /// Puts the bytes at `from` into slot `number` of `to` as soon as that may be overwritten, and
    /// signals.
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

    /// Lets the next step wait for what `from` puts into slot `number` of `rank`, the owner of this
    /// program. Returns the slot.
    pub fn wait(&self, queue: &mut Appender, from: usize, rank: usize, number: usize) -> Place {
        match self.is_cell() {
            true => queue.wait_cell(from, number),
            false => queue.wait(from, 1),
        };
        self.place(rank, number)
    }

    /// Signals, where a signal is needed, that the steps so far have read what `from` has put.
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

/// Combines the bytes in the slots of `rank` with its own ones, in the order of ranks. `ends`:
/// where its own bytes lie and where the result goes, which may be the same place. Partial results
/// lie in an additional slot, the last one.
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

/// A round in which every rank has a block for every other one. `from(peer)`: where the block for
/// `peer` lies. `fill` appends the steps that take the blocks which arrive.
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
        // In the order in which the other ranks put them if all are in step.
        for peer in others(rank, problem.ranks).rev() {
            let slot = slots.wait(queue, peer, rank, number(peer, rank));
            queue.copy(slot, problem.target(rank, peer, 0), bytes);
        }
    })
}
