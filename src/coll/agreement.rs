//! How the ranks of a team tell each other small things, such as what they ask for when they make a plan: in
//! log n steps, each rank with log n others, through boards.
//!
//! Every rank has a board in its own memory, which others find by the team's name. In step k rank r writes what
//! it has gathered so far to the board of rank r + 2^k, and waits for rank r - 2^k to do the same at its own
//! (Bruck's allgather). A board has two sheets for each step, which exchanges use in turn. A rank may write on a
//! sheet again two exchanges later: it has ended exchange e + 1, so it has heard, directly or not, that every rank
//! has begun e + 1 and thus has read all of e.
//!
//! Each step also carries a verdict: the lowest rank that could not do its part, and why.
//!
//! A rank finds all boards that it writes on before its first step. One that cannot, or that ends an exchange early
//! for another reason of its own, says so on its own board, for ever. Those who write on that board look there
//! while they wait, and say the same on theirs. So all hear of it, whomever the first rank could not reach.

use crate::coll::arena::{Arena, Block, say_left};
use crate::core::services::Services;
use crate::fail;
use crate::transport::Access;
use crate::transport::address::Address;
use crate::util::backoff::Backoff;
use crate::util::pin::pin;
use crate::util::status::{Error, Result, Status};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

/// Where those who write on a board count themselves when they have left the team: a word of 4 bytes.
const LEFT: u64 = 0;
/// Where its owner says that it takes part no more, and why: a verdict.
const FAILED: u64 = 8;
/// Where the sheets begin.
const FIRST: u64 = 64;
/// A sheet begins with the number of the exchange and the verdict.
const HEAD: u64 = 16;
/// About so many bytes of all ranks together travel in one exchange; more take several.
const TOGETHER: usize = 8192;
/// How long a rank sleeps at most before it looks whether somebody has died.
const SLEEP: Duration = Duration::from_millis(50);
/// How long a rank sleeps between two looks for a board that is not there yet: at first, and at most for each rank
/// of the team, since all of them may be looking at the same time on a few cores.
const NAPS: (Duration, Duration) = (Duration::from_micros(20), Duration::from_micros(20));

/// Who exchanges with whom.
pub struct Ring {
    /// The ranks of the team by their numbers in the world.
    pub peers: Arc<[u32]>,
    /// This rank's number in the team.
    pub me: usize,
    /// What all call the team, and nobody calls another one.
    pub name: u64,
}

/// This rank's board, and where those lie that it writes on.
pub struct Board {
    ring: Ring,
    own: Block,
    /// Exchanges so far.
    sequence: u64,
    /// By step.
    targets: Vec<Option<Address>>,
}

/// What a rank says when it cannot take part: the lowest rank's word counts. 0: nobody said so.
#[derive(Clone, Copy)]
struct Verdict(u64);

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
        (TOGETHER / self.size()).clamp(16, 256) & !7
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

    /// The death of any rank of the team ends an exchange: who has seen it goes no further, and others may wait for
    /// that rank. `seen`: how many deaths were looked at before.
    fn check_alive(&self, services: &Services, seen: &mut Option<u32>) -> Result<()> {
        let deaths = services.routes.deaths();
        if seen.replace(deaths) != Some(deaths) {
            let dead = self.peers.iter().find(|peer| services.routes.is_dead(**peer));
            if let Some(dead) = dead {
                fail!(ERR_PEER_DEAD, "rank {dead} has died or has left");
            }
        }
        Ok(())
    }

    /// Where a rank's board lies, once there is one; None: it could not make any.
    fn reach(&self, services: &Services, peer: u32) -> Result<Option<Address>> {
        // The contacts that later steps need begin now.
        (0..self.steps()).for_each(|step| drop(services.routes.port(self.target(step))));
        services.connect(std::iter::once(peer))?;
        let port = services.routes.port(peer)?;
        let longest = NAPS.1 * self.size().max(50) as u32;
        let (mut backoff, mut nap, mut seen) = (Backoff::new(services.spin()), NAPS.0, None);
        loop {
            match services.routes.announced(peer, self.name) {
                Some(Address { key: 0, .. }) => return Ok(None),
                Some(board) => {
                    if services.routes.locate(port, board, self.bytes())? != Access::Mapped {
                        fail!(ERR_UNSUPPORTED, "memory of rank {peer} is not mapped here");
                    }
                    return Ok(Some(board));
                }
                None => self.check_alive(services, &mut seen)?,
            }
            if services.help_others() {
                backoff.renew();
            } else if !backoff.pause() {
                std::thread::sleep(nap);
                nap = (nap * 2).min(longest);
            }
        }
    }

    /// Writes a sheet of a rank's board, and wakes who waits for it.
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
        let Some(place) = port.find(sheet, HEAD + blocks.len() as u64) else {
            fail!(ERR_PEER_DEAD, "rank {peer} has died or has left");
        };
        // SAFETY: found while pinned; nobody reads the sheet before it has its number, and its last reader is done,
        // see the head of the file.
        unsafe {
            let to = place.add(HEAD as usize);
            std::ptr::copy_nonoverlapping(blocks.as_ptr(), to, blocks.len());
            place.add(8).cast::<u64>().write(verdict.0);
            // Release: who sees the number sees the sheet; pairs with the Acquire in hear().
            AtomicU64::from_ptr(place.cast()).store(sequence, Ordering::Release);
        }
        port.waiters().touched(sheet, 8);
        Ok(())
    }

    /// This rank writes on a rank's board no more.
    fn leave(&self, services: &Services, peer: u32, board: Address) {
        let _pinned = pin();
        let place = Address { offset: board.offset + LEFT, ..board };
        if let Some(word) = services.routes.known(peer).and_then(|port| port.find(place, 4)) {
            // SAFETY: found while pinned; a word that is atomic wherever it is used.
            say_left(unsafe { AtomicU32::from_ptr(word.cast()) });
        }
    }
}

