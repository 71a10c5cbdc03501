//! The end of a fence: the network carries nothing more for a dead rank, or of it.

use super::{Comes, SimulatedLane, lock};
use crate::transport::wire::Event;
use crate::util::status::Status;
use std::collections::BTreeMap;
use std::time::Instant;

impl SimulatedLane {
    /// The next event for a dead rank from which nothing is in the network: first the completion of
    /// each access to it and of each frame that no receive has taken, then the answer to its fence.
    pub(super) fn fenced(&mut self) -> Option<Event> {
        let (arrivals, now) = (lock(&self.card.arrivals), Instant::now());
        let comes = |rank: u32| {
            let of = |comes: &Comes| match comes {
                Comes::Frame { from, .. }
                | Comes::Late { from, .. }
                | Comes::Notice { from, .. } => *from == rank,
                Comes::Done { peer, .. }
                | Comes::Taken { peer, .. }
                | Comes::Answered { peer, .. } => *peer == rank,
                Comes::Due(number) => self.accesses.get(number).is_some_and(|it| it.peer == rank),
                Comes::Leaves(number) => self.leaving.get(number).is_some_and(|it| it.peer == rank),
            };
            arrivals.coming.iter().flat_map(BTreeMap::values).any(of)
        };
        let over = |(rank, until): &(u32, Instant)| now > *until && !comes(*rank);
        let at = self.fences.iter().position(over)?;
        drop(arrivals);
        let rank = self.fences[at].0;
        let left = self.accesses.iter().find(|(_, it)| it.peer == rank).map(|(number, _)| *number);
        if let Some(begun) = left.and_then(|number| self.accesses.remove(&number)) {
            self.under_way -= 1;
            let (tag, status) = (begun.tag, Status::ERR_PEER_DEAD.0);
            return Some(Event { tag, status, ..Event::about(Event::DONE, rank) });
        }
        let left = self.waiting.iter().find(|(_, ((peer, _), _))| *peer == rank);
        if let Some((number, (_, tag))) = left.map(|(number, it)| (*number, *it)) {
            self.waiting.remove(&number);
            let status = Status::ERR_PEER_DEAD.0;
            return Some(Event { tag, status, ..Event::about(Event::DONE, rank) });
        }
        self.fences.remove(at);
        let can_fence = self.nature.can_fence;
        Some(Event::about(if can_fence { Event::FENCED } else { Event::UNFENCEABLE }, rank))
    }
}
