//! 20. Collectives for the occasional call that do not wait: one call starts, a completion tells.
//!
//! Each takes what its _init function takes, and returns at once; `on_complete`, which must be one
//! that tells, fires when the operation has ended at this rank, or with an error. Until then the
//! buffers must not be changed, as for llcl_coll_start; what the parameters point to besides
//! (counts, offsets, the name of the algorithm) is read during the call. Nothing more happens in
//! the call than llcl_coll_start does.
//!
//! The calls of a team have one order, that of all its collective functions, which must be alike at
//! all ranks; a call that is answered by "try again" or by an error has not happened and counts for
//! nothing, and the other ranks wait for it. Any number of different operations may be under way,
//! and `depth` (0 counts as 1) of those that differ in buffers, `function` and `on_complete` only. In
//! v forms the counts do not make a difference there. As long as a call waits to be made ready,
//! `depth` more may be taken on.
//!
//! The plans behind them are kept, as many as LLCL_COLL_CACHE says, apart from those of the blocking
//! forms, which therefore do not match these. A call whose plan is kept is started by its thread. A
//! call that is new, a v form (whose ranks vote, as told at the blocking forms), and every call
//! that comes while another of these is being made ready, is left to a thread of the library,
//! `llcl-coll`, one for each team at a time, which ends when nothing is left. What is found there to
//! be wrong, a difference between ranks included, is told by the completion's status. Functions of
//! the team that wait (the _init functions, the blocking forms, llcl_team_split, llcl_team_free) begin when the calls
//! before them are ready; llcl_finalize gives those that are not LLCL_FINALIZE_MS, and then ends
//! them with LLCL_ERR_CANCELED.
//!
//! From: the nonblocking collectives of MPI 3.0, section 5.12, with a completion in place of the
//! request, and a depth.

use crate::api::coll::begin;
use crate::api::guard::guard;
use crate::api::plan::llcl_coll_params_t;
use crate::api::status::llcl_status_t;
use crate::coll::plan::asked::Form;
use crate::coll::problem::Operation;

/// Ends when every rank of the team has called it, without waiting.
///
/// `params`: as llcl_barrier_init, read during the call; `on_complete` must tell.
/// LLCL_OK: accepted; LLCL_RETRY_BUSY: as many such calls as `depth` says are under way, or 64 wait
/// to be made ready: wait for one of them, and repeat; LLCL_RETRY_QUEUE_FULL: inside a callback, as
/// for all that may end in it; LLCL_ERR_INVALID: NULL, a value that is not allowed, or an
/// `on_complete` that does not tell;
/// LLCL_ERR_STATE: the team was freed, or the context is being finalized; LLCL_ERR_NO_MEMORY: no
/// thread can be started; LLCL_ERR_KEY, LLCL_ERR_RANGE, LLCL_ERR_PEER_DEAD: as
/// llcl_coll_start_with. The completion may also report what llcl_barrier_init and llcl_coll_wait
/// answer, and LLCL_ERR_CANCELED.
/// Any thread may call it, also inside a callback, but threads of one rank must not call collective
/// functions of one team at the same time. Where the completion fires: see the conventions.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn llcl_barrier_async(params: *const llcl_coll_params_t) -> llcl_status_t {
    // SAFETY: as the contract says.
    guard(|| unsafe { begin(Operation::Barrier, Form::Even, params) })
}

/// The root's data for every rank, without waiting.
///
/// `params`: as llcl_broadcast_init, read during the call; `on_complete` must tell. LLCL_OK:
/// accepted; other statuses, those of the completion, and threads: as llcl_barrier_async.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn llcl_broadcast_async(params: *const llcl_coll_params_t) -> llcl_status_t {
    // SAFETY: as the contract says.
    guard(|| unsafe { begin(Operation::Broadcast, Form::Even, params) })
}

/// The elements of all ranks, combined one by one, at the root, without waiting.
///
/// `params`: as llcl_reduce_init, read during the call; `on_complete` must tell. LLCL_OK: accepted;
/// other statuses, those of the completion, and threads: as llcl_barrier_async.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn llcl_reduce_async(params: *const llcl_coll_params_t) -> llcl_status_t {
    // SAFETY: as the contract says.
    guard(|| unsafe { begin(Operation::Reduce, Form::Even, params) })
}

/// The elements of all ranks, combined one by one, for every rank, without waiting.
///
/// `params`: as llcl_allreduce_init, read during the call; `on_complete` must tell. LLCL_OK:
/// accepted; other statuses, those of the completion, and threads: as llcl_barrier_async.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn llcl_allreduce_async(params: *const llcl_coll_params_t) -> llcl_status_t {
    // SAFETY: as the contract says.
    guard(|| unsafe { begin(Operation::Allreduce, Form::Even, params) })
}

/// A block of every rank, one after the other, at the root, without waiting.
///
/// `params`: as llcl_gather_init, read during the call; `on_complete` must tell. LLCL_OK: accepted;
/// other statuses, those of the completion, and threads: as llcl_barrier_async.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn llcl_gather_async(params: *const llcl_coll_params_t) -> llcl_status_t {
    // SAFETY: as the contract says.
    guard(|| unsafe { begin(Operation::Gather, Form::Even, params) })
}

