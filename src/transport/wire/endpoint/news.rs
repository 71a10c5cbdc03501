//! What an endpoint tells those who have made it.

use super::Endpoint;
use crate::transport::frame::{Class, Frame};
use crate::transport::wire::grants::Packet;
use crate::util::status::Error;
use std::sync::Arc;

/// Puts a frame of a rank into this rank's slots. False: there is none for it now.
pub type Deliver = Box<dyn Fn(u32, Class, &Frame) -> bool + Send + Sync>;

/// What the bootstrap hears of a wire.
pub struct News {
    /// What the hub in a rank's process has sent to the one in this process. Called under the
    /// endpoint's lock.
    pub relayed: Box<dyn Fn(u32, Vec<u8>) + Send>,
    /// The wire has failed. Called without the lock, once.
    pub failed: Box<dyn Fn() + Send + Sync>,
}

/// Told of a peer that the wire does not reach, when `PATIENCE` is over and nobody has called
/// mark_dead().
pub type Unreachable = Box<dyn Fn(u32) + Send + Sync>;

impl Endpoint {
    /// Who is told of peers that the wire does not reach. The first one stays.
    pub fn on_unreachable(&self, tell: Unreachable) {
        let _ = self.shared.unreachable.set(Box::new(tell));
    }

    /// What takes packets of the hub in this process to another, as long as this end lives.
    pub fn relay(&self) -> Box<dyn Fn(u32, Vec<u8>) + Send + Sync> {
        let end = Arc::downgrade(&self.shared);
        Box::new(move |to, packet| {
            if let Some(shared) = end.upgrade() {
                shared.send_and_wake(shared.lock(), vec![(to, Packet::Relayed(packet))]);
            }
        })
    }

    /// Why the wire has failed, if it has.
    pub fn failure(&self) -> Option<Error> {
        let state = self.shared.lock();
        state.failure.as_ref().map(|why| Error::new(why.status, why.message().to_owned()))
    }
}

/// For tests: nobody hears of anything.
#[cfg(test)]
pub fn no_news() -> News {
    News { relayed: Box::new(|_, _| ()), failed: Box::new(|| ()) }
}

/// For tests: nothing that comes is taken.
#[cfg(test)]
pub fn nowhere() -> Deliver {
    Box::new(|_, _, _| false)
}
