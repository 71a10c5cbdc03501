//! 12. Messages at their receiver: how a handler reads a message and answers it.

use crate::api::active::{LLCL_AM_IDS, LLCL_AM_MEDIUM, llcl_am_params_t, llcl_am_t};
use crate::api::guard::{given, guard, guard_of, guard_value};
use crate::api::memory::llcl_remote_t;
use crate::api::status::{LLCL_OK, llcl_status_t};
use crate::core::messages::{Counters, Parameters, Send, ShortMessage, bytes, check_response};
use crate::engine::messages::message::{Body, Message, release, retain};
use crate::fail;
use crate::transport::frame::{Envelope, Frame, HEADER, LARGEST};
use crate::util::narrow::narrow;
use std::ffi::c_void;

/// A bit of llcl_am_view_t::flags: the sender has asked for a reply, or for a completion when the
/// message has ended.
pub const LLCL_AM_WANTS_REPLY: u16 = 1;
/// A bit of llcl_am_view_t::flags: the message is a response, from llcl_am_respond.
pub const LLCL_AM_RESPONSE: u16 = 2;

/// The content of a message.
#[repr(C)]
pub struct llcl_am_view_t {
    /// The rank that sent it.
    pub source: u32,
    /// The number of its handler.
    pub id: u32,
    /// One of LLCL_AM_MEDIUM, LLCL_AM_LONG, LLCL_AM_BULK.
    pub kind: u32,
    /// The number that the sender has chosen, llcl_am_params_t::tag.
    pub tag: u16,
    /// LLCL_AM_WANTS_REPLY, LLCL_AM_RESPONSE.
    pub flags: u16,
    /// The bytes of its header, aligned to 8.
    pub header: *const c_void,
    /// How many.
    pub header_size: usize,
    /// MEDIUM: the payload; NULL: there is none (a payload of 0 bytes has an address). LONG: where
    /// the sender has written it. BULK: NULL.
    pub payload: *const c_void,
    /// Bytes of the payload, of any kind.
    pub payload_size: usize,
    /// BULK: the address of the payload at the sender. Read it by llcl_try_read_async, in the
    /// handler, or later if the message is retained. The sender keeps it until the message is
    /// answered or released. For other kinds the key is 0.
    pub address: llcl_remote_t,
}

/// Gives the whole content of a message in one call.
///
/// `message`: as the handler got it, or retained. The pointers in the view are valid as long as the
/// message; the payload of LONG is the program's own memory. `view`: the caller's struct, filled.
/// LLCL_OK; LLCL_ERR_INVALID: NULL. Any thread may call it.
/// From: the token of GASNet-EX, gex_Token_Info, with the message's arguments.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn llcl_am_view(
    message: *const llcl_am_t,
    view: *mut llcl_am_view_t,
) -> llcl_status_t {
    // SAFETY: the caller gives NULL or valid objects.
    let (Some(am), false) = (unsafe { message.as_ref() }, view.is_null()) else {
        return guard(|| {
            // SAFETY: as above.
            unsafe { given(message, "message").map(|_| ())? };
            // SAFETY: as above.
            unsafe { given(view, "view").map(|_| ()) }
        });
    };
    let arrived = am.0.arrived();
    let ((header, header_size), (payload, here)) = (arrived.header(), am.0.payload());
    let none = llcl_remote_t { offset: 0, key: 0 };
    let (address, payload_size) = match am.0.body() {
        Body::Here(..) => (none, here),
        Body::Bulk { address, size } => {
            (llcl_remote_t { offset: address.offset, key: address.key }, size)
        }
    };
    let wants = if am.0.wants_reply() { LLCL_AM_WANTS_REPLY } else { 0 };
    let filled = llcl_am_view_t {
        source: arrived.source(),
        id: arrived.id().into(),
        kind: arrived.kind().into(),
        tag: arrived.label(),
        flags: wants | if arrived.response { LLCL_AM_RESPONSE } else { 0 },
        header: header.cast(),
        header_size,
        payload: payload.cast(),
        payload_size,
        address,
    };
    // SAFETY: checked above, and as the caller promises.
    unsafe { view.write(filled) };
    LLCL_OK
}

/// Answers a message by a response: a message that runs a handler at the sender. A handler may
/// answer its message once, by a response or by a reply. The sender's completion fires when the
/// response's handler has returned.
///
/// The call never waits: if there is no credit, the library keeps the response and sends it later.
/// While a rank keeps 256 such responses it handles no further request.
/// `message`: as the handler got it, neither retained nor a response. `params`: id, tag, header and
/// payload, which are copied during the call; kind is LLCL_AM_MEDIUM, peer is ignored, all else is
/// 0.
/// LLCL_OK: the handler will run once, unless the sender dies or leaves; LLCL_ERR_STATE: the
/// message has been answered or retained before, or is a response, or this process is a forked
/// child; LLCL_ERR_NO_HANDLER: the sender has no handler of this number (found here only if the
/// sender has been contacted and shares memory with this rank);
/// LLCL_ERR_INVALID or LLCL_ERR_RANGE: llcl_last_error() says what is wrong with `params`. After an
/// error nothing has happened, and the message may be answered. If the sender has no handler when a
/// response arrives, the response is dropped, and the message ends with LLCL_ERR_NO_HANDLER. Only
/// the thread that runs the handler may call it, inside the handler. A response's handler must not
/// answer: LLCL_ERR_STATE.
/// From: gasnet_AMReply of GASNet.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn llcl_am_respond(
    message: *mut llcl_am_t,
    params: *const llcl_am_params_t,
) -> llcl_status_t {
    // SAFETY: as the caller promises.
    match unsafe { respond_at_once(message, params) } {
        true => LLCL_OK,
        // SAFETY: as the caller promises.
        false => unsafe { respond(message, params) },
    }
}

