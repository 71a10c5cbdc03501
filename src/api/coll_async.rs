//! 20. Nonblocking collectives: one call makes the plan and starts it; a completion reports the
//!     end.
//!
//! Each takes the parameters of its _init function and returns at once. `on_complete`, which must
//! not be llcl_no_completion(), fires when the operation has ended at this rank, or with an error.
//! Until then the program may use the buffers only as llcl_coll_start says. Counts, offsets and
//! the name of the algorithm are read during the call. The call takes about as long as
//! llcl_coll_start.
//!
//! All ranks must call the collective functions of a team in the same order, these included. A call
//! that is answered by "try again" or by an error has not happened, and the other ranks wait for
//! it. Any number of different operations may be under way. Of calls that differ in buffers,
//! `function` and `on_complete` only (in v forms also in the counts), as many as `depth` says may
//! be under way; 0 counts as 1. While such a call waits for its plan, `depth` more are accepted.
//!
//! A team keeps as many of their plans as LLCL_COLL_CACHE says, apart from the plans of the
//! blocking forms; so a nonblocking call must not be matched with a blocking one. It frees their
//! memory as that of those plans. If the plan of a call is kept, the calling thread starts it. A
//! thread of the library, `llcl-coll`, prepares all other calls: a call without a kept plan, a v
//! form (in which the ranks vote, as in the blocking forms), and every call that is made while that
//! thread works. A team has one such thread at a time, which ends when it has nothing to do. Errors
//! that it finds, a difference between ranks included, are reported by the completion's status. So
//! is the failure of a kept plan: the plan stays, and the completions of all further calls with it
//! report the status with which a round of it has failed, until other plans have displaced it. The
//! functions of the team that wait (the _init functions, the blocking forms, llcl_team_split,
//! llcl_team_free) begin when that thread has prepared the calls before them. llcl_finalize waits
//! LLCL_FINALIZE_MS for calls that are not prepared, and then ends them with LLCL_ERR_CANCELED.
//!
//! From: the nonblocking collectives of MPI 3.0, section 5.12, with a completion in place of the
//! request, and a depth.

use crate::api::coll::begin;
use crate::api::guard::guard;
use crate::api::plan::llcl_coll_params_t;
use crate::api::status::llcl_status_t;
use crate::coll::plan::asked::Form;
use crate::coll::problem::Operation;

/// Barrier: ends when every rank of the team has called it. Nonblocking.
///
/// `params`: as llcl_barrier_init, read during the call; `on_complete` must not be
/// llcl_no_completion().
/// LLCL_OK: accepted; LLCL_RETRY_BUSY: as many such calls as `depth` says are under way, or 64
/// calls wait to be prepared: wait for one of them, and repeat; LLCL_ERR_INVALID: NULL, a value
/// that is not allowed, or `on_complete` is llcl_no_completion(); LLCL_ERR_STATE: the team was
/// freed, or the context is being finalized; LLCL_ERR_NO_MEMORY: no thread can be started, or a
/// copy would exceed LLCL_COLL_MEMORY; LLCL_ERR_KEY, LLCL_ERR_RANGE: as llcl_coll_start_with. The
/// completion may also report what llcl_barrier_init, llcl_coll_start and llcl_coll_wait answer,
/// and LLCL_ERR_CANCELED.
/// Any thread may call it, also inside a callback, but threads of one rank must not call collective
/// functions of one team at the same time. The conventions say on which thread the completion
/// fires.
/// From: MPI_Ibarrier, with a completion in place of the request.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn llcl_barrier_async(params: *const llcl_coll_params_t) -> llcl_status_t {
    // SAFETY: as the contract says.
    guard(|| unsafe { begin(Operation::Barrier, Form::Even, params) })
}

/// Broadcast: the root's data for every rank. Nonblocking.
///
/// `params`: as llcl_broadcast_init, read during the call; `on_complete` must not be
/// llcl_no_completion(). LLCL_OK: accepted; other statuses, those of the completion, and threads:
/// as llcl_barrier_async.
/// From: MPI_Ibcast, with a completion in place of the request.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn llcl_broadcast_async(params: *const llcl_coll_params_t) -> llcl_status_t {
    // SAFETY: as the contract says.
    guard(|| unsafe { begin(Operation::Broadcast, Form::Even, params) })
}

