//! The end of an endpoint.

use super::*;
use std::mem::ManuallyDrop;

/// How long drop() waits until the lane has taken what a hub has sent, for the transfers of regions
/// that have not ended, and in close() until the lane has sent its frames; each.
const DRAIN: Duration = Duration::from_secs(1);
/// How long drop() sleeps between two looks at the frames that wait.
const NAP: Duration = Duration::from_micros(100);

impl Drop for Endpoint {
    fn drop(&mut self) {
        // Until the wire is closed it may use the frames and the host, so they must stay, also if
        // this function panics.
        let kept = ManuallyDrop::new(self.shared.clone());
        self.send_rest();
        self.shared.lock().over = true;
        self.shared.wake.wake();
        let limit = Instant::now() + Duration::from_secs(10);
        // The callback of an unreachable peer, which the polling thread runs, may drop the last
        // reference to this endpoint: then this is the polling thread, which cannot join itself.
        let ended = |thread: Thread| thread.is_current() || thread.join_until(limit);
        if self.thread.take().is_none_or(ended) {
            self.memory.deregister_all(DRAIN);
            let mut state = self.shared.lock();
            state.closed = true;
            state.tickets.iter_mut().for_each(Tickets::deregister);
            if state.lane.close(DRAIN).is_ok() {
                drop(state);
                drop(ManuallyDrop::into_inner(kept));
            }
        }
    }
}

impl Endpoint {
    /// Waits until the lane has taken the frames that wait for it, if a hub runs in this process:
    /// the hub of another machine may need what this one has said last.
    fn send_rest(&self) {
        if self.thread.as_ref().is_none_or(Thread::is_current) {
            // Nobody else posts them.
            return;
        }
        let waits = |state: MutexGuard<'_, State>| {
            state.hubs.has_sent && state.failure.is_none() && state.outgoing.waiting() > 0
        };
        let limit = Instant::now() + DRAIN;
        while waits(self.shared.lock()) && Instant::now() < limit {
            self.help(1, &mut || ());
            std::thread::sleep(NAP);
        }
    }
}
