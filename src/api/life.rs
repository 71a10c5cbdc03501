//! 3. Contexts: from llcl_init to llcl_finalize.

use crate::api::config::{create, duplicate_of, llcl_config_t, resolve};
use crate::api::guard::{give, given, guard, known_size, timeout};
use crate::api::status::llcl_status_t;
use crate::coll::choices::Choices;
use crate::coll::collectives::Collectives;
use crate::core::context::Context;
use crate::core::finalize::Ended;
use crate::engine::queue_entry::INLINE;
use crate::fail;
use crate::util::memory::page_size;
use crate::util::output::write_output;
use crate::util::quarantine::Quarantine;
use crate::util::status::Result;
use std::cell::Cell;
use std::ffi::c_char;
use std::mem::ManuallyDrop;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Major version: grows when programs must be changed.
pub const LLCL_VERSION_MAJOR: u32 = 0;
/// Minor version: grows when functions are added.
pub const LLCL_VERSION_MINOR: u32 = 2;
/// Patch version.
pub const LLCL_VERSION_PATCH: u32 = 0;

/// A context: one rank's place in a world, with its regions, handlers, teams, plans and threads.
/// Ended by llcl_finalize.
pub struct llcl_context_t {
    // llcl_finalize drops the content and keeps the object, so that a call with an old handle finds
    // that the context has ended. The functions on single words do not check this: they read one
    // word of the context, which stays there and says that no peer can be reached.
    pub(super) context: ManuallyDrop<Context>,
    pub(super) collectives: ManuallyDrop<Collectives>,
    ended: AtomicBool,
}

/// Contexts that have ended.
static ENDED: Quarantine<llcl_context_t> = Quarantine::new();

impl llcl_context_t {
    /// Whether the context has not ended yet.
    #[inline]
    pub(super) fn is_live(&self) -> bool {
        !self.ended.load(Ordering::Relaxed)
    }

    /// The context, unless it has ended or belongs to the process that this one was forked from.
    pub(super) fn live(&self) -> Result<&Context> {
        if !self.is_live() {
            fail!(ERR_STATE, "the context has ended, by llcl_finalize");
        }
        self.context.routes().gate().must_be_own()?;
        Ok(&self.context)
    }
}

/// The context behind a handle.
///
/// # Safety
/// A pointer that is not null comes from llcl_init.
pub(super) unsafe fn live<'a>(context: *const llcl_context_t) -> Result<&'a Context> {
    // SAFETY: as the caller promises; ended ones are kept.
    unsafe { given(context, "context")? }.live()
}

/// The limits and settings of a context.
#[repr(C)]
pub struct llcl_capabilities_t {
    /// Bytes of this struct, set by the caller before the call.
    pub struct_size: u64,
    /// The execution in force, one of LLCL_EXECUTION_*.
    pub execution: u32,
    /// Commands that the queue holds.
    pub queue_entries: u32,
    /// Operations that may wait for other ranks at one time.
    pub in_flight: u32,
    /// Regions that may exist at one time.
    pub regions: u32,
    /// Most bytes of llcl_try_write_small_async.
    pub small: u64,
    /// Bytes of a page: allocated regions begin on one.
    pub page: u64,
    /// Message slots of this rank.
    pub am_slots: u32,
    /// The policy in force, one of LLCL_AM_POLICY_*.
    pub am_policy: u32,
    /// Most bytes of a payload that this rank receives in a slot, and of a reply that it receives.
    pub am_medium: u32,
    /// Shares into which its slots are split.
    pub am_shares: u32,
    /// Messages that may wait for their end at one time.
    pub am_requests: u32,
    /// One of LLCL_AM_HANDLERS_*.
    pub am_handlers: u32,
    /// Bytes that this rank may still allocate, as far as can be said now: the memory that is
    /// available to all processes of the machine, but not more than the limit on file sizes (ulimit
    /// -f) allows.
    pub memory: u64,
    /// 1: a network makes progress only while the thread that has made the context is in a function
    /// of the library, as MPI does below MPI_THREAD_MULTIPLE. 0: threads of the library make all
    /// networks progress.
    pub opener_polls: u32,
    /// 0.
    pub reserved: u32,
}

