//! The common part of the functions that post requests.

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

/// The parameters of an operation.
pub trait Parameters {
    /// Whether offload mode has a short path into the command queue for the operation.
    const QUEUES_QUICKLY: bool = false;
    /// Whether the other modes have a short path to a wire for it.
    const POSTS_QUICKLY: bool = false;

    /// Makes the request; an error if a parameter is wrong that can be checked without a context.
    ///
    /// # Safety
    /// The user keeps the promises of the interface for what the parameters name, until each
    /// operation that is made of the request has ended.
    unsafe fn request(&self) -> Result<Request>;

    /// Does the operation if it concerns one word of mapped memory. Ignores the flags, fires no
    /// completion and calls no function. `peer`: 64 bits wide, so that a caller can join the flags
    /// to it and have both checked by one comparison.
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

    /// Does the operation if the caller can do it by loads and stores. Ignores the flags and fires
    /// no completion. False: nothing has happened.
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

    /// The completion that fires when the source may be reused.
    fn on_local(&self) -> Option<&llcl_completion_t> {
        None
    }

    /// The peer's rank.
    fn peer(&self) -> u32;

    /// The caller's flags.
    fn flags(&self) -> u32;

    /// The completion that fires at the end.
    fn on_complete(&self) -> &llcl_completion_t;
}

/// The functions of [`Parameters`] that read fields which all parameter structs have.
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

/// The objects behind the pointers; None if a pointer is NULL or misaligned, which submit()
/// reports.
///
/// # Safety
/// As of try_post().
#[inline(always)]
pub(super) unsafe fn both<'a, P>(
    context: *const llcl_context_t,
    params: *const P,
) -> Option<(&'a llcl_context_t, &'a P)> {
    if !context.is_aligned() || !params.is_aligned() {
        return None;
    }
    // SAFETY: aligned, and as the caller promises.
    unsafe { context.as_ref().zip(params.as_ref()) }
}

/// Does an operation at once, if possible, and fires its completions; with FLAG_DONE it answers
/// LLCL_DONE and fires none. None: the operation takes the long path.
///
/// # Safety
/// As of do_quickly().
#[inline(always)]
unsafe fn do_and_complete<P: Parameters>(context: &Context, params: &P) -> Option<i32> {
    let completions = (params.on_local(), params.on_complete());
    // SAFETY: as the caller promises.
    let quickly = || unsafe { params.do_quickly(context) };
    // SAFETY: as the caller promises.
    unsafe { complete_if(context, params.flags(), completions, quickly) }
}

/// The part of do_and_complete() that is the same for all kinds of parameters. `done`: does the
/// operation, or answers false.
///
/// # Safety
/// The user keeps what the completions name until they have fired.
#[inline(always)]
pub(super) unsafe fn complete_if(
    context: &Context,
    flags: u32,
    (on_local, on_complete): (Option<&llcl_completion_t>, &llcl_completion_t),
    done: impl FnOnce() -> bool,
) -> Option<i32> {
    let on_local = on_local.map(llcl_completion_t::as_engine);
    let on_complete = on_complete.as_engine();
    match flags {
        0 => {}
        // They do not fire, and are refused all the same if they are of no kind.
        FLAG_DONE if on_local.is_none_or(|it| it.has_kind()) && on_complete.has_kind() => {
            return done().then_some(LLCL_DONE);
        }
        _ => return None,
    }
    if !on_local.is_none_or(|it| it.is_ready()) || !on_complete.is_ready() || !done() {
        return None;
    }
    // SAFETY: is_ready() has checked both; else as the caller promises.
    unsafe {
        if let Some(on_local) = on_local {
            on_local.fire(Status::OK, context.waiters());
        }
        on_complete.fire(Status::OK, context.waiters());
    }
    Some(LLCL_OK)
}

/// The tier that never waits. It is inlined into the C functions, so that an operation on a word
/// without completions needs neither a call nor a stack frame.
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
            // A flag makes the joined number larger than any rank, so do_word() refuses it.
            // SAFETY: as the caller promises.
            match unsafe { p.do_word(&context.context, joined(p.peer(), p.flags())) } {
                Quick::Done => return LLCL_OK,
                Quick::Wake(port) => return wake(port, p),
                Quick::No => {}
            }
        }
        return match p.flags() {
            // SAFETY: as the caller promises.
            FLAG_DONE => unsafe { try_post_done(context, p) },
            // SAFETY: as the caller promises.
            _ => unsafe { try_post_and_complete(context, p) },
        };
    }
    // SAFETY: as the caller promises.
    unsafe { try_post_any(context, params) }
}

/// The rest of try_post() with FLAG_DONE: does an operation on a word and fires no completion. A
/// function of its own, since it saves no registers where it calls none.
///
/// # Safety
/// As of try_post().
#[inline(never)]
unsafe extern "C" fn try_post_done<P: Parameters>(context: &llcl_context_t, p: &P) -> i32 {
    let has_kind = |it: &llcl_completion_t| it.as_engine().has_kind();
    if has_kind(p.on_complete()) && p.on_local().is_none_or(has_kind) {
        // SAFETY: as the caller promises.
        match unsafe { p.do_word(&context.context, p.peer().into()) } {
            Quick::Done => return LLCL_DONE,
            // SAFETY: as the caller promises; the flag lets no completion fire, or can_call() or
            // can_set() was asked above.
            Quick::Wake(port) => return unsafe { wake_and_complete(&context.context, port, p) },
            Quick::No => {}
        }
    }
    // SAFETY: as the caller promises.
    unsafe { try_post_any(context, p) }
}

