//! A message as its handler sees it.

use crate::engine::messages::sender::AmSender;
use crate::engine::messages::{BULK, HEADER, LONG, PLACE};
use crate::fail;
use crate::transport::address::Address;
use crate::transport::frame::{Arrived, Frame, LARGEST};
use crate::transport::memory::message_sender::ShortMessage;
use crate::util::counters::Counters;
use crate::util::pin::pin;
use crate::util::reserve::boxed;
use crate::util::status::{Error, Result, Status};
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

/// The payload of a message.
#[derive(Clone, Copy)]
pub enum Body {
    /// Bytes in memory of this process.
    Here(*const u8, usize),
    /// Bytes in the sender's memory.
    Bulk {
        /// Their remote address.
        address: Address,
        /// Their number.
        size: usize,
    },
}

/// See the head of the file. It has no destructor: the dispatcher makes it for a call of a handler
/// and calls close() after it.
#[repr(C)]
pub struct Message {
    /// From an Arc that the dispatcher, or the retained copy, holds as long as the message lives.
    post: *const AmSender,
    /// The received message in its slot, or the retained copy of it.
    arrived: Arrived,
    body: BodyPlace,
    /// ANSWERED, RESPONDED, RETAINED, COPY.
    state: AtomicU8,
}

/// The message was answered, or its retained copy has the right to answer.
const ANSWERED: u8 = 1;
/// It was answered by a response.
const RESPONDED: u8 = 2;
/// It was retained: a copy was made.
const RETAINED: u8 = 4;
/// It is such a copy.
const COPY: u8 = 8;

/// Where the payload is.
#[derive(Clone, Copy)]
enum BodyPlace {
    /// In the slot, with the header.
    Along,
    /// Elsewhere: in a region of this rank, or in the sender's memory.
    Elsewhere(Body),
}

/// A retained message with its bytes (the header, then the payload) and a reference to the post.
#[repr(C)]
struct Retained {
    /// The first field, so a pointer to it is a pointer to the Retained.
    message: Message,
    _hold: Arc<AmSender>,
    _bytes: Box<[u64]>,
}

/// Decodes the address in the payload of a message, see deferred::encode().
fn place(arrived: &Arrived) -> Result<(Address, usize)> {
    let (bytes, size) = arrived.payload();
    if size != PLACE {
        return Err(Error::bare(Status::ERR_INVALID));
    }
    // SAFETY: there are PLACE bytes, in the slot of the message.
    let [offset, key, size] = unsafe { bytes.cast::<[u64; 3]>().read_unaligned() };
    Ok((Address { offset, key }, size as usize))
}

impl Message {
    /// A message of kind MEDIUM. Its bytes stay in the slot, which must stay valid as long as the
    /// message.
    #[inline(always)]
    pub fn new(post: &Arc<AmSender>, arrived: &Arrived) -> Message {
        let (post, state) = (Arc::as_ptr(post), AtomicU8::new(0));
        Message { post, arrived: *arrived, body: BodyPlace::Along, state }
    }

    /// A message for renew(). `response`: all of them will be responses, or none.
    #[inline(always)]
    pub fn empty(post: &Arc<AmSender>, response: bool) -> Message {
        Message::new(post, &Arrived { response, ..Arrived::NONE })
    }

    /// Turns a closed message into the next one received; see new().
    #[inline(always)]
    pub fn renew(&mut self, arrived: Arrived) {
        debug_assert_eq!(self.arrived.response, arrived.response);
        self.arrived = Arrived { response: self.arrived.response, ..arrived };
        *self.state.get_mut() = 0;
    }

    /// Like new(), for the kinds LONG and BULK.
    #[cold]
    pub fn with_body(post: &Arc<AmSender>, arrived: &Arrived) -> Result<Message> {
        let body = match u32::from(arrived.kind()) {
            LONG => {
                let (address, size) = place(arrived)?;
                let _pinned = pin();
                match post.routes.own().find(address, size as u64) {
                    Some(bytes) => Body::Here(bytes, size),
                    None => return Err(Error::bare(Status::ERR_KEY)),
                }
            }
            BULK => {
                let (address, size) = place(arrived)?;
                Body::Bulk { address, size }
            }
            _ => return Err(Error::bare(Status::ERR_INVALID)),
        };
        Ok(Message { body: BodyPlace::Elsewhere(body), ..Message::new(post, arrived) })
    }

    fn post(&self) -> &AmSender {
        // SAFETY: see the field.
        unsafe { &*self.post }
    }

