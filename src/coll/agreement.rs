//! How the ranks of a team tell each other small things while they make plans: each has a board in its own memory
//! that the others read.
//!
//! A board has a sequence number and two sheets. For the k-th exchange a rank writes sheet k mod 2 and then the
//! number k; it reads the others' sheets when their numbers have reached k. It may write a sheet again two
//! exchanges later: by then every rank has published k + 1, hence has read all of k.

use crate::coll::arena::{Arena, Block, say_left};
use crate::core::services::Services;
use crate::fail;
use crate::transport::Access;
use crate::transport::address::Address;
use crate::util::backoff::Backoff;
use crate::util::pin::pin;
use crate::util::status::Result;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

/// Bytes of a sheet.
const SHEET: usize = 4096;
/// Where the sheets begin.
const FIRST: u64 = 64;
/// Where the others count on a board that they have left the team: a word of 4 bytes.
const LEFT: u64 = 8;
/// How long a rank sleeps between two looks at first, and at most.
const NAPS: (Duration, Duration) = (Duration::from_micros(20), Duration::from_millis(1));

/// This rank's board, and where those of the others are.
pub struct Board {
    own: Block,
    sequence: u64,
    others: Vec<(u32, Address)>,
}

impl Board {
    /// Bytes of a board.
    pub const BYTES: u64 = FIRST + 2 * SHEET as u64;

    /// A board that nobody else knows yet.
    pub fn new(arena: &Arena) -> Result<Board> {
        Ok(Board { own: arena.allocate(Board::BYTES)?, sequence: 0, others: Vec::new() })
    }

    /// What the others must know.
    pub fn place(&self) -> Address {
        self.own.place
    }

    /// The boards of the team by rank, the own one included.
    pub fn connect(&mut self, services: &Services, boards: &[(u32, Address)]) -> Result<()> {
        for (peer, board) in boards {
            let port = services.routes.port(*peer)?;
            if services.routes.locate(port, *board, Board::BYTES)? != Access::Mapped {
                fail!(ERR_UNSUPPORTED, "memory of rank {peer} is not mapped here");
            }
            self.others.push((*peer, *board));
        }
        Ok(())
    }

    /// This rank touches no board of the team any more: its own may go when all others say the same.
    pub fn leave(self, services: &Services, arena: &Arena) {
        let others = self.others.iter().filter(|(_, board)| *board != self.own.place);
        let mut count = 0;
        for (peer, board) in others {
            let _pinned = pin();
            if let Some(word) =
                find(services, *peer, Address { offset: board.offset + LEFT, ..*board }, 4)
            {
                // SAFETY: found while pinned; a word that is atomic wherever it is used.
                say_left(unsafe { AtomicU32::from_ptr(word.cast()) });
            }
            count += 1;
        }
        arena.retire(self.own, LEFT, count);
    }

    /// Nobody was told of the board.
    pub fn discard(self, arena: &Arena) {
        arena.discard(self.own);
    }

    /// Gathers `mine` of every rank, in the order of ranks. All give the same number of bytes. Collective.
    pub fn exchange(&mut self, services: &Services, mine: &[u8]) -> Result<Vec<Vec<u8>>> {
        let mut all = vec![Vec::with_capacity(mine.len()); self.others.len()];
        for sheet in mine.chunks(SHEET) {
            self.exchange_sheet(services, sheet, &mut all)?;
        }
        Ok(all)
    }

    fn exchange_sheet(
        &mut self,
        services: &Services,
        sheet: &[u8],
        all: &mut [Vec<u8>],
    ) -> Result<()> {
        self.sequence += 1;
        let at = FIRST + self.sequence % 2 * SHEET as u64;
        // SAFETY: the own board, whose sheet nobody reads any more; see the head of the file.
        unsafe {
            let to = self.own.address.add(at as usize);
            std::ptr::copy_nonoverlapping(sheet.as_ptr(), to, sheet.len());
            // Release: who sees the number sees the sheet.
            AtomicU64::from_ptr(self.own.address.cast()).store(self.sequence, Ordering::Release);
        }
        for (at_rank, bytes) in all.iter_mut().enumerate() {
            let (peer, board) = &self.others[at_rank];
            self.await_number(services, *peer, *board)?;
            let from = Address { offset: board.offset + at, ..*board };
            let size = sheet.len();
            let _pinned = pin();
            let Some(place) = find(services, *peer, from, size as u64) else {
                fail!(ERR_PEER_DEAD, "rank {peer} has died or has left");
            };
            let start = bytes.len();
            bytes.resize(start + size, 0);
            // SAFETY: found while pinned; the peer does not write the sheet before all have read it.
            unsafe { std::ptr::copy_nonoverlapping(place, bytes[start..].as_mut_ptr(), size) };
        }
        Ok(())
    }

    /// Waits until a peer's board shows the present number. The death of any rank ends it: whoever has seen
    /// that it is dead goes no further, and others may wait for him.
    fn await_number(&self, services: &Services, peer: u32, board: Address) -> Result<()> {
        let reached = || {
            let _pinned = pin();
            let word = find(services, peer, board, 8);
            // SAFETY: found while pinned; a word that its owner changes atomically.
            // Acquire: pairs with the Release in exchange_sheet().
            word.map(|word| unsafe { AtomicU64::from_ptr(word.cast()) }.load(Ordering::Acquire))
        };
        let (mut backoff, mut nap) = (Backoff::new(services.spin()), NAPS.0);
        loop {
            match reached() {
                Some(now) if now >= self.sequence => return Ok(()),
                _ => {}
            }
            if let Some((dead, _)) =
                self.others.iter().find(|other| services.routes.is_dead(other.0))
            {
                fail!(ERR_PEER_DEAD, "rank {dead} has died or has left");
            }
            if services.help_others() {
                backoff.renew();
            } else if !backoff.pause() {
                std::thread::sleep(nap);
                nap = (nap * 2).min(NAPS.1);
            }
        }
    }
}

fn find(services: &Services, peer: u32, place: Address, size: u64) -> Option<*mut u8> {
    services.routes.known(peer)?.find(place, size)
}
