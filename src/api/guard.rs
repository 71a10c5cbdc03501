//! The boundary that every function of the interface passes: it checks pointers, stops panics, and
//! turns an error into a status and the thread's last message.

use crate::util::status::{Error, Result, Status};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

/// Runs the body of a function of the interface.
pub fn guard<T: Into<Status>, F: FnOnce() -> Result<T>>(body: F) -> i32 {
    match answer(body) {
        Ok(accepted) => accepted.into().0,
        Err(error) => error.record(function::<F>()).0,
    }
}

/// Like `guard`, for a body that several forms of a function share. The error message begins with
/// `name`.
pub fn guard_of<T: Into<Status>>(name: &str, body: impl FnOnce() -> Result<T>) -> i32 {
    match answer(body) {
        Ok(accepted) => accepted.into().0,
        Err(error) => error.record(name).0,
    }
}

/// Like `guard`, for a function that does not answer a status; on an error it answers `otherwise`.
pub fn guard_value<T, F: FnOnce() -> Result<T>>(otherwise: T, body: F) -> T {
    match answer(body) {
        Ok(value) => value,
        Err(error) => {
            error.record(function::<F>());
            otherwise
        }
    }
}

/// The name of the C function that contains the closure F, taken from the name of its type. A
/// generic function that several C functions share is named after its parameter type:
/// `post<llcl_read_params_t>` serves llcl_read and its forms.
fn function<F>() -> &'static str {
    let mut names = std::any::type_name::<F>().rsplit("::");
    let name = names.find(|name| name.starts_with("llcl_")).unwrap_or("libllcl");
    name.split_once("_params_t").map_or(name, |(operation, _)| operation)
}

fn answer<T>(body: impl FnOnce() -> Result<T>) -> Result<T> {
    catch_unwind(AssertUnwindSafe(body)).unwrap_or_else(|_| {
        let text = "a defect of this library: it panicked, see stderr".to_string();
        Err(Error::new(Status::ERR_INTERNAL, text))
    })
}

/// The object behind a pointer that must not be NULL.
///
/// # Safety
/// A pointer that is not null points to a valid object for as long as the caller uses it.
#[inline(always)]
pub unsafe fn given<'a, T>(pointer: *const T, name: &str) -> Result<&'a T> {
    // SAFETY: as the caller promises.
    match unsafe { pointer.as_ref() } {
        Some(object) if (pointer as usize).is_multiple_of(align_of::<T>()) => Ok(object),
        _ => Err(not_given(pointer.cast(), name)),
    }
}

#[cold]
fn not_given(pointer: *const (), name: &str) -> Error {
    let what = match pointer.is_null() {
        true => format!("{name} is NULL"),
        false => format!("{name} is {pointer:?}, which is misaligned"),
    };
    Error::new(Status::ERR_INVALID, what)
}

/// Writes an out-parameter.
///
/// # Safety
/// A pointer that is not null is valid for writing a T.
pub unsafe fn give<T>(pointer: *mut T, name: &str, value: T) -> Result<()> {
    if pointer.is_null() {
        crate::fail!(ERR_INVALID, "{name} is NULL");
    }
    // SAFETY: as the caller promises.
    unsafe { pointer.write(value) };
    Ok(())
}

/// Refuses a struct of another version.
pub fn known_size(given: u64, expected: usize) -> Result<()> {
    if given != expected as u64 {
        crate::fail!(ERR_INVALID, "struct_size is {given}, expected {expected}");
    }
    Ok(())
}

/// A time-out of the interface, in nanoseconds. A negative one means for ever, and gives None.
pub fn timeout(timeout_ns: i64) -> Option<Duration> {
    u64::try_from(timeout_ns).ok().map(Duration::from_nanos)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::util::status::last_message;

    #[test]
    fn a_panic_becomes_a_status_and_goes_no_further() {
        assert_eq!(guard::<(), _>(|| panic!("planted by a test")), Status::ERR_INTERNAL.0);
        assert_eq!(guard_value(7, || panic!("planted by a test")), 7);
    }

    #[test]
    fn the_message_names_the_function_that_was_called() {
        fn llcl_example() -> i32 {
            guard::<(), _>(|| crate::fail!(ERR_RANGE, "size is 9, expected at most 8"))
        }
        assert_eq!(llcl_example(), Status::ERR_RANGE.0);
        // SAFETY: last_message points to a NUL-terminated string of this thread.
        let text = unsafe { std::ffi::CStr::from_ptr(last_message()) };
        assert_eq!(text, c"llcl_example: size is 9, expected at most 8");
    }

    #[test]
    fn the_message_of_what_several_functions_share_names_the_operation() {
        #[expect(non_camel_case_types, reason = "as C writes it")]
        struct llcl_example_params_t;
        fn post<P>(_: P) -> i32 {
            guard::<(), _>(|| crate::fail!(ERR_KEY, "a key"))
        }
        assert_eq!(post(llcl_example_params_t), Status::ERR_KEY.0);
        // SAFETY: last_message points to a NUL-terminated string of this thread.
        let text = unsafe { std::ffi::CStr::from_ptr(last_message()) };
        assert_eq!(text, c"llcl_example: a key");
    }

    #[test]
    fn null_is_refused_by_name() {
        // SAFETY: null is what given() is for.
        let error = unsafe { given::<u64>(std::ptr::null(), "context") }.unwrap_err();
        assert_eq!((error.status, error.message()), (Status::ERR_INVALID, "context is NULL"));
    }
}
