//! Reads, writes and atomics on an endpoint. The holder of the engine lane's role posts them in
//! batches; the thread that polls the wire hands over their completions through [`Ended`].

use super::helpers::Helper;
use super::{Asleep, Endpoint, Out, Shared, State};
use crate::transport::carrier::Sleeper;
use crate::transport::remote::{Posting, Stopped};
use crate::transport::wire::ended::{End, Ended};
use crate::transport::wire::remote::{Memory, command};
use crate::transport::wire::{CLASS_RMA, Command, Piece};
use crate::transport::{Receiver, Reply, Sink};
use crate::util::status::Status;
use std::sync::Arc;

/// Wakes a thread that has asked for room, or the progress thread when completions are ready and
/// nobody holds the lane's role.
pub type Ring = Box<dyn Fn(Sleeper) + Send + Sync>;

/// The commands of one post. It is kept to reuse its memory, and is empty between posts.
#[derive(Default)]
pub(super) struct Batch {
    pieces: Vec<Piece>,
    commands: Vec<Command>,
    /// Posts from which the lane has taken at least one command.
    #[cfg(test)]
    posts: usize,
}

impl Batch {
    /// Counts a post of which the lane has taken so many commands.
    #[inline(always)]
    fn count(&mut self, _taken: usize) {
        #[cfg(test)]
        {
            self.posts += usize::from(_taken > 0);
        }
    }
}

// SAFETY: the vectors are empty whenever the lock is free, so no pointer passes between threads.
unsafe impl Send for Batch {}

impl State {
    /// Like post(), for one operation, whose command needs no list.
    ///
    /// # Safety
    /// As for Endpoint::post().
    #[inline(always)]
    unsafe fn post_one(
        &mut self,
        peer: u32,
        wanted: &Posting,
        memory: &Memory,
    ) -> (usize, usize, Status) {
        let Some((piece, flags)) = memory.piece(wanted) else { return (0, 0, Status::OK) };
        let number = self.posted.insert(wanted.tag, peer);
        let command = command(wanted, number, &raw const piece, flags);
        // SAFETY: the piece lives through the call; the caller vouches for the bytes.
        let (count, why) = unsafe { self.lane.post(peer, CLASS_RMA, &[command]) };
        if count == 0 {
            self.posted.remove(number);
        }
        self.batch.count(count);
        (count.min(1), 1, why)
    }

    /// Posts the longest prefix of `wanted` that the wire can execute. Returns how many commands
    /// the lane has taken, how long that prefix was, and why the lane stopped.
    ///
    /// # Safety
    /// As for Endpoint::post().
    #[inline(always)]
    unsafe fn post(
        &mut self,
        peer: u32,
        wanted: &[Posting],
        memory: &Memory,
    ) -> (usize, usize, Status) {
        let State { lane, posted, batch, .. } = self;
        let Batch { pieces, commands, .. } = batch;
        // The pieces stay where they are: the commands point to them.
        pieces.reserve(wanted.len());
        for posting in wanted {
            let Some((piece, flags)) = memory.piece(posting) else { break };
            pieces.push(piece);
            let (number, piece) =
                (posted.insert(posting.tag, peer), &raw const pieces[pieces.len() - 1]);
            commands.push(command(posting, number, piece, flags));
        }
        let tried = commands.len();
        let (count, why) = match tried {
            0 => (0, Status::OK),
            // SAFETY: the pieces live through the call; the caller vouches for the bytes.
            _ => unsafe { lane.post(peer, CLASS_RMA, commands) },
        };
        let count = count.min(tried);
        for refused in &commands[count..] {
            posted.remove(refused.tag);
        }
        commands.clear();
        pieces.clear();
        batch.count(count);
        (count, tried, why)
    }
}

