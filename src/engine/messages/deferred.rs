//! Deferred messages, which the lane sends: those of offload mode, those with LLCL_FLAG_DEFER, and
//! LONG ones whose payload only the owner can write. They wait here for credit; messages to one
//! peer are sent in order.

use crate::engine::command::{Command, Op};
use crate::engine::completion::Completion;
use crate::engine::messages::sender::AmSender;
use crate::engine::messages::{HEADER, MEDIUM, PLACE, bytes_in_slot};
use crate::engine::peer_turns::PeerTurns;
use crate::fail;
use crate::transport::address::Address;
use crate::transport::carrier::Bytes;
use crate::transport::frame::{Class, Frame};
use crate::transport::memory::message_sender::MessageSender;
use crate::util::status::{Result, Status};
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Most messages to one peer that are accepted and not sent yet.
pub const MOST: u64 = 256;

/// The right of one message to wait in the lane. A peer has MOST such rights; a drop returns the
/// right.
pub struct Admitted(Arc<AmSender>, u32);

impl Admitted {
    /// None: MOST messages to this peer wait. Without the bound, messages to a peer that runs no
    /// handlers would fill all memory.
    ///
    /// # Safety
    /// The right goes into a [`Deferred`] whose `on_local` is valid and whose user keeps what
    /// `on_local` names, and the payload of a MEDIUM or LONG message, until `on_local` has fired.
    pub unsafe fn begin(
        post: &Arc<AmSender>,
        message_sender: &MessageSender<'static>,
        peer: u32,
    ) -> Option<Admitted> {
        // Relaxed: the count protects no other memory.
        // Never above MOST, not even for a moment: drop() wakes the threads that sleep at MOST.
        let next = |count: u64| (count < MOST).then_some(count + 1);
        let added =
            message_sender.deferred.fetch_update(Ordering::Relaxed, Ordering::Relaxed, next);
        added.is_ok().then(|| Admitted(post.clone(), peer))
    }
}

impl Drop for Admitted {
    fn drop(&mut self) {
        let Some(message_sender) = self.0.routes.fabric().known_sender(self.1) else { return };
        if message_sender.deferred.fetch_sub(1, Ordering::Relaxed) == MOST {
            // Threads may sleep until fewer wait, see `core::messages`.
            self.0.routes.waiters().touched_word(message_sender.deferred.as_ptr() as u64);
        }
    }
}

/// The messages that were accepted and not sent yet, by peers.
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

    /// Whether messages to this peer wait. The next message to it must then wait behind them.
    pub fn has(&self, peer: u32) -> bool {
        self.lines.line(peer).is_some_and(|line| !line.is_empty())
    }

    /// Whether a message older than the command with number `order` waits for a peer that `fits`.
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

    /// Sends the messages that have credit, one of each peer in turn. Returns how many have left
    /// the queue.
    pub fn send(&mut self, post: &AmSender) -> usize {
        let sent = self.lines.serve(|line| {
            let end = line.front().map(|deferred| deferred.send(post));
            let status = match end {
                Some(Ok(true)) => Status::OK,
                Some(Err(error)) if !error.status.is_retry() => error.status,
                _ => return false,
            };
            line.pop_front().map(|deferred| deferred.end(post, status)).is_some()
        });
        self.count -= sent;
        sent
    }

    /// Asks for a ring of the progress thread when there is credit for the next message to each
    /// peer. False: for one of them there is credit, or nobody would ring.
    pub fn sleeps_for_credit(&self, post: &AmSender) -> bool {
        let fabric = post.routes.fabric();
        fabric.sleeps_for_credit(|| {
            self.lines.waiting().filter_map(|(_, line)| line.front()).map(|it| {
                // A message to a dead peer ends in the next round.
                let to = fabric.known_sender(it.peer).filter(|_| !post.routes.is_dead(it.peer));
                Some((to?, Class::Requests, it.bytes()))
            })
        })
    }

    /// Ends all messages with ERR_CANCELED; returns their number.
    pub fn cancel(&mut self, post: &AmSender) -> usize {
        let canceled = self.lines.serve(|line| {
            let next = line.pop_front();
            next.map(|deferred| deferred.end(post, Status::ERR_CANCELED)).is_some()
        });
        self.count -= canceled;
        canceled
    }
}

