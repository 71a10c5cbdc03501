//! Messages that the lane sends: those of offload mode, those that ask for it, and LONG ones whose
//! payload only the peer's agent can write. They wait here for credit, those to one peer in the
//! order in which they came.

use crate::engine::command::{Command, Op};
use crate::engine::completion::Completion;
use crate::engine::messages::sender::MessagePost;
use crate::engine::messages::{HEADER, MEDIUM, PLACE};
use crate::engine::peer_turns::PeerTurns;
use crate::fail;
use crate::transport::address::Address;
use crate::transport::frame::Frame;
use crate::transport::memory::message_sender::MessageSender;
use crate::util::status::{Result, Status};
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Messages to one peer that may be accepted and not be sent at one time.
pub const MOST: u64 = 256;

/// The right of one message to wait for credit in the lane. Dropping it gives it back.
pub struct Admitted(Arc<MessagePost>, u32);

impl Admitted {
    /// None: as many wait for this peer as may. Else a peer that handles nothing would take all
    /// memory.
    pub fn begin(
        post: &Arc<MessagePost>,
        message_sender: &MessageSender<'static>,
        peer: u32,
    ) -> Option<Admitted> {
        // Relaxed: only a number.
        if message_sender.deferred.fetch_add(1, Ordering::Relaxed) < MOST {
            return Some(Admitted(post.clone(), peer));
        }
        message_sender.deferred.fetch_sub(1, Ordering::Relaxed);
        None
    }
}

impl Drop for Admitted {
    fn drop(&mut self) {
        let Some(message_sender) = self.0.routes.fabric().known_sender(self.1) else { return };
        if message_sender.deferred.fetch_sub(1, Ordering::Relaxed) == MOST {
            // Threads may sleep until there is room again, see `core::messages`.
            self.0.routes.waiters().touched_word(message_sender.deferred.as_ptr() as u64);
        }
    }
}

/// The messages that have been accepted and not been sent, by peers.
#[derive(Default)]
pub struct DeferredQueue {
    lines: PeerTurns<VecDeque<Box<Deferred>>>,
    count: usize,
}

impl DeferredQueue {
    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.count
    }

    /// Whether something waits for this peer, behind which the next message to it belongs.
    pub fn has(&self, peer: u32) -> bool {
        self.lines.line(peer).is_some_and(|line| !line.is_empty())
    }

    /// Whether something waits that was accepted before the number `order`, for a peer that fits.
    pub fn has_before(&self, order: u64, fits: impl Fn(u32) -> bool) -> bool {
        let oldest = |line: &VecDeque<Box<Deferred>>| line.iter().map(|it| it.order).min();
        let mut waiting = self.lines.waiting();
        waiting.any(|(peer, line)| fits(peer) && oldest(line).is_some_and(|its| its < order))
    }

    /// Puts a message behind those that wait for the same peer.
    pub fn push(&mut self, deferred: Box<Deferred>) {
        self.count += 1;
        self.lines.put(deferred.peer, |line| line.push_back(deferred));
    }

    /// Sends what has credit, one message of each peer at a time. Returns how many have left the
    /// queue.
    pub fn send(&mut self, post: &MessagePost) -> usize {
        let sent = self.lines.serve(|line| {
            let end = line.front().map(|deferred| deferred.send(post));
            let status = match end {
                Some(Ok(true)) => Status::OK,
                Some(Err(error)) if !error.status.is_retry() => error.status,
                _ => return false,
            };
            line.pop_front().inspect(|deferred| deferred.end(post, status)).is_some()
        });
        self.count -= sent;
        sent
    }

    /// Ends all without sending them; returns how many there were.
    pub fn cancel(&mut self, post: &MessagePost) -> usize {
        let canceled = self.lines.serve(|line| {
            let next = line.pop_front();
            next.inspect(|deferred| deferred.end(post, Status::ERR_CANCELED)).is_some()
        });
        self.count -= canceled;
        canceled
    }
}

/// A message that has been accepted and not been sent.
pub struct Deferred {
    /// Bounds how many there are.
    pub _admitted: Admitted,
    /// To whom.
    pub peer: u32,
    /// For which handler.
    pub id: u16,
    /// MEDIUM, LONG or BULK.
    pub kind: u32,
    /// A copy.
    pub header: [u8; HEADER],
    /// How much of it.
    pub header_size: usize,
    /// Of MEDIUM and LONG: the caller's bytes, until on_local.
    pub payload: *const u8,
    /// How many, of any kind.
    pub payload_size: usize,
    /// LONG: where they go. BULK: where they are.
    pub place: Address,
    /// The payload must be written first.
    pub needs_data: bool,
    /// The user's own number.
    pub label: u16,
    /// Under which its end is waited for, or 0.
    pub tag: u64,
    /// Fires when the payload has been copied; of BULK it stands with the tag.
    pub on_local: Completion,
    /// Its number in the order of commands.
    pub order: u64,
}

// SAFETY: the payload is memory of the user, which any thread may read until on_local.
unsafe impl Send for Deferred {}

impl Deferred {
    /// The write of a LONG message's payload.
    pub fn write(&self) -> Command {
        let mut command = Command::new(Op::WRITE, self.peer);
        command.remote = self.place;
        command.local = self.payload.cast_mut();
        command.size = self.payload_size as u64;
        command
    }

    /// Sends it. False: there is no credit.
    pub fn send(&self, post: &MessagePost) -> Result<bool> {
        let message_sender = post.message_sender(self.peer)?;
        if !message_sender.head().has_handler(self.id.into()) {
            fail!(ERR_NO_HANDLER, "id is {}, and rank {} has no such handler", self.id, self.peer);
        }
        let place = encode(self.place, self.payload_size);
        let payload = match self.kind {
            MEDIUM if self.payload_size == 0 => &[],
            // SAFETY: the caller keeps the payload until on_local.
            MEDIUM => unsafe { std::slice::from_raw_parts(self.payload, self.payload_size) },
            _ => &place[..],
        };
        let header = &self.header[..self.header_size];
        let (id, kind) = (self.id, self.kind as u8);
        let absent = self.kind == MEDIUM && self.payload.is_null();
        let frame = Frame { id, kind, tag: self.tag, header, payload, label: self.label, absent };
        Ok(post.send(message_sender, &frame))
    }

    /// Tells its sender that it has been sent, or has failed.
    pub fn end(&self, post: &MessagePost, status: Status) {
        let reported = !self.on_local.is_nothing();
        if status != Status::OK && self.tag != 0 {
            post.end_reported(self.tag, status, reported);
        } else if status != Status::OK && !reported {
            post.note_unreported(self.peer, status);
        }
        self.on_local.fire(status, post.routes.waiters());
    }
}

/// The message of a command.
pub fn take_deferred(address: *mut u8) -> Box<Deferred> {
    // SAFETY: the command was made from a box; a command is executed or cancelled once.
    unsafe { Box::from_raw(address.cast::<Deferred>()) }
}

/// How a slot says where a payload is.
pub fn encode(address: Address, size: usize) -> [u8; PLACE] {
    let mut bytes = [0; PLACE];
    let words = [address.offset, address.key, size as u64];
    for (place, word) in bytes.chunks_exact_mut(8).zip(words) {
        place.copy_from_slice(&word.to_ne_bytes());
    }
    bytes
}
