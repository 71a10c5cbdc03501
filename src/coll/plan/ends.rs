//! How the rounds of a plan end at one rank: first somebody takes it on himself (`closed`), then the round has ended (`ended`).
//! Both are numbers of rounds, and neither goes back: a round is ended by who has taken it, or, of a plain plan, by nobody but the
//! thread that starts and waits.

use std::sync::atomic::{AtomicU32, Ordering};

/// The two numbers.
#[derive(Default)]
pub struct Ends {
    closed: AtomicU32,
    ended: AtomicU32,
}

impl Ends {
    /// Whether somebody has taken it on himself to end this round, the last one that was started.
    #[inline(always)]
    pub fn is_closed(&self, round: u32) -> bool {
        // Acquire: pairs with take(); what was done for the round before is seen.
        self.closed.load(Ordering::Acquire) == round
    }

    /// Whether this round has ended, or a later one.
    #[inline(always)]
    pub fn has_ended(&self, round: u32) -> bool {
        // Acquire: pairs with end().
        self.ended.load(Ordering::Acquire).wrapping_sub(round) as i32 >= 0
    }

    /// True: the caller, and nobody else, is to end this round, by end().
    pub fn take(&self, round: u32) -> bool {
        let before = round.wrapping_sub(1);
        let (ok, bad) = (Ordering::AcqRel, Ordering::Relaxed);
        self.closed.compare_exchange(before, round, ok, bad).is_ok()
    }

    /// The round that the caller has taken has ended.
    #[inline]
    pub fn end(&self, round: u32) {
        // Release: what the round did is seen by whoever sees that it has ended.
        self.ended.store(round, Ordering::Release);
    }

    /// The same for the thread that starts and waits, of a plan whose rounds nobody else ends: nothing need be taken.
    #[inline(always)]
    pub fn end_own(&self, round: u32) {
        self.closed.store(round, Ordering::Relaxed);
        self.end(round);
    }
}
