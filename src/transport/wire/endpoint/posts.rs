//! Reads, writes and atomics of an endpoint: the holder of the lane's role posts them in batches,
//! the thread that polls tells their ends.

use super::{Asleep, Endpoint, Shared, State};
use crate::transport::remote::{Posting, Stopped};
use crate::transport::wire::ended::{End, Ended};
use crate::transport::wire::remote::{Memory, command};
use crate::transport::wire::{CLASS_RMA, Command, Piece};
use crate::transport::{Receiver, Reply, Sink};
use crate::util::status::Status;
use std::sync::Arc;

/// Called when ends have been told and nobody looks for them, to wake a thread that does.
pub type Ring = Box<dyn Fn() + Send + Sync>;

/// Where the commands of one post are put together; kept for its memory. Empty between posts.
#[derive(Default)]
pub(super) struct Batch {
    pieces: Vec<(Piece, u32)>,
    commands: Vec<Command>,
    /// Posts of which the lane has taken something.
    #[cfg(test)]
    posts: usize,
}

// SAFETY: nothing is in it when the lock is given up.
unsafe impl Send for Batch {}

impl State {
    /// As Endpoint::post(): how many were taken, of how many, and why not the next one.
    ///
    /// # Safety
    /// As of Endpoint::post().
    unsafe fn post(
        &mut self,
        peer: u32,
        wanted: &[Posting],
        memory: &Memory,
    ) -> (usize, usize, Status) {
        let State { lane, posted, batch, .. } = self;
        let Batch { pieces, commands, .. } = batch;
        memory.pieces(wanted, pieces);
        for (posting, piece) in wanted.iter().zip(&*pieces) {
            commands.push(command(posting, posted.insert(posting.tag, peer), piece));
        }
        let tried = commands.len();
        let (count, why) = match tried {
            0 => (0, Status::OK),
            // SAFETY: the pieces live through the call; the bytes as the caller promises.
            _ => unsafe { lane.post(peer, CLASS_RMA, commands) },
        };
        let count = count.min(tried);
        for command in &commands[count..] {
            posted.remove(command.tag);
        }
        commands.clear();
        pieces.clear();
        #[cfg(test)]
        {
            batch.posts += usize::from(count > 0);
        }
        (count, tried, why)
    }

    /// Whether the polling thread must be woken after a post. A thread that polls beside it saves
    /// that.
    pub(super) fn must_wake(&mut self, waiting: bool) -> bool {
        let naps = self.asleep == Asleep::Naps && !self.helped;
        let must = naps || self.asleep == Asleep::Deep && waiting;
        if must {
            self.asleep = Asleep::No;
        }
        must
    }
}

impl Shared {
    /// Tells the ends of what was posted.
    pub(super) fn tell(&self, ends: &[End]) {
        if !ends.is_empty() && self.ended.put(ends) {
            self.ring.get().into_iter().for_each(|ring| ring());
        }
    }
}

impl Endpoint {
    /// Places that the dead were granted and that nobody else may use, since they may still use
    /// them.
    pub fn kept_aside(&self) -> usize {
        self.shared.lock().grants.kept_aside()
    }

    /// How often the lane has taken reads, writes and atomics.
    #[cfg(test)]
    pub fn posts(&self) -> usize {
        self.shared.lock().batch.posts
    }

    /// This rank's memory as the wire knows it.
    pub fn memory(&self) -> &Memory {
        &self.memory
    }

    /// What is to be called when ends have been told; to be given once.
    pub fn set_ring(&self, ring: Ring) {
        // A second one is as good as the first.
        let _ = self.shared.ring.set(Box::new(ring));
    }

    /// Posts operations for one peer, in this order and under one doorbell: how many the wire has
    /// taken, whose ends the receiver tells, and why not the next one.
    ///
    /// # Safety
    /// The bytes of what was taken are valid until its end, those of reads are nobody else's.
    pub unsafe fn post(&self, peer: u32, wanted: &[Posting]) -> (usize, Stopped) {
        let mut state = self.shared.lock();
        if state.is_lost(peer) || state.grants.is_dead(peer) {
            // Until the engine has heard that the peer is dead.
            return (0, Stopped::Later);
        }
        // SAFETY: passed on to the caller.
        let (count, tried, why) = unsafe { state.post(peer, wanted, &self.memory) };
        let wakes = count > 0 && state.must_wake(false);
        drop(state);
        if wakes {
            self.shared.wake.wake();
        }
        let stopped = match why {
            _ if count == wanted.len() => Stopped::No,
            _ if count == tried => Stopped::NeedsOwner,
            why if why.is_retry() => Stopped::Later,
            why => Stopped::Failed(why),
        };
        (count, stopped)
    }

    /// Keeps bytes of commands that nobody waits for any more until the wire has let go of them.
    pub fn keep(&self, bytes: Box<[u8]>) {
        self.shared.lock().kept.push(bytes);
    }

    /// Where the ends of what was posted are told; to be taken once.
    pub fn receiver(&self) -> Ends {
        Ends { ended: self.shared.ended.clone(), taken: Vec::new() }
    }
}

/// See [`Endpoint::receiver`].
pub struct Ends {
    ended: Arc<Ended>,
    /// Kept for its memory.
    taken: Vec<End>,
}

impl Receiver for Ends {
    fn poll(&mut self, sink: &mut dyn Sink) -> usize {
        self.ended.take(&mut self.taken);
        let count = self.taken.len();
        for End { tag, status, fetched } in self.taken.drain(..) {
            sink.ended(Reply { tag, status, result: fetched });
        }
        count
    }

    fn arm(&mut self) -> bool {
        self.ended.arm()
    }

    fn disarm(&mut self) {
        self.ended.disarm();
    }
}
