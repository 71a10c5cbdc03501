//! The receiver of signals that come with the bytes of writes.

use super::{Event, Out, Packet, Results, Shared, State};
use crate::transport::Reply;
use crate::transport::frame::Class;
use crate::transport::requests::frame_of_reply;
use crate::transport::wire::packet::OwnedFrame;
use crate::transport::wire::signals::{self, Come};
use crate::util::status::Status;

impl State {
    /// Handles the notice of a write. Err: what is wrong with it.
    pub(super) fn noticed(
        &mut self,
        event: &Event,
        medium: usize,
        results: &mut Results,
    ) -> std::result::Result<(), String> {
        match signals::take(event) {
            Some(come) => results.signals.push(come),
            None => self.notice(event, medium)?,
        }
        Ok(())
    }
}

impl Shared {
    /// Changes the words of signals, and answers their senders. Without the endpoint's lock, since
    /// the caller's callback wakes threads, which may post.
    pub(super) fn signal(&self, come: &[Come]) {
        if come.is_empty() {
            return;
        }
        let answer = |Come { from, tag, signal }: &Come| {
            let status = self.signalled.get().map_or(Status::ERR_KEY, |change| change(signal));
            let reply = Reply { tag: *tag, status, result: 0 };
            let frame = OwnedFrame::of(Class::Answers, &frame_of_reply(&reply, &[]));
            (*from, Packet::Frame(None, frame))
        };
        let out: Out = come.iter().map(answer).collect();
        self.send_and_wake(self.lock(), out);
    }
}
