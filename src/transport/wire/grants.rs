//! Credits by messages, for wires on which no rank changes a counter of another (the second carrier
//! of the design by Sumimoto and others, as it is without remote atomics).
//!
//! A receiver has a fixed number of buffers for each [`Line`], whatever the number of ranks. A
//! sender may send a frame only if the receiver has granted it a buffer. A sender without a grant
//! *knocks*: the knock says for how many frames it asks, and carries the one before them if it is
//! small. One knock for each line and peer is under way. The receiver divides its free buffers
//! among the ranks that knock. It grants buffers only for frames that exist, so a sender returns no
//! grant. Grants of a dead rank become free when none of its frames can arrive any more.
//!
//! Frames that wait for grants lie in bundles (`super::bundle`), each of which is to leave as one
//! frame of the wire. If more frames wait than were granted, the first bundle carries the next
//! knock. So a stream is frames in one direction and messages of grants in the other.
//!
//! A message of grants repeats, for each line, the number of the last knock that was answered. So a
//! message of grants may be late, or be replaced by a newer one. The frames that it grants confirm
//! it. The receiver has a buffer for each of these frames, so the number of such messages under way
//! is bounded. One that grants no frame asks for a confirmation, and none is sent to that peer
//! until it has come.
//!
//! A knock behind which no frame waits needs no grant, only its answer, so that the sender may
//! knock again. The receiver keeps such an answer for up to [`RIDE`], and sends it with the next
//! packet that goes to the peer anyway and that may carry it: usually the reply to the knock's
//! frame. It keeps none if frames waited behind the peer's knock before: the peer sends a stream.
//! A packet may carry the answer of a line if its way never waits for that line. A knock for
//! requests carries the answer of responses as well, but that one goes again, in a message of
//! grants, if the knock is not answered soon.
//!
//! A stopped rank may hold all buffers of a line and not use them. When knocks have waited for 5 ms
//! while no granted frame has come, the receiver **lends** the line a buffer, and another 5 ms
//! later one more, at most as many as the line has. It takes them back when the frames have come.
//!
//! A received frame waits in its buffer until the rank has a slot for it. The lines wait
//! independently: a line whose frames are not taken delays no other line.
//!
//! # Memory does not grow with the number of ranks
//!
//! - An unanswered knock stays in the frame that the wire has delivered. If the wire has a fixed
//!   number of receives for each class of knocks, the network keeps further ones. If it receives
//!   every knock, as MPI's module does, it keeps up to `LINES` of each peer. The senders wait.
//! - A receiver keeps a record of a peer while a granted frame has not arrived, while grants are
//!   under way, or while a knock that a frame has carried is not answered. It has at most `RECORDS`
//!   records. When all are in use, it answers the knocks that frames have carried without a grant:
//!   their senders knock again, and those knocks stay with the wire. A frame without a knock needs
//!   no record.
//! - A sender keeps a record of a peer and line while a knock is under way. It has at most
//!   `SENDING` records for each line, and each record has a place for one waiting frame. At most
//!   `SHARED` further frames of a line wait, and each peer may have half of the free places. So the
//!   sender can send to other peers while some do not answer, as long as a record is free.

use super::bundle::Bundle;
use super::packet::OwnedFrame;
use super::tickets::Use;
use crate::transport::SMALL_REQUEST;
use crate::transport::frame::Class;
use crate::util::small_map::SmallMap;
use std::collections::{BTreeSet, VecDeque};
use std::time::{Duration, Instant};

mod carrying;
mod passing;
mod receiver;
mod sender;
pub use carrying::Carrying;
use receiver::{Knocking, Loan, Receiving};
use sender::Sending;

/// Kinds of frames that need a grant, each with buffers of its own.
pub type Line = usize;
/// Requests, responses and requests to owners, and the large ones of each.
pub const LINES: usize = 6;
/// Buffers of one line: of the small ones, and of the large ones.
const BUFFERS: [usize; 2] = [32, 16];
/// Frames of a line to one peer that wait at the sender: of a small line, twice as many as are
/// granted at a time.
const DEPTH: usize = 32;
/// Most peers of which a sender keeps a record for a line: those that have not answered a knock. Of
/// the small lines, and of the large ones.
const SENDING: [usize; 2] = [128, 16];
/// Frames of a line to all peers that wait at the sender, beside the first of each peer.
const SHARED: [usize; 2] = [128, 32];
/// Most bytes of a frame that a knock brings.
pub const KNOCK: usize = 256;
/// Most peers of which a receiver keeps a record.
const RECORDS: usize = 128;
/// How long a receiver waits for the frame of a stopped sender while others want the sender's
/// place.
pub const PATIENCE: Duration = Duration::from_millis(5);
/// How long the answer of a knock without further frames waits for a packet that carries it: a
/// reply of the thread that polls comes earlier.
pub const RIDE: Duration = Duration::from_micros(20);
/// How many times longer it waits if a knock has carried it, which the peer has not answered:
/// longer than a round trip takes.
const ALONG: u32 = 5;
/// While answers wait, a rank reads the clock in one round of so many.
const SELDOM: u8 = 4;

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

/// Most frames that are granted at a time, and most of a bundle: half of the buffers. The first
/// bundle carries the next knock, which can be granted as many at once, while the others are under
/// way.
fn most_of(line: Line) -> usize {
    buffers_of(line) / 2
}

