//! 18. Reads and writes of many pieces: boxes with strides on both sides, and lists of places on
//!     both sides.
//!
//! Each is one request with one completion. If all of the peer's memory concerned is mapped, and
//! neither LLCL_FLAG_DEFER nor offload mode asks for the queue, the caller copies everything in the
//! call. Otherwise the request goes through the command queue as one command, and the thread that
//! executes it copies the pieces one after the other. For each piece in memory that its owner has
//! registered, the kernel makes a copy. Where the kernel does not copy, messages go to the owner; a
//! message carries as many pieces of one region as fit in 32 KiB, each with 16 bytes more. A write
//! may change a word of the peer when all of its bytes are there.

use crate::api::completion::llcl_completion_t;
use crate::api::life::llcl_context_t;
use crate::api::memory::{llcl_local_t, llcl_remote_t};
use crate::api::pieces::{Call, Tier, post_many};
use crate::api::status::llcl_status_t;
use crate::core::noncontiguous::{DIMENSIONS, Span};
use crate::engine::command::Op;
use std::mem::offset_of;

/// Most dimensions of a box with strides.
pub const LLCL_STRIDED_DIMENSIONS: u32 = 8;

/// A box with strides on both sides: pieces of `size` bytes, `extents[0]` of them in a row,
/// `extents[1]` rows, and so on. Piece (i0, i1, ...) lies `i0 * strides[0] + i1 * strides[1] + ...`
/// bytes behind the first one.
#[repr(C)]
pub struct llcl_strided_params_t {
    /// The rank to read from or to write to.
    pub peer: u32,
    /// LLCL_FLAG_*, or 0.
    pub flags: u32,
    /// The first piece in the caller's memory: the source of a write, the destination of a read.
    pub local: llcl_local_t,
    /// The first piece in the peer's memory.
    pub remote: llcl_remote_t,
    /// Bytes of a piece. With 0 both addresses are checked, and nothing moves.
    pub size: usize,
    /// How many entries of `extents` and the strides are used: 1 to LLCL_STRIDED_DIMENSIONS.
    pub dimensions: u32,
    /// For a write: how the word `signal` changes when all bytes are there, LLCL_SIGNAL_SET or
    /// LLCL_SIGNAL_ADD; 0: not at all. For a read: 0.
    pub signal_op: u32,
    /// Numbers of pieces, the innermost dimension first; 0 moves nothing.
    pub extents: [u64; 8],
    /// Bytes from one piece to the next in the caller's memory, never negative. Pieces of a source
    /// may overlap; pieces of a destination must not.
    pub local_strides: [u64; 8],
    /// Bytes from one piece to the next in the peer's memory. As `local_strides`.
    pub remote_strides: [u64; 8],
    /// The word: a uint64_t of the same peer, aligned to 8 bytes.
    pub signal: llcl_remote_t,
    /// What the word is set to, or what is added to it.
    pub signal_value: u64,
    /// Fires when all bytes are at their destination. The source may then be reused.
    pub on_complete: llcl_completion_t,
}

/// Bytes in the caller's memory.
#[repr(C)]
pub struct llcl_local_span_t {
    /// The first byte.
    pub place: llcl_local_t,
    /// How many bytes, may be 0.
    pub size: usize,
}

/// Bytes in a peer's memory.
#[repr(C)]
pub struct llcl_remote_span_t {
    /// The first byte.
    pub place: llcl_remote_t,
    /// How many bytes, may be 0.
    pub size: usize,
}

/// A list of spans on each side. The bytes of one list, in its order, go to the bytes of the other
/// list, in its order. Both lists have the same number of bytes; their spans may differ in number
/// and size. The lists must not change during the call. If they do, the call may be refused, or use
/// old or new entries, but it accesses no memory outside the regions.
#[repr(C)]
pub struct llcl_vector_params_t {
    /// The rank to read from or to write to.
    pub peer: u32,
    /// LLCL_FLAG_*, or 0.
    pub flags: u32,
    /// The spans in the caller's memory; NULL if `local_count` is 0. Read during the call only.
    pub locals: *const llcl_local_span_t,
    /// How many there are.
    pub local_count: usize,
    /// The spans in the peer's memory; NULL if `remote_count` is 0. Read during the call only.
    pub remotes: *const llcl_remote_span_t,
    /// How many there are.
    pub remote_count: usize,
    /// For a write: the word that changes when all bytes are there, a uint64_t of the same peer,
    /// aligned to 8 bytes.
    pub signal: llcl_remote_t,
    /// What the word is set to, or what is added to it.
    pub signal_value: u64,
    /// For a write: LLCL_SIGNAL_SET or LLCL_SIGNAL_ADD; 0: no word changes. For a read: 0.
    pub signal_op: u32,
    /// 0.
    pub reserved: u32,
    /// Fires when all bytes are at their destination. The source may then be reused.
    pub on_complete: llcl_completion_t,
}

