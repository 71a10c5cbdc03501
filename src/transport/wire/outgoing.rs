//! The send queue in front of a lane. A lane takes a prefix of the frames that it is given, or
//! none; the rest waits here, in order for each peer and class. Grants and the endpoint's limit
//! `QUEUED` bound its length. Frames that the lane has taken stay in memory here until their
//! completion.

use super::grants::{LINES, Packet};
use super::packet::bytes_of;
use super::pieces::cut;
use super::{CLASS_ANSWER, CLASS_KNOCKS, CLASS_LIB, CLASS_USER, Command, Piece, WireLane};
use crate::transport::frame::Class;
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, VecDeque};

/// Most commands of one post.
const BATCH: usize = 16;

/// A peer and a class.
type To = (u32, u32);

/// See the head of the file.
pub struct Outgoing {
    frame_most: usize,
    /// Number of packets that were ever added; numbers the next one.
    packets: u64,
    /// The queues that are not empty.
    queues: BTreeMap<To, VecDeque<Box<[u8]>>>,
    /// The keys of `queues`.
    waiting: Vec<To>,
    /// Number of frames in all queues.
    count: usize,
    /// Frames that the lane has taken and not completed, by tag, with their receivers.
    taken: BTreeMap<u64, (u32, Box<[u8]>)>,
    /// The tag of the next command.
    tags: u64,
}

/// The class in which a packet travels. Packets without which a peer cannot continue travel in
/// [`CLASS_ANSWER`], where no packet that needs a slot of its receiver delays them.
pub fn class_of(packet: &Packet) -> u32 {
    match packet {
        Packet::Knock(line, _) => CLASS_KNOCKS[LINES / 2 - 1 - line % (LINES / 2)],
        Packet::Frame(_, owned) => match owned.class {
            Class::Replies | Class::Answers => CLASS_ANSWER,
            Class::Lib => CLASS_LIB,
            Class::Requests | Class::Responses => CLASS_USER,
        },
        _ => CLASS_ANSWER,
    }
}

impl Outgoing {
    /// An empty queue. `frame_most`: most bytes of a frame of the lane.
    pub fn new(frame_most: usize) -> Outgoing {
        Outgoing {
            frame_most,
            packets: 0,
            queues: BTreeMap::new(),
            waiting: Vec::new(),
            count: 0,
            taken: BTreeMap::new(),
            tags: 0,
        }
    }

    /// Cuts a packet into frames and queues them.
    pub fn add(&mut self, peer: u32, packet: &Packet) {
        let to = (peer, class_of(packet));
        let queue = self.queues.entry(to).or_default();
        if queue.is_empty() {
            self.waiting.push(to);
        }
        let before = queue.len();
        queue.extend(cut(&bytes_of(packet), self.packets, self.frame_most));
        self.count += queue.len() - before;
        self.packets += 1;
    }

    /// Number of frames that the lane has not taken.
    pub fn waiting(&self) -> usize {
        self.count
    }

    /// Posts all queued frames that the lane takes, in the order of the class numbers, so answers
    /// first. Returns the peers for which the lane has failed, with the reason, and discards their
    /// queues.
    pub fn pump(&mut self, lane: &mut dyn WireLane) -> Vec<(u32, String)> {
        let (mut waiting, mut refused) = (std::mem::take(&mut self.waiting), Vec::new());
        waiting.sort_unstable_by_key(|(_, class)| *class);
        for to in waiting {
            match self.post(lane, to) {
                Ok(true) => {}
                Ok(false) => self.waiting.push(to),
                Err(why) => refused.push((to.0, why)),
            }
        }
        refused.iter().for_each(|(peer, _)| self.discard(*peer));
        refused
    }

    /// Posts one queue. Returns whether it is empty now; Err: the reason why the lane has failed.
    fn post(&mut self, lane: &mut dyn WireLane, to: To) -> Result<bool, String> {
        let Entry::Occupied(mut entry) = self.queues.entry(to) else { return Ok(true) };
        let queue = entry.get_mut();
        while !queue.is_empty() {
            let piece = |frame: &[u8]| Piece {
                address: frame.as_ptr(),
                size: frame.len() as u64,
                local: 0,
            };
            let pieces: Vec<Piece> = queue.iter().take(BATCH).map(|frame| piece(frame)).collect();
            let command = |(piece, tag)| Command::frame(tag, piece);
            let commands: Vec<Command> = pieces.iter().zip(self.tags..).map(command).collect();
            // SAFETY: the frames are boxes, which lie in the queue or in `taken` until done() or
            // fenced(), and nobody changes them.
            let (count, why) = unsafe { lane.post(to.0, to.1, &commands) };
            for frame in queue.drain(..count.min(commands.len())) {
                self.count -= 1;
                self.taken.insert(self.tags, (to.0, frame));
                self.tags += 1;
            }
            if count < commands.len() {
                return if why.is_retry() { Ok(false) } else { Err(format!("{why:?}")) };
            }
        }
        entry.remove();
        Ok(true)
    }

    /// Frees the frame with this tag: the lane has completed its command.
    pub fn done(&mut self, tag: u64) {
        self.taken.remove(&tag);
    }

    /// Drops the frames for a peer that the lane has not taken. Those that it has taken stay until
    /// done() or fenced().
    pub fn discard(&mut self, peer: u32) {
        self.queues.retain(|to, _| to.0 != peer);
        self.count = self.queues.values().map(VecDeque::len).sum();
        self.waiting.retain(|to| to.0 != peer);
    }

    /// Frees the frames for a dead peer: after the fence the lane does not use them any more.
    pub fn fenced(&mut self, peer: u32) {
        self.taken.retain(|_, (to, _)| *to != peer);
    }
}
