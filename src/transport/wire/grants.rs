//! Credits by messages, for wires on which no rank changes a counter of another (the second carrier
//! of the design by Sumimoto and others, as it is without remote atomics).
//!
//! A receiver has a fixed number of buffers for each [`Line`], whatever the number of ranks, and a
//! frame is sent only into a buffer that was granted to its sender. A sender without a grant
//! *knocks*: one message per line and peer is under way that says how many frames it has, and that
//! brings the first where that is small. The receiver divides what is free among the ranks that knock.
//! Grants are for frames that exist, so none is ever returned; what was granted to a rank that has
//! died is free again when nothing of it can come any more. Grants are totals since the beginning,
//! so a message of them may be late or lost to a newer one, and one of them is under way per pair.
//!
//! A frame that has come waits in its buffer until the rank has a slot for it, and each line for
//! itself: what nobody takes of one stops no other.

use super::packet::Parcel;
use crate::transport::SMALL_REQUEST;
use crate::transport::frame::Class;
use std::collections::{HashMap, VecDeque};

/// Kinds of frames that need a grant, each with buffers of its own.
pub type Line = usize;
/// Requests, responses and requests to agents, and the large ones of each.
pub const LINES: usize = 6;
/// Buffers of one line: of the small ones, and of the large ones.
const BUFFERS: [usize; 2] = [32, 4];
/// Frames of a line to one peer that wait at the sender.
const DEPTH: usize = 16;
/// Most frames that are granted at a time.
const MOST: usize = 16;
/// Most bytes of a frame that a knock brings.
const KNOCK: usize = 256;

/// The line of a frame; None: its receiver has set a place aside for it.
pub fn line_of(class: Class, payload: usize, medium: usize) -> Option<Line> {
    let (line, most) = match class {
        Class::Requests => (0, medium),
        Class::Responses => (1, medium),
        Class::Lib => (2, SMALL_REQUEST),
        Class::Replies | Class::Answers => return None,
    };
    Some(if payload > most { line + LINES / 2 } else { line })
}

fn buffers_of(line: Line) -> usize {
    BUFFERS[line / (LINES / 2)]
}

/// What one end sends to the other.
#[derive(Debug)]
pub enum Packet {
    /// A frame into a buffer that was granted, or into a place that was set aside.
    Frame(Option<Line>, Parcel),
    /// There are so many frames without a grant, and perhaps the first of them.
    Knock(Line, usize, Option<Parcel>),
    /// How many frames of each line were granted since the beginning, and knocks answered.
    Grants([u64; LINES], [u64; LINES]),
    /// Grants have been taken in.
    Taken,
    /// So many frames were sent: tell when they lie in slots. See `super::receipts`.
    Asked(u64),
    /// So many frames lie in slots.
    Told(u64),
    /// What the hubs of two machines tell each other; see `crate::bootstrap`.
    Relayed(Vec<u8>),
}

/// What is kept of a peer.
#[derive(Default)]
struct Peer {
    // As sender to it.
    waiting: [VecDeque<Parcel>; LINES],
    granted_to_me: [u64; LINES],
    sent: [u64; LINES],
    knocks: [u64; LINES],
    knocks_answered: [u64; LINES],
    // As receiver from it.
    granted: [u64; LINES],
    came: [u64; LINES],
    answered: [u64; LINES],
    /// There are grants that it has not been told of, and a message of them is under way.
    news: bool,
    telling: bool,
    dead: bool,
}

/// Both sides of one rank.
pub struct Grants {
    peers: HashMap<u32, Peer>,
    free: [usize; LINES],
    knocking: [VecDeque<(u32, usize, Option<Parcel>)>; LINES],
    come: [VecDeque<(u32, Parcel)>; LINES],
    /// Most buffers that were ever in use or granted.
    pub most: [usize; LINES],
}

/// Packets to be sent, with their receivers.
pub type Out = Vec<(u32, Packet)>;

impl Default for Grants {
    fn default() -> Grants {
        Grants {
            peers: HashMap::new(),
            free: std::array::from_fn(buffers_of),
            knocking: Default::default(),
            come: Default::default(),
            most: [0; LINES],
        }
    }
}

impl Grants {
    /// Whether one more frame to a peer would be taken.
    pub fn has_room(&self, to: u32, line: Line) -> bool {
        self.peers.get(&to).is_none_or(|peer| peer.dead || peer.waiting[line].len() < DEPTH)
    }

