//! 15. Collectives: making plans.
//!
//! Every _init function is collective over its team and blocks until all ranks of the team have
//! called it. All ranks must make their plans in the same order. Buffers, counts and names are
//! given once, here. If the parameters of the ranks do not fit together (counts, types, roots,
//! operations, algorithms), every rank gets LLCL_ERR_INVALID, and no plan is made. If one rank is
//! refused, all are, with its status. There is an exception where the library cannot tell the
//! others: a rank that gives NULL for `params` or its `team`, gives a team that was freed, or calls
//! inside a callback or during llcl_finalize, is refused alone, and the other ranks wait for it.
//! Floating-point numbers are combined in the environment of the thread that makes the plan:
//! direction of rounding, and whether denormal numbers count as zero (x86-64: MXCSR without its
//! exceptions, and the control word of x87; AArch64: FPCR). The environment must be the same at
//! every rank, or no plan is made. A thread that combines sets it before and restores its own
//! after.
//! Buffers may lie in any region. Peers do not map a buffer in a registered region; the owner then
//! copies the parts that other ranks need to and from memory of the plan.

use crate::api::completion::LLCL_COMPLETE_NONE;
use crate::api::guard::{give, given, guard};
use crate::api::plan::{llcl_coll_params_t, llcl_coll_t};
use crate::api::status::llcl_status_t;
use crate::coll::cache::{Call, Start};
use crate::coll::plan::asked::{Asked, Form};
use crate::coll::problem::{Block, Operation};
use crate::coll::reduction::Op;
use crate::transport::address::Address;
use crate::util::rounding::Environment;
use crate::util::status::Result;
use std::ffi::CStr;

/// A pair of the v forms' arrays; empty where one of them is NULL.
///
/// # Safety
/// What is not NULL has `ranks` numbers.
unsafe fn blocks(counts: *const u64, offsets: *const u64, ranks: usize) -> Vec<Block> {
    if counts.is_null() || offsets.is_null() {
        return Vec::new();
    }
    // SAFETY: as the caller promises.
    let number = |from: *const u64, at: usize| unsafe { from.add(at).read() };
    let block = |at| Block { offset: number(offsets, at), size: number(counts, at) };
    (0..ranks).map(block).collect()
}