/// Responds by a message that can be sent at once. False: nothing has happened; respond() takes
/// other messages, and reports errors.
///
/// # Safety
/// As of llcl_am_respond.
#[inline(always)]
unsafe fn respond_at_once(message: *const llcl_am_t, params: *const llcl_am_params_t) -> bool {
    // SAFETY: the caller gives NULL or valid objects.
    let (Some(message), Some(p)) = (unsafe { (message.as_ref(), params.as_ref()) }) else {
        return false;
    };
    let message = &message.0;
    if has_places(p) {
        return false;
    }
    if p.short(|| message.counts()).is_some_and(|short| message.respond_shortly(&short)) {
        return true;
    }
    // SAFETY: the caller gives as many bytes.
    unsafe { respond_with_bytes(message, p) }
}

/// The rest of respond_at_once(), for messages with other bytes than a header of one word.
///
/// # Safety
/// As of llcl_am_respond.
#[inline(never)]
unsafe fn respond_with_bytes(message: &Message, params: &llcl_am_params_t) -> bool {
    // SAFETY: the caller gives as many bytes.
    unsafe { params.frame() }.is_some_and(|frame| message.respond_at_once(&frame))
}

/// The rest of llcl_am_respond, a function of its own so that llcl_am_respond saves few registers.
#[inline(never)]
unsafe fn respond(message: *mut llcl_am_t, params: *const llcl_am_params_t) -> llcl_status_t {
    guard_of("llcl_am_respond", || {
        // SAFETY: the caller gives NULL or valid objects.
        let (message, params) =
            unsafe { (&given(message, "message")?.0, given(params, "params")?) };
        // SAFETY: the caller gives what the interface demands.
        let send = unsafe { params.send() };
        check_response(&send)?;
        message.check_response(send.id, send.payload_size)?;
        // SAFETY: the caller gives as many bytes.
        let (header, payload) = unsafe {
            (bytes(send.header, send.header_size), bytes(send.payload, send.payload_size))
        };
        let (id, kind, label) = (send.id as u16, send.kind as u8, send.label);
        let absent = send.payload.is_null();
        message.respond(&Frame { id, kind, tag: 0, header, payload, label, absent })
    })
}

/// Answers a message by a reply: copies bytes to the sender, whose `on_complete` then fires.
///
/// The call never waits and needs no credit: the sender has reserved memory for the reply.
/// `message`: as the handler got it, or retained. `data`: the bytes, the caller's again when this
/// returns; NULL if there are none. `size`: how many, at most llcl_peer_info_t::am_medium of the
/// message's sender.
/// LLCL_OK, also if the sender did not ask for an answer or is dead; LLCL_ERR_STATE: the message
/// has been answered before, or is a response, or this process is a forked child;
/// LLCL_ERR_INVALID: NULL; LLCL_ERR_RANGE: more bytes than fit. Any thread may call it, in the
/// handler, or later if the message is retained.
/// From: the replies of von Eicken's active messages; unlike there, no handler runs at the sender.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn llcl_am_reply(
    message: *mut llcl_am_t,
    data: *const c_void,
    size: usize,
) -> llcl_status_t {
    guard(|| {
        // SAFETY: the caller gives NULL or a live message.
        let message = unsafe { &given(message, "message")?.0 };
        if data.is_null() && size > 0 {
            fail!(ERR_INVALID, "data is NULL, expected {size} bytes");
        }
        // SAFETY: the caller gives `size` bytes.
        unsafe { message.reply(data.cast(), size) }
    })
}

/// Retains a message beyond its handler: makes a copy of it. The program then answers the copy, not
/// the message.
///
/// `message`: as the handler got it. Returns the copy, to be ended by llcl_am_release; NULL if
/// `message` is NULL, was answered or retained before, as many messages are retained as
/// LLCL_AM_RETAINED allows, there is no memory, or this process is a forked child. The message's
/// slot is free again when the handler returns, so retained messages take no credit from the
/// senders. Only the thread that runs the handler may call it, inside the handler.
/// From: the data that a UCX callback may keep (UCS_INPROGRESS).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn llcl_am_retain(message: *mut llcl_am_t) -> *mut llcl_am_t {
    guard_value(std::ptr::null_mut(), || {
        // SAFETY: the caller gives NULL or a live message.
        let message = unsafe { &given(message, "message")?.0 };
        Ok(retain(message)?.cast())
    })
}

