//! How the receiver reads a message, and how it takes consecutive messages of the current share in
//! a run: it keeps its state in registers during the run, and stores it at the end.

use super::{BATCH, MessageReceiver, QUIET};
use crate::transport::frame::{Arrived, Class, Envelope, HEADER};
use crate::transport::memory::message_sender::{ENVELOPE_WORDS, INLINE_BYTES};
use crate::transport::memory::slots::{Slot, mark, next_mark};

/// Consumes the messages of a run.
pub trait Consumer {
    /// Whether the messages are responses.
    const RESPONSES: bool;

    /// Consumes a message. False: the message stays in its slot, for peek() and done().
    ///
    /// # Safety
    /// The message's slot is not given back during the call.
    unsafe fn consume(&mut self, arrived: Arrived) -> bool;

    /// Called after each consumed message: whether the run may go on.
    fn goes_on(&mut self) -> bool;
}

/// A word of the envelope of a published slot.
#[inline(always)]
fn word(slot: &Slot, number: usize) -> u64 {
    let body: *const u64 = slot.body().with(|body| body.cast());
    debug_assert!(number < ENVELOPE_WORDS);
    // SAFETY: the slot is published and not given back, so no sender writes it. A faulty peer may
    // still do so; therefore callers read each word once, and check the copy.
    unsafe { body.add(number).read_volatile() }
}

/// The envelope of a published slot without its tag, and the address of the bytes behind it. A
/// caller that reads the tag only when it needs it has a register more until then.
#[inline(always)]
fn untagged(slot: &Slot) -> (Envelope, *const u8) {
    let body: *const u64 = slot.body().with(|body| body.cast());
    let envelope = Envelope([word(slot, 0), word(slot, 1), 0]);
    (envelope, body.wrapping_add(ENVELOPE_WORDS).cast())
}

impl MessageReceiver {
    /// The message in `slot`, whose envelope may have any content.
    #[inline(always)]
    pub(super) fn read(&self) -> Arrived {
        let (mut envelope, header) = untagged(self.slot);
        envelope.0[2] = word(self.slot, 2);
        let ticket = self.current_ticket();
        let mut payload = match envelope.header_size() <= HEADER {
            true => self.payload(&envelope, header, ticket),
            false => None,
        };
        if payload.is_none() {
            envelope = envelope.bounded(self.largest_payload());
            payload = self.payload(&envelope, header, ticket);
        }
        let (payload, response) = (payload.unwrap_or_default(), self.class == Class::Responses);
        Arrived { envelope, header, payload, response }
    }

    /// Most bytes of a payload in the current share.
    fn largest_payload(&self) -> usize {
        self.message_area.sizes.payload_of(self.states[self.at].number)
    }

    /// Where the payload of the current share's ticket lies; null: there is none. None: its size in
    /// the envelope is not valid. The size of the header is.
    #[inline(always)]
    fn payload(&self, envelope: &Envelope, header: *const u8, ticket: u64) -> Option<*const u8> {
        if envelope.is_bare() {
            return Some(std::ptr::null());
        }
        let room = (envelope.header_size() + 7) & !7;
        match envelope.is_absent() {
            true => None,
            false if room + envelope.payload_size() <= INLINE_BYTES => {
                Some(header.wrapping_add(room))
            }
            false => self.payload_outside(envelope, ticket),
        }
    }

    /// payload(), for a payload that does not lie in the slot.
    #[inline(never)]
    fn payload_outside(&self, envelope: &Envelope, ticket: u64) -> Option<*const u8> {
        let (state, area) = (&self.states[self.at], &self.message_area);
        let place = area.place_to_read(state.number, &state.share, ticket, envelope);
        (envelope.payload_size() <= self.largest_payload()).then_some(place)
    }

    /// Gives the next usual messages of the current share to a consumer: up to `most`, within the
    /// share's turn, and until a lot of slots is to be given back. Returns how many were consumed.
    #[inline(always)]
    pub fn run<C: Consumer>(&mut self, most: usize, consumer: &mut C) -> usize {
        debug_assert_eq!(C::RESPONSES, self.class == Class::Responses);
        if self.has_had_its_turn() && !self.has_come_anywhere() {
            return 0;
        }
        let (batch, none) = (self.batch, self.current_aside.is_some() || !self.is_ready());
        let (mut slot, mut awaited) = (self.slot, self.awaited);
        let state = self.current();
        let (first, share, lot) = (state.next, state.share, state.lot);
        let owed = first.wrapping_sub(state.returned);
        // `lot - owed` is at least one: done() gives slots back as soon as they make a lot.
        let most = (most as u64).min(u64::from(BATCH.saturating_sub(batch))).min(lot - owed);
        if none || most == 0 {
            return 0;
        }
        // A mark contains its ticket, so one number is the state of the run.
        let end = mark(first.wrapping_add(most));
        let hint = self.arrival_hint.current();
        while self.give(slot, awaited, consumer) {
            awaited = next_mark(awaited);
            slot = share.slot_marked(awaited);
            hint.set_next(slot, awaited);
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

    /// Gives the next message of the current share to a consumer, if it is a usual one and the
    /// share's turn is not over. False: nothing was consumed.
    #[inline(always)]
    pub fn run_one<C: Consumer>(&mut self, consumer: &mut C) -> bool {
        debug_assert_eq!(C::RESPONSES, self.class == Class::Responses);
        let none = self.has_had_its_turn() || self.current_aside.is_some();
        if none || !self.give(self.slot, self.awaited, consumer) {
            return false;
        }
        self.batch += 1;
        self.done();
        true
    }

    /// Gives the message with the mark `awaited` to a consumer, if it is in its slot and a usual
    /// one. False: nothing was consumed.
    #[inline(always)]
    fn give<C: Consumer>(&self, slot: &Slot, awaited: u64, consumer: &mut C) -> bool {
        if !slot.holds(awaited) {
            return false;
        }
        let (mut envelope, header) = untagged(slot);
        if !envelope.is_usual() {
            return false;
        }
        let Some(payload) = self.payload(&envelope, header, awaited >> 1) else { return false };
        envelope.0[2] = word(slot, 2);
        let arrived = Arrived { envelope, header, payload, response: C::RESPONSES };
        // SAFETY: the slot is published, and is given back after this.
        unsafe { consumer.consume(arrived) }
    }

    /// Stores the state after a run, as done() does after a message: `count` messages before the
    /// ticket `next` were consumed.
    #[inline(always)]
    fn ran(&mut self, next: u64, count: u32) {
        let state = self.current();
        state.next = next;
        state.unfinished = None;
        state.misses = 0;
        self.batch += count;
        (self.quiet, self.polls_granted, self.polls_left) = (0, QUIET, QUIET);
    }
}
