//! A world inside one process: its ranks are threads, and a further thread is their hub.

use crate::bootstrap::client::lock;
use crate::bootstrap::hub::Hub;
use crate::fail;
use crate::util::fork::Gate;
use crate::util::socket::{self, Wake, interest};
use crate::util::status::Result;
use crate::util::thread::{Thread, spawn_quiet};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

/// The hub's buffers are on the heap.
const STACK: usize = 128 << 10;

/// See the head of the module. Dropping a world ends its hub; to ranks that are still in the world
/// this is the end of the launcher.
pub struct World {
    size: u32,
    /// The ends of the ranks that are not taken yet.
    ends: Mutex<Vec<Option<OwnedFd>>>,
    taken: Arc<AtomicUsize>,
    gate: Gate,
    stop: Arc<Wake>,
    thread: Option<Thread>,
}

/// A rank that is in use; dropped when the rank has left or died.
pub(super) struct TakenRank(Arc<AtomicUsize>);

impl Drop for TakenRank {
    fn drop(&mut self) {
        // Release: everything that the rank did happens before `is_idle` answers true; pairs with
        // its Acquire.
        self.0.fetch_sub(1, Ordering::Release);
    }
}

impl World {
    /// A world of `size` ranks, each to be taken once by `Bootstrap::from_world`.
    pub fn create(size: u32) -> Result<World> {
        let (hub, ends) = Hub::new(size)?;
        let (gate, stop) = (Gate::new()?, Arc::new(Wake::new()?));
        let stopped = stop.clone();
        let thread = spawn_quiet("llcl-hub", STACK, move || serve(hub, &stopped))?;
        let ends = Mutex::new(ends.into_iter().map(Some).collect());
        let taken = Arc::new(AtomicUsize::new(0));
        Ok(World { size, ends, taken, gate, stop, thread: Some(thread) })
    }

    /// How many ranks it has.
    pub fn size(&self) -> u32 {
        self.size
    }

    /// An error in a forked child, in which the hub does not run.
    pub fn must_be_own(&self) -> Result<()> {
        self.gate.must_be_own()
    }

    /// Whether every rank that was taken has left or died.
    pub fn is_idle(&self) -> bool {
        // Acquire: pairs with the Release of the last `TakenRank`.
        self.taken.load(Ordering::Acquire) == 0
    }

    pub(super) fn take(&self, rank: u32) -> Result<(OwnedFd, TakenRank)> {
        self.must_be_own()?;
        let mut ends = lock(&self.ends);
        let Some(end) = ends.get_mut(rank as usize) else {
            fail!(ERR_RANGE, "rank is {rank}, expected less than the world's size {}", self.size);
        };
        let Some(end) = end.take() else {
            fail!(ERR_STATE, "rank is {rank}, which was taken before, expected a rank once only");
        };
        // Relaxed: taking publishes nothing; the caller holds the world.
        self.taken.fetch_add(1, Ordering::Relaxed);
        Ok((end, TakenRank(self.taken.clone())))
    }
}

impl Drop for World {
    fn drop(&mut self) {
        self.stop.wake();
        if let Some(thread) = self.thread.take() {
            thread.join();
        }
    }
}

fn serve(mut hub: Hub, stop: &Wake) {
    loop {
        let mut waits = [interest(hub.as_fd(), libc::POLLIN), interest(stop.as_fd(), libc::POLLIN)];
        if socket::poll(&mut waits, -1).is_err() || waits[1].revents != 0 {
            return;
        }
        // An abort also ends the process of this thread, so no event needs to be passed on.
        if hub.turn().is_err() {
            return;
        }
    }
}
