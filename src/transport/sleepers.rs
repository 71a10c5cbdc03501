//! Threads of this process that sleep until a word in memory changes, or one of several words.
//!
//! # The protocol
//!
//! ```text
//! sleeper                                    thread that stores
//! 1  lays each word into a place and sets    a  stores into the word
//!    its bits in the marks (`enter`)         b  light_fence()
//! 2  ticket = bell.ticket()                  c  loads a mark; its bit is not set: done
//! 3  looks at the words                      d  searches the places; rings the bells that those
//! 4  bell.wait(ticket, FIRST)                   name whose word it has touched
//! 5  heavy_fence()
//! 6  looks at the words
//! 7  bell.wait(ticket), and 6 again
//! 8  clears the places and their bits
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
    /// The place whose bell its threads sleep on: another one where it is one of several words, but
    /// not the first, for which one thread waits.
    bell: usize,
}

impl Default for List {
    fn default() -> List {
        List([Entry { awaited: None, threads: 0, bell: 0 }; PLACES])
    }
}

impl List {
    /// Counts a thread at the place of its word, at a free one, or else at the last one, which
    /// stands for any word. Whether it is the first one there.
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

    /// Counts a thread at the last place, which stands for any word.
    fn enter_last(&mut self) -> (usize, bool) {
        let place = PLACES - 1;
        let threads = self.0[place].threads + 1;
        self.0[place] = Entry { awaited: None, threads, bell: place };
        (place, threads == 1)
    }

    /// The first free place from `first` on, but the last.
    fn free(&self, first: usize) -> Option<usize> {
        let free = |place: &usize| self.0[*place].threads == 0;
        (first..PLACES - 1).find(free)
    }

    /// Counts a thread at a free place for each of several words; None: there are not enough.
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

    /// The places of the other words of the thread that sleeps on this bell.
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
    /// Sleeps until something has been stored into one of the words, or `limit` is over; not at all
    /// when `enough` already says so. The caller looks again in any case. False: the time is over.
    /// `waiters` are this process's own, and always the same.
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

    /// The place whose bell is to be slept on. Several words for which there are not places enough
    /// share the one that any store rings.
    fn enter(&self, waiters: &Waiters, awaited: &[Awaited]) -> usize {
        let mut list = self.list.lock().unwrap_or_else(PoisonError::into_inner);
        let (bell, first) = match awaited {
            [awaited] => list.enter(*awaited),
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

    /// `several`: the thread has waited for several words.
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
