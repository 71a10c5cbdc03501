//! The fast path of short messages, which many programs send most: the bytes fit into a slot, the
//! sender does not wait for the end, and the receiver is a rank of this node whose policy is
//! `acquire`. It takes the steps of send() (`transport::memory::slots`), but tries only once and
//! calls no function, except while other processes wait for credit or when the thread's share is
//! used up. Callers use send() when it refuses a message.

use super::MessageSender;
use crate::transport::frame::{ALONG, Envelope, Frame};
use crate::transport::memory::message_area::{Policy, REPLIES, RESPONSES};
use crate::transport::memory::message_sender::{ENVELOPE_WORDS, INLINE_BYTES};
use crate::transport::memory::slots::SlotShare;
use crate::util::copy::copy_few;
use crate::util::counters::Counters;
use crate::util::sync::AtomicU64;

#[cfg(all(test, not(loom)))]
mod tests;

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
/// register for it until then. The messages are [`Small`] ones, and those whose form the caller
/// knows when it is compiled.
pub trait ShortMessage {
    /// The number of the handler.
    fn id(&self) -> u32;
    /// The counters of this context.
    fn counts(&self) -> &Counters;
    /// The envelope of the message from rank `source`; `origin` is Envelope::origin() of that rank.
    fn envelope(&self, origin: u64) -> Envelope;
    /// Writes header and payload.
    ///
    /// # Safety
    /// `to` is valid for writing INLINE_BYTES.
    unsafe fn write(&self, to: *mut u64);
}

/// A message with any header and payload that fit into a slot together.
pub struct Small<'a> {
    frame: &'a Frame<'a>,
    /// Where the payload begins, behind the header.
    room: usize,
    counts: &'a Counters,
}

impl<'a> Small<'a> {
    /// A message of kind ALONG and tag 0. None: it does not fit. `counts`: the sender's.
    #[inline(always)]
    pub fn of(frame: &'a Frame, counts: &'a Counters) -> Option<Small<'a>> {
        debug_assert!(frame.kind == ALONG && frame.tag == 0);
        // Neither sum overflows: see Frame.
        let room = frame.header.len().wrapping_add(7) & !7;
        let fits = room.wrapping_add(frame.payload.len()) <= INLINE_BYTES;
        fits.then_some(Small { frame, room, counts })
    }
}

impl ShortMessage for Small<'_> {
    #[inline(always)]
    fn id(&self) -> u32 {
        self.frame.id.into()
    }

    #[inline(always)]
    fn counts(&self) -> &Counters {
        self.counts
    }

    #[inline(always)]
    fn envelope(&self, origin: u64) -> Envelope {
        Envelope::of(origin, self.frame)
    }

    #[inline(always)]
    unsafe fn write(&self, to: *mut u64) {
        let to: *mut u8 = to.cast();
        // SAFETY: as the caller promises; the bytes fit, see of().
        unsafe {
            copy_few(self.frame.payload, to.add(self.room));
            copy_few(self.frame.header, to);
        }
    }
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
        let body: *mut u64 = slot.body().with_mut(|body| body.cast());
        // SAFETY: this thread has the slot's ticket, so no other thread uses the slot until it is
        // published. The envelope and INLINE_BYTES fill its body.
        unsafe {
            message.write(body.add(ENVELOPE_WORDS));
            body.cast::<[u64; ENVELOPE_WORDS]>().write(message.envelope(self.origin).0);
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
