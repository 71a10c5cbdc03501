//! What the owner of queues does when it starts a round, waits and sleeps: the order in which it
//! changes the words of its queues and looks for signals. `coll::plan` calls these functions, and
//! so do the loom models of `queue`, which prove the order.

use crate::coll::runner::queue::{Claim, full_fence};
use crate::coll::runner::stepping::{End, Ranks};
use crate::coll::runner::worklist::Worklist;

/// Functions of the thread that owns queues, see the head of the file.
pub trait Owner: Ranks {
    /// Opens a queue for the round after `finished` rounds. `polls`: the owner goes on polling.
    #[inline(always)]
    fn open_queue(&self, queue: usize, finished: u32, polls: bool) {
        let own = self.queue(self.me(), queue);
        if !polls {
            own.clear_polled();
        }
        own.activate(finished);
    }

    /// Gives up polling and the claim of a queue, then looks once more for steps that a deliverer
    /// left to this thread.
    #[inline]
    fn release_and_look(&self, queue: usize, mine: Claim, worklist: &mut Worklist) {
        let own = self.queue(self.me(), queue);
        own.end_polling();
        own.release(mine);
        if self.is_ready(self.me(), queue) {
            self.run(self.me(), queue, worklist);
        }
    }

    /// Ends the start of a round that claimed a queue as `mine` and ran its steps until `end`.
    /// `polls`: the user is about to wait, so deliverers leave the queue to this thread; true: also
    /// in the rounds to come (POLLED_ON). None: this thread will not poll.
    #[inline(always)]
    fn leave_started(
        &self,
        (queue, mine): (usize, Claim),
        end: End,
        polls: Option<bool>,
        worklist: &mut Worklist,
    ) {
        match (end, polls) {
            (End::Finished, None) => {}
            // Deliverers of the next round then leave the queue to this rank without reading its
            // control word.
            (End::Finished, Some(lasting)) => self.queue(self.me(), queue).poll_on(lasting),
            (End::Full, _) | (_, None) => self.release_and_look(queue, mine, worklist),
            (_, Some(lasting)) => self.queue(self.me(), queue).release_polled(mine, lasting),
        }
        self.run_released(worklist);
    }

    /// Runs the ready steps of queues that a start has claimed, and releases all of them with one
    /// fence. `polls`: as in leave_started().
    #[inline]
    fn run_and_leave(&self, held: &mut [Option<Claim>], polls: bool, worklist: &mut Worklist) {
        let me = self.me();
        for (queue, held) in held.iter_mut().enumerate() {
            let Some(mine) = held else { continue };
            match self.run_held(me, queue, mine, worklist) {
                End::Finished => *held = None,
                End::Waiting | End::Stopped if polls => {
                    self.queue(me, queue).release_polled(*mine, false)
                }
                _ => self.queue(me, queue).release_unpolled(*mine),
            }
        }
        full_fence();
        for (queue, _) in held.iter().enumerate().filter(|(_, held)| held.is_some()) {
            if self.is_ready(me, queue) {
                self.run(me, queue, worklist);
            }
        }
        self.run_released(worklist);
    }

    /// Releases the claim of a queue whose steps have released others: a step of this queue that
    /// becomes ready now must not wait while this thread runs those. The caller runs them and then
    /// looks again. `polls_on`: the queue stays POLLED_ON.
    #[inline]
    fn release_for_others(&self, queue: usize, mine: Claim, polls_on: bool) {
        if polls_on {
            return self.queue(self.me(), queue).release_polled(mine, true);
        }
        self.queue(self.me(), queue).release_unpolled(mine);
        full_fence();
    }

    /// Whether this thread may run steps of another rank's queue, and probably finds some.
    #[inline]
    fn needs_help(&self, rank: usize, queue: usize) -> bool {
        !self.queue(rank, queue).is_owners() && self.is_ready(rank, queue)
    }

    /// Leaves the tails of this rank's first `queues` queues to deliverers during `sleep`, which
    /// looks for ready steps before it sleeps.
    fn leaving_tails<T>(&self, queues: usize, sleep: impl FnOnce() -> T) -> T {
        (0..queues).for_each(|queue| self.queue(self.me(), queue).leave_tail());
        let woken = sleep();
        (0..queues).for_each(|queue| self.queue(self.me(), queue).take_tail());
        woken
    }
}

impl<R: Ranks> Owner for R {}