    /// An error in a forked child, which has a copy of the message. The parent answers it.
    #[inline(always)]
    fn must_be_own(&self) -> Result<()> {
        self.post().routes.gate().must_be_own()
    }

    /// An error for a response, which must not be answered.
    fn must_be_request(&self) -> Result<()> {
        if self.arrived.response {
            fail!(ERR_STATE, "the message is a response, expected a request");
        }
        Ok(())
    }

    /// The received frame.
    #[inline(always)]
    pub fn arrived(&self) -> &Arrived {
        &self.arrived
    }

    /// Its payload, if that is in memory of this process; else null and 0.
    pub fn payload(&self) -> (*const u8, usize) {
        match self.body() {
            Body::Here(bytes, size) => (bytes, size),
            Body::Bulk { .. } => (std::ptr::null(), 0),
        }
    }

    /// Its payload.
    pub fn body(&self) -> Body {
        match self.body {
            BodyPlace::Along => {
                let (bytes, size) = self.arrived.payload();
                Body::Here(bytes, size)
            }
            BodyPlace::Elsewhere(body) => body,
        }
    }

    /// Whether the sender waits for a reply. False for a response, although it has a tag: that of
    /// its request.
    #[inline(always)]
    pub fn wants_reply(&self) -> bool {
        self.arrived.tag() != 0 && !self.arrived.response
    }

    /// Sets a bit of the state and returns the old state.
    fn note(&self, bit: u8) -> u8 {
        // A read-modify-write: several threads may answer a retained message, and one succeeds.
        self.state.fetch_or(bit, Ordering::AcqRel)
    }

    /// Whether a bit of the state is set.
    fn is(&self, bit: u8) -> bool {
        self.state.load(Ordering::Acquire) & bit != 0
    }

    /// Sends a reply with the caller's bytes.
    ///
    /// # Safety
    /// `data` is valid for reading `size` bytes.
    pub unsafe fn reply(&self, data: *const u8, size: usize) -> Result<()> {
        self.must_be_own()?;
        self.must_be_request()?;
        if !self.wants_reply() {
            return Ok(());
        }
        let source = self.arrived.source();
        let most = self.post().reply_limit(source);
        if size > most && !self.post().routes.is_dead(source) {
            fail!(ERR_RANGE, "size is {size}, expected at most {most}, am_medium of the sender");
        }
        if self.note(ANSWERED) & ANSWERED != 0 {
            fail!(ERR_STATE, "the message has been answered or retained before");
        }
        let bytes = match size {
            0 => &[],
            // SAFETY: as the caller promises.
            _ => unsafe { std::slice::from_raw_parts(data, size) },
        };
        self.post().reply(source, self.arrived.tag(), Status::OK, bytes);
        Ok(())
    }

    /// Sends a response: a message that runs a handler at the requester. `kind` of the frame is
    /// MEDIUM; this function sets its tag.
    pub fn respond(&self, frame: &Frame) -> Result<()> {
        self.must_be_own()?;
        self.must_be_request()?;
        let answered = self.wants_reply() && self.is(ANSWERED);
        // With RESPONDED set, close() sends no reply: the response ends the request.
        if answered || self.is(RETAINED | COPY) || self.note(RESPONDED | ANSWERED) & RESPONDED != 0
        {
            fail!(ERR_STATE, "the message has been answered or retained before");
        }
        let (source, tag) = (self.arrived.source(), self.arrived.tag());
        self.post().respond(source, &Frame { tag, ..*frame });
        Ok(())
    }

    /// Like respond(), if the response can be sent at once, and the requester does not wait for its
    /// end. False: nothing has happened.
    #[inline(always)]
    pub fn respond_at_once(&self, frame: &Frame) -> bool {
        self.respond_freely(|post, source| post.respond_at_once(source, frame))
    }

    /// Like respond_at_once(), for a short response.
    #[inline(always)]
    pub fn respond_shortly(&self, response: &impl ShortMessage) -> bool {
        self.respond_freely(|post, source| post.respond_shortly(source, response))
    }

    #[inline(always)]
    fn respond_freely(&self, send: impl FnOnce(&AmSender, u32) -> bool) -> bool {
        // Without a tag only the handler's thread changes the state, see reply().
        if self.arrived.response || self.arrived.tag() != 0 || self.is(u8::MAX) {
            return false;
        }
        // In a forked child respond() reports the error.
        if !self.post().routes.gate().is_open() {
            return false;
        }
        let sent = send(self.post(), self.arrived.source());
        if sent {
            self.state.store(RESPONDED | ANSWERED, Ordering::Relaxed);
        }
        sent
    }

    /// The counters of the rank that has received it.
    #[inline(always)]
    pub fn counts(&self) -> &Counters {
        &self.post().counts
    }

