//! 9. Atomics on 64-bit words: fetch-add and compare-and-swap, as functions of their own.

use crate::api::atomics::{LLCL_OP_ADD, LLCL_OP_COMPARE_SWAP, LLCL_TYPE_U64};
use crate::api::completion::llcl_completion_t;
use crate::api::life::llcl_context_t;
use crate::api::memory::llcl_remote_t;
use crate::api::posting::{Parameters, common_fields, post, post_and_wait, try_post};
use crate::api::status::llcl_status_t;
use crate::core::atomics::Atomic;
use crate::core::context::Context;
use crate::core::rma::Quick;
use crate::core::submit::Request;
use crate::util::status::Result;

/// A fetch-add on a uint64_t.
#[repr(C)]
pub struct llcl_fetch_add_params_t {
    /// The rank whose word it is.
    pub peer: u32,
    /// LLCL_FLAG_*, or 0.
    pub flags: u32,
    /// The word, aligned to 8 bytes.
    pub target: llcl_remote_t,
    /// The number that is added, modulo 2 to the 64th.
    pub operand: u64,
    /// Where the former value goes. It is written before `on_complete` fires; may be NULL.
    pub result: *mut u64,
    /// Fires when the operation has ended.
    pub on_complete: llcl_completion_t,
}

/// A compare-and-swap on a uint64_t.
#[repr(C)]
pub struct llcl_compare_swap_params_t {
    /// The rank whose word it is.
    pub peer: u32,
    /// LLCL_FLAG_*, or 0.
    pub flags: u32,
    /// The word, aligned to 8 bytes.
    pub target: llcl_remote_t,
    /// The value that the word must have for the exchange to happen.
    pub compare: u64,
    /// The value that the word then gets.
    pub desired: u64,
    /// Where the former value goes. It is written before `on_complete` fires; may be NULL. The
    /// exchange happened if the former value equals `compare`.
    pub result: *mut u64,
    /// Fires when the operation has ended, whether it exchanged or not.
    pub on_complete: llcl_completion_t,
}

impl Parameters for llcl_fetch_add_params_t {
    const QUEUES_QUICKLY: bool = true;

    unsafe fn request(&self) -> Result<Request> {
        let atomic = Atomic {
            peer: self.peer,
            flags: self.flags,
            target: self.target.address(),
            op: LLCL_OP_ADD,
            kind: LLCL_TYPE_U64,
            operand: self.operand,
            compare: 0,
            result: self.result.cast(),
            on_complete: *self.on_complete.as_engine(),
        };
        // SAFETY: as the caller promises.
        unsafe { atomic.request() }
    }

    #[inline(always)]
    unsafe fn do_word<'a>(&self, context: &'a Context, peer: u64) -> Quick<'a> {
        // SAFETY: the caller vouches for the place of the result.
        unsafe { context.fetch_add_word(peer, self.target.address(), self.operand, self.result) }
    }

    fn word(&self) -> llcl_remote_t {
        self.target
    }

    common_fields!();
}

impl Parameters for llcl_compare_swap_params_t {
    const QUEUES_QUICKLY: bool = true;

    unsafe fn request(&self) -> Result<Request> {
        let atomic = Atomic {
            peer: self.peer,
            flags: self.flags,
            target: self.target.address(),
            op: LLCL_OP_COMPARE_SWAP,
            kind: LLCL_TYPE_U64,
            operand: self.desired,
            compare: self.compare,
            result: self.result.cast(),
            on_complete: *self.on_complete.as_engine(),
        };
        // SAFETY: as the caller promises.
        unsafe { atomic.request() }
    }

    #[inline(always)]
    unsafe fn do_word<'a>(&self, context: &'a Context, peer: u64) -> Quick<'a> {
        let (target, numbers) = (self.target.address(), (self.compare, self.desired));
        // SAFETY: the caller vouches for the place of the result.
        unsafe { context.compare_swap_word(peer, target, numbers, self.result) }
    }

    fn word(&self) -> llcl_remote_t {
        self.target
    }

    common_fields!();
}

/// Adds to a uint64_t of a peer atomically, if that is possible now.
///
/// The change is an acquire and a release. The memory of the result must stay valid until
/// `on_complete`. `context`: a live context. `params`: read during the call only.
/// LLCL_OK: accepted; LLCL_RETRY_QUEUE_FULL, LLCL_RETRY_NO_TAG, LLCL_RETRY_BUSY,
/// LLCL_RETRY_CONNECTING: try again;
/// LLCL_ERR_INVALID, LLCL_ERR_RANGE, LLCL_ERR_KEY: llcl_last_error() says what is wrong with
/// `params`; LLCL_ERR_PEER_DEAD: the peer has died or has left; LLCL_ERR_STATE: the context is
/// being finalized; LLCL_ERR_NO_MEMORY, LLCL_ERR_SYSTEM: the peer's memory cannot be mapped. The
/// completion may report LLCL_ERR_PEER_DEAD, LLCL_ERR_KEY (the owner has freed the region),
/// LLCL_ERR_SYSTEM (a network or a system call has failed) or LLCL_ERR_CANCELED.
/// Any thread may call it, also inside a callback. The conventions say on which thread the
/// completions run. From: Akimoto and others' evaluation of the InfiniBand atomics; unlike there,
/// local and remote changes are atomic with respect to each other.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn llcl_try_fetch_add_async(
    context: *mut llcl_context_t,
    params: *const llcl_fetch_add_params_t,
) -> llcl_status_t {
    // SAFETY: as the caller promises.
    unsafe { try_post(context, params) }
}

