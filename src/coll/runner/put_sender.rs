//! What a plan sends to ranks of other nodes. A put (`put`) is a notice, or several for many bytes:
//! of as many as a notice may have (`engine::notices`), of which the last one carries the signal.
//! Its bytes are copied as it is posted, so a step is done when its last notice is. What has not
//! been answered is bounded: a queue that finds no room keeps its step, and goes on when answers
//! have come (`room`).

mod room;

use crate::coll::runner::members::Members;
use crate::coll::schedule::QUEUES;
use crate::core::services::Services;
use crate::engine::notices::{Ended, Notice, Words};
use crate::util::status::Status;
use room::Room;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

/// What a notice of a plan says, as words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Told {
    /// Bytes, and perhaps a signal.
    Put(Put),
    /// The plan has failed, for whoever has ended this round; 0: for everybody.
    Failed(Status, u32),
}

/// A part of a put.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Put {
    /// Which memory of the receiver, and where in it.
    pub space: u8,
    /// See `space`.
    pub offset: u64,
    /// In which round of the sender, from 0 on.
    pub round: u32,
    /// The sender's queue, and how many notices of it there were for this rank.
    pub queue: u8,
    /// See `queue`.
    pub sequence: u32,
    /// What follows the bytes.
    pub signal: Signal,
}

/// A signal of a put.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signal {
    /// None.
    Nothing,
    /// To this queue, and what its word becomes.
    Word(u8, u32),
    /// To this queue, by the cell with this number.
    Cell(u8, u32),
}

/// In the place of the memory.
const FAILED: u64 = 255;

impl Told {
    /// As it travels.
    pub fn encode(self) -> Words {
        match self {
            Told::Failed(status, round) => [status.0 as u32 as u64, round.into(), FAILED << 32],
            Told::Put(Put { space, offset, round, queue, sequence, signal }) => {
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

    /// As it has come; None: nobody sends that.
    pub fn decode([offset, numbers, marks]: Words) -> Option<Told> {
        let byte = |at: u32| (marks >> at) as u8;
        if byte(32) == FAILED as u8 {
            return Some(Told::Failed(Status(offset as u32 as i32), numbers as u32));
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
        Some(Told::Put(Put { space, offset, round, queue, sequence, signal }))
    }
}

/// See the head of the file.
pub struct PutSender {
    /// What all ranks call the plan.
    name: u64,
    /// See sequence().
    sequences: Box<[AtomicU32]>,
    /// See done().
    done: [AtomicU64; QUEUES],
    answers: Arc<Answers>,
    /// The ranks of other nodes have been told that the plan has failed.
    told: AtomicBool,
}

/// What hears of answers, which may come when the plan is gone.
struct Answers {
    services: Arc<Services>,
    room: Room,
}

impl Ended for Answers {
    fn ended(&self, _: u32, bytes: usize, _: Status) {
        // A peer that did not take it has died, which all notice, or says that the plan has failed.
        if self.room.ended(bytes) {
            self.services.background.call(true);
        }
    }
}

impl PutSender {
    /// For a plan that all call by this name, with so many edges.
    pub fn new(services: Arc<Services>, name: u64, edges: usize) -> PutSender {
        PutSender {
            name,
            sequences: (0..edges).map(|_| AtomicU32::new(0)).collect(),
            done: Default::default(),
            answers: Arc::new(Answers { services, room: Room::default() }),
            told: AtomicBool::new(false),
        }
    }

    /// What it takes of this process's memory, but for what is posted.
    pub fn bytes(edges: usize) -> usize {
        size_of::<PutSender>() + size_of::<Answers>() + edges * size_of::<AtomicU32>()
    }

    /// Whether a queue waits for room, so that there is nothing to do for it.
    pub fn is_stalled(&self, queue: usize) -> bool {
        self.answers.room.is_stalled(queue)
    }

    /// Posts what is told, for which room was taken.
    pub fn post(&self, peer: u32, told: Told, bytes: &[u8]) -> Result<(), Status> {
        let notice = Notice { peer, name: self.name, words: told.encode(), keep: false, bytes };
        let ends = self.answers.clone() as Arc<dyn Ended>;
        self.answers.services.notify(&notice, &ends).map_err(|error| error.status)
    }

    /// Tells ranks of other nodes that the plan has failed, once.
    pub fn tell_failed(&self, members: &Members, status: Status) {
        if !self.told.swap(true, Ordering::Relaxed) {
            self.tell_failed_after(members, status, 0);
        }
    }

    /// Tells ranks of other nodes that the plan fails when they have ended this round.
    pub fn tell_failed_after(&self, members: &Members, status: Status, round: u32) {
        self.told.store(true, Ordering::Relaxed);
        for member in members.iter().filter(|member| member.is_far()) {
            self.answers.room.take_anyhow(0);
            // Where not even that finds room, the peer waits until this rank dies or leaves.
            if self.post(member.peer, Told::Failed(status, round), &[]).is_err() {
                self.give_back(0);
            }
        }
    }

    /// Takes room for so many bytes. False: there is none, and the queue waits for it.
    pub fn takes(&self, bytes: usize, queue: usize) -> bool {
        self.answers.room.takes(bytes, queue)
    }

    /// The room that was taken for so many bytes is free again.
    pub fn give_back(&self, bytes: usize) {
        self.answers.room.give_back(bytes);
    }

    /// How many notices were posted on an edge; only the holder of the queue's claim changes it.
    pub fn sequence(&self, edge: usize) -> Option<&AtomicU32> {
        self.sequences.get(edge)
    }

    /// How much of the step that a queue is at was posted; likewise.
    pub fn done(&self, queue: usize) -> &AtomicU64 {
        &self.done[queue & (QUEUES - 1)]
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn what_is_told_comes_out_as_it_went_in() {
        let put = |signal| Put {
            space: 2,
            offset: u64::MAX - 1,
            round: u32::MAX,
            queue: 7,
            sequence: u32::MAX - 2,
            signal,
        };
        let signals = [Signal::Nothing, Signal::Word(6, u32::MAX), Signal::Cell(5, 70_000)];
        let puts = signals.map(|signal| Told::Put(put(signal)));
        let failed = [Told::Failed(Status::ERR_KEY, 0), Told::Failed(Status::ERR_CANCELED, 9)];
        for told in puts.into_iter().chain(failed) {
            assert_eq!(Told::decode(told.encode()), Some(told));
        }
        assert_eq!(Told::decode([0, 0, 3 << 56]), None);
    }
}
