//! How a round of a plan ends at one rank. A thread takes the round (`closed`), reports its end to
//! the user, and then stores that it has ended (`ended`). Both words hold numbers of rounds. They
//! are in the session, because the thread that has run the last step may belong to another rank.
//! That thread changes the word of a STORE or ADD completion, which all ranks map.
//!
//! - A thread that has counted a queue as finished executes a full fence and then reads the counts
//!   of the rank's other queues. So the thread that counts the last queue sees that all have
//!   finished.
//! - Several threads may see that. Only the thread whose compare-and-swap changes `closed` reports
//!   to the user. `closed` holds the number of the round, so the compare-and-swap of a thread that
//!   comes late, during a later round, fails.
//! - A callback may start the next round, so the thread stores `ended` before it calls. A
//!   completion word is changed before `ended` is stored, and wait and test return after that. So
//!   no late store follows if the user sets the word back after wait or test. A program that has
//!   seen the word may start the next round at once, because the start reads `closed` only. Two
//!   threads may then store `ended` for two rounds at the same time, so the store keeps the larger
//!   number.
//! - `closed` also has the rank that has taken the round. If that rank dies before the round has
//!   ended, the owner takes the round over and reports the death. The owner cannot find out whether
//!   the dead rank had changed the word, so the user may get the completion of a round twice.

use crate::coll::runner::queue::full_fence;
use crate::util::sync::{AtomicU32, AtomicU64, Ordering};

#[cfg(all(test, loom))]
mod models;

/// The two words, in one line of the session. All zero: no round has ended.
#[repr(C, align(64))]
#[derive(Debug, Default)]
pub struct RoundEnd {
    /// Bits 0-31: the round. Bits 32-47: the rank that has taken it plus 1, or 0 where only the
    /// owner ends rounds.
    closed: AtomicU64,
    ended: AtomicU32,
}

const CLOSER_SHIFT: u32 = 32;

fn taken(round: u32, me: usize) -> u64 {
    u64::from(round) | (me as u64 + 1) << CLOSER_SHIFT
}

impl RoundEnd {
    /// Whether a thread has taken `round`, the last round that was started.
    #[inline(always)]
    pub fn is_closed(&self, round: u32) -> bool {
        // Acquire: pairs with take(); the caller sees the effects of the round before.
        self.closed.load(Ordering::Acquire) as u32 == round
    }

    /// The rank that has taken this round, if it is recorded.
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

    /// Takes this round. True: the caller, a thread of rank `me`, must end it by end(), and no
    /// other thread does.
    pub fn take(&self, round: u32, me: usize) -> bool {
        let seen = self.closed.load(Ordering::Relaxed);
        // AcqRel: a thread that starts the next round after reading only `closed` sees the effects
        // of this round; see is_closed().
        let (ok, bad) = (Ordering::AcqRel, Ordering::Relaxed);
        seen as u32 == round.wrapping_sub(1)
            && self.closed.compare_exchange(seen, taken(round, me), ok, bad).is_ok()
    }

    /// Like `take`, for a round that rank `dead` has taken and cannot end.
    pub fn take_over(&self, round: u32, dead: usize, me: usize) -> bool {
        let (ok, bad) = (Ordering::AcqRel, Ordering::Relaxed);
        let (before, after) = (taken(round, dead), taken(round, me));
        !self.has_ended(round) && self.closed.compare_exchange(before, after, ok, bad).is_ok()
    }

    /// The caller has ended the round that it took. Other threads may have ended later rounds
    /// meanwhile.
    pub fn end(&self, round: u32) {
        let later = |ended: u32| ((ended.wrapping_sub(round) as i32) < 0).then_some(round);
        // Release: a thread that sees that the round has ended sees its effects and the changed
        // completion word.
        let _ = self.ended.fetch_update(Ordering::Release, Ordering::Relaxed, later);
    }

    /// Like `end`, for the thread that starts and waits for a plan whose rounds no other thread
    /// ends; take() is not needed.
    #[inline(always)]
    pub fn end_own(&self, round: u32) {
        self.closed.store(round.into(), Ordering::Relaxed);
        // Release: as in end().
        self.ended.store(round, Ordering::Release);
    }

    /// A thread of rank `me` calls this after it has counted a queue as finished. Ends the round,
    /// if all queues have finished and no other thread has taken it. `finished`: the counts of the
    /// queues that have steps. `report`: changes the user's word.
    pub fn end_if_last(
        &self,
        (round, me): (u32, usize),
        mut finished: impl Iterator<Item = u32>,
        report: impl FnOnce(),
    ) {
        full_fence();
        if finished.all(|finished| finished == round) && self.take(round, me) {
            report();
            self.end(round);
        }
    }
}
