//! The program's output at its end.

use crate::util::thread::spawn_quiet;
use std::time::{Duration, Instant};

/// Writes the buffered output of all streams, for a second at most: a thread that reads from a
/// stream has its lock until bytes come. False: not all is written. If no thread can be made, it
/// writes nothing: exit() does.
pub fn write_output() -> bool {
    unsafe extern "C" {
        static stdout: *mut libc::FILE;
    }
    // The newest stream comes first where all are flushed, stdout late.
    // SAFETY: stdout is a stream, and NULL means all.
    let flush = || unsafe {
        libc::fflush(stdout);
        libc::fflush(std::ptr::null_mut());
    };
    let limit = Instant::now() + Duration::from_secs(1);
    // The stack is for write functions that the program has given to fopencookie().
    spawn_quiet("llcl-flush", 256 << 10, flush).map_or(true, |thread| thread.join_until(limit))
}
