//! A message as its handler sees it.

use crate::engine::messages::sender::MessagePost;
use crate::engine::messages::{BULK, HEADER, LONG, MEDIUM, PLACE};
use crate::fail;
use crate::transport::address::Address;
use crate::transport::frame::{Arrived, Frame, LARGEST};
use crate::util::pin::pin;
use crate::util::reserve::boxed;
use crate::util::status::{Error, Result, Status};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// What a message brings besides its header.
#[derive(Clone, Copy)]
pub enum Body {
    /// Bytes that are here.
    Here(*const u8, usize),
    /// Bytes that are still with the sender.
    Bulk {
        /// Where.
        address: Address,
        /// How many.
        size: usize,
    },
}

/// See the head of the file.
pub struct Message {
    /// From an Arc that the maker of the message holds as long as the message lives.
    post: *const MessagePost,
    /// The rank that sent it.
    pub source: u32,
    /// For which handler.
    pub id: u16,
    /// What its sender calls it.
    pub label: u16,
    /// What it brings: MEDIUM, LONG, BULK.
    pub kind: u8,
    /// It answers a message of this rank's.
    pub response: bool,
    /// Of the request, where its sender waits for its end.
    tag: u64,
    header: (*const u8, usize),
    body: Body,
    /// The payload lies in the receiver's own memory and stays there.
    long: bool,
    /// Nobody has answered it, and nobody has taken over the right to.
    open: AtomicBool,
    responded: AtomicBool,
    retained: AtomicBool,
    /// Of a message that was retained: its bytes, header first, and its own hold on the post.
    copy: Option<(Arc<MessagePost>, Box<[u64]>)>,
}

/// Reads where a payload is.
fn place(bytes: (*const u8, usize)) -> Result<(Address, usize)> {
    if bytes.1 != PLACE {
        return Err(Error::bare(Status::ERR_INVALID));
    }
    // SAFETY: there are PLACE bytes.
    let [offset, key, size] = unsafe { bytes.0.cast::<[u64; 3]>().read_unaligned() };
    Ok((Address { offset, key }, size as usize))
}

impl Message {
    /// What has arrived, as a message; the bytes are used until the message goes.
    #[inline(always)]
    pub fn new(post: &Arc<MessagePost>, arrived: &Arrived) -> Result<Message> {
        let Arrived { id, label, kind, source, header, payload, response, .. } = *arrived;
        // A response ends its request, whose tag it bears; nobody waits for its own end.
        let tag = if response { 0 } else { arrived.tag };
        let body = match u32::from(kind) {
            MEDIUM => Body::Here(payload.0, payload.1),
            _ => Self::body_elsewhere(post, kind.into(), payload)?,
        };
        let (post, open) = (Arc::as_ptr(post), AtomicBool::new(tag != 0));
        let (responded, retained) = (AtomicBool::new(false), AtomicBool::new(false));
        let (long, copy) = (u32::from(kind) == LONG, None);
        #[rustfmt::skip]
        let message = Message {
            post, source, id, label, kind, response, tag, header, body, long, open, responded, retained, copy,
        };
        Ok(message)
    }

    #[inline(never)]
    fn body_elsewhere(post: &MessagePost, kind: u32, payload: (*const u8, usize)) -> Result<Body> {
        Ok(match kind {
            LONG => {
                let (address, size) = place(payload)?;
                let _pinned = pin();
                match post.routes.own().find(address, size as u64) {
                    Some(bytes) => Body::Here(bytes, size),
                    None => return Err(Error::bare(Status::ERR_KEY)),
                }
            }
            BULK => {
                let (address, size) = place(payload)?;
                Body::Bulk { address, size }
            }
            _ => return Err(Error::bare(Status::ERR_INVALID)),
        })
    }

    fn post(&self) -> &MessagePost {
        // SAFETY: see the field.
        unsafe { &*self.post }
    }

    /// Its header.
    pub fn header(&self) -> (*const u8, usize) {
        self.header
    }

    /// Its payload, as far as it is here.
    pub fn payload(&self) -> (*const u8, usize) {
        match self.body {
            Body::Here(bytes, size) => (bytes, size),
            Body::Bulk { .. } => (std::ptr::null(), 0),
        }
    }

    /// What it brings.
    pub fn body(&self) -> Body {
        self.body
    }

    /// Whether the sender waits for its end.
    pub fn wants_reply(&self) -> bool {
        self.tag != 0
    }

    /// Answers, with bytes of the caller's.
    ///
    /// # Safety
    /// `data` is valid for reading `size` bytes.
    pub unsafe fn reply(&self, data: *const u8, size: usize) -> Result<()> {
        if !self.wants_reply() {
            return Ok(());
        }
        let most = self.post().reply_limit(self.source);
        if size > most && !self.post().routes.is_dead(self.source) {
            fail!(ERR_RANGE, "size is {size}, expected at most {most}, am_medium of the sender");
        }
        if !self.open.swap(false, Ordering::AcqRel) {
            fail!(ERR_STATE, "the message has been answered or retained before");
        }
        let bytes = match size {
            0 => &[],
            // SAFETY: as the caller promises.
            _ => unsafe { std::slice::from_raw_parts(data, size) },
        };
        self.post().reply(self.source, self.tag, Status::OK, bytes);
        Ok(())
    }