impl llcl_coll_params_t {
    /// The parameters as numbers, without the buffers: two calls with equal numbers may share a
    /// plan, if is_plain() says so of both.
    #[inline(always)]
    fn call(&self, operation: Operation) -> Call {
        let pair = |high: u32, low: u32| u64::from(high) << 32 | u64::from(low);
        [
            self.count,
            Environment::mine().number(),
            operation as u64,
            pair(self.r#type, self.op),
            pair(self.root, self.flags),
            pair(self.element_size, self.engine),
        ]
    }

    /// Whether call() contains all parameters except the buffers and the completion.
    #[inline(always)]
    fn is_plain(&self, form: Form) -> bool {
        form == Form::Even && self.algorithm.is_null() && self.op != Op::User as u32
    }

    /// The addresses of its buffers.
    #[inline(always)]
    fn places(&self) -> [Address; 2] {
        [self.send.address(), self.receive.address()]
    }

    /// These parameters as the type of the layer below.
    ///
    /// # Safety
    /// What is not NULL is as the contract of the fields says.
    unsafe fn asked(&self, operation: Operation, form: Form, ranks: usize) -> Asked {
        // For reduce-scatter the blocks follow each other, so there are no offsets.
        let in_order = operation == Operation::ReduceScatter;
        let offsets = if in_order { self.receive_counts } else { self.receive_offsets };
        let even = form == Form::Even;
        let ranks = if even { 0 } else { ranks };
        // SAFETY: as the caller promises.
        let (send_blocks, receive_blocks, algorithm) = unsafe {
            (
                blocks(self.send_counts, self.send_offsets, ranks),
                blocks(self.receive_counts, offsets, ranks),
                (!self.algorithm.is_null()).then(|| CStr::from_ptr(self.algorithm)),
            )
        };
        Asked {
            operation,
            form,
            send: self.send.address(),
            receive: self.receive.address(),
            count: self.count,
            kind: self.r#type,
            op: self.op,
            root: self.root,
            engine: self.engine,
            flags: self.flags,
            element_size: self.element_size,
            depth: self.depth,
            refused: None,
            environment: Environment::mine(),
            send_blocks,
            receive_blocks,
            function: self.function,
            function_data: self.function_data,
            algorithm: algorithm.map(|name| name.to_string_lossy().into_owned()),
            on_complete: *self.on_complete.as_engine(),
        }
    }
}

/// The body of every _init function.
///
/// # Safety
/// Every pointer is NULL or as the contract says.
unsafe fn init(
    operation: Operation,
    form: Form,
    params: *const llcl_coll_params_t,
    plan: *mut *mut llcl_coll_t,
) -> Result<()> {
    // SAFETY: as the caller promises; a handle is all that a llcl_coll_t holds.
    unsafe {
        let params = given(params, "params")?;
        let team = &given(params.team, "team")?.0;
        let mut asked = params.asked(operation, form, team.size() as usize);
        asked.refused = plan.is_null().then_some("plan is NULL");
        give(plan, "plan", team.plan(&asked)?.cast())
    }
}

/// The body of every blocking form.
///
/// # Safety
/// As init().
pub(super) unsafe fn now(
    operation: Operation,
    form: Form,
    params: *const llcl_coll_params_t,
) -> Result<()> {
    // SAFETY: as the caller promises.
    unsafe {
        let params = given(params, "params")?;
        let team = &given(params.team, "team")?.0;
        let completes = params.on_complete.kind != LLCL_COMPLETE_NONE;
        let asked = || {
            let mut asked = params.asked(operation, form, team.size() as usize);
            asked.refused = completes.then_some(
                "a blocking call takes no completion, expected llcl_no_completion() as on_complete",
            );
            asked
        };
        let plain = !completes && params.is_plain(form);
        team.now(plain.then(|| (params.call(operation), params.places())), asked)
    }
}

/// The body of every nonblocking form.
///
/// # Safety
/// As init().
pub(super) unsafe fn begin(
    operation: Operation,
    form: Form,
    params: *const llcl_coll_params_t,
) -> Result<()> {
    // SAFETY: as the caller promises.
    unsafe {
        let params = given(params, "params")?;
        let team = &given(params.team, "team")?.0;
        let asked = || params.asked(operation, form, team.size() as usize);
        let start = Start {
            places: params.places(),
            completion: *params.on_complete.as_engine(),
            function: params.function.map(|function| (function, params.function_data)),
        };
        let call = || (params.call(operation), params.depth.max(1) as usize);
        let call = params.is_plain(form).then(call);
        team.begin(start, call, asked)
    }
}

/// Makes the plan of a barrier: a round ends at no rank before every rank has started it.
///
/// `params`: read during the call. Uses nothing but `team`, `engine`, `algorithm`, `depth` and
/// `on_complete`; unknown `flags` are refused.
/// `plan`: where the plan goes; ended by llcl_coll_free or with the context.
/// LLCL_OK; LLCL_ERR_INVALID: NULL, a value that is not allowed, or ranks that do not agree;
/// LLCL_ERR_RANGE: a buffer leaves its region; LLCL_ERR_KEY: a buffer names no live region of this
/// rank;
/// LLCL_ERR_UNSUPPORTED: `type` does not have `op`; or `algorithm` cannot do this, for instance
/// because it reads other ranks' memory, and the team's ranks run on several nodes;
/// LLCL_ERR_NO_MEMORY: the plan would exceed LLCL_COLL_MEMORY or LLCL_REGIONS (llcl_last_error()
/// has the numbers); LLCL_ERR_PEER_DEAD: a rank of the team has died or has left; LLCL_ERR_STATE:
/// the team was freed, the call is made inside a callback, or the context is being finalized. If
/// one rank is refused, all are. Threads of one rank must not call collective functions of one team
/// at the same time, because their calls would be matched with those of other ranks in arbitrary
/// order.
/// From: the dissemination algorithm of Hensgen, Finkel and Manber, 1988.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn llcl_barrier_init(
    params: *const llcl_coll_params_t,
    plan: *mut *mut llcl_coll_t,
) -> llcl_status_t {
    // SAFETY: as the contract says.
    guard(|| unsafe { init(Operation::Barrier, Form::Even, params, plan) })
}

