//! The control messages of a plan to ranks of other nodes. A put (`put`) is one control message, or
//! several if it has more bytes than a control message may carry (`engine::control_messages`). The
//! last one carries the signal. The bytes are copied when the control message is posted, so a step
//! is done when its last control message is posted. The bytes that were posted and not answered are
//! bounded (`room`). A queue that finds no room stays at its step, and continues when answers have
//! come.
//!
//! Where a network writes to the receiver's memory, a put is one write, of no bytes if it is a
//! signal alone, and its control message, which has no bytes, follows. The bytes of a write of at
//! most COPIED bytes are copied, too. A longer one is a write *in place*: its step is done when the
//! write has ended.

mod room;

use crate::coll::runner::in_arc;
use crate::coll::runner::members::Members;
use crate::coll::schedule::QUEUES;
use crate::core::services::Services;
use crate::engine::control_messages::{ControlMessage, Ended, Words, Write};
use crate::util::status::{Result, Status};
use room::Room;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

/// A control message of a plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlanMessage {
    /// Bytes, and perhaps a signal.
    Put(Put),
    /// The plan fails for a rank when it has ended this round; None: it fails at once.
    Failed(Status, Option<u32>),
}

/// A part of a put.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Put {
    /// Which memory of the receiver, as in Space.
    pub space: u8,
    /// The offset in that memory.
    pub offset: u64,
    /// The round of the sender, from 0 on.
    pub round: u32,
    /// The queue of the sender.
    pub queue: u8,
    /// How many control messages this queue has sent to this rank before.
    pub sequence: u32,
    /// What follows the bytes.
    pub signal: Signal,
}

/// The signal that a control message carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signal {
    /// None.
    Nothing,
    /// To this queue; the signal word gets this value.
    Word(u8, u32),
    /// To this queue, in the cell with this number.
    Cell(u8, u32),
}

/// The most bytes of a write that are copied. The sender may be rounds ahead with puts of so many
/// bytes, and waits for the receiver before it puts more.
pub const COPIED: u64 = 64 << 10;
/// Value of the `space` byte that marks a Failed control message.
const FAILED: u64 = 255;
/// A bit beside the round of a Failed control message.
const AFTER_ROUND: u64 = 1 << 32;

impl PlanMessage {
    /// The control message as words.
    pub fn encode(self) -> Words {
        match self {
            PlanMessage::Failed(status, round) => {
                let round = round.map_or(0, |round| AFTER_ROUND | u64::from(round));
                [status.0 as u32 as u64, round, FAILED << 32]
            }
            PlanMessage::Put(Put { space, offset, round, queue, sequence, signal }) => {
                let (kind, to, number) = match signal {
                    Signal::Nothing => (0, 0, 0),
                    Signal::Word(to, value) => (1, to, value),
                    Signal::Cell(to, number) => (2, to, number),
                };
                let marks = u64::from(sequence)
                    | u64::from(space) << 32
                    | u64::from(queue) << 40
                    | u64::from(to) << 48
                    | kind << 56;
                [offset, u64::from(round) | u64::from(number) << 32, marks]
            }
        }
    }

    /// Decodes a control message. None: the words are not a valid one.
    pub fn decode([offset, numbers, marks]: Words) -> Option<PlanMessage> {
        let byte = |at: u32| (marks >> at) as u8;
        if byte(32) == FAILED as u8 {
            let round = (numbers & AFTER_ROUND != 0).then_some(numbers as u32);
            return Some(PlanMessage::Failed(Status(offset as u32 as i32), round));
        }
        let number = (numbers >> 32) as u32;
        let (space, queue, to) = (byte(32), byte(40), byte(48));
        let signal = match byte(56) {
            0 => Signal::Nothing,
            1 => Signal::Word(to, number),
            2 => Signal::Cell(to, number),
            _ => return None,
        };
        let (round, sequence) = (numbers as u32, marks as u32);
        Some(PlanMessage::Put(Put { space, offset, round, queue, sequence, signal }))
    }
}

