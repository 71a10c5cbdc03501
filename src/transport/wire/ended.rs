//! Ends of what this rank has posted, on their way from the thread that polls the wire to the
//! holder of the lane's role. A holder that gives the role up while the progress thread sleeps arms
//! this; who puts ends in then rings. Both are changes of one word, so they have an order: either
//! arming sees the ends, or whoever puts them in sees that it was armed.

use crate::util::status::Status;
use crate::util::sync::{AtomicU32, Mutex, Ordering};
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

/// There are ends.
const ANY: u32 = 1;
/// Nobody looks for them: whoever puts some in rings.
const ARMED: u32 = 2;

/// See the head of the file.
#[derive(Default)]
pub struct Ended {
    list: Mutex<Vec<End>>,
    /// ANY and ARMED.
    state: AtomicU32,
}

impl Ended {
    /// Puts ends in. True: the caller must ring.
    #[must_use = "the caller must ring"]
    pub fn put(&self, ends: &[End]) -> bool {
        let mut list = self.list.lock().unwrap_or_else(PoisonError::into_inner);
        list.extend(ends);
        // Under the lock, so that it is not set behind a take() that has found them. The list
        // itself is the lock's, so the order of this word with others does not matter.
        self.state.fetch_or(ANY, Ordering::Relaxed) & ARMED != 0
    }

    /// Takes out what is there, into an empty list, whose memory the next ends get.
    pub fn take(&self, to: &mut Vec<End>) {
        if self.is_empty() {
            return;
        }
        let mut list = self.list.lock().unwrap_or_else(PoisonError::into_inner);
        // Under the lock, so that it says nothing of what is put in behind it.
        self.state.fetch_and(!ANY, Ordering::Relaxed);
        std::mem::swap(&mut *list, to);
    }

    /// Nobody looks from now on. False: there are ends.
    pub fn arm(&self) -> bool {
        self.state.fetch_or(ARMED, Ordering::Relaxed) & ANY == 0
    }

    /// Somebody looks again.
    pub fn disarm(&self) {
        self.state.fetch_and(!ARMED, Ordering::Relaxed);
    }

    /// Whether nothing is there, as far as a look without the lock tells.
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

    /// A holder that finds nothing arms and sleeps, and takes all that was put in. Where arming
    /// does not see what is there, or put() does not see that it was armed, the model ends in a
    /// deadlock.
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
