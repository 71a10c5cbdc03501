//! How the rounds of a plan end at one rank: first a thread takes the round (`closed`), then that
//! thread tells the user, then the round has ended (`ended`). Both are numbers of rounds. They lie
//! in the session, because the thread that has run the last step may belong to another rank than
//! the owner, and changes the word of a STORE or ADD completion that all ranks map.
//!
//! - A thread that has counted a queue as finished looks at the other queues of the rank; between
//!   the two lies a full fence. So the thread that counts the last queue sees that all have
//!   finished.
//! - Several threads may see that. Only the thread whose compare-and-swap moves `closed` tells the
//!   user. The number in `closed` is the round, so a thread that comes late, in the midst of a
//!   later round, moves nothing.
//! - A callback finds the round ended, and may start the next one: the thread stores `ended` before
//!   the call. It changes a word before it stores `ended`, and wait and test return after that: so
//!   no late store meets a word that its user has set back. A program that has seen the word may
//!   start the next round at once; the start looks at `closed` only. Two threads may then store
//!   `ended` for two rounds at the same time, so the store keeps the larger number.
//! - `closed` also has the rank that has taken the round. If that dies before the round has ended,
//!   the owner takes it over and tells the user of the death. Nobody knows whether the dead rank
//!   had changed the word, so the user may be told twice then.

use crate::coll::runner::queue::between_word_and_look;
use crate::util::sync::{AtomicU32, AtomicU64, Ordering};

#[cfg(all(test, loom))]
mod models;

/// The two numbers; a line of the session. All zero: no round has ended.
#[repr(C, align(64))]
#[derive(Debug, Default)]
pub struct RoundEnd {
    /// Bits 0-31 the round, bits 32-47 the rank that has taken it plus 1, or 0 for the owner where
    /// nobody else ends rounds.
    closed: AtomicU64,
    ended: AtomicU32,
}

const CLOSER_SHIFT: u32 = 32;

fn taken(round: u32, me: usize) -> u64 {
    u64::from(round) | (me as u64 + 1) << CLOSER_SHIFT
}

impl RoundEnd {
    /// Whether somebody has taken it on himself to end this round, the last one that was started.
    #[inline(always)]
    pub fn is_closed(&self, round: u32) -> bool {
        // Acquire: pairs with take(); what was done for the round before is seen.
        self.closed.load(Ordering::Acquire) as u32 == round
    }

    /// The rank that has taken this round.
    pub fn closer(&self, round: u32) -> Option<usize> {
        let closed = self.closed.load(Ordering::Acquire);
        let rank = (closed >> CLOSER_SHIFT) as usize;
        rank.checked_sub(1).filter(|_| closed as u32 == round)
    }

    /// Whether this round has ended, or a later one.
    #[inline(always)]
    pub fn has_ended(&self, round: u32) -> bool {
        // Acquire: pairs with end() and end_own().
        self.ended.load(Ordering::Acquire).wrapping_sub(round) as i32 >= 0
    }

    /// True: the caller, rank `me`, and nobody else, is to end this round, by end().
    pub fn take(&self, round: u32, me: usize) -> bool {
        let seen = self.closed.load(Ordering::Relaxed);
        // AcqRel: a thread that starts the next round, having seen only this, sees what the round
        // did; see is_closed().
        let (ok, bad) = (Ordering::AcqRel, Ordering::Relaxed);
        seen as u32 == round.wrapping_sub(1)
            && self.closed.compare_exchange(seen, taken(round, me), ok, bad).is_ok()
    }

    /// Like `take`, for a round that rank `dead` has taken and will not end.
    pub fn take_over(&self, round: u32, dead: usize, me: usize) -> bool {
        let (ok, bad) = (Ordering::AcqRel, Ordering::Relaxed);
        let (before, after) = (taken(round, dead), taken(round, me));
        !self.has_ended(round) && self.closed.compare_exchange(before, after, ok, bad).is_ok()
    }

    /// The round that the caller has taken has ended. Others may have ended later rounds meanwhile.
    pub fn end(&self, round: u32) {
        let later = |ended: u32| ((ended.wrapping_sub(round) as i32) < 0).then_some(round);
        // Release: what the round did, and a word that was changed, is seen by every thread that
        // sees that it has ended.
        let _ = self.ended.fetch_update(Ordering::Release, Ordering::Relaxed, later);
    }

    /// Like `end`, for the thread that starts and waits, of a plan whose rounds nobody else ends:
    /// nothing need be taken.
    #[inline(always)]
    pub fn end_own(&self, round: u32) {
        self.closed.store(round.into(), Ordering::Relaxed);
        // Release: as in end().
        self.ended.store(round, Ordering::Release);
    }

    /// For rank `me`, which has counted one of the queues as finished: ends the round, if that was
    /// the last one and nobody else does. `finished`: the counts of the queues that have steps.
    /// `report`: changes the user's word.
    pub fn end_if_last(
        &self,
        (round, me): (u32, usize),
        mut finished: impl Iterator<Item = u32>,
        report: impl FnOnce(),
    ) {
        between_word_and_look();
        if finished.all(|finished| finished == round) && self.take(round, me) {
            report();
            self.end(round);
        }
    }
}
