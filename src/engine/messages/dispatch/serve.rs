//! The loop of a thread that holds the role of requests: it handles responses first, then requests.

use super::wake::Notified;
use super::{Dispatcher, Entry, HandlerMode, Requests, Serving};
use crate::engine::completion::Callbacks;
use crate::engine::messages::message::Message;
use crate::engine::role::Held;
use crate::transport::frame::{Arrived, IDS};
use crate::transport::memory::message_receiver::Consumer;
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
        callbacks: Callbacks<'_>,
        mut requests: Held<'a, Requests, false>,
        most: usize,
        done: &impl Fn() -> bool,
    ) -> usize {
        let one = self.serve_one(callbacks, &mut requests);
        match one && !requests.is_ready() {
            true => 1,
            false => self.serve_further(callbacks, requests, usize::from(one), most, done),
        }
    }

    /// Handles the next message, if it is a usual one and nothing else is due. A message by itself,
    /// as in a ping-pong, then takes few steps. False: serve_further() does what is due.
    #[inline(always)]
    pub(super) fn serve_one(
        &self,
        callbacks: Callbacks<'_>,
        requests: &mut Held<'_, Requests, false>,
    ) -> bool {
        if self.mode == HandlerMode::Parallel || self.post.parked.any() {
            return false;
        }
        let _serving = Serving::begin(callbacks, requests);
        let Requests { message_receiver, responses, table, notified, .. } = &mut **requests;
        let ends = |_: &Dispatcher| true;
        match responses.is_ready() {
            true => {
                let message = &mut Message::empty(&self.post, true);
                responses.run_one(&mut Run::<_, true>::new(
                    self, callbacks, table, notified, message, ends,
                ))
            }
            false => {
                let message = &mut Message::empty(&self.post, false);
                message_receiver.run_one(&mut Run::<_, false>::new(
                    self, callbacks, table, notified, message, ends,
                ))
            }
        }
    }

    /// The rest of serve(), after `count` messages.
    #[inline(never)]
    pub(super) fn serve_further<'a>(
        &'a self,
        callbacks: Callbacks<'_>,
        mut requests: Held<'a, Requests, false>,
        mut count: usize,
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
        let _serving = Serving::begin(callbacks, &requests);
        let waiters = self.post.routes.waiters();
        let mut lingered = 0;
        while count < most {
            if count > 0 && (done() || self.registering.load(Ordering::Relaxed) != 0) {
                return count;
            }
            let responses = requests.response_is_next();
            let ran = match responses {
                true => self.run_responses(callbacks, &mut requests, most - count, done),
                false if self.post.parked.has_room() => {
                    self.run(callbacks, &mut requests, most - count, done)
                }
                false => 0,
            };
            if ran > 0 {
                count += ran;
                if count - lingered < MANY && !requests.is_ready() {
                    // A message by itself, most likely. Its sender may wait for the answer, which
                    // the caller sends after this returns.
                    return count;
                }
                continue;
            }
            if responses {
                self.serve_response(&mut requests);
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
    /// them, no response has come, and the responses to them could be parked; returns their number.
    #[inline(always)]
    fn run(
        &self,
        callbacks: Callbacks<'_>,
        requests: &mut Held<'_, Requests, false>,
        most: usize,
        done: &impl Fn() -> bool,
    ) -> usize {
        let Requests { message_receiver, responses, table, notified, .. } = &mut **requests;
        // The dispatcher is an argument, so that a message loads it once.
        let ends = |it: &Dispatcher| !it.post.parked.has_room() || responses.is_ready() || done();
        let message = &mut Message::empty(&self.post, false);
        message_receiver
            .run(most, &mut Run::<_, false>::new(self, callbacks, table, notified, message, ends))
    }

    /// Like run(), for responses, which come before requests.
    #[inline(never)]
    fn run_responses(
        &self,
        callbacks: Callbacks<'_>,
        requests: &mut Held<'_, Requests, false>,
        most: usize,
        done: &impl Fn() -> bool,
    ) -> usize {
        let Requests { responses, table, notified, .. } = &mut **requests;
        let ends = |_: &Dispatcher| done();
        let message = &mut Message::empty(&self.post, true);
        responses
            .run(most, &mut Run::<_, true>::new(self, callbacks, table, notified, message, ends))
    }

    /// Handles the next response, under the role, whatever its kind.
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

/// Calls the handlers of requests, or of responses, that follow each other, all with one Message
/// object.
struct Run<'a, E, const RESPONSES: bool> {
    dispatcher: &'a Dispatcher,
    table: &'a [Cell<Entry>; IDS],
    notified: &'a mut Notified,
    callbacks: Callbacks<'a>,
    waiters: &'a Waiters,
    handled: &'a Count,
    /// Not a part of this object: a handler gets its address, so the compiler would load all other
    /// fields anew after each message.
    message: &'a mut Message,
    /// Whether something else is due.
    ends: E,
}

impl<'a, E: Fn(&Dispatcher) -> bool, const RESPONSES: bool> Run<'a, E, RESPONSES> {
    #[inline(always)]
    fn new(
        dispatcher: &'a Dispatcher,
        callbacks: Callbacks<'a>,
        table: &'a [Cell<Entry>; IDS],
        notified: &'a mut Notified,
        message: &'a mut Message,
        ends: E,
    ) -> Self {
        let post = &dispatcher.post;
        let (waiters, handled) = (post.routes.waiters(), &post.counts.handled);
        Run { dispatcher, table, notified, callbacks, waiters, handled, message, ends }
    }
}

impl<E: Fn(&Dispatcher) -> bool, const RESPONSES: bool> Consumer for Run<'_, E, RESPONSES> {
    const RESPONSES: bool = RESPONSES;

    #[inline(always)]
    unsafe fn consume(&mut self, arrived: Arrived) -> bool {
        let Entry { handler, data, .. } = self.table[usize::from(arrived.id()) % IDS].get();
        let (Some(handler), true) = (handler, arrived.source() < self.dispatcher.size) else {
            return false;
        };
        self.message.renew(arrived);
        let to = &raw mut *self.message;
        let name = handler as *const c_void;
        // SAFETY: as in Dispatcher::handle().
        let call = || unsafe { handler(to, data) };
        match RESPONSES {
            true => self.callbacks.enter_response(name, call),
            false => self.callbacks.enter(name, call),
        }
        // As in Dispatcher::count_handled(): parallel handlers never come here, so only this thread
        // counts.
        self.handled.up_alone(1);
        match RESPONSES {
            true => self.dispatcher.responded(arrived.tag(), Status::OK),
            false => self.message.close(Status::OK),
        }
        if self.waiters.any() {
            self.dispatcher.notify_in_time(self.notified);
        }
        true
    }

    #[inline(always)]
    fn goes_on(&mut self) -> bool {
        // Its handler may have parked a response.
        let dispatcher = self.dispatcher;
        dispatcher.registering.load(Ordering::Relaxed) == 0 && !(self.ends)(dispatcher)
    }
}
