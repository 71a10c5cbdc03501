//! 14. Plans: a collective is planned once and then runs any number of times.
//!
//! A plan is made by one of the _init functions of the next chapter, at all ranks of a team. Each
//! rank then starts it, computes, and waits for it. The k-th starts of all ranks make up a round.
//! Several plans of a team may be under way at once and may be started in any order. A round
//! advances without the thread that started it. When a signal arrives that a step waits for, the
//! step is executed by the thread that delivered the signal, on any rank, by a thread that waits,
//! or by the progress thread.

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
/// Elements of `element_size` bytes, for operations that only move data and for LLCL_OP_USER. No
/// element is split.
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
/// long double, 16 bytes. On x86-64, where it has the x87's format, it has ADD, PROD, MIN and MAX
/// (the last 6 bytes of a result are 0). On other machines these answer LLCL_ERR_UNSUPPORTED; the
/// type is only for operations that move data and for LLCL_OP_USER.
pub const LLCL_TYPE_LONG_DOUBLE: u32 = 15;
/// float _Complex: ADD, PROD. The product follows its definition, without C's recovery of
/// infinities.
pub const LLCL_TYPE_COMPLEX_F32: u32 = 16;
/// double _Complex: ADD, PROD. The product follows its definition, without C's recovery of
/// infinities.
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

/// Multiplies; integers wrap around.
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
/// All steps are prepared by the _init function. The thread that delivers a signal executes the
/// steps that wait for it.
pub const LLCL_ENGINE_OFFLOAD: u32 = 1;
/// The progress thread of each rank makes and executes the steps of that rank when they are ready.
pub const LLCL_ENGINE_THREAD: u32 = 2;

/// The input lies in the output buffer: at every rank; for gather, reduce and scatter at the root
/// only. `send` is then ignored. For scatter `receive` is ignored instead, and the root's block
/// stays where it is.
pub const LLCL_COLL_IN_PLACE: u32 = 1;

/// Several threads of a rank may call the function of LLCL_OP_USER at the same time, for different
/// elements. All ranks must give the flag, or none. Without it the calls for a plan follow each
/// other, and the plan has one queue of steps at each rank.
pub const LLCL_COLL_CONCURRENT: u32 = 2;

/// Each start of the plan may name other buffers, by llcl_coll_start_with. All ranks must give the
/// flag, or none. The blocking forms ignore it, since each call names its buffers.
pub const LLCL_COLL_REBIND: u32 = 4;

/// A user's reduction: `result[i] = left[i] op right[i]` for `count` elements of the plan's type,
/// whole ones. `result` is `right`, `left`, or overlaps neither; all are aligned as elements of the
/// buffers are, or as the elements of an array that begins at a multiple of 64. The operands are
/// combined in the order of ranks: the operation must be associative, and may be not commutative.
/// It runs on a thread of the rank that gave it, one call for a plan at a time (see
/// LLCL_COLL_CONCURRENT), in the floating-point environment of the thread that made the plan. It
/// must not block, must not call this library, and must not end by an exception or a jump.
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

