//! The callbacks of an endpoint: into the message slots, the bootstrap and the engine.

use super::Endpoint;
use crate::transport::frame::{Class, Frame};
use crate::transport::remote::Signal;
use crate::util::status::{Error, Status};

/// Writes a frame from a rank into one of this rank's slots. False: no slot is free.
pub type Deliver = Box<dyn Fn(u32, Class, &Frame) -> bool + Send + Sync>;

/// The callbacks into the bootstrap.
pub struct News {
    /// Takes a packet that the hub in this rank's process has sent to the hub in this process.
    /// Called under the endpoint's lock.
    pub relayed: Box<dyn Fn(u32, Vec<u8>) + Send>,
    /// The wire has failed. Called without the lock, once.
    pub failed: Box<dyn Fn() + Send + Sync>,
}

/// Called with a peer that the wire has lost, if nobody has called mark_dead() for it within
/// `PATIENCE`.
pub type Unreachable = Box<dyn Fn(u32) + Send + Sync>;

/// Changes the word of a rank's signal in this rank's memory, or hands over the control message
/// that the signal stands for. Returns the status for the sender, and the word's old value if the
/// signal is an atomic. Called without the endpoint's lock.
pub type Signalled = Box<dyn Fn(u32, &Signal) -> (Status, u64) + Send + Sync>;

impl Endpoint {
    /// Sets the callback for signals. The first call counts.
    pub fn on_signal(&self, change: Signalled) {
        let _ = self.shared.signalled.set(Box::new(change));
    }

    /// Sets the callback for unreachable peers. The first call counts.
    pub fn on_unreachable(&self, report: Unreachable) {
        let _ = self.shared.unreachable.set(Box::new(report));
    }

    /// The error with which the wire has failed, if it has.
    pub fn failure(&self) -> Option<Error> {
        let state = self.shared.lock();
        state.failure.as_ref().map(|why| Error::new(why.status, why.message().to_owned()))
    }
}

/// For tests: callbacks that do nothing.
#[cfg(test)]
pub fn no_news() -> News {
    News { relayed: Box::new(|_, _| ()), failed: Box::new(|| ()) }
}

/// For tests: no frame ever finds a slot.
#[cfg(test)]
pub fn no_slot() -> Deliver {
    Box::new(|_, _, _| false)
}
