//! The actions of steps in shared memory, for this rank's queues and those of other ranks. The
//! thread that delivers a signal runs the steps that the signal releases, so that a rank may
//! compute meanwhile. `stepping` has the loops.

use crate::coll::runner::members::{Member, Members, Memory, turn_of};
use crate::coll::runner::put_sender::PutSender;
use crate::coll::runner::queue::{Queue, has_reached, signal};
use crate::coll::runner::record::{NOBODY, RecordRef, act};
use crate::coll::runner::stepping::Ranks;
use crate::coll::schedule::{CELL, CELL_WORD};
use crate::engine::by_caller::copy;
use crate::engine::completion::Completion;
use crate::engine::routes::Routes;
use crate::transport::address::Address;
use crate::util::pin::pin;
use crate::util::status::Status;
use crate::util::sync::AtomicU32;
use std::sync::Arc;

pub use crate::coll::runner::combiner::{Combiner, Reduction, UserFunction};
pub use crate::coll::runner::stepping::End;
pub use crate::coll::runner::worklist::Worklist;

/// The state by which a process runs the steps of a plan. A process has one for each plan.
pub struct Stage {
    /// This rank's number in the team.
    pub me: usize,
    /// The ranks that this process reaches: at least those that its own steps name.
    pub members: Members,
    /// The world ranks of all ranks of the team, by team rank.
    pub peers: Arc<[u32]>,
    /// How elements are combined.
    pub combiner: Option<Combiner>,
    /// Bytes of an element.
    pub width: u64,
    /// The paths to the peers.
    pub routes: Arc<Routes>,
    /// Sends puts, where this rank's steps name ranks of other nodes.
    pub put_sender: Option<Arc<PutSender>>,
}

// SAFETY: the pointers point into memory that the plan keeps. Schedules order the accesses of the
// ranks that share it.
unsafe impl Send for Stage {}
// SAFETY: as above.
unsafe impl Sync for Stage {}

impl Ranks for Stage {
    type Step = RecordRef;

    #[inline(always)]
    fn me(&self) -> usize {
        self.me
    }

    #[inline(always)]
    fn queue(&self, rank: usize, queue: usize) -> Queue<'_> {
        self.members[rank].session.queue(queue)
    }

    #[inline(always)]
    fn step(&self, rank: usize, queue: usize, at: u32) -> Option<RecordRef> {
        let session = &self.members[rank].session;
        let records = session.records(queue);
        // A peer may have overwritten `at` with any number.
        let at = records.start.saturating_add(at);
        (at < records.end).then(|| session.record(at))
    }

    #[inline(always)]
    fn has_arrived(&self, rank: usize, queue: usize, record: RecordRef, round: u32) -> bool {
        let (from, marks) = (record.wait_from(), record.marks());
        from == NOBODY || !marks.waits_in(round) || {
            if marks.waits_for_cell() {
                let (number, least) = (record.wait_total(), round.wrapping_add(1));
                let word = self.cell(rank, number, round);
                return word.is_some_and(|word| has_reached(word, least));
            }
            let least = round.wrapping_mul(record.wait_total()).wrapping_add(record.wait_count());
            let from = &self.members[from as usize].session;
            queue < from.queues() && from.queue(queue).has_sent(rank, least)
        }
    }

    #[inline(always)]
    fn has_failed(&self, rank: usize) -> bool {
        self.members[rank].session.failed().is_some()
    }

    #[inline(always)]
    fn size(&self, record: RecordRef) -> u64 {
        record.size()
    }

    #[inline(always)]
    fn is_users(&self, record: RecordRef) -> bool {
        record.action() == act::COMBINE && matches!(self.combiner, Some(Combiner::User(..)))
    }

    #[inline(always)]
    fn perform(&self, record: RecordRef, round: u32, worklist: &mut Worklist) -> Result<(), End> {
        let (action, size) = (record.action(), record.size());
        if action == act::NOTHING {
            return Ok(());
        }
        let acted = self.act(record, (action, size), round);
        acted.map_err(|status| self.not_performed(status, worklist))
    }

    #[inline(always)]
    fn signal(&self, rank: usize, record: RecordRef, round: u32) -> Option<(usize, usize)> {
        let to = record.signal_rank();
        if to == NOBODY || !record.marks().signals_in(round) {
            return None;
        }
        self.store_signal(rank, (record, to.into()), round)
    }

    #[inline(always)]
    fn is_shared(&self, rank: usize) -> bool {
        self.members[rank].shared
    }

    #[inline]
    fn ring_if_asleep(&self, rank: usize) {
        let member = &self.members[rank];
        if member.session.is_asleep() {
            self.routes.ring(member.peer);
        }
    }

    #[inline(always)]
    fn notify_finished(&self, rank: usize, queue: usize, round: u32) {
        let member = &self.members[rank];
        // The owner's own threads end the round after they have run steps.
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
}

impl Stage {
    /// The signal word of cell `number` of a rank, in the turn of scratch memory that this round
    /// uses.
    #[inline(always)]
    pub(super) fn cell(&self, rank: usize, number: u32, round: u32) -> Option<&AtomicU32> {
        let Memory::Turns(base, length, turns) = self.members[rank].memory[2] else { return None };
        let end = (u64::from(number) + 1) * CELL;
        if end > length {
            return None;
        }
        let at = turn_of(round, length, turns) + end - CELL_WORD;
        let word = base.wrapping_add(at as usize).cast::<AtomicU32>();
        // SAFETY: scratch memory begins with a line, and each of its turns has `length` bytes
        // rounded up to lines. No step copies over the last bytes of a cell, as schedules promise.
        Some(unsafe { &*word })
    }

