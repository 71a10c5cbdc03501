//! Requests for many pieces that are parked.

use super::Many;
use crate::core::poster::{Later, Poster};
use crate::core::submit::FLAG_DONE;
use crate::engine::completion::Completion;
use crate::util::status::Result;

/// A request that is parked, with its lists.
pub(super) struct Parked(Box<Many>);

// SAFETY: the pointers lead to memory of the user, which any thread may use until the completion.
unsafe impl Send for Parked {}
// SAFETY: as above; nothing in it changes.
unsafe impl Sync for Parked {}

impl Parked {
    /// Err: the local side is wrong.
    pub(super) fn of(poster: &Poster, many: &Many) -> Result<Parked> {
        poster.check_local(&many.shape)?;
        // park() tells the caller that the completion fires, so FLAG_DONE must not prevent that
        // later.
        let (flags, shape) = (many.flags & !FLAG_DONE, many.shape.clone());
        Ok(Parked(Box::new(Many { flags, shape, ..*many })))
    }
}

impl Later for Parked {
    fn peer(&self) -> u32 {
        self.0.peer
    }

    fn post(&self, poster: &Poster) -> Result<()> {
        poster.submit_many(&self.0).map(drop)
    }

    fn completions(&self) -> [Completion; 2] {
        [Completion::NOTHING, self.0.on_complete]
    }
}