/// Makes a context: takes this rank's place in its world. It is collective only with a `bootstrap`,
/// as over a communicator (llcl_mpi.h), and where another launcher than llcl-run has started the
/// ranks. Else it waits for no other rank; peers are contacted at their first use.
///
/// Where another launcher (MPI, PMI, Slurm) has started several ranks and `bootstrap` is NULL, a
/// module (libllcl-mpi-*.so) joins them. The module then initialises MPI, and finalises it in
/// llcl_finalize.
/// `config`: read during the call; NULL: all defaults. `context`: where the new context goes; the
/// caller ends it by llcl_finalize.
/// LLCL_OK; LLCL_ERR_INVALID: a field or an environment variable has a bad value; or not all of the
/// launcher's variables LLCL_RANK, LLCL_SIZE and LLCL_HUB_FD are set; or another launcher has
/// started several ranks, without a `bootstrap`, a module, or LLCL_ALONE=1 for a world of one rank;
/// LLCL_ERR_UNSUPPORTED: ranks are on different machines, and no wire connects them;
/// LLCL_ERR_RANGE: there is no such rank in `world`; LLCL_ERR_STATE: the place is taken, or was
/// taken before; LLCL_ERR_NO_MEMORY or LLCL_ERR_SYSTEM: the machine refuses memory, a thread or a
/// socket. Where the call is collective, a rank that is refused tells the others, which answer
/// LLCL_ERR_SYSTEM; but not of a bad `bootstrap` or a wrong struct_size.
/// A process must not execute another program (exec) before llcl_finalize: it would be killed, and
/// until then other ranks might write to that program's memory.
/// Any thread may call it. It starts the progress thread and a thread that receives the news of
/// deaths; both block all signals and sleep while there is nothing to do.
/// From: gasnet_init of GASNet and MPI_Session_init of MPI, of which a process may have several.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn llcl_init(
    config: *const llcl_config_t,
    context: *mut *mut llcl_context_t,
) -> llcl_status_t {
    guard(|| {
        // SAFETY: the caller gives NULL or a struct.
        let config = unsafe { config.as_ref() };
        // SAFETY: the caller gives NULL or a place for a pointer.
        let place = unsafe { given(context, "context") };
        let choices = place.and_then(|_| Choices::from_environment());
        let (resolved, choices) = match (resolve(config), choices) {
            (resolved, Ok(choices)) => (resolved, choices),
            (resolved, Err(error)) => (resolved.and(Err(error)), Choices::default()),
        };
        // SAFETY: what the configuration points to is NULL or alive, by contract.
        let made = unsafe { create(config, resolved)? };
        // SAFETY: checked above: without a place no context was made.
        unsafe { give(context, "context", keep(made, Collectives::new(choices))?) }
    })
}

/// The handle of a context.
fn keep(made: Context, collectives: Collectives) -> Result<*mut llcl_context_t> {
    let created = ENDED.place(llcl_context_t {
        context: ManuallyDrop::new(made),
        collectives: ManuallyDrop::new(collectives),
        ended: AtomicBool::new(false),
    });
    let final_address = created.context.set_final_address();
    let created = Box::into_raw(created);
    if final_address.is_err() {
        // The rank has joined, so it leaves.
        // SAFETY: made above, and no caller has it.
        let _ = unsafe { end(created, Some(Duration::ZERO)) };
    }
    final_address.map(|()| created)
}

