//! What the progress thread does besides the lane: tasks of the layers above, such as the rounds of
//! collectives that nobody else may or will carry on.

use crate::engine::routes::Routes;
use crate::util::status::Status;
use std::sync::atomic::{AtomicU8, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError, TryLockError};
use std::time::{Duration, Instant};

/// Something that goes on in the background.
pub trait Task: Send + Sync {
    /// Works for a moment. True: there was something to do.
    fn advance(&self) -> bool;
    /// The progress thread is about to sleep; from now on a thread that needs it rings. True:
    /// something has come meanwhile, and it must not sleep.
    fn begin_sleep(&self) -> bool;
    /// After begin_sleep(): for how many of the tasks that it has enlisted somebody rings when they
    /// can go on, so that they need no naps.
    fn rung(&self) -> u32;
    /// Nothing is under way.
    fn is_idle(&self) -> bool;
    /// A thread that works for it in passing keeps others from their core.
    fn is_crowded(&self) -> bool;
    /// To be asked at the end of a nap. True: others have done its work meanwhile, but they would
    /// rather do something else.
    fn is_worth_staying(&self) -> bool;
    /// The context ends: nothing more will happen.
    fn cancel(&self, status: Status);
}

/// The progress thread is at work.
const AWAKE: u8 = 0;
/// It looks again soon.
const NAPPING: u8 = 1;
/// It sleeps until somebody rings.
const ASLEEP: u8 = 2;

/// How long it naps at first, and at most, while tasks are under way and others do their work.
const NAPS: (Duration, Duration) = (Duration::from_micros(50), Duration::from_micros(250));
/// After so many stays in vain they do not become rarer: one in 32 naps.
const STAYS_IN_VAIN: u32 = 5;
/// How long it goes on looking after the last task: programs that start one round start another.
const LINGER: Duration = Duration::from_millis(10);

/// The tasks of a context.
pub struct Background {
    /// Tasks under way that may need the progress thread.
    active: AtomicU32,
    state: AtomicU8,
    routes: Arc<Routes>,
    tasks: Mutex<Vec<Arc<dyn Task>>>,
}

impl Background {
    /// Nothing to do.
    pub fn new(routes: Arc<Routes>) -> Background {
        let (active, state) = (AtomicU32::new(0), AtomicU8::new(AWAKE));
        Background { active, state, routes, tasks: Mutex::default() }
    }

    /// A task that may come to need the progress thread.
    pub fn add(&self, task: Arc<dyn Task>) {
        self.tasks.lock().unwrap_or_else(PoisonError::into_inner).push(task);
    }

    /// The task is over. When this returns the progress thread is not in it.
    pub fn remove(&self, task: &Arc<dyn Task>) {
        let mut tasks = self.tasks.lock().unwrap_or_else(PoisonError::into_inner);
        tasks.retain(|other| !Arc::ptr_eq(other, task));
    }

    /// A task is about to be under way; call() follows when it is.
    #[inline]
    pub fn enlist(&self) {
        // SeqCst: as call() says.
        self.active.fetch_add(1, Ordering::SeqCst);
    }

    /// The progress thread is to look at the tasks. `at_once`: even a nap is too long.
    #[inline]
    pub fn call(&self, at_once: bool) {
        // SeqCst: comes after enlist() and pairs with park(); either it sees the task, or this sees
        // that it sleeps.
        let state = self.state.load(Ordering::SeqCst);
        if state == ASLEEP || at_once && state == NAPPING {
            self.routes.bell().ring();
        }
    }

    /// What enlist() has announced is done.
    #[inline]
    pub fn discharge(&self) {
        self.active.fetch_sub(1, Ordering::Relaxed);
    }

    /// Whether a task is under way.
    #[inline]
    pub(super) fn is_active(&self) -> bool {
        self.active.load(Ordering::Relaxed) > 0
    }

    /// Works for every task for a moment. True: there was something to do. `lately`: the caller has
    /// worked for a task a short time ago, and looks for work of other ranks also where none of
    /// this one is enlisted: their progress threads may be kept from a core by this one, since who
    /// yields is not taken off its core as long as the kernel owes it some time.
    pub(super) fn turn(&self, lately: bool) -> bool {
        let active = self.is_active();
        if !lately && !active {
            return false;
        }
        let tasks = self.tasks.lock().unwrap_or_else(PoisonError::into_inner);
        let tasks = tasks.iter().filter(|task| active || !task.is_crowded());
        // All of them, not the first that has something to do.
        tasks.fold(false, |worked, task| task.advance() | worked)
    }

    /// Works for every task, also for those that need nobody. True: nothing is under way. False
    /// also while another thread works for them: it may be in a function of the user that does not
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

    /// The progress thread sleeps now: for how long at most. None: there is something to do.
    pub(super) fn park(&self, nap: &mut Nap, longest: Duration) -> Option<Duration> {
        let sleeps = !self.is_active() && nap.lingered();
        // SeqCst: pairs with enlist().
        self.state.store(if sleeps { ASLEEP } else { NAPPING }, Ordering::SeqCst);
        let active = self.active.load(Ordering::SeqCst) > 0;
        if sleeps && active {
            return None;
        }
        if active {
            nap.since = Some(Instant::now());
        }
        let tasks = self.tasks.lock().unwrap_or_else(PoisonError::into_inner);
        // Without an enlisted task nobody counts on this thread.
        if tasks.iter().fold(false, |busy, task| task.begin_sleep() | busy) && active {
            return None;
        }
        // SeqCst: pairs with enlist(); whoever enlists from here on rings, whoever has done so before
        // is counted.
        self.state.store(ASLEEP, Ordering::SeqCst);
        let rung: u32 = tasks.iter().map(|task| task.rung()).sum();
        if sleeps || rung > 0 && self.active.load(Ordering::SeqCst) <= rung {
            return Some(longest);
        }
        self.state.store(NAPPING, Ordering::SeqCst);
        Some(nap.next().min(longest))
    }

    /// It is awake again. True: it is worth staying so for a while. A single look at the end of a
    /// nap would seldom meet the part of a short round in which there is something to do, so that a
    /// program could go on for long without ever being helped.
    pub(super) fn unpark(&self, nap: &mut Nap) -> bool {
        self.state.store(AWAKE, Ordering::Relaxed);
        if nap.lingered() {
            return false;
        }
        let tasks = self.tasks.lock().unwrap_or_else(PoisonError::into_inner);
        // Each is asked, since each remembers when it was.
        tasks.iter().fold(false, |worth, task| task.is_worth_staying() | worth) && nap.may_stay()
    }
}

/// How the naps of the progress thread grow.
pub(super) struct Nap {
    length: Duration,
    since: Option<Instant>,
    /// How often, one after the other, it stayed awake for nothing, and how many naps it is to let
    /// pass until the next try.
    in_vain: u32,
    pass: u32,
}

impl Nap {
    pub(super) fn new() -> Nap {
        Nap { length: NAPS.0, since: None, in_vain: 0, pass: 0 }
    }

    /// There was something to do.
    #[inline]
    pub(super) fn renew(&mut self) {
        self.length = NAPS.0;
        (self.in_vain, self.pass) = (0, 0);
    }

    /// Whether to stay awake now, which it has reason to. Where the core has other work to do a
    /// stay finds nothing, or comes too late; then the next one is put off twice as long each time.
    fn may_stay(&mut self) -> bool {
        let stays = self.pass == 0;
        if stays {
            self.in_vain = STAYS_IN_VAIN.min(self.in_vain + 1);
            // Taken back by renew() when the stay was worth it.
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

    /// Whether the last task was long ago.
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
