//! Sleeping in the kernel on a 32-bit word. The word may lie in memory that several processes map:
//! the operations are the shared ones (no `FUTEX_PRIVATE_FLAG`).

use std::sync::atomic::AtomicU32;
use std::time::Duration;

/// Sleeps while `word` holds `expected`, at most for `timeout` (`None`: without limit).
///
/// Returns false when the time ran out. Returns true otherwise: the thread was woken, the word
/// differed already, or a signal arrived. So after true the caller must look again. The kernel
/// compares the word and queues the sleeper as one step with respect to [`wake`], so a waker that
/// changes the word first and wakes afterwards is never missed.
pub fn wait(word: &AtomicU32, expected: u32, timeout: Option<Duration>) -> bool {
    let limit = timeout.map(timespec);
    let limit = limit.as_ref().map_or(std::ptr::null(), std::ptr::from_ref);
    // SAFETY: the word outlives the call because it is borrowed; limit is null or points to a
    // timespec of this frame.
    let answer =
        unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), libc::FUTEX_WAIT, expected, limit) };
    answer == 0 || std::io::Error::last_os_error().raw_os_error() != Some(libc::ETIMEDOUT)
}

/// Wakes up to `count` sleepers of `word`, in all processes; returns how many.
pub fn wake(word: &AtomicU32, count: i32) -> usize {
    // SAFETY: FUTEX_WAKE uses the address as a key only; the borrow keeps it mapped.
    let woken = unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), libc::FUTEX_WAKE, count) };
    usize::try_from(woken).unwrap_or(0)
}

/// Whether an address in a mapping has memory: a mapping may be longer than its file. From now on
/// the page takes memory. The address is aligned to 4.
pub fn is_word(address: usize) -> bool {
    // SAFETY: FUTEX_WAKE uses the address as a key only; without memory there it answers an error.
    // Linux wakes one sleeper even for a count of 0; a sleeper looks again.
    let woken = unsafe { libc::syscall(libc::SYS_futex, address, libc::FUTEX_WAKE, 0) };
    woken >= 0
}

/// The kernel refuses a negative or oversized tv_sec. A timeout that does not fit becomes the
/// longest one.
fn timespec(timeout: Duration) -> libc::timespec {
    let seconds = timeout.as_secs().min(u32::MAX.into());
    libc::timespec {
        tv_sec: seconds as libc::time_t,
        tv_nsec: timeout.subsec_nanos() as libc::c_long,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::Ordering;
    use std::time::Instant;

    #[test]
    fn a_changed_word_does_not_sleep() {
        let word = AtomicU32::new(7);
        assert!(wait(&word, 6, None));
    }

    #[test]
    fn the_time_limit_is_kept_and_reported() {
        let word = AtomicU32::new(7);
        let begin = Instant::now();
        // A signal may end a wait early with true; the limit is kept in any case.
        while wait(&word, 7, Some(Duration::from_millis(5))) {}
        assert!(begin.elapsed() >= Duration::from_millis(5));
    }

    #[test]
    fn a_sleeper_is_woken() {
        let word = AtomicU32::new(0);
        std::thread::scope(|s| {
            s.spawn(|| {
                while word.load(Ordering::Acquire) == 0 {
                    wait(&word, 0, None);
                }
            });
            std::thread::sleep(Duration::from_millis(2));
            // Release: pairs with the Acquire of the loop above.
            word.store(1, Ordering::Release);
            wake(&word, 1);
        });
        assert_eq!(wake(&word, i32::MAX), 0, "nobody is left sleeping");
    }
}
