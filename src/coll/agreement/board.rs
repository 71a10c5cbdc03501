//! A rank's board and the exchanges over it.

use crate::coll::agreement::failure::{FOR_GOOD, Failed};
use crate::coll::agreement::far_sheets::FarSheets;
use crate::coll::agreement::{
    FAILED, FIRST, Failure, Gathered, Group, LEFT, SLEEP, Sheet, Target, Verdict,
};
use crate::coll::arena::{Arena, Block};
use crate::core::services::Services;
use crate::transport::address::Address;
use crate::util::backoff::Backoff;
use crate::util::pin::pin;
use crate::util::status::{Result, Status};
use std::sync::Arc;

/// This rank's board, and the boards that it writes on.
pub struct Board {
    pub(super) group: Group,
    pub(super) own: Block,
    /// How many exchanges have begun.
    sequence: u64,
    /// Where the sheets of each step go.
    targets: Vec<Option<Target>>,
    /// The sheets of ranks of other nodes; None on a single node.
    far_sheets: Option<Arc<FarSheets>>,
}

impl Board {
    /// Makes and announces a board for a team.
    pub fn new(services: &Services, arena: &Arena, group: Group) -> Result<Board> {
        let own = arena.allocate(group.bytes(), 0)?;
        if let Err(error) = services.routes.announce(group.name, own.place) {
            arena.discard(own);
            return Err(error);
        }
        let targets = vec![None; group.steps()];
        let far_sheets =
            services.routes.fabric().is_networked().then(|| Arc::new(FarSheets::new(services)));
        if let Some(far_sheets) = &far_sheets {
            services.routes.control_messages().register(group.name, far_sheets.clone());
        }
        Ok(Board { group, own, sequence: 0, targets, far_sheets })
    }

    /// For a rank that could not make a board: the first exchange fails with `status` at the other
    /// ranks. Waits until the ranks that would write on this rank's board know.
    pub fn refuse(services: &Services, group: &Group, status: Status) -> Result<()> {
        if group.steps() == 0 {
            return Ok(());
        }
        group.wait(services, || Ok(services.routes.refuse(group.name).then_some(())))?;
        let refuse_at = |step: usize| {
            let target = group.target(step);
            let verdict = Verdict::of(group.me, status);
            let board = match group.reach(services, target)? {
                Target::Board(board) => board,
                Target::Far => {
                    let far_sheets = FarSheets::new(services);
                    return far_sheets.send(services, group, (target, step), (1, verdict.0, &[]));
                }
                Target::Nothing => return Ok(()),
            };
            let offset = board.offset + FIRST + group.sheet(group.steps()) + group.sheet(step);
            group.write(services, target, Address { offset, ..board }, (1, verdict, &[]))?;
            group.leave(services, target, board);
            Ok(())
        };
        // An error does not end the loop: the other ranks must get the refusal nevertheless.
        let sent = (0..group.steps()).map(refuse_at).fold(Ok(()), Result::and);
        // The number of ranks that would write on this rank's board.
        let near = group.sources(services).1.len() as u64;
        let all_refused = || services.routes.refusals_seen(group.name) >= near;
        let received = group.wait(services, || Ok(all_refused().then_some(())));
        services.routes.withdraw(group.name);
        // Drops the sheets that ranks of other nodes have sent; nobody will read them.
        services.routes.control_messages().withdraw(group.name);
        sent.and(received)
    }

    /// Frees a board at once. It may be called if all ranks know that the team was not made, since
    /// no rank then looks for the board.
    pub fn discard(self, services: &Services, arena: &Arena) {
        services.routes.withdraw(self.group.name);
        services.routes.control_messages().withdraw(self.group.name);
        arena.discard(self.own);
    }

    /// The ranks that exchange.
    pub fn group(&self) -> &Group {
        &self.group
    }

    /// How many exchanges have begun, which is equal at all ranks.
    pub fn sequence(&self) -> u64 {
        self.sequence
    }

    /// Called when this rank leaves the team: it writes on no board any more. Its own board is
    /// freed when the ranks that write there have left too.
    pub fn leave(self, services: &Services, arena: &Arena) {
        // If the last exchange has failed, a rank that looks for this board later must find it, or
        // it would wait for ever. If a rank of the team has died, it ends its wait without the
        // board.
        let (number, verdict) = self.failed();
        let failed = number != 0 && number >= self.sequence;
        if failed {
            // A rank that comes late to a failed exchange must not wait for a further one.
            self.say_failed(services, verdict, FOR_GOOD);
        }
        services.routes.control_messages().withdraw(self.group.name);
        if !failed || self.group.check_alive(services).is_err() {
            services.routes.withdraw(self.group.name);
        }
        for (step, board) in self.targets.iter().enumerate() {
            if let Some(Target::Board(board)) = board {
                self.group.leave(services, self.group.target(step), *board);
            }
        }
        // Without any exchange no rank has found the board.
        let nobody = self.sequence == 0 && !failed;
        let near = || self.group.sources(services).1.len() as u32;
        arena.retire(self.own, LEFT, if nobody { 0 } else { near() });
    }

