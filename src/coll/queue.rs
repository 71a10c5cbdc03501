//! One queue of a session, in memory that all ranks of the plan map: a control word, the number of the
//! next step, and a signal word for each rank.
//!
//! The protocol, by which every step is run once, by whoever is at hand:
//!
//! - Only who has **claimed** the queue moves `at` and runs steps. A claim is a compare-and-swap of the
//!   control word from "active and unclaimed". Its holder runs steps as long as they are ready.
//! - Who **delivers** stores the signal word first and then changes the control word (a poke); what that
//!   finds there says who takes care: the holder of the claim, a thread that attends, or the deliverer.
//! - To **release**, the holder loads the control word, then looks at the signals, then swaps the
//!   claim out of the word that it has loaded: a poke in between makes the swap fail, and it looks again.
//! - A thread that stops to **attend** takes its bit away and then looks once more.
//! - The end of the last step is one swap: the round is counted as finished and the queue is no longer
//!   active, so whoever sees the count sees everything that the round did.
//!
//! A signal word is the number of signals since the plan was made; the sender computes it from its own
//! round, so it is stored and not added to, and one line crosses the machine for a delivery.

use crate::util::sync::{AtomicU32, AtomicU64, Ordering};

#[cfg(all(test, loom))]
mod models;

/// The part of a queue that is there for any number of ranks. Signal words follow.
#[repr(C)]
#[derive(Debug, Default)]
pub struct Head {
    control: AtomicU64,
    /// The next step. Belongs to the holder of the claim; others take it as a hint.
    at: AtomicU32,
    reserved: u32,
}

/// A queue as one process sees it.
#[derive(Clone, Copy)]
pub struct Queue<'a> {
    /// Control word and next step.
    pub head: &'a Head,
    /// By rank: how many signals it has sent here, as a number that wraps around.
    pub signals: &'a [AtomicU32],
}

/// The owner has started the round.
const ACTIVE: u64 = 1;
/// A thread looks at this queue all the time and will run what becomes ready.
const ATTENDED: u64 = 2;
const CLAIMER: u64 = 0xfff0;
const CLAIMER_SHIFT: u32 = 4;
const FINISHED: u64 = 0xffff_ffff << 16;
const FINISHED_SHIFT: u32 = 16;
/// Pokes are counted in the highest bits, where they fall off when they overflow.
const POKE: u64 = 1 << 48;

/// Most ranks of a team: the claimer's rank has 12 bits, 0 being nobody.
pub const RANKS: usize = 4095;

/// What a control word says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Control(u64);

impl Control {
    /// The round is under way.
    pub fn is_active(self) -> bool {
        self.0 & ACTIVE != 0
    }

    /// Somebody looks at the queue all the time.
    pub fn is_attended(self) -> bool {
        self.0 & ATTENDED != 0
    }

    /// Who runs steps at the moment.
    pub fn claimer(self) -> Option<usize> {
        ((self.0 & CLAIMER) >> CLAIMER_SHIFT).checked_sub(1).map(|rank| rank as usize)
    }

    /// How many rounds have ended, as a number that wraps around.
    pub fn finished(self) -> u32 {
        ((self.0 & FINISHED) >> FINISHED_SHIFT) as u32
    }

    fn can_be_claimed(self) -> bool {
        self.0 & (ACTIVE | CLAIMER) == ACTIVE
    }
}