/// A message that was accepted and not sent yet. The promise of Admitted::begin() holds for it.
pub struct Deferred {
    /// Its right to wait.
    pub _admitted: Admitted,
    /// The receiver.
    pub peer: u32,
    /// The handler's number.
    pub id: u16,
    /// MEDIUM, LONG or BULK.
    pub kind: u32,
    /// A copy of the header.
    pub header: [u8; HEADER],
    /// The header's size in bytes.
    pub header_size: usize,
    /// MEDIUM and LONG: the caller's bytes, valid until on_local fires.
    pub payload: *const u8,
    /// The payload's size in bytes.
    pub payload_size: usize,
    /// LONG: the address to which the payload is written. BULK: the payload's own address.
    pub place: Address,
    /// LONG: the payload was not written yet.
    pub needs_data: bool,
    /// The user's own number.
    pub label: u16,
    /// The tag of its entry in `messages::requests`, or 0.
    pub tag: u64,
    /// Fires when the payload was copied; for BULK, the entry of the tag has it.
    pub on_local: Completion,
    /// Its number in the order of commands.
    pub order: u64,
}

// SAFETY: the payload is memory of the user, which any thread may read until on_local fires.
unsafe impl Send for Deferred {}

impl Deferred {
    fn bytes(&self) -> Bytes {
        bytes_in_slot(self.kind, self.header_size, self.payload_size)
    }

    /// The command that writes a LONG message's payload.
    pub fn write(&self) -> Command {
        let mut command = Command::new(Op::WRITE, self.peer);
        command.remote = self.place;
        command.local = self.payload.cast_mut();
        command.size = self.payload_size as u64;
        command
    }

    /// Sends it. False: there is no credit.
    pub fn send(&self, post: &AmSender) -> Result<bool> {
        let message_sender = post.message_sender(self.peer)?;
        if !message_sender.head().has_handler(self.id.into()) {
            fail!(
                ERR_NO_HANDLER,
                "id is {}, expected a handler that rank {} has",
                self.id,
                self.peer
            );
        }
        let place = encode(self.place, self.payload_size);
        let payload = match self.kind {
            MEDIUM if self.payload_size == 0 => &[],
            // SAFETY: the promise of Admitted::begin().
            MEDIUM => unsafe { std::slice::from_raw_parts(self.payload, self.payload_size) },
            _ => &place[..],
        };
        let header = &self.header[..self.header_size];
        let (id, kind) = (self.id, self.kind as u8);
        let absent = self.kind == MEDIUM && self.payload.is_null();
        let frame = Frame { id, kind, tag: self.tag, header, payload, label: self.label, absent };
        Ok(post.send(message_sender, &frame))
    }

    /// Fires the local completion after the message was sent or has failed. After a failure it also
    /// ends the message.
    pub fn end(self, post: &AmSender, status: Status) {
        let reported = !self.on_local.is_nothing();
        if status != Status::OK && self.tag != 0 {
            post.end_reported(self.tag, status, reported);
        } else if status != Status::OK && !reported {
            post.note_unreported(self.peer, status);
        }
        // SAFETY: the promise of Admitted::begin(); the message ends here, once.
        unsafe { self.on_local.fire(status, post.routes.waiters()) };
    }
}

/// Takes the message of a command.
///
/// # Safety
/// The address comes from Box::into_raw() of a Deferred, and is taken once.
pub unsafe fn take_deferred(address: *mut u8) -> Box<Deferred> {
    // SAFETY: as the caller promises.
    unsafe { Box::from_raw(address.cast::<Deferred>()) }
}

/// The form of a payload's address in a slot.
pub fn encode(address: Address, size: usize) -> [u8; PLACE] {
    let mut bytes = [0; PLACE];
    let words = [address.offset, address.key, size as u64];
    for (place, word) in bytes.chunks_exact_mut(8).zip(words) {
        place.copy_from_slice(&word.to_ne_bytes());
    }
    bytes
}
