//! Ends of what this rank has posted, on their way from the thread that polls the wire to the holder
//! of the lane's role. The thread puts them in and then rings the bell on which the progress thread
//! sleeps; the holder looks without the lock.

use crate::util::status::Status;
use crate::util::sync::{AtomicBool, Mutex, Ordering};
use std::sync::PoisonError;

/// What has become of a read, a write or an atomic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct End {
    /// What its poster calls it.
    pub tag: u64,
    /// How it went.
    pub status: Status,
    /// What an atomic fetched.
    pub fetched: u64,
}

/// See the head of the file.
#[derive(Default)]
pub struct Ended {
    list: Mutex<Vec<End>>,
    any: AtomicBool,
}

impl Ended {
    /// Puts ends in; the caller then rings.
    pub fn put(&self, ends: &[End]) {
        let mut list = self.list.lock().unwrap_or_else(PoisonError::into_inner);
        list.extend(ends);
        // Under the lock, so that it is not set behind a take() that has found them. Release: pairs
        // with is_empty(); a holder that does not see it is woken by the ring behind it.
        self.any.store(true, Ordering::Release);
    }

    /// Takes out what is there.
    pub fn take(&self) -> Vec<End> {
        if self.is_empty() {
            return Vec::new();
        }
        let mut list = self.list.lock().unwrap_or_else(PoisonError::into_inner);
        // Under the lock, so that it says nothing of what is put in behind it.
        self.any.store(false, Ordering::Relaxed);
        std::mem::take(&mut *list)
    }

    /// Whether nothing is there, as far as a look without the lock tells.
    pub fn is_empty(&self) -> bool {
        !self.any.load(Ordering::Acquire)
    }
}

#[cfg(all(test, loom))]
mod models {
    use super::*;
    use crate::util::bell::Bell;
    use loom::sync::Arc;
    use loom::thread;

    fn end(tag: u64) -> End {
        End { tag, status: Status::OK, fetched: 0 }
    }

    /// A holder that finds nothing sleeps, and takes all that was put in. Where put() does not tell,
    /// or tells after the ring, the model ends in a deadlock.
    #[test]
    fn loom_no_end_is_slept_through() {
        loom::model(|| {
            let shared = Arc::new((Ended::default(), Bell::new()));
            let polls = shared.clone();
            let thread = thread::spawn(move || {
                for tag in 1..=2 {
                    polls.0.put(&[end(tag)]);
                    polls.1.ring();
                }
            });
            let mut seen = Vec::new();
            while seen.len() < 2 {
                let ticket = shared.1.ticket();
                seen.extend(shared.0.take().into_iter().map(|end| end.tag));
                if seen.len() < 2 && shared.0.is_empty() {
                    shared.1.wait(ticket, None);
                }
            }
            assert_eq!(seen, [1, 2]);
            thread.join().unwrap();
            assert!(shared.0.is_empty() && shared.0.take().is_empty());
        });
    }
}
