//! 19. Placed memory: regions at addresses of the program's choice, and second mappings of a
//!     region, for symmetric heaps and for shared memory that is managed page by page.

use crate::api::guard::{give, given, guard};
use crate::api::life::llcl_context_t;
use crate::api::memory::{llcl_region_t, make_region};
use crate::api::status::llcl_status_t;
use crate::core::region::Wanted;
use crate::fail;
use crate::util::memory::page_size;
use std::ffi::c_void;

/// What may be done through an alias (llcl_region_alias), as bits; 0: nothing yet.
pub const LLCL_ACCESS_READ: u32 = 1;
/// As LLCL_ACCESS_READ, for stores. Processors that cannot write without reading allow both.
pub const LLCL_ACCESS_WRITE: u32 = 2;

/// Allocates a region as llcl_region_allocate does, at an address of the caller's choice in this
/// process. Peers name places in it by the region and an offset, and map it wherever they like.
///
/// For a heap that begins at the same address at every rank, one rank finds an address (by mmap of
/// as many bytes with PROT_NONE, and munmap), tells it to the others (llcl_allgather_bytes), and
/// all try; where one is refused, all free theirs and try another address.
/// `context`: a live context. `address`: the first byte, a multiple of the page size. Nothing may
/// be mapped in the bytes from there on, rounded up to whole pages: a range that the program has
/// reserved is unmapped by it first. `size`, `flags` and `region`: as of llcl_region_allocate.
/// LLCL_OK; LLCL_ERR_INVALID: `address` is NULL or no multiple of the page size; LLCL_ERR_RANGE:
/// something is mapped there; LLCL_ERR_SYSTEM or LLCL_ERR_NO_MEMORY: the kernel gives no memory at
/// such an address; else as llcl_region_allocate. Any thread may call it.
/// After the aligned segments of GASNet (gasnet_attach) and the symmetric heap of OpenSHMEM; the
/// address is the caller's, as in the fixed windows that MPI_Win_create allows.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn llcl_region_allocate_at(
    context: *mut llcl_context_t,
    address: *mut c_void,
    size: usize,
    flags: u32,
    region: *mut *mut llcl_region_t,
) -> llcl_status_t {
    let there = || {
        let page = page_size();
        if address.is_null() || !(address as usize).is_multiple_of(page) {
            fail!(ERR_INVALID, "address is {address:?}, expected a multiple of {page}, not NULL");
        }
        Ok(Wanted::Fresh(address.cast()))
    };
    // SAFETY: the caller gives a live context and a place for a pointer.
    guard(|| unsafe { make_region(context, size, flags, region, there) })
}

/// Maps a part of an allocated region a second time in this process: the bytes are those of the
/// region, the protection is the alias's own. So the library and its peers reach memory through the
/// region while the program's accesses to the alias are caught (LLCL_ACCESS_*, or later mprotect).
///
/// A thread may sleep in llcl_wait_word on a word of an alias; a store through one wakes nobody,
/// call llcl_wake after it. As the near side of operations it is any memory, llcl_local_address.
/// `region`: a live region that was allocated. `offset`: where in it the alias begins, a multiple
/// of the page size. `size`: bytes, at least 1, rounded up to whole pages. `address`: where the
/// alias is to begin, a multiple of the page size from which on nothing is mapped; NULL: anywhere.
/// `access`: LLCL_ACCESS_* or 0. `alias`: where the first byte's address goes. Ended by
/// llcl_region_unalias, with the region, or with the context; the program must not unmap it.
/// LLCL_OK; LLCL_ERR_INVALID: NULL, size 0, unknown bits in `access`, or `offset` or `address` is
/// no multiple of the page size; LLCL_ERR_RANGE: the part leaves the region, or something is mapped
/// at `address`; LLCL_ERR_UNSUPPORTED: the region was registered; LLCL_ERR_STATE: it was freed;
/// LLCL_ERR_NO_MEMORY, LLCL_ERR_SYSTEM: the kernel does not map it. Any thread may call it.
/// For what page-based shared memory (TreadMarks, ArgoDSM, MENPS) does by mapping a file twice.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn llcl_region_alias(
    region: *mut llcl_region_t,
    offset: u64,
    size: usize,
    address: *mut c_void,
    access: u32,
    alias: *mut *mut c_void,
) -> llcl_status_t {
    guard(|| {
        // SAFETY: the caller gives a handle of a live context and a place for a pointer.
        let region = unsafe {
            given(alias, "alias")?;
            given(region, "region")?
        };
        if access & !(LLCL_ACCESS_READ | LLCL_ACCESS_WRITE) != 0 {
            fail!(ERR_INVALID, "access is {access:#x}, expected no bits but LLCL_ACCESS_*");
        }
        let mut rights = libc::PROT_NONE;
        for (bit, right) in
            [(LLCL_ACCESS_READ, libc::PROT_READ), (LLCL_ACCESS_WRITE, libc::PROT_WRITE)]
        {
            rights |= if access & bit != 0 { right } else { 0 };
        }
        let made = region.0.alias((offset, size), address.cast(), rights)?;
        // SAFETY: checked above.
        unsafe { give(alias, "alias", made.cast()) }
    })
}

/// Ends an alias: its bytes are unmapped, and the region stays as it is.
///
/// `region`: the region that it shows. `alias`: what llcl_region_alias gave; no operation that was
/// accepted, and no thread, uses it any more.
/// LLCL_OK; LLCL_ERR_INVALID: NULL, or `alias` begins no alias of this region; LLCL_ERR_STATE: the
/// region was freed, and the alias ended with it. Any thread may call it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn llcl_region_unalias(
    region: *mut llcl_region_t,
    alias: *mut c_void,
) -> llcl_status_t {
    // SAFETY: the caller gives a handle of a live context.
    guard(|| unsafe { given(region, "region")? }.0.unalias(alias.cast()))
}
