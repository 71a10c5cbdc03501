//! The end of the operations with a peer that has died.

use crate::lane::MpiLane;
use crate::remote::LATE;
use crate::requests::Single;
use crate::table::{Event, Status};
use std::collections::VecDeque;
use std::ops::Range;
use std::time::Instant;

impl MpiLane {
    /// Ends the operations with a peer that has died, and cancels the receives of its bytes.
    /// end_fences() answers the fence. A second fence of the peer does nothing.
    pub fn fence(&mut self, peer: u32) {
        self.drop_waiting(peer);
        if self.defer_fence(peer) || !self.remote.dead.insert(peer) {
            return;
        }
        self.remote.open.remove(&peer);
        self.unsent.forget(peer);
        for number in self.remote.numbers(peer) {
            match self.remote.get(number) {
                // MPI still uses the bytes. The peer may have answered already.
                Some(it) if it.transfers => it.status = Some(Status::ERR_PEER_DEAD),
                _ => self.end(number, Status::ERR_PEER_DEAD),
            }
        }
        let (kept, of_dead) = std::mem::take(&mut self.remote.deferred)
            .into_iter()
            .partition::<VecDeque<_>, _>(|it| it.peer != peer);
        self.remote.deferred = kept;
        of_dead.into_iter().for_each(|it| self.requests.recycle(it.bytes));
        if !self.is_over() {
            let reads = self.remote.numbers(peer);
            self.requests.cancel(|it| match it {
                Single::Read { number, .. } => reads.contains(number),
                Single::Stored { peer: of, .. } => *of == peer,
                _ => false,
            });
        }
        self.remote.fences.push((peer, Instant::now() + LATE));
    }

    /// Answers a fence when all operations with the dead peer have ended, or after `LATE`. The
    /// answer is always UNFENCEABLE, since MPI does not report when no more frames of a dead rank
    /// come. MPI may still read the memory of sends that it has not ended by then. fence() has
    /// cancelled the receives, but MPI cannot cancel one that it has matched. If the peer's process
    /// lives on, and its bytes come later than `LATE`, MPI writes them to the receive's memory, so
    /// deregister() refuses that memory.
    #[inline]
    pub(crate) fn end_fences(&mut self) {
        if !self.remote.fences.is_empty() {
            self.end_due_fences();
        }
    }

    #[cold]
    fn end_due_fences(&mut self) {
        let now = Instant::now();
        let over = self.is_over();
        let due: Vec<u32> = (self.remote.fences.iter())
            .filter(|(peer, until)| over || *until <= now || self.remote.numbers(*peer).is_empty())
            .map(|(peer, _)| *peer)
            .collect();
        for peer in due {
            self.remote.fences.retain(|(of, _)| *of != peer);
            for number in self.remote.numbers(peer) {
                let memory = self.remote.get(number).map_or(0..0, |it| it.memory());
                self.end(number, Status::ERR_PEER_DEAD);
                for single in self.requests.singles() {
                    let (memory, cancelled) = match *single {
                        Single::Read { number: of, cancelled } if of == number => {
                            (memory.clone(), cancelled)
                        }
                        Single::Write(of) if of == number => (0..0, false),
                        _ => continue,
                    };
                    *single = Single::Abandoned { memory, cancelled };
                    self.remote.transfers.free(peer);
                }
            }
            self.abandon_served(peer);
            self.requests.abandon_frames(peer);
            self.requests.events.push_back(Event::about(Event::UNFENCEABLE, peer));
            self.serve_deferred();
        }
    }

    /// Whether MPI may still store the bytes of a large read to this memory. `under_way`: or uses
    /// it for a read or write that has not ended. At the end of a context libllcl waits for none.
    pub(crate) fn may_use(&mut self, memory: &Range<u64>, under_way: bool) -> bool {
        let overlaps = |other: &Range<u64>| other.start < memory.end && memory.start < other.end;
        let MpiLane { requests, remote, .. } = self;
        requests.singles().any(|single| match single {
            Single::Abandoned { memory, .. } => overlaps(memory),
            Single::Read { number, .. } | Single::Write(number) if under_way => {
                remote.get(*number).is_some_and(|it| overlaps(&it.memory()))
            }
            _ => false,
        })
    }

    /// Counts the large operations of a dead peer as ended: the requests of living peers do not
    /// wait for them. Nor does deregister() wait for sends; but MPI may still store the bytes of a
    /// receive that it has matched.
    fn abandon_served(&mut self, dead: u32) {
        for single in self.requests.singles() {
            *single = match *single {
                Single::Served { peer, region } if peer == dead => {
                    self.remote.leave(Some(region));
                    Single::Abandoned { memory: 0..0, cancelled: false }
                }
                Single::Stored { peer, region, cancelled, .. } if peer == dead => {
                    Single::Outlasts { region, cancelled }
                }
                _ => continue,
            };
            self.remote.served.free(dead);
        }
    }
}
