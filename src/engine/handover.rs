//! How a role is handed from thread to thread so that no work is left lying: a requester, one that
//! waits and the progress thread come to hold the lane's role, and each leaves it by the same
//! rules.
//!
//! # The rules
//!
//! Work comes from sources: the command queue and what peers send. Each source can be *armed*: its
//! next producer then learns that it must ring the bell (`engine::doorbell`).
//!
//! 1. The progress thread counts `parked` up before it sleeps and when it is awake again: odd means
//!    that it sleeps. It sleeps only if it could arm all sources, or if another thread holds the
//!    role.
//! 2. A holder that gives the role up while `parked` is odd arms all sources before; if one of them
//!    has work, it rings the bell instead.
//! 3. After giving the role up, each holder, the progress thread included, looks once more at the
//!    queue and at `parked`: a requester that found the role taken, and a progress thread that
//!    parked because of that, rely on it. Between "give up" and "look", and on the other side
//!    between "publish" and "try to take", lies a full fence (`engine::role`).
//! 4. What was armed counts only if `parked` is the same at that last look. Else the progress
//!    thread was woken meanwhile, found the role taken, and sleeps again: the source that rang lies
//!    open, and no thread has seen what it brought.

use crate::engine::role::{Held, Role};
use crate::util::sync::{AtomicU64, Ordering};
use crossbeam_utils::CachePadded;

#[cfg(all(test, loom))]
mod models;

/// Rounds that a thread works for others before it hands over to the progress thread.
pub const ROUNDS: usize = if cfg!(loom) { 3 } else { 16 };
/// Looks without result after which a waiting thread gives the role up for a moment.
const LOOKS: usize = if cfg!(loom) { 1 } else { 32 };
/// Rounds with work after which the progress thread gives the role up for a moment.
const STRETCH: usize = 16;

/// What the holder of the role works on.
pub trait Work {
    /// What surrounds it.
    type Around: Around;

    /// Does what there is to do; how much that was.
    fn round(&mut self, around: &Self::Around) -> usize;

    /// Announces to all sources that no thread works from now on; false: one has work.
    fn arm(&mut self, around: &Self::Around) -> bool;

    /// Takes back what was armed.
    fn disarm(&mut self);

    /// A check of what the holder leaves behind.
    fn check(&self) {}
}

/// What a holder needs besides its work.
pub trait Around {
    /// Wakes the progress thread.
    fn ring(&self);

    /// Whether a requester that found the role taken may have left something in the queue.
    fn has_queued(&self) -> bool;

    /// Whether the calling thread may work for others now.
    fn may_work(&self) -> bool;
}

/// What a burst of looks for work came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Turn {
    /// There was work, and now there is none.
    Worked,
    /// There was much work, and there may be more: another thread that wants the core should have
    /// it first.
    Stretched,
    /// There was none, or another thread does it.
    Idle,
}

/// A role with the count of its progress thread's sleeps. Each has a line of its own: the holders
/// write them all the time, and every requester reads what stands beside them.
pub struct Handover<W> {
    role: CachePadded<Role<W>>,
    parked: CachePadded<AtomicU64>,
}

impl<W: Work> Handover<W> {
    /// A free role.
    pub fn new(work: W) -> Handover<W> {
        Handover {
            role: CachePadded::new(Role::new(work)),
            parked: CachePadded::new(AtomicU64::new(0)),
        }
    }

    /// The role, if it is free, with all sources open.
    #[inline]
    pub fn take(&self) -> Option<Held<'_, W>> {
        let mut work = self.role.take()?;
        work.disarm();
        Some(work)
    }

    /// Takes the role, if it is free, and works until there is nothing to do or it is another
    /// thread's turn. True: something was done.
    pub fn help(&self, around: &W::Around) -> bool {
        if !around.may_work() {
            around.ring();
            return false;
        }
        let (mut worked, mut left) = (false, ROUNDS);
        while left > 0 {
            let Some(mut work) = self.take() else { return worked };
            while left > 0 {
                left -= 1;
                if work.round(around) == 0 {
                    break;
                }
                worked = true;
            }
            if self.leave(work, around) {
                return worked;
            }
        }
        around.ring();
        worked
    }

    /// Looks for work until there was none for a while, or enough of it, or until `done`.
    #[inline]
    pub fn burst(&self, work: &mut W, around: &W::Around, done: impl Fn() -> bool) -> Turn {
        let (mut stretch, mut looks) = (0, 0);
        while looks < LOOKS && stretch < STRETCH && !done() {
            match work.round(around) {
                0 => {
                    looks += 1;
                    std::hint::spin_loop();
                }
                _ => (stretch, looks) = (stretch + 1, 0),
            }
        }
        match stretch {
            0 => Turn::Idle,
            STRETCH => Turn::Stretched,
            _ => Turn::Worked,
        }
    }

    /// Gives the role up by the rules above. False: there is something to do again.
    fn leave(&self, mut work: Held<'_, W>, around: &W::Around) -> bool {
        // Acquire: a death that woke the progress thread before is seen by arm(), which reads it
        // and changes nothing; pairs with count_parked().
        let parked = self.parked.load(Ordering::Acquire);
        let asleep = is_asleep(parked);
        let armed = asleep && work.arm(around);
        work.check();
        drop(work);
        if asleep && !armed {
            around.ring();
            return true;
        }
        // Rule 3. The fence is in drop().
        let left = around.has_queued();
        // Rule 4.
        let now = self.parked.load(Ordering::Relaxed);
        !left && (!is_asleep(now) || (armed && now == parked))
    }

    /// Gives the role up, and helps if there is something to do again.
    pub fn finish(&self, work: Held<'_, W>, around: &W::Around) {
        if !self.leave(work, around) {
            self.help(around);
        }
    }

    /// One turn of the progress thread: a burst of looks, so that what comes within a microsecond
    /// is met by a thread that is awake and has the role.
    pub fn turn(&self, around: &W::Around) -> Turn {
        let Some(mut work) = self.take() else { return Turn::Idle };
        let turn = self.burst(&mut work, around, || false);
        self.finish(work, around);
        turn
    }

    /// Prepares the progress thread's sleep. The ticket of the bell was read before. False: there
    /// is something to do, or to look after soon.
    pub fn park(&self, around: &W::Around) -> bool {
        self.count_parked();
        // The fence between this and the look at the role is in take().
        match self.role.take() {
            Some(mut work) => {
                let armed = work.arm(around);
                drop(work);
                // Rule 3: a requester may have found the role taken by this thread.
                armed && !around.has_queued()
            }
            None => true,
        }
    }

    /// The progress thread is awake again.
    pub fn unpark(&self) {
        self.count_parked();
    }

    /// Only the progress thread counts.
    fn count_parked(&self) {
        // Release: pairs with the Acquire in leave().
        self.parked.store(self.parked.load(Ordering::Relaxed) + 1, Ordering::Release);
    }
}

fn is_asleep(parked: u64) -> bool {
    parked % 2 == 1
}