impl Queue<'_> {
    /// What the control word says. Whoever sees a round counted as finished sees what it did.
    #[inline(always)]
    pub fn control(&self) -> Control {
        // Acquire: pairs with deliver(), release() and finish().
        Control(self.head.control.load(Ordering::Acquire))
    }

    /// The next step: certain for the holder of the claim, else a hint.
    #[inline(always)]
    pub fn at(&self) -> u32 {
        self.head.at.load(Ordering::Relaxed)
    }

    /// The holder of the claim has run a step.
    #[inline(always)]
    pub fn advance_to(&self, at: u32) {
        // Relaxed: release() and finish() publish it.
        self.head.at.store(at, Ordering::Relaxed);
    }

    /// Whether the signals of rank `from` have reached `least`.
    #[inline(always)]
    pub fn arrived(&self, from: usize, least: u32) -> bool {
        // Acquire: pairs with deliver(); what the sender did before is seen.
        let sent = self.signals[from].load(Ordering::Acquire);
        sent.wrapping_sub(least) as i32 >= 0
    }

    /// The owner starts a round. What came before is found by who looks next: the owner.
    #[inline]
    pub fn activate(&self) {
        // AcqRel: what the owner did before is seen by who claims; pokes of before are seen here.
        self.head.control.fetch_or(ACTIVE, Ordering::AcqRel);
    }

    /// Rank `from` signals. The answer is what the control word said: who takes care.
    #[inline]
    pub fn deliver(&self, from: usize, value: u32) -> Control {
        // Release: what was done before is seen by who sees the signal.
        self.signals[from].store(value, Ordering::Release);
        // AcqRel: comes after the signal and before the look at the answer, in one order with
        // activate(), claim(), release() and unattend() of the others.
        Control(self.head.control.fetch_add(POKE, Ordering::AcqRel))
    }

    /// Takes the queue for rank `me`, if the round is under way and nobody has it. The answer is for
    /// release().
    #[inline]
    pub fn claim(&self, me: usize) -> Option<Control> {
        let mut seen = self.head.control.load(Ordering::Relaxed);
        while Control(seen).can_be_claimed() {
            let mine = seen | (me as u64 + 1) << CLAIMER_SHIFT;
            // Acquire: the steps of the former holder, and the start of the round, are seen.
            match self.head.control.compare_exchange_weak(
                seen,
                mine,
                Ordering::Acquire,
                Ordering::Relaxed,
            ) {
                Ok(_) => return Some(Control(mine)),
                Err(now) => seen = now,
            }
        }
        None
    }

    /// Gives the queue back, if nothing has come since `seen` was loaded; else what has come must be
    /// looked for, and the answer is for the next try.
    #[inline]
    pub fn release(&self, seen: Control) -> Result<(), Control> {
        // Release: the next holder sees what this one did. Acquire, where it fails: the signal whose
        // poke made it fail is seen.
        match self.head.control.compare_exchange(
            seen.0,
            seen.0 & !CLAIMER,
            Ordering::Release,
            Ordering::Acquire,
        ) {
            Ok(_) => Ok(()),
            Err(now) => Err(Control(now)),
        }
    }

    /// Ends the round: its holder has run the last step.
    #[inline]
    pub fn finish(&self) {
        self.advance_to(0);
        let mut seen = self.head.control.load(Ordering::Relaxed);
        loop {
            let finished = Control(seen).finished().wrapping_add(1);
            let rest = seen & !(FINISHED | CLAIMER | ATTENDED | ACTIVE);
            let next = rest | u64::from(finished) << FINISHED_SHIFT;
            // Release: who sees the count sees what the round did.
            match self.head.control.compare_exchange_weak(
                seen,
                next,
                Ordering::Release,
                Ordering::Relaxed,
            ) {
                Ok(_) => return,
                Err(now) => seen = now,
            }
        }
    }

    /// From now on the calling thread looks at this queue all the time; not after the round has ended.
    #[inline]
    pub fn attend(&self) {
        let seen = self.head.control.load(Ordering::Relaxed);
        if Control(seen).is_active() && !Control(seen).is_attended() {
            // A swap that must not revive a round that has just ended; when it fails, deliverers do
            // the work themselves, which is right as well.
            let attended = seen | ATTENDED;
            let (ok, bad) = (Ordering::Relaxed, Ordering::Relaxed);
            let _ = self.head.control.compare_exchange(seen, attended, ok, bad);
        }
    }

    /// It no longer does, and looks once more now.
    #[inline]
    pub fn unattend(&self) {
        if self.control().is_attended() {
            // AcqRel: comes after the poke of whoever has seen the bit, whose signal is then seen.
            self.head.control.fetch_and(!ATTENDED, Ordering::AcqRel);
        }
    }
}
