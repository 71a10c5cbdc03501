//! 5. Memory: regions, addresses in them, and how ranks exchange addresses.

use crate::api::guard::{give, given, guard, guard_value, timeout};
use crate::api::life::{live, llcl_context_t};
use crate::api::status::llcl_status_t;
use crate::core::region::{Memory, Wanted};
use crate::core::region_handle::{RegionHandle, free_region};
use crate::fail;
use crate::transport::address::{ANY, Address};
use crate::util::narrow::narrow;
use crate::util::status::{Error, Result, Status};
use std::ffi::c_void;
use std::time::Duration;

/// A piece of this rank's memory that operations may name, here and at peers.
pub struct llcl_region_t(pub(super) RegionHandle);

/// An address in a rank's memory. It is plain bytes with the same meaning at every rank, which may
/// be sent in any way. The program may add to `offset`, and must not change `key`.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct llcl_remote_t {
    /// Bytes from the beginning of the region.
    pub offset: u64,
    /// The region; 0: none.
    pub key: u64,
}

/// An address in the calling rank's own memory, for the local side of operations. It is valid only
/// in the context that made it.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct llcl_local_t {
    /// Bytes from the beginning of the region.
    pub offset: u64,
    /// The region; 0: none.
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

/// The llcl_local_t of an address of this process: of stack, heap, static or mapped memory that is
/// in no region. The call registers nothing, and there is nothing to end.
///
/// It serves as the local side of operations, except of LLCL_AM_BULK, whose payload the receiver
/// reads: memory that peers access must lie in a region. In `send` and `receive` of a collective it
/// is treated as registered memory.
/// `pointer`: the first byte, of any alignment. The memory stays the caller's, and must stay valid
/// until the operation has ended. NULL: only operations of size 0 accept it. The address is not
/// checked: if nothing is mapped there, and the kernel copies, the operation ends with
/// LLCL_ERR_INVALID; a copy by the library ends the process by SIGSEGV. Any thread may call it.
/// From: the local buffers of MPI's and OpenSHMEM's puts, which do not have to lie in a window
/// either.
#[unsafe(no_mangle)]
pub extern "C" fn llcl_local_address(pointer: *const c_void) -> llcl_local_t {
    let key = if pointer.is_null() { 0 } else { ANY.0 };
    llcl_local_t { offset: pointer as u64, key }
}

/// The address `offset` bytes behind another one in a peer's memory.
///
/// `remote`: an address. `offset`: bytes, modulo 2 to the 64th. The range is checked when the
/// address is used, not here. Any thread may call it.
/// This library's own.
#[unsafe(no_mangle)]
pub extern "C" fn llcl_at(remote: llcl_remote_t, offset: u64) -> llcl_remote_t {
    llcl_remote_t { offset: remote.offset.wrapping_add(offset), ..remote }
}

/// The address `offset` bytes behind another one in the caller's own memory.
///
/// `local`: an address. `offset`: bytes, modulo 2 to the 64th. The range is checked when the
/// address is used, not here. Any thread may call it.
/// This library's own.
#[unsafe(no_mangle)]
pub extern "C" fn llcl_local_at(local: llcl_local_t, offset: u64) -> llcl_local_t {
    llcl_local_t { offset: local.offset.wrapping_add(offset), ..local }
}

/// Flag of llcl_region_allocate, llcl_region_allocate_at and llcl_region_register: the owner's
/// network adapter executes all atomics on the region, also those of the owner and of ranks of its
/// node. No thread of the owner takes part. The adapter's atomics and those of processors are not
/// atomic with respect to each other. Therefore a program may only load such words through
/// pointers, a request with a signal word in the region answers LLCL_ERR_UNSUPPORTED, and a plain
/// write to a word has no order with atomics on it. The words have 8 bytes; an atomic of another
/// type answers LLCL_ERR_UNSUPPORTED. A change does not wake a thread that waits for the word; the
/// thread notices the change within a millisecond. If the first use of a key is an atomic inside a
/// callback, the atomic answers LLCL_ERR_STATE. Without the flag a processor of the caller or of
/// the owner executes atomics; llcl_atomic_query tells which. If no network of the job has such
/// atomics, the function that makes the region answers LLCL_ERR_UNSUPPORTED.
pub const LLCL_REGION_DEVICE_ATOMICS: u32 = 1;

