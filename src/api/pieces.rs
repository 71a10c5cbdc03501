//! The common part of the functions that read and write many pieces.

use crate::api::completion::llcl_completion_t;
use crate::api::guard::{given, guard_of};
use crate::api::life::{live, llcl_context_t};
use crate::api::memory::llcl_remote_t;
use crate::api::posting::{both, complete_if};
use crate::api::status::LLCL_OK;
use crate::core::context::Context;
use crate::core::noncontiguous::{List, Many, Signal, Span};
use crate::core::submit::FLAG_DONE;
use crate::engine::atomic;
use crate::engine::command::Op;
use crate::engine::completion::in_callback;
use crate::fail;
use crate::util::status::Result;

/// The three forms of a function.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Tier {
    /// It never waits.
    Try,
    /// It waits until the request is accepted.
    Accepted,
    /// It waits until the request has ended.
    Ended,
}

/// A function of the interface. One pointer to it is passed on, as there are few registers.
pub struct Call {
    /// Errors begin with it.
    pub name: &'static str,
    /// Op::READ or Op::WRITE.
    pub op: Op,
    /// The form.
    pub tier: Tier,
}

/// The parameters of both kinds.
pub trait Described {
    /// # Safety
    /// Lists that the parameters name are what the user promises.
    unsafe fn many(&self, op: Op) -> Result<Many>;

    /// Copies everything if the caller can do it by loads and stores. Ignores the flags and fires
    /// no completion. False: the long path begins anew; pieces of lists may have been copied.
    ///
    /// # Safety
    /// As of many().
    unsafe fn do_quickly(&self, context: &Context, op: Op) -> bool;

    /// The caller's flags.
    fn flags(&self) -> u32;

    /// The completion that fires at the end.
    fn on_complete(&self) -> &llcl_completion_t;
}

/// The signal of a request, if it has one.
pub fn signal(op: Op, place: llcl_remote_t, code: u32, value: u64) -> Result<Option<Signal>> {
    match (code, atomic::signal_op(code.min(255) as u8)) {
        (0, _) => Ok(None),
        (_, Ok(op_of_word)) if op == Op::WRITE => {
            Ok(Some(Signal { place: place.address(), op: op_of_word, value }))
        }
        (_, Ok(_)) => fail!(ERR_INVALID, "signal_op is {code}, expected 0: a read has no signal"),
        _ => fail!(ERR_INVALID, "signal_op is {code}, expected LLCL_SIGNAL_*, or 0 for none"),
    }
}

/// The list behind a pointer.
///
/// # Safety
/// A pointer that is not NULL points to `count` entries, which can be read during the call.
#[inline(always)]
pub unsafe fn list<T>(first: *const T, count: usize, name: &str) -> Result<List> {
    if count > 0 {
        // SAFETY: as the caller promises.
        unsafe { given(first, name)? };
        if count > isize::MAX as usize / size_of::<Span>() {
            fail!(ERR_RANGE, "{name} has {count} entries, which is more than memory holds");
        }
    }
    // SAFETY: as the caller promises; both kinds of entries have the layout of a Span, as asserted
    // in api::noncontiguous.
    Ok(unsafe { List::new(first.cast::<Span>(), count) })
}

/// Does a request at once if possible, and else hands it to its tier.
///
/// # Safety
/// Pointers that are not null point to a live context and to valid parameters, whose own promises
/// are kept.
#[inline(never)]
pub unsafe fn post_many<P: Described>(
    call: &'static Call,
    context: *const llcl_context_t,
    params: *const P,
) -> i32 {
    // SAFETY: as the caller promises.
    unsafe { do_at_once(call, context, params).unwrap_or_else(|| submit(call, context, params)) }
}

/// None: the request takes the long path.
///
/// # Safety
/// As of post_many().
#[inline(always)]
unsafe fn do_at_once<P: Described>(
    &Call { op, tier, .. }: &'static Call,
    context: *const llcl_context_t,
    params: *const P,
) -> Option<i32> {
    // SAFETY: as the caller promises.
    let (context, params) = unsafe { both(context, params) }?;
    let context = &context.context;
    if tier != Tier::Try && in_callback() {
        return None;
    }
    // SAFETY: as the caller promises.
    let quickly = || unsafe { params.do_quickly(context, op) };
    if tier != Tier::Ended {
        let completions = (None, params.on_complete());
        // SAFETY: as the caller promises.
        return unsafe { complete_if(context, params.flags(), completions, quickly) };
    }
    let plain = params.flags() & !FLAG_DONE == 0 && params.on_complete().as_engine().is_nothing();
    (plain && quickly()).then_some(LLCL_OK)
}

/// # Safety
/// As of post_many().
#[cold]
#[inline(never)]
unsafe fn submit<P: Described>(
    &Call { name, op, tier }: &'static Call,
    context: *const llcl_context_t,
    params: *const P,
) -> i32 {
    guard_of(name, || {
        // SAFETY: as the caller promises.
        let (context, params) = unsafe { (live(context)?, given(params, "params")?) };
        // SAFETY: as the caller promises.
        let mut many = unsafe { params.many(op) }?;
        match tier {
            Tier::Try => context.submit_many(&many),
            Tier::Accepted => context.submit_many_until_accepted(&many),
            Tier::Ended => context.submit_many_and_wait(&mut many),
        }
    })
}