    /// Fails if a response of this size does not fit, or if the requester, if it was contacted, has
    /// no handler of this number.
    pub fn check_response(&self, id: u32, payload_size: usize) -> Result<()> {
        // The limit is the same for all ranks, so it is checked before the contact.
        if payload_size > LARGEST {
            fail!(ERR_RANGE, "payload_size is {payload_size}, expected at most {LARGEST}");
        }
        let source = self.arrived.source();
        let Ok(message_sender) = self.post().routes.fabric().message_sender(source) else {
            return Ok(());
        };
        if !message_sender.head().has_handler(id) && !self.post().routes.is_dead(source) {
            fail!(ERR_NO_HANDLER, "id is {id}, expected a handler that rank {source} has");
        }
        Ok(())
    }

    /// Ends the message: sends an empty reply if the requester waits for one that was not sent.
    #[inline(always)]
    pub fn close(&self, status: Status) {
        // Most messages need no reply. For these this runs no atomic operation.
        if self.wants_reply() {
            self.close_unanswered(status);
        }
    }

    #[inline(never)]
    fn close_unanswered(&self, status: Status) {
        if self.note(ANSWERED) & ANSWERED == 0 {
            self.post().reply(self.arrived.source(), self.arrived.tag(), status, &[]);
        }
    }
}

/// Retains a message: makes a copy that outlives the handler and has the right to answer. The copy
/// has copies of the header and of a MEDIUM payload.
pub fn retain(message: &Message) -> Result<*mut Message> {
    message.must_be_own()?;
    let answered = message.is(RESPONDED) || message.wants_reply() && message.is(ANSWERED);
    if answered || message.is(COPY) || message.note(RETAINED) & RETAINED != 0 {
        fail!(ERR_STATE, "the message has been answered or retained before");
    }
    let (count, most) = &message.post().retained;
    let not_retained = |error| {
        count.fetch_sub(1, Ordering::Relaxed);
        message.state.fetch_and(!RETAINED, Ordering::Release);
        error
    };
    if count.fetch_add(1, Ordering::Relaxed) >= *most {
        let text = format!("{most} messages are retained, expected fewer (LLCL_AM_RETAINED)");
        return Err(not_retained(Error::new(Status::ERR_NO_MEMORY, text)));
    }
    let (header, header_size) = message.arrived.header();
    let (from, size) = match message.body {
        BodyPlace::Along => message.arrived.payload(),
        BodyPlace::Elsewhere(_) => (std::ptr::null(), 0),
    };
    let inline = if from.is_null() { 0 } else { size };
    let words = HEADER / 8 + inline.div_ceil(8);
    let bytes = boxed("words of a retained message", (0..words).map(|_| 0_u64));
    let mut bytes = bytes.map_err(not_retained)?;
    let base: *mut u8 = bytes.as_mut_ptr().cast();
    let payload = base.wrapping_add(HEADER);
    // SAFETY: the message's bytes are valid, and `bytes` has room for both.
    unsafe {
        std::ptr::copy_nonoverlapping(header, base, header_size);
        if inline > 0 {
            std::ptr::copy_nonoverlapping(from, payload, inline);
        }
    }
    // SAFETY: the pointer is from an Arc that is held while the message lives.
    let hold = unsafe {
        Arc::increment_strong_count(message.post);
        Arc::from_raw(message.post)
    };
    let payload = if from.is_null() { from } else { payload.cast_const() };
    let arrived = Arrived { header: base.cast_const(), payload, ..message.arrived };
    // The copy takes the right to answer, unless the message was answered before.
    let state = AtomicU8::new(COPY | message.note(ANSWERED) & ANSWERED);
    let message = Message { arrived, state, ..*message };
    let copy = Box::new(Retained { message, _hold: hold, _bytes: bytes });
    Ok(Box::into_raw(copy).cast())
}

/// Ends a retained message.
///
/// # Safety
/// It is a live message. If it is from retain(), no thread uses it any more.
pub unsafe fn release(message: *mut Message) -> Result<()> {
    // SAFETY: as the caller promises.
    let live = unsafe { &*message };
    live.must_be_own()?;
    if !live.is(COPY) {
        fail!(ERR_STATE, "the message is not retained, expected one from llcl_am_retain");
    }
    // SAFETY: it is from retain(), and as the caller promises.
    let retained = unsafe { Box::from_raw(message.cast::<Retained>()) };
    retained.message.close(Status::OK);
    retained.message.post().retained.0.fetch_sub(1, Ordering::Relaxed);
    Ok(())
}
