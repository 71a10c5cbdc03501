//! From a request for an active message to the slot at its receiver: the checks, the short path,
//! and the long path through the lane.

use crate::core::context::Context;
use crate::core::poster::{Later, Poster};
use crate::core::submit::{Accepted, FLAG_DEFER, FLAG_PARK, check_completion, check_flags};
use crate::engine::by_caller::{self, Local, Outcome};
use crate::engine::command::{Command, Op};
use crate::engine::completion::{self, Completion};
use crate::engine::lane::Execution;
use crate::engine::messages::deferred::{Admitted, Deferred, encode, take_deferred};
use crate::engine::messages::requests::Waiting;
use crate::engine::messages::{BULK, HEADER, Handler, LONG, MEDIUM};
use crate::engine::routes::Routes;
use crate::fail;
use crate::transport::address::{ANY, Address, Key};
use crate::transport::carrier::{Bytes, Peer};
use crate::transport::frame::{Class, Frame, IDS};
pub use crate::transport::memory::message_sender::ShortMessage;
use crate::transport::memory::message_sender::{MessageSender, Short, Small};
use crate::transport::port::Reach;
pub use crate::util::counters::Counters;
use crate::util::pin::{self, pin};
use crate::util::reserve;
use crate::util::status::{Error, Result, Status};
use std::ffi::c_void;

mod send;
mod timed;
mod wait;

pub use send::{Parameters, Send};
pub use wait::Look;

impl Context {
    /// Sets or removes a handler.
    ///
    /// # Safety
    /// Any thread may call the handler with `data` until a later call for this number has returned,
    /// or the context has ended.
    pub unsafe fn am_register(
        &self,
        id: u32,
        handler: Option<Handler>,
        data: *mut c_void,
    ) -> Result<()> {
        self.must_be_open()?;
        reserve::must_be_left()?;
        self.handler_thread.start()?;
        self.dispatcher.register(id, handler, data)
    }

    /// Sends a short message, if that is possible at once. None: the message must take a longer
    /// path, which also reports errors.
    #[inline(always)]
    pub fn am_shortly(&self, peer: u32, message: &impl ShortMessage) -> Option<Status> {
        // There is no short path in offload mode and during finalize, nor to a peer that was never
        // sent to or is dead.
        let sender = self.quick.short_sender(peer)?;
        // None in the handler of a response.
        let own = pin::shown_number()?;
        match sender.send_short(message, own) {
            Short::Sent => Some(Status::OK),
            Short::Unfinished(ticket) => Some(am_finish(sender, ticket, self.counts())),
            Short::Refused => None,
        }
    }

    /// The counters.
    #[inline(always)]
    pub fn counts(&self) -> &Counters {
        // SAFETY: the post keeps them, and the context the post.
        unsafe { &*self.quick.counts }
    }

    /// Sends a message without reply and completions, if that is possible at once. False: it must
    /// take the long path, which also reports errors.
    #[inline(always)]
    pub fn am_quickly(&self, peer: u32, frame: &Frame) -> bool {
        // Without a closure, which would not be inlined.
        if let Some(small) = Small::of(frame, self.counts())
            && self.am_shortly(peer, &small).is_some()
        {
            return true;
        }
        // There is no quick path in offload mode and during finalize.
        if !self.quick.has(peer) || completion::in_response() {
            return false;
        }
        let sender = self.post.ready_sender(peer, frame).filter(|sender| sender.admits(false));
        sender.is_some_and(|sender| self.post.send_in_turn(sender, frame))
    }

    /// Sends or parks the message; an error says why it was not accepted.
    pub fn am_try(&self, send: &Send) -> Result<()> {
        let post = || self.poster.am_submit(send).map(|()| Accepted::Fires);
        self.accept(send.flags, || Parked::of(&self.routes, send), post).map(drop)
    }
}

