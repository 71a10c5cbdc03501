//! How threads hand the lane's role to each other. Requesters, threads that wait and the progress
//! thread take the role. All of them give it up by the rules below, so no work stays undone while
//! every thread sleeps.
//!
//! # The rules
//!
//! Work comes from sources: the command queue and the receivers of the transports. The holder of
//! the role can *arm* a source: the next thread that brings work to it then learns that it must
//! ring the bell (`engine::doorbell`).
//!
//! 1. The progress thread adds 1 to `parked` before it sleeps and again when it is awake, so an odd
//!    number means that it sleeps. It sleeps only if it could arm all sources, or if another thread
//!    holds the role.
//! 2. A holder that is about to give the role up, and sees that `parked` is odd, first arms all
//!    sources. If a source has work and refuses, the holder gives the role up and rings the bell.
//!    It need not arm them if an earlier holder has armed them in this sleep, and nobody has
//!    disarmed them since: a source that was armed and got work has rung, or will ring.
//! 3. After it has given the role up, each holder, the progress thread included, looks once more at
//!    the queue and at `parked`. Two threads rely on this look: a requester that found the role
//!    taken and left its command in the queue, and a progress thread that found it taken and
//!    sleeps. The holder runs a full fence between giving up and looking; the other two run one
//!    between their store (the command, `parked`) and their try to take the role (`engine::role`).
//! 4. If `parked` has changed between the arming and that last look, the holder takes the role
//!    again. The progress thread may have been woken in between, found the role taken and gone
//!    back to sleep. The source that woke it is then disarmed, and no thread has seen its work.

use crate::engine::role::{Held, Role};
use crate::transport::carrier::Polled;
use crate::util::sync::{AtomicU64, Ordering};
use crossbeam_utils::CachePadded;

#[cfg(all(test, loom))]
mod models;
#[cfg(all(test, not(loom)))]
mod tests;

/// Rounds that a helping thread works before it rings for the progress thread and leaves.
pub const ROUNDS: usize = if cfg!(loom) { 3 } else { 16 };
/// Rounds without work after which a burst ends.
const LOOKS: usize = if cfg!(loom) { 1 } else { 32 };
/// Rounds with work after which a burst ends, so that other threads get the role.
const STRETCH: usize = 16;

/// The value of the role: the state on which its holder works.
pub trait Work {
    /// The shared objects that rounds use.
    type Around: Around;

    /// Does one round of work; returns the number of commands and events handled.
    fn round(&mut self, around: &Self::Around) -> usize;

    /// Arms all sources for a sleep of the progress thread. False: one of them has work.
    fn arm(&mut self, around: &Self::Around, sleep: u64) -> bool;

    /// Disarms the sources that arm() has armed.
    fn disarm(&mut self);

    /// The sleep for which arm() was called; 0: disarm() was called since.
    fn armed_for(&self) -> u64;

    /// Called when the holder is about to give the role up, for debug assertions.
    fn check(&self) {}
}

/// The objects around the role, as the handover needs them.
pub trait Around {
    /// Wakes the progress thread.
    fn ring(&self);

    /// Whether a requester that found the role taken may have left a command in the queue.
    fn has_queued(&self) -> bool;

    /// Whether the calling thread may do the work now; a thread inside a callback may not.
    fn may_work(&self) -> bool;
}

/// The result of a burst.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Turn {
    /// There was work, and now there is none.
    Worked,
    /// There was work for STRETCH rounds, and there may be more. The caller should yield to other
    /// threads before it goes on.
    Stretched,
    /// There was no work, or another thread holds the role.
    Idle,
}

/// A role, and the count of the progress thread's sleeps. Each has a cache line of its own, since
/// holders write to them often and every requester reads the fields of the lane beside them.
pub struct Handover<W> {
    role: CachePadded<Role<W>>,
    /// See rule 1. An odd number names a sleep.
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

