//! Near places. A payload that does not fit into its slot has a place outside, one for each slot.
//! The first messages touch these places one by one, and each new page costs microseconds. So a
//! sender whose ticket is less than 64 ahead of RecvCNT writes a payload that is not long
//! (`message_area::places`) to a near place instead, of which a share has 64: after as many
//! messages no page is new.

use super::SlotShare;
use crate::util::sync::Ordering;

impl SlotShare<'_> {
    /// Whether the sender of a ticket may write its payload to the near place of the ticket, which
    /// all tickets with the same remainder modulo `near` share. If the ticket is less than `near`
    /// ahead of RecvCNT, the receiver has read the messages of the others, or has set them aside.
    /// A share with few slots uses no near places.
    #[inline(always)]
    pub fn is_near(&self, ticket: u64, near: usize) -> bool {
        // Acquire, both: pair with give_back() and set_asides(). The receiver counts a message that
        // it sets aside before it gives the ticket back.
        self.slots.len() > near
            && ticket.wrapping_sub(self.recv.load(Ordering::Acquire)) < near as u64
            && self.asides.load(Ordering::Acquire) == 0
    }

    /// Sets the number of messages that are set aside and were not taken. The receiver calls it
    /// before it gives the ticket of such a message back, and after it has read one.
    pub fn set_asides(&self, count: u64) {
        self.asides.store(count, Ordering::Release);
    }
}
