//! 5. Memory: regions, the addresses that name places in them, and how ranks tell each other.

use crate::api::guard::{give, given, guard, guard_value, timeout};
use crate::api::life::{live, llcl_context_t};
use crate::api::status::llcl_status_t;
use crate::core::region::Wanted;
use crate::core::region_handle::{RegionHandle, free_region};
use crate::fail;
use crate::transport::address::{ANY, Address};
use crate::util::narrow::narrow;
use crate::util::status::Result;
use std::ffi::c_void;
use std::time::Duration;

/// A piece of this rank's memory that operations may name, here and at peers.
pub struct llcl_region_t(pub(super) RegionHandle);

/// A place in a rank's memory: plain bytes, which mean the same in every rank and may be sent
/// around in any way. Add to `offset` to go further; leave `key` alone.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct llcl_remote_t {
    /// Bytes from the beginning of the region.
    pub offset: u64,
    /// Names the region; 0 names none.
    pub key: u64,
}

/// A place in the calling rank's own memory, for the near side of operations. Means something only
/// in the context that made it.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct llcl_local_t {
    /// Bytes from the beginning of the region.
    pub offset: u64,
    /// Names the region; 0 names none.
    pub key: u64,
}

impl llcl_remote_t {
    #[inline(always)]
    pub(super) fn address(&self) -> Address {
        Address { offset: narrow(&self.offset), key: narrow(&self.key) }
    }
}

impl llcl_local_t {
    #[inline(always)]
    pub(super) fn address(&self) -> Address {
        Address { offset: narrow(&self.offset), key: narrow(&self.key) }
    }
}

/// The place at an address of this process, for the near side of this process's operations: stack,
/// heap, static or mapped memory that was never made a region of. Nothing is registered, and
/// nothing need be ended.
///
/// Not for LLCL_AM_BULK, whose payload the receiver reads, and for no far side: what peers are to
/// reach lies in a region. In `send` and `receive` of a collective it is treated as registered
/// memory.
/// `pointer`: the first byte, of any alignment; the memory stays the caller's, who keeps it until
/// the operation has ended. NULL: the place fits nothing, but size 0. Not checked: the address of
/// nothing ends the process where the operation touches it, or the operation with LLCL_ERR_SYSTEM.
/// Any thread may call it.
/// After the local buffers of MPI's and OpenSHMEM's puts, which need not be in a window either.
#[unsafe(no_mangle)]
pub extern "C" fn llcl_local_address(pointer: *const c_void) -> llcl_local_t {
    let key = if pointer.is_null() { 0 } else { ANY.0 };
    llcl_local_t { offset: pointer as u64, key }
}

/// The place some bytes further on in a peer's memory.
///
/// `remote`: a place. `offset`: bytes, modulo 2 to the 64th; checked when the place is used, not
/// here. Any thread may call it.
#[unsafe(no_mangle)]
pub extern "C" fn llcl_at(remote: llcl_remote_t, offset: u64) -> llcl_remote_t {
    llcl_remote_t { offset: remote.offset.wrapping_add(offset), ..remote }
}

/// The place some bytes further on in one's own memory.
///
/// `local`: a place. `offset`: bytes, modulo 2 to the 64th; checked when the place is used, not
/// here. Any thread may call it.
#[unsafe(no_mangle)]
pub extern "C" fn llcl_local_at(local: llcl_local_t, offset: u64) -> llcl_local_t {
    llcl_local_t { offset: local.offset.wrapping_add(offset), ..local }
}

/// Flag of llcl_region_allocate and llcl_region_register: atomics on the region are executed by
/// network adapters, not by processors, and nothing else changes its words. Without it processors
/// execute them, of the caller or of the owner; llcl_atomic_query tells which. There is no wire yet
/// that offers it: LLCL_ERR_UNSUPPORTED.
pub const LLCL_REGION_DEVICE_ATOMICS: u32 = 1;

fn check_size(size: usize, flags: u32) -> Result<()> {
    if size == 0 {
        fail!(ERR_INVALID, "size is 0, expected at least 1 byte");
    }
    if flags == LLCL_REGION_DEVICE_ATOMICS {
        fail!(
            ERR_UNSUPPORTED,
            "flags is LLCL_REGION_DEVICE_ATOMICS, and no network adapter executes atomics here; expected 0"
        );
    }
    if flags != 0 {
        fail!(ERR_INVALID, "flags is {flags:#x}, expected 0");
    }
    Ok(())
}

