//! 16. Blocking collectives: one call makes the plan, starts it and waits.
//!
//! Each takes the parameters of its _init function, without a completion, and answers the statuses
//! of that function and of llcl_coll_wait. Each is collective over the team, and must not be called
//! inside a callback.
//! A team keeps the plans of its last LLCL_COLL_CACHE different calls. A call that has the
//! operation, count, type, op, root, flags and algorithm of an earlier one runs the plan of that
//! call; buffers, `function` and `function_data` may differ. In a v form the ranks vote first,
//! which takes about as long as an allreduce: the plan is used if all ranks have the counts and
//! offsets of the earlier call.
//! Three things follow. First, all ranks must give the same parameters. If no rank has kept a plan
//! for its call, a difference is reported at every rank; else some ranks may wait for ever. With
//! LLCL_COLL_CACHE=0 a difference is always reported. Second, if a call is refused at one rank
//! only, for instance because of an invalid buffer, the plan that the others have kept fails. Their
//! calls, and all further such calls, answer the status of the refusal until other plans have
//! displaced the plan. Third, `engine` has an effect only in the call that makes the plan.
//! A kept plan takes memory, and copies of the buffers that peers do not map. If a call needs more
//! than LLCL_COLL_MEMORY leaves, its team first frees the copies of the plans that it keeps for
//! calls of the same chapter, or these plans themselves. LLCL_ERR_NO_MEMORY then means that other
//! memory is in the way: the plans of the program, of other teams (until llcl_team_free) and of the
//! other chapter. A smaller LLCL_COLL_CACHE keeps fewer plans.

use crate::api::coll::now;
use crate::api::guard::{given, guard};
use crate::api::life::llcl_context_t;
use crate::api::plan::llcl_coll_params_t;
use crate::api::status::llcl_status_t;
use crate::api::team::llcl_team_t;
use crate::coll::plan::asked::Form;
use crate::coll::problem::Operation;

/// Waits until every rank of the world has called it: llcl_team_barrier with the team of all ranks.
///
/// `context`: a live context.
/// LLCL_OK; other statuses, and threads: as llcl_team_world, llcl_barrier_init and llcl_coll_wait.
/// From: MPI_Barrier.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn llcl_barrier(context: *mut llcl_context_t) -> llcl_status_t {
    guard(|| {
        // SAFETY: the caller gives a live context.
        let context = unsafe { given(context, "context")? };
        let world = context.live().and_then(|live| context.collectives.world(live))?;
        // SAFETY: the team of all ranks is kept as long as the context.
        unsafe { &*world }.barrier()
    })
}

/// Waits until every rank of a team has called it. The plan behind it is made at the first call and
/// kept.
///
/// `team`: a live team.
/// LLCL_OK; other statuses, and threads: as llcl_barrier_init and llcl_coll_wait.
/// From: MPI_Barrier and shmem_team_sync of OpenSHMEM.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn llcl_team_barrier(team: *mut llcl_team_t) -> llcl_status_t {
    // SAFETY: the caller gives a handle of a live context.
    guard(|| unsafe { given(team, "team")? }.0.barrier())
}

/// Broadcast: the root's data for every rank. Blocking.
///
/// `params`: as llcl_broadcast_init. LLCL_OK; other statuses, and threads: as there, and as
/// llcl_coll_wait.
/// From: MPI_Bcast.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn llcl_broadcast(params: *const llcl_coll_params_t) -> llcl_status_t {
    // SAFETY: as the contract says.
    guard(|| unsafe { now(Operation::Broadcast, Form::Even, params) })
}

/// Reduction: the elements of all ranks, combined one by one, at the root. Blocking.
///
/// `params`: as llcl_reduce_init. LLCL_OK; other statuses, and threads: as there, and as
/// llcl_coll_wait.
/// From: MPI_Reduce.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn llcl_reduce(params: *const llcl_coll_params_t) -> llcl_status_t {
    // SAFETY: as the contract says.
    guard(|| unsafe { now(Operation::Reduce, Form::Even, params) })
}

/// Allreduce: the elements of all ranks, combined one by one, for every rank. Blocking.
///
/// `params`: as llcl_allreduce_init. LLCL_OK; other statuses, and threads: as there, and as
/// llcl_coll_wait.
/// From: MPI_Allreduce.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn llcl_allreduce(params: *const llcl_coll_params_t) -> llcl_status_t {
    // SAFETY: as the contract says.
    guard(|| unsafe { now(Operation::Allreduce, Form::Even, params) })
}

/// Gather: a block of every rank, one after the other, at the root. Blocking.
///
/// `params`: as llcl_gather_init. LLCL_OK; other statuses, and threads: as there, and as
/// llcl_coll_wait.
/// From: MPI_Gather.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn llcl_gather(params: *const llcl_coll_params_t) -> llcl_status_t {
    // SAFETY: as the contract says.
    guard(|| unsafe { now(Operation::Gather, Form::Even, params) })
}