    /// The words of the own board that say which exchanges have failed.
    fn said(&self) -> Failed<'_> {
        // SAFETY: the own board, which lives as long as this and has the words at this offset,
        // aligned.
        unsafe { Failed::at(self.own.address.add(FAILED as usize)) }
    }

    /// The number of the last failed exchange at this rank, and why it failed.
    fn failed(&self) -> (u64, Verdict) {
        let (number, why) = self.said().get();
        (number, Verdict(why))
    }

    fn say_failed(&self, services: &Services, verdict: Verdict, number: u64) {
        self.said().say(number, verdict.0);
        let Some(far_sheets) = &self.far_sheets else { return };
        for peer in self.group.sources(services).0 {
            // An error means that the rank has died, or that this rank is being finalized.
            let _ = far_sheets.send_failed(services, &self.group, peer, (number, verdict.0));
        }
    }

    /// Makes every exchange fail from now on, here and at the ranks that write on this board. A
    /// further call does not change the reason.
    pub fn fail(&self, services: &Services, status: Status) {
        if self.failed().0 != FOR_GOOD {
            self.say_failed(services, Verdict::of(self.group.me, status), FOR_GOOD);
        }
    }

    /// Checks that the ranks to which this one writes still take part in this exchange. If one does
    /// not, this rank writes the failure on its own board too.
    fn check_targets(&self, services: &Services) -> Result<()> {
        for (step, board) in self.targets.iter().enumerate() {
            let target = self.group.target(step);
            let (number, verdict) = match (board, &self.far_sheets) {
                (Some(Target::Board(board)), _) => {
                    let _pinned = pin();
                    let port = services.routes.known(target);
                    let head = port.and_then(|port| port.find(*board, FIRST));
                    let Some(head) = head else { continue };
                    // SAFETY: found while pinned; the words are there and aligned. The owner keeps
                    // the board until this rank has left.
                    let (number, why) = unsafe { Failed::at(head.add(FAILED as usize)) }.get();
                    (number, Verdict(why))
                }
                (Some(Target::Far), Some(far_sheets)) => far_sheets.failed(target),
                _ => continue,
            };
            if number < self.sequence {
                continue;
            }
            let number = if number == FOR_GOOD { FOR_GOOD } else { self.sequence };
            self.say_failed(services, verdict, number);
            verdict.check()?;
        }
        self.far_sheets.as_ref().map_or(Ok(()), |far_sheets| far_sheets.check())
    }

    /// Gathers `mine` of every rank, in the order of ranks. All ranks give the same number of
    /// bytes. If `status` is an error at one rank, the exchange fails at all. Collective.
    pub fn exchange(
        &mut self,
        services: &Services,
        status: Status,
        mine: &[u8],
    ) -> std::result::Result<Gathered, Failure> {
        let (ranks, each) = (self.group.size(), mine.len());
        let mut bytes = vec![0; ranks * each];
        self.exchange_parts(services, status, mine, |begin, part| {
            for (rank, card) in part.iter().enumerate() {
                bytes[rank * each + begin..][..card.len()].copy_from_slice(card);
            }
        })?;
        Ok(Gathered { bytes, each, ranks })
    }

    /// Like `exchange`, for data too large to be kept as a whole. It calls `take` for one part
    /// after the other, with the offset of the part, a multiple of 8, and that part of every rank's
    /// data.
    pub fn exchange_parts(
        &mut self,
        services: &Services,
        status: Status,
        mine: &[u8],
        mut take: impl FnMut(usize, &Gathered),
    ) -> std::result::Result<(), Failure> {
        let (ranks, me) = (self.group.size(), self.group.me);
        let (part, mut begin) = (Verdict::of(me, status), 0);
        let first = &mine[..mine.len().min(self.group.chunk())];
        for chunk in std::iter::once(first).chain(mine.chunks(self.group.chunk()).skip(1)) {
            let (verdict, blocks) =
                self.exchange_chunk(services, part, chunk).map_err(|error| {
                    if self.failed().0 < self.sequence {
                        self.fail(services, error.status);
                    }
                    Failure { error, everywhere: self.failed().0 != FOR_GOOD }
                })?;
            verdict.check().map_err(|error| Failure { error, everywhere: true })?;
            // The blocks are in the order in which they were gathered: from this rank downwards.
            let each = chunk.len();
            let mut bytes = vec![0; ranks * each];
            for at in 0..ranks {
                let place = (me + ranks - at) % ranks * each;
                bytes[place..][..each].copy_from_slice(&blocks[at * each..][..each]);
            }
            take(begin, &Gathered { bytes, each, ranks });
            begin += each;
        }
        Ok(())
    }

    fn exchange_chunk(
        &mut self,
        services: &Services,
        mut verdict: Verdict,
        mine: &[u8],
    ) -> Result<(Verdict, Vec<u8>)> {
        if let (FOR_GOOD, verdict) = self.failed() {
            verdict.check()?;
        }
        self.sequence += 1;
        let mut blocks = vec![0; mine.len() * self.group.size()];
        blocks[..mine.len()].copy_from_slice(mine);
        verdict = verdict.and(self.find_targets(services)?);
        for step in 0..self.group.steps() {
            let (have, more) = ((1 << step) * mine.len(), self.group.blocks(step) * mine.len());
            self.write_sheet(services, step, verdict, &blocks[..more])?;
            verdict =
                verdict.and(self.await_sheet(services, step, &mut blocks[have..have + more])?);
        }
        Ok((verdict, blocks))
    }

    /// The place of a step's sheet on a board, for the present exchange.
    fn sheet(&self, step: usize, board: Address) -> Address {
        let half = self.sequence % 2 * self.group.sheet(self.group.steps());
        Address { offset: board.offset + FIRST + half + self.group.sheet(step), ..board }
    }

    /// Finds those boards on which this rank writes and that it does not know yet. A rank without a
    /// board counts as a refusal. After an error this rank has written no sheet, so the exchange
    /// succeeds at no rank. Unless a rank has died, the next exchange may succeed.
    fn find_targets(&mut self, services: &Services) -> Result<Verdict> {
        let mut verdict = Verdict(0);
        for step in 0..self.group.steps() {
            if self.targets[step].is_none() {
                let found = self.group.reach(services, self.group.target(step));
                self.targets[step] = Some(found.inspect_err(|error| {
                    if error.status != Status::ERR_PEER_DEAD {
                        let why = Verdict::of(self.group.me, error.status);
                        self.say_failed(services, why, self.sequence);
                    }
                })?);
            }
            if self.targets[step] == Some(Target::Nothing) {
                let rank = (self.group.me + (1 << step)) % self.group.size();
                verdict = verdict.and(Verdict::of(rank, Status::ERR_NO_MEMORY));
            }
        }
        Ok(verdict)
    }

    /// Sends the sheet of a step, unless its reader has no board.
    fn write_sheet(
        &self,
        services: &Services,
        step: usize,
        verdict: Verdict,
        blocks: &[u8],
    ) -> Result<()> {
        let target = self.group.target(step);
        match (self.targets[step], &self.far_sheets) {
            (Some(Target::Board(board)), _) => {
                let sheet = self.sheet(step, board);
                self.group.write(services, target, sheet, (self.sequence, verdict, blocks))
            }
            (Some(Target::Far), Some(far_sheets)) => {
                let contents = (self.sequence, verdict.0, blocks);
                far_sheets.send(services, &self.group, (target, step), contents)
            }
            _ => Ok(()),
        }
    }

    /// Waits for the sheet of a step and reads it.
    fn await_sheet(&self, services: &Services, step: usize, blocks: &mut [u8]) -> Result<Verdict> {
        let place = self.sheet(step, self.own.place);
        let sheet = self.own.address.wrapping_add((place.offset - self.own.place.offset) as usize);
        // SAFETY: the own board has the sheet there, aligned to words, as long as this lives.
        let sheet = unsafe { Sheet::at(sheet, blocks.len()) };
        let size = blocks.len();
        let sent = || {
            self.far_sheets
                .as_ref()
                .is_some_and(|far_sheets| far_sheets.has(self.sequence, step, size))
        };
        let here = || sheet.is_of(self.sequence) || sent();
        let mut backoff = Backoff::new(services.spin());
        while !here() {
            if services.help_others() {
                backoff.renew();
            } else if !backoff.pause() {
                self.group.check_alive(services)?;
                services.must_stay()?;
                self.check_targets(services)?;
                let woken = match &self.far_sheets {
                    None => services.sleep(place, Some(SLEEP), here),
                    Some(far_sheets) => services.sleep_on(place, far_sheets.come(), SLEEP, here),
                };
                if woken {
                    backoff.renew();
                }
            }
        }
        match &self.far_sheets {
            Some(far_sheets) if !sheet.is_of(self.sequence) => {
                Ok(Verdict(far_sheets.take(self.sequence, step, blocks)))
            }
            _ => Ok(Verdict(sheet.read(blocks))),
        }
    }
}
