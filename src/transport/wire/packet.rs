//! The encoding of packets, which endpoints exchange. All numbers are little-endian. A receiver
//! checks every field and refuses a malformed packet with a message that names the field.
//!
//! | at | size | a packet |
//! |---|---|---|
//! | 0 | 1 | kind: [`FRAME`] or one of the constants after it |
//! | 1 | 1 | class of the message in it; [`NONE`]: it contains no message |
//! | 2 | 1 | line of credits; [`NONE`]: the packet needs no credit |
//! | 3 | 1 | 0, or 1 + the line of a knock that it answers |
//! | 4 | 4 | of [`KNOCK`], [`MORE`]: frames for which it asks; of [`USE`]: its kind |
//! |   |   | of [`GRANTS`]: 1 if a packet must confirm it; else 0 |
//! | 8 | - | by kind: a message, numbers, bytes of a hub, or nothing; see [`encode`] |
//! | - | 0 or 8 | of [`KNOCK`], [`MORE`]: the number of the knock |
//! | - | 0 or 8 | the number of the knock that it answers |
//!
//! | at | size | a message |
//! |---|---|---|
//! | 0 | 2 | id |
//! | 2 | 1 | kind |
//! | 3 | 1 | length of its header in bytes |
//! | 4 | 2 | label |
//! | 6 | 1 | 1: the sender gave no payload; 0: it gave one, which may be empty |
//! | 7 | 1 | 0 |
//! | 8 | 8 | tag |
//! | 16 | 8 | length of its payload in bytes |
//! | 24 | - | header, payload |

use super::grants::{Answered, Knock, LINES, Line, Packet};
use super::tickets::{Place, Use};
use crate::transport::frame::{Class, Frame, LARGEST};
use crate::transport::{CHUNK, MESSAGE_WORDS};
use std::ops::{Range, RangeInclusive};
use std::slice::from_ref;

mod single;
pub use single::{
    PLACES, SINGLE_MOST, Single, add_answer, add_knock, put_single, single_of, single_size,
};

const FRAME: u8 = 1;
const KNOCK: u8 = 2;
const GRANTS: u8 = 3;
const TAKEN: u8 = 4;
const ASKED: u8 = 5;
const DELIVERED: u8 = 6;
const RELAYED: u8 = 7;
/// See `super::tickets`; it brings the number of the offer.
const USE: u8 = 8;
/// A message that goes without a grant.
const QUEUED: u8 = 9;
/// A message in a granted buffer, with the knock for those behind it.
const MORE: u8 = 10;
/// No class, or no line.
const NONE: u8 = 255;
/// Length of a packet's head.
const HEAD: usize = 8;
/// Length of a message's head, in front of the header.
const FRAME_HEAD: usize = 24;
/// Bytes of a packet with a message before the message's header.
pub const FRAME_BEFORE: usize = HEAD + FRAME_HEAD;
/// Most bytes of a message's header.
const HEADER: usize = 64;
/// Length of the number of a knock.
const NUMBER: usize = 8;
/// Length of the number of a knock that a packet answers.
const ANSWERED: usize = 8;
/// Most bytes of a packet.
pub const MOST: usize = HEAD + NUMBER + ANSWERED + FRAME_HEAD + HEADER + LARGEST;

const CLASSES: [Class; 5] =
    [Class::Requests, Class::Replies, Class::Responses, Class::Lib, Class::Answers];

/// An encoded message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OwnedFrame {
    /// Its class.
    pub class: Class,
    bytes: Vec<u8>,
}

/// The number of `size` bytes, at most 8, at `at`.
fn number(bytes: &[u8], at: usize, size: usize) -> u64 {
    let mut word = [0; 8];
    word[..size].copy_from_slice(&bytes[at..at + size]);
    u64::from_le_bytes(word)
}

/// The head of an encoded message.
fn head_of(frame: &Frame) -> [u8; FRAME_HEAD] {
    let mut head = [0; FRAME_HEAD];
    head[..2].copy_from_slice(&frame.id.to_le_bytes());
    (head[2], head[3]) = (frame.kind, frame.header.len() as u8);
    head[4..6].copy_from_slice(&frame.label.to_le_bytes());
    head[6] = frame.absent.into();
    head[8..16].copy_from_slice(&frame.tag.to_le_bytes());
    head[16..].copy_from_slice(&(frame.payload.len() as u64).to_le_bytes());
    head
}

