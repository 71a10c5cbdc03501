//! Active messages at the border between the message layer and the transports: [`Frame`] is a
//! message to send, [`Arrived`] a received one.

/// Numbers of handlers are smaller.
pub const IDS: usize = 256;
/// Most bytes of a header.
pub const HEADER: usize = 64;
/// Most bytes of a payload.
pub const LARGEST: usize = 1 << 16;
/// The kind of a frame that contains its payload.
pub const ALONG: u8 = 0;
/// The kind of a frame that is a reply.
pub const REPLY: u8 = 255;

/// An active message to send.
#[derive(Clone, Copy)]
pub struct Frame<'a> {
    /// The handler's number; for a reply its status.
    pub id: u16,
    /// How the payload travels, such as [`ALONG`]; or [`REPLY`].
    pub kind: u8,
    /// Identifies the request; 0: its sender does not wait for its end.
    pub tag: u64,
    /// At most HEADER bytes.
    pub header: &'a [u8],
    /// At most LARGEST bytes; for a reply at most the receiver's `medium`.
    pub payload: &'a [u8],
    /// A number of the user.
    pub label: u16,
    /// The user gave no payload (NULL); the handler gets NULL, not an empty payload.
    pub absent: bool,
}

/// The first three words of a slot, from the lowest bit on. Word 0: size of the header (8 bits),
/// handler's number or status of a reply (16), kind (8), sender (32). Word 1: size of the payload
/// (32), whether there is a payload (1), whether it lies at a near place (1), unused (14), user's
/// number (16). Word 2: the tag.
#[derive(Clone, Copy, Debug)]
pub struct Envelope(pub [u64; 3]);

/// Shifts of fields in word 0.
const ID: u32 = 8;
const KIND: u32 = 24;
const SOURCE: u32 = 32;
/// Shifts of fields in word 1.
const PRESENT: u32 = 32;
const NEAR: u32 = 33;
const LABEL: u32 = 48;

/// is_usual() checks kind and number by one comparison, which needs this value.
const _: () = assert!(ALONG == 0 && HEADER.is_power_of_two());

impl Envelope {
    /// Word 0 of all envelopes of a sender, without what differs between its messages.
    #[inline(always)]
    pub fn origin(source: u32) -> u64 {
        u64::from(source) << SOURCE
    }

    /// The envelope of a frame; `origin` is the result of origin().
    #[inline(always)]
    pub fn of(origin: u64, frame: &Frame) -> Envelope {
        let first = frame.header.len() as u64
            | u64::from(frame.id) << ID
            | u64::from(frame.kind) << KIND
            | origin;
        let about = frame.payload.len() as u64
            | u64::from(!frame.absent) << PRESENT
            | u64::from(frame.label) << LABEL;
        Envelope([first, about, frame.tag])
    }

    /// The envelope of a message of kind ALONG with a header of `header` bytes, no payload, and the
    /// tag 0; `origin` is the result of origin().
    #[inline(always)]
    pub fn bare(origin: u64, header: usize, id: u32, label: u16) -> Envelope {
        Envelope([origin | header as u64 | u64::from(id) << ID, u64::from(label) << LABEL, 0])
    }

    /// Whether the kind is ALONG, and handler's number and size of the header are valid: another
    /// process may have written it.
    #[inline(always)]
    pub fn is_usual(&self) -> bool {
        /// The bits of the lower half of word 0 that are 0 if kind and number are valid and the
        /// header has fewer than HEADER bytes.
        const OTHERS: u32 = !(((IDS as u32) << ID) - 1) | (256 - HEADER as u32);
        let first = self.0[0] as u32;
        first & OTHERS == 0 || first & (OTHERS | 255) == HEADER as u32
    }

    /// Whether there is no payload, and its size is 0.
    #[inline(always)]
    pub fn is_bare(&self) -> bool {
        self.0[1] << (u64::BITS - LABEL) == 0
    }

    /// Size of the header in bytes.
    #[inline(always)]
    pub fn header_size(&self) -> usize {
        self.0[0] as usize & 255
    }

    /// Size of the payload in bytes.
    #[inline(always)]
    pub fn payload_size(&self) -> usize {
        self.0[1] as u32 as usize
    }

    /// Whether there is no payload, not even an empty one.
    #[inline(always)]
    pub fn is_absent(&self) -> bool {
        self.0[1] >> PRESENT & 1 == 0
    }

    /// Notes that the payload lies at the near place of its ticket; see `transport::memory::slots`.
    #[inline(always)]
    pub fn set_near(&mut self) {
        self.0[1] |= 1 << NEAR;
    }

