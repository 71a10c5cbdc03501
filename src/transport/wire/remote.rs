//! For every wire that reads and writes the memory of peers: the registrations of this rank's
//! memory ([`Memory`]), and the table of commands that the lane has taken and not completed
//! ([`Posted`]).

use super::ended::End;
use super::signals;
use super::{Caps, Command, Event, Key, Piece, Wire};
use crate::transport::remote::{Posting, What};
use crate::util::status::{Result, Status};
use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// A bit in the tags that [`Posted`] makes. The tags of frames count from 0 and do not have it.
const POSTED: u64 = 1 << 63;
/// How many registrations a look-up of a local buffer checks: the last ones that begin at or before
/// the buffer. More than one, since registrations may overlap.
const NEAR: usize = 4;

/// A registered region.
#[derive(Clone, Copy)]
struct Registered {
    start: usize,
    key: Key,
}

/// This rank's registrations, by the region's key.
#[derive(Default)]
struct Table {
    by_region: HashMap<u64, Registered>,
    /// Used only if local buffers need a key. Key: begin of the memory, and the region; value: its
    /// end, and the local key.
    by_address: BTreeMap<(usize, u64), (usize, u64)>,
}

/// The registrations of this rank's memory with the wire. Any thread may call.
pub struct Memory {
    wire: Arc<dyn Wire>,
    caps: Caps,
    table: Mutex<Table>,
}

impl Memory {
    /// A table without registrations.
    pub fn new(wire: Arc<dyn Wire>) -> Memory {
        let caps = wire.caps();
        Memory { wire, caps, table: Mutex::default() }
    }

    /// The abilities of the wire.
    pub fn caps(&self) -> &Caps {
        &self.caps
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Registers a region's memory, if the wire reads and writes memory.
    pub fn register(&self, region: u64, address: *mut u8, size: usize) -> Result<()> {
        if !self.caps.remote {
            return Ok(());
        }
        let (key, start) = (self.wire.register(address, size as u64)?, address as usize);
        let mut table = self.table();
        table.by_region.insert(region, Registered { start, key });
        if self.caps.needs_local_key {
            table.by_address.insert((start, region), (start + size, key.local));
        }
        Ok(())
    }

    /// Ends the registration of a region, if there is one; see [`Wire::deregister`].
    pub fn deregister(&self, region: u64, patience: Duration) -> Result<()> {
        let registered = {
            let mut table = self.table();
            let registered = table.by_region.remove(&region);
            if let Some(Registered { start, .. }) = registered {
                table.by_address.remove(&(start, region));
            }
            registered
        };
        registered.map_or(Ok(()), |registered| self.wire.deregister(&registered.key, patience))
    }

    /// Ends all registrations, before the wire is closed. Waits no longer than `patience`.
    pub fn deregister_all(&self, patience: Duration) {
        let limit = Instant::now() + patience;
        let regions: Vec<u64> = self.table().by_region.keys().copied().collect();
        for region in regions {
            // An error is ignored: close() ends the rest.
            let _ = self.deregister(region, limit.saturating_duration_since(Instant::now()));
        }
    }

    /// The address of a region in this process, and its remote key, for peers.
    pub fn wire_key(&self, region: u64) -> Option<(u64, [u64; 4])> {
        let table = self.table();
        table.by_region.get(&region).map(|it| (it.start as u64, it.key.wire))
    }

    /// The local buffer of an operation as a piece, and its flags. None: no registration covers the
    /// buffer, and the wire needs one.
    #[inline(always)]
    pub fn piece(&self, posting: &Posting) -> Option<(Piece, u32)> {
        let (address, size) = (posting.local.cast_const(), posting.size);
        match posting.what {
            What::Atomic { .. } => Some((Piece { address, size: 0, local: 0 }, 0)),
            What::Write | What::WriteSignal(_) if size <= self.caps.inline_most as u64 => {
                Some((Piece { address, size, local: 0 }, Command::INLINE))
            }
            _ if self.caps.needs_local_key => {
                let local = self.table().local_key(address as usize, size)?;
                Some((Piece { address, size, local }, 0))
            }
            _ => Some((Piece { address, size, local: 0 }, 0)),
        }
    }
}

impl Table {
    fn local_key(&self, first: usize, size: u64) -> Option<u64> {
        let end = first.checked_add(size as usize)?;
        let mut before = self.by_address.range(..=(first, u64::MAX)).rev().take(NEAR);
        before.find(|(_, (last, _))| end <= *last).map(|(_, (_, local))| *local)
    }
}

/// The command for an operation; `number` becomes its tag.
#[inline(always)]
pub fn command(posting: &Posting, number: u64, piece: *const Piece, flags: u32) -> Command {
    let (remote, wire, size) = (posting.remote, posting.key, posting.size);
    let mut command = Command { tag: number, flags, remote, wire, size, piece, ..Command::NOTHING };
    match posting.what {
        What::Read => command.op = Command::READ,
        What::Write => command.op = Command::WRITE,
        What::WriteSignal(signal) => {
            command.op = Command::WRITE;
            signals::put(&mut command, posting.tag, signal);
        }
        What::Atomic { op, kind, operand, compare } => {
            (command.op, command.atomic, command.kind) = (Command::ATOMIC, op, kind);
            (command.operand, command.compare) = (operand, compare);
            (command.pieces, command.piece) = (0, std::ptr::null());
        }
    }
    command
}

/// The commands that the lane has taken and not completed. The tag of a command contains an index
/// of this table and the index's generation, so a wire that reports a completion twice does not end
/// a later command.
#[derive(Default)]
pub struct Posted {
    /// For each index its generation, and, if in use, the engine's tag and the peer.
    places: Vec<(u32, Option<(u64, u32)>)>,
    free: Vec<u32>,
}

impl Posted {
    /// Whether insert() has made this tag.
    pub fn is_tag(tag: u64) -> bool {
        tag & POSTED != 0
    }

