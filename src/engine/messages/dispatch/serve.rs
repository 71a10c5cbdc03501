//! The loop of a thread that holds the role of requests: responses first, then requests.

use super::{Dispatcher, HandlerMode, Requests, Serving};
use crate::engine::role::Held;
use std::sync::atomic::Ordering;

/// Where so many messages came at once, more will, and the receiver that has caught up with them
/// waits for so many pauses before it looks again: a receiver that polls the very slot that is
/// being written takes its line away from the sender each time.
const MANY: usize = 4;
/// See MANY.
const LINGER: usize = 64;

impl Dispatcher {
    /// Handles up to `most` messages until `done`, and gives the role up; returns how many there
    /// were. notify_sleepers() is left to the caller.
    #[inline(always)]
    pub(super) fn serve<'a>(
        &'a self,
        mut requests: Held<'a, Requests, false>,
        most: usize,
        done: &impl Fn() -> bool,
    ) -> usize {
        self.post.send_parked();
        if !(requests.message_receiver.is_ready() || requests.responses.is_ready()) {
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

    /// Handles the response that has come, under the role.
    #[inline(never)]
    fn serve_response(&self, requests: &mut Held<'_, Requests, false>) {
        if let Some(response) = requests.responses.peek() {
            let entry = requests.entry(&response);
            self.handle_other(entry, response);
            requests.responses.done();
        }
    }

    /// As serve(), with the role given up while a handler runs.
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
