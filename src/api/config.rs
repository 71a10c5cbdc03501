//! 2. Worlds and configuration: the place of a context, and its settings.

use crate::api::guard::{give, given, guard};
use crate::api::status::llcl_status_t;
use crate::bootstrap::{Abort, Handed, World};
use crate::core::context::{Context, Place};
use crate::fail;
use crate::util::config::Config;
use crate::util::misspelt;
use crate::util::status::{Error, Result, Status};
use std::ffi::c_void;

/// As the environment variable LLCL_EXECUTION says, else LLCL_EXECUTION_AUTO.
pub const LLCL_EXECUTION_FROM_ENVIRONMENT: u32 = 0;
/// The caller executes what it can itself. A thread that waits or posts executes the rest; if there
/// is none, the progress thread does.
pub const LLCL_EXECUTION_AUTO: u32 = 1;
/// Every request goes through the queue to the progress thread. If a thread finds the queue full,
/// or finds another thread posting at the same moment, and no thread executes commands, then it
/// executes a batch of commands itself.
pub const LLCL_EXECUTION_OFFLOAD: u32 = 2;
/// The caller executes everything itself. For an operation that needs the owner of the memory or a
/// network, the answer is LLCL_RETRY_BUSY while a thread executes such an operation. In a callback
/// at the end of such an operation that thread is the caller itself: each try there answers
/// LLCL_RETRY_BUSY, however often it is repeated. With LLCL_FLAG_PARK it is accepted.
pub const LLCL_EXECUTION_DIRECT: u32 = 3;

/// As the environment variable LLCL_AM_POLICY says, else LLCL_AM_POLICY_ACQUIRE.
pub const LLCL_AM_POLICY_FROM_ENVIRONMENT: u32 = 0;
/// A sender takes the next free slot, by one compare-and-swap on a word of that slot. All counters
/// lie with the receiver.
pub const LLCL_AM_POLICY_ACQUIRE: u32 = 1;
/// As LLCL_AM_POLICY_ACQUIRE; in addition a counter limits how many messages are sent and not yet
/// taken from their slots.
pub const LLCL_AM_POLICY_LIMIT: u32 = 2;
/// The slots are split into shares. The counters by which senders take slots lie with several
/// ranks, one for each share. A sender begins with the share whose counter is nearest, and tries
/// the others while that share is full.
pub const LLCL_AM_POLICY_DISTRIBUTED: u32 = 3;

/// As the environment variable LLCL_AM_HANDLERS says, else LLCL_AM_HANDLERS_SERIAL.
pub const LLCL_AM_HANDLERS_FROM_ENVIRONMENT: u32 = 0;
/// One handler of a context runs at a time.
pub const LLCL_AM_HANDLERS_SERIAL: u32 = 1;
/// Handlers of different messages may run at the same time: on every thread that waits in this
/// library, and on the library's own.
pub const LLCL_AM_HANDLERS_PARALLEL: u32 = 2;

/// One handler of a context runs at a time, and only on threads of the program, outside of
/// callbacks: in llcl_am_poll, llcl_am_wait, llcl_progress, and in every call that waits. A program
/// that calls none of these handles no message. The library still serves other ranks' operations on
/// memory.
pub const LLCL_AM_HANDLERS_POLLED: u32 = 3;

/// A world whose ranks are threads of this process.
pub struct llcl_world_t(pub(super) World);

/// A function of the program that gathers bytes from every rank at every rank. It stores the `size`
/// bytes at `mine` of every rank in `all`, in the order of ranks, and returns 0 when that is done;
/// any other number is a failure. `data`: as in llcl_bootstrap_t.
pub type llcl_allgather_fn = Option<
    unsafe extern "C" fn(
        data: *mut c_void,
        mine: *const c_void,
        size: usize,
        all: *mut c_void,
    ) -> i32,
>;

/// A function of the program that ends the whole job with this exit code, as MPI_Abort does. It may
/// return or not. `data`: as in llcl_bootstrap_t.
pub type llcl_abort_fn = Option<unsafe extern "C" fn(data: *mut c_void, exit_code: i32)>;

