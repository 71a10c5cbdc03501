//! 12. Messages at their receiver: what a handler reads, and how it answers.

use crate::api::active::{llcl_am_params_t, llcl_am_t};
use crate::api::guard::{given, guard, guard_value};
use crate::api::memory::llcl_remote_t;
use crate::api::status::{LLCL_OK, llcl_status_t};
use crate::core::messages::{bytes, check_response};
use crate::engine::messages::message::{Body, release, retain};
use crate::fail;
use crate::transport::frame::Frame;
use std::ffi::c_void;

/// A bit of llcl_am_view_t::flags: the sender waits for the end of the message, or for a reply.
pub const LLCL_AM_WANTS_REPLY: u16 = 1;
/// A bit of llcl_am_view_t::flags: the message is a response, from llcl_am_respond.
pub const LLCL_AM_RESPONSE: u16 = 2;

/// What a message brings.
#[repr(C)]
pub struct llcl_am_view_t {
    /// The rank that sent it.
    pub source: u32,
    /// The number of its handler.
    pub id: u32,
    /// One of LLCL_AM_MEDIUM, LLCL_AM_LONG, LLCL_AM_BULK.
    pub kind: u32,
    /// The sender's own number.
    pub tag: u16,
    /// LLCL_AM_WANTS_REPLY, LLCL_AM_RESPONSE.
    pub flags: u16,
    /// The bytes of its header, aligned to 8.
    pub header: *const c_void,
    /// How many.
    pub header_size: usize,
    /// MEDIUM: the payload; NULL: there is none, other than one of 0 bytes. LONG: where the sender
    /// has written it. BULK: NULL.
    pub payload: *const c_void,
    /// Bytes of the payload, of any kind.
    pub payload_size: usize,
    /// BULK: where the payload lies at the sender, to be read by llcl_try_read_async: in the
    /// handler, or later if the message is retained. The sender keeps it until the message is
    /// answered or released. Else 0.
    pub address: llcl_remote_t,
}

/// Tells all of a message in one call.
///
/// `message`: as the handler got it, or retained; what the view points to is valid as long as the
/// message, but for the payload of LONG, which is the program's own memory. `view`: the caller's
/// struct, filled.
/// LLCL_OK; LLCL_ERR_INVALID: NULL. Any thread may call it.
/// It is the token of GASNet-EX, gex_Token_Info, with the message's arguments.
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

/// Answers a message by one that runs a handler at its sender: once, in the message's handler,
/// which may not answer otherwise as well. Where the sender waits for the end of its message, that
/// comes when the response's handler has returned.
///
/// Never waits: a response without credit waits in this library while the handler returns. A rank
/// with 256 of those handles no further message until one of them is sent.
/// `message`: as the handler got it, neither retained nor a response. `params`: id, tag, header and
/// payload, which are copied during the call, kind LLCL_AM_MEDIUM, and nothing else: peer is not
/// looked at, the rest is 0.
/// LLCL_OK: the handler will run once, unless the sender dies or leaves; LLCL_ERR_STATE: the
/// message has been answered or retained before, or is a response; LLCL_ERR_NO_HANDLER: the sender
/// has no handler of this number, as far as it has been contacted and shares memory with this rank;
/// LLCL_ERR_INVALID or LLCL_ERR_RANGE: llcl_last_error() says what is wrong with `params`. After an
/// error nothing has happened, and the message may be answered. A response for which there is no
/// handler when it comes is dropped; the message then ends with LLCL_ERR_NO_HANDLER.
/// To be called by the handler's thread. A response's handler sends nothing, by no means:
/// LLCL_ERR_STATE. It is GASNet's gasnet_AMReply.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn llcl_am_respond(
    message: *mut llcl_am_t,
    params: *const llcl_am_params_t,
) -> llcl_status_t {
    guard(|| {
        // SAFETY: the caller gives NULL or valid objects.
        let (message, params) =
            unsafe { (&given(message, "message")?.0, given(params, "params")?) };
        let send = params.send();
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

/// Answers a message: its bytes are copied to the sender, whose `on_complete` fires.
///
/// Never waits and needs no credit: the sender has set a place aside.
/// `message`: as the handler got it, or retained. `data`: the bytes, the caller's again when this
/// returns; NULL if there are none. `size`: how many, at most llcl_capabilities_t::am_medium.
/// LLCL_OK, also if the sender did not ask for an answer or is dead; LLCL_ERR_STATE: it has been
/// answered before; LLCL_ERR_INVALID: NULL; LLCL_ERR_RANGE: more bytes than fit. Any thread may
/// call it, in the handler, or later if the message is retained.
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

/// Keeps a message beyond its handler: makes a copy, which takes over the right to answer.
///
/// `message`: as the handler got it. Returns the copy, to be ended by llcl_am_release; NULL if
/// `message` is NULL, was answered or retained before, or as many messages are retained as
/// LLCL_AM_RETAINED allows. Its slot is free again when the handler returns, so that keeping
/// messages takes no credit from the senders. To be called in the handler, by its thread.
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
/// `message`: from llcl_am_retain; ended by this call. To be ended before llcl_finalize of the
/// context.
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
