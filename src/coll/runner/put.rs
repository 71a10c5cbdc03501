//! Steps that put to ranks of other nodes; `put_sender` has the format and the flow control.

use crate::coll::runner::members::Member;
use crate::coll::runner::put_sender::{PlanMessage, Put, PutSender, Signal};
use crate::coll::runner::record::{Edge, RecordRef};
use crate::coll::runner::shared::{End, Stage};
use crate::coll::runner::worklist::Worklist;
use crate::engine::control_messages::MOST;
use crate::util::pin::pin;
use crate::util::status::Status;
use std::sync::atomic::Ordering;

impl Stage {
    /// Posts the control messages of a step that were not posted yet. The last one carries the
    /// signal. RETRY_BUSY: the plan's room is used up, and the progress thread runs this queue when
    /// an answer has come. RETRY_QUEUE_FULL: the command queue is full, and the caller must try
    /// again.
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
        loop {
            let at = done.load(Ordering::Relaxed);
            let length = size.saturating_sub(at).min(MOST as u64);
            let last = at + length >= size;
            if last && length == 0 && signal == Signal::Nothing {
                break;
            }
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
        put_sender.post(member.peer, PlanMessage::Put(put), &bytes)
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