impl Poster {
    /// Sends the message or puts it into the queue.
    fn am_submit(&self, send: &Send) -> Result<()> {
        if completion::in_response() {
            fail!(ERR_STATE, "the handler of a response may not send");
        }
        check(send)?;
        let message_sender = self.post.message_sender(send.peer)?;
        check_peer(send, message_sender)?;
        let local = payload_of(send);
        if send.kind == BULK {
            // The peer will read the bytes, so they must be in a region of this rank.
            local.check(&self.routes, send.payload_size as u64)?;
        }
        let waits = send.kind == BULK
            || send.on_complete.kind != completion::NONE
            || !send.reply.is_null()
            || !send.reply_size.is_null();
        let tag = if waits { self.begin_waiting(send)? } else { 0 };
        match self.am_send(send, message_sender, local, tag) {
            // Another thread has ended the message meanwhile, since the peer died, and fires
            // on_complete. So the message counts as accepted.
            Err(_) if tag != 0 && !self.post.forget(tag) => {
                if send.kind != BULK {
                    // SAFETY: checked above, and the user keeps it valid until it has fired.
                    unsafe { send.on_local.fire(Status::ERR_PEER_DEAD, self.routes.waiters()) };
                }
                Ok(())
            }
            end => end,
        }
    }

    /// Makes the entry that waits for the end of the message, and returns its tag.
    fn begin_waiting(&self, send: &Send) -> Result<u64> {
        if self.post.pending.begin_use() {
            // Wakes the progress thread, which polls for replies only after the first such entry.
            self.routes.bell().ring();
        }
        let on_local = if send.kind == BULK { send.on_local } else { Completion::NOTHING };
        let waiting = Waiting {
            peer: send.peer,
            reply: send.reply,
            capacity: send.reply_capacity,
            reply_size: send.reply_size,
            on_local,
            on_complete: send.on_complete,
        };
        // SAFETY: check() has checked the completions, and the user keeps what they name.
        let Some((tag, in_use)) = (unsafe { self.post.pending.insert(waiting) }) else {
            return Err(Error::bare(Status::RETRY_NO_TAG));
        };
        self.post.counts.requests_high_water.raise(in_use);
        if self.routes.is_dead(send.peer) && self.post.forget(tag) {
            fail!(ERR_PEER_DEAD, "rank {} has died or has left", send.peer);
        }
        Ok(tag)
    }

    fn am_send(
        &self,
        send: &Send,
        message_sender: &MessageSender<'static>,
        local: Local,
        tag: u64,
    ) -> Result<()> {
        if send.flags & FLAG_DEFER != 0 || self.lane.execution() == Execution::Offload {
            return self.am_queue(send, message_sender, local, tag);
        }
        let long = send.kind == LONG;
        let no_credit = || Err(Error::bare(Status::RETRY_NO_CREDIT));
        if !message_sender.admits(true) {
            return no_credit();
        }
        if long {
            // Checked before the write, so that a refused attempt copies nothing.
            if !self.routes.fabric().has_credit(message_sender, Class::Requests, send.bytes()) {
                message_sender.give_turn_back();
                return no_credit();
            }
            let write = write_of(send);
            // SAFETY: the payload is the caller's, valid during the call.
            let written = unsafe { by_caller::attempt(&self.routes, &write, local) };
            let written = written.and_then(|outcome| match outcome {
                Outcome::Done => Ok(true),
                _ => self.am_queue(send, message_sender, local, tag).map(|()| false),
            });
            if !written.inspect_err(|_| message_sender.give_turn_back())? {
                return Ok(());
            }
        }
        let address = if send.kind == BULK { send.source } else { send.destination };
        let place = encode(address, send.payload_size);
        // SAFETY: the caller's bytes, valid during the call.
        let header = unsafe { bytes(send.header, send.header_size) };
        let payload = match send.kind {
            // SAFETY: as above.
            MEDIUM => unsafe { bytes(send.payload, send.payload_size) },
            _ => &place,
        };
        let (id, kind, label) = (send.id as u16, send.kind as u8, send.label);
        let absent = send.kind == MEDIUM && send.payload.is_null();
        let frame = Frame { id, kind, tag, header, payload, label, absent };
        if !self.post.send_in_turn(message_sender, &frame) {
            return no_credit();
        }
        if send.kind != BULK {
            // SAFETY: checked before, and the user keeps it valid until it has fired.
            unsafe { send.on_local.fire(Status::OK, self.routes.waiters()) };
        }
        Ok(())
    }

