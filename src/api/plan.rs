//! 14. Plans: a collective that was planned once runs any number of times.
//!
//! A plan is made by one of the _init functions of the next chapter, at all ranks of a team. Each
//! rank then starts it, computes, and waits for it; the k-th start of one rank meets the k-th start
//! of every other. Several plans of a team may be under way at once and may be started in any
//! order. The thread that started a plan is not needed for it to advance: what an arriving signal
//! releases is done by the thread that delivered it, on any rank, or by a thread that waits, or by
//! the progress thread.

use crate::api::completion::llcl_completion_t;
use crate::api::guard::{give, given, guard, known_size, timeout};
use crate::api::memory::llcl_local_t;
use crate::api::status::llcl_status_t;
use crate::api::team::llcl_team_t;
use crate::coll::objects::PlanHandle;
use std::ffi::{c_char, c_void};

/// int8_t; also plain bytes.
pub const LLCL_TYPE_I8: u32 = 7;
/// uint8_t; also plain bytes.
pub const LLCL_TYPE_U8: u32 = 8;
/// int16_t
pub const LLCL_TYPE_I16: u32 = 9;
/// uint16_t
pub const LLCL_TYPE_U16: u32 = 10;
/// Elements of `element_size` bytes, for operations that only move data and for LLCL_OP_USER. They
/// are never cut apart.
pub const LLCL_TYPE_BYTES: u32 = 11;
/// _Bool of C, bool of C++: one byte. AND, OR and XOR are the logical ones: 0 is false, everything
/// else true, and results are 0 or 1.
pub const LLCL_TYPE_BOOL: u32 = 12;
/// IEEE binary16, _Float16 of some compilers: ADD, PROD, MIN, MAX. Every combination is rounded
/// once, to nearest and ties to even, with denormal numbers, whatever the thread's floating-point
/// environment.
pub const LLCL_TYPE_F16: u32 = 13;
/// The upper 16 bits of an IEEE binary32, __bf16 of some compilers. As LLCL_TYPE_F16.
pub const LLCL_TYPE_BF16: u32 = 14;
/// long double, 16 bytes: ADD, PROD, MIN, MAX on x86-64, where it is the x87's format (the 6 bytes
/// behind a result are 0); elsewhere LLCL_ERR_UNSUPPORTED for them, and only moved and given to
/// LLCL_OP_USER.
pub const LLCL_TYPE_LONG_DOUBLE: u32 = 15;
/// float _Complex: ADD, PROD. The product by its definition, without C's recovery of infinities.
pub const LLCL_TYPE_COMPLEX_F32: u32 = 16;
/// double _Complex: ADD, PROD. The product by its definition, without C's recovery of infinities.
pub const LLCL_TYPE_COMPLEX_F64: u32 = 17;
/// struct { float value; int32_t index; } of 8 bytes: MINLOC, MAXLOC, as for all pairs.
pub const LLCL_TYPE_F32_I32: u32 = 18;
/// struct { double value; int32_t index; } of 16 bytes.
pub const LLCL_TYPE_F64_I32: u32 = 19;
/// struct { int32_t value, index; } of 8 bytes.
pub const LLCL_TYPE_I32_I32: u32 = 20;
/// struct { int64_t value; int32_t index; } of 16 bytes.
pub const LLCL_TYPE_I64_I32: u32 = 21;
/// struct { int64_t value, index; } of 16 bytes.
pub const LLCL_TYPE_I64_I64: u32 = 22;
/// struct { double value; int64_t index; } of 16 bytes.
pub const LLCL_TYPE_F64_I64: u32 = 23;
/// struct { int16_t value; int32_t index; } of 8 bytes.
pub const LLCL_TYPE_I16_I32: u32 = 24;
/// struct { long double value; int32_t index; } of 32 bytes; where it can be combined, see
/// LLCL_TYPE_LONG_DOUBLE.
pub const LLCL_TYPE_LONG_DOUBLE_I32: u32 = 25;

/// Multiplies; integers wrap around. For collectives only.
pub const LLCL_OP_PROD: u32 = 12;
/// Calls the user's function. For collectives only.
pub const LLCL_OP_USER: u32 = 13;
/// Of two pairs the one with the smaller value; of equal values the one with the lower index, and
/// of a number and a NaN the number. For pairs in collectives only.
pub const LLCL_OP_MINLOC: u32 = 14;
/// Of two pairs the one with the larger value; else as LLCL_OP_MINLOC.
pub const LLCL_OP_MAXLOC: u32 = 15;

