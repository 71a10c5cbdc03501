//! Sleeping until a word in memory, or one of several words, changes.
//!
//! # The protocol
//!
//! ```text
//! sleeper                                    thread that stores
//! 1  writes each word into a place and sets  a  stores into the word
//!    its bits in the marks (`enter`)         b  light_fence()
//! 2  ticket = bell.ticket()                  c  loads a mark; its bit is not set: done
//! 3  reads the words                         d  searches the places; rings the bell of each place
//! 4  bell.wait(ticket, FIRST)                   whose word it has touched
//! 5  heavy_fence()
//! 6  reads the words
//! 7  bell.wait(ticket), and 6 again
//! 8  clears the places and their bits
//! ```
//!
//! No wake-up is lost. The heavy fence (5) makes the kernel execute a fence in every other thread,
//! at some point of that thread. If a thread executed (a) before this point, the sleeper sees the
//! new value at (6). If a thread executes (a) after this point, its (c) and (d) see what the
//! sleeper wrote at (1), which stays until (8); so the thread rings the bell after the sleeper took
//! its ticket (2), and the wait (7) ends or does not begin. Another sleeper's `enter` or `leave`
//! does not remove these marks: both compute the marks from the list of all sleepers, under a lock.
//!
//! The heavy fence interrupts every core that runs a process with this library. So a sleep executes
//! it once, not before each wait, and a sleep that ends within `FIRST` does not execute it at all.
//! Until then (3) and (4) may miss a store: without a fence in the storing thread its (c) may read
//! the marks before its (a) is visible. `FIRST` bounds this delay.
//!
//! # Stores that wake no thread
//!
//! Stores through the user's own pointers, in this process or another. For their sake a sleeper
//! reads its words a few times in its first second, at growing intervals; then no more, since the
//! timers of all sleepers would interrupt cores that compute. Programs that store so call
//! `llcl_wake`.

use crate::transport::waiters::{Awaited, Bits, PLACES, Waiters};
use crate::util::bell::{Bell, Ticket};
use crate::util::fence::heavy_fence;
use crate::util::sync::Mutex;
use std::sync::PoisonError;
use std::time::{Duration, Instant};

/// How long a thread sleeps before it makes the kernel execute fences on other cores.
const FIRST: Duration = Duration::from_millis(1);
/// How long the wait after the heavy fence is; each further wait is twice as long as the last.
const SECOND: Duration = Duration::from_millis(10);
/// The longest timed wait. After it only a bell or the caller's limit ends the sleep.
const LAST: Duration = Duration::from_millis(500);
/// How long each wait is where the kernel has no such fence, so that a wake-up may be lost.
const UNFENCED: Duration = Duration::from_millis(1);

/// This process's list of sleeping threads. The copy in [`Waiters`] is for peers, which may
/// overwrite it by mistake; this process never reads that copy back.
#[derive(Default)]
pub struct Sleepers {
    list: Mutex<List>,
}

/// The places, see [`Waiters`].
struct List([Entry; PLACES]);

#[derive(Clone, Copy)]
struct Entry {
    /// The word; None at the last place, which stands for any word.
    awaited: Option<Awaited>,
    /// Number of threads that wait for it; 0: the place is free.
    threads: usize,
    /// The place on whose bell they sleep: this one, or the first place of a thread that waits for
    /// several words.
    bell: usize,
}

impl Default for List {
    fn default() -> List {
        List([Entry { awaited: None, threads: 0, bell: 0 }; PLACES])
    }
}

impl List {
    /// Adds a thread to the place of its word, to a free place, or else to the last place, which
    /// stands for any word. Returns the place, and whether the thread is the only one there.
    fn enter(&mut self, awaited: Awaited) -> (usize, bool) {
        let places = self.0[..PLACES - 1].iter().enumerate();
        let own = |(place, entry): (usize, &Entry)| {
            entry.threads > 0 && entry.bell == place && entry.awaited == Some(awaited)
        };
        let Some(place) = places.clone().position(own).or_else(|| self.free(0)) else {
            return self.enter_last();
        };
        let threads = self.0[place].threads + 1;
        self.0[place] = Entry { awaited: Some(awaited), threads, bell: place };
        (place, threads == 1)
    }

