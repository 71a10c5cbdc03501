//! The threads of the library.
//!
//! The library does not start them by std::thread, which makes allocations that bypass this
//! library's allocator, and ends the process if one fails.

use crate::util::status::{Error, Result, Status};
use std::ffi::{CString, c_void};
use std::io;
use std::mem::{MaybeUninit, zeroed};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// A thread of the library. Dropping it detaches the thread.
pub struct Thread {
    id: libc::pthread_t,
    joined: bool,
    finished: Arc<AtomicBool>,
}

/// The number of the calling thread. Unlike std::thread::current(), which panics there, this also
/// works in exit handlers. A later thread may get the number of one that has ended, but the
/// program's first thread keeps its number.
pub fn this_thread() -> libc::pthread_t {
    // SAFETY: it takes nothing, and cannot fail.
    unsafe { libc::pthread_self() }
}

/// The argument of a new thread.
struct Start<F> {
    run: F,
    name: CString,
    finished: Arc<AtomicBool>,
}

/// Starts a thread on which every signal is blocked, so that the program's handlers run on the
/// program's own threads only. `name`: at most 15 bytes.
pub fn spawn_quiet<F>(name: &str, stack: usize, run: F) -> Result<Thread>
where
    F: FnOnce() + Send + 'static,
{
    let finished = Arc::new(AtomicBool::new(false));
    let start = Start { run, name: CString::new(name).unwrap_or_default(), finished };
    let finished = start.finished.clone();
    let start = Box::into_raw(Box::new(start));
    let mut id = MaybeUninit::uninit();
    // A new thread inherits the signal mask of the thread that makes it. So signals are blocked
    // here, since they could otherwise interrupt the first instructions of the new thread.
    // SAFETY: all-zero signal sets and attributes are valid to be overwritten; all live through the
    // calls. `start` is handed to the thread.
    let errno = unsafe {
        let (mut all, mut before): (libc::sigset_t, libc::sigset_t) = (zeroed(), zeroed());
        let mut attributes: libc::pthread_attr_t = zeroed();
        libc::sigfillset(&mut all);
        libc::pthread_sigmask(libc::SIG_SETMASK, &all, &mut before);
        let mut errno = libc::pthread_attr_init(&mut attributes);
        if errno == 0 {
            errno = libc::pthread_attr_setstacksize(&mut attributes, stack);
        }
        if errno == 0 {
            let first = begin::<F>;
            errno = libc::pthread_create(id.as_mut_ptr(), &attributes, first, start.cast());
        }
        libc::pthread_attr_destroy(&mut attributes);
        libc::pthread_sigmask(libc::SIG_SETMASK, &before, ptr::null_mut());
        errno
    };
    if errno != 0 {
        // SAFETY: made above, and no thread has received it.
        drop(unsafe { Box::from_raw(start) });
        let why = io::Error::from_raw_os_error(errno);
        return Err(Error::new(Status::ERR_NO_MEMORY, format!("starting thread {name}: {why}")));
    }
    // SAFETY: pthread_create() has written it.
    Ok(Thread { id: unsafe { id.assume_init() }, joined: false, finished })
}

extern "C" fn begin<F: FnOnce()>(start: *mut c_void) -> *mut c_void {
    // SAFETY: spawn_quiet() made it from a box of this type, for this thread alone.
    let Start { run, name, finished } = *unsafe { Box::from_raw(start.cast::<Start<F>>()) };
    // SAFETY: a thread may name itself; the name is terminated.
    unsafe { libc::pthread_setname_np(libc::pthread_self(), name.as_ptr()) };
    // The panic was printed; it must not unwind into the C library.
    let _ = catch_unwind(AssertUnwindSafe(run));
    // Release: pairs with the Acquire in has_ended().
    finished.store(true, Ordering::Release);
    ptr::null_mut()
}

impl Thread {
    /// Whether the caller is this thread.
    pub fn is_current(&self) -> bool {
        // The thread was not joined, so no other thread has its number.
        self.id == this_thread()
    }

    /// Waits for the end of the thread.
    pub fn join(mut self) {
        // SAFETY: neither joined nor detached before.
        unsafe { libc::pthread_join(self.id, ptr::null_mut()) };
        self.joined = true;
    }

    /// Waits for the end of the thread until `limit`. False: the thread goes on, detached.
    pub fn join_until(self, limit: Instant) -> bool {
        let mut nap = Duration::from_micros(20);
        while !self.has_ended() {
            if Instant::now() >= limit {
                return false;
            }
            std::thread::sleep(nap);
            nap = (nap * 2).min(Duration::from_millis(5));
        }
        self.join();
        true
    }

    /// Whether the thread has ended: join() returns at once.
    pub fn has_ended(&self) -> bool {
        // Acquire: pairs with begin().
        self.finished.load(Ordering::Acquire)
    }
}

impl Drop for Thread {
    fn drop(&mut self) {
        if !self.joined {
            // SAFETY: neither joined nor detached before.
            unsafe { libc::pthread_detach(self.id) };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::CStr;

    fn is_blocked(signal: i32) -> bool {
        // SAFETY: the set is filled by pthread_sigmask before it is read.
        unsafe {
            let mut mask: libc::sigset_t = zeroed();
            libc::pthread_sigmask(libc::SIG_BLOCK, ptr::null(), &mut mask);
            libc::sigismember(&mask, signal) == 1
        }
    }

    #[test]
    fn signals_are_blocked_there_and_not_here() {
        let before = is_blocked(libc::SIGUSR1);
        let checked = Arc::new(AtomicBool::new(false));
        let seen = checked.clone();
        let thread = spawn_quiet("quiet", 128 << 10, move || {
            let mut name = [0; 16];
            // SAFETY: 16 bytes are enough for every name.
            let named = unsafe {
                libc::pthread_getname_np(libc::pthread_self(), name.as_mut_ptr(), name.len());
                CStr::from_ptr(name.as_ptr())
            };
            let quiet = is_blocked(libc::SIGUSR1) && is_blocked(libc::SIGTERM);
            seen.store(quiet && named == c"quiet", Ordering::Relaxed);
        });
        let thread = thread.unwrap();
        assert!(!thread.is_current());
        assert!(thread.join_until(Instant::now() + Duration::from_secs(10)));
        assert!(checked.load(Ordering::Relaxed));
        assert_eq!(is_blocked(libc::SIGUSR1), before);
    }

    #[test]
    fn a_thread_that_cannot_be_started_is_a_status_and_drops_what_it_was_given() {
        let kept = Arc::new(());
        let given = kept.clone();
        let error = spawn_quiet("small", 1, move || drop(given)).err().unwrap();
        assert_eq!(error.status, Status::ERR_NO_MEMORY);
        assert!(error.message().starts_with("starting thread small: "), "{error}");
        assert_eq!(Arc::strong_count(&kept), 1);
    }

    #[test]
    fn the_end_of_a_thread_that_goes_on_is_not_waited_for() {
        let go_on = Arc::new(AtomicBool::new(true));
        let seen = go_on.clone();
        let thread = spawn_quiet("goes on", 128 << 10, move || {
            while seen.load(Ordering::Relaxed) {
                std::thread::yield_now();
            }
        });
        assert!(!thread.unwrap().join_until(Instant::now()));
        go_on.store(false, Ordering::Relaxed);
    }
}
