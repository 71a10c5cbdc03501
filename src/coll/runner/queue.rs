//! One queue of a session, in memory that all ranks of the plan map: a control word, the number of
//! the next step, and for each rank how many signals it has been sent.
//!
//! The protocol, by which every step is run once, by some thread of some rank:
//!
//! - Only the thread that has **claimed** the queue moves `at`, runs steps and changes the control
//!   word, by plain stores. A claim is a compare-and-swap of the control word from "active and
//!   unclaimed"; the owner may take it as it starts the round. Its holder runs steps as long as
//!   they are ready, and may go on looking at the signals (to hold).
//! - A thread that **delivers** stores the signal, in a word of the sender's, and then looks at the
//!   control word of the queue that is signalled; what it finds there says which thread takes care:
//!   the holder of the claim, a thread that polls, the owner (of its tail, and of a queue that is
//!   not active yet), or else the deliverer.
//! - A thread that **releases** the claim, stops **polling** or leaves the **tail** says so first
//!   and then looks at the signals once more. Between the two of each side lies a full fence, so
//!   the deliverer sees the one or the other sees the signal.
//! - The end of the last step is one store: the round is counted as finished and the queue is no
//!   longer active, so a thread that sees the count sees everything that the round did.
//!
//! A signal word is the number of signals since the plan was made; the sender computes it from its
//! own round, so it is stored and not added to. It lies with the sender, in the line behind its
//! control word's: a rank that starts and signals writes lines of its own only, and others read
//! them. (In a cell it lies with the data, at the receiver.)

use crate::util::sync::{AtomicU8, AtomicU32, AtomicU64, Ordering, fence};

#[cfg(all(test, loom))]
mod models;

/// The part of a queue that is there for any number of ranks. Signal words follow, in lines of
/// their own: a thread that waits for a signal looks at them all the time, and would hold up each
/// change of the control word.
#[repr(C, align(64))]
#[derive(Debug, Default)]
pub struct Head {
    control: AtomicU64,
    /// The next step. Belongs to the holder of the claim; others take it as a hint.
    at: AtomicU32,
    /// How many signal words follow; written at init.
    pub words: AtomicU32,
    /// The first step of the tail, or NO_TAIL; written at init.
    pub tail: AtomicU32,
}

/// A queue that has no tail.
pub const NO_TAIL: u32 = u32::MAX;

/// What a polled word says: no thread of the owner polls. A deliverer runs what is ready.
const NOBODY: u8 = 0;
/// The owner runs the tail itself, the last steps of the queue, which move little and for which no
/// other rank waits. A deliverer runs the steps before the tail. A thread of the owner that is
/// about to sleep stores NOBODY first.
const TAIL: u8 = 1;
/// A thread of the owner polls the queue, or is about to: it looks at the signals all the time, and
/// runs what becomes ready.
const POLLED: u8 = 2;
/// The owner polls the queue in every round until it takes this word back. Deliverers read the word
/// without a fence of their own; to take it back the owner has all CPUs execute one
/// (fence_for_all).
const POLLED_ON: u8 = 3;

/// A queue as one process sees it.
#[derive(Clone, Copy)]
pub struct Queue<'a> {
    /// Control word and next step.
    pub head: &'a Head,
    /// NOBODY, TAIL, POLLED or POLLED_ON. In a line that changes seldom, since deliverers look here
    /// first.
    pub polled: &'a AtomicU8,
    /// The first step of the tail, or NO_TAIL.
    pub tail: u32,
    /// How many signals the queues of the same number have been sent by this one's owner, as
    /// numbers that wrap around. The word for a rank is at its remainder by the number of words,
    /// which is such that no two ranks that are signalled share one.
    pub sent: &'a [AtomicU32],
}

/// The owner has started the round.
const ACTIVE: u64 = 1;
const CLAIMER: u64 = 0xfff0;
const CLAIMER_SHIFT: u32 = 4;
const FINISHED: u64 = 0xffff_ffff << 16;
const FINISHED_SHIFT: u32 = 16;

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

    /// The rank that runs steps at the moment.
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

/// Between what a thread has said and its look at what others have said. A deliverer has one, and
/// so has a thread that stops to look: one of the two sees the other.
#[inline(always)]
pub fn between_word_and_look() {
    fence(Ordering::SeqCst);
}

/// Where in a table with so many places what belongs to a rank is. Small teams have a place for
/// each rank, and no division.
#[inline(always)]
pub fn slot(rank: usize, places: usize) -> usize {
    if rank < places { rank } else { rank % places }
}

/// Whether a signal word, of a queue or in a cell, has reached a count.
#[inline(always)]
pub fn has_reached(word: &AtomicU32, least: u32) -> bool {
    // Acquire: pairs with signal(); what the sender did before is seen.
    word.load(Ordering::Acquire).wrapping_sub(least) as i32 >= 0
}

