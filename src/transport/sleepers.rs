//! Threads of this process that sleep until a word in memory changes.
//!
//! # The protocol
//!
//! ```text
//! sleeper                                    thread that stores
//! 1  lays the word into a place and sets     a  stores into the word
//!    its bits in the marks (`enter`)         b  light_fence()
//! 2  ticket = bell.ticket()                  c  loads a mark; its bit is not set: done
//! 3  looks at the word                       d  searches the places; rings the bells of those
//! 4  bell.wait(ticket, FIRST)                   whose word it has touched
//! 5  heavy_fence()
//! 6  looks at the word
//! 7  bell.wait(ticket), and 6 again
//! 8  clears the place and its bits
//! ```
//!
//! No wake-up is lost. The fence of (5) falls into every other thread at some point. A thread that
//! has executed (a) before that point: the sleeper sees the word at (6). A thread that executes (a)
//! after it: what (1) has stored is seen by (c) and (d), since nothing of it changes before (8); so
//! it rings the bell, after the ticket of (2), and (7) ends or does not begin. Marks are never
//! taken away from under a sleeper: they are made anew from the list of all sleepers, under a
//! lock, before (2) and after (7).
//!
//! The heavy fence interrupts every core on which a rank of this user's computes. So there is one
//! for each sleep and not one for each nap, and none for the many sleeps that end soon: those rest
//! on (3) and (4) alone. A thread that stores between (1) and (3) can be missed there, for want of
//! a fence of its own; the nap of (4) bounds what that costs.
//!
//! # What wakes nobody
//!
//! Stores through pointers of the user's, in this process and in others. For their sake a sleeper
//! looks at its word a few times in its first second, ever more seldom; then no more, because each
//! look of each sleeper would interrupt some core. `llcl_wake` is for programs that store so.

use crate::transport::waiters::{Awaited, Bits, PLACES, Waiters};
use crate::util::bell::{Bell, Ticket};
use crate::util::fence::heavy_fence;
use crate::util::sync::Mutex;
use std::sync::PoisonError;
use std::time::{Duration, Instant};

/// How long a thread sleeps before it has the kernel execute fences on other cores.
const FIRST: Duration = Duration::from_millis(1);
/// How long the nap is that follows; each one is twice as long as the one before.
const SECOND: Duration = Duration::from_millis(10);
/// A nap as long as this has no successor: from now on only a bell ends the sleep.
const LAST: Duration = Duration::from_millis(500);
/// How long all naps are where the kernel offers no fence, so that a wake-up may be lost.
const UNFENCED: Duration = Duration::from_millis(1);

/// This process's list of sleeping threads. What peers see of it they may spoil: nothing is ever
/// read back.
#[derive(Default)]
pub struct Sleepers {
    list: Mutex<List>,
}

/// By place: what is waited for, and by how many threads; None beyond the last place but one.
struct List([Entry; PLACES]);

#[derive(Clone, Copy)]
struct Entry {
    awaited: Option<Awaited>,
    threads: usize,
}

impl Default for List {
    fn default() -> List {
        List([Entry { awaited: None, threads: 0 }; PLACES])
    }
}

impl List {
    /// Counts a thread at the place of its word, at a free one, or else at the last one, which
    /// stands for any word. Whether it is the first one there.
    fn enter(&mut self, awaited: Awaited) -> (usize, bool) {
        let own = |entry: &Entry| entry.threads > 0 && entry.awaited == Some(awaited);
        let places = &self.0[..PLACES - 1];
        let (place, awaited) = match places.iter().position(own) {
            Some(place) => (place, Some(awaited)),
            None => match places.iter().position(|entry| entry.threads == 0) {
                Some(place) => (place, Some(awaited)),
                None => (PLACES - 1, None),
            },
        };
        let threads = self.0[place].threads + 1;
        self.0[place] = Entry { awaited, threads };
        (place, threads == 1)
    }

    fn bits(&self) -> Bits {
        let mut bits = Bits::default();
        for (place, entry) in self.0.iter().enumerate().filter(|(_, entry)| entry.threads > 0) {
            bits.add(entry.awaited, place);
        }
        bits
    }
}

impl Sleepers {
    /// Sleeps until something has been stored into the word, or `limit` is over; not at all when
    /// `enough` already says so. The caller looks again in any case. False: the time is over.
    /// `waiters` are this process's own, and always the same.
    pub fn sleep(
        &self,
        waiters: &Waiters,
        awaited: Awaited,
        limit: Option<Duration>,
        enough: impl Fn() -> bool,
    ) -> bool {
        let place = self.enter(waiters, awaited);
        let woken = sleep_on(waiters.bell(place), limit, enough);
        self.leave(waiters, place);
        woken
    }

    fn enter(&self, waiters: &Waiters, awaited: Awaited) -> usize {
        let mut list = self.list.lock().unwrap_or_else(PoisonError::into_inner);
        let (place, first) = list.enter(awaited);
        if first {
            waiters.fill(place, list.0[place].awaited);
            waiters.mark(list.bits());
        }
        place
    }

    fn leave(&self, waiters: &Waiters, place: usize) {
        let mut list = self.list.lock().unwrap_or_else(PoisonError::into_inner);
        list.0[place].threads -= 1;
        if list.0[place].threads == 0 {
            waiters.clear(place);
            waiters.mark(list.bits());
        }
    }
}

/// Steps 2 to 7. False: the time is over.
fn sleep_on(bell: &Bell, limit: Option<Duration>, enough: impl Fn() -> bool) -> bool {
    let deadline = limit.and_then(|limit| Instant::now().checked_add(limit));
    let ticket = bell.ticket();
    if enough() || wait_first(bell, ticket, deadline) {
        return true;
    }
    let left = || deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
    if left() == Some(Duration::ZERO) {
        return false;
    }
    let fenced = heavy_fence();
    let mut nap = if fenced { SECOND } else { UNFENCED };
    loop {
        if enough() {
            return true;
        }
        let left = left();
        if left == Some(Duration::ZERO) {
            return false;
        }
        let nap_now = (!fenced || nap <= LAST).then_some(nap);
        let longest = left.into_iter().chain(nap_now).min();
        if bell.wait(ticket, longest) {
            return true;
        }
        if fenced && nap <= LAST {
            nap *= 2;
        }
    }
}

#[cfg(not(loom))]
fn wait_first(bell: &Bell, ticket: Ticket, deadline: Option<Instant>) -> bool {
    let left = deadline.map_or(FIRST, |end| end.saturating_duration_since(Instant::now()));
    bell.wait(ticket, Some(FIRST.min(left)))
}

/// Under loom no time passes, and this nap promises nothing but to end.
#[cfg(loom)]
fn wait_first(_: &Bell, _: Ticket, _: Option<Instant>) -> bool {
    let _ = FIRST;
    false
}

#[cfg(all(test, not(loom)))]
mod tests;

#[cfg(all(test, loom))]
mod models;