/// Makes the plan of a broadcast: the root's data for every rank.
///
/// `params`: read during the call. `receive`: `count` elements at every rank; at the root the data
/// to send. `plan`: where the plan goes; ended by llcl_coll_free or with the context.
/// LLCL_OK; other statuses, and threads: as llcl_barrier_init.
/// From: Trinaryx3 of the K computer, which sends three fragments through three ternary pipelines.
/// On the K computer the three trees have no common edge in a torus; here no rank except the root
/// has children in two of them.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn llcl_broadcast_init(
    params: *const llcl_coll_params_t,
    plan: *mut *mut llcl_coll_t,
) -> llcl_status_t {
    // SAFETY: as the contract says.
    guard(|| unsafe { init(Operation::Broadcast, Form::Even, params, plan) })
}

/// Makes the plan of a reduction: the elements of all ranks, combined one by one, at the root.
///
/// `params`: read during the call. `send`: `count` elements at every rank. `receive`: `count`
/// elements at the root. Also `op`, and `function` for LLCL_OP_USER. `plan`: where the plan goes;
/// ended by llcl_coll_free or with the context.
/// LLCL_OK; other statuses, and threads: as llcl_barrier_init. From: MPI_Reduce_init.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn llcl_reduce_init(
    params: *const llcl_coll_params_t,
    plan: *mut *mut llcl_coll_t,
) -> llcl_status_t {
    // SAFETY: as the contract says.
    guard(|| unsafe { init(Operation::Reduce, Form::Even, params, plan) })
}

/// Makes the plan of an allreduce: the elements of all ranks, combined one by one, for every rank.
///
/// `params`: read during the call. `send` and `receive`: `count` elements at every rank. `op`, and
/// `function` for LLCL_OP_USER. All ranks get the same bits. `plan`: where the plan goes; ended by
/// llcl_coll_free or with the context.
/// LLCL_OK; other statuses, and threads: as llcl_barrier_init.
/// From: Rabenseifner 2004; Thakur, Rabenseifner and Gropp 2005.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn llcl_allreduce_init(
    params: *const llcl_coll_params_t,
    plan: *mut *mut llcl_coll_t,
) -> llcl_status_t {
    // SAFETY: as the contract says.
    guard(|| unsafe { init(Operation::Allreduce, Form::Even, params, plan) })
}

/// Makes the plan of a gather: a block of every rank, one after the other, at the root.
///
/// `params`: read during the call. `send`: `count` elements at every rank. `receive`: `count` times
/// the team's size at the root. `plan`: where the plan goes; ended by llcl_coll_free or with the
/// context.
/// LLCL_OK; other statuses, and threads: as llcl_barrier_init. From: MPI_Gather_init.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn llcl_gather_init(
    params: *const llcl_coll_params_t,
    plan: *mut *mut llcl_coll_t,
) -> llcl_status_t {
    // SAFETY: as the contract says.
    guard(|| unsafe { init(Operation::Gather, Form::Even, params, plan) })
}

