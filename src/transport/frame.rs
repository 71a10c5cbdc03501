//! Active messages as the upper layers give them to the transport that carries them, and as it
//! hands them over. How they travel is the transport's.

/// Numbers below this one name handlers.
pub const IDS: usize = 256;
/// Most bytes of a payload.
pub const LARGEST: usize = 1 << 16;
/// Kind of a frame that is a reply.
pub const REPLY: u8 = 255;

/// An active message, as it is to be sent.
#[derive(Clone, Copy)]
pub struct Frame<'a> {
    /// The handler's number; of a reply its status.
    pub id: u16,
    /// What the payload is, or that this is a reply.
    pub kind: u8,
    /// Names the request; 0: nobody waits for its end.
    pub tag: u64,
    /// At most 64 bytes.
    pub header: &'a [u8],
    /// At most LARGEST bytes; of a reply at most the receiver's `medium`.
    pub payload: &'a [u8],
    /// The user's own number.
    pub label: u16,
    /// There is no payload, not even an empty one.
    pub absent: bool,
}

/// A message that has come. Its bytes lie in its slot and are valid until it is done with.
#[derive(Clone, Copy, Debug)]
pub struct Arrived {
    /// The handler's number, or the status of a reply.
    pub id: u16,
    /// What the payload is.
    pub kind: u8,
    /// The rank that sent it.
    pub source: u32,
    /// What its sender calls it; 0: it does not wait for its end.
    pub tag: u64,
    /// The header.
    pub header: (*const u8, usize),
    /// The payload; null: there is none, not even an empty one.
    pub payload: (*const u8, usize),
    /// What the user of its sender calls it.
    pub label: u16,
    /// It is a response; `tag` is that of the request, where somebody waits for its end.
    pub response: bool,
}

/// Kinds of messages, each with slots of its own, since a queue stops at what nobody takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// Messages.
    Requests,
    /// What ends messages whose end is waited for.
    Replies,
    /// Messages that answer messages.
    Responses,
    /// Requests to this rank's agent.
    Lib,
    /// What other ranks' agents have answered.
    Answers,
}
