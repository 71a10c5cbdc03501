//! What the functions that post requests have in common.

use crate::api::guard::{given, guard};
use crate::api::life::llcl_context_t;
use crate::api::memory::llcl_remote_t;
use crate::core::context::Context;
use crate::core::submit::Request;
use crate::transport::port::Port;
use crate::util::status::{Result, Status};
use std::hint::black_box;

/// The parameters of an operation, from which its request is made.
pub trait Parameters {
    /// The request, if what can be said without a context is right.
    fn request(&self) -> Result<Request>;
}

/// Makes a request of the parameters and hands it to one of the three tiers.
///
/// # Safety
/// Pointers that are not null point to a live context and to valid parameters, whose own promises
/// are kept.
#[inline(never)]
pub unsafe fn submit<P: Parameters>(
    context: *const llcl_context_t,
    params: *const P,
    tier: fn(&Context, &Request) -> Result<()>,
) -> i32 {
    guard(|| {
        // SAFETY: as the caller promises.
        let (context, params) = unsafe { (given(context, "context")?, given(params, "params")?) };
        tier(&context.0, &params.request()?)
    })
}

/// Ends a quick operation on a word that somebody may sleep on. Of C's calling convention, which
/// does not unwind: so the quick operations can end with it and need no frame.
#[cold]
#[inline(never)]
pub extern "C" fn wake(port: &Port, word: &llcl_remote_t) -> i32 {
    port.waiters().wake_at(word.address(), 8);
    // If the compiler knew the answer, it would give it itself, and not end with the call.
    black_box(Status::OK.0)
}

/// Peer and flags as the one number that lies in the parameters: read and compared at once.
#[inline(always)]
pub fn joined(peer: u32, flags: u32) -> u64 {
    u64::from(peer) | u64::from(flags) << 32
}
