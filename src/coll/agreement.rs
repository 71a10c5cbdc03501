//! How the ranks of a team tell each other small things, such as what they ask for when they make a
//! plan: in log n steps, each rank with log n others, through boards.
//!
//! Every rank has a board in its own memory, which others find by the team's name. In step k rank r
//! writes what it has gathered so far to the board of rank r + 2^k, and waits for rank r - 2^k to
//! do the same at its own (Bruck's allgather). A board has two sheets for each step, which
//! exchanges use in turn. A rank may write on a sheet again two exchanges later: it has ended
//! exchange e + 1, so it has heard, directly or not, that every rank has begun e + 1 and thus has
//! read all of e.
//!
//! Each step also carries a verdict: the lowest rank that could not do its part, and why.
//!
//! A rank finds all boards that it writes on before its first step. One that cannot, or that ends
//! an exchange early for another reason of its own, says so on its own board. The ranks that write
//! on that board look there while they wait, and say the same on theirs. So all hear of it,
//! whomever the first rank could not reach.
//!
//! What keeps a rank from finding a board may pass (it has no descriptor left, say). Then the board
//! says only up to which exchange all have failed, and the next one is tried again. That one number
//! is enough: as long as a rank has not found its boards no exchange has ended well anywhere, so
//! all up to that number have failed. For the same reason no rank is misled that still reads a
//! sheet of a failed exchange while its writer is two exchanges ahead: it fails in any case.
//!
//! A rank of another node has no board that could be found: it is sent its sheets (`far_sheets`).

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

/// Where the ranks that write on a board count themselves when they have left the team: a word of 4
/// bytes.
const LEFT: u64 = 0;
/// Where its owner says that exchanges have failed, and why.
const FAILED: u64 = 8;
/// Where the sheets begin.
const FIRST: u64 = 64;
/// About so many bytes of all ranks together travel in one exchange; more take several.
const TOGETHER: usize = 8192;
/// But as many of each rank as it tells of a plan: an exchange takes log n steps, in each of which
/// every rank waits for another one.
const LEAST: usize = 24;
/// How long a rank sleeps at most before it looks whether somebody has died.
const SLEEP: Duration = Duration::from_millis(50);
/// How long a rank sleeps between two looks for a board that is not there yet: at first, and at
/// most for each rank of the team, since all of them may be looking at the same time on a few
/// cores.
const NAPS: (Duration, Duration) = (Duration::from_micros(20), Duration::from_micros(20));

/// Which ranks exchange with which.
pub struct Ring {
    /// The ranks of the team by their numbers in the world.
    pub peers: Arc<[u32]>,
    /// This rank's number in the team.
    pub me: usize,
    /// What all call the team, and nobody calls another one.
    pub name: u64,
    /// How many deaths there were when none of them was of this team.
    looked: Cell<Option<u32>>,
}

/// What each rank of a team has told, in the order of ranks.
#[derive(Debug, PartialEq, Eq)]
pub struct Cards {
    bytes: Vec<u8>,
    /// Of one rank.
    each: usize,
    ranks: usize,
}

impl Cards {
    /// Bytes of each.
    pub fn each(&self) -> usize {
        self.each
    }

    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = &[u8]> {
        (0..self.ranks).map(|rank| &self[rank])
    }
}

impl Index<usize> for Cards {
    type Output = [u8];

    fn index(&self, rank: usize) -> &[u8] {
        &self.bytes[rank * self.each..][..self.each]
    }
}

/// What a rank says when it cannot take part: the lowest rank's word counts. 0: nobody said so.
#[derive(Clone, Copy)]
struct Verdict(u64);

/// How a rank is told something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Target {
    /// On its board.
    Board(Address),
    /// By notices.
    Far,
    /// Not at all: it could not make a board.
    Nothing,
}

/// Why an exchange has failed.
pub struct Failure {
    /// Of this rank, or of the first one that was refused.
    pub error: Error,
    /// No rank has ended the exchange well, or ever will.
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

impl Ring {
    /// The ranks of a team that all call by this name; `me` is this rank's place among them.
    pub fn new(peers: Arc<[u32]>, me: usize, name: u64) -> Ring {
        Ring { peers, me, name, looked: Cell::new(None) }
    }

    fn size(&self) -> usize {
        self.peers.len()
    }

    fn steps(&self) -> usize {
        self.size().next_power_of_two().trailing_zeros() as usize
    }

    /// The rank that this one writes to in a step: its number in the world.
    fn target(&self, step: usize) -> u32 {
        self.peers[(self.me + (1 << step)) % self.size()]
    }

    /// Of how many ranks a step brings something.
    fn blocks(&self, step: usize) -> usize {
        (1 << step).min(self.size() - (1 << step))
    }

    /// The most bytes of each rank that travel in one exchange.
    fn chunk(&self) -> usize {
        (TOGETHER / self.size()).clamp(LEAST, 256) & !7
    }

    /// Where the sheet of a step lies on a board; one step too many says how long half a board is.
    fn sheet(&self, step: usize) -> u64 {
        let blocks = (0..step).map(|before| self.blocks(before)).sum::<usize>();
        step as u64 * HEAD + (blocks * self.chunk()) as u64
    }

    /// Bytes of a board.
    fn bytes(&self) -> u64 {
        FIRST + 2 * self.sheet(self.steps())
    }

    /// The death of any rank of the team ends an exchange: a rank that has seen it goes no further,
    /// and others may wait for that rank.
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

    /// The rank whose sheets of a step this one gets.
    fn source(&self, step: usize) -> u32 {
        self.peers[(self.me + self.size() - (1 << step)) % self.size()]
    }

    /// Those ranks among the sources to which a wire leads, and those to which none does. Contacts
    /// them, if they are not known; what cannot be contacted is told otherwise.
    fn sources(&self, services: &Services) -> (Vec<u32>, Vec<u32>) {
        let all = (0..self.steps()).map(|step| self.source(step));
        if !services.routes.fabric().is_networked() {
            return (Vec::new(), all.collect());
        }
        // One by one: a dead rank is no reason not to know the others.
        all.partition(|peer| {
            let _ = services.connect(std::iter::once(*peer));
            services.routes.known(*peer).is_some_and(|port| port.reach == Reach::Wire)
        })
    }

    /// Where a rank's board lies, once there is one.
    fn reach(&self, services: &Services, peer: u32) -> Result<Target> {
        // The contacts that later steps need begin now.
        (0..self.steps()).for_each(|step| drop(services.routes.port(self.target(step))));
        services.connect(std::iter::once(peer))?;
        let port = services.routes.port(peer)?;
        if port.reach == Reach::Wire {
            return Ok(Target::Far);
        }
        self.wait(services, || {
            if services.routes.hear_refusal(peer, self.name) {
                return Ok(Some(Target::Nothing));
            }
            let Some(board) = services.routes.announced(peer, self.name) else { return Ok(None) };
            match services.routes.map(port, board, self.bytes())? {
                Access::Mapped => Ok(Some(Target::Board(board))),
                _ => fail!(ERR_UNSUPPORTED, "memory of rank {peer} is not mapped here"),
            }
        })
    }

    /// Looks again and again, with pauses, until there is something to be seen.
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

    /// Writes a sheet of a rank's board, and wakes its reader.
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

    /// This rank writes on a rank's board no more.
    fn leave(&self, services: &Services, peer: u32, board: Address) {
        let _pinned = pin();
        let place = Address { offset: board.offset + LEFT, ..board };
        if let Some(word) = services.routes.known(peer).and_then(|port| port.find(place, 4)) {
            // SAFETY: found while pinned; a word that is atomic wherever it is used.
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
