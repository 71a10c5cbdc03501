//! Signals that come with the bytes of a write, as the words of its notice: one command of the wire
//! instead of a write and a request behind it. The thread that polls the owner's lane changes the
//! signal's word and answers. A wire may bring answers with the completion of the write. Otherwise
//! the thread answers the write's tag, as the owner answers a request, so the write has completed
//! when both the wire's completion and that answer have come. The write may have no bytes.
//!
//! An atomic is such a signal without bytes, whose answer brings the old value of the word. Only a
//! wire that brings answers with completions has it.
//!
//! | notice | its number: the `LLCL_OP_*` by which the word changes; of an atomic also, 8 bits higher, the word's `LLCL_TYPE_*` |
//! |---|---|
//! | word 0 | the engine's tag at the sender, for the answer; of an atomic the value that a compare-and-swap expects |
//! | words 1 and 2 | key and offset of the signal's word |
//! | word 3 | the operand |
//!
//! A notice with the number `engine::control_messages::NOTICE` brings a control message in words 1
//! to 3.

use super::{Command, Event, NOTICE_WORDS};
use crate::transport::address::Address;
use crate::transport::remote::{NO_ATOMIC, Signal};
use crate::util::status::Status;

/// A signal that has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Come {
    /// The sender.
    pub from: u32,
    /// The sender's tag. Of an atomic 0.
    pub tag: u64,
    /// The number by which the lane answers the write; 0: it does not.
    pub number: u64,
    /// The signal.
    pub signal: Signal,
    /// The status for the sender, and the word's old value if the signal is an atomic. [`take`]
    /// sets the answer to a signal that nobody handles.
    pub answer: (Status, u64),
}

/// Makes a write bring a signal.
pub fn put(command: &mut Command, tag: u64, signal: Signal) {
    let Signal { op, kind, word, value, compare } = signal;
    let (first, fetch) = match signal.is_atomic() {
        true => (compare, Command::FETCH),
        false => (tag, 0),
    };
    command.flags |= Command::NOTICE | Command::WORDS | fetch;
    command.notice = u16::from_le_bytes([op, kind]).into();
    command.words = [first, word.key, word.offset, value];
}

/// The signal of a notice. None: the notice brings no words, so it is none of a signal.
pub fn take(event: &Event) -> Option<Come> {
    if event.size != size_of::<[u64; NOTICE_WORDS]>() as u64 || event.bytes.is_null() {
        return None;
    }
    // SAFETY: the lane keeps the words valid until its next poll().
    let words = unsafe { event.bytes.cast::<[u64; NOTICE_WORDS]>().read_unaligned() };
    let [first, key, offset, value] = words;
    let [op, kind] = u16::try_from(event.tag).ok()?.to_le_bytes();
    let word = Address { key, offset };
    let (tag, compare) = if kind == NO_ATOMIC { (first, 0) } else { (0, first) };
    let signal = Signal { op, kind, word, value, compare };
    let answer = (Status::ERR_KEY, 0);
    Some(Come { from: event.peer, tag, number: event.frame, signal, answer })
}
