//! How the ranks of a team exchange small amounts of data, for instance their parameters when they
//! make a plan. An exchange takes log n steps, in each of which a rank writes on the board of one
//! other rank.
//!
//! Every rank has a board in its own memory, which other ranks find by the name of the team. In
//! step k rank r writes what it has gathered so far on the board of rank r + 2^k, and waits until
//! rank r - 2^k has written on its own board (Bruck's allgather). A board has two sheets for each
//! step, which exchanges use in turn. So a rank that has written a sheet in exchange e writes it
//! again in e + 2. Before that it has ended e + 1, so it has learned, directly or through other
//! ranks, that every rank has begun e + 1. A rank that has begun e + 1 has read all its sheets of
//! e.
//!
//! A sheet also holds a verdict: the lowest rank that could not do its part, and why.
//!
//! Before its first step a rank finds the boards of all ranks to which it writes. If it cannot, or
//! if it ends an exchange early for another reason, it writes the failure on its own board. The
//! ranks that write on that board read the failure while they wait, and write it on their own
//! boards too. So all ranks learn of the failure, even those that the first rank could not reach.
//!
//! A rank may be unable to find a board for a time only, for instance for lack of file descriptors.
//! Its board then holds the number of the last failed exchange, and the next exchange tries again.
//! One number is enough: as long as a rank has not found its boards, no exchange succeeds at any
//! rank, so all exchanges up to that number have failed. For the same reason a rank may read a
//! sheet of a failed exchange while a rank that is two exchanges ahead writes it: the exchange of
//! the reader fails in any case.
//!
//! The board of a rank of another node cannot be mapped. Sheets for it are sent as control messages
//! (`far_sheets`).

use crate::coll::arena::count_left;
use crate::core::services::Services;
use crate::fail;
use crate::transport::Access;
use crate::transport::address::Address;
use crate::transport::port::Reach;
use crate::util::backoff::Backoff;
use crate::util::pin::pin;
use crate::util::status::{Error, Result, Status};
use sheet::{HEAD, Sheet};
use std::cell::Cell;
use std::ops::Index;
use std::sync::Arc;
use std::sync::atomic::AtomicU32;
use std::time::Duration;

/// Offset on a board: the count of ranks that wrote on it and have left the team, 4 bytes.
const LEFT: u64 = 0;
/// Offset on a board: the words of `Failed`, the reason and the number of the last failed exchange.
const FAILED: u64 = 8;
/// Offset on a board: the first sheet.
const FIRST: u64 = 64;
/// About how many bytes of all ranks together one exchange transfers. Longer data takes several
/// exchanges.
const TOGETHER: usize = 8192;
/// The least number of bytes of each rank that one exchange transfers. The data of a rank for a
/// plan have this size, so one exchange does. Each further exchange would take another log n steps
/// in which every rank waits.
const LEAST: usize = 24;
/// Longest sleep of a waiting rank before it looks for deaths and failures.
const SLEEP: Duration = Duration::from_millis(50);
/// Pause between two looks for a board that does not exist yet: the first pause, and the longest
/// one per rank of the team, since all ranks may be looking at the same time on few cores.
const NAPS: (Duration, Duration) = (Duration::from_micros(20), Duration::from_micros(20));

/// The ranks of a team, as partners in its exchanges.
pub struct Group {
    /// Their world ranks, by team rank.
    pub peers: Arc<[u32]>,
    /// This rank's number in the team.
    pub me: usize,
    /// The name of the team, equal at all its ranks and used by no other team.
    pub name: u64,
    /// The count of deaths at the last look that found all ranks of this team alive.
    looked: Cell<Option<u32>>,
}

/// The data of each rank of a team, by team rank.
#[derive(Debug, PartialEq, Eq)]
pub struct Gathered {
    bytes: Vec<u8>,
    /// Bytes of one rank.
    each: usize,
    ranks: usize,
}

