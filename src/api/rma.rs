//! 6. Reads and writes: of a peer's memory, also with a signal.

use crate::api::completion::llcl_completion_t;
use crate::api::life::llcl_context_t;
use crate::api::memory::{llcl_local_t, llcl_remote_t};
use crate::api::posting::{
    Parameters, common_fields, do_word_and_wake, post, post_and_wait, try_post,
};
use crate::api::status::llcl_status_t;
use crate::core::context::Context;
use crate::core::rma::Quick;
use crate::core::submit::Request;
use crate::engine::atomic;
use crate::engine::by_caller::Local;
use crate::engine::command::{Command, Op};
use crate::fail;
use crate::util::status::Result;

/// Flag: the request goes through the command queue, whatever the execution in force, and its
/// completion never fires inside the call. It is for large copies that should run beside the
/// caller's work, and for callers that hold locks which their callbacks take.
pub const LLCL_FLAG_DEFER: u32 = 1;

/// Flag: where a try function would answer "try again", the library accepts the request, parks it,
/// and posts it when there is room. Parked requests to one peer are posted in their order. So a
/// callback that posts the next request does not need a list of its own. The source must not change
/// until `on_local` or `on_complete` fires, even where the call would copy it without this flag;
/// only the bytes of value writes and small writes are copied in the call. An error that is found
/// only when the request is posted is reported by its completions. At most LLCL_PARKED requests are
/// parked at one time (llcl_stats_t::parked_high_water); beyond that the answer is "try again". The
/// flag may be combined with LLCL_FLAG_DEFER.
pub const LLCL_FLAG_PARK: u32 = 2;

/// Flag: if the operation ends before the call returns, the call answers LLCL_DONE, and none of the
/// request's completions fires. If it ends later, the flag changes nothing: the answer is LLCL_OK,
/// and the completions fire. An operation ends later in offload mode, with LLCL_FLAG_DEFER, and
/// where the owner of the memory or a network must act. Blocking functions ignore the flag. The
/// flag saves the cost of a completion that would tell nothing new.
pub const LLCL_FLAG_DONE: u32 = 4;

/// The signal word is set to the value.
pub const LLCL_SIGNAL_SET: u32 = 1;
/// The value is added to the signal word.
pub const LLCL_SIGNAL_ADD: u32 = 2;

/// A read: from a peer's memory into memory of the caller: a region, or any (llcl_local_address).
#[repr(C)]
pub struct llcl_read_params_t {
    /// The rank to read from.
    pub peer: u32,
    /// LLCL_FLAG_*, or 0.
    pub flags: u32,
    /// Where to read.
    pub source: llcl_remote_t,
    /// Where the bytes go.
    pub destination: llcl_local_t,
    /// How many bytes. With 0 both addresses are checked, and no memory is touched.
    pub size: usize,
    /// Fires when the bytes are in `destination`.
    pub on_complete: llcl_completion_t,
}

/// A write: from memory of the caller, a region or any (llcl_local_address), to a peer's memory.
#[repr(C)]
pub struct llcl_write_params_t {
    /// The rank to write to.
    pub peer: u32,
    /// LLCL_FLAG_*, or 0.
    pub flags: u32,
    /// The bytes.
    pub source: llcl_local_t,
    /// Where they go.
    pub destination: llcl_remote_t,
    /// How many bytes. With 0 both addresses are checked, and no memory is touched.
    pub size: usize,
    /// Fires when the source may be reused.
    pub on_local: llcl_completion_t,
    /// Fires when the bytes can be seen at the peer.
    pub on_complete: llcl_completion_t,
}

/// A write, followed by a change of a word at the same peer.
#[repr(C)]
pub struct llcl_write_signal_params_t {
    /// The rank to write to.
    pub peer: u32,
    /// LLCL_FLAG_*, or 0.
    pub flags: u32,
    /// The bytes.
    pub source: llcl_local_t,
    /// Where they go.
    pub destination: llcl_remote_t,
    /// How many bytes. With 0 both addresses are checked, and only the signal word changes.
    pub size: usize,
    /// The word: a uint64_t of the same peer, aligned to 8 bytes.
    pub signal: llcl_remote_t,
    /// What the word is set to, or what is added to it.
    pub signal_value: u64,
    /// LLCL_SIGNAL_SET or LLCL_SIGNAL_ADD.
    pub signal_op: u32,
    /// 0.
    pub reserved: u32,
    /// Fires when the source may be reused.
    pub on_local: llcl_completion_t,
    /// Fires when bytes and signal can be seen at the peer.
    pub on_complete: llcl_completion_t,
}

