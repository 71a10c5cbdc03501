//! Statuses and errors. A [`Status`] is returned over the C ABI. An [`Error`] is a status together
//! with the message that names the parameter, its value and what was expected.

use std::cell::RefCell;
use std::fmt;

/// The result of a call: 0 is accepted, DONE is accepted and ended, the other positive numbers mean
/// try again, and negative ones are errors. The numbers are ABI.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
#[repr(transparent)]
pub struct Status(pub i32);

macro_rules! statuses {
    ($($name:ident = $value:literal, $text:literal;)*) => {
        impl Status {
            $(#[doc = $text] pub const $name: Status = Status($value);)*

            /// Every status there is, for tables and tests.
            pub const ALL: &'static [Status] = &[$(Status($value)),*];

            /// One line about the status, NUL-terminated for C.
            pub fn text(self) -> &'static str {
                match self.0 {
                    $($value => concat!($text, "\0"),)*
                    _ => "not a status of this library\0",
                }
            }

            fn name(self) -> &'static str {
                match self.0 {
                    $($value => stringify!($name),)*
                    _ => "UNKNOWN",
                }
            }
        }
    };
}

statuses! {
    OK = 0, "accepted, or done";
    RETRY_QUEUE_FULL = 1, "try again: the command queue is full";
    RETRY_NO_TAG = 2, "try again: as many operations are in flight as there are tags";
    RETRY_BUSY = 3, "try again: what is needed is in use at the moment";
    RETRY_NO_CREDIT = 4, "try again: all message slots of the peer are taken";
    RETRY_CONNECTING = 5, "try again: the first contact with the peer is under way";
    DONE = 64, "it has ended before the call returned; no completion fires";
    ERR_INVALID = -1, "a parameter is not allowed to have this value";
    ERR_RANGE = -2, "an offset, a size or a number lies outside of what exists";
    ERR_NO_MEMORY = -3, "memory, a table or a kernel limit is exhausted";
    ERR_PEER_DEAD = -4, "the peer has died or has left";
    ERR_CANCELED = -5, "the operation was cancelled; it may or may not have taken effect";
    ERR_UNSUPPORTED = -6, "this is not offered here";
    ERR_SYSTEM = -7, "a system call failed";
    ERR_STATE = -8, "this may not be called now";
    ERR_TIMEOUT = -9, "the time ran out";
    ERR_KEY = -10, "the address names no live region of that rank";
    ERR_INTERNAL = -11, "a defect of this library";
    ERR_NO_HANDLER = -12, "the peer has no handler of this number";
}

impl Status {
    /// Whether the call was refused for now: it had no effect, and the caller may try again.
    pub fn is_retry(self) -> bool {
        self.0 > 0 && self != Status::DONE
    }
}

impl From<()> for Status {
    fn from((): ()) -> Status {
        Status::OK
    }
}

impl fmt::Debug for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}({})", self.name(), self.0)
    }
}

/// A status other than OK and the sentence that explains it.
///
/// The sentence is boxed so that `Result<(), Error>` stays small. It is empty for the retry
/// statuses, which are normal on hot paths and must not allocate.
#[derive(Debug)]
pub struct Error {
    /// The status for the caller.
    pub status: Status,
    message: Option<Box<str>>,
}

/// The result of every fallible function of this crate.
pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    /// An error with its sentence; use [`fail!`](crate::fail) to format one.
    pub fn new(status: Status, message: String) -> Error {
        Error { status, message: Some(message.into_boxed_str()) }
    }

    /// A status that needs no sentence of its own.
    pub const fn bare(status: Status) -> Error {
        Error { status, message: None }
    }

    /// The error with the name of the parameter before its sentence. A "try again" has none.
    pub fn of(self, name: &str) -> Error {
        match self.status.is_retry() {
            true => self,
            false => Error::new(self.status, format!("{name} {}", self.message())),
        }
    }

    /// A copy of this error, for a caller that reports it twice.
    pub fn again(&self) -> Error {
        Error { status: self.status, message: self.message.clone() }
    }

    /// `ERR_SYSTEM` for the system call `call`, with the current errno.
    pub fn system(call: &str) -> Error {
        let errno = std::io::Error::last_os_error();
        Error::new(Status::ERR_SYSTEM, format!("{call}: {errno}"))
    }

    /// The sentence. Without one: the line of the status.
    pub fn message(&self) -> &str {
        match &self.message {
            Some(message) => message,
            None => self.status.text().trim_end_matches('\0'),
        }
    }

    /// Keeps the sentence as this thread's last message, for `llcl_last_error`. `function`: the C
    /// function that was called.
    pub fn record(&self, function: &str) -> Status {
        if !self.status.is_retry() {
            set_last_message(&[function, ": ", self.message()]);
        }
        self.status
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.message())
    }
}

impl std::error::Error for Error {}

/// `fail!(ERR_RANGE, "size is {size}, expected at most {limit}")` returns that error from the
/// enclosing function.
#[macro_export]
macro_rules! fail {
    ($status:ident, $($message:tt)*) => {
        return Err($crate::util::status::Error::new(
            $crate::util::status::Status::$status,
            format!($($message)*),
        ))
    };
}

thread_local! {
    static LAST: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// Makes a text of these parts this thread's last message.
pub fn set_last_message(parts: &[&str]) {
    // A thread that is ending may have no thread-local variables any more.
    let _ = LAST.try_with(|last| {
        let mut last = last.borrow_mut();
        last.clear();
        last.extend(parts.iter().flat_map(|part| part.bytes()).filter(|b| *b != 0));
        last.push(0);
    });
}

/// This thread's last message with its NUL, valid until this thread's next failing call.
pub fn last_message() -> *const std::ffi::c_char {
    let last = LAST.try_with(|last| match last.borrow().as_slice() {
        [] => c"".as_ptr(),
        bytes => bytes.as_ptr().cast(),
    });
    last.unwrap_or(c"".as_ptr())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_status_has_a_line_of_its_own() {
        for (i, a) in Status::ALL.iter().enumerate() {
            assert!(a.text().ends_with('\0'));
            for b in &Status::ALL[i + 1..] {
                assert_ne!(a.0, b.0);
                assert_ne!(a.text(), b.text());
            }
        }
    }

    #[test]
    fn a_retry_leaves_the_last_message_alone() {
        Error::new(Status::ERR_RANGE, "size is 9, expected at most 8".into()).record("llcl_read");
        Error::bare(Status::RETRY_QUEUE_FULL).record("llcl_read");
        // SAFETY: last_message points to a NUL-terminated string of this thread.
        let text = unsafe { std::ffi::CStr::from_ptr(last_message()) };
        assert_eq!(text.to_str().unwrap(), "llcl_read: size is 9, expected at most 8");
    }
}