/// The sending side of a plan; see the head of the file.
pub struct PutSender {
    /// The name of the plan, equal at all ranks.
    name: u64,
    /// See sequence().
    sequences: Box<[AtomicU32]>,
    /// See done().
    done: [AtomicU64; QUEUES],
    answers: Arc<Answers>,
    /// Whether this rank has reported to the ranks of other nodes that the plan has failed.
    failure_sent: AtomicBool,
}

/// Receives the answers, which may come after the plan was freed.
struct Answers {
    services: Arc<Services>,
    room: Room,
}

impl Answers {
    /// The command queue may be full, and its commands may be ending just now. Then the message is
    /// parked.
    fn send_failed(&self, peer: u32, name: u64, (status, round): (Status, Option<u32>)) {
        let words = PlanMessage::Failed(status, round).encode();
        self.services.send_control_or_park(peer, name, words);
    }
}

impl Ended for Answers {
    fn ended(&self, _: u32, bytes: usize, _: Status) {
        // The status is ignored: a peer that did not take the message has died, which every rank
        // finds out, or reports the failure of the plan itself.
        if self.room.ended(bytes) {
            self.services.background.call(true);
        }
    }
}

/// Receives the end of a write.
struct WriteEnd {
    answers: Arc<Answers>,
    /// The name of the plan.
    name: u64,
    /// The queue, if the write is in place.
    queue: Option<usize>,
}

impl Ended for WriteEnd {
    fn ended(&self, peer: u32, bytes: usize, status: Status) {
        match self.queue {
            Some(queue) => self.answers.room.write_ended(queue, status),
            None if matches!(status, Status::OK | Status::ERR_PEER_DEAD | Status::ERR_CANCELED) => {
            }
            // The receiver does not know that the bytes were refused. Its plan fails, and it
            // reports that to this rank, too.
            None => self.answers.send_failed(peer, self.name, (status, None)),
        }
        self.answers.ended(peer, bytes, status);
    }
}

impl PutSender {
    /// For a plan with this name and so many edges.
    pub fn new(services: Arc<Services>, name: u64, edges: usize) -> PutSender {
        PutSender {
            name,
            sequences: (0..edges).map(|_| AtomicU32::new(0)).collect(),
            done: Default::default(),
            answers: Arc::new(Answers { services, room: Room::default() }),
            failure_sent: AtomicBool::new(false),
        }
    }

    /// Bytes in this process's memory, without posted control messages.
    pub fn bytes(edges: usize) -> usize {
        in_arc::<PutSender>() + in_arc::<Answers>() + edges * size_of::<AtomicU32>()
    }

    /// Whether a queue waits for room: its next step cannot be run now.
    pub fn is_stalled(&self, queue: usize) -> bool {
        self.answers.room.is_stalled(queue)
    }

    /// Posts a part of a put, for which the caller has taken room.
    pub fn post(&self, peer: u32, put: Put, bytes: &[u8]) -> std::result::Result<(), Status> {
        let words = PlanMessage::Put(put).encode();
        let message = ControlMessage { peer, name: self.name, words, keep: false, bytes };
        let ends = self.answers.clone() as Arc<dyn Ended>;
        self.answers.services.send_control(&message, &ends).map_err(|error| error.status)
    }

