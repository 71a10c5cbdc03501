//! Background tasks of the progress thread: work of the layers above, such as rounds of collectives
//! that no other thread advances.

use crate::engine::routes::Routes;
use crate::util::status::Status;
use std::sync::atomic::{AtomicU8, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError, TryLockError};
use std::time::{Duration, Instant};

/// A background task.
pub trait Task: Send + Sync {
    /// Does the work that is ready. True: there was some.
    fn advance(&self) -> bool;
    /// Called before the progress thread sleeps. From now on a thread that has work for it rings.
    /// True: work has arrived meanwhile, and the progress thread must not sleep.
    fn begin_sleep(&self) -> bool;
    /// After begin_sleep(): how many of the counted pieces of work need no naps. For each of these
    /// a thread rings when the work can go on.
    fn rung(&self) -> u32;
    /// Whether no work is under way.
    fn is_idle(&self) -> bool;
    /// Whether the task's node has more ranks than cores, so that a thread which polls for the task
    /// delays other ranks.
    fn is_crowded(&self) -> bool;
    /// Called at the end of a nap. True: threads of the program used the task during the nap and
    /// advance its work only now and then, so the progress thread should stay awake.
    fn is_worth_staying(&self) -> bool;
    /// Ends the work with a status: the context ends.
    fn cancel(&self, status: Status);
}

/// The progress thread is at work.
const AWAKE: u8 = 0;
/// It sleeps for a short time and then looks for work again.
const NAPPING: u8 = 1;
/// It sleeps until a thread rings.
const ASLEEP: u8 = 2;

/// The first and the longest nap, while tasks are under way and other threads do their work.
const NAPS: (Duration, Duration) = (Duration::from_micros(50), Duration::from_micros(250));
/// Stays become rarer up to this number of stays without work, which is one stay in 32 naps.
const STAYS_IN_VAIN: u32 = 5;
/// How long the progress thread still takes naps after the last work of a task ended. A program
/// that has started one round mostly starts another one soon.
const LINGER: Duration = Duration::from_millis(10);

/// The tasks of a context.
pub struct Background {
    /// Tasks under way that may need the progress thread.
    active: AtomicU32,
    /// Calls that were accepted, and on which threads of the layers above work. The progress thread
    /// has no part in this work, but the calls' completions will fire.
    promised: AtomicU32,
    state: AtomicU8,
    routes: Arc<Routes>,
    tasks: Mutex<Vec<Arc<dyn Task>>>,
}

impl Background {
    /// No tasks yet.
    pub fn new(routes: Arc<Routes>) -> Background {
        let [active, promised] = [0; 2].map(AtomicU32::new);
        let state = AtomicU8::new(AWAKE);
        Background { active, promised, state, routes, tasks: Mutex::default() }
    }

    /// Adds a task.
    pub fn add(&self, task: Arc<dyn Task>) {
        self.tasks.lock().unwrap_or_else(PoisonError::into_inner).push(task);
    }

    /// Removes a task. When this returns the progress thread does not use it.
    pub fn remove(&self, task: &Arc<dyn Task>) {
        let mut tasks = self.tasks.lock().unwrap_or_else(PoisonError::into_inner);
        tasks.retain(|other| !Arc::ptr_eq(other, task));
    }

    /// A task will have work; call() follows when it has.
    #[inline]
    pub fn add_work(&self) {
        // SeqCst: as call() says.
        self.active.fetch_add(1, Ordering::SeqCst);
    }

    /// Tells the progress thread to look at the tasks. `at_once`: also ends a nap.
    #[inline]
    pub fn call(&self, at_once: bool) {
        // SeqCst: follows add_work() and pairs with park(): either park() sees the work, or this
        // sees that the progress thread sleeps.
        let state = self.state.load(Ordering::SeqCst);
        if state == ASLEEP || at_once && state == NAPPING {
            self.routes.bell().ring();
        }
    }

    /// The work that add_work() has announced is done.
    #[inline]
    pub fn remove_work(&self) {
        // Release: a thread that sees no task under way also sees the words which completions of
        // the task have changed; pairs with is_active().
        self.active.fetch_sub(1, Ordering::Release);
    }

    /// A call is accepted, and a thread will work on it; keep_promise() follows when the call has
    /// ended or a task does the rest.
    pub fn promise(&self) {
        self.promised.fetch_add(1, Ordering::Relaxed);
    }

    /// See promise().
    pub fn keep_promise(&self) {
        // Release: as remove_work(); pairs with has_kept_promises().
        self.promised.fetch_sub(1, Ordering::Release);
    }

    /// Whether all promises are kept.
    pub(super) fn has_kept_promises(&self) -> bool {
        self.promised.load(Ordering::Acquire) == 0
    }

    /// Whether a task is under way.
    #[inline]
    pub(super) fn is_active(&self) -> bool {
        self.active.load(Ordering::Acquire) > 0
    }

    /// Advances every task once. True: there was work. `lately`: the caller has worked for a task a
    /// short time ago. It then also advances tasks that have no counted work, since other ranks may
    /// have work for them. The progress threads of those ranks may wait for this thread's core: a
    /// thread that yields does not lose its core before its time slice ends.
    pub(super) fn turn(&self, lately: bool) -> bool {
        let active = self.is_active();
        if !lately && !active {
            return false;
        }
        let tasks = self.tasks.lock().unwrap_or_else(PoisonError::into_inner);
        let tasks = tasks.iter().filter(|task| active || !task.is_crowded());
        // Each task is advanced, not only the first that has work.
        tasks.fold(false, |worked, task| task.advance() | worked)
    }

