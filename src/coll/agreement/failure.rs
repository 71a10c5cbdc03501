//! The words on a rank's board that say which exchanges have failed: why, and up to which one.
//!
//! Only the owner of the board writes the words, each time with a larger number. The ranks that
//! write on the board read them while they wait, and write them on their own boards (`board`).

use crate::util::sync::{AtomicU64, Ordering};

/// The number for a failure of all exchanges, also later ones. The owner takes part in none any
/// more.
pub const FOR_GOOD: u64 = u64::MAX;

/// The two words, in the order in which they lie on a board: the reason, and the number of the last
/// failed exchange. 0: none has failed.
#[derive(Clone, Copy)]
pub struct Failed<'a>(&'a [AtomicU64; 2]);

impl<'a> Failed<'a> {
    /// The words at `place`.
    ///
    /// # Safety
    /// `place` is aligned and has two words, which every thread uses only as these as long as it
    /// lives.
    pub unsafe fn at(place: *mut u8) -> Failed<'a> {
        // SAFETY: as the caller promises; any bytes are valid words.
        Failed(unsafe { &*place.cast() })
    }

    /// Stores number and reason. Only for the owner of the board.
    pub fn say(self, number: u64, why: u64) {
        self.0[0].store(why, Ordering::Relaxed);
        // Release: a rank that sees the number sees this reason or a later one; pairs with get().
        self.0[1].store(number, Ordering::Release);
    }

    /// The number of the last failed exchange, and its reason or that of a later failure.
    pub fn get(self) -> (u64, u64) {
        // Acquire: pairs with say().
        let number = self.0[1].load(Ordering::Acquire);
        (number, self.0[0].load(Ordering::Relaxed))
    }
}

#[cfg(all(test, loom))]
mod models {
    use super::*;
    use loom::sync::Arc;
    use loom::thread;

    /// One rank fails in an exchange and then for good. A second rank reads that and writes it on
    /// its own board, where a third rank reads. A rank that sees a number must see its reason, and
    /// must never see a smaller number afterwards.
    #[test]
    fn loom_a_failure_that_is_heard_has_a_reason() {
        const SAID: [(u64, u64); 2] = [(1, 11), (FOR_GOOD, 12)];
        let looks = |board: Failed<'_>, before: u64| {
            let (number, why) = board.get();
            assert!(number >= before);
            let said = SAID.iter().position(|(said, _)| *said == number);
            assert_eq!(said.is_none(), number == 0);
            // A later reason may have overwritten it; an earlier one must not be seen.
            assert!(said.is_none_or(|said| SAID[said..].iter().any(|(_, reason)| *reason == why)));
            (number, why)
        };
        let mut bounded = loom::model::Builder::new();
        bounded.preemption_bound = Some(3);
        bounded.check(move || {
            let boards = Arc::new([(); 2].map(|()| [0, 0].map(AtomicU64::new)));
            let (first, second) = (boards.clone(), boards.clone());
            let fails = thread::spawn(move || {
                SAID.iter().for_each(|(number, why)| Failed(&first[0]).say(*number, *why));
            });
            let relays = thread::spawn(move || {
                let mut before = 0;
                for _ in 0..2 {
                    let (number, why) = looks(Failed(&second[0]), before);
                    if number > before {
                        Failed(&second[1]).say(number, why);
                    }
                    before = number;
                }
            });
            let (number, _) = looks(Failed(&boards[1]), 0);
            looks(Failed(&boards[1]), number);
            fails.join().unwrap();
            relays.join().unwrap();
        });
    }
}
