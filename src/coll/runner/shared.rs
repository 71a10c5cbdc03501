//! Running steps: of one's own queues, and of other ranks' where memory is shared. The CPU that
//! delivers a signal plays the network card for a rank that is computing.

use crate::coll::runner::members::{Member, Members, Memory};
use crate::coll::runner::put_sender::PutSender;
use crate::coll::runner::queue::{
    Claim, between_word_and_is_polled_on, between_word_and_look, has_reached, signal,
};
use crate::coll::runner::record::{Lying, NOBODY, act};
use crate::coll::runner::worklist::Line;
use crate::coll::schedule::{CELL, CELL_WORD};
use crate::engine::by_caller::copy;
use crate::engine::completion::Completion;
use crate::engine::routes::Routes;
use crate::transport::address::Address;
use crate::util::pin::pin;
use crate::util::prefetch::prefetch;
use crate::util::status::Status;
use crate::util::sync::AtomicU32;
use std::sync::Arc;

pub use crate::coll::runner::combiner::{Combiner, Reduction, UserFunction};
pub use crate::coll::runner::worklist::Worklist;

/// All that running needs. One for each plan and process.
pub struct Stage {
    /// This rank's number in the team.
    pub me: usize,
    /// The ranks that this one reaches: at least those that its own steps name.
    pub members: Members,
    /// All ranks of the team by their numbers in the world.
    pub peers: Arc<[u32]>,
    /// How elements are combined.
    pub combiner: Option<Combiner>,
    /// Bytes of an element.
    pub width: u64,
    /// The paths to the peers.
    pub routes: Arc<Routes>,
    /// By which it puts, where it names ranks of other nodes.
    pub put_sender: Option<Arc<PutSender>>,
}

// SAFETY: the pointers lead into memory that the plan keeps and all ranks share by the schedule's
// rules.
unsafe impl Send for Stage {}
// SAFETY: as above.
unsafe impl Sync for Stage {}

/// A thread that finds a signal in a cell prefetches that of so many rounds later: if its sender is
/// as far ahead, they are on their way together. If not, the line has not changed since it was used
/// last, and nothing is sent.
const CELLS_BEFORE: u32 = 4;

/// Why no more steps of a queue were run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// That was the last one: the round is over and the claim given up.
    Finished,
    /// None was ready.
    Waiting,
    /// Some were run, and the next one is not ready; or the plan has failed.
    Stopped,
    /// The worklist allows no more bytes.
    Full,
}

impl Stage {
    /// Whether the next step of a queue could be run: a hint, to look at before claiming.
    #[inline]
    pub fn is_ready(&self, rank: usize, queue: usize) -> bool {
        let session = &self.members[rank].session;
        let line = session.queue(queue);
        let control = line.control();
        if !control.is_active() || control.claimer().is_some() {
            return false;
        }
        let records = session.records(queue);
        let at = records.start.saturating_add(line.at());
        at >= records.end || self.has_arrived(rank, queue, session.record(at), control.finished())
    }

    /// Whether what a step of `rank` waits for has come in its round `round`.
    #[inline(always)]
    fn has_arrived(&self, rank: usize, queue: usize, record: Lying, round: u32) -> bool {
        let (from, marks) = (record.wait_from(), record.marks());
        from == NOBODY || !marks.waits_in(round) || {
            if marks.waits_for_cell() {
                let (number, least) = (record.wait_total(), round.wrapping_add(1));
                let word = self.cell(rank, number, round);
                let there = word.is_some_and(|word| has_reached(word, least));
                let later = round.wrapping_add(CELLS_BEFORE);
                if there && let Some(later) = self.cell(rank, number, later) {
                    prefetch(later);
                }
                return there;
            }
            let least = round.wrapping_mul(record.wait_total()).wrapping_add(record.wait_count());
            let from = &self.members[from as usize].session;
            queue < from.queues() && from.queue(queue).has_sent(rank, least)
        }
    }