impl Parameters for llcl_read_params_t {
    const QUEUES_QUICKLY: bool = true;
    const POSTS_QUICKLY: bool = true;

    unsafe fn request(&self) -> Result<Request> {
        let mut command = Command::new(Op::READ, self.peer);
        command.remote = self.source.address();
        command.size = self.size as u64;
        command.on_complete = self.on_complete.as_engine().narrow();
        let local = Local::Region(self.destination.address());
        // SAFETY: as the caller promises.
        Ok(unsafe { Request::new(command, local, false, self.flags) })
    }

    #[inline(always)]
    unsafe fn do_word<'a>(&self, context: &'a Context, peer: u64) -> Quick<'a> {
        let (from, to) = (|| self.source.address(), || self.destination.address());
        match self.size == 8 && context.read_word(peer, from, to) {
            true => Quick::Done,
            false => Quick::No,
        }
    }

    #[inline(always)]
    unsafe fn do_quickly(&self, context: &Context) -> bool {
        let (from, to) = (self.source.address(), self.destination.address());
        // SAFETY: as the caller promises.
        let word = unsafe { do_word_and_wake(context, self) };
        word || context.read_quickly(self.peer, from, to, self.size as u64)
    }

    common_fields!();
}

impl Parameters for llcl_write_params_t {
    const QUEUES_QUICKLY: bool = true;
    const POSTS_QUICKLY: bool = true;

    unsafe fn request(&self) -> Result<Request> {
        let mut command = Command::new(Op::WRITE, self.peer);
        command.remote = self.destination.address();
        command.size = self.size as u64;
        command.on_local = self.on_local.as_engine().narrow();
        command.on_complete = self.on_complete.as_engine().narrow();
        let local = Local::Region(self.source.address());
        // SAFETY: as the caller promises.
        Ok(unsafe { Request::new(command, local, false, self.flags) })
    }

    #[inline(always)]
    unsafe fn do_word<'a>(&self, context: &'a Context, peer: u64) -> Quick<'a> {
        match self.size {
            8 => context.write_word(peer, || self.source.address(), || self.destination.address()),
            _ => Quick::No,
        }
    }

    fn word(&self) -> llcl_remote_t {
        self.destination
    }

    #[inline(always)]
    unsafe fn do_quickly(&self, context: &Context) -> bool {
        let (from, to) = (self.source.address(), self.destination.address());
        // SAFETY: as the caller promises.
        let word = unsafe { do_word_and_wake(context, self) };
        word || context.write_quickly(self.peer, from, to, self.size as u64)
    }

    fn on_local(&self) -> Option<&llcl_completion_t> {
        Some(&self.on_local)
    }

    common_fields!();
}

impl Parameters for llcl_write_signal_params_t {
    const POSTS_QUICKLY: bool = true;

    unsafe fn request(&self) -> Result<Request> {
        let Ok(code) = atomic::signal_op(self.signal_op as u8) else {
            fail!(ERR_INVALID, "signal_op is {}, expected LLCL_SIGNAL_*", self.signal_op);
        };
        if self.signal_op > LLCL_SIGNAL_ADD || self.reserved != 0 {
            let (op, reserved) = (self.signal_op, self.reserved);
            fail!(ERR_INVALID, "signal_op is {op}, reserved {reserved}, expected LLCL_SIGNAL_*, 0");
        }
        let mut command = Command::new(Op::WRITE_SIGNAL, self.peer);
        command.code = code;
        command.operand = self.signal_value;
        command.signal = self.signal.address();
        command.remote = self.destination.address();
        command.size = self.size as u64;
        command.on_local = self.on_local.as_engine().narrow();
        command.on_complete = self.on_complete.as_engine().narrow();
        let local = Local::Region(self.source.address());
        // SAFETY: as the caller promises.
        Ok(unsafe { Request::new(command, local, false, self.flags) })
    }

    #[inline(always)]
    unsafe fn do_quickly(&self, context: &Context) -> bool {
        let (from, to) = (self.source.address(), self.destination.address());
        let signal = (self.signal.address(), self.signal_op, self.signal_value);
        let place = (from, to, self.size as u64);
        self.reserved == 0 && context.write_signal_quickly(self.peer, place, signal)
    }

