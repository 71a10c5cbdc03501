//! The end of an endpoint.

use super::*;
use std::mem::ManuallyDrop;

/// How long close() may take to send what the lane has taken.
const DRAIN: Duration = Duration::from_secs(1);

impl Drop for Endpoint {
    fn drop(&mut self) {
        // Until the wire is closed it may use the frames and the host, so they must stay, also if
        // this function panics.
        let kept = ManuallyDrop::new(self.shared.clone());
        self.shared.lock().over = true;
        self.shared.wake.wake();
        let limit = Instant::now() + Duration::from_secs(10);
        // The callback of an unreachable peer, which the polling thread runs, may drop the last
        // reference to this endpoint: then this is the polling thread, which cannot join itself.
        let ended = |thread: Thread| thread.is_current() || thread.join_until(limit);
        if self.thread.take().is_none_or(ended) {
            self.memory.deregister_all();
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
