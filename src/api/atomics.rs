//! 8. Atomics: on words of a peer. All changes of a word have one order, whatever rank makes them.

use crate::api::completion::llcl_completion_t;
use crate::api::guard::{give, given, guard, known_size};
use crate::api::life::{live, llcl_context_t};
use crate::api::memory::llcl_remote_t;
use crate::api::posting::{Parameters, common_fields, post, post_and_wait, try_post};
use crate::api::status::llcl_status_t;
use crate::core::atomics::Atomic;
use crate::core::context::Context;
use crate::core::rma::Quick;
use crate::core::submit::Request;
use crate::util::status::Result;
use std::ffi::c_void;

/// int32_t
pub const LLCL_TYPE_I32: u32 = 1;
/// uint32_t
pub const LLCL_TYPE_U32: u32 = 2;
/// int64_t
pub const LLCL_TYPE_I64: u32 = 3;
/// uint64_t
pub const LLCL_TYPE_U64: u32 = 4;
/// float
pub const LLCL_TYPE_F32: u32 = 5;
/// double
pub const LLCL_TYPE_F64: u32 = 6;

/// Fetches the word.
pub const LLCL_OP_LOAD: u32 = 1;
/// Sets the word to the operand.
pub const LLCL_OP_STORE: u32 = 2;
/// Sets the word to the operand and fetches its former value; the same as STORE with a result.
pub const LLCL_OP_SWAP: u32 = 3;
/// Sets the word to the operand if its bits equal those of `compare`.
pub const LLCL_OP_COMPARE_SWAP: u32 = 4;
/// Adds; integers wrap around.
pub const LLCL_OP_ADD: u32 = 5;
/// Subtracts; integers wrap around.
pub const LLCL_OP_SUB: u32 = 6;
/// Bitwise and, of integers.
pub const LLCL_OP_AND: u32 = 7;
/// Bitwise or, of integers.
pub const LLCL_OP_OR: u32 = 8;
/// Bitwise exclusive or, of integers.
pub const LLCL_OP_XOR: u32 = 9;
/// The smaller one; of a number and a NaN the number.
pub const LLCL_OP_MIN: u32 = 10;
/// The larger one; of a number and a NaN the number.
pub const LLCL_OP_MAX: u32 = 11;

/// Every processor of the machine changes the word by atomic instructions. The program may do so as
/// well, through pointers, with the atomics of C.
pub const LLCL_DOMAIN_PROCESSOR: u32 = 1;
/// Only the process that owns the word changes it, at the request of the other ranks. The owner's
/// program may do so as well, with the atomics of C.
pub const LLCL_DOMAIN_OWNER: u32 = 2;

/// Only the network adapter of the rank that owns the word changes it, for all ranks
/// (LLCL_REGION_DEVICE_ATOMICS). A program may only load it.
pub const LLCL_DOMAIN_DEVICE: u32 = 3;

/// One atomic instruction of the calling processor: some 5 ns on a word that no other core uses.
pub const LLCL_COST_INSTRUCTION: u32 = 1;
/// A loop of the calling processor around a compare-and-swap, because it has no instruction for the
/// operation. Each turn costs as much as LLCL_COST_INSTRUCTION. There is one more turn for each
/// change of the word by others in the meantime.
pub const LLCL_COST_LOOP: u32 = 2;
/// A request to the owner and its answer: some 0.3 us if a thread of the owner is awake; if none
/// is, 10 us and more, since one must be woken.
pub const LLCL_COST_MESSAGES: u32 = 3;
/// One command of the network and its end, without a thread of the owner.
pub const LLCL_COST_NETWORK: u32 = 4;
/// A loop around the network's compare-and-swap, because the network has no command for the
/// operation: two such commands, and one more for each change of the word by others in the
/// meantime.
pub const LLCL_COST_NETWORK_LOOP: u32 = 5;

/// An atomic operation.
#[repr(C)]
pub struct llcl_atomic_params_t {
    /// The rank whose word it is.
    pub peer: u32,
    /// LLCL_FLAG_*, or 0.
    pub flags: u32,
    /// The word, aligned to its size.
    pub target: llcl_remote_t,
    /// One of LLCL_OP_LOAD to LLCL_OP_PROD.
    pub op: u32,
    /// One of LLCL_TYPE_I8 to LLCL_TYPE_I64, of the unsigned types beside them, LLCL_TYPE_F32 and
    /// LLCL_TYPE_F64.
    pub r#type: u32,
    /// The operand: its bits, in the low-order part. Ignored by LOAD.
    pub operand: u64,
    /// The expected value of COMPARE_SWAP, in the same form. Else ignored.
    pub compare: u64,
    /// Where the word's former value goes: any memory of the caller, of the size of the type and
    /// aligned to it. It is written before `on_complete` fires. NULL: the value is not fetched; not
    /// allowed with LOAD.
    pub result: *mut c_void,
    /// Fires when the operation has ended.
    pub on_complete: llcl_completion_t,
}

/// How an atomic operation would be executed.
#[repr(C)]
pub struct llcl_atomic_info_t {
    /// Bytes of this struct, set by the caller before the call.
    pub struct_size: u64,
    /// 1: the type has the operation; 0: it has not.
    pub supported: u32,
    /// One of LLCL_DOMAIN_*; 0 where it is not supported.
    pub domain: u32,
    /// One of LLCL_COST_*; 0 where it is not supported. LLCL_EXECUTION_OFFLOAD adds the way through
    /// the command queue to it.
    pub cost: u32,
    /// 0.
    pub reserved: u32,
}