/// Whether a received message may be decoded; parameters are those of OwnedFrame::received().
#[inline]
fn is_sound(class: Class, bytes: &[u8], medium: usize) -> bool {
    let Some((head, rest)) = bytes.split_first_chunk::<FRAME_HEAD>() else { return false };
    let (header, payload) = (usize::from(head[3]), number(head, 16, 8));
    let (headers, payloads) = sizes_of(class, medium);
    let fits = headers.contains(&header) && payload <= payloads as u64;
    fits && rest.len() == header + payload as usize && head[6] <= 1 && head[7] == 0
}

/// The lengths that a message's header may have, and most bytes of its payload.
#[inline]
fn sizes_of(class: Class, medium: usize) -> (RangeInclusive<usize>, usize) {
    match class {
        Class::Requests | Class::Responses => (0..=HEADER, LARGEST),
        Class::Replies => (0..=HEADER, medium),
        Class::Lib => (8 * MESSAGE_WORDS..=8 * MESSAGE_WORDS, CHUNK),
        Class::Answers => (8..=8, CHUNK),
    }
}

/// The fault of a received message that is_sound() has refused.
#[cold]
fn fault_of(class: Class, bytes: &[u8], medium: usize) -> String {
    if bytes.len() < FRAME_HEAD {
        return format!("a frame of {} bytes, expected {FRAME_HEAD} or more", bytes.len());
    }
    let (header, payload) = (usize::from(bytes[3]), number(bytes, 16, 8));
    let (headers, payloads) = sizes_of(class, medium);
    format!(
        "a frame of {} bytes in {class:?}: a header of {header} bytes, expected {headers:?}, a payload \
         of {payload} bytes, expected at most {payloads} and the rest behind {FRAME_HEAD} and the \
         header, and the flags {} and {}, expected 0 or 1 and 0",
        bytes.len(),
        bytes[6],
        bytes[7]
    )
}

/// Decodes a message that is sound.
fn frame_of(bytes: &[u8]) -> Frame<'_> {
    let (header, payload) = bytes[FRAME_HEAD..].split_at(usize::from(bytes[3]));
    Frame {
        id: number(bytes, 0, 2) as u16,
        kind: bytes[2],
        tag: number(bytes, 8, 8),
        header,
        payload,
        label: number(bytes, 4, 2) as u16,
        absent: bytes[6] == 1,
    }
}

impl OwnedFrame {
    /// Encodes a message.
    pub fn of(class: Class, frame: &Frame) -> OwnedFrame {
        let bytes = [&head_of(frame)[..], frame.header, frame.payload].concat();
        OwnedFrame { class, bytes }
    }

    /// The message of a packet that this rank has encoded as granted.
    pub fn granted(class: Class, packet: &[u8]) -> OwnedFrame {
        OwnedFrame { class, bytes: packet[HEAD..].into() }
    }

    /// Checks a received message. Err: what is wrong. `medium`: most bytes of payload of a reply.
    fn received(class: Class, bytes: &[u8], medium: usize) -> Result<OwnedFrame, String> {
        if !is_sound(class, bytes, medium) {
            return Err(fault_of(class, bytes, medium));
        }
        Ok(OwnedFrame { class, bytes: bytes.into() })
    }

    /// Decodes the message.
    pub fn frame(&self) -> Frame<'_> {
        frame_of(&self.bytes)
    }

    /// Length of header and payload in bytes.
    pub fn size(&self) -> usize {
        self.bytes.len() - FRAME_HEAD
    }
}

/// The parts of an encoded packet.
pub struct Encoded<'p> {
    head: [u8; HEAD],
    numbers: &'p [u64],
    rest: &'p [u8],
    answered: Option<u64>,
}

impl Encoded<'_> {
    /// Length in bytes.
    pub fn size(&self) -> usize {
        let answered = if self.answered.is_some() { ANSWERED } else { 0 };
        HEAD + 8 * self.numbers.len() + self.rest.len() + answered
    }

    /// Appends these bytes of the packet to `to`.
    pub fn put(&self, range: Range<usize>, to: &mut Vec<u8>) {
        if range.len() == self.size() {
            // Most packets: without cutting each part.
            to.extend_from_slice(&self.head);
            to.extend_from_slice(self.rest);
            self.numbers.iter().for_each(|number| to.extend_from_slice(&number.to_le_bytes()));
            self.answered.iter().for_each(|number| to.extend_from_slice(&number.to_le_bytes()));
            return;
        }
        let mut at = 0;
        let mut put = |part: &[u8]| {
            let end = range.end.clamp(at, at + part.len()) - at;
            let begin = range.start.clamp(at, at + part.len()) - at;
            to.extend_from_slice(&part[begin..end]);
            at += part.len();
        };
        put(&self.head);
        put(self.rest);
        self.numbers.iter().for_each(|number| put(&number.to_le_bytes()));
        self.answered.iter().for_each(|number| put(&number.to_le_bytes()));
    }
}

