//! Steps as they lie in a session: records of fixed size, made at init, read by the threads that
//! run them.

use crate::coll::runner::queue::NO_TAIL;
use crate::coll::schedule::{Action, Place, Program, QUEUES, Signal, Space, Step};
use std::collections::HashMap;

/// No rank.
pub const NOBODY: u16 = u16::MAX;

/// What a record does with bytes.
pub mod act {
    #![allow(missing_docs)]
    pub const NOTHING: u8 = 0;
    pub const COPY: u8 = 1;
    pub const COMBINE: u8 = 2;
    pub const PUT: u8 = 3;
}

/// What a record of a put says in the place of its right operand, of which it has none: the number
/// of its edge, its queue, and whether it signals. Its signal is no part of the record otherwise.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Edge {
    /// See edges().
    pub number: usize,
    /// The sender's queue.
    pub queue: usize,
    /// The rank that gets the bytes is signalled.
    pub signals: bool,
}

impl Edge {
    fn encode(self) -> u64 {
        self.number as u64 | (self.queue as u64) << 32 | u64::from(self.signals) << 40
    }

    /// That of a record.
    pub fn of(record: Lying) -> Edge {
        let (_, _, word) = record.place(1);
        let (number, queue) = (word as u32 as usize, (word >> 32) as usize & (QUEUES - 1));
        Edge { number, queue, signals: word >> 40 & 1 == 1 }
    }
}

/// One step; a cache line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C, align(64))]
pub struct Record {
    /// Signals of `wait_from` in this round.
    pub wait_count: u32,
    /// All that it sends to this queue in a round. Where it signals in a cell that is 1, and this
    /// is the cell's number.
    pub wait_total: u32,
    /// Which signal of this round's to that queue this step sends.
    pub signal_count: u32,
    /// How many there are in a round. Where it signals in a cell that is 1, and this is the cell's
    /// number.
    pub signal_total: u32,
    /// Whose signals, or NOBODY.
    pub wait_from: u16,
    /// Whom to signal, or NOBODY.
    pub signal_rank: u16,
    /// Whose memory: left operand or source, right operand, result.
    pub ranks: [u16; 3],
    /// Which of its queues to signal.
    pub signal_queue: u8,
    /// One of `act`.
    pub action: u8,
    /// Which memory of each rank, as in Space.
    pub spaces: [u8; 3],
    /// See Marks.
    pub marks: Marks,
    /// Where in it.
    pub offsets: [u64; 3],
    /// Bytes.
    pub size: u64,
}

/// A record where it lies. Peers can write there: a field is read once, by the function that has
/// its name, and a thread that uses what it says checks that first.
#[derive(Clone, Copy)]
pub struct Lying(*const Record);

macro_rules! fields {
    ($($field:ident: $kind:ty),*) => {
        impl Lying {
            $(
                /// The field as it is now.
                #[inline(always)]
                pub fn $field(self) -> $kind {
                    // SAFETY: as new() was promised. Volatile: the compiler does not read it a
                    // second time.
                    unsafe { (&raw const (*self.0).$field).read_volatile() }
                }
            )*
        }
    };
}

fields! {
    wait_count: u32, wait_total: u32, signal_count: u32, signal_total: u32, wait_from: u16, signal_rank: u16,
    signal_queue: u8, action: u8, marks: Marks, size: u64
}

impl Lying {
    /// The record at a place.
    ///
    /// # Safety
    /// It stays readable as long as this is used.
    #[inline(always)]
    pub unsafe fn new(place: *const Record) -> Lying {
        Lying(place)
    }

    /// One of its three places: rank, space and offset.
    #[inline(always)]
    pub fn place(self, which: usize) -> (u16, u8, u64) {
        assert!(which < 3);
        // SAFETY: as new() was promised, and the three have so many elements each. Volatile: as
        // above.
        unsafe {
            let rank = (&raw const (*self.0).ranks).cast::<u16>().add(which).read_volatile();
            let space = (&raw const (*self.0).spaces).cast::<u8>().add(which).read_volatile();
            let offset = (&raw const (*self.0).offsets).cast::<u64>().add(which).read_volatile();
            (rank, space, offset)
        }
    }
}

/// How a record waits and signals: bit 0 and 1 whether by a cell, from bit 2 and 5 the exponents of
/// how often.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(transparent)]
pub struct Marks(u8);

impl Marks {
    fn new(step: &Step) -> Marks {
        let (wait, signal) = (step.wait, step.signal);
        let exponent = |every: Option<u32>| {
            let exponent = every.map_or(0, u32::ilog2) as u8;
            assert!(exponent < 8 && every.is_none_or(u32::is_power_of_two), "{step:?}");
            exponent
        };
        let cells = u8::from(wait.is_some_and(|wait| wait.cell.is_some()))
            | u8::from(signal.is_some_and(|signal| signal.cell.is_some())) << 1;
        let every = exponent(wait.map(|wait| wait.every)) << 2;
        Marks(cells | every | exponent(signal.map(|signal| signal.every)) << 5)
    }

    /// It waits for a signal in the cell.
    #[inline(always)]
    pub fn waits_for_cell(self) -> bool {
        self.0 & 1 != 0
    }

    /// It signals in the cell.
    #[inline(always)]
    pub fn signals_in_cell(self) -> bool {
        self.0 & 2 != 0
    }

