//! The transport from a rank to itself, and the shortest example of a transport.
//!
//! The port knows all regions of its own rank, so [`Transport::locate`] never maps one: it refuses
//! an unknown key. Requests wait in a queue of fixed size. Answers wait in a queue that the number
//! of tags bounds. Only the holder of the lane's role posts and polls, so threads do not wait for
//! the lock, and no thread must be woken.

use crate::fail;
use crate::transport::address::{Address, Key};
use crate::transport::imports::ImportTable;
use crate::transport::port::Port;
use crate::transport::waiters::Waiters;
use crate::transport::{Access, Message, Pair, Posted, Receiver, Reply, Sink, Transport};
use crate::util::status::Result;
use crossbeam_utils::CachePadded;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Most requests in the queue.
const REQUESTS: usize = 64;

#[derive(Default)]
struct Queues {
    requests: VecDeque<(Message, Box<[u8]>)>,
    replies: VecDeque<(Reply, Box<[u8]>)>,
}

#[derive(Default)]
struct Shared {
    queues: Mutex<Queues>,
    /// Whether there is something in the queues. The holder of the lane's role writes and reads it,
    /// so that a round that finds nothing does not pay for the lock.
    filled: AtomicBool,
}

/// On cache lines of its own: requesters read the data that would share its line.
type SharedQueues = Arc<CachePadded<Shared>>;

impl Shared {
    fn open(&self) -> MutexGuard<'_, Queues> {
        self.queues.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Relaxed, here and where it is written: the role orders its holders.
    fn is_filled(&self) -> bool {
        self.filled.load(Ordering::Relaxed)
    }
}

/// The sending side.
pub struct Loopback {
    waiters: *const Waiters,
    shared: SharedQueues,
}

// SAFETY: `waiters` points to atomics in shared memory that outlive the transport, see new().
unsafe impl Send for Loopback {}
// SAFETY: as above.
unsafe impl Sync for Loopback {}

impl Loopback {
    /// The transport of a rank whose sleeping threads are `waiters`.
    ///
    /// # Safety
    /// `waiters` stays valid as long as the transport and its ports.
    pub unsafe fn new(waiters: *const Waiters) -> Loopback {
        Loopback { waiters, shared: SharedQueues::default() }
    }

    /// The port of rank `me` to itself.
    pub fn connect(&self, me: u32) -> Result<Port> {
        // SAFETY: see new().
        let port =
            unsafe { Port::new(me, std::process::id(), self.waiters, ImportTable::whole()?) };
        port.know_own_memory();
        Ok(port)
    }

    /// The receiving side. Called once.
    pub fn receiver(&self) -> LoopbackReceiver {
        LoopbackReceiver { shared: self.shared.clone() }
    }
}

impl Transport for Loopback {
    fn locate(&self, port: &Port, address: Address, size: u64) -> Result<Access> {
        let key = Key(address.key);
        match port.length(key) {
            Some(length) => address.check(size, length).map(|()| Access::Mapped),
            None => fail!(ERR_KEY, "key {:#x} names no live region of rank {}", key.0, port.peer),
        }
    }

    fn kernel_refusals(&self, _: &Port) -> (i32, i32) {
        (0, 0)
    }

    fn registered_access(&self, _: &Port) -> Access {
        Access::Mapped
    }

    unsafe fn kernel_read(&self, _: &Port, pairs: &[Pair]) -> Result<()> {
        for Pair { ours, theirs, size } in pairs {
            // SAFETY: `theirs` lies in a region of this process; the caller vouches for `ours`.
            unsafe { std::ptr::copy(*theirs as *const u8, *ours, *size) };
        }
        Ok(())
    }

    unsafe fn kernel_write(&self, _: &Port, pairs: &[Pair]) -> Result<()> {
        for Pair { ours, theirs, size } in pairs {
            // SAFETY: as above, with the directions exchanged.
            unsafe { std::ptr::copy(*ours, *theirs as *mut u8, *size) };
        }
        Ok(())
    }

    fn post(&self, _: &Port, message: &Message, bytes: &[u8]) -> Posted {
        let mut queues = self.shared.open();
        if queues.requests.len() == REQUESTS {
            return Posted::Full;
        }
        queues.requests.push_back((*message, bytes.into()));
        self.shared.filled.store(true, Ordering::Relaxed);
        Posted::Taken
    }

    fn reply(&self, _: &Port, reply: Reply, bytes: &[u8]) -> bool {
        self.shared.open().replies.push_back((reply, bytes.into()));
        self.shared.filled.store(true, Ordering::Relaxed);
        true
    }

    fn mark_dead(&self, _: u32) -> bool {
        false // A dead rank does not call this.
    }
}

/// The receiving side of [`Loopback`].
pub struct LoopbackReceiver {
    shared: SharedQueues,
}

impl Receiver for LoopbackReceiver {
    fn poll(&mut self, sink: &mut dyn Sink) -> usize {
        if !self.shared.is_filled() {
            return 0;
        }
        // The sink may post while it handles these; the next poll takes the new ones.
        let (requests, replies) = {
            let mut queues = self.shared.open();
            self.shared.filled.store(false, Ordering::Relaxed);
            (std::mem::take(&mut queues.requests), std::mem::take(&mut queues.replies))
        };
        requests.iter().for_each(|(message, bytes)| sink.request(message, bytes));
        replies.iter().for_each(|(reply, bytes)| sink.reply(*reply, bytes));
        requests.len() + replies.len()
    }

    fn arm(&mut self) -> bool {
        !self.shared.is_filled()
    }

    fn disarm(&mut self) {}
}