    fn on_local(&self) -> Option<&llcl_completion_t> {
        Some(&self.on_local)
    }

    common_fields!();
}

/// Reads from a peer, if that is possible now.
///
/// Source and destination may overlap if they are memory of one process, as for memmove. The
/// destination is undefined until `on_complete`.
/// `context`: a live context. `params`: read during the call only.
/// LLCL_OK: accepted; LLCL_RETRY_QUEUE_FULL, LLCL_RETRY_NO_TAG, LLCL_RETRY_BUSY,
/// LLCL_RETRY_CONNECTING: try again;
/// LLCL_ERR_INVALID, LLCL_ERR_RANGE, LLCL_ERR_KEY: llcl_last_error() says what is wrong with
/// `params`; LLCL_ERR_PEER_DEAD: the peer has died or has left; LLCL_ERR_STATE: the context is
/// being finalized; LLCL_ERR_NO_MEMORY, LLCL_ERR_SYSTEM: the peer's memory cannot be mapped, or a
/// system call that copies has failed. The completion may report LLCL_ERR_PEER_DEAD, LLCL_ERR_KEY
/// (the owner has freed the region, or may not access its memory), LLCL_ERR_INVALID (this rank may
/// not access the local memory), LLCL_ERR_SYSTEM (a network or a system call has failed) or
/// LLCL_ERR_CANCELED.
/// Any thread may call it, also inside a callback. The conventions say on which thread the
/// completions run. From: the interface of Endo and Taura's low-level communication layer
/// (listing 1 there), with the reason of a refusal added.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn llcl_try_read_async(
    context: *mut llcl_context_t,
    params: *const llcl_read_params_t,
) -> llcl_status_t {
    // SAFETY: as the caller promises.
    unsafe { try_post(context, params) }
}

/// Reads from a peer: like llcl_try_read_async, but tries until it is accepted, and helps with
/// progress meanwhile.
///
/// `context` and `params`: as there. LLCL_OK or an error as there, never a "try again"; inside a
/// callback LLCL_ERR_STATE. Any thread may call it.
/// This library's own.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn llcl_read_async(
    context: *mut llcl_context_t,
    params: *const llcl_read_params_t,
) -> llcl_status_t {
    // SAFETY: as the caller promises.
    unsafe { post(context, params) }
}

/// Reads from a peer and waits for the end, helping with progress meanwhile and sleeping if it
/// takes long.
///
/// `context` and `params`: as for llcl_try_read_async; the completions must be
/// llcl_no_completion(). LLCL_OK: done; else an error as there, or the one with which the operation
/// ended; inside a callback LLCL_ERR_STATE. Any thread may call it.
/// From: shmem_getmem of OpenSHMEM.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn llcl_read(
    context: *mut llcl_context_t,
    params: *const llcl_read_params_t,
) -> llcl_status_t {
    // SAFETY: as the caller promises.
    unsafe { post_and_wait(context, params) }
}

/// Writes to a peer, if that is possible now.
///
/// The source must not change until `on_local` or `on_complete`. Source and destination may overlap
/// if they are memory of one process, as for memmove.
/// `context`: a live context. `params`: read during the call only.
/// LLCL_OK: accepted; LLCL_RETRY_QUEUE_FULL, LLCL_RETRY_NO_TAG, LLCL_RETRY_BUSY,
/// LLCL_RETRY_CONNECTING: try again;
/// LLCL_ERR_INVALID, LLCL_ERR_RANGE, LLCL_ERR_KEY: llcl_last_error() says what is wrong with
/// `params`; LLCL_ERR_PEER_DEAD: the peer has died or has left; LLCL_ERR_STATE: the context is
/// being finalized; LLCL_ERR_NO_MEMORY, LLCL_ERR_SYSTEM: the peer's memory cannot be mapped, or a
/// system call that copies has failed. The completion may report LLCL_ERR_PEER_DEAD, LLCL_ERR_KEY
/// (the owner has freed the region, or may not access its memory), LLCL_ERR_INVALID (this rank may
/// not access the local memory), LLCL_ERR_SYSTEM (a network or a system call has failed) or
/// LLCL_ERR_CANCELED.
/// Any thread may call it, also inside a callback. The conventions say on which thread the
/// completions run. From: the interface of Endo and Taura's low-level communication layer
/// (listing 1 there), with the reason of a refusal added.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn llcl_try_write_async(
    context: *mut llcl_context_t,
    params: *const llcl_write_params_t,
) -> llcl_status_t {
    // SAFETY: as the caller promises.
    unsafe { try_post(context, params) }
}

