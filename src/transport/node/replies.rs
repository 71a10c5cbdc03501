//! The reply board: where answers to this rank's requests arrive. The asker sets a place aside
//! before it asks (the index of its tag), so an answer never needs room, credit or a retry, and
//! two ranks that are full of each other's requests cannot lock each other.
//!
//! An answer is written to its place; then the place's bit in `ready` is set, then the bit of that
//! word in `summary`. Bit 63 of the summary says that the asker sleeps.

use crate::transport::Reply;
use crate::util::status::Status;
use crate::util::sync::{AtomicU64, Ordering};

#[cfg(all(test, loom))]
mod models;

const WAITING: u64 = 1 << 63;
/// Places per word of `ready`.
pub const GROUP: usize = 64;
/// Words of `ready`; below 63, so that the summary has room for WAITING.
pub const GROUPS: usize = 61;

/// One answer.
#[repr(C)]
#[derive(Debug)]
pub struct Place {
    tag: AtomicU64,
    status: AtomicU64,
    result: AtomicU64,
    reserved: AtomicU64,
}

/// The words by which answers are found. All zero: none has come.
#[repr(C, align(128))]
#[derive(Debug)]
pub struct Board {
    summary: AtomicU64,
    ready: [AtomicU64; GROUPS],
}

/// A view of a board and its places, wherever they lie.
#[derive(Clone, Copy)]
pub struct Replies<'a> {
    /// The words by which answers are found.
    pub board: &'a Board,
    /// One place for each tag.
    pub places: &'a [Place],
}

impl Replies<'_> {
    /// Delivers an answer. True: the asker slept, so the caller must ring its bell.
    pub fn put(&self, reply: Reply) -> bool {
        let index = reply.tag as u32 as usize;
        let Some(place) = self.places.get(index) else {
            return false; // no tag of that asker: nobody waits for this
        };
        place.tag.store(reply.tag, Ordering::Relaxed);
        place.status.store(reply.status.0 as u64, Ordering::Relaxed);
        place.result.store(reply.result, Ordering::Relaxed);
        let (group, bit) = (index / GROUP, index % GROUP);
        // Release: publishes the place; pairs with the Acquire of the swap in take().
        self.board.ready[group].fetch_or(1 << bit, Ordering::Release);
        // AcqRel: publishes the bit above; pairs with take() and arm().
        let before = self.board.summary.fetch_or(1 << group, Ordering::AcqRel);
        // Only one of those who saw the mark clears it, and that one rings.
        before & WAITING != 0
            && self.board.summary.fetch_and(!WAITING, Ordering::AcqRel) & WAITING != 0
    }

    /// Hands every answer that has come to `to`; returns how many. Only the asker calls it.
    pub fn take(&self, mut to: impl FnMut(Reply)) -> usize {
        if self.board.summary.load(Ordering::Relaxed) & !WAITING == 0 {
            return 0;
        }
        // Acquire: pairs with put(); the bits that the summary speaks of are seen below.
        let groups = self.board.summary.fetch_and(WAITING, Ordering::AcqRel) & !WAITING;
        let mut count = 0;
        for group in (0..GROUPS).filter(|group| groups >> group & 1 == 1) {
            // Acquire: pairs with the Release in put(); the places are seen below.
            let mut ready = self.board.ready[group].swap(0, Ordering::AcqRel);
            while ready != 0 {
                let index = group * GROUP + ready.trailing_zeros() as usize;
                ready &= ready - 1;
                let Some(place) = self.places.get(index) else { continue };
                to(Reply {
                    tag: place.tag.load(Ordering::Relaxed),
                    status: Status(place.status.load(Ordering::Relaxed) as i32),
                    result: place.result.load(Ordering::Relaxed),
                });
                count += 1;
            }
        }
        count
    }

    /// Announces that the asker will sleep; false when an answer is there.
    pub fn arm(&self) -> bool {
        let armed =
            self.board.summary.compare_exchange(0, WAITING, Ordering::AcqRel, Ordering::Acquire);
        matches!(armed, Ok(_) | Err(WAITING))
    }

    /// The asker is awake again: nobody needs to ring.
    pub fn disarm(&self) {
        if self.board.summary.load(Ordering::Relaxed) & WAITING != 0 {
            self.board.summary.fetch_and(!WAITING, Ordering::AcqRel);
        }
    }
}
