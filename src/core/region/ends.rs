//! The end of all regions of a context.

use super::{Live, Regions};
use crate::transport::address::Key;
use crate::transport::memory::segment::Place;
use std::ops::Range;
use std::time::Instant;

impl Regions {
    /// Ends the registrations of all regions, at the end of the context, before the wire is closed.
    /// Waits until `limit` for the transfers that the network has begun. Where it may still use
    /// allocated memory afterwards, that memory stays mapped to the end of the process. Returns the
    /// registered memory that it may still use: that is the program's.
    pub(in crate::core) fn deregister_all(&self, limit: Instant) -> Vec<Range<usize>> {
        let (rank, fabric) = (self.routes.own().peer, self.routes.fabric());
        let lives: Vec<(Key, Live)> = (self.table().entries.iter().enumerate())
            .filter_map(|(index, (life, live))| Some((Key::new(index, rank, *life), (*live)?)))
            .collect();
        let mut used = Vec::new();
        for (key, Live { place, address, size }) in lives {
            let patience = limit.saturating_duration_since(Instant::now());
            match (fabric.deregister(key.0, patience), place) {
                (Ok(()), _) => {}
                (Err(_), Place::Own(_)) => used.push(address..address + size),
                (Err(_), _) => std::mem::forget((
                    self.routes.own().forget(key.index()),
                    self.take_aliases(key),
                )),
            }
        }
        used
    }
}
