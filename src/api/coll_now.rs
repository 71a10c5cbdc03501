//! 16. Collectives for the occasional call: one call makes, starts and waits.
//!
//! Each takes what its _init function takes, without a completion, and answers what that and
//! llcl_coll_wait answer; collective over the team; not inside a callback. A team keeps the plans
//! of its last LLCL_COLL_CACHE different calls. A call that has the operation, count, type, op,
//! root, flags and algorithm of an earlier one runs that plan, also with other buffers, another
//! `function` and other `function_data`. In a v form the ranks vote first, in about as long as an
//! allreduce takes: all must have the counts and offsets of the earlier call. Three things follow. All ranks must give
//! the same parameters: a difference is told at every rank where none of them has kept a plan for
//! its call, and else some ranks may wait for ever; with LLCL_COLL_CACHE=0 it is always told. A
//! call that is refused at one rank only, say for a buffer that is none, fails the plan that the
//! others have kept; they, and all further such calls, answer the status of the refusal until the
//! plan has been displaced. And `engine` counts in the call that makes the plan.

use crate::api::coll::now;
use crate::api::guard::{given, guard};
use crate::api::life::llcl_context_t;
use crate::api::plan::llcl_coll_params_t;
use crate::api::status::llcl_status_t;
use crate::api::team::llcl_team_t;
use crate::coll::plan::asked::Form;
use crate::coll::problem::Operation;

/// Waits until every rank of the world has called it: llcl_team_barrier of the team of all ranks.
///
/// `context`: a live context.
/// LLCL_OK; other statuses, and threads: as llcl_team_world, llcl_barrier_init and llcl_coll_wait.
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
#[unsafe(no_mangle)]
pub unsafe extern "C" fn llcl_team_barrier(team: *mut llcl_team_t) -> llcl_status_t {
    // SAFETY: the caller gives a handle of a live context.
    guard(|| unsafe { given(team, "team")? }.0.barrier())
}

/// The root's data for every rank. Blocking.
///
/// `params`: as llcl_broadcast_init. LLCL_OK; other statuses, and threads: as there, and as
/// llcl_coll_wait.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn llcl_broadcast(params: *const llcl_coll_params_t) -> llcl_status_t {
    // SAFETY: as the contract says.
    guard(|| unsafe { now(Operation::Broadcast, Form::Even, params) })
}

/// The elements of all ranks, combined one by one, at the root. Blocking.
///
/// `params`: as llcl_reduce_init. LLCL_OK; other statuses, and threads: as there, and as
/// llcl_coll_wait.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn llcl_reduce(params: *const llcl_coll_params_t) -> llcl_status_t {
    // SAFETY: as the contract says.
    guard(|| unsafe { now(Operation::Reduce, Form::Even, params) })
}

/// The elements of all ranks, combined one by one, for every rank. Blocking.
///
/// `params`: as llcl_allreduce_init. LLCL_OK; other statuses, and threads: as there, and as
/// llcl_coll_wait.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn llcl_allreduce(params: *const llcl_coll_params_t) -> llcl_status_t {
    // SAFETY: as the contract says.
    guard(|| unsafe { now(Operation::Allreduce, Form::Even, params) })
}

/// A block of every rank, one after the other, at the root. Blocking.
///
/// `params`: as llcl_gather_init. LLCL_OK; other statuses, and threads: as there, and as
/// llcl_coll_wait.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn llcl_gather(params: *const llcl_coll_params_t) -> llcl_status_t {
    // SAFETY: as the contract says.
    guard(|| unsafe { now(Operation::Gather, Form::Even, params) })
}

/// A block of every rank at the root, with a length for each. Blocking.
///
/// `params`: as llcl_gatherv_init. LLCL_OK; other statuses, and threads: as there, and as
/// llcl_coll_wait.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn llcl_gatherv(params: *const llcl_coll_params_t) -> llcl_status_t {
    // SAFETY: as the contract says.
    guard(|| unsafe { now(Operation::Gather, Form::Varied, params) })
}

