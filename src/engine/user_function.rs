//! Calls of the user's functions, which must return. A function that is left by an exception,
//! pthread_exit or cancellation would leave the roles and locks of the calling thread taken, so the
//! process ends with a message that names the function.

use std::ffi::{CStr, c_void};
use std::mem::{MaybeUninit, forget};

/// Calls a function of the user. `function` returns its address, for the message.
#[inline(always)]
pub fn call(function: impl Fn() -> *const c_void, call: impl FnOnce()) {
    let unwinds = Unwinds(function);
    call();
    forget(unwinds);
}

/// Dropped only if the call unwinds.
struct Unwinds<F: Fn() -> *const c_void>(F);

impl<F: Fn() -> *const c_void> Drop for Unwinds<F> {
    #[cold]
    fn drop(&mut self) {
        end_process(&format!(
            "{} was left by an exception, pthread_exit or cancellation, expected it to return; the \
             process ends",
            describe((self.0)())
        ));
    }
}

/// Ends a child that was forked inside this function of the user, and has returned from it.
#[cold]
pub fn end_child(function: *const c_void) -> ! {
    end_process(&format!(
        "{} has returned in a child that was forked inside it, expected exit or exec: see \
         docs/rules.md; the child ends",
        describe(function)
    ))
}

fn end_process(why: &str) -> ! {
    let text = format!("libllcl: {why}\n");
    // SAFETY: the text is valid for reading. The result does not matter, since the process ends.
    unsafe { libc::write(2, text.as_ptr().cast(), text.len()) };
    std::process::abort();
}

/// The function's name and object, as far as the symbols name them.
#[cold]
#[allow(
    clippy::not_unsafe_ptr_arg_deref,
    reason = "dladdr() only compares the address with those of symbols"
)]
pub fn describe(function: *const c_void) -> String {
    let mut info = MaybeUninit::<libc::Dl_info>::zeroed();
    // SAFETY: `info` is valid for the write; all zero it is valid too. Names it gives are static.
    let (object, name, offset) = unsafe {
        if libc::dladdr(function, info.as_mut_ptr()) == 0 {
            return format!("the function {function:?}");
        }
        let info = info.assume_init();
        let text = |from: *const libc::c_char| match from.is_null() {
            true => String::new(),
            false => CStr::from_ptr(from).to_string_lossy().into_owned(),
        };
        // The nearest exported symbol is another function, unless it begins here.
        let named = info.dli_saddr.cast_const() == function;
        let name = if named { text(info.dli_sname) } else { String::new() };
        (text(info.dli_fname), name, function as usize - info.dli_fbase as usize)
    };
    match name.is_empty() {
        true => format!("the function at {offset:#x} of {object}"),
        false => format!("the function {name} of {object}"),
    }
}
