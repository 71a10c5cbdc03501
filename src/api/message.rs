//! 11. Messages at their receiver: what a handler reads, and how it answers.

use crate::api::active::llcl_am_t;
use crate::api::guard::{given, guard, guard_value};
use crate::api::memory::llcl_remote_t;
use crate::api::status::llcl_status_t;
use crate::engine::messages::message::{Body, Message, release, retain};
use crate::fail;
use std::ffi::c_void;

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
