//! The program's output at its end.

use crate::util::thread::spawn_quiet;
use std::time::{Duration, Instant};

/// Writes the buffered output: of stdout without a limit, since its reader may be slow, and of all
/// other streams for a second at most, since a thread that reads from a stream has its lock until
/// bytes come. False: not all is written. If no thread can be made, it writes stdout only: exit()
/// writes the rest.
pub fn write_output() -> bool {
    unsafe extern "C" {
        static stdout: *mut libc::FILE;
        fn ftrylockfile(stream: *mut libc::FILE) -> libc::c_int;
        fn funlockfile(stream: *mut libc::FILE);
    }
    // Where all are flushed, the newest stream comes first, stdout late.
    // SAFETY: stdout is a stream, which this thread has locked.
    unsafe {
        if ftrylockfile(stdout) == 0 {
            libc::fflush(stdout);
            funlockfile(stdout);
        }
    }
    // SAFETY: NULL means all.
    let flush = || unsafe {
        libc::fflush(std::ptr::null_mut());
    };
    let limit = Instant::now() + Duration::from_secs(1);
    // The stack is for write functions that the program has given to fopencookie().
    spawn_quiet("llcl-flush", 256 << 10, flush).map_or(true, |thread| thread.join_until(limit))
}