/// Makes a second context of the same ranks: with its own regions, handlers, message slots, teams,
/// threads and configuration. A library uses it beside a runtime that also uses libllcl, and a
/// thread uses it to have a context of its own. Collective over all ranks of `context`, which wait
/// for each other as in llcl_allgather_bytes.
///
/// The two contexts are independent: keys, regions and flushes of one mean nothing in the other.
/// Each is ended by its own llcl_finalize, in any order. In the second context the lowest rank of
/// each node does for its node what the launcher does for the first, also after it has left. If its
/// process ends before the other ranks of its node have left that context, these learn that all
/// ranks have died, and ranks of other nodes count all ranks of that node as dead. If it is rank 0,
/// all ranks count as dead. Ranks of other nodes learn of its death from the first context; if that
/// has ended before, or its hub dies with that rank, only when the network refuses a frame to it.
/// `context`: a live context. `config`: read during the call, with `world` and `bootstrap` NULL;
/// `rank` is ignored; NULL: all defaults. `duplicate`: where the new context goes.
/// LLCL_OK; LLCL_ERR_INVALID: NULL, or a field or an environment variable has a bad value;
/// LLCL_ERR_PEER_DEAD: a rank has died or has left; LLCL_ERR_STATE: inside a callback, or the
/// context is being finalized; LLCL_ERR_NO_MEMORY or LLCL_ERR_SYSTEM: the machine refuses memory, a
/// thread or a socket; LLCL_ERR_SYSTEM also if another rank is refused. Where one rank is refused,
/// the others are refused too. Threads of one rank must not call collective functions of one
/// context at the same time.
/// From: MPI_Comm_dup, and the several clients of GASNet-EX.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn llcl_context_duplicate(
    context: *mut llcl_context_t,
    config: *const llcl_config_t,
    duplicate: *mut *mut llcl_context_t,
) -> llcl_status_t {
    guard(|| {
        // SAFETY: the caller gives a live context, NULL or a struct, and NULL or a place for a
        // pointer.
        let (live, config, place) =
            unsafe { (live(context)?, config.as_ref(), given(duplicate, "duplicate")) };
        let made = duplicate_of(live, config, place.map(drop))?;
        // SAFETY: as above.
        let collectives = unsafe { &(*context).collectives }.alike();
        // SAFETY: checked by duplicate_of().
        unsafe { give(duplicate, "duplicate", keep(made, collectives)?) }
    })
}

/// Ends a context: leaves the world. Collective: returns when every living rank has called it.
///
/// Operations under way end first, each once: those that can end within LLCL_FINALIZE_MS end
/// normally, the others with LLCL_ERR_CANCELED. Meanwhile other ranks are still served, and
/// messages that were sent before, and responses to them, are handled. All regions, teams and plans
/// of the context end with it, and so do all pointers into their memory; the program does not have
/// to free them before.
/// `context`: ended by this call, whatever the answer, except LLCL_ERR_INVALID (it is NULL) and
/// LLCL_ERR_STATE (inside a callback, ended before, in a forked child, or over a network that one
/// thread may use, as MPI with MPI_THREAD_FUNNELED, on another thread than that of llcl_init).
/// LLCL_OK; LLCL_ERR_SYSTEM: the launcher has gone, or the network has failed, or it may still use
/// memory of the program; LLCL_ERR_TIMEOUT: a callback or handler on a thread of the library has
/// not returned within LLCL_FINALIZE_MS and a second or two. Completions that wait for that thread
/// then never fire, and the memory and the threads of the context stay.
/// There is no such limit for a callback on the calling thread.
/// Some networks, such as MPI, cannot end a transfer with a rank that is stopped. Such transfers
/// delay this call by up to two seconds. If the network may use registered memory after that, the
/// answer is LLCL_ERR_SYSTEM, in place of LLCL_ERR_TIMEOUT, and llcl_last_error() names a region.
/// The program must then keep registered memory valid, and without other use, until it has ended
/// MPI (MPI_Finalize), or to the end of the process. Memory that the library has allocated stays
/// mapped so long. No answer tells of buffers outside of all regions: keep those of operations on a
/// stopped rank that have ended with LLCL_ERR_CANCELED as long.
/// No other thread may be in a call on this context, or begin one. Until this call returns,
/// callbacks may run on the calling thread and on the progress thread; requests that they post are
/// refused.
/// From: MPI_Finalize, but it also ends what is under way.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn llcl_finalize(context: *mut llcl_context_t) -> llcl_status_t {
    // SAFETY: the caller gives a context of llcl_init.
    guard(|| unsafe { end(context, None) })
}

/// Leaves the world as llcl_finalize does, but waits for the other ranks no longer than a time.
///
/// `context`: as of llcl_finalize. `timeout_ns`: nanoseconds; negative: for ever.
/// LLCL_OK and other statuses: as of llcl_finalize; LLCL_ERR_TIMEOUT: not all ranks have called it
/// in time; or a call of llcl_allgather_bytes_within has timed out and was not repeated; or as of
/// llcl_finalize. llcl_last_error() says which. The context has ended in each case. Ranks that have
/// not called it find that this rank has left (LLCL_ERR_PEER_DEAD); until then they may touch
/// memory that this rank had registered. LLCL_ERR_SYSTEM says that the network may do so, too.
/// The time does not bound MPI_Finalize, which waits for the other ranks, and which this function
/// calls if llcl_init has called MPI_Init_thread. If ranks are on several machines, the lowest rank
/// of each waits up to two seconds longer for those of its machine (llcl_bootstrap_t), and for an
/// answer of rank 0's process.
/// Threads: as of llcl_finalize.
/// From: GASPI, where each call takes a time-out.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn llcl_finalize_within(
    context: *mut llcl_context_t,
    timeout_ns: i64,
) -> llcl_status_t {
    // SAFETY: the caller gives a context of llcl_init.
    guard(|| unsafe { end(context, timeout(timeout_ns)) })
}