/// Encodes a packet, with the answer of a knock that it carries, for `then`.
pub fn encode<R>(
    packet: &Packet,
    answered: Option<Answered>,
    then: impl FnOnce(Encoded) -> R,
) -> R {
    // The numbers of packets that have several.
    let (grants, of_use): ([[u64; LINES]; 2], Vec<u64>);
    let plain = |what| (what, None, None, 0, &[][..]);
    let (what, owned, line, demand, numbers) = match packet {
        Packet::Frame(line, owned) => (FRAME, Some(owned), *line, 0, &[][..]),
        Packet::Granted(_) => unreachable!("a bundle is encoded"),
        Packet::Queued(line, owned) => (QUEUED, Some(owned), Some(*line), 0, &[][..]),
        Packet::Knock(line, Knock { number, demand, first }) => {
            (KNOCK, first.as_ref(), Some(*line), *demand, from_ref(number))
        }
        Packet::More(line, Knock { number, demand, first }) => {
            (MORE, first.as_ref(), Some(*line), *demand, from_ref(number))
        }
        Packet::Grants(answered, granted, asks) => {
            grants = [*answered, *granted];
            (GRANTS, None, None, usize::from(*asks), grants.as_flattened())
        }
        Packet::Use(number, change) => {
            let (which, numbers) = words_of(change);
            of_use = [&[*number], &numbers[..]].concat();
            (USE, None, None, which, &of_use[..])
        }
        Packet::Taken => plain(TAKEN),
        Packet::Asked => plain(ASKED),
        Packet::Delivered => plain(DELIVERED),
        Packet::Relayed(_) => plain(RELAYED),
    };
    let rest = match (packet, owned) {
        (Packet::Relayed(bytes), _) => &bytes[..],
        (_, Some(owned)) => &owned.bytes,
        _ => &[],
    };
    let class = owned.map_or(NONE, |owned| owned.class as u8);
    let line = line.map_or(NONE, |line| line as u8);
    let answer = answered.map_or(0, |(line, _)| 1 + line as u8);
    let [a, b, c, d] = (demand as u32).to_le_bytes();
    let head = [what, class, line, answer, a, b, c, d];
    then(Encoded { head, numbers, rest, answered: answered.map(|(_, number)| number) })
}

/// Encodes a packet.
pub fn bytes_of(packet: &Packet) -> Vec<u8> {
    encode(packet, None, |packet| {
        let mut bytes = Vec::with_capacity(packet.size());
        packet.put(0..packet.size(), &mut bytes);
        bytes
    })
}

/// The number of a kind of [`Use`], and its numbers.
fn words_of(change: &Use) -> (usize, Vec<u64>) {
    match change {
        Use::Offer(place) => (0, [&[place.start], &place.key[..]].concat()),
        Use::Accepted => (1, vec![]),
        Use::Revoked => (2, vec![]),
        Use::Released(count) => (3, vec![*count]),
        Use::Closed => (4, vec![]),
    }
}

/// Decodes what words_of() has encoded. None: no kind has this number, or not so many numbers.
fn use_of(which: usize, words: &[u64]) -> Option<Use> {
    match (which, words) {
        (0, [start, key @ ..]) => {
            Some(Use::Offer(Place { start: *start, key: key.try_into().ok()? }))
        }
        (1, []) => Some(Use::Accepted),
        (2, []) => Some(Use::Revoked),
        (3, [count]) => Some(Use::Released(*count)),
        (4, []) => Some(Use::Closed),
        _ => None,
    }
}

/// Checks and decodes what encode() has encoded; parameters and errors are those of
/// packet_of().
pub fn answer_and_packet_of(
    bytes: &[u8],
    medium: usize,
) -> Result<(Option<Answered>, Packet), String> {
    let Some(line) = bytes.get(3).and_then(|line| usize::from(*line).checked_sub(1)) else {
        return Ok((None, decoded(bytes, medium)?));
    };
    match bytes.split_last_chunk() {
        Some((plain, last)) if line < LINES => {
            Ok((Some((line, u64::from_le_bytes(*last))), decoded(plain, medium)?))
        }
        _ => Err(format!("an answer of line {line} in {} bytes", bytes.len())),
    }
}

