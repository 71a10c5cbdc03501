//! The guard: a small process that kills the job when `llcl-run` itself is killed.
//!
//! The kernel then kills the ranks (by their parent-death signal), but not the processes that the
//! ranks have started. The guard reads a stream whose other end only `llcl-run` has. The stream
//! carries the process group of each rank, and a zero at a regular end. If it ends without the
//! zero, `llcl-run` was killed.

use crate::signals;
use llcl::util::status::{Error, Result};
use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::net::UnixStream;

pub struct Guard {
    stream: UnixStream,
    pid: libc::pid_t,
}

impl Guard {
    /// To be called before this process starts a thread or opens a descriptor that the guard must
    /// not inherit.
    pub fn start() -> Result<Guard> {
        let Ok((reader, writer)) = UnixStream::pair() else {
            return Err(Error::system("socketpair"));
        };
        // SAFETY: this process has one thread, so the child may run any code.
        match unsafe { libc::fork() } {
            -1 => Err(Error::system("fork")),
            0 => {
                drop(writer);
                watch(reader);
                // SAFETY: ends the child without running what the parent has set up for its exit.
                unsafe { libc::_exit(0) }
            }
            pid => Ok(Guard { stream: writer, pid }),
        }
    }

    /// The descriptor to which a new process writes the number of its group before exec, as `u32`
    /// in native order. The guard kills that group if `llcl-run` dies.
    pub fn descriptor(&self) -> RawFd {
        self.stream.as_raw_fd()
    }

    /// Ends the guard, when all groups are killed and while their numbers are still taken.
    pub fn dismiss(mut self) {
        // Fails if the guard was killed, which needs no dismissal.
        let _ = self.stream.write_all(&0u32.to_ne_bytes());
        // SAFETY: waits for the child made in `start`, which nobody else waits for; no status
        // wanted.
        unsafe { libc::waitpid(self.pid, std::ptr::null_mut(), 0) };
    }
}

fn watch(mut stream: UnixStream) {
    signals::block_all();
    // Leaves the terminal's and the launcher's group, and closes the outputs, whose readers may
    // wait for their end.
    // SAFETY: setsid and prctl touch no memory but the name, which is a NUL-terminated literal.
    unsafe {
        libc::setsid();
        libc::prctl(libc::PR_SET_NAME, c"llcl-guard".as_ptr());
    }
    if let Ok(null) = File::options().read(true).write(true).open("/dev/null") {
        for output in 0..3 {
            // SAFETY: both are open descriptors of this process; the streams are not used by it.
            unsafe { libc::dup2(null.as_raw_fd(), output) };
        }
    }
    let mut groups = Vec::new();
    let mut number = [0; 4];
    while stream.read_exact(&mut number).is_ok() {
        match u32::from_ne_bytes(number) {
            0 => return,
            group => groups.push(group),
        }
    }
    for group in groups {
        // SAFETY: killpg takes integers only.
        unsafe { libc::killpg(group as libc::pid_t, libc::SIGKILL) };
    }
}
