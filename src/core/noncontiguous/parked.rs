//! Requests for many pieces that are parked.

use super::{Many, Shape, Signal, Span, Strided};
use crate::core::poster::{Later, Poster};
use crate::core::submit::FLAG_DONE;
use crate::engine::command::Op;
use crate::engine::completion::Completion;
use crate::util::status::Result;

/// A request that is parked, with its lists.
pub(super) struct Parked {
    op: Op,
    peer: u32,
    flags: u32,
    shape: KeptShape,
    signal: Option<Signal>,
    on_complete: Completion,
}

enum KeptShape {
    Strided(Box<Strided>),
    Lists(Vec<Span>, Vec<Span>),
}

// SAFETY: the pointers lead to memory of the user, which any thread may use until the completion.
unsafe impl Send for Parked {}
// SAFETY: as above; nothing in it changes.
unsafe impl Sync for Parked {}

impl Parked {
    pub(super) fn of(many: &Many) -> Parked {
        let Many { op, peer, flags, signal, on_complete, .. } = *many;
        let shape = match &many.shape {
            Shape::Strided(strided) => KeptShape::Strided(Box::new(strided.clone())),
            Shape::Lists(ours, theirs) => KeptShape::Lists(ours.to_vec(), theirs.to_vec()),
        };
        // The answer to its caller is that its completion fires, so FLAG_DONE has no effect any
        // more.
        Parked { op, peer, flags: flags & !FLAG_DONE, shape, signal, on_complete }
    }
}

impl Later for Parked {
    fn peer(&self) -> u32 {
        self.peer
    }

    fn post(&self, poster: &Poster) -> Result<()> {
        let Parked { op, peer, flags, signal, on_complete, .. } = *self;
        let shape = match &self.shape {
            KeptShape::Strided(strided) => Shape::Strided((**strided).clone()),
            KeptShape::Lists(ours, theirs) => Shape::Lists(ours, theirs),
        };
        poster.submit_many(&Many { op, peer, flags, shape, signal, on_complete }).map(drop)
    }

    fn completions(&self) -> [Completion; 2] {
        [Completion::NOTHING, self.on_complete]
    }
}