    /// Fails the plan at all ranks that this one reaches.
    #[cold]
    pub fn fail(&self, status: Status) {
        if let Some(put_sender) = &self.put_sender {
            put_sender.send_failed(&self.members, status, None);
        }
        for member in self.members.iter() {
            member.session.fail(status);
            // A thread that sleeps in the wait would otherwise not wake, since no step ends this
            // round.
            if let Some(port) = self.routes.known(member.peer) {
                port.waiters().touched_anything();
            }
        }
    }

    /// Stores the signal of a step and returns the rank and the queue that it is for.
    #[inline]
    fn store_signal(
        &self,
        rank: usize,
        (record, to): (RecordRef, usize),
        round: u32,
    ) -> Option<(usize, usize)> {
        let queue = record.signal_queue() as usize;
        let session = &self.members[rank].session;
        if queue >= self.members[to].session.queues() || queue >= session.queues() {
            self.fail(Status::ERR_INTERNAL);
            return None;
        }
        if record.marks().signals_in_cell() {
            let Some(word) = self.cell(to, record.signal_total(), round) else {
                self.fail(Status::ERR_INTERNAL);
                return None;
            };
            signal(word, round.wrapping_add(1));
        } else {
            let value =
                round.wrapping_mul(record.signal_total()).wrapping_add(record.signal_count());
            session.queue(queue).send(to, value);
        }
        Some((to, queue))
    }

    /// If the completion of a rank is a word that is mapped here: changes the word and ends the
    /// rank's round, if all its queues have finished. The rank may compute and read only the word.
    #[inline(never)]
    fn end_for(&self, member: &Member, round: u32) {
        let (Some(word), Some(port)) = (member.word, self.routes.known(member.peer)) else {
            return;
        };
        let _pinned = pin();
        // If the user has freed the word, find() fails, and a thread of the owner fires the
        // completion.
        let Some(place) = port.find(word.place, 8) else { return };
        let target = place.cast();
        let completion = Completion { kind: word.kind, target, ..Completion::NOTHING };
        let session = &member.session;
        let finished = session.finished().map(|(_, finished)| finished);
        // SAFETY: find() vouches for the word while this thread is pinned.
        let change = || unsafe { completion.change_word(Status::OK) };
        session.round_end().end_if_last((round, self.me), finished, change);
        // The call also wakes threads if another thread has changed the word, which does no harm.
        port.waiters().touched(word.place, 8);
    }

    /// Moves or combines the bytes of a step. If a buffer is not mapped yet, it maps the buffer or
    /// puts to it.
    #[inline]
    fn act(&self, record: RecordRef, what: (u8, u64), round: u32) -> Result<(), Status> {
        match self.act_mapped(record, what, round) {
            Err(Status::ERR_KEY) if what.0 == act::PUT => self.put(record, what.1, round),
            Err(Status::ERR_KEY) if self.import(record, what) => {
                self.act_mapped(record, what, round)
            }
            done => done,
        }
    }

    /// Like `act`, but only with mapped buffers. ERR_KEY: a buffer is not mapped.
    #[inline]
    fn act_mapped(
        &self,
        record: RecordRef,
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

    /// The local address of an operand of a record, in this round.
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
        | Memory::Far(length)
        | Memory::Remote(_, length, _)) = *memory;
        if size > length || offset > length - size {
            return Err(Status::ERR_INTERNAL);
        }
        match *memory {
            Memory::Plan(base, _) => Ok(base.wrapping_add(offset as usize)),
            Memory::Turns(base, length, turns) => {
                Ok(base.wrapping_add((turn_of(round, length, turns) + offset) as usize))
            }
            Memory::User(address, _) => {
                let place = Address { offset: address.offset + offset, ..address };
                self.find_user(member.peer, place, size)
            }
            Memory::Bound(binding, _) => {
                // SAFETY: the binding lies in the rank's block, which stays as long as the plan.
                let place = unsafe { &*binding }.load(offset);
                self.find_user(member.peer, place, size)
            }
            Memory::Far(_) | Memory::Remote(..) => Err(Status::ERR_KEY),
        }
    }

    #[inline(always)]
    fn find_user(&self, peer: u32, place: Address, size: u64) -> Result<*mut u8, Status> {
        let found = self.routes.known(peer).and_then(|port| port.find(place, size));
        found.map_or_else(|| self.find_unnamed(peer, place, size), Ok)
    }

    /// The address of memory of this rank that is in no region, which only this rank's steps name.
    /// An error says why the place was not found.
    #[cold]
    fn find_unnamed(&self, peer: u32, place: Address, size: u64) -> Result<*mut u8, Status> {
        let own = self.routes.own();
        let found = if own.peer == peer { own.find_near(place, size) } else { None };
        let dead = self.routes.is_dead(peer);
        found.ok_or(if dead { Status::ERR_PEER_DEAD } else { Status::ERR_KEY })
    }
}
