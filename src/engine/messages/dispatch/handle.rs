//! How one message is handled.

use super::{Dispatcher, Entry, HandlerMode, Requests, Running, Serving};
use crate::engine::completion::{enter, enter_response};
use crate::engine::messages::MEDIUM;
use crate::engine::messages::message::Message;
use crate::engine::role::Held;
use crate::transport::frame::{Arrived, IDS};
use crate::util::reserve::boxed;
use crate::util::status::Status;
use std::ffi::c_void;
use std::sync::atomic::Ordering;

impl Dispatcher {
    /// Handles a message without the role: its bytes move out of its slot first.
    pub(super) fn handle_outside(&self, mut requests: Held<'_, Requests, false>, arrived: Arrived) {
        let entry = requests.entry(&arrived);
        let ((header, header_size), (payload, payload_size)) =
            (arrived.header(), arrived.payload());
        let words = header_size.div_ceil(8) + payload_size.div_ceil(8);
        let Ok(mut bytes) = boxed("words of a message", (0..words).map(|_| 0_u64)) else {
            // Under the role nothing need be moved.
            let _serving = Serving::begin(&requests);
            self.handle_other(entry, arrived);
            requests.done(arrived.response);
            return self.post.routes.waiters().touched_anything();
        };
        let id = usize::from(arrived.id()) % IDS;
        let call = &self.calls[id][entry.version as usize % 2];
        call.fetch_add(1, Ordering::Relaxed);
        let _running = Running::begin(self, id);
        let base: *mut u8 = bytes.as_mut_ptr().cast();
        let to = base.wrapping_add(header_size.next_multiple_of(8));
        // SAFETY: the slot is ours until done(), and there is place for both.
        unsafe {
            std::ptr::copy_nonoverlapping(header, base, header_size);
            std::ptr::copy_nonoverlapping(payload, to, payload_size);
        }
        requests.done(arrived.response);
        drop(requests);
        let payload = if payload.is_null() { payload } else { to.cast_const() };
        self.handle_other(entry, Arrived { header: base, payload, ..arrived });
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

    /// Runs the handler of a request. What is not the short way gets copies, so that the short one
    /// need not have them in memory.
    #[inline(always)]
    pub(super) fn handle(&self, entry: Entry, arrived: Arrived) {
        if u32::from(arrived.kind()) != MEDIUM {
            return self.handle_other(entry, arrived);
        }
        match entry.handler {
            Some(handler) if arrived.source() < self.size => {
                let mut message = Message::new(&self.post, &arrived);
                let to = &raw mut message;
                // SAFETY: the user gave a function of this type for just this; the message lives
                // until it returns.
                enter(handler as *const c_void, || unsafe { handler(to, entry.data) });
                self.count_handled();
                message.close(Status::OK);
            }
            _ => self.refuse(arrived, Status::ERR_NO_HANDLER),
        }
    }

    /// Likewise, of any message.
    #[inline(never)]
    pub(super) fn handle_other(&self, entry: Entry, arrived: Arrived) {
        let message = match u32::from(arrived.kind()) {
            MEDIUM => Ok(Message::new(&self.post, &arrived)),
            _ => Message::with_body(&self.post, &arrived),
        };
        match (entry.handler, message) {
            (Some(handler), Ok(mut message)) if arrived.source() < self.size => {
                let to = &raw mut message;
                // SAFETY: as in handle().
                let call = || unsafe { handler(to, entry.data) };
                let name = handler as *const c_void;
                if arrived.response {
                    enter_response(name, call);
                    self.count_handled();
                    return self.responded(arrived.tag(), Status::OK);
                }
                enter(name, call);
                self.count_handled();
                message.close(Status::OK);
            }
            (_, Ok(_)) => self.refuse(arrived, Status::ERR_NO_HANDLER),
            (_, Err(error)) => self.refuse(arrived, error.status),
        }
    }

    /// Behind the handler: wait_handled() says that what is counted has run.
    #[inline(always)]
    fn count_handled(&self) {
        match self.mode {
            HandlerMode::Parallel => self.post.counts.handled.up(),
            HandlerMode::Serial | HandlerMode::Polled => self.post.counts.handled.up_alone(1),
        }
    }

    /// Answers what no handler has taken.
    #[cold]
    fn refuse(&self, arrived: Arrived, status: Status) {
        self.post.counts.unknown.up();
        if arrived.source() >= self.size {
            // Nonsense.
            return;
        }
        if arrived.response {
            self.responded(arrived.tag(), status);
        } else if arrived.tag() != 0 {
            self.post.reply(arrived.source(), arrived.tag(), status, &[]);
        }
    }
}
