//! Messages of one line and peer that wait for grants, as the frame in which they will leave. A
//! message is encoded into it when it comes to wait, so its bytes are copied once.
//!
//! A knock that goes with them, and the answer of a peer's knock, come behind the last message.

use super::buffers::{Buffers, grow};
use super::grants::{Answered, Line};
use super::packet::{
    FRAME_BEFORE, OwnedFrame, PLACES, Single, add_answer, add_knock, put_single, single_size,
};
use super::pieces::{HEAD, head, split, stretch};
use crate::transport::frame::{Class, Frame};

/// See the head of the file.
#[derive(Debug)]
pub struct Bundle {
    /// The line and class of its messages.
    pub line: Line,
    pub class: Class,
    bytes: Vec<u8>,
    /// Where the piece of the last message begins.
    last: usize,
    /// Number of messages.
    count: usize,
    /// A knock has asked for grants for all of them, so no further one is added.
    closed: bool,
}

impl Bundle {
    /// An empty one. `frames` has memory.
    pub fn new(line: Line, class: Class, frames: &mut Buffers) -> Bundle {
        Bundle { line, class, bytes: frames.memory(false), last: 0, count: 0, closed: false }
    }

    /// Number of messages.
    pub fn count(&self) -> usize {
        self.count
    }

    /// Whether one more message is added, if it is to have at most `most` of them.
    pub fn takes(&self, frame: &Frame, most: usize, frames: &Buffers) -> bool {
        let len = self.bytes.len() + HEAD + single_size(frame) + PLACES;
        !self.closed && self.count < most && len <= frames.joined_most()
    }

    /// Adds a message. Only the first one may be longer than a frame.
    pub fn add(&mut self, frame: &Frame, frames: &mut Buffers) {
        let (number, most) = (frames.number(), frames.joined_most());
        grow(&mut self.bytes, HEAD + single_size(frame) + PLACES, most);
        (self.last, self.count) = (self.bytes.len(), self.count + 1);
        let head = |size| head(size, number, 0..size);
        put_single(&mut self.bytes, Single::Granted(self.line), (self.class, frame), None, head);
    }

    /// No further message is added.
    pub fn close(&mut self) {
        self.closed = true;
    }

    /// It brings a knock for so many frames that wait behind it.
    pub fn carry_knock(&mut self, number: u64, demand: usize) {
        add_knock(&mut self.bytes, self.last + HEAD, number, demand);
        stretch(&mut self.bytes[self.last..]);
    }

    /// It brings the answer of a knock.
    pub fn carry_answer(&mut self, answered: Answered) {
        add_answer(&mut self.bytes, self.last + HEAD, answered);
        stretch(&mut self.bytes[self.last..]);
    }

    /// Length of header and payload of the first message.
    pub fn first_size(&self) -> usize {
        split(&self.bytes).0.len() - HEAD - FRAME_BEFORE
    }

    /// The first message, which it does not have any more.
    pub fn take_first(&mut self) -> OwnedFrame {
        let (first, _) = split(&self.bytes);
        let (owned, size) = (OwnedFrame::granted(self.class, &first[HEAD..]), first.len());
        self.last = self.last.saturating_sub(size);
        self.count -= 1;
        self.bytes.drain(..size);
        owned
    }

    /// Keeps so many messages, at least one, and returns the others.
    pub fn split_off(&mut self, count: usize) -> Bundle {
        let (mut at, mut begin) = (0, 0);
        for _ in 0..count {
            begin = at;
            at += split(&self.bytes[at..]).0.len();
        }
        let rest = Bundle {
            line: self.line,
            class: self.class,
            bytes: self.bytes[at..].to_vec(),
            last: self.last - at,
            count: self.count - count,
            closed: self.closed,
        };
        self.bytes.truncate(at);
        (self.last, self.count) = (begin, count);
        rest
    }

    /// Its frame.
    pub fn into_frame(self) -> Vec<u8> {
        self.bytes
    }
}

#[cfg(all(test, not(loom)))]
pub mod tests;