fn check_size(size: usize, flags: u32, known: u32) -> Result<()> {
    if size == 0 {
        fail!(ERR_INVALID, "size is 0, expected at least 1 byte");
    }
    if flags & !known != 0 {
        let device = if known != 0 { " or LLCL_REGION_DEVICE_ATOMICS" } else { "" };
        fail!(ERR_INVALID, "flags is {flags:#x}, expected 0{device}");
    }
    Ok(())
}

/// The common part of the functions that make a region of one rank.
///
/// # Safety
/// `context` is NULL or live, `region` is NULL or has place for a pointer.
pub(super) unsafe fn make_region(
    context: *mut llcl_context_t,
    size: usize,
    flags: u32,
    region: *mut *mut llcl_region_t,
    memory: impl FnOnce() -> Result<Memory>,
) -> Result<()> {
    // SAFETY: as the caller promises.
    let context = unsafe {
        given(region, "region")?;
        live(context)?
    };
    check_size(size, flags, LLCL_REGION_DEVICE_ATOMICS)?;
    let device = flags & LLCL_REGION_DEVICE_ATOMICS != 0;
    let wanted = Wanted { memory: memory()?, device };
    // SAFETY: the user keeps own memory valid until the region is freed, as llcl_region_register
    // demands. `region` is checked above; a handle is all that a llcl_region_t holds.
    unsafe {
        let made = context.make_region(wanted, size)?;
        give(region, "region", made.cast())
    }
}

/// Allocates a region of zeroed memory. Peers on the same machine map it when they first use it;
/// their operations on it are then loads, stores and atomic instructions.
///
/// The library uses the memory of freed regions again; if peers have mapped a region, only after
/// they have unmapped it, which their libraries do without the program's help. If there is no other
/// memory, because the kernel limits the size of files (ulimit -f), the call waits for the peers up
/// to 2 seconds.
/// `context`: a live context. `size`: bytes, at least 1. The kernel gives memory page by page as it
/// is touched; from 2 MiB on the library asks for huge pages. `flags`: 0 (see
/// LLCL_REGION_DEVICE_ATOMICS). `region`: where the new region goes; ended by llcl_region_free or
/// with the context.
/// LLCL_OK; LLCL_ERR_INVALID: NULL, size 0 or unknown flags; LLCL_ERR_UNSUPPORTED: `flags` has
/// LLCL_REGION_DEVICE_ATOMICS, and no network of the job has such atomics; LLCL_ERR_NO_MEMORY: more
/// than the machine has, a limit of the kernel, or as many regions exist as the configuration
/// allows; LLCL_ERR_SYSTEM: the kernel refuses to map the memory; LLCL_ERR_TIMEOUT: a peer that is
/// stopped has not unmapped the memory that is needed: call again when it runs; LLCL_RETRY_BUSY:
/// the call is made inside a callback and would have to wait for a peer: call again outside of it;
/// LLCL_ERR_STATE: the context is being finalized. Any thread may call it.
/// From: MPI_Win_allocate_shared, and the shared segments of GASNet (PSHM); here each region may be
/// made at one rank alone.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn llcl_region_allocate(
    context: *mut llcl_context_t,
    size: usize,
    flags: u32,
    region: *mut *mut llcl_region_t,
) -> llcl_status_t {
    let anywhere = || Ok(Memory::Fresh(std::ptr::null_mut()));
    // SAFETY: the caller gives a live context and a place for a pointer.
    guard(|| unsafe { make_region(context, size, flags, region, anywhere) })
}