/// As the environment variable LLCL_COLL_ENGINE says, else LLCL_ENGINE_OFFLOAD.
pub const LLCL_ENGINE_FROM_ENVIRONMENT: u32 = 0;
/// All commands are made at init; the thread that delivers a signal runs the commands that it
/// releases.
pub const LLCL_ENGINE_OFFLOAD: u32 = 1;
/// The progress thread of each rank makes and runs the commands of that rank when they are ready.
pub const LLCL_ENGINE_THREAD: u32 = 2;

/// The input lies in the output buffer: at every rank, and for gather, reduce and scatter at the
/// root only. `send` is ignored there; for scatter it is `receive` that is ignored, and the root's
/// block stays where it is.
pub const LLCL_COLL_IN_PLACE: u32 = 1;

/// The function of LLCL_OP_USER may be called several times at the same time, on threads of its
/// rank and for different elements; the same at every rank. Without it the calls for a plan follow
/// each other, and a rank has one queue for its steps.
pub const LLCL_COLL_CONCURRENT: u32 = 2;

/// Each start of the plan may name other buffers, by llcl_coll_start_with; the same at every rank.
/// The blocking forms, which may do so in any case, ignore it.
pub const LLCL_COLL_REBIND: u32 = 4;

/// A user's reduction: `result[i] = left[i] op right[i]` for `count` elements of the plan's type,
/// whole ones. `result` is `right`, `left`, or overlaps neither; all are aligned as elements of the
/// buffers are, or as the elements of an array that begins at a multiple of 64. The order of ranks
/// is kept: the operation must be associative and need not commute. Runs on a thread of the rank to
/// which it was given, one call for a plan at a time (see LLCL_COLL_CONCURRENT), in the
/// floating-point environment of the thread that made the plan; must not block, must not call this
/// library and must not leave it by an exception or a jump.
pub type llcl_reduce_fn = Option<
    unsafe extern "C" fn(
        left: *const c_void,
        right: *const c_void,
        result: *mut c_void,
        count: u64,
        data: *mut c_void,
    ),
>;

/// A plan. Ends by llcl_coll_free or with its context.
pub struct llcl_coll_t(pub(super) PlanHandle);

/// What a collective is to do. Fields that an operation has no use for are ignored. Which rank
/// gives what is told with each _init function.
#[repr(C)]
pub struct llcl_coll_params_t {
    /// The ranks that take part.
    pub team: *mut llcl_team_t,
    /// The input, in a region of this rank; with `count` 0 any value. It is read and never written,
    /// so it may be read-only; so may what a rank only sends of its output: the data of a
    /// broadcast's root, and its own block in place. It may lie in gaps of the output but not
    /// overlap its blocks.
    pub send: llcl_local_t,
    /// The output, in a region of this rank; with `count` 0 any value. Bytes outside of the blocks
    /// are left alone: the user, or another plan, may use them meanwhile.
    pub receive: llcl_local_t,
    /// Elements; the same at every rank.
    pub count: u64,
    /// One of LLCL_TYPE_*; the same at every rank.
    pub r#type: u32,
    /// For operations that combine: one of LLCL_OP_ADD, PROD, MIN, MAX, AND, OR, XOR, MINLOC,
    /// MAXLOC that the type has, or LLCL_OP_USER, which every type has. Integers have the first
    /// seven; floating-point numbers ADD, PROD, MIN, MAX; see LLCL_TYPE_* for the others. The same
    /// at every rank.
    pub op: u32,
    /// The root, by rank in the team; the same at every rank.
    pub root: u32,
    /// One of LLCL_ENGINE_*.
    pub engine: u32,
    /// 0 or some of LLCL_COLL_IN_PLACE, LLCL_COLL_CONCURRENT, LLCL_COLL_REBIND; the same at every
    /// rank.
    pub flags: u32,
    /// Bytes of an element of LLCL_TYPE_BYTES, the same at every rank; for other types 0.
    pub element_size: u32,
    /// How many rounds may be under way at one time, 0 to 64, the same at every rank; 0 counts as 1.
    /// Each of them takes the memory of a plan. The blocking forms ignore it.
    pub depth: u32,
    /// For the v forms: elements for each rank of the team, read during the call.
    pub send_counts: *const u64,
    /// For the v forms: where each rank's block begins in the input, in elements; of an empty block
    /// any value.
    pub send_offsets: *const u64,
    /// For the v forms: elements from each rank of the team.
    pub receive_counts: *const u64,
    /// For the v forms: where each rank's block goes in the output, in elements; of an empty
    /// block any value.
    pub receive_offsets: *const u64,
    /// For LLCL_OP_USER: the function. Else ignored.
    pub function: llcl_reduce_fn,
    /// Its last argument; may be NULL.
    pub function_data: *mut c_void,
    /// The algorithm by name, the same at every rank; NULL: as the environment says, else the best
    /// known. The names are those of the LLCL_COLL_* variables, which llcl-info -c lists.
    pub algorithm: *const c_char,
    /// Fires at the end of every round, at this rank. A word (LLCL_COMPLETE_STORE,
    /// LLCL_COMPLETE_ADD) in allocated memory is changed by whichever rank runs the last step, also
    /// while this one computes, if `send` and `receive` lie in such memory too; any other
    /// completion waits for a thread of this rank. If that other rank is killed at that moment, the
    /// word says so, and may have been changed before.
    pub on_complete: llcl_completion_t,
}

