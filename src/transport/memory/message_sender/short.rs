//! The fast path of short messages, which many programs send most: a header of one word, no
//! payload, and a sender that does not wait for the end, to a rank of this node whose policy is
//! `acquire`. It takes the steps of send() (`transport::memory::slots`), but tries only once and
//! calls no function, except while threads wait for credit. Callers use send() when it refuses a
//! message.

use super::MessageSender;
use crate::transport::frame::Envelope;
use crate::transport::memory::message_area::{Policy, REPLIES, RESPONSES};
use crate::transport::memory::message_sender::ENVELOPE_WORDS;
use crate::transport::memory::slots::SlotShare;
use crate::util::counters::Counters;
use crate::util::sync::AtomicU64;

/// Size of the header in bytes.
pub(super) const WORD: usize = 8;

/// The result of send_short().
pub enum Short {
    /// The message is sent.
    Sent,
    /// The message is sent; the caller must call finish_short() with this ticket, or
    /// finish_response().
    Unfinished(u64),
    /// The message is not sent, and nothing has changed.
    Refused,
}

/// A short message. A trait, so that the compiler loads each part where it is needed and keeps no
/// register for it until then.
pub trait ShortMessage {
    /// The number of the handler.
    fn id(&self) -> u32;
    /// A number of the user.
    fn label(&self) -> u16;
    /// The header.
    fn header(&self) -> u64;
    /// The counters of this context.
    fn counts(&self) -> &Counters;
}

impl MessageSender<'_> {
    /// Whether send_short() may be used for this peer.
    pub fn has_short_path(&self) -> bool {
        self.message_area.sizes.policy == Policy::Acquire && !self.first.slots.is_empty()
    }

    /// Sends a request. `own`: the number of the calling thread, for the counters.
    #[inline(always)]
    pub fn send_short(&self, message: &impl ShortMessage, own: usize) -> Short {
        let head = self.message_area.head;
        if !head.has_handler(message.id()) || !self.admits(false) {
            return Short::Refused;
        }
        let Some(ticket) = self.put_short(&self.first, &self.first_cached, message) else {
            self.give_turn_back();
            return Short::Refused;
        };
        message.counts().message_sent_by(own, 0);
        match self.message_area.head.requests.may_be_armed() || self.first.fetches_ahead(ticket) {
            true => Short::Unfinished(ticket),
            false => Short::Sent,
        }
    }

    /// Like send_short(), for a response. The rest of it is finish_response().
    #[inline(always)]
    pub fn respond_short(&self, message: &impl ShortMessage, own: usize) -> Short {
        let known = &self.others[RESPONSES - REPLIES];
        let (Some(Some(share)), true) =
            (known.share.get(), self.message_area.head.has_handler(message.id()))
        else {
            return Short::Refused;
        };
        let Some(ticket) = self.put_short(share, &known.cached, message) else {
            return Short::Refused;
        };
        message.counts().replied_by(own);
        match self.message_area.head.requests.may_be_armed() {
            true => Short::Unfinished(ticket),
            false => Short::Sent,
        }
    }

    /// Takes a ticket, and writes and publishes its slot. None: nothing has changed.
    #[inline(always)]
    fn put_short(
        &self,
        share: &SlotShare<'_>,
        cached: &AtomicU64,
        message: &impl ShortMessage,
    ) -> Option<u64> {
        let (ticket, slot) = share.take_at_once(self.me, cached)?;
        let envelope = Envelope::short(self.of_short, message.id(), message.label());
        let body: *mut u64 = slot.body().with_mut(|body| body.cast());
        // SAFETY: this thread has the slot's ticket, so no other thread uses the slot until it is
        // published.
        unsafe {
            body.cast::<[u64; ENVELOPE_WORDS]>().write(envelope.0);
            body.add(ENVELOPE_WORDS).write(message.header());
        }
        slot.publish(ticket);
        Some(ticket)
    }

    /// The rest of respond_short(), after the response is published: wakes the receiver if it
    /// sleeps.
    pub fn finish_response(&self, counts: &Counters) {
        let flag = &self.message_area.head.requests;
        self.wake(flag, flag.bell(), counts);
    }

    /// The rest of send_short(), after the message is published: wakes the receiver if it sleeps,
    /// and fetches the cache lines of later slots.
    #[inline(never)]
    pub fn finish_short(&self, ticket: u64, counts: &Counters) {
        self.finish_response(counts);
        self.first.fetch_ahead(ticket, &self.first_cached);
    }
}