/// What the functions have in common that make a region of one rank.
///
/// # Safety
/// `context` is NULL or live, `region` is NULL or has place for a pointer.
pub(super) unsafe fn make_region(
    context: *mut llcl_context_t,
    size: usize,
    flags: u32,
    region: *mut *mut llcl_region_t,
    wanted: impl FnOnce() -> Result<Wanted>,
) -> Result<()> {
    // SAFETY: as the caller promises.
    let context = unsafe {
        given(region, "region")?;
        live(context)?
    };
    check_size(size, flags)?;
    let made = context.make_region(wanted()?, size)?;
    // SAFETY: checked above; a handle is all that a llcl_region_t holds.
    unsafe { give(region, "region", made.cast()) }
}

/// Allocates a region of zeroed memory that the peers of the machine map when they first use it:
/// their operations then are loads, stores and atomic instructions.
///
/// `context`: a live context. `size`: bytes, at least 1; memory is taken page by page as it is
/// touched, huge pages are asked for from 2 MiB on. `flags`: 0 (see
/// LLCL_REGION_DEVICE_ATOMICS). `region`: where the new region
/// goes; ended by llcl_region_free or with the context.
/// Memory of freed regions is used again; that of a region which peers have used when they have let
/// go of it, which they do without their program's help. Where there is no other memory, because
/// the kernel limits the size of files (ulimit -f), the call waits for that up to 2 seconds.
/// LLCL_OK; LLCL_ERR_INVALID: NULL, size 0 or unknown flags; LLCL_ERR_UNSUPPORTED:
/// LLCL_REGION_DEVICE_ATOMICS; LLCL_ERR_NO_MEMORY: more than the
/// machine has, a limit of the kernel, or all regions of the configuration exist; LLCL_ERR_TIMEOUT:
/// a peer that is stopped has not let go of the memory that is needed: call again when it goes on;
/// LLCL_RETRY_BUSY: inside a callback where the call would have to wait for a peer; LLCL_ERR_STATE:
/// the context is being finalized. Any thread may call it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn llcl_region_allocate(
    context: *mut llcl_context_t,
    size: usize,
    flags: u32,
    region: *mut *mut llcl_region_t,
) -> llcl_status_t {
    let anywhere = || Ok(Wanted::Fresh(std::ptr::null_mut()));
    // SAFETY: the caller gives a live context and a place for a pointer.
    guard(|| unsafe { make_region(context, size, flags, region, anywhere) })
}

/// Allocates a region at every rank and tells every rank where all of them are. Collective.
///
/// `context`: a live context. `size`: bytes of this rank's region, at least 1; ranks may give
/// different ones.
/// `region`: where the new region goes, as of llcl_region_allocate. `remotes`: place for llcl_size
/// addresses, filled in the order of ranks: the beginning of each rank's region.
/// LLCL_OK; else as llcl_region_allocate and llcl_allgather_bytes. Where one rank is refused all
/// are: that one with its reason, the others with its status, and no region is made. A rank that is
/// refused before it can tell the others, because `context` is NULL, inside a callback or during
/// llcl_finalize, is refused alone.
/// Threads of one rank must not call collective functions of the world at the same time. The
/// calling thread sleeps meanwhile. As shmem_malloc of OpenSHMEM and MPI_Win_allocate, with
/// addresses that are plain bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn llcl_region_allocate_shared(
    context: *mut llcl_context_t,
    size: usize,
    region: *mut *mut llcl_region_t,
    remotes: *mut llcl_remote_t,
) -> llcl_status_t {
    guard(|| {
        // SAFETY: the caller gives a live context.
        let context = unsafe { live(context)? };
        let places = || {
            // SAFETY: the caller gives NULL or places for what they are to hold.
            unsafe {
                given(region, "region")?;
                given(remotes, "remotes")?;
            }
            check_size(size, 0)
        };
        let (made, all) = context.make_shared_region(size, places())?;
        // SAFETY: checked above; a handle is all that a llcl_region_t holds, and an address is all
        // that a llcl_remote_t holds. The caller gives place for one of each rank.
        unsafe {
            std::ptr::copy_nonoverlapping(all.as_ptr().cast(), remotes, all.len());
            give(region, "region", made.cast())
        }
    })
}

