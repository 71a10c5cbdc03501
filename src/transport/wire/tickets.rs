//! Credits by fetch-and-add, where the wire writes into the memory of peers with a notice and has
//! atomics: the second policy beside [`super::grants`]. No thread of the receiver takes part until
//! a frame lies in a slot.
//!
//! ```text
//!  sender                                     memory of the receiver ([`area`])
//!
//!  1 fetch-and-add b for b frames at hand  -> SendCNT   the first ticket that nobody has
//!    and read, under one doorbell          <- RecvCNT   the first ticket whose slot is in use
//!  2 where t < RecvCNT + SLOTS:
//!    write with notice, one for each frame -> slot t mod SLOTS = | t | bytes | packet |
//!    else read again, later                <- RecvCNT
//! ```
//!
//! A first frame to a peer goes with a knock, which takes half a round trip. Only the frames that
//! come while the knock, or a ticket, is under way take tickets, and only those that fit into a
//! slot.
//!
//! # Which peers may take tickets
//!
//! A receiver offers its slots to a peer whose knock says that more frames wait, and to at most
//! `USERS` peers. So it knows its users, in bounded memory. A fetch-and-add does not carry the
//! sender's rank. If a ticket will not be used, the receiver cannot know whose it is, so it ends
//! the use of the slots for all users, which knock again:
//!
//! | packet | from, to | what it says |
//! |---|---|---|
//! | Offer | receiver, sender | these slots may be used |
//! | Accepted | sender, receiver | they are; a sender that keeps too many offers answers Released |
//! | Revoked | receiver, sender | no further ticket is to be taken or used |
//! | Released | sender, receiver | nothing is under way; so many frames were written into slots |
//! | Closed | receiver, sender | they were taken from their slots; another offer may come |
//!
//! Each packet carries the number of its offer. When every user has released its use, or is dead
//! and fenced, no rank holds a ticket and no fetch-and-add is under way. Then the receiver advances
//! RecvCNT behind all tickets that were taken, and offers its slots again. This skips the **tickets
//! of the dead**. The receiver also ends the use if a stopped user delays the tickets behind its
//! own, but then it waits for that user's answer. If a dead user cannot be fenced, the slots stay
//! out of use.

use super::grants::{LINES, Line, Out, Packet};
use super::packet::OwnedFrame;
use super::{Caps, Wire};
use crate::util::status::Result;
use std::sync::Arc;

mod area;
mod giver;
mod taker;

use area::{Area, MOST};
use giver::Giver;
pub use taker::Taker;

/// How many lines have frames that may fit into a slot: the first ones, those of small frames.
const SMALL: usize = LINES / 2;
/// Slots of one line.
const SLOTS: u64 = 64;
/// Bytes of the memory that a rank registers for them.
#[cfg(all(test, feature = "simulated"))]
pub const BYTES: usize = area::BYTES;
/// Of `Caps::atomics`.
const FETCH_ADD: u64 = 1 << 5;
/// Bits of a notice, which says which slot it is.
const NOTICE_BITS: u32 = 8;
const _: () = assert!(SMALL as u64 * SLOTS <= 1 << NOTICE_BITS);

/// Where a peer's slots are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// Where its area begins in its process.
    pub start: u64,
    /// The area's key.
    pub key: [u64; 4],
}

/// The packets of the table in the head of this file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Use {
    /// These slots may be used.
    Offer(Place),
    /// They are.
    Accepted,
    /// No further ticket is to be taken or used.
    Revoked,
    /// Nothing is under way, and so many frames were written.
    Released(u64),
    /// They were taken from their slots.
    Closed,
}

/// Both sides of one rank.
pub struct Tickets {
    /// As sender.
    pub taker: Taker,
    /// As receiver.
    pub giver: Giver,
    is_first: bool,
    area: Area,
}