/// What a plan consists of.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct llcl_coll_info_t {
    /// Bytes of this struct, set by the caller before the call.
    pub struct_size: u64,
    /// The algorithm's name; valid as long as the plan.
    pub algorithm: *const c_char,
    /// Why it was chosen, one sentence; valid as long as the plan.
    pub reason: *const c_char,
    /// LLCL_ENGINE_OFFLOAD or LLCL_ENGINE_THREAD.
    pub engine: u32,
    /// 1: any rank may run this rank's steps. 0: only this rank's own threads, because the engine,
    /// a user's function, more than 32 KiB in memory that peers do not map, a neighbour on another
    /// node or a team of more than 64 ranks wants it so.
    pub any_rank: u32,
    /// Queues of this rank's program.
    pub queues: u32,
    /// Steps of this rank's program.
    pub steps: u32,
    /// Bytes that the plan takes at this rank until it is freed: steps, signal words, scratch,
    /// copies of what peers do not map, and what this process keeps of the other ranks.
    pub memory: u64,
    /// How often the plan was started.
    pub rounds: u64,
}

/// Starts the next round of a plan: publishes that this rank's buffers are ready, and returns. What
/// is ready at once and small is done in the call; its cost does not grow with the size of the
/// message.
///
/// From here until the round has ended the input must not be changed and the output not be used; so
/// rounds that are under way together (see `depth`) have buffers of their own, by
/// llcl_coll_start_with, unless they only read.
/// `plan`: a live plan.
/// LLCL_OK; LLCL_ERR_STATE: as many rounds as `depth` says have not been waited for, the plan was
/// freed, or the context is being finalized; LLCL_ERR_PEER_DEAD: a rank of the plan has died or has left, the
/// plan can only be freed;
/// LLCL_ERR_INVALID: NULL. Any thread may call it, also inside a callback; for one plan one thread
/// at a time.
/// From: persistent collectives, MPI 4.0 section 6.12; the session-mode queue of Tofu2.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn llcl_coll_start(plan: *mut llcl_coll_t) -> llcl_status_t {
    // SAFETY: the caller gives a handle of a live context.
    guard(|| unsafe { given(plan, "plan")? }.0.start())
}

/// Starts the next round of a plan that was made with LLCL_COLL_REBIND, with its input and output
/// at other places. They stay those of the rounds that follow, until another call names new ones.
/// Each rank names places of its own, or starts the same round by llcl_coll_start. A buffer that
/// lies in a registered region, which peers do not map, is copied by this rank: the input in this
/// call, whose time then grows with it, the output at the end of the round.
///
/// `plan`: a live plan. `send`, `receive`: as in llcl_coll_params_t when the plan was made; each is
/// ignored where it was ignored then. The buffers of the round before are the user's again when
/// that has ended.
/// LLCL_OK; LLCL_ERR_KEY: a buffer names no live region of this rank; LLCL_ERR_RANGE: it leaves its
/// region;
/// LLCL_ERR_INVALID: the two overlap, the plan was made without LLCL_COLL_REBIND, or NULL;
/// LLCL_ERR_NO_MEMORY: a copy would exceed LLCL_COLL_MEMORY; then the round has not begun, and the
/// call may be made again. Other statuses, and threads: as llcl_coll_start.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn llcl_coll_start_with(
    plan: *mut llcl_coll_t,
    send: llcl_local_t,
    receive: llcl_local_t,
) -> llcl_status_t {
    let places = [send.address(), receive.address()];
    // SAFETY: the caller gives a handle of a live context.
    guard(|| unsafe { given(plan, "plan")? }.0.start_with(places))
}