/// Makes the plan of a gather with a length for each rank's block.
///
/// `params`: read during the call. `send`: `count` elements, which may differ from rank to rank.
/// `receive`, `receive_counts`, `receive_offsets`: at the root, a block for each rank. `plan`:
/// where the plan goes; ended by llcl_coll_free or with the context.
/// LLCL_OK; other statuses, and threads: as llcl_barrier_init. From: MPI_Gatherv_init.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn llcl_gatherv_init(
    params: *const llcl_coll_params_t,
    plan: *mut *mut llcl_coll_t,
) -> llcl_status_t {
    // SAFETY: as the contract says.
    guard(|| unsafe { init(Operation::Gather, Form::Varied, params, plan) })
}

/// Makes the plan of a scatter: a block of the root's input for every rank.
///
/// `params`: read during the call. `send`: `count` times the team's size at the root. `receive`:
/// `count` elements at every rank. `plan`: where the plan goes; ended by llcl_coll_free or with the
/// context.
/// LLCL_OK; other statuses, and threads: as llcl_barrier_init. From: MPI_Scatter_init.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn llcl_scatter_init(
    params: *const llcl_coll_params_t,
    plan: *mut *mut llcl_coll_t,
) -> llcl_status_t {
    // SAFETY: as the contract says.
    guard(|| unsafe { init(Operation::Scatter, Form::Even, params, plan) })
}

/// Makes the plan of a scatter with a length for each rank's block.
///
/// `params`: read during the call. `send`, `send_counts`, `send_offsets`: at the root, a block for
/// each rank. `receive`: `count` elements, which may differ from rank to rank. `plan`: where the
/// plan goes; ended by llcl_coll_free or with the context.
/// LLCL_OK; other statuses, and threads: as llcl_barrier_init. From: MPI_Scatterv_init.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn llcl_scatterv_init(
    params: *const llcl_coll_params_t,
    plan: *mut *mut llcl_coll_t,
) -> llcl_status_t {
    // SAFETY: as the contract says.
    guard(|| unsafe { init(Operation::Scatter, Form::Varied, params, plan) })
}

/// Makes the plan of an allgather: a block of every rank, one after the other, for every rank.
///
/// `params`: read during the call. `send`: `count` elements. `receive`: `count` times the team's
/// size.
/// `plan`: where the plan goes; ended by llcl_coll_free or with the context.
/// LLCL_OK; other statuses, and threads: as llcl_barrier_init. From: Bruck et al. 1997.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn llcl_allgather_init(
    params: *const llcl_coll_params_t,
    plan: *mut *mut llcl_coll_t,
) -> llcl_status_t {
    // SAFETY: as the contract says.
    guard(|| unsafe { init(Operation::Allgather, Form::Even, params, plan) })
}

/// Makes the plan of an allgather with a length for each rank's block.
///
/// `params`: read during the call. `send`: `count` elements, which may differ from rank to rank.
/// `receive`, `receive_counts`, `receive_offsets`: a block for each rank. `plan`: where the plan
/// goes; ended by llcl_coll_free or with the context.
/// LLCL_OK; other statuses, and threads: as llcl_barrier_init. From: MPI_Allgatherv_init.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn llcl_allgatherv_init(
    params: *const llcl_coll_params_t,
    plan: *mut *mut llcl_coll_t,
) -> llcl_status_t {
    // SAFETY: as the contract says.
    guard(|| unsafe { init(Operation::Allgather, Form::Varied, params, plan) })
}

/// Makes the plan of an all-to-all: a block of every rank for every rank.
///
/// `params`: read during the call. `send` and `receive`: `count` times the team's size: the r-th
/// block goes to, or comes from, rank r. `plan`: where the plan goes; ended by llcl_coll_free or
/// with the context.
/// LLCL_OK; other statuses, and threads: as llcl_barrier_init. From: Bruck et al. 1997.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn llcl_alltoall_init(
    params: *const llcl_coll_params_t,
    plan: *mut *mut llcl_coll_t,
) -> llcl_status_t {
    // SAFETY: as the contract says.
    guard(|| unsafe { init(Operation::Alltoall, Form::Even, params, plan) })
}

