//! How one message is handled.

use super::{Dispatcher, Entry, HandlerMode, Requests, Running, Serving};
use crate::engine::completion::{enter, enter_response};
use crate::engine::messages::message::Message;
use crate::engine::role::Held;
use crate::transport::frame::{Arrived, IDS};
use crate::util::reserve::boxed;
use crate::util::status::Status;
use std::ffi::c_void;
use std::sync::atomic::Ordering;

impl Dispatcher {
    /// Handles a message without the role: its bytes move out of its slot first.
    pub(super) fn handle_outside(
        &self,
        mut requests: Held<'_, Requests, false>,
        arrived: &Arrived,
    ) {
        let entry = requests.entry(arrived);
        let (header_size, payload_size) = (arrived.header.1, arrived.payload.1);
        let words = header_size.div_ceil(8) + payload_size.div_ceil(8);
        let Ok(mut bytes) = boxed("words of a message", (0..words).map(|_| 0_u64)) else {
            // Under the role nothing need be moved.
            let _serving = Serving::begin(&requests);
            self.handle(&entry, arrived);
            requests.done(arrived.response);
            return self.post.routes.waiters().touched_anything();
        };
        let id = usize::from(arrived.id) % IDS;
        let call = &self.calls[id][entry.version as usize % 2];
        call.fetch_add(1, Ordering::Relaxed);
        let _running = Running::begin(self, id);
        let base: *mut u8 = bytes.as_mut_ptr().cast();
        let payload = base.wrapping_add(header_size.next_multiple_of(8));
        // SAFETY: the slot is ours until done(), and there is place for both.
        unsafe {
            std::ptr::copy_nonoverlapping(arrived.header.0, base, header_size);
            std::ptr::copy_nonoverlapping(arrived.payload.0, payload, payload_size);
        }
        requests.done(arrived.response);
        drop(requests);
        let payload = if arrived.payload.0.is_null() { std::ptr::null() } else { payload };
        let (header, payload) = ((base.cast_const(), header_size), (payload, payload_size));
        self.handle(&entry, &Arrived { header, payload, ..*arrived });
        self.post.routes.waiters().touched_anything();
        // Release: pairs with the Acquire in register().
        call.fetch_sub(1, Ordering::Release);
    }

    /// The response to this rank's request `tag` has been handled here, or could not be: the
    /// request has ended.
    #[inline]
    fn responded(&self, tag: u64, status: Status) {
        if tag == 0 {
            return;
        }
        match self.offload {
            // The progress thread tells the user. The place for a reply, set aside for the request,
            // is free still.
            true => self.post.reply(self.post.routes.own().peer, tag, status, &[]),
            false => self.post.responded(tag, status),
        }
    }

    #[inline(always)]
    pub(super) fn handle(&self, entry: &Entry, arrived: &Arrived) {
        let counts = &self.post.counts;
        if arrived.source >= self.post.routes.size() {
            return counts.unknown.up();
        }
        // Used where it is made: a message that is moved costs as much as its handler.
        let status = match (&mut Message::new(&self.post, arrived), entry.handler) {
            (Ok(message), Some(handler)) => {
                // SAFETY: the user gave a function of this type for just this; the message lives
                // until it returns.
                let call = || unsafe { handler(&raw mut *message, entry.data) };
                match arrived.response {
                    false => enter(handler as *const c_void, call),
                    true => enter_response(handler as *const c_void, call),
                }
                // Behind the handler: wait_handled() says that what is counted has run.
                match self.mode {
                    HandlerMode::Parallel => counts.handled.up(),
                    HandlerMode::Serial | HandlerMode::Polled => counts.handled.up_alone(1),
                }
                if arrived.response {
                    return self.responded(arrived.tag, Status::OK);
                }
                return message.close(Status::OK);
            }
            (Ok(_), None) => Status::ERR_NO_HANDLER,
            (Err(error), _) => error.status,
        };
        counts.unknown.up();
        if arrived.response {
            self.responded(arrived.tag, status);
        } else if arrived.tag != 0 {
            self.post.reply(arrived.source, arrived.tag, status, &[]);
        }
    }
}