/// Ends a retained message. If it has not been answered, an empty answer is sent.
///
/// `message`: from llcl_am_retain; ended by this call, which must come before llcl_finalize of the
/// context.
/// LLCL_OK; LLCL_ERR_INVALID: NULL; LLCL_ERR_STATE: the message that a handler got, which the
/// library ends itself, or this process is a forked child. Any thread may call it.
/// From: ucp_am_data_release of UCX.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn llcl_am_release(message: *mut llcl_am_t) -> llcl_status_t {
    guard(|| {
        // SAFETY: the caller gives NULL or a live message.
        unsafe { given(message, "message")? };
        // SAFETY: as above; a retained one is not used any more.
        unsafe { release(message.cast()) }
    })
}

impl llcl_am_params_t {
    /// The message for the shortest path. None: it is not MEDIUM, or it has another header than one
    /// word, or a payload, a reply or a completion. `counts`: the counters of its sender.
    #[inline(always)]
    pub(super) fn short<'a>(
        &'a self,
        counts: impl Fn() -> &'a Counters,
    ) -> Option<impl ShortMessage> {
        let more = self.payload.addr() | self.payload_size | (self.header_size ^ size_of::<u64>());
        let is_short = uncommon(self) | more as u64 == 0 && !narrow(&self.header).is_null();
        is_short.then_some(Shortest(self, counts))
    }

    /// The frame of a MEDIUM message for a short path. None: the message is of another kind, has
    /// flags, a reply or a completion, or a parameter is invalid. The long path takes it, and
    /// reports errors.
    ///
    /// # Safety
    /// Header and payload are valid for reading.
    #[inline(always)]
    pub(super) unsafe fn frame(&self) -> Option<Frame<'_>> {
        let (header_size, payload_size) = (self.header_size, self.payload_size);
        let missing = self.header.is_null() & (header_size != 0)
            | (self.payload.is_null() & (payload_size != 0));
        if uncommon(self) != 0
            || missing
            || header_size > HEADER
            || payload_size > LARGEST
            || self.id >= LLCL_AM_IDS
        {
            return None;
        }
        let (id, kind, absent) = (self.id as u16, LLCL_AM_MEDIUM as u8, self.payload.is_null());
        // SAFETY: as the caller promises.
        let (header, payload) = unsafe {
            (bytes(self.header.cast(), header_size), bytes(self.payload.cast(), payload_size))
        };
        Some(Frame { id, kind, tag: 0, header, payload, label: self.tag, absent })
    }

    /// The message with these parameters.
    ///
    /// # Safety
    /// As of Send::new(), for the pointers of these parameters.
    #[inline(always)]
    pub(super) unsafe fn send(&self) -> Send {
        let parameters = Parameters {
            peer: self.peer,
            flags: self.flags,
            id: self.id,
            kind: self.kind,
            label: self.tag,
            header: self.header.cast(),
            header_size: self.header_size,
            payload: self.payload.cast(),
            payload_size: self.payload_size,
            source: self.source.address(),
            destination: self.destination.address(),
            reply: self.reply.cast(),
            reply_capacity: self.reply_capacity,
            reply_size: self.reply_size,
            on_local: *self.on_local.as_engine(),
            on_complete: *self.on_complete.as_engine(),
        };
        // SAFETY: as the caller promises.
        unsafe { Send::new(parameters) }
    }
}

/// Whether a message has something that the short paths do not handle; 0: no. All fields are joined
/// into one number, because a branch for each field would cost as much as reading it.
#[inline(always)]
fn uncommon(p: &llcl_am_params_t) -> u64 {
    let what = u64::from(p.flags | p.kind)
        | p.on_local.as_engine().head()
        | p.on_complete.as_engine().head();
    what | (p.reply.addr() | p.reply_capacity | p.reply_size.addr()) as u64
}

/// Whether a message names memory of the sender or of the peer, which MEDIUM messages do not use.
#[inline(always)]
fn has_places(p: &llcl_am_params_t) -> bool {
    let (from, to) = (&p.source, &p.destination);
    from.offset | from.key | to.offset | to.key != 0
}

/// A message with a header of one word and nothing else: its parameters, and the counters of its
/// sender.
struct Shortest<'a, C>(&'a llcl_am_params_t, C);

impl<'a, C: Fn() -> &'a Counters> ShortMessage for Shortest<'a, C> {
    #[inline(always)]
    fn id(&self) -> u32 {
        narrow(&self.0.id)
    }

    #[inline(always)]
    fn counts(&self) -> &Counters {
        (self.1)()
    }

    #[inline(always)]
    fn envelope(&self, origin: u64) -> Envelope {
        Envelope::bare(origin, size_of::<u64>(), self.id(), narrow(&self.0.tag))
    }

    #[inline(always)]
    unsafe fn write(&self, to: *mut u64) {
        // SAFETY: as the caller promises; the program gives the bytes of the header, 8 of them.
        unsafe { to.write(narrow(&self.0.header).cast::<u64>().read_unaligned()) };
    }
}