const _: () = {
    assert!(LLCL_STRIDED_DIMENSIONS as usize == DIMENSIONS);
    assert!(size_of::<llcl_local_span_t>() == size_of::<Span>());
    assert!(size_of::<llcl_remote_span_t>() == size_of::<Span>());
    assert!(offset_of!(llcl_local_span_t, size) == offset_of!(Span, size));
    assert!(offset_of!(llcl_remote_span_t, size) == offset_of!(Span, size));
};

/// Writes a box with strides to a peer, and then changes a word there if `signal_op` says so, if
/// that is possible now.
///
/// A thread that sees the word changed sees all bytes, as with llcl_try_write_signal_async.
/// The source must not change until `on_complete`. Pieces are copied in any order. Source and
/// destination must not overlap. If pieces of the destination overlap, the request is refused where
/// the strides alone show it; else the bytes there are those of any of the pieces.
/// `context`: a live context. `params`: read during the call only.
/// LLCL_OK: accepted; LLCL_RETRY_QUEUE_FULL, LLCL_RETRY_BUSY, LLCL_RETRY_CONNECTING: try again;
/// LLCL_ERR_INVALID: NULL, unknown flags or an invalid completion; or `dimensions` is 0 or more
/// than LLCL_STRIDED_DIMENSIONS, `signal_op` is wrong, the signal word is not aligned, or pieces of
/// the destination overlap; LLCL_ERR_RANGE: a box leaves its region, or its extents and strides
/// exceed 64 bits, as negative ones do; LLCL_ERR_KEY: a box is in no live region;
/// LLCL_ERR_PEER_DEAD: the peer has died or has left; LLCL_ERR_STATE: the context is being
/// finalized; LLCL_ERR_NO_MEMORY: no memory for the list of pieces, or the peer's memory cannot be
/// mapped; LLCL_ERR_SYSTEM: it cannot be mapped; LLCL_ERR_UNSUPPORTED: the signal word lies in a
/// region with LLCL_REGION_DEVICE_ATOMICS. Every error except LLCL_ERR_KEY is found before any byte
/// moves. The completion may report LLCL_ERR_PEER_DEAD, LLCL_ERR_KEY (the owner has freed the
/// region, or may not access its memory), LLCL_ERR_INVALID (this rank may not access the local
/// memory), LLCL_ERR_SYSTEM or LLCL_ERR_CANCELED: the first failure of all pieces. Some of the
/// bytes may then have moved. Any thread may call it, also inside a callback. The conventions say
/// on which thread the completion runs. From: the strided put and get of ARMCI and of GASNet (VIS),
/// but with the size of an element apart from the extents.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn llcl_try_write_strided_async(
    context: *mut llcl_context_t,
    params: *const llcl_strided_params_t,
) -> llcl_status_t {
    // SAFETY: as the caller promises.
    unsafe {
        post_many(
            &Call { name: "llcl_write_strided", op: Op::WRITE, tier: Tier::Try },
            context,
            params,
        )
    }
}

/// Tries llcl_try_write_strided_async until it is accepted, and helps with progress meanwhile.
///
/// `context` and `params`: as there. LLCL_OK or an error as there, never a "try again"; inside a
/// callback LLCL_ERR_STATE. Any thread may call it.
/// This library's own.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn llcl_write_strided_async(
    context: *mut llcl_context_t,
    params: *const llcl_strided_params_t,
) -> llcl_status_t {
    // SAFETY: as the caller promises.
    unsafe {
        post_many(
            &Call { name: "llcl_write_strided", op: Op::WRITE, tier: Tier::Accepted },
            context,
            params,
        )
    }
}

