//! Conversion between requests to owners of memory, with their answers, and the frames in which
//! they travel.

use crate::transport::frame::{Arrived, Frame, REPLY};
use crate::transport::{MESSAGE_WORDS, Message, Reply};
use crate::util::status::Status;

/// The first `WORDS` words of a header; missing ones are 0.
fn words<const WORDS: usize>((bytes, size): (*const u8, usize)) -> [u64; WORDS] {
    let mut words = [0_u64; WORDS];
    // SAFETY: the slot holds `size` bytes, and nobody writes it until the receiver gives it back.
    unsafe {
        std::ptr::copy_nonoverlapping(bytes, words.as_mut_ptr().cast(), size.min(WORDS * 8));
    }
    words
}

/// The payload of a received message; empty if there is none.
pub fn payload(arrived: &Arrived) -> &[u8] {
    match arrived.payload() {
        (bytes, _) if bytes.is_null() => &[],
        // SAFETY: as above; `arrived` is used only until the slot is given back.
        (bytes, size) => unsafe { std::slice::from_raw_parts(bytes, size) },
    }
}

/// The bytes of words, as a header.
fn bytes(words: &[u64]) -> &[u8] {
    // SAFETY: the size is that of the words, and any bytes are valid u8.
    unsafe { std::slice::from_raw_parts(words.as_ptr().cast(), size_of_val(words)) }
}

/// Decodes a received request.
pub fn message_of(arrived: &Arrived) -> Message {
    let (kind, source, tag) = (arrived.kind().into(), arrived.source(), arrived.tag());
    Message { kind, source, tag, words: words::<MESSAGE_WORDS>(arrived.header()) }
}

/// Decodes a received answer.
pub fn reply_of(arrived: &Arrived) -> Reply {
    let [result] = words::<1>(arrived.header());
    Reply { tag: arrived.tag(), status: Status(-i32::from(arrived.id())), result }
}

/// Encodes a request.
pub fn frame_of<'f>(message: &'f Message, payload: &'f [u8]) -> Frame<'f> {
    let (kind, tag, header) = (message.kind as u8, message.tag, bytes(&message.words));
    Frame { id: 0, kind, tag, header, payload, label: 0, absent: payload.is_empty() }
}

/// Encodes an answer. Its status travels as a positive number, since it is 0 or an error.
pub fn frame_of_reply<'f>(reply: &'f Reply, payload: &'f [u8]) -> Frame<'f> {
    let (id, header) =
        (reply.status.0.unsigned_abs() as u16, bytes(std::slice::from_ref(&reply.result)));
    let absent = payload.is_empty();
    Frame { id, kind: REPLY, tag: reply.tag, header, payload, label: 0, absent }
}
