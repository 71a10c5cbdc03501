//! Active messages as the upper layers give them to the transport that carries them, and as it
//! hands them over. How they travel is the transport's.

/// Numbers below this one name handlers.
pub const IDS: usize = 256;
/// Most bytes of a header.
pub const HEADER: usize = 64;
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
    /// At most HEADER bytes.
    pub header: &'a [u8],
    /// At most LARGEST bytes; of a reply at most the receiver's `medium`.
    pub payload: &'a [u8],
    /// The user's own number.
    pub label: u16,
    /// There is no payload, not even an empty one.
    pub absent: bool,
}

/// What a slot says of its message, as it lies there: the handler's number, or the status of a
/// reply (16 bits), the kind (8), the header's size (8) and the sender (32); the payload's size
/// (32), the user's number (16), and whether there is no payload (1); the tag.
#[derive(Clone, Copy, Debug)]
pub struct Envelope(pub [u64; 3]);

impl Envelope {
    /// Of a frame that `source` sends.
    #[inline(always)]
    pub fn of(frame: &Frame, source: u32) -> Envelope {
        let first = u64::from(frame.id)
            | u64::from(frame.kind) << 16
            | (frame.header.len() as u64) << 24
            | u64::from(source) << 32;
        let about = frame.payload.len() as u64
            | u64::from(frame.label) << 32
            | u64::from(frame.absent) << 48;
        Envelope([first, about, frame.tag])
    }

    /// Bytes of the header.
    #[inline(always)]
    pub fn header_size(&self) -> usize {
        (self.0[0] >> 24) as usize & 255
    }

    /// Bytes of the payload.
    #[inline(always)]
    pub fn payload_size(&self) -> usize {
        self.0[1] as u32 as usize
    }

    /// Whether there is no payload, not even an empty one.
    #[inline(always)]
    pub fn is_absent(&self) -> bool {
        self.0[1] >> 48 & 1 == 1
    }

    /// What another process may have written, with sizes that can be: at most 64 bytes of header
    /// and `most` of payload, and none of what is absent.
    #[cold]
    #[inline(never)]
    pub fn bounded(self, most: usize) -> Envelope {
        let header = self.header_size().min(HEADER) as u64;
        let size = if self.is_absent() { 0 } else { self.payload_size().min(most) as u64 };
        let [first, about, tag] = self.0;
        Envelope([first & !(255 << 24) | header << 24, about >> 32 << 32 | size, tag])
    }
}

/// A message that has come. Its bytes lie in its slot and are valid until it is done with. What
/// its sender says of it is taken apart when somebody asks: few handlers ask for all.
#[derive(Clone, Copy, Debug)]
pub struct Arrived {
    /// Read once, with sizes that can be.
    pub envelope: Envelope,
    /// Where the header lies.
    pub header: *const u8,
    /// Where the payload lies; null: there is none, not even an empty one.
    pub payload: *const u8,
    /// It is a response; the tag is that of the request, where somebody waits for its end.
    pub response: bool,
}

impl Arrived {
    /// The handler's number, or the status of a reply.
    #[inline(always)]
    pub fn id(&self) -> u16 {
        self.envelope.0[0] as u16
    }

    /// What the payload is.
    #[inline(always)]
    pub fn kind(&self) -> u8 {
        (self.envelope.0[0] >> 16) as u8
    }

    /// The rank that sent it.
    #[inline(always)]
    pub fn source(&self) -> u32 {
        (self.envelope.0[0] >> 32) as u32
    }

    /// What its sender calls it; 0: it does not wait for its end.
    #[inline(always)]
    pub fn tag(&self) -> u64 {
        self.envelope.0[2]
    }

    /// What the user of its sender calls it.
    #[inline(always)]
    pub fn label(&self) -> u16 {
        (self.envelope.0[1] >> 32) as u16
    }

    /// The header.
    #[inline(always)]
    pub fn header(&self) -> (*const u8, usize) {
        (self.header, self.envelope.header_size())
    }

    /// The payload.
    #[inline(always)]
    pub fn payload(&self) -> (*const u8, usize) {
        (self.payload, self.envelope.payload_size())
    }
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
