//! 0. Statuses

use crate::util::status::{Status, last_message};
use std::ffi::{CStr, c_char};

/// What a call answers: 0, an error if negative, "try again" if positive; but for LLCL_DONE.
pub type llcl_status_t = i32;

/// Accepted, or done.
pub const LLCL_OK: i32 = 0;
/// Try again: the command queue is full. Let others run, or wait for something, and repeat.
pub const LLCL_RETRY_QUEUE_FULL: i32 = 1;
/// Try again (direct mode): as many operations wait for other ranks as LLCL_IN_FLIGHT allows.
pub const LLCL_RETRY_NO_TAG: i32 = 2;
/// Try again: another thread uses what is needed (direct mode), or the region is still in use.
pub const LLCL_RETRY_BUSY: i32 = 3;
/// Try again: all message slots of the peer are taken. Let it run its handlers, and repeat.
pub const LLCL_RETRY_NO_CREDIT: i32 = 4;
/// Try again: the peer was not contacted before, and the contact is under way; it goes on whether
/// or not you try again, and may take until the peer has come up. llcl_connect waits for it.
pub const LLCL_RETRY_CONNECTING: i32 = 5;
/// The operation has ended before the call returned, and none of its completions fires. Only
/// requests with LLCL_FLAG_DONE are answered so.
pub const LLCL_DONE: i32 = 64;
/// A parameter has a value that it may not have.
pub const LLCL_ERR_INVALID: i32 = -1;
/// An offset, a size or a number lies outside of what exists.
pub const LLCL_ERR_RANGE: i32 = -2;
/// Memory, a table or a limit of the kernel is exhausted.
pub const LLCL_ERR_NO_MEMORY: i32 = -3;
/// The peer has died or has left the world.
pub const LLCL_ERR_PEER_DEAD: i32 = -4;
/// llcl_finalize ended the operation; it may or may not have taken effect.
pub const LLCL_ERR_CANCELED: i32 = -5;
/// The operation is not offered, as AND on floating-point numbers.
pub const LLCL_ERR_UNSUPPORTED: i32 = -6;
/// A system call failed; llcl_last_error() names it.
pub const LLCL_ERR_SYSTEM: i32 = -7;
/// Not now: inside a callback, during llcl_finalize, or a second time.
pub const LLCL_ERR_STATE: i32 = -8;
/// The time ran out.
pub const LLCL_ERR_TIMEOUT: i32 = -9;
/// The address names no live region of that rank: freed, forged, of another rank or context.
pub const LLCL_ERR_KEY: i32 = -10;
/// A defect of this library. Please report it.
pub const LLCL_ERR_INTERNAL: i32 = -11;
/// The peer has no handler of this number.
pub const LLCL_ERR_NO_HANDLER: i32 = -12;

/// One line about a status.
///
/// `status`: any number. Returns static text, never NULL; for numbers that are no status, too.
/// Any thread may call it at any time.
#[unsafe(no_mangle)]
pub extern "C" fn llcl_status_string(status: llcl_status_t) -> *const c_char {
    Status(status).text().as_ptr().cast()
}

/// The sentence of the calling thread's last error: which function was called, which parameter,
/// which value, what was expected.
///
/// Returns text that stays valid until the thread's next failing call, never NULL; empty when none
/// has failed. Statuses of the "try again" kind leave it alone. Each thread has its own.
#[unsafe(no_mangle)]
pub extern "C" fn llcl_last_error() -> *const c_char {
    last_message()
}

/// For programs that end where a call fails, by the macro LLCL_CHECK: prints what was called where,
/// the status and llcl_last_error() on stderr, and ends the process by exit(1), so that its job
/// ends.
///
/// `status`: what the call has answered; for LLCL_OK and LLCL_DONE nothing happens. `call`: the
/// call as text;
/// `file`: where it stands, static text or NULL; `line`: the line there. Any thread may call it;
/// exit handlers run on it.
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
