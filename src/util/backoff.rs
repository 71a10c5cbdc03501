//! How a thread waits for something that another thread will do.
//!
//! To wake from a sleep takes some 40 us, so a thread sleeps only at the end of its wait. But a
//! thread that spins on the core that the other thread needs delays both. So the thread first spins
//! for a short time, and then yields its core before every further look. If no other thread wants
//! to run, a yield takes .2 to .7 us, as long as several looks. The thread then spins for `UNUSED`
//! before its next yield.
//!
//! The length of the first spin depends on the thread's last yield, see `keep_after`.

use std::cell::Cell;
use std::time::{Duration, Instant};

/// How long a thread spins, with a pause between two looks. It is a time and not a number of looks,
/// because the looks of some callers take as long as a microsecond.
const PAUSES: Duration = Duration::from_micros(1);
/// As PAUSES, if a yield costs the thread a time slice of the scheduler.
const LONG_PAUSES: Duration = Duration::from_micros(50);
/// How long a thread spins after a yield that no other thread has used.
const UNUSED: Duration = Duration::from_micros(5);
/// The length of a yield above which a thread ran meanwhile that does not yield itself.
const TURN: Duration = Duration::from_micros(500);
/// The length of a look that was work: within a poll, MPI copies whole messages. In a wait of
/// `for_polls` the thread yields once, and the wait begins anew, since more such work probably
/// follows. Several polls that find nothing take less.
const WORK: Duration = Duration::from_micros(250);
/// Looks before the clock is read.
const UNTIMED: u32 = 2;

thread_local! {
    static KEEP: Cell<Duration> = const { Cell::new(PAUSES) };
}

/// How long the thread spins at the beginning of its next wait, if its last yield has taken
/// `last_yield`. If no other thread ran: a microsecond. If threads ran that yielded soon, such as
/// waiting ranks on the same core: no time, since to spin would only delay them. If a thread ran
/// that computes: so long that another yield is often avoided, since it costs a time slice.
fn keep_after(last_yield: Duration) -> Duration {
    match last_yield {
        took if took < PAUSES => PAUSES,
        took if took < TURN => Duration::ZERO,
        _ => LONG_PAUSES,
    }
}

/// Whether the thread shares its core with others that yield. Its looks should then be short.
#[inline]
pub fn core_is_shared() -> bool {
    KEEP.get().is_zero()
}

/// Yields the core and notes whether other threads use it, for core_is_shared(). Returns how long
/// the yield took.
pub fn yield_core() -> Duration {
    let before = Instant::now();
    std::thread::yield_now();
    let took = before.elapsed();
    KEEP.set(keep_after(took));
    took
}

/// Makes the calling thread share its core, as its last yields would tell it, or not.
#[cfg(test)]
pub fn share_core(shared: bool) {
    KEEP.set(if shared { Duration::ZERO } else { PAUSES });
}

/// How often a thread that polls a wire looks in a row: to read the clock and to hand a role over
/// take as long as a look. On a shared core only once.
pub fn looks() -> u32 {
    if core_is_shared() { 1 } else { 4 }
}

/// One wait: call [`Backoff::pause`] between two looks.
#[derive(Debug)]
pub struct Backoff {
    looks: u32,
    since: Option<Instant>,
    /// When the last look began, counted from `since`. MAX: the caller has slept.
    last: Duration,
    /// A look of this length was work.
    work: Duration,
    /// The end of the last yield, counted from `since`, if no other thread has used it.
    unused: Option<Duration>,
    /// See expect_more().
    expects_more: bool,
    budget: Duration,
}

impl Backoff {
    /// A wait that stays awake for at most `budget`.
    pub fn new(budget: Duration) -> Backoff {
        let (last, work) = (Duration::ZERO, Duration::MAX);
        Backoff { looks: 0, since: None, last, work, unused: None, expects_more: false, budget }
    }

    /// Like `new`, where looks may be work; see WORK.
    pub fn for_polls(budget: Duration) -> Backoff {
        Backoff { work: WORK, ..Backoff::new(budget) }
    }

    /// Pauses or yields. False: the budget is used up and the caller should sleep.
    #[inline]
    pub fn pause(&mut self) -> bool {
        if self.may_keep_core() {
            std::hint::spin_loop();
            return true;
        }
        self.give_way()
    }

    /// Whether the thread should spin now and not yield.
    #[inline]
    fn may_keep_core(&mut self) -> bool {
        self.looks = self.looks.saturating_add(1);
        if core_is_shared() && !self.expects_more {
            return false;
        }
        let (from, keep) = match self.unused {
            None if self.expects_more => (Duration::ZERO, KEEP.get().max(PAUSES)),
            None => (Duration::ZERO, KEEP.get()),
            Some(end) => (end, UNUSED),
        };
        let most = keep.min(self.budget);
        self.looks < UNTIMED || self.awake().is_some_and(|now| now.saturating_sub(from) < most)
    }

