//! What senders ask of a peer beside credit, and what stands for a peer that a wire leads to.

use super::short::WORD;
use super::{MessageSender, Near};
use crate::transport::frame::{Envelope, LARGEST};
use crate::transport::memory::message_area::{MessageArea, MessageHead, Sizes};

impl<'a> MessageSender<'a> {
    /// What is known of a peer that a wire leads to, none of whose slots can be seen. `head` stands
    /// for its words. What it says of credit and puts into slots is not to be asked for.
    pub fn over_wire(head: &'a MessageHead, sizes: Sizes, (me, peer): (u32, u32)) -> Self {
        let (claims, slots, payloads) = (&[][..], &[][..], std::ptr::null_mut());
        let message_area = MessageArea { head, sizes, claims, slots, payloads };
        let others = std::array::from_fn(|_| {
            let none = Near::new(0);
            let _ = none.share.set(None);
            none
        });
        let first = (message_area.no_slots(), Near::new(0).cached);
        let near = (first, [].into(), others, 0);
        Self::with(message_area, (me, peer), 0, near, head.requests.bell())
    }

    /// What is sent from now on another rank has sent, and this one puts into slots for it.
    pub fn set_source(&mut self, source: u32) {
        (self.source, self.of_short) = (source, Envelope::of_short(source, WORD));
    }

    /// How many slots the peer has for requests.
    pub fn slots(&self) -> usize {
        self.message_area.sizes.slots
    }

    /// The number of the peer's policy, as the configuration has it.
    pub fn policy(&self) -> u32 {
        self.message_area.sizes.policy as u32
    }

    /// Most bytes of a payload.
    pub fn largest(&self) -> usize {
        LARGEST
    }
}