/// The place of this process among ranks that were started and numbered by MPI, PMI, or the program
/// itself. llcl_init is then collective over these ranks. Ranks that can pass a descriptor to each
/// other share memory. Ranks of other machines are reached by a wire (LLCL_TRANSPORT; else MPI's);
/// without one llcl_init answers LLCL_ERR_UNSUPPORTED. All ranks of a machine must run under one
/// user. The lowest rank of each machine does there what llcl-run does for its own jobs, also after
/// it has left: if its process ends before the other ranks of the machine have left, they learn
/// that all ranks have died. If ranks are on several machines, they learn this two seconds after
/// that rank has left, and ranks of other machines then learn that these ranks have left. Two
/// seconds after rank 0 has left, all ranks learn that all have died.
#[repr(C)]
pub struct llcl_bootstrap_t {
    /// Bytes of this struct, as LLCL_BOOTSTRAP_INIT sets it.
    pub struct_size: u64,
    /// This process's number, from 0 on, below `size`.
    pub rank: u32,
    /// How many ranks there are, 1 to 4096; the same at each.
    pub size: u32,
    /// llcl_init calls it up to four times, on the thread of the caller, with at most 300 bytes.
    /// It may block, and must not call this library.
    pub allgather: llcl_allgather_fn,
    /// llcl_abort and llcl_exit call it, on the thread of their caller. NULL: the lowest rank of
    /// each machine ends the processes there.
    pub abort: llcl_abort_fn,
    /// The first argument of both functions; may be NULL. Stays valid until the context has ended.
    pub data: *mut c_void,
    /// A number for the wire to other machines. MPI's wire takes MPI_Comm_c2f of the communicator
    /// that has these ranks, which must stay valid until the context has ended; 0 means
    /// MPI_COMM_WORLD. Other wires ignore it.
    pub foreign: i64,
}

/// The configuration of a context. Begin with LLCL_CONFIG_INIT, or with llcl_config_default where
/// macros cannot be used. A field that is 0 takes its value from the environment variable in
/// brackets, else the default behind it. An empty variable counts as unset. If a variable begins
/// with LLCL_ and the library does not know it, the library prints it once on stderr, with the
/// nearest name that it knows.
#[repr(C)]
pub struct llcl_config_t {
    /// Bytes of this struct, as llcl_config_default sets it.
    pub struct_size: u64,
    /// The world of this process to take a place in. NULL: `bootstrap`, else the place that
    /// llcl-run gave to this process, else a world of one rank. Must outlive the context.
    pub world: *mut llcl_world_t,
    /// The place among ranks that another launcher has started, read during llcl_init; NULL: none.
    /// It must be NULL where `world` is set; otherwise all its ranks are refused.
    pub bootstrap: *const llcl_bootstrap_t,
    /// The place in `world`, from 0 on; without a world it is ignored.
    pub rank: u32,
    /// One of LLCL_EXECUTION_* [LLCL_EXECUTION; auto].
    pub execution: u32,
    /// Entries of the command queue; a power of two from 8 to 65536. A command takes one entry; one
    /// that carries its bytes takes one more for each 120 bytes or part of 120 [LLCL_QUEUE_ENTRIES;
    /// 1024].
    pub queue_entries: u32,
    /// Operations that wait for other ranks at one time; a multiple of 64 from 64 to 3904
    /// [LLCL_IN_FLIGHT; 1024].
    pub in_flight: u32,
    /// Regions at one time, 1 to 65535 [LLCL_REGIONS; 1024].
    pub regions: u32,
    /// One of LLCL_AM_POLICY_*: how senders take this rank's message slots [LLCL_AM_POLICY;
    /// acquire].
    pub am_policy: u32,
    /// Message slots of this rank, whatever the number of senders; a power of two from 1 to 65536
    /// [LLCL_AM_SLOTS; 512].
    pub am_slots: u32,
    /// Most bytes of a payload that travels in a slot; a multiple of 64 from 64 to 65536
    /// [LLCL_AM_MEDIUM; 4096].
    pub am_medium: u32,
    /// Shares of LLCL_AM_POLICY_DISTRIBUTED; a power of two from 1 to 16 [LLCL_AM_SHARES; 4]. There
    /// are never more shares than ranks, nor more than half the slots.
    pub am_shares: u32,
    /// Messages of this rank that may wait for their end at one time, each with a place for its
    /// reply; a power of two from 64 to 4096 [LLCL_AM_REQUESTS; 256].
    pub am_requests: u32,
    /// One of LLCL_AM_HANDLERS_* [LLCL_AM_HANDLERS; serial].
    pub am_handlers: u32,
    /// 0.
    pub reserved: u32,
}