    /// Puts the message into the command queue.
    fn am_queue(
        &self,
        send: &Send,
        message_sender: &MessageSender<'static>,
        local: Local,
        tag: u64,
    ) -> Result<()> {
        if send.kind == LONG
            && self.routes.known(send.peer).is_some_and(|it| it.reach == Reach::Wire)
        {
            // The lane does not look up the key of a peer behind a wire, so this checks the key.
            by_caller::check(&self.routes, &write_of(send))?;
        }
        let mut header = [0; HEADER];
        // SAFETY: the caller's bytes, valid during the call.
        let given = unsafe { bytes(send.header, send.header_size) };
        header[..given.len()].copy_from_slice(given);
        let asleep = {
            // The pin keeps the region until the command is in the queue, where a flush finds it.
            let _pinned = pin();
            let payload = local.resolve(&self.routes, send.payload_size as u64)?;
            // SAFETY: check() has checked on_local; the user keeps what it names, and the payload.
            let admitted = unsafe { Admitted::begin(&self.post, message_sender, send.peer) };
            let Some(admitted) = admitted else {
                return Err(Error::bare(Status::RETRY_NO_CREDIT));
            };
            let late = Box::new(Deferred {
                _admitted: admitted,
                peer: send.peer,
                id: send.id as u16,
                label: send.label,
                kind: send.kind,
                header,
                header_size: given.len(),
                payload,
                payload_size: send.payload_size,
                place: if send.kind == BULK { send.source } else { send.destination },
                needs_data: send.kind == LONG,
                tag,
                on_local: if send.kind == BULK { Completion::NOTHING } else { send.on_local },
                order: 0,
            });
            let mut command = Command::new(Op::MESSAGE, send.peer);
            command.local = Box::into_raw(late).cast();
            // SAFETY: made above; the queue has not taken the command.
            let discard = |_: &Error| drop(unsafe { take_deferred(command.local) });
            // SAFETY: the command has the box, and no completions.
            unsafe { self.lane.put(&command, &[]) }.inspect_err(discard)?
        };
        match self.lane.execution() == Execution::Auto && send.flags & FLAG_DEFER == 0 {
            true => self.lane.wake_executor(asleep),
            false => self.lane.leave_to_others(asleep),
        }
        Ok(())
    }
}

/// See Short::Unfinished. It returns a status, so that this call can be a caller's last step.
#[inline(never)]
fn am_finish(sender: &MessageSender<'static>, ticket: u64, counts: &Counters) -> Status {
    sender.finish_short(ticket, counts);
    Status::OK
}

/// A message that is parked, with its header.
struct Parked {
    send: Send,
    header: [u8; HEADER],
}

// SAFETY: the pointers lead to memory of the user, which any thread may use until the completion.
unsafe impl std::marker::Send for Parked {}
// SAFETY: as above; nothing in it changes.
unsafe impl Sync for Parked {}

impl Parked {
    /// A copy of a message whose header check() has accepted. Err: the payload is nowhere.
    fn of(routes: &Routes, send: &Send) -> Result<Parked> {
        payload_of(send).check(routes, send.payload_size as u64)?;
        let mut parked = Parked { send: *send, header: [0; HEADER] };
        // SAFETY: the caller's bytes, valid during the call.
        let header = unsafe { bytes(send.header, send.header_size) };
        parked.header[..header.len()].copy_from_slice(header);
        Ok(parked)
    }
}

impl Later for Parked {
    fn peer(&self) -> u32 {
        self.send.peer
    }

    fn post(&self, poster: &Poster) -> Result<()> {
        poster.am_submit(&Send(Parameters { header: self.header.as_ptr(), ..*self.send }))
    }

    fn completions(&self) -> [Completion; 2] {
        [self.send.on_local, self.send.on_complete]
    }

    fn waits_for_slots<'a>(&self, poster: &'a Poster) -> Option<(&'a Peer, Bytes)> {
        let Parameters { kind, flags, peer, .. } = *self.send;
        // A message that the lane sends waits for slots in the lane.
        let by_caller = flags & FLAG_DEFER == 0 && poster.lane.execution() != Execution::Offload;
        let sender = poster.routes.fabric().known_sender(peer);
        sender.filter(|_| by_caller && kind != LONG).map(|it| (it, self.send.bytes()))
    }
}