    /// Answers by a message that runs a handler at the sender. `kind` of the frame is MEDIUM; its
    /// tag is set here.
    pub fn respond(&self, frame: &Frame) -> Result<()> {
        if self.response {
            fail!(ERR_STATE, "the message is a response, to which there is none");
        }
        let retained = self.copy.is_some() || self.retained.load(Ordering::Acquire);
        let answered = self.wants_reply() && !self.open.load(Ordering::Acquire);
        if retained || answered || self.responded.swap(true, Ordering::AcqRel) {
            fail!(ERR_STATE, "the message has been answered or retained before");
        }
        // From here on the response ends the request, and no reply does.
        self.open.store(false, Ordering::Release);
        self.post().respond(self.source, &Frame { tag: self.tag, ..*frame });
        Ok(())
    }

    /// Whether a response of this size fits, and the sender runs a handler of this number, as far
    /// as it has been contacted.
    pub fn check_response(&self, id: u32, payload_size: usize) -> Result<()> {
        // The same for all ranks, so it is known before the contact.
        if payload_size > LARGEST {
            fail!(ERR_RANGE, "payload_size is {payload_size}, expected at most {LARGEST}");
        }
        let Ok(message_sender) = self.post().routes.fabric().message_sender(self.source) else {
            return Ok(());
        };
        let source = self.source;
        if !message_sender.head().has_handler(id) && !self.post().routes.is_dead(source) {
            fail!(ERR_NO_HANDLER, "id is {id}, and rank {source} has no such handler");
        }
        Ok(())
    }

    /// Ends it: sends an empty answer if one is owed.
    #[inline(always)]
    pub fn close(&self, status: Status) {
        // Most messages owe nothing, and need no atomic operation to know it.
        if self.wants_reply() {
            self.close_owing(status);
        }
    }

    #[inline(never)]
    fn close_owing(&self, status: Status) {
        if self.open.swap(false, Ordering::AcqRel) {
            self.post().reply(self.source, self.tag, status, &[]);
        }
    }
}

/// Makes a copy that outlives the handler and takes over the right to answer. Its header and
/// payload lie where they are valid as long as it is.
pub fn retain(message: &Message) -> Result<*mut Message> {
    let responded = message.responded.load(Ordering::Acquire);
    let answered = responded || message.wants_reply() && !message.open.load(Ordering::Acquire);
    if message.copy.is_some() || answered || message.retained.swap(true, Ordering::AcqRel) {
        fail!(ERR_STATE, "the message has been answered or retained before");
    }
    let (count, most) = &message.post().retained;
    let not_retained = |error| {
        count.fetch_sub(1, Ordering::Relaxed);
        message.retained.store(false, Ordering::Release);
        error
    };
    if count.fetch_add(1, Ordering::Relaxed) >= *most {
        let text = format!("{most} messages are retained, LLCL_AM_RETAINED, expected fewer");
        return Err(not_retained(Error::new(Status::ERR_NO_MEMORY, text)));
    }
    let (header, header_size) = message.header;
    let (from, inline) = match message.body {
        Body::Here(from, size) if !message.long => (from, size),
        _ => (std::ptr::null(), 0),
    };
    let words = HEADER / 8 + inline.div_ceil(8);
    let bytes = boxed("words of a retained message", (0..words).map(|_| 0_u64));
    let mut bytes = bytes.map_err(not_retained)?;
    let base: *mut u8 = bytes.as_mut_ptr().cast();
    let payload = base.wrapping_add(HEADER);
    // SAFETY: the message's bytes are valid, and the copy was made as large.
    unsafe {
        std::ptr::copy_nonoverlapping(header, base, header_size);
        if inline > 0 {
            std::ptr::copy_nonoverlapping(from, payload, inline);
        }
    }
    let body = if from.is_null() { message.body } else { Body::Here(payload, inline) };
    let open = AtomicBool::new(message.open.swap(false, Ordering::AcqRel));
    // SAFETY: the pointer is from an Arc that is held while the message lives.
    let hold = unsafe {
        Arc::increment_strong_count(message.post);
        Arc::from_raw(message.post)
    };
    let Message { post, source, id, label, kind, response, tag, long, .. } = *message;
    let (header, copy) = ((base.cast_const(), header_size), Some((hold, bytes)));
    let retained = AtomicBool::new(true);
    let responded = AtomicBool::new(false);
    #[rustfmt::skip]
    let copy = Message {
        post, source, id, label, kind, response, tag, header, body, long, open, responded, retained, copy,
    };
    Ok(Box::into_raw(Box::new(copy)))
}

/// Ends a retained message.
///
/// # Safety
/// It is from retain(), and nobody uses it any more.
pub unsafe fn release(message: *mut Message) {
    // SAFETY: as the caller promises.
    let message = unsafe { Box::from_raw(message) };
    message.close(Status::OK);
    message.post().retained.0.fetch_sub(1, Ordering::Relaxed);
}
