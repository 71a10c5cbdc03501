//! How threads set, replace and remove handlers while messages arrive.

use super::handle::RUNNING;
use super::{Dispatcher, Entry, Requests};
use crate::engine::completion::{in_callback, serving};
use crate::engine::messages::Handler;
use crate::fail;
use crate::transport::frame::IDS;
use crate::util::backoff::Backoff;
use crate::util::status::{Error, Result, Status};
use std::ffi::c_void;
use std::sync::atomic::Ordering;
use std::time::Duration;

impl Dispatcher {
    /// Sets or removes a handler. When this returns, no call of the old handler is under way,
    /// except the call from inside which this is called.
    pub fn register(&self, id: u32, handler: Option<Handler>, data: *mut c_void) -> Result<()> {
        if id as usize >= IDS {
            fail!(ERR_INVALID, "id is {id}, expected a number below {IDS}");
        }
        if in_callback() {
            // SAFETY: a function further up this thread's stack holds the role of serving().
            let held = unsafe { serving().cast::<Requests>().as_ref() };
            return self.register_inside(held, id, handler, data);
        }
        let mut backoff = Backoff::new(Duration::from_micros(50));
        let mut pause = || {
            if !backoff.pause() {
                std::thread::sleep(Duration::from_micros(100));
            }
        };
        let old = loop {
            if let Some(old) = self.replace_outside(id, handler, data, &mut pause) {
                break old;
            }
            pause();
        };
        // Acquire: pairs with the Release in handle_outside().
        while self.calls[id as usize][old as usize % 2].load(Ordering::Acquire) != 0 {
            pause();
        }
        Ok(())
    }

    /// Replaces a handler and returns the old version. None: calls of the version before the
    /// present one are under way. The next version shares the counter of that version (both are
    /// even or both odd). A thread that waits for the old calls would then wait for the new ones,
    /// too, and with messages that keep coming it would never return.
    fn replace_outside(
        &self,
        id: u32,
        handler: Option<Handler>,
        data: *mut c_void,
        pause: &mut impl FnMut(),
    ) -> Option<u32> {
        self.registering.fetch_add(1, Ordering::Relaxed);
        let requests = loop {
            match self.requests.take_unfenced() {
                Some(requests) => break requests,
                None => pause(),
            }
        };
        let next = requests.versions[id as usize].get().wrapping_add(1);
        let free = self.calls[id as usize][next as usize % 2].load(Ordering::Acquire) == 0;
        let old = free.then(|| self.replace(&requests, id, handler, data));
        self.registering.fetch_sub(1, Ordering::Relaxed);
        old
    }

    /// register() inside a callback or a handler. It must not wait, so it returns RETRY_BUSY
    /// instead. `held`: the requests whose role the calling thread holds.
    fn register_inside(
        &self,
        held: Option<&Requests>,
        id: u32,
        handler: Option<Handler>,
        data: *mut c_void,
    ) -> Result<()> {
        let busy = || Err(Error::bare(Status::RETRY_BUSY));
        if let Some(requests) = held
            && std::ptr::eq(requests, self.requests.address())
        {
            self.replace(requests, id, handler, data);
            return Ok(());
        }
        let Some(requests) = self.requests.take_unfenced() else { return busy() };
        let calls = self.calls[id as usize].iter();
        let running = RUNNING.with(|running| running.get());
        let own = std::ptr::eq(running.0, self) && running.1 == id as usize;
        if calls.map(|calls| calls.load(Ordering::Acquire)).sum::<u32>() > u32::from(own) {
            return busy();
        }
        self.replace(&requests, id, handler, data);
        Ok(())
    }

    /// Replaces a handler; returns the old version.
    fn replace(
        &self,
        requests: &Requests,
        id: u32,
        handler: Option<Handler>,
        data: *mut c_void,
    ) -> u32 {
        requests.table[id as usize].set(Entry { handler, data });
        let replacements = &requests.versions[id as usize];
        let version = replacements.replace(replacements.get().wrapping_add(1));
        if !self.has_handlers.swap(true, Ordering::Relaxed) {
            // With polled handlers, the threads that sleep must look for messages from now on.
            self.post.routes.waiters().touched_anything();
        }
        self.post.routes.fabric().own_words().set_handler(id, handler.is_some());
        version
    }
}
