//! The short way of messages: of one that is a packet and a frame of its own from put() to the
//! lane, and of each whole packet with a message from the lane's frame into a slot. The bytes are
//! copied once on each side, and no queue of this rank is used. A message that would have to wait
//! for something takes the long way. A peer does not see which way a message has taken.

use super::*;
use crate::transport::wire::grants::{Carrying, LINES};
use crate::transport::wire::outgoing::{class_of_message, class_of_single};
use crate::transport::wire::packet::{Single, put_single, single_of};

impl State {
    /// Whether messages may take the short ways. On other networks they have other ways, and frames
    /// that wait must be posted first.
    #[inline]
    pub(super) fn has_short_ways(&self) -> bool {
        self.outgoing.is_bare() && self.tickets.is_none() && self.failure.is_none() && !self.closed
    }

    /// Takes a message behind those of its line that wait for the peer's grants, if
    /// has_short_ways(). Some(false): there is no room. None: it must take another way.
    #[inline]
    pub(super) fn wait_behind(
        &mut self,
        to: (u32, Line),
        message: (Class, &Frame),
    ) -> Option<bool> {
        // `receipts` has noted the peer at its knock, and forgets it when nothing waits any more.
        self.grants.send_behind(to, message, &mut self.outgoing.buffers)
    }

    /// Posts a message at once, if has_short_ways(), and wait_behind() has not taken it. False:
    /// nothing has happened, since it must take the long way.
    pub(super) fn post_single(
        &mut self,
        me: u32,
        (to, line): (u32, Option<Line>),
        class: Class,
        frame: &Frame,
    ) -> bool {
        let size = frame.header.len() + frame.payload.len();
        if !self.outgoing.fits_alone(size) || self.is_lost(to) || self.grants.is_dead(to) {
            return false;
        }
        let State { lane, grants, outgoing, receipts, .. } = self;
        let (single, carrying) = match line {
            None => (Single::Aside, Carrying::Frame(None)),
            Some(line) => {
                let Some(number) = grants.begin_alone(to, line, size) else { return false };
                receipts.sent(to);
                (Single::Knock(line, number), Carrying::Knock(line, number))
            }
        };
        let answered = grants.ride_by(to, carrying);
        let make = |number, bytes: &mut Vec<u8>| {
            let head = |size| pieces::head(size, number, 0..size);
            put_single(bytes, single, (class, frame), answered, head);
        };
        let to_class = (to, class_of_single(single, class));
        let posted = outgoing.post_alone(&mut **lane, (to_class, size), make);
        if let Err(why) = posted {
            // As in Shared::send().
            self.mark_lost(me, to, &format!("refused: {why}"), &mut Out::new());
        }
        true
    }

    /// Puts the messages of a stream with which a received frame begins into slots, as
    /// take_single() does with one: those that were granted, need not wait, and bring nothing else.
    /// Returns the rest of the frame.
    pub(super) fn take_stream<'f>(
        &mut self,
        event: &Event,
        frame: &'f [u8],
        medium: usize,
        deliver: &dyn Fn(u32, Class, &Frame) -> bool,
        results: &mut Results,
    ) -> &'f [u8] {
        let (from, mut left) = (event.peer, frame);
        // The line, how many messages lie in slots, and how many of them may.
        let (mut of, mut count, mut most) = (LINES, 0, 0);
        while let Some((packet, others)) = pieces::first(left, packet::MOST)
            && let Some((None, Single::Granted(line), (class, frame))) = single_of(packet, medium)
        {
            if of == LINES && self.tickets.is_none() {
                (of, most) = (line, self.grants.may_pass_granted(from, line, false));
            }
            let may = line == of && count < most && class_of_message(class) == event.class;
            if !may || !deliver(from, class, &frame) {
                break;
            }
            (left, count) = (others, count + 1);
            results.for_lane |= class == Class::Lib;
        }
        if count > 0 {
            let serves = self.grants.passed_granted(from, of, count, None);
            results.others |= serves || self.receipts.are_wanted();
        }
        left
    }

    /// Puts the message of a received packet into a slot, if the packet has one and it need not
    /// wait. False: nothing has happened, and take() must take the packet.
    pub(super) fn take_single(
        &mut self,
        event: &Event,
        packet: &[u8],
        medium: usize,
        deliver: &dyn Fn(u32, Class, &Frame) -> bool,
        results: &mut Results,
    ) -> bool {
        let from = event.peer;
        let Some((answered, single, (class, frame))) = single_of(packet, medium) else {
            return false;
        };
        // Frames by tickets and by knocks take turns in round().
        let in_turn = self.tickets.is_none();
        let may = match single {
            Single::Knock(line, _) => in_turn && self.grants.may_pass(from, line),
            Single::Granted(line) => in_turn && self.grants.may_pass_granted(from, line, false) > 0,
            Single::More(line, ..) => in_turn && self.grants.may_pass_granted(from, line, true) > 0,
            Single::Aside => true,
        };
        if !may || class_of_single(single, class) != event.class || !deliver(from, class, &frame) {
            return false;
        }
        // The knock first: its record of the peer would else be removed and made again.
        let serves = match single {
            Single::Knock(line, number) => {
                self.grants.passed(from, line, number);
                false
            }
            Single::Granted(line) => self.grants.passed_granted(from, line, 1, None),
            Single::More(line, number, demand) => {
                self.grants.passed_granted(from, line, 1, Some((number, demand as usize)))
            }
            Single::Aside => false,
        };
        if let Some(answered) = answered {
            self.grants.answered(from, answered, &mut results.out);
        }
        results.for_lane |= matches!(class, Class::Lib | Class::Answers);
        // Perhaps the peer waits for a receipt of it.
        results.others |= serves || self.receipts.are_wanted();
        true
    }
}
