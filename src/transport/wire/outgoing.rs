//! The send queue in front of a lane. A lane takes a prefix of the frames that it is given, or
//! none; the rest waits here, in order for each peer and class. Grants and the endpoint's limit
//! `QUEUED` bound its length. Frames that the lane has taken stay in memory here until their
//! completion.
//!
//! Packets that wait for one peer and class travel in one frame, up to `JOINED` bytes of them: for
//! most networks a frame costs some microseconds, whatever its length. A knock travels alone, since
//! its receiver leaves it in its frame.
//!
//! # The shared queue
//!
//! On a wire with [`Caps::shared_queue`](super::Caps) the receives of a class of knocks are a queue
//! that all peers share: a small frame goes there without a grant, and the command ends when a
//! receive has taken it. So the credit of a frame is a command that has not ended: at most `DEPTH`
//! for one peer and class, and at most `ALL` of a class, of which a peer may have half of what the
//! others leave. Where these are with other peers, a frame knocks.

use super::grants::{Answered, LINES, Line, Packet};
use super::packet::{FRAME_BEFORE, with_answer};
use super::pieces::{HEAD, cut, is_whole};
use super::{CLASS_ANSWER, CLASS_KNOCKS, CLASS_LIB, CLASS_USER, CLASSES, Caps};
use super::{Command, KNOCK_MOST, Piece, WireLane};
use crate::transport::frame::Class;
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, VecDeque};

/// Most commands of one post.
const BATCH: usize = 16;
/// Most bytes of a frame with several packets.
const JOINED: usize = 16 << 10;
/// Most frames of a class in the shared queue of one peer, and in those of all, that no receive has
/// taken.
const DEPTH: usize = 16;
const ALL: usize = 64;
/// Most bytes of header and payload of a frame in a shared queue.
const QUEUED_MOST: usize = KNOCK_MOST - HEAD - FRAME_BEFORE;

/// A peer and a class.
type To = (u32, u32);

/// See the head of the file.
pub struct Outgoing {
    frame_most: usize,
    shared_queue: bool,
    /// Number of packets that were ever added; numbers the next one.
    packets: u64,
    /// The queues that are not empty.
    queues: BTreeMap<To, VecDeque<Vec<u8>>>,
    /// The keys of `queues`.
    waiting: Vec<To>,
    /// Number of frames in all queues.
    count: usize,
    /// Frames that the lane has taken and not completed, by tag, with their receivers.
    taken: BTreeMap<u64, (To, Vec<u8>)>,
    /// The tag of the next command.
    tags: u64,
    /// On a wire with a shared queue, frames in the classes of knocks that have not ended: for each
    /// peer, and of each class.
    open: BTreeMap<To, usize>,
    opened: [usize; CLASSES],
}

/// The class of the knocks for a line, and of the frames of this line in a shared queue.
fn class_of_knocks(line: Line) -> u32 {
    CLASS_KNOCKS[LINES / 2 - 1 - line % (LINES / 2)]
}

/// The class in which a packet travels. Packets without which a peer cannot continue travel in
/// [`CLASS_ANSWER`], where no packet that needs a slot of its receiver delays them.
pub fn class_of(packet: &Packet) -> u32 {
    match packet {
        Packet::Knock(line, _) | Packet::Queued(line, _) => class_of_knocks(*line),
        Packet::Frame(_, owned) => match owned.class {
            Class::Replies | Class::Answers => CLASS_ANSWER,
            Class::Lib => CLASS_LIB,
            Class::Requests | Class::Responses => CLASS_USER,
        },
        _ => CLASS_ANSWER,
    }
}

impl Outgoing {
    /// An empty queue. `caps`: the abilities of the lane.
    pub fn new(caps: &Caps) -> Outgoing {
        Outgoing {
            frame_most: caps.frame_most,
            shared_queue: caps.shared_queue,
            packets: 0,
            queues: BTreeMap::new(),
            waiting: Vec::new(),
            count: 0,
            taken: BTreeMap::new(),
            tags: 0,
            open: BTreeMap::new(),
            opened: [0; CLASSES],
        }
    }

