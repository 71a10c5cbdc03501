//! The loops that run steps: claim a queue, run the steps that are ready, release the claim, and
//! find out which thread runs the steps that a signal has released. The loops use queues only, and
//! [`Ranks`] provides the steps. So the loom models of `queue` run these loops and not a copy of
//! them.

use crate::coll::runner::queue::{Claim, Queue, full_fence};
use crate::coll::runner::worklist::{QueueId, Worklist};
use crate::util::fence::light_fence;
use crate::util::prefetch::prefetch;

/// Why run_claimed() stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// The last step was run: the round is over and the claim is given up.
    Finished,
    /// The first step was not ready.
    Waiting,
    /// Some steps were run and the next one is not ready, or the plan has failed.
    Stopped,
    /// The budget of the worklist is used up, or a put found no room.
    Full,
}

/// The ranks of a plan, as one process reaches them.
pub trait Ranks {
    /// A step that may be run.
    type Step: Copy;

    /// The rank of this process.
    fn me(&self) -> usize;
    /// A queue of a rank.
    fn queue(&self, rank: usize, queue: usize) -> Queue<'_>;
    /// Step `at` of a queue; None behind the last one.
    fn step(&self, rank: usize, queue: usize, at: u32) -> Option<Self::Step>;
    /// Whether the signal that a step of `rank` awaits in that rank's round `round` has come.
    fn has_arrived(&self, rank: usize, queue: usize, step: Self::Step, round: u32) -> bool;
    /// Whether the session of this rank says that the plan has failed.
    fn has_failed(&self, rank: usize) -> bool;
    /// The bytes that a step moves.
    fn size(&self, step: Self::Step) -> u64;
    /// Whether a step calls a function of the user, which may take long.
    fn is_users(&self, step: Self::Step) -> bool;
    /// Moves or combines the bytes of a step. An error ends the run of this queue: a put found no
    /// room, or the plan has failed.
    fn perform(&self, step: Self::Step, round: u32, worklist: &mut Worklist) -> Result<(), End>;
    /// Stores the signal of a step of `rank` that was run in that rank's round `round`. Returns the
    /// rank and the queue that were signalled, if any.
    fn signal(&self, rank: usize, step: Self::Step, round: u32) -> Option<(usize, usize)>;
    /// Whether a thread of any rank may run the steps of `rank`.
    fn is_shared(&self, rank: usize) -> bool;
    /// Rings for the progress thread of `rank`, if it sleeps: a step is ready that only threads of
    /// that rank may run.
    fn ring_if_asleep(&self, rank: usize);
    /// Tells waiting threads that a queue has finished round `round`, counted from 1.
    fn notify_finished(&self, rank: usize, queue: usize, round: u32);

    /// Whether the next step of a queue could be run; a hint, to read before claiming.
    #[inline]
    fn is_ready(&self, rank: usize, queue: usize) -> bool {
        let target = self.queue(rank, queue);
        let control = target.control();
        if !control.is_active() || control.claimer().is_some() {
            return false;
        }
        self.is_over_or_ready(rank, queue, target.at(), control.finished())
    }

    /// Whether the next step of the queue with the claim `mine` could be run.
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

    /// Runs the steps that are ready in a queue, and the steps that those release in other queues.
    /// Returns whether any step was run.
    fn run(&self, rank: usize, queue: usize, worklist: &mut Worklist) -> bool {
        let mut worked = false;
        if rank == self.me() && worklist.owner || self.is_shared(rank) {
            worked |= self.run_queue(rank, queue, worklist);
        }
        self.run_released(worklist) | worked
    }

    /// Runs the queues that the steps of this worklist have released. Returns whether any step was
    /// run.
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
        let target = self.queue(rank, queue);
        let mut worked = false;
        while let Some(mut mine) = target.claim(self.me()) {
            let end = self.run_held(rank, queue, &mut mine, worklist);
            worked |= end != End::Waiting;
            if end == End::Finished {
                break;
            }
            target.release(mine);
            // A deliverer may have signalled while the claim was still held.
            let failed = self.has_failed(rank);
            if end == End::Full || failed || !self.is_ready(rank, queue) {
                break;
            }
        }
        worked
    }

    /// run_claimed() as a function that is not inlined, for the callers whose speed matters less.
    /// Most rounds call it, so a start finds it in the instruction cache.
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

    /// Runs the ready steps of a queue that was claimed as `mine`.
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
                // This comes before the step, so that the ranks that were signalled need not wait
                // for it.
                self.find_runners_if_any(worklist);
            }
            if let Err(end) = self.perform(step, round, worklist) {
                break end;
            }
            mine.at += 1;
            if let Some((to, queue)) = self.signal(rank, step, round) {
                self.note_signalled(to, queue, worklist);
            }
        };
        self.find_runners_if_any(worklist);
        if end == End::Finished {
            self.notify_finished(rank, queue, round.wrapping_add(1));
        }
        end
    }

    /// Whether this step is so long that the runners of the signalled queues must be found before
    /// it.
    #[doc(hidden)]
    #[inline(always)]
    fn takes_long(&self, step: Self::Step, size: u64, worklist: &mut Worklist) -> bool {
        worklist.since = worklist.since.saturating_add(size);
        worklist.since > Worklist::SHORT || self.is_users(step)
    }

    /// Notes that a queue was signalled. find_runners() later calls needs_runner() for several such
    /// queues with one fence.
    #[doc(hidden)]
    #[inline(always)]
    fn note_signalled(&self, to: usize, queue: usize, worklist: &mut Worklist) {
        let signalled = self.queue(to, queue);
        light_fence();
        if signalled.is_polled_on() {
            return;
        }
        // find_runners() reads this line soon. The core loads it while the fence waits for the line
        // of the signal.
        prefetch(signalled.head);
        worklist.signalled[worklist.signalled_count] = QueueId::new(to, queue);
        worklist.signalled_count += 1;
        if worklist.signalled_count == worklist.signalled.len() {
            self.find_runners_if_any(worklist);
        }
    }

    /// Calls find_runners(), if any queue was signalled since the last time.
    #[doc(hidden)]
    #[inline(always)]
    fn find_runners_if_any(&self, worklist: &mut Worklist) {
        if worklist.signalled_count > 0 {
            self.find_runners(worklist);
        }
    }

    /// For each queue that was signalled: if it needs a runner, notes it for this thread or rings
    /// for its owner. One fence is enough for all queues.
    #[doc(hidden)]
    fn find_runners(&self, worklist: &mut Worklist) {
        full_fence();
        worklist.since = 0;
        let (signalled, count) =
            (worklist.signalled, std::mem::take(&mut worklist.signalled_count));
        for (to, queue) in signalled[..count].iter().map(|line| line.place()) {
            if !self.queue(to, queue).needs_runner() {
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