impl Gathered {
    /// Bytes of one rank.
    pub fn each(&self) -> usize {
        self.each
    }

    /// The data of all ranks, in their order.
    pub fn iter(&self) -> impl Iterator<Item = &[u8]> {
        (0..self.ranks).map(|rank| &self[rank])
    }
}

impl Index<usize> for Gathered {
    type Output = [u8];

    fn index(&self, rank: usize) -> &[u8] {
        &self.bytes[rank * self.each..][..self.each]
    }
}

/// The lowest rank that cannot take part and its status, in one word. 0: all take part.
#[derive(Clone, Copy)]
struct Verdict(u64);

/// How this rank sends sheets to another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Target {
    /// It writes them on that rank's board.
    Board(Address),
    /// It sends them as control messages, over a wire.
    Far,
    /// It sends none, because that rank could not make a board.
    Nothing,
}

/// Why an exchange has failed.
pub struct Failure {
    /// The error of this rank, or of the lowest rank that refused.
    pub error: Error,
    /// Whether the exchange has failed at all ranks, or will.
    pub everywhere: bool,
}

impl From<Failure> for Error {
    fn from(failure: Failure) -> Error {
        failure.error
    }
}

impl Verdict {
    fn of(rank: usize, status: Status) -> Verdict {
        match status {
            Status::OK => Verdict(0),
            status => Verdict((rank as u64 + 1) << 32 | u64::from(status.0 as u32)),
        }
    }

    fn and(self, other: Verdict) -> Verdict {
        match (self.0, other.0) {
            (0, word) | (word, 0) => Verdict(word),
            (one, two) => Verdict(one.min(two)),
        }
    }

    fn check(self) -> Result<()> {
        if self.0 == 0 {
            return Ok(());
        }
        let (rank, status) = ((self.0 >> 32) - 1, Status(self.0 as u32 as i32));
        let text = status.text().trim_end_matches('\0');
        Err(Error::new(status, format!("refused by rank {rank} of the team: {text}")))
    }
}

impl Group {
    /// The ranks of a team called `name`; `me` is this rank's place among them.
    pub fn new(peers: Arc<[u32]>, me: usize, name: u64) -> Group {
        Group { peers, me, name, looked: Cell::new(None) }
    }

    fn size(&self) -> usize {
        self.peers.len()
    }

    fn steps(&self) -> usize {
        self.size().next_power_of_two().trailing_zeros() as usize
    }

    /// The world rank that this one writes to in a step.
    fn target(&self, step: usize) -> u32 {
        self.peers[(self.me + (1 << step)) % self.size()]
    }

    /// The number of ranks whose data a step transfers.
    fn blocks(&self, step: usize) -> usize {
        (1 << step).min(self.size() - (1 << step))
    }

    /// The most bytes of each rank that one exchange transfers.
    fn chunk(&self) -> usize {
        (TOGETHER / self.size()).clamp(LEAST, 256) & !7
    }

    /// The offset of a step's sheet from the first sheet. For `step` = steps(): the length of all
    /// sheets of one exchange.
    fn sheet(&self, step: usize) -> u64 {
        let blocks = (0..step).map(|before| self.blocks(before)).sum::<usize>();
        step as u64 * HEAD + (blocks * self.chunk()) as u64
    }

    /// Bytes of a board.
    fn bytes(&self) -> u64 {
        FIRST + 2 * self.sheet(self.steps())
    }

    /// Fails if any rank of the team has died, also one from which this rank gets no sheet. A rank
    /// that has seen the death ends its exchange early, and this rank may wait for that rank.
    fn check_alive(&self, services: &Services) -> Result<()> {
        let deaths = services.routes.deaths();
        if self.looked.get() == Some(deaths) {
            return Ok(());
        }
        if let Some(dead) = self.peers.iter().find(|peer| services.routes.is_dead(**peer)) {
            fail!(ERR_PEER_DEAD, "rank {dead} has died or has left");
        }
        self.looked.set(Some(deaths));
        Ok(())
    }