/// Stores a signal word.
#[inline(always)]
pub fn signal(word: &AtomicU32, value: u32) {
    // Release: a thread that sees the signal sees what was done before.
    word.store(value, Ordering::Release);
}

/// The deliverer's order between its signal and is_polled_on(). It need only hold back the
/// compiler: the owner, when it takes POLLED_ON back, makes every CPU execute a fence.
#[inline(always)]
pub fn between_word_and_is_polled_on() {
    #[cfg(not(loom))]
    std::sync::atomic::compiler_fence(Ordering::SeqCst);
    #[cfg(loom)]
    fence(Ordering::SeqCst);
}

/// The owner's side of between_word_and_is_polled_on().
#[cold]
fn fence_for_all() {
    // Where a process cannot make all CPUs do that, no queue is polled on (Policy::may_poll_on).
    #[cfg(not(loom))]
    crate::util::pin::global_fence_or_pause();
    #[cfg(loom)]
    fence(Ordering::SeqCst);
}

/// A claim: what its holder knows, and nobody else may change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Claim {
    control: Control,
    /// The next step.
    pub at: u32,
}

impl Claim {
    /// How many rounds have ended: the number of this one, from 0 on.
    #[inline(always)]
    pub fn round(&self) -> u32 {
        self.control.finished()
    }
}

