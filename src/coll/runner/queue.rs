//! One queue of a session: a control word, the number of the next step, and the signal words by
//! which the session's owner signals the queues of the same number at other ranks.
//!
//! The protocol. Each step is run exactly once, by one thread of any rank:
//!
//! - A thread must **claim** the queue before it moves `at`, runs steps or changes the control
//!   word; with the claim, plain stores are enough. A claim is a compare-and-swap of the control
//!   word from "active and unclaimed". The owner may also take the claim by the store that starts
//!   the round. The holder runs steps as long as they are ready, and may keep the claim while it
//!   polls the signals.
//! - A thread that **delivers** stores the signal of the step that it has run, and then reads the
//!   polled word and the control word of the queue that is signalled. They say which thread runs
//!   the released steps: the holder of the claim, a thread of the owner that polls, the owner later
//!   (the tail of the queue, or a queue that is not active yet), or else the deliverer.
//! - A thread that **releases** the claim, stops **polling** or gives up the **tail** first stores
//!   this and then reads the signals once more. Each side has a full fence between its store and
//!   its read. So the deliverer sees that store, or the other thread sees the signal.
//! - The holder of the claim ends the round with one store, which counts the round as finished and
//!   clears "active". A thread that sees the count therefore sees all effects of the round.
//!
//! A signal word is the number of signals since the plan was made. The sender computes the number
//! from its own round, so it stores the word and needs no atomic addition. The word is in the
//! sender's session, in the line after that of the control word. So a rank that starts and signals
//! writes only lines of its own, and other ranks read them. (The signal word of a cell is beside
//! the data, at the receiver.)

use crate::util::sync::{AtomicU8, AtomicU32, AtomicU64, Ordering, fence};

#[cfg(all(test, loom))]
mod models;

/// The part of a queue with a fixed size. The signal words follow in lines of their own: waiting
/// threads read signal words very often, and each such read would slow down a store to a control
/// word in that line.
#[repr(C, align(64))]
#[derive(Debug, Default)]
pub struct Head {
    control: AtomicU64,
    /// The next step. Only the holder of the claim writes it; other threads read it as a hint.
    at: AtomicU32,
    /// How many signal words follow; written at init.
    pub words: AtomicU32,
    /// The first step of the tail, or NO_TAIL; written at init.
    pub tail: AtomicU32,
}

/// Value of `tail` in a queue without a tail.
pub const NO_TAIL: u32 = u32::MAX;

/// Polled word: no thread of the owner polls. A deliverer runs the steps that are ready.
const NOBODY: u8 = 0;
/// Polled word: the owner runs the tail itself. The tail is the last steps of the queue, if they
/// move few bytes and no other rank waits for them. A deliverer runs the steps before the tail. A
/// thread of the owner that is about to sleep stores NOBODY first.
const TAIL: u8 = 1;
/// Polled word: a thread of the owner polls the signals of this queue and runs the steps that
/// become ready, or is about to do so.
const POLLED: u8 = 2;
/// Polled word: the owner polls the queue in every round until it changes this word. Deliverers
/// read POLLED_ON without a fence; before the owner relies on its change it makes all CPUs execute
/// a fence (heavy_fence).
const POLLED_ON: u8 = 3;

/// A queue as one process sees it.
#[derive(Clone, Copy)]
pub struct Queue<'a> {
    /// Control word and next step.
    pub head: &'a Head,
    /// NOBODY, TAIL, POLLED or POLLED_ON. The word is in a line that is seldom written, because
    /// each deliverer reads the word first.
    pub polled: &'a AtomicU8,
    /// The first step of the tail, or NO_TAIL.
    pub tail: u32,
    /// For each rank how many signals this session's owner has sent to that rank's queue of the
    /// same number, as a number that wraps around. slot() maps the rank to its word;
    /// session::words() chooses the length so that no two signalled ranks share a word.
    pub sent: &'a [AtomicU32],
}

/// The owner has started the round.
const ACTIVE: u64 = 1;
const CLAIMER: u64 = 0xfff0;
const CLAIMER_SHIFT: u32 = 4;
const FINISHED: u64 = 0xffff_ffff << 16;
const FINISHED_SHIFT: u32 = 16;

/// The most ranks of a team: the claimer's rank plus 1 has 12 bits, and 0 stands for no claimer.
pub const RANKS: usize = 4095;

/// The value of a control word.
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

/// The full fence between a thread's store and its read of another thread's word. A deliverer and a
/// thread that stops polling both execute one, so at least one of the two sees the other's store.
#[inline(always)]
pub fn full_fence() {
    fence(Ordering::SeqCst);
}

/// The index of a rank in a table of `places` entries. In a small team it is the rank itself, which
/// takes no division, and otherwise the remainder.
#[inline(always)]
pub fn slot(rank: usize, places: usize) -> usize {
    if rank < places { rank } else { rank % places }
}

