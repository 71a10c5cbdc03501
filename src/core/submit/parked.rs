//! Requests that the poster keeps, and posts when there is room.

use crate::core::poster::{Later, Poster};
use crate::core::submit::{FLAG_DONE, Request};
use crate::engine::by_caller::Local;
use crate::engine::completion::Completion;
use crate::engine::queue_entry::INLINE;
use crate::engine::routes::Routes;
use crate::util::status::Result;

/// A request that is parked, with the bytes that it carries.
pub(super) struct Parked {
    request: Request,
    bytes: [u8; INLINE],
}

// SAFETY: the pointers lead to memory of the user, which any thread may use until the completion.
unsafe impl Send for Parked {}
// SAFETY: as above; nothing in it changes.
unsafe impl Sync for Parked {}

impl Parked {
    /// Err: the local side is wrong.
    pub(super) fn of(routes: &Routes, request: &Request) -> Result<Parked> {
        request.local.check(routes, request.command.size)?;
        let mut parked = Parked { request: *request, bytes: [0; INLINE] };
        // park() tells the caller that the completions fire, so FLAG_DONE must not prevent that
        // later.
        parked.request.flags &= !FLAG_DONE;
        if let (true, Local::Pointer(from)) = (request.carry, request.local) {
            let size = (request.command.size as usize).min(INLINE);
            // SAFETY: the caller's bytes, valid during the call.
            unsafe { std::ptr::copy_nonoverlapping(from, parked.bytes.as_mut_ptr(), size) };
        }
        Ok(parked)
    }
}

impl Later for Parked {
    fn peer(&self) -> u32 {
        self.request.command.peer
    }

    fn post(&self, poster: &Poster) -> Result<()> {
        let mut request = self.request;
        if let (true, Local::Pointer(_)) = (request.carry, request.local) {
            request.local = Local::Pointer(self.bytes.as_ptr().cast_mut());
        }
        poster.submit(&request).map(drop)
    }

    fn completions(&self) -> [Completion; 2] {
        [self.request.command.on_local, self.request.command.on_complete]
    }
}