impl Queue<'_> {
    /// What the control word says. A thread that sees a round counted as
    /// finished sees what it did.
    #[inline(always)]
    pub fn control(&self) -> Control {
        // Acquire: pairs with activate(), release(), release_polled() and finish().
        Control(self.head.control.load(Ordering::Acquire))
    }

    /// The next step, while nobody has the claim: a hint.
    #[inline(always)]
    pub fn at(&self) -> u32 {
        self.head.at.load(Ordering::Relaxed)
    }

    /// Whether this rank has sent at least so many signals to this queue of rank `to`, as far as is
    /// seen here.
    #[inline(always)]
    pub fn has_sent(&self, to: usize, least: u32) -> bool {
        has_reached(&self.sent[slot(to, self.sent.len())], least)
    }

    /// This rank signals this queue of rank `to`. After between_word_and_look() the other queue is
    /// asked whether it is_left_alone().
    #[inline(always)]
    pub fn send(&self, to: usize, value: u32) {
        signal(&self.sent[slot(to, self.sent.len())], value);
    }

    /// To be asked by a thread that has signalled this queue. True: nobody takes care of it, so the
    /// caller has to.
    #[inline(always)]
    pub fn is_left_alone(&self) -> bool {
        // Relaxed: a thread that has stopped polling since looks at the signal later.
        let word = self.polled.load(Ordering::Relaxed);
        word < POLLED && self.control().can_be_claimed() && !self.is_tail(word)
    }

    /// Whether only the owner is to run the next step: a hint, for ranks that help.
    #[inline]
    pub fn is_owners(&self) -> bool {
        self.is_tail(self.polled.load(Ordering::Relaxed))
    }

    #[inline(always)]
    fn is_tail(&self, word: u8) -> bool {
        word == TAIL && self.at() >= self.tail
    }

    /// What the polled word says while no thread of the owner polls.
    #[inline(always)]
    fn unpolled(&self) -> u8 {
        if self.tail == NO_TAIL { NOBODY } else { TAIL }
    }

    /// To be asked by a deliverer, after between_word_and_is_polled_on().
    /// True: nothing more need be asked.
    #[inline(always)]
    pub fn is_polled_on(&self) -> bool {
        // Relaxed: as in is_left_alone().
        self.polled.load(Ordering::Relaxed) == POLLED_ON
    }

    /// The owner starts round `finished`, counted from 0. The thread that looks next, after
    /// between_word_and_look(), finds what came before.
    #[inline]
    pub fn activate(&self, finished: u32) {
        // A store: nobody changes the word of a queue that is not active. Release: what the owner
        // did before is seen by the next holder.
        let control = u64::from(finished) << FINISHED_SHIFT | ACTIVE;
        self.head.control.store(control, Ordering::Release);
    }

    /// Like `activate`, and rank `me`, the owner, has the claim at once.
    #[inline]
    pub fn activate_claimed(&self, finished: u32, me: usize) -> Claim {
        let claimed = (me as u64 + 1) << CLAIMER_SHIFT;
        let control = u64::from(finished) << FINISHED_SHIFT | claimed | ACTIVE;
        // Relaxed: the next holder sees all by release() or release_polled(). Whether the plan has
        // failed is looked at without a fence after this; the thread that has failed it pays for
        // that (coll::plan::quiet).
        self.head.control.store(control, Ordering::Relaxed);
        Claim { control: Control(control), at: 0 }
    }

    /// Takes the queue for rank `me`, if the round is under way and nobody has it. The look that
    /// follows sees the signals of deliverers that have found the queue left alone.
    #[inline]
    pub fn claim(&self, me: usize) -> Option<Claim> {
        let seen = self.head.control.load(Ordering::Relaxed);
        if !Control(seen).can_be_claimed() {
            return None;
        }
        let mine = seen | (me as u64 + 1) << CLAIMER_SHIFT;
        // SeqCst: the steps of the former holder, and the start of the round, are seen. Where it
        // fails somebody else has it, or the round has ended.
        let (ok, bad) = (Ordering::SeqCst, Ordering::Relaxed);
        self.head.control.compare_exchange(seen, mine, ok, bad).ok()?;
        // On x86-64 the exchange is a full fence.
        #[cfg(any(loom, not(target_arch = "x86_64")))]
        between_word_and_look();
        Some(Claim { control: Control(mine), at: self.at() })
    }

    fn give_back(&self, mine: Claim) {
        if self.at() != mine.at {
            self.head.at.store(mine.at, Ordering::Relaxed);
        }
        // Release: the next holder sees what this one did. A store: nobody else changes the word of
        // a queue that is claimed.
        self.head.control.store(mine.control.0 & !CLAIMER, Ordering::Release);
    }

    /// Gives the claim back. The caller looks at the signals once more: a deliverer may have relied
    /// on it.
    #[inline]
    pub fn release(&self, mine: Claim) {
        self.give_back(mine);
        between_word_and_look();
    }

    /// Gives the claim back, and no thread of the owner polls any more. The caller looks at the
    /// signals once more, after between_word_and_look().
    #[inline]
    pub fn hand_on(&self, mine: Claim) {
        self.forget_polling();
        self.give_back(mine);
    }

    /// Gives the claim back, but asks deliverers to leave the queue alone, since the caller, a
    /// thread of the owner, is about to claim it again: until then others may, if they need it.
    /// `lasting`: see poll_on().
    #[inline]
    pub fn release_polled(&self, mine: Claim, lasting: bool) {
        self.poll_on(lasting);
        // Without a fence: for deliverers nothing changes, they leave it to this rank all the time.
        self.give_back(mine);
    }

    /// Ends the round: the holder has run the last step.
    #[inline]
    pub fn finish(&self, mine: Claim) {
        if self.at() != 0 {
            self.head.at.store(0, Ordering::Relaxed);
        }
        let finished = mine.round().wrapping_add(1);
        // Release: a thread that sees the count sees the round. A store, as in give_back().
        self.head.control.store(u64::from(finished) << FINISHED_SHIFT, Ordering::Release);
    }

    /// From now on the calling thread, of the owner, looks at this queue all the time.
    #[inline]
    pub fn begin_polling(&self) {
        // Relaxed: a deliverer that does not see it yet takes care itself.
        if self.polled.load(Ordering::Relaxed) < POLLED {
            self.polled.store(POLLED, Ordering::Relaxed);
        }
    }

    /// Like `begin_polling`, until further notice, if `lasting`: the owner has started the round,
    /// looks again soon, and will do so in the next rounds. To be said by the thread that starts
    /// and waits, which takes it back as soon as it is no longer so.
    #[inline]
    pub fn poll_on(&self, lasting: bool) {
        let word = if lasting { POLLED_ON } else { POLLED };
        // Relaxed: as in begin_polling().
        if self.polled.load(Ordering::Relaxed) < word {
            self.polled.store(word, Ordering::Relaxed);
        }
    }

    /// The owner stops polling this queue. Call this before changing the control word: a deliverer
    /// that sees the new control word then also sees that nobody polls. The caller looks at the
    /// signals once more after that.
    #[inline]
    pub fn forget_polling(&self) {
        let word = self.polled.load(Ordering::Relaxed);
        if word > self.unpolled() {
            self.polled.store(self.unpolled(), Ordering::Relaxed);
        }
        if word == POLLED_ON {
            fence_for_all();
        }
    }

    /// The owner stops polling this queue, and looks once more after this call.
    #[inline]
    pub fn end_polling(&self) {
        if self.polled.load(Ordering::Relaxed) > self.unpolled() {
            self.forget_polling();
            between_word_and_look();
        }
    }

    /// The waiting thread of the owner is about to sleep, and looks once more after this call: from
    /// now on deliverers run the tail as well.
    pub fn leave_tail(&self) {
        if self.polled.load(Ordering::Relaxed) == TAIL {
            self.polled.store(NOBODY, Ordering::Relaxed);
            between_word_and_look();
        }
    }

    /// The owner runs the tail again.
    pub fn take_tail(&self) {
        if self.polled.load(Ordering::Relaxed) < self.unpolled() {
            self.polled.store(TAIL, Ordering::Relaxed);
        }
    }
}
