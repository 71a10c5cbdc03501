//! The loop of a thread that holds the role of requests: it handles responses first, then requests.

use super::wake::Notified;
use super::{Dispatcher, Entry, HandlerMode, Requests, Serving};
use crate::engine::completion::Callbacks;
use crate::engine::messages::message::Message;
use crate::engine::role::Held;
use crate::transport::frame::{Arrived, IDS};
use crate::transport::memory::message_receiver::{Consumer, MessageReceiver};
use crate::transport::waiters::Waiters;
use crate::util::counters::Count;
use crate::util::status::Status;
use std::cell::Cell;
use std::ffi::c_void;
use std::sync::atomic::Ordering;

/// After so many messages in a row, more are likely. The receiver then pauses LINGER times before
/// it looks again: each look at a slot that a sender is writing takes the cache line away from the
/// sender.
const MANY: usize = 4;
/// Pauses (spin-loop hints), see MANY.
const LINGER: usize = 64;

impl Dispatcher {
    /// Handles up to `most` messages until `done`, and gives the role up; returns the number of
    /// messages. The caller calls notify_sleepers().
    #[inline(always)]
    pub(super) fn serve<'a>(
        &'a self,
        mut requests: Held<'a, Requests, false>,
        most: usize,
        done: &impl Fn() -> bool,
    ) -> usize {
        self.post.send_parked();
        if !requests.is_ready() {
            requests.has_come_anywhere();
        }
        if self.mode == HandlerMode::Parallel {
            return self.serve_outside(requests, most, done);
        }
        let _serving = Serving::begin(&requests);
        let waiters = self.post.routes.waiters();
        let (mut count, mut lingered) = (0, 0);
        while count < most {
            if count > 0 && (done() || self.registering.load(Ordering::Relaxed) != 0) {
                return count;
            }
            if requests.response_is_next() {
                self.serve_response(&mut requests);
            } else if self.post.parked.has_room()
                && let ran = self.run(&mut requests, most - count, done)
                && ran > 0
            {
                count += ran;
                if count - lingered < MANY && !requests.is_ready() {
                    // A message by itself, most likely. Its sender may wait for the answer, which
                    // the caller sends after this returns.
                    return count;
                }
                continue;
            } else if self.post.parked.has_room()
                && let Some(request) = requests.message_receiver.peek()
            {
                let entry = requests.entry(&request);
                self.handle(entry, request);
                requests.message_receiver.done();
            } else if requests.responses.has_come() {
                self.serve_response(&mut requests);
            } else if count - lingered >= MANY {
                lingered = count;
                (0..LINGER).for_each(|_| std::hint::spin_loop());
                continue;
            } else {
                return count;
            }
            if waiters.any() {
                self.notify_in_time(&mut requests.notified);
            }
            count += 1;
        }
        most
    }

    /// Handles requests of kind MEDIUM one after the other, as long as MessageReceiver::run() finds
    /// them and nothing else is due; returns their number.
    #[inline(always)]
    fn run(
        &self,
        requests: &mut Held<'_, Requests, false>,
        most: usize,
        done: &impl Fn() -> bool,
    ) -> usize {
        let Requests { message_receiver, responses, table, notified } = &mut **requests;
        let mut run = Run {
            dispatcher: self,
            table,
            responses,
            notified,
            callbacks: Callbacks::of_thread(),
            waiters: self.post.routes.waiters(),
            handled: &self.post.counts.handled,
            message: Message::new(&self.post, &Arrived::NONE),
            done,
        };
        message_receiver.run(most, &mut run)
    }

    /// Handles the next response, under the role.
    #[inline(never)]
    fn serve_response(&self, requests: &mut Held<'_, Requests, false>) {
        if let Some(response) = requests.responses.peek() {
            let entry = requests.entry(&response);
            self.handle(entry, response);
            requests.responses.done();
        }
    }

    /// Like serve(), but gives the role up while a handler runs.
    #[inline(never)]
    fn serve_outside<'a>(
        &'a self,
        mut requests: Held<'a, Requests, false>,
        most: usize,
        done: &impl Fn() -> bool,
    ) -> usize {
        for count in 0..most {
            if count > 0 && (done() || self.registering.load(Ordering::Relaxed) != 0) {
                return count;
            }
            let response = requests.response_is_next() || !self.post.parked.has_room();
            let next = match response {
                true => requests.responses.peek(),
                false => requests.message_receiver.peek().or_else(|| requests.responses.peek()),
            };
            let Some(arrived) = next else { return count };
            self.handle_outside(requests, arrived);
            match self.requests.take_unfenced() {
                Some(again) => requests = again,
                None => return count + 1,
            }
        }
        most
    }
}

/// Calls the handlers of requests that follow each other, all with one Message object.
struct Run<'a, D> {
    dispatcher: &'a Dispatcher,
    table: &'a [Cell<Entry>; IDS],
    responses: &'a MessageReceiver,
    notified: &'a mut Notified,
    callbacks: Callbacks<'a>,
    waiters: &'a Waiters,
    handled: &'a Count,
    message: Message,
    done: D,
}

impl<D: Fn() -> bool> Consumer for Run<'_, D> {
    #[inline(always)]
    unsafe fn consume(&mut self, arrived: Arrived) -> bool {
        let Entry { handler, data, .. } = self.table[usize::from(arrived.id()) % IDS].get();
        let (Some(handler), true) = (handler, arrived.source() < self.dispatcher.size) else {
            return false;
        };
        self.message.renew(arrived);
        let to = &raw mut self.message;
        // SAFETY: as in Dispatcher::handle().
        self.callbacks.enter(handler as *const c_void, || unsafe { handler(to, data) });
        // As in Dispatcher::count_handled(): parallel handlers never come here, so only this thread
        // counts.
        self.handled.up_alone(1);
        self.message.close(Status::OK);
        if self.waiters.any() {
            self.dispatcher.notify_in_time(self.notified);
        }
        true
    }

    #[inline(always)]
    fn goes_on(&mut self) -> bool {
        // Its handler may have parked a response.
        self.dispatcher.post.parked.has_room()
            && !self.responses.is_ready()
            && self.dispatcher.registering.load(Ordering::Relaxed) == 0
            && !(self.done)()
    }
}