/// Writes to a peer: like llcl_try_write_async, but tries until it is accepted, and helps with
/// progress meanwhile.
///
/// `context` and `params`: as there. LLCL_OK or an error as there, never a "try again"; inside a
/// callback LLCL_ERR_STATE. Any thread may call it.
/// This library's own.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn llcl_write_async(
    context: *mut llcl_context_t,
    params: *const llcl_write_params_t,
) -> llcl_status_t {
    // SAFETY: as the caller promises.
    unsafe { post(context, params) }
}

/// Writes to a peer and waits for the end, helping with progress meanwhile and sleeping if it takes
/// long.
///
/// `context` and `params`: as for llcl_try_write_async; the completions must be
/// llcl_no_completion(). LLCL_OK: done; else an error as there, or the one with which the operation
/// ended; inside a callback LLCL_ERR_STATE. Any thread may call it.
/// From: shmem_putmem of OpenSHMEM, but it ends when the data has arrived.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn llcl_write(
    context: *mut llcl_context_t,
    params: *const llcl_write_params_t,
) -> llcl_status_t {
    // SAFETY: as the caller promises.
    unsafe { post_and_wait(context, params) }
}

/// Writes to a peer and then changes a word there, if that is possible now.
///
/// A thread that sees the word changed sees the bytes. The source must not change until `on_local`
/// or `on_complete`. A thread of the peer waits for the word by llcl_wait_word.
/// `context`: a live context. `params`: read during the call only.
/// LLCL_OK: accepted; LLCL_RETRY_QUEUE_FULL, LLCL_RETRY_NO_TAG, LLCL_RETRY_BUSY,
/// LLCL_RETRY_CONNECTING: try again;
/// LLCL_ERR_INVALID, LLCL_ERR_RANGE, LLCL_ERR_KEY: llcl_last_error() says what is wrong with
/// `params`; LLCL_ERR_UNSUPPORTED: the signal word lies in a region with
/// LLCL_REGION_DEVICE_ATOMICS; LLCL_ERR_PEER_DEAD: the peer has died or has left; LLCL_ERR_STATE:
/// the context is being finalized; LLCL_ERR_NO_MEMORY, LLCL_ERR_SYSTEM: the peer's memory cannot be
/// mapped, or a system call that copies has failed. The completion may report LLCL_ERR_PEER_DEAD,
/// LLCL_ERR_KEY (the owner has freed the region, or may not access its memory), LLCL_ERR_INVALID
/// (this rank may not access the local memory), LLCL_ERR_SYSTEM (a network or a system call has
/// failed) or LLCL_ERR_CANCELED.
/// Any thread may call it, also inside a callback. The conventions say on which thread the
/// completions run. From: the put with signal of OpenSHMEM 1.5, and the write with notification of
/// GASPI.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn llcl_try_write_signal_async(
    context: *mut llcl_context_t,
    params: *const llcl_write_signal_params_t,
) -> llcl_status_t {
    // SAFETY: as the caller promises.
    unsafe { try_post(context, params) }
}

/// Writes to a peer and then changes a word there: like llcl_try_write_signal_async, but tries
/// until it is accepted, and helps with progress meanwhile.
///
/// `context` and `params`: as there. LLCL_OK or an error as there, never a "try again"; inside a
/// callback LLCL_ERR_STATE. Any thread may call it.
/// This library's own.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn llcl_write_signal_async(
    context: *mut llcl_context_t,
    params: *const llcl_write_signal_params_t,
) -> llcl_status_t {
    // SAFETY: as the caller promises.
    unsafe { post(context, params) }
}

/// Writes to a peer and then changes a word there and waits for the end, helping with progress
/// meanwhile and sleeping if it takes long.
///
/// `context` and `params`: as for llcl_try_write_signal_async; the completions must be
/// llcl_no_completion(). LLCL_OK: done; else an error as there, or the one with which the operation
/// ended; inside a callback LLCL_ERR_STATE. Any thread may call it.
/// From: the put with signal of OpenSHMEM 1.5 (shmem_putmem_signal).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn llcl_write_signal(
    context: *mut llcl_context_t,
    params: *const llcl_write_signal_params_t,
) -> llcl_status_t {
    // SAFETY: as the caller promises.
    unsafe { post_and_wait(context, params) }
}
