//! 11. Active messages: a function at the peer is called with a few bytes, and may answer.
//!
//! A receiver owns a fixed number of message slots, whatever the number of senders. A sender takes
//! a slot by one atomic operation in the receiver's memory, and then fills it. While no slot is
//! free, the answer is LLCL_RETRY_NO_CREDIT. docs/flow-control.md has the protocol and its
//! policies.
//!
//! Messages of one sender to one peer may be handled in any order.

use crate::api::completion::llcl_completion_t;
use crate::api::guard::{given, guard, guard_of, timeout};
use crate::api::life::{live, llcl_context_t};
use crate::api::memory::{llcl_local_t, llcl_remote_t};
use crate::api::status::{LLCL_OK, llcl_status_t};
use crate::core::context::Context;
use crate::core::messages::{Look, Send};
use crate::engine::completion::in_callback;
use crate::engine::messages::Handler;
use crate::engine::messages::message::Message;
use crate::fail;
use crate::util::status::Result;
use std::ffi::c_void;

/// Handlers have numbers below this one.
pub const LLCL_AM_IDS: u32 = 256;
/// Most bytes of a header.
pub const LLCL_AM_HEADER: u32 = 64;

/// The payload travels with the message: up to llcl_peer_info_t::am_payload bytes, or none. For
/// payloads of more than llcl_peer_info_t::am_medium bytes the receiver has fewer slots, as many as
/// LLCL_AM_CHUNKS says.
pub const LLCL_AM_MEDIUM: u32 = 0;
/// The payload is written to an address of the peer before the handler runs.
pub const LLCL_AM_LONG: u32 = 1;
/// The payload, of any size, stays in the sender's memory; the receiver reads it when it wants to.
pub const LLCL_AM_BULK: u32 = 2;

/// A message, as its handler sees it.
pub struct llcl_am_t(pub(super) Message);

/// A handler. `message` is valid until the handler returns; see llcl_am_retain. It may post
/// requests by the try functions, messages included, and must not block.
pub type llcl_am_handler_fn =
    Option<unsafe extern "C" fn(message: *mut llcl_am_t, data: *mut c_void)>;

/// A message to be sent. Begin with LLCL_AM_PARAMS_INIT, and set what is wanted.
#[repr(C)]
pub struct llcl_am_params_t {
    /// The rank to send to; it may be the calling one.
    pub peer: u32,
    /// 0, or bits of LLCL_FLAG_DEFER and LLCL_FLAG_PARK.
    pub flags: u32,
    /// The number of the handler at the peer.
    pub id: u32,
    /// One of LLCL_AM_MEDIUM, LLCL_AM_LONG, LLCL_AM_BULK.
    pub kind: u32,
    /// Any number of the caller's; the handler finds it in llcl_am_view_t.
    pub tag: u16,
    /// Bytes for the handler, copied during the call. NULL if there are none.
    pub header: *const c_void,
    /// How many, at most LLCL_AM_HEADER.
    pub header_size: usize,
    /// MEDIUM: the payload, any memory of the caller; NULL if there is none; the handler then gets
    /// NULL, too, whereas for a payload of 0 bytes it gets an address. For other kinds NULL.
    pub payload: *const c_void,
    /// Bytes of the payload, of any kind.
    pub payload_size: usize,
    /// LONG: the payload, in a region of the caller or any memory (llcl_local_address). BULK: the
    /// payload, in a region of the caller.
    pub source: llcl_local_t,
    /// LONG: where it is written, in a region of the peer.
    pub destination: llcl_remote_t,
    /// Where the bytes of the reply go; NULL: no bytes are wanted.
    pub reply: *mut c_void,
    /// How many bytes `reply` has room for.
    pub reply_capacity: usize,
    /// Where the size of the reply goes; may be NULL. It is written before `on_complete` fires,
    /// also with LLCL_ERR_RANGE, as the size that did not fit, and as 0 if the handler has not
    /// replied; not if the message ends with another error.
    pub reply_size: *mut usize,
    /// Fires when payload and source may be reused. For a BULK message that is when the peer has
    /// answered or released it.
    pub on_local: llcl_completion_t,
    /// Fires when the handler has returned; if the handler has retained the message, when the
    /// message has been answered or released. The reply is in `reply` by then.
    pub on_complete: llcl_completion_t,
}

