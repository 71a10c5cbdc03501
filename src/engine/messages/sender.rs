//! The sending side of active messages: sends messages, replies and responses, and ends the
//! messages that wait for a reply.

use crate::engine::messages::parked::{Parked, Response};
use crate::engine::messages::requests::{Requests, Waiting};
use crate::engine::routes::Routes;
use crate::fail;
use crate::transport::carrier::Sleeper;
use crate::transport::frame::{Arrived, Class, Frame, REPLY};
use crate::transport::memory::message_sender::{MessageSender, Short, ShortMessage, Small};
use crate::util::counters::Counters;
use crate::util::pin::shown_number;
use crate::util::status::{Error, Result, Status};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// See the head of the file. Any thread may use it.
pub struct AmSender {
    /// The routes to the peers.
    pub routes: Arc<Routes>,
    /// The counters of llcl_stats_get.
    pub counts: Arc<Counters>,
    /// Messages that wait for a reply or a completion.
    pub pending: Requests,
    /// Responses that wait for credit.
    pub parked: Parked,
    /// The number of retained messages, and their limit.
    pub retained: (AtomicUsize, usize),
    /// Replies that could not be sent, and their number.
    unsent_replies: (Mutex<Vec<UnsentReply>>, AtomicUsize),
}

/// A reply: peer, tag of the request, status, bytes.
struct UnsentReply(u32, u64, Status, Box<[u8]>);

impl AmSender {
    /// A sender with empty tables.
    pub fn new(
        routes: Arc<Routes>,
        counts: Arc<Counters>,
        requests: usize,
        retained: usize,
    ) -> AmSender {
        let pending = Requests::new(requests);
        let (parked, retained) = (Parked::default(), (AtomicUsize::new(0), retained));
        AmSender { routes, counts, pending, parked, retained, unsent_replies: Default::default() }
    }

