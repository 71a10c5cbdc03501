//! The short way of small messages, each of which is a packet and a frame of its own: from put() to
//! the lane, and from the lane's frame into a slot. Their bytes are copied once on each side, and
//! no queue of this rank is used. A message that would have to wait for something takes the long
//! way. A peer does not see which way a message has taken.

use super::*;
use crate::transport::wire::grants::{Carrying, KNOCK};
use crate::transport::wire::outgoing::class_of_single;
use crate::transport::wire::packet::{Single, put_single, single_of};

impl State {
    /// Posts a message at once. False: nothing has happened, since it must take the long way.
    pub(super) fn post_single(
        &mut self,
        me: u32,
        (to, line): (u32, Option<Line>),
        class: Class,
        frame: &Frame,
    ) -> bool {
        let State { lane, grants, outgoing, receipts, .. } = self;
        let size = frame.header.len() + frame.payload.len();
        let may = size <= KNOCK
            && outgoing.may_post_alone()
            && self.lost.is_empty()
            && self.tickets.is_none()
            && self.failure.is_none()
            && !self.closed;
        if !may {
            return false;
        }
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
            let head = |size| pieces::head(size, number, 0);
            put_single(bytes, single, (class, frame), answered, head);
        };
        let posted = outgoing.post_alone(&mut **lane, (to, class_of_single(single)), make);
        if let Err(why) = posted {
            // As in Shared::send().
            self.mark_lost(me, to, &format!("refused: {why}"), &mut Out::new());
        }
        true
    }

    /// Puts the message of a received frame into a slot, if it is one of post_single() and need not
    /// wait. False: nothing has happened, and take_frame() must take the frame.
    pub(super) fn take_single(
        &mut self,
        event: &Event,
        bytes: &[u8],
        medium: usize,
        deliver: &dyn Fn(u32, Class, &Frame) -> bool,
        results: &mut Results,
    ) -> bool {
        let (from, packet) = (event.peer, pieces::only(bytes));
        let Some((answered, single, (class, frame))) =
            packet.and_then(|packet| single_of(packet, medium))
        else {
            return false;
        };
        let may = match single {
            // Frames by tickets and by knocks take turns in round().
            Single::Knock(line, _) => self.tickets.is_none() && self.grants.may_pass(from, line),
            Single::Aside => true,
        };
        if !may || class_of_single(single) != event.class || !deliver(from, class, &frame) {
            return false;
        }
        // The knock first: its record of the peer would else be removed and made again.
        if let Single::Knock(line, number) = single {
            self.grants.passed(from, line, number);
        }
        if let Some(answered) = answered {
            self.grants.answered(from, answered, &mut results.out);
        }
        results.for_lane |= matches!(class, Class::Lib | Class::Answers);
        // Perhaps the peer waits for a receipt of it.
        results.others |= self.receipts.are_wanted();
        true
    }
}