/// The messages between the sender and the receiver.
#[derive(Debug)]
pub enum Packet {
    /// Frames into buffers that were granted, the last of which may be as `More`: what a sender
    /// makes of the next two.
    Granted(Bundle),
    /// A frame into a buffer that was granted, or into a place that was set aside.
    Frame(Option<Line>, OwnedFrame),
    /// A frame into a buffer that was granted, as the first of a knock for those behind it.
    More(Line, Knock),
    /// It asks for so many grants, and brings perhaps the frame before those that wait for them.
    Knock(Line, Knock),
    /// A frame that goes without a grant, where the wire has a shared queue.
    Queued(Line, OwnedFrame),
    /// For each line the last knock that was answered, and how many frames were granted for it.
    /// True: the packet Taken must confirm it.
    Grants([u64; LINES], [u64; LINES], bool),
    /// Grants have been taken in. See [`Packet::Grants`].
    Taken,
    /// Tell when all that was sent lies in slots. See `super::receipts`.
    Asked,
    /// All lies in slots.
    Delivered,
    /// Of the use of slots that an offer with this number began. See `super::tickets`.
    Use(u64, Use),
    /// The packets between the hubs of two machines; see `crate::bootstrap`.
    Relayed(Vec<u8>),
}

/// See [`Packet::Knock`].
#[derive(Debug)]
pub struct Knock {
    /// No two knocks of a rank have the same number; 0: it is no knock, and only brings a frame.
    pub number: u64,
    /// For how many frames it asks, of those that wait behind the first, and behind those that were
    /// granted with it.
    pub demand: usize,
    /// The first frame, where it is small or was granted.
    pub first: Option<OwnedFrame>,
}

/// How the receiver took a packet.
#[derive(Debug, PartialEq, Eq)]
pub enum Taken {
    /// All that is to be kept of it is kept.
    Copied,
    /// It stays in the frame in which it came, which serve() gives back.
    Held,
    /// It is for a place that was set aside.
    Aside(OwnedFrame),
}

/// Both sides of one rank.
pub struct Grants {
    sending: SmallMap<(u32, Line), Sending>,
    /// Frames of a line that wait, without the first of each peer.
    waiting: [usize; LINES],
    /// Records of a line in `sending`.
    open: [usize; LINES],
    knocks: u64,
    receiving: SmallMap<u32, Receiving>,
    dead: BTreeSet<u32>,
    free: [usize; LINES],
    loans: [Loan; LINES],
    knocking: [VecDeque<Knocking>; LINES],
    come: [VecDeque<(u32, OwnedFrame)>; LINES],
    /// serve() has nothing to do until a packet comes, or until `due`.
    served_all: bool,
    /// When the first answer of a knock is due that waits for a packet that carries it.
    due: Option<Instant>,
    /// The peer whose answer has come to wait last. Its time usually begins when a look for the
    /// next packet finds nothing: a packet has taken most answers by then, and the clock is not
    /// read for them.
    fresh: Option<u32>,
    /// Rounds in a row that have not read the clock while an answer waits.
    unread: u8,
    /// Of each line the last peer behind whose knock frames waited. Its next knock is answered at
    /// once: the peer sends a stream, and perhaps no packet goes back.
    streaming: [Option<u32>; LINES],
    /// Peers whose knocks were answered and said that more frames wait, for whoever clears it.
    pub streams: Vec<u32>,
    /// How long a line may wait for granted frames before the receiver lends it a buffer.
    patience: Duration,
    /// How long the answer of a knock without further frames waits for a packet that carries it.
    ride: Duration,
    /// Most buffers that were ever in use or granted.
    #[cfg(test)]
    pub most: [usize; LINES],
}

/// The answer of a knock, without grants: its line and number.
pub type Answered = (Line, u64);

/// Packets to be sent, with their receivers.
pub type Out = Vec<(u32, Packet)>;

impl Default for Grants {
    fn default() -> Grants {
        Grants {
            sending: SmallMap::default(),
            waiting: [0; LINES],
            open: [0; LINES],
            knocks: 0,
            receiving: SmallMap::default(),
            dead: BTreeSet::new(),
            free: std::array::from_fn(buffers_of),
            loans: Default::default(),
            patience: PATIENCE,
            ride: RIDE,
            knocking: Default::default(),
            come: Default::default(),
            served_all: true,
            due: None,
            fresh: None,
            unread: 0,
            streaming: [None; LINES],
            streams: Vec::new(),
            #[cfg(test)]
            most: [0; LINES],
        }
    }
}

/// The dead.
impl Grants {
    /// A peer has died: nothing is sent to it any more.
    pub fn mark_dead(&mut self, number: u32) {
        self.served_all = false;
        self.dead.insert(number);
        // Else it would be offered slots, and their use would never end.
        self.streams.retain(|peer| *peer != number);
        for line in 0..LINES {
            if let Some(gone) = self.sending.remove((number, line)) {
                self.open[line] -= 1;
                self.waiting[line] -= gone.beside_the_first();
            }
        }
        if let Some(peer) = self.receiving.get_mut(number) {
            (peer.news, peer.reporting) = (false, false);
            peer.forget_quiet();
        }
    }

    /// Whether mark_dead() was called for a peer.
    pub fn is_dead(&self, number: u32) -> bool {
        self.dead.contains(&number)
    }

    /// Nothing of a dead peer comes any more: what it was granted and did not use is free.
    pub fn fenced(&mut self, number: u32) {
        if !self.dead.contains(&number) {
            return;
        }
        self.served_all = false;
        if let Some(peer) = self.receiving.get_mut(number) {
            for (free, out) in self.free.iter_mut().zip(&mut peer.out) {
                *free += std::mem::take(out);
            }
        }
    }

    /// Buffers that the dead were granted and that nobody else may use, since they may still be
    /// used.
    pub fn slots_retired(&self) -> usize {
        let of = |number: &u32| self.receiving.get(*number).map_or(0, |peer| peer.out.iter().sum());
        self.dead.iter().map(of).sum()
    }
}

#[cfg(all(test, not(loom)))]
mod tests;
