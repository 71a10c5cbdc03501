//! 7. Small writes: the request carries the bytes itself.

use crate::api::completion::llcl_completion_t;
use crate::api::life::llcl_context_t;
use crate::api::memory::llcl_remote_t;
use crate::api::posting::{
    Parameters, common_fields, do_word_and_wake, post, post_and_wait, try_post,
};
use crate::api::status::llcl_status_t;
use crate::core::context::Context;
use crate::core::rma::Quick;
use crate::core::submit::Request;
use crate::engine::by_caller::Local;
use crate::engine::command::{Command, Op};
use crate::engine::queue_entry::INLINE;
use crate::fail;
use crate::util::status::Result;
use std::ffi::c_void;

/// A write of one to eight bytes that are in the struct itself.
#[repr(C)]
pub struct llcl_write_value_params_t {
    /// The rank to write to.
    pub peer: u32,
    /// LLCL_FLAG_*, or 0.
    pub flags: u32,
    /// Where the bytes go.
    pub destination: llcl_remote_t,
    /// The value: its `size` low-order bytes are written, in this machine's byte order.
    pub value: u64,
    /// How many bytes, 1 to 8.
    pub size: usize,
    /// Fires when the value can be seen at the peer.
    pub on_complete: llcl_completion_t,
}

/// A write of a few bytes from any memory of the caller.
#[repr(C)]
pub struct llcl_write_small_params_t {
    /// The rank to write to.
    pub peer: u32,
    /// LLCL_FLAG_*, or 0.
    pub flags: u32,
    /// The bytes: any memory of the caller, who may reuse it when the call returns. May be NULL if
    /// `size` is 0.
    pub source: *const c_void,
    /// Where the bytes go.
    pub destination: llcl_remote_t,
    /// How many bytes, at most `small` of llcl_capabilities_t. With 0 the address is checked, and
    /// no memory is touched.
    pub size: usize,
    /// Fires when the bytes can be seen at the peer.
    pub on_complete: llcl_completion_t,
}

/// Makes a request whose bytes are copied into the command.
///
/// # Safety
/// As of Parameters::request(); the bytes are valid until the call that submits the request has
/// returned.
unsafe fn carrying(
    peer: u32,
    flags: u32,
    destination: llcl_remote_t,
    bytes: *const u8,
    size: usize,
    on_complete: &llcl_completion_t,
) -> Request {
    let mut command = Command::new(Op::WRITE, peer);
    command.remote = destination.address();
    command.size = size as u64;
    command.on_complete = *on_complete.as_engine();
    // SAFETY: as the caller promises.
    unsafe { Request::new(command, Local::Pointer(bytes.cast_mut()), true, flags) }
}

impl Parameters for llcl_write_value_params_t {
    const POSTS_QUICKLY: bool = true;

    unsafe fn request(&self) -> Result<Request> {
        if !(1..=8).contains(&self.size) {
            fail!(ERR_INVALID, "size is {}, expected 1 to 8", self.size);
        }
        let low_order = match cfg!(target_endian = "big") {
            true => 8 - self.size,
            false => 0,
        };
        let bytes = (&raw const self.value).cast::<u8>().wrapping_add(low_order);
        let Self { peer, flags, destination, size, on_complete, .. } = self;
        // SAFETY: as the caller promises; the bytes belong to the parameters.
        Ok(unsafe { carrying(*peer, *flags, *destination, bytes, *size, on_complete) })
    }

    #[inline(always)]
    unsafe fn do_word<'a>(&self, context: &'a Context, peer: u64) -> Quick<'a> {
        match self.size {
            8 => context.write_value(peer, self.value, self.destination.address()),
            _ => Quick::No,
        }
    }

    fn word(&self) -> llcl_remote_t {
        self.destination
    }

    #[inline(always)]
    unsafe fn do_quickly(&self, context: &Context) -> bool {
        let (from, to) = ((&raw const self.value).cast(), self.destination.address());
        // SAFETY: the value has eight bytes, the rest is as the caller promises.
        unsafe {
            do_word_and_wake(context, self)
                || self.size == 8 && context.write_bytes_quickly(self.peer, from, to, 8)
        }
    }

    common_fields!();
}

impl Parameters for llcl_write_small_params_t {
    const POSTS_QUICKLY: bool = true;

    unsafe fn request(&self) -> Result<Request> {
        if self.source.is_null() && self.size > 0 {
            fail!(ERR_INVALID, "source is NULL, expected {} bytes", self.size);
        }
        let source = match self.source.is_null() {
            true => std::ptr::dangling(),
            false => self.source.cast::<u8>(),
        };
        let Self { peer, flags, destination, size, on_complete, .. } = self;
        // SAFETY: as the caller promises; `source` is not used if there are no bytes.
        Ok(unsafe { carrying(*peer, *flags, *destination, source, *size, on_complete) })
    }

    #[inline(always)]
    unsafe fn do_quickly(&self, context: &Context) -> bool {
        let (from, to) = (self.source.cast(), self.destination.address());
        // SAFETY: as the caller promises for the source.
        let write =
            || unsafe { context.write_bytes_quickly(self.peer, from, to, self.size as u64) };
        self.size <= INLINE && !self.source.is_null() && write()
    }

    common_fields!();
}