    /// Posts a write, for which the caller has taken room, and the control message that follows.
    /// finish_write() tells of the end of a write in place.
    ///
    /// # Safety
    /// `write` finds bytes that are valid while this thread is pinned. The bytes of a write in
    /// place are valid until its end, and nobody changes them.
    pub unsafe fn write(
        &self,
        peer: u32,
        put: Put,
        in_place: bool,
        write: impl Fn() -> Result<Write>,
    ) -> std::result::Result<(), Status> {
        let (queue, words) = (usize::from(put.queue), PlanMessage::Put(put).encode());
        let message = ControlMessage { peer, name: self.name, words, keep: false, bytes: &[] };
        let (answers, name) = (self.answers.clone(), self.name);
        let end = WriteEnd { answers, name, queue: in_place.then_some(queue) };
        let ends = Arc::new(end) as Arc<dyn Ended>;
        if in_place {
            self.answers.room.begin_write(queue);
        }
        // SAFETY: as the caller promises.
        let posted = unsafe { self.answers.services.write_with_control(&message, write, &ends) };
        posted.map_err(|error| {
            self.answers.room.no_write(queue);
            error.status
        })
    }

    /// Whether a queue has posted a write in place whose end finish_write() has not returned.
    pub fn has_write(&self, queue: usize) -> bool {
        self.answers.room.has_write(queue)
    }

    /// The status of a queue's write in place. None: it is under way, and the queue is marked as
    /// waiting.
    pub fn finish_write(&self, queue: usize) -> Option<Status> {
        self.answers.room.finish_write(queue)
    }

    /// Whether a network may still read bytes of this rank in place.
    pub fn writes(&self) -> bool {
        (0..QUEUES).any(|queue| self.answers.room.writes(queue))
    }

    /// Sends to the ranks of other nodes, once, that the plan fails when they have ended `round`;
    /// None: at once.
    pub fn send_failed(&self, members: &Members, status: Status, round: Option<u32>) {
        if self.failure_sent.swap(true, Ordering::Relaxed) {
            return;
        }
        for member in members.iter().filter(|member| member.is_far()) {
            self.answers.send_failed(member.peer, self.name, (status, round));
        }
    }

    /// Takes room for so many bytes. False: there is none, and the queue is marked as waiting for
    /// room.
    pub fn try_take(&self, bytes: usize, queue: usize) -> bool {
        self.answers.room.try_take(bytes, queue)
    }

    /// Gives back room for a control message that was not posted.
    pub fn give_back(&self, bytes: usize) {
        self.answers.room.give_back(bytes);
    }

    /// How many control messages were posted on an edge; only the holder of the queue's claim
    /// changes it.
    pub fn sequence(&self, edge: usize) -> Option<&AtomicU32> {
        self.sequences.get(edge)
    }

    /// How many bytes of the queue's present step were posted; only the holder of its claim changes
    /// it.
    pub fn done(&self, queue: usize) -> &AtomicU64 {
        &self.done[queue & (QUEUES - 1)]
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::core::services::tests::{NAME, comes_from_a_full_queue};

    #[test]
    fn the_failure_of_a_copied_write_is_told_even_if_the_command_queue_is_full() {
        let status = Status::ERR_KEY;
        comes_from_a_full_queue(PlanMessage::Failed(status, None).encode(), move |services| {
            let answers = PutSender::new(services.clone(), NAME, 0).answers;
            WriteEnd { answers, name: NAME, queue: None }.ended(0, 0, status);
        });
    }

    #[test]
    fn a_control_message_is_decoded_as_it_was_encoded() {
        let put = |signal| Put {
            space: 2,
            offset: u64::MAX - 1,
            round: u32::MAX,
            queue: 7,
            sequence: u32::MAX - 2,
            signal,
        };
        let signals = [Signal::Nothing, Signal::Word(6, u32::MAX), Signal::Cell(5, 70_000)];
        let puts = signals.map(|signal| PlanMessage::Put(put(signal)));
        let failed =
            [(Status::ERR_KEY, None), (Status::ERR_CANCELED, Some(0)), (Status::ERR_KEY, Some(9))];
        for what in
            puts.into_iter().chain(failed.map(|(status, round)| PlanMessage::Failed(status, round)))
        {
            assert_eq!(PlanMessage::decode(what.encode()), Some(what));
        }
        assert_eq!(PlanMessage::decode([0, 0, 3 << 56]), None);
    }
}