/// The parameters of a collective. An operation ignores the fields that it does not use. Each _init
/// function says which rank gives which fields.
#[repr(C)]
pub struct llcl_coll_params_t {
    /// The ranks that take part.
    pub team: *mut llcl_team_t,
    /// The input, in a region of this rank or any of its memory (llcl_local_address); with `count`
    /// 0 any value. The library only reads it, so it may be read-only memory. The same holds for a
    /// part of the output that a rank only sends: the data of a broadcast's root, and a rank's own
    /// block in place. The input may lie in gaps between the blocks of the output, but must not
    /// overlap the blocks.
    pub send: llcl_local_t,
    /// The output, in a region of this rank or any of its memory; with `count` 0 any value. The
    /// library does not touch bytes outside of the blocks: the user, or another plan, may use them
    /// meanwhile.
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
    /// How many rounds may be under way at one time, 0 to 64 (0 counts as 1), the same at every
    /// rank. Each of them takes as much memory as a plan of depth 1. The rounds end in any order:
    /// that k completions have fired does not say that the first k rounds have ended. The blocking
    /// forms ignore it.
    pub depth: u32,
    /// For the v forms: elements for each rank of the team, read during the call.
    pub send_counts: *const u64,
    /// For the v forms: where each rank's block begins in the input, in elements; for an empty
    /// block any value.
    pub send_offsets: *const u64,
    /// For the v forms: elements from each rank of the team.
    pub receive_counts: *const u64,
    /// For the v forms: where each rank's block goes in the output, in elements; for an empty block
    /// any value.
    pub receive_offsets: *const u64,
    /// For LLCL_OP_USER: the function. Else ignored.
    pub function: llcl_reduce_fn,
    /// Its last argument; may be NULL.
    pub function_data: *mut c_void,
    /// The algorithm by name, the same at every rank; NULL: as the environment says, else the best
    /// known. The names are those of the LLCL_COLL_* variables, which llcl-info -c lists.
    pub algorithm: *const c_char,
    /// Fires at the end of every round, at this rank. If the completion is a word
    /// (LLCL_COMPLETE_STORE, LLCL_COMPLETE_ADD), and the word, `send` and `receive` lie in
    /// allocated memory, then the rank that executes the last step changes the word, even while
    /// this rank computes. If that rank is killed while it changes the word, the word reports a
    /// failure; an ADD word may have grown before. Any other completion waits for a thread of this
    /// rank.
    pub on_complete: llcl_completion_t,
}

/// The properties of a plan.
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
    /// 1: any rank may execute this rank's steps. 0: only this rank's own threads. That is so with
    /// LLCL_ENGINE_THREAD, a user's function, buffers of more than 32 KiB in memory that peers do
    /// not map, a neighbour on another node, or a team of more than 64 ranks.
    pub any_rank: u32,
    /// Queues of steps at this rank.
    pub queues: u32,
    /// Steps of this rank in a round.
    pub steps: u32,
    /// Bytes that the plan takes at this rank until it is freed: steps, signal words, scratch
    /// memory, copies of buffers that peers do not map, and data about the other ranks that the
    /// steps name. LLCL_COLL_MEMORY limits the sum over all plans. docs/collectives.md has the
    /// formula.
    pub memory: u64,
    /// How often the plan was started.
    pub rounds: u64,
    /// The part of `memory` that this process alone maps, without what malloc adds. The other part
    /// is shared.
    pub memory_private: u64,
}

/// Starts the next round of a plan: tells the other ranks that this rank's buffers are ready, and
/// returns. The call executes small steps that are ready at once; its time does not grow with the
/// size of the message.
///
/// Until the round has ended, the program must neither change the input nor use the output. So
/// rounds that are under way together (see `depth`) need buffers of their own, by
/// llcl_coll_start_with, unless they only read.
/// `plan`: a live plan.
/// LLCL_OK; LLCL_ERR_STATE: as many rounds as `depth` says have not been waited for, the plan was
/// freed, or the context is being finalized; LLCL_ERR_PEER_DEAD: a rank of the plan has died or has
/// left, or the status with which an earlier round has failed: the plan can only be freed;
/// LLCL_ERR_INVALID: NULL. Any thread may call it, also inside a callback; for one plan one thread
/// at a time. The callback of the round may start the next one, also before this call has returned.
/// From: persistent collectives, MPI 4.0 section 6.12; the session-mode queue of Tofu2.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn llcl_coll_start(plan: *mut llcl_coll_t) -> llcl_status_t {
    // SAFETY: the caller gives a handle of a live context.
    guard(|| unsafe { given(plan, "plan")? }.0.start())
}

/// Starts the next round of a plan that was made with LLCL_COLL_REBIND, with other buffers for
/// input and output. Later rounds use these buffers too, until another call names new ones. Each
/// rank names its own buffers; a rank that keeps its buffers starts the same round by
/// llcl_coll_start. Peers do not map registered memory, so this rank copies a buffer in a
/// registered region: the input in this call, whose time then grows with the size, the output at
/// the end of the round.
///
/// `plan`: a live plan. `send`, `receive`: as in llcl_coll_params_t when the plan was made; each is
/// ignored where it was ignored then. The buffers of an earlier round are the user's again when
/// that round has ended.
/// LLCL_OK; LLCL_ERR_KEY: a buffer names no live region of this rank; LLCL_ERR_RANGE: it leaves its
/// region;
/// LLCL_ERR_INVALID: the two overlap, the plan was made without LLCL_COLL_REBIND, or NULL;
/// LLCL_ERR_NO_MEMORY: a copy would exceed LLCL_COLL_MEMORY: the round has not begun, and the call
/// may be repeated. Other statuses, and threads: as llcl_coll_start.
/// This library's own.
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