/// Sets, replaces or removes a handler.
///
/// `context`: a live context. `id`: below LLCL_AM_IDS. `handler`: the function; NULL: removes the
/// handler; messages for this number then end with LLCL_ERR_NO_HANDLER at their senders. `data`:
/// its second argument, may be NULL; stays the caller's.
/// LLCL_OK: from now on the new handler runs, and no call of the old one is under way, except the
/// one in which this is called; LLCL_RETRY_BUSY: inside a callback or handler, while another thread
/// runs a handler of this context: nothing has changed, call again later; LLCL_ERR_INVALID: NULL or
/// no such number; LLCL_ERR_STATE: the context is being finalized; LLCL_ERR_NO_MEMORY,
/// LLCL_ERR_SYSTEM: there is no memory, or the thread that runs handlers, which the first call
/// starts, cannot be started.
/// Any thread may call it. The configuration's am_handlers, LLCL_AM_HANDLERS_*, says where handlers
/// run. Serial and parallel ones run on a thread that waits in this library (not in offload mode),
/// or on one of the library's own. Polled ones run only on threads of the program that poll or
/// wait. llcl_progress runs handlers, too; in offload mode only polled ones.
/// From: gasnet_attach and gex_EP_RegisterHandlers of GASNet, which register handlers by number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn llcl_am_register(
    context: *mut llcl_context_t,
    id: u32,
    handler: llcl_am_handler_fn,
    data: *mut c_void,
) -> llcl_status_t {
    guard(|| {
        // SAFETY: the caller gives a live context, and keeps handler and data. llcl_am_t holds a
        // Message and nothing else, so both types of function are called alike.
        unsafe {
            let handler = std::mem::transmute::<llcl_am_handler_fn, Option<Handler>>(handler);
            live(context)?.am_register(id, handler, data)
        }
    })
}

/// Sends an active message, if that is possible now.
///
/// The header is copied; the payload is the caller's again when `on_local` fires. In auto and
/// direct mode that is before the call returns, except for BULK, with LLCL_FLAG_DEFER or
/// LLCL_FLAG_PARK, and for LONG to memory that this process can neither map nor copy to by the
/// kernel.
/// `context`: a live context. `params`: read during the call only.
/// LLCL_OK: accepted; the handler will run once, unless the peer dies or leaves;
/// LLCL_RETRY_NO_CREDIT: all slots of the peer hold messages, or 256 messages to the peer are
/// accepted and not sent; LLCL_RETRY_QUEUE_FULL: the command queue is full (offload mode,
/// LLCL_FLAG_DEFER, or a LONG payload that the owner or a network must write); LLCL_RETRY_NO_TAG:
/// as many messages wait for their end as LLCL_AM_REQUESTS allows; LLCL_RETRY_BUSY: another thread
/// is posting (direct mode);
/// LLCL_RETRY_CONNECTING: the first contact is under way, with the peer or with the rank that keeps
/// the counter of this rank's share of the peer's slots. On a "try again" nothing has happened,
/// except that the destination of a LONG message may have been written. LLCL_ERR_INVALID,
/// LLCL_ERR_RANGE, LLCL_ERR_KEY: llcl_last_error() says what is wrong with `params`;
/// LLCL_ERR_NO_HANDLER: the peer has no handler of this number; LLCL_ERR_PEER_DEAD: the peer has
/// died or has left; LLCL_ERR_STATE: the context is being finalized; LLCL_ERR_NO_MEMORY,
/// LLCL_ERR_SYSTEM: the peer's memory cannot be mapped.
/// The completion may report LLCL_ERR_NO_HANDLER (the handler was removed meanwhile; or the peer is
/// reached by a network, so that this rank cannot know), LLCL_ERR_RANGE (the reply has more bytes
/// than `reply_capacity`; none were copied), LLCL_ERR_PEER_DEAD or LLCL_ERR_CANCELED, and for LONG
/// what the completion of llcl_try_write_async may report.
/// A message without a completion that finds no handler is dropped; only the statistics of its
/// receiver count it (llcl_stats_t::am_unknown).
/// Any thread may call it, also inside a callback or a handler. The conventions say on which thread
/// the completions run.
/// From: the slots and their credits follow Sumimoto and others' design of memory-saving
/// communication by remote atomics; registration and handlers are those of von Eicken's active
/// messages.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn llcl_try_am_async(
    context: *mut llcl_context_t,
    params: *const llcl_am_params_t,
) -> llcl_status_t {
    // SAFETY: as the caller promises.
    if let Some(accepted) = unsafe { shortly(context, params) } {
        return accepted;
    }
    // SAFETY: as the caller promises.
    unsafe { try_longer(context, params) }
}

