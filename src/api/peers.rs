//! 4. Peers: whether they live, how they are reached, and how to contact them beforehand.

use crate::api::guard::{give, given, guard, known_size};
use crate::api::life::{live, llcl_context_t};
use crate::api::status::llcl_status_t;
use crate::fail;
use crate::transport::Access;
use crate::transport::port::Reach;

/// The peer is this rank itself.
pub const LLCL_TRANSPORT_LOOPBACK: u32 = 1;
/// The peer is reached through shared memory.
pub const LLCL_TRANSPORT_SHM: u32 = 2;
/// The peer is reached by a network.
pub const LLCL_TRANSPORT_WIRE: u32 = 3;

/// Memory is reached by loads and stores.
pub const LLCL_ACCESS_MAPPED: u32 = 1;
/// Memory is reached by process_vm_readv and process_vm_writev.
pub const LLCL_ACCESS_KERNEL: u32 = 2;
/// Memory is reached by messages to its owner's progress thread.
pub const LLCL_ACCESS_MESSAGE: u32 = 3;
/// A network reads and writes the memory, without a thread of its owner, both registered and
/// allocated memory.
pub const LLCL_ACCESS_WIRE: u32 = 4;

/// How a peer is reached.
#[repr(C)]
pub struct llcl_peer_info_t {
    /// Bytes of this struct, set by the caller before the call.
    pub struct_size: u64,
    /// One of LLCL_TRANSPORT_*.
    pub transport: u32,
    /// How memory that the peer registered is read: one of LLCL_ACCESS_*. Memory that it allocated
    /// is mapped, except where `transport` is LLCL_TRANSPORT_WIRE.
    pub registered_access: u32,
    /// Its process id.
    pub process: u32,
    /// Most bytes of a LLCL_AM_MEDIUM payload to it, or of a response.
    pub am_payload: u32,
    /// Most bytes of a reply to it, and of a payload that takes one of its LLCL_AM_SLOTS.
    pub am_medium: u32,
    /// Why registered_access is LLCL_ACCESS_MESSAGE: the errno with which the kernel refused
    /// process_vm_readv (EPERM: Yama's ptrace_scope above 1, another user, no dumpable process;
    /// ENOSYS: a filter); 0: LLCL_CMA is off. 0 for every other access.
    pub kernel_error: i32,
    /// How memory that the peer registered is written: one of LLCL_ACCESS_*. It equals
    /// registered_access, except that it is LLCL_ACCESS_MESSAGE where a sandbox refuses only
    /// process_vm_writev.
    pub registered_writes: u32,
    /// Why registered_writes is LLCL_ACCESS_MESSAGE: the errno with which the kernel refused
    /// process_vm_writev, or kernel_error where it refuses both. 0 in the cases in which
    /// kernel_error is 0.
    pub kernel_write_error: i32,
    /// The number of the node on which it runs: ranks with equal numbers share memory. It is 0 in a
    /// world without a network, which lies on one machine; else any number. The variable
    /// LLCL_NODE_ID sets it: a number, or a list with one for each rank.
    pub node: u32,
    /// Its message slots, whatever the number of senders.
    pub am_slots: u32,
    /// How senders take them: one of LLCL_AM_POLICY_*.
    pub am_policy: u32,
    /// 0.
    pub reserved: u32,
}

/// Whether a peer lives, as far as this rank knows. The launcher reports a death on its machine
/// within milliseconds.
/// A collective plan may hear of the death a little later: it may accept a round until then, and
/// the round fails.
///
/// `context`: a live context. `peer`: a rank below llcl_size.
/// LLCL_OK: it lives, or has not been started yet; LLCL_ERR_PEER_DEAD: it has died or has left, or
/// the network has not reached it for a second;
/// LLCL_ERR_INVALID: `context` is NULL or there is no such rank. Any thread may call it.
/// From: the health vector of GASPI (gaspi_state_vec_get).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn llcl_peer_alive(context: *mut llcl_context_t, peer: u32) -> llcl_status_t {
    guard(|| {
        // SAFETY: the caller gives a live context.
        let context = unsafe { live(context)? };
        if peer >= context.size() {
            fail!(ERR_INVALID, "peer is {peer}, expected a rank below {}", context.size());
        }
        if context.routes().is_dead(peer) {
            fail!(ERR_PEER_DEAD, "rank {peer} has died or has left");
        }
        Ok(())
    })
}