    /// The world rank from which a step's sheet comes.
    fn source(&self, step: usize) -> u32 {
        self.peers[(self.me + self.size() - (1 << step)) % self.size()]
    }

    /// Two lists: the ranks from which sheets come over a wire, and those that write on this rank's
    /// board. Contacts all of them first.
    fn sources(&self, services: &Services) -> (Vec<u32>, Vec<u32>) {
        let all = (0..self.steps()).map(|step| self.source(step));
        if !services.routes.fabric().is_networked() {
            return (Vec::new(), all.collect());
        }
        // One by one, since the contact of one rank may fail and the others must still be known.
        all.partition(|peer| {
            let _ = services.connect(std::iter::once(*peer));
            services.routes.known(*peer).is_some_and(|port| port.reach == Reach::Wire)
        })
    }

    /// How this rank sends sheets to `peer`. It waits until that rank has made its board or has
    /// refused.
    fn reach(&self, services: &Services, peer: u32) -> Result<Target> {
        // Begins the contacts that later steps need.
        (0..self.steps()).for_each(|step| drop(services.routes.port(self.target(step))));
        services.connect(std::iter::once(peer))?;
        let port = services.routes.port(peer)?;
        if port.reach == Reach::Wire {
            return Ok(Target::Far);
        }
        self.wait(services, || {
            if services.routes.see_refusal(peer, self.name) {
                return Ok(Some(Target::Nothing));
            }
            let Some(board) = services.routes.announced(peer, self.name) else { return Ok(None) };
            match services.routes.map(port, board, self.bytes())? {
                Access::Mapped => Ok(Some(Target::Board(board))),
                _ => fail!(ERR_UNSUPPORTED, "memory of rank {peer} is not mapped here"),
            }
        })
    }

    /// Calls `look`, with pauses, until it finds something.
    fn wait<T>(
        &self,
        services: &Services,
        mut look: impl FnMut() -> Result<Option<T>>,
    ) -> Result<T> {
        let longest = NAPS.1 * self.size().max(50) as u32;
        let (mut backoff, mut nap) = (Backoff::new(services.spin()), NAPS.0);
        loop {
            if let Some(found) = look()? {
                return Ok(found);
            }
            self.check_alive(services)?;
            services.must_stay()?;
            if services.help_others() {
                backoff.renew();
            } else if !backoff.pause() {
                std::thread::sleep(nap);
                nap = (nap * 2).min(longest);
            }
        }
    }

    /// Writes a sheet on a rank's board and wakes the reader.
    fn write(
        &self,
        services: &Services,
        peer: u32,
        sheet: Address,
        (sequence, verdict, blocks): (u64, Verdict, &[u8]),
    ) -> Result<()> {
        let Some(port) = services.routes.known(peer) else {
            fail!(ERR_INTERNAL, "rank {peer} has a board and no port");
        };
        let _pinned = pin();
        let Some(place) = port.find(sheet, Sheet::bytes(blocks.len())) else {
            fail!(ERR_PEER_DEAD, "rank {peer} has died or has left");
        };
        // SAFETY: found while pinned; sheets are aligned to words.
        unsafe { Sheet::at(place, blocks.len()) }.write(sequence, verdict.0, blocks);
        port.waiters().touched(sheet, 8);
        Ok(())
    }

    /// Counts on a rank's board that this rank will not write there any more.
    fn leave(&self, services: &Services, peer: u32, board: Address) {
        let _pinned = pin();
        let place = Address { offset: board.offset + LEFT, ..board };
        if let Some(word) = services.routes.known(peer).and_then(|port| port.find(place, 4)) {
            // SAFETY: found while pinned; every rank uses the word as an atomic.
            count_left(unsafe { AtomicU32::from_ptr(word.cast()) });
        }
    }
}

mod board;
mod failure;
mod far_sheets;
mod sheet;
#[cfg(test)]
mod tests;

pub use board::Board;
