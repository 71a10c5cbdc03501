//! 10. Active messages: a function at the peer is called with a few bytes, and may answer.
//!
//! A receiver owns a fixed number of message slots, whatever the number of senders; a sender takes a
//! slot by an atomic operation on a counter before it sends, and is told LLCL_RETRY_NO_CREDIT while
//! there is none. docs/flow-control.md has the protocol and its policies.
//!
//! Messages of one sender to one peer may be handled in any order.

use crate::api::completion::llcl_completion_t;
use crate::api::guard::{given, guard, guard_value};
use crate::api::life::llcl_context_t;
use crate::api::memory::{llcl_local_t, llcl_remote_t};
use crate::api::status::{LLCL_OK, llcl_status_t};
use crate::core::context::Context;
use crate::core::messages::Send;
use crate::engine::completion::in_callback;
use crate::engine::messages::Handler;
use crate::engine::messages::message::{Body, Message, release, retain};
use crate::fail;
use crate::util::status::Result;
use std::ffi::c_void;

/// Handlers have numbers below this one.
pub const LLCL_AM_IDS: u32 = 256;
/// Most bytes of a header.
pub const LLCL_AM_HEADER: u32 = 64;

/// The payload travels in the message's slot: up to llcl_capabilities_t::am_medium bytes, or none.
pub const LLCL_AM_MEDIUM: u32 = 0;
/// The payload is written to an address of the peer before the handler runs.
pub const LLCL_AM_LONG: u32 = 1;
/// The payload, of any size, stays where it is; the receiver reads it when it wants to.
pub const LLCL_AM_BULK: u32 = 2;

/// A message, as its handler sees it.
pub struct llcl_am_t(Message);

/// A handler. `message` is valid until the handler returns; see llcl_am_retain. It may post requests
/// by the try functions, messages included, and must not block.
pub type llcl_am_handler_fn =
    Option<unsafe extern "C" fn(message: *mut llcl_am_t, data: *mut c_void)>;

/// A message to be sent. Set all of it to 0 first, then what is wanted.
#[repr(C)]
pub struct llcl_am_params_t {
    /// The rank to send to; it may be the calling one.
    pub peer: u32,
    /// 0 or LLCL_FLAG_DEFER.
    pub flags: u32,
    /// The number of the handler at the peer.
    pub id: u32,
    /// One of LLCL_AM_MEDIUM, LLCL_AM_LONG, LLCL_AM_BULK.
    pub kind: u32,
    /// Bytes for the handler, copied during the call. NULL if there are none.
    pub header: *const c_void,
    /// How many, at most LLCL_AM_HEADER.
    pub header_size: usize,
    /// MEDIUM: the payload, any memory of the caller; NULL if there is none. Else NULL.
    pub payload: *const c_void,
    /// Bytes of the payload, of any kind.
    pub payload_size: usize,
    /// LONG and BULK: the payload, in a region of the caller.
    pub source: llcl_local_t,
    /// LONG: where it is written, in a region of the peer.
    pub destination: llcl_remote_t,
    /// Where the bytes of the reply go; NULL: none are wanted.
    pub reply: *mut c_void,
    /// How many bytes there is place for.
    pub reply_capacity: usize,
    /// Where the size of the reply goes before `on_complete` fires; may be NULL.
    pub reply_size: *mut usize,
    /// Fires when payload and source may be reused; of a BULK message when the peer has done with it.
    pub on_local: llcl_completion_t,
    /// Fires when the handler has returned; if it has retained the message, when it has been
    /// answered or released. The reply is there then.
    pub on_complete: llcl_completion_t,
}

impl llcl_am_params_t {
    /// The same as the core knows it.
    #[inline(always)]
    fn send(&self) -> Send {
        Send {
            peer: self.peer,
            flags: self.flags,
            id: self.id,
            kind: self.kind,
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
        }
    }
}

/// Sets, replaces or removes a handler.
///
/// `context`: a live context. `id`: below LLCL_AM_IDS. `handler`: the function; NULL: removes it, and
/// messages for this number end with LLCL_ERR_NO_HANDLER at their senders. `data`: its second argument,
/// may be NULL; stays the caller's.
/// LLCL_OK: from now on the new handler runs, and no call of the old one is under way, except the one
/// in which this is called; LLCL_RETRY_BUSY: inside a callback or handler, while another thread runs a
/// handler of this context: nothing has changed; LLCL_ERR_INVALID: NULL or no such number;
/// LLCL_ERR_STATE: the context is being finalized; LLCL_ERR_SYSTEM: the thread that runs handlers, which
/// the first call starts, cannot be started.
/// Any thread may call it. Handlers run on a thread that waits in this library (not in offload mode)
/// or on one of the library's own; one at a time in a context, or several at once where
/// LLCL_AM_HANDLERS is parallel.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn llcl_am_register(
    context: *mut llcl_context_t,
    id: u32,
    handler: llcl_am_handler_fn,
    data: *mut c_void,
) -> llcl_status_t {
    guard(|| {
        // SAFETY: the caller gives a live context.
        let context = unsafe { &given(context, "context")?.0 };
        // SAFETY: llcl_am_t holds a Message and nothing else; both types of function are called alike.
        let handler =
            unsafe { std::mem::transmute::<llcl_am_handler_fn, Option<Handler>>(handler) };
        context.am_register(id, handler, data)
    })
}

