//! The end of a context.

use crate::core::context::Context;
use crate::fail;
use crate::util::backoff::Backoff;
use crate::util::status::{Error, Result, Status};
use std::ops::Range;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// The least time that finalize() waits for a thread that is in a callback or handler.
const STUCK: Duration = Duration::from_secs(1);
/// How long a finalize() with a time-out waits, if need be beyond it, until the answers of a hub in
/// this process have reached the ranks that are leaving, too.
const LEAVING: Duration = Duration::from_millis(100);
/// How long the end waits, for all memory together, until a network has ended the transfers that it
/// has begun.
const TRANSFERS: Duration = Duration::from_secs(1);
/// How long it sleeps between two looks at the messages that other threads handle.
const NAP: Duration = Duration::from_micros(100);

/// How a context has ended.
pub struct Ended {
    /// The status for the user.
    pub status: Result<()>,
    /// Whether one of its threads is still in a function of the user, and will use the context
    /// after the return.
    pub stuck: bool,
}

impl Context {
    /// An error inside a callback, whose return finalize() would await, and on a thread that cannot
    /// close the wire.
    pub fn may_finalize(&self) -> Result<()> {
        let fabric = self.routes.fabric();
        if fabric.opener_polls() && !fabric.must_poll_here() {
            fail!(
                ERR_STATE,
                "the network allows calls of one thread only (MPI_THREAD_FUNNELED), so the thread \
                 that has made the context must call this"
            );
        }
        self.may_block()
    }

    /// Ends the context, also if it returns an error. Collective. The operations under way end,
    /// each once, by success or cancellation. The call waits until the other ranks have called it
    /// too, and serves them meanwhile. Then it stops the threads. With a `timeout` it waits no
    /// longer than that for other ranks, then leaves, and returns ERR_TIMEOUT.
    pub fn finalize(&self, timeout: Option<Duration>) -> Ended {
        self.quick.peers.store(0, Ordering::Relaxed);
        self.routes.gate().close();
        // Wakes threads that wait for a contact, which find that the context ends.
        self.routes.notify_contacts();
        let time = Duration::from_millis(self.config().finalize_ms);
        let deadline = timeout.and_then(|timeout| Instant::now().checked_add(timeout));
        let limit = Instant::now() + timeout.map_or(time, |timeout| timeout.min(time));
        self.let_finish(limit);
        if !self.background.settle() {
            // Other ranks may depend on the tasks of this rank. The counted work makes the progress
            // thread advance them until it is stopped.
            self.background.add_work();
            self.background.call(true);
        }
        let mut free = self.notifier.stop(limit + STUCK);
        free &= self.cancel(limit + STUCK);
        // From here on this rank makes no requests; its progress thread still serves the other
        // ranks, and messages are still handled. After the first fence the ranks send no messages
        // but responses; after the second fence they send none.
        let fenced = self.bootstrap.fence_survivors_by(deadline);
        let time_left = if free && fenced.is_ok() { time } else { Duration::ZERO };
        self.handle_remaining(Instant::now() + time_left);
        let fenced = fenced.and_then(|()| self.bootstrap.fence_survivors_by(deadline));
        let limit = Instant::now() + if free { time.max(STUCK) } else { Duration::ZERO };
        // Polled handlers run only here now.
        while self.dispatcher.is_polled() && self.dispatcher.help(&|| false) > 0 {}
        free &= self.handler_thread.stop(limit) & self.progress.stop(limit);
        if free {
            // Not earlier: a rank that had not reached the fence might have needed this rank's
            // tasks.
            self.background.cancel(Status::ERR_CANCELED);
            // Cancels requests that handlers have posted meanwhile.
            free = self.cancel(Instant::now() + STUCK);
        }
        self.bootstrap.leave_by(match (&fenced, deadline) {
            (Ok(()), None) => None,
            // The others leave now, too.
            (Ok(()), Some(deadline)) => Some(deadline.max(Instant::now() + LEAVING)),
            (Err(_), _) => Some(Instant::now()),
        });
        self.routes.control_messages().withdraw_all();
        if !free {
            let time = self.config().finalize_ms;
            let text = format!(
                "a callback or handler of this context has not returned, expected it to within {time} ms \
                 (LLCL_FINALIZE_MS); completions that wait for it do not fire, and the context's memory \
                 is not freed"
            );
            return Ended { status: Err(Error::new(Status::ERR_TIMEOUT, text)), stuck: true };
        }
        let used = self.regions.deregister_all(Instant::now() + TRANSFERS);
        // Not with the status of the wire, which might be ERR_STATE: that means that the context
        // has not ended.
        let of_wire = |why: Error| Err(Error::new(Status::ERR_SYSTEM, why.message().into()));
        let status = self.routes.fabric().failure().map_or(fenced, of_wire);
        Ended { status: must_keep(&used).and(status), stuck: false }
    }

    /// Waits for the operations under way, until `limit`.
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

    /// Handles the messages that have arrived and sends the responses, until `limit`.
    fn handle_remaining(&self, limit: Instant) {
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

    /// Cancels the operations under way. False: at `limit` another thread still had the role.
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

/// The error for a program whose registered memory a network may still use.
fn must_keep(used: &[Range<usize>]) -> Result<()> {
    let Some(first) = used.first() else { return Ok(()) };
    let others = match used.len() - 1 {
        0 => String::new(),
        others => format!(", and {others} other registered regions"),
    };
    fail!(
        ERR_SYSTEM,
        "the network may still use the registered {} bytes at {:#x}{others}: registered memory must \
         stay valid, and without other use, until the network's library (such as MPI) or the process \
         has ended",
        first.len(),
        first.start
    )
}