/// Ends a context, and gives back what it has.
///
/// # Safety
/// `context` is NULL or was made by llcl_init, and no other code uses it any more.
unsafe fn end(context: *mut llcl_context_t, timeout: Option<Duration>) -> Result<()> {
    // SAFETY: as the caller promises.
    let live = unsafe { live(context)? };
    live.may_finalize()?;
    let patience = Duration::from_millis(live.config().finalize_ms);
    let limit = Instant::now() + timeout.map_or(patience, |timeout| timeout.min(patience));
    // SAFETY: as the caller promises.
    let left = unsafe { &(*context).collectives }.leave(limit);
    let Ended { status, stuck } = live.finalize(timeout);
    let stuck = stuck || !left;
    // SAFETY: made by llcl_init, not ended before, and it is not used any more.
    let mut shell = unsafe { Box::from_raw(context) };
    shell.ended.store(true, Ordering::Relaxed);
    if stuck {
        // One of its threads is in a function of the user, and uses all of this after the return.
        Box::leak(shell);
        return status;
    }
    // SAFETY: once, as `ended` says; no call reaches them after that.
    unsafe {
        ManuallyDrop::drop(&mut shell.context);
        ManuallyDrop::drop(&mut shell.collectives);
    }
    ENDED.keep([shell]);
    status
}

/// Ends the whole job: this process at once, every other rank by SIGTERM, and by SIGKILL if it runs
/// on after two seconds. llcl-run returns `exit_code`. The system keeps the low 8 bits of the code;
/// a code other than 0 in which these bits are 0 counts as 1. After an llcl_exit the call ends the
/// ranks within two seconds, too, but the code stays that of llcl_exit.
///
/// `context`: any context of the job; NULL: only this process ends. Does not return. Any thread may
/// call it, also inside a callback. No exit handler runs.
/// From: MPI_Abort.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn llcl_abort(context: *mut llcl_context_t, exit_code: i32) {
    let code = if exit_code != 0 && exit_code & 0xff == 0 { 1 } else { exit_code };
    guard(|| {
        // SAFETY: the caller gives NULL or a context of llcl_init.
        unsafe { live(context)? }.abort(code, GRACE_MS);
        Ok(())
    });
    // SAFETY: ends the process without running anything of the program.
    unsafe { libc::_exit(code) }
}

/// Ends the whole job in order, with an exit code: this process by exit(), which runs exit handlers
/// and writes buffered output; the others by SIGTERM, and by SIGKILL where they have not ended in
/// time. llcl-run returns the code. If streams other than stdout are not written within a second,
/// for instance since another thread reads from one, this process ends without exit handlers.
///
/// The first call of a job decides the code. Later calls, of any thread of any rank, do not return
/// either; they can only shorten the time that the ranks have, as llcl_abort and `llcl-run
/// --timeout` can. A second call by the same thread, in an exit handler, writes the buffered output
/// and ends the process at once, with the code of the first.
/// `context`: any context of the job; NULL: only this process ends. `exit_code`: as of llcl_abort.
/// `grace_ms`: milliseconds that the processes of the job have to end. Where the context was made
/// with an llcl_bootstrap_t::abort, this function writes the buffered output of this process and
/// then calls that one, which ends the job.
/// Does not return. Any thread may call it, also inside a callback or a handler. It does not wait
/// for operations under way. From: gasnet_exit of GASNet.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn llcl_exit(context: *mut llcl_context_t, exit_code: i32, grace_ms: u32) {
    static ENDING: AtomicBool = AtomicBool::new(false);
    thread_local! {
        /// The code with which this thread ends the process.
        static CODE: Cell<Option<i32>> = const { Cell::new(None) };
    }
    if let Some(code) = CODE.get() {
        write_output();
        // SAFETY: ends the process without running anything else. exit() may not be called again by
        // a handler that it runs.
        unsafe { libc::_exit(code) }
    }
    // Relaxed: the flag publishes nothing. Two threads in exit() would run handlers twice.
    if ENDING.swap(true, Ordering::Relaxed) {
        loop {
            std::thread::park();
        }
    }
    let code = if exit_code != 0 && exit_code & 0xff == 0 { 1 } else { exit_code };
    CODE.set(Some(code));
    let written = write_output();
    guard(|| {
        if context.is_null() {
            return Ok(());
        }
        // SAFETY: the caller gives a context of llcl_init.
        unsafe { live(context)? }.abort(code, grace_ms);
        Ok(())
    });
    if !written {
        // The thread that still writes has a lock that exit() takes.
        // SAFETY: ends the process without running anything of the program.
        unsafe { libc::_exit(code) }
    }
    // SAFETY: ends the process as the program itself would.
    unsafe { libc::exit(code) }
}