/// Sends an active message, if that is possible now.
///
/// The header is copied; the payload is the caller's again when `on_local` fires, which in auto and
/// direct mode is before the call returns, except for BULK.
/// `context`: a live context. `params`: read during the call only.
/// LLCL_OK: accepted; the handler will run once, unless the peer dies or leaves;
/// LLCL_RETRY_NO_CREDIT: all slots of the peer hold messages; LLCL_RETRY_QUEUE_FULL: the command queue
/// is full (offload mode, or LLCL_FLAG_DEFER); LLCL_RETRY_NO_TAG: as many messages wait for their
/// end as LLCL_AM_REQUESTS allows; LLCL_RETRY_BUSY: another thread uses what is needed (direct mode). On
/// a "try again" nothing has happened, but that the destination of a LONG message may have been written.
/// LLCL_ERR_INVALID, LLCL_ERR_RANGE, LLCL_ERR_KEY: llcl_last_error() says what is wrong with `params`;
/// LLCL_ERR_NO_HANDLER: the peer has no handler of this number; LLCL_ERR_PEER_DEAD: the peer has died or
/// has left; LLCL_ERR_STATE: the context is being finalized; LLCL_ERR_NO_MEMORY, LLCL_ERR_SYSTEM: the
/// peer's memory cannot be mapped.
/// The completion may report LLCL_ERR_NO_HANDLER (removed meanwhile), LLCL_ERR_RANGE (the reply has
/// more bytes than there is place for; none were copied), LLCL_ERR_KEY, LLCL_ERR_PEER_DEAD or
/// LLCL_ERR_CANCELED.
/// Any thread may call it, also inside a callback or a handler. Where the completions run: see the
/// conventions.
/// The slots and their credits follow Sumimoto and others' design of memory-saving communication by
/// remote atomics; registration and handlers are those of von Eicken's active messages.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn llcl_try_am_async(
    context: *mut llcl_context_t,
    params: *const llcl_am_params_t,
) -> llcl_status_t {
    // SAFETY: as the caller promises.
    if unsafe { quickly(context, params) } {
        return LLCL_OK;
    }
    // SAFETY: as the caller promises.
    unsafe { send(context, params, |context, send| context.am_try(send)) }
}

/// Sends an active message: like llcl_try_am_async, but tries until it is accepted, meanwhile running
/// handlers and working for the lane, and sleeping if it takes long.
///
/// `context` and `params`: as there. LLCL_OK or an error as there, never a "try again"; inside a
/// callback or handler LLCL_ERR_STATE. Any thread may call it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn llcl_am_async(
    context: *mut llcl_context_t,
    params: *const llcl_am_params_t,
) -> llcl_status_t {
    // SAFETY: as the caller promises.
    if !in_callback() && unsafe { quickly(context, params) } {
        return LLCL_OK;
    }
    // SAFETY: as the caller promises.
    unsafe { send(context, params, |context, send| context.am_until_accepted(send)) }
}

/// Sends an active message and waits until its handler has run and its reply is here: a remote
/// procedure call.
///
/// `context` and `params`: as for llcl_try_am_async; the completions must be llcl_no_completion().
/// LLCL_OK: done; else an error as there, or the one with which the message ended; inside a callback or
/// handler LLCL_ERR_STATE. Any thread may call it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn llcl_am(
    context: *mut llcl_context_t,
    params: *const llcl_am_params_t,
) -> llcl_status_t {
    // SAFETY: as the caller promises.
    unsafe { send(context, params, |context, send| context.am_and_wait(send)) }
}

/// Sends what is simple: a MEDIUM message whose end nobody waits for. False: it takes the long way,
/// which also tells what is wrong.
#[inline(always)]
unsafe fn quickly(context: *const llcl_context_t, params: *const llcl_am_params_t) -> bool {
    // SAFETY: the caller gives NULL or valid objects.
    let (Some(context), Some(p)) = (unsafe { (context.as_ref(), params.as_ref()) }) else {
        return false;
    };
    let plain = p.flags | p.kind == 0
        && p.on_local.as_engine().is_nothing()
        && p.on_complete.as_engine().is_nothing()
        && p.reply.is_null()
        && p.reply_capacity == 0
        && p.reply_size.is_null();
    // SAFETY: as the caller promises.
    plain
        && unsafe {
            context.0.am_quickly(
                (p.peer, p.id),
                (p.header.cast(), p.header_size),
                (p.payload.cast(), p.payload_size),
            )
        }
}

#[inline(never)]
unsafe fn send(
    context: *const llcl_context_t,
    params: *const llcl_am_params_t,
    tier: fn(&Context, &Send) -> Result<()>,
) -> i32 {
    guard(|| {
        // SAFETY: as the caller promises.
        let (context, params) = unsafe { (given(context, "context")?, given(params, "params")?) };
        tier(&context.0, &params.send())
    })
}

