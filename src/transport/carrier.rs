//! What the message layer asks of whatever carries its messages to a peer.
//!
//! A message goes into a slot of its [`Class`] in the receiver's memory, and only a sender that has
//! a credit for it may send it. How credits are had is the carrier's:
//!
//! - where the receiver's counters can be changed from here, a sender takes a ticket from them,
//!   reads them where that fails, and writes the slot itself (`memory::slots`);
//! - where they cannot, the receiver grants credits by messages, and its own end of the carrier
//!   writes the slot when the frame has come (`wire::grants`).
//!
//! Calls are dispatched statically: a message on a node costs nothing for the existence of others.

use crate::transport::frame::{Class, Frame};
use crate::transport::memory::message_sender::MessageSender;
use crate::util::counters::Counters;

/// What is known of one peer, whatever leads to it.
pub type Peer = MessageSender<'static>;

/// See the head of the file. Any thread may call it; no call waits for a peer, but for the slots
/// that a peer has set aside for what it waits for ([`Class::Replies`], [`Class::Answers`]).
pub trait Carrier {
    /// Whether there is a credit for a small message of a class, as far as a look tells.
    fn has_credit(&self, to: &Peer, class: Class) -> bool;

    /// Takes a credit and sends a frame, which has been copied when this returns, and wakes the
    /// receiver if it sleeps. False: there is no credit, and nothing has happened.
    fn put(&self, to: &Peer, class: Class, frame: &Frame, counts: &Counters) -> bool;
}
