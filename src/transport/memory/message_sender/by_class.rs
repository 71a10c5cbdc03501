//! The functions of [`Carrier`] for one peer of the node: they choose by the class of the message.
//!
//! [`Carrier`]: crate::transport::carrier::Carrier

use super::{FindHost, MessageSender};
use crate::transport::SMALL_REQUEST;
use crate::transport::frame::{Class, Frame};
use crate::transport::memory::message_area::{
    ANSWERS, LARGE, LARGE_LIB, LARGE_RESPONSES, LIB, Policy, REPLIES, RESPONSES,
};
use crate::transport::memory::slots::SlotShare;
use crate::util::counters::Counters;
use std::sync::atomic::Ordering;

impl<'a> MessageSender<'a> {
    /// Takes a credit of a class and fills its slot. False: there is no credit.
    #[inline(always)]
    pub fn put(
        &self,
        class: Class,
        frame: &Frame,
        find: impl FindHost<'a>,
        counts: &Counters,
    ) -> bool {
        match class {
            Class::Requests => self.send(frame, find, counts),
            Class::Responses => self.respond(frame, counts),
            Class::Replies => self.reply(frame, counts),
            Class::Lib => self.ask(frame),
            Class::Answers => self.answer(frame),
        }
    }

    /// Whether there is a credit for a message of a class with so many bytes of payload. A hint.
    /// Shares of requests that were not used yet count as free.
    pub fn may_have_credit(&self, class: Class, payload: usize) -> bool {
        let is_large = payload > self.message_area.sizes.medium;
        let at = match class {
            Class::Requests if is_large => LARGE,
            Class::Requests => return self.requests_have_credit(true),
            Class::Responses if is_large => LARGE_RESPONSES,
            Class::Responses => RESPONSES,
            Class::Replies => REPLIES,
            Class::Lib if payload > SMALL_REQUEST => LARGE_LIB,
            Class::Lib => LIB,
            Class::Answers => ANSWERS,
        };
        let share = self.others[at - REPLIES].share.get();
        share.and_then(Option::as_ref).is_some_and(SlotShare::has_room)
    }

    /// Whether there is a credit for a request. Shares that were not used yet count as `unknown`.
    pub(super) fn requests_have_credit(&self, unknown: bool) -> bool {
        let limit = self.message_area.sizes.slots as i64;
        let head = self.message_area.head;
        let under_way = || {
            let consumed = head.consumed.0.load(Ordering::Acquire);
            head.sent.0.load(Ordering::Relaxed).wrapping_sub(consumed) as i64
        };
        (self.message_area.sizes.policy != Policy::Limit || under_way() < limit)
            && (self.first.has_room()
                || self.further.iter().any(|known| {
                    let share = known.share.get();
                    share.map_or(unknown, |share| share.as_ref().is_some_and(SlotShare::has_room))
                }))
    }
}
