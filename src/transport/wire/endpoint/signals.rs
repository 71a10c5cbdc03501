//! The receiver of signals that come with the bytes of writes.

use super::{Asleep, Event, KEPT, Packet, Results, Shared, State};
use crate::transport::Reply;
use crate::transport::frame::Class;
use crate::transport::remote::ANSWERED;
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
            Some(come) if come.signal.is_atomic() && come.number == 0 => {
                return Err("an atomic that the wire cannot answer".into());
            }
            Some(come) => results.signals.push(come),
            None => {
                if event.frame != 0 {
                    // The lane counts what is not answered.
                    self.lane.answer(event.frame, Status::ERR_INVALID, 0);
                }
                results.others = true;
                self.notice(event, medium)?;
            }
        }
        Ok(())
    }
}

impl Shared {
    /// Changes the words of signals, and answers their senders. Without the endpoint's lock, since
    /// the caller's callback wakes threads, which may post.
    pub(super) fn signal(&self, mut come: Vec<Come>) {
        if come.is_empty() {
            return;
        }
        if let Some(change) = self.signalled.get() {
            come.iter_mut().for_each(|it| it.answer = change(it.from, &it.signal));
        }
        let mut state = self.lock();
        let mut out = std::mem::take(&mut state.out);
        let mut poll = false;
        for Come { from, tag, number, signal, answer: (status, old) } in come.drain(..) {
            let value = if signal.is_atomic() { old } else { ANSWERED };
            match number {
                0 => {
                    let reply = Reply { tag, status, result: 0 };
                    let frame = OwnedFrame::of(Class::Answers, &frame_of_reply(&reply, &[]));
                    out.push((from, Packet::Frame(None, frame)));
                }
                _ if state.closed => {}
                _ => {
                    state.lane.answer(number, status, value);
                    poll |= !signal.is_atomic();
                }
            }
        }
        // Keeps the list's memory.
        if let Some(results) = &mut state.results
            && come.capacity() <= KEPT
        {
            results.signals = come;
        }
        // The caller may never poll again, and the lane sends answers when it is polled. It sends
        // those to atomics behind the last answer.
        if poll && state.asleep == Asleep::ForATime {
            state.asleep = Asleep::No;
            self.wake.wake();
        }
        if out.is_empty() {
            state.out = out;
            self.wake_after_post(state);
        } else {
            self.send_and_wake(state, out);
        }
    }
}
