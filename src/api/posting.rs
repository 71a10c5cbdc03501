//! What the functions that post requests have in common.

use crate::api::completion::llcl_completion_t;
use crate::api::guard::{given, guard};
use crate::api::life::{live, llcl_context_t};
use crate::api::memory::llcl_remote_t;
use crate::api::status::{LLCL_DONE, LLCL_OK};
use crate::core::context::Context;
use crate::core::rma::Quick;
use crate::core::submit::{Accepted, FLAG_DONE, Request};
use crate::engine::completion::{Completion, in_callback};
use crate::transport::port::Port;
use crate::transport::waiters::Waiters;
use crate::util::status::{Result, Status};

/// The parameters of an operation, from which its request is made.
pub trait Parameters {
    /// Whether offload mode has a short way into its queue for the operation.
    const QUEUES_QUICKLY: bool = false;

    /// The request, if what can be said without a context is right.
    fn request(&self) -> Result<Request>;

    /// Does the operation if it concerns one word of mapped memory, whatever the flags, and tells
    /// no completion. `peer`: as wide as the comparison that it is for. It calls nothing.
    ///
    /// # Safety
    /// As of do_quickly().
    #[inline(always)]
    unsafe fn do_word<'a>(&self, _context: &'a Context, _peer: u64) -> Quick<'a> {
        Quick::No
    }

    /// The peer's word that do_word() changes.
    fn word(&self) -> llcl_remote_t {
        llcl_remote_t { offset: 0, key: 0 }
    }

    /// Does the operation if the caller can do it by loads and stores, whatever the flags, and
    /// tells no completion; false: nothing has happened.
    ///
    /// # Safety
    /// Memory that the parameters name by pointers is what the user promises.
    #[inline(always)]
    unsafe fn do_quickly(&self, context: &Context) -> bool
    where
        Self: Sized,
    {
        // SAFETY: as the caller promises.
        unsafe { do_word_and_wake(context, self) }
    }

    /// What fires when the source may be reused.
    fn on_local(&self) -> Option<&llcl_completion_t> {
        None
    }

    /// With whom.
    fn peer(&self) -> u32;

    /// The caller's flags.
    fn flags(&self) -> u32;

    /// What fires at the end.
    fn on_complete(&self) -> &llcl_completion_t;
}

/// In an implementation of [`Parameters`]: what it reads from the fields that all parameters have.
macro_rules! common_fields {
    () => {
        fn peer(&self) -> u32 {
            self.peer
        }

        fn flags(&self) -> u32 {
            self.flags
        }

        fn on_complete(&self) -> &llcl_completion_t {
            &self.on_complete
        }
    };
}
pub(super) use common_fields;

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

/// Does an operation and fires its completions, or says by LLCL_DONE that they need not fire; where
/// that can be done here and now.
///
/// # Safety
/// As of do_quickly().
#[inline(always)]
unsafe fn do_and_complete<P: Parameters>(context: &Context, params: &P) -> Option<i32> {
    match params.flags() {
        0 => {}
        // SAFETY: as the caller promises.
        FLAG_DONE => return unsafe { params.do_quickly(context) }.then_some(LLCL_DONE),
        _ => return None,
    }
    let on_local = params.on_local().map(llcl_completion_t::as_engine);
    let on_complete = params.on_complete().as_engine();
    if !on_local.is_none_or(|it| it.is_ready()) || !on_complete.is_ready() {
        return None;
    }
    // SAFETY: as the caller promises.
    if !unsafe { params.do_quickly(context) } {
        return None;
    }
    if let Some(on_local) = on_local {
        on_local.fire(Status::OK, context.waiters());
    }
    on_complete.fire(Status::OK, context.waiters());
    Some(LLCL_OK)
}

/// The tier that never waits. Part of the functions of the interface, so that an operation on a
/// word that tells nobody needs neither a call nor a frame.
///
/// # Safety
/// Pointers that are not null point to a live context and to valid parameters, whose own promises
/// are kept.
#[inline(always)]
pub unsafe fn try_post<P: Parameters>(context: *const llcl_context_t, params: *const P) -> i32 {
    // SAFETY: as the caller promises.
    if let (Some(context), Some(p)) = unsafe { (context.as_ref(), params.as_ref()) } {
        if p.on_local().is_none_or(|it| it.as_engine().is_nothing())
            && p.on_complete().as_engine().is_nothing()
        {
            // With any flag there is no such peer.
            // SAFETY: as the caller promises.
            match unsafe { p.do_word(&context.context, joined(p.peer(), p.flags())) } {
                Quick::Done => return LLCL_OK,
                Quick::Wake(port) => return wake(port, p),
                Quick::No => {}
            }
        }
        // SAFETY: as the caller promises.
        return unsafe { try_post_and_complete(context, p) };
    }
    // SAFETY: as the caller promises.
    unsafe { try_post_any(context, params) }
}