/// Checks and decodes a received packet that carries no answer of a knock. Err: what is wrong.
/// `medium`: most bytes of payload of a reply.
pub fn packet_of(bytes: &[u8], medium: usize) -> Result<Packet, String> {
    match answer_and_packet_of(bytes, medium)? {
        (None, packet) => Ok(packet),
        (Some((line, _)), _) => Err(format!("an answer of line {line}, expected none")),
    }
}

/// Decodes a packet without the answer of a knock that it carries.
fn decoded(bytes: &[u8], medium: usize) -> Result<Packet, String> {
    if bytes.len() < HEAD {
        return Err(format!("a packet of {} bytes without the head of one", bytes.len()));
    }
    let (what, demand, rest) = (bytes[0], number(bytes, 4, 4) as usize, &bytes[HEAD..]);
    let line = match usize::from(bytes[2]) {
        line if line < LINES => Some(line),
        _ if bytes[2] == NONE => None,
        line => return Err(format!("line {line}, expected less than {LINES}")),
    };
    let class = match CLASSES.get(usize::from(bytes[1])) {
        Some(class) => Some(*class),
        None if bytes[1] == NONE => None,
        None => return Err(format!("class {}, expected less than 5", bytes[1])),
    };
    let most = match what {
        KNOCK | MORE | USE => usize::MAX,
        GRANTS => 1,
        _ => 0,
    };
    if demand > most {
        return Err(format!("the number {demand} in packet {what}, expected at most {most}"));
    }
    let (rest, knocks) = match (what, rest.split_last_chunk()) {
        (KNOCK | MORE, Some((rest, number))) => (rest, u64::from_le_bytes(*number)),
        (KNOCK | MORE, None) => return Err(format!("a knock of {} bytes", bytes.len())),
        _ => (rest, 0),
    };
    let owned = class.map(|class| OwnedFrame::received(class, rest, medium)).transpose()?;
    let knock = |first| Knock { number: knocks, demand, first };
    let fits = |owned: &OwnedFrame| line.is_some() == needs_grant(owned.class);
    match (what, owned, line) {
        (FRAME, Some(owned), line) if fits(&owned) => return Ok(Packet::Frame(line, owned)),
        (QUEUED, Some(owned), Some(line)) if fits(&owned) => {
            return Ok(Packet::Queued(line, owned));
        }
        (KNOCK, first, Some(line)) if first.as_ref().map_or(rest.is_empty(), fits) => {
            return Ok(Packet::Knock(line, knock(first)));
        }
        (MORE, Some(owned), Some(line)) if fits(&owned) => {
            let knock = knock(Some(owned));
            if knock.number == 0 || knock.demand == 0 {
                let (number, demand) = (knock.number, knock.demand);
                return Err(format!("knock {number} of a granted frame asks for {demand} frames"));
            }
            return Ok(Packet::More(line, knock));
        }
        (GRANTS, None, None) if rest.len() == 16 * LINES => {
            let word = |at: usize| number(rest, 8 * at, 8);
            let (answered, granted) =
                (std::array::from_fn(word), std::array::from_fn(|line| word(LINES + line)));
            return Ok(Packet::Grants(answered, granted, demand == 1));
        }
        (USE, None, None) if rest.len() >= 8 && rest.len().is_multiple_of(8) => {
            let words: Vec<u64> =
                (0..rest.len()).step_by(8).map(|at| number(rest, at, 8)).collect();
            if let Some(change) = use_of(demand, &words[1..]) {
                return Ok(Packet::Use(words[0], change));
            }
        }
        (RELAYED, None, None) => return Ok(Packet::Relayed(rest.to_vec())),
        (TAKEN, None, None) if rest.is_empty() => return Ok(Packet::Taken),
        (ASKED, None, None) if rest.is_empty() => return Ok(Packet::Asked),
        (DELIVERED, None, None) if rest.is_empty() => return Ok(Packet::Delivered),
        _ => {}
    }
    Err(format!("packet {what}, class {}, line {}, {} bytes", bytes[1], bytes[2], bytes.len()))
}

fn needs_grant(class: Class) -> bool {
    !matches!(class, Class::Replies | Class::Answers)
}

#[cfg(all(test, not(loom)))]
mod tests;