impl llcl_atomic_params_t {
    #[inline(always)]
    fn atomic(&self) -> Atomic {
        Atomic {
            peer: self.peer,
            flags: self.flags,
            target: self.target.address(),
            op: self.op,
            kind: self.r#type,
            operand: self.operand,
            compare: self.compare,
            result: self.result.cast(),
            on_complete: *self.on_complete.as_engine(),
        }
    }
}

impl Parameters for llcl_atomic_params_t {
    const QUEUES_QUICKLY: bool = true;
    const POSTS_QUICKLY: bool = true;

    unsafe fn request(&self) -> Result<Request> {
        // SAFETY: as the caller promises.
        unsafe { self.atomic().request() }
    }

    #[inline(always)]
    unsafe fn do_word<'a>(&self, context: &'a Context, peer: u64) -> Quick<'a> {
        // SAFETY: the caller vouches for the place of the result.
        unsafe { context.do_on_word(peer, &self.atomic()) }
    }

    fn word(&self) -> llcl_remote_t {
        self.target
    }

    common_fields!();
}

/// How an atomic operation on a word would be executed.
///
/// `context`: a live context. `peer`: the owner of the word, a rank below llcl_size. `target`: the
/// word. `op` and `type`: as of llcl_atomic_params_t. `info`: the caller's struct with its
/// struct_size set; filled.
/// LLCL_OK, also if the type does not have the operation; LLCL_ERR_INVALID: NULL, a misaligned
/// word, or no such peer, operation or type; LLCL_ERR_KEY, LLCL_ERR_RANGE: there is no such word;
/// LLCL_ERR_PEER_DEAD: the peer has died or has left; LLCL_ERR_STATE: the context is being
/// finalized; LLCL_RETRY_CONNECTING: this is the first use of the peer, and the call is made inside
/// a callback: call again later. Outside of callbacks it waits for the contact. Any thread may call
/// it.
/// From: fi_query_atomic of libfabric.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn llcl_atomic_query(
    context: *mut llcl_context_t,
    peer: u32,
    target: llcl_remote_t,
    op: u32,
    r#type: u32,
    info: *mut llcl_atomic_info_t,
) -> llcl_status_t {
    guard(|| {
        // SAFETY: the caller gives a live context and a struct.
        let (context, asked) = unsafe { (live(context)?, given(info, "info")?) };
        known_size(asked.struct_size, size_of::<llcl_atomic_info_t>())?;
        let execution = context.atomic_execution(peer, target.address(), op, r#type)?;
        let answer = llcl_atomic_info_t {
            struct_size: asked.struct_size,
            supported: execution.is_some().into(),
            domain: execution.map_or(0, |execution| execution.domain as u32),
            cost: execution.map_or(0, |execution| execution.cost as u32),
            reserved: 0,
        };
        // SAFETY: as above.
        unsafe { give(info, "info", answer) }
    })
}

/// Changes or fetches a word of a peer atomically, if that is possible now.
///
/// The change is an acquire and a release. The memory of the result must stay valid until
/// `on_complete`. `context`: a live context. `params`: read during the call only.
/// LLCL_OK: accepted; LLCL_RETRY_QUEUE_FULL, LLCL_RETRY_NO_TAG, LLCL_RETRY_BUSY,
/// LLCL_RETRY_CONNECTING: try again;
/// LLCL_ERR_INVALID, LLCL_ERR_RANGE, LLCL_ERR_KEY: llcl_last_error() says what is wrong with
/// `params`; LLCL_ERR_PEER_DEAD: the peer has died or has left; LLCL_ERR_STATE: the context is
/// being finalized; LLCL_ERR_NO_MEMORY, LLCL_ERR_SYSTEM: the peer's memory cannot be mapped.
/// LLCL_ERR_UNSUPPORTED: the type does not have the operation. The completion may report
/// LLCL_ERR_PEER_DEAD, LLCL_ERR_KEY (the owner has freed the region), LLCL_ERR_SYSTEM (a network or
/// a system call has failed) or LLCL_ERR_CANCELED.
/// Any thread may call it, also inside a callback. The conventions say on which thread the
/// completions run. From: Akimoto and others' evaluation of the InfiniBand atomics; unlike there,
/// local and remote changes are atomic with respect to each other.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn llcl_try_atomic_async(
    context: *mut llcl_context_t,
    params: *const llcl_atomic_params_t,
) -> llcl_status_t {
    // SAFETY: as the caller promises.
    unsafe { try_post(context, params) }
}

/// Changes or fetches a word of a peer atomically: like llcl_try_atomic_async, but tries until it
/// is accepted, and helps with progress meanwhile.
///
/// `context` and `params`: as there. LLCL_OK or an error as there, never a "try again"; inside a
/// callback LLCL_ERR_STATE. Any thread may call it.
/// This library's own.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn llcl_atomic_async(
    context: *mut llcl_context_t,
    params: *const llcl_atomic_params_t,
) -> llcl_status_t {
    // SAFETY: as the caller promises.
    unsafe { post(context, params) }
}

/// Changes or fetches a word of a peer atomically and waits for the end, helping with progress
/// meanwhile and sleeping if it takes long.
///
/// `context` and `params`: as for llcl_try_atomic_async; the completions must be
/// llcl_no_completion(). LLCL_OK: done; else an error as there, or the one with which the operation
/// ended; inside a callback LLCL_ERR_STATE. Any thread may call it.
/// From: MPI_Fetch_and_op.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn llcl_atomic(
    context: *mut llcl_context_t,
    params: *const llcl_atomic_params_t,
) -> llcl_status_t {
    // SAFETY: as the caller promises.
    unsafe { post_and_wait(context, params) }
}
