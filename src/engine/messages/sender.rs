//! The sending side: messages, replies, and the end of those that wait for one.

use crate::engine::messages::parked::{Parked, Response};
use crate::engine::messages::requests::{Requests, Waiting};
use crate::engine::routes::Routes;
use crate::fail;
use crate::transport::frame::{Arrived, Class, Frame, REPLY};
use crate::transport::memory::message_sender::MessageSender;
use crate::util::counters::Counters;
use crate::util::status::{Error, Result, Status};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// See the head of the file. Any thread may use it.
pub struct MessagePost {
    /// The paths to the peers.
    pub routes: Arc<Routes>,
    /// What is counted.
    pub counts: Arc<Counters>,
    /// Messages whose end is waited for.
    pub pending: Requests,
    /// Responses without credit.
    pub parked: Parked,
    /// Messages that handlers have kept, and how many there may be.
    pub retained: (AtomicUsize, usize),
    /// Answers to peers that could not be reached, and how many there are.
    owed: (Mutex<Vec<Owed>>, AtomicUsize),
}

/// An answer: to whom, to what, and what.
struct Owed(u32, u64, Status, Box<[u8]>);

impl MessagePost {
    /// Nothing has been sent.
    pub fn new(
        routes: Arc<Routes>,
        counts: Arc<Counters>,
        requests: usize,
        retained: usize,
    ) -> MessagePost {
        let pending = Requests::new(requests);
        let (parked, retained) = (Parked::default(), (AtomicUsize::new(0), retained));
        MessagePost { routes, counts, pending, parked, retained, owed: Default::default() }
    }