impl Board {
    /// A board for a team that is new to this rank.
    pub fn new(services: &Services, arena: &Arena, ring: Ring) -> Result<Board> {
        let own = arena.allocate(ring.bytes(), 0)?;
        if let Err(error) = services.routes.announce(ring.name, own.place) {
            arena.discard(own);
            return Err(error);
        }
        let targets = vec![None; ring.steps()];
        Ok(Board { ring, own, sequence: 0, targets })
    }

    /// This rank has no board; what the others begin with it fails with `status`. Waits until they have come.
    pub fn refuse(services: &Services, ring: &Ring, status: Status) -> Result<()> {
        services.routes.announce(ring.name, Address { offset: 0, key: 0 })?;
        let tell = |step: usize| {
            let target = ring.target(step);
            let Some(board) = ring.reach(services, target)? else { return Ok(()) };
            let offset = board.offset + FIRST + ring.sheet(ring.steps()) + ring.sheet(step);
            let verdict = Verdict::of(ring.me, status);
            ring.write(services, target, Address { offset, ..board }, (1, verdict, &[]))?;
            ring.leave(services, target, board);
            Ok(())
        };
        // One that cannot be told is no reason not to tell the others.
        (0..ring.steps()).map(tell).fold(Ok(()), Result::and)
    }

    /// Gives back a board that no rank has looked for, since all know that the team was not made.
    pub fn discard(self, services: &Services, arena: &Arena) {
        services.routes.withdraw(self.ring.name);
        arena.discard(self.own);
    }

    /// Who exchanges.
    pub fn ring(&self) -> &Ring {
        &self.ring
    }

    /// How many exchanges there were: the same number at all ranks.
    pub fn sequence(&self) -> u64 {
        self.sequence
    }

    /// This rank writes on no board of the team any more: its own may go when all others have said the same.
    pub fn leave(self, services: &Services, arena: &Arena) {
        // Who looks for a failed board later must find it, or waits for ever. A death of a rank of the team is seen
        // without it.
        let failed = self.check_failed().is_err();
        if !failed || self.ring.check_alive(services, &mut None).is_err() {
            services.routes.withdraw(self.ring.name);
        }
        for (step, board) in self.targets.iter().enumerate() {
            if let Some(board) = board {
                self.ring.leave(services, self.ring.target(step), *board);
            }
        }
        // Where there was no exchange nobody has found the board.
        let nobody = self.sequence == 0 && !failed;
        arena.retire(self.own, LEFT, if nobody { 0 } else { self.ring.steps() as u32 });
    }

    /// The word in which this rank says that it takes part no more.
    fn failed(&self) -> &AtomicU64 {
        // SAFETY: the own board, which lives as long as this; the word is aligned, and atomic wherever it is used.
        unsafe { AtomicU64::from_ptr(self.own.address.add(FAILED as usize).cast()) }
    }

    /// Whether this rank still takes part. An error stays.
    pub fn check_failed(&self) -> Result<()> {
        // Relaxed: only this rank writes the word, and nothing else is read by it.
        Verdict(self.failed().load(Ordering::Relaxed)).check()
    }

    /// From now on every exchange fails here, and at all who write on this board. The first reason stays.
    pub fn fail(&self, status: Status) {
        if self.check_failed().is_ok() {
            self.failed().store(Verdict::of(self.ring.me, status).0, Ordering::Relaxed);
        }
    }

    /// Whether those that this rank writes to still take part; if not, it says the same on its own board.
    fn check_targets(&self, services: &Services) -> Result<()> {
        for (step, board) in self.targets.iter().enumerate() {
            let Some(board) = *board else { continue };
            let _pinned = pin();
            let place = Address { offset: board.offset + FAILED, ..board };
            let port = services.routes.known(self.ring.target(step));
            let Some(word) = port.and_then(|port| port.find(place, 8)) else { continue };
            // SAFETY: found while pinned; the word is aligned, and atomic wherever it is used. Its owner keeps the
            // board until this rank has left.
            let verdict =
                Verdict(unsafe { AtomicU64::from_ptr(word.cast()) }.load(Ordering::Relaxed));
            if let Err(error) = verdict.check() {
                self.failed().store(verdict.0, Ordering::Relaxed);
                return Err(error);
            }
        }
        Ok(())
    }

