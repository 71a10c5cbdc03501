//! Packets with one message and nothing else of length: they are encoded from the message and
//! decoded in the frame that has brought them, without a copy in between.

use super::*;
use crate::transport::wire::grants::KNOCK as MOST_OF_KNOCK;

/// A packet with one message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Single {
    /// A knock behind which no frame waits: its line and number.
    Knock(Line, u64),
    /// A frame for which the receiver has set a place aside.
    Aside,
    /// A granted frame.
    Granted(Line),
    /// A granted frame with the next knock: the knock's number, and how many frames wait behind it.
    More(Line, u64, u32),
}

/// Bytes of what add_knock() and add_answer() add.
pub const PLACES: usize = NUMBER + ANSWERED;
/// Most bytes of a packet with one message of at most MOST_OF_KNOCK bytes of header and payload.
pub const SINGLE_MOST: usize = FRAME_BEFORE + MOST_OF_KNOCK + PLACES;

/// Length of the packet of a message that brings neither a knock nor an answer.
#[inline]
pub fn single_size(frame: &Frame) -> usize {
    FRAME_BEFORE + frame.header.len() + frame.payload.len()
}

/// Makes a granted frame, the last packet of `bytes`, which begins at `at`, bring a knock.
pub fn add_knock(bytes: &mut Vec<u8>, at: usize, number: u64, demand: usize) {
    bytes[at] = MORE;
    bytes[at + 4..at + HEAD].copy_from_slice(&(demand as u32).to_le_bytes());
    bytes.extend_from_slice(&number.to_le_bytes());
}

/// Makes the last packet of `bytes`, which begins at `at`, bring the answer of a knock.
pub fn add_answer(bytes: &mut Vec<u8>, at: usize, (line, number): Answered) {
    bytes[at + 3] = 1 + line as u8;
    bytes.extend_from_slice(&number.to_le_bytes());
}

/// Appends to `to` what encode() makes of the packet. `head`: the head in front of the packet,
/// made from the packet's length.
pub fn put_single<const N: usize>(
    to: &mut Vec<u8>,
    single: Single,
    (class, frame): (Class, &Frame),
    answered: Option<Answered>,
    head: impl FnOnce(usize) -> [u8; N],
) {
    let (kind, line, number, demand) = match single {
        Single::Knock(line, number) => (KNOCK, line as u8, Some(number), 0),
        Single::Aside => (FRAME, NONE, None, 0),
        Single::Granted(line) => (FRAME, line as u8, None, 0),
        Single::More(line, number, demand) => (MORE, line as u8, Some(number), demand),
    };
    let answer = answered.map_or(0, |(line, _)| 1 + line as u8);
    let numbers = [number, answered.map(|(_, number)| number)];
    let size = single_size(frame) + 8 * numbers.iter().flatten().count();
    to.reserve(N + size);
    to.extend_from_slice(&head(size));
    let [a, b, c, d] = demand.to_le_bytes();
    to.extend_from_slice(&[kind, class as u8, line, answer, a, b, c, d]);
    to.extend_from_slice(&head_of(frame));
    to.extend_from_slice(frame.header);
    if !frame.payload.is_empty() {
        to.extend_from_slice(frame.payload);
    }
    for number in numbers.into_iter().flatten() {
        to.extend_from_slice(&number.to_le_bytes());
    }
}

/// Decodes a packet of put_single(): the answer that it carries, what it is, and its message. None:
/// it is another packet, or a faulty one; answer_and_packet_of() decodes it, or says what is wrong.
/// `medium`: most bytes of payload of a reply.
pub fn single_of(
    bytes: &[u8],
    medium: usize,
) -> Option<(Option<Answered>, Single, (Class, Frame<'_>))> {
    let (head, rest) = bytes.split_first_chunk::<HEAD>()?;
    let [kind, class, line, answer, demand @ ..] = *head;
    let class = *CLASSES.get(usize::from(class))?;
    let (answered, rest) = match usize::from(answer).checked_sub(1) {
        None => (None, rest),
        Some(line) if line < LINES => {
            let (rest, last) = rest.split_last_chunk()?;
            (Some((line, u64::from_le_bytes(*last))), rest)
        }
        Some(_) => return None,
    };
    let (line, demand) = (usize::from(line), u32::from_le_bytes(demand));
    let (before, number) = rest
        .split_last_chunk()
        .map_or((rest, 0), |(before, number)| (before, u64::from_le_bytes(*number)));
    let (single, message) = match (kind, line < LINES && needs_grant(class)) {
        (KNOCK, true) if demand == 0 => (Single::Knock(line, number), before),
        (MORE, true) if number > 0 && demand > 0 => (Single::More(line, number, demand), before),
        (FRAME, true) if demand == 0 => (Single::Granted(line), rest),
        (FRAME, false) if line == usize::from(NONE) && demand == 0 && !needs_grant(class) => {
            (Single::Aside, rest)
        }
        _ => return None,
    };
    is_sound(class, message, medium).then(|| (answered, single, (class, frame_of(message))))
}