/// Makes the plan of an all-to-all with a length for each block.
///
/// `params`: read during the call. `send`, `send_counts`, `send_offsets`, `receive`,
/// `receive_counts`, `receive_offsets`: a block for each rank. In place `receive_counts` and
/// `receive_offsets` describe both sides. `plan`: where the plan goes; ended by llcl_coll_free or
/// with the context.
/// LLCL_OK; other statuses, and threads: as llcl_barrier_init. From: MPI_Alltoallv_init.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn llcl_alltoallv_init(
    params: *const llcl_coll_params_t,
    plan: *mut *mut llcl_coll_t,
) -> llcl_status_t {
    // SAFETY: as the contract says.
    guard(|| unsafe { init(Operation::Alltoall, Form::Varied, params, plan) })
}

/// Makes the plan of a reduce-scatter: the elements of all ranks, combined one by one; each rank
/// gets a block of the result.
///
/// `params`: read during the call. `send`: `count` times the team's size. `receive`: `count`
/// elements. In place the input lies in `receive`, which then has room for it, and the result goes
/// to its beginning. `op`, and `function` for LLCL_OP_USER. `plan`: where the plan goes; ended by
/// llcl_coll_free or with the context.
/// LLCL_OK; other statuses, and threads: as llcl_barrier_init. From: MPI_Reduce_scatter_block_init.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn llcl_reduce_scatter_init(
    params: *const llcl_coll_params_t,
    plan: *mut *mut llcl_coll_t,
) -> llcl_status_t {
    // SAFETY: as the contract says.
    guard(|| unsafe { init(Operation::ReduceScatter, Form::Even, params, plan) })
}

/// Makes the plan of a reduce-scatter with a length for each rank's block.
///
/// `params`: read during the call. `send`: all blocks, one after the other in the order of ranks.
/// `receive`: this rank's block. `receive_counts`: the length of each rank's block, the same at
/// every rank. `op`, and `function` for LLCL_OP_USER. `plan`: where the plan goes; ended by
/// llcl_coll_free or with the context.
/// LLCL_OK; other statuses, and threads: as llcl_barrier_init. From: MPI_Reduce_scatter_init.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn llcl_reduce_scatterv_init(
    params: *const llcl_coll_params_t,
    plan: *mut *mut llcl_coll_t,
) -> llcl_status_t {
    // SAFETY: as the contract says.
    guard(|| unsafe { init(Operation::ReduceScatter, Form::Varied, params, plan) })
}

/// Makes the plan of a scan: each rank gets the elements of all ranks up to and including itself,
/// combined one by one.
///
/// `params`: read during the call. `send` and `receive`: `count` elements. `op`, and `function` for
/// LLCL_OP_USER. `plan`: where the plan goes; ended by llcl_coll_free or with the context.
/// LLCL_OK; other statuses, and threads: as llcl_barrier_init. From: Hillis and Steele 1986.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn llcl_scan_init(
    params: *const llcl_coll_params_t,
    plan: *mut *mut llcl_coll_t,
) -> llcl_status_t {
    // SAFETY: as the contract says.
    guard(|| unsafe { init(Operation::Scan, Form::Even, params, plan) })
}

/// Makes the plan of an exclusive scan: each rank except the first gets the elements of all ranks
/// before it, combined one by one.
///
/// `params`: read during the call. `send` and `receive`: `count` elements. Rank 0's output does not
/// change; in place that is its input. `op`, and `function` for LLCL_OP_USER. `plan`: where the
/// plan goes; ended by llcl_coll_free or with the context.
/// LLCL_OK; other statuses, and threads: as llcl_barrier_init.
/// From: Hillis and Steele 1986; MPI 4.0 section 6.11.2.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn llcl_exscan_init(
    params: *const llcl_coll_params_t,
    plan: *mut *mut llcl_coll_t,
) -> llcl_status_t {
    // SAFETY: as the contract says.
    guard(|| unsafe { init(Operation::Exscan, Form::Even, params, plan) })
}