    /// Takes the role, if it is free, and disarms the sources.
    #[inline]
    pub fn take(&self) -> Option<Held<'_, W>> {
        let mut work = self.take_armed()?;
        work.disarm();
        Some(work)
    }

    /// Takes the role, if it is free, and leaves the sources armed, for a holder that does no
    /// round. To disarm them and to arm them again would take longer than to post an operation. A
    /// holder that leaves work undone disarms them.
    #[inline]
    pub fn take_armed(&self) -> Option<Held<'_, W>> {
        self.role.take()
    }

    /// Takes the role, if it is free, and works until there is no work. After ROUNDS rounds it
    /// rings for the progress thread and returns. A thread that may not work only rings. Returns
    /// whether this thread has done any work.
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

    /// Does rounds until LOOKS rounds in a row found no work, STRETCH rounds found some, or `done`
    /// returns true.
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

    /// Gives the role up by the rules above. False: there is work again, or a source must be armed.
    fn leave(&self, mut work: Held<'_, W>, around: &W::Around) -> bool {
        // Acquire: pairs with count_parked(). A death is not armed; arm() only checks for one. The
        // ring for a death may have woken the progress thread, which then found the role taken and
        // slept again. If this load sees that sleep, arm() sees the death.
        let parked = self.parked.load(Ordering::Acquire);
        let asleep = is_asleep(parked);
        let armed = asleep && (work.armed_for() == parked || work.arm(around, parked));
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

    /// Gives the role up, and helps if there is work again.
    pub fn finish(&self, work: Held<'_, W>, around: &W::Around) {
        if !self.leave(work, around) {
            self.help(around);
        }
    }

    /// Does a round after a poll of a wire, whose result is given, and gives the role up as
    /// finish() does. Returns whether the round found work. After messages only it does none:
    /// handlers wait for these messages. What the sources have is found by leave() if the progress
    /// thread sleeps, else by that thread. After a poll without an event it does none if the
    /// sources are still armed for the progress thread's sleep: they ring.
    #[inline]
    pub fn finish_after_poll(
        &self,
        mut work: Held<'_, W>,
        around: &W::Around,
        polled: Polled,
    ) -> bool {
        let rounds = match polled {
            Polled::Nothing => !self.is_armed(&work),
            Polled::Messages => false,
            Polled::Others => true,
        };
        let worked = rounds && {
            work.disarm();
            work.round(around) > 0
        };
        self.finish(work, around);
        worked
    }

    /// Whether the progress thread sleeps, and arm() was called for this sleep and no disarm()
    /// since.
    #[inline]
    fn is_armed(&self, work: &W) -> bool {
        // Acquire: as in leave().
        let parked = self.parked.load(Ordering::Acquire);
        is_asleep(parked) && work.armed_for() == parked
    }

    /// One turn of the progress thread: a burst, so that work that comes within a microsecond finds
    /// a thread that is awake and holds the role.
    pub fn turn(&self, around: &W::Around) -> Turn {
        let Some(mut work) = self.take() else { return Turn::Idle };
        let turn = self.burst(&mut work, around, || false);
        self.finish(work, around);
        turn
    }

    /// Prepares the progress thread's sleep; the caller has read the bell's ticket before. False:
    /// there is work, so it must not sleep (for long).
    pub fn park(&self, around: &W::Around) -> bool {
        self.count_parked();
        // The fence between this and the look at the role is in take().
        match self.role.take() {
            Some(mut work) => {
                // Relaxed: only this thread writes it.
                let armed = work.arm(around, self.parked.load(Ordering::Relaxed));
                drop(work);
                // Rule 3: a requester may have found that this thread held the role.
                armed && !around.has_queued()
            }
            None => true,
        }
    }

    /// Must be called by the progress thread after each park(), when it is awake again.
    pub fn unpark(&self) {
        self.count_parked();
    }

    /// Only the progress thread writes `parked`, so a load and a store are enough.
    fn count_parked(&self) {
        // Release: pairs with the Acquire in leave().
        self.parked.store(self.parked.load(Ordering::Relaxed) + 1, Ordering::Release);
    }
}

fn is_asleep(parked: u64) -> bool {
    parked % 2 == 1
}