/// Reduction: the elements of all ranks, combined one by one, at the root. Nonblocking.
///
/// `params`: as llcl_reduce_init, read during the call; `on_complete` must not be
/// llcl_no_completion(). LLCL_OK: accepted; other statuses, those of the completion, and threads:
/// as llcl_barrier_async.
/// From: MPI_Ireduce, with a completion in place of the request.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn llcl_reduce_async(params: *const llcl_coll_params_t) -> llcl_status_t {
    // SAFETY: as the contract says.
    guard(|| unsafe { begin(Operation::Reduce, Form::Even, params) })
}

/// Allreduce: the elements of all ranks, combined one by one, for every rank. Nonblocking.
///
/// `params`: as llcl_allreduce_init, read during the call; `on_complete` must not be
/// llcl_no_completion(). LLCL_OK: accepted; other statuses, those of the completion, and threads:
/// as llcl_barrier_async.
/// From: MPI_Iallreduce, with a completion in place of the request.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn llcl_allreduce_async(params: *const llcl_coll_params_t) -> llcl_status_t {
    // SAFETY: as the contract says.
    guard(|| unsafe { begin(Operation::Allreduce, Form::Even, params) })
}

/// Gather: a block of every rank, one after the other, at the root. Nonblocking.
///
/// `params`: as llcl_gather_init, read during the call; `on_complete` must not be
/// llcl_no_completion(). LLCL_OK: accepted; other statuses, those of the completion, and threads:
/// as llcl_barrier_async.
/// From: MPI_Igather, with a completion in place of the request.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn llcl_gather_async(params: *const llcl_coll_params_t) -> llcl_status_t {
    // SAFETY: as the contract says.
    guard(|| unsafe { begin(Operation::Gather, Form::Even, params) })
}

/// Gather with a length for each rank's block. Nonblocking.
///
/// `params`: as llcl_gatherv_init, read during the call; `on_complete` must not be
/// llcl_no_completion(). LLCL_OK: accepted; other statuses, those of the completion, and threads:
/// as llcl_barrier_async.
/// From: MPI_Igatherv, with a completion in place of the request.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn llcl_gatherv_async(params: *const llcl_coll_params_t) -> llcl_status_t {
    // SAFETY: as the contract says.
    guard(|| unsafe { begin(Operation::Gather, Form::Varied, params) })
}

/// Scatter: a block of the root's input for every rank. Nonblocking.
///
/// `params`: as llcl_scatter_init, read during the call; `on_complete` must not be
/// llcl_no_completion(). LLCL_OK: accepted; other statuses, those of the completion, and threads:
/// as llcl_barrier_async.
/// From: MPI_Iscatter, with a completion in place of the request.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn llcl_scatter_async(params: *const llcl_coll_params_t) -> llcl_status_t {
    // SAFETY: as the contract says.
    guard(|| unsafe { begin(Operation::Scatter, Form::Even, params) })
}

/// Scatter with a length for each rank's block. Nonblocking.
///
/// `params`: as llcl_scatterv_init, read during the call; `on_complete` must not be
/// llcl_no_completion(). LLCL_OK: accepted; other statuses, those of the completion, and threads:
/// as llcl_barrier_async.
/// From: MPI_Iscatterv, with a completion in place of the request.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn llcl_scatterv_async(params: *const llcl_coll_params_t) -> llcl_status_t {
    // SAFETY: as the contract says.
    guard(|| unsafe { begin(Operation::Scatter, Form::Varied, params) })
}

/// Allgather: a block of every rank, one after the other, for every rank. Nonblocking.
///
/// `params`: as llcl_allgather_init, read during the call; `on_complete` must not be
/// llcl_no_completion(). LLCL_OK: accepted; other statuses, those of the completion, and threads:
/// as llcl_barrier_async.
/// From: MPI_Iallgather, with a completion in place of the request.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn llcl_allgather_async(params: *const llcl_coll_params_t) -> llcl_status_t {
    // SAFETY: as the contract says.
    guard(|| unsafe { begin(Operation::Allgather, Form::Even, params) })
}

