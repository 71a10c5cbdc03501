//! The sending side: messages, replies, and the end of those that wait for one.

use crate::engine::active::pending::{Pending, Waiting};
use crate::engine::routes::Routes;
use crate::fail;
use crate::transport::shm::inlet::Arrived;
use crate::transport::shm::outbox::{Outbox, Parcel};
use crate::util::counts::Counts;
use crate::util::status::{Result, Status};
use std::sync::Arc;

/// Kind of a parcel that is a reply.
pub const REPLY: u8 = 255;

/// See the head of the file. Any thread may use it.
pub struct Post {
    /// The paths to the peers.
    pub routes: Arc<Routes>,
    /// What is counted.
    pub counts: Arc<Counts>,
    /// Messages whose end is waited for.
    pub pending: Pending,
}

impl Post {
    /// Nothing has been sent.
    pub fn new(routes: Arc<Routes>, counts: Arc<Counts>, requests: usize) -> Post {
        Post { routes, counts, pending: Pending::new(requests) }
    }

    /// The outbox to a living peer, made at first use.
    pub fn outbox(&self, peer: u32) -> Result<&Outbox<'static>> {
        if peer >= self.routes.size() {
            fail!(ERR_INVALID, "peer is {peer}, expected a rank below {}", self.routes.size());
        }
        // Makes the port as well, by which the peer's death closes everything.
        self.routes.port(peer)?;
        if self.routes.is_dead(peer) {
            fail!(ERR_PEER_DEAD, "rank {peer} has died or has left");
        }
        self.routes.shm().outbox(peer)
    }

    /// Sends. False: there is no credit.
    #[inline(always)]
    pub fn send(&self, outbox: &Outbox<'static>, peer: u32, parcel: &Parcel) -> bool {
        self.routes.shm().send(outbox, peer, parcel, &self.counts)
    }

    /// Forgets what waits under a tag and was never sent. False: it has ended, and its user been told.
    pub fn forget(&self, tag: u64) -> bool {
        let taken = self.pending.take(tag).is_some();
        if taken {
            self.pending.release(tag);
            self.pending.told(tag);
        }
        taken
    }

    /// Answers the request `tag` of a peer. Bytes: at most the peer's `medium`, see reply_limit().
    pub fn reply(&self, peer: u32, tag: u64, status: Status, bytes: &[u8]) {
        // A peer that cannot be reached any more does not wait for an answer.
        let Ok(outbox) = self.routes.shm().outbox(peer) else { return };
        let id = status.0.unsigned_abs() as u16;
        let parcel = Parcel { id, kind: REPLY, tag, header: &[], payload: bytes };
        outbox.reply(&parcel, &self.counts);
    }

    /// Most bytes that a peer takes in a reply.
    pub fn reply_limit(&self, peer: u32) -> usize {
        self.routes.shm().outbox(peer).map_or(0, |outbox| outbox.medium())
    }

    /// Takes in a reply, whose bytes are then no longer needed: `consumed` is called before anything
    /// is told to the user.
    pub fn answered(&self, reply: &Arrived, consumed: impl FnOnce()) {
        let Some(waiting) = self.pending.take(reply.tag) else { return consumed() };
        let (bytes, size) = reply.payload;
        let mut status = Status(-i32::from(reply.id));
        if status == Status::OK && !waiting.reply.is_null() {
            if size > waiting.capacity {
                status = Status::ERR_RANGE;
            } else {
                // SAFETY: the slot holds `size` bytes until `consumed`; the user gave place for as many
                // and keeps it until the completion.
                unsafe { std::ptr::copy_nonoverlapping(bytes, waiting.reply, size) };
            }
        }
        if !waiting.reply_size.is_null() {
            // SAFETY: the user's, likewise.
            unsafe { waiting.reply_size.write(size) };
        }
        consumed();
        self.pending.release(reply.tag);
        self.tell(reply.tag, &waiting, status);
    }

    /// Ends everything that waits for peers that fit; returns how much that was.
    pub fn end_all(&self, status: Status, fits: impl Fn(u32) -> bool) -> usize {
        if !self.pending.is_used() {
            return 0;
        }
        let tags = self.pending.tags(fits);
        tags.iter().filter(|tag| self.end(**tag, status)).count()
    }

    /// Ends what waits under a tag, without a reply. False: it has ended before.
    pub fn end(&self, tag: u64, status: Status) -> bool {
        let Some(waiting) = self.pending.take(tag) else { return false };
        self.pending.release_later(tag, self.routes.shm().replies_sent());
        self.tell(tag, &waiting, status);
        true
    }

    fn tell(&self, tag: u64, waiting: &Waiting, status: Status) {
        waiting.on_local.fire(status, self.routes.waiters());
        waiting.on_complete.fire(status, self.routes.waiters());
        self.pending.told(tag);
        // Who waits in a flush has no completion of his own.
        self.routes.waiters().touched_privately();
    }
}