/// Contacts peers, so that no later request waits for the contact or is answered by
/// LLCL_RETRY_CONNECTING. One request to the launcher contacts all of them at the same time. A peer
/// that was contacted before costs nothing.
///
/// A program need not call this: a peer is contacted when it is first used.
///
/// `context`: a live context. `peers`: `count` ranks, in any order, which may repeat; NULL: every
/// rank of the world, `count` is then ignored. Read during the call only.
/// Blocks until each of them has called llcl_init and was contacted, or has died; not inside a
/// callback.
/// LLCL_OK: all were contacted; LLCL_ERR_INVALID: NULL, or `peers` has a number that is no rank;
/// no peer was contacted. After the following errors the other peers were contacted.
/// LLCL_ERR_PEER_DEAD: one of them has died or has left; LLCL_ERR_NO_MEMORY, LLCL_ERR_SYSTEM: the
/// memory of one of them cannot be mapped, for instance because too many files are open;
/// LLCL_ERR_UNSUPPORTED: one of them runs on another node, and there is no network.
/// LLCL_ERR_STATE: inside a callback, or the context is being finalized. Any thread may call it.
/// From: the endpoints and connections of UCX, verbs and libfabric, which programs make beforehand.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn llcl_connect(
    context: *mut llcl_context_t,
    peers: *const u32,
    count: u32,
) -> llcl_status_t {
    guard(|| {
        // SAFETY: the caller gives a live context.
        let context = unsafe { live(context)? };
        let peers = match peers.is_null() {
            true => None,
            // SAFETY: the caller gives `count` numbers.
            false => Some(unsafe { std::slice::from_raw_parts(peers, count as usize) }),
        };
        context.connect(peers)
    })
}

/// Reports how a peer is reached. Contacts the peer if that has not happened yet, and then waits
/// until the peer has called llcl_init.
///
/// `context`: a live context. `peer`: a rank below llcl_size. `info`: the caller's struct with its
/// struct_size set; filled.
/// LLCL_OK; LLCL_RETRY_CONNECTING: this is the first use of the peer, and the call is made inside a
/// callback: call again later;
/// LLCL_ERR_INVALID: NULL, an unknown struct_size or no such rank; LLCL_ERR_PEER_DEAD: it has died
/// or has left;
/// LLCL_ERR_STATE: the context is being finalized; LLCL_ERR_NO_MEMORY, LLCL_ERR_SYSTEM: its memory
/// cannot be mapped; LLCL_ERR_UNSUPPORTED: it runs on another node, and there is no network. Any
/// thread may call it.
/// From: the locality of ranks that GASNet reports (gex_System_QueryNbrhdInfo).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn llcl_query_peer(
    context: *mut llcl_context_t,
    peer: u32,
    info: *mut llcl_peer_info_t,
) -> llcl_status_t {
    guard(|| {
        // SAFETY: the caller gives a live context and a struct.
        let (context, asked) = unsafe { (live(context)?, given(info, "info")?) };
        known_size(asked.struct_size, size_of::<llcl_peer_info_t>())?;
        let reach = context.reach(peer)?;
        let registered_access = match reach.registered {
            Access::Mapped => LLCL_ACCESS_MAPPED,
            Access::Kernel(_) => LLCL_ACCESS_KERNEL,
            Access::Message(_) => LLCL_ACCESS_MESSAGE,
            Access::Posted(_) => LLCL_ACCESS_WIRE,
        };
        let (kernel_error, kernel_write_error) = reach.refusals;
        let answer = llcl_peer_info_t {
            struct_size: asked.struct_size,
            transport: match reach.by {
                Reach::Own => LLCL_TRANSPORT_LOOPBACK,
                Reach::Node => LLCL_TRANSPORT_SHM,
                Reach::Wire => LLCL_TRANSPORT_WIRE,
            },
            registered_access,
            process: reach.process,
            am_payload: reach.payload as u32,
            am_medium: reach.medium as u32,
            kernel_error,
            registered_writes: if kernel_write_error == 0 {
                registered_access
            } else {
                LLCL_ACCESS_MESSAGE
            },
            kernel_write_error,
            node: reach.node,
            am_slots: reach.slots.0 as u32,
            am_policy: reach.slots.1 + 1,
            reserved: 0,
        };
        // SAFETY: as above.
        unsafe { give(info, "info", answer) }
    })
}