/// A block of every rank at the root, with a length for each, without waiting.
///
/// `params`: as llcl_gatherv_init, read during the call; `on_complete` must tell. LLCL_OK:
/// accepted; other statuses, those of the completion, and threads: as llcl_barrier_async.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn llcl_gatherv_async(params: *const llcl_coll_params_t) -> llcl_status_t {
    // SAFETY: as the contract says.
    guard(|| unsafe { begin(Operation::Gather, Form::Varied, params) })
}

/// A block of the root's for every rank, without waiting.
///
/// `params`: as llcl_scatter_init, read during the call; `on_complete` must tell. LLCL_OK:
/// accepted; other statuses, those of the completion, and threads: as llcl_barrier_async.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn llcl_scatter_async(params: *const llcl_coll_params_t) -> llcl_status_t {
    // SAFETY: as the contract says.
    guard(|| unsafe { begin(Operation::Scatter, Form::Even, params) })
}

/// A block of the root's for every rank, with a length for each, without waiting.
///
/// `params`: as llcl_scatterv_init, read during the call; `on_complete` must tell. LLCL_OK:
/// accepted; other statuses, those of the completion, and threads: as llcl_barrier_async.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn llcl_scatterv_async(params: *const llcl_coll_params_t) -> llcl_status_t {
    // SAFETY: as the contract says.
    guard(|| unsafe { begin(Operation::Scatter, Form::Varied, params) })
}

/// A block of every rank, one after the other, for every rank, without waiting.
///
/// `params`: as llcl_allgather_init, read during the call; `on_complete` must tell. LLCL_OK:
/// accepted; other statuses, those of the completion, and threads: as llcl_barrier_async.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn llcl_allgather_async(params: *const llcl_coll_params_t) -> llcl_status_t {
    // SAFETY: as the contract says.
    guard(|| unsafe { begin(Operation::Allgather, Form::Even, params) })
}

/// A block of every rank for every rank, with a length for each, without waiting.
///
/// `params`: as llcl_allgatherv_init, read during the call; `on_complete` must tell. LLCL_OK:
/// accepted; other statuses, those of the completion, and threads: as llcl_barrier_async.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn llcl_allgatherv_async(params: *const llcl_coll_params_t) -> llcl_status_t {
    // SAFETY: as the contract says.
    guard(|| unsafe { begin(Operation::Allgather, Form::Varied, params) })
}

/// A block of every rank for each other, without waiting.
///
/// `params`: as llcl_alltoall_init, read during the call; `on_complete` must tell. LLCL_OK:
/// accepted; other statuses, those of the completion, and threads: as llcl_barrier_async.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn llcl_alltoall_async(params: *const llcl_coll_params_t) -> llcl_status_t {
    // SAFETY: as the contract says.
    guard(|| unsafe { begin(Operation::Alltoall, Form::Even, params) })
}

/// A block of every rank for each other, with lengths of their own, without waiting.
///
/// `params`: as llcl_alltoallv_init, read during the call; `on_complete` must tell. LLCL_OK:
/// accepted; other statuses, those of the completion, and threads: as llcl_barrier_async.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn llcl_alltoallv_async(params: *const llcl_coll_params_t) -> llcl_status_t {
    // SAFETY: as the contract says.
    guard(|| unsafe { begin(Operation::Alltoall, Form::Varied, params) })
}

/// The elements of all ranks, combined one by one; each rank gets a block of the result, without
/// waiting.
///
/// `params`: as llcl_reduce_scatter_init, read during the call; `on_complete` must tell. LLCL_OK:
/// accepted; other statuses, those of the completion, and threads: as llcl_barrier_async.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn llcl_reduce_scatter_async(
    params: *const llcl_coll_params_t,
) -> llcl_status_t {
    // SAFETY: as the contract says.
    guard(|| unsafe { begin(Operation::ReduceScatter, Form::Even, params) })
}

/// As the function without v, with a length for each rank's block, without waiting.
///
/// `params`: as llcl_reduce_scatterv_init, read during the call; `on_complete` must tell. LLCL_OK:
/// accepted; other statuses, those of the completion, and threads: as llcl_barrier_async.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn llcl_reduce_scatterv_async(
    params: *const llcl_coll_params_t,
) -> llcl_status_t {
    // SAFETY: as the contract says.
    guard(|| unsafe { begin(Operation::ReduceScatter, Form::Varied, params) })
}

/// For each rank the elements of all ranks up to and including it, combined one by one, without
/// waiting.
///
/// `params`: as llcl_scan_init, read during the call; `on_complete` must tell. LLCL_OK: accepted;
/// other statuses, those of the completion, and threads: as llcl_barrier_async.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn llcl_scan_async(params: *const llcl_coll_params_t) -> llcl_status_t {
    // SAFETY: as the contract says.
    guard(|| unsafe { begin(Operation::Scan, Form::Even, params) })
}

/// For each rank but the first the elements of all ranks before it, combined one by one, without
/// waiting.
///
/// `params`: as llcl_exscan_init, read during the call; `on_complete` must tell. LLCL_OK: accepted;
/// other statuses, those of the completion, and threads: as llcl_barrier_async.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn llcl_exscan_async(params: *const llcl_coll_params_t) -> llcl_status_t {
    // SAFETY: as the contract says.
    guard(|| unsafe { begin(Operation::Exscan, Form::Even, params) })
}