/// Allgather with a length for each rank's block. Nonblocking.
///
/// `params`: as llcl_allgatherv_init, read during the call; `on_complete` must not be
/// llcl_no_completion(). LLCL_OK: accepted; other statuses, those of the completion, and threads:
/// as llcl_barrier_async.
/// From: MPI_Iallgatherv, with a completion in place of the request.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn llcl_allgatherv_async(params: *const llcl_coll_params_t) -> llcl_status_t {
    // SAFETY: as the contract says.
    guard(|| unsafe { begin(Operation::Allgather, Form::Varied, params) })
}

/// All-to-all: a block of every rank for every rank. Nonblocking.
///
/// `params`: as llcl_alltoall_init, read during the call; `on_complete` must not be
/// llcl_no_completion(). LLCL_OK: accepted; other statuses, those of the completion, and threads:
/// as llcl_barrier_async.
/// From: MPI_Ialltoall, with a completion in place of the request.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn llcl_alltoall_async(params: *const llcl_coll_params_t) -> llcl_status_t {
    // SAFETY: as the contract says.
    guard(|| unsafe { begin(Operation::Alltoall, Form::Even, params) })
}

/// All-to-all with a length for each block. Nonblocking.
///
/// `params`: as llcl_alltoallv_init, read during the call; `on_complete` must not be
/// llcl_no_completion(). LLCL_OK: accepted; other statuses, those of the completion, and threads:
/// as llcl_barrier_async.
/// From: MPI_Ialltoallv, with a completion in place of the request.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn llcl_alltoallv_async(params: *const llcl_coll_params_t) -> llcl_status_t {
    // SAFETY: as the contract says.
    guard(|| unsafe { begin(Operation::Alltoall, Form::Varied, params) })
}

/// Reduce-scatter: the elements of all ranks, combined one by one; each rank gets a block.
/// Nonblocking.
///
/// `params`: as llcl_reduce_scatter_init, read during the call; `on_complete` must not be
/// llcl_no_completion(). LLCL_OK: accepted; other statuses, those of the completion, and threads:
/// as llcl_barrier_async.
/// From: MPI_Ireduce_scatter_block, with a completion in place of the request.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn llcl_reduce_scatter_async(
    params: *const llcl_coll_params_t,
) -> llcl_status_t {
    // SAFETY: as the contract says.
    guard(|| unsafe { begin(Operation::ReduceScatter, Form::Even, params) })
}

/// Reduce-scatter with a length for each rank's block. Nonblocking.
///
/// `params`: as llcl_reduce_scatterv_init, read during the call; `on_complete` must not be
/// llcl_no_completion(). LLCL_OK: accepted; other statuses, those of the completion, and threads:
/// as llcl_barrier_async.
/// From: MPI_Ireduce_scatter, with a completion in place of the request.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn llcl_reduce_scatterv_async(
    params: *const llcl_coll_params_t,
) -> llcl_status_t {
    // SAFETY: as the contract says.
    guard(|| unsafe { begin(Operation::ReduceScatter, Form::Varied, params) })
}

/// Scan: each rank gets the elements of all ranks up to and including itself, combined.
/// Nonblocking.
///
/// `params`: as llcl_scan_init, read during the call; `on_complete` must not be
/// llcl_no_completion(). LLCL_OK: accepted; other statuses, those of the completion, and threads:
/// as llcl_barrier_async.
/// From: MPI_Iscan, with a completion in place of the request.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn llcl_scan_async(params: *const llcl_coll_params_t) -> llcl_status_t {
    // SAFETY: as the contract says.
    guard(|| unsafe { begin(Operation::Scan, Form::Even, params) })
}

/// Exclusive scan: each rank except the first gets the elements of all ranks before it, combined.
/// Nonblocking.
///
/// `params`: as llcl_exscan_init, read during the call; `on_complete` must not be
/// llcl_no_completion(). LLCL_OK: accepted; other statuses, those of the completion, and threads:
/// as llcl_barrier_async.
/// From: MPI_Iexscan, with a completion in place of the request.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn llcl_exscan_async(params: *const llcl_coll_params_t) -> llcl_status_t {
    // SAFETY: as the contract says.
    guard(|| unsafe { begin(Operation::Exscan, Form::Even, params) })
}