/// Reports whether the oldest round that was not waited for has ended at this rank. Before it
/// answers, it executes steps that are ready.
///
/// `plan`: a live plan that was started.
/// LLCL_OK: it has ended; the buffers are the user's again, and the next round may be started;
/// LLCL_RETRY_BUSY: not yet. This answer may also come after a STORE or ADD completion has changed
/// its word, until the thread that changed the word has finished the round; LLCL_ERR_PEER_DEAD: a
/// rank of the plan has died or has left: the round will not end; LLCL_ERR_KEY: a buffer's region
/// was freed meanwhile, here or at a peer; or another error of the network or of a peer;
/// LLCL_ERR_STATE: it was not started, or was freed; LLCL_ERR_INVALID: NULL. After an error of a
/// round the plan can only be freed. Other rounds that are under way (see `depth`) end too, with
/// LLCL_OK or an error, and must be waited for before. A rank of another node may still write to
/// this rank's output until it has reported an error of this round, too.
/// Any thread may call it, also inside a callback; for one plan one thread at a time.
/// From: MPI_Test.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn llcl_coll_test(plan: *mut llcl_coll_t) -> llcl_status_t {
    // SAFETY: the caller gives a handle of a live context.
    guard(|| unsafe { given(plan, "plan")? }.0.test())
}

/// Waits until the oldest round that was not waited for has ended at this rank. It executes steps
/// of the plan, also those of other ranks, for the time that llcl_wait_word stays awake, and then
/// sleeps.
///
/// `plan`: a live plan that was started. `timeout_ns`: nanoseconds; negative: for ever; 0: only
/// looks. LLCL_OK, LLCL_ERR_PEER_DEAD, LLCL_ERR_KEY, another error of the network or of a peer: as
/// llcl_coll_test; LLCL_ERR_TIMEOUT: not in time: wait again;
/// LLCL_ERR_STATE: it was not started or was freed, or inside a callback; LLCL_ERR_INVALID: NULL.
/// Any thread may call it; for one plan one thread at a time.
/// From: MPI_Wait, with a time-out.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn llcl_coll_wait(plan: *mut llcl_coll_t, timeout_ns: i64) -> llcl_status_t {
    // SAFETY: the caller gives a handle of a live context.
    guard(|| unsafe { given(plan, "plan")? }.0.wait(timeout(timeout_ns)))
}

/// Ends a plan. Local: the call does not wait for the other ranks. The plan's memory is free when
/// all ranks have ended it.
///
/// `plan`: ended by this call if it answers LLCL_OK.
/// LLCL_OK; LLCL_ERR_STATE: a round has not been waited for, or the plan was freed before (see the
/// conventions on handles); LLCL_ERR_INVALID: NULL. No other thread may be inside a call for the
/// plan, also not inside an llcl_coll_start whose round has ended; not inside a callback
/// (LLCL_ERR_STATE).
/// From: MPI_Request_free.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn llcl_coll_free(plan: *mut llcl_coll_t) -> llcl_status_t {
    // SAFETY: the caller gives a handle of a live context.
    guard(|| unsafe { given(plan, "plan")? }.0.free())
}

/// Reports the properties of a plan, and the reason for its algorithm.
///
/// `plan`: a live plan. `info`: the caller's struct with its struct_size set; filled.
/// LLCL_OK; LLCL_ERR_INVALID: NULL, or an unknown struct_size; LLCL_ERR_STATE: the plan was freed.
/// Any thread may call it.
/// This library's own.
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
            memory_private: about.private,
        };
        // SAFETY: as above.
        unsafe { give(info, "info", answer) }
    })
}
