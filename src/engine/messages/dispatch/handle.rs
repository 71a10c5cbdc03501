//! How the dispatcher handles one message.

use super::{Dispatcher, Entry, HandlerMode, Requests, Serving};
use crate::engine::completion::{Callbacks, enter, enter_response};
use crate::engine::messages::MEDIUM;
use crate::engine::messages::message::Message;
use crate::engine::role::Held;
use crate::transport::frame::{Arrived, IDS};
use crate::util::reserve::boxed;
use crate::util::status::Status;
use std::cell::Cell;
use std::ffi::c_void;
use std::sync::atomic::Ordering;

thread_local! {
    /// The dispatcher and the number of the handler that this thread runs without the role.
    pub(super) static RUNNING: Cell<(*const Dispatcher, usize)> = const { Cell::new((std::ptr::null(), 0)) };
}

/// A guard: while it lives, RUNNING names a handler.
struct Running;

impl Running {
    fn begin(dispatcher: &Dispatcher, id: usize) -> Running {
        RUNNING.with(|running| running.set((dispatcher, id)));
        Running
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        RUNNING.with(|running| running.set((std::ptr::null(), 0)));
    }
}

impl Dispatcher {
    /// Handles a message without the role: copies its bytes, frees its slot, gives the role up, and
    /// then runs the handler.
    pub(super) fn handle_outside(&self, mut requests: Held<'_, Requests, false>, arrived: Arrived) {
        let entry = requests.entry(&arrived);
        let ((header, header_size), (payload, payload_size)) =
            (arrived.header(), arrived.payload());
        let words = header_size.div_ceil(8) + payload_size.div_ceil(8);
        let Ok(mut bytes) = boxed("words of a message", (0..words).map(|_| 0_u64)) else {
            // No memory for the copy: handles the message in its slot, under the role.
            let _serving = Serving::begin(Callbacks::of_thread(), &requests);
            self.handle(entry, arrived);
            requests.done(arrived.response);
            return self.post.routes.waiters().touched_anything();
        };
        let id = usize::from(arrived.id()) % IDS;
        let call = &self.calls[id][requests.versions[id].get() as usize % 2];
        call.fetch_add(1, Ordering::Relaxed);
        let _running = Running::begin(self, id);
        let base: *mut u8 = bytes.as_mut_ptr().cast();
        let to = base.wrapping_add(header_size.next_multiple_of(8));
        // SAFETY: the slot is valid until done(), and the copy has room for both.
        unsafe {
            std::ptr::copy_nonoverlapping(header, base, header_size);
            std::ptr::copy_nonoverlapping(payload, to, payload_size);
        }
        requests.done(arrived.response);
        drop(requests);
        let payload = if payload.is_null() { payload } else { to.cast_const() };
        self.handle(entry, Arrived { header: base, payload, ..arrived });
        self.post.routes.waiters().touched_anything();
        // Release: pairs with the Acquire in register().
        call.fetch_sub(1, Ordering::Release);
    }

    /// Ends this rank's request `tag` after its response was handled, or was refused.
    #[inline]
    pub(super) fn responded(&self, tag: u64, status: Status) {
        if tag == 0 {
            return;
        }
        match self.offload {
            // The progress thread must fire the completion, so this rank sends a reply to itself.
            // The request's slot for a reply is still free.
            true => self.post.reply(self.post.routes.own().peer, tag, status, &[]),
            false => self.post.responded(tag, status),
        }
    }

    /// Runs the handler of a message.
    #[inline(never)]
    pub(super) fn handle(&self, entry: Entry, arrived: Arrived) {
        let message = match u32::from(arrived.kind()) {
            MEDIUM => Ok(Message::new(&self.post, &arrived)),
            _ => Message::with_body(&self.post, &arrived),
        };
        match (entry.handler, message) {
            (Some(handler), Ok(mut message)) if arrived.source() < self.size => {
                let to = &raw mut message;
                // SAFETY: the user registered a function of this type; the message lives until it
                // returns.
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

    /// To be called after the handler: wait_handled() promises that counted handlers have run.
    #[inline(always)]
    fn count_handled(&self) {
        match self.mode {
            HandlerMode::Parallel => self.post.counts.handled.up(),
            HandlerMode::Serial | HandlerMode::Polled => self.post.counts.handled.up_alone(1),
        }
    }

    /// Ends a message that no handler has handled: replies with `status`.
    #[cold]
    fn refuse(&self, arrived: Arrived, status: Status) {
        self.post.counts.unknown.up();
        if arrived.source() >= self.size {
            // No rank of the world has sent this.
            return;
        }
        if arrived.response {
            self.responded(arrived.tag(), status);
        } else if arrived.tag() != 0 {
            self.post.reply(arrived.source(), arrived.tag(), status, &[]);
        }
    }
}