impl Tickets {
    /// None: the wire cannot do it, or does better.
    pub fn new(wire: &Arc<dyn Wire>, caps: &Caps) -> Result<Option<Tickets>> {
        let long = caps.message_most == 0 || caps.message_most >= area::SLOT as u64;
        let can = caps.remote && caps.notice_bits >= NOTICE_BITS && caps.atomics & FETCH_ADD != 0;
        if !can || !long || caps.shared_queue {
            return Ok(None);
        }
        let (taker, giver) = (Taker::default(), Giver::default());
        Ok(Some(Tickets { taker, giver, is_first: false, area: Area::new(wire.clone())? }))
    }

    /// Ends the registration of the area, before the wire is closed.
    pub fn deregister(&mut self) {
        self.area.deregister();
    }

    /// Takes in a packet about the use of slots. Frames that are to go another way now are
    /// answered.
    pub fn take(&mut self, from: u32, number: u64, change: Use, out: &mut Out) -> Vec<Waiting> {
        let mut answer = |change| out.push((from, Packet::Use(number, change)));
        match change {
            Use::Offer(place) => match self.taker.accept(from, number, place) {
                true => answer(Use::Accepted),
                false => answer(Use::Released(0)),
            },
            Use::Accepted => self.giver.accepted(from, number),
            Use::Revoked => return self.taker.revoked(from, number, out),
            Use::Released(count) => self.giver.released(from, number, count),
            Use::Closed => self.taker.closed(from, number),
        }
        Vec::new()
    }

    /// A write with notice has come; what is wrong with it.
    pub fn notice(
        &mut self,
        from: u32,
        notice: u64,
        medium: usize,
    ) -> std::result::Result<(), String> {
        self.giver.notice(&self.area, from, notice, medium)
    }

    /// Gives received frames to `deliver`, which answers whether there was room; offers slots to
    /// those who have much to send.
    pub fn serve(
        &mut self,
        streams: &mut Vec<u32>,
        deliver: impl FnMut(u32, &OwnedFrame) -> bool,
        out: &mut Out,
    ) {
        self.giver.serve(&self.area, deliver, out);
        let place = self.area.place();
        streams.drain(..).for_each(|peer| self.giver.offer(peer, place, out));
    }

    /// Whether the tickets' frames are to find room before those that came by grants; the answers
    /// alternate.
    pub fn goes_first(&mut self) -> bool {
        self.is_first = !self.is_first;
        self.is_first
    }

    /// Takes a ticket for a frame, or uses one; see [`Taker::takes`].
    pub fn send(&mut self, to: u32, line: Line, frame: OwnedFrame) {
        self.taker.send(to, line, frame);
    }

    /// Posts the commands that the lane takes. Returns those that it has refused, as (peer, why).
    pub fn pump(&mut self, lane: &mut dyn super::WireLane) -> Vec<(u32, String)> {
        self.taker.pump(&mut self.area, lane)
    }

    /// The end of a command of this; frames that are to go another way.
    pub fn done(&mut self, event: &super::Event, out: &mut Out) -> Vec<Waiting> {
        self.taker.done(&mut self.area, event, out)
    }

    /// A peer has died.
    pub fn mark_dead(&mut self, peer: u32) {
        self.taker.discard(&mut self.area, peer);
        self.giver.mark_dead(peer);
    }

    /// A peer is lost: it is sent no more frames, but it is change that this rank does not use its
    /// slots any more, in case that it lives.
    pub fn lose(&mut self, peer: u32, out: &mut Out) {
        self.taker.lose(&mut self.area, peer, out);
    }

    /// Nothing of a dead peer comes any more.
    pub fn fenced(&mut self, peer: u32) {
        self.giver.fenced(peer);
    }

    /// Whether all that was sent into slots of living peers was taken from there; looks where that
    /// is not known.
    pub fn all_delivered(&mut self) -> bool {
        self.taker.all_delivered()
    }

    /// Whether something waits that a later round may do though nothing else comes.
    pub fn is_stuck(&self) -> bool {
        self.taker.is_stuck() || self.giver.is_stuck()
    }
}

/// A frame that waits, with its line.
pub type Waiting = (Line, OwnedFrame);

/// Whether a frame of so many bytes of header and payload fits into a slot.
fn fits(line: Line, size: usize) -> bool {
    line < SMALL && size <= MOST
}
