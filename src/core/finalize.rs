//! The end of a context.

use crate::core::context::Context;
use crate::util::backoff::Backoff;
use crate::util::status::{Error, Result, Status};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// How long a thread may stay in one callback or handler when everything else is over, at least.
const STUCK: Duration = Duration::from_secs(1);
/// How long it sleeps between two looks at what other threads handle.
const NAP: Duration = Duration::from_micros(100);

/// How a context has ended.
pub struct Ended {
    /// What the user is told.
    pub status: Result<()>,
    /// One of its threads is in a function of the user still, and uses the context when that
    /// returns.
    pub stuck: bool,
}

impl Context {
    /// Refuses finalize() where it would wait for itself.
    pub fn may_finalize(&self) -> Result<()> {
        self.may_block()
    }

    /// Ends what is under way, by success or cancellation, each operation once; waits for the other
    /// ranks to come here too, serving them meanwhile; and stops the threads. Collective. The
    /// context is over, whatever the answer is. It waits no longer than `timeout` for other ranks, if
    /// that is given, and then leaves them: ERR_TIMEOUT.
    pub fn finalize(&self, timeout: Option<Duration>) -> Ended {
        self.quick.peers.store(0, Ordering::Relaxed);
        self.routes.gate().close();
        // Threads that wait for a contact see that it is over.
        self.routes.notify_contacts();
        let time = Duration::from_millis(self.config().finalize_ms);
        let deadline = timeout.and_then(|timeout| Instant::now().checked_add(timeout));
        let limit = Instant::now() + timeout.map_or(time, |timeout| timeout.min(time));
        self.let_finish(limit);
        if !self.background.settle() {
            // Others may rely on this rank's threads, which do not wait for these tasks any more.
            self.background.enlist();
            self.background.call(true);
        }
        let mut free = self.notifier.stop(limit + STUCK);
        free &= self.cancel(limit + STUCK);
        // From here on this rank asks for nothing; its progress thread still serves the others, and
        // messages are still handled. Behind the first fence no message is sent but responses to
        // what has come, behind the second one none at all.
        let fenced = self.bootstrap.fence_survivors_by(deadline);
        let rest = if free && fenced.is_ok() { time } else { Duration::ZERO };
        self.handle_the_rest(Instant::now() + rest);
        let fenced = fenced.and_then(|()| self.bootstrap.fence_survivors_by(deadline));
        let limit = Instant::now() + if free { time.max(STUCK) } else { Duration::ZERO };
        // With polled handlers nobody else handles them.
        while self.dispatcher.is_polled() && self.dispatcher.help() > 0 {}
        free &= self.handling.stop(limit) & self.progress.stop(limit);
        if free {
            // Not before: ranks that have not come to the fence may need what this one's tasks do.
            self.background.cancel(Status::ERR_CANCELED);
            // What a handler has posted while all this went on.
            free = self.cancel(Instant::now() + STUCK);
        }
        self.bootstrap.leave();
        self.routes.notices().withdraw_all();
        if !free {
            let time = self.config().finalize_ms;
            let text = format!(
                "a callback or handler of this context has not returned, expected it to within {time} ms \
                 (LLCL_FINALIZE_MS); what waits behind it is not told, and the context's memory stays"
            );
            return Ended { status: Err(Error::new(Status::ERR_TIMEOUT, text)), stuck: true };
        }
        let status = self.routes.fabric().failure().map_or(fenced, Err);
        Ended { status, stuck: false }
    }

    /// Lets operations end, until `limit`.
    fn let_finish(&self, limit: Instant) {
        let mut backoff = Backoff::new(Duration::MAX);
        let idle = || {
            self.background.settle()
                && self.dispatcher.is_idle()
                && !self.post.parked.any()
                && self.routes.fabric().has_delivered_all()
                && self.lane.is_idle() == Some(true)
        };
        while !idle() && Instant::now() < limit {
            if !self.blocking().help_others() {
                backoff.pause();
            }
        }
    }

    /// Handles what has come and sends the responses, until `limit`.
    fn handle_the_rest(&self, limit: Instant) {
        let mut backoff = Backoff::new(Duration::from_micros(100));
        let done = || self.dispatcher.has_handled_all() && self.routes.fabric().has_delivered_all();
        while !done() && Instant::now() < limit {
            if self.blocking().help_others() {
                backoff.renew();
            } else if !backoff.pause() {
                std::thread::sleep(NAP);
            }
        }
    }

    /// Cancels what is under way. False: at `limit` another thread still had the role.
    fn cancel(&self, limit: Instant) -> bool {
        let mut backoff = Backoff::new(Duration::MAX);
        let mut free = true;
        while free && (!self.poster.cancel_parked() || self.lane.cancel().is_none()) {
            free = Instant::now() < limit;
            backoff.pause();
        }
        self.post.end_all(Status::ERR_CANCELED, |_| true);
        free
    }
}
