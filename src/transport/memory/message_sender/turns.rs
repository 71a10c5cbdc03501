//! How a process waits for credit at a peer, and takes turns with others that do.

use super::MessageSender;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// Messages that a process may send while senders of other processes sleep.
pub(super) const TURN: i32 = 8192;
/// Turns that it can save up.
const MOST_TURNS: i32 = 4;
/// How often it is refused afterwards if it does not wait in the line.
const REFUSALS: i32 = 8;

/// What became of a watch for credit.
pub enum Watched<T> {
    /// The attempt succeeded.
    Accepted(T),
    /// There may be credit now.
    Over,
    /// Another thread of this process watches: wait in the room.
    ByAnother,
}

impl MessageSender<'_> {
    /// Waits for credit on behalf of this process: until `attempt` succeeds, for a moment; then
    /// asleep until the peer has freed slots, at most for `longest`.
    pub fn watch<T>(
        &self,
        longest: Duration,
        attempt: impl Fn() -> Option<T>,
        before_sleep: impl FnOnce(),
    ) -> Watched<T> {
        /// Looks before the sleep, and pauses between two: some microseconds in all.
        const LOOKS: usize = 16;
        const PAUSES: usize = 16;
        /// Looks after which the core was offered to others: the peer's receiver may need it. Not
        /// while others of this process wait for the one that watches.
        const YIELDS: usize = 2;
        if self.watched.swap(true, Ordering::Acquire) {
            return Watched::ByAnother;
        }
        let mut end = None;
        let over = self.is_over();
        let looks = match over {
            true => 0,
            false if self.room.is_wanted() => LOOKS,
            false => LOOKS + YIELDS,
        };
        for look in 0..looks {
            if look < LOOKS {
                (0..PAUSES).for_each(|_| std::hint::spin_loop());
            } else {
                std::thread::yield_now();
            }
            end = attempt();
            if end.is_some() {
                break;
            }
        }
        if end.is_none() {
            before_sleep();
            self.message_area
                .head
                .credit
                .wait(self.me, longest, over, || !over && self.requests_have_credit(false));
            // What it could not use of its last turn is not lost.
            let left = self.left.load(Ordering::Relaxed).max(0) + TURN;
            self.left.store(left.min(MOST_TURNS * TURN), Ordering::Relaxed);
        }
        self.watched.store(false, Ordering::Release);
        end.map_or(Watched::Over, Watched::Accepted)
    }

    /// This rank wants to be rung when slots for responses are free; see Wishes.
    pub fn wish_for_responses(&self) {
        self.message_area.head.wishes.note(self.me);
    }

    /// This rank's progress thread wants to be rung when slots for requests are free; likewise.
    pub fn wish_for_requests(&self) {
        self.message_area.head.request_wishes.note(self.me);
    }

    /// Whether the calling thread may send now: to be asked once for a message.
    #[inline(always)]
    pub fn admits(&self) -> bool {
        self.room.admits()
            && (!self.message_area.head.credit.is_wanted() || !self.others_sleep() || self.spend())
    }

    /// Whether other processes have senders that sleep: more than the one of this process.
    #[inline(never)]
    fn others_sleep(&self) -> bool {
        self.message_area.head.credit.sleepers() > u64::from(self.watched.load(Ordering::Relaxed))
    }

    /// Takes one message of the process's turn; false: nothing is left of it.
    #[inline(never)]
    fn spend(&self) -> bool {
        let left = self.left.load(Ordering::Relaxed) - 1;
        // A process that only tries is slowed down and not locked out; but where one of us waits in
        // the line, all do.
        let forgiven = left <= -REFUSALS && !self.watched.load(Ordering::Relaxed);
        self.left.store(if forgiven { TURN } else { left.max(-REFUSALS) }, Ordering::Relaxed);
        left >= 0
    }

    /// Whether the process has had its turn, and others wait for theirs.
    fn is_over(&self) -> bool {
        self.left.load(Ordering::Relaxed) < 0 && self.message_area.head.credit.is_wanted()
    }
}
