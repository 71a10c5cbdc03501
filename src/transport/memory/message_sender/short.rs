//! The short way of a message that many programs send most: a header of one word, no payload, and
//! no end that its sender waits for, to a rank of this node whose policy is `acquire`. It tries
//! once, calls nothing on its way, and leaves everything that is not so every time to send(), which
//! takes the same steps (`transport::memory::slots`).

use super::MessageSender;
use crate::transport::frame::Envelope;
use crate::transport::memory::message_area::Policy;
use crate::transport::memory::message_sender::ENVELOPE_WORDS;
use crate::util::counters::Counters;

/// Bytes of the header.
pub(super) const WORD: usize = 8;

/// What became of the attempt.
pub enum Short {
    /// The message is sent.
    Sent,
    /// The message is sent; finish_short() is to be called with this ticket.
    Unfinished(u64),
    /// Nothing has happened.
    Refused,
}

/// A short message. Its parts are asked for where they are needed: what is not kept until then
/// takes no register.
pub trait ShortMessage {
    /// For which handler.
    fn id(&self) -> u32;
    /// The user's own number.
    fn label(&self) -> u16;
    /// The header.
    fn header(&self) -> u64;
    /// Where the messages of this context are counted.
    fn counts(&self) -> &Counters;
}

impl MessageSender<'_> {
    /// Whether messages to this peer may go the short way.
    pub fn has_short_way(&self) -> bool {
        self.message_area.sizes.policy == Policy::Acquire && !self.first.slots.is_empty()
    }

    /// Sends a message in the name of the calling thread, whose number is `own`.
    #[inline(always)]
    pub fn send_short(&self, message: &impl ShortMessage, own: usize) -> Short {
        let head = self.message_area.head;
        // Whoever waits for credit, here or in other processes, has turns. Joined before one
        // branch.
        let waiting = u64::from(self.room.waiting()) | head.credit.sleepers();
        if waiting != 0 || !head.has_handler(message.id()) {
            return Short::Refused;
        }
        let Some((ticket, slot)) = self.first.take_at_once(self.me, &self.first_cached) else {
            return Short::Refused;
        };
        let envelope = Envelope::short(self.of_short, message.id(), message.label());
        let body: *mut u64 = slot.body().with_mut(|body| body.cast());
        // SAFETY: the slot is the caller's until it is published, see SlotShare.
        unsafe {
            body.cast::<[u64; ENVELOPE_WORDS]>().write(envelope.0);
            body.add(ENVELOPE_WORDS).write(message.header());
        }
        slot.publish(ticket);
        message.counts().message_sent_by(own, 0);
        match self.message_area.head.requests.may_be_closed() || self.first.fetches_ahead(ticket) {
            true => Short::Unfinished(ticket),
            false => Short::Sent,
        }
    }

    /// What a message brings with it that was sent: wakes the receiver if it sleeps, and fetches
    /// the lines of the slots to come.
    #[inline(never)]
    pub fn finish_short(&self, ticket: u64, counts: &Counters) {
        let door = &self.message_area.head.requests;
        self.knock(door, door.bell(), counts);
        self.first.fetch_ahead(ticket, &self.first_cached);
    }
}