/// Does what llcl_try_write_strided_async begins and waits for the end, helping with progress
/// meanwhile and sleeping if it takes long.
///
/// `context` and `params`: as there; `on_complete` must be llcl_no_completion().
/// LLCL_OK: done; else an error as there, or the one with which the operation ended; inside a
/// callback LLCL_ERR_STATE. Any thread may call it.
/// From: the strided put of ARMCI and of GASNet (VIS).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn llcl_write_strided(
    context: *mut llcl_context_t,
    params: *const llcl_strided_params_t,
) -> llcl_status_t {
    // SAFETY: as the caller promises.
    unsafe {
        post_many(
            &Call { name: "llcl_write_strided", op: Op::WRITE, tier: Tier::Ended },
            context,
            params,
        )
    }
}

/// Reads a box with strides from a peer, if that is possible now.
///
/// The destination is undefined until `on_complete`.
/// `context` and `params`: as of llcl_try_write_strided_async, with `signal_op` 0; order and
/// overlap: as there. LLCL_OK and all other statuses, and what the completion reports: as there.
/// Any thread may call it, also inside a callback. From: the strided get of ARMCI and of GASNet.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn llcl_try_read_strided_async(
    context: *mut llcl_context_t,
    params: *const llcl_strided_params_t,
) -> llcl_status_t {
    // SAFETY: as the caller promises.
    unsafe {
        post_many(
            &Call { name: "llcl_read_strided", op: Op::READ, tier: Tier::Try },
            context,
            params,
        )
    }
}

/// Tries llcl_try_read_strided_async until it is accepted, and helps with progress meanwhile.
///
/// `context` and `params`: as there. LLCL_OK or an error as there, never a "try again"; inside a
/// callback LLCL_ERR_STATE. Any thread may call it.
/// This library's own.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn llcl_read_strided_async(
    context: *mut llcl_context_t,
    params: *const llcl_strided_params_t,
) -> llcl_status_t {
    // SAFETY: as the caller promises.
    unsafe {
        post_many(
            &Call { name: "llcl_read_strided", op: Op::READ, tier: Tier::Accepted },
            context,
            params,
        )
    }
}

/// Does what llcl_try_read_strided_async begins and waits for the end, helping with progress
/// meanwhile and sleeping if it takes long.
///
/// `context` and `params`: as there; `on_complete` must be llcl_no_completion().
/// LLCL_OK: done; else an error as there, or the one with which the operation ended; inside a
/// callback LLCL_ERR_STATE. Any thread may call it.
/// From: the strided get of ARMCI and of GASNet (VIS).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn llcl_read_strided(
    context: *mut llcl_context_t,
    params: *const llcl_strided_params_t,
) -> llcl_status_t {
    // SAFETY: as the caller promises.
    unsafe {
        post_many(
            &Call { name: "llcl_read_strided", op: Op::READ, tier: Tier::Ended },
            context,
            params,
        )
    }
}

/// Writes a list of spans to a list of spans of a peer, and then changes a word there if
/// `signal_op` says so, if that is possible now.
///
/// A thread that sees the word changed sees all bytes, as with llcl_try_write_signal_async.
/// The source must not change until `on_complete`. Pieces are copied in any order. Source and
/// destination must not overlap. If spans of the destination overlap, the bytes there are those of
/// any of them.
/// `context`: a live context. `params`: read during the call only.
/// LLCL_OK: accepted; LLCL_RETRY_QUEUE_FULL, LLCL_RETRY_BUSY, LLCL_RETRY_CONNECTING: try again;
/// LLCL_ERR_INVALID: NULL, unknown flags or an invalid completion; or a list is NULL and not empty,
/// the lists differ in bytes, `reserved` is not 0, `signal_op` is wrong, or the signal word is not
/// aligned; LLCL_ERR_RANGE: a span leaves its region, the sum of the sizes exceeds 64 bits, or a
/// list has more entries than memory holds; LLCL_ERR_KEY: a span is in no live region (the message
/// of both names the span); LLCL_ERR_PEER_DEAD: the peer has died or has left; LLCL_ERR_STATE: the
/// context is being finalized; LLCL_ERR_NO_MEMORY: no memory for the list of pieces, or the peer's
/// memory cannot be mapped; LLCL_ERR_SYSTEM: it cannot be mapped; LLCL_ERR_UNSUPPORTED: the signal
/// word lies in a region with LLCL_REGION_DEVICE_ATOMICS. If the call answers a "try again" or an
/// error, bytes may have moved: those before the first span that is wrong or not mapped; if the
/// lists differ in bytes, all that both have. The completion may report LLCL_ERR_PEER_DEAD,
/// LLCL_ERR_KEY (the owner has freed the region, or may not access its memory), LLCL_ERR_INVALID
/// (this rank may not access the local memory), LLCL_ERR_SYSTEM or LLCL_ERR_CANCELED: the first
/// failure of all pieces. Some of the bytes may then have moved. Any thread may call it, also
/// inside a callback. The conventions say on which thread the completion runs. From: the vector put
/// and get of GASNet (VIS) and ARMCI, and POSIX's readv and writev.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn llcl_try_writev_async(
    context: *mut llcl_context_t,
    params: *const llcl_vector_params_t,
) -> llcl_status_t {
    // SAFETY: as the caller promises.
    unsafe {
        post_many(&Call { name: "llcl_writev", op: Op::WRITE, tier: Tier::Try }, context, params)
    }
}