    /// Advances every task, counted or not. True: no work is under way. It is also false while
    /// another thread advances a task: that thread may be in a function of the user that does not
    /// return.
    pub(super) fn settle(&self) -> bool {
        let tasks = match self.tasks.try_lock() {
            Ok(tasks) => tasks,
            Err(TryLockError::Poisoned(tasks)) => tasks.into_inner(),
            Err(TryLockError::WouldBlock) => return false,
        };
        tasks.iter().for_each(|task| {
            task.advance();
        });
        tasks.iter().all(|task| task.is_idle())
    }

    /// Ends all tasks.
    pub(super) fn cancel(&self, status: Status) {
        let tasks = std::mem::take(&mut *self.tasks.lock().unwrap_or_else(PoisonError::into_inner));
        tasks.iter().for_each(|task| task.cancel(status));
    }

    /// Called before the progress thread sleeps. Returns how long it may sleep; None: it has work.
    pub(super) fn park(&self, nap: &mut Nap, longest: Duration) -> Option<Duration> {
        let sleeps = !self.is_active() && nap.lingered();
        // SeqCst: pairs with add_work().
        self.state.store(if sleeps { ASLEEP } else { NAPPING }, Ordering::SeqCst);
        let active = self.active.load(Ordering::SeqCst) > 0;
        if sleeps && active {
            return None;
        }
        if active {
            nap.since = Some(Instant::now());
        }
        let tasks = self.tasks.lock().unwrap_or_else(PoisonError::into_inner);
        // Without counted work no thread of this rank relies on the progress thread.
        if tasks.iter().fold(false, |busy, task| task.begin_sleep() | busy) && active {
            return None;
        }
        // SeqCst: pairs with add_work(): a thread that adds work from here on rings, and work that
        // was added before is counted.
        self.state.store(ASLEEP, Ordering::SeqCst);
        // This load comes before the count of the work that needs no naps. Work of that kind which
        // another thread ends in between then counts as work that needs naps, and not the reverse.
        // Work that is added in between rings.
        let active = self.active.load(Ordering::SeqCst);
        let rung: u32 = tasks.iter().map(|task| task.rung()).sum();
        if sleeps || rung > 0 && active <= rung {
            return Some(longest);
        }
        self.state.store(NAPPING, Ordering::SeqCst);
        Some(nap.next().min(longest))
    }

    /// Called when the progress thread wakes up. True: it should stay awake for a while. A short
    /// round has work for the progress thread only during a part of the round. A single look at the
    /// end of a nap would seldom fall into that part, so a program could run for long without help.
    pub(super) fn unpark(&self, nap: &mut Nap) -> bool {
        self.state.store(AWAKE, Ordering::Relaxed);
        if nap.lingered() {
            return false;
        }
        let tasks = self.tasks.lock().unwrap_or_else(PoisonError::into_inner);
        // All tasks are asked, since each of them remembers the time of the last question.
        tasks.iter().fold(false, |worth, task| task.is_worth_staying() | worth) && nap.may_stay()
    }
}

/// The length of the progress thread's naps.
pub(super) struct Nap {
    length: Duration,
    since: Option<Instant>,
    /// How many stays in a row found no work.
    in_vain: u32,
    /// How many naps remain before the next stay.
    pass: u32,
}

impl Nap {
    pub(super) fn new() -> Nap {
        Nap { length: NAPS.0, since: None, in_vain: 0, pass: 0 }
    }

    /// There was work: naps are short again.
    #[inline]
    pub(super) fn renew(&mut self) {
        self.length = NAPS.0;
        (self.in_vain, self.pass) = (0, 0);
    }

    /// Whether to stay awake now. Each stay that finds no work doubles the number of naps before
    /// the next stay, because the thread takes a core that other threads may need.
    fn may_stay(&mut self) -> bool {
        let stays = self.pass == 0;
        if stays {
            self.in_vain = STAYS_IN_VAIN.min(self.in_vain + 1);
            // renew() resets it when the stay found work.
            self.pass = 1 << self.in_vain;
        }
        self.pass -= 1;
        stays
    }

    fn next(&mut self) -> Duration {
        let now = self.length;
        self.length = (now * 2).min(NAPS.1);
        now
    }

    /// Whether the last work is longer ago than LINGER.
    fn lingered(&self) -> bool {
        self.since.is_none_or(|since| since.elapsed() > LINGER)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stays_in_vain_become_rare_and_one_that_is_worth_it_makes_up_for_all() {
        let mut nap = Nap::new();
        let gaps = |nap: &mut Nap, stays: usize| {
            let naps = (1..).filter(|_| nap.may_stay()).take(stays).collect::<Vec<_>>();
            naps.windows(2).map(|pair| pair[1] - pair[0]).collect::<Vec<u32>>()
        };
        assert_eq!(gaps(&mut nap, 8), [2, 4, 8, 16, 32, 32, 32]);
        nap.renew();
        assert!(nap.may_stay(), "at once");
        nap.renew();
        assert_eq!(gaps(&mut nap, 3), [2, 4]);
    }
}