    /// The signal word in cell `number` of a rank, in this round.
    #[inline(always)]
    pub(super) fn cell(&self, rank: usize, number: u32, round: u32) -> Option<&AtomicU32> {
        let Memory::Turns(base, length, turns) = self.members[rank].memory[2] else { return None };
        let end = (u64::from(number) + 1) * CELL;
        if end > length {
            return None;
        }
        let turn = u64::from(round & (turns - 1)) * length.next_multiple_of(CELL);
        let word = base.wrapping_add((turn + end - CELL_WORD) as usize).cast::<AtomicU32>();
        // SAFETY: scratch memory begins with a line, and each of its turns has so many bytes in
        // whole lines; nobody copies over the last bytes of a cell, as schedules promise.
        Some(unsafe { &*word })
    }

    /// Whether the next step of a queue that was claimed as `mine` could be run.
    #[inline]
    pub fn is_next_ready(&self, rank: usize, queue: usize, mine: &Claim) -> bool {
        let session = &self.members[rank].session;
        let records = session.records(queue);
        let at = records.start.saturating_add(mine.at);
        at >= records.end || self.has_arrived(rank, queue, session.record(at), mine.round())
    }

    /// Runs what is ready in a queue, and what that makes ready elsewhere. True: something was
    /// done.
    pub fn run(&self, rank: usize, queue: usize, worklist: &mut Worklist) -> bool {
        let mut worked = false;
        if rank == self.me && worklist.owner || self.members[rank].shared {
            worked |= self.run_queue(rank, queue, worklist);
        }
        self.run_released(worklist) | worked
    }

    /// Runs the queues that the steps of a worklist have released. True: something was done.
    #[inline]
    pub fn run_released(&self, worklist: &mut Worklist) -> bool {
        let mut worked = false;
        while let Some(last) = worklist.count.checked_sub(1) {
            worklist.count = last;
            let (rank, queue) = worklist.waiting[last].place();
            worked |= self.run_queue(rank, queue, worklist);
        }
        worked
    }

    fn run_queue(&self, rank: usize, queue: usize, worklist: &mut Worklist) -> bool {
        let line = self.members[rank].session.queue(queue);
        let mut worked = false;
        while let Some(mut mine) = line.claim(self.me) {
            let end = self.run_held(rank, queue, &mut mine, worklist);
            worked |= end != End::Waiting;
            if end == End::Finished {
                break;
            }
            line.release(mine);
            // What came before others knew that nobody has it any more.
            let failed = self.members[rank].session.failed().is_some();
            if end == End::Full || failed || !self.is_ready(rank, queue) {
                break;
            }
        }
        worked
    }

    /// Does what run_claimed() does, in one place for all callers that are not in a hurry: so a
    /// start finds it in the caches after a round that has driven out what it does not use.
    #[inline(never)]
    pub fn run_held(
        &self,
        rank: usize,
        queue: usize,
        mine: &mut Claim,
        worklist: &mut Worklist,
    ) -> End {
        self.run_claimed(rank, queue, mine, worklist)
    }

    /// Runs what is ready of a queue that was claimed as `mine`.
    #[inline(always)]
    pub fn run_claimed(
        &self,
        rank: usize,
        queue: usize,
        mine: &mut Claim,
        worklist: &mut Worklist,
    ) -> End {
        let session = &self.members[rank].session;
        let records = session.records(queue);
        let (round, first) = (mine.round(), mine.at);
        let end = loop {
            // A rank that scribbles over a session may have written any number.
            let at = records.start.saturating_add(mine.at);
            if at >= records.end {
                session.queue(queue).finish(*mine);
                break End::Finished;
            }
            let record = session.record(at);
            if !self.has_arrived(rank, queue, record, round) || session.failed().is_some() {
                break if mine.at == first { End::Waiting } else { End::Stopped };
            }
            let (action, size) = (record.action(), record.size());
            if !worklist.take(size) {
                break End::Full;
            }
            if worklist.signalled_count > 0 && self.takes_long(action, size, worklist) {
                // They are not to wait for this step.
                self.look_at_signalled(worklist);
            }
            if action != act::NOTHING
                && let Err(status) = self.perform(record, (action, size), round)
            {
                break self.not_performed(status, worklist);
            }
            mine.at += 1;
            let to = record.signal_rank();
            if to != NOBODY && record.marks().signals_in(round) {
                self.signal(rank, (record, to.into()), round, worklist);
            }
        };
        self.look_at_signalled(worklist);
        if end == End::Finished {
            self.notify_finished(rank, queue, round.wrapping_add(1));
        }
        end
    }