    /// Takes a frame for a peer, if has_room(); sends it, or knocks, or lets it wait for what was
    /// asked for.
    pub fn send(&mut self, to: u32, line: Line, frame: Parcel, out: &mut Out) {
        let peer = self.peers.entry(to).or_default();
        if !peer.dead {
            peer.waiting[line].push_back(frame);
            peer.pump(to, line, out);
        }
    }

    /// Takes a packet in. A frame for which a place was set aside is returned; of a packet that no
    /// rank sends what is wrong with it.
    pub fn take(
        &mut self,
        from: u32,
        packet: Packet,
        out: &mut Out,
    ) -> Result<Option<Parcel>, String> {
        let peer = self.peers.entry(from).or_default();
        match packet {
            Packet::Frame(None, frame) => return Ok(Some(frame)),
            Packet::Frame(Some(line), frame) => {
                if peer.came[line] == peer.granted[line] {
                    return Err(format!("a frame of line {line} that was not granted"));
                }
                peer.came[line] += 1;
                self.come[line].push_back((from, frame));
            }
            Packet::Knock(line, demand, first) => {
                self.knocking[line].push_back((from, demand, first))
            }
            Packet::Grants(granted, answered) => {
                for line in 0..LINES {
                    peer.granted_to_me[line] = peer.granted_to_me[line].max(granted[line]);
                    peer.knocks_answered[line] = peer.knocks_answered[line].max(answered[line]);
                    peer.pump(from, line, out);
                }
                out.push((from, Packet::Taken));
            }
            Packet::Taken => peer.telling = false,
            Packet::Asked(_) | Packet::Told(_) | Packet::Relayed(_) => {
                return Err("no packet of grants".into());
            }
        }
        Ok(None)
    }

    /// Gives what has come to `deliver`, which answers whether there was a slot for it, and grants
    /// what is free.
    pub fn serve(&mut self, mut deliver: impl FnMut(u32, &Parcel) -> bool, out: &mut Out) {
        for line in 0..LINES {
            let come = &mut self.come[line];
            while come.front().is_some_and(|(from, frame)| deliver(*from, frame)) {
                come.pop_front();
                self.free[line] += 1;
            }
            self.answer_knocks(line);
        }
        for (number, peer) in &mut self.peers {
            if peer.news && !peer.telling && !peer.dead {
                (peer.news, peer.telling) = (false, true);
                out.push((*number, Packet::Grants(peer.granted, peer.answered)));
            }
        }
    }

    fn answer_knocks(&mut self, line: Line) {
        while self.free[line] > 0 {
            let among = self.knocking[line].len();
            let Some((from, demand, first)) = self.knocking[line].pop_front() else { break };
            let Some(peer) = self.peers.get_mut(&from) else { continue };
            if let Some(first) = first {
                self.free[line] -= 1;
                self.come[line].push_back((from, first));
            }
            let share = demand.min((self.free[line] / among).max(1)).min(MOST).min(self.free[line]);
            if !peer.dead {
                self.free[line] -= share;
                peer.granted[line] += share as u64;
                peer.answered[line] += 1;
                peer.news = true;
            }
            self.most[line] = self.most[line].max(buffers_of(line) - self.free[line]);
        }
    }

    /// Whether something waits here that serve() may do later, though nothing else comes.
    pub fn is_stuck(&self) -> bool {
        self.come.iter().any(|come| !come.is_empty())
    }

    /// A peer has died: nothing is sent to it any more.
    pub fn bury(&mut self, number: u32) {
        let peer = self.peers.entry(number).or_default();
        peer.dead = true;
        peer.waiting = Default::default();
    }

    /// Nothing of a dead peer comes any more: what it was granted and did not use is free.
    pub fn fenced(&mut self, number: u32) {
        let Some(peer) = self.peers.get_mut(&number).filter(|peer| peer.dead) else { return };
        for line in 0..LINES {
            self.free[line] += (peer.granted[line] - peer.came[line]) as usize;
            peer.came[line] = peer.granted[line];
        }
    }
}

impl Peer {
    /// Sends what was granted, and knocks for the rest unless a knock is under way.
    fn pump(&mut self, to: u32, line: Line, out: &mut Out) {
        while self.sent[line] < self.granted_to_me[line]
            && let Some(frame) = self.waiting[line].pop_front()
        {
            self.sent[line] += 1;
            out.push((to, Packet::Frame(Some(line), frame)));
        }
        let waiting = &mut self.waiting[line];
        if self.knocks[line] == self.knocks_answered[line] && !waiting.is_empty() {
            self.knocks[line] += 1;
            let small = waiting.front().is_some_and(|first| first.size() <= KNOCK);
            let first = if small { waiting.pop_front() } else { None };
            out.push((to, Packet::Knock(line, waiting.len(), first)));
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests;
