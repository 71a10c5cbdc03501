//! Messages that the lane sends: those of offload mode, those that ask for it, and LONG ones whose
//! payload only the peer's agent can write. They wait here for credit, in the order in which they came.

use crate::engine::command::{Command, Op};
use crate::engine::completion::Completion;
use crate::engine::messages::sender::MessagePost;
use crate::engine::messages::{HEADER, LONG, MEDIUM, PLACE};
use crate::fail;
use crate::transport::address::Address;
use crate::transport::node::message_sender::Frame;
use crate::util::status::{Result, Status};
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Messages of a context that may be accepted and not be sent at one time.
const MOST: usize = 256;

/// The right of one message to wait for credit in the lane. Dropping it gives it back.
pub struct Admitted(Arc<MessagePost>);

impl Admitted {
    /// None: as many wait as may. Else a peer that handles nothing would fill the queue, and stop all other
    /// commands.
    pub fn begin(post: &Arc<MessagePost>) -> Option<Admitted> {
        // Relaxed: only a number.
        if post.deferred.fetch_add(1, Ordering::Relaxed) < MOST {
            return Some(Admitted(post.clone()));
        }
        post.deferred.fetch_sub(1, Ordering::Relaxed);
        None
    }
}

impl Drop for Admitted {
    fn drop(&mut self) {
        self.0.deferred.fetch_sub(1, Ordering::Relaxed);
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

// SAFETY: its payload is the user's, who lets any thread read it until on_local.
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
        let outbox = post.outbox(self.peer)?;
        if !outbox.head().has_handler(self.id.into()) {
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
        Ok(post.send(outbox, self.peer, &frame))
    }

    /// Tells its sender that it has been sent, or has failed.
    pub fn end(&self, post: &MessagePost, status: Status) {
        if status != Status::OK && self.tag != 0 {
            post.end(self.tag, status);
        }
        if status != Status::OK && self.tag == 0 && self.on_local.is_nothing() {
            post.note_untold(self.peer, status);
        }
        self.on_local.fire(status, post.routes.waiters());
    }

    /// Whether its payload is written before it is sent.
    pub fn is_long(&self) -> bool {
        self.kind == LONG
    }
}

/// The message of a command.
pub fn take_deferred(address: *mut u8) -> Box<Deferred> {
    // SAFETY: who made the command made it from a box; a command is executed or cancelled once.
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