/// Allocates a region at every rank, and gives every rank the addresses of all of them. Collective.
///
/// `context`: a live context. `size`: bytes of this rank's region, at least 1; ranks may give
/// different ones.
/// `region`: where the new region goes, as of llcl_region_allocate. `remotes`: place for llcl_size
/// addresses, filled in the order of ranks: the beginning of each rank's region.
/// A rank whose call has returned may write to the others at once, while they still store their
/// initial values. If ranks store into their own regions first, all of them call llcl_barrier after
/// that, and none writes to another before. The memory is zero before any rank can write to it.
/// LLCL_OK; else as llcl_region_allocate and llcl_allgather_bytes. If one rank is refused, all are:
/// that rank gets the sentence with the reason, the others get its status, and no region is made. A
/// rank that cannot tell the others, because `context` is NULL, inside a callback or during
/// llcl_finalize, is refused alone.
/// Threads of one rank must not call collective functions of the world at the same time. The
/// calling thread sleeps until all ranks have called it. From: shmem_malloc of OpenSHMEM and
/// MPI_Win_allocate, but with addresses that are plain bytes.
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
            check_size(size, 0, 0)
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
/// `context`: a live context. `address`: the first byte; it must stay valid until llcl_region_free
/// has answered LLCL_OK. If this process may only read the memory, peers may read it, but a write
/// or an atomic of a peer may end this process by SIGSEGV. For atomics of n bytes it must be
/// aligned to n. `size`: bytes, at least 1. Regions may overlap. `flags`: 0 (see
/// LLCL_REGION_DEVICE_ATOMICS). `region`: where the new region goes; ended by llcl_region_free or
/// with the context.
/// LLCL_OK; LLCL_ERR_INVALID: NULL, size 0 or unknown flags; LLCL_ERR_UNSUPPORTED: `flags` has
/// LLCL_REGION_DEVICE_ATOMICS, and no network of the job has such atomics; LLCL_ERR_RANGE: the
/// memory would leave the address space; LLCL_ERR_NO_MEMORY: as many regions exist as the
/// configuration allows; LLCL_ERR_STATE: the context is being finalized. A network that reads and
/// writes memory may refuse this memory, with its own error. Any thread may call it.
/// From: the registration of memory of verbs, UCX and GASPI.
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
        false => Ok(Memory::Own(address.cast())),
    };
    // SAFETY: the caller gives a live context and a place for a pointer.
    guard(|| unsafe { make_region(context, size, flags, region, own) })
}

/// Ends a region. From now on its addresses are refused, at every rank. When the call returns,
/// allocated memory is gone, and the library no longer uses registered memory.
///
/// It waits for the operations of this rank that were accepted before, but not for those of peers,
/// so the program should first make sure that no peer uses the region. Some networks, such as MPI,
/// cannot end a transfer that they have begun: it waits for these, up to 10 s, and inside a
/// callback up to 1 ms. After that it answers LLCL_ERR_SYSTEM. Inside a callback it does not wait
/// for operations, so no other thread may begin one on the region during the call. A peer that is
/// in the middle of a copy by the kernel may still touch registered memory. A late store of a peer
/// into allocated memory is lost: the memory goes back to the kernel at once, but no other region
/// gets its range of the memory file before every living peer that has used the region has unmapped
/// it. A peer's read that is under way may bring zeros.
/// `region`: ended by this call, except where it answers LLCL_RETRY_BUSY.
/// LLCL_OK; LLCL_RETRY_BUSY: inside a callback while operations are under way: call again later. In
/// offload mode the progress thread calls completions in the middle of its operations, so inside
/// them this is the answer always, and another thread must end the region; LLCL_ERR_STATE: it was
/// freed before (see the conventions on handles); LLCL_ERR_INVALID: NULL.
/// With any other status the region has ended, but the wait has failed, or a network has not said
/// that it no longer uses the memory: allocated memory then stays mapped here until the process
/// ends, and the caller must keep registered memory valid for as long. Any thread may call it,
/// once.
/// From: MPI_Win_free, and ibv_dereg_mr of verbs.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn llcl_region_free(region: *mut llcl_region_t) -> llcl_status_t {
    // SAFETY: the caller gives a handle of a live context.
    guard(|| free_region(&unsafe { given(region, "region")? }.0))
}

/// The first byte of a region, in this process.
///
/// `region`: a handle of a live context. NULL for NULL and for a region that was freed. Any thread
/// may call it.
/// From: the attribute MPI_WIN_BASE of MPI.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn llcl_region_address(region: *const llcl_region_t) -> *mut c_void {
    // SAFETY: the caller gives NULL or a handle of a live context.
    unsafe { region.as_ref() }.map_or(std::ptr::null_mut(), |region| region.0.address().cast())
}

/// The size of a region in bytes.
///
/// `region`: a handle of a live context. 0 for NULL and for a region that was freed. Any thread may
/// call it.
/// From: the attribute MPI_WIN_SIZE of MPI.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn llcl_region_size(region: *const llcl_region_t) -> usize {
    // SAFETY: the caller gives NULL or a handle of a live context.
    unsafe { region.as_ref() }.map_or(0, |region| region.0.size())
}

/// The address of a byte of a region, for the local side of this context's operations.
///
/// `region`: a handle of a live context; for NULL or a region that was freed the answer is an
/// address that operations refuse with LLCL_ERR_KEY. `offset`: bytes from the beginning of the
/// region; checked when the address is used, not here. Any thread may call it.
/// This library's own.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn llcl_region_local(
    region: *const llcl_region_t,
    offset: u64,
) -> llcl_local_t {
    // SAFETY: the caller gives NULL or a handle of a live context.
    let at = unsafe { region.as_ref() }.map(|region| region.0.at(offset));
    llcl_local_t { offset, key: at.map_or(0, |at| at.key) }
}

