//! 19. Placed memory: regions at addresses of the program's choice, and second mappings of a
//!     region, for symmetric heaps and for shared memory that is managed page by page.

use crate::api::guard::{give, given, guard};
use crate::api::life::llcl_context_t;
use crate::api::memory::{llcl_region_t, make_region};
use crate::api::status::llcl_status_t;
use crate::core::region::Memory;
use crate::fail;
use crate::util::memory::page_size;
use std::ffi::c_void;

/// A bit of the access to an alias (llcl_region_alias): loads are allowed. With no bit set no
/// access is allowed.
pub const LLCL_ACCESS_READ: u32 = 1;
/// Stores are allowed. Most processors then allow loads as well.
pub const LLCL_ACCESS_WRITE: u32 = 2;

/// Allocates a region as llcl_region_allocate does, at an address of the caller's choice in this
/// process. Peers name places in it by the region and an offset, and map it wherever they like.
///
/// To make a heap that begins at the same address at every rank: one rank finds an address (by mmap
/// of as many bytes with PROT_NONE, and munmap) and tells it to the others (llcl_allgather_bytes);
/// then all call this function. If one is refused, all free their regions and try another address.
/// `context`: a live context. `address`: the first byte, a multiple of the page size. Nothing may
/// be mapped in the `size` bytes from there on, rounded up to whole pages. If the program has
/// reserved the range, it must unmap it before. `size`, `flags` and `region`: as of
/// llcl_region_allocate. LLCL_OK; LLCL_ERR_INVALID: `address` is NULL or no multiple of the page
/// size; LLCL_ERR_RANGE: something is mapped there; LLCL_ERR_SYSTEM or LLCL_ERR_NO_MEMORY: the
/// kernel gives no memory at this address; else as llcl_region_allocate. Any thread may call it.
/// From: the aligned segments of GASNet (gasnet_attach) and the symmetric heap of OpenSHMEM; here
/// the caller chooses the address.
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
        Ok(Memory::Fresh(address.cast()))
    };
    // SAFETY: the caller gives a live context and a place for a pointer.
    guard(|| unsafe { make_region(context, size, flags, region, there) })
}

/// Maps a part of an allocated region a second time in this process. The alias shows the region's
/// bytes and has a protection of its own. So a program can catch its own accesses to the alias
/// (LLCL_ACCESS_*, or later mprotect), while the library and the peers use the region.
///
/// A thread may sleep in llcl_wait_word on a word of an alias. A store through an alias wakes no
/// thread: call llcl_wake after it. To use an alias as the local side of an operation, pass
/// llcl_local_address. `region`: a live region that was allocated. `offset`: where in it the alias
/// begins, a multiple of the page size. `size`: bytes, at least 1, rounded up to whole pages.
/// `address`: where the alias is to begin, a multiple of the page size from which on nothing is
/// mapped; NULL: anywhere. `access`: LLCL_ACCESS_* or 0. `alias`: where the first byte's address
/// goes. Ended by llcl_region_unalias, with the region, or with the context; the program must not
/// unmap it. LLCL_OK; LLCL_ERR_INVALID: NULL, size 0, unknown bits in `access`, or `offset` or
/// `address` is no multiple of the page size; LLCL_ERR_RANGE: the part leaves the region, or
/// something is mapped at `address`; LLCL_ERR_UNSUPPORTED: the region was registered;
/// LLCL_ERR_STATE: it was freed, or this process is a forked child; LLCL_ERR_NO_MEMORY,
/// LLCL_ERR_SYSTEM: the kernel does not map it. Any thread may call it.
/// From: page-based shared memory (TreadMarks, ArgoDSM, MENPS), which maps a file twice.
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

/// Ends an alias: unmaps it. The region does not change.
///
/// `region`: the region of which it is an alias. `alias`: the address from llcl_region_alias. No
/// pending operation and no thread may use it any more.
/// LLCL_OK; LLCL_ERR_INVALID: NULL, or `alias` begins no alias of this region; LLCL_ERR_STATE: the
/// region was freed, and the alias ended with it, or this process is a forked child. Any thread may
/// call it.
/// From: munmap of POSIX.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn llcl_region_unalias(
    region: *mut llcl_region_t,
    alias: *mut c_void,
) -> llcl_status_t {
    // SAFETY: the caller gives a handle of a live context.
    guard(|| unsafe { given(region, "region")? }.0.unalias(alias.cast()))
}
