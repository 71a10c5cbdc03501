//! 0. Statuses: the answers of all functions.

use crate::util::status::{Status, last_message, set_last_message};
use std::ffi::{CStr, c_char};

/// What a call answers: 0; an error, which is negative; LLCL_DONE; or "try again", which is any
/// other positive number.
pub type llcl_status_t = i32;

/// Accepted, or done.
pub const LLCL_OK: i32 = 0;
/// Try again: the command queue is full. Yield the core, help with progress or wait for a
/// completion, and repeat.
pub const LLCL_RETRY_QUEUE_FULL: i32 = 1;
/// Try again: as many operations wait for other ranks as LLCL_IN_FLIGHT allows (direct mode), or as
/// many messages as LLCL_AM_REQUESTS allows (any mode). Help with progress, and repeat.
pub const LLCL_RETRY_NO_TAG: i32 = 2;
/// Try again: another thread is posting (direct mode), or the object is still in use. Repeat later;
/// the function says what it waits for. Do not repeat the call inside a callback: in direct mode
/// the thread that executes may be the callback's own, so a loop there would never end. Return, or
/// use LLCL_FLAG_PARK.
pub const LLCL_RETRY_BUSY: i32 = 3;
/// Try again: all message slots of the peer are taken. Yield the core, so that the peer can run its
/// handlers, and repeat.
pub const LLCL_RETRY_NO_CREDIT: i32 = 4;
/// Try again: this is the first use of the peer, and the contact is under way. The contact goes on
/// whether or not you try again; it ends at the latest when the peer has called llcl_init.
/// llcl_connect waits for it.
pub const LLCL_RETRY_CONNECTING: i32 = 5;
/// The operation has ended before the call returned, and none of its completions fires. Only a
/// request with LLCL_FLAG_DONE gets this answer.
pub const LLCL_DONE: i32 = 64;
/// A parameter has a value that it may not have. Correct the call; llcl_last_error() names the
/// parameter.
pub const LLCL_ERR_INVALID: i32 = -1;
/// An offset, a size or a number lies outside of what exists. Correct the call.
pub const LLCL_ERR_RANGE: i32 = -2;
/// Memory, a table of the library or a limit of the kernel is exhausted. Free something, or raise
/// the limit that llcl_last_error() names.
pub const LLCL_ERR_NO_MEMORY: i32 = -3;
/// The peer has died or has left the world. It stays so: go on without it.
pub const LLCL_ERR_PEER_DEAD: i32 = -4;
/// llcl_finalize ended the operation; it may or may not have taken effect. If the peer is stopped,
/// a network such as MPI may use its buffer even later (see llcl_finalize).
pub const LLCL_ERR_CANCELED: i32 = -5;
/// This library, this machine or this type does not offer the operation; for instance AND on
/// floating-point numbers.
pub const LLCL_ERR_UNSUPPORTED: i32 = -6;
/// A system call failed; llcl_last_error() names it.
pub const LLCL_ERR_SYSTEM: i32 = -7;
/// The call is not allowed now: inside a callback, during llcl_finalize, or a second time.
pub const LLCL_ERR_STATE: i32 = -8;
/// The time that the call was given is over. The function says which operations go on.
pub const LLCL_ERR_TIMEOUT: i32 = -9;
/// The address names no live region of that rank: freed, forged, of another rank or context.
pub const LLCL_ERR_KEY: i32 = -10;
/// A defect of this library. Please report it.
pub const LLCL_ERR_INTERNAL: i32 = -11;
/// The peer has no handler of this number. Register it there before the message is sent.
pub const LLCL_ERR_NO_HANDLER: i32 = -12;

/// One line about a status.
///
/// `status`: any number. Returns static text, never NULL, also for a number that is no status.
/// Any thread may call it at any time.
/// From: ucs_status_string of UCX and fi_strerror of libfabric.
#[unsafe(no_mangle)]
pub extern "C" fn llcl_status_string(status: llcl_status_t) -> *const c_char {
    Status(status).text().as_ptr().cast()
}

/// A sentence about the calling thread's last error: which function was called, which parameter had
/// which value, and what was expected. All forms of an operation have the name of its blocking form
/// there: the sentence of llcl_try_write_async begins with llcl_write.
///
/// Returns text that stays valid until the thread's next failing call or llcl_set_last_error(),
/// never NULL; empty when there was neither. A "try again" does not change it. Each thread has its
/// own.
/// From: dlerror of POSIX, but per thread.
#[unsafe(no_mangle)]
pub extern "C" fn llcl_last_error() -> *const c_char {
    last_message()
}

/// Sets the sentence that llcl_last_error() returns to the calling thread. It is for functions that
/// answer statuses and are built upon this library, as llcl_init_mpi is.
///
/// `sentence`: text, which is copied; NULL changes nothing. Any thread may call it at any time.
/// This library's own.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn llcl_set_last_error(sentence: *const c_char) {
    if !sentence.is_null() {
        // SAFETY: text that ends with a zero, as the caller promises. Owned, since it may be the
        // last message itself.
        let text = unsafe { CStr::from_ptr(sentence) }.to_string_lossy().into_owned();
        set_last_message(&[&text]);
    }
}

/// Ends the process if a call has failed; the macro LLCL_CHECK calls it. It prints the call, its
/// place in the source, the status and llcl_last_error() on stderr, and then calls exit(1), so that
/// the job ends.
///
/// `status`: what the call has answered; for LLCL_OK and LLCL_DONE nothing happens. `call`: the
/// call as text; NULL prints a question mark. `file`: the source file as text, or NULL; `line`: the
/// line there. Any thread may call it; exit handlers run on that thread.
/// This library's own.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn llcl_must_succeed(
    status: llcl_status_t,
    call: *const c_char,
    file: *const c_char,
    line: u32,
) {
    if status == LLCL_OK || status == LLCL_DONE {
        return;
    }
    let text = |text: *const c_char| match text.is_null() {
        true => "?".into(),
        // SAFETY: text that ends with a zero, as the caller promises.
        false => unsafe { CStr::from_ptr(text) }.to_string_lossy(),
    };
    let (name, why) = (Status(status).text().trim_end_matches('\0'), text(last_message()));
    let why = if status < LLCL_OK && !why.is_empty() { format!(" ({why})") } else { String::new() };
    eprintln!("{}:{line}: {}: {name}{why}", text(file), text(call));
    // SAFETY: ends the process as the program itself would.
    unsafe { libc::exit(1) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_constants_are_the_statuses() {
        let constants = [
            LLCL_OK,
            LLCL_RETRY_QUEUE_FULL,
            LLCL_RETRY_NO_TAG,
            LLCL_RETRY_BUSY,
            LLCL_RETRY_NO_CREDIT,
            LLCL_RETRY_CONNECTING,
            LLCL_DONE,
            LLCL_ERR_INVALID,
            LLCL_ERR_RANGE,
            LLCL_ERR_NO_MEMORY,
            LLCL_ERR_PEER_DEAD,
            LLCL_ERR_CANCELED,
            LLCL_ERR_UNSUPPORTED,
            LLCL_ERR_SYSTEM,
            LLCL_ERR_STATE,
            LLCL_ERR_TIMEOUT,
            LLCL_ERR_KEY,
            LLCL_ERR_INTERNAL,
            LLCL_ERR_NO_HANDLER,
        ];
        assert!(constants.iter().copied().eq(Status::ALL.iter().map(|status| status.0)));
    }
}
