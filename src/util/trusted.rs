//! Variables of the environment that name files for the library to load or read.

use std::ffi::OsString;

/// The value of such a variable; None: it is not set or empty, or this process has more rights than
/// the one that has started it (set-user-ID and the like), which must not choose what it loads.
pub fn variable(name: &str) -> Option<OsString> {
    // SAFETY: getauxval takes an integer only.
    let has_more_rights = unsafe { libc::getauxval(libc::AT_SECURE) } != 0;
    std::env::var_os(name).filter(|value| !value.is_empty() && !has_more_rights)
}