    /// Whether it waits in this round.
    #[inline(always)]
    pub fn waits_in(self, round: u32) -> bool {
        round & ((1 << (self.0 >> 2 & 7)) - 1) == 0
    }

    /// Whether it signals in this round.
    #[inline(always)]
    pub fn signals_in(self, round: u32) -> bool {
        round.wrapping_add(1) & ((1 << (self.0 >> 5)) - 1) == 0
    }
}

/// The ranks of other nodes to which the queues of a program put, each with the queue: what goes
/// over one such edge is put in order at its end.
pub fn edges(program: &Program) -> Vec<(usize, usize)> {
    let mut edges = Vec::new();
    for (at, queue) in program.queues.iter().enumerate() {
        edges.extend(queue.iter().filter_map(|step| Some((step.puts_to(&program.far)?, at))));
    }
    edges.sort_unstable();
    edges.dedup();
    edges
}

/// The records of all queues of a rank, one after the other.
pub fn compile(program: &Program) -> Vec<Record> {
    let mut sent: HashMap<(usize, usize), u32> = HashMap::new();
    for signal in program.queues.iter().flatten().filter_map(|step| step.signal) {
        *sent.entry((signal.rank, signal.queue)).or_default() += 1;
    }
    let mut counts: HashMap<(usize, usize), u32> = HashMap::new();
    let mut records = Vec::new();
    let edges = edges(program);
    for (at, queue) in program.queues.iter().enumerate() {
        let mut totals: HashMap<usize, u32> = HashMap::new();
        for wait in queue.iter().filter_map(|step| step.wait) {
            let total = totals.entry(wait.from).or_default();
            *total = wait.count.max(*total);
        }
        for step in queue {
            let mut record = record(step);
            if let Some(wait) = step.wait {
                record.wait_total = wait.cell.unwrap_or(totals[&wait.from]);
                if let Some(rounds) = wait.late.checked_sub(1) {
                    // Of the count that is sought, so many rounds less than at the beginning of
                    // this one.
                    record.wait_count = (wait.count * rounds).wrapping_neg();
                }
            }
            if let Some(Signal { rank, queue, cell, .. }) = step.signal {
                let count = counts.entry((rank, queue)).or_default();
                *count += 1;
                let total = cell.unwrap_or(sent[&(rank, queue)]);
                (record.signal_count, record.signal_total) = (*count, total);
            }
            if let Some(to) = step.puts_to(&program.far) {
                let signals = step.signal.is_some();
                let number = edges.binary_search(&(to, at)).unwrap_or(0);
                record.action = act::PUT;
                record.signal_rank = NOBODY;
                record.ranks[2] = to as u16;
                record.offsets[1] = Edge { number, queue: at, signals }.encode();
            }
            records.push(record);
        }
    }
    records
}

/// Where the tail of a queue begins: the last steps, of at most so many bytes in all, for none of
/// which another rank waits. (What a step tells once in several rounds is only that memory has been
/// read.) NO_TAIL: the last step is none.
pub fn tail(steps: &[Step], most: u64) -> u32 {
    let mut bytes = 0;
    let is_tail = |step: &&Step| {
        bytes += match step.action {
            Action::Nothing => 0,
            Action::Copy { size, .. } | Action::Combine { size, .. } => size,
        };
        bytes <= most && step.signal.is_none_or(|signal| signal.every > 1)
    };
    match steps.iter().rev().take_while(is_tail).count() {
        0 => NO_TAIL,
        count => (steps.len() - count) as u32,
    }
}

fn record(step: &Step) -> Record {
    let nowhere = Place { rank: 0, space: Space::Send, offset: 0 };
    let (action, places, size) = match step.action {
        Action::Nothing => (act::NOTHING, [nowhere; 3], 0),
        Action::Copy { from, to, size } => (act::COPY, [from, nowhere, to], size),
        Action::Combine { left, right, to, size } => (act::COMBINE, [left, right, to], size),
    };
    Record {
        wait_count: step.wait.map_or(0, |wait| wait.count),
        wait_total: 0,
        signal_count: 0,
        signal_total: 0,
        wait_from: step.wait.map_or(NOBODY, |wait| wait.from as u16),
        signal_rank: step.signal.map_or(NOBODY, |signal| signal.rank as u16),
        ranks: places.map(|place| place.rank as u16),
        signal_queue: step.signal.map_or(0, |signal| signal.queue as u8),
        action,
        spaces: places.map(|place| place.space as u8),
        marks: Marks::new(step),
        offsets: places.map(|place| place.offset),
        size,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tail_begins_behind_the_last_step_that_others_wait_for() {
        let place = |offset| Place { rank: 0, space: Space::Receive, offset };
        let mut program = Program::new(1);
        let mut queue = program.queue(0);
        queue.copy(place(0), place(100), 8).signal(1, 0);
        queue.wait(1, 1).copy(place(0), place(100), 8).signal_every(1, 0, 16);
        queue.wait(2, 1).copy(place(0), place(100), 90);
        drop(queue);
        let steps = &program.queues[0];
        assert_eq!((tail(steps, 98), tail(steps, 97), tail(steps, 89)), (1, 2, NO_TAIL));
        assert_eq!((tail(&steps[..1], 98), tail(&[], 98)), (NO_TAIL, NO_TAIL));
    }
}