    /// The sender of messages to a living peer. RETRY_CONNECTING: this rank has not contacted the
    /// peer yet, or not the host of the share that this rank uses first. The host is the rank whose
    /// memory has the ticket counter of the share.
    pub fn message_sender(&self, peer: u32) -> Result<&MessageSender<'static>> {
        let fabric = self.routes.fabric();
        // A contact makes the sender before the port. The lane needs the port for the payload of a
        // LONG message, and mark_dead() closes it.
        self.routes.port(peer)?;
        if self.routes.is_dead(peer) {
            fail!(ERR_PEER_DEAD, "rank {peer} has died or has left");
        }
        if let Some(message_sender) = fabric.known_sender(peer) {
            return Ok(message_sender);
        }
        if let Some(host) = fabric.nearest_host(peer)
            && let Err(error) = self.routes.port(host)
            && error.status == Status::RETRY_CONNECTING
        {
            return Err(error);
        }
        // If the contact with the host has failed, the sender uses other shares.
        fabric.message_sender(peer)
    }

    /// Sends a message. False: there is no credit.
    #[inline(always)]
    pub fn send(&self, message_sender: &MessageSender<'static>, frame: &Frame) -> bool {
        self.put(message_sender, Class::Requests, frame)
    }

    /// Like send(), for a message that MessageSender::admits() has admitted.
    #[inline(always)]
    pub fn send_in_turn(&self, message_sender: &MessageSender<'static>, frame: &Frame) -> bool {
        let sent = self.send(message_sender, frame);
        if !sent {
            message_sender.give_turn_back();
        }
        sent
    }

    #[inline(always)]
    fn put(&self, to: &MessageSender<'static>, class: Class, frame: &Frame) -> bool {
        self.routes.fabric().put(to, class, frame, &self.counts)
    }

    /// Frees the entry of a message that was not sent. False: the message has ended before, and its
    /// completion has fired.
    pub fn forget(&self, tag: u64) -> bool {
        let taken = self.pending.take(tag).is_some();
        if taken {
            self.pending.finish(tag, None, || {});
        }
        taken
    }

    /// Sends the reply to the request `tag` of a peer, at most reply_limit() bytes, or keeps it.
    pub fn reply(&self, peer: u32, tag: u64, status: Status, bytes: &[u8]) {
        if !self.try_reply(peer, tag, status, bytes) {
            self.keep_reply(UnsentReply(peer, tag, status, bytes.into()));
            self.routes.bell().ring();
        }
    }

    /// Sends a reply. False: the peer cannot be contacted now, or gives no slot back yet.
    fn try_reply(&self, peer: u32, tag: u64, status: Status, bytes: &[u8]) -> bool {
        let fabric = self.routes.fabric();
        let message_sender = match fabric.known_sender(peer) {
            Some(message_sender) => message_sender,
            None => {
                match self.routes.port_to_answer(peer).and_then(|_| fabric.message_sender(peer)) {
                    Ok(message_sender) => message_sender,
                    Err(_) => return self.routes.is_dead(peer),
                }
            }
        };
        // The peer's limit may be known only since the contact, which may be new.
        let (status, bytes) = match bytes.len() > message_sender.medium() {
            true => (Status::ERR_RANGE, &[][..]),
            false => (status, bytes),
        };
        let id = status.0.unsigned_abs() as u16;
        let frame =
            Frame { id, kind: REPLY, tag, header: &[], payload: bytes, label: 0, absent: false };
        // A reply to a dead rank is dropped.
        self.put(message_sender, Class::Replies, &frame) || self.routes.is_dead(peer)
    }

    /// The sender for a message without a tag to a peer that lives, is contacted, has the handler
    /// and takes a payload of this size.
    #[inline(always)]
    pub fn ready_sender(&self, peer: u32, frame: &Frame) -> Option<&MessageSender<'static>> {
        let fabric = self.routes.fabric();
        let sender = fabric.known_sender(peer)?;
        let ready = frame.payload.len() <= sender.medium()
            && sender.head().has_handler(frame.id.into())
            && !fabric.is_dead(peer);
        ready.then_some(sender)
    }

    /// Sends a response to a peer with a ready sender, if there is credit. Otherwise nothing has
    /// happened.
    #[inline(always)]
    pub fn respond_at_once(&self, peer: u32, frame: &Frame) -> bool {
        if let Some(small) = Small::of(frame, &self.counts)
            && self.respond_shortly(peer, &small)
        {
            return true;
        }
        if self.parked.has_for(peer) {
            return false;
        }
        let sender = self.ready_sender(peer, frame);
        sender.is_some_and(|sender| self.put(sender, Class::Responses, frame))
    }

    /// Like respond_at_once(), for a short response to a peer of this node.
    #[inline(always)]
    pub fn respond_shortly(&self, peer: u32, response: &impl ShortMessage) -> bool {
        let senders = self.routes.fabric().short_senders();
        // Acquire: pairs with the Release of the thread that has stored the sender.
        let sender = senders.get(peer as usize).map(|place| place.load(Ordering::Acquire));
        // SAFETY: null, or a sender that lives as long as the fabric.
        let Some(sender) = sender.and_then(|sender| unsafe { sender.as_ref() }) else {
            return false;
        };
        let Some(own) = shown_number() else { return false };
        match sender.respond_short(response, own) {
            Short::Sent => true,
            Short::Unfinished(_) => {
                sender.finish_response(&self.counts);
                true
            }
            Short::Refused => false,
        }
    }

    /// Sends a response to a peer, or parks it.
    pub fn respond(&self, peer: u32, frame: &Frame) {
        if !self.parked.has_for(peer) && self.try_respond(peer, frame) {
            return;
        }
        if self.parked.park(Response::of(peer, frame)) {
            // The thread `llcl-handlers` sends it later or, while that one is in a long handler, a
            // thread of the program that waits in the library. Both may be about to sleep now.
            self.routes.fabric().own_words().requests.bell().ring();
            self.routes.waiters().touched_anything();
        }
    }

    /// Sends a response. False: there is no credit, or the peer was not contacted yet.
    fn try_respond(&self, peer: u32, frame: &Frame) -> bool {
        match self.routes.fabric().message_sender(peer) {
            _ if self.routes.is_dead(peer) => true,
            Ok(message_sender) => self.put(message_sender, Class::Responses, frame),
            Err(_) => false,
        }
    }

    /// Sends the parked responses that have credit now; returns their number. None: another thread
    /// does so.
    #[inline(always)]
    pub fn send_parked(&self) -> Option<usize> {
        match self.parked.any() {
            true => self.parked.send(|response| self.try_respond(response.peer, &response.frame())),
            false => Some(0),
        }
    }

    /// To be called before a sleep: asks for a ring when there is credit for parked responses. The
    /// caller then executes the kernel's fence and calls send_parked() once more. False: one of the
    /// peers was not contacted yet, so nobody rings for it.
    pub fn ask_wake_for_slots(&self) -> bool {
        let (fabric, mut all_ring) = (self.routes.fabric(), true);
        if self.parked.any() {
            self.parked.each_first(|response| {
                let asked = fabric.known_sender(response.peer).is_some_and(|to| {
                    fabric.ask_wake(to, Class::Responses, response.bytes(), Sleeper::Handlers)
                });
                all_ring &= asked;
            });
        }
        all_ring
    }

    /// Ends the request `tag` after its response was handled here, or was refused.
    pub fn responded(&self, tag: u64, status: Status) {
        // SAFETY: there are no bytes.
        unsafe { self.ended(tag, status, (std::ptr::null(), 0), || {}) };
    }

    /// Keeps a reply for send_unsent_replies(). try_reply() has failed, for instance because no
    /// descriptor is left.
    #[cold]
    fn keep_reply(&self, reply: UnsentReply) {
        let mut all = self.unsent_replies.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.push(reply);
        self.unsent_replies.1.store(all.len(), Ordering::Relaxed);
    }

    /// Whether replies are kept, for which send_unsent_replies() must be called.
    pub fn has_unsent_replies(&self) -> bool {
        self.unsent_replies.1.load(Ordering::Relaxed) > 0
    }

    /// Tries again to send the kept replies.
    #[cold]
    pub fn send_unsent_replies(&self) {
        let replies = {
            let mut all = self.unsent_replies.0.lock().unwrap_or_else(PoisonError::into_inner);
            self.unsent_replies.1.store(0, Ordering::Relaxed);
            std::mem::take(&mut *all)
        };
        for UnsentReply(peer, tag, status, bytes) in replies {
            if !self.try_reply(peer, tag, status, &bytes) {
                self.keep_reply(UnsentReply(peer, tag, status, bytes));
            }
        }
    }

    /// Most bytes of a reply to a peer; this rank's own limit, if the peer was not contacted yet.
    pub fn reply_limit(&self, peer: u32) -> usize {
        let fabric = self.routes.fabric();
        fabric
            .message_sender(peer)
            .map_or_else(|_| fabric.own_medium(), |message_sender| message_sender.medium())
    }

    /// Ends the request that a reply answers. Calls `consumed` when the reply's slot may be freed,
    /// before any completion fires.
    ///
    /// # Safety
    /// The bytes of the reply stay in its slot until `consumed` is called.
    pub unsafe fn answered(&self, reply: &Arrived, consumed: impl FnOnce()) {
        let (status, bytes) = (Status(-i32::from(reply.id())), reply.payload());
        // SAFETY: as the caller promises.
        unsafe { self.ended(reply.tag(), status, bytes, consumed) };
    }

    /// # Safety
    /// The bytes are valid for reading until `consumed` is called.
    unsafe fn ended(
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
                // SAFETY: as the caller promises; the promise of Requests::insert(), and the
                // bytes fit.
                unsafe { std::ptr::copy_nonoverlapping(bytes, waiting.reply, size) };
            }
        }
        // Another failure says nothing about the size of an answer.
        if !waiting.reply_size.is_null() && matches!(status, Status::OK | Status::ERR_RANGE) {
            // SAFETY: the promise of Requests::insert().
            unsafe { waiting.reply_size.write(size) };
        }
        consumed();
        self.fire(tag, &waiting, status, None, false);
    }

    /// Ends all messages that wait for peers that `fits`, without a reply; returns their number.
    pub fn end_all(&self, status: Status, fits: impl Fn(u32) -> bool) -> usize {
        if !self.pending.is_used() {
            return 0;
        }
        let tags = self.pending.tags(fits);
        let ended = tags.iter().filter(|tag| self.end(**tag, status)).count();
        if ended > 0 {
            // The progress thread frees the entries when the replies that are under way are
            // consumed.
            self.routes.bell().ring();
        }
        ended
    }

    /// Ends the message of a tag without a reply. False: it has ended before.
    pub fn end(&self, tag: u64, status: Status) -> bool {
        self.end_reported(tag, status, false)
    }

    /// Like end(). `reported`: a completion outside of the tag's entry reports the failure.
    pub fn end_reported(&self, tag: u64, status: Status, reported: bool) -> bool {
        let Some(waiting) = self.pending.take(tag) else { return false };
        let until = Some(self.routes.fabric().replies_sent());
        self.fire(tag, &waiting, status, until, reported);
        true
    }

    /// Notes the failure of a message without completions, for the next flush.
    #[cold]
    pub fn note_unreported(&self, peer: u32, status: Status) {
        let what = format!("a message to rank {peer}");
        self.routes.unreported().note(peer, &what, &Error::bare(status));
    }

    /// Fires the completions of a taken message, and frees its entry; see Requests::finish().
    fn fire(
        &self,
        tag: u64,
        waiting: &Waiting,
        status: Status,
        until: Option<u64>,
        reported: bool,
    ) {
        let has_none = waiting.on_local.is_nothing() && waiting.on_complete.is_nothing();
        if status != Status::OK && has_none && !reported {
            self.note_unreported(waiting.peer, status);
        }
        // SAFETY: the promise of Requests::insert(); the entry was taken once.
        self.pending.finish(tag, until, || unsafe {
            waiting.on_local.fire(status, self.routes.waiters());
            waiting.on_complete.fire(status, self.routes.waiters());
        });
        // Threads in a flush sleep until no message waits for its end, and a message without
        // completions wakes no thread by itself.
        self.routes.waiters().touched_anything();
    }
}
