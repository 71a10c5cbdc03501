//! The contract between the message layer and the transports that carry its messages.
//!
//! A message goes into a slot of its [`Class`] in the receiver's memory, and a sender needs a
//! credit for the slot. Each carrier has its own way to obtain credits:
//!
//! - In shared memory the sender takes a ticket by an atomic operation on the receiver's counters,
//!   and writes the slot itself (`memory::slots`).
//! - Over a wire the receiver grants credits by messages, and the receiver's endpoint writes the
//!   slot when the frame has arrived (`wire::grants`).
//!
//! Calls are dispatched statically, so the second carrier adds no indirect call to messages on a
//! node.

use crate::transport::frame::{Class, Frame};
use crate::transport::memory::message_sender::MessageSender;
use crate::util::counters::Counters;

/// The sending state towards one peer, over either carrier.
pub type Peer = MessageSender<'static>;

/// The number of bytes of a message: header and payload.
pub type Bytes = (usize, usize);

/// A thread that is woken when there is a credit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sleeper {
    /// The progress thread.
    Progress,
    /// The thread `llcl-handlers`.
    Handlers,
    /// The threads of the program that await room at the wire.
    Program,
}

/// What a poll of a wire has found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Polled {
    Nothing,
    /// Events without work for the engine's lane: messages that lie in slots for handlers, or ends
    /// of frames.
    Messages,
    /// Any other events.
    Others,
}

impl Polled {
    /// Whether there was an event.
    #[inline]
    pub fn is_any(self) -> bool {
        self != Polled::Nothing
    }
}

/// See the head of the file. Any thread may call. No call waits for a peer.
pub trait Carrier {
    /// Whether there is a credit for a message of a class. A hint: put() may still fail.
    fn has_credit(&self, to: &Peer, class: Class, bytes: Bytes) -> bool;

    /// Asks that a thread of this rank be woken when there is a credit for a request, a request to
    /// the owner, or a response. The caller then calls `heavy_fence` if the peer is on this node,
    /// and has_credit(). It sleeps only if there is none: credit that comes after that wakes the
    /// thread. False: nobody will wake it.
    fn ask_wake(&self, to: &Peer, class: Class, bytes: Bytes, sleeper: Sleeper) -> bool;

    /// Takes a credit, copies and sends a frame, and wakes the receiver if it sleeps. False: there
    /// is no credit, and nothing was sent. That is rare for a reply or an answer
    /// ([`Class::Replies`], [`Class::Answers`]), for which the receiver has reserved a slot: its
    /// sender keeps it and tries again.
    fn put(&self, to: &Peer, class: Class, frame: &Frame, counts: &Counters) -> bool;
}
