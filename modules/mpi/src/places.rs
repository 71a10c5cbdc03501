//! Places that operations and commands for all peers share. A peer that has stopped keeps its
//! places, so one peer gets at most half of the places that the others leave, and one at least.

use std::collections::BTreeMap;

/// Most places of one peer, of `most` in all, while the other peers have `others`.
pub(crate) fn share_of(most: usize, others: usize) -> usize {
    (most.saturating_sub(others) / 2).max(1)
}

/// How many places are in use, by peer.
#[derive(Default)]
pub(crate) struct Places {
    used: usize,
    /// The peer that took or freed a place last, and how many it has: most operations in a row are
    /// for one peer.
    last: (u32, usize),
    /// The other peers that have places.
    others: BTreeMap<u32, usize>,
}

impl Places {
    /// Of all peers.
    pub(crate) fn used(&self) -> usize {
        self.used
    }

    /// Whether a peer may take a place, of `most` in all.
    #[inline(always)]
    pub(crate) fn has_room(&mut self, peer: u32, most: usize) -> bool {
        let own = *self.of(peer);
        own < share_of(most, self.used - own)
    }

    #[inline(always)]
    pub(crate) fn take(&mut self, peer: u32) {
        *self.of(peer) += 1;
        self.used += 1;
    }

    #[inline(always)]
    pub(crate) fn free(&mut self, peer: u32) {
        *self.of(peer) -= 1;
        self.used -= 1;
    }

    #[inline(always)]
    fn of(&mut self, peer: u32) -> &mut usize {
        if self.last.0 != peer {
            self.change_last(peer);
        }
        &mut self.last.1
    }

    #[inline(never)]
    fn change_last(&mut self, peer: u32) {
        let own = self.others.remove(&peer).unwrap_or_default();
        let (last, places) = std::mem::replace(&mut self.last, (peer, own));
        if places > 0 {
            self.others.insert(last, places);
        }
    }
}