/// The rank that sent a message.
///
/// `message`: as the handler got it, or retained; for NULL the answer is UINT32_MAX. Any thread may
/// call it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn llcl_am_source(message: *const llcl_am_t) -> u32 {
    // SAFETY: the caller gives NULL or a live message.
    unsafe { message.as_ref() }.map_or(u32::MAX, |message| message.0.source)
}

unsafe fn bytes_of(
    message: *const llcl_am_t,
    size: *mut usize,
    which: fn(&Message) -> (*const u8, usize),
) -> *const c_void {
    // SAFETY: the caller gives NULL or a live message.
    let (bytes, length) =
        unsafe { message.as_ref() }.map_or((std::ptr::null(), 0), |message| which(&message.0));
    // SAFETY: the caller gives NULL or a place for a number.
    if let Some(size) = unsafe { size.as_mut() } {
        *size = length;
    }
    bytes.cast()
}

/// The header of a message.
///
/// `message`: as the handler got it, or retained; NULL: no bytes. `size`: where its size goes, may be
/// NULL. Returns its bytes, aligned to 8, valid as long as the message. Any thread may call it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn llcl_am_header(
    message: *const llcl_am_t,
    size: *mut usize,
) -> *const c_void {
    // SAFETY: as the caller promises.
    unsafe { bytes_of(message, size, Message::header) }
}

/// The payload of a message.
///
/// `message`: as the handler got it, or retained; NULL: no bytes. `size`: where its size goes, may be
/// NULL. Returns its bytes: of a MEDIUM message they are valid as long as the message; of a LONG one
/// they lie where the sender has written them; of a BULK one there are none here, see llcl_am_bulk.
/// Any thread may call it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn llcl_am_payload(
    message: *const llcl_am_t,
    size: *mut usize,
) -> *const c_void {
    // SAFETY: as the caller promises.
    unsafe { bytes_of(message, size, Message::payload) }
}

/// Where the payload of a BULK message lies, to be read by llcl_try_read_async from llcl_am_source():
/// in the handler, or later if the message is retained. The sender keeps it until the message is
/// answered or released.
///
/// `message`: as the handler got it, or retained. `source`: where the address goes. `size`: where the
/// number of bytes goes, may be NULL.
/// LLCL_OK; LLCL_ERR_INVALID: NULL; LLCL_ERR_STATE: not a BULK message. Any thread may call it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn llcl_am_bulk(
    message: *const llcl_am_t,
    source: *mut llcl_remote_t,
    size: *mut usize,
) -> llcl_status_t {
    guard(|| {
        // SAFETY: the caller gives NULL or valid objects.
        let message = unsafe {
            given(source, "source")?;
            &given(message, "message")?.0
        };
        let Body::Bulk { address, size: bytes } = message.body() else {
            fail!(ERR_STATE, "the message is not LLCL_AM_BULK and has no address");
        };
        // SAFETY: checked above, and as the caller promises.
        unsafe {
            source.write(llcl_remote_t { offset: address.offset, key: address.key });
            if let Some(size) = size.as_mut() {
                *size = bytes;
            }
        }
        Ok(())
    })
}

/// Answers a message: its bytes are copied to the sender, whose `on_complete` fires.
///
/// Never waits and needs no credit: the sender has set a place aside.
/// `message`: as the handler got it, or retained. `data`: the bytes, the caller's again when this
/// returns; NULL if there are none. `size`: how many, at most llcl_capabilities_t::am_medium.
/// LLCL_OK, also if the sender did not ask for an answer or is dead; LLCL_ERR_STATE: it has been
/// answered before; LLCL_ERR_INVALID: NULL; LLCL_ERR_RANGE: more bytes than fit. Any thread may call
/// it, in the handler, or later if the message is retained.
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

/// Whether the sender of a message waits for its end: 1 or 0. An answer to a message that nobody waits
/// for is dropped.
///
/// `message`: as the handler got it, or retained; for NULL the answer is 0. Any thread may call it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn llcl_am_wants_reply(message: *const llcl_am_t) -> i32 {
    // SAFETY: the caller gives NULL or a live message.
    unsafe { message.as_ref() }.map_or(0, |message| message.0.wants_reply().into())
}

/// Keeps a message beyond its handler: makes a copy, which takes over the right to answer.
///
/// `message`: as the handler got it. Returns the copy, to be ended by llcl_am_release; NULL if `message`
/// is NULL, or was answered or retained before. Its slot is free again when the
/// handler returns, so that keeping messages takes no credit from the senders. To be called in the
/// handler, by its thread.
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
/// `message`: from llcl_am_retain; ended by this call. To be ended before llcl_finalize of the context.
/// LLCL_OK; LLCL_ERR_INVALID: NULL. Any thread may call it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn llcl_am_release(message: *mut llcl_am_t) -> llcl_status_t {
    guard(|| {
        // SAFETY: the caller gives NULL or a retained message.
        unsafe { given(message, "message")? };
        // SAFETY: as above; nobody uses it any more.
        unsafe { release(message.cast()) };
        Ok(())
    })
}
