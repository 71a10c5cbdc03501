//! Records: the form of steps in a session. A record is a cache line, which is written when the
//! plan is made and read by the threads that run the step.

use crate::coll::runner::queue::NO_TAIL;
use crate::coll::schedule::{Action, Place, Program, QUEUES, Signal, Space, Step};
use std::collections::HashMap;

/// The number that stands for no rank.
pub const NOBODY: u16 = u16::MAX;

/// The action of a record.
pub mod act {
    #![allow(missing_docs)]
    pub const NOTHING: u8 = 0;
    pub const COPY: u8 = 1;
    pub const COMBINE: u8 = 2;
    pub const PUT: u8 = 3;
}

/// The edge of a record with the action PUT. The record stores it in the offset of its right
/// operand, which a put does not have. The record's `signal_rank` is NOBODY, since the put carries
/// the signal and the thread that runs the step stores none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Edge {
    /// The index of the (rank, queue) pair in edges().
    pub number: usize,
    /// The sender's queue.
    pub queue: usize,
    /// Whether the rank that receives the bytes is signalled too.
    pub signals: bool,
}

impl Edge {
    fn encode(self) -> u64 {
        self.number as u64 | (self.queue as u64) << 32 | u64::from(self.signals) << 40
    }

    /// Decodes the edge of a PUT record.
    pub fn of(record: RecordRef) -> Edge {
        let (_, _, word) = record.place(1);
        let (number, queue) = (word as u32 as usize, (word >> 32) as usize & (QUEUES - 1));
        Edge { number, queue, signals: word >> 40 & 1 == 1 }
    }
}

/// One step; a cache line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C, align(64))]
pub struct Record {
    /// The step waits until `wait_from` has sent so many signals in this round.
    pub wait_count: u32,
    /// How many signals `wait_from` sends to this queue in a round. For a wait in a cell: the
    /// number of the cell (there is one signal in a round).
    pub wait_total: u32,
    /// The number of this step's signal among those that this rank sends to that queue in a round.
    pub signal_count: u32,
    /// How many signals this rank sends to that queue in a round. For a signal in a cell: the
    /// number of the cell.
    pub signal_total: u32,
    /// The rank whose signals the step waits for, or NOBODY.
    pub wait_from: u16,
    /// The rank to signal, or NOBODY.
    pub signal_rank: u16,
    /// For each operand the rank in whose memory it is: left operand or source, right operand,
    /// result.
    pub ranks: [u16; 3],
    /// The queue of `signal_rank` that is signalled.
    pub signal_queue: u8,
    /// One of `act`.
    pub action: u8,
    /// For each operand the memory of that rank, as in Space.
    pub spaces: [u8; 3],
    /// See Marks.
    pub marks: Marks,
    /// For each operand the offset in that memory.
    pub offsets: [u64; 3],
    /// Bytes of each operand.
    pub size: u64,
}

/// A pointer to a record in a session. Peers can write there, so each access function reads its
/// field exactly once, and the caller checks the value before it relies on it.
#[derive(Clone, Copy)]
pub struct RecordRef(*const Record);

macro_rules! fields {
    ($($field:ident: $kind:ty),*) => {
        impl RecordRef {
            $(
                /// Reads the field.
                #[inline(always)]
                pub fn $field(self) -> $kind {
                    // SAFETY: by the promise to new(). Volatile: the compiler must not read the
                    // field a second time.
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

impl RecordRef {
    /// Points to the record at a place.
    ///
    /// # Safety
    /// The memory stays readable as long as this value is used.
    #[inline(always)]
    pub unsafe fn new(place: *const Record) -> RecordRef {
        RecordRef(place)
    }

    /// Operand 0, 1 or 2: rank, space and offset.
    #[inline(always)]
    pub fn place(self, which: usize) -> (u16, u8, u64) {
        assert!(which < 3);
        // SAFETY: by the promise to new(), and each of the arrays has three elements. Volatile: as
        // above.
        unsafe {
            let rank = (&raw const (*self.0).ranks).cast::<u16>().add(which).read_volatile();
            let space = (&raw const (*self.0).spaces).cast::<u8>().add(which).read_volatile();
            let offset = (&raw const (*self.0).offsets).cast::<u64>().add(which).read_volatile();
            (rank, space, offset)
        }
    }
}

/// How a record waits and signals. Bit 0: it waits in a cell; bit 1: it signals in a cell; bits 2-4
/// and 5-7: the binary logarithm of the number of rounds in which it waits, or signals, once.
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

    /// Whether the step waits for a signal in a cell.
    #[inline(always)]
    pub fn waits_for_cell(self) -> bool {
        self.0 & 1 != 0
    }

    /// Whether the step signals in a cell.
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

/// The edges of a program: the pairs of a rank of another node and a queue of this rank that puts
/// to that rank. The receiver orders the signals of each edge.
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
                    // A late wait needs no signals of this round and of the `late - 1` rounds
                    // before it.
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

/// The first step of a queue's tail: the longest row of last steps that move at most `most` bytes
/// together and for which no other rank waits in this round. (A signal that is sent once in several
/// rounds only reports that memory was read, so a step with such a signal may be in the tail.)
/// NO_TAIL: there is no such step.
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