    /// Whether set_near() was called.
    #[inline(always)]
    pub fn is_near(&self) -> bool {
        self.0[1] >> NEAR & 1 == 1
    }

    /// The envelope with valid sizes, since another process may have written it: at most HEADER
    /// bytes of header and `most` of payload, and no payload if it is absent.
    #[cold]
    #[inline(never)]
    pub fn bounded(self, most: usize) -> Envelope {
        let header = self.header_size().min(HEADER) as u64;
        let size = if self.is_absent() { 0 } else { self.payload_size().min(most) as u64 };
        let [first, about, tag] = self.0;
        Envelope([first & !255 | header, about >> 32 << 32 | size, tag])
    }
}

/// A received message. Its bytes lie in its slot, and are valid until the receiver gives the slot
/// back. The accessors decode one field each, since few handlers need all.
#[derive(Clone, Copy, Debug)]
pub struct Arrived {
    /// A copy of the slot's envelope with valid sizes.
    pub envelope: Envelope,
    /// The address of the header.
    pub header: *const u8,
    /// The address of the payload; null: the sender gave none.
    pub payload: *const u8,
    /// The message is a response; its tag is that of the request, or 0.
    pub response: bool,
}

impl Arrived {
    /// No message.
    pub const NONE: Arrived = Arrived {
        envelope: Envelope([0; 3]),
        header: std::ptr::null(),
        payload: std::ptr::null(),
        response: false,
    };

    /// The handler's number, or the status of a reply.
    #[inline(always)]
    pub fn id(&self) -> u16 {
        (self.envelope.0[0] >> ID) as u16
    }

    /// How the payload travels; see [`Frame::kind`].
    #[inline(always)]
    pub fn kind(&self) -> u8 {
        (self.envelope.0[0] >> KIND) as u8
    }

    /// The rank that sent it.
    #[inline(always)]
    pub fn source(&self) -> u32 {
        (self.envelope.0[0] >> SOURCE) as u32
    }

    /// The sender's tag; 0: the sender does not wait for the end of the message.
    #[inline(always)]
    pub fn tag(&self) -> u64 {
        self.envelope.0[2]
    }

    /// The number that the sender's user has given it.
    #[inline(always)]
    pub fn label(&self) -> u16 {
        (self.envelope.0[1] >> LABEL) as u16
    }

    /// Address and size of the header.
    #[inline(always)]
    pub fn header(&self) -> (*const u8, usize) {
        (self.header, self.envelope.header_size())
    }

    /// Address and size of the payload.
    #[inline(always)]
    pub fn payload(&self) -> (*const u8, usize) {
        (self.payload, self.envelope.payload_size())
    }
}

/// Classes of messages. Each has slots of its own, so that a message that the receiver cannot
/// handle yet delays no message of another class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// Active messages (`llcl_am_*`) that are no responses.
    Requests,
    /// The library's notice that a message was handled, with its status and up to `medium` bytes
    /// from the handler, for a sender that waits for it.
    Replies,
    /// Active messages that a handler sends in response to a message.
    Responses,
    /// Requests to the receiver as the owner of memory.
    Lib,
    /// Answers to such requests.
    Answers,
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn an_envelope_tells_the_usual_messages_and_those_without_payload() {
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
        let of = |frame: &Frame, source| Envelope::of(Envelope::origin(source), frame);
        let short = Envelope::bare(Envelope::origin(7), 8, 255, u16::MAX);
        assert_eq!(short.0, of(&frame(8), 7).0);
        for size in [0, 8, HEADER] {
            let it = of(&frame(size), u32::MAX);
            assert!(it.is_usual() && it.is_bare());
        }
        let payload = of(&Frame { payload: &[1], absent: false, ..frame(8) }, 7);
        let empty = of(&Frame { absent: false, ..frame(8) }, 7);
        assert!(payload.is_usual() && !payload.is_bare() && !empty.is_bare());
        let others = [
            Frame { id: 256, ..frame(8) },
            Frame { kind: 1, ..frame(8) },
            Frame { kind: REPLY, ..frame(8) },
        ];
        assert!(others.iter().all(|frame| !of(frame, 7).is_usual()));
        let [first, about, tag] = short.0;
        assert!(!Envelope([first & !255 | (HEADER as u64 + 1), about, tag]).is_usual());
        assert!(!Envelope([first, about | 1 << 31, tag]).is_bare());
        assert_eq!(Envelope([first | 255, about | 9, tag]).bounded(5).header_size(), HEADER);
    }
}
