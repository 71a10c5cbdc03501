//! The receiving end of the lane: requests to this rank's agent, and the answers to its own
//! requests.
//!
//! Both have slots of their own (`message_area` LIB and ANSWERS), which the holder of the lane's
//! role empties whatever the handlers of active messages do. A rank sets a slot aside for each
//! operation that waits for an answer, so an answer waits for nothing.

use crate::transport::frame::{Arrived, Class, Frame, REPLY};
use crate::transport::memory::message_area::MessageArea;
use crate::transport::memory::message_receiver::MessageReceiver;
use crate::transport::memory::segment::Segment;
use crate::transport::{MESSAGE_WORDS, Message, Receiver, Reply, Sink};
use crate::util::counters::Counters;
use crate::util::status::Status;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// Requests handled in one round, and answers, so that each of them and the own queue get their
/// turn.
const BATCH: usize = 64;

/// What the holder of the role knows of what comes. It writes here in every round, so nothing that
/// other threads read may lie in the same lines.
#[repr(align(128))]
pub struct NodeReceiver {
    own: Arc<Segment>,
    requests: MessageReceiver,
    answers: MessageReceiver,
}

impl NodeReceiver {
    pub(super) fn new(
        own: Arc<Segment>,
        dead: Arc<[AtomicBool]>,
        counts: Arc<Counters>,
    ) -> NodeReceiver {
        let take = |class| MessageReceiver::new(own.clone(), dead.clone(), counts.clone(), class);
        NodeReceiver { requests: take(Class::Lib), answers: take(Class::Answers), own }
    }

    fn area(&self) -> MessageArea<'_> {
        self.own.control().own_mail()
    }
}

impl Receiver for NodeReceiver {
    fn poll(&mut self, sink: &mut dyn Sink) -> usize {
        let answers = take(&mut self.answers, |answer| sink.reply(reply_of(answer)));
        // A request's slot is given back when it was answered, or kept until it can be.
        answers + take(&mut self.requests, |request| sink.request(&message_of(request)))
    }

    fn arm(&mut self) -> bool {
        self.area().head.lane.close_fenced();
        let quiet = self.requests.is_quiet() && self.answers.is_quiet();
        if !quiet {
            self.area().head.lane.open();
        }
        quiet
    }

    fn disarm(&mut self) {
        self.area().head.lane.open();
    }
}

/// Hands up to BATCH of what has come to `to`; returns how many.
#[inline]
fn take(from: &mut MessageReceiver, mut to: impl FnMut(&Arrived)) -> usize {
    if !from.has_come() {
        return 0;
    }
    for count in 0..BATCH {
        let Some(arrived) = from.peek() else { return count };
        to(&arrived);
        from.done();
    }
    BATCH
}

/// Up to `WORDS` words of what came in the place of a header; what is missing is 0.
fn words<const WORDS: usize>((bytes, size): (*const u8, usize)) -> [u64; WORDS] {
    let mut words = [0_u64; WORDS];
    // SAFETY: the slot holds `size` bytes, and is ours until it is done with.
    unsafe {
        std::ptr::copy_nonoverlapping(bytes, words.as_mut_ptr().cast(), size.min(WORDS * 8));
    }
    words
}

/// The bytes of words, as a header.
fn bytes(words: &[u64]) -> &[u8] {
    // SAFETY: as many bytes as the words have, of which any are valid.
    unsafe { std::slice::from_raw_parts(words.as_ptr().cast(), size_of_val(words)) }
}

fn message_of(arrived: &Arrived) -> Message {
    let Arrived { kind, source, tag, header, .. } = *arrived;
    Message { kind: kind.into(), source, tag, words: words::<MESSAGE_WORDS>(header) }
}

fn reply_of(arrived: &Arrived) -> Reply {
    let [result] = words::<1>(arrived.header);
    Reply { tag: arrived.tag, status: Status(-i32::from(arrived.id)), result }
}

/// A request, as it is to be sent.
pub(super) fn frame_of(message: &Message) -> Frame<'_> {
    let (kind, tag, header) = (message.kind as u8, message.tag, bytes(&message.words));
    Frame { id: 0, kind, tag, header, payload: &[], label: 0, absent: true }
}

/// An answer, as it is to be sent.
pub(super) fn frame_of_reply(reply: &Reply) -> Frame<'_> {
    let (id, header) =
        (reply.status.0.unsigned_abs() as u16, bytes(std::slice::from_ref(&reply.result)));
    Frame { id, kind: REPLY, tag: reply.tag, header, payload: &[], label: 0, absent: true }
}
