//! How the threads of a process wait for credit of a peer, and how the processes that wait take
//! turns: while senders of other processes sleep, a process may send SHARE messages, and then
//! sleeps behind them. The threads of one process take turns by `util::admission`, which counts the
//! shares of processes, too.

use super::MessageSender;
use crate::util::admission::{Refusal, SHARE, after_one, look};
use crate::util::backoff::{core_is_shared, yield_core};
use std::sync::atomic::Ordering;
use std::time::Duration;

#[cfg(all(test, not(loom)))]
mod tests;

/// Number of turns that a process can save up.
const MOST_TURNS: i32 = 4;
/// Attempts after the looks of `util::admission`, each after a yield, since the peer's receiver may
/// need this core.
const YIELDS: usize = 2;

/// The result of watch().
pub enum Watched<T> {
    /// `attempt` has succeeded.
    Accepted(T),
    /// There may be credit now.
    Over,
    /// Another thread of this process watches: wait in `room`.
    ByAnother,
}

impl MessageSender<'_> {
    /// Waits for credit on behalf of this process. First it repeats `attempt`, except on a shared
    /// core; then it yields and tries again; then it sleeps until the peer has freed slots, for
    /// `longest` at most.
    pub fn watch<T>(
        &self,
        longest: Duration,
        attempt: impl Fn() -> Option<T>,
        before_sleep: impl FnOnce(),
    ) -> Watched<T> {
        if self.watched.swap(true, Ordering::Acquire) {
            return Watched::ByAnother;
        }
        let over = self.is_over();
        let yielding = || {
            (0..YIELDS).find_map(|_| {
                yield_core();
                attempt()
            })
        };
        // On a shared core the receiver frees no slot while this thread looks.
        let looking = || if core_is_shared() { None } else { look(&attempt) };
        let end = if over { None } else { looking().or_else(yielding) };
        if end.is_none() {
            before_sleep();
            self.message_area
                .head
                .credit
                .wait(self.me, longest, over, || !over && self.requests_have_credit(false));
            // A new turn, in addition to what is left of the last one.
            let left = self.left.load(Ordering::Relaxed).max(0) + SHARE;
            self.left.store(left.min(MOST_TURNS * SHARE), Ordering::Relaxed);
        }
        self.watched.store(false, Ordering::Release);
        end.map_or(Watched::Over, Watched::Accepted)
    }

    /// Asks the peer to ring this rank's handler threads when slots for responses are free; see
    /// `message_area::WakeRequests`.
    pub fn ask_wake_for_responses(&self) {
        self.message_area.head.response_wakes.add(self.me);
    }

    /// Asks the peer to ring this rank's progress thread when slots for requests are free.
    pub fn ask_wake_for_requests(&self) {
        self.message_area.head.request_wakes.add(self.me);
    }

    /// Asks the peer to ring this rank's progress thread when slots for requests to the owner are
    /// free.
    pub fn ask_wake_for_owner(&self) {
        self.message_area.head.owner_wakes.add(self.me);
    }

    /// Whether the calling thread may send a message now. If the message then finds no slot, call
    /// give_turn_back(). `is_last`: the call of the program has no other way to send the message,
    /// so a refusal counts.
    #[inline(always)]
    pub fn admits(&self, is_last: bool) -> bool {
        let sleepers = self.message_area.head.credit.sleepers();
        // Both counts are combined so that one branch suffices.
        let waiting = u64::from(self.room.waiting()) | sleepers;
        // While threads of this process alone wait, a thread in its turn takes few steps: the call
        // of has_turn() takes half as many instructions as the sending of a short message.
        waiting == 0 || sleepers == 0 && self.room.admits_in_share() || self.has_turn(is_last)
    }

    /// The rest of admits(), while threads of this process or of others wait.
    #[inline(never)]
    fn has_turn(&self, is_last: bool) -> bool {
        let refusal = if is_last { Refusal::Renews } else { Refusal::Free };
        if !self.room.admits(refusal) {
            return false;
        }
        let has_turn = !self.others_wait() || self.spend(refusal);
        if !has_turn {
            self.room.give_back();
        }
        has_turn
    }

    /// The message that admits() has admitted has found no slot: it does not count.
    #[cold]
    pub fn give_turn_back(&self) {
        self.room.give_back();
        if self.others_wait() {
            // Others may have begun to wait since admits(), which then has taken nothing.
            let left = self.left.load(Ordering::Relaxed) + 1;
            self.left.store(left.min(MOST_TURNS * SHARE), Ordering::Relaxed);
        }
    }

    /// Whether senders of other processes sleep: more senders than the one of this process.
    fn others_wait(&self) -> bool {
        self.message_area.head.credit.sleepers() > u64::from(self.watched.load(Ordering::Relaxed))
    }

    /// Takes one message of the process's turn; false: the turn is over.
    fn spend(&self, refusal: Refusal) -> bool {
        let left = self.left.load(Ordering::Relaxed);
        // A process that only calls try functions gets a new turn after some refusals; but not
        // while one of its threads sleeps for credit, which gets the turn.
        let refusal = match refusal {
            Refusal::Renews if self.watched.load(Ordering::Relaxed) => Refusal::Counts,
            refusal => refusal,
        };
        self.left.store(after_one(left, refusal), Ordering::Relaxed);
        left > 0
    }

    /// Whether the process's turn is over, and senders sleep.
    fn is_over(&self) -> bool {
        self.left.load(Ordering::Relaxed) < 0 && self.message_area.head.credit.is_wanted()
    }
}