    /// Whether the ranks that were signalled would wait for long if this step came before the
    /// question which thread takes care of them.
    #[inline(always)]
    fn takes_long(&self, action: u8, size: u64, worklist: &mut Worklist) -> bool {
        worklist.since = worklist.since.saturating_add(size);
        let own = action == act::COMBINE && matches!(self.combiner, Some(Combiner::User(..)));
        worklist.since > Worklist::SHORT || own
    }

    /// The plan fails, for everybody.
    #[cold]
    pub fn fail(&self, status: Status) {
        if let Some(put_sender) = &self.put_sender {
            put_sender.tell_failed(&self.members, status);
        }
        for member in self.members.iter() {
            member.session.fail(status);
            // No step will end the sleep of a thread that waits for the round.
            if let Some(port) = self.routes.known(member.peer) {
                port.waiters().touched_anything();
            }
        }
    }

    /// A step of `rank` has been run in its round `round`: its signal.
    #[inline]
    fn signal(
        &self,
        rank: usize,
        (record, to): (Lying, usize),
        round: u32,
        worklist: &mut Worklist,
    ) {
        let queue = record.signal_queue() as usize;
        let session = &self.members[rank].session;
        if queue >= self.members[to].session.queues() || queue >= session.queues() {
            return self.fail(Status::ERR_INTERNAL);
        }
        if record.marks().signals_in_cell() {
            let word = self.cell(to, record.signal_total(), round);
            let Some(word) = word else { return self.fail(Status::ERR_INTERNAL) };
            signal(word, round.wrapping_add(1));
        } else {
            let value =
                round.wrapping_mul(record.signal_total()).wrapping_add(record.signal_count());
            session.queue(queue).send(to, value);
        }
        let signalled = self.members[to].session.queue(queue);
        between_word_and_is_polled_on();
        if signalled.is_polled_on() {
            return;
        }
        // Asked soon, and on its way while the fence waits for the line of the signal.
        prefetch(signalled.head);
        worklist.signalled[worklist.signalled_count] = Line::new(to, queue);
        worklist.signalled_count += 1;
        if worklist.signalled_count == worklist.signalled.len() {
            self.look_at_signalled(worklist);
        }
    }

    /// Finds out which thread takes care of the queues that were signalled since the last time.
    #[inline(always)]
    fn look_at_signalled(&self, worklist: &mut Worklist) {
        if worklist.signalled_count > 0 {
            self.ask(worklist);
        }
    }

    /// Finds out which thread takes care of the queues that were signalled. One fence is enough for
    /// them all.
    fn ask(&self, worklist: &mut Worklist) {
        between_word_and_look();
        worklist.since = 0;
        let (signalled, count) =
            (worklist.signalled, std::mem::take(&mut worklist.signalled_count));
        for (to, queue) in signalled[..count].iter().map(|line| line.place()) {
            let member = &self.members[to];
            if !member.session.queue(queue).is_left_alone() {
                continue;
            }
            if member.shared || to == self.me && worklist.owner {
                worklist.push(to, queue);
            } else if member.session.is_asleep() {
                self.routes.ring(member.peer);
            }
        }
    }

    /// A queue of `rank` has been counted as finished for the last of so many rounds.
    #[inline(always)]
    fn notify_finished(&self, rank: usize, queue: usize, round: u32) {
        let member = &self.members[rank];
        // The owner's own threads look for the end after they have run steps.
        if member.word.is_some() && rank != self.me {
            self.end_for(member, round);
        }
        if let Some(port) = self.routes.known(member.peer) {
            let control = member.session.offset(queue) as u64;
            port.waiters()
                .touched(Address { offset: member.address.offset + control, ..member.address }, 8);
        }
        if member.notified && rank != self.me && member.session.is_asleep() {
            self.routes.ring(member.peer);
        }
    }

