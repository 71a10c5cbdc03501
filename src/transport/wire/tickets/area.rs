//! The registered memory of tickets, one registration: counters and slots, which peers use by
//! remote reads, writes and fetch-and-adds, and local buffers of this rank's own commands.
//!
//! - **SendCNT**, one for each line: senders change it by fetch-and-adds; the receiver reads it
//!   where nobody holds a ticket, and to see whether senders want a slot.
//! - **RecvCNT**, one for each line: the receiver stores it when it frees slots; senders read it.
//! - **Slots**, each a ticket, a size and a packet: the sender that holds the ticket writes it,
//!   while ticket < RecvCNT + SLOTS; the receiver reads it behind the notice.
//! - **Places**: this rank writes them before it posts a command, and its writes read them; its
//!   reads of a RecvCNT write them, and this rank reads them behind the completion.
//!
//! No processor changes a SendCNT. A sender writes a slot after it has read a RecvCNT that the
//! receiver stored behind its last use of the slot; the receiver reads the slot after its notice.

use super::{Place, SLOTS, SMALL};
use crate::transport::wire::grants::Line;
use crate::transport::wire::packet::FRAME_BEFORE;
use crate::transport::wire::{Key, Piece, Wire};
use crate::util::status::Result;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Bytes of a slot.
pub const SLOT: usize = 512;
/// Bytes of a slot before the packet: ticket and size.
const HEAD: usize = 16;
/// Most bytes of header and payload of a frame in a slot.
pub const MOST: usize = SLOT - HEAD - FRAME_BEFORE;
/// Commands that may be under way from this rank at a time: one command for each peer whose slots
/// it may use, and so many more.
pub const PLACES: usize = PEERS + SHARED;
/// Most receivers whose offers are kept.
pub const PEERS: usize = 64;
/// How many commands may be under way beyond one for each peer: places that all peers share.
pub const SHARED: usize = 16;

const WORD: usize = 8;
/// Words of a line of the cache, so that counters do not share one.
const APART: usize = 8;
const SLOT_WORDS: usize = SLOT / WORD;
/// Where the slots begin, and the places.
const FIRST_SLOT: usize = 2 * SMALL * APART;
const FIRST_PLACE: usize = FIRST_SLOT + SMALL * SLOTS as usize * SLOT_WORDS;
const WORDS: usize = FIRST_PLACE + PLACES * SLOT_WORDS;
/// Bytes of an area.
pub const BYTES: usize = WORDS * WORD;

/// See the head of the file.
pub struct Area {
    words: Box<[AtomicU64]>,
    key: Key,
    wire: Arc<dyn Wire>,
    registered: bool,
    /// Places that nobody uses.
    free: Vec<usize>,
}

/// The words of an area, by their distance from its beginning.
pub fn taken_at(line: Line) -> u64 {
    (line * APART * WORD) as u64
}

/// See [`taken_at`].
pub fn freed_at(line: Line) -> u64 {
    ((SMALL + line) * APART * WORD) as u64
}

/// See [`taken_at`].
pub fn slot_at(line: Line, ticket: u64) -> u64 {
    ((FIRST_SLOT + index(line, ticket) * SLOT_WORDS) * WORD) as u64
}

/// The number of a slot among those of all lines, which its notice says.
pub fn index(line: Line, ticket: u64) -> usize {
    line * SLOTS as usize + (ticket % SLOTS) as usize
}

impl Area {
    /// Registers it.
    pub fn new(wire: Arc<dyn Wire>) -> Result<Area> {
        let words: Box<[AtomicU64]> = (0..WORDS).map(|_| AtomicU64::new(0)).collect();
        let key = wire.register(words.as_ptr().cast_mut().cast(), BYTES as u64)?;
        Ok(Area { words, key, wire, registered: true, free: (0..PLACES).collect() })
    }

    /// Ends the registration: after the return nothing lands in the area. The wire is not closed
    /// yet, except where the registration has ended before.
    pub fn deregister(&mut self) {
        if std::mem::take(&mut self.registered) {
            // An error is ignored: close() ends the rest.
            let _ = self.wire.deregister(&self.key, Duration::ZERO);
        }
    }

    /// What peers need.
    pub fn place(&self) -> Place {
        Place { start: self.words.as_ptr() as u64, key: self.key.wire }
    }

    /// The first ticket that nobody has.
    pub fn taken(&self, line: Line) -> u64 {
        self.words[line * APART].load(Ordering::Acquire)
    }

    /// Slots of tickets below this one, plus SLOTS, may be written.
    pub fn set_freed(&self, line: Line, ticket: u64) {
        // Release: a sender that reads the count writes the slots after this thread has read
        // them.
        self.words[(SMALL + line) * APART].store(ticket, Ordering::Release);
    }

    /// Ticket and packet in a slot whose notice has come. None: the size is none.
    pub fn slot(&self, index: usize) -> Option<(u64, Vec<u8>)> {
        let words = &self.words[FIRST_SLOT + index * SLOT_WORDS..][..SLOT_WORDS];
        // Relaxed: the notice orders them.
        let word = |at: usize| words[at].load(Ordering::Relaxed);
        let size = usize::try_from(word(1)).ok().filter(|size| *size <= SLOT - HEAD)?;
        let mut bytes: Vec<u8> =
            (2..2 + size.div_ceil(WORD)).flat_map(|at| word(at).to_ne_bytes()).collect();
        bytes.truncate(size);
        Some((word(0), bytes))
    }

    /// A place for a command. None: all are in use.
    pub fn reserve(&mut self) -> Option<usize> {
        self.free.pop()
    }

    /// The command of a place has ended.
    pub fn release(&mut self, place: usize) {
        self.free.push(place);
    }

    /// Puts the bytes of a slot into a place; how many they are.
    pub fn fill(&self, place: usize, ticket: u64, packet: &[u8]) -> u64 {
        let words = &self.words[FIRST_PLACE + place * SLOT_WORDS..][..SLOT_WORDS];
        // Relaxed: post() orders them.
        words[0].store(ticket, Ordering::Relaxed);
        words[1].store(packet.len() as u64, Ordering::Relaxed);
        for (word, bytes) in words[2..].iter().zip(packet.chunks(WORD)) {
            let mut all = [0; WORD];
            all[..bytes.len()].copy_from_slice(bytes);
            word.store(u64::from_ne_bytes(all), Ordering::Relaxed);
        }
        (HEAD + packet.len()) as u64
    }

    /// What a read has brought into a place.
    pub fn read(&self, place: usize) -> u64 {
        self.words[FIRST_PLACE + place * SLOT_WORDS].load(Ordering::Acquire)
    }

    /// A place as a piece of a command.
    pub fn piece(&self, place: usize, size: u64) -> Piece {
        let address = self.words[FIRST_PLACE + place * SLOT_WORDS..].as_ptr().cast();
        Piece { address, size, local: self.key.local }
    }
}

impl Drop for Area {
    fn drop(&mut self) {
        self.deregister();
    }
}
