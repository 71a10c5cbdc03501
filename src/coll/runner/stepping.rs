//! The loops that run steps: claim a queue, run what is ready, give the claim back, and ask which
//! thread takes care of what was signalled. They know queues only; what a step is, and where it
//! lies, is [`Ranks`]'. So the models of `queue` run these loops, not a copy of them.

use crate::coll::runner::queue::{
    Claim, Queue, between_word_and_is_polled_on, between_word_and_look,
};
use crate::coll::runner::worklist::{Line, Worklist};
use crate::util::prefetch::prefetch;

/// Why no more steps of a queue were run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// That was the last one: the round is over and the claim given up.
    Finished,
    /// None was ready.
    Waiting,
    /// Some were run, and the next one is not ready; or the plan has failed.
    Stopped,
    /// The worklist allows no more bytes.
    Full,
}

/// The ranks of a plan, as one of their processes reaches them.
pub trait Ranks {
    /// A step that may be run.
    type Step: Copy;

    /// The rank of this process.
    fn me(&self) -> usize;
    /// A queue of a rank.
    fn queue(&self, rank: usize, queue: usize) -> Queue<'_>;
    /// Step `at` of a queue; None: there are not so many.
    fn step(&self, rank: usize, queue: usize, at: u32) -> Option<Self::Step>;
    /// Whether what a step of `rank` waits for has come in its round `round`.
    fn has_arrived(&self, rank: usize, queue: usize, step: Self::Step, round: u32) -> bool;
    /// Whether the plan has failed, as is said at this rank.
    fn has_failed(&self, rank: usize) -> bool;
    /// Bytes that a step moves.
    fn size(&self, step: Self::Step) -> u64;
    /// Whether a step calls a function of the user's, which may take long.
    fn is_users(&self, step: Self::Step) -> bool;
    /// Moves the bytes; else why no more steps of the queue are run: it found no room, or the plan
    /// has failed.
    fn perform(&self, step: Self::Step, round: u32, worklist: &mut Worklist) -> Result<(), End>;
    /// Stores the signal of a step of `rank` that was run in its round `round`; the rank and queue
    /// that it is for, if there is one.
    fn signal(&self, rank: usize, step: Self::Step, round: u32) -> Option<(usize, usize)>;
    /// Whether any rank may run the steps of this one.
    fn is_shared(&self, rank: usize) -> bool;
    /// Something is ready that only threads of this rank may run.
    fn ring_if_asleep(&self, rank: usize);
    /// A queue has been counted as finished for the last of so many rounds.
    fn notify_finished(&self, rank: usize, queue: usize, round: u32);

    /// Whether the next step of a queue could be run: a hint, to look at before claiming.
    #[inline]
    fn is_ready(&self, rank: usize, queue: usize) -> bool {
        let line = self.queue(rank, queue);
        let control = line.control();
        if !control.is_active() || control.claimer().is_some() {
            return false;
        }
        self.is_over_or_ready(rank, queue, line.at(), control.finished())
    }

    /// Whether the next step of a queue that was claimed as `mine` could be run.
    #[inline]
    fn is_next_ready(&self, rank: usize, queue: usize, mine: &Claim) -> bool {
        self.is_over_or_ready(rank, queue, mine.at, mine.round())
    }

    #[doc(hidden)]
    #[inline(always)]
    fn is_over_or_ready(&self, rank: usize, queue: usize, at: u32, round: u32) -> bool {
        let step = self.step(rank, queue, at);
        step.is_none_or(|step| self.has_arrived(rank, queue, step, round))
    }

    /// Runs what is ready in a queue, and what that makes ready elsewhere. True: something was
    /// done.
    fn run(&self, rank: usize, queue: usize, worklist: &mut Worklist) -> bool {
        let mut worked = false;
        if rank == self.me() && worklist.owner || self.is_shared(rank) {
            worked |= self.run_queue(rank, queue, worklist);
        }
        self.run_released(worklist) | worked
    }

    /// Runs the queues that the steps of a worklist have released. True: something was done.
    #[inline]
    fn run_released(&self, worklist: &mut Worklist) -> bool {
        let mut worked = false;
        while let Some(last) = worklist.count.checked_sub(1) {
            worklist.count = last;
            let (rank, queue) = worklist.waiting[last].place();
            worked |= self.run_queue(rank, queue, worklist);
        }
        worked
    }

