//! What the functions that post requests have in common.

use crate::api::completion::llcl_completion_t;
use crate::api::guard::{given, guard};
use crate::api::life::{live, llcl_context_t};
use crate::api::memory::llcl_remote_t;
use crate::api::status::LLCL_OK;
use crate::core::context::Context;
use crate::core::rma::Quick;
use crate::core::submit::Request;
use crate::engine::completion::in_callback;
use crate::transport::port::Port;
use crate::util::status::{Result, Status};
use std::hint::black_box;

/// The parameters of an operation, from which its request is made.
pub trait Parameters {
    /// Whether offload mode has a short way into its queue for the operation.
    const QUEUES_QUICKLY: bool = false;

    /// The request, if what can be said without a context is right.
    fn request(&self) -> Result<Request>;

    /// Does the operation if the caller can do it by loads and stores, and tells nobody; false:
    /// nothing has happened.
    ///
    /// # Safety
    /// Memory that the parameters name by pointers is what the user promises.
    unsafe fn do_quickly(&self, _context: &Context) -> bool {
        false
    }

    /// What fires when the source may be reused.
    fn on_local(&self) -> Option<&llcl_completion_t> {
        None
    }

    /// What fires at the end.
    fn on_complete(&self) -> &llcl_completion_t;
}

/// The objects behind the pointers, if they are what they should be; what they are else, submit()
/// says.
///
/// # Safety
/// As of try_post().
#[inline(always)]
unsafe fn both<'a, P>(
    context: *const llcl_context_t,
    params: *const P,
) -> Option<(&'a llcl_context_t, &'a P)> {
    if !context.is_aligned() || !params.is_aligned() {
        return None;
    }
    // SAFETY: aligned, and as the caller promises.
    unsafe { context.as_ref().zip(params.as_ref()) }
}

/// Does an operation and fires its completions, where both can be done here and now.
///
/// # Safety
/// As of do_quickly().
#[inline(always)]
unsafe fn do_and_tell<P: Parameters>(context: &Context, params: &P) -> bool {
    let on_local = params.on_local().map(llcl_completion_t::as_engine);
    let on_complete = params.on_complete().as_engine();
    if !on_local.is_none_or(|it| it.is_ready()) || !on_complete.is_ready() {
        return false;
    }
    // SAFETY: as the caller promises.
    let done = unsafe { params.do_quickly(context) };
    if done {
        if let Some(on_local) = on_local {
            on_local.fire(Status::OK, context.waiters());
        }
        on_complete.fire(Status::OK, context.waiters());
    }
    done
}

/// The tier that never waits.
///
/// # Safety
/// Pointers that are not null point to a live context and to valid parameters, whose own promises
/// are kept.
#[inline(never)]
pub unsafe extern "C" fn try_post<P: Parameters>(
    context: *const llcl_context_t,
    params: *const P,
) -> i32 {
    // SAFETY: as the caller promises.
    if let Some((context, params)) = unsafe { both(context, params) } {
        // SAFETY: as the caller promises.
        if unsafe { do_and_tell(&context.context, params) } {
            return LLCL_OK;
        }
        if P::QUEUES_QUICKLY
            && context.is_live()
            && params.on_local().is_none_or(|it| it.as_engine().is_ready())
            && params.on_complete().as_engine().is_ready()
            && let Ok(request) = &mut params.request()
            && context.context.offload_quickly(request)
        {
            return LLCL_OK;
        }
    }
    // SAFETY: as the caller promises.
    unsafe { submit(context, params, Context::submit) }
}

/// The tier that waits until the operation is accepted.
///
/// # Safety
/// As of try_post().
#[inline(never)]
pub unsafe extern "C" fn post<P: Parameters>(
    context: *const llcl_context_t,
    params: *const P,
) -> i32 {
    // SAFETY: as the caller promises.
    if let Some((context, params)) = unsafe { both(context, params) }
        && !in_callback()
    {
        // SAFETY: as the caller promises.
        if unsafe { do_and_tell(&context.context, params) } {
            return LLCL_OK;
        }
    }
    // SAFETY: as the caller promises.
    unsafe { submit(context, params, Context::submit_until_accepted) }
}

/// The tier that waits until the operation has ended; it has no completions.
///
/// # Safety
/// As of try_post().
#[inline(never)]
pub unsafe extern "C" fn post_and_wait<P: Parameters>(
    context: *const llcl_context_t,
    params: *const P,
) -> i32 {
    // SAFETY: as the caller promises.
    if let Some((context, params)) = unsafe { both(context, params) }
        && params.on_local().is_none_or(|it| it.as_engine().is_nothing())
        && params.on_complete().as_engine().is_nothing()
        && !in_callback()
    {
        // SAFETY: as the caller promises.
        if unsafe { params.do_quickly(&context.context) } {
            return LLCL_OK;
        }
    }
    // SAFETY: as the caller promises.
    unsafe { submit(context, params, Context::submit_and_wait) }
}

/// Makes a request of the parameters and hands it to one of the three tiers.
///
/// # Safety
/// As of try_post().
#[inline(never)]
unsafe fn submit<P: Parameters>(
    context: *const llcl_context_t,
    params: *const P,
    tier: fn(&Context, &Request) -> Result<()>,
) -> i32 {
    guard(|| {
        // SAFETY: as the caller promises.
        let (context, params) = unsafe { (live(context)?, given(params, "params")?) };
        tier(context, &params.request()?)
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

/// Whether a quick operation on a word is done; wakes who sleeps on the word.
#[inline(always)]
pub fn told(quick: Quick, word: &llcl_remote_t) -> bool {
    if let Quick::Wake(port) = &quick {
        port.waiters().wake_at(word.address(), 8);
    }
    !matches!(quick, Quick::No)
}

/// Peer and flags as the one number that lies in the parameters: read and compared at once.
#[inline(always)]
pub fn joined(peer: u32, flags: u32) -> u64 {
    u64::from(peer) | u64::from(flags) << 32
}
