//! Signals that come with the bytes of a write, as the words of its notice: one command of the wire
//! instead of a write and a request behind it. The thread that polls the owner's lane changes the
//! signal's word and answers. A wire may bring answers with the completion of the write. Otherwise
//! the thread answers the write's tag, as the owner answers a request, so the write has completed
//! when both the wire's completion and that answer have come.
//!
//! | notice | its number: the `LLCL_OP_*` by which the word changes |
//! |---|---|
//! | word 0 | the engine's tag at the sender, for the answer |
//! | words 1 and 2 | key and offset of the signal's word |
//! | word 3 | the operand |
//!
//! A notice with the number `engine::control_messages::NOTICE` brings a control message in words 1
//! to 3.

use super::{Command, Event, NOTICE_WORDS};
use crate::transport::address::Address;
use crate::transport::remote::Signal;

/// A signal that has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Come {
    /// The sender.
    pub from: u32,
    /// The sender's tag.
    pub tag: u64,
    /// The number by which the lane answers the write; 0: it does not.
    pub number: u64,
    /// The signal.
    pub signal: Signal,
}

/// Makes a write bring a signal.
pub fn put(command: &mut Command, tag: u64, signal: Signal) {
    let Signal { op, word, value } = signal;
    command.flags |= Command::NOTICE | Command::WORDS;
    command.notice = op.into();
    command.words = [tag, word.key, word.offset, value];
}

/// The signal of a notice. None: the notice brings no words, so it is none of a signal.
pub fn take(event: &Event) -> Option<Come> {
    if event.size != size_of::<[u64; NOTICE_WORDS]>() as u64 || event.bytes.is_null() {
        return None;
    }
    // SAFETY: the lane keeps the words valid until its next poll().
    let words = unsafe { event.bytes.cast::<[u64; NOTICE_WORDS]>().read_unaligned() };
    let ([tag, key, offset, value], op) = (words, u8::try_from(event.tag).ok()?);
    Some(Come {
        from: event.peer,
        tag,
        number: event.frame,
        signal: Signal { op, word: Address { key, offset }, value },
    })
}