/// Tries llcl_try_writev_async until it is accepted, and helps with progress meanwhile.
///
/// `context` and `params`: as there. LLCL_OK or an error as there, never a "try again"; inside a
/// callback LLCL_ERR_STATE. Any thread may call it.
/// This library's own.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn llcl_writev_async(
    context: *mut llcl_context_t,
    params: *const llcl_vector_params_t,
) -> llcl_status_t {
    // SAFETY: as the caller promises.
    unsafe {
        post_many(
            &Call { name: "llcl_writev", op: Op::WRITE, tier: Tier::Accepted },
            context,
            params,
        )
    }
}

/// Does what llcl_try_writev_async begins and waits for the end, helping with progress
/// meanwhile and sleeping if it takes long.
///
/// `context` and `params`: as there; `on_complete` must be llcl_no_completion().
/// LLCL_OK: done; else an error as there, or the one with which the operation ended; inside a
/// callback LLCL_ERR_STATE. Any thread may call it.
/// From: writev of POSIX.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn llcl_writev(
    context: *mut llcl_context_t,
    params: *const llcl_vector_params_t,
) -> llcl_status_t {
    // SAFETY: as the caller promises.
    unsafe {
        post_many(&Call { name: "llcl_writev", op: Op::WRITE, tier: Tier::Ended }, context, params)
    }
}

/// Reads a list of spans of a peer into a list of spans, if that is possible now.
///
/// The destination is undefined until `on_complete`.
/// `context` and `params`: as of llcl_try_writev_async, with `signal_op` 0; order and overlap: as
/// there. LLCL_OK and all other statuses, and what the completion reports: as there.
/// Any thread may call it, also inside a callback. From: POSIX's readv.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn llcl_try_readv_async(
    context: *mut llcl_context_t,
    params: *const llcl_vector_params_t,
) -> llcl_status_t {
    // SAFETY: as the caller promises.
    unsafe {
        post_many(&Call { name: "llcl_readv", op: Op::READ, tier: Tier::Try }, context, params)
    }
}

/// Tries llcl_try_readv_async until it is accepted, and helps with progress meanwhile.
///
/// `context` and `params`: as there. LLCL_OK or an error as there, never a "try again"; inside a
/// callback LLCL_ERR_STATE. Any thread may call it.
/// This library's own.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn llcl_readv_async(
    context: *mut llcl_context_t,
    params: *const llcl_vector_params_t,
) -> llcl_status_t {
    // SAFETY: as the caller promises.
    unsafe {
        post_many(&Call { name: "llcl_readv", op: Op::READ, tier: Tier::Accepted }, context, params)
    }
}

/// Does what llcl_try_readv_async begins and waits for the end, helping with progress
/// meanwhile and sleeping if it takes long.
///
/// `context` and `params`: as there; `on_complete` must be llcl_no_completion().
/// LLCL_OK: done; else an error as there, or the one with which the operation ended; inside a
/// callback LLCL_ERR_STATE. Any thread may call it.
/// From: readv of POSIX.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn llcl_readv(
    context: *mut llcl_context_t,
    params: *const llcl_vector_params_t,
) -> llcl_status_t {
    // SAFETY: as the caller promises.
    unsafe {
        post_many(&Call { name: "llcl_readv", op: Op::READ, tier: Tier::Ended }, context, params)
    }
}