    #[doc(hidden)]
    fn run_queue(&self, rank: usize, queue: usize, worklist: &mut Worklist) -> bool {
        let line = self.queue(rank, queue);
        let mut worked = false;
        while let Some(mut mine) = line.claim(self.me()) {
            let end = self.run_held(rank, queue, &mut mine, worklist);
            worked |= end != End::Waiting;
            if end == End::Finished {
                break;
            }
            line.release(mine);
            // What came before others knew that nobody has it any more.
            let failed = self.has_failed(rank);
            if end == End::Full || failed || !self.is_ready(rank, queue) {
                break;
            }
        }
        worked
    }

    /// Does what run_claimed() does, in one place for all callers that are not in a hurry: so a
    /// start finds it in the caches after a round that has driven out what it does not use.
    #[inline(never)]
    fn run_held(
        &self,
        rank: usize,
        queue: usize,
        mine: &mut Claim,
        worklist: &mut Worklist,
    ) -> End {
        self.run_claimed(rank, queue, mine, worklist)
    }

    /// Runs what is ready of a queue that was claimed as `mine`.
    #[inline(always)]
    fn run_claimed(
        &self,
        rank: usize,
        queue: usize,
        mine: &mut Claim,
        worklist: &mut Worklist,
    ) -> End {
        let (round, first) = (mine.round(), mine.at);
        let end = loop {
            let Some(step) = self.step(rank, queue, mine.at) else {
                self.queue(rank, queue).finish(*mine);
                break End::Finished;
            };
            if !self.has_arrived(rank, queue, step, round) || self.has_failed(rank) {
                break if mine.at == first { End::Waiting } else { End::Stopped };
            }
            let size = self.size(step);
            if !worklist.take(size) {
                break End::Full;
            }
            if worklist.signalled_count > 0 && self.takes_long(step, size, worklist) {
                // They are not to wait for this step.
                self.look_at_signalled(worklist);
            }
            if let Err(end) = self.perform(step, round, worklist) {
                break end;
            }
            mine.at += 1;
            if let Some((to, queue)) = self.signal(rank, step, round) {
                self.note_signalled(to, queue, worklist);
            }
        };
        self.look_at_signalled(worklist);
        if end == End::Finished {
            self.notify_finished(rank, queue, round.wrapping_add(1));
        }
        end
    }

    /// Whether the ranks that were signalled would wait for long if this step came before the
    /// question which thread takes care of them.
    #[doc(hidden)]
    #[inline(always)]
    fn takes_long(&self, step: Self::Step, size: u64, worklist: &mut Worklist) -> bool {
        worklist.since = worklist.since.saturating_add(size);
        worklist.since > Worklist::SHORT || self.is_users(step)
    }

    /// This queue has been signalled: it is to be found out which thread takes care of it.
    #[doc(hidden)]
    #[inline(always)]
    fn note_signalled(&self, to: usize, queue: usize, worklist: &mut Worklist) {
        let signalled = self.queue(to, queue);
        between_word_and_is_polled_on();
        if signalled.is_polled_on() {
            return;
        }
        // Asked soon, and on its way while the fence waits for the line of the signal.
        prefetch(signalled.head);
        worklist.signalled[worklist.signalled_count] = Line::new(to, queue);
        worklist.signalled_count += 1;
        if worklist.signalled_count == worklist.signalled.len() {
            self.look_at_signalled(worklist);
        }
    }

    /// Finds out which thread takes care of the queues that were signalled since the last time.
    #[doc(hidden)]
    #[inline(always)]
    fn look_at_signalled(&self, worklist: &mut Worklist) {
        if worklist.signalled_count > 0 {
            self.ask(worklist);
        }
    }

    /// Finds out which thread takes care of the queues that were signalled. One fence is enough for
    /// them all.
    #[doc(hidden)]
    fn ask(&self, worklist: &mut Worklist) {
        between_word_and_look();
        worklist.since = 0;
        let (signalled, count) =
            (worklist.signalled, std::mem::take(&mut worklist.signalled_count));
        for (to, queue) in signalled[..count].iter().map(|line| line.place()) {
            if !self.queue(to, queue).is_left_alone() {
                continue;
            }
            if self.is_shared(to) || to == self.me() && worklist.owner {
                worklist.push(to, queue);
            } else {
                self.ring_if_asleep(to);
            }
        }
    }
}