/// A block of the root's for every rank. Blocking.
///
/// `params`: as llcl_scatter_init. LLCL_OK; other statuses, and threads: as there, and as
/// llcl_coll_wait.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn llcl_scatter(params: *const llcl_coll_params_t) -> llcl_status_t {
    // SAFETY: as the contract says.
    guard(|| unsafe { now(Operation::Scatter, Form::Even, params) })
}

/// A block of the root's for every rank, with a length for each. Blocking.
///
/// `params`: as llcl_scatterv_init. LLCL_OK; other statuses, and threads: as there, and as
/// llcl_coll_wait.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn llcl_scatterv(params: *const llcl_coll_params_t) -> llcl_status_t {
    // SAFETY: as the contract says.
    guard(|| unsafe { now(Operation::Scatter, Form::Varied, params) })
}

/// A block of every rank, one after the other, for every rank. Blocking.
///
/// `params`: as llcl_allgather_init. LLCL_OK; other statuses, and threads: as there, and as
/// llcl_coll_wait.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn llcl_allgather(params: *const llcl_coll_params_t) -> llcl_status_t {
    // SAFETY: as the contract says.
    guard(|| unsafe { now(Operation::Allgather, Form::Even, params) })
}

/// A block of every rank for every rank, with a length for each. Blocking.
///
/// `params`: as llcl_allgatherv_init. LLCL_OK; other statuses, and threads: as there, and as
/// llcl_coll_wait.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn llcl_allgatherv(params: *const llcl_coll_params_t) -> llcl_status_t {
    // SAFETY: as the contract says.
    guard(|| unsafe { now(Operation::Allgather, Form::Varied, params) })
}

/// A block of every rank for each other. Blocking.
///
/// `params`: as llcl_alltoall_init. LLCL_OK; other statuses, and threads: as there, and as
/// llcl_coll_wait.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn llcl_alltoall(params: *const llcl_coll_params_t) -> llcl_status_t {
    // SAFETY: as the contract says.
    guard(|| unsafe { now(Operation::Alltoall, Form::Even, params) })
}

/// A block of every rank for each other, with lengths of their own. Blocking.
///
/// `params`: as llcl_alltoallv_init. LLCL_OK; other statuses, and threads: as there, and as
/// llcl_coll_wait.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn llcl_alltoallv(params: *const llcl_coll_params_t) -> llcl_status_t {
    // SAFETY: as the contract says.
    guard(|| unsafe { now(Operation::Alltoall, Form::Varied, params) })
}

/// The elements of all ranks, combined one by one; each rank gets a block of the result. Blocking.
///
/// `params`: as llcl_reduce_scatter_init. LLCL_OK; other statuses, and threads: as there, and as
/// llcl_coll_wait.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn llcl_reduce_scatter(params: *const llcl_coll_params_t) -> llcl_status_t {
    // SAFETY: as the contract says.
    guard(|| unsafe { now(Operation::ReduceScatter, Form::Even, params) })
}

/// As the function without v, with a length for each rank's block. Blocking.
///
/// `params`: as llcl_reduce_scatterv_init. LLCL_OK; other statuses, and threads: as there, and as
/// llcl_coll_wait.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn llcl_reduce_scatterv(params: *const llcl_coll_params_t) -> llcl_status_t {
    // SAFETY: as the contract says.
    guard(|| unsafe { now(Operation::ReduceScatter, Form::Varied, params) })
}

/// For each rank the elements of all ranks up to and including it, combined one by one. Blocking.
///
/// `params`: as llcl_scan_init. LLCL_OK; other statuses, and threads: as there, and as
/// llcl_coll_wait.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn llcl_scan(params: *const llcl_coll_params_t) -> llcl_status_t {
    // SAFETY: as the contract says.
    guard(|| unsafe { now(Operation::Scan, Form::Even, params) })
}

/// For each rank but the first the elements of all ranks before it, combined one by one. Blocking.
///
/// `params`: as llcl_exscan_init. LLCL_OK; other statuses, and threads: as there, and as
/// llcl_coll_wait.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn llcl_exscan(params: *const llcl_coll_params_t) -> llcl_status_t {
    // SAFETY: as the contract says.
    guard(|| unsafe { now(Operation::Exscan, Form::Even, params) })
}