/// Adds to a uint64_t of a peer atomically: like llcl_try_fetch_add_async, but tries until it is
/// accepted, and helps with progress meanwhile.
///
/// `context` and `params`: as there. LLCL_OK or an error as there, never a "try again"; inside a
/// callback LLCL_ERR_STATE. Any thread may call it.
/// This library's own.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn llcl_fetch_add_async(
    context: *mut llcl_context_t,
    params: *const llcl_fetch_add_params_t,
) -> llcl_status_t {
    // SAFETY: as the caller promises.
    unsafe { post(context, params) }
}

/// Adds to a uint64_t of a peer atomically and waits for the end, helping with progress meanwhile
/// and sleeping if it takes long.
///
/// `context` and `params`: as for llcl_try_fetch_add_async; the completions must be
/// llcl_no_completion(). LLCL_OK: done; else an error as there, or the one with which the operation
/// ended; inside a callback LLCL_ERR_STATE. Any thread may call it.
/// From: shmem_atomic_fetch_add of OpenSHMEM.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn llcl_fetch_add(
    context: *mut llcl_context_t,
    params: *const llcl_fetch_add_params_t,
) -> llcl_status_t {
    // SAFETY: as the caller promises.
    unsafe { post_and_wait(context, params) }
}

/// Exchanges a uint64_t of a peer if it has an expected value, atomically, if that is possible now.
///
/// The change is an acquire and a release. The memory of the result must stay valid until
/// `on_complete`. `context`: a live context. `params`: read during the call only.
/// LLCL_OK: accepted; LLCL_RETRY_QUEUE_FULL, LLCL_RETRY_NO_TAG, LLCL_RETRY_BUSY,
/// LLCL_RETRY_CONNECTING: try again;
/// LLCL_ERR_INVALID, LLCL_ERR_RANGE, LLCL_ERR_KEY: llcl_last_error() says what is wrong with
/// `params`; LLCL_ERR_PEER_DEAD: the peer has died or has left; LLCL_ERR_STATE: the context is
/// being finalized; LLCL_ERR_NO_MEMORY, LLCL_ERR_SYSTEM: the peer's memory cannot be mapped. The
/// completion may report LLCL_ERR_PEER_DEAD, LLCL_ERR_KEY (the owner has freed the region),
/// LLCL_ERR_SYSTEM (a network or a system call has failed) or LLCL_ERR_CANCELED.
/// Any thread may call it, also inside a callback. The conventions say on which thread the
/// completions run. From: Akimoto and others' evaluation of the InfiniBand atomics; unlike there,
/// local and remote changes are atomic with respect to each other.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn llcl_try_compare_swap_async(
    context: *mut llcl_context_t,
    params: *const llcl_compare_swap_params_t,
) -> llcl_status_t {
    // SAFETY: as the caller promises.
    unsafe { try_post(context, params) }
}

/// Exchanges a uint64_t of a peer if it has an expected value, atomically: like
/// llcl_try_compare_swap_async, but tries until it is accepted, and helps with progress meanwhile.
///
/// `context` and `params`: as there. LLCL_OK or an error as there, never a "try again"; inside a
/// callback LLCL_ERR_STATE. Any thread may call it.
/// This library's own.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn llcl_compare_swap_async(
    context: *mut llcl_context_t,
    params: *const llcl_compare_swap_params_t,
) -> llcl_status_t {
    // SAFETY: as the caller promises.
    unsafe { post(context, params) }
}

/// Exchanges a uint64_t of a peer if it has an expected value, atomically and waits for the end,
/// helping with progress meanwhile and sleeping if it takes long.
///
/// `context` and `params`: as for llcl_try_compare_swap_async; the completions must be
/// llcl_no_completion(). LLCL_OK: done; else an error as there, or the one with which the operation
/// ended; inside a callback LLCL_ERR_STATE. Any thread may call it.
/// From: shmem_atomic_compare_swap of OpenSHMEM.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn llcl_compare_swap(
    context: *mut llcl_context_t,
    params: *const llcl_compare_swap_params_t,
) -> llcl_status_t {
    // SAFETY: as the caller promises.
    unsafe { post_and_wait(context, params) }
}
