//! How a thread waits for something that another thread will do.
//!
//! A sleep costs some 40 us to end, so it is the last resort; but a thread that spins on the core
//! that the other one needs makes both late. So: a short time of pauses, then every further look
//! gives the core away first. With nobody else to run, that costs a fifth of a microsecond.

use std::time::{Duration, Instant};

/// How long looks are taken with nothing but a pause in between. A time and not a number of looks:
/// some callers look once, others for a microsecond.
const PAUSES: Duration = Duration::from_micros(1);
/// Looks before the clock is read.
const UNTIMED: u32 = 2;

/// One wait: call [`Backoff::pause`] between two looks.
#[derive(Debug)]
pub struct Backoff {
    looks: u32,
    since: Option<Instant>,
    budget: Duration,
}

impl Backoff {
    /// A wait that may stay awake for `budget`.
    pub fn new(budget: Duration) -> Backoff {
        Backoff { looks: 0, since: None, budget }
    }

    /// Passes a moment. False: the budget is used up and the caller should sleep.
    #[inline]
    pub fn pause(&mut self) -> bool {
        if self.may_keep_core() {
            std::hint::spin_loop();
            return true;
        }
        self.give_way()
    }

    /// Whether the wait is so young that the thread need not give its core away.
    #[inline]
    fn may_keep_core(&mut self) -> bool {
        self.looks = self.looks.saturating_add(1);
        self.looks < UNTIMED || self.awake() < PAUSES.min(self.budget)
    }

    fn awake(&mut self) -> Duration {
        self.since.get_or_insert_with(Instant::now).elapsed()
    }

    #[cold]
    fn give_way(&mut self) -> bool {
        std::thread::yield_now();
        self.awake() < self.budget
    }

    /// Something happened: the wait begins anew.
    #[inline]
    pub fn renew(&mut self) {
        self.looks = 0;
        self.since = None;
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

    /// 40 looks of a microsecond each, before the core was given away for the first time, kept
    /// ranks that shared it waiting for as long.
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