/// Whether a signal word, of a queue or in a cell, has reached a count.
#[inline(always)]
pub fn has_reached(word: &AtomicU32, least: u32) -> bool {
    // Acquire: pairs with signal().
    word.load(Ordering::Acquire).wrapping_sub(least) as i32 >= 0
}

/// Stores a signal word.
#[inline(always)]
pub fn signal(word: &AtomicU32, value: u32) {
    // Release: a thread that sees the signal sees the sender's earlier stores.
    word.store(value, Ordering::Release);
}

/// The fence of the owner when it clears POLLED_ON; pairs with the light_fence() of deliverers.
#[cold]
fn heavy_fence() {
    // If a process cannot make all CPUs execute a fence, no queue gets POLLED_ON
    // (Policy::may_poll_on).
    #[cfg(not(loom))]
    crate::util::pin::global_fence_or_pause();
    #[cfg(loom)]
    fence(Ordering::SeqCst);
}

/// A claim, with the state that only its holder may change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Claim {
    control: Control,
    /// The next step.
    pub at: u32,
}

impl Claim {
    /// The number of this round, from 0 on: how many rounds have ended.
    #[inline(always)]
    pub fn round(&self) -> u32 {
        self.control.finished()
    }
}

impl Queue<'_> {
    /// Reads the control word. A thread that sees a round counted as finished sees the effects of
    /// that round.
    #[inline(always)]
    pub fn control(&self) -> Control {
        // Acquire: pairs with activate(), release(), release_polled() and finish().
        Control(self.head.control.load(Ordering::Acquire))
    }

    /// The next step; a hint unless the caller holds the claim.
    #[inline(always)]
    pub fn at(&self) -> u32 {
        self.head.at.load(Ordering::Relaxed)
    }

    /// Whether the caller sees that this rank has sent at least `least` signals to this queue of
    /// rank `to`.
    #[inline(always)]
    pub fn has_sent(&self, to: usize, least: u32) -> bool {
        has_reached(&self.sent[slot(to, self.sent.len())], least)
    }

    /// Signals this queue of rank `to`. The caller then calls full_fence() and needs_runner() of
    /// that queue.
    #[inline(always)]
    pub fn send(&self, to: usize, value: u32) {
        signal(&self.sent[slot(to, self.sent.len())], value);
    }

    /// A deliverer calls this after full_fence(). True: no other thread will run the steps that the
    /// signal has released, so the deliverer must.
    #[inline(always)]
    pub fn needs_runner(&self) -> bool {
        // Relaxed: a thread that has stopped polling since then reads the signals afterwards.
        let word = self.polled.load(Ordering::Relaxed);
        word < POLLED && self.control().can_be_claimed() && !self.is_tail(word)
    }

    /// Whether only the owner should run the next step; a hint for ranks that help.
    #[inline]
    pub fn is_owners(&self) -> bool {
        self.is_tail(self.polled.load(Ordering::Relaxed))
    }

    #[inline(always)]
    fn is_tail(&self, word: u8) -> bool {
        word == TAIL && self.at() >= self.tail
    }

    /// The value of the polled word while no thread of the owner polls.
    #[inline(always)]
    fn unpolled(&self) -> u8 {
        if self.tail == NO_TAIL { NOBODY } else { TAIL }
    }

    /// A deliverer calls this after light_fence(). True: the owner polls, and the deliverer need do
    /// no more for this signal.
    #[inline(always)]
    pub fn is_polled_on(&self) -> bool {
        // Relaxed: as in needs_runner().
        self.polled.load(Ordering::Relaxed) == POLLED_ON
    }

    /// The owner starts the round after `finished` rounds have ended. A thread that calls
    /// full_fence() afterwards and reads the signals finds those that came before the start.
    #[inline]
    pub fn activate(&self, finished: u32) {
        // A store is enough: no other thread changes the word of a queue that is not active.
        // Release: the next holder sees the owner's earlier stores.
        let control = u64::from(finished) << FINISHED_SHIFT | ACTIVE;
        self.head.control.store(control, Ordering::Release);
    }

    /// Like `activate`, and takes the claim for rank `me`, the owner, in the same store.
    #[inline]
    pub fn activate_claimed(&self, finished: u32, me: usize) -> Claim {
        let claimed = (me as u64 + 1) << CLAIMER_SHIFT;
        let control = u64::from(finished) << FINISHED_SHIFT | claimed | ACTIVE;
        // Relaxed: release() and release_polled() publish to the next holder. The starting thread
        // then reads without a fence whether the plan has failed; the thread that fails a plan runs
        // a fence on all CPUs instead (coll::plan::quiet).
        self.head.control.store(control, Ordering::Relaxed);
        Claim { control: Control(control), at: 0 }
    }

    /// Claims the queue for rank `me`, if its round is under way and no thread holds the claim. A
    /// read of the signals after this call finds the signal of every deliverer that saw the queue
    /// unclaimed before.
    #[inline]
    pub fn claim(&self, me: usize) -> Option<Claim> {
        let seen = self.head.control.load(Ordering::Relaxed);
        if !Control(seen).can_be_claimed() {
            return None;
        }
        let mine = seen | (me as u64 + 1) << CLAIMER_SHIFT;
        // SeqCst: the caller sees the steps of the former holder and the start of the round. The
        // exchange fails where another thread has claimed the queue or ended the round.
        let (ok, bad) = (Ordering::SeqCst, Ordering::Relaxed);
        self.head.control.compare_exchange(seen, mine, ok, bad).ok()?;
        // On x86-64 the exchange is a full fence.
        #[cfg(any(loom, not(target_arch = "x86_64")))]
        full_fence();
        Some(Claim { control: Control(mine), at: self.at() })
    }

    fn give_back(&self, mine: Claim) {
        if self.at() != mine.at {
            self.head.at.store(mine.at, Ordering::Relaxed);
        }
        // Release: the next holder sees the stores of this one. A store is enough: no other thread
        // changes the word of a claimed queue.
        self.head.control.store(mine.control.0 & !CLAIMER, Ordering::Release);
    }

    /// Gives the claim up. The caller must read the signals once more: a deliverer may have seen
    /// the claim and left its steps to the caller.
    #[inline]
    pub fn release(&self, mine: Claim) {
        self.give_back(mine);
        full_fence();
    }

    /// Gives the claim up and stops polling. The caller then calls full_fence() and reads the
    /// signals once more.
    #[inline]
    pub fn release_unpolled(&self, mine: Claim) {
        self.clear_polled();
        self.give_back(mine);
    }

    /// Gives the claim up and marks the queue as polled. The caller, a thread of the owner, is
    /// about to claim it again, so deliverers do not claim it. A waiting rank may still claim it.
    /// `lasting`: see poll_on().
    #[inline]
    pub fn release_polled(&self, mine: Claim, lasting: bool) {
        self.poll_on(lasting);
        // No fence: before and after this call deliverers leave the queue to this rank.
        self.give_back(mine);
    }

    /// Ends the round: the holder has run the last step.
    #[inline]
    pub fn finish(&self, mine: Claim) {
        if self.at() != 0 {
            self.head.at.store(0, Ordering::Relaxed);
        }
        let finished = mine.round().wrapping_add(1);
        // Release: a thread that sees the count sees the round. A plain store suffices as in
        // give_back().
        self.head.control.store(u64::from(finished) << FINISHED_SHIFT, Ordering::Release);
    }

    /// The calling thread, of the owner, polls this queue from now on.
    #[inline]
    pub fn begin_polling(&self) {
        // Relaxed: a deliverer that does not see the store yet runs the steps itself.
        if self.polled.load(Ordering::Relaxed) < POLLED {
            self.polled.store(POLLED, Ordering::Relaxed);
        }
    }

    /// Like `begin_polling`; with `lasting` the word becomes POLLED_ON and stays so over rounds.
    /// Only the thread that starts and waits calls this. It promises to look again soon, and calls
    /// end_polling() or clear_polled() when it no longer will.
    #[inline]
    pub fn poll_on(&self, lasting: bool) {
        let word = if lasting { POLLED_ON } else { POLLED };
        // Relaxed: as in begin_polling().
        if self.polled.load(Ordering::Relaxed) < word {
            self.polled.store(word, Ordering::Relaxed);
        }
    }

    /// The owner stops polling this queue. Call this before changing the control word: a deliverer
    /// that sees the new control word then also sees that nobody polls. Afterwards the caller reads
    /// the signals once more.
    #[inline]
    pub fn clear_polled(&self) {
        let word = self.polled.load(Ordering::Relaxed);
        if word > self.unpolled() {
            self.polled.store(self.unpolled(), Ordering::Relaxed);
        }
        if word == POLLED_ON {
            heavy_fence();
        }
    }

    /// The owner stops polling this queue. The caller reads the signals once more after this call.
    #[inline]
    pub fn end_polling(&self) {
        if self.polled.load(Ordering::Relaxed) > self.unpolled() {
            self.clear_polled();
            full_fence();
        }
    }

    /// A waiting thread of the owner calls this before it sleeps: from now on deliverers run the
    /// tail as well. The caller reads the signals once more after this call.
    pub fn leave_tail(&self) {
        if self.polled.load(Ordering::Relaxed) == TAIL {
            self.polled.store(NOBODY, Ordering::Relaxed);
            full_fence();
        }
    }

    /// The owner runs the tail itself again.
    pub fn take_tail(&self) {
        if self.polled.load(Ordering::Relaxed) < self.unpolled() {
            self.polled.store(TAIL, Ordering::Relaxed);
        }
    }
}