/// Gather with a length for each rank's block. Blocking.
///
/// `params`: as llcl_gatherv_init. LLCL_OK; other statuses, and threads: as there, and as
/// llcl_coll_wait.
/// From: MPI_Gatherv.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn llcl_gatherv(params: *const llcl_coll_params_t) -> llcl_status_t {
    // SAFETY: as the contract says.
    guard(|| unsafe { now(Operation::Gather, Form::Varied, params) })
}

/// Scatter: a block of the root's input for every rank. Blocking.
///
/// `params`: as llcl_scatter_init. LLCL_OK; other statuses, and threads: as there, and as
/// llcl_coll_wait.
/// From: MPI_Scatter.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn llcl_scatter(params: *const llcl_coll_params_t) -> llcl_status_t {
    // SAFETY: as the contract says.
    guard(|| unsafe { now(Operation::Scatter, Form::Even, params) })
}

/// Scatter with a length for each rank's block. Blocking.
///
/// `params`: as llcl_scatterv_init. LLCL_OK; other statuses, and threads: as there, and as
/// llcl_coll_wait.
/// From: MPI_Scatterv.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn llcl_scatterv(params: *const llcl_coll_params_t) -> llcl_status_t {
    // SAFETY: as the contract says.
    guard(|| unsafe { now(Operation::Scatter, Form::Varied, params) })
}

/// Allgather: a block of every rank, one after the other, for every rank. Blocking.
///
/// `params`: as llcl_allgather_init. LLCL_OK; other statuses, and threads: as there, and as
/// llcl_coll_wait.
/// From: MPI_Allgather.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn llcl_allgather(params: *const llcl_coll_params_t) -> llcl_status_t {
    // SAFETY: as the contract says.
    guard(|| unsafe { now(Operation::Allgather, Form::Even, params) })
}

/// Allgather with a length for each rank's block. Blocking.
///
/// `params`: as llcl_allgatherv_init. LLCL_OK; other statuses, and threads: as there, and as
/// llcl_coll_wait.
/// From: MPI_Allgatherv.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn llcl_allgatherv(params: *const llcl_coll_params_t) -> llcl_status_t {
    // SAFETY: as the contract says.
    guard(|| unsafe { now(Operation::Allgather, Form::Varied, params) })
}

/// All-to-all: a block of every rank for every rank. Blocking.
///
/// `params`: as llcl_alltoall_init. LLCL_OK; other statuses, and threads: as there, and as
/// llcl_coll_wait.
/// From: MPI_Alltoall.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn llcl_alltoall(params: *const llcl_coll_params_t) -> llcl_status_t {
    // SAFETY: as the contract says.
    guard(|| unsafe { now(Operation::Alltoall, Form::Even, params) })
}

/// All-to-all with a length for each block. Blocking.
///
/// `params`: as llcl_alltoallv_init. LLCL_OK; other statuses, and threads: as there, and as
/// llcl_coll_wait.
/// From: MPI_Alltoallv.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn llcl_alltoallv(params: *const llcl_coll_params_t) -> llcl_status_t {
    // SAFETY: as the contract says.
    guard(|| unsafe { now(Operation::Alltoall, Form::Varied, params) })
}

/// Reduce-scatter: the elements of all ranks, combined one by one; each rank gets a block.
/// Blocking.
///
/// `params`: as llcl_reduce_scatter_init. LLCL_OK; other statuses, and threads: as there, and as
/// llcl_coll_wait.
/// From: MPI_Reduce_scatter_block.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn llcl_reduce_scatter(params: *const llcl_coll_params_t) -> llcl_status_t {
    // SAFETY: as the contract says.
    guard(|| unsafe { now(Operation::ReduceScatter, Form::Even, params) })
}

/// Reduce-scatter with a length for each rank's block. Blocking.
///
/// `params`: as llcl_reduce_scatterv_init. LLCL_OK; other statuses, and threads: as there, and as
/// llcl_coll_wait.
/// From: MPI_Reduce_scatter.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn llcl_reduce_scatterv(params: *const llcl_coll_params_t) -> llcl_status_t {
    // SAFETY: as the contract says.
    guard(|| unsafe { now(Operation::ReduceScatter, Form::Varied, params) })
}

/// Scan: each rank gets the elements of all ranks up to and including itself, combined. Blocking.
///
/// `params`: as llcl_scan_init. LLCL_OK; other statuses, and threads: as there, and as
/// llcl_coll_wait.
/// From: MPI_Scan.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn llcl_scan(params: *const llcl_coll_params_t) -> llcl_status_t {
    // SAFETY: as the contract says.
    guard(|| unsafe { now(Operation::Scan, Form::Even, params) })
}

/// Exclusive scan: each rank except the first gets the elements of all ranks before it, combined.
/// Blocking.
///
/// `params`: as llcl_exscan_init. LLCL_OK; other statuses, and threads: as there, and as
/// llcl_coll_wait.
/// From: MPI_Exscan.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn llcl_exscan(params: *const llcl_coll_params_t) -> llcl_status_t {
    // SAFETY: as the contract says.
    guard(|| unsafe { now(Operation::Exscan, Form::Even, params) })
}
