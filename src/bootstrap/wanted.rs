//! The ranks whose cards this rank wants. Any thread adds ranks; the listening thread, which reads
//! the hub's packets, takes them.
//!
//! A request never waits, takes no lock and allocates nothing, so a try function may make one
//! wherever it is called, with the lane's role held or inside a signal handler.

use crate::util::sync::{AtomicU64, Ordering};

const BITS: u32 = 64;

/// Two bits for each rank.
pub struct Wanted {
    /// A bit by rank: its card was asked for and has not arrived.
    asked: Box<[AtomicU64]>,
    /// A bit by rank: its card was asked for, and the request was not sent to the hub yet.
    new: Box<[AtomicU64]>,
}

impl Wanted {
    /// No card is asked for.
    pub fn new(size: u32) -> Wanted {
        let words = || (0..size.div_ceil(BITS)).map(|_| AtomicU64::new(0)).collect();
        Wanted { asked: words(), new: words() }
    }

    /// Asks for a card. True: the listening thread must be woken. False: it was asked for before.
    pub fn ask(&self, peer: u32) -> bool {
        let (word, bit) = (peer as usize / BITS as usize, 1 << (peer % BITS));
        // Relaxed: a thread that finds the bit set relies only on the thread that set it, which
        // wakes the listening thread. Acquire: pairs with answered(), so a thread that sets the bit
        // again does so after the answer. Its bit in `new` then follows the take() of the bit
        // before, and is not taken with that one.
        let asked = &self.asked[word];
        if asked.load(Ordering::Relaxed) & bit != 0
            || asked.fetch_or(bit, Ordering::Acquire) & bit != 0
        {
            return false;
        }
        // Release: follows the bit in `asked`; pairs with take().
        self.new[word].fetch_or(bit, Ordering::Release);
        true
    }

    /// Takes the ranks that were not reported to the hub yet. Only the listening thread calls this,
    /// after it has cleared its wake-up descriptor.
    pub fn take(&self, into: &mut Vec<u32>) {
        for (at, word) in (0..).zip(&self.new) {
            // Acquire: pairs with ask(), so that answered() follows the setting of the bit that it
            // clears.
            let mut bits = match word.load(Ordering::Relaxed) {
                0 => 0,
                _ => word.swap(0, Ordering::Acquire),
            };
            while bits != 0 {
                into.push(at * BITS + bits.trailing_zeros());
                bits &= bits - 1;
            }
        }
    }

    /// Names the ranks whose cards were asked for and have not come.
    pub fn pending(&self, mut f: impl FnMut(u32)) {
        for (at, word) in (0..).zip(&self.asked) {
            let bits = word.load(Ordering::Relaxed);
            (0..BITS).filter(|bit| bits >> bit & 1 == 1).for_each(|bit| f(at * BITS + bit));
        }
    }

    /// A card has arrived, or an error in its place: the next ask() asks again. Only the listening
    /// thread calls this, before it passes the card on.
    pub fn answered(&self, peer: u32) {
        // Release: pairs with the Acquire in ask().
        self.asked[(peer / BITS) as usize].fetch_and(!(1 << (peer % BITS)), Ordering::Release);
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn each_rank_is_taken_once_until_it_was_answered() {
        let wanted = Wanted::new(130);
        let take = || {
            let mut taken = Vec::new();
            wanted.take(&mut taken);
            taken
        };
        assert!(wanted.ask(129) && wanted.ask(0) && wanted.ask(64));
        assert!(!wanted.ask(64));
        assert_eq!(take(), [0, 64, 129]);
        assert!(!wanted.ask(64) && take().is_empty());
        wanted.answered(64);
        assert!(wanted.ask(64));
        assert_eq!(take(), [64]);
    }
}

/// The listening thread sleeps while nothing rings; a thread that asks rings when ask() says so.
#[cfg(all(test, loom))]
mod models {
    use super::*;
    use loom::sync::Arc;
    use loom::sync::atomic::AtomicBool;
    use loom::thread;

    #[test]
    fn loom_what_is_asked_for_is_taken_though_the_listener_answers_at_the_same_time() {
        loom::model(|| {
            let wanted = Arc::new(Wanted::new(2));
            let rung = Arc::new(AtomicBool::new(false));
            let askers: Vec<_> = [1, 1]
                .map(|peer| {
                    let (wanted, rung) = (wanted.clone(), rung.clone());
                    thread::spawn(move || {
                        if wanted.ask(peer) {
                            // One step, as the write to an eventfd is.
                            rung.swap(true, Ordering::AcqRel);
                        }
                    })
                })
                .into_iter()
                .collect();
            // One turn of the listening thread: the bell first, then the bits.
            let mut taken = Vec::new();
            if rung.swap(false, Ordering::Acquire) {
                wanted.take(&mut taken);
                assert_eq!(taken, [1]);
                wanted.answered(1);
            }
            for asker in askers {
                asker.join().unwrap();
            }
            // A request that came later has rung, so the next take() must find it.
            if rung.load(Ordering::Acquire) {
                taken.clear();
                wanted.take(&mut taken);
                assert_eq!(taken, [1]);
            } else {
                assert_eq!(taken, [1]);
            }
        });
    }
}
