//! The sending state towards a peer behind a wire, and the peer's numbers.

use super::{CachedShare, MessageSender};
use crate::transport::frame::{Envelope, LARGEST};
use crate::transport::memory::message_area::{MessageArea, MessageHead, Sizes};

impl<'a> MessageSender<'a> {
    /// The sending state towards a peer behind a wire, without slots. `head` stands for the peer's
    /// message head. The functions that take credits or write slots must not be called: the
    /// endpoint does this.
    pub fn over_wire(head: &'a MessageHead, sizes: Sizes, (me, peer): (u32, u32)) -> Self {
        let (claims, slots, payloads) = (&[][..], &[][..], std::ptr::null_mut());
        let message_area = MessageArea { head, sizes, claims, slots, payloads };
        let others = std::array::from_fn(|_| {
            let none = CachedShare::new(0);
            let _ = none.share.set(None);
            none
        });
        let first = (message_area.no_slots(), CachedShare::new(0).cached);
        let known = (first, [].into(), others, 0);
        Self::with(message_area, (me, peer), 0, known, head.requests.bell())
    }

    /// Sets the rank that the envelopes name as the sender: an endpoint writes slots for remote
    /// senders.
    pub fn set_source(&mut self, source: u32) {
        self.origin = Envelope::origin(source);
    }

    /// Number of slots of the peer for requests.
    pub fn slots(&self) -> usize {
        self.message_area.sizes.slots
    }

    /// The number of the peer's policy, as in the configuration.
    pub fn policy(&self) -> u32 {
        self.message_area.sizes.policy as u32
    }

    /// Most bytes of payload of a message.
    pub fn largest(&self) -> usize {
        LARGEST
    }
}