    /// Adds a thread to the last place.
    fn enter_last(&mut self) -> (usize, bool) {
        let place = PLACES - 1;
        let threads = self.0[place].threads + 1;
        self.0[place] = Entry { awaited: None, threads, bell: place };
        (place, threads == 1)
    }

    /// The lowest free place from `first` on, without the last place.
    fn free(&self, first: usize) -> Option<usize> {
        let free = |place: &usize| self.0[*place].threads == 0;
        (first..PLACES - 1).find(free)
    }

    /// Takes a free place for each of several words, and returns the first. None: there are not
    /// enough free places.
    fn enter_all(&mut self, awaited: &[Awaited]) -> Option<usize> {
        let free = self.0[..PLACES - 1].iter().filter(|entry| entry.threads == 0).count();
        let bell = self.free(0).filter(|_| free >= awaited.len())?;
        let mut next = 0;
        for word in awaited {
            let place = self.free(next)?;
            self.0[place] = Entry { awaited: Some(*word), threads: 1, bell };
            next = place + 1;
        }
        Some(bell)
    }

    /// The further places of the thread that waits for several words on this bell.
    fn others(&self, bell: usize) -> impl Iterator<Item = usize> {
        let taken = move |place: &usize| self.0[*place].threads > 0 && self.0[*place].bell == bell;
        (bell + 1..PLACES - 1).filter(taken)
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
    /// Sleeps until a thread has stored into one of the words, or `limit` is over. Returns at once
    /// if `enough` is true after the thread was announced. Wake-ups may be spurious: the caller
    /// checks its words in any case. False: the limit is over. `waiters` lies in this rank's own
    /// control area; all calls pass the same.
    pub fn sleep(
        &self,
        waiters: &Waiters,
        awaited: &[Awaited],
        limit: Option<Duration>,
        enough: impl Fn() -> bool,
    ) -> bool {
        let place = self.enter(waiters, awaited);
        let woken = sleep_on(waiters.bell(place), limit, enough);
        self.leave(waiters, place, awaited.len() > 1);
        woken
    }

    /// Step 1. Returns the place on whose bell the thread sleeps. If there are not enough places
    /// for several words, this is the last place, which every store rings.
    fn enter(&self, waiters: &Waiters, awaited: &[Awaited]) -> usize {
        let mut list = self.list.lock().unwrap_or_else(PoisonError::into_inner);
        let (bell, first) = match awaited {
            [awaited] => list.enter(*awaited),
            // A thread that waits for no word is woken by every store.
            [] => list.enter_last(),
            _ => match list.enter_all(awaited) {
                Some(bell) => (bell, true),
                None => list.enter_last(),
            },
        };
        if first {
            waiters.fill(bell, list.0[bell].awaited, bell);
            for place in list.others(bell) {
                waiters.fill(place, list.0[place].awaited, bell);
            }
            waiters.mark(list.bits());
        }
        bell
    }

    /// Step 8. `several`: the thread has waited for several words.
    fn leave(&self, waiters: &Waiters, place: usize, several: bool) {
        let mut list = self.list.lock().unwrap_or_else(PoisonError::into_inner);
        if several {
            for other in place + 1..PLACES - 1 {
                if list.0[other].threads > 0 && list.0[other].bell == place {
                    list.0[other].threads = 0;
                    waiters.clear(other);
                }
            }
            waiters.mark(list.bits());
        }
        list.0[place].threads -= 1;
        if list.0[place].threads == 0 {
            waiters.clear(place);
            waiters.mark(list.bits());
        }
    }
}

/// Steps 2 to 7. False: the limit is over.
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

/// Under loom no time passes, so this wait, which only saves the heavy fence, ends at once.
#[cfg(loom)]
fn wait_first(_: &Bell, _: Ticket, _: Option<Instant>) -> bool {
    let _ = FIRST;
    false
}

#[cfg(all(test, not(loom)))]
mod tests;

#[cfg(all(test, loom))]
mod models;
