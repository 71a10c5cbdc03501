//! The links to the peers that were contacted, and how receivers of messages ring other ranks.

use super::Link;
use super::late_rings::LateRings;
use crate::bootstrap::Bootstrap;
use crate::transport::memory::control::Control;
use crate::transport::memory::message_receiver::Peers;
use crate::transport::memory::segment::Segment;
use crate::util::once::Once;
use crate::util::sync::{AtomicBool, Ordering};
use std::sync::Arc;

/// The links of one rank.
pub(super) struct Links {
    own: Arc<Segment>,
    bootstrap: Arc<Bootstrap>,
    pub(super) peers: Box<[Once<Box<Link>>]>,
    dead: Arc<[AtomicBool]>,
    late_rings: LateRings,
}

impl Links {
    /// No rank was contacted yet.
    pub(super) fn new(
        own: Arc<Segment>,
        bootstrap: Arc<Bootstrap>,
        dead: Arc<[AtomicBool]>,
    ) -> Links {
        let peers = (0..bootstrap.size()).map(|_| Once::new()).collect();
        let late_rings = LateRings::new(bootstrap.size());
        Links { own, bootstrap, peers, dead, late_rings }
    }

    pub(super) fn get(&self, rank: u32) -> Option<&Link> {
        self.peers.get(rank as usize)?.get().map(|link| &**link)
    }
}

impl Links {
    /// The control area of a rank, if it was contacted.
    fn control(&self, rank: u32) -> Option<&Control> {
        match rank == self.bootstrap.rank() {
            true => Some(self.own.control()),
            false => self.get(rank).map(|link| &link.control),
        }
    }

    /// Begins the contact with a rank that sends to this one, and rings it when the contact is
    /// made.
    #[cold]
    fn ring_later(&self, rank: u32) {
        // A faulty process may have asked for a rank that does not exist.
        let Some(dead) = self.dead.get(rank as usize) else { return };
        match self.late_rings.note(rank, || self.control(rank)) {
            Some(control) => control.bell().ring(),
            None if dead.load(Ordering::Relaxed) => {}
            None => self.bootstrap.ask_card(rank),
        }
    }

    /// The link to a rank has been made.
    pub(super) fn contacted(&self, rank: u32, link: &Link) {
        if self.late_rings.is_due(rank) {
            link.control.bell().ring();
        }
    }
}

impl Peers for Links {
    fn ring_handlers(&self, rank: u32) {
        if let Some(control) = self.control(rank) {
            control.message_head().requests.bell().ring();
        }
    }

    fn ring_progress(&self, rank: u32) {
        match self.control(rank) {
            Some(control) => control.bell().ring(),
            None => self.ring_later(rank),
        }
    }
}