/// Where the payload is.
fn payload_of(send: &Send) -> Local {
    match send.kind {
        MEDIUM => Local::Pointer(send.payload.cast_mut()),
        _ => Local::Region(send.source),
    }
}

/// The caller's bytes as a slice.
///
/// # Safety
/// `from` is valid for reading `size` bytes while the slice is used.
#[inline(always)]
pub unsafe fn bytes<'a>(from: *const u8, size: usize) -> &'a [u8] {
    match size {
        0 => &[],
        // SAFETY: as the caller promises.
        _ => unsafe { std::slice::from_raw_parts(from, size) },
    }
}

fn write_of(send: &Send) -> Command {
    let mut write = Command::new(Op::WRITE, send.peer);
    write.remote = send.destination;
    write.size = send.payload_size as u64;
    write
}

/// Checks the parameters, as far as that is possible without the peer.
fn check(send: &Send) -> Result<()> {
    let Parameters { flags, id, kind, header_size, payload_size, .. } = **send;
    check_flags(flags, FLAG_DEFER | FLAG_PARK)?;
    if id as usize >= IDS {
        fail!(ERR_INVALID, "id is {id}, expected a number below {IDS}");
    }
    if kind > BULK {
        fail!(ERR_INVALID, "kind is {kind}, expected one of LLCL_AM_*");
    }
    if header_size > HEADER {
        fail!(ERR_RANGE, "header_size is {header_size}, expected at most {HEADER}");
    }
    if header_size > 0 && send.header.is_null() {
        fail!(ERR_INVALID, "header is NULL, expected {header_size} bytes");
    }
    if kind == MEDIUM && payload_size > 0 && send.payload.is_null() {
        fail!(ERR_INVALID, "payload is NULL, expected {payload_size} bytes");
    }
    if kind != MEDIUM && !send.payload.is_null() {
        let payload = send.payload;
        fail!(ERR_INVALID, "payload is {payload:?}, expected NULL: this kind takes a source");
    }
    let is_outside =
        Key(send.source.key) == ANY || payload_size == 0 && send.source == Address::NOWHERE;
    if kind == BULK && is_outside {
        fail!(ERR_INVALID, "source is no place in a region, where the peer could read it");
    }
    if send.reply.is_null() && send.reply_capacity > 0 {
        fail!(ERR_INVALID, "reply is NULL, expected {} bytes", send.reply_capacity);
    }
    let mut calls = 0;
    for (completion, name) in [(&send.on_local, "on_local"), (&send.on_complete, "on_complete")] {
        check_completion(completion, name)?;
        calls += usize::from(completion.kind == completion::CALL);
    }
    if !completion::has_room(calls) {
        return Err(Error::bare(Status::RETRY_QUEUE_FULL));
    }
    Ok(())
}

/// Checks the parameters of a response.
pub fn check_response(send: &Send) -> Result<()> {
    check(send)?;
    if send.kind != MEDIUM || send.flags != 0 {
        let (kind, flags) = (send.kind, send.flags);
        fail!(ERR_INVALID, "kind is {kind} and flags is {flags:#x}, expected LLCL_AM_MEDIUM and 0");
    }
    let nobody = send.on_local.is_nothing() && send.on_complete.is_nothing();
    if !nobody || !send.reply.is_null() || !send.reply_size.is_null() {
        fail!(ERR_INVALID, "reply, reply_size, on_local or on_complete is set, expected none");
    }
    if send.source != Address::NOWHERE || send.destination != Address::NOWHERE {
        fail!(ERR_INVALID, "source or destination is set, expected neither for a response");
    }
    Ok(())
}

/// Checks the parameters against the peer's limits.
fn check_peer(send: &Send, message_sender: &MessageSender<'_>) -> Result<()> {
    let (size, most) = (send.payload_size, message_sender.largest());
    if send.kind == MEDIUM && size > most {
        fail!(ERR_RANGE, "payload_size is {size}, expected at most {most}, am_payload of the peer");
    }
    if !message_sender.head().has_handler(send.id) {
        fail!(ERR_NO_HANDLER, "id is {}, expected a handler that rank {} has", send.id, send.peer);
    }
    Ok(())
}

#[cfg(all(test, not(loom)))]
mod tests;