/// Makes a region of memory that the caller owns: heap, stack or static. Peers reach it through the
/// kernel, or by messages to this rank's progress thread; atomics on it are executed by this rank.
///
/// `context`: a live context. `address`: the first byte; stays valid until llcl_region_free has
/// answered LLCL_OK. For atomics of n bytes it is aligned to n. `size`: bytes, at least 1. Regions
/// may overlap. `flags`: 0 (see
/// LLCL_REGION_DEVICE_ATOMICS). `region`: where the new region goes; ended by llcl_region_free or with
/// the context.
/// LLCL_OK; LLCL_ERR_INVALID: NULL, size 0 or unknown flags; LLCL_ERR_UNSUPPORTED:
/// LLCL_REGION_DEVICE_ATOMICS; LLCL_ERR_RANGE: the memory would leave
/// the address space; LLCL_ERR_NO_MEMORY: all regions of the configuration exist; LLCL_ERR_STATE:
/// the context is being finalized. Any thread may call it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn llcl_region_register(
    context: *mut llcl_context_t,
    address: *mut c_void,
    size: usize,
    flags: u32,
    region: *mut *mut llcl_region_t,
) -> llcl_status_t {
    let own = || match address.is_null() {
        true => fail!(ERR_INVALID, "address is NULL"),
        false => Ok(Wanted::Own(address.cast())),
    };
    // SAFETY: the caller gives a live context and a place for a pointer.
    guard(|| unsafe { make_region(context, size, flags, region, own) })
}

/// Ends a region. Its addresses fit nothing from now on, at any rank; memory that it allocated is
/// gone when this returns, memory that was registered is the caller's alone again.
///
/// Waits for the operations of this rank that were accepted before, not for those of peers: agree
/// with your peers first. A peer that is in the middle of a copy by the kernel may still touch
/// registered memory. A late store of a peer into allocated memory is lost: no other region gets
/// the bytes before every living peer that has used this one has let go of them (the memory itself
/// goes back to the kernel at once); a peer's read that this overtakes may bring zeros.
/// `region`: ended by this call if it answers LLCL_OK. Any other answer than those named here is a
/// failure of the wait: the region has ended, but its memory stays mapped here until a later free.
/// LLCL_OK; LLCL_RETRY_BUSY: inside a callback while operations are under way, call again later;
/// LLCL_ERR_STATE: it was freed before (found out unless a newer object has
/// been given the same handle);
/// LLCL_ERR_INVALID: NULL. Any thread may call it, once.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn llcl_region_free(region: *mut llcl_region_t) -> llcl_status_t {
    // SAFETY: the caller gives a handle of a live context.
    guard(|| free_region(&unsafe { given(region, "region")? }.0))
}

/// The first byte of a region, in this process.
///
/// `region`: a handle of a live context. NULL for NULL and for a region that was freed. Any thread
/// may call it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn llcl_region_address(region: *const llcl_region_t) -> *mut c_void {
    // SAFETY: the caller gives NULL or a handle of a live context.
    unsafe { region.as_ref() }.map_or(std::ptr::null_mut(), |region| region.0.address().cast())
}

/// The bytes of a region.
///
/// `region`: a handle of a live context. 0 for NULL and for a region that was freed. Any thread may
/// call it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn llcl_region_size(region: *const llcl_region_t) -> usize {
    // SAFETY: the caller gives NULL or a handle of a live context.
    unsafe { region.as_ref() }.map_or(0, |region| region.0.size())
}

/// The place at `offset` bytes of a region, for the near side of this context's operations.
///
/// `region`: a handle of a live context; for NULL or a region that was freed the place fits
/// nothing.
/// `offset`: bytes; checked when the place is used, not here. Any thread may call it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn llcl_region_local(
    region: *const llcl_region_t,
    offset: u64,
) -> llcl_local_t {
    // SAFETY: the caller gives NULL or a handle of a live context.
    let at = unsafe { region.as_ref() }.map(|region| region.0.at(offset));
    llcl_local_t { offset, key: at.map_or(0, |at| at.key) }
}

/// The place at `offset` bytes of a region, as every rank may use it for the far side of
/// operations.
///
/// `region`: a handle of a live context; for NULL or a region that was freed the place fits
/// nothing.
/// `offset`: bytes; checked when the place is used, not here. Any thread may call it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn llcl_region_remote(
    region: *const llcl_region_t,
    offset: u64,
) -> llcl_remote_t {
    // SAFETY: the caller gives NULL or a handle of a live context.
    let at = unsafe { region.as_ref() }.map(|region| region.0.at(offset));
    llcl_remote_t { offset, key: at.map_or(0, |at| at.key) }
}

/// Most bytes that llcl_allgather_bytes gathers, of all ranks together.
const MOST: usize = 1 << 30;

