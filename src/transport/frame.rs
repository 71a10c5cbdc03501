//! Active messages as the upper layers give them to the transport that carries them, and as it
//! hands them over. How they travel is the transport's.

/// Numbers below this one name handlers.
pub const IDS: usize = 256;
/// Most bytes of a header.
pub const HEADER: usize = 64;
/// Most bytes of a payload.
pub const LARGEST: usize = 1 << 16;
/// Kind of a frame whose payload travels with it.
pub const ALONG: u8 = 0;
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

/// What a slot says of its message, as it lies there: the header's size (8 bits), the handler's
/// number, or the status of a reply (16), the kind (8) and the sender (32); the payload's size
/// (32), whether there is a payload (1), unused bits (15), and the user's number (16); the tag.
#[derive(Clone, Copy, Debug)]
pub struct Envelope(pub [u64; 3]);

/// In the first word of an envelope, above the size of the header.
const ID: u32 = 8;
const KIND: u32 = 24;
const SOURCE: u32 = 32;
/// In the second one, above the size of the payload.
const PRESENT: u32 = 32;
const LABEL: u32 = 48;

/// So one comparison tells both a kind and whether there can be a handler, see is_short().
const _: () = assert!(ALONG == 0);

impl Envelope {
    /// Before the first one.
    pub const NONE: Envelope = Envelope([0; 3]);

    /// Of a frame that `source` sends.
    #[inline(always)]
    pub fn of(frame: &Frame, source: u32) -> Envelope {
        let first = frame.header.len() as u64
            | u64::from(frame.id) << ID
            | u64::from(frame.kind) << KIND
            | u64::from(source) << SOURCE;
        let about = frame.payload.len() as u64
            | u64::from(!frame.absent) << PRESENT
            | u64::from(frame.label) << LABEL;
        Envelope([first, about, frame.tag])
    }

    /// What short messages of `source` have in common: of the kind ALONG, with a header of `header`
    /// bytes, without a payload, and with no end that their sender waits for.
    pub fn of_short(source: u32, header: usize) -> u64 {
        header as u64 | u64::from(source) << SOURCE
    }

    /// Of one of them, for the handler `id`.
    #[inline(always)]
    pub fn short(of_short: u64, id: u32, label: u16) -> Envelope {
        Envelope([of_short | u64::from(id) << ID, u64::from(label) << LABEL, 0])
    }

    /// Whether it is one of a short message, with sizes and a number that can be.
    #[inline(always)]
    pub fn is_short(&self) -> bool {
        let [first, about, tag] = self.0;
        (first as u32) < (IDS as u32) << ID
            && first as u8 <= HEADER as u8
            && about << (u64::BITS - LABEL) | tag == 0
    }

    /// Bytes of the header.
    #[inline(always)]
    pub fn header_size(&self) -> usize {
        self.0[0] as usize & 255
    }

    /// Bytes of the payload.
    #[inline(always)]
    pub fn payload_size(&self) -> usize {
        self.0[1] as u32 as usize
    }

    /// Whether there is no payload, not even an empty one.
    #[inline(always)]
    pub fn is_absent(&self) -> bool {
        self.0[1] >> PRESENT & 1 == 0
    }

    /// What another process may have written, with sizes that can be: at most 64 bytes of header
    /// and `most` of payload, and none of what is absent.
    #[cold]
    #[inline(never)]
    pub fn bounded(self, most: usize) -> Envelope {
        let header = self.header_size().min(HEADER) as u64;
        let size = if self.is_absent() { 0 } else { self.payload_size().min(most) as u64 };
        let [first, about, tag] = self.0;
        Envelope([first & !255 | header, about >> 32 << 32 | size, tag])
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
    /// A short message, whose header lies there.
    #[inline(always)]
    pub fn of_short(envelope: Envelope, header: *const u8) -> Arrived {
        Arrived { envelope, header, payload: std::ptr::null(), response: false }
    }

    /// The handler's number, or the status of a reply.
    #[inline(always)]
    pub fn id(&self) -> u16 {
        (self.envelope.0[0] >> ID) as u16
    }

    /// What the payload is.
    #[inline(always)]
    pub fn kind(&self) -> u8 {
        (self.envelope.0[0] >> KIND) as u8
    }

    /// The rank that sent it.
    #[inline(always)]
    pub fn source(&self) -> u32 {
        (self.envelope.0[0] >> SOURCE) as u32
    }

    /// What its sender calls it; 0: it does not wait for its end.
    #[inline(always)]
    pub fn tag(&self) -> u64 {
        self.envelope.0[2]
    }

    /// What the user of its sender calls it.
    #[inline(always)]
    pub fn label(&self) -> u16 {
        (self.envelope.0[1] >> LABEL) as u16
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

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_short_message_is_told_by_its_envelope_and_nothing_else_is_taken_for_one() {
        let header = [0; HEADER];
        let frame = |size: usize| Frame {
            id: 255,
            kind: ALONG,
            tag: 0,
            header: &header[..size],
            payload: &[],
            label: u16::MAX,
            absent: true,
        };
        let short = Envelope::short(Envelope::of_short(7, 8), 255, u16::MAX);
        assert_eq!(short.0, Envelope::of(&frame(8), 7).0);
        for size in [0, 8, HEADER] {
            assert!(Envelope::of(&frame(size), u32::MAX).is_short());
        }
        let others = [
            Frame { id: 256, ..frame(8) },
            Frame { kind: 1, ..frame(8) },
            Frame { kind: REPLY, ..frame(8) },
            Frame { tag: 1, ..frame(8) },
            Frame { tag: 1 << 63, ..frame(8) },
            Frame { absent: false, ..frame(8) },
            Frame { payload: &[1], absent: false, ..frame(8) },
        ];
        assert!(others.iter().all(|frame| !Envelope::of(frame, 7).is_short()));
        let [first, about, tag] = short.0;
        assert!(!Envelope([first & !255 | (HEADER as u64 + 1), about, tag]).is_short());
        assert!(!Envelope([first, about | 1 << 31, tag]).is_short());
        assert_eq!(Envelope([first | 255, about | 9, tag]).bounded(5).header_size(), HEADER);
    }
}