/// The address of a byte of a region, as every rank uses it for the remote side of operations.
///
/// `region`: a handle of a live context; for NULL or a region that was freed the answer is an
/// address that operations refuse with LLCL_ERR_KEY. `offset`: bytes from the beginning of the
/// region; checked when the address is used, not here. Any thread may call it.
/// This library's own.
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

/// Gathers bytes from every rank at every rank. Collective; it is meant for addresses and small
/// tables.
///
/// `context`: a live context. `mine`: `size` bytes of this rank; may be NULL if `size` is 0.
/// `size`: bytes, the same at every rank, at most 1 GiB for all ranks together; with 0 the call
/// only waits for all ranks. `all`: place for llcl_size times `size` bytes, filled in the order of
/// ranks; may be NULL if `size` is 0; must not overlap `mine`.
/// LLCL_OK; LLCL_ERR_INVALID: NULL, or the ranks gave different sizes, or another rank is refused;
/// LLCL_ERR_RANGE: `size` is too large; LLCL_ERR_NO_MEMORY: no memory for so many bytes;
/// LLCL_ERR_PEER_DEAD: a rank has died or has left, and this function will never succeed again in
/// this context: go on with llcl_team_create and llcl_allgather; LLCL_ERR_STATE: inside a callback,
/// or the context is being finalized;
/// LLCL_ERR_SYSTEM: the launcher has gone. Threads of one rank must not call it at the same time,
/// because their calls would be matched with those of other ranks in arbitrary order. The calling
/// thread sleeps until all ranks have called it.
/// From: MPI_Allgather, and the fence of PMI, by which ranks exchange addresses at the start.
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
/// LLCL_OK and other statuses: as there; LLCL_ERR_TIMEOUT: some rank has not made its call yet, and
/// `all` is unchanged. This rank's bytes have already been sent. Call this function or
/// llcl_allgather_bytes again to go on waiting, with the same `size` and the same bytes in `mine`;
/// another size, or NULL, answers LLCL_ERR_STATE. A call with parameters for which it is refused
/// waits as well, to tell the others. Until such a call has ended, llcl_barrier and
/// llcl_finalize_within are the only other collective functions of the world that may be called.
/// Threads: as there.
/// From: gaspi_barrier and gaspi_allreduce of GASPI, which are called again after a time-out.
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
    // The other ranks wait for this one, so they learn that it is refused.
    let refused = |why| Err(context.exchange_refused(size, why, timeout));
    let Some(total) = size.checked_mul(ranks).filter(|total| *total <= MOST) else {
        let most = MOST / ranks;
        let text = format!("size is {size}, expected at most {most} for {ranks} ranks");
        return refused(Error::new(Status::ERR_RANGE, text));
    };
    if size == 0 {
        return context.exchange_within(&[], &mut [], timeout);
    }
    // SAFETY: the caller gives NULL or bytes.
    let places = unsafe { (given(mine.cast::<u8>(), "mine"), given(all.cast::<u8>(), "all")) };
    if let (Err(why), _) | (_, Err(why)) = places {
        return refused(why);
    }
    // SAFETY: the caller gives `size` and `total` bytes that do not overlap.
    unsafe {
        let mine = std::slice::from_raw_parts(mine.cast(), size);
        context.exchange_within(mine, std::slice::from_raw_parts_mut(all.cast(), total), timeout)
    }
}

/// The address at which a peer's memory is mapped in this process. The caller may use the pointer
/// for loads, stores and atomic instructions, as on memory that threads share.
///
/// A store through it does not wake a thread that sleeps in llcl_wait_word: call llcl_wake after
/// it. The pointer stays readable until the context ends or another region gets the address. After
/// the owner has freed the region, loads bring undefined values, and stores are lost.
/// `context`: a live context. `peer`: the owner of the memory, a rank below llcl_size. `remote`:
/// the address. `size`: bytes that the caller uses from there on.
/// Returns NULL, with a sentence in llcl_last_error(), if the memory is not mapped (registered
/// memory of another rank), or if the peer, the key or the range is wrong. Waits for the first
/// contact with the peer; inside a callback it returns NULL instead. Any thread may call it.
/// From: MPI_Win_shared_query, and shmem_ptr of OpenSHMEM.
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
