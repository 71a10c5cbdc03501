//! A run: short messages of the present share, taken one after the other. What need not be known
//! after each of them is written down at the end.

use super::{BATCH, MessageReceiver, QUIET};
use crate::transport::frame::Envelope;
use crate::transport::memory::message_sender::ENVELOPE_WORDS;
use crate::transport::memory::slots::{Slot, mark, next_mark};

/// Consumes the messages of a run.
pub trait Consumer {
    /// Consumes a short message, whose header lies there. False: it is left where it is, for peek()
    /// and done().
    fn consume(&mut self, envelope: Envelope, header: *const u8) -> bool;

    /// Whether the next one may be consumed, after one that was.
    fn goes_on(&mut self) -> bool;
}

/// The envelope of a published slot, and where the bytes behind it lie.
#[inline(always)]
pub(super) fn envelope(slot: &Slot) -> (Envelope, *const u8) {
    let body: *const u64 = slot.body().with(|body| body.cast());
    // SAFETY: published and not given back, so it is ours; what a hostile peer writes into it
    // meanwhile is read once, and bounded by whoever uses it.
    let words =
        unsafe { [body.read_volatile(), body.add(1).read_volatile(), body.add(2).read_volatile()] };
    (Envelope(words), body.wrapping_add(ENVELOPE_WORDS).cast())
}

impl MessageReceiver {
    /// Gives the short messages that come next in the present share to a consumer: up to `most`, as
    /// long as the share has its turn, and until slots are to be given back. Returns how many were
    /// consumed.
    #[inline(always)]
    pub fn run(&mut self, most: usize, consumer: &mut impl Consumer) -> usize {
        let (batch, none) = (self.batch, self.present_aside.is_some() || !self.is_ready());
        let (mut slot, mut awaited) = (self.slot, self.awaited);
        let stand = self.present();
        let (first, share, lot) = (stand.next, stand.share, stand.lot);
        let owed = first.wrapping_sub(stand.returned);
        // At least one: done() gives slots back as soon as a lot of them is owed.
        let most = (most as u64).min(u64::from(BATCH.saturating_sub(batch))).min(lot - owed);
        if none || most == 0 {
            return 0;
        }
        // The marks stand for the tickets: so one number tells where the run is.
        let end = mark(first.wrapping_add(most));
        let look = self.lookout.front();
        while slot.holds(awaited) {
            let (envelope, header) = envelope(slot);
            if !envelope.is_short() || !consumer.consume(envelope, header) {
                break;
            }
            awaited = next_mark(awaited);
            slot = share.slot_marked(awaited);
            look.moved(slot, awaited);
            if awaited == end || !consumer.goes_on() {
                break;
            }
        }
        let count = awaited.wrapping_sub(mark(first)) / 2;
        let next = first.wrapping_add(count);
        if count > 0 {
            (self.slot, self.awaited) = (slot, awaited);
            self.ran(next, count as u32);
            if owed + count >= lot {
                self.settle();
            }
        }
        count as usize
    }

    /// The messages of the present share before `next` were consumed, so many. As in done().
    #[inline(always)]
    fn ran(&mut self, next: u64, count: u32) {
        let stand = self.present();
        stand.next = next;
        stand.unfinished = None;
        stand.misses = 0;
        self.batch += count;
        (self.quiet, self.granted, self.spare) = (0, QUIET, QUIET);
    }
}
