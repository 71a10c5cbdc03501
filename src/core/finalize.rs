//! The end of a context.

use crate::core::context::Context;
use crate::util::backoff::Backoff;
use crate::util::status::{Result, Status};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

impl Context {
    /// Refuses finalize() where it would wait for itself.
    pub fn may_finalize(&self) -> Result<()> {
        self.may_block("llcl_finalize")
    }

    /// Ends what is under way, by success or cancellation, each operation once; waits for the other
    /// ranks to come here too, serving them meanwhile; and stops the threads. Collective. The
    /// context is over, whatever the answer is.
    pub fn finalize(&self) -> Result<()> {
        self.quick.peers.store(0, Ordering::Relaxed);
        self.open.store(false, Ordering::Relaxed);
        self.closing.store(true, Ordering::Relaxed);
        // Threads that wait for a contact see that it is over.
        self.routes.tell_contacts();
        let limit = Instant::now() + Duration::from_millis(self.config().finalize_ms);
        let mut backoff = Backoff::new(Duration::MAX);
        let idle = || {
            self.background.settle()
                && self.dispatcher.is_idle()
                && self.lane.is_idle() == Some(true)
        };
        while !idle() && Instant::now() < limit {
            if !self.rest().help_others() {
                backoff.pause();
            }
        }
        if !self.background.settle() {
            // Others may rely on this rank's threads, which do not wait for these tasks any more.
            self.background.enlist(1);
            self.background.call(1, true);
        }
        while self.lane.cancel().is_none() {
            backoff.pause();
        }
        self.post.end_all(Status::ERR_CANCELED, |_| true);
        // From here on this rank asks for nothing; its progress thread still serves the others, and
        // messages are still handled.
        let fenced = self.bootstrap.fence_survivors();
        // With polled handlers nobody else handles what has been sent before the fence.
        while self.dispatcher.is_polled() && self.dispatcher.help() > 0 {}
        self.handling.stop();
        self.progress.stop();
        // Not before: ranks that have not come to the fence may need what this one's tasks do.
        self.background.cancel(Status::ERR_CANCELED);
        // What a handler has posted while all this went on.
        while self.lane.cancel().is_none() {
            backoff.pause();
        }
        self.post.end_all(Status::ERR_CANCELED, |_| true);
        self.bootstrap.leave();
        fenced
    }
}
