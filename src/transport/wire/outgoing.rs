//! The send queue in front of a lane. A lane takes a prefix of the frames that it is given, or
//! none; the rest waits here, in order for each peer and class. Grants and the endpoint's limit
//! `QUEUED` bound its length. Frames that the lane has taken stay in memory here until their
//! completion.
//!
//! Packets that wait for one peer and class travel in one frame, if it has room: for most networks
//! a frame costs some microseconds, whatever its length. A packet that is longer than a frame
//! begins in the last one that waits, too. Messages that have waited for grants come as a frame of
//! their own (`bundle`). A knock travels alone, since its receiver leaves it in its frame.
//!
//! # The shared queue
//!
//! On a wire with [`Caps::shared_queue`](super::Caps) the receives of a class of knocks are a queue
//! that all peers share: a small frame goes there without a grant, and the command ends when a
//! receive has taken it. So the credit of a frame is a command that has not ended: at most `DEPTH`
//! for one peer and class, and at most `ALL` of a class, of which a peer may have half of what the
//! others leave. Where these are with other peers, a frame knocks.

use super::buffers::{Buffers, grow};
use super::grants::{Answered, KNOCK, Knock, LINES, Line, Packet};
use super::packet::{FRAME_BEFORE, SINGLE_MOST, Single, encode};
use super::pieces::{HEAD, head, number_of};
use super::{CLASS_ANSWER, CLASS_KNOCKS, CLASS_LIB, CLASS_USER, CLASSES, Caps};
use super::{Command, KNOCK_MOST, Piece, WireLane};
use crate::transport::frame::Class;
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;

/// Most commands of one post.
const BATCH: usize = 16;
/// The longest list whose memory is kept while it is empty.
pub const KEPT: usize = 32;
/// A new buffer has room for a small message.
const LEAST: usize = HEAD + SINGLE_MOST;
/// A packet that is longer than a frame begins in a frame with others if that has so much room.
const PART: usize = 1 << 10;
/// Most bytes of a message that leaves alone in a short buffer, if one is kept.
const QUICK: usize = 1000;
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
    shared_queue: bool,
    /// Memory for frames.
    pub buffers: Buffers,
    /// The queues that are not empty, in the order in which they began. Grants and `QUEUED` bound
    /// their number.
    queues: Vec<Queue>,
    /// The queue that has ended last, for its memory.
    spare: VecDeque<Vec<u8>>,
    /// Number of frames in all queues.
    count: usize,
    /// Frames that the lane has taken and not completed, with their tags, which rise, and their
    /// receivers. Lanes complete most frames in the order of posting.
    taken: VecDeque<(u64, To, Vec<u8>)>,
    /// The tag of the next command.
    tags: u64,
    /// On a wire with a shared queue, frames in the classes of knocks that have not ended: for each
    /// peer, and of each class.
    open: BTreeMap<To, usize>,
    opened: [usize; CLASSES],
    /// Frames of post_alone() that the lane has taken.
    #[cfg(all(test, feature = "simulated"))]
    pub alone: usize,
}

/// The frames for a peer and class that the lane has not taken.
struct Queue {
    to: To,
    frames: VecDeque<Vec<u8>>,
}

/// The class of the knocks for a line, and of the frames of this line in a shared queue.
fn class_of_knocks(line: Line) -> u32 {
    let [lib, responses, requests] = CLASS_KNOCKS;
    [requests, responses, lib, requests, responses, lib][line]
}

/// The class in which a packet travels. Packets without which a peer cannot continue travel in
/// [`CLASS_ANSWER`], where no packet that needs a slot of its receiver delays them.
pub fn class_of(packet: &Packet) -> u32 {
    match packet {
        Packet::Knock(line, _) | Packet::Queued(line, _) => class_of_knocks(*line),
        Packet::Granted(bundle) => class_of_message(bundle.class),
        Packet::Frame(_, owned) | Packet::More(_, Knock { first: Some(owned), .. }) => {
            class_of_message(owned.class)
        }
        _ => CLASS_ANSWER,
    }
}