    /// Ends the round of a rank whose completion is a word that is mapped here, if all its queues
    /// have finished: the rank may compute, and look at nothing but the word.
    #[inline(never)]
    fn end_for(&self, member: &Member, round: u32) {
        let (Some(word), Some(port)) = (member.word, self.routes.known(member.peer)) else {
            return;
        };
        let _pinned = pin();
        // Where the user has freed the word the owner tells him why that is wrong, or the process
        // ends, as with any completion.
        let Some(place) = port.find(word.place, 8) else { return };
        let target = place.cast();
        let completion = Completion { kind: word.kind, target, ..Completion::NOTHING };
        let session = &member.session;
        let finished = session.finished().map(|(_, finished)| finished);
        session
            .round_end()
            .end_if_last((round, self.me), finished, || completion.change_word(Status::OK));
        // Also where another one has changed it: its waiter is woken once too often.
        port.waiters().touched(word.place, 8);
    }

    /// Does what a step does with bytes, in this round.
    #[inline]
    fn perform(&self, record: Lying, what: (u8, u64), round: u32) -> Result<(), Status> {
        match self.perform_mapped(record, what, round) {
            Err(Status::ERR_KEY) if what.0 == act::PUT => self.put(record, what.1, round),
            Err(Status::ERR_KEY) if self.import(record, what) => {
                self.perform_mapped(record, what, round)
            }
            done => done,
        }
    }

    /// Like `perform`, with buffers that were mapped before.
    #[inline]
    fn perform_mapped(
        &self,
        record: Lying,
        (action, size): (u8, u64),
        round: u32,
    ) -> Result<(), Status> {
        let _pinned = pin();
        let to = self.find(record.place(2), size, round)?;
        let left = self.find(record.place(0), size, round)?;
        if action == act::COPY {
            // SAFETY: both ranges were found in memory that stays mapped while this is pinned, and
            // the schedule lets nobody else touch them now.
            unsafe { copy(left, to, size as usize) };
            return Ok(());
        }
        let right = self.find(record.place(1), size, round)?;
        let Some(combiner) = &self.combiner else { return Err(Status::ERR_INTERNAL) };
        // SAFETY: as above; operands are the result or do not overlap it, as schedules promise.
        unsafe { combiner.apply(left, right, to, size / self.width) };
        Ok(())
    }

    /// Where one of the places of a record lies here, in this round.
    #[inline]
    pub(super) fn find(
        &self,
        (rank, space, offset): (u16, u8, u64),
        size: u64,
        round: u32,
    ) -> Result<*mut u8, Status> {
        let member = &self.members[rank.into()];
        let Some(memory) = member.memory.get(usize::from(space)) else {
            return Err(Status::ERR_INTERNAL);
        };
        let (Memory::User(_, length)
        | Memory::Bound(_, length)
        | Memory::Plan(_, length)
        | Memory::Turns(_, length, _)
        | Memory::Far(length)) = *memory;
        if size > length || offset > length - size {
            return Err(Status::ERR_INTERNAL);
        }
        match *memory {
            Memory::Plan(base, _) => Ok(base.wrapping_add(offset as usize)),
            Memory::Turns(base, length, turns) => {
                let turn = u64::from(round & (turns - 1)) * length.next_multiple_of(64);
                Ok(base.wrapping_add((turn + offset) as usize))
            }
            Memory::User(address, _) => {
                let place = Address { offset: address.offset + offset, ..address };
                self.find_user(member.peer, place, size)
            }
            Memory::Bound(binding, _) => {
                // SAFETY: it lies in the rank's block, which stays as long as the plan.
                let place = unsafe { &*binding }.load(offset);
                self.find_user(member.peer, place, size)
            }
            Memory::Far(_) => Err(Status::ERR_KEY),
        }
    }

    #[inline(always)]
    fn find_user(&self, peer: u32, place: Address, size: u64) -> Result<*mut u8, Status> {
        let found = self.routes.known(peer).and_then(|port| port.find(place, size));
        found.map_or_else(|| self.find_unnamed(peer, place, size), Ok)
    }

    /// Memory of this rank's that is in no region, which only its own steps touch; else why none is
    /// found.
    #[cold]
    fn find_unnamed(&self, peer: u32, place: Address, size: u64) -> Result<*mut u8, Status> {
        let own = self.routes.own();
        let found = if own.peer == peer { own.find_near(place, size) } else { None };
        let dead = self.routes.is_dead(peer);
        found.ok_or(if dead { Status::ERR_PEER_DEAD } else { Status::ERR_KEY })
    }
}
