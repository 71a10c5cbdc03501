//! A completion queue from the thread that polls a wire to the holder of the engine lane's role. A
//! holder that gives up the role while the progress thread sleeps arms the queue; the next thread
//! that adds a completion must wake the progress thread. Both change one word by an atomic
//! read-modify-write, so one comes first: either arm() sees the completions, or put() sees that the
//! queue is armed.

use crate::util::status::Status;
use crate::util::sync::{AtomicU32, Mutex, Ordering};
use std::sync::PoisonError;

/// The completion of a read, a write or an atomic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct End {
    /// The tag of the operation, as the engine has posted it.
    pub tag: u64,
    /// The status of the operation.
    pub status: Status,
    /// The value that an atomic has fetched.
    pub fetched: u64,
}

/// The queue is not empty.
const ANY: u32 = 1;
/// Nobody polls the queue: the thread that adds a completion must ring.
const ARMED: u32 = 2;

/// See the head of the file.
#[derive(Default)]
pub struct Ended {
    list: Mutex<Vec<End>>,
    /// ANY and ARMED.
    state: AtomicU32,
}

impl Ended {
    /// Adds completions. True: the caller must wake the progress thread.
    #[must_use = "the caller must ring"]
    pub fn put(&self, ends: &[End]) -> bool {
        let mut list = self.list.lock().unwrap_or_else(PoisonError::into_inner);
        list.extend(ends);
        // Under the lock: a take() between the two would empty the list, and ANY would then be set
        // for an empty list. Relaxed: the lock publishes the list.
        self.state.fetch_or(ANY, Ordering::Relaxed) & ARMED != 0
    }

    /// Takes all completions. `to` must be empty; the queue keeps its memory for later completions.
    pub fn take(&self, to: &mut Vec<End>) {
        if self.is_empty() {
            return;
        }
        let mut list = self.list.lock().unwrap_or_else(PoisonError::into_inner);
        // Under the lock: it must not clear the ANY of completions that a later put() adds.
        self.state.fetch_and(!ANY, Ordering::Relaxed);
        std::mem::swap(&mut *list, to);
    }

    /// Announces that nobody polls from now on. False: there are completions already.
    pub fn arm(&self) -> bool {
        self.state.fetch_or(ARMED, Ordering::Relaxed) & ANY == 0
    }

    /// Announces that the caller polls again.
    pub fn disarm(&self) {
        self.state.fetch_and(!ARMED, Ordering::Relaxed);
    }

    /// Whether the queue is empty. A hint: read without the lock.
    fn is_empty(&self) -> bool {
        self.state.load(Ordering::Relaxed) & ANY == 0
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

    /// A holder that finds the queue empty arms it and sleeps; in the end it has taken all
    /// completions. If arm() missed a completion and put() missed that the queue is armed, the
    /// model would deadlock.
    #[test]
    fn loom_no_end_is_slept_through() {
        loom::model(|| {
            let shared = Arc::new((Ended::default(), Bell::new()));
            let polls = shared.clone();
            let thread = thread::spawn(move || {
                for tag in 1..=2 {
                    if polls.0.put(&[end(tag)]) {
                        polls.1.ring();
                    }
                }
            });
            let (mut seen, mut ends) = (Vec::new(), Vec::new());
            while seen.len() < 2 {
                let ticket = shared.1.ticket();
                if shared.0.arm() {
                    shared.1.wait(ticket, None);
                }
                shared.0.disarm();
                shared.0.take(&mut ends);
                seen.extend(ends.drain(..).map(|end| end.tag));
            }
            assert_eq!(seen, [1, 2]);
            thread.join().unwrap();
            shared.0.take(&mut ends);
            assert!(shared.0.is_empty() && ends.is_empty());
        });
    }
}