    /// Adds an operation for a peer, which the engine knows by `tag`. Returns the tag of the
    /// command.
    #[inline(always)]
    pub fn insert(&mut self, tag: u64, peer: u32) -> u64 {
        let index = self.free.pop().unwrap_or_else(|| {
            self.places.push((0, None));
            self.places.len() as u32 - 1
        });
        let (life, place) = &mut self.places[index as usize];
        *place = Some((tag, peer));
        POSTED | u64::from(*life) << 32 | u64::from(index)
    }

    /// Removes a command that the lane has completed or not taken, and returns the engine's tag.
    /// None: there is no such command.
    pub fn remove(&mut self, number: u64) -> Option<u64> {
        let (index, wanted) = (number as u32, (number & !POSTED) >> 32);
        let (life, place) = self.places.get_mut(index as usize)?;
        if u64::from(*life) != wanted {
            return None;
        }
        let (tag, _) = place.take()?;
        *life = (*life + 1) & (u32::MAX >> 1);
        self.free.push(index);
        Some(tag)
    }

    /// Removes the command of a completion event.
    pub fn end(&mut self, event: &Event) -> Option<End> {
        let (status, fetched) = (Status(event.status), event.fetched);
        self.remove(event.tag).map(|tag| End { tag, status, fetched })
    }

    /// Ends all commands for a dead peer with ERR_PEER_DEAD, after the fence. A correct wire has
    /// completed all of them before.
    pub fn end_all(&mut self, peer: u32) -> Vec<End> {
        let mut numbers = Vec::new();
        for (index, (life, place)) in self.places.iter().enumerate() {
            if place.is_some_and(|(_, to)| to == peer) {
                numbers.push(POSTED | u64::from(*life) << 32 | index as u64);
            }
        }
        let end = |tag| End { tag, status: Status::ERR_PEER_DEAD, fetched: 0 };
        numbers.into_iter().filter_map(|number| self.remove(number)).map(end).collect()
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    fn done(number: u64) -> Event {
        Event { tag: number, fetched: 9, ..Event::about(Event::DONE, 1) }
    }

    #[test]
    fn an_end_is_told_once_and_a_number_is_not_that_of_the_next() {
        let mut posted = Posted::default();
        let (first, second) = (posted.insert(70, 1), posted.insert(71, 2));
        assert!(Posted::is_tag(first) && first != second);
        let end = posted.end(&done(first)).unwrap();
        assert_eq!((end.tag, end.status, end.fetched), (70, Status::OK, 9));
        assert_eq!(posted.end(&done(first)), None);
        let third = posted.insert(72, 1);
        assert_eq!(third as u32, first as u32, "the place is used again");
        assert_eq!(posted.end(&done(first)), None);
        for forged in [0, POSTED, POSTED | 77, u64::MAX, third + (1 << 32)] {
            assert_eq!(posted.end(&done(forged)), None, "{forged:#x}");
        }
        let ended = posted.end_all(1);
        assert_eq!(ended, [End { tag: 72, status: Status::ERR_PEER_DEAD, fetched: 0 }]);
        assert_eq!(posted.end(&done(third)), None);
        assert_eq!(posted.end(&done(second)).unwrap().tag, 71);
    }

    /// A wire that hands out keys and needs them for local buffers.
    struct Keys;

    impl Wire for Keys {
        fn caps(&self) -> Caps {
            let (remote, needs_local_key, inline_most) = (true, true, 8);
            Caps { remote, needs_local_key, inline_most, ..Caps::default() }
        }

        fn card(&self) -> Result<Vec<u8>> {
            Ok(Vec::new())
        }

        fn register(&self, address: *mut u8, _: u64) -> Result<Key> {
            Ok(Key { local: address as u64 + 1, wire: [7; 4] })
        }

        fn lane(&self) -> Result<Box<dyn super::super::WireLane>> {
            unreachable!("nothing is sent")
        }
    }

    #[test]
    fn this_ranks_side_is_inline_or_registered_or_not_for_the_wire() {
        let memory = Memory::new(Arc::new(Keys));
        let place = |at: usize| std::ptr::without_provenance_mut::<u8>(at);
        let key = |at, size, what| {
            let posting = Posting { tag: 1, what, local: place(at), size, remote: 0, key: [0; 4] };
            memory.piece(&posting).map(|(piece, flags)| (piece.local, flags))
        };
        memory.register(5, place(1000), 100).unwrap();
        memory.register(6, place(2000), 100).unwrap();
        assert_eq!(key(1000, 100, What::Read), Some((1001, 0)));
        assert_eq!(key(2050, 50, What::Write), Some((2001, 0)));
        assert_eq!(key(1050, 51, What::Read), None);
        assert_eq!(key(999, 9, What::Write), None);
        assert_eq!(key(999, 8, What::Write), Some((0, Command::INLINE)));
        assert_eq!(key(999, 8, What::Read), None);
        let atomic = What::Atomic { op: 5, kind: 4, operand: 0, compare: 0 };
        assert_eq!(key(1, 8, atomic), Some((0, 0)));
        assert_eq!(memory.wire_key(6), Some((2000, [7; 4])));
        memory.deregister(6, Duration::ZERO).unwrap();
        assert!(memory.wire_key(6).is_none() && key(2050, 50, What::Write).is_none());
        memory.deregister(6, Duration::ZERO).unwrap();
    }
}