impl Shared {
    /// Whether the caller must wake the polling thread after a post. A thread that naps is woken
    /// since an answer is likely, unless an application thread polls; a thread that sleeps on the
    /// descriptor is woken only if frames are `waiting` for the lane.
    pub(super) fn must_wake(&self, state: &mut State, waiting: bool) -> bool {
        // A hint; a polling thread that is not woken sleeps for SLEEP at most.
        let naps = state.asleep == Asleep::ForATime && self.helpers.last() == Helper::Nobody;
        let must = naps || state.asleep == Asleep::OnDescriptor && waiting;
        if must {
            state.asleep = Asleep::No;
        }
        must
    }

    pub(super) fn ring(&self, sleeper: Sleeper) {
        self.ring.get().into_iter().for_each(|ring| ring(sleeper));
    }

    /// Hands completions to the holder of the lane's role. True: the caller must ring, when it has
    /// dropped the lock.
    #[must_use = "the caller must ring"]
    pub(super) fn hand_over(&self, ends: &mut Vec<End>) -> bool {
        let rings = !ends.is_empty() && self.ended.put(ends);
        ends.clear();
        rings
    }
}

impl Endpoint {
    /// Number of buffers that are out of use: they were granted to dead peers, and the wire has not
    /// promised that no frame of these arrives any more.
    pub fn slots_retired(&self) -> usize {
        let state = self.shared.lock();
        let slots = state.tickets.as_ref().map_or(0, |tickets| tickets.giver.slots_retired());
        state.grants.slots_retired() + slots
    }

    /// Number of calls of the lane's post() that took reads, writes or atomics.
    #[cfg(test)]
    pub fn posts(&self) -> usize {
        self.shared.lock().batch.posts
    }

    /// The registrations of this rank's memory.
    pub fn memory(&self) -> &Memory {
        &self.memory
    }

    /// Sets the function that wakes threads of the library. The first call counts.
    pub fn set_ring(&self, ring: Ring) {
        let _ = self.shared.ring.set(Box::new(ring));
    }

    /// Posts operations for one peer by one call of the lane, so that a module can ring one
    /// doorbell for all. Returns how many the wire has taken, and why it stopped. The
    /// [receiver](Endpoint::receiver) brings their completions. A lane that refuses a post with an
    /// error has lost the peer.
    ///
    /// # Safety
    /// The local buffer of each operation that was taken is valid until its completion; nobody
    /// changes that of a write or uses that of a read until then.
    #[inline(always)]
    pub unsafe fn post(&self, peer: u32, wanted: &[Posting]) -> (usize, Stopped) {
        let mut state = self.shared.lock();
        if state.is_lost(peer) || state.grants.is_dead(peer) {
            // The engine ends the operations when it hears that the peer is dead.
            return (0, Stopped::Later);
        }
        // SAFETY: the caller vouches for the buffers.
        let (count, tried, why) = unsafe {
            match wanted {
                [one] => state.post_one(peer, one, &self.memory),
                _ => state.post(peer, wanted, &self.memory),
            }
        };
        let stopped = match why {
            _ if count == wanted.len() => Stopped::No,
            _ if count == tried => Stopped::NeedsOwner,
            _ => Stopped::Later,
        };
        if stopped == Stopped::Later && !why.is_retry() {
            state.mark_lost(self.shared.me, peer, &format!("post: {why:?}"), &mut Out::new());
        }
        let wakes = count > 0 && self.shared.must_wake(&mut state, false);
        drop(state);
        if wakes {
            self.shared.wake.wake();
        }
        (count, stopped)
    }

    /// Keeps a buffer of commands for which nobody waits any more until the lane is closed, since
    /// the wire may still use it.
    pub fn keep(&self, bytes: Box<[u8]>) {
        self.shared.lock().abandoned.push(bytes);
    }

    /// The receiver of completions, for the holder of the lane's role. Called once.
    pub fn receiver(&self) -> Ends {
        Ends { ended: self.shared.ended.clone(), taken: Vec::new() }
    }
}

/// See [`Endpoint::receiver`].
pub struct Ends {
    ended: Arc<Ended>,
    /// Empty between polls; kept to reuse its memory.
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