/// Fills a configuration so that every value comes from the environment, else is the default.
///
/// `config`: the caller's struct, which is overwritten.
/// LLCL_OK; LLCL_ERR_INVALID if `config` is NULL. Any thread may call it.
/// This library's own.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn llcl_config_default(config: *mut llcl_config_t) -> llcl_status_t {
    guard(|| {
        let default = llcl_config_t {
            struct_size: size_of::<llcl_config_t>() as u64,
            world: std::ptr::null_mut(),
            bootstrap: std::ptr::null(),
            rank: 0,
            execution: LLCL_EXECUTION_FROM_ENVIRONMENT,
            queue_entries: 0,
            in_flight: 0,
            regions: 0,
            am_policy: LLCL_AM_POLICY_FROM_ENVIRONMENT,
            am_slots: 0,
            am_medium: 0,
            am_shares: 0,
            am_requests: 0,
            am_handlers: LLCL_AM_HANDLERS_FROM_ENVIRONMENT,
            reserved: 0,
        };
        // SAFETY: config is the caller's struct.
        unsafe { give(config, "config", default) }
    })
}

/// The values in force.
pub(super) fn resolve(config: Option<&llcl_config_t>) -> Result<Config> {
    misspelt::warn_once();
    let mut resolved = Config::from_environment()?;
    let Some(config) = config else { return Ok(resolved) };
    let size = size_of::<llcl_config_t>() as u64;
    if config.struct_size != size {
        let given = config.struct_size;
        fail!(ERR_INVALID, "struct_size is {given}, expected {size}: use llcl_config_default");
    }
    if config.reserved != 0 {
        fail!(ERR_INVALID, "reserved is {}, expected 0", config.reserved);
    }
    if config.execution > LLCL_EXECUTION_DIRECT {
        fail!(ERR_INVALID, "execution is {}, expected LLCL_EXECUTION_*", config.execution);
    }
    if config.execution != LLCL_EXECUTION_FROM_ENVIRONMENT {
        resolved.execution = u64::from(config.execution) - 1;
    }
    for (given, most, name) in [
        (config.am_policy, LLCL_AM_POLICY_DISTRIBUTED, "am_policy"),
        (config.am_handlers, LLCL_AM_HANDLERS_POLLED, "am_handlers"),
    ] {
        if given > most {
            fail!(ERR_INVALID, "{name} is {given}, expected LLCL_{}_*", name.to_uppercase());
        }
    }
    if config.am_policy != LLCL_AM_POLICY_FROM_ENVIRONMENT {
        resolved.am_policy = u64::from(config.am_policy) - 1;
    }
    if config.am_handlers != LLCL_AM_HANDLERS_FROM_ENVIRONMENT {
        resolved.am_handlers = u64::from(config.am_handlers) - 1;
    }
    resolved.am_slots(config.am_slots.into())?;
    resolved.am_medium(config.am_medium.into())?;
    resolved.am_shares(config.am_shares.into())?;
    resolved.am_requests(config.am_requests.into())?;
    resolved.queue_entries(config.queue_entries.into())?;
    resolved.in_flight(config.in_flight.into())?;
    resolved.regions(config.regions.into())?;
    Ok(resolved)
}

/// The program's data for its functions, which any thread may pass to them.
struct Data(*mut c_void);

// SAFETY: the program promises that its functions may be called with it by any thread.
unsafe impl Send for Data {}
// SAFETY: as above.
unsafe impl Sync for Data {}