/// The rest of try_post() without it: does an operation on a word and fires its completion.
///
/// # Safety
/// As of try_post().
#[inline(never)]
unsafe extern "C" fn try_post_and_complete<P: Parameters>(context: &llcl_context_t, p: &P) -> i32 {
    let (peer, on_complete) = (p.peer().into(), p.on_complete().as_engine());
    let plain = p.flags() == 0 && p.on_local().is_none_or(|it| it.as_engine().is_nothing());
    // Each way to report the end has its own copy of the operation, so that the code after the
    // operation does not branch on it again.
    if plain && on_complete.can_call() {
        // SAFETY: as the caller promises.
        match unsafe { p.do_word(&context.context, peer) } {
            Quick::Done => {
                // SAFETY: can_call() was asked, and nothing was called since.
                unsafe { on_complete.call_now(context.context.waiters()) };
                return LLCL_OK;
            }
            // SAFETY: as the caller promises; the flag lets no completion fire, or can_call() or
            // can_set() was asked above.
            Quick::Wake(port) => return unsafe { wake_and_complete(&context.context, port, p) },
            Quick::No => {}
        }
    } else if plain && on_complete.can_set() {
        // SAFETY: as the caller promises.
        match unsafe { p.do_word(&context.context, peer) } {
            // SAFETY: can_set() was asked; else as the caller promises.
            Quick::Done => return unsafe { complete(context.context.waiters(), on_complete) },
            // SAFETY: as the caller promises; the flag lets no completion fire, or can_call() or
            // can_set() was asked above.
            Quick::Wake(port) => return unsafe { wake_and_complete(&context.context, port, p) },
            Quick::No => {}
        }
    }
    // SAFETY: as the caller promises.
    unsafe { try_post_any(context, p) }
}

/// Fires the completion, as the last step of a posting function. It has C's calling convention for
/// the reason given at wake().
///
/// # Safety
/// Its can_call() or can_set() has returned true to this thread, which has called no function of
/// the user since; the user keeps what it names until it has fired.
#[inline(never)]
unsafe extern "C" fn complete(waiters: &Waiters, on_complete: &Completion) -> i32 {
    // SAFETY: as the caller promises.
    unsafe { on_complete.fire(Status::OK, waiters) };
    unforeseen_ok()
}

/// Like wake(), and fires the completion, except with FLAG_DONE.
///
/// # Safety
/// As of complete(), if the completion fires.
#[cold]
#[inline(never)]
unsafe extern "C" fn wake_and_complete<P: Parameters>(
    context: &Context,
    port: &Port,
    params: &P,
) -> i32 {
    wake(port, params);
    match params.flags() {
        FLAG_DONE => LLCL_DONE,
        // SAFETY: as the caller promises.
        _ => unsafe { complete(context.waiters(), params.on_complete().as_engine()) },
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
        // SAFETY: as the caller promises.
        if unsafe { accept_quickly(context, params) } {
            return LLCL_OK;
        }
    }
    // SAFETY: as the caller promises.
    unsafe { submit(context, params, Context::submit) }
}

/// Makes a request of the parameters and hands it over, if possible. False: the operation takes the
/// long path.
///
/// # Safety
/// As of do_quickly().
#[inline(always)]
unsafe fn accept_quickly<P: Parameters>(context: &llcl_context_t, params: &P) -> bool {
    // First: nothing else of a context may be read after its end.
    if !context.is_live() {
        return false;
    }
    let offloads = context.context.offloads();
    let is_quick = if offloads { P::QUEUES_QUICKLY } else { P::POSTS_QUICKLY };
    if !is_quick
        || !params.on_local().is_none_or(|it| it.as_engine().is_ready())
        || !params.on_complete().as_engine().is_ready()
    {
        return false;
    }
    // SAFETY: as the caller promises.
    match (unsafe { params.request() }, offloads) {
        (Ok(mut request), true) => context.context.offload_quickly(&mut request),
        (Ok(request), false) => context.context.post_quickly(&request),
        (Err(_), _) => false,
    }
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
        // SAFETY: as the caller promises.
        if unsafe { accept_quickly(context, params) } {
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
        // SAFETY: as the caller promises.
        tier(context, &unsafe { params.request() }?)
    })
}

/// Does an operation on a word, if possible, and wakes threads that sleep on the word. Returns
/// whether it was done.
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

/// Wakes threads that sleep on the word of a quick operation. It has C's calling convention, which
/// does not unwind: so the quick operations can end in a jump to it and need no stack frame.
#[cold]
#[inline(never)]
extern "C" fn wake<P: Parameters>(port: &Port, params: &P) -> i32 {
    port.waiters().wake_at(params.word().address(), 8);
    unforeseen_ok()
}

/// LLCL_OK, hidden from the compiler. If the compiler knew the answer of a function, it would put
/// the constant into the caller, which then could not end in a jump to the function.
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

/// Peer and flags as one number, as the struct holds them side by side: one load and one comparison
/// check both.
#[inline(always)]
fn joined(peer: u32, flags: u32) -> u64 {
    u64::from(peer) | u64::from(flags) << 32
}