/// Milliseconds that the other processes of a job get to end after llcl_abort.
const GRACE_MS: u32 = 2000;

/// This rank's number, from 0 on.
///
/// `context`: a live context; for NULL and one that has ended the answer is 0. Any thread may call
/// it.
/// From: MPI_Comm_rank.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn llcl_rank(context: *const llcl_context_t) -> u32 {
    // SAFETY: the caller gives NULL or a context of llcl_init.
    unsafe { context.as_ref() }.filter(|it| it.is_live()).map_or(0, |it| it.context.rank())
}

/// The number of ranks of the world, dead ones included.
///
/// `context`: a live context; for NULL and one that has ended the answer is 0. Any thread may call
/// it.
/// From: MPI_Comm_size.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn llcl_size(context: *const llcl_context_t) -> u32 {
    // SAFETY: the caller gives NULL or a context of llcl_init.
    unsafe { context.as_ref() }.filter(|it| it.is_live()).map_or(0, |it| it.context.size())
}

/// The version of the library that is loaded: major << 16 | minor << 8 | patch. Any thread may call
/// it.
/// From: MPI_Get_library_version, as a number.
#[unsafe(no_mangle)]
pub extern "C" fn llcl_version() -> u32 {
    LLCL_VERSION_MAJOR << 16 | LLCL_VERSION_MINOR << 8 | LLCL_VERSION_PATCH
}

/// The version of the library that is loaded, as text. Static, never NULL. Any thread may call it.
/// From: MPI_Get_library_version.
#[unsafe(no_mangle)]
pub extern "C" fn llcl_version_string() -> *const c_char {
    concat!(env!("CARGO_PKG_VERSION"), "\0").as_ptr().cast()
}

/// Reports the limits of a context, and the configuration in force.
///
/// `context`: a live context. `capabilities`: the caller's struct with its struct_size set; filled.
/// LLCL_OK; LLCL_ERR_INVALID: NULL, or an unknown struct_size. Any thread may call it.
/// From: ibv_query_device of verbs and ucp_context_query of UCX.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn llcl_query(
    context: *mut llcl_context_t,
    capabilities: *mut llcl_capabilities_t,
) -> llcl_status_t {
    guard(|| {
        // SAFETY: the caller gives a live context and a struct.
        let (context, asked) = unsafe { (live(context)?, given(capabilities, "capabilities")?) };
        known_size(asked.struct_size, size_of::<llcl_capabilities_t>())?;
        let config = context.config();
        let answer = llcl_capabilities_t {
            struct_size: size_of::<llcl_capabilities_t>() as u64,
            execution: config.execution as u32 + 1,
            queue_entries: config.queue_entries as u32,
            in_flight: config.in_flight as u32,
            regions: config.regions as u32,
            small: INLINE as u64,
            page: page_size() as u64,
            am_slots: config.am_slots as u32,
            am_policy: config.am_policy as u32 + 1,
            am_medium: config.am_medium as u32,
            am_shares: context.am_shares(),
            am_requests: config.am_requests as u32,
            am_handlers: config.am_handlers as u32 + 1,
            memory: context.memory_left(),
            opener_polls: context.routes().fabric().opener_polls().into(),
            reserved: 0,
        };
        // SAFETY: as above.
        unsafe { give(capabilities, "capabilities", answer) }
    })
}