/// Writes a value to a peer, if that is possible now.
///
/// No source region is needed; `params` may be reused at once.
/// `context`: a live context. `params`: read during the call only.
/// LLCL_OK: accepted; LLCL_RETRY_QUEUE_FULL, LLCL_RETRY_NO_TAG, LLCL_RETRY_BUSY,
/// LLCL_RETRY_CONNECTING: try again;
/// LLCL_ERR_INVALID, LLCL_ERR_RANGE, LLCL_ERR_KEY: llcl_last_error() says what is wrong with
/// `params`; LLCL_ERR_PEER_DEAD: the peer has died or has left; LLCL_ERR_STATE: the context is
/// being finalized; LLCL_ERR_NO_MEMORY, LLCL_ERR_SYSTEM: the peer's memory cannot be mapped. The
/// completion may report LLCL_ERR_PEER_DEAD, LLCL_ERR_KEY (the owner has freed the region, or may
/// not access its memory), LLCL_ERR_SYSTEM (a network or a system call has failed) or
/// LLCL_ERR_CANCELED.
/// Any thread may call it, also inside a callback. The conventions say on which thread the
/// completions run. From: the atomic on-the-fly send (AOTF) of the DIMMnet interfaces, as the Fagus
/// system uses it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn llcl_try_write_value_async(
    context: *mut llcl_context_t,
    params: *const llcl_write_value_params_t,
) -> llcl_status_t {
    // SAFETY: as the caller promises.
    unsafe { try_post(context, params) }
}

/// Writes a value to a peer: like llcl_try_write_value_async, but tries until it is accepted, and
/// helps with progress meanwhile.
///
/// `context` and `params`: as there. LLCL_OK or an error as there, never a "try again"; inside a
/// callback LLCL_ERR_STATE. Any thread may call it.
/// This library's own.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn llcl_write_value_async(
    context: *mut llcl_context_t,
    params: *const llcl_write_value_params_t,
) -> llcl_status_t {
    // SAFETY: as the caller promises.
    unsafe { post(context, params) }
}

/// Writes a value to a peer and waits for the end, helping with progress meanwhile and sleeping if
/// it takes long.
///
/// `context` and `params`: as for llcl_try_write_value_async; the completions must be
/// llcl_no_completion(). LLCL_OK: done; else an error as there, or the one with which the operation
/// ended; inside a callback LLCL_ERR_STATE. Any thread may call it.
/// From: llcl_try_write_value_async, for whose end it waits.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn llcl_write_value(
    context: *mut llcl_context_t,
    params: *const llcl_write_value_params_t,
) -> llcl_status_t {
    // SAFETY: as the caller promises.
    unsafe { post_and_wait(context, params) }
}

/// Writes a few bytes to a peer, if that is possible now.
///
/// The bytes are copied during the call; no source region is needed.
/// `context`: a live context. `params`: read during the call only.
/// LLCL_OK: accepted; LLCL_RETRY_QUEUE_FULL, LLCL_RETRY_NO_TAG, LLCL_RETRY_BUSY,
/// LLCL_RETRY_CONNECTING: try again;
/// LLCL_ERR_INVALID, LLCL_ERR_RANGE, LLCL_ERR_KEY: llcl_last_error() says what is wrong with
/// `params`; LLCL_ERR_PEER_DEAD: the peer has died or has left; LLCL_ERR_STATE: the context is
/// being finalized; LLCL_ERR_NO_MEMORY, LLCL_ERR_SYSTEM: the peer's memory cannot be mapped. The
/// completion may report LLCL_ERR_PEER_DEAD, LLCL_ERR_KEY (the owner has freed the region, or may
/// not access its memory), LLCL_ERR_SYSTEM (a network or a system call has failed) or
/// LLCL_ERR_CANCELED.
/// Any thread may call it, also inside a callback. The conventions say on which thread the
/// completions run. From: the block on-the-fly send (BOTF) of the DIMMnet interfaces, as the Fagus
/// system uses it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn llcl_try_write_small_async(
    context: *mut llcl_context_t,
    params: *const llcl_write_small_params_t,
) -> llcl_status_t {
    // SAFETY: as the caller promises.
    unsafe { try_post(context, params) }
}

/// Writes a few bytes to a peer: like llcl_try_write_small_async, but tries until it is accepted,
/// and helps with progress meanwhile.
///
/// `context` and `params`: as there. LLCL_OK or an error as there, never a "try again"; inside a
/// callback LLCL_ERR_STATE. Any thread may call it.
/// This library's own.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn llcl_write_small_async(
    context: *mut llcl_context_t,
    params: *const llcl_write_small_params_t,
) -> llcl_status_t {
    // SAFETY: as the caller promises.
    unsafe { post(context, params) }
}

/// Writes a few bytes to a peer and waits for the end, helping with progress meanwhile and sleeping
/// if it takes long.
///
/// `context` and `params`: as for llcl_try_write_small_async; the completions must be
/// llcl_no_completion(). LLCL_OK: done; else an error as there, or the one with which the operation
/// ended; inside a callback LLCL_ERR_STATE. Any thread may call it.
/// From: llcl_try_write_small_async, for whose end it waits.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn llcl_write_small(
    context: *mut llcl_context_t,
    params: *const llcl_write_small_params_t,
) -> llcl_status_t {
    // SAFETY: as the caller promises.
    unsafe { post_and_wait(context, params) }
}