    /// Gathers `mine` of every rank, in the order of ranks. All give the same number of bytes. Collective. When
    /// one rank's `status` is an error, it is an error for all. Any other error is final, see check_failed().
    pub fn exchange(
        &mut self,
        services: &Services,
        status: Status,
        mine: &[u8],
    ) -> Result<Vec<Vec<u8>>> {
        let (ranks, me) = (self.ring.size(), self.ring.me);
        let mut all = vec![Vec::with_capacity(mine.len()); ranks];
        self.check_failed()?;
        let part = Verdict::of(me, status);
        let first = &mine[..mine.len().min(self.ring.chunk())];
        for chunk in std::iter::once(first).chain(mine.chunks(self.ring.chunk()).skip(1)) {
            let told = self.exchange_chunk(services, part, chunk);
            let (verdict, blocks) = told.inspect_err(|error| self.fail(error.status))?;
            verdict.check()?;
            // They come as they were gathered: from this rank down.
            for at in 0..ranks {
                let block = &blocks[at * chunk.len()..][..chunk.len()];
                all[(me + ranks - at) % ranks].extend_from_slice(block);
            }
        }
        Ok(all)
    }

    fn exchange_chunk(
        &mut self,
        services: &Services,
        mut verdict: Verdict,
        mine: &[u8],
    ) -> Result<(Verdict, Vec<u8>)> {
        self.sequence += 1;
        let mut blocks = vec![0; mine.len() * self.ring.size()];
        blocks[..mine.len()].copy_from_slice(mine);
        verdict = verdict.and(self.find_targets(services)?);
        for step in 0..self.ring.steps() {
            let (have, more) = ((1 << step) * mine.len(), self.ring.blocks(step) * mine.len());
            self.tell(services, step, verdict, &blocks[..more])?;
            verdict = verdict.and(self.hear(services, step, &mut blocks[have..have + more])?);
        }
        Ok((verdict, blocks))
    }

    /// Where the sheet of a step lies on a board, for the present exchange.
    fn sheet(&self, step: usize, board: Address) -> Address {
        let half = self.sequence % 2 * self.ring.sheet(self.ring.steps());
        Address { offset: board.offset + FIRST + half + self.ring.sheet(step), ..board }
    }

    /// Finds the boards that this rank writes on, as far as it does not know them yet; those who have none refuse. An
    /// error comes before this rank has written anything, so nobody ends the exchange well.
    fn find_targets(&mut self, services: &Services) -> Result<Verdict> {
        let mut verdict = Verdict(0);
        for step in 0..self.ring.steps() {
            if self.targets[step].is_none() {
                self.targets[step] = self.ring.reach(services, self.ring.target(step))?;
            }
            if self.targets[step].is_none() {
                let rank = (self.ring.me + (1 << step)) % self.ring.size();
                verdict = verdict.and(Verdict::of(rank, Status::ERR_NO_MEMORY));
            }
        }
        Ok(verdict)
    }

    /// Writes the sheet of a step, where the rank that it is for has a board.
    fn tell(
        &self,
        services: &Services,
        step: usize,
        verdict: Verdict,
        blocks: &[u8],
    ) -> Result<()> {
        let Some(board) = self.targets[step] else { return Ok(()) };
        let sheet = self.sheet(step, board);
        self.ring.write(services, self.ring.target(step), sheet, (self.sequence, verdict, blocks))
    }

    /// Waits for the sheet of a step on the own board.
    fn hear(&self, services: &Services, step: usize, blocks: &mut [u8]) -> Result<Verdict> {
        let place = self.sheet(step, self.own.place);
        let sheet = self.own.address.wrapping_add((place.offset - self.own.place.offset) as usize);
        // SAFETY: the own board, whose words are aligned.
        let word = unsafe { AtomicU64::from_ptr(sheet.cast()) };
        // Acquire: pairs with the Release in write().
        let here = || word.load(Ordering::Acquire) == self.sequence;
        let (mut backoff, mut seen) = (Backoff::new(services.spin()), None);
        while !here() {
            if services.help_others() {
                backoff.renew();
            } else if !backoff.pause() {
                self.ring.check_alive(services, &mut seen)?;
                self.check_targets(services)?;
                if services.sleep(place, Some(SLEEP), here) {
                    backoff.renew();
                }
            }
        }
        // SAFETY: the own board; the sheet is as long, and its writer has done.
        unsafe {
            let from = sheet.add(HEAD as usize);
            std::ptr::copy_nonoverlapping(from, blocks.as_mut_ptr(), blocks.len());
            Ok(Verdict(sheet.add(8).cast::<u64>().read()))
        }
    }
}

#[cfg(test)]
mod tests;