/// Goes on where try_post() does not get further: does an operation on a word and fires its
/// completion.
///
/// # Safety
/// As of try_post().
#[inline(never)]
unsafe extern "C" fn try_post_and_complete<P: Parameters>(context: &llcl_context_t, p: &P) -> i32 {
    let (peer, on_complete) = (p.peer().into(), p.on_complete().as_engine());
    let plain = p.flags() == 0 && p.on_local().is_none_or(|it| it.as_engine().is_nothing());
    // Each way to report has a copy of the operation, so that none has to ask again which it is.
    if p.flags() == FLAG_DONE {
        // SAFETY: as the caller promises.
        match unsafe { p.do_word(&context.context, peer) } {
            Quick::Done => return LLCL_DONE,
            Quick::Wake(port) => return wake_and_complete(&context.context, port, p),
            Quick::No => {}
        }
    } else if plain && on_complete.can_call() {
        // SAFETY: as the caller promises.
        match unsafe { p.do_word(&context.context, peer) } {
            Quick::Done => {
                // SAFETY: can_call() was asked, and nothing was called since.
                unsafe { on_complete.call_now(context.context.waiters()) };
                return LLCL_OK;
            }
            Quick::Wake(port) => return wake_and_complete(&context.context, port, p),
            Quick::No => {}
        }
    } else if plain && on_complete.can_set() {
        // SAFETY: as the caller promises.
        match unsafe { p.do_word(&context.context, peer) } {
            Quick::Done => return complete(context.context.waiters(), on_complete),
            Quick::Wake(port) => return wake_and_complete(&context.context, port, p),
            Quick::No => {}
        }
    }
    // SAFETY: as the caller promises.
    unsafe { try_post_any(context, p) }
}

/// The last thing that a posting function does where only a completion is left; of C's calling
/// convention, as wake().
#[inline(never)]
extern "C" fn complete(waiters: &Waiters, on_complete: &Completion) -> i32 {
    on_complete.fire(Status::OK, waiters);
    unforeseen_ok()
}

/// Like wake(), and fires the completion.
#[cold]
#[inline(never)]
extern "C" fn wake_and_complete<P: Parameters>(context: &Context, port: &Port, params: &P) -> i32 {
    wake(port, params);
    match params.flags() {
        FLAG_DONE => LLCL_DONE,
        _ => complete(context.waiters(), params.on_complete().as_engine()),
    }
}

/// The tier that never waits, for every request.
///
/// # Safety
/// As of try_post().
#[inline(never)]
unsafe extern "C" fn try_post_any<P: Parameters>(
    context: *const llcl_context_t,
    params: *const P,
) -> i32 {
    // SAFETY: as the caller promises.
    if let Some((context, params)) = unsafe { both(context, params) } {
        // SAFETY: as the caller promises.
        if let Some(status) = unsafe { do_and_complete(&context.context, params) } {
            return status;
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
        if let Some(status) = unsafe { do_and_complete(&context.context, params) } {
            return status;
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
        && params.flags() & !FLAG_DONE == 0
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
    tier: fn(&Context, &Request) -> Result<Accepted>,
) -> i32 {
    guard(|| {
        // SAFETY: as the caller promises.
        let (context, params) = unsafe { (live(context)?, given(params, "params")?) };
        tier(context, &params.request()?)
    })
}

/// Whether an operation on a word is done; wakes threads that sleep on the word.
///
/// # Safety
/// As of do_quickly().
#[inline(always)]
pub unsafe fn do_word_and_wake<P: Parameters>(context: &Context, params: &P) -> bool {
    // SAFETY: as the caller promises.
    let quick = unsafe { params.do_word(context, params.peer().into()) };
    if let Quick::Wake(port) = quick {
        wake(port, params);
    }
    !matches!(quick, Quick::No)
}

/// Ends a quick operation on a word that somebody may sleep on. Of C's calling convention, which
/// does not unwind: so the quick operations can end with it and need no frame.
#[cold]
#[inline(never)]
extern "C" fn wake<P: Parameters>(port: &Port, params: &P) -> i32 {
    port.waiters().wake_at(params.word().address(), 8);
    unforeseen_ok()
}

/// LLCL_OK. If the compiler knew the answer of a function, the caller would give it itself, and not
/// end with the call.
#[inline(always)]
fn unforeseen_ok() -> i32 {
    let mut status = 0_u64;
    #[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
    // SAFETY: the assembler sees a comment.
    unsafe {
        std::arch::asm!("/* {0} */", inout(reg) status, options(pure, nomem, nostack, preserves_flags));
    }
    status as i32
}

/// Peer and flags as the one number that lies in the parameters: read and compared at once.
#[inline(always)]
fn joined(peer: u32, flags: u32) -> u64 {
    u64::from(peer) | u64::from(flags) << 32
}