    /// How long the wait has lasted. None: the last look was work, and the wait begins anew.
    fn awake(&mut self) -> Option<Duration> {
        let now = self.since.get_or_insert_with(Instant::now).elapsed();
        if now.saturating_sub(self.last) >= self.work {
            self.renew();
            return None;
        }
        self.last = now;
        Some(now)
    }

    #[cold]
    fn give_way(&mut self) -> bool {
        self.expects_more = false;
        let before = self.awake().unwrap_or_default();
        let took = yield_core();
        let after = before + took;
        self.unused = (took < PAUSES).then_some(after);
        let stays = after < self.budget;
        self.last = if stays { after } else { Duration::MAX };
        stays
    }

    /// The thread has found work: the wait begins anew.
    #[inline]
    pub fn renew(&mut self) {
        self.looks = 0;
        self.since = None;
        self.last = Duration::ZERO;
        self.unused = None;
        self.expects_more = false;
    }

    /// The thread's work lets other ranks send the next request at once. So the thread spins for
    /// `PAUSES` before its next yield, also if it shares its core. Two progress threads that share
    /// a core would otherwise switch twice for each request.
    pub fn expect_more(&mut self) {
        self.expects_more = true;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patience_ends_after_its_budget_and_begins_anew() {
        let mut backoff = Backoff::new(Duration::from_millis(2));
        for _ in 0..2 {
            let start = Instant::now();
            while backoff.pause() {}
            assert!(start.elapsed() >= Duration::from_millis(2));
            backoff.renew();
        }
    }

    /// A poll that copies a message takes longer than some waits last. A thread that fell asleep
    /// behind it would leave the next message to a thread that has to be woken.
    #[test]
    fn a_look_that_was_work_does_not_end_the_wait() {
        let wait_of = |mut backoff: Backoff| {
            KEEP.set(PAUSES);
            backoff.looks = UNTIMED;
            backoff.since = Some(Instant::now());
            std::thread::sleep(WORK);
            assert!(!backoff.may_keep_core(), "it spins behind the look");
            backoff.since
        };
        let budget = Duration::from_secs(1);
        assert_eq!(wait_of(Backoff::for_polls(budget)), None, "the wait goes on as it was");
        assert!(wait_of(Backoff::new(budget)).is_some(), "the looks of such a wait are no work");
    }

    /// A caller that slept since the wait was over, and was woken by nothing, sleeps again.
    #[test]
    fn a_sleep_of_the_caller_is_no_look() {
        let mut backoff = Backoff::for_polls(WORK);
        while backoff.pause() {}
        for _ in 0..3 {
            std::thread::sleep(2 * WORK);
            assert!(!backoff.pause(), "the wait begins anew");
        }
    }

    #[test]
    fn the_last_yield_says_how_long_the_core_is_kept() {
        let keeps = [1, 30, 1000].map(|us| keep_after(Duration::from_micros(us) - PAUSES / 2));
        assert_eq!(keeps, [PAUSES, Duration::ZERO, LONG_PAUSES]);
    }

    #[test]
    fn a_yield_that_nobody_used_is_not_repeated_at_once() {
        let mut backoff = Backoff::new(Duration::from_secs(1));
        backoff.looks = UNTIMED;
        KEEP.set(PAUSES);
        // The first calls load their code, which takes longer than UNUSED.
        assert!((0..1000).any(|_| {
            backoff.unused = backoff.awake();
            backoff.may_keep_core()
        }));
        std::thread::sleep(UNUSED);
        assert!(!backoff.may_keep_core());
        backoff.renew();
        assert_eq!(backoff.unused, None);
    }

    #[test]
    fn the_core_is_kept_where_more_is_expected() {
        let mut backoff = Backoff::new(Duration::from_secs(1));
        KEEP.set(Duration::ZERO);
        assert!(!backoff.may_keep_core());
        backoff.expect_more();
        assert!(backoff.may_keep_core());
        std::thread::sleep(PAUSES);
        backoff.looks = UNTIMED;
        assert!(!backoff.may_keep_core(), "for a short time only");
        backoff.give_way();
        assert!(!backoff.expects_more, "a yield ends it");
    }

    /// A former version looked 40 times before its first yield. With looks of a microsecond, ranks
    /// on the same core waited for 40 us.
    #[test]
    fn long_looks_soon_give_the_core_away() {
        let mut backoff = Backoff::new(Duration::from_secs(1));
        let mut kept = 0;
        while backoff.may_keep_core() {
            kept += 1;
            std::thread::sleep(PAUSES);
        }
        assert!(kept <= 2, "{kept} long looks kept the core");
    }
}