/// The rest of llcl_try_am_async, for messages that shortly() does not send. It is a function of
/// its own so that the compiler saves no registers in shortly().
#[inline(never)]
unsafe fn try_longer(
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

/// Sends an active message: like llcl_try_am_async, but tries until it is accepted, meanwhile
/// running handlers and helping with progress, and sleeping if it takes long.
///
/// `context` and `params`: as there. LLCL_OK or an error as there, never a "try again"; inside a
/// callback or handler LLCL_ERR_STATE. Any thread may call it. This library's own.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn llcl_am_async(
    context: *mut llcl_context_t,
    params: *const llcl_am_params_t,
) -> llcl_status_t {
    if !in_callback() {
        // SAFETY: as the caller promises.
        if let Some(accepted) = unsafe { shortly(context, params) } {
            return accepted;
        }
    }
    // SAFETY: as the caller promises.
    unsafe { longer(context, params) }
}

/// The rest of llcl_am_async, as try_longer().
#[inline(never)]
unsafe fn longer(context: *mut llcl_context_t, params: *const llcl_am_params_t) -> llcl_status_t {
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
/// LLCL_OK: done; else an error as there, or the one with which the message ended; inside a
/// callback or handler LLCL_ERR_STATE. Any thread may call it; other handlers may run on it.
/// From: Birrell and Nelson's remote procedure calls.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn llcl_am(
    context: *mut llcl_context_t,
    params: *const llcl_am_params_t,
) -> llcl_status_t {
    // SAFETY: as the caller promises.
    unsafe { send(context, params, |context, send| context.am_and_wait(send)) }
}

/// Sends an active message and waits for its end as llcl_am does, but not for longer than a time.
///
/// `context` and `params`: as for llcl_am; of the flags only LLCL_FLAG_DEFER counts. `timeout_ns`:
/// nanoseconds, as of llcl_wait_word; negative: for ever; 0: tries once.
/// LLCL_OK, and every other status: as of llcl_am; LLCL_ERR_TIMEOUT: the message has not ended in
/// time. It may have been sent, and its handler may have run or may run later. The library does not
/// write `reply` and `reply_size` any more. It may read payload and source until an llcl_flush with
/// this peer has returned LLCL_OK. Any thread may call it.
/// From: GASPI, where each call takes a time-out.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn llcl_am_within(
    context: *mut llcl_context_t,
    params: *const llcl_am_params_t,
    timeout_ns: i64,
) -> llcl_status_t {
    guard(|| {
        // SAFETY: as the caller promises.
        let (context, send) = unsafe { (live(context)?, given(params, "params")?.send()) };
        context.am_within(&send, timeout(timeout_ns))
    })
}

/// Runs the handlers of messages that have come, on the calling thread, whatever am_handlers says.
///
/// A poll that finds nothing takes some nanoseconds; now and then such a poll yields its core to
/// other threads. Over a network that wakes no thread, such as MPI, one of eight such polls asks
/// the network, which takes up to a few microseconds. After one that has found something there, the
/// thread's next eight such polls ask the network. If several threads poll at the same time, one of
/// them runs handlers, unless the handlers are parallel.
/// `context`: a live context. `most`: messages to take at most, from 1 on; more than 64 count as
/// 64. `handled`: where the number of messages goes, including those without a handler; may be
/// NULL. It is 0 if no message has come or another thread is running a handler.
/// LLCL_OK, whether a message has come or not; LLCL_ERR_INVALID: `context` is NULL, or `most` is 0;
/// LLCL_ERR_STATE: inside a callback or handler, or the context is being finalized.
/// Any thread may call it; handlers run on it, and callbacks (not in offload mode).
/// From: gasnet_AMPoll of GASNet, with a bound.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn llcl_am_poll(
    context: *mut llcl_context_t,
    most: u32,
    handled: *mut u32,
) -> llcl_status_t {
    // SAFETY: as the caller promises.
    unsafe {
        match pollable(context, most).map(|it| (it, it.am_look())) {
            Some((_, Look::Nothing)) => found_nothing(handled),
            Some((it, Look::Come)) => poll(it, most, handled, Context::am_poll_one),
            _ => poll_further(context, most, handled),
        }
    }
}

/// The context, if a poll may look for messages of it.
///
/// # Safety
/// As of llcl_am_poll.
#[inline(always)]
unsafe fn pollable<'a>(context: *const llcl_context_t, most: u32) -> Option<&'a Context> {
    let context = if context.is_aligned() { context } else { std::ptr::null() };
    // SAFETY: NULL, or the caller's live context.
    let context = unsafe { context.as_ref()? };
    (most > 0 && context.is_live()).then_some(&context.context)
}

