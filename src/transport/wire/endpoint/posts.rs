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

impl State {
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
    /// Places that the dead were granted and that nobody else may use, since they may still use them.
    pub fn kept_aside(&self) -> usize {
        self.shared.lock().grants.kept_aside()
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
        let pieces: Vec<(Piece, u32)> =
            wanted.iter().map_while(|posting| self.memory.piece(posting)).collect();
        let mut state = self.shared.lock();
        let number = |posting: &Posting| state.posted.insert(posting.tag, peer);
        let numbers: Vec<u64> = wanted.iter().take(pieces.len()).map(number).collect();
        let commands: Vec<Command> = (wanted.iter().zip(&numbers).zip(&pieces))
            .map(|((posting, number), piece)| command(posting, *number, piece))
            .collect();
        let (count, why) = match commands.is_empty() {
            true => (0, Status::OK),
            // SAFETY: the pieces live through the call; the bytes as the caller promises.
            false => unsafe { state.lane.post(peer, CLASS_RMA, &commands) },
        };
        let count = count.min(commands.len());
        for number in &numbers[count..] {
            state.posted.remove(*number);
        }
        let wakes = count > 0 && state.must_wake(false);
        drop(state);
        if wakes {
            self.shared.wake.wake();
        }
        let stopped = match why {
            _ if count == wanted.len() => Stopped::No,
            _ if count == commands.len() => Stopped::NeedsOwner,
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
        Ends(self.shared.ended.clone())
    }
}

/// See [`Endpoint::receiver`].
pub struct Ends(Arc<Ended>);

impl Receiver for Ends {
    fn poll(&mut self, sink: &mut dyn Sink) -> usize {
        let ends = self.0.take();
        for End { tag, status, fetched } in &ends {
            sink.ended(Reply { tag: *tag, status: *status, result: *fetched });
        }
        ends.len()
    }

    fn arm(&mut self) -> bool {
        self.0.arm()
    }

    fn disarm(&mut self) {
        self.0.disarm();
    }
}