    /// The message_sender to a living peer. At first use RETRY_CONNECTING, until the peer was
    /// contacted, and the rank that keeps the counter by which this one sends to it.
    pub fn message_sender(&self, peer: u32) -> Result<&MessageSender<'static>> {
        let fabric = self.routes.fabric();
        let known = fabric.known_sender(peer);
        if known.is_none() {
            // Makes the port as well, by which the peer's death closes everything.
            self.routes.port(peer)?;
        }
        if self.routes.is_dead(peer) {
            fail!(ERR_PEER_DEAD, "rank {peer} has died or has left");
        }
        if let Some(message_sender) = known {
            return Ok(message_sender);
        }
        if let Some(host) = fabric.nearest_host(peer)
            && let Err(error) = self.routes.port(host)
            && error.status == Status::RETRY_CONNECTING
        {
            return Err(error);
        }
        // Where the host cannot be contacted there are other shares.
        fabric.message_sender(peer)
    }

    /// Sends. False: there is no credit.
    #[inline(always)]
    pub fn send(&self, message_sender: &MessageSender<'static>, frame: &Frame) -> bool {
        self.put(message_sender, Class::Requests, frame)
    }

    #[inline(always)]
    fn put(&self, to: &MessageSender<'static>, class: Class, frame: &Frame) -> bool {
        self.routes.fabric().put(to, class, frame, &self.counts)
    }

    /// Forgets what waits under a tag and was never sent. False: it has ended, and its user been
    /// told.
    pub fn forget(&self, tag: u64) -> bool {
        let taken = self.pending.take(tag).is_some();
        if taken {
            self.pending.release(tag);
            self.pending.reported(tag);
        }
        taken
    }

    /// Answers the request `tag` of a peer. Bytes: at most the peer's `medium`, see reply_limit().
    pub fn reply(&self, peer: u32, tag: u64, status: Status, bytes: &[u8]) {
        if !self.try_reply(peer, tag, status, bytes) {
            self.owe(Owed(peer, tag, status, bytes.into()));
            self.routes.bell().ring();
        }
    }

    /// False: the peer cannot be reached now.
    fn try_reply(&self, peer: u32, tag: u64, status: Status, bytes: &[u8]) -> bool {
        let fabric = self.routes.fabric();
        let message_sender = match fabric.known_sender(peer) {
            Some(message_sender) => message_sender,
            None => {
                match self.routes.port_to_answer(peer).and_then(|_| fabric.message_sender(peer)) {
                    Ok(message_sender) => message_sender,
                    // A dead rank does not wait for an answer.
                    Err(_) => return self.routes.is_dead(peer),
                }
            }
        };
        let id = status.0.unsigned_abs() as u16;
        let frame =
            Frame { id, kind: REPLY, tag, header: &[], payload: bytes, label: 0, absent: false };
        self.put(message_sender, Class::Replies, &frame);
        true
    }

    /// Sends a response to a peer, or lets it wait for credit.
    pub fn respond(&self, peer: u32, frame: &Frame) {
        if !self.try_respond(peer, frame) && self.parked.park(Response::of(peer, frame)) {
            // The thread that runs handlers sends it; it may be about to sleep.
            self.routes.fabric().own_words().requests.bell().ring();
        }
    }

    /// False: there is no credit, or the peer cannot be reached now.
    fn try_respond(&self, peer: u32, frame: &Frame) -> bool {
        match self.routes.fabric().message_sender(peer) {
            _ if self.routes.is_dead(peer) => true,
            Ok(message_sender) => self.put(message_sender, Class::Responses, frame),
            Err(_) => false,
        }
    }

    /// Sends the responses that wait and have credit now; returns how many were sent.
    #[inline(always)]
    pub fn send_parked(&self) -> usize {
        match self.parked.any() {
            true => self.parked.send(|response| self.try_respond(response.peer, &response.frame())),
            false => 0,
        }
    }

    /// Asks the peers for which responses wait to ring when they have slots: before a sleep. The
    /// caller then executes the kernel's fence, and calls send_parked() once more. False: one of
    /// them does not ring.
    pub fn wish_for_slots(&self) -> bool {
        let (fabric, mut all_ring) = (self.routes.fabric(), true);
        if self.parked.any() {
            self.parked.each_peer(|peer| {
                let sender = fabric.known_sender(peer).filter(|_| fabric.frees_wake(peer));
                sender.map_or_else(|| all_ring = false, MessageSender::wish_for_responses);
            });
        }
        all_ring
    }

    /// The response to the request `tag` has been handled here, or could not be: ends the request.
    pub fn responded(&self, tag: u64, status: Status) {
        self.ended(tag, status, (std::ptr::null(), 0), || {});
    }

    /// Keeps an answer to a peer that cannot be contacted now, for want of a descriptor for
    /// instance, until pay() is called.
    #[cold]
    fn owe(&self, owed: Owed) {
        let mut all = self.owed.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.push(owed);
        self.owed.1.store(all.len(), Ordering::Relaxed);
    }

    /// Whether answers are owed, which pay() is to be called for again.
    pub fn owes(&self) -> bool {
        self.owed.1.load(Ordering::Relaxed) > 0
    }

    /// Tries again to answer the ranks that could not be reached.
    #[cold]
    pub fn pay(&self) {
        let owed = {
            let mut all = self.owed.0.lock().unwrap_or_else(PoisonError::into_inner);
            self.owed.1.store(0, Ordering::Relaxed);
            std::mem::take(&mut *all)
        };
        for Owed(peer, tag, mut status, mut bytes) in owed {
            if bytes.len() > self.reply_limit(peer) {
                // Now it is known how much it takes.
                (status, bytes) = (Status::ERR_RANGE, Box::default());
            }
            if !self.try_reply(peer, tag, status, &bytes) {
                self.owe(Owed(peer, tag, status, bytes));
            }
        }
    }

    /// Most bytes that a peer takes in a reply; what this rank takes, where that one cannot be
    /// reached.
    pub fn reply_limit(&self, peer: u32) -> usize {
        let fabric = self.routes.fabric();
        fabric
            .message_sender(peer)
            .map_or_else(|_| fabric.own_medium(), |message_sender| message_sender.medium())
    }

    /// Takes in a reply, whose bytes are then no longer needed: `consumed` is called before
    /// anything is told to the user.
    pub fn answered(&self, reply: &Arrived, consumed: impl FnOnce()) {
        self.ended(reply.tag(), Status(-i32::from(reply.id())), reply.payload(), consumed);
    }

    fn ended(
        &self,
        tag: u64,
        mut status: Status,
        (bytes, size): (*const u8, usize),
        consumed: impl FnOnce(),
    ) {
        let Some(waiting) = self.pending.take(tag) else { return consumed() };
        if status == Status::OK && !waiting.reply.is_null() {
            if size > waiting.capacity {
                status = Status::ERR_RANGE;
            } else {
                // SAFETY: the slot holds `size` bytes until `consumed`; the user gave place for as
                // many and keeps it until the completion.
                unsafe { std::ptr::copy_nonoverlapping(bytes, waiting.reply, size) };
            }
        }
        if !waiting.reply_size.is_null() {
            // SAFETY: the user's, likewise.
            unsafe { waiting.reply_size.write(size) };
        }
        consumed();
        self.pending.release(tag);
        self.fire(tag, &waiting, status, false);
    }

    /// Ends everything that waits for peers that fit; returns how much that was.
    pub fn end_all(&self, status: Status, fits: impl Fn(u32) -> bool) -> usize {
        if !self.pending.is_used() {
            return 0;
        }
        let tags = self.pending.tags(fits);
        let ended = tags.iter().filter(|tag| self.end(**tag, status)).count();
        if ended > 0 {
            // Their entries are free once the replies that are on their way have been taken in.
            self.routes.bell().ring();
        }
        ended
    }

    /// Ends what waits under a tag, without a reply. False: it has ended before.
    pub fn end(&self, tag: u64, status: Status) -> bool {
        self.end_reported(tag, status, false)
    }

    /// As end(). `reported`: a completion that does not stand with the tag reports it.
    pub fn end_reported(&self, tag: u64, status: Status, reported: bool) -> bool {
        let Some(waiting) = self.pending.take(tag) else { return false };
        self.pending.release_later(tag, self.routes.fabric().replies_sent());
        self.fire(tag, &waiting, status, reported);
        true
    }

    /// A message that has no completion has failed: the next flush reports it.
    #[cold]
    pub fn note_unreported(&self, peer: u32, status: Status) {
        let what = format!("a message to rank {peer}");
        self.routes.unreported().note(peer, &what, &Error::bare(status));
    }

    fn fire(&self, tag: u64, waiting: &Waiting, status: Status, reported: bool) {
        let has_none = waiting.on_local.is_nothing() && waiting.on_complete.is_nothing();
        if status != Status::OK && has_none && !reported {
            self.note_unreported(waiting.peer, status);
        }
        waiting.on_local.fire(status, self.routes.waiters());
        waiting.on_complete.fire(status, self.routes.waiters());
        self.pending.reported(tag);
        // A flush has no completion of its own.
        self.routes.waiters().touched_anything();
    }
}