/// The end of a poll that has found no message.
///
/// # Safety
/// As of llcl_am_poll.
#[inline(always)]
unsafe fn found_nothing(handled: *mut u32) -> llcl_status_t {
    // SAFETY: the caller gives NULL or a place for a number.
    if let Some(handled) = unsafe { handled.as_mut() } {
        *handled = 0;
    }
    LLCL_OK
}

/// A poll that looks at all shares. It and poll() are functions of their own so that the compiler
/// saves no registers in a poll that finds nothing.
#[inline(never)]
unsafe fn poll_further(
    context: *mut llcl_context_t,
    most: u32,
    handled: *mut u32,
) -> llcl_status_t {
    // SAFETY: as the caller promises.
    unsafe {
        match pollable(context, most) {
            Some(it) if it.am_poll_finds_nothing_anywhere() => found_nothing(handled),
            Some(it) => poll(it, most, handled, |_, _| None),
            None => guard_of("llcl_am_poll", || -> Result<()> {
                live(context)?;
                fail!(ERR_INVALID, "most is 0, expected a number from 1 on");
            }),
        }
    }
}

/// A poll that takes messages. First it tries `shortly`.
///
/// # Safety
/// As of llcl_am_poll.
#[inline(never)]
unsafe fn poll(
    context: &Context,
    most: u32,
    handled: *mut u32,
    shortly: impl FnOnce(&Context, usize) -> Option<usize>,
) -> llcl_status_t {
    guard_of("llcl_am_poll", || {
        let count = match shortly(context, most as usize) {
            Some(count) => count,
            None => context.am_poll(most as usize)?,
        };
        // SAFETY: as above.
        if let Some(handled) = unsafe { handled.as_mut() } {
            *handled = count as u32;
        }
        Ok(())
    })
}

/// Waits until a handler of this context has run: polling at first, then asleep until a message
/// comes.
///
/// To wait for an effect of handlers, test for it; while it has not happened, call this and test
/// again. No handler is missed between test and wait: the wait ends at once if a handler has run,
/// on any thread, since the calling thread's last llcl_am_wait, or its last llcl_am_poll that took
/// a message. Where handlers set a word, llcl_wait_word does the same in one call.
/// `context`: a live context. `timeout_ns`: nanoseconds; negative: for ever; 0: polls once.
/// LLCL_OK: handlers have run. Test for their effect: the call may also return without one;
/// LLCL_ERR_TIMEOUT: none within the time; LLCL_ERR_INVALID: NULL;
/// LLCL_ERR_STATE: inside a callback or handler, or the context is being finalized.
/// Any thread may call it; handlers run on it as am_handlers says, and callbacks (not in offload
/// mode). From: GASNET_BLOCKUNTIL of GASNet, but without a condition in the call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn llcl_am_wait(
    context: *mut llcl_context_t,
    timeout_ns: i64,
) -> llcl_status_t {
    guard(|| {
        // SAFETY: the caller gives a live context.
        let context = unsafe { live(context)? };
        context.am_wait(timeout(timeout_ns))
    })
}

/// Sends a MEDIUM message with a header of one word, no payload, no reply and no completion. None:
/// the message is another one, or cannot be sent at once; it takes a longer path.
#[inline(always)]
unsafe fn shortly(
    context: *const llcl_context_t,
    params: *const llcl_am_params_t,
) -> Option<llcl_status_t> {
    // SAFETY: the caller gives NULL or valid objects.
    let (Some(context), Some(p)) = (unsafe { (context.as_ref(), params.as_ref()) }) else {
        return None;
    };
    let context = &context.context;
    let message = p.short(|| context.counts())?;
    context.am_shortly(p.peer, &message).map(|status| status.0)
}

/// Sends a MEDIUM message without reply and completions. False: it must take the long path, which
/// also reports errors.
#[inline(always)]
unsafe fn quickly(context: *const llcl_context_t, params: *const llcl_am_params_t) -> bool {
    // SAFETY: the caller gives NULL or valid objects.
    let (Some(context), Some(p)) = (unsafe { (context.as_ref(), params.as_ref()) }) else {
        return false;
    };
    // SAFETY: as the caller promises. A closure that took the frame would not be inlined.
    let Some(frame) = (unsafe { p.frame() }) else { return false };
    context.context.am_quickly(p.peer, &frame)
}

#[inline(never)]
unsafe fn send(
    context: *const llcl_context_t,
    params: *const llcl_am_params_t,
    tier: fn(&Context, &Send) -> Result<()>,
) -> i32 {
    guard_of("llcl_am", || {
        // SAFETY: as the caller promises.
        let (context, send) = unsafe { (live(context)?, given(params, "params")?.send()) };
        tier(context, &send)
    })
}