/// Whether the oldest round that was not waited for has ended at this rank. Works for the plan for a moment.
///
/// `plan`: a live plan that was started.
/// LLCL_OK: it has ended; the buffers are the user's again, and the next round may be started;
/// LLCL_RETRY_BUSY: not yet, and for a moment after a STORE or ADD completion has changed its word,
/// while the thread that changed it has no core; LLCL_ERR_PEER_DEAD: a rank of the plan has died or
/// has left, the round will not end; LLCL_ERR_KEY: a buffer's region was freed meanwhile, here or at
/// a peer; LLCL_ERR_STATE: it was not started, or was freed; LLCL_ERR_INVALID: NULL. After an error
/// of a round the plan can only be freed.
/// Any thread may call it, also inside a callback; for one plan one thread at a time.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn llcl_coll_test(plan: *mut llcl_coll_t) -> llcl_status_t {
    // SAFETY: the caller gives a handle of a live context.
    guard(|| unsafe { given(plan, "plan")? }.0.test())
}

/// Waits until the oldest round that was not waited for has ended at this rank: working for the plan, also on behalf of other
/// ranks, for
/// LLCL_SPIN_US; then asleep.
///
/// `plan`: a live plan that was started. `timeout_ns`: nanoseconds; negative: for ever; 0: only
/// looks. LLCL_OK, LLCL_ERR_PEER_DEAD, LLCL_ERR_KEY: as llcl_coll_test; LLCL_ERR_TIMEOUT: not in
/// time, wait again;
/// LLCL_ERR_STATE: it was not started or was freed, or inside a callback; LLCL_ERR_INVALID: NULL.
/// Any thread may call it; for one plan one thread at a time.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn llcl_coll_wait(plan: *mut llcl_coll_t, timeout_ns: i64) -> llcl_status_t {
    // SAFETY: the caller gives a handle of a live context.
    guard(|| unsafe { given(plan, "plan")? }.0.wait(timeout(timeout_ns)))
}

/// Ends a plan. Local: the other ranks need not call it now; the plan's memory comes back when all
/// have.
///
/// `plan`: ended by this call if it answers LLCL_OK.
/// LLCL_OK; LLCL_ERR_STATE: a round has not been waited for, or the plan was freed before (found
/// out unless a newer object has been given the same handle); LLCL_ERR_INVALID: NULL. No other
/// thread may use the plan at the same time; not inside a callback (LLCL_ERR_STATE).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn llcl_coll_free(plan: *mut llcl_coll_t) -> llcl_status_t {
    // SAFETY: the caller gives a handle of a live context.
    guard(|| unsafe { given(plan, "plan")? }.0.free())
}

/// What a plan consists of, and why.
///
/// `plan`: a live plan. `info`: the caller's struct with its struct_size set; filled.
/// LLCL_OK; LLCL_ERR_INVALID: NULL, or an unknown struct_size; LLCL_ERR_STATE: the plan was freed.
/// Any thread may call it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn llcl_coll_query(
    plan: *const llcl_coll_t,
    info: *mut llcl_coll_info_t,
) -> llcl_status_t {
    guard(|| {
        // SAFETY: the caller gives a handle of a live context and a struct.
        let (plan, asked) = unsafe { (&given(plan, "plan")?.0, given(info, "info")?) };
        known_size(asked.struct_size, size_of::<llcl_coll_info_t>())?;
        let (about, texts, rounds) = plan.about()?;
        let answer = llcl_coll_info_t {
            struct_size: asked.struct_size,
            algorithm: texts[0].as_ptr(),
            reason: texts[1].as_ptr(),
            engine: about.engine as u32 + 1,
            any_rank: about.shared.into(),
            queues: about.queues,
            steps: about.steps,
            memory: about.memory,
            rounds,
        };
        // SAFETY: as above.
        unsafe { give(info, "info", answer) }
    })
}