/// The class of a packet that brings such a message, and no knock alone.
pub fn class_of_message(class: Class) -> u32 {
    match class {
        Class::Replies | Class::Answers => CLASS_ANSWER,
        Class::Lib => CLASS_LIB,
        Class::Requests | Class::Responses => CLASS_USER,
    }
}

/// As class_of(). `class`: that of the message.
pub fn class_of_single(single: Single, class: Class) -> u32 {
    match single {
        Single::Knock(line, _) => class_of_knocks(line),
        _ => class_of_message(class),
    }
}

impl Outgoing {
    /// An empty queue. `caps`: the abilities of the lane.
    pub fn new(caps: &Caps) -> Outgoing {
        Outgoing {
            shared_queue: caps.shared_queue,
            buffers: Buffers::new(caps.frame_most),
            queues: Vec::new(),
            spare: VecDeque::new(),
            count: 0,
            taken: VecDeque::new(),
            tags: 0,
            open: BTreeMap::new(),
            opened: [0; CLASSES],
            #[cfg(all(test, feature = "simulated"))]
            alone: 0,
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
        let fits = self.shared_queue && line < LINES / 2 && size <= QUEUED_MOST;
        let open = || {
            let (open, left) = self.open(to, line);
            open.max(left) > 0
        };
        fits && open()
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

    /// The index of the queue for a peer and class.
    fn queue(&mut self, to: To) -> usize {
        self.queues.iter().position(|queue| queue.to == to).unwrap_or_else(|| {
            let frames = std::mem::take(&mut self.spare);
            self.queues.push(Queue { to, frames });
            self.queues.len() - 1
        })
    }

    /// Queues a packet, with the answer of a knock that it carries: behind others in the last frame
    /// that waits, or cut into frames of its own.
    pub fn add(&mut self, peer: u32, packet: Packet, answered: Option<Answered>) {
        let to = (peer, class_of(&packet));
        let at = self.queue(to);
        match packet {
            Packet::Granted(mut bundle) => {
                answered.into_iter().for_each(|answered| bundle.carry_answer(answered));
                self.add_bundle(at, bundle.into_frame());
            }
            packet => encode(&packet, answered, |packet| {
                let number = self.buffers.number();
                let put = |piece, frame: &mut Vec<u8>| packet.put(piece, frame);
                self.cut(at, (number, packet.size()), put);
            }),
        }
    }

    /// Queues the packets of a bundle as a frame, or behind others in one that waits. A bundle that
    /// is longer than a frame is one packet, which is cut.
    fn add_bundle(&mut self, at: usize, frame: Vec<u8>) {
        let most = self.buffers.joined_most();
        let queue = &mut self.queues[at].frames;
        match queue.back_mut() {
            _ if frame.len() > self.buffers.frame_most => {
                let (number, packet) = (number_of(&frame), &frame[HEAD..]);
                let put = |piece: Range<usize>, to: &mut Vec<u8>| {
                    to.extend_from_slice(&packet[piece]);
                };
                self.cut(at, (number, packet.len()), put);
            }
            Some(last) if last.len() + frame.len() <= most => {
                grow(last, frame.len(), most);
                last.extend_from_slice(&frame);
            }
            _ => {
                queue.push_back(frame);
                self.count += 1;
                return;
            }
        }
        self.buffers.keep(frame);
    }

    /// Queues a packet of so many bytes. `put` appends a part of it to a frame.
    fn cut(
        &mut self,
        at: usize,
        (number, whole): (u64, usize),
        put: impl Fn(Range<usize>, &mut Vec<u8>),
    ) {
        let Queue { to, frames: queue } = &mut self.queues[at];
        let (frame_most, joined_most) = (self.buffers.frame_most, self.buffers.joined_most());
        let before = queue.len();
        let put = |frame: &mut Vec<u8>, begin: usize, most: usize| {
            let piece = begin..whole.min(begin + most - frame.len() - HEAD);
            grow(frame, HEAD + piece.len(), most);
            frame.extend_from_slice(&head(whole, number, piece.clone()));
            put(piece.clone(), frame);
            piece.end
        };
        let (is_cut, is_knock) = (HEAD + whole > frame_most, CLASS_KNOCKS.contains(&to.1));
        let room = if is_cut { PART } else { HEAD + whole };
        let joins = |last: &&mut Vec<u8>| !is_knock && last.len() + room <= joined_most;
        let last = queue.back_mut().filter(joins);
        let mut put_until = last.map_or(0, |last| put(last, 0, joined_most));
        while put_until < whole {
            let mut frame = self.buffers.memory(is_knock);
            put_until = put(&mut frame, put_until, frame_most);
            queue.push_back(frame);
        }
        let added = queue.len() - before;
        self.count += added;
        if self.shared_queue && is_knock {
            *self.open.entry(*to).or_default() += added;
            self.opened[to.1 as usize] += added;
        }
    }

    /// Whether no frame waits, and the wire has no shared queue: then post_alone() may be called.
    #[inline]
    pub fn is_bare(&self) -> bool {
        self.queues.is_empty() && !self.shared_queue
    }

    /// Whether a packet with one message of so many bytes fits into a frame.
    pub fn fits_alone(&self, size: usize) -> bool {
        LEAST - KNOCK + size <= self.buffers.frame_most
    }

    /// Posts a packet with a message of `size` bytes as a frame of its own, without the queue.
    /// `make` gets the packet's number, and an empty buffer for the frame. A frame that the lane
    /// does not take waits. Err: the reason why the lane has failed.
    pub fn post_alone(
        &mut self,
        lane: &mut dyn WireLane,
        (to, size): (To, usize),
        make: impl FnOnce(u64, &mut Vec<u8>),
    ) -> Result<(), String> {
        let mut frame = self.buffers.memory(size <= QUICK);
        frame.reserve_exact(LEAST);
        make(self.buffers.number(), &mut frame);
        let piece = Piece { address: frame.as_ptr(), size: frame.len() as u64, local: 0 };
        // SAFETY: as in post(): from now on the frame lies in `taken` or in a queue.
        let (count, why) = unsafe { lane.post(to.0, to.1, &[Command::frame(self.tags, &piece)]) };
        if count > 0 {
            #[cfg(all(test, feature = "simulated"))]
            {
                self.alone += 1;
            }
            self.taken.push_back((self.tags, to, frame));
            self.tags += 1;
            return Ok(());
        }
        let mut frames = std::mem::take(&mut self.spare);
        frames.push_back(frame);
        self.queues.push(Queue { to, frames });
        self.count += 1;
        if why.is_retry() { Ok(()) } else { Err(format!("{why:?}")) }
    }

    /// Number of frames that the lane has not taken.
    pub fn waiting(&self) -> usize {
        self.count
    }

    /// Posts all queued frames that the lane takes, in the order of the class numbers, so answers
    /// first. Returns the peers for which the lane has failed, with the reason, and discards their
    /// queues.
    pub fn pump(&mut self, lane: &mut dyn WireLane) -> Vec<(u32, String)> {
        let mut refused = Vec::new();
        if self.queues.is_empty() {
            return refused;
        }
        self.queues.sort_by_key(|queue| queue.to.1);
        let mut queues = std::mem::take(&mut self.queues);
        queues.retain_mut(|queue| match self.post(lane, queue) {
            Ok(()) if queue.frames.is_empty() => {
                if queue.frames.capacity() <= KEPT {
                    self.spare = std::mem::take(&mut queue.frames);
                }
                false
            }
            Ok(()) => true,
            Err(why) => {
                refused.push((queue.to.0, why));
                true
            }
        });
        if !queues.is_empty() || queues.capacity() <= KEPT {
            self.queues = queues;
        }
        refused.iter().for_each(|(peer, _)| self.discard(*peer));
        refused
    }

    /// Posts one queue, as much as the lane takes. Err: the reason why the lane has failed.
    fn post(&mut self, lane: &mut dyn WireLane, queue: &mut Queue) -> Result<(), String> {
        let Queue { to, frames } = queue;
        while !frames.is_empty() {
            let piece = |frame: &Vec<u8>| Piece {
                address: frame.as_ptr(),
                size: frame.len() as u64,
                local: 0,
            };
            let tried = frames.len().min(BATCH);
            let (first, pieces, several): (_, Vec<Piece>, Vec<Command>);
            let only = piece(&frames[0]);
            let commands = if tried == 1 {
                // Most frames leave alone: without vectors.
                first = [Command::frame(self.tags, &only)];
                &first[..]
            } else {
                pieces = frames.iter().take(tried).map(piece).collect();
                let command = |(piece, tag)| Command::frame(tag, piece);
                several = pieces.iter().zip(self.tags..).map(command).collect();
                &several[..]
            };
            // SAFETY: the frames lie in the queue or in `taken` until done(), or until this ends,
            // behind close(). Nobody changes those in `taken`, and no vector moves its bytes.
            let (count, why) = unsafe { lane.post(to.0, to.1, commands) };
            let count = count.min(tried);
            self.count -= count;
            for frame in frames.drain(..count) {
                self.taken.push_back((self.tags, *to, frame));
                self.tags += 1;
            }
            if count < tried {
                return if why.is_retry() { Ok(()) } else { Err(format!("{why:?}")) };
            }
        }
        Ok(())
    }

    /// Frees the frame with this tag: the lane has completed its command.
    pub fn done(&mut self, tag: u64) {
        let frame = match (self.taken.front(), self.taken.back()) {
            (Some((first, ..)), _) if *first == tag => self.taken.pop_front(),
            (_, Some((last, ..))) if *last == tag => self.taken.pop_back(),
            _ => {
                let at = self.taken.binary_search_by_key(&tag, |(tag, ..)| *tag);
                at.ok().and_then(|at| self.taken.remove(at))
            }
        };
        let Some((_, to, frame)) = frame else { return };
        self.buffers.keep(frame);
        if self.taken.is_empty() && self.taken.capacity() > KEPT {
            self.taken = VecDeque::new();
        }
        if !self.shared_queue {
            return;
        }
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
        self.close_knocks(peer);
        self.drop_queues(|(to, _)| to == peer);
    }

    /// As discard(), but frames of [`CLASS_ANSWER`] stay, in which packets of hubs travel.
    pub fn discard_but_answers(&mut self, peer: u32) {
        self.close_knocks(peer);
        self.drop_queues(|(to, class)| to == peer && class != CLASS_ANSWER);
    }

    fn close_knocks(&mut self, peer: u32) {
        for class in CLASS_KNOCKS {
            let open = self.open.remove(&(peer, class)).unwrap_or(0);
            self.opened[class as usize] -= open;
        }
    }

    fn drop_queues(&mut self, of: impl Fn(To) -> bool) {
        self.queues.retain(|queue| !of(queue.to));
        self.count = self.queues.iter().map(|queue| queue.frames.len()).sum();
    }

    /// Whether no frame for a peer waits or is under way.
    pub fn is_clear(&self, peer: u32) -> bool {
        self.taken(peer) == 0 && self.queues.iter().all(|queue| queue.to.0 != peer)
    }

    /// Number of frames for a peer that the lane has taken and not completed.
    pub fn taken(&self, peer: u32) -> usize {
        self.taken.iter().filter(|(_, (to, _), _)| *to == peer).count()
    }
}

#[cfg(all(test, not(loom)))]
mod tests;
