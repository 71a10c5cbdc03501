//! Threads that a library may start in somebody else's process.

use crate::util::status::{Error, Result, Status};
use std::mem;
use std::ptr;
use std::thread::{Builder, JoinHandle};
use std::time::{Duration, Instant};

/// Starts a thread on which every signal is blocked, so that the program's handlers run on the
/// program's own threads only.
pub fn spawn_quiet<F>(name: &str, stack: usize, run: F) -> Result<JoinHandle<()>>
where
    F: FnOnce() + Send + 'static,
{
    let builder = Builder::new().name(name.to_owned()).stack_size(stack);
    // A new thread inherits the mask of its maker: blocked here, so that not even its first
    // instruction can be interrupted.
    // SAFETY: all-zero is a valid signal set to be overwritten; both sets live through the calls.
    let before = unsafe {
        let mut all: libc::sigset_t = mem::zeroed();
        let mut before: libc::sigset_t = mem::zeroed();
        libc::sigfillset(&mut all);
        libc::pthread_sigmask(libc::SIG_SETMASK, &all, &mut before);
        before
    };
    let spawned = builder.spawn(run);
    // SAFETY: `before` was filled by the call above.
    unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &before, ptr::null_mut()) };
    spawned.map_err(|e| Error::new(Status::ERR_NO_MEMORY, format!("starting thread {name}: {e}")))
}

/// Waits for the end of a thread until `limit`. False: it runs on, and is nobody's from now on.
pub fn join_until(thread: JoinHandle<()>, limit: Instant) -> bool {
    let mut nap = Duration::from_micros(20);
    while !thread.is_finished() {
        if Instant::now() >= limit {
            return false;
        }
        std::thread::sleep(nap);
        nap = (nap * 2).min(Duration::from_millis(5));
    }
    // A panic of the thread has been reported; there is nothing left to save here.
    let _ = thread.join();
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_blocked(signal: i32) -> bool {
        // SAFETY: the set is filled by pthread_sigmask before it is read.
        unsafe {
            let mut mask: libc::sigset_t = mem::zeroed();
            libc::pthread_sigmask(libc::SIG_BLOCK, ptr::null(), &mut mask);
            libc::sigismember(&mask, signal) == 1
        }
    }

    #[test]
    fn signals_are_blocked_there_and_not_here() {
        let before = is_blocked(libc::SIGUSR1);
        let thread = spawn_quiet("quiet", 128 << 10, || {
            assert!(is_blocked(libc::SIGUSR1) && is_blocked(libc::SIGTERM));
            assert_eq!(std::thread::current().name(), Some("quiet"));
        });
        thread.unwrap().join().unwrap();
        assert_eq!(is_blocked(libc::SIGUSR1), before);
    }
}