/// Calls `join` with the place that the program's own launcher has given.
///
/// # Safety
/// The functions are as the contract says.
unsafe fn with_place<T>(
    given: &llcl_bootstrap_t,
    join: impl FnOnce(Place<'_>) -> Result<T>,
) -> Result<T> {
    let size = size_of::<llcl_bootstrap_t>() as u64;
    if given.struct_size != size {
        let other = given.struct_size;
        fail!(
            ERR_INVALID,
            "bootstrap.struct_size is {other}, expected {size}: LLCL_BOOTSTRAP_INIT"
        );
    }
    let Some(allgather) = given.allgather else {
        fail!(ERR_INVALID, "bootstrap.allgather is NULL, expected a function");
    };
    let data = given.data;
    let allgather = |mine: &[u8], all: &mut [u8]| {
        // SAFETY: as the caller promises; `all` has room for the bytes of all ranks.
        unsafe { allgather(data, mine.as_ptr().cast(), mine.len(), all.as_mut_ptr().cast()) }
    };
    let data = Data(data);
    let abort = given.abort.map(|abort| {
        // SAFETY: as the caller promises.
        Box::new(move |code, _| unsafe { abort({ &data }.0, code) }) as Abort
    });
    let (rank, size) = (given.rank, given.size);
    let (foreign, processes, keep) = (given.foreign, true, None);
    let allgather = &allgather;
    join(Place::Handed(Handed { rank, size, allgather, abort, processes, foreign, keep }))
}

/// Makes the context at the place that the configuration names. `resolved`: an error that the
/// caller has already found; the other ranks learn it where they wait for this one.
///
/// # Safety
/// What the configuration points to is as its contract says.
pub(super) unsafe fn create(
    config: Option<&llcl_config_t>,
    resolved: Result<Config>,
) -> Result<Context> {
    let Some(config) = config else { return Context::create(resolved, Place::Environment) };
    let resolved = match config.struct_size == size_of::<llcl_config_t>() as u64 {
        true => resolved,
        // It has other fields, so it may have no `bootstrap`.
        false => Ok(resolved?),
    };
    // SAFETY: NULL or alive, as the caller promises.
    match unsafe { (config.world.as_ref(), config.bootstrap.as_ref()) } {
        (Some(world), None) => Context::create(resolved, Place::World(&world.0, config.rank)),
        (world, Some(bootstrap)) => {
            // Other ranks may wait for this one in its allgather.
            let one = |config| match world {
                Some(_) => fail!(ERR_INVALID, "world and bootstrap are set, expected one of them"),
                None => Ok(config),
            };
            let resolved = resolved.and_then(one);
            // SAFETY: as the caller promises.
            unsafe { with_place(bootstrap, |place| Context::create(resolved, place)) }
        }
        (None, None) => Context::create(resolved, Place::Environment),
    }
}

/// Makes a second context of the ranks of `context`. `place`: an error that the caller has already
/// found; the other ranks learn it.
pub(super) fn duplicate_of(
    context: &Context,
    config: Option<&llcl_config_t>,
    place: Result<()>,
) -> Result<Context> {
    let checked = place.and_then(|()| {
        if config.is_some_and(|config| !config.world.is_null() || !config.bootstrap.is_null()) {
            fail!(
                ERR_INVALID,
                "world or bootstrap is set, expected NULL: both are those of the context"
            );
        }
        resolve(config)
    });
    context.duplicate(checked)
}

/// Makes a world whose ranks are threads of this process. Each rank then calls llcl_init with its
/// number in the configuration.
///
/// `size`: ranks, 1 to 4096. `world`: where the new world goes; ended by llcl_world_free.
/// LLCL_OK; LLCL_ERR_INVALID: no such size, or NULL; LLCL_ERR_SYSTEM or LLCL_ERR_NO_MEMORY: the
/// machine refuses sockets or a thread. Any thread may call it.
/// From: MPI implementations whose ranks are threads of one process.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn llcl_world_create(
    size: u32,
    world: *mut *mut llcl_world_t,
) -> llcl_status_t {
    guard(|| {
        // SAFETY: the caller gives a place for a pointer.
        unsafe { given(world, "world")? };
        let created = Box::new(llcl_world_t(World::create(size)?));
        // SAFETY: checked above.
        unsafe { give(world, "world", Box::into_raw(created)) }
    })
}

/// Ends a world of this process.
///
/// `world`: from llcl_world_create; ended by this call if it answers LLCL_OK.
/// LLCL_OK; LLCL_RETRY_BUSY: a rank has not been finalized: finalize it, and repeat;
/// LLCL_ERR_INVALID: NULL; LLCL_ERR_STATE: this process is a forked child of the one that made the
/// world. No other thread may use the world at the same time.
/// From: llcl_world_create, which it undoes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn llcl_world_free(world: *mut llcl_world_t) -> llcl_status_t {
    guard(|| {
        // SAFETY: the caller gives a live world.
        let live = unsafe { &given(world, "world")?.0 };
        live.must_be_own()?;
        if !live.is_idle() {
            return Err(Error::bare(Status::RETRY_BUSY));
        }
        // SAFETY: made by llcl_world_create, and it is not used any more.
        drop(unsafe { Box::from_raw(world) });
        Ok(())
    })
}
