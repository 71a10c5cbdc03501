//! What a rank says on its own board of exchanges that have failed: why, and up to which one.
//!
//! The owner of the board writes the two words, each time with a larger number. The ranks that
//! write on the board read them while they wait, and say the same on theirs (`board`).

use crate::util::sync::{AtomicU64, Ordering};

/// All exchanges: the owner takes part no more.
pub const FOR_GOOD: u64 = u64::MAX;

/// The two words, in the order in which they lie on a board: why, and up to which exchange. Number
/// 0: none has failed.
#[derive(Clone, Copy)]
pub struct Failed<'a>(&'a [AtomicU64; 2]);

impl<'a> Failed<'a> {
    /// The words that begin here.
    ///
    /// # Safety
    /// `place` is aligned to words and has two of them, which everybody uses as this as long as it
    /// lives.
    pub unsafe fn at(place: *mut u8) -> Failed<'a> {
        // SAFETY: as the caller promises; any bytes are valid words.
        Failed(unsafe { &*place.cast() })
    }

    /// Says it. By the owner of the board alone.
    pub fn say(self, number: u64, why: u64) {
        self.0[0].store(why, Ordering::Relaxed);
        // Release: a rank that sees the number sees this reason or a later one; pairs with the
        // Acquire in get().
        self.0[1].store(number, Ordering::Release);
    }

    /// Up to which exchange all have failed, and why: the reason of that one, or of a later one.
    pub fn get(self) -> (u64, u64) {
        // Acquire: pairs with the Release in say().
        let number = self.0[1].load(Ordering::Acquire);
        (number, self.0[0].load(Ordering::Relaxed))
    }
}

#[cfg(all(test, loom))]
mod models {
    use super::*;
    use loom::sync::Arc;
    use loom::thread;

    /// One rank fails in an exchange and then for good; a second one sees that on the first one's
    /// board and says it on its own, where a third one looks. A rank that sees a number sees why,
    /// and a number is never followed by a smaller one.
    #[test]
    fn loom_a_failure_that_is_heard_has_a_reason() {
        const SAID: [(u64, u64); 2] = [(1, 11), (FOR_GOOD, 12)];
        let looks = |board: Failed<'_>, before: u64| {
            let (number, why) = board.get();
            assert!(number >= before);
            let said = SAID.iter().position(|(said, _)| *said == number);
            assert_eq!(said.is_none(), number == 0);
            // A later one may have overwritten it, an earlier one must not be seen.
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
