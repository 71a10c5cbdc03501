//! How a thread waits for something that another thread will do.
//!
//! A sleep costs some 40 us to end, so it is the last resort; but a thread that spins on the core
//! that the other one needs makes both late. So: a short burst of pauses, then every further look
//! gives the core away first. With nobody else to run, that costs a fifth of a microsecond.

use std::time::{Duration, Instant};

/// How many looks are taken with nothing but a pause in between: about a microsecond.
const PAUSES: u32 = 40;

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
        self.looks = self.looks.wrapping_add(1);
        if self.looks < PAUSES {
            std::hint::spin_loop();
            return true;
        }
        self.give_way()
    }

    #[cold]
    fn give_way(&mut self) -> bool {
        self.looks = PAUSES;
        let since = *self.since.get_or_insert_with(Instant::now);
        std::thread::yield_now();
        since.elapsed() < self.budget
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
}