    /// Frames for a peer in the class of a line's knocks that have not ended, and how many more of
    /// the class may be under way.
    fn open(&self, to: u32, line: Line) -> (usize, usize) {
        let class = class_of_knocks(line);
        let open = self.open.get(&(to, class)).copied().unwrap_or(0);
        (open, ALL.saturating_sub(self.opened[class as usize]))
    }

    /// Whether a frame of so many bytes of header and payload goes into the shared queue of a peer.
    pub fn queues(&self, to: u32, line: Line, size: usize) -> bool {
        let (open, left) = self.open(to, line);
        self.shared_queue && line < LINES / 2 && size <= QUEUED_MOST && open.max(left) > 0
    }

    /// Whether one more frame of which queues() is true may be sent.
    pub fn has_room(&self, to: u32, line: Line) -> bool {
        let (open, left) = self.open(to, line);
        open < DEPTH.min(left.div_ceil(2))
    }

    /// Whether no frame is under way to a shared queue.
    pub fn has_queued_all(&self) -> bool {
        self.open.is_empty()
    }

    /// Queues a packet, with the answer of a knock that it carries: behind others in the last frame
    /// that waits, or cut into frames of its own.
    pub fn add(&mut self, peer: u32, packet: &Packet, answered: Option<Answered>) {
        let to = (peer, class_of(packet));
        let queue = self.queues.entry(to).or_default();
        if queue.is_empty() {
            self.waiting.push(to);
        }
        let bytes = with_answer(packet, answered);
        let mut frames = cut(&bytes, self.packets, self.frame_most).peekable();
        let most = self.frame_most.min(JOINED);
        if !CLASS_KNOCKS.contains(&to.1)
            && let (Some(last), Some(first)) = (queue.back_mut(), frames.peek())
            && is_whole(last)
            && is_whole(first)
            && last.len() + first.len() <= most
        {
            last.extend_from_slice(first);
            frames.next();
        }
        let before = queue.len();
        queue.extend(frames);
        let added = queue.len() - before;
        self.count += added;
        self.packets += 1;
        if self.shared_queue && CLASS_KNOCKS.contains(&to.1) {
            *self.open.entry(to).or_default() += added;
            self.opened[to.1 as usize] += added;
        }
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
            // SAFETY: the frames lie in the queue or in `taken` until done(), or until this ends,
            // behind close(). Nobody changes those in `taken`, and no vector moves its bytes.
            let (count, why) = unsafe { lane.post(to.0, to.1, &commands) };
            for frame in queue.drain(..count.min(commands.len())) {
                self.count -= 1;
                self.taken.insert(self.tags, (to, frame));
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
        let Some((to, _)) = self.taken.remove(&tag) else { return };
        if let Entry::Occupied(mut open) = self.open.entry(to) {
            *open.get_mut() -= 1;
            self.opened[to.1 as usize] -= 1;
            if *open.get() == 0 {
                open.remove();
            }
        }
    }

    /// Drops the frames for a peer that the lane has not taken. Those that it has taken stay until
    /// done(). Nothing more is added for the peer in the classes of knocks.
    pub fn discard(&mut self, peer: u32) {
        for class in CLASS_KNOCKS {
            let open = self.open.remove(&(peer, class)).unwrap_or(0);
            self.opened[class as usize] -= open;
        }
        self.queues.retain(|to, _| to.0 != peer);
        self.count = self.queues.values().map(VecDeque::len).sum();
        self.waiting.retain(|to| to.0 != peer);
    }

    /// Number of frames for a peer that the lane has taken and not completed.
    pub fn taken(&self, peer: u32) -> usize {
        self.taken.values().filter(|((to, _), _)| *to == peer).count()
    }
}
