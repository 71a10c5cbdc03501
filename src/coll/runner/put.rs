//! Steps that put to ranks of other nodes; `put_sender` has the format and the flow control.

use crate::coll::runner::members::{Member, Memory, turn_of};
use crate::coll::runner::put_sender::{COPIED, Put, PutSender, Signal};
use crate::coll::runner::record::{Edge, RecordRef};
use crate::coll::runner::shared::{End, Stage};
use crate::coll::runner::worklist::Worklist;
use crate::coll::schedule::Space;
use crate::engine::control_messages::{MOST, Write};
use crate::transport::Access;
use crate::transport::address::Address;
use crate::util::pin::pin;
use crate::util::status::{Error, Status};
use std::sync::atomic::Ordering;

impl Stage {
    /// Posts the write of a step, or the control messages that were not posted yet. The last one
    /// carries the signal. RETRY_BUSY: the plan's room is used up, or the write has not ended, and
    /// the progress thread runs this queue when an answer has come. RETRY_QUEUE_FULL: the command
    /// queue is full, and the caller must try again.
    #[cold]
    pub(super) fn put(&self, record: RecordRef, size: u64, round: u32) -> Result<(), Status> {
        let (edge, (to, space, offset)) = (Edge::of(record), record.place(2));
        let member = &self.members[to.into()];
        let Some(put_sender) = &self.put_sender else { return Err(Status::ERR_INTERNAL) };
        let Some(sequence) = put_sender.sequence(edge.number).filter(|_| member.is_far()) else {
            return Err(Status::ERR_INTERNAL);
        };
        let signal = signal(record, edge, round);
        let done = put_sender.done(edge.queue);
        if put_sender.has_write(edge.queue) {
            return end_of_write(put_sender, edge.queue);
        }
        if size == 0 && signal == Signal::Nothing {
            return Ok(());
        }
        let begins = done.load(Ordering::Relaxed) == 0;
        // A signal alone comes with a write of no bytes, for which any place will do.
        let place = if size == 0 { (Space::Scratch as u8, 0) } else { (space, offset) };
        if let Some(to) = self.writable(member, place, size, round).filter(|_| begins) {
            let (queue, number) = (edge.queue as u8, sequence.load(Ordering::Relaxed));
            let put = Put { space, offset: 0, round, queue, sequence: number, signal };
            self.write(put_sender, (member.peer, to), put, (record, size))?;
            sequence.store(number.wrapping_add(1), Ordering::Relaxed);
            return match size <= COPIED {
                true => Ok(()),
                false => end_of_write(put_sender, edge.queue),
            };
        }
        loop {
            let at = done.load(Ordering::Relaxed);
            let length = size.saturating_sub(at).min(MOST as u64);
            let last = at + length >= size;
            if !put_sender.try_take(length as usize, edge.queue) {
                return Err(Status::RETRY_BUSY);
            }
            let put = Put {
                space,
                offset: offset + at,
                round,
                queue: edge.queue as u8,
                sequence: sequence.load(Ordering::Relaxed),
                signal: if last { signal } else { Signal::Nothing },
            };
            let posted = self.put_some(put_sender, member, put, (record, at, length));
            if let Err(status) = posted {
                put_sender.give_back(length as usize);
                return Err(status);
            }
            sequence.store(put.sequence.wrapping_add(1), Ordering::Relaxed);
            done.store(at + length, Ordering::Relaxed);
            if last {
                break;
            }
        }
        done.store(0, Ordering::Relaxed);
        Ok(())
    }

    /// The address of a place at a rank of another node, if a network writes there and announces
    /// the bytes.
    fn writable(
        &self,
        member: &Member,
        (space, offset): (u8, u64),
        size: u64,
        round: u32,
    ) -> Option<Address> {
        let memory = member.memory.get(usize::from(space));
        let Some(Memory::Remote(base, length, turns)) = memory.copied() else { return None };
        if size > length || offset > length - size {
            return None;
        }
        let to = Address { offset: base.offset + turn_of(round, length, turns) + offset, ..base };
        let port = self.routes.known(member.peer)?;
        // The first call asks the peer for the network's key, and finds none. If the key is not
        // valid any more, the receiver refuses the control message, and its plan fails.
        let posted = matches!(self.routes.locate(port, to, size), Ok(Access::Posted(_)));
        (posted && self.routes.fabric().has_signals(member.peer)).then_some(to)
    }

    /// Posts a put as one write.
    fn write(
        &self,
        put_sender: &PutSender,
        (peer, to): (u32, Address),
        put: Put,
        (record, size): (RecordRef, u64),
    ) -> Result<(), Status> {
        let copied = size <= COPIED;
        let counted = if copied { size as usize } else { 0 };
        if !put_sender.try_take(counted, put.queue.into()) {
            return Err(Status::RETRY_BUSY);
        }
        let write = || {
            let from = match size {
                0 => std::ptr::dangling_mut(),
                _ => self.find(record.place(0), size, put.round).map_err(Error::bare)?,
            };
            Ok(Write { to, from, size, copied })
        };
        // SAFETY: find() vouches for the bytes while this thread is pinned. The schedule lets
        // nobody write there before the step is done, which is behind the end of a write in place;
        // the user may not either (see `plan::quiet`).
        let posted = unsafe { put_sender.write(peer, put, !copied, write) };
        posted.inspect_err(|_| put_sender.give_back(counted))
    }

    /// Turns the status of a step that was not performed into the reason why the run ends.
    #[cold]
    pub(super) fn not_performed(&self, status: Status, worklist: &mut Worklist) -> End {
        if status.is_retry() {
            // A put found no room. Free room of the plan (RETRY_BUSY) is announced. A free place in
            // the command queue is not, so `left` makes the caller leave the step to the progress
            // thread.
            worklist.left |= status == Status::RETRY_QUEUE_FULL;
            return End::Full;
        }
        self.fail(status);
        End::Stopped
    }

    fn put_some(
        &self,
        put_sender: &PutSender,
        member: &Member,
        put: Put,
        (record, at, length): (RecordRef, u64, u64),
    ) -> Result<(), Status> {
        let (rank, space, offset) = record.place(0);
        let bytes: Box<[u8]> = match length {
            0 => Box::default(),
            _ => {
                let _pinned = pin();
                let from = self.find((rank, space, offset + at), length, put.round)?;
                // SAFETY: found in memory that stays mapped while this is pinned, and the schedule
                // lets nobody write there now.
                unsafe { std::slice::from_raw_parts(from, length as usize) }.into()
            }
        };
        put_sender.post(member.peer, put, &bytes)
    }
}

/// RETRY_BUSY: the queue's write in place is under way.
fn end_of_write(put_sender: &PutSender, queue: usize) -> Result<(), Status> {
    match put_sender.finish_write(queue) {
        None => Err(Status::RETRY_BUSY),
        Some(Status::OK) => Ok(()),
        Some(status) => Err(status),
    }
}

/// The signal that the last control message of a put carries in this round.
fn signal(record: RecordRef, edge: Edge, round: u32) -> Signal {
    let to = record.signal_queue();
    match (edge.signals && record.marks().signals_in(round), record.marks().signals_in_cell()) {
        (false, _) => Signal::Nothing,
        (true, true) => Signal::Cell(to, record.signal_total()),
        (true, false) => {
            let before = round.wrapping_mul(record.signal_total());
            Signal::Word(to, before.wrapping_add(record.signal_count()))
        }
    }
}