/// Gathers bytes from every rank at every rank. Collective; meant for addresses and small tables.
///
/// `context`: a live context. `mine`: `size` bytes of this rank; may be NULL if `size` is 0.
/// `size`: bytes, the same at every rank, at most 1 GiB for all ranks together; 0 makes it a fence.
/// `all`: place for llcl_size times `size` bytes, filled in the order of ranks; may be NULL if
/// `size` is 0; must not overlap `mine`.
/// LLCL_OK; LLCL_ERR_INVALID: NULL, or the ranks gave different sizes; LLCL_ERR_RANGE: `size` is
/// too large;
/// LLCL_ERR_NO_MEMORY: no room to gather so much; LLCL_ERR_PEER_DEAD: a rank has died or has left,
/// and this call will never succeed again: the others go on with llcl_team_create and
/// llcl_allgather; LLCL_ERR_STATE: inside a callback, or the context is being finalized;
/// LLCL_ERR_SYSTEM: the launcher has gone. Threads of one rank must not call it at the same time:
/// which call of this rank would meet which call of another one is then open. The calling thread
/// sleeps meanwhile.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn llcl_allgather_bytes(
    context: *mut llcl_context_t,
    mine: *const c_void,
    size: usize,
    all: *mut c_void,
) -> llcl_status_t {
    // SAFETY: as the caller promises.
    guard(|| unsafe { allgather(context, mine, size, all, None) })
}

/// Gathers bytes from every rank as llcl_allgather_bytes does, but waits for the others no longer
/// than a time.
///
/// `context`, `mine`, `size`, `all`: as there. `timeout_ns`: nanoseconds; negative: for ever; 0:
/// only looks.
/// LLCL_ERR_TIMEOUT: some rank has not made its call yet, and `all` is unchanged. This rank's bytes
/// have been given: a further call with the `size` of this one, of either function, goes on waiting,
/// and its `mine` must hold what this one's did. Until one has ended no other collective function
/// of the world may be called, but llcl_finalize_within; one of another size answers
/// LLCL_ERR_STATE. LLCL_OK, other statuses, and threads: as there.
/// After gaspi_barrier and gaspi_allreduce of GASPI, which are called again after a time-out.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn llcl_allgather_bytes_within(
    context: *mut llcl_context_t,
    mine: *const c_void,
    size: usize,
    all: *mut c_void,
    timeout_ns: i64,
) -> llcl_status_t {
    // SAFETY: as the caller promises.
    guard(|| unsafe { allgather(context, mine, size, all, timeout(timeout_ns)) })
}

/// # Safety
/// As the two functions above say.
unsafe fn allgather(
    context: *mut llcl_context_t,
    mine: *const c_void,
    size: usize,
    all: *mut c_void,
    timeout: Option<Duration>,
) -> Result<()> {
    // SAFETY: the caller gives a live context.
    let context = unsafe { live(context)? };
    let ranks = context.size() as usize;
    let Some(total) = size.checked_mul(ranks).filter(|total| *total <= MOST) else {
        // The others wait for this rank, and are told that the sizes differ.
        context.exchange_refused(size)?;
        fail!(ERR_RANGE, "size is {size}, expected at most {} for {ranks} ranks", MOST / ranks);
    };
    if size == 0 {
        return context.exchange_within(&[], &mut [], timeout);
    }
    // SAFETY: the caller gives `size` and `total` bytes that do not overlap.
    unsafe {
        let mine = std::slice::from_raw_parts(given(mine.cast::<u8>(), "mine")?, size);
        given(all.cast::<u8>(), "all")?;
        context.exchange_within(mine, std::slice::from_raw_parts_mut(all.cast(), total), timeout)
    }
}

/// Where a peer's memory is mapped in this process: loads, stores and atomic instructions through
/// the pointer are the caller's own, as on memory that threads share.
///
/// A store through it does not wake a thread that sleeps in llcl_wait_word: call llcl_wake after
/// it. The pointer stays readable until the context ends or the region's place is used for another
/// one; what it shows after the owner has freed the region is undefined, and what is stored there
/// is lost.
/// `context`: a live context. `peer`: whose memory. `remote`: the place. `size`: bytes that are
/// meant to be used from there.
/// NULL, with a sentence in llcl_last_error(), where the memory is not mapped (registered memory of
/// another rank) or the peer, the key or the range is wrong, or inside a callback where the peer
/// was not contacted before. Waits for the first contact with the peer, but for that. Any thread
/// may call it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn llcl_remote_pointer(
    context: *mut llcl_context_t,
    peer: u32,
    remote: llcl_remote_t,
    size: usize,
) -> *mut c_void {
    guard_value(std::ptr::null_mut(), || {
        // SAFETY: the caller gives a live context.
        let context = unsafe { live(context)? };
        Ok(context.remote_pointer(peer, remote.address(), size as u64)?.cast())
    })
}
